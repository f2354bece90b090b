"""What a plant may know of the structure of its equations, and means over whole periods of a gait of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from rtmms.analysis.bordered import Bordered
from rtmms.spatial import Array

if TYPE_CHECKING:
    from rtmms.mechanism.plant import TreePlant


def whole_periods(plant: TreePlant, time: Array) -> tuple[float, float]:
    """(start, end) s: the last whole periods of the plant's gait within the second half; that half where none fits."""
    period, half = 2.0 * math.pi / plant.law.omega, float(time[-1] - time[0]) / 2.0
    whole = math.floor(half / period * (1.0 + 1e-9)) * period
    return float(time[-1]) - (whole if whole > 0.0 else half), float(time[-1])


def rise(time: Array, values: Array, start: float, end: float) -> float:
    """Mean rate of a quantity (k,) between two times: its rise by interpolation, over the time."""
    first, last = np.interp([start, end], time, values)
    return float(last - first) / (end - start)


class Structure(Protocol):
    """A and B of a step by what a plant knows of its equations.

    a   of the last step taken, in memory that the next one is written to;  b  (k, n), a copy
    """

    a: Bordered

    @property
    def b(self) -> Array: ...

    def take(self, state: Array, command: Array, reference: Array, time: float) -> bool:
        """The step at a time (s) from a state, as a Fork has it, under a command (n,); the pose after is told in the
        chart around `reference` (7,), where the state has one. False where the step fails."""


@runtime_checkable
class Structured(Protocol):
    """A plant whose A and B have a structure (rtmms.analysis.derivatives)."""

    def structure(self, by: Array) -> Structure | None:
        """With memory of its own; by (k + n,) how far coordinates and commands are displaced to either side, where they
        are. None: of this plant nothing is known; differences of all coordinates, one by one, serve."""
