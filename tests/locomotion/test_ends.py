"""Plants on the ground: motions that contacts do not allow, singular shapes, commanded rates."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import locomotion
from rtmms import model as m
from rtmms.analysis.linearise import linearise
from rtmms.mechanism.joint_laws import Law
from tests.locomotion.mechanisms import chain


def moved(links: int, initial: m.State | None = None) -> rtmms.TreePlant:
    joints = [rtmms.model.JointMotion(f"j{k}") for k in range(1, links)]
    return rtmms.TreePlant(chain(links, "motion"), 1e-3, actuators=joints, initial=initial)


def test_redundant_contacts_against_the_shape() -> None:
    plant = moved(5)
    with pytest.raises(rtmms.DivergedError) as error:
        plant.step(np.array([0.3, -0.2, 0.1, 0.2]))
    message = str(error.value)
    assert "t = 0.001 s: joints 'j1', 'j2', 'j3', 'j4' move against the ground in step 1" in message
    assert "'l0.axle', 'l1.axle'" in message
    assert "which depend on each other" in message
    assert "follow (drive='torque')" in message
    assert np.array_equal(error.value.last_good["joint_position"], np.zeros(4))
    assert np.array_equal(plant.observe()["joint_position"], np.zeros(4))  # the last good state is kept
    plant.step(np.zeros(4))  # and goes on from there


def test_a_start_against_the_ground() -> None:
    """Joints that move from the first instant, each as it likes."""
    motion = np.zeros((4, 3))
    motion[:, 2] = 0.3, -0.2, 0.1, 0.2
    with pytest.raises(
        rtmms.ModelError,
        match=r"initial: the contacts contradict this state: joints 'j1', .* move against the ground: of the rows",
    ):
        rtmms.TreePlant(chain(5, "motion"), law=Law(motion, 1.0))


def test_a_singular_shape() -> None:
    """Joints that leave the straight shape almost alike throw the base about: ended, with what fell and where."""
    plant = moved(3)
    with pytest.raises(rtmms.DivergedError, match=r"the base is thrown about at .* m/s .* in step 1") as error:
        plant.step(np.array([0.3, 0.299]))
    assert "Vx free, where j1, j2 stand: A has rank 6 of 6 (all but: least singular value" in str(error.value)
    assert np.array_equal(error.value.last_good["joint_position"], np.zeros(2))


def test_a_snake_of_constant_curvature_slides() -> None:
    """Its axles meet in a point: rank 5, and dynamics decides; joints at rest, it keeps its speed along the circle."""
    state = m.State(np.zeros(3), np.array([1.0, 0, 0, 0]), np.full(4, 0.3), np.zeros(6), np.zeros(4))
    description = chain(5, "motion")
    model = rtmms.compile(description)
    result = locomotion.rank(model, state.q)
    assert result.rank == 5
    a, _ = locomotion.rows(model, state.q)
    slide = np.linalg.svd(a)[2][-1]
    state.twist = 0.4 * slide / slide[0]
    motion = np.zeros((4, 3))
    motion[:, 0] = 0.3
    plant = rtmms.TreePlant(description, 1e-3, Law(motion), initial=state)
    before = plant.observe()
    for _ in range(200):
        plant.step(np.zeros(0))
    after = plant.observe()
    assert np.allclose(after["velocity"], before["velocity"], atol=1e-12)
    assert after["energy"] == pytest.approx(before["energy"], rel=1e-12)
    assert after["velocity"][0] == pytest.approx(0.4)


def test_a_commanded_rate() -> None:
    """JointSpeed: exact under a held command, whatever the step; it starts at its neutral rate."""
    hull, rim = m.Body("hull", 1.0, inertia=np.eye(3)), m.Body("rim", 0.1, inertia=np.eye(3))
    cart = m.Mechanism("cart", [hull, rim], [m.Joint("w", "hull", "rim", axis=(0, 1, 0), placement=m.at(z=0.1))],
                       contacts=[m.Plane("hull"), m.Axle("hull"), m.Wheel("w", 0.1, lateral=False)])  # fmt: skip
    for dt in (0.01, 0.1):
        plant = rtmms.TreePlant(cart, dt, actuators=[rtmms.model.JointSpeed("w", -9, 9, bandwidth=5.0, neutral=2.0)])
        assert plant.observe()["velocity"][0] == pytest.approx(0.2)
        for _ in range(round(1.0 / dt)):
            plant.step(np.array([4.0]))
        outputs = plant.observe()
        left = np.exp(-5.0)
        assert outputs["joint_velocity"][0] == pytest.approx(4.0 - 2.0 * left, rel=1e-12)
        assert outputs["joint_position"][0] == pytest.approx(4.0 - 2.0 * (1.0 - left) / 5.0, rel=1e-12)
        assert outputs["velocity"][0] == pytest.approx(0.1 * outputs["joint_velocity"][0], rel=1e-12)
    with pytest.raises(rtmms.ModelError, match=r"neutral must be within its limits"):
        rtmms.TreePlant(cart, actuators=[rtmms.model.JointSpeed("w", -1, 1, neutral=2.0)])


@pytest.mark.full
def test_its_linear_model() -> None:
    """Of a cart on a driven wheel: speed follows the commanded rate, and the step's own answer is the model's."""
    hull, rim = m.Body("hull", 1.0, inertia=np.eye(3)), m.Body("rim", 0.1, inertia=np.eye(3))
    wheel = m.Joint("w", "hull", "rim", axis=(0, 1, 0), placement=m.at(z=0.1))
    contacts = [m.Plane("hull"), m.Axle("hull"), m.Wheel("w", 0.1, lateral=False)]
    cart = m.Mechanism("cart", [hull, rim], [wheel], contacts=contacts)
    plant = rtmms.TreePlant(cart, 0.01, actuators=[rtmms.model.JointSpeed("w", bandwidth=5.0, neutral=2.0)])
    linear = linearise(plant)
    k, rate = linear.states.index("vx"), linear.states.index("w.speed.filter_rate")
    assert linear.a[rate, rate] == -5.0
    assert linear.b[rate, 0] == 5.0
    assert linear.a[k, rate] == pytest.approx(-0.5)  # vx' = R w (command - rate)
    assert linear.b[k, 0] == pytest.approx(0.5)
    plant.step(np.array([2.0 + 1e-3]))
    held = linear.held(0.01)
    assert plant.observe()["velocity"][0] - 0.2 == pytest.approx(held.b[k, 0] * 1e-3, rel=1e-9)


@pytest.mark.parametrize("method", ["rk4", "implicit2", "abam"])
def test_every_method(method: str) -> None:
    """A passive fork under a swinging rider, by each method: to the same end as its step falls."""

    def end(dt: float, how: str) -> np.ndarray:
        plant = rtmms.load("trikke", fork="passive", integrator=how, dt=dt)
        for _ in range(round(0.2 / dt)):
            plant.step(np.array([0.5]))
        return np.asarray(plant.observe()["position"])

    best = end(5e-4, "rk4")
    errors = [np.linalg.norm(end(dt, method) - best) / np.linalg.norm(best) for dt in (4e-3, 2e-3)]
    assert errors[1] < 2e-2
    assert errors[1] < 0.4 * errors[0]


def test_a_commanded_rate_without_contacts() -> None:
    arm = m.Mechanism("arm", [m.Body("base"), m.Body("link", 1.0, inertia=np.eye(3))], [m.Joint("s", "base", "link")],
                      base="fixed")  # fmt: skip
    plant = rtmms.TreePlant(arm, 0.01, actuators=[rtmms.model.JointSpeed("s", bandwidth=10.0)])
    for _ in range(100):
        plant.step(np.array([1.0]))
    outputs = plant.observe()
    assert outputs["joint_velocity"][0] == pytest.approx(1.0 - np.exp(-10.0))
    turned = float(outputs["joint_position"][0])
    # its angle is a state of its own: by place, by home, and by the first state it begins elsewhere and turns alike
    first = plant.model.state()
    first.q[:] = 0.7
    begun = rtmms.TreePlant(arm, 0.01, actuators=plant._pushing, initial=first)
    plant.initial_pose = {"joint_position": [0.7]}
    for item in (plant, begun):
        item.reset()
        assert item.observe()["joint_position"][0] == pytest.approx(0.7, rel=1e-15)
        assert item.observe()["joint_velocity"][0] == 0.0
        for _ in range(100):
            item.step(np.array([1.0]))
        assert item.observe()["joint_position"][0] == pytest.approx(0.7 + turned, rel=1e-12)
    plant.place(joint_position=[0.1], joint_velocity=[-2.0])
    assert plant.observe()["joint_velocity"][0] == pytest.approx(-2.0, rel=1e-15)
    assert "reaction" not in outputs
    stored = plant.snapshot()
    plant.step(np.array([0.0]))
    plant.restore(stored)
    assert plant.snapshot() == stored
