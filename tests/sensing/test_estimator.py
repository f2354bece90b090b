"""The filter's derivatives, its algebra beside another library's, late measurements, and whether it knows how wrong
it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
from rtmms.base.errors import ModelError
from rtmms.sensing import Sensed, read_profile
from rtmms.sensing.data_sheets import Depth, Dvl, Gps, Imu, Magnetometer, Sensor
from rtmms.sensing.error_state_filter import (
    E_SIZE,
    N_ACCEL,
    N_BA,
    N_BG,
    N_GRAVITY,
    N_GYRO,
    N_SIZE,
    X_Q,
    X_SIZE,
    CorrelatedErrors,
    correct,
    expect_depth,
    expect_direction,
    expect_position,
    expect_velocity,
    inject,
    propagate,
)
from rtmms.sensing.estimator import Estimator, correlated_errors, sensors_of
from tests.sensing.mover import Mover

DEGREE = np.pi / 180.0
ROOM = np.zeros((5, 3))


def random_state(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=X_SIZE)
    x[X_Q : X_Q + 4] /= np.linalg.norm(x[X_Q : X_Q + 4])
    x[X_Q + 4 :] *= 0.1
    return x


def moved(x: np.ndarray, error: np.ndarray) -> np.ndarray:
    out = x.copy()
    inject(out, error)
    return out


def difference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The error that leads from x to y."""
    item, other = (Rotation.from_quat(s[[X_Q + 1, X_Q + 2, X_Q + 3, X_Q]]) for s in (x, y))
    turn = (item.inv() * other).as_rotvec()
    return np.concatenate([y[:6] - x[:6], turn, y[X_Q + 4 :] - x[X_Q + 4 :]])


def slopes(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """(m, 15) of a function of the state over the error, by central differences."""
    columns = []
    for k in range(E_SIZE):
        step = np.zeros(E_SIZE)
        step[k] = h
        columns.append((function(moved(x, step)) - function(moved(x, -step))) / (2 * h))
    return np.array(columns).T


PLACE = np.array([0.3, -0.2, 0.5])
MOUNT = Rotation.from_euler("xyz", [0.2, -0.5, 0.9]).as_matrix()
GYRO = np.array([0.3, -0.8, 0.5])
FIELD = np.array([0.2, -0.1, -0.4])
MODELS: dict[str, tuple[int, Callable[[np.ndarray, np.ndarray, np.ndarray], None]]] = {
    "depth": (1, lambda x, rows, out: expect_depth(x, PLACE, 0.4, ROOM, rows, out)),
    "position": (3, lambda x, rows, out: expect_position(x, PLACE, ROOM, rows, out)),
    "direction": (3, lambda x, rows, out: expect_direction(x, FIELD, MOUNT, ROOM, rows, out)),
    "velocity": (3, lambda x, rows, out: expect_velocity(x, GYRO, PLACE, MOUNT, ROOM, rows, out)),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_measurements_rows_are_its_derivative(name: str) -> None:
    size, model = MODELS[name]
    x, rows = random_state(1), np.zeros((size, E_SIZE))

    def expected(state: np.ndarray) -> np.ndarray:
        out = np.zeros(size)
        model(state, np.zeros((size, E_SIZE)), out)
        return out

    model(x, rows, np.zeros(size))
    np.testing.assert_allclose(rows, slopes(expected, x), atol=1e-9)


def noise_of(*values: float) -> np.ndarray:
    noise = np.zeros(N_SIZE)
    noise[[N_GYRO, N_ACCEL, N_BG, N_BA]] = values
    noise[N_GRAVITY:] = 0.3, -0.1, -9.81
    return noise


def none() -> CorrelatedErrors:
    """No errors that last."""
    return correlated_errors({}, np.eye(3))[0]


def step(x: np.ndarray, covariance: np.ndarray, dt: float, noise: np.ndarray) -> np.ndarray:
    """Transition (15, 15); x and covariance go on."""
    f = np.zeros((E_SIZE, E_SIZE))
    propagate(x, covariance, GYRO, np.array([1.0, -2.0, 9.0]), dt, noise, ROOM, f, none())
    return f


def test_the_transition_is_the_derivative_of_the_motion_to_first_order() -> None:
    """What is left out is of second order in dt."""
    left = []
    for dt in (1e-2, 5e-3):

        def ahead(state: np.ndarray, dt: float = dt) -> np.ndarray:
            out = state.copy()
            step(out, np.eye(E_SIZE), dt, noise_of(0, 0, 0, 0))
            return out

        x = random_state(2)
        at = ahead(x)
        numeric = slopes(lambda state, ahead=ahead, at=at: difference(at, ahead(state)), x)  # type: ignore[misc]
        f = step(x.copy(), np.eye(E_SIZE), dt, noise_of(0, 0, 0, 0))
        left.append(np.abs(f - numeric).max())
    assert left[0] < 2e-3
    assert left[0] / left[1] == pytest.approx(4.0, rel=0.1)


def test_a_still_body_with_perfect_sensors_stays_where_it_is() -> None:
    x = np.zeros(X_SIZE)
    x[X_Q] = 1.0
    before, noise, work = x.copy(), noise_of(0, 0, 0, 0), np.zeros((E_SIZE, E_SIZE))
    for _ in range(100):
        propagate(x, np.eye(E_SIZE), np.zeros(3), np.array([-0.3, 0.1, 9.81]), 0.01, noise, ROOM, work, none())
    np.testing.assert_allclose(x, before, atol=1e-14)


@pytest.mark.full
@pytest.mark.parametrize("size", [1, 3])
def test_covariances_are_another_librarys(size: int) -> None:
    kalman = pytest.importorskip("filterpy.kalman")
    rng = np.random.default_rng(size)
    root = rng.normal(size=(E_SIZE, E_SIZE))
    rows, variance, residual = rng.normal(size=(size, E_SIZE)), rng.uniform(0.1, 2.0, size), rng.normal(size=size)
    other = kalman.KalmanFilter(dim_x=E_SIZE, dim_z=size)
    other.P, other.H, other.R, other.x = root @ root.T, rows, np.diag(variance), np.zeros(E_SIZE)
    noise, dt, x = noise_of(0.1, 0.2, 0.3, 0.4), 0.01, random_state(5)
    mine = other.P.copy()
    other.F = step(x, mine, dt, noise)
    white = np.repeat([0.0, 0.2**2 * dt, 0.1**2 * dt, 0.3**2 * dt, 0.4**2 * dt], 3)
    other.predict(Q=np.diag(white))
    np.testing.assert_allclose(mine, other.P, rtol=1e-12, atol=1e-12)
    error = np.zeros(E_SIZE)
    current, room = np.zeros((size, 0)), np.zeros((size + 1, size + E_SIZE))
    squared = correct(x, mine, rows, current, 0, residual, variance, 0.0, room, error, none())
    other.update(residual)
    np.testing.assert_allclose(error, other.x, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(mine, other.P, rtol=1e-10, atol=1e-10)
    assert squared == pytest.approx(float(residual @ other.SI @ residual))


def test_what_is_not_believed_changes_nothing() -> None:
    x, covariance = random_state(6), np.eye(E_SIZE)
    before = x.copy()
    rows = np.zeros((1, E_SIZE))
    rows[0, 0] = 1.0
    room = np.zeros((2, 16))
    current, error = np.zeros((1, 0)), np.zeros(E_SIZE)
    squared = correct(x, covariance, rows, current, 0, np.array([9.0]), np.array([1.0]), 10.0, room, error, none())
    assert squared == pytest.approx(40.5)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(covariance, np.eye(E_SIZE))


# --- on a body that swims
# ------------------------------------------------------------------------------------------------


def attitude(time: float) -> Rotation:
    return Rotation.from_euler("xyz", [0.1 * np.sin(1.1 * time), 0.15 * np.sin(0.7 * time + 0.3), 0.25 * time])


@cache
def swim(time: float) -> tuple[Any, Any, Any, Any]:
    """A slow circle that climbs and sinks, rolling and pitching. Two hundred runs ask for it at the same instants."""
    h, turn = 1e-4, attitude(time)
    rate = (attitude(time - h).inv() * attitude(time + h)).as_rotvec() / (2 * h)
    position = np.array([2.0 * np.sin(0.25 * time), -2.0 * np.cos(0.25 * time), -2.0 - 0.5 * np.sin(0.2 * time)])
    velocity = np.array([0.5 * np.cos(0.25 * time), 0.5 * np.sin(0.25 * time), -0.1 * np.cos(0.2 * time)])
    return position, turn, turn.inv().apply(velocity), rate


SENSORS: dict[str, Sensor] = {
    "imu": Imu(
        rate_hz=200.0, latency_s=2e-3, gyro_noise_rad_s_rt_hz=0.007 * DEGREE, gyro_turn_on_rad_s=0.1 * DEGREE,
        gyro_instability_rad_s=10.0 * DEGREE / 3600.0, accel_noise_m_s2_rt_hz=1.2e-3, accel_turn_on_m_s2=0.02,
        accel_instability_m_s2=3e-4,
    ),
    "depth": Depth(rate_hz=50.0, latency_s=0.01, noise_m=2e-3, position_m=(0.3, 0.0, 0.1)),
    "dvl": Dvl(rate_hz=10.0, latency_s=0.1, jitter_s=0.02, noise_m_s=5e-3, position_m=(0.1, 0.05, -0.2)),
    "mag": Magnetometer(rate_hz=50.0, latency_s=0.02, noise_t=1e-7, field_t=(2e-5, 0.0, -4e-5)),
    "gps": Gps(rate_hz=5.0, latency_s=0.15, noise_m=0.3, surface_m=-1e6),
}  # fmt: skip


def begun(seed: int, sensors: dict[str, Sensor], surely: bool = False) -> tuple[Sensed, Estimator]:
    """A swimmer, and an estimator that starts as wrong as its variance."""
    rng = np.random.default_rng(seed)
    plant = Sensed(Mover(swim, dt=5e-3), sensors)
    plant.reset(seed)
    position, turn, velocity, _ = swim(0.0)
    wrong = 0.0 if surely else 1.0
    w = (turn * Rotation.from_rotvec(wrong * 0.05 * rng.normal(size=3))).as_quat()
    estimator = Estimator(
        sensors, position=position + wrong * 0.1 * rng.normal(size=3), quaternion=w[[3, 0, 1, 2]],
        velocity=turn.apply(velocity) + wrong * 0.1 * rng.normal(size=3), deviations=(0.1, 0.1, 0.05),
    )  # fmt: skip
    return plant, estimator


def run(plant: Sensed, estimator: Estimator, steps: int) -> None:
    for _ in range(steps):
        plant.step(np.zeros(1))
        estimator.update(plant.observe())


def error(position: Any, velocity: Any, quaternion: Any, time: float) -> np.ndarray:
    at, turn, speed, _ = swim(time)
    result = Rotation.from_quat(np.asarray(quaternion)[[1, 2, 3, 0]])
    return np.concatenate([at - position, turn.apply(speed) - velocity, (result.inv() * turn).as_rotvec()])


def test_it_follows_a_swimmer_through_late_measurements() -> None:
    plant, estimator = begun(1, SENSORS)
    run(plant, estimator, 4000)
    now = estimator.estimate()
    assert now.time == pytest.approx(20.0, abs=6e-3)
    assert 0.1 < now.behind < 0.2
    wrong = np.abs(error(now.position, now.velocity, now.quaternion, now.time))
    assert (wrong[2] < 0.01, wrong[:2].max() < 0.3, wrong[3:6].max() < 0.02, wrong[6:].max() < 0.01) == (True,) * 4
    assert not now.lost
    assert set(now.nis) == {"depth", "dvl", "mag", "gps"}


def test_latency_costs_the_filter_nothing() -> None:
    """Taken in where they belong: the same estimate, at the same instant, as of sensors without latency."""
    prompt = {name: replace(sensor, latency_s=0.0, jitter_s=0.0) for name, sensor in SENSORS.items()}
    prompt["imu"] = SENSORS["imu"]
    late, soon = begun(2, SENSORS), begun(2, prompt)
    run(*late, 2000)
    at = late[1].behind()
    for _ in range(2000):
        run(*soon, 1)
        if soon[1].behind().time == at.time:
            break
    same = soon[1].behind()
    assert same.time == at.time
    np.testing.assert_allclose(at.position, same.position, atol=1e-9)
    np.testing.assert_allclose(at.velocity, same.velocity, atol=1e-9)
    np.testing.assert_allclose(at.covariance, same.covariance, atol=1e-12)


def test_sensors_that_fall_silent_only_make_it_less_sure() -> None:
    plant, estimator = begun(3, SENSORS)
    run(plant, estimator, 3000)
    sure = estimator.behind().covariance
    for _ in range(200):
        plant.step(np.zeros(1))
        outputs = plant.observe()
        estimator.update({name: outputs[name] for name in ("imu.time", "imu.gyro", "imu.accel")})
    now = estimator.estimate()
    wrong = np.abs(error(now.position, now.velocity, now.quaternion, now.time))
    assert (wrong[3:6].max() < 0.05, not now.lost) == (True, True)
    assert np.all(np.diag(now.covariance)[3:6] > np.diag(sure)[3:6])


def test_a_sensor_that_lies_is_refused_and_reported() -> None:
    plant, estimator = begun(4, SENSORS)
    run(plant, estimator, 3000)
    assert not estimator.estimate().lost
    for _ in range(200):
        plant.step(np.zeros(1))
        outputs = plant.observe()
        outputs["depth.value"] = outputs["depth.value"] + 5.0
        estimator.update(outputs)
    now = estimator.estimate()
    assert now.lost
    assert now.refused["depth"] >= 10
    assert np.abs(error(now.position, now.velocity, now.quaternion, now.time))[2] < 0.05


@pytest.mark.full
@pytest.mark.timeout(900)
def test_it_knows_how_wrong_it_is() -> None:
    """200 runs of 10 s: NEES of position, velocity and attitude, and the NIS of each sensor, inside their bands, of
    95 % for the five together
    (2.58 standard deviations each)."""
    nees, nis = [], dict[str, list[tuple[float, int]]]()
    for seed in range(200):
        plant, estimator = begun(seed, SENSORS)
        run(plant, estimator, 2000)
        at = estimator.behind()
        wrong = error(at.position, at.velocity, at.quaternion, at.time)
        nees.append(wrong @ np.linalg.solve(at.covariance[:9, :9], wrong))
        for name, result in at.nis.items():
            nis.setdefault(name, []).append(result)
    assert np.mean(nees) == pytest.approx(9.0, abs=2.58 * np.sqrt(2 * 9 / 200))
    for name, result in nis.items():
        degrees = result[0][1]
        mean = np.mean([squared for squared, _ in result])
        assert mean == pytest.approx(degrees, abs=2.58 * np.sqrt(2 * degrees / 200)), name


def test_sensors_by_the_outputs_of_a_plant() -> None:
    outputs = ["imu.gyro", "imu.time", "depth.time", "truth.time", "other.time"]
    result = sensors_of(outputs, over={"depth": {"noise_m": 0.5}})
    assert list(result) == ["imu", "depth"]
    assert result["depth"].noise_m == 0.5  # type: ignore[attr-defined]
    assert result["imu"].gyro_noise_rad_s_rt_hz > 0.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sensors", "text"),
    [
        ({"depth": Depth()}, "expected an imu among the sensors, got depth"),
        ({}, "got none"),
        ({"imu": Imu(position_m=(1.0, 0.0, 0.0))}, "the imu's position_m"),
    ],
)
def test_what_it_cannot_begin_with(sensors: dict[str, Sensor], text: str) -> None:
    with pytest.raises(ModelError, match=text):
        Estimator(sensors)


@pytest.mark.parametrize("depth_m", [0.0, 2.0, 15.0])
def test_a_start_that_nobody_states_takes_its_height_from_the_depth(depth_m: float) -> None:
    """The errors of the estimate, and of the offset of the depth sensor, are those of a start at the surface."""
    plant: Any = rtmms.load("torpedo", start_depth_m=depth_m)
    observed = Sensed(plant, read_profile("typical", plant))
    observed.reset(3)
    estimator = Estimator(sensors_of(observed.observe()))
    assert not estimator.knows_height
    for _ in range(400):
        observed.step(np.array([60.0, 0.0, 0.05, 0.0, -0.05]))
        estimator.update(observed.observe())
    assert estimator.knows_height
    now, truth = estimator.estimate(), plant.observe()
    assert abs(now.position[2] - truth["position"][2]) < 0.03
    assert np.abs(now.position[:2] - truth["position"][:2]).max() < 0.2
    assert now.refused == {}


def test_without_a_depth_sensor_the_start_is_the_origin() -> None:
    assert Estimator({name: sensor for name, sensor in SENSORS.items() if name != "depth"}).knows_height
    assert Estimator(SENSORS, position=(0.0, 0.0, -1.0)).knows_height
