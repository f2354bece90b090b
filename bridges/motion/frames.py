"""Frames, units and orders of quaternions: the one place where bridges convert.

It is plain Python without an array library. Ours: world z up, body x forward, y left, z up (FLU); quaternions (w, x, y,
z) turn body components into world components; SI and radians. Others: NED worlds, FRD bodies, (x, y, z, w), degrees and
whole numbers. docs/bridges.md has the table.

The world's x axis points to the compass bearing `x_bearing` (rad, clockwise from north). pi/2, the default everywhere,
is east: the world is ENU, and a robot at rest at the origin, with no rotation, looks east. 0 is north (NWU).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, cos, degrees, hypot, isfinite, pi, radians, sin, sqrt
from typing import Annotated

from rtmms.base.attitude import Quaternion, Vector, multiply, upright
from rtmms.base.parameters import Parameter, check_parameters

EAST = pi / 2.0
GRAVITY = 9.80665

_FLU_FRD: Quaternion = (0.0, 1.0, 0.0, 0.0)  # half a turn about x, its own inverse


# -- vectors --------------------------------------------------------------------------------------------------------


def flu_frd(v: Sequence[float]) -> Vector:
    """Return body components x forward y left z up as x forward y right z down, and the reverse.

    Parameters
    ----------
    v : Sequence[float]
        Components, also of an angular velocity.

    Returns
    -------
    Vector
        Components in the other frame.

    Examples
    --------
    >>> flu_frd((1.0, 2.0, 3.0))
    (1.0, -2.0, -3.0)
    """
    return v[0], -v[1], -v[2]


def world_to_ned(v: Sequence[float], x_bearing: float = EAST) -> Vector:
    """Return world components (z up) as north, east, down.

    Parameters
    ----------
    v : Sequence[float]
        Components of a position, velocity, force or angular velocity.
    x_bearing : float, default EAST
        Compass bearing of the world's x axis, rad.

    Returns
    -------
    Vector
        North, east, down.
    """
    c, s = cos(x_bearing), sin(x_bearing)
    return c * v[0] + s * v[1], s * v[0] - c * v[1], -v[2]


def ned_to_world(v: Sequence[float], x_bearing: float = EAST) -> Vector:
    """Return north, east, down as world components, by the same half turn.

    Parameters
    ----------
    v : Sequence[float]
        North, east, down.
    x_bearing : float, default EAST
        Compass bearing of the world's x axis, rad.

    Returns
    -------
    Vector
        World components.
    """
    return world_to_ned(v, x_bearing)


def world_to_enu(v: Sequence[float], x_bearing: float = EAST) -> Vector:
    """Return world components as east, north, up; the identity if x points east.

    Parameters
    ----------
    v : Sequence[float]
        World components.
    x_bearing : float, default EAST
        Compass bearing of the world's x axis, rad.

    Returns
    -------
    Vector
        East, north, up.
    """
    north, east, down = world_to_ned(v, x_bearing)
    return east, north, -down


def enu_to_world(v: Sequence[float], x_bearing: float = EAST) -> Vector:
    """Return east, north, up as world components.

    Parameters
    ----------
    v : Sequence[float]
        East, north, up.
    x_bearing : float, default EAST
        Compass bearing of the world's x axis, rad.

    Returns
    -------
    Vector
        World components.
    """
    return world_to_ned((v[1], v[0], -v[2]), x_bearing)


# -- attitudes ------------------------------------------------------------------------------------------------------


def attitude_to_ned(q: Sequence[float], x_bearing: float = EAST) -> Quaternion:
    """Return an attitude FLU to world as FRD to NED.

    Parameters
    ----------
    q : Sequence[float]
        Quaternion (w, x, y, z).
    x_bearing : float, default EAST
        Compass bearing of the world's x axis, rad.

    Returns
    -------
    Quaternion
        Quaternion (w, x, y, z) with w >= 0.

    Notes
    -----
    R_ned = C R C', where C are the half turns of the two frames.
    """
    half = 0.5 * x_bearing
    return upright(multiply(multiply((0.0, cos(half), sin(half), 0.0), q), _FLU_FRD))


def attitude_to_world(q: Sequence[float], x_bearing: float = EAST) -> Quaternion:
    """Return an attitude FRD to NED as FLU to world, by the same formula.

    Parameters
    ----------
    q : Sequence[float]
        Quaternion (w, x, y, z).
    x_bearing : float, default EAST
        Compass bearing of the world's x axis, rad.

    Returns
    -------
    Quaternion
        Quaternion (w, x, y, z) with w >= 0.
    """
    return attitude_to_ned(q, x_bearing)


def attitude_to_enu(q: Sequence[float], x_bearing: float = EAST) -> Quaternion:
    """Return an attitude FLU to world as FLU to ENU: a turn about the vertical.

    Parameters
    ----------
    q : Sequence[float]
        Quaternion (w, x, y, z).
    x_bearing : float, default EAST
        Compass bearing of the world's x axis, rad.

    Returns
    -------
    Quaternion
        Quaternion (w, x, y, z) with w >= 0.
    """
    half = 0.5 * (EAST - x_bearing)
    return upright(multiply((cos(half), 0.0, 0.0, sin(half)), q))


def xyzw(q: Sequence[float]) -> Quaternion:
    """Return (w, x, y, z) as (x, y, z, w), the order of Foxglove, ROS, LCM and scipy.

    Parameters
    ----------
    q : Sequence[float]
        Quaternion (w, x, y, z).

    Returns
    -------
    Quaternion
        Quaternion (x, y, z, w).
    """
    return q[1], q[2], q[3], q[0]


def wxyz(q: Sequence[float]) -> Quaternion:
    """Return (x, y, z, w) as (w, x, y, z), the order of MAVLink, ArduPilot and ours.

    Parameters
    ----------
    q : Sequence[float]
        Quaternion (x, y, z, w).

    Returns
    -------
    Quaternion
        Quaternion (w, x, y, z).
    """
    return q[3], q[0], q[1], q[2]


# -- places on the earth --------------------------------------------------------------------------------------------

_A = 6378137.0  # WGS 84
_F = 1.0 / 298.257223563
_E2 = _F * (2.0 - _F)


@dataclass(frozen=True, kw_only=True)
class Home:
    """Place of the world's origin on the earth, and bearing of the world.

    A protocol with the altitude above the sea gets the one above the ellipsoid.

    The declaration of each field has its meaning, unit and range.

    Examples
    --------
    >>> lat, lon, alt = Home(lat_deg=47.4, lon_deg=8.5).geodetic((0.0, 0.0, 2.0))
    >>> round(lat, 6), round(lon, 6), round(alt, 6)
    (47.4, 8.5, 2.0)
    """

    lat_deg: Annotated[float, Parameter("Latitude, WGS 84.", "deg", signed=True, le=90)] = 0.0
    lon_deg: Annotated[float, Parameter("Longitude, WGS 84.", "deg", signed=True, le=180)] = 0.0
    alt_m: Annotated[float, Parameter("Altitude above the ellipsoid.", "m", signed=True)] = 0.0
    x_bearing_deg: Annotated[float, Parameter(
        "Compass bearing of the world's x axis: 90 east (ENU), 0 north.", "deg", signed=True,
    )] = 90.0  # fmt: skip

    def __post_init__(self) -> None:
        """Check the values."""
        check_parameters("", self)

    @property
    def x_bearing(self) -> float:
        """Compass bearing of the world's x axis, rad."""
        return radians(self.x_bearing_deg)

    def geodetic(self, position: Sequence[float]) -> Vector:
        """Return the geodetic coordinates of a world position, exact on the ellipsoid.

        Parameters
        ----------
        position : Sequence[float]
            Position, m, world.

        Returns
        -------
        Vector
            Latitude and longitude, deg, and altitude, m.
        """
        east, north, up = world_to_enu(position, self.x_bearing)
        lat, lon = radians(self.lat_deg), radians(self.lon_deg)
        x0, y0, z0 = _ecef(lat, lon, self.alt_m)
        along = cos(lat) * up - sin(lat) * north  # away from the axis, in the home's meridian
        x = x0 + cos(lon) * along - sin(lon) * east
        y = y0 + sin(lon) * along + cos(lon) * east
        lat, lon, alt = _geodetic(x, y, z0 + cos(lat) * north + sin(lat) * up)
        return degrees(lat), degrees(lon), alt

    def position(self, lat_deg: float, lon_deg: float, alt_m: float) -> Vector:
        """Return the world position of geodetic coordinates.

        Parameters
        ----------
        lat_deg, lon_deg : float
            Latitude and longitude, deg.
        alt_m : float
            Altitude above the ellipsoid, m.

        Returns
        -------
        Vector
            Position, m, world.
        """
        lat, lon = radians(self.lat_deg), radians(self.lon_deg)
        x0, y0, z0 = _ecef(lat, lon, self.alt_m)
        x, y, z = _ecef(radians(lat_deg), radians(lon_deg), alt_m)
        x, y, z = x - x0, y - y0, z - z0
        along = cos(lon) * x + sin(lon) * y
        east, north = cos(lon) * y - sin(lon) * x, cos(lat) * z - sin(lat) * along
        return enu_to_world((east, north, cos(lat) * along + sin(lat) * z), self.x_bearing)


def _ecef(lat: float, lon: float, alt: float) -> Vector:
    n = _A / sqrt(1.0 - _E2 * sin(lat) ** 2)
    return (n + alt) * cos(lat) * cos(lon), (n + alt) * cos(lat) * sin(lon), (n * (1.0 - _E2) + alt) * sin(lat)


def _geodetic(x: float, y: float, z: float) -> Vector:
    """Return latitude, longitude and altitude of a point.

    A fixed-point iteration finds the latitude; its error is 1e-12 rad after a few rounds anywhere near the surface.
    """
    p = hypot(x, y)
    lat = atan2(z, p * (1.0 - _E2))
    for _ in range(8):
        n = _A / sqrt(1.0 - _E2 * sin(lat) ** 2)
        lat = atan2(z + _E2 * n * sin(lat), p)
    n = _A / sqrt(1.0 - _E2 * sin(lat) ** 2)
    alt = p * cos(lat) + z * sin(lat) - _A * _A / n  # stays sound at the poles
    return lat, atan2(y, x), alt


# -- units ----------------------------------------------------------------------------------------------------------


def to_integer(value: float, scale: float = 1.0, bits: int = 32, signed: bool = True) -> int:
    """Return value * scale as the nearest whole number of some bits, clamped to their range.

    Protocols count in degrees times 1e7, mm, cm/s, mG. A number that wrapped round would be worse than a clamped one.

    Parameters
    ----------
    value : float
        The number.
    scale : float, default 1.0
        Its factor.
    bits : int, default 32
        Number of bits.
    signed : bool, default True
        Whether the whole number has a sign.

    Returns
    -------
    int
        The whole number.

    Raises
    ------
    ValueError
        If the number is not finite.

    Examples
    --------
    >>> to_integer(1.26, 100.0, 8)
    126
    """
    if not isfinite(value):
        raise ValueError(f"expected a finite number, got {value}")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return min(high, max(low, round(value * scale)))


def bearing_deg(yaw: float) -> float:
    """Return an aircraft's yaw as a compass bearing.

    Parameters
    ----------
    yaw : float
        Yaw, rad.

    Returns
    -------
    float
        Bearing in [0, 360) deg.
    """
    return degrees(yaw) % 360.0 % 360.0
