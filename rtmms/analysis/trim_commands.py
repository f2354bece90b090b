"""Periodic motions of any plant under periodic commands, by shooting on its period map through its own chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.chart import Chart, chart_of
from rtmms.errors import ModelError
from rtmms.plant import Plant
from rtmms.spatial import Array

TRAVEL = ("x_error", "y_error", "z_error")
"""Coordinates that need not come back: the plant moves on."""

STEP = 1e-5
NEUTRAL = 1e-4
"""By how much a neutral direction's multiplier, from differences of STEP, may be above 1."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """A periodic motion.

    snapshot     of the plant at the period's start
    period_s     s
    residual     largest closing error, in the chart's sizes
    multipliers  Floquet multipliers of all coordinates, largest first; neutral directions give 1
    travel       (3,) m, world, over one period; None for a plant without a position
    iterations   of Newton's method
    """

    snapshot: bytes
    period_s: float
    residual: float
    multipliers: npt.NDArray[np.complex128]
    travel: Array | None
    iterations: int


def trim_commands(
    plant: Plant, commands: Array, close: Sequence[str] | None = None, *, settle: int = 20, tolerance: float = 1e-8,
    iterations: int = 12, say: Callable[[str], None] | None = None,
) -> Periodic:  # fmt: skip
    """Find the motion that comes back after one period of commands (steps, n_actuators).

    close      names of the chart's coordinates that must come back; default all but the position's (TRAVEL)
    settle     periods run before the first guess is taken
    tolerance  of the closing error, in the chart's sizes
    say        told of progress: the map's slope takes two periods for each coordinate
    By a chord method (the slope is taken once) on central differences of the period map; least squares, so that neutral
    directions stay where they are. The plant is left at the period's start, snapshot's time included. ModelError where
    there is no chart, no such coordinate, or no periodic motion near where the plant settles.
    """
    held = np.atleast_2d(np.asarray(commands, dtype=float))
    if held.ndim != 2 or held.shape[1] != len(plant.actuators):
        raise ModelError(f"trim: commands must have shape (steps, {len(plant.actuators)}), got {held.shape}")
    say = say or (lambda words: None)
    plant.reset()
    say(f"trim: {settle} periods to settle")
    for _ in range(settle):
        _period(plant, held)
    chart = chart_of(plant)
    start, size, names = plant.snapshot(), np.asarray(chart.size, dtype=float), tuple(chart.names)
    rows = _rows(names, close)

    def defect(c: Array) -> Array:
        """(k,) in the chart's sizes."""
        _put(plant, chart, start, c * size)
        _period(plant, held)
        wrong: Array = chart.read() / size - c
        return wrong

    say(f"trim: slope of the period map, {2 * len(names)} periods")
    c = np.zeros(len(names))
    slope = _slope(defect, c)
    wrong, used = defect(c), 0
    while np.max(np.abs(wrong[rows])) > tolerance and used < iterations:
        c = c - np.linalg.lstsq(slope[rows], wrong[rows], rcond=1e-7)[0]
        wrong, used = defect(c), used + 1
    residual = float(np.max(np.abs(wrong[rows])))
    if not residual <= max(tolerance, 1e-6):
        worst = [names[k] for k in rows][int(np.argmax(np.abs(wrong[rows])))]
        raise ModelError(
            f"trim found no periodic motion: after {used} iterations the state still misses by {residual:.3g} in "
            f"'{worst}'; let it settle for longer"
        )
    if used:
        say("trim: the multipliers there")
        slope = _slope(defect, c)
    values = np.linalg.eigvals(slope + np.eye(len(names))).astype(complex)
    _put(plant, chart, start, c * size)
    found, before = plant.snapshot(), _position(plant)
    _period(plant, held)
    after = _position(plant)
    plant.restore(found)
    travel = None if before is None or after is None else after - before
    return Periodic(found, len(held) * plant.dt, residual, values[np.argsort(-np.abs(values))], travel, used)


def as_words(robot: str, found: Periodic) -> dict[str, Any]:
    """A periodic motion as plain numbers, for a report or JSON; the state is the plant's own snapshot, in hex."""
    travel = found.travel
    return {
        "robot": robot, "period_s": found.period_s, "amplitude_factor": 1.0, "stiffness_factor": 1.0,
        "residual": found.residual, "iterations": found.iterations,
        "travel_m": None if travel is None else travel.tolist(),
        "mean_speed_m_s": None if travel is None else float(np.linalg.norm(travel)) / found.period_s,
        "multipliers": [abs(value) for value in found.multipliers[:12].tolist()],
        "stable": bool(abs(found.multipliers[0]) < 1.0 + NEUTRAL), "stable_within": NEUTRAL,
        "snapshot": found.snapshot.hex(),
    }  # fmt: skip


def _period(plant: Plant, held: Array) -> None:
    for command in held:
        plant.step(command)


def _put(plant: Plant, chart: Chart, blob: bytes, c: Array) -> None:
    plant.restore(blob)
    if np.any(c):
        chart.write(c)


def _slope(defect: Callable[[Array], Array], c: Array) -> Array:
    """(k, k) central differences, steps of STEP of each coordinate's size."""
    columns = []
    for k in range(len(c)):
        step = np.zeros(len(c))
        step[k] = STEP
        columns.append((defect(c + step) - defect(c - step)) / (2.0 * STEP))
    return np.array(columns).T


def _rows(names: tuple[str, ...], close: Sequence[str] | None) -> npt.NDArray[np.intp]:
    if close is None:
        return np.array([k for k, name in enumerate(names) if name not in TRAVEL], dtype=np.intp)
    unknown = [name for name in close if name not in names]
    if unknown:
        raise ModelError(f"trim: unknown coordinate '{unknown[0]}'; known: {', '.join(names[:20])} ...")
    return np.array(sorted({names.index(name) for name in close}), dtype=np.intp)


def _position(plant: Plant) -> Array | None:
    if not any(channel.name == "position" and channel.shape == (3,) for channel in plant.outputs):
        return None
    return np.array(plant.observe()["position"], dtype=float)
