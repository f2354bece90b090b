"""System calls of Linux by name, for compiled code.

Loading a kernel resolves the symbols, so that a kernel can be stored on disk. Pointers are whole numbers; errors return
-errno. No call is repeated after a signal (EINTR), because Python must see the signal first.
"""

from __future__ import annotations

import platform
import sys

from numba import carray, types

from rtmms.base.jit import COMPILED, kernel
from rtmms.base.pointers import pointer_to, words_at

AVAILABLE = COMPILED and sys.platform == "linux" and sys.maxsize > 1 << 32 and sys.byteorder == "little"
"""Whether compiled code can do the exchange on this platform."""

_I32 = types.int32
_I64 = types.int64
_clock_gettime = types.ExternalFunction("clock_gettime", _I32(_I32, _I64))
_clock_nanosleep = types.ExternalFunction("clock_nanosleep", _I32(_I32, _I32, _I64, _I64))
_timerfd_settime = types.ExternalFunction("timerfd_settime", _I32(_I32, _I32, _I64, _I64))
_epoll_wait = types.ExternalFunction("epoll_wait", _I32(_I32, _I64, _I32, _I32))
_poll = types.ExternalFunction("poll", _I32(_I64, _I64, _I32))
_send = types.ExternalFunction("send", _I64(_I32, _I64, _I64, _I32))
_recv = types.ExternalFunction("recv", _I64(_I32, _I64, _I64, _I32))
_errno_location = types.ExternalFunction("__errno_location", _I64())

_MONOTONIC = 1
_ABSOLUTE = 1
_SECOND = 1_000_000_000
_DONTWAIT = 0x40
_NOSIGNAL = 0x4000
EAGAIN = 11
EINTR = 4
IN = 1
_EVENT_BYTES, _DATA = (12, 4) if platform.machine() in ("x86_64", "AMD64") else (16, 8)
EVENT_BYTES = _EVENT_BYTES
"""Bytes of struct epoll_event, which is packed on x86-64 alone."""


_shorts_at = pointer_to(types.int32)


@kernel(inline=True)
def _errno() -> int:
    return int(carray(_shorts_at(_errno_location()), (1,))[0])


@kernel(inline=True)
def now_ns(scratch: int) -> int:
    """Return the time of CLOCK_MONOTONIC.

    Parameters
    ----------
    scratch : int
        Address of four words that may be written.

    Returns
    -------
    int
        Time, ns.
    """
    _clock_gettime(_MONOTONIC, scratch)
    w = carray(words_at(scratch), (2,))
    return w[0] * _SECOND + w[1]


@kernel(inline=True)
def sleep_until(instant_ns: int, scratch: int) -> int:
    """Sleep until an instant.

    Parameters
    ----------
    instant_ns : int
        Instant of CLOCK_MONOTONIC, ns.
    scratch : int
        Address of four words that may be written.

    Returns
    -------
    int
        0, or EINTR if a signal came first.
    """
    w = carray(words_at(scratch), (2,))
    w[0], w[1] = instant_ns // _SECOND, instant_ns % _SECOND
    return int(_clock_nanosleep(_MONOTONIC, _ABSOLUTE, scratch, 0))


@kernel(inline=True)
def arm(alarm: int, instant_ns: int, scratch: int) -> None:
    """Set a timerfd to expire once, and clear an earlier expiry.

    Parameters
    ----------
    alarm : int
        Descriptor of the timerfd.
    instant_ns : int
        Instant of CLOCK_MONOTONIC, ns.
    scratch : int
        Address of four words that may be written.
    """
    w = carray(words_at(scratch), (4,))
    w[0], w[1], w[2], w[3] = 0, 0, instant_ns // _SECOND, instant_ns % _SECOND
    _timerfd_settime(alarm, _ABSOLUTE, scratch, 0)


@kernel(inline=True)
def wait(epoll: int, events: int, maximum: int, timeout_ms: int) -> int:
    """Wait for events.

    Parameters
    ----------
    epoll : int
        Descriptor of the epoll.
    events : int
        Address for the events.
    maximum : int
        Most events to write.
    timeout_ms : int
        Time-out, ms; -1 for none.

    Returns
    -------
    int
        Number of events written, or -errno.
    """
    result = int(_epoll_wait(epoll, events, maximum, timeout_ms))
    return result if result >= 0 else -_errno()


@kernel(inline=True)
def wait_for_one(descriptor: int, alarm: int, room: int) -> int:
    """Wait for an event of a descriptor, or for the alarm.

    Parameters
    ----------
    descriptor, alarm : int
        Descriptors to wait on.
    room : int
        Address of 16 bytes that may be written.

    Returns
    -------
    int
        Events of the descriptor (IN or an error), 0 if only the alarm expired, or -errno.
    """
    w = carray(_shorts_at(room), (4,))
    # struct pollfd: lower half: requested events; upper half: those that came
    w[0], w[1], w[2], w[3] = descriptor, IN, alarm, IN
    result = int(_poll(room, 2, -1))
    return (int(w[1]) >> 16) & 0xFFFF if result >= 0 else -_errno()


@kernel(inline=True)
def event_flags(events: int, k: int) -> int:
    """Return the flags of an event.

    Parameters
    ----------
    events : int
        Address of the events.
    k : int
        Index of the event.

    Returns
    -------
    int
        The flags of epoll.
    """
    return int(carray(_shorts_at(events + k * _EVENT_BYTES), (1,))[0])


@kernel(inline=True)
def event_descriptor(events: int, k: int) -> int:
    """Return the descriptor of an event.

    Parameters
    ----------
    events : int
        Address of the events.
    k : int
        Index of the event.

    Returns
    -------
    int
        The descriptor.
    """
    return int(carray(_shorts_at(events + k * _EVENT_BYTES + _DATA), (1,))[0])


@kernel(inline=True)
def send(descriptor: int, data: int, size: int) -> int:
    """Send bytes without waiting.

    Parameters
    ----------
    descriptor : int
        Descriptor of the socket.
    data, size : int
        Address and number of the bytes.

    Returns
    -------
    int
        Number of bytes that left, or -errno.
    """
    sent = int(_send(descriptor, data, size, _DONTWAIT | _NOSIGNAL))
    return sent if sent >= 0 else -_errno()


@kernel(inline=True)
def receive(descriptor: int, buffer: int, size: int) -> int:
    """Receive bytes without waiting.

    Parameters
    ----------
    descriptor : int
        Descriptor of the socket.
    buffer, size : int
        Address and size of the buffer.

    Returns
    -------
    int
        Number of bytes, 0 if the other end has closed, or -errno.
    """
    got = int(_recv(descriptor, buffer, size, _DONTWAIT))
    return got if got >= 0 else -_errno()


SCRATCH_WORDS = 16
"""Words of the kernels' scratch memory; the first 4 are for system calls."""
INTEGERS_AT = 32
"""Byte of the scratch memory at which the integers of a message begin."""
