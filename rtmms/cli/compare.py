"""rtmms compare: runs side by side, from their logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.cli.words import refuse_figure
from rtmms.record.branch import branch_of
from rtmms.terminal import cell, console, print_json

if TYPE_CHECKING:
    from rtmms.record.log import Log
    from rtmms.report.comparison import Run

_SAMPLES = 4000


@click.command()
@click.argument("files", nargs=-1, metavar="LOG LOG...", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png",
              help="Draw them there; the ending says in which format.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(files: tuple[Path, ...], output: Path | None, as_json: bool) -> int:
    """Put the runs of several LOGs (from run --log) side by side: how far off, at what effort, how timely."""
    from rtmms.cli.running.report import plain
    from rtmms.record.log import drawing
    from rtmms.report.comparison import draw, table

    if len(files) < 2:
        raise click.UsageError(f"compare: expected two logs or more, got {len(files)}")
    if output is not None:
        refuse_figure("-o", output)
    runs = []
    for file, name in zip(files, _names(files), strict=True):
        with drawing(file):
            runs.append(_run(file, name))
    with drawing(files[0]):
        rows = table(runs)
        if output is not None:
            draw(runs, output)
    if as_json:
        told = {run.name: {what: values[k] for what, values in rows} for k, run in enumerate(runs)}
        print_json(json.dumps(plain(told), allow_nan=False))
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
    """Stems where they differ, else the paths."""
    stems = [file.stem for file in files]
    return stems if len(set(stems)) == len(stems) else [str(file) for file in files]


def named(name: str, log: Log) -> str:
    """With the log that it branched from, and when."""
    branch = branch_of(log.origin)
    return name if branch is None else f"{name} ({Path(branch.log).stem} from {branch.seconds:g} s)"


def _word(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _run(file: Path, name: str) -> Run:
    """One log's samples and report."""
    import numpy as np

    from rtmms.cli.log import tell_damage
    from rtmms.contract import TRUTH
    from rtmms.record.log import Step, open_log
    from rtmms.report.comparison import Run

    log = open_log(file)
    tell_damage(log)
    told = log.end.told if log.end is not None else {}
    report = {"robot": log.origin["robot"], "mode": log.origin.get("mode"), **(told.get("report") or {})}
    dt, steps = float(log.origin["dt"]), log.count_steps()[0]
    every = max(1, steps // _SAMPLES)
    kept = {signal.name.removeprefix(TRUTH) for signal in log.outputs}
    times: list[float] = []
    commands: list[Any] = []
    place: list[float] = []
    turned: list[float] = []
    speed: list[float] = []
    for row in log.rows():
        if not isinstance(row, Step):
            for one in (times, commands, place, turned, speed):  # a reset: what came after it
                one.clear()
            continue
        if row.step % every:
            continue
        outputs = {name.removeprefix(TRUTH): value for name, value in log.split(row.outputs).items()}
        times.append((row.step + 1) * dt)
        commands.append(row.command.copy())
        if {"position", "quaternion", "velocity"} <= kept:
            w, x, y, z = outputs["quaternion"]
            place.append(-float(outputs["position"][2]))
            turned.append(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
            speed.append(float(outputs["velocity"][0]))
    return Run(
        named(name, log), report, np.array(times), np.array(commands), np.array(place), np.degrees(np.unwrap(turned)),
        np.array(speed),
    )  # fmt: skip
