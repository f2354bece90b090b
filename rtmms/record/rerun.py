"""The commands of a log once more, on a new plant in lockstep: whether every output of every step has the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import rtmms
from rtmms.errors import DivergedError, ModelError
from rtmms.record.commands import Difference
from rtmms.record.layout import NO_SEED
from rtmms.record.log import Log, Start
from rtmms.record.origin import channels

if TYPE_CHECKING:
    from rtmms.plant import Plant
    from rtmms.record.log import Array


@dataclass
class Rerun:
    """What came of it.

    plant      at the end of what was replayed
    steps      replayed, over all resets;  first   the first difference, None when there is none
    unchecked  why the log could not be replayed to its end, '' when it was
    """

    plant: Plant
    steps: int = 0
    first: Difference | None = None
    unchecked: str = ""


def rerun(log: Log) -> Rerun:
    """Step a new plant through the log. A reset is done where it was done; pauses and skipped periods leave no trace.

    It stops where the log lacks a step, and where the state was changed by a request (set, restore). ModelError when
    the plant can no longer be built, or has other actuators or outputs.
    """
    origin = log.origin
    plant = rtmms.load(origin["robot"], dt=origin["dt"], preset=origin["preset"], **origin["parameters"])
    if [channels(plant.actuators), channels(plant.outputs)] != [origin["actuators"], origin["outputs"]]:
        raise ModelError(f"robot '{origin['robot']}' has other actuators or outputs than when the run was recorded")
    result, expected = Rerun(plant), -1
    for row in log.rows():
        if isinstance(row, Start):
            if row.seed == NO_SEED:
                result.unchecked = "the seed of a reset was too large to be kept"
                break
            plant.reset(row.seed)
            expected = row.step
            _compare(result, log, row.step - 1, row.outputs)
            continue
        if row.step != expected:
            result.unchecked = f"step {max(expected, 0)} is not in the log, which goes on with step {row.step}"
            break
        if row.altered:
            result.unchecked = f"the run's state was changed by request at step {row.step}"
            break
        try:
            plant.step(row.command)
        except DivergedError as error:
            result.first = result.first or Difference(row.step, error.quantity, "sound", error.reason)
            return result
        _compare(result, log, row.step, row.outputs)
        expected, result.steps = row.step + 1, result.steps + 1
    if not result.unchecked:
        _compare_end(result, log, expected)
    return result


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
