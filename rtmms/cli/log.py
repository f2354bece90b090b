"""rtmms log, replay, plot: contents of a log, its table, its rerun, its figure."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from rtmms.base.errors import ModelError, safe_text
from rtmms.base.files import KINDS, new_file_beside, open_input, refuse_output
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.running.report_table import change_rows

if TYPE_CHECKING:
    from rtmms.plant.protocol import Plant
    from rtmms.record.log import Log


# rtmms log: what a log holds, and its steps as a table.


_MAX_DAMAGE = 5


@click.group()
def log() -> None:
    """Print what a log (from run --log) holds, and its steps as a table."""


file = click.argument("file", metavar="LOG", type=click.Path(path_type=Path))


@log.command()
@file
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(file: Path, as_json: bool) -> int:
    """Print what was run, how it went, and whether the log is whole."""
    from rtmms.base.errors import safe_text
    from rtmms.cli.running.report import to_json_types
    from rtmms.record.log import open_log

    log = open_log(file)
    result = _survey(log)
    if as_json:
        print_json(json.dumps(to_json_types(result), allow_nan=False))
        return 0
    width = max(len(name) for name in result)
    for name, value in result.items():
        if name == "damage":  # `report_damage` has the sentences
            value = f"{len(value)} places" if value else "-"
        if name == "changes":
            value = "; ".join(f"{instant}: {text}" for instant, text in change_rows(value, result["dt"]))
        print_text(f"{name:<{width}}  {safe_text(_text_of(value))}")
    report_damage(log)
    return 0


outputs_option = click.option("--outputs", metavar="PATTERN,...",
                              help="Outputs in the table: names, or patterns such as rod_*. Default: all.")  # fmt: skip
every_option = click.option("--every", type=click.IntRange(1, 10**9), default=1, metavar="N",
                            help="One line every N steps, from the first step of each run on.")  # fmt: skip


@log.command("csv")
@file
@outputs_option
@every_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.csv",
              help="Default: standard output.")  # fmt: skip
def csv_(file: Path, output: Path | None, outputs: str | None, every: int) -> int:
    """Write one line a step: its outcome and times, the command held over it, the outputs at its end."""
    from rtmms.record.log import open_log
    from rtmms.record.tables import write_csv

    if output is not None:
        refuse_output(output, "-o", KINDS[".csv"], (file,))
    log = open_log(file)
    names = _names(log, outputs)
    with _opened(output) as out:
        write_csv(log, out, names, every)
    report_damage(log)
    return 0


@log.command()
@file
@outputs_option
@every_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.parquet",
              help="Default: LOG with this ending.")  # fmt: skip
def parquet(file: Path, output: Path | None, outputs: str | None, every: int) -> int:
    """Write the same table as Parquet, exact and smaller (needs the extra rtmms[parquet])."""
    from rtmms.record.log import open_log
    from rtmms.record.tables import write_parquet

    path = output or file.with_suffix(".parquet")
    refuse_output(path, "-o", KINDS[".parquet"], (file,))
    log = open_log(file)
    names = _names(log, outputs)
    with new_file_beside(path, "-o") as part:
        steps = write_parquet(log, part, names, every)
    print_text(f"{path}: {steps} steps", err=True)
    report_damage(log)
    return 0


def _names(log: Log, patterns: str | None) -> tuple[str, ...] | None:
    """Return the outputs that --outputs selects; None without it."""
    from rtmms.record.tables import select_outputs

    return None if patterns is None else select_outputs(log, [part.strip() for part in patterns.split(",")])


@contextlib.contextmanager
def _opened(path: Path | None) -> Iterator[IO[str]]:

    if path is None:
        yield sys.stdout
        return
    with new_file_beside(path, "-o") as part, part.open("w", newline="", encoding="utf-8") as out:
        yield out


def _survey(log: Log) -> dict[str, Any]:
    """Return facts of a log by name; counts come from the steps themselves, whatever the end states."""
    from rtmms.record.log import Step
    from rtmms.record.origin import branch_of

    outcomes: Counter[str] = Counter()
    runs, missing, expected, first, altered, steps, simulated = 0, 0, 0, 0, 0, 0, 0
    for row in log.rows():
        if not isinstance(row, Step):
            runs, expected, first = runs + 1, row.step, row.step
            continue
        missing += max(0, row.step - expected)
        outcomes[row.outcome] += 1
        altered += row.altered
        expected, steps = row.step + 1, steps + 1
        simulated = max(simulated, expected - first)
    origin, end, damage = log.origin, log.end, list(log.damage)
    missing += max(0, (0 if end is None else end.steps or 0) - expected)
    return {
        "file": str(log.path), "bytes": log.path.stat().st_size, "format": origin["format"],
        **{key: origin.get(key) for key in ("robot", "preset", "parameters", "mode", "rate", "dt", "seed")},
        "started": origin["started"], "command_line": origin["command_line"], "versions": origin["versions"],
        "machine": origin["machine"],
        "from": None if (branch := branch_of(origin)) is None else branch.as_fields(),
        "steps": steps, "simulated_s": simulated * origin["dt"], "outcomes": dict(outcomes), "runs": runs,
        "missing": missing, "altered": altered,
        "changes": [] if end is None else list(end.fields.get("changes") or ()),
        "ended": None if end is None else end.ended, "message": "" if end is None else end.message,
        "dropped": None if end is None else end.dropped, "damage": damage,
        "whole": end is not None and end.whole and not damage and missing <= end.dropped,
        "actuators": [channel["name"] for channel in origin["actuators"]],
        "outputs": [channel["name"] for channel in origin["outputs"]],
    }  # fmt: skip


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


def report_damage(log: Log) -> None:
    """Print a line on standard error for each unreadable place of the log, _MAX_DAMAGE of them.

    Parameters
    ----------
    log : Log
        The log.
    """
    if log.end is None and not log.damage:
        print_text(f"rtmms: {log.path}: the log was cut off after {log.count_steps()[0]} steps", err=True)
    for sentence in log.damage[:_MAX_DAMAGE]:
        print_text(f"rtmms: {log.path}: {sentence}; this part of the log is skipped", err=True)
    if len(log.damage) > _MAX_DAMAGE:
        print_text(f"rtmms: {log.path}: {len(log.damage) - _MAX_DAMAGE} more parts of the log are damaged", err=True)


# rtmms replay: the commands of a run once more, and whether they give the same bits.


@click.command()
@click.argument("file", metavar="LOG", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Exit 1 at the first step and quantity that is not the same to the bit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--robot", metavar="FILE.py:NAME", help="The plant, in place of the file that the log names.")
@click.option("--trust-log", is_flag=True, help="Run the file that the log names: FILE.py, .fmu, .urdf, .xml.")
def replay(file: Path, check: bool, as_json: bool, robot: str | None, trust_log: bool) -> int:
    """Rerun the commands in LOG (from run --log, or --trace) on a new plant, in lockstep.

    A log is data: where its robot is a file, which would run as code, name that file with --robot, or add --trust-log.
    """
    from rtmms.cli.running.report import to_json_types

    result = _log(file, robot, trust_log) if _is_mcap(file) else _trace(file, robot, trust_log)
    first, unchecked = result["first_difference"], result["unchecked"]
    if as_json:
        print_json(json.dumps(to_json_types(result), allow_nan=False))
    elif first is None:
        checked = f"the first {result['steps']} steps" if unchecked else f"{result['steps']} steps"
        print_text(f"{safe_text(result['robot'])}: {checked}, the replay is identical bit for bit")
    if first is not None:
        difference = f"recorded {first['recorded']!r}, replayed {first['replayed']!r}"
        print_text(
            f"rtmms: {file}: the replay differs: step {first['step']}: {safe_text(first['quantity'])}: {difference}",
            err=True,
        )
    if unchecked:
        print_text(f"rtmms: {file}: the log cannot be replayed to its end: {unchecked}", err=True)
    if check and not result["steps"]:
        print_text(f"rtmms: {file}: the log has no steps to check", err=True)
    return 1 if check and (first is not None or unchecked or not result["steps"]) else 0


def _is_mcap(file: Path) -> bool:
    try:
        with open_input(file) as opened:
            return opened.read(5) == b"\x89MCAP"
    except (ModelError, OSError):
        return file.suffix == ".mcap"  # whoever reads it reports what is wrong


def _log(file: Path, robot: str | None, trusted: bool) -> Mapping[str, Any]:
    from rtmms.cli.running.process import brace
    from rtmms.record.log import open_log
    from rtmms.record.rerun import rerun, summary

    log = open_log(file)
    if robot or trusted:
        brace(robot or log.origin["robot"])
    _warn(file, log.origin["versions"]["rtmms"])
    result = summary(log, rerun(log, robot, trusted=trusted))
    report_damage(log)
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
        print_text(
            f"rtmms: {file} was recorded by rtmms {safe_text(version)}, this is rtmms {rtmms.__version__}; "
            "results may differ",
            err=True,
        )


# rtmms plot: the figure of a run, drawn from its log.


@click.command()
@click.argument("file", metavar="LOG", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png",
              help="Where to draw; the ending sets the format. Default: beside the log, as LOG.png.")  # fmt: skip
def plot(file: Path, output: Path | None) -> int:
    """Draw the run that LOG (from run --log) holds."""
    from rtmms.cli.option_types import refuse_figure
    from rtmms.plant.description import describe_plant
    from rtmms.record.log import drawing as drawn
    from rtmms.record.log import open_log, plant_of
    from rtmms.record.rerun import gather, planned_steps
    from rtmms.view.figures import drawing, small_outputs
    from rtmms.view.outline import figure_outline
    from rtmms.view.robot_panels import RobotOutline, along, recent_names

    extra = output is None
    output = file.with_suffix(".png") if output is None else output
    refuse_figure("-o", output, (file,))
    log = open_log(file)
    origin = log.origin
    plant = plant_of(log)
    with drawn(file):
        outline = figure_outline(origin["robot"], plant)
        states = along(outline, plant, planned_steps(log))
        outlined = RobotOutline(outline, states) if outline is not None and states is not None else None
        draw = drawing(origin["robot"], plant, outlined)
        if draw is None:
            raise ModelError(f"{file}: this robot ('{origin['robot']}') has no drawing, so it has no figure")
        keeps = bool(describe_plant(plant).trace_outputs)
        gathered = gather(log, plant, None if keeps else small_outputs(plant), recent_names(outline, plant), states)
        report_damage(log)
        _to_the_end(log, plant)
        draw(output, gathered.trace, gathered.recent, gathered.statistics)
    if extra:
        print_text(f"{output}", err=True)
    return 0


def _to_the_end(log: Log, plant: Plant) -> None:
    """Restore the state of the run's end where the log has it: a gait that continues is drawn from there."""
    from rtmms.record.log import LoggedPlant

    if log.end is not None and log.end.state is not None and not isinstance(plant, LoggedPlant):
        with suppress(ModelError):  # of another version
            plant.restore(log.end.state)
