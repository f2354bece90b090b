"""rtmms replay: the commands of a run once more, and whether they give the same bits."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Exit 1 at the first step and quantity that is not the same to the bit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(file: Path, check: bool, as_json: bool) -> int:
    """Rerun the commands in FILE (from rtmms run --trace) on a new plant."""
    import rtmms
    from rtmms.cli.final import plain
    from rtmms.record.commands import load
    from rtmms.record.commands import replay as rerun

    recorded = load(file)
    origin = recorded.origin
    if origin["version"] != rtmms.__version__:
        click.echo(f"rtmms: {file} was recorded by version {origin['version']}, this is {rtmms.__version__}", err=True)
    plant, difference = rerun(recorded)
    result = {
        "robot": origin["robot"], "steps": len(recorded.command), "dt": origin["dt"], "seed": origin["seed"],
        "same": difference is None,
        "first_difference": None if difference is None else {
            "step": difference.step, "quantity": difference.quantity, "recorded": difference.recorded,
            "replayed": difference.replayed,
        },
        "final": plant.observe(),
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(plain(result), allow_nan=False))
    elif difference is None:
        click.echo(f"{origin['robot']}: {result['steps']} steps, the same bits")
    if difference is None:
        return 0
    click.echo(f"rtmms: {file}: not the same: {difference}", err=True)
    return 1 if check else 0
