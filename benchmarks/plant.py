"""`rtmms bench plant`: what a step of the manta costs, against plain Python of the same step in the same run.

Compiled alone and as `plant.step`, percentiles, growth with chains and links, allocations, and how many times faster
than real time `--mode free` runs. Progress goes to standard error; the report, or one JSON object, to standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from . import growth, setting, stepping


@dataclass(frozen=True)
class Effort:
    """How much of each is measured; the default takes about a minute."""

    blocks: int = 9
    steps: int = 20_000
    plain_steps: int = 15
    chains: tuple[int, ...] = (10, 16, 30, 32, 64, 100, 128, 256, 512, 992, 1000)
    links: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)
    growth_block_us: float = 20_000.0
    growth_repeats: int = 7
    free_s: float = 200.0
    free_gait_s: float = 40.0


def allocations() -> dict[str, Any]:
    """Python objects kept per step, and numba's allocations counted in a process of its own."""
    out: dict[str, Any] = {"python_objects_per_step": stepping.blocks_kept(10_000)}
    child = subprocess.run(
        [sys.executable, "-P", "-m", "rtmms_benchmarks.allocations"],
        env={**os.environ, "NUMBA_NRT_STATS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if child.returncode:
        lines = child.stderr.strip().splitlines()
        out |= {"numba_allocations_per_compiled_step": None, "numba_allocations_per_call": None}
        out["failed"] = lines[-1] if lines else f"exit status {child.returncode}"
    else:
        seen = json.loads(child.stdout)
        out["numba_allocations_per_compiled_step"] = seen["compiled"]
        out["numba_allocations_per_call"] = seen["called"]
    return out


def free_run(controller: str, duration: float) -> dict[str, Any]:
    """`rtmms run manta --mode free`: real-time factor and the plant's percentiles, from its own report."""
    words = ["run", "manta", "--mode", "free", "--controller", controller, "--duration", f"{duration:g}", "--json"]
    child = subprocess.run(
        [sys.executable, "-P", "-m", "rtmms", *words, "--quiet"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if child.returncode:
        lines = child.stderr.strip().splitlines()
        return {"real_time_factor": None, "failed": lines[-1] if lines else f"exit status {child.returncode}"}
    report = json.loads(child.stdout)
    return {
        "real_time_factor": report["real_time_factor"],
        "simulated_s": report["simulated_s"],
        "wall_s": report["wall_s"],
        "plant_us": report["timing_us"]["plant"],
        "commands_applied": report["exchange"]["commands_applied"],
    }


def measure(effort: Effort, say: Callable[[str], None]) -> dict[str, Any]:
    """All figures as one object that JSON can carry."""
    start = time.monotonic()
    out: dict[str, Any] = {
        "benchmark": "plant",
        "time": setting.now(),
        "commit": setting.commit(),
        "machine": setting.machine(),
        "load_before": setting.load(),
        "robot": {"name": "manta", "chains": 30, "links": 3, "fins": 2, "dt": 1e-3, "coupling": "sequential"},
        "effort": asdict(effort),
    }
    out["step"] = stepping.measure(effort.blocks, effort.steps, effort.plain_steps, say)
    say("10 ms as in the paper")
    out["ten_ms"] = stepping.paper(effort.steps // 10, effort.blocks)
    out["growth"] = growth.measure(effort.chains, effort.links, effort.growth_block_us, effort.growth_repeats, say)
    say("allocations")
    out["memory"] = allocations()
    out["free"] = {}
    for controller, duration in (("none", effort.free_s), ("gait", effort.free_gait_s)):
        say(f"--mode free, controller {controller}, {duration:g} s simulated")
        out["free"][controller] = free_run(controller, duration)
    out["load_after"] = setting.load()
    out["wall_s"] = round(time.monotonic() - start, 1)
    return out


def _number(x: float | None, unit: str = "") -> str:
    return "not measured" if x is None else f"{x:,.4g}{unit}" if x < 1000 else f"{x:,.0f}{unit}"


def table(result: dict[str, Any]) -> str:
    """The report that a person reads."""
    step, ten, grown, memory, free = (result[k] for k in ("step", "ten_ms", "growth", "memory", "free"))
    n, m, machine = grown["chains"], grown["links"], result["machine"]
    python = step["python_us"]
    rows = [
        ("machine", f"{machine['cpu']}, {machine['cores']} cores, {' '.join(machine['vectors']) or 'no AVX'}"),
        ("commit", result["commit"] or "not a checkout"),
        ("load before, after", f"{result['load_before']}, {result['load_after']}"),
        ("", ""),
        ("step, compiled part", _number(step["compiled_us"]["median"], " us")),
        ("step, from Python", _number(python["median"], " us")),
        ("  each: p50, p99, p99.9, max", ", ".join(_number(python[k]) for k in ("p50", "p99", "p999", "max")) + " us"),
        ("step, plain Python", _number(step["plain_us"]["median"], " us")),
        ("  over compiled part", _number(step["plain_over_compiled"], " x")),
        ("  over plant.step", _number(step["plain_over_python"], " x")),
        ("  joint angles apart by", f"{step['largest_difference']['relative']:.1e} of the largest"),
        ("10 ms in one step, in ten", ", ".join(_number(ten[k], " us") for k in ten if k != "paper_us")),
        ("  the paper's laptop", _number(ten["paper_us"], " us")),
        ("growth with chains", ", ".join(f"{k}: {_number(t)}" for k, t in n.items()) + " us"),
        ("  exponent, whole blocks of lanes", _number(grown["exponent_chains"])),
        ("growth with links", ", ".join(f"{k}: {_number(t)}" for k, t in m.items()) + " us"),
        ("  exponent", _number(grown["exponent_links"])),
        ("Python objects kept per step", _number(memory["python_objects_per_step"])),
        ("numba allocations per compiled step", _number(memory["numba_allocations_per_compiled_step"])),
        ("  per plant.step: its arguments", _number(memory["numba_allocations_per_call"])),
        ("--mode free against real time", _number(free["none"]["real_time_factor"], " x")),
        ("  with the gait attached", _number(free["gait"]["real_time_factor"], " x")),
    ]  # fmt: skip
    return "\n".join(f"{a:<36}{b}".rstrip() for a, b in rows)


def main(as_json: bool, effort: Effort | None = None) -> int:
    """Measure and print; the exit status."""

    def say(text: str) -> None:
        print(f"bench plant: {text}", file=sys.stderr, flush=True)

    result = measure(effort or Effort(), say)
    print(json.dumps(result, indent=1) if as_json else table(result))
    return 0
