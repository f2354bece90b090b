"""References for the loop, each measured alone: cyclictest, raw datagrams, raw ZeroMQ; and the load beside it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from rtmms.base.errors import RtmmsError
from rtmms.loop.fault_attribution import Stall, overlaps_stall
from rtmms.loop.stall_detector import StallDetector

QUANTILES = (("p50", 50.0), ("p99", 99.0), ("p999", 99.9), ("max", 100.0))


def quantiles(ns: Sequence[int]) -> dict[str, float]:
    """Return p50, p99, p999 and max.

    Parameters
    ----------
    ns : Sequence[int]
        Times, ns.

    Returns
    -------
    dict[str, float]
        us.
    """
    values = np.percentile(np.asarray(ns, dtype=np.float64), [share for _, share in QUANTILES]) * 1e-3
    return {name: float(value) for (name, _), value in zip(QUANTILES, values, strict=True)}


def cyclictest(seconds: float, period_us: int, priority: int, core: int | None = None) -> dict[str, Any] | None:
    """Run cyclictest.

    Parameters
    ----------
    seconds : float
        Duration, s.
    period_us : int
        Period, us.
    priority : int
        Real-time priority.
    core : int | None, optional
        Core; None: any.

    Returns
    -------
    dict[str, Any] | None
        Wake-up latency, us, and the number of wake-ups that a deadline of half a period would have missed; None without
        it.
    """
    program = shutil.which("cyclictest")
    if program is None:
        return None
    arguments = [
        program,
        "-q",
        "-t1",
        f"-p{priority}",
        f"-i{period_us}",
        f"-D{max(1, round(seconds))}",
        "-h20000",
        "-m",
    ]
    arguments += [] if core is None else [f"-a{core}"]
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=seconds + 60, check=False)
    counts = {int(a): int(b) for a, b in re.findall(r"^(\d{6}) (\d{6})\s*$", child.stdout, re.M)}
    total = sum(counts.values())
    if child.returncode or not total:
        lines = (child.stderr or child.stdout).strip().splitlines()
        return {"failed": lines[-1] if lines else f"exit status {child.returncode}"}
    match = re.search(r"# Max Latencies: (\d+)", child.stdout)
    out: dict[str, Any] = {"wakeups": total, "max": int(match[1]) if match else max(k for k, n in counts.items() if n)}
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        wakeups = 0
        for value, n in sorted(counts.items()):
            wakeups += n
            if wakeups >= share * total:
                out[name] = value
                break
    out["later_than_half_period"] = total - sum(n for value, n in counts.items() if value <= period_us // 2)
    return out


def pingpong(
    kind: str, seconds: float, period_us: int, priority: int, core: int, sizes: tuple[int, int], deadline_us: float,
    detector: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Measure one block of raw exchanges, with a detector beside it as beside the loop.

    Parameters
    ----------
    kind : str
        'datagram' or 'zeromq'.
    seconds : float
        Duration, s.
    period_us : int
        Period, us.
    priority : int
        Real-time priority.
    core : int
        Core.
    sizes : tuple[int, int]
        Bytes of a state and of a command.
    deadline_us : float
        Deadline, us.
    detector : bool, default True
        False: none, as its timers would hide the costs of other things.

    Returns
    -------
    dict[str, Any]
        Quantiles of wake and exchange, and misses of the deadline: all, and those that no stall explains.
    """
    arguments = ["--core", core, "--priority", priority, "--period_us", period_us, "--seconds", seconds,
             "--state_bytes", sizes[0], "--command_bytes", sizes[1]]  # fmt: skip
    with _detector(priority, round(deadline_us * 1000), core) if detector else nullcontext(_nothing_seen) as stalls:
        child = subprocess.run(
            [sys.executable, "-P", "-m", "rtmms_benchmarks.pingpong", kind, *map(str, arguments)],
            capture_output=True, text=True, timeout=3 * seconds + 60, check=False,
        )  # fmt: skip
        stall_list = stalls()
    if child.returncode or not child.stdout:
        lines = child.stderr.strip().splitlines()
        return {"failed": lines[-1] if lines else f"exit status {child.returncode}"}
    raw = json.loads(child.stdout)
    wake, exchange, begun = (np.asarray(raw[name]) for name in ("wake", "exchange", "begun"))
    limit = max(60_000, int((deadline_us * 1e3 - np.median(exchange)) / 2))
    bad = np.flatnonzero(wake + exchange > deadline_us * 1e3)
    explained = sum(
        overlaps_stall(int(begun[k] - wake[k]), int(begun[k] + exchange[k]), limit, stall_list) for k in bad
    )  # fmt: skip
    return {
        "wake": quantiles(raw["wake"]), "exchange": quantiles(raw["exchange"]), "steps": len(wake),
        "misses": len(bad), "unexplained": len(bad) - explained,
    }  # fmt: skip


def _nothing_seen() -> list[Stall]:
    return []


@contextmanager
def _detector(priority: int, deadline_ns: int, core: int) -> Iterator[Any]:
    """Run a detector of the core within the block, which yields a function that returns its stalls."""
    try:
        detector = StallDetector(priority, deadline_ns, [core])
    except RtmmsError:
        yield lambda: []
        return
    try:
        detector.stalls.await_first()
        result: list[Stall] = []

        def read_stalls() -> list[Stall]:
            detector.stalls.await_looked(time.monotonic_ns())
            result.extend(detector.stalls.take())
            return result

        yield read_stalls
    finally:
        detector.close()


@contextmanager
def loaded(load: bool) -> Iterator[None]:
    """Run stress-ng on every core, on memory and on I/O within the block, if requested.

    Parameters
    ----------
    load : bool
        Whether it is requested.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    RtmmsError
        stress-ng is missing.
    """
    if not load:
        yield
        return
    program = shutil.which("stress-ng")
    if program is None:
        raise RtmmsError("the loaded blocks need stress-ng (Debian: apt install stress-ng)")
    arguments = [program, "--quiet", "--cpu", "0", "--vm", "1", "--vm-bytes", "256M", "--iomix", "1"]
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield
    finally:
        child.terminate()
        child.wait()
