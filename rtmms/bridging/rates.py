"""Rates and limits of a bridge's traffic: decimation, outbox, backoff, watchdog, one message at a time, counters."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import exp, floor, pi, sqrt
from time import monotonic
from typing import Any, Generic, Literal, TypeVar

from rtmms.bridging.untrusted import Refusal
from rtmms.wire.protocol.state import State

# Fewer states than the plant has: at a chosen rate of simulated time, with or without a filter against aliasing.


Filter = Literal["none", "mean", "lowpass"]
CORNER = 0.2
"""Corner of the low-pass over the rate that is sent: what would fold onto 0 Hz is passed at 0.2 of its height."""

_EPS = 1e-9


class Decimator:
    """Of the states that come in, those that are due; their outputs averaged or smoothed where asked.

    rate_hz   states to let through per second of simulated time, on a grid from t = 0; 0: every one
    filter    'none': the newest as it is. 'mean': of all since the last one that went out; takes frequencies at
              whole multiples of the rate out entirely. 'lowpass': one pole at CORNER times the rate.

    Filters delay what they smooth: the mean by half an interval, the low-pass by 1 / (2 pi CORNER rate). Outputs whose
    name ends with 'quaternion' stay of length one. Lists of more than `longest` numbers are let through as they are.
    """

    def __init__(self, rate_hz: float, filter: Filter = "none", longest: int = 64) -> None:
        self.rate_hz, self.filter, self.longest = rate_hz, filter, longest
        self._slot, self._time = -1, -1.0
        self._kept: dict[str, Any] = {}
        self._count = 0

    def feed(self, state: State) -> State | None:
        """The state to pass on, or None while none is due."""
        if self.rate_hz <= 0:
            return state
        if state.time < self._time:  # the plant was reset
            self._slot, self._kept, self._count = -1, {}, 0
        lapse, self._time = state.time - self._time, state.time
        if self.filter == "mean":
            self._count += 1
            self._blend(state.outputs, lambda kept, new: kept + new)
        elif self.filter == "lowpass":
            share = 1.0 if not self._kept else 1.0 - exp(-2.0 * pi * CORNER * self.rate_hz * lapse)
            self._blend(state.outputs, lambda kept, new: kept + share * (new - kept))
        slot = floor(state.time * self.rate_hz + _EPS)
        if slot <= self._slot:
            return None
        self._slot = slot
        if self.filter == "none":
            return state
        return state.with_outputs(self._smooth(state.outputs))

    def _blend(self, outputs: Mapping[str, Any], join: Callable[[float, float], float]) -> None:
        kept = self._kept
        for name, value in outputs.items():
            if isinstance(value, list):
                if len(value) > self.longest:
                    continue
                before = kept.get(name)
                new = _near(before, value) if before is not None and _is_attitude(name, value) else value
                kept[name] = list(new) if before is None else [join(a, b) for a, b in zip(before, new, strict=True)]
            else:
                kept[name] = join(kept[name], value) if name in kept else value

    def _smooth(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        over = float(self._count) if self.filter == "mean" else 1.0
        smooth: dict[str, Any] = dict(outputs)
        for name, kept in self._kept.items():
            if not isinstance(kept, list):
                smooth[name] = kept / over
            elif _is_attitude(name, kept):
                length = sqrt(sum(x * x for x in kept))
                smooth[name] = [x / length for x in kept] if length > 1e-6 else list(outputs[name])
            else:
                smooth[name] = [x / over for x in kept]
        if self.filter == "mean":
            self._kept, self._count = {}, 0
        return smooth


def _is_attitude(name: str, value: list[float]) -> bool:
    return len(value) == 4 and name.endswith("quaternion")


def _near(before: list[float], q: list[float]) -> list[float]:
    """q or -q, which are the same attitude: the one nearer to what was there before."""
    return q if sum(a * b for a, b in zip(before, q, strict=True)) >= 0 else [-x for x in q]


# Counters of a bridge: it prints them on standard error at its end, and the report of the run has them.


MARK = "counts "
"""Before the JSON of the last line that a bridge writes."""


class Counters:
    """Numbers by name; `refused` by reason as well. Reasons are words of the bridge's own, never of a peer's.

    The usual names: states (seen), sent and received (messages to and from the peer), dropped (of our own, oldest
    first), reconnects (to the peer), plants (found again), silences (of the plant, for which the safe output was sent).
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._refused: dict[str, int] = {}

    def add(self, name: str, number: int = 1) -> None:
        self._numbers[name] = self._numbers.get(name, 0) + number

    def refuse(self, reason: str) -> None:
        """A message of the peer's that was not taken."""
        self._refused[reason] = self._refused.get(reason, 0) + 1

    @contextmanager
    def message(self) -> Iterator[None]:
        """Around what reads a message of the peer's and takes it: counted as received, or refused by reason."""
        try:
            yield
        except Refusal as refusal:
            self.refuse(refusal.reason)
        else:
            self.add("received")

    def __getitem__(self, name: str) -> int:
        return sum(self._refused.values()) if name == "refused" else self._numbers.get(name, 0)

    def reasons(self) -> dict[str, int]:
        """How many messages of the peer's were refused, by reason."""
        return dict(self._refused)

    def as_dict(self) -> dict[str, Any]:
        return {**self._numbers, "refused": dict(self._refused)}

    def line(self) -> str:
        """One line, for a person and for `read_line`."""
        return MARK + json.dumps(self.as_dict())


def read_line(line: str) -> dict[str, Any] | None:
    """The counters in the last line of a bridge, None if it is another line."""
    _, mark, text = line.partition(MARK)
    if not mark:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


# What waits to go to a peer that is slower than we are: the newest, and no more than so many.


T = TypeVar("T")


class Outbox(Generic[T]):
    """A queue that drops its oldest entry when it is full, and counts that."""

    def __init__(self, limit: int, counts: Counters) -> None:
        self._waiting: deque[T] = deque()
        self._limit, self._counts = max(1, limit), counts

    def put(self, message: T) -> None:
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._counts.add("dropped")
        self._waiting.append(message)

    def take(self) -> T | None:
        """The oldest, which is gone from here; None for none."""
        return self._waiting.popleft() if self._waiting else None

    def clear(self) -> None:
        self._counts.add("dropped", len(self._waiting)) if self._waiting else None
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)


# When to try again: soon at first, then less and less often.


class Backoff:
    """Pauses between attempts: first_s, then twice as long each time, most_s at most.

    `due` is true when the next attempt may be made; say `failed` or `succeeded` after it.
    """

    def __init__(self, first_s: float = 0.1, most_s: float = 5.0) -> None:
        self.first_s, self.most_s = first_s, most_s
        self._pause_s, self._at = first_s, 0.0

    def due(self, now: float | None = None) -> bool:
        return (monotonic() if now is None else now) >= self._at

    def failed(self, now: float | None = None) -> float:
        """The attempt failed, or the connection it made is gone; the pause until the next one, s."""
        pause = self._pause_s
        self._at = (monotonic() if now is None else now) + pause
        self._pause_s = min(self.most_s, 2.0 * pause)
        return pause

    def succeeded(self) -> None:
        self._pause_s, self._at = self.first_s, 0.0


# Has somebody been silent for too long?


class Watchdog:
    """Trips once when nothing was heard for longer than limit_s (0: never); `fed` sets it again.

    It does not trip before it was fed for the first time.
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.tripped = False
        self._heard: float | None = None

    def fed(self, now: float | None = None) -> None:
        self._heard = monotonic() if now is None else now
        self.tripped = False

    def trips(self, now: float | None = None) -> bool:
        """True once for each silence."""
        if self.limit_s <= 0 or self.tripped or self._heard is None:
            return False
        self.tripped = (monotonic() if now is None else now) - self._heard > self.limit_s
        return self.tripped

    def left_s(self, now: float | None = None) -> float | None:
        """Time until it would trip, None while it cannot."""
        if self.limit_s <= 0 or self.tripped or self._heard is None:
            return None
        return max(0.0, self._heard + self.limit_s - (monotonic() if now is None else now))


# One message at a time to a peer that answers each: again when no answer comes, and no answer taken for another's.


LONGEST_S = 0.5
DOUBT_S = 1.0


class Turns:
    """What is asked of the peer, over a channel that may lose it.

    Without an answer the same goes out again, after `patience_s`, twice that, and so on, up to LONGEST_S apart. A peer
    that was merely slow answers each copy, and an answer that is left over would be taken for one to the next message,
    and all later ones be late by one. A peer that says what it answers is believed. With others a turn in which copies
    were sent is over when all of them are answered, or when nothing more has come for a while: for as long as it
    usually takes the peer, or has taken it since the last copy; and while nothing is known of it, for longer than its
    first answer took, up to DOUBT_S. (So a peer that takes longer than that at its first answer should say what it
    answers.) Patience follows the peer, by the turns in which nothing was lost: twice the longest time that it took,
    forgotten by a tenth a turn.
    """

    def __init__(self, least_s: float) -> None:
        self._least_s = self.patience_s = least_s
        self.message = b""
        """That is to be answered; b'' for none."""
        self._copies = 0  # under way, as far as is known
        self._answered = self._known = False
        self._begun = self._sent = self._again = self._gap = self._took = 0.0

    def ask(self, message: bytes, now: float) -> None:
        """It was sent now."""
        left = max(0, self._copies) if self.message else 0  # of one that was never answered: the peer may yet do it
        self.message, self._copies, self._answered = message, left + 1, False
        self._begun = self._sent = now
        self._gap = self.patience_s
        self._again = now + self._gap

    def due(self, now: float) -> bytes:
        """The message if it is to be sent again now, else b''. Counts it as sent."""
        if not self.message or self._answered or now < self._again:
            return b""
        self._copies += 1
        self._gap = min(2.0 * self._gap, max(LONGEST_S, self.patience_s))
        self._sent, self._again = now, now + self._gap
        return self.message

    def answered(self, now: float, surely: bool = False) -> bool:
        """An answer has come; True when the turn is over with it. surely: the peer says that it is to this message."""
        if not self.message:
            return True
        self._copies -= 1
        if not self._answered:
            self._answered, self._took = True, now - self._begun
        quiet = max(self.patience_s, 1.5 * (now - self._sent))
        self._again = now + (quiet if self._known else max(quiet, min(1.5 * self._took, DOUBT_S)))
        if self._copies <= 0:
            self._known = True
            self.patience_s = max(self._least_s, 2.0 * self._took, 0.9 * self.patience_s)
        if self._copies > 0 and not surely:
            return False
        self.message = b""
        return True

    def settled(self, now: float) -> bool:
        """True once when a turn is over because no more answers come to the copies."""
        if not (self.message and self._answered and now >= self._again):
            return False
        self.patience_s = max(self._least_s, 0.9 * self.patience_s)
        self.message = b""
        return True

    def forget(self) -> None:
        """There is nobody who could answer."""
        self.message = b""
