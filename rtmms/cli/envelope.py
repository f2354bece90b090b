"""rtmms envelope: the link impairments that a scenario's controller tolerates."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtmms.base.errors import ModelError
from rtmms.base.files import KINDS, Kind, new_file_beside, refuse_output
from rtmms.base.processes import core_count, run_python
from rtmms.base.terminal import print_json, print_text
from rtmms.cli.option_types import DASK, DASK_SECURITY, INTERRUPTED, MAX_THREADS, folder
from rtmms.record.log_location import refuse_without_pyarrow
from rtmms.scenario.run_options import StudyUse, run_options

if TYPE_CHECKING:
    from rtmms.scenario import Scenario

MEASURED_S = 5.0
_KINDS = {".json": Kind("envelope.json of rtmms", (b"{",), mark=b'"scenario"')}


@click.command()
@click.argument("scenario", metavar="SCENARIO", type=click.Path(path_type=str))
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR")
@click.option(
    "--of",
    "controller",
    metavar="CONTROLLER",
    help="Controller whose link is impaired; default the scenario's only one.",
)
@click.option("--delay", default="0:200:20", metavar="A:B:N", help="Delays each way, ms (default 0:200:20).")
@click.option("--loss", default="0:0.95:20", metavar="A:B:N", help="Chances of loss each way (default 0:0.95:20).")
@click.option("--jitter", default="0:200:11", metavar="A:B:N", help="Jitters, +- ms (default 0:200:11).")
@click.option("--rates", default="200,100,50,20,10,5,2,1", metavar="HZ,...", help="Rates, Hz (default 200 down to 1).")
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, help="Runs of each (default 5).")
@click.option("--threads", type=click.IntRange(1, MAX_THREADS), help="Processes (default the cores that we may use).")
@DASK
@DASK_SECURITY
@click.option("--measure/--no-measure", default=True, help="Mark this machine, by 5 s in real time (default).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no progress on standard error.")
@click.pass_context
def envelope(
    context: click.Context, /,
    scenario: str, output: Path, controller: str | None, delay: str, loss: str, jitter: str, rates: str, seeds: int,
    threads: int | None, dask: str | None, dask_security: Path | None, measure: bool, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    """Find how much delay, jitter, loss, and how low a rate the controller of SCENARIO tolerates.

    A run is within the tolerance where all that a run alone shows of [expect] holds: seeded runs in lockstep, with a
    link of each delay and loss, of each jitter, of each rate. Writes map.parquet, jitter.parquet, rate.parquet,
    envelope.png and envelope.json to DIR. The same command goes on where it was broken off.
    """
    from rtmms.cli.running.process import brace
    from rtmms.cli.running.scenario import scenario as read_scenario
    from rtmms.cli.sweep import base_of, carried_out, cluster_of
    from rtmms.studies.envelope import Ranges, controller_of, limits, measure_link, shares, studies, tolerance
    from rtmms.studies.sweep_files import recorded_modules
    from rtmms.studies.sweep_table import Lock

    click.get_current_context().with_resource(recorded_modules())
    refuse_without_pyarrow("-o")
    cluster = cluster_of(dask, dask_security, threads)
    if not scenario.endswith(".toml"):
        raise ModelError(f"{scenario}: expected a scenario FILE.toml with a tolerance in its table [expect]")
    ranges = Ranges(_values("delay", delay), _values("loss", loss), _values("jitter", jitter), _values("rates", rates))
    scenario_data = read_scenario(scenario)
    base, _, _ = base_of(scenario, {"controllers": ()})
    driver_name = controller_of(base, controller)
    _refuse_values(driver_name, ranges)
    brace(base.robot)
    expectations, left_out = tolerance(base, scenario_data.expect)
    built = studies(base, driver_name, ranges, seeds, [item.name for item in expectations])
    folder("-o", output)
    busy = f"-o {output}: another process writes this envelope now; expected another folder, or that it ends first"
    context.call_on_close(Lock(output / ".lock", busy).close)
    for name in (*(f"{item}.parquet" for item in built), "envelope.png", "envelope.json"):
        refuse_output(output / name, "-o", {**KINDS, **_KINDS}[Path(name).suffix])
    if left_out and not quiet:
        print_text(
            f"rtmms: [expect]: not checked here, as runs of a study do not report these values: {', '.join(left_out)}",
            err=True,
        )
    machine = measure_link(_in_real_time(scenario, scenario_data, base.duration)) if measure else None
    held: dict[str, Any] = {}
    for name, study in built.items():
        if not quiet:
            print_text(f"rtmms: {name}: {study.runs:,} runs", err=True)
        done = carried_out(study, output / f"{name}.parquet", threads or core_count(), cluster, quiet=quiet)
        if done is None:
            return INTERRUPTED
        held[name] = shares(study, done[0], expectations)
    from rtmms.studies.sweep_figure import draw_envelope as draw

    figure = output / "envelope.png"
    draw(figure, f"{driver_name} in {Path(scenario).stem}", built, held, machine)
    result = {
        "scenario": scenario, "controller": driver_name, "tolerance": {item.name: item.text for item in expectations},
        "left_out": left_out, "seeds": seeds, "runs": sum(study.runs for study in built.values()),
        "limits": limits(built, held), "machine": machine,
        "delay_ms": list(ranges.delay_ms), "loss": list(ranges.loss), "share": held["map"].tolist(),
        "files": [str(output / f"{name}.parquet") for name in built] + [str(figure)],
    }  # fmt: skip
    with new_file_beside(output / "envelope.json", "-o") as part:
        part.write_text(json.dumps(result, indent=1), encoding="utf-8")
    if as_json:
        print_json(json.dumps(result))
    else:
        _print_result(result)
    return 0


def _values(option: str, word: str) -> tuple[float, ...]:
    """Read 'A:B:N' or 'V,V,...'; a single value is one, too."""
    from rtmms.studies.sweep_study import read_axis

    axis = read_axis(f"--{option}", option, word, "grid")
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in axis.values):
        raise ModelError(f"--{option} {word}: expected numbers")
    return tuple(float(value) for value in axis.values)


def _refuse_values(controller: str, ranges: Any) -> None:
    """Raise ModelError for impossible values of a link."""
    from rtmms.scenario.links import from_values
    from rtmms.studies.sweep_study import values_to_check

    for option, key in (("delay", "delay_ms"), ("loss", "loss"), ("jitter", "jitter_ms"), ("rates", "rate_hz")):
        for item in values_to_check(getattr(ranges, key)):
            try:
                from_values(controller, {key: item}, ())
            except ModelError as fault:
                raise ModelError(f"--{option}: {str(fault).partition(': ')[2]}") from None


def _in_real_time(scenario: str, scenario_data: Scenario, duration: float) -> dict[str, Any]:
    """Return the report of the scenario in real time on this machine, in another process: long enough for its events.

    The files of a single run are written into a temporary folder.
    """
    seconds = min(duration, max([MEASURED_S, *(event.at_s + 1.0 for event in scenario_data.events)]))
    with tempfile.TemporaryDirectory(prefix="rtmms-envelope-") as folder:
        files = [
            run_option
            for run_option in run_options().values()
            if run_option.study is StudyUse.FILE and run_option.name in scenario_data.options
        ]
        elsewhere = [(file.word, str(Path(folder) / f"run{file.writes or '.png'}")) for file in files]
        done = run_python([
            "-m", "rtmms.cli.main", "run", scenario, "--mode", "realtime", "--json", "--quiet",
            "--duration", repr(seconds), *(word for pair in elsewhere for word in pair),
        ])  # fmt: skip
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        raise ModelError(f"the run in real time failed: {done.stderr.strip()[-300:]}; --no-measure omits this run")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _print_result(result: dict[str, Any]) -> None:
    print_text(f"{result['controller']}: {result['runs']:,} runs; limits at which every seed ({result['seeds']}) meets "
               + ", ".join(f"{name} {text}" for name, text in result["tolerance"].items()))  # fmt: skip
    for key, text in (("delay_ms", "delay up to {:g} ms each way"), ("loss", "loss up to {:g} each way"),
                      ("jitter_ms", "jitter up to +- {:g} ms"), ("rate_hz", "a rate down to {:g} Hz")):  # fmt: skip
        value = result["limits"][key]
        print_text(
            "  " + (text.format(value) if value is not None else f"{key}: even the first value is out of tolerance")
        )
    machine = result["machine"]
    if machine is not None and machine["delay_ms"] is not None:
        delays = f"{machine['delay_ms']:.3g} ms each way, {machine['worst_delay_ms']:.3g} ms at worst"
        print_text(f"  this machine: delay {delays}, {machine['loss']:.2%} of the steps without a command in time")
    for file in result["files"]:
        print_text(f"  {file}")
