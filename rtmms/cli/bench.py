"""rtmms bench: what is measured, found by entry points (group rtmms.benchmarks: a callable(as_json: bool) -> int)."""

from __future__ import annotations

import json

import click

from rtmms.cli.words import plugins
from rtmms.errors import UnknownNameError

GROUP = "rtmms.benchmarks"


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(name: str | None, as_json: bool) -> int:
    """Run the benchmark NAME; without one, list them."""
    known = plugins(GROUP)
    if name is None:
        if as_json:
            click.echo(json.dumps({"benchmarks": sorted(known)}))
        else:
            click.echo("\n".join(sorted(known)) or "no benchmarks are installed")
        return 0
    if name not in known:
        raise UnknownNameError("benchmark", name, known)
    return int(known[name].load()(as_json) or 0)
