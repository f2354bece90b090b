"""Recorder of a run: an observer that passes each step to a ring, and the process that writes the ring to a file."""

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
from rtmms.base.override import override
from rtmms.base.pointers import ARGUMENTS, address
from rtmms.base.processes import start_python
from rtmms.base.structs import view
from rtmms.base.terminal import print_text
from rtmms.loop.log_row import START, STEP, RowHead
from rtmms.loop.ports import StepRecorder
from rtmms.loop.row_kernels import ROW_MEMORY
from rtmms.record.log_location import rescue
from rtmms.record.log_messages import NO_SEED, encode, signals, width
from rtmms.record.origin import to_json_types
from rtmms.record.records import MAX_NUMBERS
from rtmms.record.ring import Ring
from rtmms.record.writer import FULL, MOVED, READY, WRITTEN

if TYPE_CHECKING:
    from subprocess import Popen

    from rtmms.loop.loop import Loop
    from rtmms.loop.ports import Applied, Array
    from rtmms.plant.optional_protocols import CompiledOutputs
    from rtmms.record.ring import Ring


MAX_HOPELESS_STALL_S = 1.0
"""Longest stall without hope, s: the disk is full, or the run is to end."""
STALL_REPORT_S = 2.0
MAX_STALL_S = 30.0
_CHECK_S = 0.0005


def to_stderr(sentence: str) -> None:
    """Print a sentence to standard error at once; a closed standard error is ignored.

    Parameters
    ----------
    sentence : str
        The sentence.
    """
    with contextlib.suppress(OSError, ValueError):
        print_text(sentence, err=True)


class RingWait:
    """Waits for room in a ring.

    Parameters
    ----------
    ring : Ring
        The ring.
    process : Popen[bytes]
        The writer.
    ending : Callable[[], bool]
        Returns whether the run is to end after this step.

    Attributes
    ----------
    report : callable
        Called once a stall when the writer has taken nothing for STALL_REPORT_S, and when it is given up.
    reported : bool
        Whether it has reported that rows are dropped.
    """

    def __init__(self, ring: Ring, process: Popen[bytes], ending: Callable[[], bool]) -> None:
        self._ring, self._process, self._ending = ring, process, ending
        self.report: Callable[[str], None] = to_stderr
        self.reported = False
        self._given_up_at = -1  # number of rows that had left the ring

    def wait(self) -> None:
        """Wait while rows leave the ring.

        If they had stopped leaving, it returns at once, until one leaves again.
        """
        ring = self._ring
        if ring.tail == self._given_up_at:
            return
        tail, since, reported = ring.tail, time.monotonic(), False
        while not ring.room:
            time.sleep(_CHECK_S)
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
        if stalled_s > MAX_HOPELESS_STALL_S and (self._ring.note(FULL) or self._ending()):
            return True
        if stalled_s > STALL_REPORT_S and is_stopped(self._process.pid):
            self._give_up("was stopped (SIGSTOP)")
            return True
        if stalled_s > MAX_STALL_S:
            self._give_up(f"has written nothing for {MAX_STALL_S:g} s")
            return True
        return False

    def _give_up(self, why: str) -> None:
        self.reported = True
        self.report(f"the recorder {why}: the run goes on, and steps are dropped from the log")


def is_stopped(pid: int) -> bool:
    """Return whether a process was stopped, by a signal or a debugger.

    Parameters
    ----------
    pid : int
        Id of the process.

    Returns
    -------
    bool
        False if the system does not report it.
    """
    try:
        # after the process's name, which may contain anything
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):
        return False


_UNKNOWN = 1 << 62


class WriterPipe:
    """Lines to the writer's standard input.

    `settle` sends the notes of a step, and the writer takes no row of it before.

    Parameters
    ----------
    ring : Ring
        The ring.
    process : Popen[bytes]
        The writer.

    Attributes
    ----------
    ahead : int
        Step less the number of its row, if compiled code may write that row.
    """

    def __init__(self, ring: Ring, process: Popen[bytes]) -> None:
        assert process.stdin is not None
        self._ring, self._stream = ring, process.stdin
        self._notes: list[dict[str, Any]] = []
        self._unsent = bytearray()
        self.ahead = _UNKNOWN

    def clear(self) -> None:
        """Begin a new numbering of steps."""
        self.ahead = _UNKNOWN

    def set_points(self, step: int, values: Mapping[str, Any]) -> None:
        """Note the set-points at the end of a step; the log has them before its row, which may be in the ring.

        Parameters
        ----------
        step : int
            Index of the step.
        values : Mapping[str, Any]
            Set-points by name.
        """
        after = self._ring.head if self.ahead == _UNKNOWN else min(self._ring.head, step - self.ahead)
        self._notes.append({"event": "set_points", "values": dict(values), "step": step, "after": after})

    def note(self, step: int, values: Mapping[str, Any]) -> None:
        """Note values of a peer between steps; the log has them after the rows in the ring.

        Parameters
        ----------
        step : int
            Index of the next step.
        values : Mapping[str, Any]
            Values by name.
        """
        self._notes.append({"event": "note", "values": dict(values), "step": step, "after": self._ring.head})

    def settle(self) -> None:
        """Send the notes, so that the writer may take all present rows; while the pipe is full, it may not."""
        if self._notes:
            self._unsent += b"".join(encode(note) + b"\n" for note in self._notes)
            self._notes.clear()
        if not self._unsent or not self._send():
            self._ring.settle()

    def send(self, message: Mapping[str, Any], patience_s: float) -> None:
        """Send a line, without waiting for a writer that does not read.

        Parameters
        ----------
        message : Mapping[str, Any]
            The line as an object.
        patience_s : float
            Longest wait, s.
        """
        descriptor = self._stream.fileno()
        os.set_blocking(descriptor, False)
        self._unsent += encode(dict(message)) + b"\n"
        until = time.monotonic() + patience_s
        while self._send() and time.monotonic() < until:
            select.select([], [descriptor], [], 0.1)

    def close(self) -> None:
        """Close the pipe."""
        with contextlib.suppress(OSError):
            self._stream.close()

    def _send(self) -> bool:
        """Send as much as the pipe accepts now, and return whether there is more."""
        try:
            del self._unsent[: os.write(self._stream.fileno(), self._unsent)]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._unsent.clear()
        return bool(self._unsent)


DEPTH_S = 4.0
MIN_ROWS = 512
MAX_RING_BYTES = 1 << 26
START_S = 10.0
END_S = 10.0
_UNTIMED = (UNDEFINED,) * len(PARTS)
_NOBODY = (-1, -1, -1)


class CompiledRows:
    """Memory with which compiled code writes rows; see rtmms.loop.row_kernels.ROW_MEMORY."""

    def __init__(self) -> None:
        self._memory = np.zeros(1, dtype=ROW_MEMORY)
        self._arguments = np.zeros(ARGUMENTS, dtype=np.int64)

    def bind(self, ring: Ring, head: array[int], sources: Sequence[tuple[int, int]], account: CompiledOutputs) -> int:
        """Fill the memory, and return its address.

        Parameters
        ----------
        ring : Ring
            The ring.
        head : array[int]
            Whole numbers of the next row.
        sources : Sequence[tuple[int, int]]
            Address and count of the numbers of a row, piece by piece.
        account : CompiledOutputs
            Compiled outputs of the plant.

        Returns
        -------
        int
            The address.
        """
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
    """Return pieces of memory, adjacent ones as one."""
    result: list[tuple[int, int]] = []
    for at, count in parts:
        if result and result[-1][0] + 8 * result[-1][1] == at:
            result[-1] = (result[-1][0], result[-1][1] + count)
        else:
            result.append((at, count))
    return result


class Recorder(StepRecorder):
    """Observer that passes every step to the ring.

    Create it when the plant is loaded, before the loop's priority is raised. If the plant's step and outputs are
    compiled, that step writes the row of a usual step (see StepRecorder).

    Parameters
    ----------
    path : Path
        The MCAP file, which is begun anew.
    origin : Mapping[str, Any]
        Origin of the log in JSON's own types, with dt, seed, actuators and outputs (see origin.describe).
    period_s : float | None
        Wall time of a step, s: the ring has DEPTH_S of them. None for steps without a schedule.
    patient : bool
        Whether a step may wait for room in the ring while the disk accepts rows: modes without a deadline.

    Attributes
    ----------
    patience : RingWait
        Waits; its `report` receives a long wait.
    due : int
        The next step; it receives all of them. The loop reads it.
    """

    def __init__(self, path: Path, origin: Mapping[str, Any], *, period_s: float | None, patient: bool) -> None:
        self.path, self.origin, self.patient = path, origin, patient
        outputs = signals(origin["outputs"])
        actuators = signals(origin["actuators"])
        names = [signal.name for signal in outputs]
        self._pick: Any = itemgetter(*names) if len(names) > 1 else lambda by_name: tuple(by_name[n] for n in names)
        self._no_command = bytes(8 * width(actuators))
        self._sizes = [signal.size for signal in outputs]
        self._first, self._last = names[0] if names else "", names[-1] if names else ""
        self._bytes, self._one_piece = 8 * width(outputs), False
        floats = width(actuators) + width(outputs)
        if floats > MAX_NUMBERS:
            raise ModelError(
                f"--log {path}: expected a robot of at most {MAX_NUMBERS:,} numbers a step, got {floats:,}; --trace "
                "records its commands"
            )
        self.ring = Ring.create(len(RowHead._fields), floats, _capacity(period_s, 8 * (floats + len(RowHead._fields))))
        self._policies = {policy: at for at, policy in enumerate(MISS_WORDS)}
        self._names, self._head, self._compiled = names, array("q", bytes(8 * len(RowHead._fields))), CompiledRows()
        self._fill = struct.Struct(f"={len(RowHead._fields)}q").pack_into
        self._offered, self._offered_at = _NOBODY, -1
        self.due, self._plain, self._last_trouble = 0, True, ""
        self._loop: Loop | None = None
        self._seed = 0
        self._output_file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the writer
        self.process = start_python(
            # it continues after this process, to end the log
            ["-m", "rtmms.record.writer", str(self.ring.descriptor), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._output_file,
            pass_fds=(self.ring.descriptor,),
            start_new_session=True,
        )
        self._pipe = WriterPipe(self.ring, self.process)
        self.patience = RingWait(self.ring, self.process, lambda: self._loop is not None and bool(self._loop.ended))
        self._pipe.send(origin, START_S)

    def await_ready(self) -> None:
        """Wait until the writer has begun the file.

        Raises
        ------
        ModelError
            If the file cannot be written there.
        RtmmsError
            If the writer does not begin in time.
        """
        until = time.monotonic() + START_S
        while not self.ring.note(READY):
            if self.process.poll() is not None:
                raise ModelError(self._last_words() or f"--log {self.path}: the writer ended before it began")
            if time.monotonic() > until:
                raise RtmmsError(
                    f"--log {self.path}: the process that writes the log did not start within {START_S:g} s"
                )
            time.sleep(0.001)

    def bind(self, loop: Loop) -> None:
        """Connect the recorder to its loop, once before the run: counters and timings are the loop's.

        Parameters
        ----------
        loop : Loop
            The loop.
        """
        self._loop, self._statistics = loop, loop.statistics

    @property
    def first(self) -> int:
        """First step of the present run."""
        return 0 if self._loop is None else self._loop.first

    # --- the observer -----------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Continue the log with a new start, because the plant was reset."""
        self.due, self._offered = 0, _NOBODY
        self._pipe.clear()

    @override
    def start(self, outputs: Mapping[str, Array]) -> None:
        """Record the state before the first step, here or after a reset.

        Raises
        ------
        ModelError
            If their shapes differ from the declared ones.
        """
        assert self._loop is not None
        result = self._pick(outputs)
        if len(result) != len(self._sizes) or [np.size(value) for value in result] != self._sizes:
            raise ModelError("--log: the outputs of the plant have other shapes than it declares; correct observe()")
        self._plain = all(isinstance(v, np.ndarray) and v.dtype == np.float64 and v.flags.c_contiguous for v in result)
        self._one_piece = self._plain and _one_piece(result)
        loop = self._loop
        self._seed = loop.seed if abs(loop.seed) < 1 << 63 else NO_SEED  # a peer's reset may name any seed
        head = (START, loop.step, time.monotonic_ns(), self._seed, loop.alterations, 0, 0, -1, -1, 0, 0,
                self._statistics.overruns, self._statistics.skipped, self.ring.dropped, -1,
                *_UNTIMED, *_NOBODY)  # fmt: skip
        self._push(head, self._no_command + self._flat(result))

    @override
    def after_step(
        self, step: int, time_s: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Record a finished step."""
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
        """Return the whole numbers of a row."""
        loop, statistics = self._loop, self._statistics
        times = statistics.last()
        return (
            STEP, step, time.monotonic_ns(), self._seed, loop.alterations, outcome, policy,  # type: ignore[union-attr]
            applied.seq, applied.step, applied.lateness_ns, applied.clamped, statistics.overruns, statistics.skipped,
            self.ring.dropped, step - 1 if times[2] >= 0 else -1, *times, *self._judged(),
        )  # fmt: skip

    def _judged(self) -> tuple[int, int, int]:
        """Return a bad step that was judged meanwhile: the last offered one, until a row has it."""
        attribution, head = self._loop.attribution, self.ring.head  # type: ignore[union-attr]
        if self._offered is _NOBODY or head != self._offered_at:
            self._offered = _NOBODY if attribution is None or not attribution.unreported else attribution.take_judged()
            self._offered_at = head
        return self._offered

    @override
    def row_memory(self, command: tuple[int, int], account: CompiledOutputs) -> int:
        result = [account.numbers.get(name) for name in self._names]
        parts = [part for part in result if part is not None]
        if [count for _, count in parts] != self._sizes or 8 * command[1] != len(self._no_command):
            return 0
        return self._compiled.bind(self.ring, self._head, [command, *parts], account)

    @override
    def ready(self, step: int) -> None:
        self._pipe.settle()
        self._pipe.ahead = step - self.ring.head
        assert self._loop is not None
        self._fill(self._head, 0, *self._head_of(step, 0, 0, self._loop.exchange.applied))

    def note_set_points(self, step: int, values: Mapping[str, Any]) -> None:
        """Note the set-points at the end of a step.

        They are sent in the slack, or before a row that Python writes. The log has them before the row of the step in
        both cases.

        Parameters
        ----------
        step : int
            Index of the step.
        values : Mapping[str, Any]
            Set-points by name.
        """
        self._pipe.set_points(step, values)

    @override
    def note(self, step: int, values: Mapping[str, Any]) -> None:
        self._pipe.note(step, values)

    def _push(self, head: tuple[int, ...], floats: bytes) -> None:
        self._pipe.settle()
        if self.patient and not self.ring.room:
            self.patience.wait()
        self.ring.push(head, floats)

    def _flat(self, arrays: tuple[Any, ...]) -> bytes:
        return b"".join(np.ascontiguousarray(value, dtype=np.float64).tobytes() for value in arrays)

    # --- between steps, and after the last ---------------------------------------------------------------------------

    def watch(self) -> list[str]:
        """Return a sentence about new trouble: the writer is gone, or the disk is full.

        Returns
        -------
        list[str]
            The sentence; empty for none.
        """
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
        """Send the writer the end of the run and its cause, and wait for it.

        Parameters
        ----------
        end : Mapping[str, Any]
            ended, message, steps, and further contents of end.json.
        state : bytes | None
            The plant's snapshot at the end; None if it is not sound.

        Returns
        -------
        dict[str, Any]
            Result of the log: file, rows, dropped, whole, and moved if it no longer was the file at that path.
        """
        self._pipe.settle()
        full = dict(end)
        if self._loop is not None:
            full["changes"] = to_json_types(self._loop.changes)
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
        if not self.ring.note(FULL):  # a full disk was reported before
            self.patience.report(f"{self.path}: the recorder is not at its end; it is waited for, {END_S:g} s at most")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S - STALL_REPORT_S)

    def close(self) -> None:
        """Release all resources; a remaining writer ends by itself once it has written its rows."""
        self._pipe.close()
        try:
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            rescue(self.path)
        self._output_file.close()
        self.ring.close()

    def _last_words(self) -> str:
        self._output_file.seek(0)
        lines = self._output_file.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _one_piece(arrays: Sequence[Any]) -> bool:
    """Return whether the outputs are adjacent in one array, as those of a compiled plant.

    They are then copied as a whole, in a third of the time. A plant with this layout has it always.
    """
    if not arrays or any(value.base is None or value.base is not arrays[0].base for value in arrays):
        return False
    at = arrays[0].base.ctypes.data
    for value in arrays:
        if value.ctypes.data != at:
            return False
        at += value.nbytes
    return bool(at == arrays[0].base.ctypes.data + arrays[0].base.nbytes)


def _capacity(period_s: float | None, row_bytes: int) -> int:
    """Return the rows of a ring: DEPTH_S of them on a schedule, within MAX_RING_BYTES; a power of two."""
    rows = MIN_ROWS if period_s is None else max(MIN_ROWS, round(DEPTH_S / period_s))
    return min(1 << (rows - 1).bit_length(), 1 << (max(1, MAX_RING_BYTES // row_bytes).bit_length() - 1))
