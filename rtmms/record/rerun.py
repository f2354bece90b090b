"""The commands of a log once more, on a new plant in lockstep: whether every output of every step has the same bits."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.errors import DivergedError, ModelError
from rtmms.record.branch import branch_of
from rtmms.record.commands import Difference
from rtmms.record.log import Log, Start
from rtmms.record.log_messages import NO_SEED
from rtmms.record.origin import channels, rebuilt

if TYPE_CHECKING:
    from rtmms.plant import Plant
    from rtmms.record.log import Array


@dataclass
class Rerun:
    """What came of it.

    plant      at the end of what was replayed
    steps      replayed, over all resets;  first   the first difference, None when there is none
    unchecked  why the log could not be replayed to its end, '' when it was
    command    (n,) of the last step, None where there was none
    values     what requests had set by then, by name
    """

    plant: Plant
    steps: int = 0
    first: Difference | None = None
    unchecked: str = ""
    command: Array | None = None
    values: dict[str, Any] = field(default_factory=dict)


def rerun(log: Log, robot: str | None = None, *, trusted: bool = False) -> Rerun:
    """Step a new plant through the log. A reset is done where it was done; pauses and skipped periods leave no trace.

    Parameters that were set are set again, as long as the log has its end, which tells of them. It stops where the log
    lacks a step, and where the state was changed by a request in another way (restore). ModelError when the plant can
    no longer be built, or has other actuators or outputs.
    robot, trusted   see `rebuilt`
    """
    return play(log, rebuilt(log.origin, robot, trusted=trusted))


def play(log: Log, plant: Plant, until: tuple[int, int] | None = None) -> Rerun:
    """The same with a plant that was built for it.

    until   (run, step): stop there, in the run after so many resets, before that step; None: to the end of the log
    """
    origin, beginning = log.origin, branch_of(log.origin)
    if [channels(plant.actuators), channels(plant.outputs)] != [origin["actuators"], origin["outputs"]]:
        raise ModelError(f"robot '{origin['robot']}' has other actuators or outputs than when the run was recorded")
    result, expected = Rerun(plant), -1
    changes = Changes(log, result.values)
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
            result.unchecked = f"the run's state was changed by request at step {row.step}"
            break
        if (changes.run, row.step) == until:
            return result
        try:
            plant.step(row.command)
        except DivergedError as error:
            result.first = result.first or Difference(row.step, error.quantity, "sound", error.reason)
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
    """Why a log whose last run has so many steps is not all of it; '' when it is, or ends without saying how many."""
    if log.damage:
        return log.damage[0]
    told = None if log.end is None else log.end.steps
    return f"the log says it has {told} steps, but {max(steps, 0)} are in it" if told and told > steps else ""


class Changes:
    """The changes by request that the end of a log tells of, in their order. Parameters that were set are set again.

    run   resets so far; -1 before the first start
    """

    def __init__(self, log: Log, values: dict[str, Any]) -> None:
        """values   gets what was set, by name"""
        self.values = values
        told = log.end.told if log.end is not None else {}
        self._left = deque(told.get("changes") or ())
        self.run = -1

    def before_step(self, plant: Plant, step: int) -> bool:
        """Do what was done before this step; False if that is not known, or cannot be done again."""
        done = False
        while self._left and (self._left[0]["run"], self._left[0]["step"]) == (self.run, step):
            if not self._do(plant, self._left.popleft()):
                return False
            done = True
        return done

    def before_reset(self, plant: Plant) -> None:
        """A run ends: what was set after its last step stays over the reset, a state that was restored does not."""
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
    found = result.plant.observe()
    flat = np.concatenate([np.ravel(np.asarray(found[s.name], dtype=np.float64)) for s in log.outputs])
    if flat.tobytes() == recorded.tobytes():
        return
    # a number that is none is written as such, whatever its bits were
    unequal = (flat.view(np.int64) != recorded.view(np.int64)) & ~(np.isnan(flat) & np.isnan(recorded))
    if unequal.any():
        at = int(np.flatnonzero(unequal)[0])
        name = [column for signal in log.outputs for column in signal.columns][at]
        result.first = Difference(step, name, float(recorded[at]), float(flat[at]))


def _compare_end(result: Rerun, log: Log, steps: int) -> None:
    """The whole state, which holds more than the outputs; only of a log that has all steps to its end."""
    end = log.end
    if end is None or end.state is None or end.told.get("steps") != steps or result.first is not None:
        return
    state = result.plant.snapshot()
    if state != end.state:
        told = f"{len(state)} bytes, not the same"
        result.first = Difference(steps - 1, "state", f"{len(end.state)} bytes", told)


def summary(log: Log, result: Rerun) -> Mapping[str, Any]:
    """For `rtmms replay --json`: the same fields as for a trace, and whether all of it could be checked."""
    first = result.first
    return {
        "robot": log.origin["robot"], "steps": result.steps, "dt": log.origin["dt"], "seed": log.origin["seed"],
        "same": first is None, "unchecked": result.unchecked or None,
        "first_difference": None if first is None else {
            "step": first.step, "quantity": first.quantity, "recorded": first.recorded, "replayed": first.replayed,
        },
        "final": result.plant.observe(),
    }  # fmt: skip
