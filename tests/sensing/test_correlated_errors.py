"""Correlated errors of sensors: the filter beside a full one in plain numpy, and whether it knows how wrong it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rtmms.sensing.data_sheets import Depth, Dvl, Gps, Imu, Magnetometer, Sensor
from rtmms.sensing.error_state_filter import (
    E_Q,
    E_SIZE,
    E_V,
    N_GRAVITY,
    N_SIZE,
    X_Q,
    X_SIZE,
    CorrelatedErrors,
    add_correlated,
    correct,
    expect_correlated,
    propagate,
)
from rtmms.sensing.estimator import Estimator, correlated_errors
from rtmms.sensing.suite import rotation
from tests.sensing.test_estimator import GYRO, ROOM, SENSORS, begun, error, noise_of, random_state, run

CROOKED: dict[str, Sensor] = {
    "imu": Imu(
        gyro_scale_error=(0.01, -0.02, 0.03), gyro_misalignment_rad=(0.01, 0.0, -0.02),
        accel_scale_error=(0.0, 0.01, 0.02), accel_misalignment_rad=(0.03, -0.01, 0.02),
    ),
    "mag": Magnetometer(hard_iron_t=(1e-2, 2e-2, -1e-2), soft_iron_error=(0.02, 0.0, 0.01)),
    "gps": Gps(wander_m=0.5, correlation_s=20.0),
    "dvl": Dvl(turn_on_m_s=0.1, scale_error=(0.02, 0.01, 0.03), misalignment_rad=(0.02, 0.03, 0.01)),
    "depth": Depth(turn_on_m=0.2, wander_m=0.1, correlation_s=30.0, scale_error=0.02),
}  # fmt: skip
MOUNT = rotation((10.0, -20.0, 30.0))


def seized(correlated: CorrelatedErrors, rng: np.random.Generator) -> np.ndarray:
    """The joint covariance (15 + l, 15 + l), random where it may be; those of the imu stay what they are."""
    size = E_SIZE + len(correlated.variance)
    root = 0.1 * rng.normal(size=(size, size))
    whole: np.ndarray = root @ root.T
    fixed = E_SIZE + np.flatnonzero(correlated.estimated == 0)
    whole[np.ix_(fixed, fixed)] = np.diag(correlated.variance[fixed - E_SIZE])
    correlated.cross[:], correlated.among[:] = whole[:E_SIZE, E_SIZE:], whole[E_SIZE:, E_SIZE:]
    return whole


def joint(covariance: np.ndarray, correlated: CorrelatedErrors) -> np.ndarray:
    return np.block([[covariance, correlated.cross], [correlated.cross.T, correlated.among]])


def test_which_errors_last_and_which_are_estimated() -> None:
    correlated, places = correlated_errors(CROOKED, MOUNT)
    assert {name: place.stop - place.start for name, place in places.items()} == {
        "imu": 10, "mag": 5, "gps": 3, "dvl": 9, "depth": 3,
    }  # fmt: skip
    np.testing.assert_array_equal(correlated.estimated, [0] * 10 + [1] * 20)
    np.testing.assert_array_equal(np.diag(correlated.among), correlated.variance)
    assert correlated.fades[places["gps"]].tolist() == [1 / 20.0] * 3
    assert correlated_errors({"imu": Imu(), "depth": Depth(noise_m=0.1)}, MOUNT)[0].variance.size == 0


def test_what_they_add_is_what_the_sensors_do() -> None:
    """The matrix of a sensor (rtmms.sensing.instruments): scale on its diagonal, misalignment beside it."""
    vector, out = np.array([0.3, -0.7, 1.1]), np.zeros(3)
    scale, (a, b, c) = np.array([0.01, -0.02, 0.03]), (0.02, -0.01, 0.04)
    expected = np.diag(scale) @ vector + np.array([[0.0, c, -b], [-c, 0.0, a], [b, -a, 0.0]]) @ vector
    correlated, _ = correlated_errors(
        {"imu": Imu(gyro_scale_error=(0.01, -0.02, 0.03), gyro_misalignment_rad=(a, b, c))}, MOUNT
    )
    total = np.zeros(3)
    for row, size in zip(correlated.rows, (*scale, a, b, c), strict=True):
        add_correlated(row, vector, out)
        total += size * out
    np.testing.assert_allclose(total, expected, atol=1e-15)


def test_the_covariance_goes_on_as_that_of_one_large_state() -> None:
    rng = np.random.default_rng(1)
    correlated, _ = correlated_errors(CROOKED, MOUNT)
    whole, x, dt, f = seized(correlated, rng), random_state(2), 0.01, np.zeros((E_SIZE, E_SIZE))
    force, mine = np.array([1.0, -2.0, 9.0]), whole[:E_SIZE, :E_SIZE].copy()
    rate, felt = GYRO - x[10:13], force - x[13:16]
    propagate(x.copy(), mine, GYRO, force, dt, noise_of(0, 0, 0, 0), ROOM, f, correlated)
    middle = ROOM[:3].copy()
    size, out = len(correlated.variance), np.zeros(3)
    big = np.eye(E_SIZE + size)
    big[:E_SIZE, :E_SIZE] = f
    for j, row in enumerate(correlated.rows):
        if row[2] == E_Q:
            add_correlated(row, MOUNT.T @ rate, out)
            big[E_Q : E_Q + 3, E_SIZE + j] = -dt * MOUNT @ out
        elif row[2] == E_V:
            add_correlated(row, MOUNT.T @ felt, out)
            big[E_V : E_V + 3, E_SIZE + j] = -dt * middle @ MOUNT @ out
    keep = np.exp(-dt * correlated.fades)
    big[E_SIZE:, E_SIZE:] = np.diag(keep)
    expected = big @ whole @ big.T
    expected[E_SIZE:, E_SIZE:] += np.diag((1.0 - keep**2) * correlated.variance)
    np.testing.assert_allclose(joint(mine, correlated), expected, atol=1e-13)


@pytest.mark.parametrize("name", ["mag", "dvl", "depth", "gps"])
def test_an_update_is_schmidts(name: str) -> None:
    """P <- (I - K H) P (I - K H)^T + K R K^T, whatever the gain; here the best one, with the rows of what is
    considered at 0."""
    rng = np.random.default_rng(3)
    correlated, places = correlated_errors(CROOKED, MOUNT)
    whole, place, m = seized(correlated, rng), places[name], 1 if name == "depth" else 3
    rows, variance = rng.normal(size=(m, E_SIZE)), rng.uniform(0.1, 1.0, m)
    expected, residual, current = rng.normal(size=m), rng.normal(size=m), np.zeros((m, place.stop - place.start))
    correlated.value[:] = np.where(correlated.estimated, rng.normal(size=len(correlated.value)), 0.0)
    perfect, values = expected.copy(), correlated.value.copy()
    expect_correlated(place.start, expected, current, correlated)
    np.testing.assert_allclose(expected, perfect + current @ values[place], atol=1e-14)
    h = np.zeros((m, len(whole)))
    h[:, :E_SIZE] = rows
    h[:, E_SIZE + place.start : E_SIZE + place.stop] = current
    s = h @ whole @ h.T + np.diag(variance)
    gain = whole @ h.T @ np.linalg.inv(s)
    gain[E_SIZE:][correlated.estimated == 0] = 0.0
    left = np.eye(len(whole)) - gain @ h
    after = left @ whole @ left.T + gain @ np.diag(variance) @ gain.T
    x, mine, moved = random_state(4), whole[:E_SIZE, :E_SIZE].copy(), np.zeros(E_SIZE)
    room = np.zeros((m + 1, m + len(whole)))
    squared = correct(x, mine, rows, current, place.start, residual, variance, 0.0, room, moved, correlated)
    assert squared == pytest.approx(residual @ np.linalg.solve(s, residual))
    np.testing.assert_allclose(joint(mine, correlated), after, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([moved, correlated.value - values]), gain @ residual, atol=1e-12)


def test_without_correlated_errors_it_is_the_filter_without_them() -> None:
    """Sheets that have none, and sheets whose own are not listened to: the same bits."""
    plain = {
        name: replace(sensor, wander_m=0.0) if isinstance(sensor, Gps) else sensor for name, sensor in SENSORS.items()
    }
    plant, item = begun(5, plain)
    other = begun(5, plain)[1]
    bare = Estimator(plain, deviations=(0.1, 0.1, 0.05), correlated=False)
    bare._x[:], bare._p[:] = other._x, other._p
    run(plant, item, 600)
    again, _ = begun(5, plain)
    run(again, bare, 600)
    assert item._correlated.variance.size == bare._correlated.variance.size == 0
    assert item.behind().covariance.tobytes() == bare.behind().covariance.tobytes()
    assert item.behind().position.tobytes() == bare.behind().position.tobytes()


def test_a_bias_that_stays_is_neither_averaged_away_nor_forgotten() -> None:
    """A body at rest on a line, its depth measured with an error that stays: over 150 runs the mean of the normalised
    error squared is 1, within its band of 99 %, after a second and after forty; as white noise it is far above."""
    squared = dict[tuple[bool, int], list[float]]()
    for seed in range(150):
        rng = np.random.default_rng(seed)
        sensor = Depth(noise_m=0.01, turn_on_m=0.05, wander_m=0.02, correlation_s=30.0)
        start, bias, drift = 0.1 * rng.normal(), 0.05 * rng.normal(), 0.02 * rng.normal()
        result = []
        for _ in range(400):
            drift += -0.1 / 30.0 * drift + 0.02 * np.sqrt(0.2 / 30.0) * rng.normal()
            result.append(bias + drift + 0.01 * rng.normal())
        for known in (True, False):
            correlated, _ = correlated_errors({"depth": sensor}, np.eye(3), known)
            x, covariance, noise = np.zeros(X_SIZE), np.zeros((E_SIZE, E_SIZE)), np.zeros(N_SIZE)
            x[X_Q], covariance[2, 2], noise[N_GRAVITY + 2] = 1.0, 0.1**2, -9.81
            rows, current = np.zeros((1, E_SIZE)), np.zeros((1, len(correlated.variance)))
            rows[0, 2], room = -1.0, np.zeros((2, 1 + E_SIZE + len(correlated.variance)))
            for k, item in enumerate(result):
                propagate(x, covariance, np.zeros(3), np.array([0.0, 0.0, 9.81]), 0.1, noise, ROOM,
                          np.zeros((E_SIZE, E_SIZE)), correlated)  # fmt: skip
                expected = np.array([-x[2]])
                expect_correlated(0, expected, current, correlated)
                residual = np.array([-start + item]) - expected
                correct(
                    x, covariance, rows, current, 0, residual, np.array([1e-4]), 0.0, room, np.zeros(E_SIZE), correlated
                )
                if k in (9, 399):
                    squared.setdefault((known, k), []).append((start - x[2]) ** 2 / covariance[2, 2])
    band = 2.58 * np.sqrt(2.0 / 150)
    assert np.mean(squared[True, 9]) == pytest.approx(1.0, abs=band)
    assert np.mean(squared[True, 399]) == pytest.approx(1.0, abs=band)
    assert np.mean(squared[False, 399]) > 50.0


@pytest.mark.full
def test_it_knows_how_wrong_sensors_with_errors_that_last_leave_it() -> None:
    """24 runs of 20 s with all of them, drawn anew for each run: NEES of position, velocity and attitude together."""
    sizes = {"gyro_scale_error": 2e-3, "accel_scale_error": 2e-3, "gyro_misalignment_rad": 2e-3}
    nees = []
    for seed in range(24):
        rng = np.random.default_rng(1000 + seed)

        def drawn(size: float, rng: np.random.Generator = rng) -> tuple[float, float, float]:
            x, y, z = (size * rng.normal(size=3)).tolist()
            return x, y, z

        known = dict(SENSORS)
        known["imu"] = replace(SENSORS["imu"], **{name: (size,) * 3 for name, size in sizes.items()})  # type: ignore[arg-type]
        known["mag"] = replace(SENSORS["mag"], hard_iron_t=(3e-7,) * 3, soft_iron_error=(5e-3,) * 3)  # type: ignore[call-arg]
        known["dvl"] = replace(SENSORS["dvl"], turn_on_m_s=5e-3, scale_error=(1e-2,) * 3, misalignment_rad=(5e-3,) * 3)  # type: ignore[call-arg]
        known["depth"] = replace(SENSORS["depth"], turn_on_m=0.02, wander_m=0.01)  # type: ignore[call-arg]
        known["gps"] = replace(SENSORS["gps"], wander_m=1.0)  # type: ignore[call-arg]
        true = dict(known)
        true["imu"] = replace(known["imu"], **{name: drawn(size) for name, size in sizes.items()})  # type: ignore[arg-type]
        true["mag"] = replace(known["mag"], hard_iron_t=drawn(3e-7), soft_iron_error=drawn(5e-3))  # type: ignore[call-arg]
        true["dvl"] = replace(known["dvl"], scale_error=drawn(1e-2), misalignment_rad=drawn(5e-3))  # type: ignore[call-arg]
        plant, _ = begun(seed, true)
        estimator = begun(seed, known)[1]
        run(plant, estimator, 4000)
        at = estimator.behind()
        wrong = error(at.position, at.velocity, at.quaternion, at.time)
        nees.append(wrong @ np.linalg.solve(at.covariance[:9, :9], wrong))
    assert np.mean(nees) == pytest.approx(9.0, abs=2.58 * np.sqrt(2 * 9 / 24))
