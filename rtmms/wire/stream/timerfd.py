"""The timer of the kernel by which a deadline is kept: a descriptor that can be read from an instant on."""

from __future__ import annotations

import ctypes
import os
import sys

_CLOCK_MONOTONIC, _ABSOLUTE = 1, 1
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0, getattr(os, "O_CLOEXEC", 0)


class Alarm:
    """A descriptor that is readable from an instant on.

    at_ns   the instant, on CLOCK_MONOTONIC; 0: none
    """

    def __init__(self) -> None:
        """OSError where there is no timerfd."""
        if sys.platform != "linux":
            raise OSError("timerfd: Linux only")
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._settime.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self.descriptor = int(libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK | _CLOEXEC))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._when = (ctypes.c_long * 4)()  # struct itimerspec: interval (0: once), value; each s, ns
        self._address = ctypes.addressof(self._when)
        self.at_ns = 0

    def set(self, instant_ns: int) -> None:
        """At this instant, in place of any earlier one; 0 for never. What has rung is quiet again."""
        self._when[2], self._when[3] = divmod(instant_ns, 1_000_000_000)
        self._settime(self.descriptor, _ABSOLUTE, self._address, None)
        self.at_ns = instant_ns

    def close(self) -> None:
        os.close(self.descriptor)
