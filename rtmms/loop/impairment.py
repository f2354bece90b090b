"""Impaired links: what becomes of the messages between the plant and a controller, in simulated time, seeded.

The words are those of the network emulators (tc netem, Mininet's TCLink): each holds for each direction by itself, so
a delay of 20 ms makes a round trip of 40. What happens to a message is a function of the seed, the controller's name,
the direction, and the step of the state that it is or answers, and of nothing else: the same in every mode.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from zlib import crc32

from rtmms.base.parameters import Parameter

LONGEST_MS = 10_000.0
"""Of delay and jitter: what is under way is kept in memory."""
_STATES, _COMMANDS = 0, 1
_MASK, _GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15
_DRAWS = 8
_MOST_OWED = 128
"""Answers that are remembered; a controller has 65 commands under way, at most."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Impairment:
    """What is wrong with one controller's link, in each direction, while from_s <= t < until_s. Times are simulated."""

    # fmt: off
    controller: Annotated[str, Parameter("Controller of the run.")]
    delay_ms: Annotated[float, Parameter(
        "Delay; the message arrives at the first step that does not begin earlier.", "ms", ge=0, le=LONGEST_MS,
    )] = 0.0
    jitter_ms: Annotated[float, Parameter(
        "The delay is uniform within `delay_ms` +- `jitter_ms`, and never negative.", "ms", ge=0, le=LONGEST_MS,
    )] = 0.0
    loss: Annotated[float, Parameter("Probability of a loss.", ge=0, le=1)] = 0.0
    duplicate: Annotated[float, Parameter(
        "Probability of a second copy; each copy has its own delay and loss.", ge=0, le=1,
    )] = 0.0
    reorder: Annotated[float, Parameter(
        "Probability of no delay, so that the message overtakes earlier ones.", ge=0, le=1,
    )] = 0.0
    rate_hz: Annotated[float | None, Parameter("Most states per second; none: all.", "Hz", le=1e6)] = None
    from_s: Annotated[float, Parameter("Begin of the impairment.", "s", ge=0)] = 0.0
    until_s: Annotated[float | None, Parameter("End of the impairment; none: the end of the run.", "s", ge=0)] = None
    # fmt: on

    def holds(self, time: float) -> bool:
        """It does at this simulated time, s."""
        return self.from_s <= time + _ROUNDING and (self.until_s is None or time + _ROUNDING < self.until_s)


class Counts:
    """Of both directions of a link: messages, and what became of them."""

    __slots__ = ("delayed", "duplicated", "lost", "overtaken", "reordered", "sent", "steps", "timed", "withheld")

    def __init__(self) -> None:
        self.sent = self.lost = self.duplicated = self.reordered = self.delayed = 0
        self.overtaken = self.withheld = self.timed = self.steps = 0


class Direction:
    """One way of a link. Whoever receives takes only what is newer than what it has, as docs/protocol.md requires of
    commands: what was overtaken counts for nothing."""

    __slots__ = ("_counts", "_dt", "_impairments", "_key", "_newest", "_order", "_taken_at", "_under_way")

    def __init__(self, impairments: Sequence[Impairment], dt: float, key: int, counts: Counts) -> None:
        self._impairments, self._dt, self._key, self._counts = impairments, dt, key, counts
        self._under_way: list[tuple[int, int, int, Any]] = []
        self._newest = self._order = self._taken_at = -1

    def forget(self) -> None:
        """Nothing is under way, and nothing has come."""
        self._under_way.clear()
        self._newest = self._taken_at = -1

    def put(self, number: int, now: int, message: Any, drawn_by: int) -> None:
        """A message sets out at step `now`.  number: rises from message to message;  drawn_by: decides its fate"""
        self._counts.sent += 1
        for delay in self._copies(now, drawn_by):
            self._order += 1
            heapq.heappush(self._under_way, (now + delay, number, self._order, message))

    def take(self, now: int) -> tuple[int, Any] | None:
        """The newest of what has come by step `now`, with its number; None where there is no news."""
        found: tuple[int, Any] | None = None
        waiting = self._under_way
        while waiting and waiting[0][0] <= now:
            _, number, _, message = heapq.heappop(waiting)
            if number > self._newest:
                self._counts.overtaken += self._taken_at == now  # within one step, also of two calls
                self._newest, found, self._taken_at = number, (number, message), now
            elif number < self._newest:  # a second copy of the newest is no news either, and was not overtaken
                self._counts.overtaken += 1
        return found

    def _copies(self, now: int, drawn_by: int) -> Iterable[int]:
        """Steps that each copy of a message takes which is not lost."""
        held = now * self._dt
        active = next((one for one in self._impairments if one.holds(held)), None)
        if active is None:
            self._counts.timed += 1
            return (0,)
        found, counts = [], self._counts
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
            counts.timed, counts.steps = counts.timed + 1, counts.steps + delay
            found.append(delay)
        return found

    def _delay(self, active: Impairment, drawn_by: int, draw: int) -> int:
        """Whole steps: a message that comes within one is seen at the next."""
        ms = active.delay_ms
        if active.jitter_ms:
            ms += active.jitter_ms * (2.0 * self._uniform(drawn_by, draw) - 1.0)
        return max(0, math.ceil(ms * 1e-3 / self._dt - 1e-6))

    def _uniform(self, step: int, draw: int) -> float:
        """In [0, 1), by splitmix64 (Steele, Lea and Flood 2014) of a counter: nothing is kept from draw to draw."""
        return (_mixed(self._key + (step * _DRAWS + draw + 1) * _GOLDEN) >> 11) * 2.0**-53


def _mixed(z: int) -> int:
    z &= _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class ImpairedLink:
    """A controller's link in a run: states out, commands back, and which answers are owed.

    states, commands   the two directions;  longest  steps that a state can be under way, at most
    """

    def __init__(self, impairments: Sequence[Impairment], dt: float, seed: int) -> None:
        own = _mixed((seed << 32) ^ crc32(impairments[0].controller.encode()))
        self._impairments, self._dt, self._counts = tuple(impairments), dt, Counts()
        self.states = Direction(self._impairments, dt, _mixed(own + _STATES), self._counts)
        self.commands = Direction(self._impairments, dt, _mixed(own + _COMMANDS), self._counts)
        most_ms = max(one.delay_ms + one.jitter_ms for one in impairments)
        self.longest = math.ceil(most_ms * 1e-3 / dt)
        self._owed: dict[int, int] = {}

    def forget(self) -> None:
        """The run went back, or another peer has the controller's place."""
        self.states.forget()
        self.commands.forget()
        self._owed.clear()

    def sends(self, step: int, every: int = 1) -> bool:
        """The state of this step sets out, as far as the rate allows.  every: steps between the states of the peer"""
        time = step * self._dt
        active = next((one for one in self._impairments if one.holds(time)), None)
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
        """State `number` was given to the controller, whose answer is owed at step `due`."""
        if len(self._owed) >= _MOST_OWED:  # of one that does not answer
            self._owed.pop(next(iter(self._owed)))
        self._owed[number] = due

    def answered(self, number: int) -> int:
        """The step at which this answer is or was owed; -1: nobody asked."""
        return self._owed.pop(number, -1)

    def owes(self, step: int) -> bool:
        """An answer is owed at this step."""
        return step in self._owed.values()

    def report(self) -> dict[str, Any]:
        """Of both directions. mean_delay_ms: of a message that was not lost, one way; None where there was none."""
        counts = self._counts
        mean = counts.steps * self._dt * 1e3 / counts.timed if counts.timed else None
        return {
            "sent": counts.sent, "lost": counts.lost, "duplicated": counts.duplicated, "reordered": counts.reordered,
            "overtaken": counts.overtaken, "delayed": counts.delayed, "withheld": counts.withheld,
            "mean_delay_ms": mean,
        }  # fmt: skip


def impaired_links(impairments: Iterable[Impairment], dt: float, seed: int) -> dict[str, ImpairedLink]:
    """The links of a run, by controller."""
    found: dict[str, list[Impairment]] = {}
    for one in impairments:
        found.setdefault(one.controller, []).append(one)
    return {name: ImpairedLink(some, dt, seed) for name, some in found.items()}
