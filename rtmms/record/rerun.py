"""Reruns of a log's commands, and the samples of a log that a figure needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import OUTCOME_WORDS, StepOutcome
from rtmms.base.errors import DivergedError, ModelError
from rtmms.loop.ports import Applied
from rtmms.loop.statistics import Statistics
from rtmms.loop.trace import MAX_SAMPLES, Recent, Trace
from rtmms.plant.description import describe_plant
from rtmms.record.commands import FirstDifference
from rtmms.record.log import Log, Start
from rtmms.record.log_messages import NO_SEED
from rtmms.record.origin import branch_of, channels, rebuild_plant

if TYPE_CHECKING:
    from rtmms.plant.protocol import Plant
    from rtmms.record.log import Array


# Replay of a log's commands on a new plant in lockstep: whether every output of every step has the same bits.


@dataclass
class Rerun:
    """Result of a rerun.

    Parameters
    ----------
    plant : Plant
        The plant at the end of the replayed part.
    steps : int, default 0
        Replayed steps, over all resets.
    first : FirstDifference | None, optional
        The first difference; None for none.
    unchecked : str, default ''
        Why the log could not be replayed to its end; empty if it was.
    command : Array | None, optional
        (n,) command of the last step; None without one.
    values : dict[str, Any], optional
        Values that requests had set by then, by name.
    """

    plant: Plant
    steps: int = 0
    first: FirstDifference | None = None
    unchecked: str = ""
    command: Array | None = None
    values: dict[str, Any] = field(default_factory=dict)


def rerun(log: Log, robot: str | None = None, *, trusted: bool = False) -> Rerun:
    """Step a new plant through the log.

    A reset is repeated at its place; pauses and skipped periods leave no trace. Parameters that were set are set again,
    if the log has its end, which lists them. The rerun stops if the log lacks a step, or if another request (restore)
    changed the state.

    Parameters
    ----------
    log : Log
        The log.
    robot : str | None, optional
        Robot in place of the log's own, as the user named it; None: the log's own.
    trusted : bool, default False
        Whether the user declared that files which the log names may run.

    Returns
    -------
    Rerun
        The result.

    Raises
    ------
    ModelError
        If the plant can no longer be built, or has other actuators or outputs.
    """
    return play(log, rebuild_plant(log.origin, robot, trusted=trusted))


def play(log: Log, plant: Plant, until: tuple[int, int] | None = None) -> Rerun:
    """Step a plant that was built for a log through the log.

    Parameters
    ----------
    log : Log
        The log.
    plant : Plant
        The plant.
    until : tuple[int, int] | None, optional
        (run, step): stop in the run after so many resets, before that step; None: at the end of the log.

    Returns
    -------
    Rerun
        The result.

    Raises
    ------
    ModelError
        If the plant has other actuators or outputs.
    """
    origin, beginning = log.origin, branch_of(log.origin)
    if [channels(plant.actuators), channels(plant.outputs)] != [origin["actuators"], origin["outputs"]]:
        raise ModelError(f"robot '{origin['robot']}' has other actuators or outputs now than in the recorded run")
    result, expected = Rerun(plant), -1
    changes = RequestedChanges(log, result.values)
    for row in log.rows():
        if isinstance(row, Start):
            changes.before_reset(plant)
            if row.seed == NO_SEED:
                result.unchecked = "the seed of a reset was too large to be kept"
                break
            plant.reset(row.seed)
            if changes.run == 0 and beginning is not None:
                beginning.begin(plant)
                result.values.update(beginning.values)
            expected = row.step
            _compare(result, log, row.step - 1, row.outputs)
            continue
        if row.step != expected:
            result.unchecked = f"step {max(expected, 0)} is not in the log, which goes on with step {row.step}"
            break
        if row.altered and not changes.before_step(plant, row.step):
            result.unchecked = f"a request changed the state of the run at step {row.step}"
            break
        if (changes.run, row.step) == until:
            return result
        try:
            plant.step(row.command)
        except DivergedError as error:
            result.first = result.first or FirstDifference(row.step, error.quantity, "sound", error.reason)
            return result
        _compare(result, log, row.step, row.outputs)
        expected, result.steps, result.command = row.step + 1, result.steps + 1, row.command
    if (changes.run, expected) == until and not result.unchecked:
        changes.before_step(plant, expected)
        return result
    if not result.unchecked:
        result.unchecked = _lacking(log, expected)
    if not result.unchecked:
        _compare_end(result, log, expected)
    return result


def _lacking(log: Log, steps: int) -> str:
    """Return why a log is incomplete; empty if it is complete, or ends without its number of steps."""
    if log.damage:
        return log.damage[0]
    recorded = None if log.end is None else log.end.steps
    return f"the log declares {recorded} steps, but {max(steps, 0)} are in it" if recorded and recorded > steps else ""


class RequestedChanges:
    """Changes by request in the end of a log, in their order; parameters that were set are set again.

    Parameters
    ----------
    log : Log
        The log.
    values : dict[str, Any]
        Receives the values that were set, by name.

    Attributes
    ----------
    run : int
        Resets so far; -1 before the first start.
    """

    def __init__(self, log: Log, values: dict[str, Any]) -> None:
        """Read the changes."""
        self.values = values
        report = log.end.fields if log.end is not None else {}
        self._left = deque(report.get("changes") or ())
        self.run = -1

    def before_step(self, plant: Plant, step: int) -> bool:
        """Repeat the changes before a step.

        Parameters
        ----------
        plant : Plant
            The plant.
        step : int
            Index of the step.

        Returns
        -------
        bool
            False if a change is unknown, or cannot be repeated.
        """
        done = False
        while self._left and (self._left[0]["run"], self._left[0]["step"]) == (self.run, step):
            if not self._do(plant, self._left.popleft()):
                return False
            done = True
        return done

    def before_reset(self, plant: Plant) -> None:
        """Repeat the changes after a run's last step: parameters remain over the reset, a restored state does not.

        Parameters
        ----------
        plant : Plant
            The plant.
        """
        while self._left and self._left[0]["run"] <= self.run:
            self._do(plant, self._left.popleft())
        self.run += 1

    def _do(self, plant: Plant, change: Mapping[str, Any]) -> bool:
        if change.get("op") != "set":
            return False
        plant.set(**change["args"])  # type: ignore[attr-defined]
        self.values.update(change["args"])
        return True


def _compare(result: Rerun, log: Log, step: int, recorded: Array) -> None:
    if result.first is not None:
        return
    outputs = result.plant.observe()
    flat = np.concatenate([np.ravel(np.asarray(outputs[s.name], dtype=np.float64)) for s in log.outputs])
    if flat.tobytes() == recorded.tobytes():
        return
    # NaN is written as such, without its bits
    unequal = (flat.view(np.int64) != recorded.view(np.int64)) & ~(np.isnan(flat) & np.isnan(recorded))
    if unequal.any():
        at = int(np.flatnonzero(unequal)[0])
        name = [column for signal in log.outputs for column in signal.columns][at]
        result.first = FirstDifference(step, name, float(recorded[at]), float(flat[at]))


def _compare_end(result: Rerun, log: Log, steps: int) -> None:
    """Compare the whole state, which has more than the outputs; only for a log with all steps to its end."""
    end = log.end
    if end is None or end.state is None or end.fields.get("steps") != steps or result.first is not None:
        return
    state = result.plant.snapshot()
    if state != end.state:
        difference = f"{len(state)} bytes, not the same"
        result.first = FirstDifference(steps - 1, "state", f"{len(end.state)} bytes", difference)


def summary(log: Log, result: Rerun) -> Mapping[str, Any]:
    """Return the result for `rtmms replay --json`: the same fields as for a trace, and whether all could be checked.

    Parameters
    ----------
    log : Log
        The log.
    result : Rerun
        The result.

    Returns
    -------
    Mapping[str, Any]
        Values by name.
    """
    first = result.first
    return {
        "robot": log.origin["robot"], "steps": result.steps, "dt": log.origin["dt"], "seed": log.origin["seed"],
        "same": first is None, "unchecked": result.unchecked or None,
        "first_difference": None if first is None else {
            "step": first.step, "quantity": first.quantity, "recorded": first.recorded, "replayed": first.replayed,
        },
        "final": result.plant.observe(),
    }  # fmt: skip


# Data of a run's figure, gathered from its log: samples, the last seconds, timings.


SAMPLE_S = 0.01
MAX_DRAWN = 1e100
"""Magnitude of a number that is drawn."""


@dataclass(frozen=True)
class LogSamples:
    """Samples of a log as an observed run has them; of a run that was reset, those after the last reset.

    Parameters
    ----------
    trace : Trace
        Samples over the run.
    recent : Recent
        Samples of the last seconds.
    statistics : Statistics
        Counts and timings.
    """

    trace: Trace
    recent: Recent
    statistics: Statistics


def gather(
    log: Log, plant: Plant, names: tuple[str, ...] | None = None, recent_names: tuple[str, ...] | None = None,
    along: Trace | None = None,
) -> LogSamples:  # fmt: skip
    """Read a log once for a figure.

    Parameters
    ----------
    log : Log
        The log.
    plant : Plant
        Plant of the log's robot.
    names : tuple[str, ...] | None, optional
        Outputs to sample; None for those of the plant itself.
    recent_names : tuple[str, ...] | None, optional
        Outputs of the last seconds; None for those of the plant itself.
    along : Trace | None, optional
        A further trace to fill.

    Returns
    -------
    LogSamples
        The samples.
    """
    schedule = {} if log.end is None else (log.end.fields.get("report") or {}).get("schedule") or {}
    about = describe_plant(plant)
    output_names = about.trace_outputs if names is None else names
    trace = Trace(plant.outputs, output_names, plant.dt, planned_steps(log), _rows(log, output_names), SAMPLE_S)
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
        outputs = log.split(np.where(np.abs(row.outputs) <= MAX_DRAWN, row.outputs, np.nan))
        for observer in observers:
            if observer.due <= row.step:
                observer.after_step(row.step, (row.step + 1) * plant.dt, outputs, row.command, applied)
    return LogSamples(trace, recent, statistics)


def planned_steps(log: Log) -> int | None:
    """Return the requested number of steps of a run.

    Parameters
    ----------
    log : Log
        The log.

    Returns
    -------
    int | None
        The number; None for a run without a fixed end.
    """
    duration = log.origin.get("duration")
    return None if duration is None else round(float(duration) / float(log.origin["dt"]))


def _rows(log: Log, names: tuple[str, ...], most_bytes: int = 1 << 26) -> int:
    row = sum(8 * signal.size for signal in log.outputs if signal.name in names)
    return max(1024, min(MAX_SAMPLES, most_bytes // max(1, row)))
