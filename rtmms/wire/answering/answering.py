"""Running a compiled update on a link: the usual states in compiled code, all else by the link as ever."""

from __future__ import annotations

import select
import signal
import socket
import threading
from contextlib import suppress
from time import monotonic_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import APPLIED_POLICIES
from rtmms.base.errors import ModelError, uncoloured
from rtmms.base.jit import COMPILED
from rtmms.loop.kernels.miss_policies import address, view
from rtmms.wire.kernels import answer as a
from rtmms.wire.kernels.message_layout import OTHER, SEQ, STEP
from rtmms.wire.kernels.step import ANSWER, PATTERN
from rtmms.wire.kernels.system import AVAILABLE, EVENT_BYTES, SCRATCH_WORDS
from rtmms.wire.peer.client import Link
from rtmms.wire.peer.controller import Bound, memory_of
from rtmms.wire.protocol.message_layout import UnlikelyError, numbers, with_policy
from rtmms.wire.protocol.messages import packer
from rtmms.wire.stream.dealer import Dealer
from rtmms.wire.stream.listener import Alarm


class Signals:
    """Of this process; made and closed by its main thread."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)
        self._before = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)

    @classmethod
    def here(cls) -> Signals | None:
        """None where signals are not this thread's, or somebody else is woken by them already."""
        if threading.current_thread() is not threading.main_thread():
            return None
        found = cls()
        if found._before == -1:
            return found
        found.close()
        return None

    @property
    def descriptor(self) -> int:
        return self._here.fileno()

    def seen(self) -> None:
        """Python has run since."""
        with suppress(BlockingIOError):
            self._here.recv(4096)

    def close(self) -> None:
        """Twice does nothing."""
        if self._here.fileno() >= 0:
            signal.set_wakeup_fd(self._before)
            self._here.close()
            self._there.close()


_ROOM, _MOST = 65536, 8
_LOOK_NS, _RARELY_NS = 100_000_000, 1_000_000_000
"""Python runs, for the sake of signals, as often as that; rarely where a signal wakes us by itself."""
Words = npt.NDArray[np.int64]


def prepare(update: Bound) -> Any:
    """Compile a controller's update, for whoever calls it. ModelError for one that numba does not take."""
    compiled = update.compiled
    if not COMPILED or compiled.kernel is not None:
        return compiled.kernel
    import numba
    from numba.core.errors import NumbaError

    try:
        # with bounds checked: what a person writes must not reach memory that is not its own
        kernel = numba.njit(a.SIGNATURE, nogil=True, boundscheck=True, cache=_kept(compiled.function))(
            compiled.function
        )
    except (NumbaError, TypeError) as fault:
        raise ModelError(f"compiled update: numba does not take it: {_cause(uncoloured(fault))}") from fault
    if AVAILABLE:
        a.answer.compile((numba.types.int64,))  # or fetched from the cache: nothing of that once states come
    compiled.kernel = kernel
    return kernel


def _cause(text: str) -> str:
    """Of numba's pages, what is wrong, and the place in the user's file."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    said = [
        line
        for line in lines
        if not line.startswith(("Failed in", "During:", "<source", "def ", "^", ">>>", "-", "There"))
    ]
    places = [line for line in lines if line.startswith("File ") and "numba" not in line]
    cause = next((line for line in said if not line.startswith("File ")), lines[-1] if lines else "no reason given")
    return cause + (f" ({places[-1].rstrip(':')})" if places else "")


def _kept(function: Any) -> bool:
    """Whether it stands in a file, next to which numba can keep it."""
    return not function.__code__.co_filename.startswith("<")


def _alike(frame: bytes, rows: Words) -> list[tuple[npt.NDArray[np.uint8], Words]]:
    """Of a state: what it is known by, and what its like are in which another policy stood in, or a value was
    clamped."""
    found = [(np.frombuffer(frame, np.uint8).copy(), rows)]
    begin = int(rows[-1, 0])
    head, tail = frame[:begin], frame[begin:]
    with suppress(UnlikelyError):
        for policy in APPLIED_POLICIES:
            for clamped in (False, True):
                text = with_policy(tail, policy, clamped)
                if text != tail:
                    row = rows.copy()
                    row[-1, 1] = len(text)
                    found.append((np.frombuffer(head + text, np.uint8).copy(), row))
    return found


class Answering:
    """One controller on one link. `go` answers what it can; states that are told to `heard` are what it learns from."""

    def __init__(self, link: Link, controller: Any) -> None:
        update: Bound = controller.update
        kernel = prepare(update)
        self._link, self._controller = link, controller
        self._record = np.zeros(1, dtype=ANSWER)
        self._alarm: Alarm | None = None
        self._epoll: Any = None
        self._watched: tuple[int, ...] = ()
        self._socket: Any = None
        self._heard, self._known = b"", False
        self._answer_memory, self._at = view(self._record), address(self._record)
        self._names: tuple[str, ...] | None = None
        self._patterns: list[tuple[npt.NDArray[np.uint8], Words]] = []
        self._table = np.zeros(_MOST, dtype=PATTERN)
        self.able = AVAILABLE and kernel is not None and isinstance(link._at.data, Dealer)
        if not self.able:
            return
        result = kernel.overloads[a.SIGNATURE.args]
        self._scratch, self._buffer = np.zeros(SCRATCH_WORDS, dtype=np.int64), np.zeros(_ROOM, dtype=np.uint8)
        self._events = np.zeros(4 * EVENT_BYTES, dtype=np.uint8)
        self._values, self._memory = np.zeros(1), np.zeros(0)
        m = self._answer_memory
        m.update = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        m.scratch_at, m.buffer_at, m.buffer_bytes = (
            address(self._scratch),
            address(self._buffer),
            _ROOM,
        )
        m.events_at = address(self._events)
        self._alarm, self._epoll = Alarm(), select.epoll()
        self._epoll.register(self._alarm.descriptor, select.EPOLLIN)
        self._signals = Signals.here()
        self._look_ns = _LOOK_NS if self._signals is None else _RARELY_NS
        if self._signals is not None:
            self._epoll.register(self._signals.descriptor, select.EPOLLIN)
        m.epoll, m.alarm = self._epoll.fileno(), self._alarm.descriptor
        m.patterns_at = address(self._table)

    def go(self) -> None:
        """After a state was answered by Python: the next ones, until there is something that is for Python."""
        link, m = self._link, self._answer_memory
        dealer = link._at.data
        if not self.able or not isinstance(dealer, Dealer) or link.lost or link.ended or link._waiting is not None:
            return
        link.unusual()
        code = a.LOOK
        while code == a.LOOK and not (link.ended or link.lost or link.errors):
            line = dealer.line()
            if line < 0 or dealer is not link._at.data or not self._learn():
                return
            watched = (line, link._at.exchange.descriptor)
            plain = dealer.at_hand()
            if watched != self._watched or plain is not self._socket:  # another one may have the same number
                self._watch(watched)
                self._socket = plain
            code, answered = self._answer()
            if answered:
                link._step = m.step
                dealer.stands()
            if code == a.LOOK:
                assert self._alarm is not None
                self._alarm.at_ns = 0  # compiled code may have set it
                if self._signals is not None:
                    self._signals.seen()
                link.look_around()
        self._settle(code, dealer)

    def _answer(self) -> tuple[int, bool]:
        """Until there is more for Python than its signals: why, and whether anything was answered."""
        link, m, alarm, answered = self._link, self._answer_memory, self._alarm, False
        assert alarm is not None
        while True:
            now_ns = monotonic_ns()
            m.look_ns = now_ns + self._look_ns
            if alarm.at_ns < now_ns + self._look_ns:
                alarm.set(now_ns + 2 * self._look_ns)
            m.seq = link._seq
            code = a.answer(self._at)
            link._seq = m.seq
            answered = answered or m.answered > 0
            if code != a.PAUSE or self._controller.memory is not self._memory:
                return (a.LOOK if code == a.PAUSE else code), answered

    def _settle(self, code: int, dealer: Dealer) -> None:
        """What compiled code could not do."""
        link, m = self._link, self._answer_memory
        if code == a.UNREAD:
            if m.got:
                dealer.put_back(self._buffer[: m.got].tobytes())
        elif code == a.UNSENT:
            begin, size = m.frame_from, m.frame_bytes
            dealer.left(self._frame[begin + max(0, m.sent) : begin + size].tobytes())
        elif code == a.FAILED:  # again, for the error itself; a command, if there is none this time
            values, controller = self._values, self._controller
            controller.update.compiled.kernel(values[0], values[1:], self._memory, controller.command)
            link._step = m.step
            link.command(dict(zip(link.plant.granted, controller.command.tolist(), strict=True)))

    # --- what is usual ----------------------------------------------------------------------------------------------

    def _watch(self, watched: tuple[int, ...]) -> None:
        for descriptor in self._watched:
            with suppress(OSError):  # closed meanwhile
                self._epoll.unregister(descriptor)
        for descriptor in watched:
            self._epoll.register(descriptor, select.EPOLLIN)
        self._watched, self._answer_memory.data = watched, watched[0]

    def _learn(self) -> bool:
        """The pattern of the last state that Python read, and a command as it would be written now."""
        link, m, controller = self._link, self._answer_memory, self._controller
        if not link._heard:
            return False
        if link._heard is not self._heard:
            self._heard = link._heard
            self._known = self._learn_state(link.heard)
        if not self._known:
            return False
        memory, command = memory_of(controller), controller.command
        self._memory = memory
        m.memory_at, m.n_memory = address(memory), len(memory)
        m.command_at, m.n_command = address(command), len(command)
        m.near, m.lockstep, m.delay = link._at.near, link._lockstep, link.plant.delay
        return self._learn_command()

    def _learn_state(self, frame: bytes) -> bool:
        rows: list[tuple[int, int, int]] = []
        begin = count = 0
        purpose: dict[Any, int] = {("step",): STEP, ("deadline_ns",): SEQ, ("timestamp",): 0}
        try:
            found = numbers(frame)
        except UnlikelyError:
            return False
        if not set(purpose) <= {path for _, _, path in found} or found[0].path != ("step",):
            return False
        for at, size, path in found:
            target = purpose.get(path, OTHER)
            if path[0] == "outputs":
                count += 1
                target = count
            rows.append((begin, at - begin, target))
            begin = at + size
        rows.append((begin, len(frame) - begin, OTHER))
        m = self._answer_memory
        if count != m.n_outputs or not self._patterns:
            self._patterns.clear()
            self._values = np.zeros(1 + count)
            m.values_at, m.n_outputs = address(self._values), count
        self._patterns[:0] = _alike(frame, np.array(rows, dtype=np.int64))
        del self._patterns[_MOST:]
        for k, (pattern, row) in enumerate(self._patterns):
            self._table[k] = address(pattern), len(pattern), address(row), len(row)
        m.n_patterns = len(self._patterns)
        return True

    def _learn_command(self) -> bool:
        """The pieces of a command of all actuators."""
        names = self._link.plant.granted
        if self._names == names:
            return True
        message = packer()({"type": "command", "seq": 1, "step": 1, "values": dict.fromkeys(names, 0.5)})
        pieces, places, begin = b"", [0], 0
        for at, size, _ in numbers(message):
            pieces += message[begin:at]
            places.append(len(pieces))
            begin = at + size
        self._names, self._pieces = names, np.frombuffer(pieces, np.uint8).copy()
        self._places = np.array(places, dtype=np.int64)
        self._frame = np.zeros(a.HEAD + len(message) + 16, dtype=np.uint8)
        m = self._answer_memory
        m.frame_at, m.room = address(self._frame), len(self._frame)
        m.pieces_at, m.pieces_bytes = address(self._pieces), len(pieces)
        m.places_at = address(self._places)
        return len(places) == 3 + len(names)

    def close(self) -> None:
        """Twice does nothing."""
        if self._alarm is not None:
            self._alarm.close()
            self._epoll.close()
            self._alarm = None
            if self._signals is not None:
                self._signals.close()
        self.able = False
