"""Rods by strain modes on bodies of a tree: held to the rod alone on a free body, and to links under a moving joint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.analysis.linearise import linearise
from rtmms.base.spatial import adjoint, matrix_quaternion, quaternion_matrix, rotation_z
from rtmms.continuum.soft_tree import SoftTree
from rtmms.continuum.strain_modes import legendre
from rtmms.continuum.strain_rod import StrainRod
from rtmms.mechanism.joint_laws import Law
from rtmms.model import Body, Joint, Mechanism, Placement, Rod, RodSection, at
from tests.continuum.test_strain_rod import HEAD, SOFT, fish

pytestmark = pytest.mark.full
STREAM = (0.2, 0.3, 0.1)


@pytest.fixture(scope="module")
def swimmer() -> SoftTree:
    mechanism = Mechanism("fish", [HEAD], gravity=(0.0, 0.0, -2.0))
    return SoftTree(mechanism, [fish()], legendre(3), 1e-3, flow=rtmms.fluids.Flow(STREAM), nodes=25)


def test_rates_are_those_of_the_rod_alone(swimmer: SoftTree) -> None:
    """The same state by two ways: all of it in one matrix, and condensed into the recursion."""
    item = StrainRod(fish(), legendre(3), "free", HEAD, gravity=2.0, current=STREAM, nodes=25)
    rng = np.random.default_rng(3)
    n, place = item.n, fish().placement
    q, qd, twist = 0.5 * rng.normal(size=n), rng.normal(size=n), rng.normal(size=6)
    turn = quaternion_matrix(rng.normal(size=4))
    swimmer.reset()
    y = swimmer.state
    y[:3], y[3:7] = [0.3, -0.2, 0.1], matrix_quaternion(turn)
    y[7 : 7 + n], y[7 + n : 13 + n], y[13 + n :] = q, twist, qd
    to_root = adjoint(place.rotation, place.position)
    z = item.state
    z[:3], z[3:7] = y[:3] + turn @ place.position, matrix_quaternion(turn @ place.rotation)
    z[7 : 7 + n], z[7 + n : 13 + n], z[13 + n :] = q, to_root @ twist, qd
    item.look()
    rate, wanted = swimmer.look(), item.system.rate
    np.testing.assert_allclose(rate[12 + n :], wanted[12 + n :], rtol=1e-9)
    np.testing.assert_allclose(to_root @ rate[6 + n : 12 + n], wanted[6 + n : 12 + n], rtol=1e-9)
    np.testing.assert_allclose(swimmer.observe()["tip"][0], item.tip(), atol=1e-12)
    for _ in range(50):
        item.step(np.zeros(6))
        swimmer.step(np.zeros(0))
    np.testing.assert_allclose(swimmer.observe()["tip"][0], item.tip(), atol=2e-5)


def test_linearised_and_restored(swimmer: SoftTree) -> None:
    swimmer.reset()
    for _ in range(5):
        swimmer.step(np.zeros(0))
    stored = swimmer.snapshot()
    assert linearise(swimmer).a.shape == (30, 30)
    swimmer.step(np.zeros(0))
    once = swimmer.snapshot()
    swimmer.restore(stored)
    swimmer.step(np.zeros(0))
    assert swimmer.snapshot() == once
    assert isinstance(swimmer, rtmms.plant.protocol.Plant)
    with pytest.raises(rtmms.ModelError, match=f"expected a snapshot of {len(stored)} bytes, got {len(stored) - 8}$"):
        swimmer.restore(stored[:-8])


def test_a_rollout_has_the_bits_of_single_steps() -> None:
    driven = [rtmms.model.JointMotion("flap", -0.5, 0.5), rtmms.model.JointTorque("swing", 0.5)]
    plant = SoftTree(flapping(()), flaps(1), legendre(2), 1e-3, actuators=driven)
    commands = np.random.default_rng(2).normal(size=(3, 20, 2))
    runs = rtmms.rollout(plant, commands, outputs=("joint_position", "strain"), every=20)
    for run, command in enumerate(commands):
        plant.reset()
        for item in command:
            plant.step(item)
        outputs = plant.observe()
        for name in ("joint_position", "strain"):
            np.testing.assert_array_equal(runs.outputs[name][run, -1], outputs[name])


def flapping(rods: tuple[Rod, ...]) -> Mechanism:
    """A base that is held, a support that flaps, and a second link behind it, both with a rod."""
    bodies = [Body("base", 1.0, inertia=np.eye(3)), Body("support", 0.2, inertia=1e-2 * np.eye(3))]
    bodies.append(Body.about_centre("arm", 0.1, (0.1, 0.0, 0.0), 1e-3 * np.eye(3)))
    joints = [
        Joint("flap", "base", "support", axis=(1.0, 0.0, 0.0), drive="motion"),
        Joint("swing", "support", "arm", "revolute", at(0.0, 0.15), (0.0, 1.0, 0.2), stiffness=0.3, damping=2e-3),
    ]
    return Mechanism("flapping", bodies, joints, base="fixed", gravity=(0.0, 0.0, 0.0), rods=rods)


def flaps(n: int) -> tuple[Rod, Rod]:
    side = Placement(rotation_z(math.pi / 2.0), np.array([0.05, 0.0, 0.0]))
    light = RodSection(0.3, (2e-3, 1e-3, 1e-3), 0.5, 0.8, 0.3)
    return (
        Rod("fin", "support", 0.6, light, n, side, damping_s=4e-3),
        Rod("tail", "arm", 0.4, SOFT, n, Placement(np.eye(3), np.array([0.2, 0.0, 0.0])), damping_s=4e-3),
    )  # fmt: skip


def test_two_rods_on_a_moving_tree_move_as_links_do() -> None:
    dt, steps = 1e-3, 500
    motion = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    soft = SoftTree(flapping(()), flaps(1), legendre(4), dt, Law(motion, 2.0 * math.pi, 0.3))
    for _ in range(steps):
        soft.step(np.zeros(0))
    outputs = soft.observe()
    wanted, swing = outputs["tip"], float(outputs["joint_position"][1])
    assert float(outputs["joint_position"][0]) == pytest.approx(0.0, abs=1e-9)  # half a period
    assert abs(wanted[0, 2]) > 0.05
    assert abs(swing) > 1e-3
    errors = []
    for n in (8, 16):
        rods = flaps(n)
        model = rtmms.compile(flapping(rods))
        law = np.zeros((model.n, 3))
        law[0] = motion[0]
        ends = [rod.tip() for rod in rods]
        plant = rtmms.TreePlant(
            model, dt, Law(law, 2.0 * math.pi, 0.3), method="implicit2",
            outputs=["joint_position", *(f"{name}.{what}" for name, _ in ends for what in ("position", "quaternion"))],
        )  # fmt: skip
        for _ in range(steps):
            plant.step(np.zeros(0))
        expected: Any = plant.observe()
        result = [
            expected[f"{name}.position"] + quaternion_matrix(expected[f"{name}.quaternion"]) @ place.position
            for name, place in ends
        ]
        errors.append(np.abs(np.array(result) - wanted).max())
    assert errors[1] < 2e-3 * 0.6
    assert errors[0] / errors[1] > 2.5, errors


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: SoftTree(flapping(()), []), "rods: expected at least one"),
        (lambda: SoftTree(flapping(()), flaps(1), [legendre(2), legendre(3)]), "rod 'tail': expected 6 shapes"),
        (lambda: SoftTree(flapping(()), flaps(1), dt=0.0), "dt must be > 0 s"),
        (lambda: SoftTree(flapping(()), [fish()]), "unknown body 'head'"),
        (
            lambda: SoftTree(flapping(()), flaps(1), actuators=[rtmms.model.BodyWrench("arm")]),
            "expected only JointMotion, JointTorque and Tendon",
        ),
    ],
)
def test_refused(make: Any, text: str) -> None:
    with pytest.raises(rtmms.RtmmsError, match=text):
        make()
