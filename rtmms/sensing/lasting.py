"""Which errors of its sensors last, for a filter: of what size, whether they fade, which of them it estimates.

What a sheet gives for all units is a standard deviation (turn-on, drift); what it gives for one (scale, misalignment,
iron) counts as the standard deviation of that axis: a filter knows how large it is, not which sign it has. Turn-on
errors and drifts of the imu are not among them: they are the biases in the filter's state. What else lasts in an imu
is considered, what lasts in a measurement is estimated with the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rtmms.sensing.data_sheets import Depth, Dvl, Gps, Imu, Magnetometer, Sensor, Vector
from rtmms.sensing.error_state_filter import E_Q, E_SIZE, E_V, OFFSET, SCALE, SKEW, Lasting
from rtmms.spatial import Array

_MEASURES = -1


class _One(NamedTuple):
    """kind, axis: see rtmms.sensing.error_state_filter;  deviation of it;  fades 1/s;  target: where it enters."""

    kind: int
    axis: int
    deviation: float
    fades: float = 0.0
    target: int = _MEASURES


def lasting_errors(
    sensors: Mapping[str, Sensor], mount: Array, any_last: bool = True
) -> tuple[Lasting, dict[str, slice]]:
    """Those of the sensors, and which of them each sensor has.

    mount     (3, 3) axes of the imu, sensor to body
    any_last  False: none, as if the sensors had white noise alone
    """
    found: list[_One] = []
    places = {}
    for name, sensor in sensors.items():
        first = len(found)
        found += [one for one in _of(sensor) if one.deviation] if any_last else []
        places[name] = slice(first, len(found))
    rows = np.array([(one.kind, one.axis, one.target) for one in found], dtype=np.int64).reshape(-1, 3)
    size = len(found)
    variance = np.array([one.deviation**2 for one in found], dtype=float)
    fades = np.array([one.fades for one in found], dtype=float)
    estimated = np.array([one.target == _MEASURES for one in found], dtype=np.int64)
    lasting = Lasting(
        rows, estimated, np.zeros(size), np.diag(variance), np.zeros((E_SIZE, size)), variance, fades, mount,
        np.zeros(3), np.zeros(3), np.zeros(size),
    )  # fmt: skip
    return lasting, places


def _of(sensor: Sensor) -> Iterator[_One]:
    if isinstance(sensor, Imu):
        yield from _crooked(sensor.gyro_scale_error, sensor.gyro_misalignment_rad, E_Q)
        yield from _crooked(sensor.accel_scale_error, sensor.accel_misalignment_rad, E_V)
    elif isinstance(sensor, Depth):
        yield _One(OFFSET, 0, sensor.turn_on_m)
        yield _One(OFFSET, 0, sensor.wander_m, 1.0 / sensor.correlation_s)
        yield _One(SCALE, 0, sensor.scale_error)
    elif isinstance(sensor, Dvl):
        for k in range(3):
            yield _One(OFFSET, k, sensor.turn_on_m_s)
        yield from _crooked(sensor.scale_error, sensor.misalignment_rad)
    elif isinstance(sensor, Gps):
        for k in range(3):
            yield _One(OFFSET, k, sensor.wander_m, 1.0 / sensor.correlation_s)
    elif isinstance(sensor, Magnetometer):
        for k in range(3):
            yield _One(OFFSET, k, sensor.hard_iron_t[k])
        yield from _crooked(sensor.soft_iron_error, sensor.soft_iron_misalignment_rad)


def _crooked(scale: Vector, misaligned: Vector, target: int = _MEASURES) -> Iterator[_One]:
    for kind, values in ((SCALE, scale), (SKEW, misaligned)):
        for k in range(3):
            yield _One(kind, k, values[k], target=target)
