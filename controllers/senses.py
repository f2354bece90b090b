"""Motion of the robot for a controller: from its sensors by the estimator, or the truth where there are no sensors.

`MotionSource` also reports doubts: of a sensor that has been silent for too long, and of an estimate that its own
measurements contradict. The data sheets of the sensors are those of the profile `typical`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import rtmms
from rtmms.base.attitude import euler, rotate, rotate_back

if TYPE_CHECKING:
    from rtmms.sensing.estimator import Estimate, Estimator

SILENT_S = {"imu": 0.05, "depth": 0.2, "dvl": 1.0, "mag": 0.5, "gps": 2.0}
"""Age of the newest sample from which on a sensor is silent, s."""
RESTART_S = 3.0
"""Time for which an estimate is lost before it starts anew from the sensors' readings, s."""
_USED_SENSORS = ("imu", "depth", "dvl", "mag", "gps")
"""Sensors that the estimator uses; the receiver only without a Doppler log, as its error is larger than a robot's drift
in water.
"""


@dataclass(slots=True)
class Motion:
    """Motion of the robot at a time.

    Attributes
    ----------
    time : float, default 0.0
        Time, s.
    position : tuple[float, float, float], default (0.0, 0.0, 0.0)
        Position, m, world.
    velocity : tuple[float, float, float], default (0.0, 0.0, 0.0)
        Velocity, m/s, body.
    world_velocity : tuple[float, float, float], default (0.0, 0.0, 0.0)
        Velocity, m/s, world.
    roll, pitch, yaw : float, default 0.0
        Angles, rad.
    rate : tuple[float, float, float], default (0.0, 0.0, 0.0)
        Angular velocity, rad/s, body.
    doubts : set[str]
        Sensors that are silent or contradict the others, and 'estimate' where it is lost.
    """

    time: float = 0.0
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    world_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0
    rate: tuple[float, float, float] = (0.0, 0.0, 0.0)
    doubts: set[str] = field(default_factory=set)


class MotionSource:
    """Source of the robot's motion.

    Parameters
    ----------
    name : str
        Name of the controller, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.estimator: Estimator | None = None
        self._parameters: Mapping[str, Any] = {}
        self._sensed, self._time = False, -inf
        self._from = 0.0
        self._motion = Motion()
        self._lost_since = inf

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Find out whether the plant sends its motion or an imu.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            The plant, with its channels and parameters.

        Raises
        ------
        ModelError
            It sends neither.
        """
        names = dict.fromkeys(
            channel.name for channel in plant.outputs
        )  # in the plant's order, which the estimator keeps
        if {"position", "quaternion", "velocity", "angular_velocity"} <= names.keys():
            self._sensed = False
        elif "imu.gyro" in names:
            self._sensed = True
            self._looked_at = [name for name in _USED_SENSORS if name != "gps" or "dvl.time" not in names]
            self._sensors, self._plant = names, plant
            self._renew()
        else:
            raise rtmms.ModelError(
                f"controller '{self.name}': expected outputs position, quaternion, velocity and angular_velocity, or "
                "an imu (--sensors typical); the plant has neither"
            )
        self._time = -inf

    @staticmethod
    def prepare() -> None:
        """Compile the estimator, or load it from the cache, before the plant waits."""
        from rtmms.sensing.estimator import compile_ahead

        compile_ahead()

    @property
    def sensed(self) -> bool:
        """Whether the motion comes from sensors, not from the truth."""
        return self._sensed

    def read(self, state: rtmms.State) -> Motion:
        """Return the motion of a state.

        Parameters
        ----------
        state : rtmms.State
            The plant's state.

        Returns
        -------
        Motion
            One object, which the next call changes.
        """
        outputs, time = state.outputs, state.time
        if time < self._time and self._sensed:  # the first after a reset
            self._renew()
        if time < self._time or self._time == -inf:
            self._from = time
        self._time = time
        if not self._sensed:
            return self._true(outputs, time)
        return self._estimated(outputs, time)

    def _renew(self) -> None:
        from rtmms.sensing.estimator import Estimator, sensors_of

        sensors = {name: sensor for name, sensor in sensors_of(self._sensors).items() if name in self._looked_at}
        surface = float(self._plant.environment.get("surface_m", 0.0))
        self.estimator = Estimator(
            sensors, deviations=(0.02, 0.05, 0.02), gravity=self._plant.gravity, surface=surface
        )  # fmt: skip

    def _lost(self, now: Estimate, time: float) -> set[str]:
        """Return a sensor that contradicts the others, or the estimate, where several do.

        It starts anew after a while.
        """
        if not now.doubted:
            self._lost_since = inf
            return set()
        if len(now.doubted) == 1:
            return set(now.doubted)
        self._lost_since = min(self._lost_since, time)
        if time - self._lost_since > RESTART_S and self.estimator is not None:
            self.estimator.start_anew()
            self._lost_since = inf
        return {"estimate"}

    def _true(self, outputs: Mapping[str, Any], time: float) -> Motion:
        velocity = _three(outputs["velocity"])
        q = outputs["quaternion"]
        return Motion(
            time, _three(outputs["position"]), velocity, rotate(q, velocity), *euler(q),
            _three(outputs["angular_velocity"]),
        )  # fmt: skip

    def _estimated(self, outputs: Mapping[str, Any], time: float) -> Motion:
        assert self.estimator is not None
        news = self.estimator.update(outputs)
        doubts = set()
        for name in self._looked_at:
            sampled_at = outputs.get(f"{name}.time")
            if sampled_at is not None and time - max(float(sampled_at), self._from) > SILENT_S[name]:
                doubts.add(name)
        if not news and time > self._from + SILENT_S["imu"]:
            self._motion.doubts = doubts | (self._motion.doubts & {"estimate"})
            self._motion.time = time
            return self._motion
        now: Estimate = self.estimator.estimate()
        doubts |= self._lost(now, time)
        if not self.estimator.knows_height:
            doubts.add("depth")
        gyro, bias = outputs["imu.gyro"], now.gyro_bias
        q = now.quaternion.tolist()
        world = _three(now.velocity.tolist())
        self._motion = Motion(
            time, _three(now.position.tolist()), rotate_back(q, world), world, *euler(q),
            (gyro[0] - bias[0], gyro[1] - bias[1], gyro[2] - bias[2]), doubts,
        )  # fmt: skip
        return self._motion


def _three(v: Sequence[float]) -> tuple[float, float, float]:
    return v[0], v[1], v[2]
