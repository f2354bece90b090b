"""Frames against scipy's rotations and known places, and there and back again."""

from __future__ import annotations

import subprocess
import sys
from math import degrees, pi, radians

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rtmms
from rtmms.base import attitude as rotations
from rtmms_bridges.motion import frames

RNG = np.random.default_rng(5)
BEARINGS = [0.0, pi / 2, pi, -0.7, 2.0]
FLU_FRD = np.diag([1.0, -1.0, -1.0])


def random_attitude() -> tuple[Rotation, tuple[float, ...]]:
    r = Rotation.random(random_state=int(RNG.integers(1 << 30)))
    return r, frames.wxyz(r.as_quat())


def matrix(bearing: float) -> np.ndarray:
    """World to NED, from where its axes point: x at the bearing, y a quarter turn to the left of it, z up."""
    x = [np.cos(bearing), np.sin(bearing), 0.0]
    y = [np.cos(bearing - pi / 2), np.sin(bearing - pi / 2), 0.0]
    return np.array([x, y, [0.0, 0.0, -1.0]]).T


@pytest.mark.parametrize("bearing", BEARINGS)
def test_vectors_of_the_world(bearing: float) -> None:
    for _ in range(20):
        v = RNG.normal(size=3)
        ned = frames.world_to_ned(v, bearing)
        np.testing.assert_allclose(ned, matrix(bearing) @ v, atol=1e-14)
        np.testing.assert_allclose(frames.ned_to_world(ned, bearing), v, atol=1e-14)
        enu = frames.world_to_enu(v, bearing)
        np.testing.assert_allclose(enu, [ned[1], ned[0], -ned[2]], atol=1e-14)
        np.testing.assert_allclose(frames.enu_to_world(enu, bearing), v, atol=1e-14)


def test_the_default_world_is_enu() -> None:
    assert frames.world_to_ned((1.0, 2.0, 3.0)) == pytest.approx((2.0, 1.0, -3.0))
    assert frames.world_to_enu((1.0, 2.0, 3.0)) == pytest.approx((1.0, 2.0, 3.0))
    roll, pitch, yaw = rotations.euler(frames.attitude_to_ned((1.0, 0.0, 0.0, 0.0)))
    assert (roll, pitch, degrees(yaw)) == pytest.approx((0.0, 0.0, 90.0))  # no rotation looks east


@pytest.mark.parametrize("bearing", BEARINGS)
def test_attitudes(bearing: float) -> None:
    for _ in range(20):
        r, q = random_attitude()
        ned = frames.attitude_to_ned(q, bearing)
        theirs = Rotation.from_quat(frames.xyzw(ned)).as_matrix()
        np.testing.assert_allclose(theirs, matrix(bearing) @ r.as_matrix() @ FLU_FRD, atol=1e-14)
        assert ned[0] >= 0
        np.testing.assert_allclose(frames.attitude_to_world(ned, bearing), rotations.upright(q), atol=1e-14)
        enu = Rotation.from_quat(frames.xyzw(frames.attitude_to_enu(q, bearing))).as_matrix()
        enu_of_ned = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1.0]])
        np.testing.assert_allclose(enu, enu_of_ned @ matrix(bearing) @ r.as_matrix(), atol=1e-14)


@pytest.mark.parametrize("bearing", BEARINGS)
def test_a_vector_of_the_body_goes_either_way_to_the_same_place(bearing: float) -> None:
    for _ in range(20):
        _, q = random_attitude()
        v = tuple(RNG.normal(size=3))
        over_world = frames.world_to_ned(rotations.rotate(q, v), bearing)
        over_frd = rotations.rotate(frames.attitude_to_ned(q, bearing), frames.flu_frd(v))
        np.testing.assert_allclose(over_world, over_frd, atol=1e-14)


def test_rotation_product_and_orders() -> None:
    for _ in range(20):
        r, q = random_attitude()
        s, p = random_attitude()
        v = RNG.normal(size=3)
        np.testing.assert_allclose(rotations.rotate(q, v), r.apply(v), atol=1e-14)
        np.testing.assert_allclose(rotations.rotate_back(q, rotations.rotate(q, v)), v, atol=1e-14)
        product = Rotation.from_quat(frames.xyzw(rotations.multiply(p, q))).as_matrix()
        np.testing.assert_allclose(product, (s * r).as_matrix(), atol=1e-14)
        assert frames.wxyz(frames.xyzw(q)) == q
        np.testing.assert_allclose(rotations.cross(v, (1.0, 2.0, 3.0)), np.cross(v, [1.0, 2.0, 3.0]), atol=1e-14)
        assert frames.flu_frd(frames.flu_frd(v)) == tuple(v)


def test_euler_angles() -> None:
    for _ in range(50):
        r, q = random_attitude()
        yaw, pitch, roll = r.as_euler("ZYX")
        np.testing.assert_allclose(rotations.euler(q), (roll, pitch, yaw), atol=1e-12)
        np.testing.assert_allclose(rotations.from_euler(roll, pitch, yaw), rotations.upright(q), atol=1e-12)


@pytest.mark.parametrize("pitch", [pi / 2, -pi / 2])
def test_euler_angles_straight_up_and_down(pitch: float) -> None:
    q = rotations.from_euler(0.3, pitch, 1.0)
    np.testing.assert_allclose(
        Rotation.from_quat(frames.xyzw(rotations.from_euler(*rotations.euler(q)))).as_matrix(),
        Rotation.from_quat(frames.xyzw(q)).as_matrix(), atol=1e-7,
    )  # fmt: skip


def test_known_places_on_the_earth() -> None:
    # a degree of longitude on the equator, 2 pi a / 360 = 111319.4908 m as an arc; its chord and sagitta in the plane
    home = frames.Home()
    a = 6378137.0
    lat, lon, alt = home.geodetic((a * np.sin(radians(1.0)), 0.0, a * np.cos(radians(1.0)) - a))
    assert (lat, lon, alt) == pytest.approx((0.0, 1.0, 0.0), abs=1e-8)
    # the poles are b = a (1 - f) from the centre
    b = a * (1 - 1 / 298.257223563)
    assert frames.Home(lat_deg=90.0).geodetic((0.0, 0.0, 100.0))[0::2] == pytest.approx((90.0, 100.0), abs=1e-6)
    assert home.position(90.0, 0.0, 0.0) == pytest.approx((0.0, b, -a), abs=1e-6)


@pytest.mark.parametrize("lat", [-89.0, -33.9, 0.0, 47.397742, 71.0])
def test_a_short_way_by_the_radii_of_curvature(lat: float) -> None:
    """Independent of the centre of the earth: dlat = north / (M + h), dlon = east / ((N + h) cos lat)."""
    e2 = 6.69437999014e-3
    w = 1 - e2 * np.sin(radians(lat)) ** 2
    m, n = 6378137.0 * (1 - e2) / w**1.5, 6378137.0 / np.sqrt(w)
    home = frames.Home(lat_deg=lat, lon_deg=8.5, alt_m=400.0)
    result = home.geodetic((3.0, 4.0, 5.0))  # east, north, up
    assert result[0] == pytest.approx(lat + degrees(4.0 / (m + 400.0)), abs=1e-9)
    assert result[1] == pytest.approx(8.5 + degrees(3.0 / ((n + 400.0) * np.cos(radians(lat)))), abs=1e-7)
    assert result[2] == pytest.approx(405.0, abs=1e-5)


def test_there_and_back_over_the_earth() -> None:
    for bearing in (90.0, 0.0, 33.0):
        home = frames.Home(lat_deg=47.397742, lon_deg=-122.5, alt_m=488.0, x_bearing_deg=bearing)
        for _ in range(20):
            p = RNG.normal(size=3) * 1e4
            np.testing.assert_allclose(home.position(*home.geodetic(p)), p, atol=1e-6)


def test_the_world_turned_against_north() -> None:
    home = frames.Home(lat_deg=10.0, lon_deg=20.0, x_bearing_deg=0.0)
    lat, lon, _ = home.geodetic((1000.0, 0.0, 0.0))
    assert lat > 10.005
    assert lon == pytest.approx(20.0, abs=1e-12)


@pytest.mark.parametrize("wrong", [{"lat_deg": 91.0}, {"lon_deg": float("nan")}, {"alt_m": float("inf")}])
def test_a_home_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(rtmms.ModelError, match=next(iter(wrong))):
        frames.Home(**wrong)


def test_whole_numbers_are_limited_not_wrapped() -> None:
    assert frames.to_integer(47.3977419, 1e7) == 473977419
    assert frames.to_integer(1e12) == (1 << 31) - 1
    assert frames.to_integer(-1e12) == -(1 << 31)
    assert frames.to_integer(-1.0, bits=16, signed=False) == 0
    assert frames.to_integer(40.0, 1000.0, bits=16) == 32767
    with pytest.raises(ValueError, match="finite"):
        frames.to_integer(float("nan"))


def test_bearings() -> None:
    assert frames.bearing_deg(-pi / 2) == pytest.approx(270.0)
    assert 0.0 <= frames.bearing_deg(-1e-18) < 360.0


@pytest.mark.full
def test_frames_need_no_array_library() -> None:
    program = (
        "import sys, rtmms_bridges.motion.pose, rtmms_bridges.motion.imu, rtmms_bridges.template\n"
        "import rtmms.bridging.runner\n"
        "print([name for name in ('numba', 'scipy', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
