"""rtmms compare: runs side by side, from their logs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.errors import safe_text as spelled_out
from rtmms.base.terminal import cell, console, print_json
from rtmms.cli.option_types import refuse_figure
from rtmms.record.origin import branch_of

if TYPE_CHECKING:
    from rtmms.record.log import Log
    from rtmms.view.comparison import Run

_SAMPLES = 4000


@click.command()
@click.argument("files", nargs=-1, metavar="LOG LOG...", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png",
              help="Draw them there; the ending sets the format.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(files: tuple[Path, ...], output: Path | None, as_json: bool) -> int:
    """Put the runs of several LOGs (from run --log) side by side: how far off, at what effort, how timely."""
    from rtmms.cli.running.report import to_json_types
    from rtmms.record.log import drawing
    from rtmms.view.comparison import draw, table

    if len(files) < 2:
        raise click.UsageError(f"compare: expected two logs or more, got {len(files)}")
    if output is not None:
        refuse_figure("-o", output, files)
    runs = []
    for file, name in zip(files, _names(files), strict=True):
        with drawing(file):
            runs.append(_run(file, name))
    with drawing(files[0]):
        rows = table(runs)
        if output is not None:
            draw(runs, output)
    if as_json:
        by_run = {run.name: {what: values[k] for what, values in rows} for k, run in enumerate(runs)}
        print_json(json.dumps(to_json_types(by_run), allow_nan=False))
        return 0
    from rich.table import Table

    shown = Table(box=None, pad_edge=False)
    shown.add_column("")
    for run in runs:
        shown.add_column(cell(run.name), justify="right")
    for what, values in rows:
        shown.add_row(cell(what), *(cell(_word(value)) for value in values))
    console(width=max(80, 26 + 22 * len(runs))).print(shown)
    return 0


def _names(files: tuple[Path, ...]) -> list[str]:
    """Return stems where they differ, else the paths."""
    stems = [file.stem for file in files]
    return stems if len(set(stems)) == len(stems) else [str(file) for file in files]


def run_name(name: str, log: Log) -> str:
    """Return the name of a run with the log that it branched from, and the time.

    Parameters
    ----------
    name : str
        Name of the run.
    log : Log
        Its log.

    Returns
    -------
    str
        The name itself where the run is no branch.
    """
    branch = branch_of(log.origin)
    return name if branch is None else f"{name} ({Path(branch.log).stem} from {branch.seconds:g} s)"


def _word(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _run(file: Path, name: str) -> Run:
    """Read one log's samples and report."""
    import numpy as np

    from rtmms.base.contract import TRUTH
    from rtmms.cli.log import report_damage
    from rtmms.loop.trace import QUANTITIES
    from rtmms.record.log import Step, open_log
    from rtmms.view.comparison import Run

    log = open_log(file)
    report_damage(log)
    recorded = log.end.fields if log.end is not None else {}
    report = {"robot": log.origin["robot"], "mode": log.origin.get("mode"), **(recorded.get("report") or {})}
    dt, steps = float(log.origin["dt"]), log.count_steps()[0]
    every = max(1, steps // _SAMPLES)
    stored = {signal.name.removeprefix(TRUTH) for signal in log.outputs}
    known = QUANTITIES if {"position", "quaternion", "velocity"} <= stored else {}
    times: list[float] = []
    commands: list[Any] = []
    points: list[tuple[float, Mapping[str, Any]]] = []
    values: dict[str, list[float]] = {quantity: [] for quantity in known}
    for row in log.rows():
        if not isinstance(row, Step):
            for item in (times, commands, points, *values.values()):  # a reset: what came after it
                item.clear()
            continue
        if row.set_points is not None:
            points.append(((row.step + 1) * dt, row.set_points))
        if row.step % every:
            continue
        outputs = {name.removeprefix(TRUTH): value for name, value in log.split(row.outputs).items()}
        times.append((row.step + 1) * dt)
        commands.append(row.command.copy())
        for quantity, of in known.items():
            values[quantity].append(of(outputs))
    series = {
        quantity: np.degrees(np.unwrap(np.radians(many))) if quantity.endswith("_deg") else np.array(many)
        for quantity, many in values.items()
    }
    title = spelled_out(run_name(name, log))
    units = {actuator.unit for actuator in log.actuators}
    unit = units.pop() if len(units) == 1 else ""
    changes = recorded.get("changes") or ()
    return Run(title, report, np.array(times), np.array(commands), series, points, settings(log.origin, changes), unit)


def settings(origin: Mapping[str, Any], changes: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return the settings of a run by name.

    They are controllers and their parameters (CONTROLLER.NAME), the robot's parameters, and the mode of the run.
    Values that changed while it ran follow the first one, each with its time.

    Parameters
    ----------
    origin : Mapping[str, Any]
        Origin of the log.
    changes : Sequence[Mapping[str, Any]], default ()
        Changes from end.json.

    Returns
    -------
    dict[str, Any]
        Values by name.
    """
    from rtmms.view.comparison import CONTROLLERS

    result: dict[str, Any] = {}
    names = []
    for controller in origin.get("controllers") or ():
        name, _, option_text = str(controller).partition(":")
        pairs = {key: value for key, _, value in (word.partition("=") for word in filter(None, option_text.split(",")))}
        name = f"{pairs.pop('robot')}.{name}" if "robot" in pairs else name  # one of several robots
        names.append(name)
        result |= {f"{name}.{key}": value for key, value in pairs.items()}
    result[CONTROLLERS] = ", ".join(names) or None
    result |= {name: origin.get(name) for name in ("mode", "rate", "seed", "dt", "sensors", "faults", "preset")}
    result |= _flat(origin.get("description") or {})
    for change in changes:
        for name, value in _flat(change.get("args") or {}).items():
            result[name] = f"{result.get(name, '-')}, {value} from {change['step'] * origin['dt']:.6g} s"
    return result


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return values by their names, those of one of several robots as ROBOT.NAME."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        result |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": _plain(value)}
    return result


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) else str(value)
