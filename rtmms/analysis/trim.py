"""Periodic motions by shooting on the period map: of trees, and of any plant under periodic commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.chart import Chart, chart_of
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.dynamics.inertia import composite_inertia
from rtmms.model.layout import C_STIFFNESS
from rtmms.plant.coordinates import displace_pose, displacement
from rtmms.plant.protocol import Plant

if TYPE_CHECKING:
    from rtmms.mechanism.plant import TreePlant


# Periodic gaits by shooting on the period map: a state, and if wanted an amplitude or a stiffness, that comes back.


UNKNOWNS = ("amplitude", "stiffness")
NEUTRAL = 1e-6
"""Excess of a neutral direction's multiplier over 1 up to which the gait counts as stable."""
SLOW = 0.8
"""Remaining share of the error after Newton's step, above which the step counts as slow."""


@dataclass(frozen=True, slots=True)
class Trim:
    """A periodic gait.

    Attributes
    ----------
    vector : Array
        (13 + 2 n,) the state at the period's start (rtmms.mechanism.step).
    amplitude : float
        Factor on the gait's amplitude, 1 where it was not an unknown.
    stiffness : float
        Factor on the stiffness of all joints that have one, 1 where it was not an unknown.
    residual : float
        Largest closing error, in the coordinates that were to close (rad, m/s, rad/s, m).
    multipliers : npt.NDArray[np.complex128]
        Floquet multipliers of the whole state, largest first; neutral directions have 1.
    travel : Array
        (3,) m, world, over one period.
    iterations : int
        Iterations of Newton's method.
    """

    vector: Array
    amplitude: float
    stiffness: float
    residual: float
    multipliers: npt.NDArray[np.complex128]
    travel: Array
    iterations: int


@dataclass(frozen=True, slots=True)
class TreeChart:
    """Coordinates around a state: position 3, rotation vector 3, twist 6, then q and qd of the free joints.

    Attributes
    ----------
    origin : Array
        (13 + 2 n,) state vector.
    free : npt.NDArray[np.intp]
        (m,) indices of the free joints.
    """

    origin: Array
    free: npt.NDArray[np.intp]

    @property
    def size(self) -> int:
        """Number of coordinates, 12 + 2 m."""
        return 12 + 2 * len(self.free)

    def names(self) -> list[str]:
        """Return the names of the coordinates.

        Returns
        -------
        list[str]
            In order.
        """
        joints = [f"q{j}" for j in self.free] + [f"qd{j}" for j in self.free]
        return ["x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "wx", "wy", "wz", *joints]

    def vector(self, c: Array) -> Array:
        """Return the state vector of coordinates.

        Parameters
        ----------
        c : Array
            (12 + 2 m,) coordinates.

        Returns
        -------
        Array
            (13 + 2 n,).
        """
        out, n, m = self.origin.copy(), (len(self.origin) - 13) // 2, len(self.free)
        r = quaternion_matrix(self.origin[3:7])
        out[:7] = displace_pose(self.origin[:7], np.concatenate([r.T @ c[:3], c[3:6]]))
        out[7 + n : 13 + n] += c[6:12]
        out[7 + self.free] += c[12 : 12 + m]
        out[13 + n + self.free] += c[12 + m :]
        return out

    def coordinates(self, vector: Array) -> Array:
        """Return the coordinates of a state vector.

        Parameters
        ----------
        vector : Array
            (13 + 2 n,) state vector.

        Returns
        -------
        Array
            (12 + 2 m,).
        """
        n = (len(vector) - 13) // 2
        turn = displacement(self.origin[:7], vector[:7])[3:]
        d = vector - self.origin
        return np.concatenate(
            [d[:3], turn, d[7 + n : 13 + n], d[7 + self.free], d[13 + n + self.free]]
        )  # fmt: skip


def period_map(plant: TreePlant, vector: Array, amplitude: float = 1.0, stiffness: float = 1.0) -> Array:
    """Return the state vector one gait period after `vector`, with neutral commands.

    The period is the first whole one after the gait's ramp (t = 0 without one). The plant is left at its end.

    Parameters
    ----------
    plant : TreePlant
        Plant of a mechanism with a gait.
    vector : Array
        (13 + 2 n,) state at the period's start.
    amplitude, stiffness : float, default 1.0
        Factors on the gait's amplitude and on the springs' stiffness.

    Returns
    -------
    Array
        (13 + 2 n,).

    Raises
    ------
    ModelError
        The period is no whole number of steps.
    """
    period = 2.0 * math.pi / plant.law.omega
    steps = round(period / plant.dt)
    if abs(steps * plant.dt - period) > 1e-9 * period:
        raise ModelError(
            f"{plant.model.name}: trim: expected a whole number of steps in a period of {period:.6g} s, got dt = "
            f"{plant.dt:.6g} s; set dt = {period / max(1, steps):.12g}"
        )
    plant.start(vector, steps * math.ceil(plant.law.ramp / period - 1e-9))
    with plant.scaled(amplitude, stiffness):
        for _ in range(steps):
            plant.step(plant.neutral)
    return plant.vector.copy()


def fitting_dt(plant: TreePlant) -> float:
    """Return the largest step not above the plant's own that divides its gait's period.

    Parameters
    ----------
    plant : TreePlant
        Plant of a mechanism with a gait.

    Returns
    -------
    float
        s.
    """
    period = 2.0 * math.pi / plant.law.omega
    steps = round(period / plant.dt)
    if steps > 0 and abs(steps * plant.dt - period) <= 1e-9 * period:
        return plant.dt
    return period / math.ceil(period / plant.dt)


def trim(
    plant: TreePlant, close: Sequence[str] | None = None, *, unknown: str | None = None, settle: int = 5,
    tolerance: float = 1e-9, iterations: int = 20,
) -> Trim:  # fmt: skip
    """Find a periodic gait by Newton's method on the period map (least squares, central differences).

    Parameters
    ----------
    plant : TreePlant
        Plant of a mechanism with a gait.
    close : Sequence[str] | None, optional
        Names of the coordinates that must come back (TreeChart.names), 'joints' for all q and qd. Default: all but x,
        y, z, which is a gait that travels.
    unknown : str | None, optional
        'amplitude' or 'stiffness': the gait's amplitude, or the stiffness of all springs, is an unknown too. With z
        closed as well, the robot hovers.
    settle : int, default 5
        Periods before the first guess.
    tolerance : float, default 1e-09
        Bound on the closing error.
    iterations : int, default 20
        Largest number of iterations.

    Returns
    -------
    Trim
        The gait.

    Raises
    ------
    ModelError
        The gait has no period, or no orbit is found.
    UnknownNameError
        The unknown has another name.
    """
    if plant.law.omega <= 0.0 or not np.any(plant.law.motion[:, 1:]):
        raise ModelError(f"{plant.model.name}: trim: expected a robot with a periodic gait, got one without")
    if unknown is not None and unknown not in UNKNOWNS:
        raise UnknownNameError("unknown of trim", unknown, UNKNOWNS)
    if unknown == "stiffness" and not np.any(plant.model.constant[:, C_STIFFNESS]):
        raise ModelError(f"{plant.model.name}: trim: unknown='stiffness': expected joints with springs, got none")
    vector = _settled(plant, settle)
    chart = TreeChart(vector, np.flatnonzero(~plant.model.imposed))
    names = chart.names()
    rows = _rows(names, close, plant.model.name)
    c, a = np.zeros(chart.size), 1.0

    def defect(c: Array, a: float) -> Array:
        return chart.coordinates(period_map(plant, chart.vector(c), *_factors(unknown, a))) - c

    size = _sizes(plant, chart)
    weight, wide = 1.0 / size[rows], np.append(size, 1.0) if unknown else size
    wrong = defect(c, a)
    used = slow = 0
    while np.max(np.abs(wrong[rows])) > tolerance and used < iterations:
        jacobian = _jacobian(defect, c, a, unknown is not None)[rows] * weight[:, None] * wide
        step = wide * np.linalg.lstsq(jacobian, -weight * wrong[rows], rcond=1e-9)[0]
        scale = 1.0
        while True:  # halve the step until the error falls
            trial, factor = c + scale * step[: chart.size], a + (scale * step[-1] if unknown else 0.0)
            after = defect(trial, factor)
            if np.linalg.norm(weight * after[rows]) < np.linalg.norm(weight * wrong[rows]) or scale < 1e-3:
                break
            scale *= 0.5
        if scale < 1e-3:
            break
        fell = np.linalg.norm(weight * after[rows]) / np.linalg.norm(weight * wrong[rows])
        slow = slow + 1 if fell > SLOW else 0
        c, a, wrong, used = trial, factor, after, used + 1
        if slow == 3:  # it creeps: there is no orbit to go to
            break
    residual = float(np.max(np.abs(wrong[rows])))
    if residual > max(tolerance, 1e-6):
        raise ModelError(
            f"{plant.model.name}: trim: no periodic orbit found: after {used} iterations "
            f"'{[names[k] for k in rows][int(np.argmax(np.abs(wrong[rows])))]}' still differs by {residual:.3g} "
            "between start and end of a period; give a larger `settle`"
        )
    matrix = _jacobian(defect, c, a, False) + np.eye(chart.size)
    values = np.linalg.eigvals(matrix).astype(complex)
    final = chart.vector(c)
    travel = period_map(plant, final, *_factors(unknown, a))[:3] - final[:3]
    plant.reset()
    return Trim(final, *_factors(unknown, a), residual, values[np.argsort(-np.abs(values))], travel, used)


def _factors(unknown: str | None, a: float) -> tuple[float, float]:
    """Return the factors on amplitude and stiffness."""
    return (a, 1.0) if unknown == "amplitude" else (1.0, a)


def trimmed(plant: TreePlant, unknown: str | None = None) -> Trim:
    """Find the periodic gait with the robot's own choice of closed coordinates, as a hovering orbit of the moth.

    Parameters
    ----------
    plant : TreePlant
        Plant of a mechanism with a gait.
    unknown : str | None, optional
        'amplitude', 'stiffness' or 'none' instead of the robot's own choice.

    Returns
    -------
    Trim
        The gait.
    """
    wanted = dict(plant.trim_options)
    if unknown is not None:
        wanted["unknown"] = None if unknown == "none" else unknown
    return trim(plant, **wanted)


def as_words(plant: TreePlant, result: Trim) -> dict[str, Any]:
    """Return a trim as plain numbers, for a report or JSON.

    Parameters
    ----------
    plant : TreePlant
        Plant of the gait.
    result : Trim
        The gait.

    Returns
    -------
    dict[str, Any]
        Values by name, with their units in the names.
    """
    period = 2.0 * math.pi / plant.law.omega
    return {
        "robot": plant.model.name, "period_s": period, "amplitude_factor": result.amplitude,
        "stiffness_factor": result.stiffness, "residual": result.residual, "iterations": result.iterations,
        "travel_m": result.travel.tolist(), "mean_speed_m_s": float(np.linalg.norm(result.travel)) / period,
        "multipliers": [abs(value) for value in result.multipliers[:12].tolist()],
        "stable": bool(abs(result.multipliers[0]) < 1.0 + NEUTRAL), "stable_within": NEUTRAL,
        "state": result.vector.tolist(),
    }  # fmt: skip


def _sizes(plant: TreePlant, chart: TreeChart) -> Array:
    """Return the size that counts as one of each coordinate.

    It is the radius of gyration, a radian, and their rates at the gait's omega.
    """
    inertia = composite_inertia(plant.model, plant.model.state())
    radius, omega = math.sqrt(float(np.trace(inertia[3:, 3:]) / np.trace(inertia[:3, :3]))), plant.law.omega
    m = len(chart.free)
    return np.concatenate(
        [np.full(3, radius), np.ones(3), np.full(3, radius * omega), np.full(3, omega), np.ones(m), np.full(m, omega)]
    )  # fmt: skip


def _settled(plant: TreePlant, periods: int) -> Array:
    """Return the state after some periods; after each the base is put back to its place, and to rest."""
    plant.reset()
    start, n = plant.vector.copy(), plant.model.n
    vector = start.copy()
    for _ in range(periods):
        vector = period_map(plant, vector)
        vector[:7], vector[7 + n : 13 + n] = start[:7], start[7 + n : 13 + n]
    return vector


def _rows(names: list[str], close: Sequence[str] | None, robot: str) -> npt.NDArray[np.intp]:
    if close is None:
        return np.arange(3, len(names))
    rows: list[int] = []
    for name in close:
        if name == "joints":
            rows += range(12, len(names))
        elif name in names:
            rows.append(names.index(name))
        else:
            raise ModelError(f"{robot}: trim: unknown coordinate '{name}'; known: joints, {', '.join(names)}")
    return np.array(sorted(set(rows)), dtype=np.intp)


def _jacobian(defect, c: Array, a: float, factor: bool) -> Array:  # type: ignore[no-untyped-def]
    """Return central differences, error O(step^2) and about 1e-16 / step; steps of 1e-6 in every coordinate."""
    h = 1e-6
    columns = []
    for k in range(len(c)):
        step = np.zeros(len(c))
        step[k] = h
        columns.append((defect(c + step, a) - defect(c - step, a)) / (2.0 * h))
    if factor:
        columns.append((defect(c, a + h) - defect(c, a - h)) / (2.0 * h))
    return np.array(columns).T


# Periodic motions of any plant under periodic commands, by shooting on its period map through its own chart.


TRAVEL = ("x_error", "y_error", "z_error")
"""Coordinates that need not come back, as the plant travels."""

STEP = 1e-5
NEUTRAL_COMMAND = 1e-4
"""Excess over 1 of a neutral direction's multiplier, from differences of STEP, up to which it counts as neutral."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """A periodic motion under commands.

    Attributes
    ----------
    snapshot : bytes
        The plant at the period's start.
    period_s : float
        Period, s.
    residual : float
        Largest closing error, in the chart's sizes.
    multipliers : npt.NDArray[np.complex128]
        Floquet multipliers of all coordinates, largest first; neutral directions have 1.
    travel : Array | None
        (3,) m, world, over one period; None for a plant without a position.
    iterations : int
        Iterations of Newton's method.
    """

    snapshot: bytes
    period_s: float
    residual: float
    multipliers: npt.NDArray[np.complex128]
    travel: Array | None
    iterations: int


def trim_commands(
    plant: Plant, commands: Array, close: Sequence[str] | None = None, *, settle: int = 20, tolerance: float = 1e-8,
    iterations: int = 12, report: Callable[[str], None] | None = None,
) -> Periodic:  # fmt: skip
    """Find the motion that comes back after one period of commands.

    The plant is left at the period's start, with the snapshot's time.

    Parameters
    ----------
    plant : Plant
        Any plant with a chart.
    commands : Array
        (steps, n_actuators) of one period.
    close : Sequence[str] | None, optional
        Names of the chart's coordinates that must come back; default all but the position's (TRAVEL).
    settle : int, default 20
        Periods before the first guess.
    tolerance : float, default 1e-08
        Bound on the closing error, in the chart's sizes.
    iterations : int, default 12
        Largest number of iterations.
    report : Callable[[str], None] | None, optional
        Receives the progress: the map's slope needs two periods for each coordinate.

    Returns
    -------
    Periodic
        The motion.

    Raises
    ------
    ModelError
        There is no chart, no such coordinate, or no periodic motion near the plant's settled one.

    Notes
    -----
    A chord method (the slope is computed once) on central differences of the period map; least squares, so that neutral
    directions keep their values.
    """
    held = np.atleast_2d(np.asarray(commands, dtype=float))
    if held.ndim != 2 or held.shape[1] != len(plant.actuators):
        raise ModelError(f"trim: commands must have shape (steps, {len(plant.actuators)}), got {held.shape}")
    report = report or (lambda text: None)
    plant.reset()
    report(f"trim: {settle} periods to settle")
    for _ in range(settle):
        _period(plant, held)
    chart = chart_of(plant)
    start, size, names = plant.snapshot(), np.asarray(chart.size, dtype=float), tuple(chart.names)
    rows = _rows_of_commands(names, close)

    def defect(c: Array) -> Array:
        """(k,) in the chart's sizes."""
        _put(plant, chart, start, c * size)
        _period(plant, held)
        wrong: Array = chart.read() / size - c
        return wrong

    report(f"trim: slope of the period map, {2 * len(names)} periods")
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
            f"trim: no periodic motion found: after {used} iterations '{worst}' still differs by {residual:.3g} "
            "between start and end of a period; give a larger `settle`"
        )
    if used:
        report("trim: the multipliers there")
        slope = _slope(defect, c)
    values = np.linalg.eigvals(slope + np.eye(len(names))).astype(complex)
    _put(plant, chart, start, c * size)
    result, before = plant.snapshot(), _position(plant)
    _period(plant, held)
    after = _position(plant)
    plant.restore(result)
    travel = None if before is None or after is None else after - before
    return Periodic(result, len(held) * plant.dt, residual, values[np.argsort(-np.abs(values))], travel, used)


def command_coordinates_as_words(robot: str, periodic: Periodic) -> dict[str, Any]:
    """Return a periodic motion as plain numbers, for a report or JSON.

    The state is the plant's own snapshot, in hex.

    Parameters
    ----------
    robot : str
        Name of the robot.
    periodic : Periodic
        The motion.

    Returns
    -------
    dict[str, Any]
        Values by name, with their units in the names.
    """
    travel = periodic.travel
    return {
        "robot": robot, "period_s": periodic.period_s, "amplitude_factor": 1.0, "stiffness_factor": 1.0,
        "residual": periodic.residual, "iterations": periodic.iterations,
        "travel_m": None if travel is None else travel.tolist(),
        "mean_speed_m_s": None if travel is None else float(np.linalg.norm(travel)) / periodic.period_s,
        "multipliers": [abs(value) for value in periodic.multipliers[:12].tolist()],
        "stable": bool(abs(periodic.multipliers[0]) < 1.0 + NEUTRAL_COMMAND), "stable_within": NEUTRAL_COMMAND,
        "snapshot": periodic.snapshot.hex(),
    }  # fmt: skip


def _period(plant: Plant, held: Array) -> None:
    for command in held:
        plant.step(command)


def _put(plant: Plant, chart: Chart, blob: bytes, c: Array) -> None:
    plant.restore(blob)
    if np.any(c):
        chart.write(c)


def _slope(defect: Callable[[Array], Array], c: Array) -> Array:
    """Return (k, k) central differences, steps of STEP of each coordinate's size."""
    columns = []
    for k in range(len(c)):
        step = np.zeros(len(c))
        step[k] = STEP
        columns.append((defect(c + step) - defect(c - step)) / (2.0 * STEP))
    return np.array(columns).T


def _rows_of_commands(names: tuple[str, ...], close: Sequence[str] | None) -> npt.NDArray[np.intp]:
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
