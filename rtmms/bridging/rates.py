"""Rates and limits of a bridge's traffic: decimation, outbox, backoff, watchdog, one message at a time, counters."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import exp, floor, pi, sqrt
from time import monotonic
from typing import Any, Generic, Literal, TypeVar

from rtmms.base.errors import Renamed
from rtmms.base.override import override
from rtmms.bridging.untrusted import Refusal
from rtmms.wire.protocol.state import State

# Fewer states than the plant has: at a chosen rate of simulated time, with or without a filter against aliasing.


Filter = Literal["none", "mean", "lowpass"]
CORNER = 0.2
"""Corner of the low-pass filter over the sent rate.

A frequency that would fold onto 0 Hz is passed at 0.2 of its height.
"""

_EPS = 1e-9


class Decimator:
    """Reduction of states to a chosen rate of simulated time, with an optional filter against aliasing.

    Filters delay their signals: the mean by half an interval, the low-pass by 1 / (2 pi CORNER rate). Outputs with a
    name that ends with 'quaternion' stay of length one.

    Parameters
    ----------
    rate_hz : float
        Most states per second of simulated time, on a grid from t = 0, Hz; 0: every one.
    filter : Filter, default 'none'
        'none': the newest state. 'mean': the mean since the last sent state, which removes frequencies at whole
        multiples of the rate. 'lowpass': one pole at CORNER times the rate.
    longest : int, default 64
        Longer lists pass unchanged.
    """

    def __init__(self, rate_hz: float, filter: Filter = "none", longest: int = 64) -> None:
        self.rate_hz, self.filter, self.longest = rate_hz, filter, longest
        self._slot, self._time = -1, -1.0
        self._kept: dict[str, Any] = {}
        self._count = 0

    def feed(self, state: State) -> State | None:
        """Process a state.

        Parameters
        ----------
        state : State
            The state.

        Returns
        -------
        State | None
            The state to pass on; None if none is due.
        """
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
    """Return q or -q, which are the same attitude: the one nearer to the earlier quaternion."""
    return q if sum(a * b for a, b in zip(before, q, strict=True)) >= 0 else [-x for x in q]


# Counters of a bridge: it prints them on standard error at its end, and the report of the run has them.


MARK = "counts "
"""Text before the JSON of the last line that a bridge writes."""


class Counters:
    """Counters by name; `refused` by reason as well.

    Reasons are the bridge's own words, never a peer's. Usual names are states (received from the plant), sent and
    received (messages to and from the peer), dropped (own messages, oldest first). Others are reconnects (to the peer),
    plants (found again), and silences (of the plant, for which the safe output was sent).

    Examples
    --------
    >>> counts = Counters()
    >>> counts.add("sent", 2)
    >>> counts.line()
    'counts {"sent": 2, "refused": {}}'
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._texts: list[str] = []

    def add(self, name: str, number: int = 1) -> None:
        """Increase a counter.

        Parameters
        ----------
        name : str
            Name of the counter.
        number : int, default 1
            Increase.
        """
        self._numbers[name] = self._numbers.get(name, 0) + number

    def refuse(self, reason: str, text: str = "") -> None:
        """Count a refused message of the peer.

        Parameters
        ----------
        reason : str
            Reason of the refusal.
        text : str, default ''
            Explanation for a person, who gets the first one of each reason.
        """
        if text and reason not in self._refused:
            self._texts.append(text)
        self._refused[reason] = self._refused.get(reason, 0) + 1

    def new_texts(self) -> list[str]:
        """Return the explanations of refusals since the last call, the first one of each reason.

        Returns
        -------
        list[str]
            Explanations.
        """
        texts, self._texts = self._texts, []
        return texts

    @contextmanager
    def message(self) -> Iterator[None]:
        """Count the message of the peer that the block reads: as received, or as refused by reason.

        Yields
        ------
        None
            Nothing.
        """
        try:
            yield
        except Refusal as refusal:
            self.refuse(refusal.reason, str(refusal))
        else:
            self.add("received")

    def __getitem__(self, name: str) -> int:
        """Return a counter; 0 for an unknown name."""
        return sum(self._refused.values()) if name == "refused" else self._numbers.get(name, 0)

    def reasons(self) -> dict[str, int]:
        """Return the numbers of refused messages by reason.

        Returns
        -------
        dict[str, int]
            Numbers by reason.
        """
        return dict(self._refused)

    def as_dict(self) -> dict[str, Any]:
        """Return all counters.

        Returns
        -------
        dict[str, Any]
            Numbers by name, and `refused` by reason.
        """
        return {**self._numbers, "refused": dict(self._refused)}

    def line(self) -> str:
        """Return all counters as a line for a person and for `read_line`.

        Returns
        -------
        str
            The line.
        """
        return MARK + json.dumps(self.as_dict())


def read_line(line: str) -> dict[str, Any] | None:
    """Return the counters in the last line of a bridge.

    Parameters
    ----------
    line : str
        The line.

    Returns
    -------
    dict[str, Any] | None
        Counters by name; None for another line.
    """
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
    """Queue of messages to a slow peer, which drops and counts its oldest entry when it is full.

    Parameters
    ----------
    limit : int
        Most messages.
    counts : Counters
        Counters of the bridge.

    Examples
    --------
    >>> counts = Counters()
    >>> outbox = Outbox(1, counts)
    >>> outbox.put("old"), outbox.put("new"), outbox.take(), counts["dropped"]
    (None, None, 'new', 1)
    """

    def __init__(self, limit: int, counts: Counters) -> None:
        self._waiting: deque[T] = deque()
        self._limit, self._counts = max(1, limit), counts

    def put(self, message: T) -> None:
        """Add a message.

        Parameters
        ----------
        message : T
            The message.
        """
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._counts.add("dropped")
        self._waiting.append(message)

    def take(self) -> T | None:
        """Remove the oldest message.

        Returns
        -------
        T | None
            The message; None for none.
        """
        return self._waiting.popleft() if self._waiting else None

    def clear(self) -> None:
        """Drop all messages."""
        self._counts.add("dropped", len(self._waiting)) if self._waiting else None
        self._waiting.clear()

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._waiting)


# When to try again: soon at first, then less and less often.


class Backoff:
    """Pauses between attempts: first_s, then twice as long each time, at most most_s.

    `due` is true when the next attempt may be made; call `failed` or `succeeded` after it.

    Parameters
    ----------
    first_s : float, default 0.1
        First pause, s.
    most_s : float, default 5.0
        Longest pause, s.

    Examples
    --------
    >>> backoff = Backoff(1.0)
    >>> backoff.failed(now=0.0), backoff.due(now=0.5), backoff.due(now=1.0)
    (1.0, False, True)
    """

    def __init__(self, first_s: float = 0.1, most_s: float = 5.0) -> None:
        self.first_s, self.most_s = first_s, most_s
        self._pause_s, self._at = first_s, 0.0

    def due(self, now: float | None = None) -> bool:
        """Return whether the next attempt may be made.

        Parameters
        ----------
        now : float | None, optional
            Monotonic time, s; None: the present.

        Returns
        -------
        bool
            True if it may.
        """
        return (monotonic() if now is None else now) >= self._at

    def failed(self, now: float | None = None) -> float:
        """Record that the attempt failed, or that its connection is gone.

        Parameters
        ----------
        now : float | None, optional
            Monotonic time, s; None: the present.

        Returns
        -------
        float
            Pause until the next attempt, s.
        """
        pause = self._pause_s
        self._at = (monotonic() if now is None else now) + pause
        self._pause_s = min(self.most_s, 2.0 * pause)
        return pause

    def succeeded(self) -> None:
        """Record that the attempt succeeded."""
        self._pause_s, self._at = self.first_s, 0.0


# Has somebody been silent for too long?


class Watchdog:
    """Watchdog that trips once after a silence, until `fed` resets it.

    It does not trip before the first `fed`.

    Parameters
    ----------
    limit_s : float
        Longest silence, s; 0: any.

    Attributes
    ----------
    tripped : bool
        Whether it has tripped.

    Examples
    --------
    >>> watchdog = Watchdog(1.0)
    >>> watchdog.fed(now=0.0)
    >>> watchdog.trips(now=0.5), watchdog.trips(now=1.5)
    (False, True)
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.tripped = False
        self._fed_at: float | None = None

    def fed(self, now: float | None = None) -> None:
        """Record a message.

        Parameters
        ----------
        now : float | None, optional
            Monotonic time, s; None: the present.
        """
        self._fed_at = monotonic() if now is None else now
        self.tripped = False

    def trips(self, now: float | None = None) -> bool:
        """Return whether the watchdog trips now, once for each silence.

        Parameters
        ----------
        now : float | None, optional
            Monotonic time, s; None: the present.

        Returns
        -------
        bool
            True once.
        """
        if self.limit_s <= 0 or self.tripped or self._fed_at is None:
            return False
        self.tripped = (monotonic() if now is None else now) - self._fed_at > self.limit_s
        return self.tripped

    def left_s(self, now: float | None = None) -> float | None:
        """Return the time until it would trip.

        Parameters
        ----------
        now : float | None, optional
            Monotonic time, s; None: the present.

        Returns
        -------
        float | None
            Time, s; None if it cannot trip.
        """
        if self.limit_s <= 0 or self.tripped or self._fed_at is None:
            return None
        return max(0.0, self._fed_at + self.limit_s - (monotonic() if now is None else now))


# Is the peer's last value still a fresh one, when did it fall silent, and when was it lost?


MIN_PERIOD_S = 0.02
"""Period of a peer, s: the schedulers of two machines delay faster ones by as much."""
SILENT_PERIODS = 3.0
"""Periods without a message after which a peer is silent."""
UNKNOWN_PERIOD_S = 1.0
"""Period of a peer with too few messages to learn it, s."""
MIN_INTERVALS = 3
"""Intervals from which a period is learned."""
MAX_INTERVALS = 32
"""Last intervals from which a period is learned."""
MAX_REGULAR_RATIO = 1.5
"""Length of regular intervals in medians; longer ones are gaps."""
MERGED_S = 0.005
"""Time within which a message is part of the one before, s."""
MAX_EVENTS = 64
"""Listed silences, and listed losses; all are counted."""
PAUSE_PERIODS = 3.0
"""Periods of the plant without a state that are a pause."""
MIN_PAUSE_S = 0.1
"""Time without a state that is a pause, whatever the period, s."""


class PeerWatch(Watchdog):
    """Watch of a peer's silence.

    A peer's value is fresh for one period, and the peer is silent after SILENT_PERIODS of them. The period is given, or
    learned from the regular ones of the last intervals. Time in which the plant paused does not count.

    Parameters
    ----------
    limit_s : float
        Silence after which the peer is lost, s of wall time; 0: never. See Watchdog.
    period_s : float, default 0.0
        Period of the peer, s of wall time; 0: it is learned.
    silent_after_s : float, default 0.0
        Time without a message after which the peer is silent, s; 0: SILENT_PERIODS of its periods.
    steady : bool, default True
        Whether the peer sends all the time. Otherwise nothing is learned, so its silence is watched only if one of the
        two times is given.

    Attributes
    ----------
    silent : bool
        Whether the peer is silent at present.
    changed : bool
        Whether an event has happened since the owner cleared the flag.
    behind_s : float
        Time from the state that the last message answers to the newest state, s; of peers that state which one they
        answer, else 0.
    """

    def __init__(
        self, limit_s: float, period_s: float = 0.0, silent_after_s: float = 0.0, *, steady: bool = True
    ) -> None:  # fmt: skip
        super().__init__(limit_s)
        self.given_s, self._silent_after_s, self._steady = period_s, silent_after_s, steady
        self._intervals: deque[float] = deque(maxlen=MAX_INTERVALS)
        self._learned_s = 0.0
        self.begin()

    def begin(self) -> None:
        """Discard the events of the plant before, because another plant is there."""
        self.silent = self._lost = self.changed = False
        self.behind_s = 0.0
        self.first: tuple[int, float] | None = None
        self.silences: list[list[float | int | None]] = []
        self.losses: list[float] = []
        self.counts = {"silences": 0, "losses": 0, "restarts": 0}
        self._since: float | None = None
        self._counted: float | None = None
        self._state, self._last = (0, 0.0), (0, 0.0)
        self._state_at: float | None = None

    def saw(self, step: int, time_s: float, now: float, plant_period_s: float) -> None:
        """Record the newest state of the plant.

        Parameters
        ----------
        step : int
            Its step.
        time_s : float
            Its simulated time, s.
        now : float
            Monotonic time at which it came, s.
        plant_period_s : float
            Wall time between states, s.
        """
        before, self._state_at, self._state = self._state_at, now, (step, time_s)
        if self._since is None:
            self._since, self._last = now, self._state
        elif before is not None and now - before > max(MIN_PAUSE_S, PAUSE_PERIODS * plant_period_s):
            self._since = min(now, self._since + now - before)
            self._counted = None

    @override
    def fed(self, now: float | None = None) -> None:
        """Record a message of the peer."""
        now = monotonic() if now is None else now
        super().fed(now)
        self.received(now)

    heard = Renamed("received")

    def received(self, now: float) -> None:
        """Record a message of the peer, of a bridge that watches `limit_s` by other means.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        if self._counted is not None and now - self._counted >= MERGED_S:
            self._learn(now - self._counted)
        if self._counted is None or now - self._counted >= MERGED_S:
            self._counted = now
        self._since = now
        if self.first is None:
            self.first, self.changed = self._state, True
        if self.silent or self._lost:
            self.counts["restarts"] += 1
            if self.silent and len(self.silences) == self.counts["silences"]:
                self.silences[-1][2] = self._state[1] - self._last[1]
            self.silent, self._lost, self.changed = False, False, True
        self._last = self._state

    def lost(self) -> None:
        """Record that the peer is gone, by its protocol or `limit_s`."""
        if not self._lost:
            self._lost = self.changed = True
            self.counts["losses"] += 1
            if len(self.losses) < MAX_EVENTS:
                self.losses.append(self._state[1])

    def falls_silent(self, now: float) -> bool:
        """Return whether the peer falls silent now, once for each silence.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            True once.
        """
        left = self.until_silent_s(now)
        if left is None or left > 0.0:
            return False
        self.silent = self.changed = True
        self.counts["silences"] += 1
        if len(self.silences) < MAX_EVENTS:
            self.silences.append([self._last[1], self._last[0], None])
        return True

    def until_silent_s(self, now: float) -> float | None:
        """Return the time until the peer would be silent.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        float | None
            Time, s; None if it is silent, or if that is not watched.
        """
        if self.silent or self._since is None:
            return None
        limit = self._silent_after_s or SILENT_PERIODS * self.fresh_s
        return max(0.0, self._since + limit - now) if limit else None

    def age_s(self, now: float) -> float:
        """Return the age of the peer's last message.

        A message that answers a state older than SILENT_PERIODS of the peer's periods is as old as that state: the
        peer is too slow, and works through what waits for it.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        float
            Age, s.
        """
        late = self.behind_s if self.behind_s > SILENT_PERIODS * self.fresh_s else 0.0
        return 0.0 if self._since is None else max(0.0, now - self._since) + late

    @property
    def fresh_s(self) -> float:
        """Age up to which a value of the peer is fresh, s.

        It is the peer's period; 0 if that is neither given nor learned.
        """
        if self.given_s:
            return max(MIN_PERIOD_S, self.given_s)
        return (self._learned_s or UNKNOWN_PERIOD_S) if self._steady else 0.0

    def _learn(self, interval_s: float) -> None:
        """Learn from another interval between two messages."""
        self._intervals.append(interval_s)
        found = sorted(self._intervals)
        if len(found) >= MIN_INTERVALS:
            longest_regular = MAX_REGULAR_RATIO * found[len(found) // 2]
            self._learned_s = max(MIN_PERIOD_S, max(one for one in found if one <= longest_regular))

    def report(self) -> dict[str, Any]:
        """Return the peer's events for the plant's report; see `rtmms.wire.protocol.peer_values.read_watch`.

        Returns
        -------
        dict[str, Any]
            Values by name, in simulated s.
        """
        period = self.given_s or self._learned_s
        return {
            "watched": bool(self.fresh_s or self._silent_after_s), "period_s": self.fresh_s if period else None,
            "learned": not self.given_s, "first_s": None if self.first is None else self.first[1],
            "silences": [list(one) for one in self.silences], "losses": list(self.losses), **{
                f"{name}_count": number for name, number in self.counts.items()
            },
        }  # fmt: skip


# One message at a time to a peer that answers each: again when no answer comes, and no answer taken for another's.


MAX_RESEND_S = 0.5
DOUBT_S = 1.0


class Turns:
    """Messages to a peer that answers each, over a channel that may lose them.

    Without an answer the same message is sent again after `patience_s`, then after twice that, and so on, up to
    MAX_RESEND_S apart. A peer that was merely slow answers each copy. A remaining answer would be taken for one to the
    next message, and all later ones be late by one. A peer may state which message it answers. With others, a turn with
    copies ends when all of them are answered, or when nothing more has come for a while. This is as long as the peer
    usually needs, or has needed since the last copy. While nothing is known of the peer, it is longer than its first
    answer took, up to DOUBT_S. So a peer that takes longer than that at its first answer should state what it answers.
    Patience follows the peer, by the turns in which nothing was lost: twice its longest time, reduced by a tenth a
    turn.

    Parameters
    ----------
    least_s : float
        Least patience, s.

    Attributes
    ----------
    message : bytes
        Message that is to be answered; b'' for none.
    patience_s : float
        Time until the first copy, s.
    """

    def __init__(self, least_s: float) -> None:
        self._least_s = self.patience_s = least_s
        self.message = b""
        """Message that is to be answered; b'' for none."""
        self._copies = 0  # under way, as far as is known
        self._answered = self._known = False
        self._begun = self._sent = self._again = self._gap = self._took = 0.0

    def ask(self, message: bytes, now: float) -> None:
        """Record that a message was sent.

        Parameters
        ----------
        message : bytes
            The message.
        now : float
            Monotonic time, s.
        """
        left = max(0, self._copies) if self.message else 0  # of one that was never answered: the peer may yet do it
        self.message, self._copies, self._answered = message, left + 1, False
        self._begun = self._sent = now
        self._gap = self.patience_s
        self._again = now + self._gap

    def due(self, now: float) -> bytes:
        """Return the message if it is to be sent again now, and count it as sent.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        bytes
            The message, else b''.
        """
        if not self.message or self._answered or now < self._again:
            return b""
        self._copies += 1
        self._gap = min(2.0 * self._gap, max(MAX_RESEND_S, self.patience_s))
        self._sent, self._again = now, now + self._gap
        return self.message

    def answered(self, now: float, surely: bool = False) -> bool:
        """Record an answer.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        surely : bool, default False
            Whether the peer states that it is to this message.

        Returns
        -------
        bool
            Whether the turn ends with it.
        """
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
        """Return whether a turn ends because no more answers come to the copies.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            True once.
        """
        if not (self.message and self._answered and now >= self._again):
            return False
        self.patience_s = max(self._least_s, 0.9 * self.patience_s)
        self.message = b""
        return True

    def forget(self) -> None:
        """Discard the message, because nobody can answer it."""
        self.message = b""
