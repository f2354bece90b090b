"""rtmms replay: the commands of a run once more, and whether they give the same bits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rtmms.errors import ModelError, shown
from rtmms.input_file import open_input
from rtmms.terminal import print_json, print_text


@click.command()
@click.argument("file", metavar="LOG", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Exit 1 at the first step and quantity that is not the same to the bit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--robot", metavar="FILE.py:NAME", help="The plant, in place of the file that the log names.")
@click.option("--trust-log", is_flag=True, help="Run the file that the log names (FILE.py, FILE.fmu, FILE.urdf).")
def replay(file: Path, check: bool, as_json: bool, robot: str | None, trust_log: bool) -> int:
    """Rerun the commands in LOG (from run --log, or --trace) on a new plant, in lockstep.

    A log is data: where its robot is a file, which would run as code, name that file with --robot, or say --trust-log.
    """
    from rtmms.cli.running.report import plain

    result = _log(file, robot, trust_log) if _is_mcap(file) else _trace(file, robot, trust_log)
    first, unchecked = result["first_difference"], result["unchecked"]
    if as_json:
        print_json(json.dumps(plain(result), allow_nan=False))
    elif first is None:
        checked = f"the first {result['steps']} steps" if unchecked else f"{result['steps']} steps"
        print_text(f"{shown(result['robot'])}: {checked}, the same bits")
    if first is not None:
        told = f"recorded {first['recorded']!r}, replayed {first['replayed']!r}"
        print_text(f"rtmms: {file}: not the same: step {first['step']}: {shown(first['quantity'])}: {told}", err=True)
    if unchecked:
        print_text(f"rtmms: {file}: cannot be replayed to its end: {unchecked}", err=True)
    if check and not result["steps"]:
        print_text(f"rtmms: {file}: no steps to check", err=True)
    return 1 if check and (first is not None or unchecked or not result["steps"]) else 0


def _is_mcap(file: Path) -> bool:
    try:
        with open_input(file) as opened:
            return opened.read(5) == b"\x89MCAP"
    except (ModelError, OSError):
        return file.suffix == ".mcap"  # whoever reads it says what is wrong


def _log(file: Path, robot: str | None, trusted: bool) -> Mapping[str, Any]:
    from rtmms.cli.log import tell_damage
    from rtmms.cli.running.process import brace
    from rtmms.record.log import open_log
    from rtmms.record.rerun import rerun, summary

    log = open_log(file)
    if robot or trusted:
        brace(robot or log.origin["robot"])
    _warn(file, log.origin["versions"]["rtmms"])
    result = summary(log, rerun(log, robot, trusted=trusted))
    tell_damage(log)
    if log.end is None and not log.damage:
        print_text(f"rtmms: {file}: was cut off; it holds {result['steps']} steps", err=True)
    return result


def _trace(file: Path, robot: str | None, trusted: bool) -> Mapping[str, Any]:
    from rtmms.cli.running.process import brace
    from rtmms.record.commands import load
    from rtmms.record.commands import replay as rerun

    recorded = load(file)
    origin = recorded.origin
    _warn(file, origin["version"])
    if robot or trusted:
        brace(robot or origin["robot"])
    plant, difference = rerun(recorded, robot, trusted=trusted)
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
        print_text(f"rtmms: {file} was recorded by version {shown(version)}, this is {rtmms.__version__}", err=True)
