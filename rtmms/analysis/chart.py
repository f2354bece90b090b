"""Coordinates of any plant's state, and the other abilities that an analysis of a plant uses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from rtmms.analysis.block_matrices import Bordered
from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array
from rtmms.plant.protocol import Plant

if TYPE_CHECKING:
    from rtmms.mechanism.plant import TreePlant


# Coordinates of any plant's state: what a plant offers to be linearised and trimmed.


class Chart(Protocol):
    """Coordinates of a plant's state around the state in which the chart was made: all 0 there.

    Attributes
    ----------
    names : tuple[str, ...]
        Names of the coordinates, in order.
    size : Array
        (k,) size that counts as one of each.
    """

    names: tuple[str, ...]
    size: Array

    def read(self) -> Array:
        """Return the coordinates of the plant's present state.

        Returns
        -------
        Array
            (k,).
        """

    def write(self, coordinates: Array) -> None:
        """Put the plant into the state of these coordinates; the rest of its state stays.

        Parameters
        ----------
        coordinates : Array
            (k,) coordinates.
        """


@runtime_checkable
class HasChart(Protocol):
    """Plant that has coordinates of its state: with `chart` any plant can be linearised and trimmed."""

    def chart(self) -> Chart:
        """Return coordinates around the present state.

        Returns
        -------
        Chart
            The chart.
        """


def chart_of(plant: Plant) -> Chart:
    """Return the plant's own chart.

    Parameters
    ----------
    plant : Plant
        Any plant.

    Returns
    -------
    Chart
        Chart around its present state.

    Raises
    ------
    ModelError
        The plant has none.
    """
    if isinstance(plant, HasChart):
        return plant.chart()
    raise ModelError(
        f"linearise: plant: expected one with a method chart(), got a {type(plant).__name__}; write the "
        "method, or pass a chart (rtmms.analysis.chart.Chart: names, size, read, write)"
    )


# What a plant may know of the structure of its equations, and means over whole periods of a gait of its own.


def whole_periods(plant: TreePlant, time: Array) -> tuple[float, float]:
    """Return the last whole periods of the plant's gait within the second half of a run.

    Parameters
    ----------
    plant : TreePlant
        Plant of a mechanism with a gait.
    time : Array
        (k,) times, s.

    Returns
    -------
    tuple[float, float]
        Start and end, s; the second half where no period fits.
    """
    period, half = 2.0 * math.pi / plant.law.omega, float(time[-1] - time[0]) / 2.0
    whole = math.floor(half / period * (1.0 + 1e-9)) * period
    return float(time[-1]) - (whole if whole > 0.0 else half), float(time[-1])


def rise(time: Array, values: Array, start: float, end: float) -> float:
    """Return the mean rate of a quantity between two times, from interpolated values.

    Parameters
    ----------
    time : Array
        (k,) times, s.
    values : Array
        (k,) values.
    start, end : float
        Instants, s.

    Returns
    -------
    float
        Rise over the time.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms.analysis.chart import rise
    >>> rise(np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 6.0]), 0.5, 1.5)
    3.0
    """
    first, last = np.interp([start, end], time, values)
    return float(last - first) / (end - start)


class Structure(Protocol):
    """Evaluator of A and B of a step by the structure of a plant's equations.

    Attributes
    ----------
    a : Bordered
        A of the last step, in memory that the next one is written to.
    """

    a: Bordered

    @property
    def b(self) -> Array:
        """B of the last step, (k, n), a copy."""
        ...

    def take(self, state: Array, command: Array, reference: Array, time: float) -> bool:
        """Evaluate the step from a state.

        Parameters
        ----------
        state : Array
            (w,) as a Fork has it.
        command : Array
            (n,) command.
        reference : Array
            (7,) pose whose chart has the pose after, where the state has a pose.
        time : float
            Time, s.

        Returns
        -------
        bool
            False where the step fails.
        """


@runtime_checkable
class HasStructure(Protocol):
    """Plant whose A and B have a structure (rtmms.analysis.derivatives)."""

    def structure(self, by: Array) -> Structure | None:
        """Return an evaluator with memory of its own.

        Parameters
        ----------
        by : Array
            (k + n,) displacement of coordinates and commands to either side, for parts by differences.

        Returns
        -------
        Structure | None
            None: the structure of this plant is not known; differences of all coordinates, one by one, are used.
        """
