"""Coordinates of any plant's state, and the other abilities that a plant may offer to be analysed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from rtmms.analysis.block_matrices import Bordered
from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array
from rtmms.plant.coordinates import displaced, displacement
from rtmms.plant.protocol import Plant

if TYPE_CHECKING:
    from rtmms.mechanism.plant import TreePlant


# Coordinates of any plant's state: what a plant offers to be linearised and trimmed.


__all__ = ["Chart", "Charted", "chart_of", "displaced", "displacement"]


class Chart(Protocol):
    """Coordinates of a plant's state around where the plant stood when the chart was made: all 0 there.

    names  of the coordinates, in order
    size   (k,) what counts as one of each
    """

    names: tuple[str, ...]
    size: Array

    def read(self) -> Array:
        """(k,) of the plant's present state."""

    def write(self, coordinates: Array) -> None:
        """Put the plant into the state of these coordinates; whatever else it keeps stays as it is."""


@runtime_checkable
class Charted(Protocol):
    """A plant that gives coordinates of its state: with `chart` any plant can be linearised and trimmed."""

    def chart(self) -> Chart:
        """Coordinates around the present state."""


def chart_of(plant: Plant) -> Chart:
    """The plant's own chart; ModelError where it has none."""
    if isinstance(plant, Charted):
        return plant.chart()
    raise ModelError(
        f"linearise: a {type(plant).__name__} gives no coordinates of its state; give it a method chart(), or pass one "
        "(rtmms.analysis.chart.Chart: names, size, read, write)"
    )


# What a plant may know of the structure of its equations, and means over whole periods of a gait of its own.


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
        """The step at a time (s) from a state, as a Fork has it, under a command (n,); the pose after is in the
        chart around `reference` (7,), where the state has one. False where the step fails."""


@runtime_checkable
class Structured(Protocol):
    """A plant whose A and B have a structure (rtmms.analysis.derivatives)."""

    def structure(self, by: Array) -> Structure | None:
        """With memory of its own; by (k + n,) how far coordinates and commands are displaced to either side, where they
        are. None: of this plant nothing is known; differences of all coordinates, one by one, serve."""
