"""`rtmms bench preempt`: who ran on the loop's core in its bad steps, by the kernel's own tracer (ftrace).

A run of the manta with a compiled controller, while context switches and interrupts of the loop's core are traced.
Each step that missed its commands or overran is then taken apart: how long the loop, its controllers, the witness,
interrupts, each other thread ran in it, and how long nobody did. Needs root, as tracefs does; the tracer itself costs
each switch about a microsecond, so times are of no other use.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rtmms.errors import ModelError
from rtmms.loop.machine.cores import allowed
from rtmms_benchmarks import setting
from rtmms_benchmarks.steady import registered

PLACES = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
EVENTS = (
    "sched/sched_switch", "irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_entry", "irq/softirq_exit",
    "irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit",
)  # fmt: skip
_BUFFER_KB = 131_072
LOOP, CONTROLLERS, WITNESS, NOBODY, INTERRUPTS = "the loop", "controllers", "witness", "nobody", "interrupts"
_LINE = re.compile(r"^\s*.+?-\d+\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{6}): (\w+): (.*)$")
_NEXT = re.compile(r"next_comm=(.*) next_pid=(\d+) next_prio=(\d+)")
_WITNESS_PRIO = 99 - 90


class Switch(NamedTuple):
    """From then on, ns of CLOCK_MONOTONIC, this thread ran; who: its name, pid, and the kernel's priority."""

    at: int
    name: str
    pid: int
    prio: int


class Trace(NamedTuple):
    """What was traced: who ran from when on; from when to when interrupts did; all instants at which anything was."""

    switches: list[Switch]
    interrupts: list[tuple[int, int]]
    events: list[int]


def main(as_json: bool = False, rate: float = 1000.0, seconds: float = 20.0, controller: str = "still") -> int:
    """The command. rate  Hz;  seconds  of the run, 60 at most (the tracer's memory);  controller  as of `rtmms run`"""
    setting.refuse_less("preempt: --rate", rate, 10.0)
    if not 0.5 <= seconds <= 60.0:
        raise ModelError(f"bench preempt: --seconds: expected 0.5 to 60, got {seconds:g}")
    core, before = (allowed() or [0])[-1], setting.load()
    with tracing(core) as instance, registered() as environment:
        words = ["run", "manta", "--dt", f"{1 / rate:g}", "--deadline", f"{0.5 / rate:g}", "--duration", f"{seconds:g}",
                 "--controller", controller, "--json", "--quiet"]  # fmt: skip
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as words_of_it:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "rtmms", *words], stdout=out, stderr=words_of_it, text=True,
                env=environment,
            )  # fmt: skip
            try:
                ours = _children(child)
            finally:
                child.kill()
            out.seek(0)
            words_of_it.seek(0)
            told, complaint = out.read(), words_of_it.read()
        (instance / "tracing_on").write_text("0")
        with (instance / "trace").open(errors="replace") as lines:
            trace = read(lines)
    if not told.strip():
        raise ModelError(f"bench preempt: the run told nothing: {complaint.strip()[-300:]}")
    report = json.loads(told)
    names = {child.pid: LOOP} | dict.fromkeys(ours, CONTROLLERS)
    steps = [taken_apart(step, trace, names) for step in report["witness"]["bad_steps"]]
    result = {
        "commit": setting.commit(), "machine": setting.machine(), "at": setting.now(), "load": [before, setting.load()],
        "rate_hz": rate, "steps": report["steps"], "misses": report["exchange"]["misses"], "core": core,
        "overruns": report["schedule"]["overruns"], "blame": report["schedule"]["blame"], "bad_steps": steps,
        "culprits": dict(Counter(step["culprit"] for step in steps)),
    }  # fmt: skip
    print(json.dumps(result)) if as_json else tell(result)
    return 0


# --- the tracer -------------------------------------------------------------------------------------------------------


@contextmanager
def tracing(core: int) -> Iterator[Path]:
    """Within: an instance of the tracer of our own that traces this core. ModelError where that is not permitted."""
    with tempfile.TemporaryDirectory(prefix="rtmms-tracefs-") as folder:
        place, mounted = next((one for one in PLACES if (one / "instances").is_dir()), None), False
        if place is None and os.geteuid() == 0:
            mount = subprocess.run(["mount", "-t", "tracefs", "tracefs", folder], capture_output=True, check=False)
            place, mounted = (Path(folder), True) if mount.returncode == 0 else (None, False)
        try:
            if place is None:
                raise ModelError("bench preempt: no tracefs here that may be used: run it as root, on a kernel with "
                                 "CONFIG_FTRACE (mount -t tracefs tracefs /sys/kernel/tracing)")  # fmt: skip
            with _instance(place, core) as instance:
                yield instance
        finally:
            if mounted:
                subprocess.run(["umount", folder], capture_output=True, check=False)


@contextmanager
def _instance(place: Path, core: int) -> Iterator[Path]:
    instance = place / "instances" / f"rtmms-{os.getpid()}"
    try:
        instance.mkdir()
    except OSError as fault:
        raise ModelError(f"bench preempt: {fault.filename}: {fault.strerror}: expected to run as root") from None
    try:
        (instance / "trace_clock").write_text("mono")
        (instance / "tracing_cpumask").write_text(f"{1 << core:x}")
        (instance / "per_cpu" / f"cpu{core}" / "buffer_size_kb").write_text(str(_BUFFER_KB))
        for event in EVENTS:
            with suppress(FileNotFoundError):  # of another processor
                (instance / "events" / event / "enable").write_text("1")
        (instance / "tracing_on").write_text("1")
        yield instance
    finally:
        (instance / "events" / "enable").write_text("0")
        for _ in range(20):  # while somebody still reads it
            with suppress(OSError):
                instance.rmdir()
                break
            time.sleep(0.1)


def _children(child: subprocess.Popen[str]) -> set[int]:
    """Threads that it started, looked at until it ends."""
    found: set[int] = set()
    while child.poll() is None:
        with suppress(OSError):
            found |= {int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()}
        try:
            child.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    return found


# --- what it says -----------------------------------------------------------------------------------------------------


def read(lines: Iterable[str]) -> Trace:
    """The tracer's text."""
    trace, begun = Trace([], [], []), 0
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        at, event = int(found[1]) * 1_000_000_000 + int(found[2]) * 1000, found[3]
        trace.events.append(at)
        if event == "sched_switch":
            to = _NEXT.search(found[4])
            if to is not None:
                trace.switches.append(Switch(at, to[1], int(to[2]), int(to[3])))
        elif event.endswith("_entry"):
            begun = begun or at
        elif begun:
            trace.interrupts.append((begun, at))
            begun = 0
    return trace


def taken_apart(step: Mapping[str, Any], trace: Trace, names: Mapping[int, str]) -> dict[str, Any]:
    """Who ran between its instant and its end, in us; the longest time without any event, and who ran then."""
    begin = int(step["at_ns"])
    end = begin + round(1000 * step["total_us"])
    ran: Counter[str] = Counter()
    at = max(0, bisect_right(trace.switches, begin, key=lambda switch: switch.at) - 1)
    for k in range(at, len(trace.switches)):
        switch = trace.switches[k]
        until = trace.switches[k + 1].at if k + 1 < len(trace.switches) else end
        if switch.at >= end:
            break
        ran[_who(switch, names)] += max(0, min(until, end) - max(switch.at, begin))
    interrupted = sum(max(0, min(b, end) - max(a, begin)) for a, b in trace.interrupts if a < end and b > begin)
    silent, then = _silence(begin, end, trace, names)
    out = {
        "step": step["step"], "miss": step["miss"], "overrun": step["overrun"], "us": (end - begin) * 1e-3,
        "ran_us": {who: ns * 1e-3 for who, ns in ran.most_common() if ns}, "interrupts_us": interrupted * 1e-3,
        "silent_us": silent * 1e-3, "silent": then,
    }  # fmt: skip
    return out | {"culprit": culprit(out)}


def culprit(step: Mapping[str, Any]) -> str:
    """What of all this made the step a bad one, in words."""
    ran: Mapping[str, float] = step["ran_us"]
    whole = step["us"]
    own = {LOOP, CONTROLLERS, WITNESS, NOBODY}
    others = {who: us for who, us in ran.items() if who not in own}
    if not ran:
        return "not traced"
    if others and max(others.values()) >= 0.2 * whole:
        return max(others, key=lambda who: others[who])
    if step["interrupts_us"] >= 0.2 * whole:
        return INTERRUPTS
    if step["silent"] == NOBODY and step["silent_us"] >= 0.2 * whole:
        return "the host: no timer rang"
    if "machine" in (step["miss"], step["overrun"]):
        return "the host: the witness stood still as well"
    most = max(ran, key=lambda who: ran[who])
    return f"{most}, by itself" if most != NOBODY else "nobody ran"


def _silence(begin: int, end: int, trace: Trace, names: Mapping[int, str]) -> tuple[int, str]:
    low, high = bisect_right(trace.events, begin), bisect_right(trace.events, end)
    instants = [begin, *trace.events[low:high], end]
    length, at = max((b - a, a) for a, b in pairwise(instants))
    place = bisect_right(trace.switches, at, key=lambda switch: switch.at) - 1
    return length, _who(trace.switches[place], names) if place >= 0 else NOBODY


def _who(switch: Switch, names: Mapping[int, str]) -> str:
    if switch.pid == 0:
        return NOBODY
    known = names.get(switch.pid)
    return WITNESS if known == CONTROLLERS and switch.prio == _WITNESS_PRIO else known or switch.name


def tell(result: Mapping[str, Any]) -> None:
    """For a person."""
    print(
        f"commit {result['commit']}, load {result['load'][0]}; {result['rate_hz']:g} Hz, {result['steps']} steps on "
        f"core {result['core']}: {result['misses']} missed, {result['overruns']} overruns"
    )
    for who, steps in sorted(result["culprits"].items(), key=lambda item: -item[1]):
        print(f"  {steps:5d}  {who}")
    for step in result["bad_steps"][:40]:
        ran = ", ".join(f"{who} {us:.0f}" for who, us in step["ran_us"].items())
        print(f"step {step['step']}: {step['us']:.0f} us; ran: {ran}; interrupts {step['interrupts_us']:.0f}; longest "
              f"silence {step['silent_us']:.0f} ({step['silent']}): {step['culprit']}")  # fmt: skip
