"""rtmms keys: keys for a plant that others reach over a network, and for its peers."""

from __future__ import annotations

from pathlib import Path

import click

from rtmms.base.terminal import print_text


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--client", default="client", show_default=True, metavar="NAME", help="Name of the peer that gets a pair."
)
def keys(directory: Path, client: str) -> None:
    """Make keys in DIR: the plant's pair if it has none yet, and a pair for a peer, which is let in."""
    from rtmms.wire.keys import ALLOWED, SERVER, make_keys

    for path in make_keys(directory, client):
        print_text(f"wrote {path}")
    public, secret = directory / f"{SERVER}.key", directory / f"{client}.key_secret"
    print_text(
        "\nOn the plant's machine:\n"
        f"    rtmms serve ROBOT --keys {directory} --exchange 'tcp://*:9870' --step 'tcp://*:9871' --telemetry 'tcp://*:9872'"
        f"\nOn the peer's machine: copy {public} and {secret} into a folder of mode 0700, then\n"
        "    rtmms control NAME --exchange tcp://HOST:9870 --keys THAT_FOLDER\n"
        f"To exclude a peer again, delete its file in {directory / ALLOWED}; the plant disconnects it within a second."
    )
