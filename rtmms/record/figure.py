"""What a figure of a run needs, gathered from its log: samples, the last seconds, timings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rtmms.contract import OUTCOME_WORDS, StepOutcome
from rtmms.loop.ports import Applied
from rtmms.loop.statistics import Statistics
from rtmms.loop.trace import CAPACITY, Recent, Trace
from rtmms.plant import describe_plant
from rtmms.record.log import Log, Start

if TYPE_CHECKING:
    from rtmms.plant import Plant

APART_S = 0.01
LARGEST = 1e100
"""What is larger is not drawn."""


@dataclass(frozen=True)
class Gathered:
    """As an observed run keeps them. Of a run that was reset, what came after the last reset."""

    trace: Trace
    recent: Recent
    statistics: Statistics


def gather(
    log: Log, plant: Plant, names: tuple[str, ...] | None = None, recent_names: tuple[str, ...] | None = None,
    along: Trace | None = None,
) -> Gathered:  # fmt: skip
    """Read the log once.

    plant         of the log's robot
    names         outputs to sample, None for those the plant itself asks
    recent_names  outputs to keep of the last seconds, None for those the plant itself asks
    along         filled as well
    """
    schedule = {} if log.end is None else (log.end.told.get("report") or {}).get("schedule") or {}
    about = describe_plant(plant)
    kept = about.trace_outputs if names is None else names
    trace = Trace(plant.outputs, kept, plant.dt, planned_steps(log), _rows(log, kept), APART_S)
    recent = Recent(plant.outputs, about.recent_outputs if recent_names is None else recent_names, plant.dt)
    observers = (trace, recent) if along is None else (trace, recent, along)
    statistics = Statistics(period_us=schedule.get("period_us"), deadline_us=schedule.get("deadline_us"))
    applied = Applied()
    for row in log.rows():
        if isinstance(row, Start):
            statistics.clear()
            for observer in observers:
                observer.clear()
                if isinstance(observer, Trace):
                    observer.first = row.step
                observer.start(log.split(row.outputs))
            continue
        statistics.count(StepOutcome(OUTCOME_WORDS.index(row.outcome)))
        statistics.record(*row.times)
        statistics.overruns, statistics.skipped = row.overruns, row.skipped
        outputs = log.split(np.where(np.abs(row.outputs) <= LARGEST, row.outputs, np.nan))
        for observer in observers:
            if observer.due <= row.step:
                observer.after_step(row.step, (row.step + 1) * plant.dt, outputs, row.command, applied)
    return Gathered(trace, recent, statistics)


def planned_steps(log: Log) -> int | None:
    """Of the run, as it was asked for; None where it had no end."""
    duration = log.origin.get("duration")
    return None if duration is None else round(float(duration) / float(log.origin["dt"]))


def _rows(log: Log, names: tuple[str, ...], most_bytes: int = 1 << 26) -> int:
    row = sum(8 * signal.size for signal in log.outputs if signal.name in names)
    return max(1024, min(CAPACITY, most_bytes // max(1, row)))
