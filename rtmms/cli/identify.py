"""rtmms identify: parameters of a robot from recordings of it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.errors import ModelError
from rtmms.base.files import KINDS, refuse_output
from rtmms.base.terminal import cell, console, print_json, print_text
from rtmms.cli.words import FIGURES, MAX_THREADS, Installed, Number, Range, refuse_preset, settings

if TYPE_CHECKING:
    from rtmms.identification.recording import Recording

_EVERY_S = 0.2


@click.command()
@click.argument("files", nargs=-1, metavar="LOG...", type=click.Path(path_type=Path))
@click.option("--fit", "names", required=True, metavar="KEY,...",
              help="What is sought: parameters of the robot, KEY[k] for one number of several; delay.CHANNEL, "
                   "gain.CHANNEL, bias.CHANNEL of what was measured.")  # fmt: skip
@click.option("--bounds", multiple=True, metavar="KEY=LOW:HIGH,...", help="Where it may lie.")
@click.option("--prior", multiple=True, metavar="KEY=MEAN:DEVIATION,...", help="What is known beforehand.")
@click.option("--hold-out", type=Range(0.0, 0.9), default=0.3, show_default=True, metavar="SHARE",
              help="At the end of each recording: predicted, not fitted.")  # fmt: skip
@click.option("--channels", metavar="NAME,...", help="What is compared; default what the sensors tell, or without "
              "sensors pose, twist, rods and joints.")  # fmt: skip
@click.option("--segments", type=click.IntRange(1, 1000), default=1, show_default=True,
              help="Of each recording, each with a first pose and twist of its own.")  # fmt: skip
@click.option("--starts", type=click.IntRange(1, 100), default=2, show_default=True, help="Points to begin from.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of those points.")
@click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="A parameter of the model, in place of the "
              "recording's; for one that is sought where the search begins.")  # fmt: skip
@click.option("--robot", type=Installed("rtmms.plants"), help="Of tables; or the plant in place of the file that a log "
              "names.")  # fmt: skip
@click.option("--trust-log", is_flag=True, help="Run the file that the log names (FILE.py, FILE.fmu, FILE.urdf).")
@click.option("--columns", multiple=True, metavar="FILE.toml|OURS=THEIRS,...",
              help="Of a table: time, command.ACTUATOR, OUTPUT[k], SENSOR.QUANTITY[k].")  # fmt: skip
@click.option("--dt", type=Number("s"), help="Of tables: the model's step; default the robot's own.")
@click.option("--preset", metavar="NAME|FILE.toml", help="Of tables: a named set of the robot's parameters, or a file.")
@click.option("--sensors", metavar="ideal|typical|FILE.toml", default="ideal", help="Of tables: the instruments.")
@click.option("--at-rest", is_flag=True, help="Of tables: each begins as the robot is after a reset.")
@click.option("--write", "written", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
              help="The fitted parameters as a preset.")  # fmt: skip
@click.option("--force", is_flag=True, help="--write overwrites a preset that was edited, and other files, too.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="The report as one page with figures; FILE.png: the figures alone.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, MAX_THREADS), metavar="N", help="Default one for each core.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="No progress on standard error.")
def identify(
    files: tuple[Path, ...], names: str, bounds: tuple[str, ...], prior: tuple[str, ...], hold_out: float,
    channels: str | None, segments: int, starts: int, seed: int, written: Path | None, force: bool,
    output: Path | None, threads: int | None, as_json: bool, quiet: bool, **words: Any,
) -> int:  # fmt: skip
    """Find parameters of a robot from LOGs of it: the values under which what it did is what the model would do.

    A LOG is one of run --log, or a table (.csv, .parquet) of a robot of one's own.
    """
    # beside other work OpenBLAS's threads wait for each other longer than they compute; numpy is not loaded yet
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not files:
        raise click.UsageError("identify: expected a log or a table, got none")
    _refuse_outputs(files, written, output, force=force)
    from rtmms.identification.evidence import as_words, weighed
    from rtmms.identification.fitting import Settings, fit
    from rtmms.identification.unknowns import asked_for

    limits, priors = _ranges("--bounds", bounds), _ranges("--prior", prior)
    _refuse_beginnings(settings(words["set_"]), limits, priors)
    chosen = tuple(one.strip() for one in channels.split(",")) if channels else ()
    with _Progress(quiet=quiet) as progress:
        recordings = _recordings(files, chosen, words, progress)
        asked = asked_for(_names(names), recordings, recordings[0].build(), limits, priors)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        settings_ = Settings(hold_out, segments, threads or cores, starts - 1, seed)
        solution = fit(recordings, asked, settings_, progress.say)
        evidence = weighed(solution)
    told = as_words(solution, evidence, {"hold_out": hold_out, "segments": segments})
    source = ", ".join(one.name for one in recordings)
    if written is not None:
        from rtmms.identification.page import preset_text, write_text

        errors = dict(zip(evidence.names, evidence.error.tolist(), strict=True))
        write_text(written, preset_text(recordings[0], asked, solution.values, errors, source), "--write")
    if output is not None:
        from rtmms.identification.page import page, picture

        if output.suffix == ".html":
            page(solution, evidence, told, output)
        else:
            picture(solution, evidence, output)
    if as_json:
        from rtmms.cli.running.report import plain

        print_json(json.dumps(plain(told), allow_nan=False))
    else:
        _print(told)
    return 0


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
    given: Mapping[str, Any], limits: Mapping[str, tuple[float, float]], priors: Mapping[str, tuple[float, float]]
) -> None:
    """ModelError for a beginning of the search, by --set, that another option of the same key would replace."""
    for key, value in given.items():
        if key in priors:
            raise ModelError(
                f"--set {key}={value}: the search begins at the mean of --prior {key}; expected one of both"
            )
        low, high = limits.get(key, (-math.inf, math.inf))
        if isinstance(value, int | float) and not low <= value <= high:
            raise ModelError(f"--set {key}={value}: expected a beginning within --bounds {key}={low:g}:{high:g}")


def _names(text: str) -> list[str]:
    return [one for one in (word.strip() for word in text.split(",")) if one]


def _ranges(option: str, words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """['a=1:2,b=3:4'] -> {'a': (1, 2), 'b': (3, 4)}; ModelError."""
    found: dict[str, tuple[float, float]] = {}
    for pair in (one for word in words for one in word.split(",")):
        key, _, text = pair.partition("=")
        parts = text.split(":")
        try:
            first, second = (float(one) for one in parts)
        except ValueError:
            raise ModelError(f"{option} {pair}: expected KEY=A:B with two numbers") from None
        if not (math.isfinite(first) and math.isfinite(second)):
            raise ModelError(f"{option} {pair}: expected finite numbers")
        if key.strip() in found:
            raise ModelError(f"{option} {pair}: '{key.strip()}' is given twice")
        found[key.strip()] = (first, second)
    return found


def _recordings(
    files: tuple[Path, ...], channels: tuple[str, ...], words: dict[str, Any], progress: _Progress
) -> list[Recording]:
    """All of the same robot; ModelError."""
    from rtmms.cli.running.process import brace
    from rtmms.identification.recording import from_log
    from rtmms.identification.tables import ENDINGS, from_table, read_columns

    given, robot = settings(words["set_"]), words["robot"]
    refuse_preset(words["preset"])
    if robot:
        brace(robot)
    columns = read_columns(words["columns"])
    found: list[Recording] = []
    for file in files:
        progress.say(f"reading {file.name}")
        if file.suffix in ENDINGS:
            if not robot:
                raise ModelError(f"{file}: a table does not say of which robot it is: name it with --robot")
            found.append(from_table(
                file, robot, given, channels, preset=words["preset"], dt=words["dt"], columns=columns,
                sensors=words["sensors"], at_rest=words["at_rest"],
            ))  # fmt: skip
        else:
            _warn_of_version(file)
            found += from_log(
                file, given, channels, robot, trusted=words["trust_log"],
                warn=lambda text: print_text(f"rtmms: {text}", err=True),
            )  # fmt: skip
    others = [one for one in found if one.robot != found[0].robot]
    if others:
        raise ModelError(
            f"{others[0].name}: is of robot '{others[0].robot}', and {found[0].name} of '{found[0].robot}': expected "
            "recordings of one robot; fit each by itself"
        )
    return found


def _warn_of_version(file: Path) -> None:
    import rtmms
    from rtmms.base.errors import shown
    from rtmms.record.log import open_log

    version = open_log(file).origin["versions"]["rtmms"]
    if version != rtmms.__version__:
        print_text(f"rtmms: {file} was recorded by version {shown(version)}, this is {rtmms.__version__}", err=True)


class _Progress:
    """A line on standard error, at a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self._on = not quiet and sys.stderr.isatty()
        self._quiet, self._last, self._wide, self._said = quiet, 0.0, 0, False

    def __enter__(self) -> _Progress:
        if not self._quiet and not self._on:
            print_text("rtmms: identify: fitting (seconds to minutes)", err=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._on and self._wide:
            sys.stderr.write("\r" + " " * self._wide + "\r")
            sys.stderr.flush()

    def say(self, text: str) -> None:
        now = time.monotonic()
        if not self._on or now - self._last < _EVERY_S:
            return
        self._last = now
        line = cell(f"rtmms: identify: {text}")
        sys.stderr.write("\r" + line.ljust(self._wide))
        sys.stderr.flush()
        self._wide = max(self._wide, len(line))


def _print(told: dict[str, Any]) -> None:
    from rich.table import Table

    from rtmms.identification.evidence import sentences

    out = console()
    table = Table(box=None, pad_edge=False)
    for name in ("parameter", "value", "standard error", "from", ""):
        table.add_column(name, justify="right" if name in ("value", "standard error", "from") else "left")
    for name, one in told["parameters"].items():
        error = "-" if one["standard_error"] is None else f"{one['standard_error']:.3g}"
        note = f"at its {'lower' if one['bound'] == 'low' else 'upper'} bound" if one["at_bound"] else one["unit"]
        table.add_row(cell(name), f"{one['value']:.6g}", error, f"{one['start']:.6g}", cell(note))
    out.print(table)
    print_text()
    fits = Table(box=None, pad_edge=False)
    for name in ("channel", "rms", "noise", "held back", "unit", "residuals"):
        fits.add_column(name, justify="left" if name in ("channel", "unit", "residuals") else "right")
    for name, one in told["fit"].items():
        held = "-" if one["held_out_rms"] is None else f"{one['held_out_rms']:.3g}"
        white = "white" if one["white"] else f"correlated ({one['correlation']:.2f})"
        fits.add_row(cell(name), f"{one['rms']:.3g}", f"{one['noise']:.3g}", held, cell(one["unit"]), white)
    out.print(fits)
    for line in sentences(told):
        print_text(line)
