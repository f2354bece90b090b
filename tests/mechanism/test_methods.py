"""Each method has the order it declares, is stable where it should be, and stops with a reason where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.base.spatial import quaternion_matrix
from rtmms.fluids.ambient import Flow, Wave
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import TreePlant
from rtmms.mechanism.step import displace, uncurl
from rtmms.model import Body, Joint, Mechanism
from rtmms.robots import eel
from tests.random_tree import random_state, random_tree

JOINTS = 6
NONE = np.zeros(0)


def run(plant, steps):
    for _ in range(steps):
        plant.step(NONE)


def plant_of(mechanism, dt, method, state=None, **law):
    model = rtmms.compile(mechanism)
    motion = np.zeros((model.n, 3))
    motion[0] = 0.1, 0.3, -0.2
    return TreePlant(model, dt, Law(motion, omega=5.0, **law), method=method, initial=state)


def moving(dt, method, seconds=0.4):
    """A tree with springs, dampers and one joint moved along a wave, from a random state."""
    tree = random_tree(JOINTS, 17, friction=True)
    joints = [Joint(**{**vars(j), "drive": "motion" if k == 0 else "torque"}) for k, j in enumerate(tree.joints)]
    mechanism = Mechanism("moving", tree.bodies, joints)
    state = random_state(rtmms.compile(mechanism), 4)
    plant = plant_of(mechanism, dt, method, state)
    for _ in range(round(seconds / dt)):
        plant.step(NONE)
    vector = plant.vector.copy()
    vector[3:7] *= np.sign(vector[3])
    return vector


@pytest.mark.parametrize(
    ("method", "steps"), [("rk4", 40), ("implicit1", 800), ("implicit2", 200), ("abam", 160)]
)  # fmt: skip
def test_order(method, steps):
    exact = moving(0.4 / 3200, "rk4")
    errors = [np.max(np.abs(moving(0.4 / (steps * k), method) - exact)) for k in (1, 2)]
    assert errors[1] < 1e-2
    assert np.log2(errors[0] / errors[1]) == pytest.approx(METHODS[method].order, abs=0.35)


MEAN = (1.0, 0.7, -0.6)
"""m/s: strong enough that no relative velocity changes its sign, where drag has a kink."""
FLOWS = {
    "uniform": Flow(MEAN),
    "space": Flow(MEAN, waves=[Wave((0.2, 0.1, 0.15), k=(3.0, 2.0, 1.0))]),
    "time": Flow(MEAN, waves=[Wave((0.2, 0.1, 0.15), omega=9.0, phase=0.4)]),
}


def drifting(dt, method, flow, seconds=0.4):
    """A short eel with soft servos in a current."""
    robot = eel.Eel(drive="torque", joints=1, gait="none", c4=0.0)
    model = rtmms.compile(eel.describe(robot))
    state = model.state()
    state.q[:], state.qd[:] = (0.3, -0.2, 0.25), (0.4, 0.3, -0.2)
    plant = TreePlant(model, dt, Law(np.zeros((3, 3)), kp=2.0, kd=0.05), flow=flow, method=method, initial=state)
    run(plant, round(seconds / dt))
    vector = plant.vector.copy()
    vector[3:7] *= np.sign(vector[3])
    return vector


@pytest.mark.full
@pytest.mark.parametrize("flow", list(FLOWS))
@pytest.mark.parametrize(
    ("method", "steps"), [("rk4", 40), ("implicit2", 200), ("abam", 160)]
)  # fmt: skip
def test_order_in_a_flow(method, steps, flow):
    exact = drifting(0.4 / 3200, "rk4", FLOWS[flow])
    errors = [np.max(np.abs(drifting(0.4 / (steps * k), method, FLOWS[flow]) - exact)) for k in (1, 2)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(METHODS[method].order, abs=0.5)


@pytest.mark.full
@pytest.mark.parametrize(("method", "order"), [("rk4", 2), ("implicit2", 2), ("abam", 1)])
def test_a_flow_that_is_held_over_the_step_leaves_order_two(method, order):
    """Of a multistep method one: its past was taken in the flow of other steps."""

    def field(x, t):
        return np.array(MEAN) + np.array([0.2, 0.1, 0.15]) * np.cos(3.0 * x[0] + 2.0 * x[1] - 9.0 * t)

    exact = drifting(0.4 / 1600, "rk4", Flow(field=field))
    errors = [np.max(np.abs(drifting(0.4 / n, method, Flow(field=field)) - exact)) for n in (50, 100)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


def pendulum(rate):
    """A joint damped at `rate` 1/s on a fixed base."""
    bodies = [Body("a", 1.0, inertia=np.eye(3)), Body("b", 1.0, inertia=np.eye(3))]
    joint = Joint("j", "a", "b", damping=rate)
    return Mechanism("damper", bodies, [joint], base="fixed", gravity=(0, 0, 0))


def decay(method, product, steps=400):
    """qd after `steps` of a damper whose rate times dt is `product`."""
    plant = TreePlant(rtmms.compile(pendulum(product)), 1.0, Law(np.zeros((1, 3))), method=method)
    state = plant.model.state()
    state.qd[0] = 1e-6
    plant.place(state)
    for _ in range(steps):
        plant.step(NONE)
    return abs(plant.vector[-1]) / 1e-6


@pytest.mark.parametrize("method", list(METHODS))
def test_stability(method):
    limit = METHODS[method].stability
    if limit is None:
        assert decay(method, 1e4) < 1e-3
    else:
        assert decay(method, 0.97 * limit) < 1.0
        # abam's bound is of a half disc: on the real axis it bears more
        assert decay(method, (1.05 if method == "rk4" else 1.6) * limit) > 1.0


def servoed(method, dt, kp=2e4, kd=50.0):
    """Largest error of the joints of a tree on a stiff servo after 2 s, and how far the base has moved."""
    tree = random_tree(4, 9, prismatic=0.0)
    plant = plant_of(tree, dt, method, kp=kp, kd=kd, ramp=1.0)
    run(plant, round(2.0 / dt))
    return np.max(np.abs(plant.state.q - plant.law.at(plant.time)[0])), plant.state.position


@pytest.mark.parametrize("method", ["implicit2"])
def test_a_stiff_servo_is_held_by_the_implicit_methods(method):
    """Steps 200 times as long as RK4 bears; at one that RK4 bears, they agree."""
    with pytest.raises(rtmms.DivergedError, match="ran away"):
        servoed("rk4", 1e-2)
    error, coarse = servoed(method, 1e-2)
    assert error < 1e-2
    exact = servoed("rk4", 1e-3, kp=200.0, kd=2.0)[1]
    errors = [np.max(np.abs(servoed(method, dt, kp=200.0, kd=2.0)[1] - exact)) for dt in (4e-3, 2e-3)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(METHODS[method].order, abs=0.35)
    assert np.all(np.isfinite(coarse))


@pytest.mark.parametrize("method", list(METHODS))
def test_work_is_the_integral_of_power(method):
    """Over a motion, beside a sum over samples of the power; the plant's output and its snapshot carry it."""
    plant = plant_of(random_tree(4, 9, prismatic=0.0), 1e-3, method, kp=20.0, kd=1.0, ramp=0.4)
    total = 0.0
    for k in range(501):
        total += float(plant.observe()["power"]) * plant.dt * (0.5 if k in (0, 500) else 1.0)
        if k < 500:
            plant.step(NONE)
    blob, work = plant.snapshot(), float(plant.observe()["work"])
    assert work == pytest.approx(
        total, rel=1e-4 if METHODS[method].order > 2 else {1: 1e-2, 2: 1e-3}[METHODS[method].order]
    )
    assert work != 0.0
    plant.reset()
    assert float(plant.observe()["work"]) == 0.0
    plant.restore(blob)
    assert float(plant.observe()["work"]) == work


def test_an_unstable_run_gives_the_last_sound_outputs():
    plant = TreePlant(rtmms.compile(pendulum(4.0)), 1.0, Law(np.zeros((1, 3))))
    state = plant.model.state()
    state.qd[0] = 1.0
    plant.place(state)
    with pytest.raises(
        rtmms.DivergedError, match=r"joint_velocity ran away.*one step of 1 s, too long for rk4"
    ) as caught:
        run(plant, 1000)
    assert np.isfinite(caught.value.last_good["joint_velocity"][0])
    assert caught.value.quantity == "joint_velocity"
    assert caught.value.time == pytest.approx(plant.time + 1.0)


def test_a_state_all_but_beyond_the_numbers_fails_without_a_warning():
    """Where no flow has an end, nothing is moved on to look for it."""
    plant = TreePlant(rtmms.compile(pendulum(4.0)), 1e-3, Law(np.zeros((1, 3))))
    plant.vector[3:7] = 0.0
    with pytest.raises(rtmms.DivergedError):
        plant.step(NONE)


def test_exponentials_are_rotations():
    """One long step of constant W is the rotation by W h, and small steps agree with large ones."""
    state = np.zeros(13)
    state[3:7] = 0.5, 0.5, -0.5, 0.5
    rate = np.zeros(12)
    rate[3:6] = 0.3, -0.7, 1.1
    far, near = np.zeros(13), state.copy()
    displace(state, rate, 1.7, far)
    for _ in range(17000):
        displace(near, rate, 1e-4, near)
    np.testing.assert_allclose(far, near, atol=1e-12)
    assert np.linalg.norm(far[3:7]) == pytest.approx(1.0, abs=1e-14)


def test_uncurl_is_the_rate_of_the_exponentials_coordinate():
    """d/dt exp(theta) with theta' = uncurl(W) turns at W: to third order in theta."""
    theta, w = 1e-2 * np.array([1.0, 2.0, -1.0]), np.array([0.3, 0.4, -0.5])
    before, rate = np.zeros(12), np.zeros(12)
    before[3:6], rate[3:6] = theta, w
    uncurl(rate, before, 1.0)

    def turn(vector):
        out, start = np.zeros(13), np.zeros(13)
        start[3] = 1.0
        along = np.zeros(12)
        along[3:6] = vector
        displace(start, along, 1.0, out)
        return quaternion_matrix(out[3:7])

    h = 1e-6
    spin = turn(theta).T @ (turn(theta + h * rate[3:6]) - turn(theta - h * rate[3:6])) / (2 * h)
    np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], w, atol=2e-8)


def test_free_flight_keeps_momentum_and_energy():
    """A tree in free fall without friction: RK4's errors fall sixteenfold when the step is halved."""
    tree = random_tree(8, 5, added=False)
    mechanism = Mechanism("fall", tree.bodies, tree.joints, gravity=(0, 0, 0))
    model = rtmms.compile(mechanism)
    state = random_state(model, 6, rate=0.5)
    errors = []
    for dt in (4e-3, 2e-3):
        plant = TreePlant(model, dt, Law(np.zeros((8, 3))), initial=state)
        for _ in range(round(0.4 / dt)):
            plant.step(NONE)
        drift = dynamics.momentum(model, plant.state) - dynamics.momentum(model, state)
        energy = dynamics.energy(model, plant.state).total - dynamics.energy(model, state).total
        errors.append([np.max(np.abs(drift)), abs(energy)])
    errors = np.array(errors)
    assert np.all(errors[1] < 1e-7)
    assert np.all(errors[0] / errors[1] > 13.0)
