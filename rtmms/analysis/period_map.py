"""Map of a period of a plant that is driven periodically, from slow coordinates and parameters of the drive.

The result are slow coordinates a period later. Fast ones (joints, filters) start at their values of the steady motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rtmms.analysis.chart import Chart, chart_of
from rtmms.analysis.linearise import Linear
from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array
from rtmms.plant.protocol import Plant


def period_map(
    plant: Plant, commands: Callable[[Array], Array], inputs: Sequence[str], coordinates: Sequence[str], *,
    sizes: Sequence[float] | None = None, steps: Sequence[float] | None = None, chart: Chart | None = None,
) -> Linear:  # fmt: skip
    """Compute x[k + 1] = A x[k] + B u[k] of periods, around the plant's present steady motion.

    The plant is left as it was.

    Parameters
    ----------
    plant : Plant
        Plant on a steady motion.
    commands : Callable[[Array], Array]
        Function from parameters u (len(inputs),), 0 the steady ones, to the commands of one period (steps,
        n_actuators).
    inputs : Sequence[str]
        Names of the parameters.
    coordinates : Sequence[str]
        Names of the chart's coordinates in the map; the others are assumed to decay within a period.
    sizes : Sequence[float] | None, optional
        Displacements of the coordinates; default 1e-3 of the chart's sizes.
    steps : Sequence[float] | None, optional
        Displacements of the parameters; default 1e-3.
    chart : Chart | None, optional
        Chart of the plant's state; default its own.

    Returns
    -------
    Linear
        A and B by central differences. `error` is nan: kinks of drag make differences of different sizes differ.

    Raises
    ------
    ModelError
        The plant lacks a coordinate.
    """
    blob = plant.snapshot()
    chart = chart_of(plant) if chart is None else chart
    unknown = [name for name in coordinates if name not in chart.names]
    if unknown:
        raise ModelError(f"period map: unknown coordinate '{unknown[0]}'; known: {', '.join(chart.names[:20])}")
    where = [chart.names.index(name) for name in coordinates]
    dx = np.asarray(sizes if sizes is not None else 1e-3 * np.asarray(chart.size)[where], dtype=float)
    du = np.asarray(steps if steps is not None else np.full(len(inputs), 1e-3), dtype=float)
    k, zero = len(chart.names), np.zeros(len(inputs))
    steady = commands(zero)

    def after(x: Array, held: Array) -> Array:
        plant.restore(blob)
        if np.any(x):
            chart.write(x)
        for command in held:
            plant.step(command)
        return chart.read()[where]

    try:
        columns = []
        for at, h in zip(where, dx, strict=True):
            x = np.zeros(k)
            x[at] = h
            columns.append((after(x, steady) - after(-x, steady)) / (2.0 * h))
        a = np.array(columns).T
        columns = []
        for i, h in enumerate(du):
            u = zero.copy()
            u[i] = h
            columns.append((after(np.zeros(k), commands(u)) - after(np.zeros(k), commands(-u))) / (2.0 * h))
        b = np.array(columns).T
    finally:
        plant.restore(blob)
    return Linear(a, b, tuple(coordinates), tuple(inputs), len(steady) * plant.dt, float("nan"), method="differences")
