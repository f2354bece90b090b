"""Body x is forward, y left and z up for every robot at the face, whatever frame its paper has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
from rtmms import dynamics
from rtmms.mechanism.flow import fluid_wrench
from rtmms.model.description import facing
from rtmms.robots import eel, moth
from rtmms.robots import moth as face

RNG = np.random.default_rng(41)


@pytest.mark.parametrize(
    ("mechanism", "forward"),
    [(eel.describe(eel.Eel(joints=3)), eel.FORWARD), (moth.describe(moth.Moth(sections=2)), face.FORWARD)],
    ids=["eel", "moth"],
)
def test_another_frame_on_the_base_is_the_same_mechanism(mechanism: Any, forward: Any) -> None:
    """Random state, fluid and gravity included: accelerations are the same vectors, torques the same numbers."""
    paper, ours = rtmms.compile(mechanism), rtmms.compile(facing(mechanism, forward))
    assert ours.joint_names == paper.joint_names
    state, other = paper.state(), ours.state()
    state.q[:], state.qd[:] = 0.3 * RNG.normal(size=paper.n), RNG.normal(size=paper.n)
    state.twist[:] = RNG.normal(size=6)
    turn = Rotation.random(random_state=3)
    state.orientation[:] = np.roll(turn.as_quat(), 1)
    other.q[:], other.qd[:] = state.q, state.qd
    other.orientation[:] = np.roll((turn * Rotation.from_matrix(forward)).as_quat(), 1)
    other.twist[:3], other.twist[3:] = forward.T @ state.twist[:3], forward.T @ state.twist[3:]
    qdd = RNG.normal(size=paper.n)
    a = dynamics.inverse_dynamics(paper, state, qdd, wrench=fluid_wrench(paper, state))
    b = dynamics.inverse_dynamics(ours, other, qdd, wrench=fluid_wrench(ours, other))
    np.testing.assert_allclose(b.torque, a.torque, rtol=1e-9, atol=1e-12)
    for half in (slice(0, 3), slice(3, 6)):
        np.testing.assert_allclose(b.base_acceleration[half], forward.T @ a.base_acceleration[half], rtol=1e-9)


def observed(plant: Any, steps: int, command: Any = None) -> dict[str, Any]:
    for _ in range(steps):
        plant.step(plant.neutral if command is None else command)
    return dict(plant.observe())


def test_the_eel_swims_forward() -> None:
    """Along +x of the body and of the world, the nose ahead of the tail; the same path as the paper's, turned."""
    plant, paper = eel.load(dt=4e-3, start_depth_m=0.0), eel.in_paper_frame(dt=4e-3)
    _, position = dynamics.body_poses(plant.model, plant.model.state())
    assert position[plant.model.body("link12")][0] == pytest.approx(-2.08)
    got = observed(plant, 1000)
    observed(paper, 1000)
    assert got["velocity"][0] > 0.02
    assert got["position"][0] > 0.05
    np.testing.assert_allclose(got["position"], eel.FORWARD.T @ paper.vector[:3], atol=1e-12)
    np.testing.assert_allclose(got["joint_torque"], paper.observe()["joint_torque"], atol=1e-9)
    time = np.linspace(0.0, 4.0, 5)
    trace = {"velocity": np.tile([0.2, 0.0, 0.0], (5, 1)), "work": time}
    assert plant.summarise(time, trace)["mean_speed_m_s"] == pytest.approx(0.2)


def test_a_current_is_of_the_world() -> None:
    """An eel that lies still in a current along world x is carried along world x."""
    plant = eel.load(gait="none", current_x_m_s=0.5, dt=4e-3, joints=3)
    assert observed(plant, 500)["position"][0] > 0.005


def test_the_moths_right_wing_is_on_the_right() -> None:
    """Wings along -y and +y; the stroke's cos at t = 0 has both ahead of the body; hovering pitches nose up."""
    plant = moth.load()
    _, position = dynamics.body_poses(plant.model, plant.state)
    right, left = (position[plant.model.body(f"{side}.blade4")] for side in ("right", "left"))
    assert right[1] < -0.01
    assert left[1] > 0.01
    assert min(right[0], left[0]) > 0.01
    assert min(right[2], left[2]) > 0.0
    got = plant.observe()
    assert got["pitch"] > 0.05
    forward = Rotation.from_quat(np.roll(got["quaternion"], -1)).as_matrix()[:, 0]
    assert np.arcsin(forward[2]) == pytest.approx(got["pitch"], abs=1e-9)
    paper = moth.in_paper_frame(start="hover")
    for _ in range(25):
        plant.step(plant.neutral)
        paper.step(paper.neutral)
    np.testing.assert_allclose(plant.vector[:3], face.FORWARD.T @ paper.vector[:3], atol=1e-12)
    np.testing.assert_allclose(plant.vector[7:23], paper.vector[7:23], atol=1e-9)
