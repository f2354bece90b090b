"""Targets at a limited rate: the closed form against many short steps, and joints that are never faster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rtmms.mechanism.joint_laws import settle, slewed
from rtmms.mechanism.plant import TreePlant
from rtmms.model import Body, Joint, JointLimit, JointMotion, JointServo, JointSpeed, Mechanism

MOTIONS = (JointMotion("j", max_rate=2.0, bandwidth=30.0), JointSpeed("j"))
"""Joints that stand where their law has them, whatever the method."""


@pytest.mark.parametrize("seed", range(6))
def test_the_closed_form_is_that_of_a_target_in_short_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value, rate, target, goal = rng.normal(size=4)
    slew, w, span = rng.uniform(0.5, 8.0), rng.uniform(2.0, 30.0), rng.uniform(0.05, 1.0)
    result = slewed(value, rate, target, goal, slew, w, span)
    ends = []
    for steps in (4000, 8000):
        x, v, at = value, rate, target
        for _ in range(steps):
            move = slew * span / steps
            to = at + min(max(goal - at, -move), move)
            x, v, _ = settle(x, v, 0.5 * (at + to), w, span / steps)
            at = to
        ends.append((x, v))
    exact = 2.0 * np.array(ends[1]) - np.array(ends[0])
    np.testing.assert_allclose(result[:2], exact, atol=2e-6)
    # two parts of a step are one step
    half = slewed(value, rate, target, goal, slew, w, 0.4 * span)
    on = target + min(max(goal - target, -0.4 * slew * span), 0.4 * slew * span)
    np.testing.assert_allclose(slewed(*half[:2], on, goal, slew, w, 0.6 * span), result, rtol=1e-12, atol=1e-11)


def turning(*actuators: Any, dt: float) -> TreePlant:
    bodies = [Body("a", 1.0, inertia=np.eye(3)), Body("b", 1.0, inertia=np.eye(3))]
    return TreePlant(Mechanism("turning", bodies, [Joint("j", "a", "b")], base="fixed"), dt, actuators=actuators)


@pytest.mark.parametrize(
    "actuators",
    [
        (JointMotion("j", max_rate=2.0, bandwidth=30.0),),
        (JointMotion("j", limit=500.0, max_rate=2.0, bandwidth=30.0),),
        (JointServo("j", 1e4, 400.0, max_rate=2.0, bandwidth=30.0),),
        (JointSpeed("j"), JointLimit("j", max_rate=2.0)),
    ],
    ids=["motion", "firm motion", "servo", "speed"],
)
def test_a_joint_is_never_faster_and_goes_as_fast_whatever_the_step(actuators: tuple[Any, ...]) -> None:
    """Commands that jump far: the joint's place after a second depends on the step as little as the method."""
    places = []
    for dt in (2e-3, 2e-2):
        plant = turning(*actuators, dt=dt)
        jumps, held, fast = (3.0, -2.5, 2.2, -3.0, 2.6), round(0.2 / dt), 0.0
        for k in range(5 * held):
            plant.step(np.array([jumps[k // held]]))
            fast = max(fast, abs(float(plant.observe()["joint_velocity"][0])))
        assert 1.9 < fast < 2.0 + 2e-5
        places.append(float(plant.observe()["joint_position"][0]))
    assert abs(places[0] - places[1]) < (1e-9 if actuators[0] in MOTIONS else 2e-3), places
