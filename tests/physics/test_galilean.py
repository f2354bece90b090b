"""Galilean invariance: still water seen from a boat that drifts, or that accelerates, is water that moves.

At one state the equations of motion are compared to rounding, for every element alone and together: in water that moves
at U + A t a tree moves as in still water, plus U, with gravity less A. For every robot a run is compared, with the
method's own error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import RtmmsWarning
from rtmms.base.spatial import Array
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import TreePlant
from rtmms.model.compiler import compile_model
from rtmms.model.description import Body, Mechanism
from rtmms.model.elements import Blade, Element, Strip, Wake, elliptic_strip
from rtmms.model.polars import Polar
from rtmms.model.solids import Box, Ellipsoid, Placement
from rtmms.plant.levels import Levels
from rtmms.sensing.data_sheets import Depth
from rtmms.sensing.faults import Faulty
from rtmms.sensing.sensed import Estimated, Sensed
from rtmms.sensing.suite import read_profile
from tests.random_tree import random_state, random_tree

U = np.array([0.42, -0.3, 0.15])
A = np.array([0.5, 0.2, -0.7])
PLACE = Placement(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), (0.1, -0.2, 0.3))
POLAR = Polar.with_stall_extension([-10.0, 0.0, 10.0], [-1.0, 0.1, 1.1], [0.03, 0.02, 0.04])
SKIN: dict[str, Any] = {"drag": (0.3, 2.0, 3.0), "roll_drag": 0.1, "added": (0.01, 0.5, 0.7), "placement": PLACE}
ELEMENTS: dict[str, tuple[Element, ...]] = {
    "strip": (Strip(0.4, displaced=0.8, **SKIN),),
    "strip, khalil2007": (Strip(0.4, law="khalil2007", displaced=0.8, **SKIN),),
    "strip, couple": (Strip(0.4, couple=0.02, **SKIN),),
    "strip, polar": (Strip(0.4, (0.3, 0.0, 0.0), polar=POLAR, chord=0.1, density=20.0, placement=PLACE),),
    "blade": (Blade(0.3, 0.1, 20.0, placement=PLACE),),
    "blade, polar": (Blade(0.3, 0.1, 20.0, polar=POLAR, placement=PLACE),),
    "wake": (Wake((0.01, 0.4, 0.6), PLACE),),
    "added": (), "displaced": (), "solid": (), "all": (),
}  # fmt: skip
ELEMENTS["all"] = tuple(
    element for kind in ("strip", "strip, khalil2007", "blade", "blade, polar", "wake") for element in ELEMENTS[kind]
)


def dressed(body: Body, kind: str) -> Body:
    """The body with elements of a kind. The elements displace what the body does: that is what gravity lifts."""
    elements = ELEMENTS[kind]
    displaced = sum(element.displaced_mass for element in elements)
    moment = sum((element.displaced_mass * element.centre for element in elements), np.zeros(3))
    body = replace(body, elements=elements, displaced=displaced, displaced_moment=moment)
    if kind in ("displaced", "all"):  # more than the elements do
        body = replace(body, displaced=displaced + 0.7, displaced_moment=moment + 0.7 * np.array([0.1, 0.2, -0.1]))
    if kind in ("solid", "all"):
        body = replace(body, solids=[Box(0.3, 0.2, 0.1, 500.0, PLACE)], fluid_density=1000.0)
    return body


def tree(kind: str, gravity: Array) -> Mechanism:
    mechanism = random_tree(4, 7, added=kind in ("added", "all"), friction=True)
    return replace(mechanism, bodies=[dressed(body, kind) for body in mechanism.bodies], gravity=tuple(gravity))


def in_flow(plant: Any, flow: Flow) -> Any:
    """The plant in water that moves, from a reset."""
    plant.flow, plant.immersed = flow, plant._immerse(plant.model, flow)
    plant._take_up()
    plant.reset()
    return plant


def seen_alike(still: Any, moving: Any, a: Array) -> None:
    """The rates of two trees at one state, seen from the shore and from the boat.

    Velocity in the body's axes: V = V_s + R^T u, so V' = V_s' + R^T A - W x R^T u.
    """
    state, rate, q = still.state, still.evaluate(), 6 + still.model.n
    drift = state.rotation.T @ U
    moving.place(
        velocity=state.twist[:3] + drift, angular_velocity=state.twist[3:], position=state.position,
        quaternion=state.orientation, joint_position=state.q, joint_velocity=state.qd,
    )  # fmt: skip
    expected = rate.copy()
    expected[:3] += U
    expected[q : q + 3] += state.rotation.T @ a - np.cross(state.twist[3:], drift)
    np.testing.assert_allclose(moving.evaluate(), expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("accelerating", [False, True], ids=["uniform", "accelerating"])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_equations_of_every_element(kind: str, accelerating: bool) -> None:
    a, gravity = A if accelerating else np.zeros(3), np.array([0.0, 0.0, -9.81])
    still = TreePlant(tree(kind, gravity - a))
    still.place(random_state(still.model, 3))
    flows = [Flow(tuple(U), acceleration=tuple(a)), Flow(field=lambda x, t: U + a * t)]
    for flow in flows:
        moving = TreePlant(tree(kind, gravity), flow=flow)
        seen_alike(still, moving, a)
    assert kind in ("added",) or len(still.model.elements) > 0


def immersed_robots() -> list[str]:
    """Robots that are trees of bodies on which water or air acts."""
    result = []
    for entry in entry_points(group="rtmms.plants"):
        plant = rtmms.load(entry.name, **START.get(entry.name, {}))
        if isinstance(plant, TreePlant) and plant.model.elements:
            result.append(entry.name)
    return sorted(result)


START: dict[str, dict[str, Any]] = {"fish": {"preset": "swimming"}}
ROBOTS = ("bluerov2", "eel", "fish", "fluid_swimmer", "modal_moth", "moth", "quadrotor", "torpedo")
HELD = ("tendon_fish",)
"""Robots in a fluid that are held in a plane: a current across it does not move them."""
CURRENT = {"continuous_eel": ("current_x_m_s", "current_y_m_s", "current_z_m_s"), "manta": "current_m_s"}


@pytest.mark.full  # loads every robot
def test_every_robot_in_a_fluid_is_tested() -> None:
    assert immersed_robots() == sorted((*ROBOTS, *HELD))


def swaying(plant: Any, k: int) -> Array:
    """Commands about neutral, well within limits."""
    maximum = np.array([min(0.2, 0.2 if c.upper is None else 0.2 * (c.upper - c.neutral)) for c in plant.actuators])
    neutral = np.array([c.neutral for c in plant.actuators])
    result: Array = neutral + maximum * np.sin(0.05 * k + np.arange(len(neutral)))
    return result


def run(plant: Any, steps: int) -> dict[str, Array]:
    for k in range(steps):
        plant.step(swaying(plant, k))
    outputs: dict[str, Array] = plant.observe()
    return outputs


def agree(still: dict[str, Array], moving: dict[str, Array], gone: Array, within: float) -> None:
    np.testing.assert_allclose(moving["position"] - gone, still["position"], atol=within)
    np.testing.assert_allclose(moving["quaternion"], still["quaternion"], atol=within)
    np.testing.assert_allclose(moving["angular_velocity"], still["angular_velocity"], atol=100.0 * within)
    if "joint_position" in still:
        np.testing.assert_allclose(moving["joint_position"], still["joint_position"], atol=10.0 * within)


@pytest.mark.parametrize("robot", [
    robot if robot in ("eel", "torpedo", "fluid_swimmer") else pytest.param(robot, marks=pytest.mark.full)
    for robot in ROBOTS
])  # fmt: skip
def test_equations_of_every_robot(robot: str) -> None:
    plant, other = (rtmms.load(robot, **START.get(robot, {})) for _ in range(2))
    gravity, state = plant.model.gravity.copy(), random_state(plant.model, 2, 0.2)
    for a in (np.zeros(3), A):
        plant.model.gravity.flags.writeable = True
        plant.model.gravity[:] = gravity - a
        in_flow(plant, Flow())
        plant.place(state)
        in_flow(other, Flow(tuple(U), acceleration=tuple(a)))
        seen_alike(plant, other, a)


@pytest.mark.parametrize("method", [m if m == "rk4" else pytest.param(m, marks=pytest.mark.full) for m in METHODS])
@pytest.mark.parametrize("robot", [
    robot if robot in ("eel", "torpedo", "fluid_swimmer") else pytest.param(robot, marks=pytest.mark.full)
    for robot in ROBOTS
])  # fmt: skip
def test_runs_of_every_robot(robot: str, method: str) -> None:
    """A uniform current, and one that accelerates: there the still water's gravity is less by as much."""
    values = START.get(robot, {})
    method = "implicit2" if robot == "fish" and method in ("rk4", "abam") else method
    plant = rtmms.load(robot, integrator=method, **values)
    steps, gravity = 60, plant.model.gravity.copy()
    first = plant.state
    drift = first.twist[:3] + first.rotation.T @ U
    for a in (np.zeros(3), A):
        plant.model.gravity.flags.writeable = True
        plant.model.gravity[:] = gravity - a
        in_flow(plant, Flow())
        still = run(plant, steps)
        plant.model.gravity[:] = gravity
        in_flow(plant, Flow(tuple(U), acceleration=tuple(a)))
        plant.place(velocity=drift)
        time = steps * plant.dt
        moving = run(plant, steps)
        agree(still, moving, U * time + 0.5 * a * time * time, {1: 2e-3, 2: 5e-5}.get(METHODS[method].order, 2e-6))


@pytest.mark.parametrize("robot", ["manta", "continuous_eel"])
def test_runs_of_robots_with_a_current_of_their_own(robot: str) -> None:
    keys = CURRENT[robot]
    values = {keys: tuple(U)} if isinstance(keys, str) else dict(zip(keys, U.tolist(), strict=True))
    still, moving = rtmms.load(robot), rtmms.load(robot, **values)
    first = moving.observe()
    if robot == "manta":
        moving.place(velocity=first["velocity"] + U)
    else:
        moving.place(twist=np.concatenate([first["velocity"] + U, first["angular_velocity"]]))
    agree(run(still, 100), run(moving, 100), U * 100 * still.dt, 2e-6)


@pytest.mark.parametrize("level", [1, -1])
def test_cheaper_variants_move_as_their_robot_does(level: int) -> None:
    ends = []
    for u in (np.zeros(3), U):
        plant = Levels(rtmms.load("manta", current_m_s=tuple(u)))
        plant.full.place(velocity=u)
        plant.set(level=range(len(plant.plants))[level])
        ends.append(run(plant, 100))
    agree(*ends, U * 100 * plant.dt, 2e-6)


COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "sensors": lambda plant: Sensed(plant, {"depth": Depth(rate_hz=100.0)}),
    "estimate": lambda plant: Estimated(plant, read_profile("typical", plant)),
    "faults": Faulty,
    "world": lambda plant: rtmms.World([("one", plant)]),
    "sensors of a failing robot": lambda plant: Sensed(Faulty(plant), {"depth": Depth(rate_hz=100.0)}),
}


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_a_robot_moves_in_a_composition_as_alone(composition: str) -> None:
    """The true state: instruments see another depth and another velocity, of course."""
    ends = []
    for u in (np.zeros(3), U):
        values = dict(zip(("current_x_m_s", "current_y_m_s", "current_z_m_s"), u.tolist(), strict=True))
        inner = rtmms.load("torpedo", **values)
        inner.place(velocity=u)
        run(COMPOSITIONS[composition](inner), 60)
        ends.append(inner.observe())
    agree(*ends, U * 60 * inner.dt, 1e-9)


def test_elements_that_displace_more_than_the_solids_are_warned_of() -> None:
    """Buoyancy and the push of an accelerating fluid are of one displaced mass: else no frame moves with the water."""

    def swimmer(half_width: float) -> Mechanism:
        hull = Ellipsoid(0.1, 0.02, 0.04, 1000.0)
        water = elliptic_strip(half_width, 0.04, 0.2, 1000.0, Placement())
        return Mechanism("swimmer", [Body("hull", solids=[hull], elements=[water], fluid_density=1000.0)], [])

    with pytest.warns(
        RtmmsWarning,
        match=r"'hull': expected elements and solids .* got 0\.5027 kg and 0\.3351 kg",
    ):
        compile_model(swimmer(0.02))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_model(swimmer(0.02 * 2.0 / 3.0))


def test_a_density_that_displaces_nothing_is_warned_of() -> None:
    def swimmer(**fluid: Any) -> Mechanism:
        return Mechanism("swimmer", [Body("hull", 1.0, inertia=0.1 * np.eye(3), **fluid)], [])

    with pytest.warns(RtmmsWarning, match=r"body 'hull': fluid_density 1000 kg/m3 without solids gives no buoyancy"):
        compile_model(swimmer(fluid_density=1000.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_model(swimmer(displaced=1.0, fluid_density=1000.0))
