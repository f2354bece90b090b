"""rtmms sweep: many runs of a scenario or a robot, with different values; one table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.budget import Budget, OutOfTimeError
from rtmms.base.contract import MAX_COUNT
from rtmms.base.errors import ModelError
from rtmms.base.processes import core_count
from rtmms.base.terminal import console, print_json, print_text
from rtmms.cli.option_types import (
    DASK,
    DASK_SECURITY,
    INTERRUPTED,
    MAX_THREADS,
    Installed,
    KnownName,
    NumberType,
    refuse_figure,
)
from rtmms.cli.running.plan import study_options
from rtmms.scenario.tables import METHODS

if TYPE_CHECKING:
    from rtmms.scenario.expectations import Expectation
    from rtmms.studies.sweep_rows import Table
    from rtmms.studies.sweep_running import Cluster
    from rtmms.studies.sweep_study import Study

INCOMPLETE = 1
ALL_FAILED = 1


@click.command()
@click.argument("what", metavar="STUDY.toml|SCENARIO.toml|ROBOT", type=Installed("rtmms.plants"))
@click.option("--vary", multiple=True, metavar="KEY=A:B:N|V1,V2,...",
              help="Axis of the study: a parameter of the robot, CONTROLLER.PARAMETER, seed, dt or duration; may be "
                   "repeated. A:B:N are N values from A to B (method grid), A:B samples between them.")  # fmt: skip
@click.option("--samples", type=click.IntRange(1, MAX_COUNT), metavar="N", help="Runs of the methods sobol and lhs.")
@click.option("--method", type=KnownName("method", METHODS),
              help="Every combination (grid, default), or samples: a Sobol sequence or a Latin hypercube.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True,
              metavar="FILE.parquet|FILE.csv", help="The table: one row a run.")  # fmt: skip
@click.option(
    "--columns", metavar="NAME,...", help="Columns from the report; default all numbers of small outputs and summary."
)
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Draw the table.")
@click.option(
    "--threads", type=click.IntRange(1, MAX_THREADS), metavar="N", help="Processes; default one for each core."
)
@DASK
@DASK_SECURITY
@study_options()
@click.option("--budget", type=NumberType("s"), metavar="S", help="Wall time, after which the sweep stops; the same "
              "command goes on.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no progress on standard error.")
def sweep(
    what: str, vary: tuple[str, ...], samples: int | None, method: str | None, output: Path, columns: str | None,
    figure: Path | None, threads: int | None, dask: str | None, dask_security: Path | None, budget: float | None,
    as_json: bool, quiet: bool, **options: Any,
) -> int:  # fmt: skip
    """Run a scenario or a robot many times, with values that differ, and write one table (Parquet or CSV).

    Each run is what `rtmms run --mode lockstep` makes of the same words, in one process with its controllers. A table
    [sweep] in the scenario has the same entries as the options. The same command goes on where it was broken off.
    """
    from rtmms.studies.sweep_files import recorded_modules
    from rtmms.studies.sweep_study import read_study
    from rtmms.studies.sweep_table import refuse_wrong_name

    click.get_current_context().with_resource(recorded_modules())
    refuse_wrong_name(output)
    if figure is not None:
        refuse_figure("--figure", figure)
    cluster = cluster_of(dask, dask_security, threads)
    base, table, expected = base_of(what, options)
    study = read_study(what, base, table, vary, samples, method, tuple(columns.split(",")) if columns else ())
    refuse_fixed(study, options)
    return _carry_out(
        study, expected, output, figure, threads or core_count(), cluster, Budget(budget), as_json=as_json, quiet=quiet
    )  # fmt: skip


def cluster_of(address: str | None, security: Path | None, threads: int | None) -> Cluster | None:
    """Return the cluster that --dask and --dask-security name.

    Parameters
    ----------
    address : str | None
        Word of --dask.
    security : Path | None
        Word of --dask-security.
    threads : int | None
        Word of --threads, which excludes a cluster.

    Returns
    -------
    Cluster | None
        None without --dask.

    Raises
    ------
    ModelError, UsageError
        The words are wrong.
    """
    if address is None:
        if security is not None:
            raise click.UsageError("--dask-security: expected --dask tls://HOST:PORT with it")
        return None
    if threads is not None:
        raise click.UsageError("--threads, --dask: expected one of them, got both")
    from rtmms.studies.sweep_running import read_cluster

    cluster = read_cluster(address, security)
    if not cluster.security:
        print_text(
            f"rtmms: --dask {address}: without TLS: a program that reaches the scheduler can run code as you; expected "
            "tls://HOST:PORT and --dask-security, which admit holders of a certificate alone", err=True,
        )  # fmt: skip
    return cluster


def base_of(what: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any], Sequence[Expectation]]:
    """Return the run of a study, and the table [sweep] and the expectations of the file.

    Parameters
    ----------
    what : str
        A robot, or a scenario's file.
    options : dict[str, Any]
        Options of the command line.

    Returns
    -------
    tuple[Any, dict[str, Any], Sequence[Expectation]]
        Run, table, and expectations.
    """
    from rtmms.cli.run import driving
    from rtmms.cli.running.one_case import robot_case, scenario_case

    controllers = driving(options.pop("controllers"), None)
    typed = {name: value for name, value in options.items() if value is not None and value is not False and value != ()}
    if not what.endswith(".toml"):
        return robot_case(what, controllers, typed), {}, ()
    base, result = scenario_case(what, controllers, typed)
    return base, dict(result.sweep), result.expect


def refuse_fixed(study: Study, options: Mapping[str, Any]) -> None:
    """Refuse an option with one value for what a study varies: one of the two would have no effect.

    Parameters
    ----------
    study : Study
        The study.
    options : Mapping[str, Any]
        Options of the command line.

    Raises
    ------
    ModelError
        There is such an option.
    """
    varied = {axis.key for axis in study.axes}
    for pair in options.get("set_") or ():
        key = str(pair).partition("=")[0].strip()
        if key in varied:
            raise ModelError(f"--set {pair}: the sweep varies {key}; leave one of them out")
    for name in varied & {name for name, value in options.items() if value not in (None, False, ())}:
        raise ModelError(f"--{name.replace('_', '-')} {options[name]}: the sweep varies {name}; leave one of them out")


def _carry_out(
    study: Study, expected: Sequence[Expectation], output: Path, figure: Path | None, workers: int,
    dask: Cluster | None, budget: Budget, *, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    from rtmms.studies.envelope import DONE

    result = carried_out(study, output, workers, dask, budget, quiet=quiet)
    if result is None:
        return INTERRUPTED if budget.left else INCOMPLETE
    _print_summary(
        study, result[0], result[1], count_expectations(expected, result[0]), output, figure, as_json=as_json
    )
    return 0 if DONE in result[0].column("ended") else ALL_FAILED


def carried_out(
    study: Study, output: Path, workers: int, dask: Cluster | None, budget: Budget | None = None, *, quiet: bool
) -> tuple[Table, tuple[str, ...]] | None:
    """Carry out a study, and write its table.

    Parameters
    ----------
    study : Study
        The study.
    output : Path
        File of the table.
    workers : int
        Number of processes.
    dask : Cluster | None
        Cluster in place of processes.
    budget : Budget | None, optional
        Wall time.
    quiet : bool
        No progress.

    Returns
    -------
    tuple[Table, tuple[str, ...]] | None
        The table and its columns; None where Ctrl-C or a budget broke it off.
    """
    budget = budget or Budget()
    from rtmms.cli.running.process import brace
    from rtmms.studies.sweep_running import on_dask, on_processes, probe
    from rtmms.studies.sweep_table import Parts, schema

    brace(study.base.robot)
    study, units = probe(study)  # also compiles, before anybody else starts
    form = schema(study, units)
    with closing(Parts(output, study, form)) as parts:
        left = parts.open()
        for sentence in parts.left_out:
            print_text(f"rtmms: {parts.folder}: {sentence}: this part is computed again", err=True)
        stored = study.runs - sum(last - first for first, last in left)
        if stored:
            print_text(f"rtmms: {stored:,} of {study.runs:,} runs exist from an earlier start", err=True)
        try:
            with _Progress(study.runs, stored, quiet=quiet) as progress:

                def done(runs: int) -> None:
                    progress.add(runs)
                    budget.refuse_late()

                if dask is not None:
                    on_dask(study, form, parts, left, dask, done)
                else:
                    on_processes(study, form, parts, left, workers, done)
        except (KeyboardInterrupt, OutOfTimeError) as ended:
            # the last part may have been written when the time was over
            if isinstance(ended, OutOfTimeError) and all(parts.file(chunk).is_file() for chunk in parts.chunks()):
                return parts.join(output), tuple(units)
            why = "broken off" if isinstance(ended, KeyboardInterrupt) else str(ended)
            there = len(parts.chunks()) - sum(not parts.file(chunk).is_file() for chunk in parts.chunks())
            print_text(
                f"rtmms: {why}; {there} of {len(parts.chunks())} parts are in {parts.folder}; run the same command "
                "again to continue", err=True,
            )  # fmt: skip
            return None
        return parts.join(output), tuple(units)


class _Progress:
    """Finished runs, with the remaining time, on standard error."""

    def __init__(self, runs: int, stored: int, *, quiet: bool) -> None:
        self._bar: Any = None
        if not quiet:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console(err=True), transient=True)
            self._task = self._bar.add_task("runs", total=runs, completed=stored)

    def __enter__(self) -> _Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add(self, runs: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=runs)


def _print_summary(
    study: Study, table: Table, columns: tuple[str, ...], findings: list[dict[str, Any]], output: Path,
    figure: Path | None, *, as_json: bool,
) -> None:  # fmt: skip
    from rtmms.studies.sweep_figure import draw, first_order

    results = tuple(name for name in columns if not name.startswith(NO_RESULTS))
    drawn = tuple(name for name in study.columns or results or columns if name in table.column_names)
    doubts = doubtful_runs(table)
    if figure is not None:
        draw(figure, study, table, drawn, doubt_sentences(doubts, table))
    ends: dict[str, int] = {}
    for word in table.column("ended"):
        ends[word] = ends.get(word, 0) + 1
    indices = first_order(study, table, drawn) if len(study.axes) > 1 else None
    if as_json:
        print_json(json.dumps({
            "file": str(output), "runs": study.runs, "method": study.method, "over": [axis.key for axis in study.axes],
            "columns": table.column_names, "ended": ends, "first_order": indices or {},
            "doubted": doubts, "expect": findings,
        }))  # fmt: skip
        return
    print_text(f"{output}: {study.runs:,} runs, {len(table.column_names)} columns")
    print_text("ended: " + ", ".join(f"{word} {count}" for word, count in sorted(ends.items())))
    reasons = [text for text in table.column("reason") if text]
    for text in list(dict.fromkeys(reasons))[:3]:
        print_text(f"  {text}")
    for sentence in doubt_sentences(doubts, table):
        print_text(f"  {sentence}")
    for finding in findings:
        print_text(
            f"  expected {finding['name']} {finding['expected']}: "
            + (
                "not checked, the table has no such column"
                if finding["holds"] is None
                else f"holds in {finding['holds']} runs"
            )
        )
    for name, shares in (indices or {}).items():
        print_text(f"  {name:<28} " + ", ".join(f"{key} {share:.2f}" for key, share in shares.items()))
    if indices:
        print_text("(share of each column's variance that each varied key explains by itself)")


def count_expectations(expected: Sequence[Expectation], table: Table) -> list[dict[str, Any]]:
    """Return how many runs meet each expectation of a scenario.

    Parameters
    ----------
    expected : Sequence[Expectation]
        Table [expect] of the scenario.
    table : Table
        Table of the sweep.

    Returns
    -------
    list[dict[str, Any]]
        `name`, `expected`, and `holds`: the number of runs that ended as planned and meet it, or None if the table has
        no such column.
    """
    from rtmms.studies.envelope import DONE

    whole = [word == DONE for word in table.column("ended")]
    result = []
    for item in expected:
        holds = None
        if item.name in table.column_names:
            values = zip(table.column(item.name), whole, strict=True)
            holds = sum(ended and item.holds(value) for value, ended in values)
        result.append({"name": item.name, "expected": item.text, "holds": holds})
    return result


NO_RESULTS = ("final.", "accuracy", "settled")
"""First letters of columns that are drawn only where --columns names them: of the last instant, and about quality."""
MAX_NAMED_RUNS = 8
"""Runs that a sentence of the summary names."""


def doubtful_runs(table: Table) -> dict[str, list[int]]:
    """Return the runs of a table that cannot be trusted.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    dict[str, list[int]]
        Runs by reason: 'accuracy', 'settled', 'misses'.
    """

    def runs(name: str, bad: Callable[[float], bool]) -> list[int]:
        if name not in table.column_names:
            return []
        pairs = zip(table.column("run"), table.column(name), strict=True)
        return [run for run, value in pairs if value is not None and bad(value)]

    reasons = {
        "accuracy": runs("accuracy.doubtful", lambda value: value > 0.0),
        "settled": runs("settled", lambda value: value < 1.0),
        "misses": runs("misses", lambda value: value > 0.0),
    }
    return {reason: result for reason, result in reasons.items() if result}


def doubt_sentences(doubts: Mapping[str, list[int]], table: Table) -> list[str]:
    """Return the summary's sentences about runs that cannot be trusted, with the next action.

    Parameters
    ----------
    doubts : Mapping[str, list[int]]
        Runs by reason.
    table : Table
        The table.

    Returns
    -------
    list[str]
        Sentences.
    """

    def largest_value(name: str, runs: list[int]) -> float:
        if name not in table.column_names:
            return 0.0
        values = dict(zip(table.column("run"), table.column(name), strict=True))
        return max((values[run] or 0.0 for run in runs), default=0.0)

    def text(reason: str, runs: list[int]) -> str:
        if reason == "accuracy":
            path, work = (100.0 * largest_value(f"accuracy.{name}_error", runs) for name in ("path", "work"))
            return (
                f"steps too long: the path is off by up to {path:.2g} %, the work by {work:.2g} %: use a shorter --dt"
            )
        if reason == "settled":
            return "not settled: speed or power still change: use a longer --duration"
        return f"commands missed, up to {largest_value('misses', runs):.0f} a run"

    result = []
    for reason, runs in doubts.items():
        names = ", ".join(str(run) for run in runs[:MAX_NAMED_RUNS]) + (", ..." if len(runs) > MAX_NAMED_RUNS else "")
        result.append(f"not to be trusted: {len(runs)} of {table.num_rows} runs ({names}): {text(reason, runs)}")
    return result
