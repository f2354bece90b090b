"""Predictive control beside the controllers without a model, on the same scenarios and seeds.

    rtmms bench predictive --seeds 3
    rtmms bench predictive --seeds 0 --seconds 600

It has typical sensors without GPS, the estimator in the loop, and a current of 0.1 m/s, which the controller does not
receive. Each run is `rtmms run FILE --seed N` in lockstep. With --seconds the helix runs in real time, too, one run
after the other in quarters of that time: the loop's misses with the planner beside it and without, and the planner's
times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rtmms.base.terminal import print_json, print_text

from . import setting

SCENARIOS = Path(__file__).resolve().parent.parent / "examples" / "scenarios"
SEEDS = 3
LINES = (
    ("helix", "predictive", "predictive_helix", 2.5), ("helix", "path", "helix", None),
    ("figure of eight", "predictive", "predictive_eight", 5.5), ("figure of eight", "path", "figure_of_eight", None),
)  # fmt: skip
"""Course, controller, scenario, and aim of the mean over seeds, cm."""


def run(variables: list[str]) -> dict[str, Any]:
    """Run `rtmms run WORDS`.

    Parameters
    ----------
    variables : list[str]
        The variables.

    Returns
    -------
    dict[str, Any]
        Its report.

    Raises
    ------
    ClickException
        It has no report.
    """
    command = [sys.executable, "-m", "rtmms", "run", *variables, "--json", "--quiet"]
    quiet = {**os.environ, "RTMMS_QUIET": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    try:
        content: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise click.ClickException(f"rtmms run {' '.join(variables)}: {done.stderr.strip()[-500:]}") from None
    return content


def measured(scenario: str, seed: int) -> tuple[float | None, float | None, float | None]:
    """Run a scenario.

    Parameters
    ----------
    scenario : str
        Name of the scenario.
    seed : int
        Seed of the run.

    Returns
    -------
    tuple[float | None, float | None, float | None]
        Root mean square of the distance from the course, cm; power of the rods, W; mean speed, m/s. None: it did not
        end.
    """
    report = run([str(SCENARIOS / f"{scenario}.toml"), "--seed", str(seed), "--priority", "off"])
    if report["ended"] != "duration":
        return None, None, None
    off = report["tracking"]["cross_track_m"]["rms"]
    summary = report["summary"]
    return None if off is None else 100.0 * off, summary["mean_power_w"], summary["mean_speed_m_s"]


PLANNER = ("plans", "late_plans", "tried", "failed", "core")
_QUARTERS = 4


def measure_loops(seconds: float) -> list[dict[str, Any]]:
    """Run the loop in real time: with the gait alone, with `path`, and with the planner, alternating.

    Parameters
    ----------
    seconds : float
        Duration, s.

    Returns
    -------
    list[dict[str, Any]]
        A row for each.
    """
    part = ["--mode", "realtime", "--duration", f"{seconds / _QUARTERS:g}"]
    variables = {
        "gait": ["manta", "--controller", "gait", "--sensors", "typical", *part],
        "path": [str(SCENARIOS / "helix.toml"), *part],
        "predictive": [str(SCENARIOS / "predictive_helix.toml"), *part],
    }
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(_QUARTERS):
        for name, variable in variables.items():
            report = run(variable)
            row = rows.setdefault(name, {"controller": name, "steps": 0, "misses": 0, "overruns": 0, "unexplained": 0})
            row["steps"] += report["steps"]
            row["misses"] += report["exchange"]["misses"]
            row["overruns"] += report["schedule"]["overruns"]
            missed = (report["stall_detector"] or {}).get("misses", {})
            row["unexplained"] += sum(count for cause, count in missed.items() if cause != "machine")
            metrics: dict[str, Any] = next(
                (item["metrics"] for item in report["exchange"]["peers"] if item["metrics"]), {}
            )
            for figure in PLANNER if "plans" in metrics else ():
                row.setdefault(figure, []).append(metrics[figure])
            print_text(f"real time, {name}: done", err=True)
    for row in rows.values():
        for figure in (item for item in PLANNER if item in row):
            row[figure] = sum(row[figure]) / (1 if figure in ("plans", "late_plans") else len(row[figure]))
    return list(rows.values())


def realtime_table(result: Mapping[str, Any]) -> str:
    """Return the table of the runs in real time.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Markdown.
    """
    seconds = result["seconds"]
    lines = [
        f"| {seconds:g} s in real time at 1 kHz | steps | misses | of them not by the machine | overruns | planner |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["realtime"]:
        planner = ""
        if "plans" in row:
            planner = (
                f"{row['plans'] / seconds:.2f} plans a second, {row['late_plans']:.0f} late, {row['tried']:.1%} of the "
                f"candidates tried, {row['failed']:.1%} failed, {row['core']:.2f} of a core"
            )
        lines.append(
            f"| `{row['controller']}` | {row['steps']} | {row['misses']} | {row['unexplained']} | {row['overruns']} "
            f"| {planner} |"
        )
    return "\n".join(lines)


def main(as_json: bool = False, *, seeds: int = SEEDS, seconds: float = 0.0) -> int:
    """Run the tables.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    seeds : int, default 3
        Number of seeds.
    seconds : float, default 0.0
        Real time, s, for each controller.

    Returns
    -------
    int
        Exit status.
    """
    setting.refuse_less("predictive: --seeds", seeds, 0)
    setting.refuse_less("predictive: --seconds", seconds, 0.0)
    if 0.0 < seconds < _QUARTERS * 5.0:
        setting.refuse_less("predictive: --seconds", seconds, _QUARTERS * 5.0)
    loops = measure_loops(seconds) if seconds else []
    rows: list[dict[str, Any]] = []
    for course, controller, scenario, target in LINES if seeds else ():
        results = [measured(scenario, seed) for seed in range(1, seeds + 1)]
        finished_runs = [item for item in results if item[0] is not None]
        means = [
            sum(float(item[k] or 0.0) for item in finished_runs) / len(finished_runs)
            if len(finished_runs) == seeds
            else None
            for k in range(3)
        ]
        rows.append(
            {
                "course": course,
                "controller": controller,
                "target_cm": target,
                "mean_cm": means[0],
                "worst_cm": max((item[0] for item in finished_runs if item[0] is not None), default=None),
                "power_w": means[1],
                "speed_m_s": means[2],
                "runs": seeds,
                "lost": seeds - len(finished_runs),
            }
        )
        print_text(f"{course}, {controller}: done", err=True)
    result = {"commit": setting.commit(), "rows": rows, "realtime": loops, "seconds": seconds}
    if as_json:
        print_json(json.dumps(result))
        return 0
    if rows:
        print_text(courses_table(result))
    if loops:
        print_text("\n" + realtime_table(result))
    return 0


def courses_table(result: Mapping[str, Any]) -> str:
    """Return the table of the courses.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Markdown.
    """
    lines = [
        "| course | controller | target of the mean | mean | worst | power | speed | runs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        wanted = "" if row["target_cm"] is None else f"{row['target_cm']:g} cm"
        numbers = [
            "-" if row[name] is None else f"{row[name]:.2f} {unit}"
            for name, unit in (("mean_cm", "cm"), ("worst_cm", "cm"), ("power_w", "W"), ("speed_m_s", "m/s"))
        ]
        lines.append(f"| {row['course']} | `{row['controller']}` | {wanted} | {' | '.join(numbers)} | {row['runs']} |")
    return "\n".join(lines)
