"""Compiled updates on a link.

Compiled code answers the usual states. The link handles everything else in Python.
"""

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

from rtmms.base.errors import ModelError, uncoloured
from rtmms.base.jit import COMPILED
from rtmms.base.pointers import address
from rtmms.base.structs import view
from rtmms.wire.kernels import answer as a
from rtmms.wire.kernels.step import ANSWER
from rtmms.wire.kernels.step_message_layout import CompiledLayout
from rtmms.wire.kernels.system import AVAILABLE, EVENT_BYTES, SCRATCH_WORDS
from rtmms.wire.peer.client import Link
from rtmms.wire.peer.controller import CompiledUpdate, memory_of
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.wire.protocol.step_message_layout import command_layout, state_layout
from rtmms.wire.stream.dealer import Dealer
from rtmms.wire.stream.listener import Alarm
from rtmms.wire.stream.zmtp import frame_head


class Signals:
    """Wake-up descriptor for signals of this process; the main thread creates and closes it."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)
        self._before = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)

    @classmethod
    def here(cls) -> Signals | None:
        """Return the wake-up descriptor for the calling thread.

        Returns
        -------
        Signals | None
            None if this is not the main thread, or if another wake-up descriptor is set.
        """
        if threading.current_thread() is not threading.main_thread():
            return None
        result = cls()
        if result._before == -1:
            return result
        result.close()
        return None

    @property
    def descriptor(self) -> int:
        """File descriptor that becomes readable after a signal."""
        return self._here.fileno()

    def clear_descriptor(self) -> None:
        """Clear the descriptor, because Python has run since the signal."""
        with suppress(BlockingIOError):
            self._here.recv(4096)

    def close(self) -> None:
        """Restore the earlier wake-up descriptor; a second call does nothing."""
        if self._here.fileno() >= 0:
            signal.set_wakeup_fd(self._before)
            self._here.close()
            self._there.close()


_BUFFER_BYTES = 65536
_SIGNAL_CHECK_NS = 100_000_000
"""Interval at which Python runs for signals, ns."""
_RARE_SIGNAL_CHECK_NS = 1_000_000_000
"""The same interval if a signal wakes the controller by itself, ns."""
Int64Array = npt.NDArray[np.int64]


def prepare(update: CompiledUpdate) -> Any:
    """Compile a controller's update.

    Parameters
    ----------
    update : CompiledUpdate
        The bound update.

    Returns
    -------
    Any
        The kernel; None if this computer does not compile.

    Raises
    ------
    ModelError
        If numba does not accept the update.
    """
    compiled = update.compiled
    if not COMPILED or compiled.kernel is not None:
        return compiled.kernel
    import numba
    from numba.core.errors import NumbaError

    try:
        # With bounds checked: a user's code must not reach memory outside its arrays.
        kernel = numba.njit(a.SIGNATURE, nogil=True, boundscheck=True, cache=_is_in_file(compiled.function))(
            compiled.function
        )
    except (NumbaError, TypeError) as fault:
        raise ModelError(f"compiled update: numba cannot compile it: {_cause(uncoloured(fault))}") from fault
    if AVAILABLE:
        a.answer.compile((numba.types.int64,))  # Compile, or load from the cache, before states come.
    compiled.kernel = kernel
    return kernel


def _cause(text: str) -> str:
    """Return the cause of a numba error, with the place in the user's file."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    reported = [
        line
        for line in lines
        if not line.startswith(("Failed in", "During:", "<source", "def ", "^", ">>>", "-", "There"))
    ]
    places = [line for line in lines if line.startswith("File ") and "numba" not in line]
    cause = next((line for line in reported if not line.startswith("File ")), lines[-1] if lines else "no reason given")
    return cause + (f" ({places[-1].rstrip(':')})" if places else "")


def _is_in_file(function: Any) -> bool:
    """Return whether a function is in a file, next to which numba can store it."""
    return not function.__code__.co_filename.startswith("<")


class Answering:
    """Compiled controller on one link.

    Parameters
    ----------
    link : Link
        Link to the plant.
    controller : Any
        Controller whose update is compiled.

    Attributes
    ----------
    able : bool
        Whether compiled code can answer here.
    """

    def __init__(self, link: Link, controller: Any) -> None:
        update: CompiledUpdate = controller.update
        kernel = prepare(update)
        self._link, self._controller = link, controller
        self._record = np.zeros(1, dtype=ANSWER)
        self._alarm: Alarm | None = None
        self._epoll: Any = None
        self._watched: tuple[int, ...] = ()
        self._socket: Any = None
        self._plant: PlantInfo | None = None
        self._answer_memory, self._at = view(self._record), address(self._record)
        self.able = AVAILABLE and kernel is not None and isinstance(link._at.data, Dealer)
        if not self.able:
            return
        result = kernel.overloads[a.SIGNATURE.args]
        self._scratch, self._buffer = np.zeros(SCRATCH_WORDS, dtype=np.int64), np.zeros(_BUFFER_BYTES, dtype=np.uint8)
        self._events = np.zeros(4 * EVENT_BYTES, dtype=np.uint8)
        self._values, self._memory = np.zeros(1), np.zeros(0)
        m = self._answer_memory
        m.update = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        m.scratch_at, m.buffer_at, m.buffer_bytes = (
            address(self._scratch),
            address(self._buffer),
            _BUFFER_BYTES,
        )
        m.events_at = address(self._events)
        self._alarm, self._epoll = Alarm(), select.epoll()
        self._epoll.register(self._alarm.descriptor, select.EPOLLIN)
        self._signals = Signals.here()
        self._look_ns = _SIGNAL_CHECK_NS if self._signals is None else _RARE_SIGNAL_CHECK_NS
        if self._signals is not None:
            self._epoll.register(self._signals.descriptor, select.EPOLLIN)
        m.epoll, m.alarm = self._epoll.fileno(), self._alarm.descriptor

    def go(self) -> None:
        """Answer states in compiled code until Python is needed.

        Call it after Python has answered a state.
        """
        link, m = self._link, self._answer_memory
        dealer = link._at.data
        if not self.able or not isinstance(dealer, Dealer) or link.lost or link.ended or link._waiting is not None:
            return
        link.unusual()
        code = a.LOOK
        while code == a.LOOK and not (link.ended or link.lost or link.errors):
            line = dealer.line()
            if line < 0 or dealer is not link._at.data or not link._heads:
                return
            self._fill()
            watched = (line, link._at.exchange.descriptor)
            plain = dealer.at_hand()
            if watched != self._watched or plain is not self._socket:  # another socket may have the same number
                self._watch(watched)
                self._socket = plain
            code, answered = self._answer()
            if answered:
                link._step = m.step
                dealer.stands()
            if code == a.LOOK:
                assert self._alarm is not None
                self._alarm.at_ns = 0  # compiled code may have set the alarm
                if self._signals is not None:
                    self._signals.clear_descriptor()
                link.look_around()
        self._settle(code, dealer)

    def _answer(self) -> tuple[int, bool]:
        """Answer until Python has more to do than to handle signals.

        The result is the reason, and whether any state was answered.
        """
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
        """Finish in Python what compiled code could not do."""
        link, m = self._link, self._answer_memory
        if code == a.UNREAD:
            if m.got:
                dealer.put_back(self._buffer[: m.got].tobytes())
        elif code == a.UNSENT:
            begin, size = m.frame_from, m.frame_bytes
            dealer.left(self._frame[begin + max(0, m.sent) : begin + size].tobytes())
        elif code == a.FAILED:  # call the update again for its error; if it returns this time, send its command
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

    def _fill(self) -> None:
        """Pass the layouts of this plant's messages and the controller's arrays to compiled code."""
        link, m, controller = self._link, self._answer_memory, self._controller
        if link.plant is not self._plant:
            self._set_plant(link.plant)
        memory, command = memory_of(controller), controller.command
        self._memory = memory
        m.memory_at, m.n_memory = address(memory), len(memory)
        m.command_at, m.n_command = address(command), len(command)
        m.near, m.lockstep, m.delay = link._at.near, link._lockstep, link.plant.delay

    def _set_plant(self, plant: PlantInfo) -> None:
        state = state_layout([plant.output(name) for name in plant.selected])
        command = command_layout(plant.granted)
        head, body = frame_head(len(command.body)), command.body
        self._plant, self._layouts = plant, (CompiledLayout(state), CompiledLayout(command))
        self._values = np.zeros(len(state.reals))
        self._frame = np.frombuffer(bytes(a.HEAD - len(head)) + head + body, np.uint8).copy()
        m = self._answer_memory
        m.state_layout_at, m.command_layout_at = (layout.at for layout in self._layouts)
        m.values_at, m.n_outputs = address(self._values), len(self._values) - 1
        m.frame_at, m.frame_from, m.frame_bytes = address(self._frame), a.HEAD - len(head), len(head) + len(body)

    def close(self) -> None:
        """Close the alarm and the descriptors; a second call does nothing."""
        if self._alarm is not None:
            self._alarm.close()
            self._epoll.close()
            self._alarm = None
            if self._signals is not None:
                self._signals.close()
        self.able = False
