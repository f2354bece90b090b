"""Impaired links: delays and losses of messages between the plant and a controller, in simulated time, with a seed.

The names are those of the network emulators (tc netem, Mininet's TCLink). Each holds for each direction, so a delay of
20 ms makes a round trip of 40 ms. The fate of a message is a function of four values only. These are the seed, the
controller's name, the direction, and the step of the state that the message is or answers. So it is the same in every
mode.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from zlib import crc32

from rtmms.base.parameters import Parameter

MAX_DELAY_MS = 10_000.0
"""Limit of delay and jitter, ms, because delayed messages are stored in memory."""
_STATES = 0
_COMMANDS = 1
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_DRAWS = 8
_MAX_OWED = 128
"""Remembered answers; a controller has at most 65 commands under way."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Impairment:
    """Impairment of one controller's link, in each direction, while from_s <= t < until_s; times are simulated.

    The declaration of each field has its meaning, unit and range.

    Examples
    --------
    >>> Impairment("pilot", delay_ms=20.0, until_s=5.0).holds(5.0)
    False
    """

    # fmt: off
    controller: Annotated[str, Parameter("Controller of the run.")]
    delay_ms: Annotated[float, Parameter(
        "Delay; the message arrives at the first step that does not begin earlier.", "ms", ge=0, le=MAX_DELAY_MS,
    )] = 0.0
    jitter_ms: Annotated[float, Parameter(
        "Half width of the delay's uniform distribution; the delay is never negative.", "ms", ge=0, le=MAX_DELAY_MS,
    )] = 0.0
    loss: Annotated[float, Parameter("Probability of a loss.", ge=0, le=1)] = 0.0
    duplicate: Annotated[float, Parameter(
        "Probability of a second copy; each copy has its own delay and loss.", ge=0, le=1,
    )] = 0.0
    reorder: Annotated[float, Parameter(
        "Probability of no delay, so that the message overtakes earlier ones.", ge=0, le=1,
    )] = 0.0
    rate_hz: Annotated[float | None, Parameter("Maximum number of states per second; none: all.", "Hz", le=1e6)] = None
    from_s: Annotated[float, Parameter("Begin of the impairment.", "s", ge=0)] = 0.0
    until_s: Annotated[float | None, Parameter("End of the impairment; none: the end of the run.", "s", ge=0)] = None
    # fmt: on

    def holds(self, time: float) -> bool:
        """Return whether the impairment is active at a simulated time.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        bool
            True if it is.
        """
        return self.from_s <= time + _ROUNDING and (self.until_s is None or time + _ROUNDING < self.until_s)


class Counts:
    """Counts of messages in both directions of a link, and of their fates."""

    __slots__ = ("delayed", "duplicated", "lost", "overtaken", "reordered", "sent", "steps", "timed", "withheld")

    def __init__(self) -> None:
        self.sent = self.lost = self.duplicated = self.reordered = self.delayed = 0
        self.overtaken = self.withheld = self.timed = self.steps = 0


class Direction:
    """One direction of a link.

    The receiver takes only messages newer than its last one, as docs/protocol.md requires of commands. Overtaken
    messages count for nothing.

    Parameters
    ----------
    impairments : Sequence[Impairment]
        Impairments of the link.
    dt : float
        Simulated time of a step, s.
    key : int
        Seed of this direction.
    counts : Counts
        Counts of the link.
    """

    __slots__ = ("_counts", "_dt", "_impairments", "_key", "_newest", "_order", "_taken_at", "_under_way")

    def __init__(self, impairments: Sequence[Impairment], dt: float, key: int, counts: Counts) -> None:
        self._impairments, self._dt, self._key, self._counts = impairments, dt, key, counts
        self._under_way: list[tuple[int, int, int, int, Any]] = []
        self._newest = self._order = self._taken_at = -1

    def forget(self) -> None:
        """Discard all messages under way."""
        self._under_way.clear()
        self._newest = self._taken_at = -1

    def put(self, number: int, now: int, message: Any, drawn_by: int) -> None:
        """Send a message.

        Parameters
        ----------
        number : int
            Number that rises from message to message.
        now : int
            Present step.
        message : Any
            The message.
        drawn_by : int
            Number that determines its fate.
        """
        self._counts.sent += 1
        for delay in self._copies(now, drawn_by):
            self._order += 1
            heapq.heappush(self._under_way, (now + delay, number, self._order, delay, message))

    def take(self, now: int) -> tuple[int, Any] | None:
        """Return the newest message that has arrived.

        Parameters
        ----------
        now : int
            Present step.

        Returns
        -------
        tuple[int, Any] | None
            Number and message; None if there is no new one.
        """
        result: tuple[int, Any] | None = None
        waiting = self._under_way
        while waiting and waiting[0][0] <= now:
            _, number, _, delay, message = heapq.heappop(waiting)
            self._counts.timed, self._counts.steps = self._counts.timed + 1, self._counts.steps + delay
            if number > self._newest:
                self._counts.overtaken += self._taken_at == now  # within one step, even of two calls
                self._newest, result, self._taken_at = number, (number, message), now
            elif number < self._newest:  # a duplicate of the newest is not newer, and nothing overtook it
                self._counts.overtaken += 1
        return result

    def _copies(self, now: int, drawn_by: int) -> Iterable[int]:
        """Return the delay in steps of each copy that is not lost."""
        held = now * self._dt
        active = next((impairment for impairment in self._impairments if impairment.holds(held)), None)
        if active is None:
            return (0,)
        result, counts = [], self._counts
        copies = 1
        if active.duplicate and self._uniform(drawn_by, 0) < active.duplicate:
            copies, counts.duplicated = 2, counts.duplicated + 1
        for copy in range(copies):
            first = 1 + 3 * copy
            if active.loss and self._uniform(drawn_by, first) < active.loss:
                counts.lost += 1
                continue
            delay = 0
            if active.reorder and self._uniform(drawn_by, first + 1) < active.reorder:
                counts.reordered += 1
            else:
                delay = self._delay(active, drawn_by, first + 2)
            counts.delayed += delay > 0
            result.append(delay)
        return result

    def _delay(self, active: Impairment, drawn_by: int, draw: int) -> int:
        """Return the delay in whole steps: a message that arrives within a step is seen at the next."""
        ms = active.delay_ms
        if active.jitter_ms:
            ms += active.jitter_ms * (2.0 * self._uniform(drawn_by, draw) - 1.0)
        return max(0, math.ceil(ms * 1e-3 / self._dt - 1e-6))

    def _uniform(self, step: int, draw: int) -> float:
        """Return a number in [0, 1), by splitmix64 (Steele, Lea and Flood 2014) of a counter.

        It has no state from draw to draw.
        """
        return (_mixed(self._key + (step * _DRAWS + draw + 1) * _GOLDEN) >> 11) * 2.0**-53


def _mixed(z: int) -> int:
    z &= _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class ImpairedLink:
    """Impaired link of a controller: states out, commands back, and the answers that it owes.

    Parameters
    ----------
    impairments : Sequence[Impairment]
        Impairments of the link.
    dt : float
        Simulated time of a step, s.
    seed : int
        Seed of the run.

    Attributes
    ----------
    states, commands : Direction
        The two directions.
    longest : int
        Most steps that a state can be under way.
    """

    def __init__(self, impairments: Sequence[Impairment], dt: float, seed: int) -> None:
        link_seed = _mixed((seed << 32) ^ crc32(impairments[0].controller.encode()))
        self._impairments, self._dt, self._counts = tuple(impairments), dt, Counts()
        self.states = Direction(self._impairments, dt, _mixed(link_seed + _STATES), self._counts)
        self.commands = Direction(self._impairments, dt, _mixed(link_seed + _COMMANDS), self._counts)
        most_ms = max(impairment.delay_ms + impairment.jitter_ms for impairment in impairments)
        self.longest = math.ceil(most_ms * 1e-3 / dt)
        self._owed: dict[int, int] = {}

    def forget(self) -> None:
        """Reset the link, because the run went back or another peer replaced the controller."""
        self.states.forget()
        self.commands.forget()
        self._owed.clear()

    def sends(self, step: int, every: int = 1) -> bool:
        """Return whether the rate allows the state of a step.

        Parameters
        ----------
        step : int
            Index of the step.
        every : int, default 1
            Steps between the states of the peer.

        Returns
        -------
        bool
            True if the state is sent.
        """
        time = step * self._dt
        active = next((impairment for impairment in self._impairments if impairment.holds(time)), None)
        if active is None or active.rate_hz is None:
            return True
        before = (step - every) * self._dt
        if before < active.from_s - _ROUNDING:
            return True
        rate, since = active.rate_hz, active.from_s
        due = math.floor((time - since) * rate + 1e-6) > math.floor((before - since) * rate + 1e-6)
        self._counts.withheld += not due
        return due

    # -- which answers are owed, on the plant's side -------------------------------------------------------------------

    def asked(self, number: int, due: int) -> None:
        """Record that a state was delivered to the controller.

        Parameters
        ----------
        number : int
            Number of the state.
        due : int
            Step at which its answer is owed.
        """
        if len(self._owed) >= _MAX_OWED:  # the peer does not answer
            self._owed.pop(next(iter(self._owed)))
        self._owed[number] = due

    def answered(self, number: int) -> int:
        """Remove a state from the owed answers.

        Parameters
        ----------
        number : int
            Number of the state.

        Returns
        -------
        int
            Step at which the answer is or was owed; -1 if none was.
        """
        return self._owed.pop(number, -1)

    def owes(self, step: int) -> bool:
        """Return whether an answer is owed at a step.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        bool
            True if one is.
        """
        return step in self._owed.values()

    def report(self) -> dict[str, Any]:
        """Return the counts of both directions for the report.

        Returns
        -------
        dict[str, Any]
            Counts by name, and `mean_delay_ms` of a delivered message, one way; None without any.
        """
        counts = self._counts
        mean = counts.steps * self._dt * 1e3 / counts.timed if counts.timed else None
        return {
            "sent": counts.sent, "lost": counts.lost, "duplicated": counts.duplicated, "reordered": counts.reordered,
            "overtaken": counts.overtaken, "delayed": counts.delayed, "withheld": counts.withheld,
            "mean_delay_ms": mean,
        }  # fmt: skip


def impaired_links(impairments: Iterable[Impairment], dt: float, seed: int) -> dict[str, ImpairedLink]:
    """Return the links of a run.

    Parameters
    ----------
    impairments : Iterable[Impairment]
        All impairments.
    dt : float
        Simulated time of a step, s.
    seed : int
        Seed of the run.

    Returns
    -------
    dict[str, ImpairedLink]
        Links by controller.
    """
    result: dict[str, list[Impairment]] = {}
    for impairment in impairments:
        result.setdefault(impairment.controller, []).append(impairment)
    return {name: ImpairedLink(subset, dt, seed) for name, subset in result.items()}
