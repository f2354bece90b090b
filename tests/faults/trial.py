"""One fault, tried on a running plant: what it did, from its report, its log and its memory.

A plant is served to two controllers, one for each side; `left` is a good one always. The other one, or something beside
the two, has the fault. What is counted are the steps between two instants, by the log.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rtmms
from rtmms.record.records import records

from .cases import Case
from .processes import Bench

PATIENCE_S = 60.0
SETTLE_S = 0.3
TURN_S = 1.0


def trial(case: Case, robot: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run one case for `seconds`; robot: name and options of `rtmms serve`. One flat object."""
    with tempfile.TemporaryDirectory(prefix="rtmms-faults-") as folder:
        bench = Bench(Path(folder), os.environ | case.environment)
        try:
            return _trial(case, bench, robot, seconds)
        finally:
            bench.close()


def _trial(case: Case, bench: Bench, robot: Sequence[str], seconds: float) -> dict[str, Any]:
    path = bench.folder / "run.mcap"
    plant, errors = _serve(bench, robot, path)
    left, right = case.sides
    bench.controller("steady", "--claim", left)
    good = bench.controller("steady", "--claim", right)
    extra = [bench.peer(kind) for kind in case.neighbours]
    time.sleep(SETTLE_S)
    windows = Windows()
    if case.turn is not None:
        before = _resident(plant.pid)
        _take_turns(case, bench, extra, windows, seconds)
    else:
        windows.off.append(_span(seconds))
        side = _change_sides(case, bench, good, right)
        before, begun = _resident(plant.pid), time.time()
        case.act(bench, side, right, seconds)
        time.sleep(max(0.0, begun + seconds - time.time()))
        windows.on.append((begun, time.time()))
    after = _resident(plant.pid)
    _stop(bench.exchange)
    out, _ = plant.communicate(timeout=PATIENCE_S)
    report = json.loads(out) if out.strip() else {}
    return {"case": case.name, **_reported(report, plant.returncode, errors), **_counted(path, windows, report),
            "growth_mib": round((after - before) / 1024, 2)}  # fmt: skip


@dataclass
class Windows:
    """Intervals of wall time, in s since 1970, in which the fault was there, and in which all was well."""

    on: list[tuple[float, float]] = field(default_factory=list)
    off: list[tuple[float, float]] = field(default_factory=list)

    def of(self, at: float) -> str:
        """'on', 'off' or '' for an instant."""
        for name in ("on", "off"):
            if any(begin <= at < end for begin, end in getattr(self, name)):
                return name
        return ""


def _span(seconds: float) -> tuple[float, float]:
    begun = time.time()
    time.sleep(seconds)
    return begun, time.time()


def _change_sides(case: Case, bench: Bench, good: Any, right: str) -> Any:
    """The right side's good controller goes, and the one with the fault takes its place."""
    if case.right == "steady" and not case.proxy:
        return good
    good.kill()
    through = ("--through", bench.proxy(*case.proxy)) if case.proxy else ()
    # one that floods or never sleeps must not have a priority
    start = bench.peer if case.right == "flooding" else bench.controller
    side = start(case.right, "--claim", right, *through)
    time.sleep(SETTLE_S)
    return side


def _take_turns(case: Case, bench: Bench, extra: list[Any], windows: Windows, seconds: float) -> None:
    """Off and on, TURN_S each, until the time is over and each has had a turn; the last one is off, as the first."""
    assert case.turn is not None
    end, on = time.time() + seconds, True
    while time.time() < end or on or not windows.on:
        on = not on
        case.turn(bench, extra, on)
        (windows.on if on else windows.off).append(_span(TURN_S))


def _serve(bench: Bench, robot: Sequence[str], path: Path) -> tuple[subprocess.Popen[str], Path]:
    errors = bench.folder / "errors.txt"
    any_port = "tcp://127.0.0.1:*"
    arguments = [
        "serve",
        *robot,
        "--exchange",
        any_port,
        "--step",
        any_port,
        "--telemetry",
        any_port,
        "--json",
        "--log",
        str(path),
    ]
    main = "import sys, tests.faults.wall_clock; from rtmms.cli.main import main; main(sys.argv[1:])"
    with errors.open("w") as file:
        plant = bench.spawn([sys.executable, "-P", "-c", main, *arguments], stderr=file)
    until = time.monotonic() + PATIENCE_S
    while not bench.exchange:
        if plant.poll() is not None or time.monotonic() > until:
            raise rtmms.ModelError(f"faults: the plant did not start: {errors.read_text()[-500:]}")
        for line in errors.read_text().splitlines():
            if line.startswith("exchange tcp"):
                bench.exchange = line.split()[1].rstrip(";")
        time.sleep(0.02)
    return plant, errors


def _stop(exchange: str) -> None:
    with rtmms.connect(exchange, name="faults", timeout_s=PATIENCE_S) as link:
        link.request("stop", timeout_s=PATIENCE_S)


def _resident(pid: int) -> int:
    """KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


def _reported(report: dict[str, Any], status: int, errors: Path) -> dict[str, Any]:
    exchange = report.get("exchange") or {}
    output = errors.read_text()
    stored = sum(exchange.get(name, 0) for name in ("commands_applied", "stale", "misses", "unclaimed", "reused"))
    peers = [{k: p[k] for k in ("name", "state", "commands", "late", "rejected")} for p in exchange.get("peers", [])]
    return {
        "status": status, "ended": report.get("ended"), "all_steps": report.get("steps"),
        "sum_holds": stored == report.get("steps"), "traceback": "Traceback" in output,
        "late": exchange.get("late"), "rejected": exchange.get("rejected"), "peers": peers,
        "log": _without_folder(report.get("log")), "finite": None not in (report.get("final") or {"": None}).values(),
    }  # fmt: skip


def _without_folder(log: dict[str, Any] | None) -> dict[str, Any] | None:
    """What became of the log; where it lay is nobody's affair."""
    return log if log is None else {**log, "file": Path(str(log["file"])).name}


def _steps(path: Path) -> Iterator[tuple[float, str, int]]:
    """Of each step of a log: s since 1970 when it was written, its outcome, and how many overran or were skipped so
    far."""
    topics: dict[int, str] = {}
    for record in records(path):
        kind = type(record).__name__
        if kind == "Channel":
            topics[record.id] = record.topic
        elif kind == "Message" and topics.get(record.channel_id) == "/outcome":
            output = json.loads(record.data)
            yield record.publish_time * 1e-9, output["outcome"], int(output["overruns"]) + int(output["skipped"])


def _counted(path: Path, windows: Windows, report: dict[str, Any]) -> dict[str, Any]:
    """Of the steps within the windows: how many, how many missed, and how many were late or skipped."""
    outcomes: dict[str, Counter[str]] = {"on": Counter(), "off": Counter(), "": Counter()}
    lost_time = {"on": 0, "off": 0, "": 0}
    in_log = before = 0
    for at, outcome, lost_so_far in _steps(path):
        in_log += 1
        window = windows.of(at)
        outcomes[window][outcome] += 1
        lost_time[window] += lost_so_far - before
        before = lost_so_far
    on, off = outcomes["on"], outcomes["off"]
    lost = report.get("steps", 0) - in_log
    if lost:  # the log had no room for them
        missed = (report.get("exchange") or {}).get("misses", 0) - sum(c["missed"] for c in outcomes.values())
        on["missed"] += missed
        on["applied"] += lost - missed
    return {
        "steps": on.total(), "misses_percent": _percent(on), "steps_without": off.total(),
        "more_lost_percent": _more_lost(lost_time, on.total(), off.total()),
        "log_has_all": in_log == report.get("steps"),
    }  # fmt: skip


def _more_lost(lost: Mapping[str, int], on: int, off: int) -> float | None:
    """Overruns and skipped periods, in percent of the steps: with the fault, less those without."""
    return round(100.0 * (lost["on"] / on - lost["off"] / off), 3) if on and off else None


def _percent(counted: Counter[str]) -> float | None:
    return round(100.0 * counted["missed"] / counted.total(), 3) if counted.total() else None
