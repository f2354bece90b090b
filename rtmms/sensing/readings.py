"""Readings of error-free instruments along a known motion, and the consistency of the estimator."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.contract import Applied
from rtmms.base.jit import Array, kernel
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.description import describe_plant
from rtmms.plant.protocol import Plant
from rtmms.sensing.data_sheets import Imu, Sensor
from rtmms.sensing.error_state_filter import E_P, E_Q, E_V
from rtmms.sensing.estimator import SETTLES_S, Estimate
from rtmms.sensing.instruments import perfect, remember
from rtmms.sensing.layout import (
    B_DRIFT,
    B_KIND,
    B_MATRIX,
    B_MORE,
    B_OFFSET,
    B_PLACE,
    B_ROTATION,
    B_SIZE,
    B_STEP,
    B_TURN_ON,
    B_WHITE,
    CAMERA,
    DEPTH,
    M_BEFORE,
    M_EARLIER,
    M_GRAVITY,
    M_POSITION,
    M_TIME,
    M_VECTORS,
    RANGES,
    T_BLOCK,
    VECTOR,
)
from rtmms.sensing.sensed import Estimated, truth_of
from rtmms.sensing.suite import assemble

# What instruments without errors would read along a motion that is known at each step (rtmms.studies.fit_prediction).


MOVING = ("position", "quaternion", "velocity", "angular_velocity")
"""Outputs of a plant that make up a motion, in the order of its rows: 13 numbers."""


class Instrument(NamedTuple):
    """One quantity that a sensor measures.

    Attributes
    ----------
    channel : str
        Its name, as 'imu.gyro'.
    clock : str
        Channel of the sampling time.
    valid : str
        Channel of the validity; '' where a reading is always valid.
    unit : str
        SI unit.
    size : int
        Count of numbers.
    block : Array
        (B_WIDTH,) as in the suite.
    of : str
        The plant's output that the instrument copies; '' for the body's motion.
    noise : float
        Standard deviation of a sample, with the quantum and the drift.
    offset : Array
        (size,) standard deviations of the persistent offsets.
    scale : Array
        Standard deviations of the scale errors: (3,) where size is 3, else (1,).
    skew : Array
        Standard deviations of the misalignments: (3,) where size is 3, else empty.
    """

    channel: str
    clock: str
    valid: str
    unit: str
    size: int
    block: Array
    of: str
    noise: float
    offset: Array
    scale: Array
    skew: Array


def instruments(sensors: Mapping[str, Sensor], plant: Plant) -> tuple[Instrument, ...]:
    """Return the quantities that the sensors measure of a plant, without ranges, which depend on a ground.

    Parameters
    ----------
    sensors : Mapping[str, Sensor]
        Sensors by name.
    plant : Plant
        Plant that has them.

    Returns
    -------
    tuple[Instrument, ...]
        In the order of the sensors.

    Raises
    ------
    ModelError
        A sensor cannot be on this plant, see `assemble`.
    """
    suite = assemble(sensors, plant)
    whose = {place.start: name for name, place in suite.vectors.items()}
    result = []
    for row, name in zip(suite.timing, sensors, strict=True):
        sensor_channels = [channel for channel in suite.channels if channel.name.startswith(f"{name}.")]
        sensor_channels = [channel for channel in sensor_channels if "." not in channel.name.removeprefix(f"{name}.")]
        names = {channel.name for channel in sensor_channels}
        valid = f"{name}.valid" if f"{name}.valid" in names else ""
        channels = [channel for channel in sensor_channels if channel.name not in (valid, f"{name}.time")]
        for k, channel in enumerate(channels):
            block = suite.block[int(row[T_BLOCK]) + k]
            if int(block[B_KIND]) == RANGES:
                continue
            size = int(block[B_SIZE])
            of = whose[int(block[B_MORE])] if int(block[B_KIND]) in (VECTOR, CAMERA) else ""
            matrix = block[B_MATRIX : B_MATRIX + 9].reshape(3, 3)
            offset = np.hypot(block[B_TURN_ON], block[B_DRIFT]) * np.ones(size)
            if size == 3:
                offset = np.hypot(offset, block[B_OFFSET : B_OFFSET + 3])
                scale = np.abs(np.diag(matrix) - 1.0)
                skew = np.abs([matrix[1, 2], matrix[2, 0], matrix[0, 1]])
            else:
                scale, skew = np.abs(matrix[:1, 0] - 1.0), np.zeros(0)
            noise = float(np.sqrt(block[B_WHITE] ** 2 + block[B_STEP] ** 2 / 12.0 + block[B_DRIFT] ** 2))
            clock = f"{name}.time"
            result.append(
                Instrument(channel.name, clock, valid, channel.unit, size, block, of, noise, offset, scale, skew)
            )
    return tuple(result)


def read_along(instrument: Instrument, motion: Array, outputs: Mapping[str, Array], plant: Plant, dt: float) -> Array:
    """Return the readings of an error-free instrument at the end of each step.

    Parameters
    ----------
    instrument : Instrument
        The instrument.
    motion : Array
        (steps, 13): position, quaternion, velocity, angular velocity.
    outputs : Mapping[str, Array]
        The plant's, (steps, ...), for instruments that copy one.
    plant : Plant
        Plant whose gravity and surface hold.
    dt : float
        Step, s.

    Returns
    -------
    Array
        (steps, size).
    """
    if instrument.of and int(instrument.block[B_KIND]) == CAMERA:
        turn, away = (
            instrument.block[B_ROTATION : B_ROTATION + 9].reshape(3, 3),
            outputs[instrument.of].reshape(len(motion), 3),
        )
        observed = (away - instrument.block[B_PLACE : B_PLACE + 3]) @ turn[:, :2]
        pixels: Array = instrument.block[B_MORE + 1] * observed + instrument.block[B_MORE + 2 : B_MORE + 4]
        return pixels
    if instrument.of:
        result: Array = instrument.block[B_MORE + 1] * outputs[instrument.of].reshape(len(motion), instrument.size)
        return result
    out = np.empty((len(motion), instrument.size))
    work = np.zeros(M_VECTORS)
    work[M_GRAVITY:M_VECTORS] = describe_plant(plant).environment().gravity
    block = instrument.block
    if int(block[B_KIND]) == DEPTH:
        block = block.copy()
        block[B_MORE] = describe_plant(plant).environment().surface
    along(block, motion, dt, work, out)
    return out


@kernel
def along(block: Array, motion: Array, dt: float, work: Array, out: Array) -> None:
    """Write the readings of an instrument along a motion, row by row.

    An acceleration uses the two rows before, as far as they exist.

    Parameters
    ----------
    block : Array
        (B_WIDTH,) block of the instrument.
    motion : Array
        (steps, 13) true motion.
    dt : float
        Step, s.
    work : Array
        (M_VECTORS,) scratch with gravity in place.
    out : Array
        (steps, size) result.
    """
    work[M_BEFORE] = work[M_EARLIER] = -1.0
    for k in range(motion.shape[0]):
        work[M_TIME] = k * dt
        for i in range(13):
            work[M_POSITION + i] = motion[k, i]
        perfect(work, block, out[k])
        remember(work)


# The estimator beside a run: what it makes of the sensors, against the truth, and whether it knows how wrong it is.


_PARTS = (("position_m", E_P), ("velocity_m_s", E_V), ("attitude_deg", E_Q))


class Consistency:
    """Observer of a run that compares a plant's estimate with the truth.

    Parameters
    ----------
    plant : Estimated
        Plant with an estimate.

    Attributes
    ----------
    due : int
        Next step whose end is wanted; the loop reads it.
    """

    def __init__(self, plant: Estimated) -> None:
        self._plant = plant
        rate = next(sensor.rate_hz for sensor in plant.sensors.values() if isinstance(sensor, Imu))
        self._stride = max(1, round(1.0 / rate / plant.dt))
        self.clear()

    def clear(self) -> None:
        """Delete all comparisons."""
        room = math.ceil((self._plant.estimator.behind_s + 0.1) / self._plant.dt / self._stride) + 4
        self._truth: deque[tuple[float, Array, Array, Array]] = deque(maxlen=room)
        self._squares: dict[str, list[float]] = {name: [] for name, _ in _PARTS}
        self._nees: dict[str, list[float]] = {name: [] for name, _ in _PARTS}
        self._judged = -math.inf
        self.due = 0

    def start(self, outputs: Mapping[str, Array]) -> None:
        """Read the state before the first step.

        Parameters
        ----------
        outputs : Mapping[str, Array]
            Outputs by name.
        """
        self.due = self._stride - 1

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Read the state at the end of a step.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Its end, s.
        outputs : Mapping[str, Array]
            Outputs at its end, by name.
        command : Array
            Applied command.
        applied : Applied
            Outcome of the step.
        """
        self.due = step + self._stride
        self._truth.append((time, *truth_of(outputs)))
        if time > SETTLES_S:
            self._judge()

    def _judge(self) -> None:
        """Compare at the filter's own instant, to which its covariance belongs."""
        at = self._plant.estimator.behind()
        if at.time <= self._judged:
            return
        self._judged = at.time
        time, position, velocity, rotation = min(self._truth, key=lambda row: abs(row[0] - at.time))
        if abs(time - at.time) > 0.51 * self._stride * self._plant.dt:
            return
        for name, (size, squared) in compare_with_truth(at, position, velocity, rotation).items():
            self._squares[name].append(size**2)
            self._nees[name].append(squared)

    def report(self) -> dict[str, dict[str, Any]]:
        """Return the errors of each quantity.

        Returns
        -------
        dict[str, dict[str, Any]]
            {quantity: {rms, nees}}; nees is the mean of the normalised error squared, 3 where the covariance is right.
        """
        return {
            name: {"rms": float(np.sqrt(np.mean(self._squares[name]))), "nees": float(np.mean(self._nees[name]))}
            for name, _ in _PARTS if self._squares[name]
        }  # fmt: skip


def compare_with_truth(
    at: Estimate, position: Array, velocity: Array, rotation: Array
) -> dict[str, tuple[float, float]]:
    """Compare an estimate with the truth of its instant.

    Parameters
    ----------
    at : Estimate
        The estimate, with the covariance of the same instant.
    position : Array
        (3,) position, m, world.
    velocity : Array
        (3,) velocity, m/s, world.
    rotation : Array
        (3, 3), body to world.

    Returns
    -------
    dict[str, tuple[float, float]]
        {quantity: (size of its error, normalised error squared)}.
    """
    turn = quaternion_matrix(at.quaternion).T @ rotation
    angle = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    result = {}
    for (name, k), wrong in zip(_PARTS, (position - at.position, velocity - at.velocity, angle), strict=True):
        size = float(np.linalg.norm(wrong))
        block = at.covariance[k : k + 3, k : k + 3]
        squared = float(wrong @ np.linalg.solve(block, wrong))
        result[name] = (math.degrees(size) if name == "attitude_deg" else size, squared)
    return result
