"""Actuators whose effect is affine in command and state: JointAffine, DirectedWrench, and tendons with a gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms import model as m
from rtmms.analysis.linearise import linearise
from rtmms.base.errors import ModelError

DT = 2e-3


def swinging(*actuators: Any, **more: Any) -> Any:
    base = m.Body("base", solids=[m.Box(0.2, 0.2, 0.1, 1000.0)])
    arm = m.Body("arm", solids=[m.Box(0.4, 0.03, 0.03, 1000.0, m.at(x=0.2))])
    joint = m.Joint("shoulder", "base", "arm", axis=(0, 1, 0), **more)
    return rtmms.TreePlant(rtmms.Mechanism("robot", [base, arm], [joint], base="fixed"), DT, actuators=actuators)


def pulled(plant: Any, command: Any, steps: int = 100) -> Any:
    for _ in range(steps):
        plant.step(np.array(command, dtype=float))
    return np.concatenate([plant.observe()["joint_position"], plant.observe()["joint_velocity"]])


def test_an_affine_law_is_a_torque_a_spring_and_a_damper() -> None:
    law = swinging(m.JointAffine("shoulder", gain=3.0, stiffness=2.0, damping=0.4))
    parts = swinging(m.JointTorque("shoulder"), stiffness=2.0, damping=0.4)
    assert np.allclose(pulled(law, [0.5]), pulled(parts, [1.5]), rtol=1e-12)
    assert law.observe()["joint_torque"][0] != parts.observe()["joint_torque"][0]  # it counts spring and damper too


def test_torques_of_several_actuators_at_a_joint_add() -> None:
    both = swinging(m.JointAffine("shoulder", 2.0, name="a"), m.JointAffine("shoulder", -1.0, 3.0, name="b"),
                    m.JointTorque("shoulder", name="c"))  # fmt: skip
    item = swinging(m.JointTorque("shoulder"), stiffness=3.0)
    assert np.allclose(pulled(both, [0.5, 0.2, 0.1]), pulled(item, [1.0 - 0.2 + 0.1]), rtol=1e-12)


def test_a_limit_cuts_the_whole_torque() -> None:
    cut = swinging(m.JointAffine("shoulder", 50.0, stiffness=50.0, limit=2.0))
    pulled(cut, [2.0], 20)
    assert cut.observe()["joint_torque"][0] == 2.0
    assert cut.joint_limits["shoulder"]["effort"] == 2.0


def test_a_directed_wrench_is_its_components_times_the_command() -> None:
    body = m.Body("hull", solids=[m.Ellipsoid(0.3, 0.2, 0.1, 1000.0)])
    place = m.at(0.1, 0.05, yaw=0.4)
    tree = rtmms.Mechanism("diver", [body], gravity=(0, 0, 0))
    item = rtmms.TreePlant(tree, DT, actuators=[m.DirectedWrench("hull", (1, 0, 2, 0, -0.5, 0), place, name="jet")])
    six = rtmms.TreePlant(tree, DT, actuators=[m.BodyWrench("hull", placement=place)])
    for _ in range(50):
        item.step(np.array([3.0]))
        six.step(np.array([3.0, 0, 6.0, 0, -1.5, 0]))
    assert np.allclose(item.vector, six.vector, rtol=1e-12)
    assert item.actuators[0].name == "jet"


def test_linear_models_have_the_gain() -> None:
    plants = [swinging(m.JointAffine("shoulder", gain, 2.0, 0.1)) for gain in (1.0, -3.0)]
    for make in (rtmms.linearise, linearise):
        unit, scaled = (make(plant) for plant in plants)
        assert np.allclose(scaled.b, -3.0 * unit.b, rtol=1e-6, atol=1e-12)
        assert np.abs(unit.b).max() > 0.0


def test_a_tension_with_a_gain_pushes_and_pulls() -> None:
    path = [("base", (0.0, 0.0, 0.1)), ("arm", (0.2, 0.0, 0.02))]
    item = swinging(m.Tendon("cord", path, pushes=True, gain=-2.0, channel="winch"))
    other = swinging(m.Tendon("cord", path, pushes=True))
    assert np.allclose(pulled(item, [-1.5]), pulled(other, [3.0]), rtol=1e-12)
    assert item.observe()["tendon_tension"][0] == 3.0
    assert [channel.name for channel in item.actuators] == ["winch"]
    with pytest.raises(ModelError, match="gain: expected 1, as only a tension with pushes=True has a gain, got 2"):
        swinging(m.Tendon("cord", path, gain=2.0))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (m.JointAffine("elbow"), "elbow"),
        (m.JointAffine("shoulder", float("nan")), "gain must be"),
        (m.JointAffine("shoulder", stiffness=-1.0), "stiffness must be >= 0"),
        (m.JointAffine("shoulder", limit=0.0), "limit must be > 0"),
        (m.DirectedWrench("arm", (1, 0, 0)), "wrench"),
        (m.DirectedWrench("hand", (1, 0, 0, 0, 0, 0)), "hand"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(wrong: Any, why: str) -> None:
    with pytest.raises(ModelError) as refused:
        swinging(wrong)
    assert why in str(refused.value)
    assert "actuators[0]" in str(refused.value)
