"""A and B of trees by structure: random trees with all that is covered, and robots, against differences of steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.derivatives import structure_of
from rtmms.analysis.stages import Stages
from rtmms.base.errors import ModelError
from rtmms.fluids.ambient import Flow, Wave
from rtmms.mechanism.actuators import BodyWrench, JointMotion, JointServo, JointStop, JointTorque, Thruster
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.plant import TreePlant
from rtmms.model.elements import Blade, Element, Strip, Tether, Wake
from rtmms.model.polars import Polar
from tests.analysis.test_derivatives import off, on_its_way
from tests.random_tree import random_state, random_tree

JOINTS = 9
STILL = Flow()
MOVING = Flow(
    velocity=(0.2, -0.1, 0.05), gradient=((0.1, 0.2, 0.0), (0.0, -0.1, 0.1), (0.3, 0.0, 0.0)),
    waves=(Wave((0.1, 0.0, 0.2), (0.5, 0.2, 0.3), 2.0, 0.4),), acceleration=(0.1, 0.0, -0.2),
)  # fmt: skip
POLAR = Polar.with_stall_extension([-10.0, 0.0, 10.0], [-1.0, 0.1, 1.1], [0.03, 0.02, 0.04])


def elements(k: int, kinds: str) -> tuple[Element, ...]:
    """Of body k."""
    result: list[Element] = []
    if "strip" in kinds and k % 2 == 0:
        law = "kirchhoff" if k % 4 == 0 else "khalil2007"
        result.append(Strip(0.4, (0.3, 2.0, 3.0), 0.1, (0.01, 0.5, 0.7), law, displaced=0.8))
    if "blade" in kinds and k % 3 == 1:
        result.append(Blade(0.3, 0.1, 20.0))
    if "wake" in kinds and k == 2:
        result.append(Wake((0.01, 0.4, 0.6)))
    if "tether" in kinds and k == 4:
        result.append(Tether((20.0, 10.0, 5.0), (1.0, 2.0, 0.5), (0.1, 0.0, 0.0), (0.5, 0.2, 0.1)))
    if "polar" in kinds and k == 5:
        result.append(Blade(0.3, 0.1, 20.0, polar=POLAR))
    return tuple(result)


def tree(
    seed: int,
    base: str = "free",
    kinds: str = "",
    flow: Flow = STILL,
    spinning: bool = False,
    dt: float = 2e-3,
    rate: float = 0.4,
    **more: Any,
) -> Any:
    """Branches, sliding joints, springs and rotors; a law of the joints' own that starts softly; a servo, motions, one
    of them at a limited rate, torques; a thruster that lags, and a wrench."""
    mechanism = random_tree(JOINTS, seed, base=base, friction=True)
    bodies = [replace(body, elements=elements(k, kinds)) for k, body in enumerate(mechanism.bodies)]
    names = [joint.name for joint in mechanism.joints]
    law = Law(0.2 * np.random.default_rng(seed).normal(size=(JOINTS, 3)), omega=3.0, ramp=0.1)
    actuators = (
        JointMotion(names[1]), JointMotion(names[4], max_rate=2.0), JointServo(names[2], 3.0, 0.4),
        JointTorque(names[0]), JointTorque(names[6], limit=0.5),
        Thruster("body3", coefficient=0.3, moment=0.02, time_constant=0.05, inertia=0.05 if spinning else 0.0),
        BodyWrench("body0", ("fy", "mz")),
    )  # fmt: skip
    plant: Any = TreePlant(replace(mechanism, bodies=bodies), dt, law, actuators=actuators, flow=flow, **more)
    for k in range(20):
        plant.step(0.2 * np.sin(0.1 * k + np.arange(8.0)))
    state = random_state(plant.model, seed, rate)
    plant.place(replace(state, twist=np.zeros(6)) if base == "fixed" else state)
    return plant


def agree(plant: Any, command: Any, within: float = 1e-7) -> None:
    before = plant.snapshot()
    result = rtmms.linearise(plant, command, method="structure")
    assert result.method == "structure"
    assert plant.snapshot() == before
    reference = rtmms.linearise(plant, command, method="differences")
    assert off(result, reference, plant) < within
    assert result.error < within


COMMAND = 0.3 * np.cos(np.arange(8.0))


@pytest.mark.parametrize(
    ("base", "kinds", "flow", "more"),
    [
        ("free", "", STILL, {}),
        ("fixed", "", STILL, {}),
        ("free", "strip blade wake", STILL, {"substeps": 2}),
        ("free", "strip blade wake tether", MOVING, {}),
        ("fixed", "strip blade wake tether", MOVING, {}),
        ("free", "strip wake", STILL, {"method": "implicit1"}),
        ("free", "strip tether", MOVING, {"method": "implicit2", "substeps": 2}),
        ("free", "strip", STILL, {"dt": 0.04, "rate": 4.0}),
        ("free", "", STILL, {"dt": 0.04, "rate": 4.0, "method": "implicit2"}),
        pytest.param("free", "strip polar", MOVING, {"spinning": True}, marks=pytest.mark.full),
        pytest.param("fixed", "", STILL, {"spinning": True}, marks=pytest.mark.full),
    ],
    ids=[
        "dry",
        "dry-fixed",
        "wet",
        "moving",
        "moving-fixed",
        "implicit",
        "extrapolated",
        "long",
        "long-extrapolated",
        "spinning",
        "spinning-fixed",
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_trees(base: str, kinds: str, flow: Flow, more: dict[str, Any], seed: int):
    agree(tree(seed, base, kinds, flow, **more), COMMAND)


def test_commands_at_their_limits():
    """Half of the slope where a command stands at its limit, none beyond; a motion at its highest rate."""
    plant = tree(3)
    for torque in (0.5, 0.7):
        command = COMMAND.copy()
        command[4], command[1] = torque, 1.5
        agree(plant, command)
    result = rtmms.linearise(plant, command)
    assert np.all(result.b[:, 4] == 0.0)


@pytest.mark.parametrize(
    "robot",
    [
        "eel", "quadrotor", "torpedo", "satellite", "fish", "moth",
        pytest.param("bluerov2", marks=pytest.mark.full),
        pytest.param("cat", marks=pytest.mark.full),
        pytest.param("fluid_swimmer", marks=pytest.mark.full),
    ],
)  # fmt: skip
def test_robots(robot: str):
    plant: Any = rtmms.load(robot)
    agree(plant, on_its_way(plant))


def test_a_period_by_the_products_of_structures():
    plant = tree(4, kinds="strip")
    commands = 0.2 * np.sin(0.1 * np.arange(12)[:, None] + np.arange(8.0))
    result = rtmms.linearise(plant, commands, period=True, method="structure", threads=2)
    assert off(result, rtmms.linearise(plant, commands, period=True, method="differences"), plant) < 1e-7


def test_stages_take_it():
    """Their slopes are those by structure, as of the step by itself."""
    plant: Any = rtmms.load("quadrotor")
    command = on_its_way(plant)
    stages = Stages(plant, 1)
    motion = stages.roll(np.array([command, command]))
    result = stages.slopes(motion)
    assert result is not None
    assert stages._structures[0] is not None
    step = rtmms.linearise(plant, command, period=False, method="structure")
    size = plant.chart().size
    np.testing.assert_allclose(result.a[0][6:] * size / size[6:, None], step.a[6:] * size / size[6:, None], atol=1e-12)


@pytest.mark.parametrize("extra", ["stop", "friction"])
def test_what_is_not_covered_goes_by_differences(extra: str):
    mechanism = random_tree(2, 5)
    joints, name = mechanism.joints, mechanism.joints[0].name
    actuators: tuple[Any, ...] = (JointTorque(name),)
    if extra == "stop":
        actuators += (JointStop(name, lower=-1.0, upper=1.0, stiffness=5.0),)
    else:
        joints = [replace(joints[0], coulomb=0.1), joints[1]]
    plant: Any = TreePlant(replace(mechanism, joints=joints), 1e-3, actuators=actuators)
    assert structure_of(plant, np.ones(1)) is None
    assert rtmms.linearise(plant).method == "differences"
    with pytest.raises(ModelError, match="'structure' does not support this"):
        rtmms.linearise(plant, method="structure")
