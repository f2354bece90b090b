"""Cases of `rtmms bench guards`: robots, methods, couplings, stiff parameters, steps from safe to absurd."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import pi, radians
from typing import Any

import numpy as np
import numpy.typing as npt

import rtmms
from rtmms.mechanism.plant import TreePlant
from rtmms.model import (
    Body,
    BodyWrench,
    Joint,
    JointLimit,
    JointMotion,
    JointServo,
    JointSpeed,
    JointStop,
    JointTorque,
    Mechanism,
    ReactionWheel,
    Rotor,
    Strip,
    Tendon,
    Thruster,
    at,
)
from rtmms_controllers.rods import rod_angles, rod_ratio

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One line of the grid.

    Attributes
    ----------
    robot, method, knob : str
        Parts of its name.
    load : Callable[[float], Any]
        Builds the plant at a step, s.
    steps : tuple[float, ...]
        dt, s, from safe to absurd, each a multiple of the first and a whole part of the run.
    seconds : float
        Duration of each run, s.
    command : Callable[[float], Array] | None, optional
        Command at a time; None: neutral.
    varies : bool, default False
        The command changes from step to step.
    """

    robot: str
    method: str
    knob: str
    load: Callable[[float], Any]
    steps: tuple[float, ...]
    seconds: float
    command: Callable[[float], Array] | None = None
    varies: bool = False

    @property
    def name(self) -> str:
        """Name of the line."""
        return f"{self.robot} {self.method} {self.knob}"


def flapping(amplitude_deg: float = 40.0, frequency_hz: float = 0.6, ramp_s: float = 1.0) -> Callable[[float], Array]:
    """Return the gait of `rtmms run manta`, as a function of time.

    Parameters
    ----------
    amplitude_deg : float, default 40.0
        Amplitude of the back rods, deg.
    frequency_hz : float, default 0.6
        Frequency.
    ramp_s : float, default 1.0
        Time of the soft start, s.

    Returns
    -------
    Callable[[float], Array]
        Function of the time, s, with the command in rad.
    """
    ratio = rod_ratio({})

    def command(time: float) -> Array:
        x = min(1.0, time / ramp_s)
        strength = x * x * x * (10.0 + x * (6.0 * x - 15.0))
        front, back = rod_angles(
            2.0 * pi * frequency_hz * time, radians(amplitude_deg), radians(40.0), 0.0, ratio, strength
        )
        return np.array([front, back, front, back])

    return command


def _times(first: float, *multiples: int) -> tuple[float, ...]:
    return tuple(first * m for m in multiples)


MANTA_STEPS = _times(1e-3, 1, 2, 3, 5, 10, 20, 40, 60, 100, 200, 300, 500)
MANTA_KNOBS: dict[str, dict[str, Any]] = {
    "as it is": {}, "servo damping 46": {"servo_damping": 46.0}, "servo 50 Hz": {"servo_frequency_hz": 50.0},
    "damping x 100": {"joint_damping_n_m_s": 10.0}, "no damping": {"joint_damping_n_m_s": 0.0},
    "stiffness x 100": {"young_modulus_pa": 1e10}, "stiffness / 100": {"young_modulus_pa": 1e6},
    "light fins": {"fin_density_kg_m3": 50.0}, "amplitude 15 deg": {}, "amplitude 50 deg": {}, "2 Hz": {},
    "0.2 Hz": {},
}  # fmt: skip
GAITS = {
    "amplitude 15 deg": {"amplitude_deg": 15.0}, "amplitude 50 deg": {"amplitude_deg": 50.0},
    "2 Hz": {"frequency_hz": 2.0}, "0.2 Hz": {"frequency_hz": 0.2},
}  # fmt: skip
EEL_STEPS = _times(2e-3, 1, 2, 3, 5, 10, 12, 20, 30, 50, 75, 125, 250)
EEL_KNOBS: dict[str, dict[str, dict[str, Any]]] = {
    "motion": {
        "as it is": {}, "drag x 10": {"c1": 0.1, "c2": 10.0, "c3": 10.0, "c4": 10.0},
        "amplitude x 3": {"amplitude_rad": 0.18}, "period / 4": {"period_s": 0.5}, "light": {"density_kg_m3": 300.0},
        "heavy": {"density_kg_m3": 3000.0, "gravity_m_s2": 0.0},
    },
    "torque": {
        "as it is": {}, "kd x 100": {"kd_n_m_s": 200.0}, "kp x 100": {"kp_n_m": 2000.0, "kd_n_m_s": 20.0},
        "amplitude x 3": {"amplitude_rad": 0.18}, "period / 4": {"period_s": 0.5},
    },
}  # fmt: skip
MOTH_STEPS = _times(2.5e-5, 1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 80)
MOTH_KNOBS: dict[str, dict[str, Any]] = {
    "hover, fit": {"preset": "fit"}, "hover, flat": {}, "hover, none": {"preset": "quasi-steady"},
    "at rest": {"start": "rest"}, "stiffness x 4": {
        "start": "rest", "twist_root_n_m": 12e-3, "twist_tip_n_m": 36e-3, "bend_root_n_m": 0.144, "bend_tip_n_m": 36e-3,
    },
    "damping x 20": {"start": "rest", "damping_n_m_s": 2e-4},
    "amplitude x 1.5": {"start": "rest", "amplitude_rad": 1.08},
    "air x 3": {"start": "rest", "air_density_kg_m3": 3.66}, "servo": {"start": "rest", "drive": "torque"},
}  # fmt: skip
TREE_METHODS = ("rk4", "abam", "implicit2")
FISH_STEPS = _times(2.5e-4, 1, 2, 3, 4, 8, 12, 16, 24, 40, 80, 120, 240)
FISH_KNOBS: dict[str, dict[str, Any]] = {
    "dead": {}, "dead, stiffness x 100": {"flexural_stiffness_n_m2": 0.2}, "swims": {"preset": "swimming"},
    "swims, friction x 10": {"preset": "swimming", "friction": 0.06},
}  # fmt: skip
CONTINUOUS_KNOBS: dict[str, dict[str, Any]] = {
    "as it is": {}, "yaw x 3": {"yaw_rad_m": 0.9}, "drag x 10": {"c1": 0.1, "c2": 10.0, "c3": 10.0, "c4": 10.0},
    "light": {"density_kg_m3": 300.0}, "period / 4": {"period_s": 0.25},
}  # fmt: skip
QUADROTOR_KNOBS: dict[str, dict[str, Any]] = {
    "as it is": {}, "motors x 25": {"motor_s": 0.002}, "drag x 100": {"drag_area_m2": 1.0},
}  # fmt: skip
TORPEDO_KNOBS: dict[str, dict[str, Any]] = {
    "as it is": {}, "fins x 10": {"fin_bandwidth_rad_s": 200.0}, "drag x 10": {"axial_drag_kg_m": 16.0},
    "weight x 10": {"weight_below_m": 0.2},
}  # fmt: skip
PURCELL_KNOBS: dict[str, dict[str, Any]] = {
    "as it is": {}, "bandwidth x 10": {"bandwidth_rad_s": 200.0}, "long": {"length_m": 10.0},
}  # fmt: skip
SNAKE_KNOBS: dict[str, dict[str, Any]] = {
    "as it is": {}, "damping x 100": {"damping_n_m_s": 0.5}, "bandwidth x 10": {"bandwidth_rad_s": 200.0},
}  # fmt: skip
SLOW_STEPS = _times(0.01, 1, 2, 3, 5, 10, 15, 20, 25, 30, 50, 60, 100)
"""Steps of robots without inertia, and of trees on wheels, s."""
FAR_STEPS = _times(1e-3, 1, 2, 3, 4, 8, 10, 20, 30, 50, 100, 150, 300)


def _held(*values: float) -> Callable[[float], Array]:
    """Return a constant command: the difference between two steps is then the method's alone."""
    command = np.array(values)
    return lambda time: command


FLYING = _held(476.0, 475.0, 476.5, 477.0)
STEERING = _held(150.0, 0.1, 0.05, -0.1, 0.05)
CRAWLING = _held(4.0, 0.4)


def swaying(mean: tuple[float, ...], size: tuple[float, ...], frequency_hz: float) -> Callable[[float], Array]:
    """Return sines about their means, each a quarter of a period behind the one before.

    Parameters
    ----------
    mean, size : tuple[float, ...]
        Means and amplitudes.
    frequency_hz : float
        Frequency.

    Returns
    -------
    Callable[[float], Array]
        Function of the time, s.
    """
    middle, amplitude, behind = np.array(mean), np.array(size), 0.5 * pi * np.arange(len(mean))

    def command(time: float) -> Array:
        result: Array = middle + amplitude * np.sin(2.0 * pi * frequency_hz * time - behind)
        return result

    return command


def _loader(robot: str, **values: Any) -> Callable[[float], Any]:
    def load(dt: float) -> Any:
        step_options: dict[str, Any] = {"step_s": dt} if robot == "moth" else {}
        return rtmms.load(robot, dt=dt, **values, **step_options)

    return load


def cases(small: bool = False) -> Iterator[Case]:
    """Yield all cases.

    Parameters
    ----------
    small : bool, default False
        A few of each robot, coupling and method.

    Yields
    ------
    Case
        The cases.
    """
    for coupling in ("sequential", "iterated", "monolithic"):
        for knob, values in MANTA_KNOBS.items():
            if (small or coupling == "iterated") and knob != "as it is":
                continue
            load = _loader("manta", coupling=coupling, **values)
            steps = MANTA_STEPS[::3] if small else MANTA_STEPS
            yield Case("manta", coupling, knob, load, steps, 6.0, flapping(**GAITS.get(knob, {})), True)
    if not small:
        knobs = {"rk4, sequential": "sequential", "rk4, monolithic": "monolithic"}
        for knob, coupling in knobs.items():
            steps = _times(4e-6, 1, 2, 4, 5, 8, 10, 20, 25, 40, 100, 200, 500)
            load = _loader("manta", coupling=coupling, integrator="rk4")
            yield Case("manta", knob, "as it is", load, steps, 0.02, flapping(ramp_s=0.02), True)
    for method in TREE_METHODS:
        for drive, listed in EEL_KNOBS.items():
            for knob, values in listed.items():
                if small and (knob != "as it is" or drive == "motion"):
                    continue
                load = _loader("eel", drive=drive, integrator=method, **values)
                yield Case("eel", method, f"{drive}, {knob}", load, EEL_STEPS[::3] if small else EEL_STEPS, 3.0)
        for knob, values in MOTH_KNOBS.items():
            if small and knob != "hover, fit":
                continue
            load = _loader("moth", integrator=method, **values)
            yield Case("moth", method, knob, load, MOTH_STEPS[3::3] if small else MOTH_STEPS, 0.2)
    yield from _others(small)
    yield from limits(small)


def _others(small: bool) -> Iterator[Case]:
    """Yield the cases of robots with fewer parameters."""
    listed: tuple[tuple[str, str, dict[str, dict[str, Any]], tuple[float, ...], float, Any], ...] = (
        ("fish", "implicit2", FISH_KNOBS, FISH_STEPS, 1.2, None), ("fish", "rk4", FISH_KNOBS, FISH_STEPS, 1.2, None),
        ("continuous_eel", "", CONTINUOUS_KNOBS, FAR_STEPS, 3.0, None),
        ("quadrotor", "rk4", QUADROTOR_KNOBS, FAR_STEPS, 3.0, FLYING),
        ("torpedo", "rk4", TORPEDO_KNOBS, FAR_STEPS, 6.0, STEERING),
        ("snake", "rk4", SNAKE_KNOBS, FAR_STEPS, 3.0, CRAWLING),
    )  # fmt: skip
    for robot, method, knobs, steps, seconds, command in () if small else listed:
        for knob, values in knobs.items():
            chosen = values | ({"integrator": method} if method else {})
            yield Case(robot, method or "cosserat", knob, _loader(robot, **chosen), steps, seconds, command)
    stroke, weave = swaying((0.0, 0.0), (0.5, 0.5), 0.25), swaying((8.0, 8.0), (3.0, 3.0), 0.25)
    for knob, values in PURCELL_KNOBS.items():
        if knob == "as it is" or not small:
            steps = SLOW_STEPS[::3] if small else SLOW_STEPS
            yield Case("purcell", "glide", knob, _loader("purcell", **values), steps, 6.0, stroke, True)
    for method in () if small else TREE_METHODS:
        load = _loader("unicycle", integrator=method)
        yield Case("unicycle", method, "as it is", load, FAR_STEPS, 3.0, weave, True)
    if not small:
        yield Case("snake", "abam", "as it is", _loader("snake", integrator="abam"), FAR_STEPS, 3.0, CRAWLING)


LIMIT_STEPS = _times(1e-4, 1, 2, 5, 10, 20, 40, 50, 100, 200)
"""Steps of 0.1 to 20 times the default step of 1 ms, s."""
HELD_S = 0.02
"""Interval of jumps of the commands, at the same instants for every step, s."""
LIMITED_S = 1.2
"""Duration of a run with such commands, s."""
TORQUES = JointTorque("one"), JointTorque("two")
LIMITS = JointLimit("one", -0.6, 0.6), JointLimit("two", -0.4, 0.4)
WINCHES = (
    Tendon("left", [("body", (-0.1, 0.05, 0.0)), ("middle", (-0.15, 0.05, 0.0)), ("tail", (-0.15, 0.02, 0.0))]),
    Tendon(
        "right", [("body", (-0.1, -0.05, 0.0)), ("middle", (-0.15, -0.05, 0.0)), ("tail", (-0.15, -0.02, 0.0))],
        "length", 400.0, 4.0,
    ),
)  # fmt: skip
PUSHED = (1.2, 0.8)
STEERED = (0.8, 0.8)


def _both(kind: Callable[..., Any], *numbers: float, **values: Any) -> tuple[Any, ...]:
    return tuple(kind(joint, *numbers, **values) for joint in ("one", "two"))


ACTUATORS: dict[str, tuple[tuple[Any, ...], tuple[float, ...]]] = {
    "limit": ((*TORQUES, *LIMITS), PUSHED),
    "limit, T = 20 ms": ((*TORQUES, *(replace(limit, braking_time=0.02) for limit in LIMITS)), PUSHED),
    "limit and max_rate": ((*TORQUES, *(replace(limit, max_rate=3.0) for limit in LIMITS)), PUSHED),
    "torque, max_rate": (_both(JointTorque, max_rate=2.0), (0.8, 0.6)),
    "servo": (_both(JointServo, 20.0, 1.0, 2.0), (1.0, 0.8)),
    "servo, max_rate": (_both(JointServo, 20.0, 1.0, max_rate=2.0), (1.5, 1.2)),
    "servo, limit": ((*_both(JointServo, 20.0, 1.0), *LIMITS), (1.0, 0.8)),
    "motion": (_both(JointMotion), STEERED),
    "motion, max_rate": (_both(JointMotion, max_rate=2.0), (1.5, 1.2)),
    "motion, effort": (_both(JointMotion, limit=0.6), STEERED),
    "motion, effort and limit": ((*_both(JointMotion, limit=0.6), *LIMITS), STEERED),
    "speed": ((*_both(JointSpeed), JointLimit("two", max_rate=2.0)), (3.0, 3.0)),
    "stop": ((*TORQUES, *_both(JointStop, -0.5, 0.5, 50.0, 0.5)), PUSHED),
    "hard stop": ((*TORQUES, *_both(JointStop, -0.5, 0.5, 5e3, 1.0)), PUSHED),
    "wrench": ((BodyWrench("body", ("fx", "mz")), BodyWrench("tail", ("fy", "mx"))), (3.0, 0.4, 1.0, 0.1)),
    "thruster": ((Thruster("body", coefficient=1e-3, moment=0.01, time_constant=0.05),), (60.0,)),
    "rotor": ((Rotor("body", at(0.1), 1e-4, 1e-6, time_constant=0.02, inertia=1e-4),), (150.0,)),
    "wheel": ((ReactionWheel("body", 1e-3), ReactionWheel("tail", 1e-3, time_constant=0.02)), (200.0, 100.0)),
    "tendon": (WINCHES, (20.0, 0.3)),
}  # fmt: skip
"""Actuators of a swimmer by their kind, and the amplitudes of their commands."""


def swimmer(dt: float, method: str, actuators: tuple[Any, ...]) -> TreePlant:
    """Return a body with two links behind it in water: each a neutral rod with drag across and added mass.

    Parameters
    ----------
    dt : float
        Step, s.
    method : str
        Method of a step.
    actuators : tuple[Any, ...]
        Its actuators.

    Returns
    -------
    TreePlant
        The plant.
    """

    def link(name: str, length: float, width: float) -> Body:
        mass, middle = 1000.0 * np.pi * width**2 * length, np.array([-0.5 * length, 0.0, 0.0])
        strip = Strip(
            length, (0.5, 1000.0 * width, 1000.0 * width), roll_drag=0.01,
            added=(1e-4, mass / length, mass / length), placement=at(*middle),
        )  # fmt: skip
        turn = mass * length**2 / 12.0
        inertia = np.diag([0.5 * mass * width**2, turn, turn])
        return Body.about_centre(
            name, mass, middle, inertia, displaced=mass, displaced_moment=mass * middle, elements=[strip]
        )

    bodies = [link("body", 0.3, 0.05), link("middle", 0.2, 0.04), link("tail", 0.2, 0.03)]
    joints = [Joint("one", "body", "middle", placement=at(-0.3)), Joint("two", "middle", "tail", placement=at(-0.2))]
    return TreePlant(Mechanism("swimmer", bodies, joints), dt, actuators=actuators, method=method)


def limits(small: bool = False, methods: tuple[str, ...] = TREE_METHODS) -> Iterator[Case]:
    """Yield every actuator and every limit of a joint, on a swimmer.

    Parameters
    ----------
    small : bool, default False
        Every other step, and one method.
    methods : tuple[str, ...], optional
        Methods of a step.

    Yields
    ------
    Case
        The cases.
    """
    for method in methods[:1] if small else methods:
        for knob, (actuators, size) in ACTUATORS.items():

            def load(dt: float, method: str = method, actuators: tuple[Any, ...] = actuators) -> TreePlant:
                return swimmer(dt, method, actuators)

            steps = LIMIT_STEPS[1::2] if small else LIMIT_STEPS
            yield Case("limits", method, knob, load, steps, LIMITED_S, _jumping(size))


def _jumping(size: tuple[float, ...]) -> Callable[[float], Array]:
    """Return sines that are sampled every HELD_S, and held between."""
    amplitude, at_once = np.array(size), np.arange(len(size))

    def command(time: float) -> Array:
        held = HELD_S * math.floor(time / HELD_S + 1e-6)
        result: Array = amplitude * np.sin((5.0 + 2.0 * at_once) * held + at_once)
        return result

    return command
