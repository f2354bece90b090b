"""Keys of sensors, each declared once.

The defaults of each class are a perfect sensor. TYPICAL has named parts with the numbers of their data sheets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from rtmms.base.parameters import Parameter

Vector = tuple[float, float, float]
_ZERO: Vector = (0.0, 0.0, 0.0)
_DEGREE = math.pi / 180.0
_MISALIGNED = "Rotation of the axes against their nominal directions, about x, y, z, to first order."
_SCALE = "Relative error of the scale of each axis."
_RESOLUTION = "Step of quantization; 0: none."
_TURN_ON = "Standard deviation of the constant error that each start draws anew."
_WANDER = "Standard deviation of an error that changes slowly."
_CORRELATION = "Correlation time of the drift."
_WHITE = "Standard deviation of the white noise of a sample."


@dataclass(frozen=True)
class Sensor:
    """Timing and mounting of every sensor.

    Attributes
    ----------
    rate_hz : float, default 100.0
        Samples per second, at most one a step of the plant. Unit: Hz.
    phase_s : float, default 0.0
        Time of the first sample. Unit: s.
    latency_s : float, default 0.0
        Time from a sample to its delivery. Unit: s.
    jitter_s : float, default 0.0
        Maximum of a further delay, uniform from 0; samples keep their order. Unit: s.
    dropout : float, default 0.0
        Share of lost samples.
    position_m : Vector, default (0, 0, 0)
        Place of the sensor, body axes. Unit: m.
    rotation_deg : Vector, default (0, 0, 0)
        Roll, pitch, yaw of the sensor's axes against the body's. Unit: deg.
    """

    # fmt: off
    rate_hz: Annotated[float, Parameter("Samples per second, at most one a step of the plant.", "Hz")] = 100.0
    phase_s: Annotated[float, Parameter("Time of the first sample.", "s", ge=0)] = 0.0
    latency_s: Annotated[float, Parameter("Time from a sample to its delivery.", "s", ge=0)] = 0.0
    jitter_s: Annotated[float, Parameter(
        "Maximum of a further delay, uniform from 0; samples keep their order.", "s", ge=0,
    )] = 0.0
    dropout: Annotated[float, Parameter("Share of lost samples.", ge=0, le=1)] = 0.0
    position_m: Annotated[Vector, Parameter("Place of the sensor, body axes.", "m", signed=True)] = _ZERO
    rotation_deg: Annotated[Vector, Parameter(
        "Roll, pitch, yaw of the sensor's axes against the body's.", "deg", signed=True,
    )] = _ZERO
    needs: ClassVar[tuple[str, ...]] = ("position", "quaternion", "velocity", "angular_velocity")
    aboard: ClassVar[bool] = True
    """Whether the profile `typical` has one."""
    # fmt: on


@dataclass(frozen=True)
class Imu(Sensor):
    """Gyroscope and accelerometer, with the outputs gyro (rad/s) and accel (specific force, m/s2).

    Attributes
    ----------
    rate_hz : float, default 200.0
        Samples per second, Hz.
    gyro_noise_rad_s_rt_hz : float, default 0.0
        Density of the white noise. Unit: rad/s/sqrt(Hz).
    gyro_instability_rad_s : float, default 0.0
        Lowest Allan deviation (bias stability), from which the size of the drift follows. Unit: rad/s.
    gyro_correlation_s : float, default 100.0
        Correlation time of the drift. Unit: s.
    gyro_turn_on_rad_s : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: rad/s.
    gyro_scale_error : Vector, default (0, 0, 0)
        Relative error of the scale of each axis.
    gyro_misalignment_rad : Vector, default (0, 0, 0)
        Rotation of the axes against their nominal directions, about x, y, z, to first order. Unit: rad.
    gyro_range_rad_s : float, default 0.0
        Largest reading in size; 0: no limit. Unit: rad/s.
    gyro_resolution_rad_s : float, default 0.0
        Step of quantization; 0: none. Unit: rad/s.
    accel_noise_m_s2_rt_hz : float, default 0.0
        Density of the white noise. Unit: m/s2/sqrt(Hz).
    accel_instability_m_s2 : float, default 0.0
        Lowest Allan deviation (bias stability), from which the size of the drift follows. Unit: m/s2.
    accel_correlation_s : float, default 100.0
        Correlation time of the drift. Unit: s.
    accel_turn_on_m_s2 : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: m/s2.
    accel_scale_error : Vector, default (0, 0, 0)
        Relative error of the scale of each axis.
    accel_misalignment_rad : Vector, default (0, 0, 0)
        Rotation of the axes against their nominal directions, about x, y, z, to first order. Unit: rad.
    accel_range_m_s2 : float, default 0.0
        Largest reading in size; 0: no limit. Unit: m/s2.
    accel_resolution_m_s2 : float, default 0.0
        Step of quantization; 0: none. Unit: m/s2.

    Examples
    --------
    >>> from rtmms.sensing.data_sheets import Imu
    >>> imu = Imu(gyro_noise_rad_s_rt_hz=1e-4)
    >>> imu.rate_hz, imu.accel_noise_m_s2_rt_hz
    (200.0, 0.0)
    """

    # fmt: off
    rate_hz: float = 200.0
    gyro_noise_rad_s_rt_hz: Annotated[float, Parameter("Density of the white noise.", "rad/s/sqrt(Hz)", ge=0)] = 0.0
    gyro_instability_rad_s: Annotated[float, Parameter(
        "Lowest Allan deviation (bias stability), from which the size of the drift follows.", "rad/s", ge=0,
    )] = 0.0
    gyro_correlation_s: Annotated[float, Parameter(_CORRELATION, "s")] = 100.0
    gyro_turn_on_rad_s: Annotated[float, Parameter(_TURN_ON, "rad/s", ge=0)] = 0.0
    gyro_scale_error: Annotated[Vector, Parameter(_SCALE, signed=True)] = _ZERO
    gyro_misalignment_rad: Annotated[Vector, Parameter(_MISALIGNED, "rad", signed=True)] = _ZERO
    gyro_range_rad_s: Annotated[float, Parameter("Largest reading in size; 0: no limit.", "rad/s", ge=0)] = 0.0
    gyro_resolution_rad_s: Annotated[float, Parameter(_RESOLUTION, "rad/s", ge=0)] = 0.0
    accel_noise_m_s2_rt_hz: Annotated[float, Parameter("Density of the white noise.", "m/s2/sqrt(Hz)", ge=0)] = 0.0
    accel_instability_m_s2: Annotated[float, Parameter(
        "Lowest Allan deviation (bias stability), from which the size of the drift follows.", "m/s2", ge=0,
    )] = 0.0
    accel_correlation_s: Annotated[float, Parameter(_CORRELATION, "s")] = 100.0
    accel_turn_on_m_s2: Annotated[float, Parameter(_TURN_ON, "m/s2", ge=0)] = 0.0
    accel_scale_error: Annotated[Vector, Parameter(_SCALE, signed=True)] = _ZERO
    accel_misalignment_rad: Annotated[Vector, Parameter(_MISALIGNED, "rad", signed=True)] = _ZERO
    accel_range_m_s2: Annotated[float, Parameter("Largest reading in size; 0: no limit.", "m/s2", ge=0)] = 0.0
    accel_resolution_m_s2: Annotated[float, Parameter(_RESOLUTION, "m/s2", ge=0)] = 0.0
    # fmt: on


@dataclass(frozen=True)
class Magnetometer(Sensor):
    """Magnetometer, with the output field (T).

    The earth's field is the World Magnetic Model's at a place and year (x east, y north, z up), or a given one.

    Attributes
    ----------
    rate_hz : float, default 50.0
        Samples per second, Hz.
    field_t : Vector | None, optional
        Earth's field, world; none: the World Magnetic Model's. Unit: T.
    latitude_deg : float, default 43.11
        Latitude for the World Magnetic Model. Unit: deg.
    longitude_deg : float, default 5.94
        Longitude for the World Magnetic Model. Unit: deg.
    altitude_m : float, default 0.0
        Altitude for the World Magnetic Model. Unit: m.
    year : float, default 2026.0
        Year for the World Magnetic Model, with its fraction.
    noise_t : float, default 0.0
        Standard deviation of the white noise of a sample. Unit: T.
    hard_iron_t : Vector, default (0, 0, 0)
        Constant field of the robot itself. Unit: T.
    soft_iron_error : Vector, default (0, 0, 0)
        Relative change of the field along each axis by the robot's iron.
    soft_iron_misalignment_rad : Vector, default (0, 0, 0)
        Rotation of the field by the robot's iron, about x, y, z, to first order. Unit: rad.
    range_t : float, default 0.0
        Largest reading in size; 0: no limit. Unit: T.
    resolution_t : float, default 0.0
        Step of quantization; 0: none. Unit: T.
    """

    # fmt: off
    rate_hz: float = 50.0
    field_t: Annotated[Vector | None, Parameter(
        "Earth's field, world; none: the World Magnetic Model's.", "T", signed=True,
    )] = None
    latitude_deg: Annotated[float, Parameter("Latitude for the World Magnetic Model.", "deg", signed=True)] = 43.11
    longitude_deg: Annotated[float, Parameter("Longitude for the World Magnetic Model.", "deg", signed=True)] = 5.94
    altitude_m: Annotated[float, Parameter("Altitude for the World Magnetic Model.", "m", signed=True)] = 0.0
    year: Annotated[float, Parameter("Year for the World Magnetic Model, with its fraction.", ge=0)] = 2026.0
    noise_t: Annotated[float, Parameter(_WHITE, "T", ge=0)] = 0.0
    hard_iron_t: Annotated[Vector, Parameter("Constant field of the robot itself.", "T", signed=True)] = _ZERO
    soft_iron_error: Annotated[Vector, Parameter(
        "Relative change of the field along each axis by the robot's iron.", signed=True,
    )] = _ZERO
    soft_iron_misalignment_rad: Annotated[Vector, Parameter(
        "Rotation of the field by the robot's iron, about x, y, z, to first order.", "rad", signed=True,
    )] = _ZERO
    range_t: Annotated[float, Parameter("Largest reading in size; 0: no limit.", "T", ge=0)] = 0.0
    resolution_t: Annotated[float, Parameter(_RESOLUTION, "T", ge=0)] = 0.0
    # fmt: on


@dataclass(frozen=True)
class Depth(Sensor):
    """Depth sensor, with the output value (m below the water's surface), from pressure.

    The plant must be in water, with gravity.

    Attributes
    ----------
    rate_hz : float, default 50.0
        Samples per second, Hz.
    noise_m : float, default 0.0
        Standard deviation of the white noise of a sample. Unit: m.
    turn_on_m : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: m.
    wander_m : float, default 0.0
        Standard deviation of an error that changes slowly. Unit: m.
    correlation_s : float, default 300.0
        Correlation time of the drift. Unit: s.
    scale_error : float, default 0.0
        Relative error of the scale.
    resolution_m : float, default 0.0
        Step of quantization; 0: none. Unit: m.
    """

    # fmt: off
    rate_hz: float = 50.0
    noise_m: Annotated[float, Parameter(_WHITE, "m", ge=0)] = 0.0
    turn_on_m: Annotated[float, Parameter(_TURN_ON, "m", ge=0)] = 0.0
    wander_m: Annotated[float, Parameter(_WANDER, "m", ge=0)] = 0.0
    correlation_s: Annotated[float, Parameter(_CORRELATION, "s")] = 300.0
    scale_error: Annotated[float, Parameter("Relative error of the scale.", signed=True)] = 0.0
    resolution_m: Annotated[float, Parameter(_RESOLUTION, "m", ge=0)] = 0.0
    # fmt: on


@dataclass(frozen=True)
class Dvl(Sensor):
    """Doppler velocity log, with the outputs velocity (m/s, over the ground), range (4, m, along the beams) and valid.

    Three beams must reach the bottom, a plane at bottom_m (height, world). The plant must be in water.

    Attributes
    ----------
    rate_hz : float, default 10.0
        Samples per second, Hz.
    noise_m_s : float, default 0.0
        Standard deviation of the white noise of a sample. Unit: m/s.
    turn_on_m_s : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: m/s.
    scale_error : Vector, default (0, 0, 0)
        Relative error of the scale of each axis.
    misalignment_rad : Vector, default (0, 0, 0)
        Rotation of the axes against their nominal directions, about x, y, z, to first order. Unit: rad.
    limit_m_s : float, default 0.0
        Largest reading in size; 0: no limit. Unit: m/s.
    resolution_m_s : float, default 0.0
        Step of quantization; 0: none. Unit: m/s.
    range_noise_m : float, default 0.0
        Standard deviation of the white noise of a range. Unit: m.
    least_range_m : float, default 0.05
        Minimum range of a beam. Unit: m.
    range_m : float, default 50.0
        Maximum range of a beam. Unit: m.
    beam_angle_deg : float, default 22.5
        Angle of the beams against the axis. Unit: deg.
    bottom_m : float, default -20.0
        Height of the bottom, world. Unit: m.
    """

    # fmt: off
    rate_hz: float = 10.0
    noise_m_s: Annotated[float, Parameter(_WHITE, "m/s", ge=0)] = 0.0
    turn_on_m_s: Annotated[float, Parameter(_TURN_ON, "m/s", ge=0)] = 0.0
    scale_error: Annotated[Vector, Parameter(_SCALE, signed=True)] = _ZERO
    misalignment_rad: Annotated[Vector, Parameter(_MISALIGNED, "rad", signed=True)] = _ZERO
    limit_m_s: Annotated[float, Parameter("Largest reading in size; 0: no limit.", "m/s", ge=0)] = 0.0
    resolution_m_s: Annotated[float, Parameter(_RESOLUTION, "m/s", ge=0)] = 0.0
    range_noise_m: Annotated[float, Parameter("Standard deviation of the white noise of a range.", "m", ge=0)] = 0.0
    least_range_m: Annotated[float, Parameter("Minimum range of a beam.", "m", ge=0)] = 0.05
    range_m: Annotated[float, Parameter("Maximum range of a beam.", "m", ge=0)] = 50.0
    beam_angle_deg: Annotated[float, Parameter("Angle of the beams against the axis.", "deg", signed=True)] = 22.5
    bottom_m: Annotated[float, Parameter("Height of the bottom, world.", "m", signed=True)] = -20.0
    # fmt: on


@dataclass(frozen=True)
class Encoders(Sensor):
    """Encoders of the rods or joints, with the output angle (rad), which is the plant's output `of`.

    Attributes
    ----------
    rate_hz : float, default 500.0
        Samples per second, Hz.
    of : str, default ''
        Output that is measured; '': the angles of the rods or joints.
    noise_rad : float, default 0.0
        Standard deviation of the white noise of a sample. Unit: rad.
    turn_on_rad : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: rad.
    resolution_rad : float, default 0.0
        Step of quantization; 0: none. Unit: rad.
    """

    # fmt: off
    rate_hz: float = 500.0
    of: Annotated[str, Parameter("Output that is measured; '': the angles of the rods or joints.")] = ""
    noise_rad: Annotated[float, Parameter(_WHITE, "rad", ge=0)] = 0.0
    turn_on_rad: Annotated[float, Parameter(_TURN_ON, "rad", ge=0)] = 0.0
    resolution_rad: Annotated[float, Parameter(_RESOLUTION, "rad", ge=0)] = 0.0
    needs: ClassVar[tuple[str, ...]] = ()
    # fmt: on


@dataclass(frozen=True)
class Currents(Sensor):
    """Current sensors of the motors, with the output value (A).

    The current is the plant's torque output `of`, divided by the torque of an ampere.

    Attributes
    ----------
    rate_hz : float, default 500.0
        Samples per second, Hz.
    of : str, default ''
        Output that is measured; '': the torques of the rods or joints.
    torque_constant_n_m_a : float, default 1.0
        Torque per ampere. Unit: N m/A.
    noise_a : float, default 0.0
        Standard deviation of the white noise of a sample. Unit: A.
    turn_on_a : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: A.
    resolution_a : float, default 0.0
        Step of quantization; 0: none. Unit: A.
    """

    # fmt: off
    rate_hz: float = 500.0
    of: Annotated[str, Parameter("Output that is measured; '': the torques of the rods or joints.")] = ""
    torque_constant_n_m_a: Annotated[float, Parameter("Torque per ampere.", "N m/A")] = 1.0
    noise_a: Annotated[float, Parameter(_WHITE, "A", ge=0)] = 0.0
    turn_on_a: Annotated[float, Parameter(_TURN_ON, "A", ge=0)] = 0.0
    resolution_a: Annotated[float, Parameter(_RESOLUTION, "A", ge=0)] = 0.0
    needs: ClassVar[tuple[str, ...]] = ()
    # fmt: on


@dataclass(frozen=True)
class Gps(Sensor):
    """Satellite receiver, with the outputs position (m, world) and valid.

    The output is valid only where the antenna is above surface_m.

    Attributes
    ----------
    rate_hz : float, default 5.0
        Samples per second, Hz.
    noise_m : float, default 0.0
        Standard deviation of the white noise of a sample. Unit: m.
    wander_m : float, default 0.0
        Standard deviation of an error that changes slowly. Unit: m.
    correlation_s : float, default 60.0
        Correlation time of the drift. Unit: s.
    surface_m : float | None, optional
        Height above which the antenna receives, world; none: 0.1 m below the water's surface, anywhere without water.
        Unit: m.
    """

    # fmt: off
    rate_hz: float = 5.0
    noise_m: Annotated[float, Parameter(_WHITE, "m", ge=0)] = 0.0
    wander_m: Annotated[float, Parameter(_WANDER, "m", ge=0)] = 0.0
    correlation_s: Annotated[float, Parameter(_CORRELATION, "s")] = 60.0
    surface_m: Annotated[float | None, Parameter(
        "Height above which the antenna receives, world; none: 0.1 m below the water's surface, anywhere without "
        "water.", "m", signed=True,
    )] = None
    needs: ClassVar[tuple[str, ...]] = ("position", "quaternion")
    # fmt: on


@dataclass(frozen=True)
class RelativeSensor(Sensor):
    """Sensor of one robot of a world for another robot (rtmms.world.relative_sensors).

    The outputs are range (m), bearing (2, rad, azimuth and elevation in body axes) and valid.

    Attributes
    ----------
    rate_hz : float, default 10.0
        Samples per second, Hz.
    range_noise_m : float, default 0.0
        Standard deviation of the white noise of a range. Unit: m.
    range_turn_on_m : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: m.
    range_resolution_m : float, default 0.0
        Step of quantization; 0: none. Unit: m.
    bearing_noise_rad : float, default 0.0
        Standard deviation of the white noise of a bearing. Unit: rad.
    bearing_turn_on_rad : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: rad.
    bearing_resolution_rad : float, default 0.0
        Step of quantization; 0: none. Unit: rad.
    limit_m : float, default 0.0
        Range beyond which a sample is not valid; 0: none. Unit: m.
    """

    # fmt: off
    rate_hz: float = 10.0
    range_noise_m: Annotated[float, Parameter("Standard deviation of the white noise of a range.", "m", ge=0)] = 0.0
    range_turn_on_m: Annotated[float, Parameter(_TURN_ON, "m", ge=0)] = 0.0
    range_resolution_m: Annotated[float, Parameter(_RESOLUTION, "m", ge=0)] = 0.0
    bearing_noise_rad: Annotated[float, Parameter(
        "Standard deviation of the white noise of a bearing.", "rad", ge=0,
    )] = 0.0
    bearing_turn_on_rad: Annotated[float, Parameter(_TURN_ON, "rad", ge=0)] = 0.0
    bearing_resolution_rad: Annotated[float, Parameter(_RESOLUTION, "rad", ge=0)] = 0.0
    limit_m: Annotated[float, Parameter("Range beyond which a sample is not valid; 0: none.", "m", ge=0)] = 0.0
    needs: ClassVar[tuple[str, ...]] = ("range", "bearing")
    # fmt: on


@dataclass(frozen=True)
class Camera(Sensor):
    """Camera at a fixed pose in the world that observes markers, with the output MARKER (2, px) for each.

    The image is an orthographic projection, as of a distant camera: x and y of a marker in the camera's axes, times the
    scale. `position_m` and `rotation_deg` are the camera's, in the world.

    Attributes
    ----------
    rate_hz : float, default 60.0
        Samples per second, Hz.
    of : str, default ''
        Markers, separated by commas; '': all in the world's frame.
    scale_px_m : float, default 1000.0
        Pixels per metre. Unit: px/m.
    centre_x_px : float, default 0.0
        First coordinate of the camera's own position in the picture. Unit: px.
    centre_y_px : float, default 0.0
        Second coordinate of the camera's own position in the picture. Unit: px.
    noise_px : float, default 0.0
        Standard deviation of the white noise of a sample. Unit: px.
    turn_on_px : float, default 0.0
        Standard deviation of the constant error that each start draws anew. Unit: px.
    resolution_px : float, default 0.0
        Step of quantization; 0: none. Unit: px.
    """

    # fmt: off
    rate_hz: float = 60.0
    of: Annotated[str, Parameter("Markers, separated by commas; '': all in the world's frame.")] = ""
    scale_px_m: Annotated[float, Parameter("Pixels per metre.", "px/m")] = 1000.0
    centre_x_px: Annotated[float, Parameter(
        "First coordinate of the camera's own position in the picture.", "px", signed=True,
    )] = 0.0
    centre_y_px: Annotated[float, Parameter(
        "Second coordinate of the camera's own position in the picture.", "px", signed=True,
    )] = 0.0
    noise_px: Annotated[float, Parameter(_WHITE, "px", ge=0)] = 0.0
    turn_on_px: Annotated[float, Parameter(_TURN_ON, "px", ge=0)] = 0.0
    resolution_px: Annotated[float, Parameter(_RESOLUTION, "px", ge=0)] = 0.0
    needs: ClassVar[tuple[str, ...]] = ()
    aboard: ClassVar[bool] = False
    # fmt: on


KINDS: Mapping[str, type[Sensor]] = {
    "imu": Imu, "mag": Magnetometer, "depth": Depth, "dvl": Dvl, "encoder": Encoders, "current": Currents, "gps": Gps,
    "camera": Camera,
}  # fmt: skip
"""Classes by the name of a table, the first part of the sensor's outputs; 'imu.tail' is a second imu."""

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
    # a camera above a tank as in docs/tendon_fish.md: 60 frames/s, a marker found to half a pixel of 1.06 mm
    "camera": {"scale_px_m": 940.0, "noise_px": 0.5, "resolution_px": 0.5},
    # an acoustic beacon as small robots carry (Blueprint Subsea SeaTrac X150): 0.05 m, 1 deg, one fix a second
    "sight": {
        "rate_hz": 1.0, "latency_s": 0.3, "dropout": 0.05, "range_noise_m": 0.05, "bearing_noise_rad": _DEGREE,
        "bearing_turn_on_rad": 0.5 * _DEGREE, "limit_m": 1000.0,
    },
}  # fmt: skip
