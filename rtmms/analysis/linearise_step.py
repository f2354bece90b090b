"""Linearisation of any plant: A and B of one step, by central differences through snapshot, restore and step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rtmms.analysis.chart import Chart, chart_of
from rtmms.analysis.linear import Around, Linear
from rtmms.errors import ModelError
from rtmms.plant import Channel, Plant
from rtmms.spatial import Array

STEP = 1e-6
"""Of the larger of two differences, in the chart's sizes. Small, for drag as |w| w has a kink in its slope wherever w
passes through 0, which costs an error of order STEP; rounding costs about 1e-16 / STEP."""


def linearise_step(plant: Plant, commands: Array | None = None, *, chart: Chart | None = None) -> Linear:
    """A and B of a plant's step, x[k + 1] = A x[k] + B u[k]: at the present state, or their mean along a motion.

    commands  (steps, n_actuators), or (n_actuators,): what is held; several rows: the mean along these steps, each
              around the state that the plant has then. Default: the neutral command
    chart     coordinates; default the plant's own. Along a motion the plant must give its own
    By central differences with steps h and h / 2, h 1e-6 of each coordinate's size, extrapolated; `error` is the
    largest difference that the extrapolation made, in those sizes: an upper estimate wherever the step is smooth. A
    kink in reach of h shows in it. The state is left as it was, bit for bit.
    """
    held = np.array([c.neutral for c in plant.actuators]) if commands is None else np.asarray(commands, dtype=float)
    held = np.atleast_2d(held)
    if held.ndim != 2 or held.shape[1] != len(plant.actuators) or not len(held):
        raise ModelError(f"linearise: commands must have shape (steps, {len(plant.actuators)}), got {held.shape}")
    if chart is not None and len(held) > 1:
        raise ModelError("linearise: along several commands the plant must give its own chart at each state")
    if len(held) == 1:
        return _one(plant, held[0], chart)
    return mean_of(plant, held, lambda command: _one(plant, command))


def mean_of(plant: Plant, commands: Array, at: Callable[[Array], Linear]) -> Linear:
    """The mean of at(command) along the motion under commands (steps, n_actuators); the plant is left as it was."""
    blob, found = plant.snapshot(), []
    try:
        for command in commands:
            found.append(at(command))
            plant.step(command)
    finally:
        plant.restore(blob)
    first = found[0]
    a, b = np.mean([one.a for one in found], axis=0), np.mean([one.b for one in found], axis=0)
    error = max(one.error for one in found)
    return Linear(a, b, first.states, first.inputs, first.dt, error, method=first.method)


def _one(plant: Plant, command: Array, given: Chart | None = None) -> Linear:
    chart = chart_of(plant) if given is None else given
    blob, size, k = plant.snapshot(), np.asarray(chart.size, dtype=float), len(chart.names)
    reach = reach_of(plant.actuators)

    def after(x: Array, u: Array) -> Array:
        plant.restore(blob)
        if np.any(x):
            chart.write(x)
        plant.step(u)
        return chart.read()

    def slope(h: float) -> Array:
        """(k, k + u) in the chart's sizes, and of each actuator's range."""
        columns = []
        for m in range(k + len(command)):
            x, u = np.zeros(k), np.zeros(len(command))
            if m < k:
                x[m] = h * size[m]
            else:
                u[m - k] = h * reach[m - k]
            columns.append((after(x, command + u) - after(-x, command - u)) / (2.0 * h) / size)
        return np.array(columns).T

    try:
        coarse, fine = slope(STEP), slope(STEP / 2.0)
    finally:
        plant.restore(blob)
    both = fine + (fine - coarse) / 3.0  # Richardson: the error in h^2 drops out
    a, b = both[:, :k] * size[:, None] / size, both[:, k:] * size[:, None] / reach
    inputs = tuple(channel.name for channel in plant.actuators)
    return Linear(
        a, b, tuple(chart.names), inputs, plant.dt, float(np.max(np.abs(fine - coarse), initial=0.0)) / 3.0,
        input_units=tuple(channel.unit for channel in plant.actuators),
        around=Around(None, np.zeros(0), blob) if given is None else None, method="stepping",
    )  # fmt: skip


def reach_of(actuators: Sequence[Channel]) -> Array:
    """What counts as one of each actuator: half its range, 1 where it has no limits."""
    spans = [(c.upper - c.lower) / 2.0 if c.upper is not None and c.lower is not None else 1.0 for c in actuators]
    return np.array([span if span > 0.0 else 1.0 for span in spans])
