"""What a further robot costs the loop beside its own step; and whether two threads would step several robots sooner.

Runs of 1 to so many mantas at 1 kHz, each a run of the command in real time: without controllers, with one controller
for all of them, and with a gait in a process of its own for each. Of each: the plant's part of a period, and what the
loop adds to it: the period less its slack, less the plant's part. The slope over the number of robots is the cost of
one more. Then, without a loop, the robots' compiled steps one after the other, and shared out to two threads, which
meet after each step.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from ctypes import CFUNCTYPE, c_int64
from pathlib import Path
from typing import Any

import numpy as np

import rtmms

from . import setting

COUNTS = (1, 2, 5, 10, 20)
NONE, ONE, EACH = "none", "one for all", "one each"
WORDS = {NONE: "none", ONE: f"{Path(__file__).with_name('gaits_of_all.py')}:Gaits", EACH: "gait"}


def run(robots: int, controller: str, seconds: float) -> dict[str, Any]:
    """A run in real time; us of a period at the median, and what was missed."""
    words = [
        "run",
        *["manta"] * robots,
        "--duration",
        f"{seconds:g}",
        "--json",
        "--quiet",
        "--controller",
        WORDS[controller],
    ]
    done = subprocess.run([sys.executable, "-m", "rtmms.cli.main", *words], capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise rtmms.RtmmsError(f"world: the run of {robots} robots failed: {done.stderr.strip()[-400:]}")
    report = json.loads(done.stdout)
    timing, exchange, schedule = report["timing_us"], report["exchange"], report["schedule"]
    busy = schedule["period_us"] - timing["slack"]["p50"]
    return {
        "robots": robots, "controller": controller, "steps": report["steps"], "plant_us": timing["plant"]["p50"],
        "plant_p99_us": timing["plant"]["p99"], "busy_us": busy, "loop_us": busy - timing["plant"]["p50"],
        "exchange_us": timing["exchange"]["p50"], "misses": exchange["misses"], "unclaimed": exchange["unclaimed"],
        "overruns": schedule["overruns"], "skipped": schedule["skipped"], "blame": schedule.get("blame", {}),
        "status": done.returncode,
    }  # fmt: skip


def slope(rows: list[dict[str, Any]], key: str) -> float:
    """us for one more robot, by least squares."""
    count = np.array([row["robots"] for row in rows], dtype=float)
    return float(np.polyfit(count, [row[key] for row in rows], 1)[0]) if len(rows) > 1 else 0.0


class _Shared:
    """Steps of some robots by a thread of its own, which is waited for."""

    def __init__(self, steps: list[tuple[Any, tuple[int, ...]]]) -> None:
        self._steps = steps
        self.go, self.done, self._over = threading.Event(), threading.Event(), False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def take(self) -> None:
        for function, arguments in self._steps:
            function(*arguments)

    def _serve(self) -> None:
        while True:
            self.go.wait()
            self.go.clear()
            if self._over:
                return
            self.take()
            self.done.set()

    def end(self) -> None:
        self._over = True
        self.go.set()
        self._thread.join()


def threads(robots: int, chains: int, steps: int) -> dict[str, float]:
    """us of a step of all robots, medians: one after the other, and by two threads."""
    kind = CFUNCTYPE(c_int64, *[c_int64] * 12)  # which lets go of Python's lock
    made: list[tuple[Any, tuple[int, ...]]] = []
    plants = [rtmms.load("manta", chains=chains) for _ in range(robots)]
    for plant in plants:
        entry = plant.enter()  # type: ignore[attr-defined]
        made.append((kind(entry.function), (*entry.arguments, *[0] * (12 - len(entry.arguments)))))
    here, other = _Shared(made[: (robots + 1) // 2]), _Shared(made[(robots + 1) // 2 :])
    found: dict[str, list[int]] = {"one": [], "two": []}
    for _ in range(steps):
        begun = time.monotonic_ns()
        here.take()
        other.take()
        found["one"].append(time.monotonic_ns() - begun)
        begun = time.monotonic_ns()
        other.go.set()
        here.take()
        other.done.wait()
        other.done.clear()
        found["two"].append(time.monotonic_ns() - begun)
    here.end()
    other.end()
    return {"chains": chains, "robots": robots, **{name: float(np.median(row)) * 1e-3 for name, row in found.items()}}


def main(as_json: bool = False, seconds: float = 5.0, most: int = 20, steps: int = 2000) -> int:
    """seconds of each run, at most so many robots, steps of the comparison of threads."""
    setting.refuse_less("world: --seconds", seconds, 0.5)
    setting.refuse_less("world: --most", most, 1)
    setting.refuse_less("world: --steps", steps, 10)
    load = [setting.load()]
    counts = [count for count in COUNTS if count <= most]
    rows = {way: [run(count, way, seconds) for count in counts] for way in (NONE, ONE, EACH)}
    further = {
        way: {"plant_us": slope(found, "plant_us"), "loop_us": slope(found, "loop_us")} for way, found in rows.items()
    }
    compared = [threads(counts[-1], chains, steps) for chains in (30, 128)] + [threads(4, 992, max(10, steps // 4))]
    result = {
        "commit": setting.commit(), "machine": setting.machine(), "load": [*load, setting.load()], "runs": rows,
        "a_further_robot": further, "threads": compared,
    }  # fmt: skip
    if as_json:
        print(json.dumps(result))
        return 0
    print("mantas  controller  plant p50 / p99 us  loop us  exchange us  missed, overrun, skipped of steps")
    for way, found in rows.items():
        for row in found:
            lost = f"{row['misses']}, {row['overruns']}, {row['skipped']} of {row['steps']}"
            plant = f"{row['plant_us']:8.1f} /{row['plant_p99_us']:7.1f}"
            print(
                f"{row['robots']:6}  {way:12}{plant:>20}{row['loop_us']:9.1f}{row['exchange_us'] or 0.0:13.1f}  {lost}"
            )
        print(f"  a further robot: plant {further[way]['plant_us']:.1f} us, loop {further[way]['loop_us']:.1f} us")
    for one in compared:
        print(f"{one['robots']} of {one['chains']} chains: one thread {one['one']:.0f} us, two {one['two']:.0f} us")
    return 0
