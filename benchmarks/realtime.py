"""`rtmms bench realtime`: the manta at 1 kHz with its gait over tcp, beside cyclictest alone in the same minutes.

Blocks of cyclictest (rt-tests; same period, same priority) alternate with blocks of the run, then one long run,
because a shared machine stalls whoever is running: what cyclictest could not have kept, the loop could not either.
Progress goes to standard error; the report, or one JSON object, to standard output.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from benchmarks import setting
from benchmarks.yardsticks import cyclictest

PRIORITY = 80
PERIOD_US = 1000


@dataclass(frozen=True)
class Effort:
    """Blocks of each and their length, and the length of the one long run; the default takes four minutes."""

    blocks: int = 5
    block_s: float = 10.0
    long_s: float = 60.0


def manta(seconds: float) -> dict[str, Any]:
    """`rtmms run manta` in real time with its gait controller: its own report, cut to what is compared."""
    words = ["run", "manta", "--duration", f"{seconds:g}", "--priority", str(PRIORITY), "--json", "--quiet"]
    child = subprocess.run(
        [sys.executable, "-c", "from rtmms.cli.main import main; main()", *words],
        capture_output=True, text=True, timeout=2 * seconds + 120, check=False,
    )  # fmt: skip
    if not child.stdout.strip():
        lines = child.stderr.strip().splitlines()
        return {"failed": lines[-1] if lines else f"exit status {child.returncode}"}
    report = json.loads(child.stdout)
    exchange, schedule = report["exchange"], report["schedule"]
    return {
        "ended": report["ended"], "steps": report["steps"], "simulated_s": report["simulated_s"],
        "wall_s": report["wall_s"], "commands_applied": exchange["commands_applied"], "misses": exchange["misses"],
        "max_consecutive_misses": exchange["max_consecutive_misses"], "late": exchange["late"],
        "overruns": schedule["overruns"], "skipped": schedule["skipped"], "deadline_us": schedule["deadline_us"],
        "timing_us": report["timing_us"], "realtime": report["realtime"],
    }  # fmt: skip


def measure(effort: Effort) -> dict[str, Any]:
    """Everything, as one object; `load` is the machine's before and after."""
    out: dict[str, Any] = {"commit": setting.commit(), "machine": setting.machine(), "load": [setting.load()]}
    out["blocks"] = []
    for k in range(effort.blocks):
        print(
            f"block {k + 1} of {effort.blocks}: cyclictest, then the manta, {effort.block_s:g} s each", file=sys.stderr
        )
        out["blocks"].append(
            {"cyclictest": cyclictest(effort.block_s, PERIOD_US, PRIORITY), "manta": manta(effort.block_s)}
        )
    print(f"the manta for {effort.long_s:g} s", file=sys.stderr)
    out["long"] = manta(effort.long_s)
    out["load"].append(setting.load())
    return out


def _median(blocks: list[dict[str, Any]], *path: str) -> float | None:
    values = []
    for block in blocks:
        value: Any = block
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            values.append(value)
    return statistics.median(values) if values else None


def tell(result: dict[str, Any]) -> None:
    """Print the comparison for a reader."""
    blocks = result["blocks"]
    print(f"commit {result['commit']}, load {result['load'][0]} before, {result['load'][-1]} after")
    print(f"medians over {len(blocks)} blocks, us            p50      p99    p99.9      max")
    for name, path in (
        ("cyclictest alone, wake-up", ("cyclictest",)),
        ("manta, wake-up", ("manta", "timing_us", "wake")),
        ("manta, exchange", ("manta", "timing_us", "exchange")),
        ("manta, plant", ("manta", "timing_us", "plant")),
    ):
        values = [_median(blocks, *path, p) for p in ("p50", "p99", "p999", "max")]
        cells = "".join("        -" if v is None else f"{v:9.1f}" for v in values)
        print(f"  {name:<28}{cells}")
    late = [b["cyclictest"].get("later_than_half_period") if b["cyclictest"] else None for b in blocks]
    print(f"cyclictest's wake-ups later than half a period, by block: {late}")
    print(f"the manta's misses, by block: {[b['manta'].get('misses') for b in blocks]}; "
          f"overruns: {[b['manta'].get('overruns') for b in blocks]}")  # fmt: skip
    long = result["long"]
    if "failed" in long:
        print(f"the long run failed: {long['failed']}")
    else:
        print(f"{long['simulated_s']:g} s at 1 kHz: ended {long['ended']}, {long['steps']} steps, "
              f"{long['misses']} missed (at most {long['max_consecutive_misses']} in a row), "
              f"{long['overruns']} overruns, "
              f"{long['skipped']} periods skipped; deadline {long['deadline_us']:.0f} us")  # fmt: skip


def main(as_json: bool = False, effort: Effort | None = None) -> int:
    """The command; 0, or 1 when the manta could not run."""
    result = measure(effort or Effort())
    if as_json:
        print(json.dumps(result))
    else:
        tell(result)
    return int("failed" in result["long"])
