"""What a person says of a sensor. The defaults of each class are a perfect one; TYPICAL holds named parts with what
their data sheets say.

rate_hz, phase_s, latency_s, jitter_s   when it samples, and how much later a sample is there (evenly spread over the
jitter)
dropout               share of samples that are lost
position_m            (3,) of its origin, body frame;  rotation_deg  roll, pitch, yaw of its axes against the body's
*_noise_..._rt_hz     density of white noise;  *_instability  lowest Allan deviation (in-run bias stability), with the
                      correlation time of the drift behind it, *_correlation_s
wander_*              standard deviation of an error that wanders slowly, with correlation_s
*_turn_on             standard deviation of the error that each power-on has anew
*_scale_error, *_misalignment_rad   (3,) of each axis; of rotation of the axes, in the order of x, y, z
*_range, *_resolution least and largest are +- range; 0: none
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

Vector = tuple[float, float, float]
_ZERO: Vector = (0.0, 0.0, 0.0)
_DEGREE = math.pi / 180.0


@dataclass(frozen=True)
class Sensor:
    """Timing and mounting, as every sensor has them."""

    rate_hz: float = 100.0
    phase_s: float = 0.0
    latency_s: float = 0.0
    jitter_s: float = 0.0
    dropout: float = 0.0
    position_m: Vector = _ZERO
    rotation_deg: Vector = _ZERO
    needs: ClassVar[tuple[str, ...]] = ("position", "quaternion", "velocity", "angular_velocity")


@dataclass(frozen=True)
class Imu(Sensor):
    """Gyroscope and accelerometer: outputs gyro (rad/s), accel (specific force, m/s2)."""

    rate_hz: float = 200.0
    gyro_noise_rad_s_rt_hz: float = 0.0
    gyro_instability_rad_s: float = 0.0
    gyro_correlation_s: float = 100.0
    gyro_turn_on_rad_s: float = 0.0
    gyro_scale_error: Vector = _ZERO
    gyro_misalignment_rad: Vector = _ZERO
    gyro_range_rad_s: float = 0.0
    gyro_resolution_rad_s: float = 0.0
    accel_noise_m_s2_rt_hz: float = 0.0
    accel_instability_m_s2: float = 0.0
    accel_correlation_s: float = 100.0
    accel_turn_on_m_s2: float = 0.0
    accel_scale_error: Vector = _ZERO
    accel_misalignment_rad: Vector = _ZERO
    accel_range_m_s2: float = 0.0
    accel_resolution_m_s2: float = 0.0


@dataclass(frozen=True)
class Magnetometer(Sensor):
    """Output field (T). The Earth's field is the World Magnetic Model's at a place and year (x east, y north, z up),
    or given.

    hard_iron_t (3,) T, soft_iron_error, soft_iron_misalignment_rad (3,): what the robot itself adds
    """

    rate_hz: float = 50.0
    field_t: Vector | None = None
    latitude_deg: float = 43.11
    longitude_deg: float = 5.94
    altitude_m: float = 0.0
    year: float = 2026.0
    noise_t: float = 0.0
    hard_iron_t: Vector = _ZERO
    soft_iron_error: Vector = _ZERO
    soft_iron_misalignment_rad: Vector = _ZERO
    range_t: float = 0.0
    resolution_t: float = 0.0


@dataclass(frozen=True)
class Depth(Sensor):
    """Output value (m below the water's surface), from pressure: of plants in water, with gravity.

    noise_m: standard deviation of a sample
    """

    rate_hz: float = 50.0
    noise_m: float = 0.0
    turn_on_m: float = 0.0
    wander_m: float = 0.0
    correlation_s: float = 300.0
    scale_error: float = 0.0
    resolution_m: float = 0.0


@dataclass(frozen=True)
class Dvl(Sensor):
    """Doppler velocity log: outputs velocity (m/s, over the ground), range (4, m, along the beams), valid. Three
    beams must reach the bottom, a plane at bottom_m (height, world). Of plants in water."""

    rate_hz: float = 10.0
    noise_m_s: float = 0.0
    turn_on_m_s: float = 0.0
    scale_error: Vector = _ZERO
    misalignment_rad: Vector = _ZERO
    limit_m_s: float = 0.0
    resolution_m_s: float = 0.0
    range_noise_m: float = 0.0
    least_range_m: float = 0.05
    range_m: float = 50.0
    beam_angle_deg: float = 22.5
    bottom_m: float = -20.0


@dataclass(frozen=True)
class Encoders(Sensor):
    """Output angle (rad), of the rods or joints: the plant's `of`."""

    rate_hz: float = 500.0
    of: str = ""
    noise_rad: float = 0.0
    turn_on_rad: float = 0.0
    resolution_rad: float = 0.0
    needs: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Currents(Sensor):
    """Output value (A), of the motors: the plant's torques `of`, over the torque of an ampere."""

    rate_hz: float = 500.0
    of: str = ""
    torque_constant_n_m_a: float = 1.0
    noise_a: float = 0.0
    turn_on_a: float = 0.0
    resolution_a: float = 0.0
    needs: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True)
class Gps(Sensor):
    """Outputs position (m, world) and valid: only where the antenna is above surface_m (height, world). None: 0.1 m
    below the surface of the plant's water; everywhere where there is none."""

    rate_hz: float = 5.0
    noise_m: float = 0.0
    wander_m: float = 0.0
    correlation_s: float = 60.0
    surface_m: float | None = None
    needs: ClassVar[tuple[str, ...]] = ("position", "quaternion")


@dataclass(frozen=True)
class Sight(Sensor):
    """Of one robot by another in a world (rtmms.world.sights): range (m), bearing (2, rad, azimuth and elevation in
    body axes), valid: not beyond limit_m, where that is not 0."""

    rate_hz: float = 10.0
    range_noise_m: float = 0.0
    range_turn_on_m: float = 0.0
    range_resolution_m: float = 0.0
    bearing_noise_rad: float = 0.0
    bearing_turn_on_rad: float = 0.0
    bearing_resolution_rad: float = 0.0
    limit_m: float = 0.0
    needs: ClassVar[tuple[str, ...]] = ("range", "bearing")


KINDS: Mapping[str, type[Sensor]] = {
    "imu": Imu, "mag": Magnetometer, "depth": Depth, "dvl": Dvl, "encoder": Encoders, "current": Currents, "gps": Gps,
}  # fmt: skip
"""By the name of a table, which is the first part of the sensor's outputs; 'imu.tail' is a second one of its kind."""

TYPICAL: Mapping[str, Mapping[str, Any]] = {
    # Xsens MTi 1-series data sheet: 0.007 deg/s/rt Hz, 10 deg/h, +-2000 deg/s; 120 ug/rt Hz, 30 ug, +-16 g
    "imu": {
        "latency_s": 2e-3, "jitter_s": 5e-4,
        "gyro_noise_rad_s_rt_hz": 0.007 * _DEGREE, "gyro_instability_rad_s": 10.0 * _DEGREE / 3600.0,
        "gyro_turn_on_rad_s": 0.1 * _DEGREE, "gyro_scale_error": (1e-3, -1e-3, 1e-3),
        "gyro_misalignment_rad": (5e-4, -5e-4, 5e-4), "gyro_range_rad_s": 2000.0 * _DEGREE,
        "gyro_resolution_rad_s": 4000.0 * _DEGREE / 65536.0,
        "accel_noise_m_s2_rt_hz": 120e-6 * 9.80665, "accel_instability_m_s2": 30e-6 * 9.80665,
        "accel_turn_on_m_s2": 2e-3 * 9.80665, "accel_scale_error": (1e-3, 1e-3, -1e-3),
        "accel_misalignment_rad": (5e-4, 5e-4, -5e-4), "accel_range_m_s2": 16.0 * 9.80665,
        "accel_resolution_m_s2": 32.0 * 9.80665 / 65536.0,
    },
    # PNI RM3100: 15 nT rms and 13 nT a count at 200 cycles, +-800 uT; what is left of the robot's iron after
    # calibration
    "mag": {
        "latency_s": 0.02, "noise_t": 15e-9, "resolution_t": 13e-9, "range_t": 800e-6,
        "hard_iron_t": (3e-7, -2e-7, 2e-7), "soft_iron_error": (2e-3, -2e-3, 1e-3),
    },
    # TE MS5837-30BA: 0.2 mbar of resolution, 2 mm of water; drift and turn-on as weather and warming leave after a
    # zero at the surface
    "depth": {"latency_s": 0.01, "noise_m": 2e-3, "resolution_m": 2e-3, "turn_on_m": 5e-3, "wander_m": 2e-3},
    # Water Linked DVL-A50: 0.05 to 50 m, 4 to 26 Hz, 1 mm/s in the long term, beams 22.5 deg from the axis
    "dvl": {
        "latency_s": 0.1, "jitter_s": 0.02, "dropout": 0.02, "noise_m_s": 5e-3, "turn_on_m_s": 1e-3,
        "scale_error": (2e-3, 2e-3, 2e-3), "limit_m_s": 3.75, "resolution_m_s": 1e-3, "range_noise_m": 0.02,
    },
    # ams AS5048A: 14 bits a turn, 0.06 deg rms
    "encoder": {"latency_s": 1e-3, "noise_rad": 0.06 * _DEGREE, "turn_on_rad": 0.05 * _DEGREE,
                "resolution_rad": 2.0 * math.pi / 16384.0},
    # a shunt read with 12 bits over +-20 A
    "current": {"latency_s": 1e-3, "noise_a": 0.02, "turn_on_a": 0.05, "resolution_a": 40.0 / 4096.0},
    # u-blox M9: 25 Hz at most; 1.5 m, of which most wanders slowly
    "gps": {"latency_s": 0.15, "noise_m": 0.3, "wander_m": 1.5},
    # an acoustic beacon as small robots carry (Blueprint Subsea SeaTrac X150): 0.05 m, 1 deg, one fix a second
    "sight": {
        "rate_hz": 1.0, "latency_s": 0.3, "dropout": 0.05, "range_noise_m": 0.05, "bearing_noise_rad": _DEGREE,
        "bearing_turn_on_rad": 0.5 * _DEGREE, "limit_m": 1000.0,
    },
}  # fmt: skip
