"""System calls of Linux by name, for compiled code: symbols are found when a kernel is loaded, so that it can be kept
on disk. Pointers pass as the whole numbers that they are; errors are returned as -errno.

Nothing here is retried after a signal (EINTR): Python must see it first.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

from numba import carray, types
from numba.extending import intrinsic

from rtmms.base.jit import COMPILED, kernel

AVAILABLE = COMPILED and sys.platform == "linux" and sys.maxsize > 1 << 32 and sys.byteorder == "little"
"""Whether compiled code can do here what the exchange needs."""

_I32, _I64 = types.int32, types.int64
_clock_gettime = types.ExternalFunction("clock_gettime", _I32(_I32, _I64))
_clock_nanosleep = types.ExternalFunction("clock_nanosleep", _I32(_I32, _I32, _I64, _I64))
_timerfd_settime = types.ExternalFunction("timerfd_settime", _I32(_I32, _I32, _I64, _I64))
_epoll_wait = types.ExternalFunction("epoll_wait", _I32(_I32, _I64, _I32, _I32))
_poll = types.ExternalFunction("poll", _I32(_I64, _I64, _I32))
_send = types.ExternalFunction("send", _I64(_I32, _I64, _I64, _I32))
_recv = types.ExternalFunction("recv", _I64(_I32, _I64, _I64, _I32))
_errno_location = types.ExternalFunction("__errno_location", _I64())

_MONOTONIC, _ABSOLUTE, _SECOND = 1, 1, 1_000_000_000
_DONTWAIT, _NOSIGNAL = 0x40, 0x4000
EAGAIN, EINTR = 11, 4
IN = 1
_EVENT_BYTES, _DATA = (12, 4) if platform.machine() in ("x86_64", "AMD64") else (16, 8)
EVENT_BYTES = _EVENT_BYTES
"""struct epoll_event is packed on x86-64 alone."""


def _pointer_to(dtype: Any) -> Any:
    @intrinsic
    def cast(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(types.CPointer(dtype)))

        return types.CPointer(dtype)(address), generate

    return cast


numbers_at, words_at, bytes_at = _pointer_to(types.float64), _pointer_to(types.int64), _pointer_to(types.uint8)
_shorts_at = _pointer_to(types.int32)
"""An address as a pointer, for carray. Who owns the memory keeps it in place."""


@kernel(inline=True)
def _errno() -> int:
    return int(carray(_shorts_at(_errno_location()), (1,))[0])


@kernel(inline=True)
def now_ns(scratch: int) -> int:
    """CLOCK_MONOTONIC.  scratch: the address of four words that may be written, as in the others."""
    _clock_gettime(_MONOTONIC, scratch)
    w = carray(words_at(scratch), (2,))
    return w[0] * _SECOND + w[1]


@kernel(inline=True)
def sleep_until(instant_ns: int, scratch: int) -> int:
    """0, or EINTR when a signal came first."""
    w = carray(words_at(scratch), (2,))
    w[0], w[1] = instant_ns // _SECOND, instant_ns % _SECOND
    return int(_clock_nanosleep(_MONOTONIC, _ABSOLUTE, scratch, 0))


@kernel(inline=True)
def arm(alarm: int, instant_ns: int, scratch: int) -> None:
    """The timerfd rings at this instant, once; what has rung is quiet again."""
    w = carray(words_at(scratch), (4,))
    w[0], w[1], w[2], w[3] = 0, 0, instant_ns // _SECOND, instant_ns % _SECOND
    _timerfd_settime(alarm, _ABSOLUTE, scratch, 0)


@kernel(inline=True)
def wait(epoll: int, events: int, most: int, timeout_ms: int) -> int:
    """How many events were written, at most `most`, -1: for ever; or -errno."""
    found = int(_epoll_wait(epoll, events, most, timeout_ms))
    return found if found >= 0 else -_errno()


@kernel(inline=True)
def wait_for_one(descriptor: int, alarm: int, room: int) -> int:
    """Until there is something at the descriptor, or the alarm rings: what there is at the descriptor (IN or worse), 0
    where it was the alarm alone; or -errno.  room: the address of 16 bytes that may be written."""
    w = carray(_shorts_at(room), (4,))
    w[0], w[1], w[2], w[3] = descriptor, IN, alarm, IN  # struct pollfd: events are the lower half, what came the upper
    found = int(_poll(room, 2, -1))
    return (int(w[1]) >> 16) & 0xFFFF if found >= 0 else -_errno()


@kernel(inline=True)
def event_flags(events: int, k: int) -> int:
    return int(carray(_shorts_at(events + k * _EVENT_BYTES), (1,))[0])


@kernel(inline=True)
def event_descriptor(events: int, k: int) -> int:
    return int(carray(_shorts_at(events + k * _EVENT_BYTES + _DATA), (1,))[0])


@kernel(inline=True)
def send(descriptor: int, data: int, size: int) -> int:
    """Bytes that left, or -errno; never waits."""
    sent = int(_send(descriptor, data, size, _DONTWAIT | _NOSIGNAL))
    return sent if sent >= 0 else -_errno()


@kernel(inline=True)
def receive(descriptor: int, buffer: int, size: int) -> int:
    """Bytes that came, 0 when the other end has closed, or -errno; never waits."""
    got = int(_recv(descriptor, buffer, size, _DONTWAIT))
    return got if got >= 0 else -_errno()


SCRATCH_WORDS, INTEGERS_AT = 16, 32
"""Room that kernels write into: 4 words of a system call; from byte INTEGERS_AT on the integers of a message."""
