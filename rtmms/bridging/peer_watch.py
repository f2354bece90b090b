"""Silence of a peer: whether its last value is fresh, when it fell silent, and when it was lost."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Any

from rtmms.base.errors import Renamed
from rtmms.base.override import override


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
        result = sorted(self._intervals)
        if len(result) >= MIN_INTERVALS:
            longest_regular = MAX_REGULAR_RATIO * result[len(result) // 2]
            self._learned_s = max(MIN_PERIOD_S, max(item for item in result if item <= longest_regular))

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
            "silences": [list(silence) for silence in self.silences], "losses": list(self.losses), **{
                f"{name}_count": number for name, number in self.counts.items()
            },
        }  # fmt: skip
