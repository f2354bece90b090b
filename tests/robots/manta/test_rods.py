"""Rods: held commands never put a jump into the acceleration."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.robots.manta.kernels.rods import IDEAL, ROD_SIZE, SERVO, advance_rods

DT = 1e-3
PARAMETERS = np.array([2.0 * np.pi * 5.0, 0.7, -1.2, 1.2, 8.0, 200.0])


def drive(kind, commands, dt=DT, halves=True):
    """Angle, rate and acceleration (k, 3) of one rod at the end of each step."""
    rods = np.zeros(ROD_SIZE + 3)
    rows = []
    for u in commands:
        advance_rods(kind, PARAMETERS, dt, np.array([u]), rods, 0, ROD_SIZE, halves)
        rows.append(rods[:3].copy())
    return np.array(rows)


def test_servo_is_the_second_order_it_says():
    """A small step: 5 Hz, damping 0.7 means 4.6 % overshoot, 31.4 rad/s."""
    t = np.arange(1, 1001) * DT
    out = drive(SERVO, np.full(1000, 0.05))[:, 0] / 0.05
    w, z = PARAMETERS[0], 0.7
    wd = w * np.sqrt(1 - z * z)
    late = t - 0.5 * DT  # the reference takes one step to get there
    exact = 1.0 - np.exp(-z * w * late) * (np.cos(wd * late) + z * w / wd * np.sin(wd * late))
    assert out == pytest.approx(exact, abs=2e-4)


@pytest.mark.parametrize("halves", [False, True])
def test_a_held_command_is_followed_exactly_whatever_the_step(halves):
    """One command, held: in a hundred steps or in one, to the middle of a step too, the same motion."""
    wide = np.array([PARAMETERS[0], 0.7, -1.2, 1.2, 1e9, 1e9])

    def after(dt, steps):
        rods = np.zeros(ROD_SIZE + 3)
        rods[:5] = 0.1, 0.5, 0.0, 0.4, 0.4
        for _ in range(steps):
            advance_rods(SERVO, wide, dt, np.array([0.4]), rods, 0, ROD_SIZE, halves)
        return rods

    fine, whole, twice = after(1e-3, 100), after(0.1, 1), after(0.2, 1)
    assert whole[:3] == pytest.approx(fine[:3], rel=1e-12, abs=1e-13)
    if halves:
        assert twice[ROD_SIZE:] == pytest.approx(fine[:3], rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("damping", [0.05, 0.7, 1.0, 46.0, 1e4])
@pytest.mark.parametrize("dt", [1e-3, 1e-2, 0.5])
def test_a_held_command_settles_within_the_limits(damping, dt):
    """To where it is told, never faster than the limits let it: what RK4 could not do beyond 2 zeta omega dt = 2.8."""
    servo = np.array([PARAMETERS[0], damping, -1.2, 1.2, 8.0, 200.0])
    slow = PARAMETERS[0] / (damping + np.sqrt(max(damping**2 - 1.0, 0.0)))
    steps = min(int(8.0 / (min(slow, damping * PARAMETERS[0]) * dt)) + 50, 20_000)
    rods, peak = np.zeros(ROD_SIZE + 3), np.zeros(3)
    for _ in range(steps):
        advance_rods(SERVO, servo, dt, np.array([1.0]), rods, 0, ROD_SIZE, True)
        peak = np.maximum(peak, np.abs(rods[:3]))
    assert peak[1] <= 8.0 + 1e-9
    assert peak[2] <= 200.0 * (1.0 + 1e-12)
    assert peak[0] <= (1.001 if damping >= 1.0 else 2.5)
    expected = 1.0 - np.exp(-slow * steps * dt) if damping > 1.0 else 1.0
    assert rods[0] == pytest.approx(expected, abs=0.05)


def test_limits_within_one_long_step_are_those_of_many_short_ones():
    """From rest over both limits and back into the linear range: a step of 0.4 s against 400 of 1 ms."""

    def after(dt, steps):
        rods = np.zeros(ROD_SIZE + 3)
        rods[3:5] = 1.0
        for _ in range(steps):
            advance_rods(SERVO, PARAMETERS, dt, np.array([1.0]), rods, 0, ROD_SIZE, False)
        return rods[:3]

    assert after(0.16, 1) == pytest.approx(after(1e-3, 160), rel=1e-9, abs=1e-10)
    assert after(0.4, 1) == pytest.approx(after(1e-3, 400), rel=1e-9, abs=1e-10)


def test_servo_keeps_its_limits_and_never_jumps():
    commands = np.where(np.arange(4000) // 500 % 2 == 0, 3.0, -3.0)  # beyond the limits, back and forth
    out = drive(SERVO, commands)
    assert np.abs(out[:, 1]).max() <= 8.0
    assert np.abs(out[:, 2]).max() <= 200.0 * (1 + 1e-12)
    assert np.abs(out[:, 0]).max() < 1.2 * 1.05
    assert out[:, 0].max() > 1.15


@pytest.mark.parametrize("kind", [SERVO, IDEAL])
def test_acceleration_is_continuous_at_the_steps(kind):
    """The limit of the acceleration at the end of one step is that at the start of the next, whatever the command."""
    rng = np.random.default_rng(3)
    commands = np.cumsum(rng.normal(scale=1e-3, size=50))
    ends = drive(kind, commands)
    # start of step k from its middle by the step's own cubic (ideal) or a tiny step (servo)
    rods = np.zeros(ROD_SIZE + 3)
    for u in commands:
        before = rods[:3].copy()
        if kind == IDEAL:
            advance_rods(kind, PARAMETERS, DT, np.array([u]), rods, 0, ROD_SIZE, True)
            start = 2.0 * rods[ROD_SIZE + 2] - rods[2]  # linear in time
        else:
            trial = rods.copy()
            trial[3:5] = rods[3:5]
            step = trial.copy()
            reference = rods[3] + (u - rods[3]) * 1e-6
            advance_rods(kind, PARAMETERS, DT * 1e-6, np.array([reference]), step, 0, ROD_SIZE, False)
            start = step[2]
            advance_rods(kind, PARAMETERS, DT, np.array([u]), rods, 0, ROD_SIZE, True)
        assert start == pytest.approx(before[2], abs=1e-3 * (1 + np.abs(ends[:, 2]).max()))


def test_ideal_is_a_cubic_spline_two_steps_late():
    t = np.arange(400) * DT
    w = 2.0 * np.pi * 2.0
    out = drive(IDEAL, 0.5 * np.sin(w * t))[50:]
    late = t[50:] - DT  # value at t_{k+1} belongs to the command of step k - 1
    assert out[:, 0] == pytest.approx(0.5 * np.sin(w * late), abs=0.5 * (w * DT) ** 2 / 6 * 1.01)
    assert out[:, 1] == pytest.approx(0.5 * w * np.cos(w * late), abs=0.5 * w * (w * DT) ** 2 / 6 * 1.01)
    assert out[:, 2] == pytest.approx(-0.5 * w**2 * np.sin(w * late), abs=0.5 * w**2 * (w * DT) ** 2 / 12 * 1.01)


def test_ideal_positions_integrate_its_own_accelerations():
    rng = np.random.default_rng(5)
    out = drive(IDEAL, rng.uniform(-0.5, 0.5, 30))
    a = np.concatenate([[0.0], out[:, 2]])
    v = np.concatenate([[0.0], np.cumsum(0.5 * DT * (a[1:] + a[:-1]))])
    q = np.concatenate([[0.0], np.cumsum(DT * v[:-1] + DT**2 * (a[:-1] / 3.0 + a[1:] / 6.0))])
    assert out[:, 1] == pytest.approx(v[1:], abs=1e-9)
    assert out[:, 0] == pytest.approx(q[1:], abs=1e-12)


def test_the_middle_of_an_ideal_step_lies_on_the_cubic_through_both_ends():
    """Angle, rate and acceleration there, from the end of the step back."""
    rods, h = np.zeros(ROD_SIZE + 3), 0.5 * DT
    for u in (0.1, 0.4, -0.2, 0.3, 0.25):
        before = rods[2]
        advance_rods(IDEAL, PARAMETERS, DT, np.array([u]), rods, 0, ROD_SIZE, True)
        angle, rate, accel = rods[:3]
        jerk = (accel - before) / DT
        back = [
            angle - h * (rate - h * (accel / 2.0 - h * jerk / 6.0)),
            rate - h * (accel - h * jerk / 2.0),
            accel - h * jerk,
        ]
        assert rods[ROD_SIZE:] == pytest.approx(np.array(back), rel=1e-12, abs=1e-15)
