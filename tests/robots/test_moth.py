"""The moth: every number of the reference page, as docs/moth.md states them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rtmms
from rtmms import dynamics
from rtmms.analysis.trim import trim
from rtmms.mechanism.flow import fluid_wrench
from rtmms.mechanism.step import displace, uncurl
from rtmms.model.layout import C_DAMPING, S_TWIST, S_WRENCH
from rtmms.plant.monitor import Monitor
from rtmms.robots import moth
from rtmms.robots.moth_orbits import ORBITS

N = 16
STROKE = 0
LEFT = 8
NONE = np.zeros(4)
A = math.radians(41.3)
OMEGA = 50.0 * math.pi
PERIOD = 0.04


def run(plant, steps):
    for _ in range(steps):
        plant.step(NONE)


def rested(**values):
    return moth.in_paper_frame(**{"dt": 1e-4, **values})


def test_masses():
    model = rested().model
    masses = dict.fromkeys(("thorax", "right", "left"), 0.0)
    for body in moth.describe(moth.Moth()).bodies:
        for solid in body.solids:
            masses[body.name.split(".")[0]] += solid.mass_properties()[0]
    assert masses["thorax"] == pytest.approx(6.7791e-3, rel=1e-5)
    assert masses["right"] == masses["left"] == pytest.approx(0.26978e-3, rel=1e-5)
    assert model.mass == pytest.approx(7.3187e-3, rel=1e-5)
    thorax = moth.describe(moth.Moth()).bodies[0].solids[0].mass_properties()[2]
    np.testing.assert_allclose(np.diag(thorax), [1.160927e-6, 1.160927e-6, 0.195917e-6], rtol=1e-6)


@pytest.mark.parametrize("added", ["none", "flat", "paper"])
def test_at_rest_at_the_end_of_the_stroke(added):
    plant = rested(added_mass=added)
    rate = plant.evaluate()
    base, qdd = rate[6 + N : 12 + N], rate[12 + N :]
    scale = 1e-8 * A * OMEGA**2
    np.testing.assert_allclose(base, [0, 0, -9.81, 0, 0, 0], atol=scale)
    assert qdd[1] == pytest.approx(17785.545, rel=1e-7)
    np.testing.assert_allclose(qdd[2:8], 0.0, atol=scale)
    np.testing.assert_allclose(qdd[8:], -qdd[:8], atol=scale)
    np.testing.assert_allclose(plant.torque[[STROKE, LEFT]], 0.0, atol=scale)


def test_one_known_state():
    plant = rested(added_mass="none", dt=0.006)
    plant._steps = 1
    state = plant.model.state()
    state.q[1:8], state.qd[1:8] = (0.2, 0.4, 0.15, 0.25, 0.1, 0.1, 0.03), (-20, 50, -10, 30, -5, 12, -2)
    state.q[9:], state.qd[9:] = -state.q[1:8], -state.qd[1:8]
    state.twist[:] = 0, 0.2, -0.1, 3, 0, 0
    state.orientation[:] = math.cos(0.025), math.sin(0.025), 0, 0
    plant.place(state)
    base = plant.evaluate()[6 + N : 12 + N]
    np.testing.assert_allclose(base, [0, 53.16113, -1.9424399, 564.59284, 0, 0], rtol=1e-6, atol=1e-9)
    power = np.sum(fluid_wrench(plant.model, plant.state) * dynamics.body_twists(plant.model, plant.state))
    assert power == pytest.approx(-0.42880932, rel=1e-6)
    assert dynamics.energy(plant.model, plant.state).kinetic == pytest.approx(4.6565863e-3, rel=1e-6)


def energy_residual(dt, added="flat", periods=1):
    """Energy gained less work done over some periods from rest, relative to the peak kinetic energy; RK4 throughout."""
    plant = rested(added_mass=added, dt=dt)
    model = plant.model
    y, k, power = np.zeros(13 + 2 * N), np.zeros((4, 12 + 2 * N)), np.zeros(4)
    damping = model.constant[1:, C_DAMPING]
    work, peak, start = 0.0, 0.0, dynamics.energy(model, plant.state).total
    for step in range(round(periods * PERIOD / dt)):
        before = plant.vector.copy()
        for i, c in enumerate((0.0, 0.5, 0.5, 1.0)):
            if i:
                displace(before, k[i - 1], c * dt, y)
                plant.vector[:] = y
            plant._steps = step + c
            k[i] = plant.evaluate()
            s, qd = plant.system.work.s, plant.system.work.qd
            power[i] = plant.torque[[STROKE, LEFT]] @ qd[[STROKE, LEFT]] - damping @ qd**2
            power[i] += np.sum(s[:, S_WRENCH : S_WRENCH + 6] * s[:, S_TWIST : S_TWIST + 6])
            if i:
                uncurl(k[i], k[i - 1], c * dt)
        displace(before, (k[0] + 2 * (k[1] + k[2]) + k[3]) / 6, dt, plant.vector)
        plant._steps = step + 1
        plant.place(plant.state)
        work += dt * (power[0] + 2 * (power[1] + power[2]) + power[3]) / 6
        peak = max(peak, dynamics.energy(model, plant.state).kinetic) if step % 10 == 0 else peak
    return abs(dynamics.energy(model, plant.state).total - start - work) / peak


def test_energy_balance():
    fine = energy_residual(1e-4)
    assert fine < 2e-6
    assert fine / energy_residual(5e-5) == pytest.approx(16.0, abs=4.0)


def test_without_air_and_gravity_momentum_stays():
    plant = rested(air_density_kg_m3=0.0, added_mass="none", gravity_m_s2=0.0, dt=2.5e-5, step_s=2.5e-5)
    before = dynamics.momentum(plant.model, plant.state)
    scale = 0.0
    for _ in range(400):
        plant.step(NONE)
        scale = max(scale, np.max(np.abs(plant.state.qd)) * 1e-5)
    after = dynamics.momentum(plant.model, plant.state)
    assert scale > 1e-4
    np.testing.assert_allclose(after, before, atol=1e-9)


def test_without_air_the_centre_of_mass_falls_freely():
    plant = rested(air_density_kg_m3=0.0, added_mass="none", dt=2.5e-5, step_s=2.5e-5)
    start = dynamics.centre_of_mass(plant.model, plant.state)
    for _ in range(400):
        plant.step(NONE)
    expected = start + np.array([0, 0, -0.5 * 9.81 * plant.time**2])
    np.testing.assert_allclose(dynamics.centre_of_mass(plant.model, plant.state), expected, atol=1e-10)


def test_thorax_fixed():
    plant = rested(thorax="fixed")
    torque, power, lift = [], [], []
    for k in range(4800):
        if k >= 4400:
            outputs = plant.observe()
            torque.append(outputs["joint_torque"][STROKE])
            power.append(outputs["power"] / 2)
            lift.append(1.0 - outputs["base_wrench"][2] / (plant.model.mass * 9.81))
        plant.step(NONE)
    assert 1e3 * np.max(np.abs(torque)) == pytest.approx(14.812, abs=0.005)
    assert np.mean(power) == pytest.approx(0.70125, abs=2e-4)
    # the support pulls down by what the air lifts beyond the weight
    assert np.mean(lift) == pytest.approx(1.1669, abs=5e-4)


def one_period(plant, result):
    plant.reset()
    plant.system.law.motion[:, 1:] *= result.amplitude
    plant.vector[:] = result.vector
    rows = []
    for _ in range(400):
        plant.evaluate()
        v = plant.vector
        bend = v[7] + v[8] + v[10] + v[12] + v[14]
        pitch = 2 * math.atan2(v[4], v[3])
        rows.append(
            [bend, v[9] + v[11] + v[13], plant.torque[0], plant.torque[0] * plant.system.work.qd[0], v[1], v[2], pitch]
        )
        plant.step(plant.neutral)
    out = np.array(rows)
    out[:, 5] -= np.arange(400) / 400 * result.travel[2]
    return out


@pytest.mark.parametrize(
    ("arguments", "row"),
    [
        ({"added_mass": "none"}, (52.6, 70.9, 44.6, 12.80, 0.552, 151, 2.34, 0.23, 5.50)),
        pytest.param(
            {"added_mass": "flat"}, (55.1, 78.5, 48.2, 15.24, 0.710, 194, 2.75, 0.33, 6.28), marks=pytest.mark.full
        ),
        pytest.param(
            {"added_mass": "paper"}, (62.6, 98.4, 61.4, 22.31, 1.190, 325, 3.93, 0.63, 8.06), marks=pytest.mark.full
        ),
        ({"preset": "fit"}, (73.3, 67.5, 39.1, 12.05, 0.463, 126, 2.18, None, 7.24)),
    ],
)
def test_what_the_stated_model_gives(arguments, row):
    """Free thorax, A = 41.3 deg, on the periodic orbit of the model: the reference page's table."""
    plant = rested(**arguments)
    result = trim(rested(**{"dt": 1e-3, **arguments}))
    data = one_period(plant, result)
    half = np.ptp(data, axis=0) / 2
    lag = np.argmax(data[:, 0]) * 360 / 400
    got = (
        np.degrees(np.max(np.abs(data[:, 1]))), np.degrees(np.max(np.abs(data[:, 0]))), lag,
        1e3 * np.max(np.abs(data[:, 2])), np.mean(data[:, 3]), 2 * np.mean(data[:, 3]) / plant.model.mass,
        1e3 * half[4], 1e3 * half[5], np.degrees(half[6]),
    )  # fmt: skip
    for value, expected, tolerance in zip(got, row, (0.06, 0.06, 0.9, 0.006, 6e-4, 0.6, 6e-3, 6e-3, 6e-3), strict=True):
        if expected is not None:
            assert value == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("arguments", "key"), [({"added_mass": "none"}, "none"), ({}, "flat"), ({"preset": "fit"}, "fit")]
)
def test_hovers_from_its_orbit(arguments, key):
    plant = moth.load(**arguments)
    assert plant.law.motion[0, 1] == pytest.approx(A * ORBITS[key][0], rel=1e-14)
    start = plant.vector.copy()
    for _ in range(40):
        plant.step(NONE)
    np.testing.assert_allclose(plant.vector, start, rtol=1e-9, atol=1e-9)


def test_hover_of_other_parameters_is_found(capsys):
    plant = moth.load(chord_m=30e-3)
    assert "searching for the moth's hovering orbit" in capsys.readouterr().err
    start = plant.vector.copy()
    for _ in range(40):
        plant.step(NONE)
    np.testing.assert_allclose(plant.vector[:3], start[:3], atol=1e-6)


def test_mean_power_does_not_depend_on_where_a_stroke_is_sampled():
    """A run keeps a sample every 10 ms, four a stroke: 0.745 W a wing at the hovering amplitude, whichever four."""
    result = []
    for late in (0, 3):
        plant, time, trace = moth.load(), [], {}
        for k in range(400 + late):
            if k >= late and (k - late) % 10 == 0:
                outputs = plant.observe()
                time.append(plant.time)
                for name in plant.trace_outputs:
                    trace.setdefault(name, []).append(outputs[name])
            plant.step(NONE)
        result.append(plant.summarise(np.array(time), {name: np.array(rows) for name, rows in trace.items()}))
    for output in result:
        assert output["mean_power_w"] == pytest.approx(2.0 * 0.7448, rel=1e-3)
        assert abs(output["mean_climb_m_s"]) < 1e-9


@pytest.mark.full  # linearises a whole period
def test_multipliers_without_added_mass_are_slowly_unstable():
    result = trim(rested(added_mass="none", dt=1e-3))
    assert abs(result.multipliers[0]) == pytest.approx(1.03, abs=5e-3)
    result = trim(rested(dt=1e-3))
    assert abs(result.multipliers[0]) < 1.0 + 1e-6


def watched(plant, steps):
    """The monitor's verdict on a run of the plant that has ended."""
    monitor = Monitor(plant.step_error_estimator())
    for _ in range(steps):
        plant.step(NONE)
        monitor.after(NONE)
    return monitor.conclude(30.0)


def test_rk4_is_right_at_1e4_and_lost_at_2e4():
    """Drag bounds what grows there: the numbers stay finite, and mean nothing."""
    ends = []
    for step in (1e-4, 2.5e-5):  # one period of the hovering orbit
        plant = moth.load(step_s=step)
        run(plant, 40)
        ends.append(plant.vector[7 : 7 + N].copy())
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-7)
    assert watched(moth.load(preset="fit", step_s=1e-4), 400).verdict == "fine"
    verdict = watched(moth.load(preset="fit", step_s=2e-4), 400)
    assert verdict.verdict in ("doubtful", "diverged")
    assert verdict.path > 1.0  # more than the whole way
    assert verdict.finer[0] == "step_s"
    assert 5e-5 < verdict.finer[1] < 1.5e-4


def test_the_papers_predictor_corrector():
    """Right at 1e-4 s on the hovering orbit; beyond it, or where the wings start at rest, it is lost."""
    plants = [moth.load(integrator=m) for m in ("abam", "rk4")]
    assert watched(plants[0], 200).verdict == "fine"
    run(plants[1], 200)
    np.testing.assert_allclose(plants[0].vector, plants[1].vector, rtol=1e-4, atol=1e-4)
    for lost in (
        moth.load(preset="fit", integrator="abam", step_s=1.25e-4),
        rested(dt=1e-3, step_s=1e-4, integrator="abam", added_mass="none"),
    ):
        verdict = watched(lost, 400)
        assert verdict.verdict in ("doubtful", "diverged")
        assert verdict.path > 1.0 or verdict.step > 0.25


def test_mirror_symmetry():
    """r_left = -r_right, no roll, no yaw, no sideways motion."""
    plant = moth.load()
    for _ in range(200):
        plant.step(NONE)
    v = plant.vector
    np.testing.assert_allclose(v[7 + LEFT : 7 + N], -v[7 : 7 + LEFT], atol=1e-9)
    np.testing.assert_allclose(v[[1, 4, 6, 8 + N, 10 + N, 12 + N]], 0.0, atol=1e-9)


def test_more_stroke_on_one_wing_rolls():
    plant = moth.load()
    command = np.array([0.0, 0.1, 0.0, 0.0])
    for _ in range(100):
        plant.step(command)
    assert plant.actuators[1].name == "right.gain"
    assert abs(plant.vector[4]) > 0.01


def test_torque_drive_follows_the_stroke():
    plant = moth.load(drive="torque", start="rest", dt=1e-3)
    for _ in range(100):
        plant.step(np.zeros(6))
    reference = A * math.cos(OMEGA * plant.time)
    assert abs(plant.vector[7] - reference) < 0.15
    assert [c.name for c in plant.actuators] == [
        "right.offset", "right.gain", "right.torque", "left.offset", "left.gain", "left.torque",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"added_mass": "half"}, "added_mass must be one of none, flat, paper, got 'half'"),
        ({"start": "hover", "thorax": "fixed"}, "start=hover needs thorax=free"),
        ({"sections": 0}, "sections must be > 0"),
        ({"preset": "hover"}, "unknown moth preset"),
        ({"dt": 0.0}, "dt must be > 0 s"),
        ({"air_density_kg_m3": 0.0}, "no hovering orbit with these parameters.*use start=rest"),
        ({"chord_m": 1e-6}, "no hovering orbit with these parameters.*use start=rest"),
        ({"amplitude_rad": 40.0}, "amplitude_rad must be <= 3.14159 rad, got 40"),
        ({"span_m": -1}, "span_m must be > 0 m, got -1"),
    ],
)
def test_refused(arguments, parts):
    with pytest.raises(rtmms.ModelError, match=parts):
        moth.load(**arguments)
