"""The eel: every number of the reference page, as docs/eel.md states them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.mechanism.flow import fluid_wrench
from rtmms.mechanism.step import displace, uncurl
from rtmms.robots import eel

N = 36
NONE = np.zeros(N)


def test_mass_and_composite_inertia():
    model = eel.in_paper_frame(added_mass="khalil2007").model
    assert model.mass == pytest.approx(37.1242004, rel=1e-6)
    got = np.diag(dynamics.composite_inertia(model, model.state()))
    np.testing.assert_allclose(got, [37.12420, 90.05375, 64.73252, 0.1252948, 92.68280, 129.16386], rtol=1e-6)


def test_lengths_and_axes():
    """2.08 m from nose to tail along x0; every spherical joint is Rz(yaw) Ry(pitch) Rx(roll) about the yaw axis z0."""
    model = eel.in_paper_frame().model
    _, position = dynamics.body_poses(model, model.state())
    np.testing.assert_allclose(position[model.body("link12")], [2.08, 0, 0], atol=1e-12)
    for axis, expected in (("yaw1", [0, 0, 1]), ("pitch1", [0, 1, 0]), ("roll1", [1, 0, 0]), ("yaw7", [0, 0, 1])):
        state = model.state()
        state.qd[model.joint(axis)] = 1.0
        rotation, _ = dynamics.body_poses(model, state)
        k = model.body("link12")
        np.testing.assert_allclose(rotation[k] @ dynamics.body_twists(model, state)[k, 3:], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("velocity", "entry", "expected"), [((-1, 0, 0), 0, 0.0682068), ((0, 1, 0), 1, -2.078758)]
)  # fmt: skip
def test_straight_and_at_rest_in_shape(velocity, entry, expected):
    model = eel.in_paper_frame(added_mass="khalil2007").model
    state = model.state()
    state.twist[:3] = velocity
    out = dynamics.inverse_dynamics(model, state, NONE, wrench=fluid_wrench(model, state))
    assert out.base_acceleration[entry] == pytest.approx(expected, rel=1e-6)
    if entry == 1:
        assert out.torque[0] == pytest.approx(0.344498, rel=1e-5)


def test_planar_gait_at_one_instant():
    plant = eel.in_paper_frame(added_mass="khalil2007", dt=2.5)
    plant._steps = 1  # t = 2.5 s
    plant.place(plant.model.state())
    rate = plant.evaluate()
    assert rate[7 + N] == pytest.approx(-0.35856074, rel=1e-6)
    assert rate[11 + N] == pytest.approx(0.93905476, rel=1e-6)
    np.testing.assert_allclose(plant.torque[[0, 24]], [-0.75427871, 0.83800089], rtol=1e-6)


@pytest.mark.parametrize("law", ["kirchhoff", "khalil2007"])
def test_fast_path_of_inverse(law):
    model = eel.in_paper_frame(added_mass=law, current_x_m_s=0.3).model
    rng = np.random.default_rng(5)
    for _ in range(5):
        state, qdd = model.state(), rng.normal(size=N)
        state.q[:], state.qd[:], state.twist[:] = 0.3 * rng.normal(size=N), rng.normal(size=N), rng.normal(size=6)
        wrench = fluid_wrench(model, state)
        inverse = dynamics.inverse_dynamics(model, state, qdd, wrench=wrench)
        direct = dynamics.forward_dynamics(model, state, inverse.torque, wrench=wrench)
        np.testing.assert_allclose(direct.qdd, qdd, atol=1e-8)
        np.testing.assert_allclose(direct.base_acceleration, inverse.base_acceleration, atol=1e-8)


def test_thirty_seconds_of_the_planar_gait():
    plant = eel.in_paper_frame(preset="paper", dt=2e-3)
    path, torque = [], []
    for _ in range(15000):
        plant.step(NONE)
        path.append(plant.vector[:3].copy())
        plant.evaluate()
        torque.append(plant.torque.copy())
    path, torque = np.array(path), np.array(torque)
    last = path[13999:]
    assert -(last[-1, 0] - last[0, 0]) / 2.0 == pytest.approx(0.4571, abs=5e-4)
    assert (np.ptp(last[:, 1])) / 2.0 == pytest.approx(0.0517, abs=5e-4)
    assert np.max(np.abs(torque[:, 24])) == pytest.approx(3.660, abs=5e-3)
    # what the paper's own limits of 4 N m and 0.7 N m do not bear out
    assert np.max(np.abs(torque[:, 15])) == pytest.approx(5.2, abs=0.1)
    assert np.max(np.abs(path[:, 2])) < 1e-9


def test_looping_is_a_circle():
    plant = eel.in_paper_frame(preset="paper", gait="loop", dt=4e-3)
    path = []
    for _ in range(30000):
        plant.step(NONE)
        path.append(plant.vector[:3].copy())
    path = np.array(path)[15000:]
    x, z = path[:, 0], path[:, 2]
    fit = np.linalg.lstsq(np.column_stack([x, z, np.ones_like(x)]), x**2 + z**2, rcond=None)[0]
    cx, cz = fit[0] / 2, fit[1] / 2
    diameter = 2.0 * math.sqrt(fit[2] + cx**2 + cz**2)
    turn = np.unwrap(np.arctan2(z - cz, x - cx))
    assert diameter == pytest.approx(2.76, abs=0.03)
    assert 60.0 / abs(turn[-1] - turn[0]) * 2 * math.pi == pytest.approx(53.0, abs=1.0)


def _conserved(dt, law="kirchhoff"):
    """Relative errors of momentum and energy after 0.25 s, without drag, joints free and moving."""
    free = {f"c{k}": 0.0 for k in range(1, 5)}
    plant = eel.in_paper_frame(drive="torque", gait="none", kp_n_m=0.0, kd_n_m_s=0.0, added_mass=law, dt=dt, **free)
    rng = np.random.default_rng(3)
    state = plant.model.state()
    state.q[:], state.qd[:], state.twist[:] = (
        0.2 * rng.normal(size=N),
        0.3 * rng.normal(size=N),
        0.3 * rng.normal(size=6),
    )
    plant.place(state)
    model = plant.model
    before, e0 = dynamics.momentum(model, state), dynamics.energy(model, state).total
    for _ in range(round(0.25 / dt)):
        plant.step(NONE)
    after, e1 = dynamics.momentum(model, plant.state), dynamics.energy(model, plant.state).total
    return np.max(np.abs(after - before)) / np.max(np.abs(before)), abs(e1 - e0) / e0


def test_kirchhoff_without_drag_conserves_momentum_and_energy():
    coarse, fine = np.array(_conserved(1e-3)), np.array(_conserved(5e-4))
    assert np.all(fine < 1e-8)
    np.testing.assert_allclose(coarse / fine, 16.0, atol=1.0)


def test_the_papers_added_mass_does_not_conserve_momentum():
    assert _conserved(1e-3, "khalil2007")[0] > 1e-3


def _paired(kp, kd, seconds, nudge=0.0, dt=2e-3):
    """The torques of the motion-driven eel, stage by stage, on the torque-driven one; the largest joint error."""
    lead = eel.in_paper_frame(preset="paper", dt=dt)
    copy = eel.in_paper_frame(preset="paper", drive="torque", kp_n_m=kp, kd_n_m_s=kd, dt=dt)
    copy.place(lead.state)
    copy.vector[8] += nudge  # pitch1
    k = np.zeros((2, 4, 12 + 2 * N))
    y = np.zeros((2, 13 + 2 * N))
    worst = 0.0
    for step in range(round(seconds / dt)):
        for plant in (lead, copy):
            plant._steps = step
        start = (lead.vector.copy(), copy.vector.copy())
        for stage, c in enumerate((0.0, 0.5, 0.5, 1.0)):
            for who, plant in enumerate((lead, copy)):
                y[who] = start[who]
                if stage:
                    displace(start[who], k[who, stage - 1], c * dt, y[who])
                plant.vector[:] = y[who]
                if who:
                    plant.system.hold.torque[:] = lead.torque
                plant._steps = step + c
                k[who, stage] = plant.evaluate()
                if stage:
                    uncurl(k[who, stage], k[who, stage - 1], c * dt)
        for who, plant in enumerate((lead, copy)):
            total = (k[who, 0] + 2 * (k[who, 1] + k[who, 2]) + k[who, 3]) / 6
            displace(start[who], total, dt, plant.vector)
            plant.vector[3:7] /= np.linalg.norm(plant.vector[3:7])
            plant._steps = step + 1
        lead.place(lead.state)
        worst = max(worst, np.max(np.abs(copy.vector[7 : 7 + N] - lead.vector[7 : 7 + N])))
    return worst


def test_torques_alone_are_unstable_and_a_servo_holds_them():
    assert _paired(0.0, 0.0, 3.0, nudge=1e-9) > 1e-6
    assert _paired(20.0, 2.0, 30.0, nudge=0.0) < 2e-9


def test_torque_drive_follows_the_gait_and_swims():
    plant = eel.in_paper_frame(drive="torque", preset="paper")
    for _ in range(8000):
        plant.step(NONE)
    assert plant.vector[0] < -0.5


def test_commands_are_added_to_the_gait():
    """A step of 0.2 rad on yaw3: smooth at first, all of it in the end; with its own rate and acceleration."""
    plant = eel.in_paper_frame(gait="none")
    command = NONE.copy()
    command[plant.model.joint("yaw3")] = 0.2
    plant.step(command)
    k = 7 + plant.model.joint("yaw3")
    assert 0.0 < plant.vector[k] < 1e-4
    for _ in range(1500):
        plant.step(command)
    assert plant.vector[k] == pytest.approx(0.2, abs=1e-9)


def test_a_servo_takes_angles_too():
    """drive=torque, command=angle: the servo's target; it gets there but for the sag."""
    plant = eel.in_paper_frame(gait="none", drive="torque", command="angle", kp_n_m=200.0, kd_n_m_s=5.0)
    assert plant.actuators[0].name == "yaw1.angle"
    command = NONE.copy()
    command[plant.model.joint("yaw3")] = 0.2
    for _ in range(3000):
        plant.step(command)
    assert plant.vector[7 + plant.model.joint("yaw3")] == pytest.approx(0.2, abs=0.01)


def test_mirror_gait_mirrors_the_path():
    a, b = (
        eel.in_paper_frame(yaw_offset_rad=0.02, dt=2e-3),
        eel.in_paper_frame(yaw_offset_rad=-0.02, amplitude_rad=0.06, dt=2e-3),
    )
    b.system.law.motion[0::3, 1:] *= -1.0
    for _ in range(2500):
        a.step(NONE)
        b.step(NONE)
    np.testing.assert_allclose(a.vector[:3], b.vector[:3] * [1, -1, 1], atol=1e-10)
    assert abs(a.vector[1]) > 0.05


def test_current_carries_the_eel():
    """Galilean invariance: in a uniform current everything is as in still water, seen from a moving frame."""
    u = np.array([0.2, -0.3, 0.1])
    for law in ("kirchhoff", "khalil2007"):
        still = eel.in_paper_frame(added_mass=law, dt=2e-3)
        drift = eel.in_paper_frame(added_mass=law, dt=2e-3, current_x_m_s=u[0], current_y_m_s=u[1], current_z_m_s=u[2])
        state = drift.model.state()
        state.twist[:3] = u
        drift.place(state)
        for _ in range(1000):
            still.step(NONE)
            drift.step(NONE)
        np.testing.assert_allclose(drift.vector[:3] - 2.0 * u, still.vector[:3], atol=1e-9)
        np.testing.assert_allclose(drift.observe()["joint_torque"], still.observe()["joint_torque"], atol=1e-8)


def test_as_a_plant():
    plant = rtmms.load("eel", dt=1e-3) if "eel" in rtmms.plant.loading.robots() else eel.load(dt=1e-3)
    assert isinstance(plant, rtmms.Plant)
    assert [c.name for c in plant.actuators][:3] == ["yaw1.angle", "pitch1.angle", "roll1.angle"]
    command = np.linspace(-0.1, 0.1, N)
    for _ in range(20):
        plant.step(command)
    blob = plant.snapshot()
    outputs = plant.observe()
    assert list(outputs) == [c.name for c in plant.outputs]
    for channel in plant.outputs:
        assert outputs[channel.name].shape == channel.shape
    for _ in range(20):
        plant.step(command)
    after = plant.snapshot()
    plant.restore(blob)
    np.testing.assert_equal(plant.observe(), outputs)
    for _ in range(20):
        plant.step(command)
    assert plant.snapshot() == after
    plant.reset()
    fresh = plant.snapshot()
    plant.step(command)
    plant.reset(seed=3)
    assert plant.snapshot() == fresh
    with pytest.raises(rtmms.ModelError, match="a snapshot of the present model"):
        eel.load(dt=1e-3, c1=0.02).restore(eel.load(dt=1e-3, density_kg_m3=900.0).snapshot())
    with pytest.raises(ValueError, match=r"command must have shape \(36,\), got \(3,\)"):
        plant.step(np.zeros(3))


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"gait": "plannar"}, "gait must be one of planar, loop, none, got 'plannar'; did you mean 'planar'"),
        ({"amplitud": 1.0}, "unknown eel parameter 'amplitud'; did you mean amplitude_rad"),
        ({"density_kg_m3": -1.0}, "density_kg_m3 must be > 0 kg/m3, got -1"),
        ({"joints": 2.5}, "joints must be a whole number"),
        ({"period_s": math.nan}, "period_s must be finite"),
        ({"period_s": "long"}, "period_s must be a number in s, got 'long'"),
        ({"c1": 3e4}, "c1 must be <= 100, got 30000"),
        ({"yaw_offset_rad": -9.0}, r"yaw_offset_rad must be <= 3.14159 rad in size, got -9"),
        ({"tail_length_m": 0.2}, "tail_length_m below link_length_m = 0.14 m, got 0.09 m and 0.2 m"),
        ({"dt": 0.0}, "dt must be > 0 s"),
        ({"dt": "fast"}, "dt must be a number, got 'fast'"),
        ({"dt": math.inf}, "dt must be finite"),
        ({"joints": True}, "joints must be a number, got True"),
        ({"preset": "papers"}, "unknown eel preset 'papers'; did you mean paper"),
        ({"command": "torque"}, "command=torque: expected drive=torque"),
        (
            {"integrator": "rk5"},
            "integrator must be one of rk4, implicit1, implicit2, abam, got 'rk5'",
        ),
    ],
)
def test_refused(arguments, parts):
    with pytest.raises(rtmms.ModelError, match=parts):
        eel.load(**arguments)


def test_an_overdriven_eel_reports_what_ran_away():
    plant = eel.load(drive="torque", integrator="rk4", dt=0.02)

    def swim():
        for _ in range(4000):
            plant.step(plant.neutral)

    with pytest.raises(rtmms.DivergedError, match=r"velocity ran away.* of 0\.02 s.*smaller step \(dt"):
        swim()
