"""The filters that commands of eel and moth pass through: exact whatever the step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from rtmms.mechanism.actuators import JointMotion, JointStop
from rtmms.mechanism.joint_laws import Law, settle
from rtmms.mechanism.plant import TreePlant
from rtmms.model import Body, Joint, Mechanism, at


@pytest.mark.parametrize("bandwidth", [0.5, 20.0, 60.0, 1e4, 1e6])
@pytest.mark.parametrize("dt", [1e-6, 1e-3, 0.1, 10.0])
def test_a_command_is_followed_by_the_matrix_exponential(bandwidth, dt):
    value, rate, target, w = 0.3, -1.7, 0.8, bandwidth
    matrix = np.array([[0, 1, 0], [-1, -2, 1], [0, 0, 0]]) * w * dt  # in units of 1 / w
    end = expm(matrix) @ np.array([value, rate / w, target])
    expected = np.array([end[0], end[1] * w, w * w * (end[2] - end[0]) - 2.0 * w * w * end[1]])
    scale = np.array([1.0, abs(rate) + w * abs(target - value), w * w * abs(target - value) + 2.0 * w * abs(rate)])
    assert (np.abs(settle(value, rate, target, w, dt) - expected) < 1e-12 * scale).all()


def two_joints(dt, **values):
    """A turning and a sliding joint that are given a wave and a command, on a free body."""
    bodies = [Body(name, 1.0, inertia=np.eye(3)) for name in "abc"]
    joints = [
        Joint("turns", "a", "b", drive="motion"), Joint("slides", "b", "c", type="prismatic", drive="motion"),
    ]  # fmt: skip
    law = Law(np.array([[0.0, 0.3, 0.1], [0.1, 0.0, 0.2]]), omega=9.0, ramp=0.1)
    actuators = [JointMotion("turns"), JointMotion("slides")]
    return TreePlant(Mechanism("two", bodies, joints), dt, law, actuators=actuators, **values)


def test_substeps_are_steps():
    """Of a motion that goes by time; the command is held, and its filter moves on at the end of a step alone."""
    whole, parts = two_joints(0.02, substeps=4), two_joints(0.005)
    for _ in range(5):
        whole.step(whole.neutral)
        for _ in range(4):
            parts.step(parts.neutral)
    assert whole.vector == pytest.approx(parts.vector, rel=1e-12, abs=1e-13)


def test_a_command_has_the_unit_of_its_joint():
    assert [channel.unit for channel in two_joints(0.01).actuators] == ["rad", "m"]


@pytest.mark.parametrize("method", ["implicit1", "implicit2", "rk4"])
def test_the_work_of_a_stiff_stop_is_what_the_energy_lacks(method):
    """At one of two joints, hit at speed and left again: all that is put in and taken out is its work."""
    bodies = [Body.about_centre(name, 1.0, (0.2, 0.1, 0.0), 0.1 * np.eye(3)) for name in "abc"]
    joints = [Joint("first", "a", "b"), Joint("second", "b", "c", placement=at(0.3))]
    plant = TreePlant(
        Mechanism("arm", bodies, joints, gravity=(0, 0, 0)), 2e-4, method=method,
        actuators=[JointStop("second", -0.02, 0.02, 500.0, 5.0)],
    )  # fmt: skip
    state = plant.model.state()
    state.qd[:] = 0.5, 3.0
    plant.place(state)
    before = float(plant.observe()["energy"])
    for _ in range(150):
        plant.step(plant.neutral)
    outputs = plant.observe()
    assert abs(float(outputs["work"])) > 0.1
    assert outputs["work"] == pytest.approx(
        outputs["energy"] - before, rel={"implicit1": 0.03, "implicit2": 1.2e-4, "rk4": 1e-5}[method]
    )
