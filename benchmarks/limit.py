"""`rtmms bench limit`: how short an exchange between two processes can be here, and what a deadline adds to it.

Blocks of raw exchanges alternate, all on one core at one priority, paced at 1 kHz; see benchmarks/pingpong.py for the
kinds. The aim for the loop's exchange is twice `datagram`; `packed` is all of it but the loop's own work. No witness
runs beside them: behind its timers a deadline's is never the next one, and costs less.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

from rtmms.loop.machine.cores import allowed
from rtmms.loop.machine.costs import COSTS, costs
from rtmms.loop.machine.realtime import raised
from rtmms_benchmarks import setting
from rtmms_benchmarks.loop import PRIORITY, message_sizes
from rtmms_benchmarks.yardsticks import QUANTILES, pingpong

KINDS = ("datagram", "timeout", "alarm", "packed", "zeromq", "four")


def main(as_json: bool = False, blocks: int = 5, seconds: float = 2.0, rate: int = 1000, core: int = -1) -> int:
    """The command. Exit status 1 when one of them could not run.

    rate  Hz;  core  of all of it, -1 for the last one that may be used
    """
    setting.refuse_less("limit: --blocks", blocks, 1)
    setting.refuse_less("limit: --seconds", seconds, 0.1)
    setting.refuse_less("limit: --rate", rate, 1)
    sizes, period_us = message_sizes(), round(1e6 / rate)
    place = core if core >= 0 else (allowed() or [0])[-1]
    out: dict[str, Any] = {"commit": setting.commit(), "machine": setting.machine(), "at": setting.now(),
                           "load": [setting.load()], "rate_hz": rate, "blocks": blocks, "seconds": seconds}  # fmt: skip
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for k in range(blocks):
        print(f"block {k + 1} of {blocks}", file=sys.stderr, flush=True)
        for kind in KINDS:
            found[kind].append(pingpong(kind, seconds, period_us, PRIORITY, place, sizes, period_us / 2, witness=False))
    out["load"].append(setting.load())
    failed = [row["failed"] for rows in found.values() for row in rows if "failed" in row]
    if failed:
        print(f"bench limit: {failed[0]}", file=sys.stderr)
        return 1
    with raised(PRIORITY):
        out["costs_us"] = costs()
    out["us"] = {kind: {q: statistics.median(row["exchange"][q] for row in rows) for q, _ in QUANTILES}
                 for kind, rows in found.items()}  # fmt: skip
    print(json.dumps(out)) if as_json else tell(out)
    return 0


def tell(result: dict[str, Any]) -> None:
    """Print it for a reader."""
    print(f"commit {result['commit']}, load {result['load'][0]} before, {result['load'][-1]} after; an exchange at "
          f"{result['rate_hz']} Hz, us, medians over {result['blocks']} blocks")  # fmt: skip
    print(f"{'':<12}" + "".join(f"{q:>9}" for q, _ in QUANTILES))
    for kind, row in result["us"].items():
        print(f"{kind:<12}" + "".join(f"{row[q]:9.1f}" for q, _ in QUANTILES))
    for name, us in result["costs_us"].items():
        print(f"{name:<12}{us:9.2f}   {COSTS[name]}")
