"""rtmms log: what a log holds, and its steps as a table."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from rtmms.terminal import print_json, print_text
from rtmms.whole_file import KINDS, beside, refuse_output

if TYPE_CHECKING:
    from rtmms.record.log import Log

_MOST_DAMAGE = 5


@click.group()
def log() -> None:
    """What a log (from run --log) holds, and its steps as a table."""


file = click.argument("file", metavar="LOG", type=click.Path(path_type=Path))


@log.command()
@file
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(file: Path, as_json: bool) -> int:
    """What was run, how it went, and whether the log is whole."""
    from rtmms.cli.running.report import plain
    from rtmms.errors import shown
    from rtmms.record.log import open_log

    log = open_log(file)
    found = _survey(log)
    if as_json:
        print_json(json.dumps(plain(found), allow_nan=False))
        return 0
    width = max(len(name) for name in found)
    for name, value in found.items():
        if name == "damage":  # `tell_damage` has the sentences
            value = f"{len(value)} places" if value else "-"
        print_text(f"{name:<{width}}  {shown(_told(value))}")
    tell_damage(log)
    return 0


outputs_option = click.option("--outputs", metavar="PATTERN,...",
                              help="Outputs in the table: names, or patterns such as rod_*. Default: all.")  # fmt: skip
every_option = click.option("--every", type=click.IntRange(1), default=1, metavar="N",
                            help="One line every N steps, from the first step of each run on.")  # fmt: skip


@log.command("csv")
@file
@outputs_option
@every_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.csv",
              help="Default: standard output.")  # fmt: skip
def csv_(file: Path, output: Path | None, outputs: str | None, every: int) -> int:
    """One line a step: its outcome and times, the command held over it, the outputs at its end."""
    from rtmms.record.log import open_log
    from rtmms.record.tables import write_csv

    if output is not None:
        refuse_output(output, "-o", KINDS[".csv"], (file,))
    log = open_log(file)
    names = _names(log, outputs)
    with _opened(output) as out:
        write_csv(log, out, names, every)
    tell_damage(log)
    return 0


@log.command()
@file
@outputs_option
@every_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.parquet",
              help="Default: LOG with this ending.")  # fmt: skip
def parquet(file: Path, output: Path | None, outputs: str | None, every: int) -> int:
    """The same table as Parquet, exact and smaller (needs the extra rtmms[parquet])."""
    from rtmms.record.log import open_log
    from rtmms.record.tables import write_parquet

    path = output or file.with_suffix(".parquet")
    refuse_output(path, "-o", KINDS[".parquet"], (file,))
    log = open_log(file)
    names = _names(log, outputs)
    with beside(path, "-o") as part:
        steps = write_parquet(log, part, names, every)
    print_text(f"{path}: {steps} steps", err=True)
    tell_damage(log)
    return 0


def _names(log: Log, patterns: str | None) -> tuple[str, ...] | None:
    """The outputs that --outputs selects; None without it."""
    from rtmms.record.tables import selected

    return None if patterns is None else selected(log, [one.strip() for one in patterns.split(",")])


@contextlib.contextmanager
def _opened(path: Path | None) -> Iterator[IO[str]]:

    if path is None:
        yield sys.stdout
        return
    with beside(path, "-o") as part, part.open("w", newline="", encoding="utf-8") as out:
        yield out


def _survey(log: Log) -> dict[str, Any]:
    """Facts by name; counts from the steps themselves, whatever the end says."""
    from rtmms.record.branch import branch_of
    from rtmms.record.log import Step

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
        "from": None if (branch := branch_of(origin)) is None else branch.told(),
        "steps": steps, "simulated_s": simulated * origin["dt"], "outcomes": dict(outcomes), "runs": runs,
        "missing": missing, "altered": altered,
        "ended": None if end is None else end.ended, "message": "" if end is None else end.message,
        "dropped": None if end is None else end.dropped, "damage": damage,
        "whole": end is not None and end.whole and not damage and missing <= end.dropped,
        "actuators": [channel["name"] for channel in origin["actuators"]],
        "outputs": [channel["name"] for channel in origin["outputs"]],
    }  # fmt: skip


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


def tell_damage(log: Log) -> None:
    """A line on standard error for each place of the log that cannot be read, _MOST_DAMAGE of them."""
    for sentence in log.damage[:_MOST_DAMAGE]:
        print_text(f"rtmms: {log.path}: {sentence}; what stood there is left out", err=True)
    if len(log.damage) > _MOST_DAMAGE:
        print_text(f"rtmms: {log.path}: damaged in {len(log.damage) - _MOST_DAMAGE} more places", err=True)
