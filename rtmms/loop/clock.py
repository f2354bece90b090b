"""Clocks the loop can run by: the machine's monotonic one, and one that a test moves by hand."""

from __future__ import annotations

from time import monotonic_ns, sleep
from typing import Protocol


class Clock(Protocol):
    """Nanoseconds on CLOCK_MONOTONIC, and a sleep that ends at an instant, not after a while."""

    def now(self) -> int:
        """The present instant in ns."""

    def sleep_until(self, instant_ns: int) -> int:
        """Return at or after instant_ns, at once when it is past; gives the instant of the return, read first of all:
        what comes next is cold and costs more than the reading."""


class MonotonicClock:
    """The machine's own.

    CPython's time.sleep waits by clock_nanosleep with an absolute CLOCK_MONOTONIC deadline and goes on sleeping after a
    signal. Measured against a direct call of clock_nanosleep through ctypes, both at SCHED_FIFO with a 1 ms period:
    median 14.8 against 14.7 us, p99 19 against 24 us. So the portable one is kept.
    """

    now = staticmethod(monotonic_ns)

    def sleep_until(self, instant_ns: int) -> int:
        now_ns = monotonic_ns()
        # sleep rounds to the nearest ns, and may so return one early: the loop measures lateness from the instant
        while now_ns < instant_ns:
            sleep((instant_ns - now_ns) * 1e-9)
            now_ns = monotonic_ns()
        return now_ns


class FakeClock:
    """Stands still until it is told to move: what the test bench and the dry examples run by."""

    def __init__(self, start_ns: int = 0) -> None:
        self.ns = start_ns
        self.wake_late_ns = 0

    def now(self) -> int:
        return self.ns

    def sleep_until(self, instant_ns: int) -> int:
        if instant_ns > self.ns:
            self.ns = instant_ns + self.wake_late_ns
        return self.ns

    def advance(self, ns: int) -> None:
        """Let ns pass, as a plant's step or a peer's answer would."""
        self.ns += ns
