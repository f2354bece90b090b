"""Clocks of the loop, and the absolute schedule of its steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import monotonic_ns, sleep
from typing import Protocol

from rtmms.base.errors import ModelError

# Clocks the loop can run by: the machine's monotonic one, and one that a test moves by hand.


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
    """Moves on request only: the clock of the test bench and of the dry examples."""

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


# When each step is due: instants on an absolute schedule, and the deadline within a period.


GUARD_S = 50e-6
"""What is kept free between the plant's measured p99.9 and the end of the period."""


class Schedule:
    """Step k is due at t_k = origin + (k + dropped) * period: never a sum of rounded periods, so phase cannot drift.

    period_ns  float: the period need not be a whole number of ns
    dropped    whole periods that were skipped or slipped so far (a slip may drop a part of one)
    """

    __slots__ = ("deadline_ns", "dropped", "origin_ns", "period_ns")

    def __init__(self, period_ns: float, deadline_ns: int) -> None:
        self.period_ns = float(period_ns)
        self.deadline_ns = int(deadline_ns)
        self.origin_ns = 0
        self.dropped: float = 0

    def anchor(self, now_ns: int, step: int = 0) -> None:
        """Make `step` due at now_ns and forget what was dropped."""
        self.origin_ns, self.dropped = now_ns - round(step * self.period_ns), 0

    def due(self, step: int) -> int:
        """The instant in ns at which `step` starts."""
        return self.origin_ns + int((step + self.dropped) * self.period_ns)

    def behind(self, step: int, now_ns: int) -> float:
        """Periods by which `step` is overdue at now_ns; negative when it is still to come."""
        return (now_ns - self.due(step)) / self.period_ns


def deadline_s(
    period_s: float, plant_p999_s: float, asked_s: float | None = None, shortest_s: float = 0.0
) -> float:  # fmt: skip
    """The deadline D after t_k in s: the one asked for, or clamp(period - the plant's p99.9 - 50 us, 0.5, 0.9 period);
    at least shortest_s, the shortest wait that can be kept, but never more than the period.

    Raises ModelError when the asked one lies outside (0, period].
    """
    if asked_s is not None:
        if not 0 < asked_s <= period_s:
            raise ModelError(f"deadline: must be > 0 and at most the period of {period_s:g} s, got {asked_s:g}")
        return min(max(asked_s, shortest_s), period_s)
    wanted = min(max(period_s - plant_p999_s - GUARD_S, 0.5 * period_s), 0.9 * period_s)
    return min(max(wanted, shortest_s), period_s)


def quantile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` of them do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
