"""Sensors of an autopilot in a simulation, as MAVLink messages: IMU, compass, barometer, GPS, and the truth."""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, exp, hypot, sqrt
from random import Random
from typing import Any

from rtmms.base.attitude import Vector, rotate_back
from rtmms.wire.protocol.received_state import PlantInfo, State

from ..motion.frames import GRAVITY, Home, bearing_deg, flu_frd, ned_to_world, to_integer
from ..motion.imu import Imu
from ..motion.pose import Motion

ACCEL = 0x7
"""Bits of the accelerometer in HIL_SENSOR.fields_updated."""
GYRO = 0x38
"""Bits of the gyroscope in HIL_SENSOR.fields_updated."""
MAG = 0x1C0
"""Bits of the magnetometer in HIL_SENSOR.fields_updated."""
BARO = 0x200 | 0x800 | 0x1000
"""Bits of the barometer in HIL_SENSOR.fields_updated; an autopilot accepts it only with all three."""

_SLOW_M_S = 0.1

# standard deviations of the white noise of one reading: m/s2, rad/s, gauss, m (as a pressure), m, m/s
NOISE = {"accel": 0.02, "gyro": 0.002, "mag": 0.002, "baro": 0.1, "gps": 0.02, "gps_velocity": 0.02}
WANDER = {"gps": 0.04, "gps_velocity": 0.01}
"""Standard deviations of slow errors of a receiver with corrections (RTK), m and m/s."""
CORRELATION_S = 60.0
"""Time constant of those errors, s, as of the sensor `gps` (rtmms.sensing.data_sheets.Gps)."""


class GaussMarkovError:
    """Error of three axes that changes slowly: Gauss-Markov of first order, from its stationary distribution.

    Parameters
    ----------
    deviation : float
        Standard deviation of an axis at any time, in the unit of the errors.
    random : Random
        Source of the errors.
    """

    def __init__(self, deviation: float, random: Random) -> None:
        self._deviation, self._random = deviation, random
        self._error, self._time_us = [0.0, 0.0, 0.0], -1

    def __call__(self, time_us: int) -> Vector:
        """Return the error at a time that is not before the last one, us."""
        if not self._deviation:
            return 0.0, 0.0, 0.0
        lapse_s = (time_us - self._time_us) * 1e-6
        keep = exp(-lapse_s / CORRELATION_S) if self._time_us >= 0 else 0.0
        fresh = self._deviation * sqrt(1.0 - keep * keep)
        self._error = [keep * item + self._random.gauss(0.0, fresh) for item in self._error]
        self._time_us = time_us
        x, y, z = self._error
        return x, y, z


def pressure_hpa(altitude_m: float) -> float:
    """Return the pressure of the standard atmosphere below 11 km; below 0 m the same law continues.

    An altimeter computes the altitude from it. So a robot under water also has it, although the water's pressure
    differs.

    Parameters
    ----------
    altitude_m : float
        Altitude, m.

    Returns
    -------
    float
        Pressure, hPa.

    Notes
    -----
    ISO 2533: 288.15 K, 6.5 K/km.
    """
    return 1013.25 * float(max(1e-3, 1.0 - 2.25577e-5 * altitude_m) ** 5.25588)  # ISO 2533: 288.15 K, 6.5 K/km


def earth_field(home: Home, year: float = 2026.0) -> Vector:
    """Return the earth's magnetic field at a place, by the World Magnetic Model.

    Parameters
    ----------
    home : Home
        The place.
    year : float, default 2026.0
        Decimal year.

    Returns
    -------
    Vector
        North, east, down, gauss.
    """
    from pygeomag import GeoMag

    result = GeoMag().calculate(glat=home.lat_deg, glon=home.lon_deg, alt=home.alt_m * 1e-3, time=year)
    return result.x * 1e-5, result.y * 1e-5, result.z * 1e-5  # nT


@dataclass(frozen=True, slots=True)
class Read:
    """Readings of the plant's own sensors, in their axes, FLU; None for no reading, or none yet.

    Parameters
    ----------
    accel : Vector | None, optional
        Specific force, m/s2.
    gyro : Vector | None, optional
        Angular velocity, rad/s.
    field : Vector | None, optional
        Magnetic field, gauss.
    height : float | None, optional
        Height above the surface, m.
    position : Vector | None, optional
        Position of the receiver, m, world.
    has_fix : bool, default True
        Whether the receiver has a position.
    """

    accel: Vector | None = None
    gyro: Vector | None = None
    field: Vector | None = None
    height: float | None = None
    position: Vector | None = None
    has_fix: bool = True


class OwnSensors:
    """Readings of a plant's own sensors, from its states.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Attributes
    ----------
    names : tuple of str
        Its sensors among imu, mag, depth and gps.
    """

    def __init__(self, plant: PlantInfo) -> None:
        had = {channel.name for channel in plant.outputs if channel.name in plant.selected}
        needs = {"imu": ("accel", "gyro"), "mag": ("field",), "depth": ("value",), "gps": ("position", "valid")}
        self.names = tuple(
            name for name, readings in needs.items() if {f"{name}.{reading}" for reading in (*readings, "time")} <= had
        )  # fmt: skip

    def __call__(self, state: State) -> Read:
        """Return the readings in a state."""
        get = state.outputs
        ready = {name for name in self.names if get[f"{name}.time"] >= 0.0}
        tesla = get["mag.field"] if "mag" in ready else None
        return Read(
            tuple(get["imu.accel"]) if "imu" in ready else None, tuple(get["imu.gyro"]) if "imu" in ready else None,
            None if tesla is None else (tesla[0] * 1e4, tesla[1] * 1e4, tesla[2] * 1e4),
            -get["depth.value"] if "depth" in ready else None,
            tuple(get["gps.position"]) if "gps" in ready else None, "gps" not in ready or bool(get["gps.valid"]),
        )  # fmt: skip


class Sensors:
    """Readings of ideal sensors with noise, for sensors that the plant does not have.

    The noise is white; the receiver has a slow error in addition. The same seed gives the same readings.

    Parameters
    ----------
    home : Home
        Place of the world's origin.
    field_ned : Vector
        The earth's magnetic field, gauss, NED.
    noise : float
        Factor on NOISE and WANDER; 0: none. Autopilots reject a sensor with a constant reading as broken.
    seed : int
        Seed of the noise.
    gravity : float, default GRAVITY
        Gravity at the accelerometer, m/s2.
    """

    def __init__(self, home: Home, field_ned: Vector, noise: float, seed: int, gravity: float = GRAVITY) -> None:
        from pymavlink.dialects.v20 import common

        self._of = common
        self._home, self._field, self._noise, self._seed, self._gravity = home, field_ned, noise, seed, gravity
        self.clear()

    def clear(self) -> None:
        """Reset to the start."""
        self._imu, self._force = Imu(self._gravity), (0.0, 0.0, self._gravity)
        self._random = Random(self._seed)
        self._wander = {
            name: GaussMarkovError(deviation * self._noise, Random(f"{name} {self._seed}"))
            for name, deviation in WANDER.items()
        }  # fmt: skip
        self._read = Read()

    def feel(self, motion: Motion, read: Read | None = None) -> None:
        """Read a state once, before its messages are made.

        Parameters
        ----------
        motion : Motion
            Motion of the robot.
        read : Read | None, optional
            Readings of the plant's own sensors; None for none.
        """
        self._force, self._read = self._imu.specific_force(motion), read or Read()

    def imu(self, motion: Motion, time_us: int, fields: int) -> Any:
        """Return HIL_SENSOR.

        Parameters
        ----------
        motion : Motion
            Motion of the robot.
        time_us : int
            Time stamp, us.
        fields : int
            Bits of the values to fill; the others are 0.

        Returns
        -------
        Any
            The message.
        """
        read = self._read
        a = self._blurred(flu_frd(self._force), "accel") if read.accel is None else flu_frd(read.accel)
        w = self._blurred(motion.rate_frd, "gyro") if read.gyro is None else flu_frd(read.gyro)
        b: Vector = (0.0, 0.0, 0.0)
        pressure = height = temperature = 0.0
        if fields & MAG:
            world = ned_to_world(self._field, self._home.x_bearing)
            there = rotate_back(motion.attitude, world)
            b = self._blurred(flu_frd(there), "mag") if read.field is None else flu_frd(read.field)
        if fields & BARO:
            above = motion.position[2] + self._blur("baro") if read.height is None else read.height
            height = self._home.alt_m + above
            pressure, temperature = pressure_hpa(height), 15.0
        return self._of.MAVLink_hil_sensor_message(time_us, *a, *w, *b, pressure, 0.0, height, temperature, fields, 0)

    def gps(self, motion: Motion, time_us: int) -> Any:
        """Return HIL_GPS.

        Parameters
        ----------
        motion : Motion
            Motion of the robot.
        time_us : int
            Time stamp, us.

        Returns
        -------
        Any
            The message.
        """
        read = self._read.position
        position = self._received(motion.position, "gps", time_us) if read is None else read
        lat, lon, alt = self._home.geodetic(position)
        _, _, velocity = motion.ned(self._home.x_bearing)
        north, east, down = self._received(velocity, "gps_velocity", time_us)
        speed = hypot(north, east)
        course = to_integer(bearing_deg(atan2(east, north)), 100, 16, False) % 36000 if speed > _SLOW_M_S else 65535
        return self._of.MAVLink_hil_gps_message(
            time_us, 3 if self._read.has_fix else 0, to_integer(lat, 1e7), to_integer(lon, 1e7), to_integer(alt, 1e3),
            30, 40, to_integer(speed, 100, 16, False), *(to_integer(v, 100, 16) for v in (north, east, down)),
            course, 12, 0, 0,
        )  # fmt: skip

    def truth(self, motion: Motion, time_us: int) -> Any:
        """Return HIL_STATE_QUATERNION; the acceleration is the body's own, without gravity.

        Parameters
        ----------
        motion : Motion
            Motion of the robot.
        time_us : int
            Time stamp, us.

        Returns
        -------
        Any
            The message.
        """
        f, up = self._force, rotate_back(motion.attitude, (0.0, 0.0, self._gravity))
        acceleration = (f[0] - up[0], f[1] - up[1], f[2] - up[2])
        lat, lon, alt = self._home.geodetic(motion.position)
        _, attitude, velocity = motion.ned(self._home.x_bearing)
        return self._of.MAVLink_hil_state_quaternion_message(
            time_us, list(attitude), *motion.rate_frd, to_integer(lat, 1e7), to_integer(lon, 1e7), to_integer(alt, 1e3),
            *(to_integer(v, 100, 16) for v in velocity), 0, 0,
            *(to_integer(a, 1e3 / GRAVITY, 16) for a in flu_frd(acceleration)),
        )  # fmt: skip

    def _received(self, truth: Vector, kind: str, time_us: int) -> Vector:
        """Return a vector with the receiver's slow and white errors."""
        slow, (x, y, z) = self._wander[kind](time_us), self._blurred(truth, kind)
        return x + slow[0], y + slow[1], z + slow[2]

    def _blur(self, kind: str) -> float:
        return self._random.gauss(0.0, NOISE[kind] * self._noise) if self._noise else 0.0

    def _blurred(self, v: Vector, kind: str) -> Vector:
        return v[0] + self._blur(kind), v[1] + self._blur(kind), v[2] + self._blur(kind)
