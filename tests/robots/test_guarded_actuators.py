"""Every actuator and every limit of a joint in steps from 0.1 to 20 ms: no run is wrong and called fine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

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
from rtmms.monitor.measure import Errors
from rtmms_benchmarks import guards
from rtmms_benchmarks.guards_cases import TREE_METHODS, Case

pytestmark = pytest.mark.full
Array = npt.NDArray[np.float64]
HELD_S = 0.02
"""s: commands jump so often, at the same instants for every step."""
TORQUES = JointTorque("one"), JointTorque("two")
LIMITS = JointLimit("one", -0.6, 0.6), JointLimit("two", -0.4, 0.4)
WINCHES = (
    Tendon("left", [("body", (-0.1, 0.05, 0.0)), ("middle", (-0.15, 0.05, 0.0)), ("tail", (-0.15, 0.02, 0.0))]),
    Tendon(
        "right", [("body", (-0.1, -0.05, 0.0)), ("middle", (-0.15, -0.05, 0.0)), ("tail", (-0.15, -0.02, 0.0))],
        "length", 400.0, 4.0,
    ),
)  # fmt: skip
PUSHED, STEERED = (1.2, 0.8), (0.8, 0.8)


def _both(kind: Callable[..., Any], *numbers: float, **given: Any) -> tuple[Any, ...]:
    return tuple(kind(joint, *numbers, **given) for joint in ("one", "two"))


ACTUATORS: dict[str, tuple[tuple[Any, ...], tuple[float, ...]]] = {
    "limit": ((*TORQUES, *LIMITS), PUSHED),
    "limit, T = 20 ms": ((*TORQUES, *(replace(limit, braking_time=0.02) for limit in LIMITS)), PUSHED),
    "limit and fastest": ((*TORQUES, *(replace(limit, fastest=3.0) for limit in LIMITS)), PUSHED),
    "torque, fastest": (_both(JointTorque, fastest=2.0), (0.8, 0.6)),
    "servo": (_both(JointServo, 20.0, 1.0, 2.0), (1.0, 0.8)),
    "servo, fastest": (_both(JointServo, 20.0, 1.0, fastest=2.0), (1.5, 1.2)),
    "servo, limit": ((*_both(JointServo, 20.0, 1.0), *LIMITS), (1.0, 0.8)),
    "motion": (_both(JointMotion), STEERED),
    "motion, fastest": (_both(JointMotion, fastest=2.0), (1.5, 1.2)),
    "motion, effort": (_both(JointMotion, limit=0.6), STEERED),
    "motion, effort and limit": ((*_both(JointMotion, limit=0.6), *LIMITS), STEERED),
    "speed": ((*_both(JointSpeed), JointLimit("two", fastest=2.0)), (3.0, 3.0)),
    "stop": ((*TORQUES, *_both(JointStop, -0.5, 0.5, 50.0, 0.5)), PUSHED),
    "hard stop": ((*TORQUES, *_both(JointStop, -0.5, 0.5, 5e3, 1.0)), PUSHED),
    "wrench": ((BodyWrench("body", ("fx", "mz")), BodyWrench("tail", ("fy", "mx"))), (3.0, 0.4, 1.0, 0.1)),
    "thruster": ((Thruster("body", coefficient=1e-3, moment=0.01, time_constant=0.05),), (60.0,)),
    "rotor": ((Rotor("body", at(0.1), 1e-4, 1e-6, time_constant=0.02, inertia=1e-4),), (150.0,)),
    "wheel": ((ReactionWheel("body", 1e-3), ReactionWheel("tail", 1e-3, time_constant=0.02)), (200.0, 100.0)),
    "tendon": (WINCHES, (20.0, 0.3)),
}  # fmt: skip
"""Of each kind: the actuators of a swimmer, and how far their commands sway."""


def swimmer(dt: float, method: str, actuators: tuple[Any, ...]) -> TreePlant:
    """A body with two links behind it in water: each a neutral rod with drag across and added mass."""

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


def jumping(size: tuple[float, ...]) -> Callable[[float], Array]:
    """Sines that are sampled every HELD_S, and held between."""
    most, at_once = np.array(size), np.arange(len(size))

    def command(time: float) -> Array:
        held = HELD_S * math.floor(time / HELD_S + 1e-6)
        found: Array = most * np.sin((5.0 + 2.0 * at_once) * held + at_once)
        return found

    return command


METHODS = [method if method == "rk4" else pytest.param(method, marks=pytest.mark.full) for method in TREE_METHODS]


def cells_of(method: str, knob: str, steps: tuple[float, ...]) -> list[guards.Cell]:
    actuators, size = ACTUATORS[knob]
    return guards.line(
        Case("limits", method, knob, lambda dt: swimmer(dt, method, actuators), steps, 0.6, jumping(size))
    )


@pytest.mark.parametrize("knob", ACTUATORS)
@pytest.mark.parametrize("method", METHODS)
def test_no_cell_is_wrong_and_fine(method: str, knob: str) -> None:
    cells = cells_of(method, knob, (2e-4, 1e-3, 4e-3, 1e-2, 2e-2))
    assert [cell for cell in cells if cell.fate in ("silent", "refused though right", "no reference")] == []


def test_a_step_beyond_the_braking_time_is_measured_and_does_not_stop_the_run() -> None:
    """A limit of 4 ms in steps of 5 ms brakes over 10 ms: the verdict has the error, the method is not unstable."""
    right, wrong = cells_of("rk4", "limit", (1e-3, 5e-3))
    assert (right.said, wrong.said) == ("fine", "doubtful")
    for what in ("path", "power"):
        truth, reported = getattr(wrong, what), getattr(wrong, f"thought_{what}")
        assert truth < reported < 1.5 * truth
    assert not swimmer(5e-3, "rk4", ACTUATORS["limit"][0]).twin().bounded
    assert swimmer(2e-3, "rk4", ACTUATORS["limit"][0]).twin().bounded
    assert swimmer(5e-3, "rk4", ACTUATORS["limit, T = 20 ms"][0]).twin().bounded


def test_few_unstable_steps_are_impacts() -> None:
    """One step of an impact among many that are right: the run goes on."""
    plant = swimmer(1e-3, "rk4", ACTUATORS["motion"][0])
    twin = plant.twin()
    errors, begin, end, off = Errors(twin), twin.room(), twin.room(), twin.room()
    end.twist[:], off.twist[:] = 1.0, 1.0
    for k in range(40):
        off.twist[0] = 3.0 if k == 20 else 1.0
        errors.add(begin, end, off, True, 10.0)
    assert (errors.unstable_steps, errors.unstable) == (1, pytest.approx(1.0 / 40.0))
    errors.clear()
    assert (errors.unstable_steps, errors.unstable) == (0, 0.0)
    assert np.isfinite(errors.step.largest)
