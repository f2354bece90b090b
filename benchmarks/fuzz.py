"""`rtmms bench fuzz`: frames that are almost right, by the million, into everything that parses them.

A parser is registered by name in the entry points of group rtmms.parsers, ours and third parties' alike: a function
without arguments that returns (read, samples). `read(frame: bytes)` is the code to try; what it raises is a finding, so
it catches the refusals that it promises; what it returns is counted, if it is a short text. `samples` are valid
frames, from which the others are made (benchmarks/mutation.py). The same seed gives the same frames again.

Each parser runs in processes of its own, which may crash or hang: the frame that was read then is told.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rtmms.child_process import KILL, end_with_parent, process_pool
from rtmms.errors import ModelError, UnknownNameError

from . import setting
from .mutation import Mutations
from .work import Lines, excess

GROUP = "rtmms.parsers"
_OURS = ("rtmms", "bridges", "benchmarks", "controllers")
_HANG_S = 60.0
_TELL_EVERY = 50_000
_SLOWEST = 8
_AGAIN = 5
_FINDINGS = 20
_OUTCOMES = 64
_WEIGHED = 16  # one frame of so many has its lines counted, which takes some ten times as long as to read it
_LIGHT = 64  # bytes that a frame is taken to be longer by, where the slowest is looked for: or it would be an empty one
_GONE_ON = 512  # bytes of a frame that others are made from: of longer ones most of the time would go into their length
_SETTLED = 0.2  # memory counts from when so much is done: caches and tables have their size then


@dataclass
class Task:
    """What one process does: a parser, so many frames, and the seed of its frames."""

    name: str
    frames: int
    seed: str


@dataclass
class Result:
    """What became of a task. slowest is the best of several readings, so that the machine's stalls fall out; most_lines
    are the lines of Python (work.py) of the frame, of most_lines_bytes, that came nearest to what it may take."""

    name: str
    frames: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, str]] = field(default_factory=list)
    slowest_us: float = 0.0
    slowest_frame: str = ""
    grown_bytes: int = 0
    weighed: int = 0
    most_lines: int = 0
    most_lines_bytes: int = 0


def parsers() -> dict[str, EntryPoint]:
    """The entry points of group rtmms.parsers by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def load(name: str) -> tuple[Callable[[bytes], object], list[bytes]]:
    """The reader and the samples of a parser; ModelError where it gives something else."""
    read, samples = parsers()[name].load()()
    if not callable(read) or not samples or not all(isinstance(sample, bytes) for sample in samples):
        raise ModelError(f"parser '{name}': expected (read, samples), a callable and a list of valid frames as bytes")
    return read, samples


def lacking(name: str) -> str:
    """The foreign module that a parser needs and that is not installed, '' when it has all. What is wrong in another
    way shows when it is tried."""
    try:
        load(name)
    except Exception as fault:  # also an error of our own that says which extra is wanted
        cause = fault if isinstance(fault, ModuleNotFoundError) else fault.__cause__ or fault.__context__
        module = (cause.name or "") if isinstance(cause, ModuleNotFoundError) else ""
        return "" if module.partition(".")[0] in _OURS else module
    return ""


def installed(names: list[str]) -> tuple[list[str], dict[str, str]]:
    """The parsers that can be tried, and the module that each of the others lacks. Found out in a process of its own,
    as what a parser imports is no affair of this one."""
    try:
        with process_pool(1) as pool:
            missing = dict(zip(names, pool.map(lacking, names), strict=True))
    except BrokenProcessPool:  # one of them ends its process: that is a finding, and will be made
        return names, {}
    return [name for name in names if not missing[name]], {name: what for name, what in missing.items() if what}


def fuzz(task: Task, tell: Callable[[int, bytes], None] = lambda done, frame: None) -> Result:
    """One task, in this process. tell(done, frame) is called before each frame is read."""
    read, samples = load(task.name)
    source, result, clock = Mutations(samples, task.seed), Result(task.name), time.perf_counter_ns
    slowest: list[tuple[int, bytes]] = []
    settled = int(_SETTLED * task.frames)
    before = _resident()
    bar, lines, heaviest = 0, Lines(), 0.0
    for done in range(task.frames):
        frame = source.frame()
        tell(done, frame)
        begun = clock()
        try:
            outcome = lines.call(read, frame) if done % _WEIGHED == 0 else read(frame)
        except Exception as fault:  # any: that is what we are looking for
            outcome = f"raised {type(fault).__name__}"
            if len(result.findings) < _FINDINGS:
                result.findings.append({"what": f"{type(fault).__name__}: {fault}"[:300], "frame": frame[:4096].hex()})
        took = clock() - begun
        if done % _WEIGHED == 0:
            heaviest = _weigh(result, lines.count, frame, source, heaviest)
        elif took > bar:
            slowest = sorted([*slowest, (took, frame)], key=lambda one: -one[0])[:_SLOWEST]
            bar = slowest[-1][0] if len(slowest) == _SLOWEST else 0
        if isinstance(outcome, str) and (outcome in result.outcomes or len(result.outcomes) < _OUTCOMES):
            result.outcomes[outcome] += 1
        if done == settled:
            before = _resident()
    result.frames, result.grown_bytes = task.frames, max(0, _resident() - before)
    for _, frame in slowest:
        again = min(_timed(read, frame) for _ in range(_AGAIN)) * 1e-3
        if again > result.slowest_us:
            result.slowest_us, result.slowest_frame = again, frame[:256].hex()
    return result


def _weigh(result: Result, lines: int, frame: bytes, source: Mutations, heaviest: float) -> float:
    """A frame that takes more lines than it may is a finding; one that takes more a byte than any before is gone on
    from, unless it is long. The most lines a byte of these so far."""
    over = excess(lines, len(frame))
    result.weighed += 1
    if result.weighed == 1 or over > excess(result.most_lines, result.most_lines_bytes):
        result.most_lines, result.most_lines_bytes = lines, len(frame)
    if over > 0 and len(result.findings) < _FINDINGS:
        result.findings.append({"what": f"{lines} lines for {len(frame)} bytes", "frame": frame[:4096].hex()})
    weight = lines / (len(frame) + _LIGHT)
    if weight <= heaviest or len(frame) > _GONE_ON:
        return heaviest
    source.keep(frame)
    return weight


def _timed(read: Callable[[bytes], object], frame: bytes) -> int:
    begun = time.perf_counter_ns()
    with contextlib.suppress(Exception):
        read(frame)
    return time.perf_counter_ns() - begun


def _resident() -> int:
    """Bytes of memory this process has; 0 where that is not told."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class _Worker:
    """A task in a process of its own, watched: its last frame lies in memory that outlives it."""

    def __init__(self, task: Task) -> None:
        context = multiprocessing.get_context("spawn")
        self.task = task
        self.page = context.RawArray("c", 1 << 17)
        self.told = context.RawArray("q", 2)  # frames begun, length of the last one
        self._near, far = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(task, self.page, self.told, far), daemon=True)
        self.process.start()
        far.close()
        self._seen, self._since = 0, time.monotonic()

    def result(self) -> Result | None:
        """None while it works; a death or a hang is a finding, with the frame that did it."""
        dead = not self.process.is_alive()  # before the answer is looked for, which may come in between
        if self._near.poll(0):
            with contextlib.suppress(EOFError):
                found: Result = self._near.recv()
                self.process.join()
                return found
        if self.told[0] != self._seen:
            self._seen, self._since = self.told[0], time.monotonic()
        hung = time.monotonic() - self._since > _HANG_S
        if not dead and not hung:
            return None
        what = f"the process ended with {self.process.exitcode}" if dead else f"no end within {_HANG_S:g} s"
        self.process.kill()
        self.process.join()
        frame = bytes(self.page.raw[: self.told[1]]).hex()
        return Result(self.task.name, self.told[0], findings=[{"what": what, "frame": frame}])


def _work(task: Task, page: Any, told: Any, answer: Any) -> None:
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return
    end_with_parent(KILL, parent.pid)
    buffer = memoryview(page).cast("B")

    def tell(done: int, frame: bytes) -> None:
        buffer[: len(frame)] = frame
        told[1] = len(frame)
        told[0] = done + 1

    answer.send(fuzz(task, tell))
    answer.close()


def measure(names: list[str], frames: int, seed: int, processes: int) -> dict[str, Any]:
    """So many frames into each parser, shared out among the processes; as one object."""
    per = max(1, -(-frames // processes)) if frames > _TELL_EVERY else frames
    tasks = [
        Task(name, min(per, frames - at), f"{seed}/{name}/{at}") for name in names for at in range(0, frames, per)
    ]  # fmt: skip
    begun, load_before = time.monotonic(), setting.load()
    waiting, working, results = list(tasks), list[_Worker](), list[Result]()
    while waiting or working:
        while waiting and len(working) < processes:
            working.append(_Worker(waiting.pop(0)))
        for worker in list(working):
            result = worker.result()
            if result is not None:
                working.remove(worker)
                results.append(result)
                print(f"{result.name}: {result.frames} frames, {len(result.findings)} findings", file=sys.stderr)
        time.sleep(0.02)
    return {
        "commit": setting.commit(), "machine": setting.machine(), "load": [load_before, setting.load()],
        "seed": seed, "processes": processes, "wall_s": round(time.monotonic() - begun, 1),
        "frames": sum(result.frames for result in results),
        "findings": sum(len(result.findings) for result in results),
        "parsers": {name: _together([r for r in results if r.name == name]) for name in names},
    }  # fmt: skip


def _together(results: list[Result]) -> dict[str, Any]:
    """The results of one parser's tasks as one."""
    slowest = max(results, key=lambda result: result.slowest_us)
    heaviest = max(results, key=lambda result: excess(result.most_lines, result.most_lines_bytes))
    outcomes = sum((result.outcomes for result in results), Counter[str]())
    return {
        "frames": sum(result.frames for result in results),
        "outcomes": dict(outcomes.most_common()),
        "findings": [finding for result in results for finding in result.findings],
        "slowest_us": round(slowest.slowest_us, 1), "slowest_frame": slowest.slowest_frame,
        "weighed": sum(result.weighed for result in results),
        "most_lines": heaviest.most_lines, "most_lines_bytes": heaviest.most_lines_bytes,
        "grown_kib": max(result.grown_bytes for result in results) >> 10,
    }  # fmt: skip


def tell(result: dict[str, Any]) -> None:
    """Print it for a reader."""
    print(
        f"{result['frames']} frames in {result['wall_s']} s by {result['processes']} processes, seed {result['seed']}"
    )
    heads = f"{'parser':<14}{'frames':>12}{'findings':>10}{'slowest us':>12}{'grown KiB':>11}"
    print(f"{heads}{'lines':>8}{'of bytes':>9}   outcomes")
    for name, one in result["parsers"].items():
        kinds = ", ".join(f"{outcome} {count}" for outcome, count in list(one["outcomes"].items())[:4])
        numbers = f"{one['frames']:>12}{len(one['findings']):>10}{one['slowest_us']:>12}{one['grown_kib']:>11}"
        numbers += f"{one['most_lines']:>8}{one['most_lines_bytes']:>9}"
        print(f"{name:<14}{numbers}   {kinds}")
        for finding in one["findings"][:5]:
            print(f"    {finding['what']}\n    frame {finding['frame'][:160]}")


def main(as_json: bool = False, frames: int = 1_000_000, what: str = "all", seed: int = 0, processes: int = 0) -> int:
    """The command; 0, or 1 when something was found.

    frames     for each parser;  what   a parser's name, several with commas, or all
    processes  0: one for each core
    """
    known = parsers()
    names = sorted(known) if what == "all" else [name.strip() for name in what.split(",")]
    for name in names:
        if name not in known:
            raise UnknownNameError("parser", name, known)
    if frames < 1:
        raise ModelError(f"bench fuzz: --frames: expected at least 1, got {frames}")
    names, skipped = installed(names)
    for name, module in skipped.items():
        print(f"{name}: skipped, it needs the module {module}, which is not installed", file=sys.stderr)
    if not names:
        raise ModelError("bench fuzz: none of these parsers can be tried: what they need is not installed")
    result = measure(names, frames, seed, processes or os.cpu_count() or 1) | {"skipped": skipped}
    if as_json:
        print(json.dumps(result))
    else:
        tell(result)
    return int(result["findings"] > 0)
