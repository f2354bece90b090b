"""Errors of instruments: their Allan deviation, scale, range and quantum; random numbers without a state."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from rtmms.sensing.data_sheets import TYPICAL, Imu, Sensor
from rtmms.sensing.instruments import disturb, drift_allan_variance, drift_of, normal, switch_on, uniform
from rtmms.sensing.suite import assemble
from tests.sensing.mover import Mover

DEGREE = np.pi / 180.0


def allan_deviation(rate: np.ndarray, period: float, time: float) -> float:
    """Overlapping by eighths, of samples of a rate (IEEE Std 952, annex C)."""
    m = round(time / period)
    angle, step = np.concatenate([[0.0], np.cumsum(rate)]) * period, max(1, m // 8)
    second = angle[2 * m :: step] - 2.0 * angle[m:-m:step] + angle[: -2 * m : step]
    return float(np.sqrt(np.mean(second**2) / 2.0) / (m * period))


def readings(
    sensor: Sensor, block: int, count: int, seed: int, truth: tuple[float, ...] = (0.0, 0.0, 0.0)
) -> np.ndarray:
    """(count, size) samples of one block of a sensor that stands still."""
    suite = assemble({"one": sensor}, Mover())
    row, state = suite.block[block], np.zeros(suite.size)
    switch_on(row, block, seed, state)
    out = np.tile(truth, (count, 1))
    (disturb_all if count > MANY else plain_disturb_all)(row, block, seed, state, out)
    return out


MANY = 100_000
"""Samples that are worth a loop of its own, compiled."""


def plain_disturb_all(row: np.ndarray, block: int, seed: int, state: np.ndarray, out: np.ndarray) -> None:
    for k in range(len(out)):
        disturb(row, block, seed, k + 1, state, out[k])


disturb_all = numba.njit(plain_disturb_all)


@pytest.mark.full
def test_an_hour_of_a_typical_imu_has_the_noise_of_its_data_sheet() -> None:
    """White noise within 5 % at 0.1 and 1 s, of each axis."""
    sensor = Imu(**TYPICAL["imu"])
    count = round(3600 * sensor.rate_hz)
    for block, density in enumerate((sensor.gyro_noise_rad_s_rt_hz, sensor.accel_noise_m_s2_rt_hz)):
        expected = readings(sensor, block, count, seed=1)
        for axis in range(3):
            for time in (0.1, 1.0):
                result = allan_deviation(expected[:, axis], 1.0 / sensor.rate_hz, time)
                assert result == pytest.approx(density / np.sqrt(time), rel=0.05)


@pytest.mark.full
def test_its_lowest_allan_deviation_is_the_data_sheets_bias_stability() -> None:
    """An hour has few independent pieces of a minute: over twelve hours of three axes, within 5 %."""
    sensor = Imu(**TYPICAL["imu"])
    count, period = round(3600 * sensor.rate_hz), 1.0 / sensor.rate_hz
    times = np.geomspace(3.0, 200.0, 25)
    for block, stability in enumerate((sensor.gyro_instability_rad_s, sensor.accel_instability_m_s2)):
        square = np.zeros(len(times))
        for seed in range(12):
            result = readings(sensor, block, count, seed)
            square += [np.mean([allan_deviation(result[:, k], period, t) ** 2 for k in range(3)]) for t in times]
        assert np.sqrt((square / 12).min()) == pytest.approx(stability, rel=0.05)


def test_the_drift_is_a_gauss_markov_process() -> None:
    """Variance, correlation and Allan variance in closed form, of a fast one."""
    sensor = Imu(rate_hz=100.0, gyro_instability_rad_s=1e-3, gyro_noise_rad_s_rt_hz=1e-4, gyro_correlation_s=0.5)
    deviation = drift_of(1e-4, 1e-3, 0.5)
    suite = assemble({"one": sensor}, Mover())
    state, drift = np.zeros(suite.size), np.empty(400_000)
    switch_on(suite.block[0], 0, 3, state)
    for k in range(len(drift)):
        disturb(suite.block[0], 0, 3, k + 1, state, np.zeros(3))
        drift[k] = state[0]
    assert drift.std() == pytest.approx(deviation, rel=0.03)
    assert np.mean(drift[:-50] * drift[50:]) / drift.var() == pytest.approx(np.exp(-1.0), abs=0.04)
    for time in (0.1, 0.5, 2.0):
        expected = np.sqrt(drift_allan_variance(time, deviation, 0.5))
        assert allan_deviation(drift, 0.01, time) == pytest.approx(expected, rel=0.05)


def test_little_white_noise_makes_no_large_drift() -> None:
    """The curve's lowest point goes to short times with the white noise, where it is none of a data sheet's."""
    times = 10.0 * np.geomspace(0.1, 3.0, 200)
    result = [drift_of(density, 1e-3, 10.0) for density in (3e-4, 1e-4, 1e-5, 1e-9)]
    for density, deviation in zip((3e-4, 1e-4, 1e-5, 1e-9), result, strict=True):
        total = density**2 / times + [drift_allan_variance(t, deviation, 10.0) for t in times]
        assert np.sqrt(total.min()) == pytest.approx(1e-3, rel=1e-2)
        assert deviation < 4.1e-3
    alone = drift_of(0.0, 1e-3, 10.0)
    assert np.sqrt(max(drift_allan_variance(t, alone, 10.0) for t in times)) == pytest.approx(1e-3, rel=1e-3)


def test_a_drift_that_white_noise_hides_is_none() -> None:
    assert drift_of(1.0, 1e-3, 10.0) == 0.0
    assert drift_of(1e-3, 0.0, 10.0) == 0.0


def test_scale_misalignment_offset_range_and_quantum() -> None:
    still = Imu(gyro_scale_error=(0.1, 0.0, -0.1), gyro_misalignment_rad=(0.0, 0.0, 0.01))
    result = readings(still, 0, 1, 0, (1.0, 2.0, 3.0))[0]
    # axes turned by +0.01 rad about z see x + 0.01 y, y - 0.01 x
    np.testing.assert_allclose(result, [1.1 + 0.02, 2.0 - 0.01, 2.7], rtol=1e-15)
    coarse = Imu(accel_range_m_s2=2.5, accel_resolution_m_s2=0.4)
    np.testing.assert_allclose(readings(coarse, 1, 1, 0, (-9.0, 1.1, 2.9))[0], [-2.4, 1.2, 2.4], rtol=1e-15)


def test_what_a_seed_decides_is_the_same_each_time_and_differs_between_axes() -> None:
    sensor = Imu(gyro_turn_on_rad_s=0.1, gyro_noise_rad_s_rt_hz=0.01)
    item, again, other = (readings(sensor, 0, 50, seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(item, again)
    assert np.abs(item - other).min() > 0.0
    assert np.abs(np.corrcoef(item.T)[np.triu_indices(3, 1)]).max() < 0.5
    powered = np.array([readings(sensor, 0, 400, seed).mean(axis=0) for seed in range(40)])
    assert powered.std() == pytest.approx(0.1, rel=0.2)


def test_numbers_are_uniform_and_normal_and_independent() -> None:
    from scipy.stats import kstest

    flat = np.array([uniform(7, 3, k) for k in range(20_000)])
    bell = np.array([normal(7, 3, k) for k in range(20_000)])
    assert kstest(flat, "uniform").pvalue > 1e-3
    assert kstest(bell, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(bell[:-1], bell[1:])[0, 1]) < 0.03
    streams = np.array([[normal(seed, stream, 5) for stream in range(150)] for seed in range(150)]).ravel()
    assert kstest(streams, "norm").pvalue > 1e-3
