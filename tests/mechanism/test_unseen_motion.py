"""What a method's stages miss of a motion that joints are given: nothing of a smooth one, all of one over at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rtmms.mechanism.actuators import JointMotion
from rtmms.mechanism.audit import given_rates, nodes
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.plant import TreePlant
from rtmms.model import Body, Joint, Mechanism
from rtmms.plant.monitor import Monitor


def arm(dt, bandwidth, **values):
    """A fin that follows its command, on a free body."""
    bodies = [Body("a", 1.0, inertia=np.eye(3)), Body("b", 1.0, inertia=np.eye(3))]
    tree = Mechanism("arm", bodies, [Joint("j", "a", "b", drive="motion")], gravity=(0, 0, 0))
    return TreePlant(tree, dt, actuators=[JointMotion("j", bandwidth=bandwidth)], **values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("substeps", [1, 3])
def test_stages_are_a_quadrature_of_the_methods_order(method, substeps):
    times, weights = nodes(METHODS[method], substeps)
    assert np.sum(weights) == pytest.approx(1.0)
    for power in range(1, {"implicit1": 1, "rk4": 4}.get(method, 2)):
        assert np.sum(weights * times**power) == pytest.approx(1.0 / (power + 1))


def test_rates_are_those_that_the_joint_moves_with():
    """Their integral over a step, by Gauss, is how far the joint goes: ramp, wave, command and gain at once."""
    law = Law(np.array([[0.1, 0.3, -0.2]]), omega=7.0, ramp=0.5, bandwidth=9.0)
    plant = arm(0.05, 30.0, law=law)
    estimator = plant.step_error_estimator()
    begin, at, share = estimator.room(), *np.polynomial.legendre.leggauss(24)
    for k in range(14):  # beyond the ramp
        estimator.keep(begin)
        plant.step(np.array([0.4 if k % 5 < 3 else -0.2]))
        estimator.start(begin, halves=False)
        servo, target = estimator._parts(begin.all)["hold.servo"], estimator._system.hold.target
        estimator.step(np.array([0.4 if k % 5 < 3 else -0.2]), halves=False)
        rates = given_rates(plant.system.law, servo, target, plant.bandwidth, k * 0.05, 0.025 * (1.0 + at))
        went = estimator.state.joints - begin.joints
        assert 0.025 * (rates @ share) == pytest.approx(went, abs=1e-12)


def test_a_commanded_rate_is_approached():
    """A joint whose bandwidth is < 0 goes by x = r t + (v - r) (1 - e^{-w t}) / w."""
    at, share = np.polynomial.legendre.leggauss(24)
    law = SimpleNamespace(motion=np.zeros((1, 3)), omega=1.0, ramp=0.0)
    servo = np.array([[0.2, 0.5, 0.0, 0.0]])
    rates = given_rates(law, servo, np.array([[-0.4, 0.0]]), np.array([-3.0]), 1.0, 0.25 * (1.0 + at))
    assert 0.25 * (rates @ share) == pytest.approx(-0.4 * 0.5 + 0.9 * (1.0 - np.exp(-1.5)) / 3.0)


def test_what_is_over_between_two_stages_is_doubted():
    """Half steps agree with the whole one that nothing moved; a finer step sees the motion, and is fine."""
    verdicts = []
    for dt in (1.0, 0.002):
        plant = arm(dt, 30.0)
        monitor, command = Monitor(plant.step_error_estimator()), np.array([0.3])
        monitor.look(command)
        for _ in range(60):
            plant.step(command)
            monitor.look(command)
        verdicts.append((monitor.verdict.verdict, monitor.verdict.step))
    assert verdicts[0][0] == "doubtful"
    assert verdicts[0][1] > 0.5
    assert verdicts[1][0] == "fine"
    assert verdicts[1][1] < 0.01
