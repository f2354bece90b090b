"""rtmms replay: the commands of a run once more, and whether they give the same bits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("file", metavar="LOG", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Exit 1 at the first step and quantity that is not the same to the bit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(file: Path, check: bool, as_json: bool) -> int:
    """Rerun the commands in LOG (from run --log, or --trace) on a new plant, in lockstep."""
    from rtmms.cli.running.final import plain

    result = _log(file) if _is_mcap(file) else _trace(file)
    first, unchecked = result["first_difference"], result["unchecked"]
    if as_json:
        click.echo(json.dumps(plain(result), allow_nan=False))
    elif first is None:
        checked = f"the first {result['steps']} steps" if unchecked else f"{result['steps']} steps"
        click.echo(f"{result['robot']}: {checked}, the same bits")
    if first is not None:
        told = f"recorded {first['recorded']!r}, replayed {first['replayed']!r}"
        click.echo(f"rtmms: {file}: not the same: step {first['step']}: {first['quantity']}: {told}", err=True)
    if unchecked:
        click.echo(f"rtmms: {file}: cannot be replayed to its end: {unchecked}", err=True)
    if check and not result["steps"]:
        click.echo(f"rtmms: {file}: no steps to check", err=True)
    return 1 if check and (first is not None or unchecked or not result["steps"]) else 0


def _is_mcap(file: Path) -> bool:
    if file.exists() and not file.is_file():  # a pipe would be waited for
        return False
    try:
        with file.open("rb") as opened:
            return opened.read(5) == b"\x89MCAP"
    except OSError:
        return file.suffix == ".mcap"  # whoever reads it says what is wrong


def _log(file: Path) -> Mapping[str, Any]:
    from rtmms.cli.log import tell_damage
    from rtmms.cli.running.foreign import brace
    from rtmms.record.log import open_log
    from rtmms.record.rerun import rerun, summary

    log = open_log(file)
    brace(log.origin["robot"])
    _warn(file, log.origin["versions"]["rtmms"])
    result = summary(log, rerun(log))
    tell_damage(log)
    if log.end is None and not log.damage:
        click.echo(f"rtmms: {file}: was cut off; it holds {result['steps']} steps", err=True)
    return result


def _trace(file: Path) -> Mapping[str, Any]:
    from rtmms.cli.running.foreign import brace
    from rtmms.record.commands import load
    from rtmms.record.commands import replay as rerun

    recorded = load(file)
    origin = recorded.origin
    _warn(file, origin["version"])
    brace(origin["robot"])
    plant, difference = rerun(recorded)
    return {
        "robot": origin["robot"], "steps": len(recorded.command), "dt": origin["dt"], "seed": origin["seed"],
        "same": difference is None, "unchecked": None,
        "first_difference": None if difference is None else {
            "step": difference.step, "quantity": difference.quantity, "recorded": difference.recorded,
            "replayed": difference.replayed,
        },
        "final": plant.observe(),
    }  # fmt: skip


def _warn(file: Path, version: str) -> None:
    import rtmms

    if version != rtmms.__version__:
        click.echo(f"rtmms: {file} was recorded by version {version}, this is {rtmms.__version__}", err=True)
