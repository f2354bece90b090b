"""What sensors and the estimate beside them add to a step of the manta, entered as the loop enters it.

The three take turns step by step, so that what else the machine does meets all of them.
"""

from __future__ import annotations

import json
import time
from array import array
from ctypes import c_double
from typing import Any

import numpy as np

import rtmms
from rtmms.addresses import ARGUMENTS, call
from rtmms.jit import kernel
from rtmms.plant import Entry
from rtmms.sensing import Sensed, read_profile
from rtmms.sensing.estimated import Estimated

from . import setting
from .yardsticks import quantiles


@kernel
def _called(function: int, arguments: int) -> int:
    return int(call(function, arguments))


class _Entered:
    """A plant that is stepped by its compiled entry."""

    def __init__(self, plant: Any) -> None:
        self._plant, self._arguments = plant, np.zeros(ARGUMENTS, dtype=np.int64)

    def step(self, command: Any) -> int:
        """ns of the entry and what comes after it."""
        entry: Entry = self._plant.enter()
        self._arguments[: len(entry.arguments)] = entry.arguments
        (c_double * len(command)).from_address(entry.command)[:] = command
        begun = time.monotonic_ns()
        self._plant.entered(_called(entry.function, self._arguments.ctypes.data))
        return time.monotonic_ns() - begun


def measure(steps: int) -> dict[str, Any]:
    """us of a step: of the bare plant, with `typical` sensors, with the estimate beside them; and of what is added."""
    sensors = read_profile("typical", rtmms.load("manta"), {})
    plants: dict[str, Any] = {
        "bare": rtmms.load("manta"),
        "sensors": Sensed(rtmms.load("manta"), sensors),
        "estimate": Estimated(rtmms.load("manta"), sensors),
    }
    entered = {name: _Entered(plant) for name, plant in plants.items()}
    taken = {name: array("q", [0]) * steps for name in plants}
    for k in range(-200, steps):
        command = [0.3 * np.sin(3.8e-3 * k)] * 4
        for name, plant in entered.items():
            ns = plant.step(command)
            if k >= 0:
                taken[name][k] = ns
    added = array("q", [b - a for a, b in zip(taken["bare"], taken["sensors"], strict=True)])
    return {name: quantiles(row) for name, row in taken.items()} | {"sensors_add": quantiles(added)}


def main(as_json: bool = False, steps: int = 8000) -> int:
    """Measure and print; 0."""
    setting.refuse_less("senses: --steps", steps, 100)
    load = [setting.load()]
    found = measure(steps)
    result = {"commit": setting.commit(), "machine": setting.machine(), "load": [*load, setting.load()], **found}
    if as_json:
        print(json.dumps(result))
        return 0
    print(f"us of a step of the manta, {steps} of each by turns; load {load[0]} before")
    for name, row in found.items():
        print(f"  {name.replace('_', ' '):<14} p50 {row['p50']:7.1f}  p99 {row['p99']:7.1f}  p99.9 {row['p999']:7.1f}")
    return 0
