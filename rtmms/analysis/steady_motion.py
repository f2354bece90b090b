"""Steady motions of any plant: commands or a gait under which it keeps a speed, a turning rate, a climb, a depth.

A steady motion comes back after a period but for place and heading: the body's tilt and twist close, while place and
heading advance. `trim` finds it by shooting: unknowns are tilt and twist of the body at the period's start and the free
variables. Residuals are the closing errors and the deviations from the targets. Least squares (Levenberg and Marquardt)
have the change of variables of least norm where there are more variables than targets, and the nearest motion where no
motion reaches the targets. Joints, filters and motors are no unknowns: they settle along with the iterations.

For the orbit of a gait with all of its coordinates, and its Floquet multipliers, see rtmms.analysis.trim.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from rtmms.analysis.chart import Chart, HasChart
from rtmms.base.errors import ArgumentError, DivergedError, ModelError
from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.mechanism.joint_laws import GAIN
from rtmms.mechanism.plant import TreePlant
from rtmms.plant.description import describe_plant, unwrapped
from rtmms.plant.optional_protocols import HasRobots
from rtmms.plant.protocol import Plant, TunableGait

UNITS = {"speed": "m/s", "turn_rate": "rad/s", "climb": "m/s", "depth": "m"}
"""Targets, with their units in Python."""
HELD_S = 0.5
"""Period of commands that are held, s."""
SETTLE_S = 10.0
"""Time of the plant's own motion before the first guess, s."""
SETTLE_PERIODS = 20
"""Periods of the plant's own motion before the first guess."""
MAX_CLOSING_ERROR = 1e-4
"""Largest closing error of a steady motion, in the chart's sizes."""
TOLERANCE = 1e-3
"""Tolerance of a target: a share of it, and of the chart's size of a velocity, or rad/s."""
MAX_DEPTH_M = 1e4
BEFORE_S = 0.25
"""Time for joints and motors to follow a change, s."""
MAX_BEFORE_PERIODS = 6
"""Limit of that time, in periods."""
SAMPLES = 64
STAGES = 5
_CLOSURE_WEIGHT = 10.0
_LOST = 1e3
_MAX_CHANGE = 20.0
_CLOSED = 1e-7
_TRUST = 0.5
_ROUNDS = ((0.03, 8), (1e-3, 12), (1e-4, 6))
"""Steps of the differences, in shares of the variables' ranges, and iterations of each round of least squares."""
_TWIST = slice(6, 12)


class Drive(NamedTuple):
    """Periodic commands as a function of free variables.

    Attributes
    ----------
    name : str
        'held commands', or the gait's name.
    names : tuple[str, ...]
        Names of the free variables.
    start : Array
        (m,) values at which the search begins.
    lower, upper : Array
        (m,) limits.
    steps : int
        Steps of a period.
    commands : Callable[[Array], Array]
        Function from (m,) values to (steps, n_actuators).
    amplitude : str, default ''
        Variable that is a factor on the plant's own gait; '' where none is.
    fixed : Mapping[str, float], default {}
        Parameters of the gait that are no variables.
    """

    name: str
    names: tuple[str, ...]
    start: Array
    lower: Array
    upper: Array
    steps: int
    commands: Callable[[Array], Array]
    amplitude: str = ""
    fixed: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True)
class SteadyMotion:
    """A steady motion, or the nearest motion to one.

    Attributes
    ----------
    robot : str
        The plant's name.
    drive : str
        'held commands', or the name of the gait.
    variables : Mapping[str, float]
        Commands or parameters of the gait, in the units of actuators and parameters. A name with * stands for all
        actuators that differ in their numbers alone.
    at_limit : tuple[str, ...]
        Variables that are at a limit.
    targets : Mapping[str, float]
        Requested values, SI units: speed, turn_rate (rad/s), climb, depth.
    motion : Mapping[str, float]
        The motion's own: speed along the mean heading (m/s, horizontal), turn_rate (rad/s, positive to the left), climb
        (m/s, upwards), depth (m, mean of the period). Quantities without an output of the plant are missing.
    misses : Mapping[str, float]
        motion - target, of the targets that are not reached.
    residual : float
        Largest closing error of a period, in the chart's sizes.
    worst : str
        Coordinate with that error.
    period_s : float
        Period, s.
    commands : Array
        (steps, n_actuators) of one period.
    snapshot : bytes
        The plant at the period's start.
    amplitude_factor : float, default 1.0
        Factor on the amplitude of the plant's own gait, which the snapshot does not have; see `on`.
    """

    robot: str
    drive: str
    variables: Mapping[str, float]
    at_limit: tuple[str, ...]
    targets: Mapping[str, float]
    motion: Mapping[str, float]
    misses: Mapping[str, float]
    residual: float
    worst: str
    period_s: float
    commands: Array = field(repr=False)
    snapshot: bytes = field(repr=False)
    amplitude_factor: float = 1.0

    @contextmanager
    def on(self, plant: Any) -> Iterator[None]:
        """Put a plant at the start of the motion; its own gait has the found amplitude while the block runs.

        Parameters
        ----------
        plant : Plant
            A plant like the one of the search.

        Yields
        ------
        None
            Step it with `commands`, again and again.
        """
        plant.restore(self.snapshot)
        with nullcontext() if self.amplitude_factor == 1.0 else plant.scaled(self.amplitude_factor, 1.0):
            yield

    @property
    def is_steady(self) -> bool:
        """Whether the motion closes."""
        return self.residual <= MAX_CLOSING_ERROR

    @property
    def is_reached(self) -> bool:
        """Whether the motion closes and all targets are reached."""
        return self.is_steady and not self.misses

    @property
    def message(self) -> str:
        """Why it is no steady motion with these targets, with the remaining errors; '' where all is reached."""
        parts = []
        if not self.is_steady:
            parts.append(
                f"no steady motion was found: after a period of {self.period_s:.4g} s '{self.worst}' has changed by "
                f"{self.residual:.2g} of its size"
            )
        for name, miss in self.misses.items():
            reached, target, unit = self.motion[name], self.targets[name], UNITS[name]
            if name == "turn_rate":
                reached, target, miss, unit = math.degrees(reached), math.degrees(target), math.degrees(miss), "deg/s"
            parts.append(
                f"{name} {target:.4g} {unit} is not reached: the nearest is {reached:.4g} {unit}, off by {miss:.2g}"
            )
        if parts and self.at_limit:
            parts.append(f"at their limits: {', '.join(self.at_limit)}")
        return f"{self.robot}: {'; '.join(parts)}" if parts else ""


def trim(
    plant: Plant, speed: float | None = None, turn_rate: float | None = None, climb: float | None = None,
    depth: float | None = None,
) -> SteadyMotion:  # fmt: skip
    """Find a steady motion of any plant.

    Free variables are the parameters of a gait of commands where the plant has one, else held commands; of a plant with
    a gait of its own, held commands and the gait's amplitude. The plant is left at the start of the period, with its
    own amplitude: `with motion.on(plant):` gives it the found one.

    Parameters
    ----------
    plant : Plant
        Any plant with outputs `position` and `quaternion`; sensors and faults around it are left out.
    speed : float | None, optional
        Mean speed along the mean heading, m/s, horizontal: the distance of a period over its time.
    turn_rate : float | None, optional
        Mean rate of the heading, rad/s, positive to the left.
    climb : float | None, optional
        Mean vertical velocity, m/s, upwards.
    depth : float | None, optional
        Mean depth below the surface at z = 0, m.

    Returns
    -------
    SteadyMotion
        Its `is_reached` is False, with `misses` and `message`, where no motion has these targets.

    Raises
    ------
    ModelError
        Targets are no finite numbers, a depth is for a robot that is not in water, there are several robots, or the
        plant lacks the outputs.

    Notes
    -----
    With any target, the turning rate is 0 where none is given, and so is the climb in water and in air. Without targets
    a robot in air is to hover, and any other keeps its default gait or commands. The motion may be unstable: it is a
    solution, which a run need not converge to.

    A call and one of its results:

        motion = rtmms.trim(rtmms.load("torpedo"), speed=0.5)
        motion.variables["propeller.command"]
    """
    plant, targets = _checked(plant, {"speed": speed, "turn_rate": turn_rate, "climb": climb, "depth": depth})
    tried: list[SteadyMotion] = []
    for drive in _drives(plant, targets, tried):
        for stages in (1, STAGES):
            tried.append(_solved(plant, drive, targets, stages))
            if tried[-1].is_reached or tried[-1].at_limit or not targets:
                break
        if tried[-1].is_reached:
            break
    best = min(tried, key=_rank)
    plant.restore(best.snapshot)
    return best


def _checked(plant: Plant, asked: Mapping[str, float | None]) -> tuple[Plant, dict[str, float]]:
    """Return the plant without sensors, and the targets, or raise ModelError."""
    candidate: object = plant
    if not isinstance(candidate, Plant):
        raise ArgumentError(f"trim: plant: expected a plant, as rtmms.load returns, got {candidate!r:.60}")
    if isinstance(plant, HasRobots):
        raise ModelError("trim: expected one robot, got several; trim each of them separately")
    targets: dict[str, float] = {}
    for name, value in asked.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not math.isfinite(value):
            raise ModelError(
                f"trim: {name}: expected a finite number in {UNITS[name]}, got {value!r:.60}; for the coordinates of "
                "an orbit see rtmms.analysis.trim"
            )
        targets[name] = float(value)
    plant = unwrapped(plant)
    outputs = {channel.name: channel.shape for channel in plant.outputs}
    if outputs.get("position") != (3,) or outputs.get("quaternion") != (4,):
        raise ModelError(f"trim: expected a plant with outputs position (3,) and quaternion (4,), got {list(outputs)}")
    about = describe_plant(plant)
    if "depth" in targets:
        if about.medium not in ("water", "") or about.environment().density <= 0.0:
            raise ModelError(
                f"trim: depth: expected a robot in water, got the medium '{about.medium or 'no water'}'; leave the "
                "depth out"
            )
        if abs(targets["depth"]) > MAX_DEPTH_M:
            raise ModelError(f"trim: depth: expected at most {MAX_DEPTH_M:g} m, got {targets['depth']:g} m")
        if not isinstance(plant, HasChart):
            raise ModelError(
                "trim: depth: this plant has no method chart(), so it cannot be placed at a depth; leave the depth out"
            )
    if not targets and about.medium == "air":
        targets = {"speed": 0.0}
    if targets:
        targets.setdefault("turn_rate", 0.0)
        if about.medium in ("water", "air"):
            targets.setdefault("climb", 0.0)
    return plant, targets


def _rank(motion: SteadyMotion) -> tuple[bool, float]:
    return not motion.is_steady, sum(abs(miss) for miss in motion.misses.values()) + motion.residual


# The free variables of a plant.


def _drives(plant: Plant, targets: Mapping[str, float], tried: Sequence[SteadyMotion]) -> Iterator[Drive]:
    """Return the drives to try; the paces of a gait other than its own only where the speed is missed."""
    of_plant = describe_plant(plant).commanded_gaits
    gaits = {} if of_plant is None else of_plant()
    rates = any(not channel.name.endswith(".angle") for channel in plant.actuators)
    from_time = isinstance(plant, TreePlant)
    if not gaits or (rates and from_time):  # a vehicle that a held command drives, such as two wheels
        yield _held(plant)
        return
    for name, gait in gaits.items():
        frequency = gait.gait["frequency_hz"]
        yield _by_gait(plant, name, gait, frequency)
        motion = min(tried, key=_rank)
        if "speed" not in motion.misses:
            continue
        slow, fast = gait.gait_ranges.get("frequency_hz", (frequency, frequency))
        end = fast if abs(motion.motion["speed"]) < abs(targets["speed"]) else slow
        for other in dict.fromkeys((math.sqrt(frequency * end), end)):
            if other != frequency:
                yield _by_gait(plant, name, gait, other)


def _by_gait(plant: Plant, name: str, gait: TunableGait, frequency: float) -> Drive:
    """Return the drive by parameters of the gait, at the nearest frequency with a whole number of steps in a period."""
    ranges = {key: ends for key, ends in gait.gait_ranges.items() if key != "frequency_hz"}
    names = tuple(ranges)
    steps = max(2, round(gait.gait_period(frequency_hz=frequency) / plant.dt))
    pace = {"frequency_hz": 1.0 / (steps * plant.dt)}

    def commands(values: Array) -> Array:
        return gait.gait_commands(steps, **pace, **dict(zip(names, values.tolist(), strict=True)))

    ends = np.array([ranges[key] for key in names]).reshape(-1, 2)
    start = np.array([gait.gait[key] for key in names])
    return Drive(name, names, start, ends[:, 0], ends[:, 1], steps, commands, fixed=pace)


def _held(plant: Plant) -> Drive:
    """Return held commands, one variable for all actuators that differ in their numbers alone.

    For a tree with a gait of its own, its amplitude is a variable too, where no command changes it.
    """
    groups: dict[str, list[int]] = {}
    for k, channel in enumerate(plant.actuators):
        groups.setdefault(re.sub(r"\d+", "*", channel.name), []).append(k)
    names = [plant.actuators[rows[0]].name if len(rows) == 1 else name for name, rows in groups.items()]
    lower, upper, start = [], [], []
    for rows in groups.values():
        low, high, neutral = _range([plant.actuators[k] for k in rows])
        lower.append(low)
        upper.append(high)
        start.append(neutral if low < neutral < high else 0.5 * (low + high))
    amplitude, steps = "", max(1, round(HELD_S / plant.dt))
    if isinstance(plant, TreePlant) and np.any(plant.law.motion[:, 1:]):
        period = 2.0 * math.pi / plant.law.omega
        steps = max(1, round(period / plant.dt))
        if abs(steps * plant.dt - period) > 1e-9 * period:
            raise ModelError(
                f"{plant.model.name}: trim: expected a whole number of steps in a period of {period:.6g} s, got dt = "
                f"{plant.dt:.6g} s; set dt = {period / math.ceil(period / plant.dt):.12g}"
            )
        if not any(drive.kind == GAIN for drive in plant.drives):
            amplitude = "amplitude"
            names.append(amplitude)
            lower.append(0.0)
            upper.append(2.0)
            start.append(1.0)
    places = list(groups.values())

    def commands(values: Array) -> Array:
        row = np.empty(len(plant.actuators))
        for value, where in zip(values, places, strict=False):
            row[where] = value
        return np.tile(row, (steps, 1))

    ends = np.array([lower, upper]).reshape(2, -1)
    return Drive("held commands", tuple(names), np.array(start), ends[0], ends[1], steps, commands, amplitude)


def _range(channels: Sequence[Any]) -> tuple[float, float, float]:
    """Return the limits and the neutral value that all of these channels share.

    A limit is 1 from the neutral value where one channel has none.
    """
    neutral = float(channels[0].neutral)
    lower = max(-math.inf if channel.lower is None else channel.lower for channel in channels)
    upper = min(math.inf if channel.upper is None else channel.upper for channel in channels)
    return lower if math.isfinite(lower) else neutral - 1.0, upper if math.isfinite(upper) else neutral + 1.0, neutral


# Shooting over one period.


class _Result(NamedTuple):
    closure: Array
    motion: dict[str, float]


_ASIDE = "aside"
"""Mean speed to the left of the heading, m/s: within the search alone."""


class _ShootingProblem:
    """One drive of one plant: the motion of a period from a tilt and a twist of the body.

    The body's unknowns are coordinates of the plant's chart in its sizes; a plant without a chart has none.
    """

    def __init__(self, plant: Plant, drive: Drive, depth: float | None) -> None:
        self.plant, self.drive = plant, drive
        self.before = max(1, min(MAX_BEFORE_PERIODS, round(BEFORE_S / (drive.steps * plant.dt))))
        about = describe_plant(plant)
        plant.reset()
        self.chart: Chart | None = plant.chart() if isinstance(plant, HasChart) else None
        self.rows: list[int] = []
        self.tilted = bool(np.any(about.environment().gravity)) and about.medium != "ground"
        self.place = np.zeros(3)
        if self.chart is not None:
            self.size = np.asarray(self.chart.size, dtype=float)[:12]
            twist = [6, 7, 11] if about.medium == "ground" else list(range(6, 12))
            self.rows = [*((3, 4) if self.tilted else ()), *twist]
            here = plant.observe()
            if depth is not None:
                sink = np.array([0.0, 0.0, -depth - here["position"][2]])
                self.place = quaternion_matrix(here["quaternion"]).T @ sink
        self.velocity = float(self.size[6]) if self.chart is not None else 1.0
        self.names = [self.chart.names[row] for row in self.rows] if self.chart is not None else []
        self.body = self._settled(about.medium)
        self.reference = plant.snapshot()

    def _settled(self, medium: str) -> Array:
        """Return the start of the search (k,): the twist of the plant's own motion, or that of its reset."""
        plant, drive = self.plant, self.drive
        commands = drive.commands(drive.start)
        start = np.zeros(len(self.rows))
        if medium != "air" and self.chart is not None:
            periods = min(SETTLE_PERIODS, max(3, math.ceil(SETTLE_S / (drive.steps * plant.dt))))
            try:
                for _ in range(periods):
                    self._run(commands)
                reached = self.chart.read()[:12] / self.size
                if np.all(np.isfinite(reached)) and np.max(np.abs(reached[_TWIST])) < 10.0:
                    return np.array([reached[row] if row >= 6 else 0.0 for row in self.rows])
            except DivergedError:
                pass
            plant.reset()
            return start
        try:  # whole periods, until a gait of the plant's own has started
            plant.reset()
            ramp = plant.law.ramp if isinstance(plant, TreePlant) else 0.0
            for _ in range(math.ceil(ramp / (drive.steps * plant.dt) - 1e-9)):
                self._run(commands)
        except DivergedError:
            plant.reset()
        return start

    def _run(self, commands: Array) -> None:
        for command in commands:
            self.plant.step(command)

    def _put(self, body: Array) -> None:
        """Set tilt and twist of the body, at the place of the start and its heading; all else stays."""
        if self.chart is None:
            return
        c = self.chart.read()
        c[:12] = 0.0
        c[:3] = self.place
        c[self.rows] = body * self.size[self.rows]
        self.chart.write(c)

    def scaled(self, values: Array) -> AbstractContextManager[None]:
        """Apply the factor on the plant's own gait among the variables, while the block runs."""
        if not self.drive.amplitude:
            return nullcontext()
        plant: Any = self.plant
        factor: AbstractContextManager[None] = plant.scaled(float(values[-1]), 1.0)
        return factor

    def run(self, body: Array, values: Array) -> _Result:
        """Run a period that begins with this tilt and twist; others before it move joints and motors along."""
        plant, commands = self.plant, self.drive.commands(values)
        plant.restore(self.reference)
        with self.scaled(values):
            for _ in range(self.before):
                self._put(body)
                self._run(commands)
            self._put(body)
            observed = [_pose(plant)]
            every = max(1, self.drive.steps // SAMPLES)
            for first in range(0, self.drive.steps, every):
                self._run(commands[first : first + every])
                observed.append(_pose(plant))
        closure = np.zeros(0)
        if self.chart is not None:
            change = self.chart.read()[:12] / self.size
            change[self.rows] -= body
            tilt = _down(observed[-1][3:]) - _down(observed[0][3:])
            change[3:5] = tilt[:2]
            closure = change[self.rows]
        return _Result(closure, _motion(np.array(observed), self.drive.steps * plant.dt))

    def closure(self, body: Array, values: Array) -> Array:
        """Return the closing error (k,) of a period, in the chart's sizes; _LOST where the plant diverges."""
        try:
            result = self.run(body, values).closure
        except DivergedError:
            return np.full(len(self.rows), _LOST)
        finite: Array = np.where(np.isfinite(result), result, _LOST)
        return finite

    def follow(self, body: Array, values: Array) -> bool:
        """Store the joints and motors of this motion for later runs; return False where it diverges."""
        try:
            self.run(body, values)
        except DivergedError:
            return False
        self.reference = self.plant.snapshot()
        return True

    def snapshot(self, body: Array) -> bytes:
        """Return the plant at the period's start, from the joints of the last run."""
        self.plant.restore(self.reference)
        self._put(body)
        return self.plant.snapshot()


def _pose(plant: Plant) -> Array:
    outputs = plant.observe()
    return np.concatenate([outputs["position"], outputs["quaternion"]])


def _down(quaternion: Array) -> Array:
    """Return the world's downward direction (3,) in the body's frame."""
    down: Array = -quaternion_matrix(quaternion)[2]
    return down


def _motion(poses: Array, seconds: float) -> dict[str, float]:
    """Return means over a period from poses (k, 7): position and quaternion, world."""
    w, x, y, z = poses[:, 3:].T
    yaw = np.unwrap(np.arctan2(2.0 * (x * y + w * z), 1.0 - 2.0 * (y * y + z * z)))
    displacement, turn = poses[-1, :3] - poses[0, :3], float(yaw[-1] - yaw[0])
    course = float(np.mean(0.5 * (yaw[1:] + yaw[:-1])))
    # of an arc of angle psi the chord is shorter by sin(psi / 2) / (psi / 2)
    arc = 1.0 / float(np.sinc(0.5 * turn / math.pi)) if abs(turn) < math.pi else 1.0
    ahead = arc * float(displacement[0] * math.cos(course) + displacement[1] * math.sin(course))
    aside = arc * float(displacement[1] * math.cos(course) - displacement[0] * math.sin(course))
    return {
        "speed": ahead / seconds, "turn_rate": turn / seconds, "climb": float(displacement[2]) / seconds,
        "depth": 0.0 - float(np.mean(poses[:, 2])), _ASIDE: aside / seconds,
    }  # fmt: skip


def _solved(plant: Plant, drive: Drive, targets: Mapping[str, float], stages: int) -> SteadyMotion:
    """Return the steady motion of one drive that is nearest to the targets.

    With `stages` 1 the search starts from the motion at the start; with more, from the steady motion there, towards the
    targets in so many steps.
    """
    shooting = _ShootingProblem(plant, drive, targets.get("depth"))
    k, free = len(shooting.rows), bool(targets) and len(drive.names) > 0
    span = 0.5 * (drive.upper - drive.lower)
    sizes = {name: shooting.velocity if UNITS[name] == "m/s" else 1.0 for name in targets}
    sizes[_ASIDE] = shooting.velocity
    sought = {name: value for name, value in targets.items() if name != "depth"}
    low = np.concatenate([np.full(k, -_MAX_CHANGE), (drive.lower - drive.start) / span if free else np.zeros(0)])
    high = np.concatenate([np.full(k, _MAX_CHANGE), (drive.upper - drive.start) / span if free else np.zeros(0)])

    def split(x: Array) -> tuple[Array, Array]:
        values = np.clip(drive.start + span * x[k:], drive.lower, drive.upper) if free else drive.start
        return x[:k], values

    def residual(x: Array) -> Array:
        try:
            closure, motion = shooting.run(*split(x))
        except DivergedError:
            return np.full(k + len(aims), _LOST)
        misses = [(motion[name] - aim) / sizes[name] for name, aim in aims.items()]
        out = np.concatenate([_CLOSURE_WEIGHT * closure, misses])
        return np.where(np.isfinite(out), out, _LOST)

    def close(body: Array, values: Array) -> Array:
        """Return the tilt and twist that close with these variables."""
        closing = partial(shooting.closure, values=values)
        for step, iterations in _ROUNDS:
            body = _least_squares(closing, body, np.full(k, -_MAX_CHANGE), np.full(k, _MAX_CHANGE), step, iterations)
            if not shooting.follow(body, values) or np.max(np.abs(closing(body))) < _CLOSED:
                break
        return body

    body, x = shooting.body, np.zeros(len(drive.names) if free else 0)
    begin = sought
    if stages > 1 and k:
        body = close(body, drive.start)
        try:
            begin = shooting.run(body, drive.start).motion
        except DivergedError:
            stages = 1
    x = np.concatenate([body, x])
    for stage in range(stages):
        share = (stage + 1) / stages
        aims = {name: (1.0 - share) * begin[name] + share * value for name, value in sought.items()}
        for step, iterations in _ROUNDS[(stage > 0) :]:
            if len(x) == 0:
                break
            x = _least_squares(residual, x, low, high, step, iterations)
            if not shooting.follow(*split(x)) or np.max(np.abs(residual(x))) < _CLOSED:
                break
    for _ in range(len(sought) - 1 if free else 0):
        # A target far out of reach would end the search before the others are met: it becomes what was reached.
        try:
            _, motion = shooting.run(*split(x))
        except DivergedError:
            break
        far = {name: abs(motion[name] - aim) / sizes[name] for name, aim in aims.items()}
        farthest = max(far, key=far.__getitem__)
        if sum(item > TOLERANCE for item in far.values()) < 2:
            break
        aims = aims | {farthest: motion[farthest]}
        for step, iterations in _ROUNDS:
            x = _least_squares(residual, x, low, high, step, iterations)
            if not shooting.follow(*split(x)) or np.max(np.abs(residual(x))) < _CLOSED:
                break
    before = float(np.max(np.abs(residual(x)), initial=0.0)) if free and k and sought else math.inf
    if before <= TOLERANCE:
        # Nothing else determines the speed aside of a robot that can tilt to any side, such as a quadrotor: here it is
        # a further target, 0, where the others remain met.
        reached, aims = aims, aims | {_ASIDE: 0.0}
        aside, result = abs(float(residual(x)[-1])), x
        for step, iterations in _ROUNDS if aside >= _CLOSED else ():
            result = _least_squares(residual, result, low, high, step, iterations)
        after = np.abs(residual(result))
        if np.max(after[:-1]) <= max(_CLOSED, before) and after[-1] <= 0.1 * aside:
            x = result
            shooting.follow(*split(x))
        aims = reached
    body, values = split(x)
    if free and k and not np.max(np.abs(shooting.closure(body, values))) <= MAX_CLOSING_ERROR:
        body = close(body, values)  # a target out of reach pulls the motion off its closure
    try:
        closure, motion = shooting.run(body, values)
    except DivergedError:
        closure, motion = np.full(max(k, 1), _LOST), dict.fromkeys(UNITS, math.nan)
    worst = int(np.argmax(np.abs(closure))) if len(closure) else 0
    misses = {
        name: motion[name] - value for name, value in targets.items()
        if name != "depth" and not abs(motion[name] - value) <= TOLERANCE * max(abs(value), sizes[name])
    }  # fmt: skip
    motion = {name: value for name, value in motion.items() if name != _ASIDE}
    margin = 1e-6 * (drive.upper - drive.lower)
    ends = (values <= drive.lower + margin) | (values >= drive.upper - margin)
    return SteadyMotion(
        _name(plant), drive.name, {**drive.fixed, **dict(zip(drive.names, values.tolist(), strict=True))},
        tuple(name for name, end in zip(drive.names, ends, strict=True) if end and free), dict(targets), motion,
        misses, float(np.max(np.abs(closure), initial=0.0)), shooting.names[worst] if shooting.names else "",
        drive.steps * plant.dt, drive.commands(values), shooting.snapshot(body),
        float(values[-1]) if drive.amplitude else 1.0,
    )  # fmt: skip


def _least_squares(
    residual: Callable[[Array], Array], x: Array, low: Array, high: Array, step: float, iterations: int
) -> Array:
    """Minimise by Levenberg and Marquardt's method within limits: each step is a bounded linear least-squares problem.

    Forward differences of `step`, to the side on which there is room.
    """
    here = residual(x)
    cost, damping = float(here @ here), 1e-4
    slope, fresh = np.empty((len(here), len(x))), False
    stale = True
    for _ in range(iterations):
        if stale:
            for j in range(len(x)):
                h = step if x[j] + step <= high[j] else -step
                moved = x.copy()
                moved[j] += h
                slope[:, j] = (residual(moved) - here) / h
            fresh = True
        before = cost
        for _ in range(8 if fresh else 2):
            matrix = np.vstack([slope, math.sqrt(damping) * np.eye(len(x))])
            least, maximum = np.maximum(low - x, -_TRUST), np.minimum(high - x, _TRUST)
            wanted, limits = np.concatenate([-here, np.zeros(len(x))]), (least - 1e-12, maximum + 1e-12)
            change = lsq_linear(matrix, wanted, limits).x  # type: ignore[operator]  # its module has the same name
            trial = np.clip(x + change, low, high)
            after = residual(trial)
            if float(after @ after) < cost:
                change, expected = trial - x, here + slope @ (trial - x)
                x, here, cost = trial, after, float(after @ after)
                damping = max(damping / 10.0, 1e-9)
                slope += np.outer(here - expected, change) / max(float(change @ change), 1e-300)  # Broyden's correction
                break
            damping *= 10.0
        if cost < _CLOSED**2 or (fresh and cost > (1.0 - 1e-3) * before):
            break
        stale = cost > 0.05 * before  # a slope that served badly is differenced anew
        fresh = False
    return x


def _name(plant: Plant) -> str:
    model: Any = getattr(plant, "model", None)
    name = getattr(plant, "_name", None) or getattr(model, "name", None)
    return str(name or type(plant).__name__)
