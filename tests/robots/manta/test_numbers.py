"""Numbers the manta must hit: two independent implementations of the same reading agree on them to four digits."""

from __future__ import annotations

import numpy as np
import pytest

from rtmms.robots.manta import load
from tests.robots.gaits import gait, run

pytestmark = pytest.mark.full


def thrust(seconds=10.0, parameters=None, **how):
    plant = load(body="fixed", **(parameters or {}))
    time, trace = run(plant, gait(**how), seconds)
    return plant.summarise(time, trace)["mean_thrust_n"]


def test_mean_thrust_held():
    assert thrust(frequency=0.51, phase=30.0) == pytest.approx(3.36, abs=0.03)


def test_peak_thrust_held():
    """About 20 N, as a prototype of the same group."""
    _, trace = run(load(body="fixed"), gait(50.0, 0.6, 40.0), 8.0)
    assert trace["thrust"][1000:, :, 0].sum(axis=1).max() == pytest.approx(20.0, abs=0.5)


def test_swimming_speed_power_and_cost():
    plant = load()
    time, trace = run(plant, gait(), 60.0, 10)
    s = plant.summarise(time, trace)
    assert s["mean_speed_m_s"] == pytest.approx(0.765, abs=0.002)
    assert s["mean_power_w"] == pytest.approx(5.90, abs=0.03)
    assert s["cost_of_transport"] == pytest.approx(0.037, abs=0.001)
    # 95 % of the settled speed after 12.5 s
    speed = np.convolve(trace["velocity"][:, 0], np.ones(167) / 167.0, "same")
    reached = time[np.argmax(speed > 0.95 * s["mean_speed_m_s"])]
    assert reached == pytest.approx(12.5, abs=1.0)


def test_trends_of_thrust():
    by_amplitude = [thrust(amplitude=a, frequency=0.51, phase=30.0) for a in (10.0, 20.0, 30.0, 40.0)]
    assert np.all(np.diff(by_amplitude) > 0.0)
    f = np.array([0.3, 0.45, 0.6])
    by_frequency = [thrust(frequency=x, phase=30.0, seconds=14.0) for x in f]
    exponent = np.polyfit(np.log(f), np.log(by_frequency), 1)[0]
    assert 1.6 < exponent < 2.0
    by_phase = [thrust(amplitude=30.0, frequency=0.51, phase=p) for p in (-30.0, -15.0, 0.0, 15.0, 30.0)]
    assert np.all(np.diff(by_phase) > 0.0)
    assert abs(by_phase[2]) < 0.1


@pytest.mark.parametrize(
    ("reading", "amplitude", "effect", "within"),
    [
        ({"support_roll": "zero"}, 40.0, -0.65, 0.01),
        ({"fin_normal": "neighbour"}, 30.0, 0.17, 0.01),
        ({"fin_normal": "neighbour"}, 40.0, 0.19, 0.01),
    ],
)
def test_other_readings(reading, amplitude, effect, within):
    how = {"amplitude": amplitude, "frequency": 0.51, "phase": 30.0}
    assert thrust(parameters=reading, **how) / thrust(**how) - 1.0 == pytest.approx(effect, abs=within)


def test_waves_along_the_longest_chain():
    plant = load(body="fixed")
    f, rows = 0.51, []
    command = gait(40.0, f, 30.0)
    for k in range(12000):
        plant.step(command(k * 1e-3))
        rows.append(plant.observe()["joint_position"][0, :, 0])
    q = np.array(rows)[-round(2000 / f) :]
    t = np.arange(len(q)) * 1e-3
    c = 2.0 * np.mean(q * np.exp(-2j * np.pi * f * t)[:, None], axis=0)
    assert np.degrees(np.abs(c)) == pytest.approx([8.48, 8.92, 3.23], abs=0.02)
    assert np.degrees(np.angle(c[:-1] / c[1:])) == pytest.approx([27.6, 30.2], abs=0.1)


@pytest.mark.parametrize(
    ("right", "rate", "radius"), [((40.0, 0.0), 22.4, 1.63), ((20.0, 40.0), 13.6, 3.05)], ids=["phase", "amplitude"]
)
def test_turning(right, rate, radius):
    """The left fin stronger turns right; over the second half of 20 periods."""
    plant = load()
    time, trace = run(plant, gait(40.0, 0.8, 40.0, right=right), 25.0)
    s = plant.summarise(time, trace)
    assert s["turn_rate_deg_s"] == pytest.approx(-rate, abs=0.2)
    assert s["turn_radius_m"] == pytest.approx(radius, rel=0.02)


def test_phase_turns_faster_at_first():
    def yaw_rate(right):
        plant = load()
        command = gait(40.0, 0.8, 40.0, right=right)
        for k in range(1250):
            plant.step(command(k * 1e-3))
        return abs(plant.observe()["angular_velocity"][2])

    assert yaw_rate((40.0, 0.0)) > 1.2 * yaw_rate((20.0, 40.0))


def test_a_coarse_step_is_as_good_as_it_states():
    """Thrust at the paper's own 10 ms step: stable, and within 0.2 % of 1 ms."""
    how = {"frequency": 0.51, "phase": 30.0}
    fine, coarse = thrust(**how), thrust(parameters={"dt": 0.01}, **how)
    assert coarse == pytest.approx(fine, rel=2e-3)


def test_the_paper_preset_swims():
    plant = load(preset="paper")
    assert plant.dt == 0.01
    time, trace = run(plant, gait(), 40.0, 1)
    assert plant.summarise(time, trace)["mean_speed_m_s"] == pytest.approx(0.467, abs=0.005)
