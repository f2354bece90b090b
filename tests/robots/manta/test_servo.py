"""The servo's exact step against the matrix exponential, against itself, and on the robot."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.linalg import expm

from rtmms.robots.manta import load
from rtmms.robots.manta.rods import (
    RESPONSES,
    _within,
    servo_linear,
    servo_response,
    servo_responses,
    servo_step,
)
from tests.every import every

DAMPING = [0.01, 0.3, 0.7, 1.0 - 1e-9, 1.0 - 1e-14, 1.0, 1.0 + 1e-14, 1.0 + 1e-9, 1.0001, 1.5, 46.0, 1e3, 1e4]
STEPS = [1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]
OMEGAS = [0.6, 31.4, 2500.0]


def responses(omega, damping, dt):
    """What `servo_step` takes of a model."""
    out = np.zeros(RESPONSES)
    return out, servo_responses(omega, damping, dt, out)


def scales(omega, damping, rate, away, slope):
    """What angle, rate and acceleration are made of."""
    return np.array([1.0, abs(rate) + omega * abs(away) + abs(slope),
                     omega * omega * abs(away) + 2.0 * damping * omega * abs(rate) + omega * abs(slope)])  # fmt: skip


@every("damping, omega", itertools.product(DAMPING, OMEGAS))
def test_the_step_is_the_matrix_exponential(damping, omega):
    """1e-12 for a held command and for one that runs; where the exponential itself is no better (norms beyond 1e4,
    of which it loses its share of digits), as well as it."""
    angle, rate, reference = 0.31, -1.7, 0.8
    for dt in STEPS:
        for slope in (0.0, 3.3):
            if slope * dt > 1.0:
                continue
            got = np.array(
                servo_linear(angle, rate, reference - angle, slope, omega, servo_response(omega, damping, dt))
            )
            # in units of 1 / omega, so that the matrix is as even as can be
            matrix = np.array([[0, 1, 0, 0], [-1, -2 * damping, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]) * omega * dt
            end = expm(matrix) @ np.array([angle, rate / omega, reference, slope / omega])
            acceleration = omega**2 * (end[2] - end[0]) - 2.0 * damping * omega**2 * end[1]
            error = np.abs(got - [end[0], end[1] * omega, acceleration])
            bound = max(1e-12, 1e-16 * float(np.abs(matrix).max()))
            assert (error / scales(omega, damping, rate, reference - angle, slope) < bound).all(), (dt, slope)


@every("damping, omega", itertools.product(DAMPING, OMEGAS))
def test_two_halves_are_the_whole(damping, omega):
    """No matrix needed, so at any size: 1e-13."""
    angle, rate, reference = 0.31, -1.7, 0.8
    for dt in STEPS:
        for slope in (0.0, 0.5 / dt):
            half, whole = servo_response(omega, damping, 0.5 * dt), servo_response(omega, damping, dt)
            a, v, _ = servo_linear(angle, rate, reference - angle, slope, omega, half)
            twice = servo_linear(a, v, reference + 0.5 * dt * slope - a, slope, omega, half)
            once = servo_linear(angle, rate, reference - angle, slope, omega, whole)
            error = np.abs(np.subtract(twice, once)) / scales(omega, damping, rate, reference - angle, slope)
            assert (error < 1e-13).all(), (dt, slope)


@pytest.mark.parametrize("damping", [46.0, 1e3])
def test_a_stiff_servo_moves_its_rods_and_no_more(damping):
    """One command held at 1 ms: the rods creep there, and the robot hardly moves."""
    plant = load(servo_damping=damping, start_depth_m=0.0)
    for _ in range(3000):
        plant.step(np.array([0.3, 0.3, 0.3, 0.3]))
    outputs = plant.observe()
    slow = 2.0 * np.pi * 5.0 / (damping + np.sqrt(damping**2 - 1.0))
    assert outputs["rod_angle"] == pytest.approx(0.3 * (1.0 - np.exp(-slow * 3.0)), abs=1e-3)
    assert np.abs(outputs["position"]).max() < 0.05


def test_the_quick_way_is_taken_only_where_no_limit_holds_meanwhile():
    """Anywhere near the limits: a step is what a hundred short ones come to."""
    draw, quick = np.random.default_rng(7), 0
    omega, zeta = 2.0 * np.pi * 5.0, 0.7
    servo, dt = (omega, zeta, 8.0, 200.0), 5e-3
    for _ in range(60):
        angle, rate, slope = 0.0, draw.uniform(-8.0, 8.0), draw.uniform(-2.0, 2.0)
        # about where k rate and omega^2 away cancel, or add to either limit
        away = 2.0 * zeta / omega * rate + draw.uniform(-1.2, 1.2) * 200.0 / omega**2
        whole = servo_step(angle, rate, angle + away, angle + away + slope * dt, dt, servo, *responses(omega, zeta, dt))
        short, fine = responses(omega, zeta, dt / 100), (angle, rate, 0.0)
        for k in range(100):
            r0, r1 = (angle + away + slope * dt * (k + i) / 100 for i in (0, 1))
            fine = servo_step(fine[0], fine[1], r0, r1, dt / 100, servo, *short)
            assert abs(fine[2]) <= 200.0 * (1.0 + 1e-9)
        assert whole == pytest.approx(fine, rel=1e-8, abs=1e-9)
        linear = servo_linear(angle, rate, away, slope, omega, servo_response(omega, zeta, dt))
        quick += whole == pytest.approx(linear, rel=1e-9)
    assert 10 < quick < 50


@pytest.mark.parametrize("damping", [0.1, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("dt", [1e-3, 1e-2, 0.1])
def test_the_bound_holds_for_every_place_within_a_step(damping, dt):
    """Where `_within` is true, neither limit is reached at any of 2000 places; it is true for a good part of states."""
    draw, omega = np.random.default_rng(11), 2.0 * np.pi * 5.0
    servo, sure = (omega, damping, 8.0, 200.0), 0
    times = np.linspace(dt / 2000, dt, 2000)
    for _ in range(40):
        slope = draw.uniform(-8.0, 8.0)
        away, rate = 2.0 * damping / omega * slope + draw.uniform(-0.1, 0.1), slope + draw.uniform(-2.0, 2.0)
        if not _within(0.0, rate, away, slope, servo):
            continue
        sure += 1
        for t in times:
            angle, _, pushed = servo_linear(0.0, rate, away, slope, omega, servo_response(omega, damping, t))
            assert abs(pushed) <= 200.0
            assert abs(omega / (2.0 * damping) * (away + slope * t - angle)) <= 8.0
    assert 0 < sure < 40


@pytest.mark.parametrize("damping", [0.3, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("dt", [1e-3, 1e-2, 0.1])
def test_a_jump_ends_in_the_same_place_in_one_step_and_in_many(damping, dt):
    """From limit to limit within a step: a jump of the command that holds acceleration and rate at their limits."""
    omega, draw = 2.0 * np.pi * 5.0, np.random.default_rng(11)
    servo = (omega, damping, 8.0, 200.0)
    whole, short, parts = responses(omega, damping, dt), responses(omega, damping, dt / 500), 500
    for _ in range(20):
        angle, rate, start, end = draw.uniform(-1.2, 1.2), draw.uniform(-8.0, 8.0), *draw.uniform(-1.2, 1.2, 2)
        once = servo_step(angle, rate, start, end, dt, servo, *whole)
        fine = angle, rate, 0.0
        for k in range(parts):
            r0, r1 = (start + (end - start) * (k + i) / parts for i in (0, 1))
            fine = servo_step(fine[0], fine[1], r0, r1, dt / parts, servo, *short)
        assert once == pytest.approx(fine, rel=1e-9, abs=1e-9)
