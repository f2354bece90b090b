"""Sensors on a moving body: perfect readings against their definitions, when, and the plant around."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.sensing import Sensed, read_profile
from rtmms.sensing.data_sheets import Currents, Depth, Dvl, Encoders, Gps, Imu, Magnetometer, Sensor
from tests.sensing.mover import Mover

G = 9.80665
PLACE = (0.1, -0.2, 0.3)
MOUNTED = (20.0, -30.0, 50.0)
MOUNTING = Rotation.from_euler("ZYX", [50.0, -30.0, 20.0], degrees=True)
"""Sensor to body."""


def screw(time: float) -> tuple[Any, Any, Any, Any]:
    """A body that turns about a fixed axis at a rate that varies, on a circle that climbs."""
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    angle, speed = 0.7 * time + 0.3 * np.sin(2.0 * time), 0.7 + 0.6 * np.cos(2.0 * time)
    turn = Rotation.from_rotvec(axis * angle)
    position = np.array([np.cos(time), np.sin(time), -3.0 + 0.2 * time * time])
    velocity = np.array([-np.sin(time), np.cos(time), 0.4 * time])
    return position, turn, turn.inv().apply(velocity), axis * speed


def samples_of(sensor: Sensor, seconds: float = 0.5, name: str = "one", **values: Any) -> dict[str, np.ndarray]:
    plant = Sensed(Mover(screw, **values), {name: sensor})
    for _ in range(round(seconds / plant.dt)):
        plant.step(np.array([0.25]))
    return plant.observe()


def point(time: float) -> np.ndarray:
    position, turn, _, _ = screw(time)
    return np.asarray(position + turn.apply(PLACE))


def seen_from(time: float, vector: np.ndarray) -> np.ndarray:
    """A world vector in the axes of the mounted sensor."""
    return np.asarray((screw(time)[1] * MOUNTING).inv().apply(vector))


def mounted(kind: type[Sensor], **values: Any) -> Any:
    return kind(position_m=PLACE, rotation_deg=MOUNTED, **values)


def test_a_gyroscope_and_an_accelerometer_at_a_mounting() -> None:
    """Both at the time of the sample; the accelerometer's by second differences of the point's path, and the error of
    its own differences falls with the square of the step."""
    t, e = 0.5, 1e-4
    force = (point(t + e) - 2.0 * point(t) + point(t - e)) / e**2 + [0.0, 0.0, G]
    errors = []
    for dt in (2e-3, 1e-3):
        observed = samples_of(mounted(Imu, rate_hz=1.0 / dt), t, dt=dt)
        np.testing.assert_allclose(observed["one.gyro"], MOUNTING.inv().apply(screw(t)[3]), atol=1e-14)
        assert observed["one.time"] == pytest.approx(t)
        errors.append(float(np.abs(observed["one.accel"] - seen_from(t, force)).max()))
    assert errors[1] < 2e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_the_first_samples_of_an_accelerometer_need_no_past() -> None:
    """Gravity alone, then the mean over a step, then the value."""
    plant = Sensed(Mover(screw), {"one": Imu(rate_hz=1000.0)})
    result = [plant.observe()["one.accel"]]
    for _ in range(2):
        plant.step(np.zeros(1))
        result.append(plant.observe()["one.accel"])
    np.testing.assert_allclose(result[0], screw(0.0)[1].inv().apply([0.0, 0.0, G]), atol=1e-12)
    np.testing.assert_allclose(result[1], result[2], atol=2e-2)


def test_at_rest_an_accelerometer_feels_the_ground() -> None:
    plant = Sensed(Mover(), {"imu": Imu(rate_hz=1000.0)})
    for _ in range(3):
        np.testing.assert_allclose(plant.observe()["imu.accel"], [0.0, 0.0, G], atol=1e-12)
        plant.step(np.zeros(1))


def test_a_magnetometer_sees_the_earths_field() -> None:
    field = (2e-5, -1e-5, -4e-5)
    observed = samples_of(mounted(Magnetometer, field_t=field, rate_hz=1000.0))
    np.testing.assert_allclose(observed["one.field"], seen_from(0.5, np.array(field)), atol=1e-18)


def test_the_world_magnetic_model_is_in_east_north_up() -> None:
    """In Toulon it points north and down: some 24 uT north, 1 east, 40 down."""
    pytest.importorskip("pygeomag")
    observed = samples_of(Magnetometer(rate_hz=1000.0), 0.0)
    east, north, up = screw(0.0)[1].apply(observed["one.field"]) * 1e6
    assert (0.5 < east < 2.0, 23.0 < north < 25.0, -41.5 < up < -38.5) == (True, True, True)


def test_the_field_of_the_default_place_is_kept() -> None:
    """Some metres higher the library computes it, and finds the same."""
    pytest.importorskip("pygeomag")
    stored, computed = (
        samples_of(Magnetometer(rate_hz=1000.0), 0.0),
        samples_of(Magnetometer(rate_hz=1000.0, altitude_m=1.0), 0.0),
    )
    np.testing.assert_allclose(stored["one.field"], computed["one.field"], atol=1e-10)


def test_a_typical_part_that_is_faster_than_the_steps_is_read_once_a_step() -> None:
    slow = Mover(dt=5e-3)
    profile = read_profile("typical", slow)
    assert (profile["encoder"].rate_hz, profile["imu"].rate_hz, profile["gps"].rate_hz) == (200.0, 200.0, 5.0)
    Sensed(slow, profile)
    with pytest.raises(ModelError, match="at most one sample a step, 200 Hz, got 500"):
        Sensed(slow, read_profile("typical", slow, {"encoder": {"rate_hz": 500.0}}))


def test_depth_of_the_point_where_it_sits() -> None:
    assert samples_of(mounted(Depth, rate_hz=1000.0))["one.value"] == pytest.approx(-point(0.5)[2], abs=1e-14)


def test_a_doppler_log_over_a_flat_bottom() -> None:
    down = Dvl(position_m=PLACE, rate_hz=1000.0, bottom_m=-10.0, beam_angle_deg=25.0)
    observed = samples_of(down)
    e = 1e-5
    velocity = screw(0.5)[1].inv().apply((point(0.5 + e) - point(0.5 - e)) / (2 * e))
    np.testing.assert_allclose(observed["one.velocity"], velocity, atol=1e-9)
    for beam, angle in enumerate(np.radians([45.0, 135.0, 225.0, 315.0])):
        lean = np.radians(25.0)
        along = screw(0.5)[1].apply([np.sin(lean) * np.cos(angle), np.sin(lean) * np.sin(angle), -np.cos(lean)])
        assert (point(0.5) + observed["one.range"][beam] * along)[2] == pytest.approx(-10.0, abs=1e-12)
    assert observed["one.valid"] == 1.0


@pytest.mark.parametrize(("bottom", "maximum", "valid"), [(-10.0, 50.0, 1.0), (-10.0, 5.0, 0.0), (-1.0, 50.0, 0.0)])
def test_a_doppler_log_without_a_bottom_keeps_its_last_velocity(bottom: float, maximum: float, valid: float) -> None:
    observed = samples_of(Dvl(rate_hz=1000.0, bottom_m=bottom, range_m=maximum))
    assert observed["one.valid"] == valid
    assert np.any(observed["one.velocity"]) == bool(valid)


def test_rods_and_motors() -> None:
    observed = samples_of(Encoders(rate_hz=1000.0))
    np.testing.assert_allclose(observed["one.angle"], [0.5, 0.25], atol=1e-14)
    np.testing.assert_allclose(samples_of(Currents(rate_hz=1000.0, torque_constant_n_m_a=0.5))["one.value"], [4.0, 8.0])


def test_gps_only_at_the_surface() -> None:
    assert samples_of(mounted(Gps, rate_hz=1000.0))["one.valid"] == 0.0
    observed = samples_of(mounted(Gps, rate_hz=1000.0, surface_m=-5.0))
    np.testing.assert_allclose(observed["one.position"], point(0.5), atol=1e-14)
    assert observed["one.valid"] == 1.0


# --- when -----------------------------------------------------------------------------------------------------------


def arrivals(sensor: Sensor, steps: int = 2000, seed: int = 0) -> list[tuple[int, float]]:
    """(step, time of the sample) of each sample that came."""
    plant = Sensed(Mover(), {"one": sensor})
    plant.reset(seed)
    result, last = [], -1.0
    for step in range(steps):
        time = float(plant.observe()["one.time"])
        if time != last:
            result.append((step, time))
            last = time
        plant.step(np.zeros(1))
    return result


def test_samples_come_at_their_rate_phase_and_latency() -> None:
    result = arrivals(Depth(rate_hz=50.0, phase_s=0.004, latency_s=0.0095))
    assert result[:3] == [(14, pytest.approx(0.004)), (34, pytest.approx(0.024)), (54, pytest.approx(0.044))]
    assert len(result) == 100
    assert arrivals(Depth(rate_hz=1000.0))[5] == (5, pytest.approx(0.005))


def test_a_rate_that_is_no_whole_number_of_steps_keeps_its_mean() -> None:
    result = arrivals(Depth(rate_hz=300.0), 3001)
    assert len(result) == 901
    assert {b - a for (a, _), (b, _) in pairwise(result)} == {3, 4}


def test_jitter_is_spread_evenly_and_the_order_is_kept() -> None:
    result = arrivals(Depth(rate_hz=20.0, latency_s=0.01, jitter_s=0.02), 20_000)
    late = np.array([step * 1e-3 - time for step, time in result])
    assert (late.min() >= 0.01, late.max() <= 0.0311) == (True, True)
    counts, _ = np.histogram(late, bins=4, range=(0.0105, 0.0305))
    assert counts.min() > 70
    hurried = arrivals(Depth(rate_hz=500.0, jitter_s=0.02), 5000)
    times = [time for _, time in hurried]
    assert times == sorted(times)


def test_a_share_of_the_samples_is_lost() -> None:
    result = arrivals(Depth(rate_hz=1000.0, dropout=0.25), 8000)
    assert len(result) == pytest.approx(6000, rel=0.03)
    assert arrivals(Depth(rate_hz=1000.0, dropout=1.0), 50) == []


def test_a_slow_plant_is_refused_a_fast_sensor() -> None:
    with pytest.raises(
        ModelError, match=r"sensor fast: rate_hz: expected at most one sample a step, 1000 Hz, got 1001"
    ):
        Sensed(Mover(), {"fast": Depth(rate_hz=1001.0)})


# --- the plant around -----------------------------------------------------------------------------------------------


def typical(seed: int = 0) -> Sensed:
    plant = Sensed(Mover(screw), read_profile("typical", Mover(), {"mag": {"field_t": [2e-5, 0.0, -4e-5]}}))
    plant.reset(seed)
    return plant


def run(plant: Sensed, steps: int) -> list[dict[str, np.ndarray]]:
    out = []
    for _ in range(steps):
        plant.step(np.array([0.1]))
        out.append(plant.observe())
    return out


def same(item: list[dict[str, np.ndarray]], other: list[dict[str, np.ndarray]]) -> bool:
    return all(np.array_equal(a[name], b[name]) for a, b in zip(item, other, strict=True) for name in a)


def test_it_is_a_plant_with_the_truth_apart() -> None:
    plant = typical()
    assert isinstance(plant, rtmms.Plant)
    names = [channel.name for channel in plant.outputs]
    assert [name for name in names if not name.startswith("truth.")][:3] == ["imu.gyro", "imu.accel", "imu.time"]
    assert "truth.position" in names
    assert "position" not in names
    outputs = plant.observe()
    assert {name: value.shape for name, value in outputs.items()} == {c.name: c.shape for c in plant.outputs}
    assert all(value.flags.owndata for name, value in outputs.items() if not name.startswith("truth."))


def test_a_snapshot_goes_on_with_the_same_bits_and_a_seed_begins_with_them() -> None:
    plant = typical(3)
    run(plant, 700)
    blob = plant.snapshot()
    remaining = run(plant, 300)
    plant.restore(blob)
    assert same(run(plant, 300), remaining)
    other = typical(3)
    run(other, 10)
    other.restore(blob)
    assert same(run(other, 300), remaining)
    assert same(run(typical(3), 200), run(typical(3), 200))
    assert not same(run(typical(3), 200), run(typical(4), 200))


@pytest.mark.parametrize("blob", [b"", b"rtmms-sensed-1\0", b"x" * 4000, typical().snapshot() + b"1"])
def test_another_snapshot_is_refused(blob: bytes) -> None:
    with pytest.raises(ModelError, match="snapshot"):
        typical().restore(blob)


@pytest.mark.parametrize(
    ("profile", "over", "text"),
    [
        ("typicl", {}, "unknown sensors 'typicl'; did you mean typical"),
        ("typical", {"imv": {}}, "unknown sensor 'imv'; did you mean imu"),
        ("typical", {"imu": {"rate": 3}}, "sensor imu: unknown key of sensor 'rate'; did you mean rate_hz"),
        ("ideal", {"imu": {"latency_s": 1e9}}, "samples in transit"),
        ("ideal", {"imu": 3}, "imu: expected a table"),
        (
            "ideal",
            {"encoder": {"of": "rod_agle"}},
            "sensor encoder: of: unknown output 'rod_agle'; did you mean rod_angle",
        ),
        ("ideal", {"encoder": {"of": "shape"}}, "expected a vector, got 'shape' of shape (2, 2)"),
        ("ideal", {"mag": {"year": 1900.0}}, "sensor mag: "),
    ],
)
def test_what_cannot_be_is_refused_with_sensor_and_key(profile: str, over: dict[str, Any], text: str) -> None:
    with pytest.raises((ModelError, UnknownNameError)) as fault:
        Sensed(Mover(), read_profile(profile, Mover(), over))
    assert text in str(fault.value)


def test_a_plant_without_a_pose_has_no_imu() -> None:
    from tests.pendulum import Pendulum

    with pytest.raises(ModelError, match="sensor imu: the plant has no output 'position'"):
        Sensed(Pendulum(), {"imu": Imu(rate_hz=10.0)})


def test_profiles_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'profile = "typical"\n[gps]\noff = true\n[imu]\nrate_hz = 100.0\n[imu.tail]\nposition_m = [-1.0, 0, 0]\n'
    )
    profile = read_profile(str(path), Mover(), {"depth": {"noise_m": 0.5}, "dvl": {"off": True}})
    assert list(profile) == ["imu", "mag", "depth", "encoder", "current", "imu.tail"]
    assert (profile["imu"].rate_hz, profile["imu.tail"].position_m) == (100.0, (-1.0, 0.0, 0.0))
    assert profile["imu.tail"].gyro_noise_rad_s_rt_hz > 0.0  # type: ignore[attr-defined]
    assert profile["depth"].noise_m == 0.5  # type: ignore[attr-defined]
    path.write_text("[imu]\nrate = 1.0\n")
    with pytest.raises(ModelError, match=r"mine.toml: sensor imu: unknown key of sensor 'rate'"):
        read_profile(str(path), Mover())
    assert read_profile("ideal", Mover()) == {}
