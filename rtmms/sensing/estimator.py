"""Estimator of pose and motion from sensors, with their delays and their persistent errors."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.errors import ModelError, Renamed
from rtmms.base.spatial import Array
from rtmms.sensing.data_sheets import KINDS, TYPICAL, Depth, Dvl, Gps, Imu, Magnetometer, Sensor, Vector
from rtmms.sensing.error_state_filter import (
    E_P,
    E_Q,
    E_SIZE,
    E_V,
    N_ACCEL,
    N_BA,
    N_BG,
    N_GRAVITY,
    N_GYRO,
    N_SIZE,
    OFFSET,
    SCALE,
    SKEW,
    X_BA,
    X_BG,
    X_P,
    X_Q,
    X_SIZE,
    X_V,
    CorrelatedErrors,
    correct,
    expect_correlated,
    expect_depth,
    expect_direction,
    expect_position,
    expect_velocity,
    forward,
    propagate,
    rotation_of,
)
from rtmms.sensing.instruments import drift_of
from rtmms.sensing.suite import earth_field, rotation, sensor_of_table

# Which errors of its sensors last, for a filter: of what size, whether they fade, which of them it estimates.
#
# What a sheet gives for all units is a standard deviation (turn-on, drift); what it gives for one (scale, misalignment,
# iron) counts as the standard deviation of that axis: a filter knows how large it is, not which sign it has. Turn-on
# errors and drifts of the imu are not among them: they are the biases in the filter's state. What else lasts in an imu
# is considered, what lasts in a measurement is estimated with the state.


_MEASURES = -1


class _SensorError(NamedTuple):
    """Persistent error of a sensor: kind and axis as in rtmms.sensing.error_state_filter, with its standard deviation.

    `fades` is 1 / tau (1/s), and `target` is the part of the motion that the error enters.
    """

    kind: int
    axis: int
    deviation: float
    fades: float = 0.0
    target: int = _MEASURES


def correlated_errors(
    sensors: Mapping[str, Sensor], mount: Array, are_correlated: bool = True
) -> tuple[CorrelatedErrors, dict[str, slice]]:
    """Return the persistent errors of the sensors, and the place of each sensor's errors among them.

    Parameters
    ----------
    sensors : Mapping[str, Sensor]
        Sensors by name.
    mount : Array
        (3, 3) axes of the imu, sensor to body.
    are_correlated : bool, default True
        False: no errors, as if the sensors had white noise alone.

    Returns
    -------
    tuple[CorrelatedErrors, dict[str, slice]]
        Record of the errors, and by sensor the slice of its errors.
    """
    result: list[_SensorError] = []
    places = {}
    for name, sensor in sensors.items():
        first = len(result)
        result += [item for item in _of(sensor) if item.deviation] if are_correlated else []
        places[name] = slice(first, len(result))
    rows = np.array([(item.kind, item.axis, item.target) for item in result], dtype=np.int64).reshape(-1, 3)
    size = len(result)
    variance = np.array([item.deviation**2 for item in result], dtype=float)
    fades = np.array([item.fades for item in result], dtype=float)
    estimated = np.array([item.target == _MEASURES for item in result], dtype=np.int64)
    correlated = CorrelatedErrors(
        rows, estimated, np.zeros(size), np.diag(variance), np.zeros((E_SIZE, size)), variance, fades, mount,
        np.zeros(3), np.zeros(3), np.zeros(size),
    )  # fmt: skip
    return correlated, places


def _of(sensor: Sensor) -> Iterator[_SensorError]:
    if isinstance(sensor, Imu):
        yield from _crooked(sensor.gyro_scale_error, sensor.gyro_misalignment_rad, E_Q)
        yield from _crooked(sensor.accel_scale_error, sensor.accel_misalignment_rad, E_V)
    elif isinstance(sensor, Depth):
        yield _SensorError(OFFSET, 0, sensor.turn_on_m)
        yield _SensorError(OFFSET, 0, sensor.wander_m, 1.0 / sensor.correlation_s)
        yield _SensorError(SCALE, 0, sensor.scale_error)
    elif isinstance(sensor, Dvl):
        for k in range(3):
            yield _SensorError(OFFSET, k, sensor.turn_on_m_s)
        yield from _crooked(sensor.scale_error, sensor.misalignment_rad)
    elif isinstance(sensor, Gps):
        for k in range(3):
            yield _SensorError(OFFSET, k, sensor.wander_m, 1.0 / sensor.correlation_s)
    elif isinstance(sensor, Magnetometer):
        for k in range(3):
            yield _SensorError(OFFSET, k, sensor.hard_iron_t[k])
        yield from _crooked(sensor.soft_iron_error, sensor.soft_iron_misalignment_rad)


def _crooked(scale: Vector, misaligned: Vector, target: int = _MEASURES) -> Iterator[_SensorError]:
    for kind, values in ((SCALE, scale), (SKEW, misaligned)):
        for k in range(3):
            yield _SensorError(kind, k, values[k], target=target)


# An estimator of a robot's pose and motion from what its sensors measure, however late.
#
# The filter runs some time behind, where every measurement has arrived and is taken in at its own instant; what the
# newest rates and forces add is put on top. Correlated errors of the sensors are states too (see CorrelatedErrors).


UNKNOWN_HEIGHT_M = 1e3
"""Standard deviation of the height at a start without a stated one, m."""
GATES = {1: 10.83, 3: 16.27}
"""99.9 % quantile of the chi-squared distribution by degrees of freedom: the filter refuses less likely measurements.
"""
SETTLES_S = 2.0
"""Time from the start in which the filter accepts every measurement, s: a first guess may be further off than its
variance.
"""
BLIND_M_S2 = 1.0
"""Standard deviation of the acceleration of a robot whose imu is silent."""
BLIND_RAD_S = 0.3
"""Standard deviation of the rate of a robot whose imu is silent."""
_GAP = 2.5
"""Missing periods of the imu after which it counts as silent."""
_ANEW = (1.0, 0.5, 0.1)
"""Standard deviations of position, velocity and attitude with which a lost estimate continues."""
_KINDS = (Depth, Dvl, Gps, Magnetometer)
_DIVERGED = 10
_SAMPLE = 10
"""Numbers of a sample of the imu: time, gyro, accel, and the gravity of that time."""
_HEAD = 5
"""Numbers of a snapshot's head."""
_GRAVITY = 7
"""Numbers of a gravity in a snapshot."""
_ROW = 5
"""Numbers of a sensor in a snapshot."""
_LATE = 5
"""Numbers of a measurement that waits in a snapshot."""


@dataclass
class Estimate:
    """Estimate of pose and motion at a time, with its uncertainty.

    Attributes
    ----------
    time : float
        Time, s.
    position : Array
        (3,) position, m, world.
    velocity : Array
        (3,) velocity, m/s, world.
    quaternion : Array
        (4,) body to world.
    gyro_bias : Array
        (3,) gyroscope's bias, rad/s.
    accel_bias : Array
        (3,) accelerometer's bias, m/s2.
    covariance : Array
        (15, 15) of the errors dp, dv, dtheta, dbg, dba, `behind` seconds before `time`.
    behind : float
        Age of the covariance against `time`, s.
    nis : dict[str, tuple[float, int]]
        By sensor: normalised innovation squared of its newest measurement, and the degrees of freedom.
    refused : dict[str, int]
        By sensor: number of refused measurements.
    lost : bool, default False
        Whether so many measurements in a row were refused that the estimate is wrong.
    doubted : tuple[str, ...], default ()
        Sensors with so many refusals: a single one of several is faulty; if all are here, the estimate is wrong.
    """

    time: float
    position: Array
    velocity: Array
    quaternion: Array
    gyro_bias: Array
    accel_bias: Array
    covariance: Array
    behind: float
    nis: dict[str, tuple[float, int]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    lost: bool = False
    doubted: tuple[str, ...] = ()


@dataclass(order=True)
class _Measurement:
    time: float
    order: int
    name: str = field(compare=False)
    value: Array = field(compare=False)


def sensors_of(
    outputs: Iterable[str], profile: str = "typical", over: Mapping[str, Any] | None = None
) -> dict[str, Sensor]:
    """Return the sensors that a plant's outputs belong to, found by their 'NAME.time'.

    Parameters
    ----------
    outputs : Iterable[str]
        Names of the plant's outputs.
    profile : str, default 'typical'
        'typical' for the data sheets of that profile, else perfect sensors.
    over : Mapping[str, Any] | None, optional
        Tables by sensor whose keys replace those of the profile.

    Returns
    -------
    dict[str, Sensor]
        Sensors by name.
    """
    names = [name.removesuffix(".time") for name in outputs if name.endswith(".time")]
    base = TYPICAL if profile == "typical" else {}
    return {
        name: sensor_of_table(name, (over or {}).get(name, {}), base.get(name.partition(".")[0], {}))
        for name in names if name.partition(".")[0] in KINDS
    }  # fmt: skip


class Estimator:
    """Estimator that reads states as a controller gets them, and estimates the robot's pose and motion.

    Parameters
    ----------
    sensors : Mapping[str, Sensor]
        Sensors of the robot by name (`read_profile` returns them): one imu, and any of depth, dvl, gps, mag.
    position : Any, optional
        (3,) at the start, m, world. Without it x = y = 0, and the first depth gives the height (0 without a depth
        sensor).
    velocity : Any, default (0.0, 0.0, 0.0)
        (3,) at the start, m/s, world.
    quaternion : Any, default (1.0, 0.0, 0.0, 0.0)
        (4,) at the start, body to world; it is normalised.
    deviations : tuple[float, float, float], default (0.1, 0.1, 0.05)
        Standard deviations of position (m), velocity (m/s) and attitude (rad) at the start.
    gravity : Any, default 9.80665
        (3,) m/s2, world, or its size, downwards.
    surface : float, default 0.0
        Height of the water's surface, from which depth counts, m, world.
    more : Mapping[str, float] | None, optional
        Factors by sensor on the variance of its measurements, for errors outside the data sheets (mountings, tides).
    correlated : bool, default True
        False: the sensors count as if they had white noise alone.

    Raises
    ------
    ModelError
        There is no imu, or the imu's position_m is not zero.

    Examples
    --------
    >>> from rtmms.sensing.data_sheets import Imu
    >>> from rtmms.sensing.estimator import Estimator
    >>> Estimator({"imu": Imu()}, position=(0.0, 0.0, -5.0)).estimate().position
    array([ 0.,  0., -5.])
    """

    def __init__(
        self, sensors: Mapping[str, Sensor], *, position: Any = None, velocity: Any = (0.0, 0.0, 0.0),
        quaternion: Any = (1.0, 0.0, 0.0, 0.0), deviations: tuple[float, float, float] = (0.1, 0.1, 0.05),
        gravity: Any = 9.80665, surface: float = 0.0, more: Mapping[str, float] | None = None, correlated: bool = True,
    ) -> None:  # fmt: skip
        imus = [name for name, sensor in sensors.items() if isinstance(sensor, Imu)]
        if not imus:
            raise ModelError("estimator: expected an imu among the sensors, got " + (", ".join(sensors) or "none"))
        self.imu, self.sensors = imus[0], {k: s for k, s in sensors.items() if isinstance(s, _KINDS)}
        imu = sensors[self.imu]
        assert isinstance(imu, Imu)
        self._imu = imu
        if any(imu.position_m):
            raise ModelError(
                "estimator: the imu's position_m: expected (0, 0, 0), as the estimate is of the "
                f"body's origin, got {tuple(imu.position_m)}"
            )
        self._to_body = rotation(imu.rotation_deg)
        self._noise = _noise(imu)
        self._gravities: list[tuple[float, Array]] = [(-math.inf, _downwards(gravity))]
        self._noise[N_GRAVITY:] = self._gravities[0][1]
        used: dict[str, Sensor] = {self.imu: imu, **self.sensors}
        self._correlated, places = correlated_errors(used, self._to_body, correlated)
        factors = more or {}
        self._models = {
            name: _Model(name, sensor, factors.get(name, 1.0), self._correlated, places[name], surface)
            for name, sensor in self.sensors.items()
        }
        latest = max([s.latency_s + s.jitter_s for s in self.sensors.values()], default=0.0)
        self.behind_s = max(0.0, latest - imu.latency_s) + 2.0 / imu.rate_hz
        self._x, self._p = np.zeros(X_SIZE), np.zeros((E_SIZE, E_SIZE))
        self._x[X_P:X_V], self._x[X_V:X_Q] = (0.0, 0.0, 0.0) if position is None else position, velocity
        self._x[X_Q:X_BG] = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
        drifts = _drifts(imu)
        turn_on = imu.gyro_turn_on_rad_s**2 + drifts[0] ** 2, imu.accel_turn_on_m_s2**2 + drifts[1] ** 2
        for k, variance in enumerate((*(d * d for d in deviations), *turn_on)):
            for i in range(3 * k, 3 * k + 3):
                self._p[i, i] = variance
        if position is None and any(isinstance(sensor, Depth) for sensor in self.sensors.values()):
            self._p[2, 2] = UNKNOWN_HEIGHT_M**2
        self._time = self._trusts_from = math.nan
        # samples of the imu from the filter's own instant on
        self._ring = np.zeros((math.ceil(self.behind_s * imu.rate_hz) + 8, _SAMPLE))
        self._first = self._held = 0
        self._waiting: list[_Measurement] = []
        self._latest: dict[str, float] = {}
        self._r, self._f = np.zeros((5, 3)), np.zeros((E_SIZE, E_SIZE))
        self._error, self._nis = np.zeros(E_SIZE), dict[str, tuple[float, int]]()
        self._refused: dict[str, int] = {}
        self._in_row = dict.fromkeys(self._models, 0)

    @property
    def gravity(self) -> Array:
        """Newest gravity, (3,) m/s2, world."""
        return self._gravities[-1][1].copy()

    def change_gravity(self, value: Any, since: float) -> None:
        """Use another gravity for samples of the imu that were taken after a time, whenever they arrive.

        Parameters
        ----------
        value : Any
            m/s2: (3,) of the world, or its size, downwards.
        since : float
            Time of the change, s.
        """
        new = _downwards(value)
        if not np.array_equal(new, self._gravities[-1][1]):
            self._gravities.append((since, new))

    hear = Renamed("update")

    def update(self, outputs: Mapping[str, Any]) -> bool:
        """Read the measurements of a state.

        A sensor whose outputs are missing is silent.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs by name, as 'imu.gyro' and 'imu.time'.

        Returns
        -------
        bool
            True where the imu had a new sample.
        """
        for order, name in enumerate(self._models):
            time = float(outputs.get(f"{name}.time", -1.0))
            if time < 0.0 or self._latest.get(name, -1.0) >= time:
                continue
            self._latest[name] = time
            if float(outputs.get(f"{name}.valid", 1.0)) > 0.0:
                value = np.array(outputs[self._models[name].output], dtype=float, ndmin=1)  # it waits: a copy
                heapq.heappush(self._waiting, _Measurement(time, order, name, value))
        time = float(outputs.get(f"{self.imu}.time", -1.0))
        room = len(self._ring)
        if time < 0.0 or (self._held and self._ring[(self._first + self._held - 1) % room, 0] >= time):
            return False
        if not self._held:
            self._time, self._trusts_from = time, time + SETTLES_S  # where the estimate begins
        elif time - self._ring[(self._first + self._held - 1) % room, 0] > _GAP / self._imu.rate_hz:
            self._over_a_gap(time)
        if self._held == room:
            self._advance()
        row = self._ring[(self._first + self._held) % room]
        row[0] = time
        row[1:4] = self._to_body @ np.asarray(outputs[f"{self.imu}.gyro"], dtype=float)
        row[4:7] = self._to_body @ np.asarray(outputs[f"{self.imu}.accel"], dtype=float)
        row[7:] = self._gravity_at(time)
        self._held += 1
        while self._held > 1 and self._ring[(self._first + 1) % room, 0] <= time - self.behind_s:
            self._advance()
        return True

    @property
    def knows_height(self) -> bool:
        """Whether the height was stated at the start, or has been measured."""
        return bool(self._p[2, 2] < 0.25 * UNKNOWN_HEIGHT_M**2)

    def estimate(self) -> Estimate:
        """Return the estimate at the time of the imu's newest sample.

        Returns
        -------
        Estimate
            The covariance is older than the state, see `Estimate.behind`.
        """
        x, time = self._x.copy(), self._time
        if self._held:
            forward(x, self._ring, self._first, self._held, time, np.empty(3), self._r)
            time = float(self._ring[(self._first + self._held - 1) % len(self._ring), 0])
        doubted = tuple(name for name, n in self._in_row.items() if n >= _DIVERGED)
        return Estimate(
            time, x[X_P:X_V], x[X_V:X_Q], x[X_Q:X_BG], x[X_BG:X_BA], x[X_BA:], self._p.copy(), time - self._time,
            dict(self._nis), dict(self._refused), bool(doubted), doubted,
        )  # fmt: skip

    def behind(self) -> Estimate:
        """Return the filter's own state with the covariance of the same instant, to check its consistency.

        Returns
        -------
        Estimate
            `Estimate.behind` is 0 and nothing is doubted.
        """
        x = self._x.copy()
        return Estimate(
            self._time, x[X_P:X_V], x[X_V:X_Q], x[X_Q:X_BG], x[X_BG:X_BA], x[X_BA:], self._p.copy(), 0.0,
            dict(self._nis), dict(self._refused),
        )  # fmt: skip

    def snapshot(self) -> bytes:
        """Return the whole state as bytes, for an estimator of the same sensors.

        Returns
        -------
        bytes
            Numbers of float64, for `restore`.
        """
        waiting = sorted(self._waiting)
        latest, nis, refused = self._latest, self._nis, self._refused
        rows = [
            (latest.get(name, -1.0), *nis.get(name, (0.0, 0)), refused.get(name, 0), self._in_row[name])
            for name in self._models
        ]
        late = np.zeros((len(waiting), _LATE))
        for row, item in zip(late, waiting, strict=True):
            row[:2], row[2 : 2 + len(item.value)] = (item.time, item.order), item.value
        head = (self._time, self._trusts_from, self._first, self._held, len(waiting))
        known = self._correlated
        since, new = self._gravities[-1]
        gravity = (max(since, -1.0), *new, *self._gravities[max(0, len(self._gravities) - 2)][1])
        parts = (head, gravity, self._x, self._p, known.value, known.among, known.cross, self._ring, rows, late)
        return b"".join(np.asarray(part, dtype=float).tobytes() for part in parts)

    def restore(self, blob: bytes) -> None:
        """Restore the state from a snapshot.

        Parameters
        ----------
        blob : bytes
            Bytes from `snapshot`.

        Raises
        ------
        ModelError
            It is no snapshot of an estimator of these sensors; the state has not changed.
        """
        names, room = list(self._models), len(self._ring)
        known = self._correlated
        sizes = (
            _HEAD, _GRAVITY, X_SIZE, E_SIZE * E_SIZE, known.value.size, known.among.size, known.cross.size,
            self._ring.size, _ROW * len(names),
        )  # fmt: skip
        state_size = sum(sizes)
        foreign = ModelError("restore: this is no snapshot of an estimator of these sensors")
        if len(blob) % 8 or len(blob) < 8 * state_size:
            raise foreign
        numbers = np.frombuffer(blob, np.float64)
        head, gravity, x, p, value, among, cross, ring, rows = np.split(numbers[:state_size], np.cumsum(sizes)[:-1])
        late = numbers[state_size:]
        fits = 0.0 <= head[2] < room and 0.0 <= head[3] <= room and head[4] * _LATE == len(late)
        late = late.reshape(-1, _LATE) if fits else np.zeros((0, _LATE))
        if not fits or not np.isin(late[:, 1], np.arange(len(names))).all():
            raise foreign
        self._time, self._trusts_from = float(head[0]), float(head[1])
        self._first, self._held = int(head[2]), int(head[3])
        before, now = gravity[4:].copy(), gravity[1:4].copy()
        self._gravities = [(-math.inf, before), (float(gravity[0]), now)]
        self._noise[N_GRAVITY:] = now
        self._x[:], self._p[:], self._ring[:] = x, p.reshape(E_SIZE, E_SIZE), ring.reshape(room, -1)
        known.value[:], known.among[:] = value, among.reshape(known.among.shape)
        known.cross[:] = cross.reshape(known.cross.shape)
        states = dict(zip(names, rows.reshape(-1, _ROW).tolist(), strict=True))
        self._latest = {name: row[0] for name, row in states.items() if row[0] >= 0.0}
        self._nis = {name: (row[1], int(row[2])) for name, row in states.items() if row[2] > 0.0}
        self._refused = {name: int(row[3]) for name, row in states.items() if row[3] > 0.0}
        self._in_row = {name: int(row[4]) for name, row in states.items()}
        self._waiting = []
        for row in late:
            name = names[int(row[1])]
            value = row[2 : 2 + len(self._models[name].expected)].copy()
            self._waiting.append(_Measurement(float(row[0]), int(row[1]), name, value))

    def _gravity_at(self, time: float) -> Array:
        """Return the gravity at a sample of the imu, and delete changes that no later sample needs."""
        while len(self._gravities) > 1 and self._gravities[1][0] < time:
            del self._gravities[0]
        return self._gravities[0][1]

    def _over_a_gap(self, time: float) -> None:
        """Continue over a gap in the samples of the imu, at constant velocity and with growing variance."""
        while self._held > 1:
            self._advance()
        start, self._held = self._time, 0
        gap, zero = time - start, np.zeros(3)
        while True:
            measured = self._waiting[0] if self._waiting and self._waiting[0].time <= time else None
            at = time if measured is None else max(measured.time, self._time)
            dt = at - self._time
            if dt > 0.0:
                rotation_of(self._x, self._r)
                force = self._x[X_BA:] - self._r[:3].T @ self._noise[N_GRAVITY:]
                gyro = self._x[X_BG:X_BA] + zero
                propagate(self._x, self._p, gyro, force, dt, self._noise, self._r, self._f, self._correlated)
                for k in range(3):
                    self._p[E_V + k, E_V + k] += BLIND_M_S2**2 * gap * dt
                    self._p[E_Q + k, E_Q + k] += BLIND_RAD_S**2 * gap * dt
                self._time = at
            if measured is None:
                return
            heapq.heappop(self._waiting)
            self._take(measured, self._x[X_BG:X_BA].copy())

    def start_anew(self) -> None:
        """Start anew where the measurements contradict the estimate.

        The filter accepts all measurements for a while again, and the variances of position, velocity and attitude
        become large.
        """
        self._trusts_from = self._time + SETTLES_S
        self._in_row = dict.fromkeys(self._models, 0)
        for k, deviation in zip((E_P, E_V, E_Q), _ANEW, strict=True):
            self._p[k : k + 3, :] = self._p[:, k : k + 3] = 0.0
            self._correlated.cross[k : k + 3] = 0.0
            for i in range(k, k + 3):
                self._p[i, i] = deviation**2

    def _advance(self) -> None:
        """Advance the filter to the imu's next sample, with each measurement up to it at its own instant."""
        item, other = self._ring[self._first], self._ring[(self._first + 1) % len(self._ring)]
        start, time = self._time, float(other[0])
        before_rate, before_force, gyro, accel = item[1:4], item[4:7], other[1:4], other[4:7]
        self._noise[N_GRAVITY:] = 0.5 * (item[7:] + other[7:])
        while self._waiting and self._waiting[0].time <= time:
            measured = heapq.heappop(self._waiting)
            at = max(measured.time, self._time)
            self._propagate(at, start, time, before_rate, before_force, gyro, accel)
            share = (at - start) / (time - start)
            self._take(measured, before_rate + share * (gyro - before_rate))
        self._propagate(time, start, time, before_rate, before_force, gyro, accel)
        self._first, self._held = (self._first + 1) % len(self._ring), self._held - 1

    def _propagate(
        self, to: float, start: float, end: float, rate0: Array, force0: Array, rate1: Array, force1: Array
    ) -> None:  # fmt: skip
        """Propagate over a part of the time between two samples, between which rate and force are linear."""
        dt = to - self._time
        if dt <= 0.0:
            return
        share = (0.5 * (self._time + to) - start) / (end - start)
        rate, force = rate0 + share * (rate1 - rate0), force0 + share * (force1 - force0)
        propagate(self._x, self._p, rate, force, dt, self._noise, self._r, self._f, self._correlated)
        self._time = to

    def _take(self, measured: _Measurement, gyro: Array) -> None:
        model, name = self._models[measured.name], measured.name
        model.expect(self._x, gyro, self._r)
        residual = measured.value - model.expected
        gate = GATES[len(residual)] if self._time >= self._trusts_from else 0.0
        squared = correct(
            self._x, self._p, model.rows, model.error_rows, model.first, residual, model.variance, gate, model.work,
            self._error, self._correlated,
        )  # fmt: skip
        self._nis[name] = squared, len(residual)
        if squared > gate > 0.0:
            self._refused[name] = self._refused.get(name, 0) + 1
            self._in_row[name] += 1
        else:
            self._in_row[name] = 0


def compile_ahead() -> None:
    """Compile all kernels that an estimator may need, or load them from the cache, with invented readings."""
    item = Estimator({name: kind() for name, kind in KINDS.items() if name in ("imu", "mag", "depth", "dvl", "gps")})
    three = (1e-3, 1e-3, 1e-3)
    for k in range(8):
        times = {f"{name}.time": 5e-3 * k for name in ("imu", "mag", "depth", "dvl", "gps")}
        item.update(times | {
            "imu.gyro": three, "imu.accel": (0.0, 0.0, 9.8), "mag.field": three, "depth.value": 0.0,
            "dvl.velocity": three, "gps.position": three,
        })  # fmt: skip
    item.estimate()


class _Model:
    """Expected measurement of a sensor.

    It has rows (m, 15), error_rows (m, n) of the persistent errors, expected, and variance (m,).
    """

    def __init__(
        self, name: str, sensor: Sensor, more: float, correlated: CorrelatedErrors, place: slice, surface: float
    ) -> None:  # fmt: skip
        self.sensor, size = sensor, 1 if isinstance(sensor, Depth) else 3
        quantity = {Depth: "value", Dvl: "velocity", Gps: "position", Magnetometer: "field"}[type(sensor)]
        self.output = f"{name}.{quantity}"
        self.rows, self.expected = np.zeros((size, E_SIZE)), np.zeros(size)
        self.first, self.error_rows = place.start, np.zeros((size, place.stop - place.start))
        self.variance = np.full(size, more * _variance(sensor))
        self.work = np.zeros((size + 1, size + E_SIZE + len(correlated.variance)))
        self._correlated, self._surface = correlated, surface
        self._place, self._mount = np.array(sensor.position_m, dtype=float), rotation(sensor.rotation_deg)
        self._field = np.zeros(3)
        if isinstance(sensor, Magnetometer):
            self._field = np.array(sensor.field_t if sensor.field_t is not None else earth_field(name, sensor))

    def expect(self, x: Array, gyro: Array, r: Array) -> None:
        if isinstance(self.sensor, Depth):
            expect_depth(x, self._place, self._surface, r, self.rows, self.expected)
        elif isinstance(self.sensor, Dvl):
            expect_velocity(x, gyro, self._place, self._mount, r, self.rows, self.expected)
        elif isinstance(self.sensor, Gps):
            expect_position(x, self._place, r, self.rows, self.expected)
        else:
            expect_direction(x, self._field, self._mount, r, self.rows, self.expected)
        expect_correlated(self.first, self.expected, self.error_rows, self._correlated)


def _downwards(gravity: Any) -> Array:
    """Return (3,) m/s2, world, from a vector or from the size of a downward gravity."""
    return np.array((0.0, 0.0, -gravity) if np.ndim(gravity) == 0 else gravity, dtype=float)


def _drifts(imu: Imu) -> tuple[float, float]:
    """Return the standard deviations of the drifts of gyroscope (rad/s) and accelerometer (m/s2)."""
    return (
        drift_of(imu.gyro_noise_rad_s_rt_hz, imu.gyro_instability_rad_s, imu.gyro_correlation_s),
        drift_of(imu.accel_noise_m_s2_rt_hz, imu.accel_instability_m_s2, imu.accel_correlation_s),
    )


def _noise(imu: Imu) -> Array:
    """Return the noise, without gravity.

    A drift is modelled as a random walk, as it behaves over times much shorter than its correlation time. A bias is a
    constant turn-on error plus a drift, and the filter estimates their sum.
    """
    noise, drifts = np.zeros(N_SIZE), _drifts(imu)
    g, a = imu.gyro_noise_rad_s_rt_hz, imu.accel_noise_m_s2_rt_hz
    noise[N_GYRO] = math.hypot(g, imu.gyro_resolution_rad_s / math.sqrt(12.0 * imu.rate_hz))
    noise[N_ACCEL] = math.hypot(a, imu.accel_resolution_m_s2 / math.sqrt(12.0 * imu.rate_hz))
    noise[N_BG] = drifts[0] * math.sqrt(2.0 / imu.gyro_correlation_s)
    noise[N_BA] = drifts[1] * math.sqrt(2.0 / imu.accel_correlation_s)
    return noise


def _variance(sensor: Sensor) -> float:
    """Return the variance that is independent in each sample: white noise and quantum."""
    if isinstance(sensor, Depth):
        return sensor.noise_m**2 + sensor.resolution_m**2 / 12.0 + 1e-12
    if isinstance(sensor, Dvl):
        return sensor.noise_m_s**2 + sensor.resolution_m_s**2 / 12.0 + 1e-12
    if isinstance(sensor, Gps):
        return sensor.noise_m**2 + 1e-12
    assert isinstance(sensor, Magnetometer)
    return sensor.noise_t**2 + sensor.resolution_t**2 / 12.0 + 1e-22
