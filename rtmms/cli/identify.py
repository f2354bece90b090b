"""rtmms identify: parameters of a robot from recordings of it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.budget import Budget
from rtmms.base.errors import ModelError
from rtmms.base.files import KINDS, refuse_output
from rtmms.base.terminal import cell, console, print_json, print_text
from rtmms.cli.option_types import (
    FIGURES,
    INTERRUPTED,
    MAX_THREADS,
    Installed,
    NumberType,
    Range,
    refuse_preset,
    settings,
)

if TYPE_CHECKING:
    from rtmms.studies.fit_descent import Iteration
    from rtmms.studies.fit_features import Objective
    from rtmms.studies.recordings import Recording

_PROGRESS_S = 0.2


@click.command()
@click.argument("files", nargs=-1, metavar="LOG...", type=click.Path(path_type=Path))
@click.option("--fit", "names", default="", metavar="KEY,...",
              help="Unknowns: parameters of the robot, KEY[k] for one number of several; delay, delay.CHANNEL, "
                   "gain.CHANNEL, bias.CHANNEL of the measurements.")  # fmt: skip
@click.option("--bounds", multiple=True, metavar="KEY=LOW:HIGH,...", help="Bounds of an unknown.")
@click.option(
    "--prior",
    multiple=True,
    metavar="KEY=MEAN:DEVIATION,...",
    help="Mean and standard deviation of an unknown before the fit.",
)
@click.option("--free", multiple=True, metavar="start.NAME,...",
              help="A coordinate of the first state that is unknown: x to yaw, vx to wz, JOINT, JOINT.rate, or a "
                   "pattern such as start.joint_*.")  # fmt: skip
@click.option("--pin", multiple=True, metavar="start.NAME,...", help="A coordinate of the first state that is known.")
@click.option(
    "--per-recording", multiple=True, metavar="KEY,...", help="Unknowns with a value of their own in each recording."
)
@click.option("--delay-per-recording", is_flag=True, help="Fit a delay of the clock of each recording.")
@click.option("--hold-out", type=Range(0.0, 0.9), default=0.3, show_default=True, metavar="SHARE",
              help="Share of each recording, at its end, that is predicted and not fitted.")  # fmt: skip
@click.option("--lead-in", type=NumberType("s", zero=True), default=0.0, metavar="S",
              help="Time at the beginning of each recording that is simulated and not compared.")  # fmt: skip
@click.option("--channels", metavar="NAME,...", help="Channels to compare; default what the sensors measure, or "
              "without sensors pose, twist, rods and joints.")  # fmt: skip
@click.option("--objective", "objectives", multiple=True, metavar="KIND:KEY=VALUE,...|FILE.toml",
              help="A number instead of time series: mean_speed, or harmonic:channel=OUTPUT[k] at the frequency of "
                   "the commands; time series count beside it where --channels names them.")  # fmt: skip
@click.option("--segments", type=click.IntRange(1, 1000), default=1, show_default=True,
              help="Segments of each recording, each with its own first pose and twist.")  # fmt: skip
@click.option("--starts", type=click.IntRange(1, 100), help="Points to begin from; default a second one where the "
              "first fit leaves something unexplained.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed of these points.")
@click.option("--budget", type=NumberType("s"), metavar="S", help="Wall time, after which the best values so far are "
              "printed.")  # fmt: skip
@click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="A parameter of the model, in place of the "
              "recording's; for one that is sought where the search begins.")  # fmt: skip
@click.option("--robot", type=Installed("rtmms.plants"), help="Robot of a table; or the plant in place of the file "
              "that a log names.")  # fmt: skip
@click.option("--trust-log", is_flag=True, help="Run the file that the log names: FILE.py, .fmu, .urdf, .xml.")
@click.option("--columns", multiple=True, metavar="FILE.toml|OURS=THEIRS,...",
              help="Columns of a table: time, command.ACTUATOR, OUTPUT[k], SENSOR.QUANTITY[k].")  # fmt: skip
@click.option("--dt", type=NumberType("s"), help="Step of the model of a table; default the robot's own.")
@click.option("--preset", metavar="NAME|FILE.toml", help="Parameters of the robot of a table: a named set, or a file.")
@click.option("--sensors", metavar="ideal|typical|FILE.toml", default="ideal", help="Sensors of a table.")
@click.option("--at-rest", is_flag=True, help="Begin each table in the robot's state after a reset.")
@click.option("--write", "written", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
              help="Write the fitted parameters as a preset.")  # fmt: skip
@click.option("--force", is_flag=True, help="--write overwrites a preset that was edited, and other files, too.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="Write the report as one page with figures; FILE.png: the figures alone.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, MAX_THREADS), metavar="N", help="Threads; default one for each core.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no progress on standard error.")
def identify(
    files: tuple[Path, ...], names: str, bounds: tuple[str, ...], prior: tuple[str, ...], free: tuple[str, ...],
    pin: tuple[str, ...], per_recording: tuple[str, ...], delay_per_recording: bool, hold_out: float, lead_in: float,
    channels: str | None, objectives: tuple[str, ...], segments: int, starts: int | None, seed: int,
    budget: float | None, written: Path | None, force: bool, output: Path | None, threads: int | None, as_json: bool,
    quiet: bool, **options: Any,
) -> int:  # fmt: skip
    """Find parameters of a robot from LOGs of it: the values with which the model repeats the recorded motion.

    A LOG is one of run --log, or a table (.csv, .parquet) of a robot of one's own. Ctrl-C prints the best values so
    far.
    """
    # beside other work OpenBLAS's threads wait for each other longer than they compute; numpy is not loaded yet
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not files:
        raise click.UsageError("identify: expected a log or a table, got none")
    if not (names or per_recording or delay_per_recording):
        raise click.UsageError("identify: expected --fit KEY,... with the parameters to identify, got none")
    _refuse_outputs(files, written, output, force=force)
    from rtmms.plant.step_advice import known_step
    from rtmms.studies.fit_descent import Watch
    from rtmms.studies.fit_features import read_objectives
    from rtmms.studies.fit_model import identify_recordings

    limits, priors = _ranges("--bounds", bounds), _ranges("--prior", prior)
    _refuse_beginnings(settings(options["set_"]), limits, priors)
    with _Progress(quiet=quiet) as progress:
        watch = Watch(progress.report, progress.iterated, Budget(budget))
        recordings = _recordings(files, _names(channels or ""), options, progress, read_objectives(objectives), lead_in)
        model = recordings[0].build()
        known = known_step(model)
        if known is not None and known.warning and not quiet:
            print_text(f"rtmms: identify: {recordings[0].name}: {known.warning}", err=True)
        result = identify_recordings(
            recordings, _names(names), limits, priors, _names(*per_recording), watch=watch,
            delay_per_recording=delay_per_recording, hold_out=hold_out, lead_in=lead_in, segments=segments,
            starts=starts, seed=seed, free=_names(*free), pin=_names(*pin), threads=threads,
        )  # fmt: skip
    report = result.report
    source = ", ".join(recording.name for recording in recordings)
    if written is not None:
        from rtmms.studies.fit_page import preset_text, write_text

        text = preset_text(recordings[0], result.asked, result.values, result.standard_errors, source)
        write_text(written, text, "--write")
    if output is not None:
        from rtmms.studies.fit_page import page

        if output.suffix == ".html":
            page(*result.parts, report, output)
        else:
            result.figure(output)
    if as_json:
        from rtmms.cli.running.report import to_json_types

        print_json(json.dumps(to_json_types(report), allow_nan=False))
    else:
        _print(report)
    return INTERRUPTED if report["note"].startswith("Ctrl-C") else 0


def _refuse_outputs(files: tuple[Path, ...], written: Path | None, output: Path | None, *, force: bool) -> None:
    for path, option, endings in ((written, "--write", (".toml",)), (output, "-o", (".html", *FIGURES))):
        if path is None:
            continue
        if path.suffix not in endings:
            raise ModelError(f"{option} {path}: expected a name that ends in {', '.join(endings)}")
        if option == "--write":
            refuse_output(path, option, None if force else KINDS[path.suffix], files, "--force overwrites")
        else:
            refuse_output(path, option, KINDS[path.suffix], files)


def _refuse_beginnings(
    values: Mapping[str, Any], limits: Mapping[str, tuple[float, float]], priors: Mapping[str, tuple[float, float]]
) -> None:
    """Raise ModelError for a start of the search, by --set, that another option of the same key would replace."""
    for key, value in values.items():
        if key in priors:
            raise ModelError(
                f"--set {key}={value}: expected one start of the search, got another in --prior {key}; remove one of "
                "the two"
            )
        low, high = limits.get(key, (-math.inf, math.inf))
        if isinstance(value, int | float) and not low <= value <= high:
            raise ModelError(
                f"--set {key}={value}: expected a start of the search within --bounds {key}={low:g}:{high:g}"
            )


def _names(*texts: str) -> list[str]:
    return [item for text in texts for item in (word.strip() for word in text.split(",")) if item]


def _ranges(option: str, texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Convert ['a=1:2,b=3:4'] to {'a': (1, 2), 'b': (3, 4)}, or raise ModelError."""
    result: dict[str, tuple[float, float]] = {}
    for pair in (part for word in texts for part in word.split(",")):
        key, _, text = pair.partition("=")
        parts = text.split(":")
        try:
            first, second = (float(part) for part in parts)
        except ValueError:
            raise ModelError(f"{option} {pair}: expected KEY=A:B with two numbers") from None
        if not (math.isfinite(first) and math.isfinite(second)):
            raise ModelError(f"{option} {pair}: expected finite numbers")
        if key.strip() in result:
            raise ModelError(f"{option} {pair}: '{key.strip()}' is given twice")
        result[key.strip()] = (first, second)
    return result


def _recordings(
    files: tuple[Path, ...], channels: list[str], options: dict[str, Any], progress: _Progress,
    objectives: list[Objective], lead_in: float,
) -> list[Recording]:  # fmt: skip
    """Return the recordings, all of the same robot, or raise ModelError."""
    from rtmms.cli.running.process import brace
    from rtmms.studies.fit_model import Reader
    from rtmms.studies.fit_tables import ENDINGS, read_columns

    robot = options["robot"]
    refuse_preset(options["preset"])
    if robot:
        brace(robot)
    reader = Reader(
        robot,
        settings(options["set_"]),
        tuple(channels),
        options["dt"],
        options["preset"],
        read_columns(options["columns"]),
        options["sensors"],
        options["at_rest"],
        objectives,
        lead_in,
        options["trust_log"],
        lambda text: print_text(f"rtmms: {text}", err=True),
    )

    def each() -> Iterator[Path]:
        for file in files:
            progress.report(f"reading {file.name}")
            if file.suffix not in ENDINGS:
                _warn_of_version(file)
            yield file

    return reader.read_all(each())


def _warn_of_version(file: Path) -> None:
    import rtmms
    from rtmms.base.errors import safe_text
    from rtmms.record.log import open_log

    version = open_log(file).origin["versions"]["rtmms"]
    if version != rtmms.__version__:
        print_text(
            f"rtmms: {file} was recorded by rtmms {safe_text(version)}, this is rtmms {rtmms.__version__}; "
            "results may differ",
            err=True,
        )


class _Progress:
    """Lines on standard error: one for each iteration, and at a terminal one that changes in between."""

    def __init__(self, *, quiet: bool) -> None:
        self._on = not quiet and sys.stderr.isatty()
        self._quiet, self._last, self._wide = quiet, 0.0, 0

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()

    def _erase(self) -> None:
        if self._on and self._wide:
            sys.stderr.write("\r" + " " * self._wide + "\r")
            sys.stderr.flush()
            self._wide = 0

    def iterated(self, iteration: Iteration) -> None:
        """Print an iteration: its number, sum of squares, step, values, and the time left."""
        if self._quiet:
            return
        self._erase()
        values = ", ".join(f"{name} {value:.6g}" for name, value in list(iteration.values.items())[:MAX_SHOWN])
        more = ", ..." if len(iteration.values) > MAX_SHOWN else ""
        step = f", step {iteration.step:.2g}" if math.isfinite(iteration.step) else ""
        print_text(
            f"rtmms: identify: iteration {iteration.number}: cost {iteration.cost:.5g} (rms "
            f"{iteration.rms:.3g} deviations){step}; "
            f"{values}{more}; {iteration.elapsed_s:.0f} s, about {iteration.left_s:.0f} s left",
            err=True,
        )

    def report(self, text: str) -> None:
        """Show a text in the line that changes."""
        now = time.monotonic()
        if not self._on or now - self._last < _PROGRESS_S:
            return
        self._last = now
        line = cell(f"rtmms: identify: {text}")
        sys.stderr.write("\r" + line.ljust(self._wide))
        sys.stderr.flush()
        self._wide = max(self._wide, len(line))


MAX_SHOWN = 8
"""Values in a line of progress."""


def _print(report: dict[str, Any]) -> None:
    from rich.table import Table

    from rtmms.studies.fit_evidence import sentences

    out = console()
    table = Table(box=None, pad_edge=False)
    for name in ("parameter", "value", "standard error", "from", ""):
        table.add_column(name, justify="right" if name in ("value", "standard error", "from") else "left")
    for name, item in report["parameters"].items():
        error = "-" if item["standard_error"] is None else f"{item['standard_error']:.3g}"
        note = f"at its {'lower' if item['bound'] == 'low' else 'upper'} bound" if item["at_bound"] else item["unit"]
        table.add_row(cell(name), f"{item['value']:.6g}", error, f"{item['start']:.6g}", cell(note))
    out.print(table)
    print_text()
    fits = Table(box=None, pad_edge=False)
    for name in ("channel", "rms", "noise", "held back", "unit", "residuals"):
        fits.add_column(name, justify="left" if name in ("channel", "unit", "residuals") else "right")
    for name, item in report["fit"].items():
        held = "-" if item["held_out_rms"] is None else f"{item['held_out_rms']:.3g}"
        white = "white" if item["white"] else f"correlated ({item['correlation']:.2f})"
        fits.add_row(cell(name), f"{item['rms']:.3g}", f"{item['noise']:.3g}", held, cell(item["unit"]), white)
    out.print(fits)
    for line in _free(report):
        print_text(line)
    for line in sentences(report):
        print_text(line)


def _free(report: dict[str, Any]) -> list[str]:
    """Return the free unknowns beside --fit, a sentence for each reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for item in report["free"]:
        if item["name"] not in report["parameters"]:
            first, _, remaining = item["name"].partition(".")
            segment, _, word = remaining.partition(".")
            start = first == "start" and segment.isdigit()
            of = f"start.{word}" if start else item["name"].partition("@")[0].partition("[")[0]
            subjects = reasons.setdefault((item["why"], "first states" if start else "sensors"), [])
            if of not in subjects:
                subjects.append(of)
    return [f"free of {what}: {', '.join(free_names)} ({why})" for (why, what), free_names in reasons.items()]
