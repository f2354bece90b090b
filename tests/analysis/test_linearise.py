"""A and B against central differences of the equations of motion, and against the motion itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import rtmms
from rtmms.analysis.linearise import linearise
from rtmms.analysis.trim import TreeChart, as_words, trim, trimmed
from rtmms.base.spatial import ad
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.plant import TreePlant
from rtmms.robots import eel, moth


def swimming(**values):
    plant = eel.load(joints=3, dt=2e-3, **values)
    for _ in range(600):
        plant.step(plant.neutral)
    return plant


def in_a_field():
    """Water that moves differently at every element, given by a function that knows no complex numbers."""
    like = swimming(drive="torque")

    def field(x, t):
        return np.array([0.3 * np.sin(float(x[1]) + t), 0.2 * np.cos(2.0 * float(x[0])), 0.1 * float(x[2])])

    plant = TreePlant(like.model, like.dt, like.law, like.drives, flow=Flow(field=field), nodes=like.nodes)
    plant.restore(like.snapshot())
    return plant


@pytest.mark.parametrize(
    "make",
    [
        lambda: swimming(drive="torque", current_x_m_s=0.2),
        lambda: swimming(added_mass="khalil2007"),
        lambda: moth.load(),
        in_a_field,
    ],
    ids=["eel-torque", "eel-motion", "moth", "eel-field"],
)
def test_against_central_differences(make):
    plant = make()
    free = np.flatnonzero(~plant.model.imposed)
    linear, n, m = linearise(plant), plant.model.n, len(free)
    vector, blob = plant.vector.copy(), plant.snapshot()
    chart, h = TreeChart(vector, free), 1e-6
    r = plant.state.rotation
    for k in range(12 + 2 * m):
        ends = []
        for sign in (1.0, -1.0):
            c = np.zeros(12 + 2 * m)
            c[k] = sign * h
            c[:3] = r @ c[:3]  # the chart's position is in the world, the error's in the body
            plant.vector[:] = chart.vector(c)
            rate = plant.evaluate()
            ends.append(np.concatenate([rate[6 + n : 12 + n], rate[12 + n + free]]))
        got = np.concatenate([linear.a[6:12, k], linear.a[12 + m : 12 + 2 * m, k]])
        want = (ends[0] - ends[1]) / (2 * h)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8 * np.max(np.abs(linear.a)))
    plant.restore(blob)
    assert np.any(linear.b != 0.0)
    assert len(linear.states) == linear.a.shape[0]
    assert linear.inputs == tuple(c.name for c in plant.actuators)
    for k in range(len(plant.drives)):
        ends = []
        for sign in (1.0, -1.0):
            plant.restore(blob)
            command = plant.neutral.copy()
            command[k] += sign * h
            from rtmms.mechanism.joint_laws import hold_commands

            hold = plant.system.hold
            fastest = np.full(plant.model.n, np.inf)
            hold_commands(plant.system.command, command, hold.torque, hold.target, fastest, hold.goal)
            rate = plant.evaluate()
            ends.append(np.concatenate([rate[6 + n : 12 + n], rate[12 + n + free]]))
        got = np.concatenate([linear.b[6:12, k], linear.b[12 + m : 12 + 2 * m, k]])
        np.testing.assert_allclose(got, (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-7 * np.max(np.abs(linear.b)))


def test_it_predicts_the_motion():
    """A small error after a short time, beside exp(A t): to second order in time, along a moving reference."""
    plant = swimming(drive="torque", gait="none")
    plant.place(plant.model.state())
    plant.vector[7 + plant.model.n] = 0.3  # coasting straight: the linear model is constant
    linear, blob = linearise(plant), plant.snapshot()
    error = 1e-6 * np.random.default_rng(3).normal(size=linear.a.shape[0])
    error[:6] = 0.0
    ends = []
    for scale in (0.0, 1.0):
        plant.restore(blob)
        plant.vector[7 + plant.model.n : 13 + plant.model.n] += scale * error[6:12]
        plant.vector[7 : 7 + plant.model.n] += scale * error[12 : 12 + plant.model.n]
        plant.vector[13 + plant.model.n :] += scale * error[12 + plant.model.n :]
        for _ in range(5):
            plant.step(plant.neutral)
        ends.append(plant.vector.copy())
    got = np.concatenate(
        [(ends[1] - ends[0])[7 + plant.model.n : 13 + plant.model.n], (ends[1] - ends[0])[7 : 7 + plant.model.n]]
    )
    want = expm(linear.a * 5 * plant.dt) @ error
    want = np.concatenate([want[6:12], want[12 : 12 + plant.model.n]])
    np.testing.assert_allclose(got, want, atol=2e-2 * np.max(np.abs(want)))


@pytest.mark.full
def test_mean_over_a_period_and_the_state_stays():
    plant = swimming(period_s=0.2)
    blob = plant.snapshot()
    mean = linearise(plant, over_period=True)
    assert plant.snapshot() == blob
    total, twist = 0.0, np.zeros(6)
    for _ in range(100):
        total = total + linearise(plant).a
        twist += plant.vector[7 + plant.model.n : 13 + plant.model.n]
        plant.step(plant.neutral)
    np.testing.assert_allclose(mean.a, total / 100, atol=1e-9 * np.max(np.abs(mean.a)))
    np.testing.assert_allclose(mean.a[:6, :6], -ad(twist / 100), atol=1e-12)


def test_trim_of_the_eel_is_its_final_speed():
    """The paper's gait settles to 0.537 m/s, 15 % above its speed after 30 s."""
    plant = eel.load(preset="paper", dt=4e-3)
    result = trim(plant, ["vx", "vy", "wz"], settle=3)
    assert result.travel[0] / 2.0 == pytest.approx(0.537, abs=2e-3)
    assert abs(result.multipliers[3]) <= 1.0 + 1e-6


def test_each_robot_knows_what_to_close():
    """The looping eel comes back to its twist; a moth that starts on its hovering orbit is already there."""
    looping = as_words(p := eel.load(preset="paper", gait="loop", dt=4e-3), trimmed(p))
    assert looping["mean_speed_m_s"] * 53.0 == pytest.approx(np.pi * 2.76, rel=0.03)
    hover = as_words(p := moth.load(), trimmed(p))
    assert hover["amplitude_factor"] == pytest.approx(1.0, abs=1e-9)
    assert hover["mean_speed_m_s"] < 1e-6
    assert hover["stable"]


def test_trim_refuses_what_has_no_period():
    with pytest.raises(rtmms.ModelError, match="expected a robot with a periodic gait"):
        trim(eel.load(gait="none"))
    with pytest.raises(rtmms.ModelError, match=r"whole number of steps .* dt = 0.002"):
        trim(eel.load(dt=1.9991e-3))
    with pytest.raises(rtmms.ModelError, match="unknown coordinate 'up'"):
        trim(eel.load(dt=0.02), ["up"])


def test_actuators_on_bodies_and_their_lags() -> None:
    """The quadrotor at hover, and a thruster on a curve: against what is known."""
    import rtmms
    from rtmms import model as m

    plant = rtmms.load("quadrotor")
    p, names = plant.parameters, [channel.name for channel in plant.actuators]  # type: ignore[attr-defined]
    command = np.full(4, p.hover_rad_s)
    for _ in range(400):
        plant.step(command)
    result = linearise(plant)
    assert result.states[-4:] == tuple(f"{name}.lag" for name in names)
    slope = 2.0 * p.thrust_n_s2 * p.hover_rad_s
    vz, wy, wz = (result.states.index(name) for name in ("vz", "wy", "wz"))
    np.testing.assert_allclose(result.a[vz, -4:], slope / p.mass_kg, rtol=1e-6)
    np.testing.assert_allclose(result.a[wy, -4:], np.array([-1, 0, 1, 0]) * p.arm_m * slope / p.iyy_kg_m2, rtol=1e-6)
    turn = 2.0 * p.drag_n_m_s2 * p.hover_rad_s / p.izz_kg_m2
    np.testing.assert_allclose(result.a[wz, -4:], np.array([1, -1, 1, -1]) * turn, rtol=1e-6)
    np.testing.assert_allclose(result.a[-4:, -4:], -np.eye(4) / p.motor_s)
    np.testing.assert_allclose(result.b[-4:], np.eye(4) / p.motor_s)
    ball = m.Body("ball", solids=[m.Ellipsoid(0.1, 0.1, 0.1, 1000.0)])
    jet = rtmms.model.Thruster("ball", curve=[(0.0, 0.0), (1.0, 2.0), (2.0, 7.0)])
    quick = rtmms.TreePlant(rtmms.Mechanism("ball", [ball], gravity=(0, 0, 0)), actuators=[jet])
    quick.step(np.array([1.5]))
    result = linearise(quick)
    assert result.b[result.states.index("vx"), 0] == pytest.approx(5.0 / quick.model.mass)


@pytest.mark.parametrize("robot", ["eel", "quadrotor"])
def test_b_of_a_multistep_method_is_that_of_a_command_that_lasts(robot):
    """A pulse of one step: at first up to 251 + 646 of 720 parts of B, and after the method's history A^6 B."""
    values = {"drive": "torque", "joints": 2} if robot == "eel" else {}
    plant = rtmms.load(robot, integrator="abam", **values)
    neutral = plant.neutral if robot == "eel" else np.full(4, 476.0)
    for _ in range(60):
        plant.step(neutral)
    linear, blob, n, by = rtmms.linearise(plant, neutral), plant.snapshot(), plant.model.n, 1e-3
    rows = [linear.states.index(name) for name in ("vx", "vy", "vz", "wx", "wy", "wz")]
    ends = []
    for sign in (1.0, -1.0):
        plant.restore(blob)
        pulse = neutral.copy()
        pulse[0] += sign * by
        twists = []
        for k in range(7):
            plant.step(neutral if k else pulse)
            twists.append(plant.vector[7 + n : 13 + n].copy())
        ends.append(np.array(twists))
    result = (ends[0] - ends[1]) / (2.0 * by)
    first, last = linear.b[rows, 0], (np.linalg.matrix_power(linear.a, 6) @ linear.b[:, 0])[rows]
    maximum = np.argmax(np.abs(last))
    assert 0.6 < result[0, maximum] / first[maximum] < 897.0 / 720.0
    np.testing.assert_allclose(result[6], last, atol=0.02 * np.abs(last).max())


def test_commands_that_a_run_would_clamp_are_reported():
    """Such as rpm for rad/s: the model would be of a motion that no run has."""
    plant = rtmms.load("quadrotor")
    with pytest.warns(rtmms.RtmmsWarning, match=r"front.speed: expected a command from 0 to 800 .*, got 4470"):
        linearise(plant, commands=np.full((1, 4), 4470.0))
