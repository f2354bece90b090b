"""Provide the sensors of robots for one another: range, bearing, and so relative position, with a sensor's errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import Array
from rtmms.plant.description import unwrapped
from rtmms.plant.protocol import Channel, Plant
from rtmms.sensing.data_sheets import TYPICAL, RelativeSensor
from rtmms.sensing.instruments import ROUNDING
from rtmms.sensing.sensed import Sensed
from rtmms.sensing.suite import sensor_of_class

_NEEDED = ("position", "quaternion")
_NOTHING = np.zeros(0)


class RelativeSensors:
    """The sensors of robots for one another, as outputs SEER.OTHER.quantity.

    The quantities of each pair:

    - range: distance between the origins, m;
    - bearing (2,), rad: azimuth about z, to the left, and elevation, in body axes;
    - position (3,), m, body axes: of the other robot, from the measured range and bearing;
    - valid: 1 where the last sample was in range, else 0;
    - time: of the last sample, s; -1 before the first.

    Each pair has the timing, the errors, and the random numbers of a sensor of its own
    (rtmms.sensing.data_sheets.RelativeSensor).

    Parameters
    ----------
    wanted : Mapping[str, Mapping[str, RelativeSensor]]
        For each robot, its sensors by the names of other robots.
    robots : Mapping[str, Plant]
        Plants by name.
    dt : float
        Step, s.

    Attributes
    ----------
    outputs : tuple of Channel
        Channels of all pairs.

    Raises
    ------
    ModelError
        A robot of a pair has no position or no quaternion.
    """

    def __init__(
        self, wanted: Mapping[str, Mapping[str, RelativeSensor]], robots: Mapping[str, Plant], dt: float
    ) -> None:
        """Make a sensor for each pair."""
        self._sensed: list[tuple[str, Sensed]] = []
        for seer, others in wanted.items():
            for other, sensor in others.items():
                name = f"{seer}.{other}"
                pair = _RobotPair(name, robots[seer], robots[other], dt, sensor)
                self._sensed.append((name, Sensed(pair, {name: sensor})))
        self.outputs: tuple[Channel, ...] = tuple(
            channel
            for name, item in self._sensed
            for channel in (*item.suite.channels, Channel(f"{name}.position", "m", (3,), "body"))
        )

    def __bool__(self) -> bool:
        """Return whether a robot senses another."""
        return bool(self._sensed)

    def reset(self, seed: int) -> None:
        """Switch the sensors on again, each with a seed of its own.

        Parameters
        ----------
        seed : int
            Seed of the world.
        """
        for k, (_, item) in enumerate(self._sensed):
            item.reset(seed + (k + 1) * 1_000_003)

    def step(self) -> None:
        """Advance the sensors after the robots have taken a step."""
        for _, item in self._sensed:
            item.step(_NOTHING)

    def observe(self) -> dict[str, Array]:
        """Return the readings that have arrived.

        Returns
        -------
        dict[str, array]
            Outputs by name.
        """
        readings: dict[str, Array] = {}
        for name, item in self._sensed:
            outputs = item.observe()
            readings |= {channel.name: outputs[channel.name] for channel in item.suite.channels}
            azimuth, elevation = readings[f"{name}.bearing"]
            flat = math.cos(elevation)
            direction = (flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation))
            readings[f"{name}.position"] = float(readings[f"{name}.range"]) * np.array(direction)
        return readings

    @property
    def parts(self) -> tuple[Sensed, ...]:
        """Sensors whose state belongs to the world's."""
        return tuple(item for _, item in self._sensed)


class _RobotPair:
    """Two robots as a plant whose outputs are the place of one relative to the other.

    It computes them at the samples alone.

    Parameters
    ----------
    name : str
        SEER.OTHER.
    seer : Plant
        Plant that has the sensor.
    other : Plant
        Plant that it senses.
    dt : float
        Step, s.
    sensor : RelativeSensor
        Data of the sensor.
    """

    actuators: tuple[Channel, ...] = ()
    outputs: tuple[Channel, ...] = (Channel("range", "m", (1,)), Channel("bearing", "rad", (2,), "body"))

    def __init__(self, name: str, seer: Plant, other: Plant, dt: float, sensor: RelativeSensor) -> None:
        """Check that both robots have a position and a quaternion."""
        self.dt, self._sensor = dt, sensor
        self._seer, self._other = unwrapped(seer), unwrapped(other)
        for plant, whose in ((self._seer, name.partition(".")[0]), (self._other, name.partition(".")[2])):
            known = {channel.name for channel in plant.outputs}
            for output in _NEEDED:
                if output not in known:
                    raise ModelError(f"robot '{name.partition('.')[0]}': sees: robot '{whose}' has no {output}")
        self._steps, self._samples = 0, 0.0
        self._range, self._bearing = np.zeros(1), np.zeros(2)

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0.

        Parameters
        ----------
        seed : int, default 0
            Without effect.
        """
        self._steps, self._samples = 0, 0.0

    def step(self, command: Array) -> None:
        """Count a step.

        Parameters
        ----------
        command : (0,) array
            Without effect.
        """
        self._steps += 1

    def observe(self) -> dict[str, Array]:
        """Return range and bearing at the last sample.

        Returns
        -------
        dict[str, array]
            Outputs by name.
        """
        due = math.floor((self._steps * self.dt - self._sensor.phase_s) * self._sensor.rate_hz + ROUNDING) + 1.0
        if due > self._samples:
            self._samples = due
            here, there = self._seer.observe(), self._other.observe()
            x, y, z = _in_body(here["quaternion"], there["position"] - here["position"])
            flat = math.hypot(x, y)
            self._range[0] = math.hypot(flat, z)
            self._bearing[:] = math.atan2(y, x), math.atan2(z, flat)
        return {"range": self._range, "bearing": self._bearing}

    def snapshot(self) -> bytes:
        """Return the state.

        Returns
        -------
        bytes
            Opaque bytes for `restore`.
        """
        return np.array([self._steps, self._samples, self._range[0], *self._bearing]).tobytes()

    def restore(self, blob: bytes) -> None:
        """Restore a state.

        Parameters
        ----------
        blob : bytes
            Bytes of `snapshot`.
        """
        steps, self._samples, self._range[0], self._bearing[0], self._bearing[1] = np.frombuffer(blob).tolist()
        self._steps = int(steps)


def _in_body(quaternion: Any, vector: Any) -> tuple[float, float, float]:
    """Rotate a vector from the world to the body: v' = q* v q."""
    w, x, y, z = (float(item) for item in quaternion)
    a, b, c = (float(item) for item in vector)
    # t = 2 (v x u), of the conjugate; v' = v + w t + t x u
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (
        a + w * tx + (ty * z - tz * y),
        b + w * ty + (tz * x - tx * z),
        c + w * tz + (tx * y - ty * x),
    )


def read(seer: str, table: Any, typical: bool, names: tuple[str, ...]) -> dict[str, RelativeSensor]:
    """Read the other robots that a robot senses, as a user gives them.

    Parameters
    ----------
    seer : str
        Name of the robot.
    table : sequence or mapping
        Names of others, or a table of them with keys of data_sheets.Sight.
    typical : bool
        Whether its sensors have typical errors.
    names : tuple[str, ...]
        Names of all robots.

    Returns
    -------
    dict[str, RelativeSensor]
        Sensors by the name of the other robot.

    Raises
    ------
    ModelError
        A name or a key is wrong; the message has the robot.
    """
    place = f"robot '{seer}': sees"
    tables = (
        table
        if isinstance(table, Mapping)
        else {item: {} for item in table}
        if isinstance(table, list | tuple)
        else None
    )
    if tables is None or not all(isinstance(item, str) for item in tables):
        raise ModelError(f"{place}: expected names of robots, or a table of them, got {table!r:.60}")
    result: dict[str, RelativeSensor] = {}
    for other, table in tables.items():
        if other not in names or other == seer:
            raise ModelError(f"{place}: {UnknownNameError('robot', other, [name for name in names if name != seer])}")
        if not isinstance(table, Mapping):
            raise ModelError(f"{place}: {other}: expected a table, got {table!r:.60}")
        for key in ("position_m", "rotation_deg"):
            if any(np.ravel(table.get(key, 0.0)) != 0.0):
                raise ModelError(
                    f"{place}: {other}: {key}: a robot measures another from its own origin, in its body's axes; "
                    "leave the key out"
                )
        try:
            result[other] = sensor_of_class(
                RelativeSensor, f"{seer}.{other}", table, TYPICAL["sight"] if typical else {}
            )
        except ModelError as fault:
            raise ModelError(f"{place}: {fault}") from None
    return result
