"""Closing the loop: the scenarios of examples/scenarios over seeds, and how far each was off what it should hold.

    rtmms bench closing --seeds 10

With typical sensors, the estimator in the loop, one sample of delay (5 ms) and a current of 0.1 m/s that the controller
is not told. Each run is `rtmms run FILE --seed N` in lockstep, two at a time. The last line is in real time: misses and
overruns of the loop with sensors and estimator beside those of the loop without.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rtmms.terminal import print_json, print_text

from . import setting

SCENARIOS = Path(__file__).resolve().parent.parent / "examples" / "scenarios"
_BLOCKS = 5
_TURNS = 2
"""Seeds of the turns, which have no target of their own."""


@dataclass(frozen=True)
class Line:
    """scenario   a file's stem;  value  a quantity and a number of the report's tracking
    target     the most of the mean over seeds, in shown units; None: only told
    scale      of what is shown
    """

    what: str
    scenario: str
    value: tuple[str, str]
    target: float | None
    unit: str
    scale: float = 1.0


LINES = (
    Line("depth", "hold_depth_and_heading", ("depth_m", "rms"), 2.0, "cm", 100.0),
    Line("heading", "hold_depth_and_heading", ("heading_deg", "rms"), 2.0, "deg"),
    Line("roll", "hold_depth_and_heading", ("roll_deg", "rms"), 1.0, "deg"),
    Line("pitch", "hold_depth_and_heading", ("pitch_deg", "rms"), 1.0, "deg"),
    Line("helix, cross-track", "helix", ("cross_track_m", "rms"), 10.0, "cm", 100.0),
    Line("figure of eight, cross-track", "figure_of_eight", ("cross_track_m", "rms"), 10.0, "cm", 100.0),
    Line("90 deg by phase, time", "turn_by_phase", ("heading_deg", "settled_s"), None, "s"),
    Line("90 deg by amplitude, time", "turn_by_amplitude", ("heading_deg", "settled_s"), None, "s"),
    Line("90 deg by both, time", "turn_by_both", ("heading_deg", "settled_s"), None, "s"),
    Line("rod stuck, depth", "rod_stuck_at_10_deg", ("depth_m", "rms"), 6.0, "cm", 100.0),
    Line("rod stuck, heading", "rod_stuck_at_10_deg", ("heading_deg", "rms"), 6.0, "deg"),
    Line("imu and depth silent, depth", "imu_and_depth_silent", ("depth_m", "rms"), 2.0, "cm", 100.0),
    Line("imu and depth silent, depth at most", "imu_and_depth_silent", ("depth_m", "max"), None, "cm", 100.0),
    Line("imu and depth silent, heading", "imu_and_depth_silent", ("heading_deg", "rms"), 2.0, "deg"),
)
TURN_DEG, TURN_SPEED_M_S = 90.0 * 0.95, 0.4


def run(words: list[str]) -> dict[str, Any]:
    """The report of `rtmms run WORDS`."""
    command = [sys.executable, "-m", "rtmms", "run", *words, "--json", "--quiet"]
    quiet = {**os.environ, "RTMMS_QUIET": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise click.ClickException(f"rtmms run {' '.join(words)}: {done.stderr.strip()[-500:]}") from None
    return found


def gathered(seeds: int) -> dict[str, list[Mapping[str, Any]]]:
    """Tracking of each scenario's runs."""
    names = list(dict.fromkeys(line.scenario for line in LINES))
    jobs = [(name, seed) for seed in range(1, seeds + 1) for name in names
            if seed <= _TURNS or not name.startswith("turn")]  # fmt: skip

    def one(job: tuple[str, int]) -> tuple[str, Mapping[str, Any], str]:
        name, seed = job
        report = run([str(SCENARIOS / f"{name}.toml"), "--seed", str(seed), "--priority", "off"])
        print_text(f"{name} seed {seed}: {report['ended']}", err=True)
        return name, report["tracking"], str(report["ended"])

    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    with ThreadPoolExecutor(2) as pool:
        for name, tracking, ended in pool.map(one, jobs):
            found[name].append(tracking if ended == "duration" else {})
    return found


def timing(blocks: int = _BLOCKS) -> list[dict[str, Any]]:
    """The loop at 1 kHz with its autopilot, without and with sensors and estimator, in blocks that take turns: counts
    of all of them, and the median of the plant's p99."""
    rows: list[dict[str, Any]] = []
    reports: dict[str, list[Mapping[str, Any]]] = {"ideal": [], "typical": []}
    for _ in range(blocks):
        for sensors, kept in reports.items():
            kept.append(run(["manta", "--controller", "autopilot", "--sensors", sensors, "--duration", "8"]))
    for sensors, kept in reports.items():
        misses, overruns = (
            [(report["witness"] or {}).get(what, {}) for report in kept] for what in ("misses", "overruns")
        )
        rows.append({
            "sensors": sensors, "steps": sum(report["steps"] for report in kept),
            "misses": sum(report["exchange"]["misses"] for report in kept),
            "overruns": sum(report["schedule"]["overruns"] for report in kept),
            "unexplained": [sum(n for one in part for cause, n in one.items() if cause != "machine")
                            for part in (misses, overruns)],
            "plant_p99_us": statistics.median(report["timing_us"]["plant"]["p99"] for report in kept),
        })  # fmt: skip
    return rows


def judged(line: Line, runs: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and worst over the runs; a run without the number counts as worst of all."""
    values = [(tracking.get(line.value[0]) or {}).get(line.value[1]) for tracking in runs]
    kept = [line.scale * float(one) for one in values if one is not None]
    lost = len(values) - len(kept)
    mean = sum(kept) / len(kept) if kept and not lost else None
    reached = None if line.target is None else mean is not None and mean <= line.target
    return {"what": line.what, "unit": line.unit, "target": line.target, "mean": mean,
            "worst": max(kept, default=None), "runs": len(values), "lost": lost, "reached": reached}  # fmt: skip


def main(as_json: bool = False, *, seeds: int = 10, realtime: bool = True) -> int:
    """Run the table."""
    setting.refuse_less("closing: --seeds", seeds, 1)
    found = gathered(seeds)
    rows = [judged(line, found[line.scenario]) for line in LINES]
    loops = timing() if realtime else []
    if as_json:
        print_json(json.dumps({"commit": setting.commit(), "rows": rows, "loop": loops}))
        return 0
    print_text("| what | target | mean | worst | runs | reached |\n|---|---|---|---|---|---|")
    for row in rows:
        target = "" if row["target"] is None else f"{row['target']:g} {row['unit']}"
        reached = {None: "", True: "yes", False: "NO"}[row["reached"]]
        told = [("-" if row[name] is None else f"{row[name]:.2f} {row['unit']}") for name in ("mean", "worst")]
        print_text(f"| {row['what']} | {target} | {' | '.join(told)} | {row['runs']} | {reached} |")
    for row in rows:
        if row["what"].startswith("90 deg") and row["mean"]:
            rate = TURN_DEG / row["mean"]
            radius = TURN_SPEED_M_S / (rate * 3.14159 / 180.0)
            print_text(f"{row['what'].split(',')[0]}: {rate:.1f} deg/s in the mean, radius {radius:.1f} m "
                       "(the animal: 43 deg/s, 2 m)")  # fmt: skip
    for one in loops:
        misses, overruns = one["unexplained"]
        print_text(f"1 kHz, {one['steps']} steps, --sensors {one['sensors']}: {one['misses']} misses and "
                   f"{one['overruns']} overruns, {misses} and {overruns} of them not explained by a stall, "
                   f"plant p99 {one['plant_p99_us']:.0f} us")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
