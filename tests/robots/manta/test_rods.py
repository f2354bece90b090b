"""Rods: held commands never put a jump into the acceleration."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.base.errors import DivergedError
from rtmms.robots.manta import load
from rtmms.robots.manta.model import difference_limits
from rtmms.robots.manta.parameters import MantaParameters
from rtmms.robots.manta.rods import (
    IDEAL,
    KNEE,
    RESPONSES,
    ROD_SIZE,
    SERVO,
    SUPPORT_SIZE,
    advance_rods,
    limit_commands,
    servo_responses,
    slew,
    stop_rods,
    support_motion,
)

DT = 1e-3
PARAMETERS = np.array([2.0 * np.pi * 5.0, 0.7, -1.2, 1.2, 8.0, 200.0])


def advance(kind, servo, dt, command, rods, halves):
    """One rod's step, its middle kept behind it."""
    responses = np.zeros(RESPONSES)
    samples = servo_responses(servo[0], servo[1], 0.5 * dt if halves else dt, responses)
    advance_rods(kind, servo, responses, samples, dt, np.array([command]), rods, 0, ROD_SIZE, halves)


WIDE = np.array([*PARAMETERS[:4], 1e9, 1e12])
"""Without limits of rate and acceleration: an ideal motor then does exactly what it is commanded."""


def drive(kind, commands, dt=DT, halves=True):
    """Angle, rate and acceleration (k, 3) of one rod at the end of each step."""
    rods = np.zeros(ROD_SIZE + 3)
    rows = []
    for u in commands:
        advance(kind, WIDE if kind == IDEAL else PARAMETERS, dt, u, rods, halves)
        rows.append(rods[:3].copy())
    return np.array(rows)


def test_servo_is_the_second_order_it_states():
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
            advance(SERVO, wide, dt, 0.4, rods, halves)
        return rods

    fine, whole, twice = after(1e-3, 100), after(0.1, 1), after(0.2, 1)
    assert whole[:3] == pytest.approx(fine[:3], rel=1e-12, abs=1e-13)
    if halves:
        assert twice[ROD_SIZE:] == pytest.approx(fine[:3], rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("damping", [0.05, 0.7, 1.0, 46.0, 1e4])
@pytest.mark.parametrize("dt", [1e-3, 1e-2, 0.5])
def test_a_held_command_settles_within_the_limits(damping, dt):
    """To its command, never faster than the limits let it: what RK4 could not do beyond 2 zeta omega dt = 2.8."""
    servo = np.array([PARAMETERS[0], damping, -1.2, 1.2, 8.0, 200.0])
    slow = PARAMETERS[0] / (damping + np.sqrt(max(damping**2 - 1.0, 0.0)))
    steps = min(int(8.0 / (min(slow, damping * PARAMETERS[0]) * dt)) + 50, 20_000)
    rods, peak = np.zeros(ROD_SIZE + 3), np.zeros(3)
    for _ in range(steps):
        advance(SERVO, servo, dt, 1.0, rods, True)
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
            advance(SERVO, PARAMETERS, dt, 1.0, rods, False)
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
            advance(kind, PARAMETERS, DT, u, rods, True)
            start = 2.0 * rods[ROD_SIZE + 2] - rods[2]  # linear in time
        else:
            trial = rods.copy()
            trial[3:5] = rods[3:5]
            step = trial.copy()
            reference = rods[3] + (u - rods[3]) * 1e-6
            advance(kind, PARAMETERS, DT * 1e-6, reference, step, False)
            start = step[2]
            advance(kind, PARAMETERS, DT, u, rods, True)
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
        advance(IDEAL, WIDE, DT, u, rods, True)
        angle, rate, accel = rods[:3]
        jerk = (accel - before) / DT
        back = [
            angle - h * (rate - h * (accel / 2.0 - h * jerk / 6.0)),
            rate - h * (accel - h * jerk / 2.0),
            accel - h * jerk,
        ]
        assert rods[ROD_SIZE:] == pytest.approx(np.array(back), rel=1e-12, abs=1e-15)


# --- limits ---------------------------------------------------------------------------------------------------------


def limited(*command, difference=1.6):
    out = np.zeros(4)
    changed = limit_commands(-1.2, 1.2, difference, np.array(command), out, 0)
    return out, changed


def test_commands_within_the_limits_are_obeyed_as_they_are():
    command = np.array([0.5, -0.5, -0.68, 0.67])
    assert np.abs(command[::2] - command[1::2]).max() < KNEE * 1.6
    out, changed = limited(*command)
    assert not changed
    assert out.tobytes() == command.tobytes()


def test_the_difference_of_the_rods_saturates_smoothly():
    """The mean is kept, the difference rises towards its limit, with one slope on both sides of the knee."""
    differences = np.linspace(-2.4, 2.4, 4801)
    result = np.array([limited(d / 2, -d / 2, -d / 2, d / 2)[0] for d in differences])
    saturated = result[:, 0] - result[:, 1]
    assert result[:, 0] + result[:, 1] == pytest.approx(np.zeros(4801), abs=1e-15)
    assert result[:, 2:] == pytest.approx(-result[:, :2])
    assert np.abs(saturated).max() < 1.6
    slopes = np.diff(saturated) / np.diff(differences)
    assert slopes.min() > 0.0
    assert np.abs(np.diff(slopes)).max() < 0.01
    assert [limited(d / 2, -d / 2, 0.0, 0.0)[1] for d in (1.3, 1.4)] == [False, True]


def test_the_limit_keeps_clear_of_where_the_support_is_singular():
    """The stop stands before the singular difference, which depends on the difference alone."""
    p = MantaParameters()
    limit, stop = difference_limits(p)
    out, still = np.zeros(SUPPORT_SIZE), (0.0, 0.0)
    for mean in (-0.6, 0.0, 0.5):
        for d, sound in ((limit, True), (stop, True), (2.0 * stop - limit + 1e-6, False)):
            angles = (mean + 0.5 * d, mean - 0.5 * d)
            geometry = (p.support_length_m, p.front_rod_m, p.back_rod_m)
            assert support_motion(*geometry, 0, angles, still, still, out, 0) == sound


def test_the_stop_takes_what_leads_beyond_it_and_no_more():
    rods = np.array([[0.9, 3.0, 10.0], [-0.9, -1.0, 20.0], [-0.9, 1.0, -5.0], [0.9, 0.5, 5.0]])
    flat = rods.ravel().copy()
    stop_rods(1.7, flat, 0, 3)
    result = flat.reshape(4, 3)
    assert result[0, 0] - result[1, 0] == pytest.approx(1.7)
    assert result[::2, 0] + result[1::2, 0] == pytest.approx(rods[::2, 0] + rods[1::2, 0])
    assert result[0, 1] == result[1, 1] == 1.0  # apart: the mean of both
    assert result[:2, 2].tolist() == [10.0, 20.0]  # towards each other already
    assert result[2:, 1].tolist() == [1.0, 0.5]


def test_an_ideal_motor_is_slowed_to_its_limits():
    """A jump is travelled within the limits, and ends there; what is within the limits is obeyed to the bit."""
    last = before = 0.0
    path = []
    for _ in range(1000):
        last, before = slew(1.0, last, before, DT, 8.0, 200.0), last
        path.append(last)
    rate = np.diff([0.0, *path]) / DT
    assert np.abs(rate).max() <= 8.0 + 1e-9
    assert np.abs(np.diff(rate)).max() / DT <= 200.0 + 1e-6
    assert np.abs(np.array(path[400:]) - 1.0).max() < 2e-3
    assert slew(0.3, 0.299, 0.2981, DT, 8.0, 200.0) == 0.3


@pytest.mark.parametrize("choices", [{}, {"coupling": "monolithic"}, {"actuation": "ideal"}, {"servo_damping": 0.1}])
def test_no_command_within_the_limits_ends_a_run(choices):
    """What destroyed it at 0.146 s, and commands drawn anew every 0.2 s, for ten seconds."""
    plant = load(dt=5e-3, **choices)
    draw = np.random.default_rng(3)
    for episode in range(3):
        plant.reset(seed=episode)
        for k in range(2000):
            if k % 40 == 0:
                command = draw.uniform(-1.2, 1.2, 4) if episode else np.array([1.0, -1.0, 1.0, -1.0])
            plant.step(command)
        assert np.isfinite(plant.observe()["position"]).all()


@pytest.mark.full
def test_a_thousand_episodes_end_well():
    plant = load(dt=1e-2)
    failed = []
    for episode in range(1000):
        draw = np.random.default_rng(episode)
        plant.reset(seed=0)
        try:
            for k in range(1000):
                if k % 20 == 0:
                    command = draw.uniform(-1.2, 1.2, 4)
                plant.step(command)
        except DivergedError as error:
            failed.append((episode, str(error)))
    assert failed == []
