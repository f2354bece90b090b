"""The monitor measures what it reports, beside a plant that it leaves as it is."""

from __future__ import annotations

import numpy as np
import pytest

import rtmms
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.plant import TreePlant
from rtmms.model import Body, Joint, Mechanism
from rtmms.plant.monitor import GAP, Errors, Monitor, Vectors, step_error

WAVE = np.array([0.3, 0.4, 0.3, 0.4])


def swinging(dt=1e-2, damping=0.0, method="rk4", base="fixed"):
    """A pendulum of 1 kg m2, with a spring that makes it swing at 10 rad/s."""
    bodies = [Body("a", 1.0, inertia=np.eye(3)), Body("b", 1.0, inertia=np.eye(3))]
    joint = Joint("j", "a", "b", damping=damping, stiffness=100.0)
    model = rtmms.compile(Mechanism("swing", bodies, [joint], base=base, gravity=(0, 0, 0)))
    state = model.state()
    state.qd[0] = 1.0
    return TreePlant(model, dt, Law(np.zeros((1, 3))), method=method, initial=state)


def looked(plant, steps, command=None):
    monitor = Monitor(plant.step_error_estimator())
    for k in range(steps):
        held = plant.neutral if command is None else command(k)
        plant.step(held)
        monitor.after(held)
    return monitor


def rods(k):
    return WAVE * np.sin(3.77e-3 * k)


@pytest.mark.parametrize("method", ["rk4", "implicit2", "abam"])
def test_the_error_of_a_step_is_that_of_the_method(method):
    """Against the exact swing: the step's error in the joint angle, as a fraction of what the angle changes by."""
    plant = swinging(method=method)
    for _ in range(40):
        plant.step(plant.neutral)
    q, qd, dt = plant.vector[7], plant.vector[-1], plant.dt
    exact = q * np.cos(10.0 * dt) + qd / 10.0 * np.sin(10.0 * dt)
    result = plant.step_error()
    before = q
    plant.step(plant.neutral)
    truth = abs(plant.vector[7] - exact) / abs(exact - before)
    assert result.joints == pytest.approx(truth, rel=0.5)
    assert result.velocity == 0.0


def test_an_error_by_hand_leaves_the_plant_as_it_is():
    for plant, command in ((swinging(), np.zeros(0)), (rtmms.load("manta"), WAVE)):
        blob = plant.snapshot()
        assert plant.step_error(command).largest > 0.0
        assert plant.snapshot() == blob
        assert plant.step_error() == step_error(plant.step_error_estimator(), getattr(plant, "commanded", np.zeros(4)))


@pytest.mark.parametrize("coupling", ["sequential", "monolithic"])
def test_a_watched_run_has_the_bits_of_one_that_is_not(coupling):
    watched, alone = (rtmms.load("manta", coupling=coupling) for _ in range(2))
    monitor = looked(watched, 600, rods)
    for k in range(600):
        alone.step(rods(k))
    assert watched.snapshot() == alone.snapshot()
    assert monitor.errors.count > 20
    assert monitor.verdict.verdict == "fine"


def test_a_manta_of_half_a_second_is_doubted():
    verdict = looked(rtmms.load("manta", dt=0.5), 40, lambda k: 0.5 * WAVE * np.sin(1.885 * k)).verdict
    assert verdict.verdict in ("doubtful", "diverged")
    assert "use dt <=" in verdict.sentence


def test_gaps_grow_and_keep_no_time():
    """At first one after the other, later one in about a hundred steps, and never at even distances."""
    plant = swinging()
    monitor = looked(plant, 6000)
    assert 6000 / GAP < monitor.errors.count < 6000 / GAP + 60
    gaps = {monitor._pause() for monitor.errors.count in range(60, 80)}
    assert len(gaps) > 10
    assert min(gaps) > 0.4 * GAP
    assert max(gaps) < 1.6 * GAP


def test_a_change_from_outside_is_no_error():
    """A state put in between two looks, or a reset: what was begun is dropped."""
    plant, still = swinging(), swinging()
    blob = still.snapshot()
    monitor = Monitor(plant.step_error_estimator())
    for k in range(300):
        plant.step(plant.neutral)
        monitor.look(plant.neutral)
        if k % 7 == 3:
            plant.restore(blob)
            monitor.forget()
    assert monitor.errors.count > 20
    assert monitor.verdict.step < 1e-3
    monitor.clear()
    assert monitor.verdict.verdict == "unknown"
    assert "too few steps" in monitor.verdict.sentence


def test_a_step_that_fails_counts_as_wholly_wrong():
    plant = swinging()
    errors, estimator = Errors(plant.step_error_estimator()), plant.step_error_estimator()
    begin, end = estimator.room(), estimator.room()
    estimator.keep(begin)
    plant.step(plant.neutral)
    estimator.keep(end)
    result = errors.add(begin, end, estimator.state, False, 1.0)
    assert result.joints == pytest.approx(1.0)


def test_turns_count_by_the_length():
    plant = rtmms.load("eel")
    estimator = plant.step_error_estimator()
    a, b = estimator.room(), estimator.room()
    estimator.keep(a)
    estimator.keep(b)
    b.twist[:] += (1.0, 0.0, 0.0, 0.0, 2.0, 0.0)
    vectors = Vectors(estimator)
    vectors.between(a, b)
    assert vectors.squares()[0] == pytest.approx(1.0 + (2.0 * estimator.length) ** 2)


def test_what_comes_to_rest_within_the_first_step_is_seen():
    """Motors of 2 ms in steps of 0.1 s: the quadrotor has no lift in the first, and falls behind from then on."""
    plant = rtmms.load("quadrotor", dt=0.1, motor_s=0.002)
    monitor, lift = Monitor(plant.step_error_estimator()), np.full(4, 476.0)
    monitor.look(lift)
    for _ in range(30):
        plant.step(lift)
        monitor.after(lift)
    assert monitor.conclude().verdict == "doubtful"
