"""Set of sensors as flat arrays, and the profiles that select one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rtmms.base.errors import ModelError, RtmmsWarning, UnknownNameError
from rtmms.base.install import install_command
from rtmms.base.parameters import check_parameters, read_table
from rtmms.base.spatial import Array, rotation_x, rotation_z
from rtmms.base.toml_file import read_toml
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Channel, Environment, Plant
from rtmms.sensing.data_sheets import (
    KINDS,
    TYPICAL,
    Camera,
    Currents,
    Depth,
    Dvl,
    Encoders,
    Gps,
    Imu,
    Magnetometer,
    RelativeSensor,
    Sensor,
)
from rtmms.sensing.instruments import drift_of
from rtmms.sensing.layout import (
    ACCELEROMETER,
    B_AT,
    B_DRIFT,
    B_DRIFTS,
    B_KEEP,
    B_KIND,
    B_MATRIX,
    B_MORE,
    B_OFFSET,
    B_PLACE,
    B_RANGE,
    B_ROTATION,
    B_SIZE,
    B_STEP,
    B_TURN_ON,
    B_TURNED,
    B_WHITE,
    B_WIDTH,
    CAMERA,
    DEPTH,
    DVL,
    GPS,
    GYRO,
    M_VECTORS,
    MAGNETOMETER,
    RANGES,
    READING_TIME,
    READING_VALID,
    READING_VALUES,
    T_BLOCK,
    T_BLOCKS,
    T_COUNT,
    T_DROPOUT,
    T_FAULT,
    T_JITTER,
    T_LATENCY,
    T_PHASE,
    T_QUEUE,
    T_RATE,
    T_READING,
    T_ROOM,
    T_WIDTH,
    T_WIDTH_OF,
    VECTOR,
)

# A set of sensors as flat arrays: checked here, trusted by the kernels.


S = TypeVar("S", bound=Sensor)

MAX_WAITING_SAMPLES = 4096
TOULON_T = (1.1966924780758689e-06, 2.4047973129516105e-05, -4.014191638119738e-05)
"""World Magnetic Model's field at the default place and year, T, so that no library is needed; a test computes it."""
_ANGLES = ("rod_angle", "joint_position")
_TORQUES = ("rod_torque", "joint_torque")
_ONES = (0.0, 0.0, 0.0)
FLOATS_M = 0.1
"""Depth of a receiver whose antenna is still above the surface, m."""


@dataclass(frozen=True, eq=False)
class Suite:
    """Set of sensors as flat arrays.

    Attributes
    ----------
    timing : Array
        (sensors, T_WIDTH), see rtmms.sensing.layout.
    block : Array
        (blocks, B_WIDTH) blocks of the instruments.
    size : int
        Numbers of the state.
    widest : int
        Values of the sensor with the most values.
    channels : tuple[Channel, ...]
        Outputs.
    places : tuple[slice, ...]
        Place of each output in the state.
    vectors : Mapping[str, slice]
        Outputs of the plant that sensors measure, and the place of each in the motion.
    motion : int
        Numbers of the motion.
    """

    timing: Array
    block: Array
    size: int
    widest: int
    channels: tuple[Channel, ...]
    places: tuple[slice, ...]
    vectors: Mapping[str, slice]
    motion: int

    def measured_by(self, sensor: int) -> set[str]:
        """Return the outputs of the plant that a sensor copies; readings of the body's motion are not among them.

        Parameters
        ----------
        sensor : int
            Row of the timing.

        Returns
        -------
        set[str]
            Names of outputs.
        """
        first, count = (int(number) for number in self.timing[sensor, [T_BLOCK, T_BLOCKS]])
        starts = {place.start: name for name, place in self.vectors.items()}
        kinds = (VECTOR, CAMERA)
        return {starts[int(row[B_MORE])] for row in self.block[first : first + count] if int(row[B_KIND]) in kinds}


def assemble(sensors: Mapping[str, Sensor], plant: Plant) -> Suite:
    """Assemble the flat arrays of the sensors on a plant.

    Parameters
    ----------
    sensors : Mapping[str, Sensor]
        Sensors by name.
    plant : Plant
        Plant that has them.

    Returns
    -------
    Suite
        The arrays.

    Raises
    ------
    ModelError
        A sensor cannot be on this plant; the message names sensor and key.
    """
    built = _SuiteBuilder(plant)
    for name, sensor in sensors.items():
        built.add(name, sensor)
    return built.suite()


class _SuiteBuilder:
    def __init__(self, plant: Plant) -> None:
        self._plant, self._around = plant, describe_plant(plant).environment()
        self._outputs = {channel.name: channel for channel in plant.outputs}
        self._timing: list[Array] = []
        self._block: list[Array] = []
        self._channels: list[Channel] = []
        self._places: list[slice] = []
        self._vectors: dict[str, slice] = {}
        self._size, self._widest, self._motion = 0, 1, M_VECTORS

    def suite(self) -> Suite:
        timing = np.array(self._timing) if self._timing else np.zeros((0, T_WIDTH))
        block = np.array(self._block) if self._block else np.zeros((0, B_WIDTH))
        for table in (timing, block):
            table.setflags(write=False)
        return Suite(timing, block, self._size, self._widest, tuple(self._channels), tuple(self._places),
                     dict(self._vectors), self._motion)  # fmt: skip

    def add(self, name: str, sensor: Sensor) -> None:
        _check(name, sensor, self._plant.dt)
        for output in sensor.needs:
            if output not in self._outputs:
                raise ModelError(f"sensor {name}: the plant has no output '{output}', which it measures")
        why = senseless(type(sensor), self._around)
        if why:
            raise ModelError(f"sensor {name}: {why}")
        blocks, channels = self._blocks(name, sensor)
        width = sum(int(row[B_SIZE]) for row in blocks)
        row, at = np.zeros(T_WIDTH), 0
        row[[T_RATE, T_PHASE, T_LATENCY]] = sensor.rate_hz, sensor.phase_s, sensor.latency_s
        row[[T_JITTER, T_DROPOUT]] = sensor.jitter_s, sensor.dropout
        row[[T_BLOCK, T_BLOCKS, T_WIDTH_OF]] = len(self._block), len(blocks), width
        for block in blocks:
            block[B_AT], at = at, at + int(block[B_SIZE])
            block[B_DRIFTS], block[B_TURNED] = self._room(int(block[B_SIZE])), self._room(int(block[B_SIZE]))
        row[T_READING] = first = self._room(READING_VALUES + width)
        row[T_ROOM] = room = math.ceil((sensor.latency_s + sensor.jitter_s) * sensor.rate_hz) + 2
        if room > MAX_WAITING_SAMPLES:
            raise ModelError(
                f"sensor {name}: latency_s, jitter_s, rate_hz: expected at most {MAX_WAITING_SAMPLES} samples in "
                f"transit, got {room}; reduce one of the three"
            )
        row[T_QUEUE], row[T_COUNT], row[T_FAULT] = self._room(room * (3 + width)), self._room(4), self._room(2)
        self._timing.append(row)
        self._block += blocks
        self._widest = max(self._widest, width)
        at = first + READING_VALUES
        for quantity, unit, size, frame in channels:
            self._add_output(f"{name}.{quantity}", unit, (size,) if size else (), frame, at)
            at += size or 1
        if isinstance(sensor, (Dvl, Gps, RelativeSensor)):
            self._add_output(f"{name}.valid", "", (), "", first + READING_VALID)
        self._add_output(f"{name}.time", "s", (), "", first + READING_TIME)

    def _add_output(self, name: str, unit: str, shape: tuple[int, ...], frame: str, at: int) -> None:
        self._channels.append(Channel(name, unit, shape, frame))
        self._places.append(slice(at, at + (shape[0] if shape else 1)))

    def _room(self, size: int) -> int:
        at, self._size = self._size, self._size + size
        return at

    def _blocks(self, name: str, sensor: Sensor) -> tuple[list[Array], list[tuple[str, str, int, str]]]:
        """Return the rows of the blocks, and the outputs: quantity, unit, size (0: a number), frame."""
        if isinstance(sensor, Imu):
            return [
                _block(sensor, GYRO, 3, sensor.gyro_noise_rad_s_rt_hz * math.sqrt(sensor.rate_hz),
                       drift=_drift(sensor, "gyro", "rad_s"),
                       turn_on=sensor.gyro_turn_on_rad_s, scale=sensor.gyro_scale_error,
                       misaligned=sensor.gyro_misalignment_rad, limit=sensor.gyro_range_rad_s,
                       step=sensor.gyro_resolution_rad_s),
                _block(sensor, ACCELEROMETER, 3, sensor.accel_noise_m_s2_rt_hz * math.sqrt(sensor.rate_hz),
                       drift=_drift(sensor, "accel", "m_s2"),
                       turn_on=sensor.accel_turn_on_m_s2, scale=sensor.accel_scale_error,
                       misaligned=sensor.accel_misalignment_rad, limit=sensor.accel_range_m_s2,
                       step=sensor.accel_resolution_m_s2),
            ], [("gyro", "rad/s", 3, "body"), ("accel", "m/s2", 3, "body")]  # fmt: skip
        if isinstance(sensor, Magnetometer):
            field = sensor.field_t if sensor.field_t is not None else earth_field(name, sensor)
            row = _block(sensor, MAGNETOMETER, 3, sensor.noise_t, scale=sensor.soft_iron_error, limit=sensor.range_t,
                         misaligned=sensor.soft_iron_misalignment_rad, step=sensor.resolution_t)  # fmt: skip
            row[B_OFFSET : B_OFFSET + 3], row[B_MORE : B_MORE + 3] = sensor.hard_iron_t, field
            return [row], [("field", "T", 3, "body")]
        if isinstance(sensor, Depth):
            row = _block(
                sensor,
                DEPTH,
                1,
                sensor.noise_m,
                drift=(sensor.wander_m, sensor.correlation_s),
                turn_on=sensor.turn_on_m,
                scale=(sensor.scale_error, 0.0, 0.0),
                step=sensor.resolution_m,
            )
            row[B_MORE] = self._around.surface
            return [row], [("value", "m", 0, "")]
        if isinstance(sensor, Dvl):
            speed = _block(
                sensor,
                DVL,
                3,
                sensor.noise_m_s,
                turn_on=sensor.turn_on_m_s,
                scale=sensor.scale_error,
                misaligned=sensor.misalignment_rad,
                limit=sensor.limit_m_s,
                step=sensor.resolution_m_s,
            )
            ranges = _block(sensor, RANGES, 4, sensor.range_noise_m)
            for row in (speed, ranges):
                lean = math.radians(sensor.beam_angle_deg)
                row[B_MORE : B_MORE + 4] = sensor.bottom_m, sensor.least_range_m, sensor.range_m, lean
            return [speed, ranges], [("velocity", "m/s", 3, "body"), ("range", "m", 4, "")]
        if isinstance(sensor, Encoders):
            row, size = self._vector(name, sensor, sensor.of, _ANGLES, sensor.noise_rad, sensor.turn_on_rad,
                                     sensor.resolution_rad)  # fmt: skip
            return [row], [("angle", "rad", size, "")]
        if isinstance(sensor, Currents):
            row, size = self._vector(name, sensor, sensor.of, _TORQUES, sensor.noise_a, sensor.turn_on_a,
                                     sensor.resolution_a, 1.0 / sensor.torque_constant_n_m_a)  # fmt: skip
            return [row], [("value", "A", size, "")]
        if isinstance(sensor, RelativeSensor):
            far, _ = self._vector(name, sensor, "range", (), sensor.range_noise_m, sensor.range_turn_on_m,
                                  sensor.range_resolution_m)  # fmt: skip
            bearing, _ = self._vector(name, sensor, "bearing", (), sensor.bearing_noise_rad,
                                      sensor.bearing_turn_on_rad, sensor.bearing_resolution_rad)  # fmt: skip
            far[B_MORE + 2] = sensor.limit_m
            return [far, bearing], [("range", "m", 0, ""), ("bearing", "rad", 2, "body")]
        if isinstance(sensor, Camera):
            return self._camera(name, sensor)
        assert isinstance(sensor, Gps)
        row = _block(sensor, GPS, 3, sensor.noise_m, drift=(sensor.wander_m, sensor.correlation_s))
        above = self._around.surface - FLOATS_M if self._around.density else -math.inf
        row[B_MORE] = above if sensor.surface_m is None else sensor.surface_m
        return [row], [("position", "m", 3, "world")]

    def _camera(self, name: str, sensor: Camera) -> tuple[list[Array], list[tuple[str, str, int, str]]]:
        """Return a block and an output of each marker that the camera observes."""
        markers = {
            name for name, channel in self._outputs.items()
            if channel.shape == (3,) and channel.unit == "m" and channel.frame == "world" and "." not in name
        } - {"position"}  # fmt: skip
        known = [output for output in self._outputs if output in markers]
        wanted = [part.strip() for part in sensor.of.split(",")] if sensor.of.strip() else known
        if not wanted:
            raise ModelError(f"sensor {name}: expected a plant with markers, got none; see Marker in rtmms.model")
        rows = []
        for item in wanted:
            if item not in markers:
                raise ModelError(f"sensor {name}: of: {UnknownNameError('marker', item, known)}")
            row, _ = self._vector(name, sensor, item, (), sensor.noise_px, sensor.turn_on_px, sensor.resolution_px)
            row[B_KIND], row[B_SIZE], row[B_MORE + 1] = CAMERA, 2, sensor.scale_px_m
            row[B_MORE + 2], row[B_MORE + 3] = sensor.centre_x_px, sensor.centre_y_px
            rows.append(row)
        return rows, [(entry, "px", 2, "") for entry in wanted]

    def _vector(
        self, name: str, sensor: Sensor, of: str, default_outputs: tuple[str, ...], noise: float, turn_on: float,
        step: float, gain: float = 1.0,
    ) -> tuple[Array, int]:  # fmt: skip
        whose = of or next((item for item in default_outputs if item in self._outputs), "")
        if whose not in self._outputs:
            if of:
                raise ModelError(f"sensor {name}: of: {UnknownNameError('output', of, self._outputs)}")
            raise ModelError(
                f"sensor {name}: of: expected the name of an output to measure, as the plant has no "
                f"{' or '.join(default_outputs)}; give of=OUTPUT"
            )
        shape = self._outputs[whose].shape
        if len(shape) != 1:
            raise ModelError(f"sensor {name}: of: expected a vector, got '{whose}' of shape {shape}")
        if whose not in self._vectors:
            self._vectors[whose] = slice(self._motion, self._motion + shape[0])
            self._motion += shape[0]
        row = _block(sensor, VECTOR, shape[0], noise, turn_on=turn_on, step=step)
        row[B_MORE], row[B_MORE + 1] = self._vectors[whose].start, gain
        return row, shape[0]


def senseless(kind: type[Sensor], around: Environment) -> str:
    """Return why a kind of sensor measures nothing in such environment.

    Parameters
    ----------
    kind : type[Sensor]
        Class of the sensor.
    around : Environment
        Environment of the plant.

    Returns
    -------
    str
        The reason; '' where it measures.
    """
    if kind in (Depth, Dvl) and not around.density:
        return "it measures in water, and this plant is not in water"
    if kind is Depth and not any(around.gravity):
        return "without gravity the water's pressure gives no depth"
    return ""


def _block(
    sensor: Sensor, kind: int, size: int, white: float, *, drift: tuple[float, float] = (0.0, 1.0),
    turn_on: float = 0.0, scale: tuple[float, float, float] = _ONES, misaligned: tuple[float, float, float] = _ONES,
    limit: float = 0.0, step: float = 0.0,
) -> Array:  # fmt: skip
    """Return a row; `drift` is the drift's standard deviation and its correlation time, s."""
    row = np.zeros(B_WIDTH)
    row[[B_KIND, B_SIZE, B_WHITE, B_TURN_ON, B_RANGE, B_STEP]] = kind, size, white, turn_on, limit, step
    row[B_DRIFT], row[B_KEEP] = drift[0], math.exp(-1.0 / (sensor.rate_hz * drift[1]))
    row[B_ROTATION : B_ROTATION + 9] = rotation(sensor.rotation_deg).ravel()
    row[B_PLACE : B_PLACE + 3] = sensor.position_m
    a, b, c = misaligned
    # to first order, as data sheets mean it
    turn = np.array([[0.0, c, -b], [-c, 0.0, a], [b, -a, 0.0]])
    row[B_MATRIX : B_MATRIX + 9] = (np.diag(1.0 + np.array(scale)) + turn).ravel()
    return row


def _drift(sensor: Imu, which: str, unit: str) -> tuple[float, float]:
    """Return standard deviation and correlation time of the drift of 'gyro' or 'accel'."""
    tau = getattr(sensor, f"{which}_correlation_s")
    noise, instability = f"{which}_noise_{unit}_rt_hz", f"{which}_instability_{unit}"
    deviation = drift_of(getattr(sensor, noise), getattr(sensor, instability), tau)
    if getattr(sensor, instability) > 0.0 and deviation == 0.0:
        warnings.warn(
            f"sensors: {instability}: expected a drift, got none: the white noise ({noise} = "
            f"{getattr(sensor, noise):g}) exceeds the lowest Allan deviation {getattr(sensor, instability):g} at all "
            f"times up to 3 x {which}_correlation_s. Check the units of both",
            RtmmsWarning, stacklevel=2,
        )  # fmt: skip
    return deviation, tau


def rotation(degrees: tuple[float, float, float]) -> Array:
    """Return the rotation sensor to body of roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll).

    Parameters
    ----------
    degrees : tuple[float, float, float]
        Roll, pitch, yaw, deg.

    Returns
    -------
    Array
        (3, 3).
    """
    roll, pitch, yaw = (math.radians(degree) for degree in degrees)
    c, s = math.cos(pitch), math.sin(pitch)
    out: Array = rotation_z(yaw) @ np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]) @ rotation_x(roll)
    return out


def earth_field(name: str, sensor: Magnetometer) -> tuple[float, float, float]:
    """Return the World Magnetic Model's field at the sensor's place and year.

    Parameters
    ----------
    name : str
        Name of the sensor, for messages.
    sensor : Magnetometer
        Its place and year.

    Returns
    -------
    tuple[float, float, float]
        T; x east, y north, z up.

    Raises
    ------
    ModelError
        The model is not installed, or not valid at that time.
    """
    default = Magnetometer()
    if all(
        getattr(sensor, key) == getattr(default, key) for key in ("latitude_deg", "longitude_deg", "altitude_m", "year")
    ):
        return TOULON_T
    try:
        from pygeomag import GeoMag
    except ImportError:
        raise ModelError(f"sensor {name}: the World Magnetic Model needs pygeomag ({install_command('sensors')}); "
                         "or give field_t") from None  # fmt: skip
    try:
        result = GeoMag().calculate(
            glat=sensor.latitude_deg, glon=sensor.longitude_deg, alt=sensor.altitude_m * 1e-3, time=sensor.year
        )
    except Exception as fault:  # its own, for a year that the model does not cover
        raise ModelError(f"sensor {name}: {fault}") from None
    return result.y * 1e-9, result.x * 1e-9, -result.z * 1e-9


def _check(name: str, sensor: Sensor, dt: float) -> None:
    check_parameters(f"sensor {name}: ", sensor)
    if sensor.rate_hz * dt > 1.0 + 1e-9:
        raise ModelError(
            f"sensor {name}: rate_hz: expected at most one sample a step, {1.0 / dt:g} Hz, got {sensor.rate_hz:g}"
        )


def sensor_of_table(name: str, values: Mapping[str, Any], base: Mapping[str, Any]) -> Sensor:
    """Return a sensor from a person's table, over a base.

    Parameters
    ----------
    name : str
        Name of the sensor; its first part is the kind.
    values : Mapping[str, Any]
        Keys and values of the table.
    base : Mapping[str, Any]
        Keys and values that hold where the table has none.

    Returns
    -------
    Sensor
        The sensor.

    Raises
    ------
    ModelError
        A key or a value is wrong; the message names sensor and key.
    UnknownNameError
        The kind is unknown.
    """
    kind = name.partition(".")[0]
    if kind not in KINDS:
        raise UnknownNameError("sensor", kind, KINDS)
    return sensor_of_class(KINDS[kind], name, values, base)


def sensor_of_class(kind: type[S], name: str, values: Mapping[str, Any], base: Mapping[str, Any]) -> S:
    """Return a sensor of a class, from a person's table over a base.

    Parameters
    ----------
    kind : type[S]
        Class of the sensor.
    name : str
        Name of the sensor, for messages.
    values : Mapping[str, Any]
        Keys and values of the table.
    base : Mapping[str, Any]
        Keys and values that hold where the table has none.

    Returns
    -------
    S
        The sensor.

    Raises
    ------
    ModelError
        A key or a value is wrong; the message names sensor and key.
    """
    table = read_table(kind, values, "sensor", lambda key, text: ModelError(f"sensor {name}: {text}"))
    return replace(kind(**base), **table)


# Which sensors a robot has: `ideal` (none: outputs are the truth), `typical`, or a file, with tables over either.


PROFILES = ("ideal", "typical")
_OPTIONAL = {"encoder": ("rod_angle", "joint_position"), "current": ("rod_torque", "joint_torque")}


def read_profile(profile: str, plant: Plant, over: Mapping[str, Any] | None = None) -> dict[str, Sensor]:
    """Return the sensors of a profile on a plant; empty for `ideal`.

    `typical` omits sensors for which the plant has nothing: rods or joints, water.

    Parameters
    ----------
    profile : str
        'ideal', 'typical', or a FILE.toml with tables [imu], [depth], ... and `profile`, the base (default ideal).
    plant : Plant
        Plant that has the sensors.
    over : Mapping[str, Any] | None, optional
        Tables whose keys replace those of the profile; a table with `off = true` removes the sensor.

    Returns
    -------
    dict[str, Sensor]
        Sensors by name.

    Raises
    ------
    ModelError
        A table is wrong; the message names sensor and key.
    UnknownNameError
        The profile or a sensor is unknown.
    """
    tables = dict(over or {})
    if profile.endswith(".toml"):
        toml = read_toml(Path(profile))
        start = toml.pop("profile", "ideal")
        if start not in PROFILES:
            raise ModelError(f"{profile}: profile: {UnknownNameError('profile', str(start), PROFILES)}")
        try:
            return _merged(str(start), plant, [_tables(toml), tables])
        except ModelError as fault:
            raise ModelError(f"{profile}: {fault}") from None
    if profile not in PROFILES:
        raise UnknownNameError("sensors", profile, PROFILES, "or a FILE.toml")
    return _merged(profile, plant, [tables])


def _merged(profile: str, plant: Plant, layers: list[dict[str, Any]]) -> dict[str, Sensor]:
    values: dict[str, dict[str, Any]] = {
        name: {} for name in (_list_typical_kinds(plant) if profile == "typical" else ())
    }
    for layer in layers:
        for name, table in layer.items():
            if not isinstance(table, Mapping):
                raise ModelError(f"sensors: {name}: expected a table, got {table!r}")
            if name.partition(".")[0] not in KINDS:
                raise UnknownNameError("sensor", name, KINDS)
            if table.get("off") is True:
                values.pop(name, None)
                continue
            values.setdefault(name, {}).update({key: value for key, value in table.items() if key != "off"})
    base = TYPICAL if profile == "typical" else {}
    built = {}
    for name, provided in values.items():
        kind = name.partition(".")[0]
        sheet = dict(base.get(kind, {}))
        if (
            profile == "typical" and "rate_hz" not in provided
        ):  # a part that is faster than the plant's steps is read once a step
            sheet["rate_hz"] = min(sheet.get("rate_hz", KINDS[kind].rate_hz), 1.0 / plant.dt)
        built[name] = sensor_of_table(name, provided, sheet)
    return built


def _list_typical_kinds(plant: Plant) -> list[str]:
    outputs = {channel.name: channel.shape for channel in plant.outputs}
    around = describe_plant(plant).environment()
    listed = []
    for kind in KINDS:
        vectors = _OPTIONAL.get(kind)
        if vectors is not None and not any(len(outputs.get(name, ())) == 1 for name in vectors):
            continue
        if not KINDS[kind].aboard or senseless(KINDS[kind], around):
            continue
        listed.append(kind)
    return listed


def _tables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Split tables: [imu.tail] is a table within [imu] for TOML, and a second sensor here."""
    result: dict[str, Any] = {}
    for name, table in values.items():
        if isinstance(table, Mapping):
            inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
            for key, value in inner.items():
                result[f"{name}.{key}"] = value
            if len(inner) < len(table) or not table:
                result[name] = {key: value for key, value in table.items() if key not in inner}
        else:
            result[name] = table
    return result
