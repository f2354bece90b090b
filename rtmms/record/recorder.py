"""The recorder of a run: an observer that hands each step to a ring, and the process that writes the ring to a file."""

from __future__ import annotations

import base64
import contextlib
import os
import select
import struct
import subprocess
import tempfile
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import MISS_WORDS, PARTS, UNDEFINED
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.memory import ARGUMENTS
from rtmms.base.processes import start_python
from rtmms.base.terminal import print_text
from rtmms.loop.kernels.miss_policies import address, view
from rtmms.loop.kernels.row import ROW_MEMORY
from rtmms.loop.log_row import START, STEP, Head
from rtmms.record.log_location import rescue
from rtmms.record.log_messages import NO_SEED, encode, signals, width
from rtmms.record.origin import plain
from rtmms.record.ring import Ring
from rtmms.record.writer import FULL, MOVED, READY, WRITTEN

if TYPE_CHECKING:
    from subprocess import Popen

    from rtmms.loop.loop import Loop
    from rtmms.loop.ports import Applied, Array
    from rtmms.plant.protocol import CompiledOutputs
    from rtmms.record.ring import Ring


SHORT_S = 1.0
"""Where nothing is to be hoped for: the disk is full, or the run is to end."""
STALL_REPORT_S = 2.0
STALLED_S = 30.0
_LOOK_S = 0.0005


def to_stderr(sentence: str) -> None:
    """At once; a standard error that is gone is no reason to end."""
    with contextlib.suppress(OSError, ValueError):
        print_text(sentence, err=True)


class Patience:
    """Waits for room in a ring.

    ending  whether the run is to end after this step
    report  receives once a stall when the writer has taken nothing for STALL_REPORT_S, and when it is given up for that
    reported  whether it has reported that rows are dropped
    """

    def __init__(self, ring: Ring, process: Popen[bytes], ending: Callable[[], bool]) -> None:
        self._ring, self._process, self._ending = ring, process, ending
        self.report: Callable[[str], None] = to_stderr
        self.reported = False
        self._given_up_at = -1  # rows that had left the ring

    def wait(self) -> None:
        """While rows leave the ring. Returns at once where they had stopped leaving, until one leaves again."""
        ring = self._ring
        if ring.tail == self._given_up_at:
            return
        tail, since, reported = ring.tail, time.monotonic(), False
        while not ring.room:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if ring.tail != tail:
                tail, since, reported = ring.tail, now, False
            if self._hopeless(now - since):
                self._given_up_at = tail
                return
            if now - since > STALL_REPORT_S and not reported:
                reported = True
                self.report(f"the recorder has written nothing for {STALL_REPORT_S:g} s: the run waits for it")

    def _hopeless(self, stalled_s: float) -> bool:
        if self._process.poll() is not None:
            return True
        if stalled_s > SHORT_S and (self._ring.note(FULL) or self._ending()):
            return True
        if stalled_s > STALL_REPORT_S and stopped(self._process.pid):
            self._give_up("was stopped (SIGSTOP)")
            return True
        if stalled_s > STALLED_S:
            self._give_up(f"has written nothing for {STALLED_S:g} s")
            return True
        return False

    def _give_up(self, why: str) -> None:
        self.reported = True
        self.report(f"the recorder {why}: the run goes on, and steps are dropped from the log")


def stopped(pid: int) -> bool:
    """Whether a process was stopped, by a signal or a debugger; False where the system does not report it."""
    try:
        # after the name, which may hold anything
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False


_UNKNOWN = 1 << 62


class WriterPipe:
    """Lines to the writer's standard input; what is noted in a step is sent by `settle`, and the writer takes no row of
    it before.

    ahead   step less the number of its row, where compiled code may write that
    """

    def __init__(self, ring: Ring, process: Popen[bytes]) -> None:
        assert process.stdin is not None
        self._ring, self._stream = ring, process.stdin
        self._notes: list[dict[str, Any]] = []
        self._unsaid = bytearray()
        self.ahead = _UNKNOWN

    def clear(self) -> None:
        """Steps are numbered anew."""
        self.ahead = _UNKNOWN

    def set_points(self, step: int, values: Mapping[str, Any]) -> None:
        """These are the set-points at the end of `step`: in the log, before its row, which may be in the ring."""
        after = self._ring.head if self.ahead == _UNKNOWN else min(self._ring.head, step - self.ahead)
        self._notes.append({"event": "set_points", "values": dict(values), "step": step, "after": after})

    def note(self, step: int, values: Mapping[str, Any]) -> None:
        """A peer's note between steps: in the log after the rows that are in the ring."""
        self._notes.append({"event": "note", "values": dict(values), "step": step, "after": self._ring.head})

    def settle(self) -> None:
        """Send what was noted; the writer may have the rows that are there now."""
        if self._notes:
            self._unsaid += b"".join(encode(note) + b"\n" for note in self._notes)
            self._notes.clear()
            self._send()
        self._ring.settle()

    def send(self, message: Mapping[str, Any], patience_s: float) -> None:
        """One line at once; a writer that has stopped listening is not waited for."""
        descriptor = self._stream.fileno()
        os.set_blocking(descriptor, False)
        self._unsaid += encode(dict(message)) + b"\n"
        until = time.monotonic() + patience_s
        while self._send() and time.monotonic() < until:
            select.select([], [descriptor], [], 0.1)

    def close(self) -> None:
        """There is no more."""
        with contextlib.suppress(OSError):
            self._stream.close()

    def _send(self) -> bool:
        """What the pipe takes now of what is to be sent; whether there is more."""
        try:
            del self._unsaid[: os.write(self._stream.fileno(), self._unsaid)]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._unsaid.clear()
        return bool(self._unsaid)


DEPTH_S = 4.0
PATIENT_ROWS = 512
MOST_BYTES = 1 << 26
START_S = 10.0
END_S = 10.0
_UNTIMED = (UNDEFINED,) * len(PARTS)
_NOBODY = (-1, -1, -1)


class CompiledRows:
    """The memory by which compiled code writes rows; see rtmms.loop.kernels.row.ROW_MEMORY."""

    def __init__(self) -> None:
        self._memory = np.zeros(1, dtype=ROW_MEMORY)
        self._arguments = np.zeros(ARGUMENTS, dtype=np.int64)

    def bind(self, ring: Ring, head: array[int], sources: Sequence[tuple[int, int]], account: CompiledOutputs) -> int:
        """Its address.  sources  address and count of the numbers of a row, piece by piece"""
        self._pieces = np.array(_joined(sources), dtype=np.int64)
        self._arguments[: len(account.arguments)] = account.arguments
        memory = view(self._memory)
        memory.made_at, memory.freed_at, memory.rows_at = ring.whereabouts()
        memory.row_bytes, memory.capacity = ring.row_bytes, ring.capacity
        memory.head_at, memory.n_head = head.buffer_info()
        memory.sources_at, memory.n_sources = address(self._pieces), len(self._pieces)
        memory.account, memory.arguments_at = account.function, address(self._arguments)
        return address(self._memory)


def _joined(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pieces of memory, those that lie next to each other as one."""
    found: list[tuple[int, int]] = []
    for at, count in parts:
        if found and found[-1][0] + 8 * found[-1][1] == at:
            found[-1] = (found[-1][0], found[-1][1] + count)
        else:
            found.append((at, count))
    return found


class Recorder:
    """Observer: every step into the ring. Start it when the plant is loaded, before the loop is raised.

    Where the plant's step and outputs are compiled, that step writes the row of a usual step (see StepRecorder).

    path      of the MCAP file, begun anew
    origin    what the log is of; JSON's own types. Needs dt, seed, actuators, outputs (see origin.describe)
    period_s  of wall time: the ring holds DEPTH_S of them; None where steps are not on a schedule
    patient   a step may wait for room in the ring as long as the disk takes rows: modes without a deadline
    patience  how long; its `report` receives a wait that is long
    due       (read by the loop) the next step: it sees all of them
    """

    def __init__(self, path: Path, origin: Mapping[str, Any], *, period_s: float | None, patient: bool) -> None:
        self.path, self.origin, self.patient = path, origin, patient
        outputs = signals(origin["outputs"])
        actuators = signals(origin["actuators"])
        names = [signal.name for signal in outputs]
        self._pick: Any = itemgetter(*names) if len(names) > 1 else lambda found: tuple(found[n] for n in names)
        self._no_command = bytes(8 * width(actuators))
        self._sizes = [signal.size for signal in outputs]
        self._first, self._last = names[0] if names else "", names[-1] if names else ""
        self._bytes, self._one_piece = 8 * width(outputs), False
        floats = width(actuators) + width(outputs)
        self.ring = Ring.create(len(Head._fields), floats, _capacity(period_s, 8 * (floats + len(Head._fields))))
        self._policies = {policy: at for at, policy in enumerate(MISS_WORDS)}
        self._names, self._head, self._compiled = names, array("q", bytes(8 * len(Head._fields))), CompiledRows()
        self._fill = struct.Struct(f"={len(Head._fields)}q").pack_into
        self._offered, self._offered_at = _NOBODY, -1
        self.due, self._plain, self._last_trouble = 0, True, ""
        self._loop: Loop | None = None
        self._seed = 0
        self._words = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the writer
        self.process = start_python(
            ["-m", "rtmms.record.writer", str(self.ring.descriptor), str(path)],  # it outlives us, to end the log
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._words, pass_fds=(self.ring.descriptor,),
            start_new_session=True,
        )  # fmt: skip
        self._pipe = WriterPipe(self.ring, self.process)
        self.patience = Patience(self.ring, self.process, lambda: self._loop is not None and bool(self._loop.ended))
        self._pipe.send(origin, START_S)

    def await_ready(self) -> None:
        """Until the writer has begun the file; ModelError when it cannot be written there."""
        until = time.monotonic() + START_S
        while not self.ring.note(READY):
            if self.process.poll() is not None:
                raise ModelError(self._last_words() or f"--log {self.path}: the writer ended before it began")
            if time.monotonic() > until:
                raise RtmmsError(f"--log {self.path}: the writer did not begin within {START_S:g} s")
            time.sleep(0.001)

    def bind(self, loop: Loop) -> None:
        """Called once, before the run: counters and timings are the loop's."""
        self._loop, self._statistics = loop, loop.statistics

    @property
    def first(self) -> int:
        """The step that the present run began with."""
        return 0 if self._loop is None else self._loop.first

    # --- the observer -----------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """The plant was reset: the log goes on, with a start of its own."""
        self.due, self._offered = 0, _NOBODY
        self._pipe.clear()

    def start(self, outputs: Mapping[str, Array]) -> None:
        """The state before the first step, here or after a reset."""
        assert self._loop is not None
        found = self._pick(outputs)
        if len(found) != len(self._sizes) or [np.size(value) for value in found] != self._sizes:
            raise ModelError("--log: the plant's outputs are not of the shapes that it declares")
        self._plain = all(isinstance(v, np.ndarray) and v.dtype == np.float64 and v.flags.c_contiguous for v in found)
        self._one_piece = self._plain and _one_piece(found)
        loop = self._loop
        self._seed = loop.seed if abs(loop.seed) < 1 << 63 else NO_SEED  # a peer's reset may name any
        head = (START, loop.step, time.monotonic_ns(), self._seed, loop.alterations, 0, 0, -1, -1, 0, 0,
                self._statistics.overruns, self._statistics.skipped, self.ring.dropped, -1,
                *_UNTIMED, *_NOBODY)  # fmt: skip
        self._push(head, self._no_command + self._flat(found))

    def after_step(
        self, step: int, time_s: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """One finished step."""
        policy = self._policies.get(applied.policy, len(MISS_WORDS))
        head = self._head_of(step, self._statistics.outcome, policy, applied)
        self._offered = _NOBODY
        base = outputs[self._first].base if self._one_piece else None
        if base is not None and base is outputs[self._last].base and base.nbytes == self._bytes:
            floats = b"".join((command, base))  # type: ignore[arg-type]
        elif self._plain:
            floats = b"".join((command, *self._pick(outputs)))  # type: ignore[arg-type]
        else:
            floats = command.tobytes() + self._flat(self._pick(outputs))
        self._push(head, floats)
        self.due = step + 1

    def _head_of(self, step: int, outcome: int, policy: int, applied: Applied) -> tuple[int, ...]:
        """The whole numbers of a row."""
        loop, statistics = self._loop, self._statistics
        times = statistics.last()
        return (
            STEP, step, time.monotonic_ns(), self._seed, loop.alterations, outcome, policy,  # type: ignore[union-attr]
            applied.seq, applied.step, applied.lateness_ns, applied.clamped, statistics.overruns, statistics.skipped,
            self.ring.dropped, step - 1 if times[2] >= 0 else -1, *times, *self._judged(),
        )  # fmt: skip

    def _judged(self) -> tuple[int, int, int]:
        """A bad step that was judged meanwhile: the one that was offered last, until a row has it."""
        attribution, head = self._loop.attribution, self.ring.head  # type: ignore[union-attr]
        if self._offered is _NOBODY or head != self._offered_at:
            self._offered = _NOBODY if attribution is None or not attribution.unreported else attribution.take_judged()
            self._offered_at = head
        return self._offered

    def row_memory(self, command: tuple[int, int], account: CompiledOutputs) -> int:
        """See Keeping."""
        found = [account.numbers.get(name) for name in self._names]
        parts = [part for part in found if part is not None]
        if [count for _, count in parts] != self._sizes or 8 * command[1] != len(self._no_command):
            return 0
        return self._compiled.bind(self.ring, self._head, [command, *parts], account)

    def ready(self, step: int) -> None:
        """See Keeping."""
        self._pipe.settle()
        self._pipe.ahead = step - self.ring.head
        assert self._loop is not None
        self._fill(self._head, 0, *self._head_of(step, 0, 0, self._loop.exchange.applied))

    def note_set_points(self, step: int, values: Mapping[str, Any]) -> None:
        """These are the set-points at the end of `step`. They are sent in the slack, or before a row that Python
        writes: they stand in the log before the row of the step all the same."""
        self._pipe.set_points(step, values)

    def note(self, step: int, values: Mapping[str, Any]) -> None:
        """See rtmms.loop.ports.Noting."""
        self._pipe.note(step, values)

    def _push(self, head: tuple[int, ...], floats: bytes) -> None:
        self._pipe.settle()
        if self.patient and not self.ring.room:
            self.patience.wait()
        self.ring.push(head, floats)

    def _flat(self, found: tuple[Any, ...]) -> bytes:
        return b"".join(np.ascontiguousarray(value, dtype=np.float64).tobytes() for value in found)

    # --- between steps, and after the last ---------------------------------------------------------------------------

    def watch(self) -> list[str]:
        """A sentence when something new is wrong: the writer is gone, or the disk is full."""
        self._pipe.settle()
        trouble = ""
        if self.process.poll() is not None:
            trouble = f"the writer of {self.path} ended; later steps are not in the log"
        elif self.ring.note(FULL):
            trouble = f"{self.path}: the disk takes no more; steps are dropped from the log"
        elif self.ring.dropped and not self.patience.reported:
            trouble = f"{self.path}: the disk is too slow; steps are dropped from the log"
        new = trouble != self._last_trouble and trouble != ""
        self._last_trouble = trouble or self._last_trouble
        return [trouble] if new else []

    def finish(self, end: Mapping[str, Any], state: bytes | None) -> dict[str, Any]:
        """Send the writer the end of the run and its cause, and wait for it. Returns what became of the log: file,
        rows, dropped, whole, and moved where it no longer was the file at that path.

        end     ended, message, steps, and what else is to stand in end.json
        state   the plant's snapshot at the end, None when it is not sound
        """
        self._pipe.settle()
        full = dict(end)
        if self._loop is not None:
            full["changes"] = plain(self._loop.changes)
        if self._loop is not None and self._loop.step:
            full |= {"timed": self._loop.step - 1, "times": dict(zip(PARTS, self._statistics.last(), strict=True))}
        if state is not None:
            full["state"] = base64.b64encode(state).decode()
        self._pipe.send(full, END_S)
        self._pipe.close()
        self._await_end()
        written, status = self.ring.note(WRITTEN), self.process.poll()
        lost = self.ring.head + self.ring.dropped - written
        if status is not None and status < 0:
            rescue(self.path)
        moved = {"moved": True} if status == MOVED else {}
        return {"file": str(self.path), "rows": written, "dropped": lost, "whole": status == 0, **moved}

    def _await_end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STALL_REPORT_S)
            return
        if not self.ring.note(FULL):  # which was reported
            self.patience.report(f"{self.path}: the recorder is not at its end; it is waited for, {END_S:g} s at most")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S - STALL_REPORT_S)

    def close(self) -> None:
        """Give up what is held; a writer that is still there ends by itself once it has written what it has."""
        self._pipe.close()
        try:
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            rescue(self.path)
        self._words.close()
        self.ring.close()

    def _last_words(self) -> str:
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _one_piece(found: Sequence[Any]) -> bool:
    """Whether the outputs lie one after the other in one array, as those of a compiled plant do: it is then copied as
    a whole, in a third of the time. A plant that lays them out so once does so always."""
    if not found or any(value.base is None or value.base is not found[0].base for value in found):
        return False
    at = found[0].base.ctypes.data
    for value in found:
        if value.ctypes.data != at:
            return False
        at += value.nbytes
    return bool(at == found[0].base.ctypes.data + found[0].base.nbytes)


def _capacity(period_s: float | None, row_bytes: int) -> int:
    """Rows: DEPTH_S of them on a schedule, within MOST_BYTES; a power of two."""
    rows = PATIENT_ROWS if period_s is None else max(PATIENT_ROWS, round(DEPTH_S / period_s))
    return min(1 << (rows - 1).bit_length(), 1 << (max(1, MOST_BYTES // row_bytes).bit_length() - 1))
