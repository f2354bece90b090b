"""Statistics of a run in fixed memory: counters, and a histogram of each part of a step.

A step writes four integers into a ring of plain machine words. They are counted in the bins of HDR histograms (3
digits) in the loop's slack. A mode without slack counts all at once when the ring is full. The histograms themselves
are built from the bins on demand.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from hdrh.histogram import HdrHistogram

from rtmms.base.contract import PARTS, QUANTILES, UNDEFINED, StepOutcome
from rtmms.loop.row_kernels import BINS, MAX_TIMED_NS, tally, values_of

if TYPE_CHECKING:
    import numpy.typing as npt

_histogram: Any = partial(HdrHistogram, 1, MAX_TIMED_NS, 3)  # the library is not typed
_OUTCOMES = tuple(StepOutcome)
"""Outcomes by their codes."""


class Statistics:
    """Counters and timings of one run.

    Parameters
    ----------
    capacity : int, default 8192
        Rows of the ring, a power of two.
    period_us, deadline_us : float | None, optional
        Period and deadline of the schedule, us, for a figure; None in a mode without one.

    Attributes
    ----------
    steps : int
        applied + stale + misses + unclaimed + reused.
    applied : int
        Steps in which every claimed actuator had its command in time.
    stale : int
        The same, but a value was older than its fresh age.
    misses : int
        Steps in which a claimed actuator had no command at the deadline.
    unclaimed : int
        Steps without a claim.
    reused : int
        Steps in which a claimed actuator had nothing new; free mode only.
    overruns, skipped : int
        Steps that ended after their period, and periods dropped for them.
    outcome : StepOutcome
        Outcome of the last counted step.

    Examples
    --------
    >>> statistics = Statistics()
    >>> statistics.count(StepOutcome.APPLIED)
    >>> statistics.counters()["applied"]
    1
    """

    __slots__ = (
        "_counts", "_drained", "_mask", "_ring", "_rows_of", "_written", "applied", "consecutive", "deadline_us",
        "max_consecutive", "misses", "outcome", "overruns", "period_us", "reused", "skipped", "stale", "steps",
        "unclaimed",
    )  # fmt: skip

    def __init__(self, capacity: int = 8192, period_us: float | None = None, deadline_us: float | None = None) -> None:
        if capacity & (capacity - 1):
            raise ValueError(f"statistics: capacity must be a power of two, got {capacity}")
        self._ring = array("q", [0]) * (capacity * len(PARTS))
        self._mask = capacity - 1
        self.period_us, self.deadline_us = period_us, deadline_us
        self._rows_of = np.frombuffer(self._ring, dtype=np.int64).reshape(-1, len(PARTS))
        self._counts = np.zeros((len(PARTS), BINS), dtype=np.int64)
        tally(self._rows_of, 0, 0, self._counts)  # compile, or load from the cache, before the run
        self.clear()

    def clear(self) -> None:
        """Reset all counts, for a run that is reset."""
        self.steps = self.applied = self.misses = self.unclaimed = self.reused = self.stale = 0
        self.consecutive = self.max_consecutive = self.overruns = self.skipped = 0
        self.outcome = StepOutcome.UNCLAIMED
        self._written = self._drained = 0
        self._counts[:] = 0

    def record(self, wake: int, exchange: int, plant: int, slack: int) -> None:
        """Record the parts of a step.

        Parameters
        ----------
        wake, exchange, plant, slack : int
            Durations, ns; UNDEFINED for a part that the mode does not have.
        """
        ring, at = self._ring, (self._written & self._mask) << 2
        ring[at] = wake
        ring[at + 1] = exchange
        ring[at + 2] = plant
        ring[at + 3] = slack
        self._written += 1
        if self._written - self._drained > self._mask:
            self.drain_all()

    def last(self) -> tuple[int, int, int, int]:
        """Return the parts of the last recorded step.

        Returns
        -------
        tuple[int, int, int, int]
            Durations, ns; UNDEFINED for all of them before the first.
        """
        if not self._written:
            return UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED
        ring, at = self._ring, ((self._written - 1) & self._mask) << 2
        return ring[at], ring[at + 1], ring[at + 2], ring[at + 3]

    def count(self, outcome: StepOutcome) -> None:
        """Count a finished step.

        Parameters
        ----------
        outcome : StepOutcome
            Its outcome.
        """
        self.steps += 1
        self.outcome = outcome
        if outcome == StepOutcome.MISSED:
            self.misses += 1
            self.consecutive += 1
            if self.consecutive > self.max_consecutive:
                self.max_consecutive = self.consecutive
            return
        self.consecutive = 0
        if outcome == StepOutcome.APPLIED:
            self.applied += 1
        elif outcome == StepOutcome.UNCLAIMED:
            self.unclaimed += 1
        elif outcome == StepOutcome.STALE:
            self.stale += 1
        else:
            self.reused += 1

    def add(self, times: npt.NDArray[Any]) -> None:
        """Count and record many finished steps.

        Parameters
        ----------
        times : npt.NDArray[Any]
            (k,) exchange_ns, plant_ns and outcome of each.
        """
        for code in times["outcome"].tolist():
            self.count(_OUTCOMES[code])
        k = len(times)
        if not k:
            return
        if self._written + k - self._drained > self._mask:
            self.drain_all()
        rows = np.arange(self._written, self._written + k) & self._mask
        self._rows_of[rows] = UNDEFINED
        self._rows_of[rows, 1], self._rows_of[rows, 2] = times["exchange_ns"], times["plant_ns"]
        self._written += k

    def drain(self, rows: int) -> bool:
        """Count rows of the ring in the bins.

        Parameters
        ----------
        rows : int
            Most rows, 0.1 us each.

        Returns
        -------
        bool
            Whether there are more.
        """
        begin, self._drained = self._drained, min(self._written, self._drained + rows)
        if begin < self._drained:
            tally(self._rows_of, begin, self._drained, self._counts)
        return self._drained < self._written

    def drain_all(self) -> None:
        """Count all rows that are left."""
        self.drain(self._written - self._drained)

    def recent(self, part: str, quantile: float, rows: int = 1000) -> float | None:
        """Return a quantile of the last rows of a part, for the live display.

        Parameters
        ----------
        part : str
            Name of the part.
        quantile : float
            0 to 1.
        rows : int, default 1000
            Most rows.

        Returns
        -------
        float | None
            Duration, us; None without any.
        """
        values = self._rows(min(rows, self._written, self._mask + 1))[:, PARTS.index(part)]
        values = values[values != UNDEFINED]
        if values.size == 0:
            return None
        at = min(values.size - 1, int(quantile * values.size))
        return float(np.partition(values, at)[at]) * 1e-3

    def timing_us(self) -> dict[str, dict[str, float | None]]:
        """Return the quantiles of each part.

        Returns
        -------
        dict[str, dict[str, float | None]]
            Durations, us, by part and quantile; None if nothing was recorded.
        """
        self.drain_all()
        table: dict[str, dict[str, float | None]] = {}
        for place, part in enumerate(PARTS):
            histogram = self._histogram(place)
            if histogram.get_total_count() == 0:
                table[part] = dict.fromkeys(QUANTILES)
                continue
            result = histogram.get_percentile_to_value_dict([share for share, _ in QUANTILES.values()])
            table[part] = {name: result[share] * 1e-3 for name, (share, _) in QUANTILES.items()}
        return table

    def histogram(self, part: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the distribution of a part, for a figure.

        Parameters
        ----------
        part : str
            Name of the part.

        Returns
        -------
        tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]
            Durations, us, ascending, and their counts; only those that occurred.
        """
        self.drain_all()
        rows = [
            (item.value_iterated_to, item.count_added_in_this_iter_step)
            for item in self._histogram(PARTS.index(part)).get_recorded_iterator()
        ]
        values = np.array([value for value, _ in rows], dtype=np.float64) * 1e-3
        return values, np.array([count for _, count in rows], dtype=np.int64)

    def _histogram(self, part: int) -> Any:
        histogram, counts = _histogram(), self._counts[part]
        places = np.flatnonzero(counts)
        for value, count in zip(values_of(places).tolist(), counts[places].tolist(), strict=True):
            histogram.record_value(value, count)
        return histogram

    def counters(self) -> dict[str, Any]:
        """Return the counters.

        Returns
        -------
        dict[str, Any]
            Counts by name.
        """
        names = ("steps", "applied", "stale", "misses", "unclaimed", "reused", "max_consecutive", "overruns", "skipped")
        return {name: getattr(self, name) for name in names}

    def _rows(self, count: int) -> npt.NDArray[np.int64]:
        """Return the last `count` rows of the ring (count, 4), oldest first."""
        rows: npt.NDArray[np.int64] = self._rows_of[np.arange(self._written - count, self._written) & self._mask]
        return rows
