"""Sensors that look at a recorded motion, and the estimator that reads them: errors and NEES of a seed.

The truth of a robot is computed once, under commands that do not look at the sensors. The sensors of each seed look at
it, and the estimator of `rtmms run ROBOT --sensors typical --estimate` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.protocol import Channel
from rtmms.sensing.data_sheets import Depth, Dvl, Gps, Imu, Magnetometer, Sensor
from rtmms.sensing.estimator import SETTLES_S
from rtmms.sensing.instruments import look, remember
from rtmms.sensing.layout import M_TIME
from rtmms.sensing.readings import compare_with_truth
from rtmms.sensing.sensed import Estimated
from rtmms.wire.protocol.received_state import PlantInfo, State
from rtmms.wire.protocol.welcome import plain_parameters
from rtmms_controllers.hover import Hover

Array = Any
Commands = Callable[[int, Mapping[str, Array]], Array]
_SAMPLED = (Imu, Magnetometer, Depth, Dvl, Gps)
_MOTION = (("position", "m", 3), ("quaternion", "", 4), ("velocity", "m/s", 3), ("angular_velocity", "rad/s", 3))
PARTS = ("position_m", "velocity_m_s", "attitude_deg")


def swim(plant: Any) -> Commands:
    """The manta's usual gait."""
    rows = plant.gait_commands(round(plant.gait_period() / plant.dt))
    return lambda k, observed: rows[k % len(rows)] * min(1.0, 0.5 * k * plant.dt)


def neutral(plant: Any) -> Commands:
    """The eel swims by its own law."""
    command = np.array([channel.neutral for channel in plant.actuators])
    return lambda k, observed: command


def weave(plant: Any) -> Commands:
    """The torpedo: most of its thrust, rudders and elevators that swing slowly."""
    names = [channel.name for channel in plant.actuators]
    swings = {"fin.top": (0.06, 47.0), "fin.bottom": (0.06, 47.0), "fin.left": (0.02, 23.0), "fin.right": (0.02, 23.0)}

    def command(k: int, observed: Mapping[str, Array]) -> Array:
        out, time = np.zeros(len(names)), k * plant.dt
        for i, name in enumerate(names):
            size, period = swings.get(name.removesuffix(".angle"), (0.0, 1.0))
            out[i] = size * math.sin(2.0 * math.pi * time / period) if size else 180.0 * min(1.0, 0.2 * time)
        return out

    return command


def circle(plant: Any) -> Commands:
    """The quadrotor follows a place that goes round, by the truth."""
    hover, names = Hover(), [channel.name for channel in plant.actuators]
    info = PlantInfo("quadrotor", plant.dt, "lockstep", None, None, plant.actuators, plant.outputs,
                     parameters=plain_parameters(plant))  # fmt: skip
    hover.start(info)

    def command(k: int, observed: Mapping[str, Array]) -> Array:
        t = k * plant.dt
        hover.x_m, hover.y_m = 3.0 * math.sin(0.2 * t), 3.0 * math.cos(0.2 * t) - 3.0
        hover.z_m, hover.yaw_deg = 2.0 + 0.5 * math.sin(0.31 * t), math.degrees(0.1 * t) % 360.0
        outputs = {name: observed[name].tolist() for name, _, _ in _MOTION}
        asked = hover.update(State({"step": k, "timestamp": t, "outputs": outputs}, info))
        return np.array([asked[name] for name in names])

    return command


DRIVES: Mapping[str, Callable[[Any], Commands]] = {
    "manta": swim, "torpedo": weave, "eel": neutral, "quadrotor": circle,
}  # fmt: skip


@dataclass(frozen=True)
class Known:
    """What a plant did, and what its sensors need of it; path: of a file with position, quaternion, velocity and rate
    of the body at each step."""

    dt: float
    gravity: float
    sensors: Mapping[str, Sensor]
    path: str

    def rows(self) -> Array:
        """Read only as far as they are asked for."""
        return np.load(self.path, mmap_mode="r")


class Replayed:
    """A plant that moves as another did, in the same environment."""

    def __init__(self, known: Known) -> None:
        self.dt, self.rows, self._at = known.dt, known.rows(), 0
        self.actuators: tuple[Channel, ...] = ()
        self.outputs = tuple(Channel(name, unit, (size,)) for name, unit, size in _MOTION)
        self.parameters = {"gravity_m_s2": known.gravity}

    def reset(self, seed: int = 0) -> None:
        self._at = 0

    def step(self, command: Array) -> None:
        self._at += 1

    def observe(self) -> dict[str, Array]:
        row, result, at = self.rows[self._at], {}, 0
        for name, _, size in _MOTION:
            result[name] = row[at : at + size].copy()
            at += size
        return result

    def snapshot(self) -> bytes:
        return str(self._at).encode()

    def restore(self, blob: bytes) -> None:
        self._at = int(blob)


@kernel
def _until_news(
    rows: Array, at: int, dt: float, timing: Array, block: Array, seed: int, clock: int, motion: Array, scratch: Array,
    expected: Array,
) -> int:  # fmt: skip
    """Steps of plant and sensors until the sensor whose time stands in readings[clock] has something new."""
    before = expected[clock]
    while at + 1 < rows.shape[0]:
        at += 1
        remember(motion)
        motion[M_TIME] = at * dt
        for k in range(13):
            motion[M_TIME + 1 + k] = rows[at, k]
        look(timing, block, seed, motion, scratch, expected)
        if expected[clock] != before:
            break
    return at


def judged(known: Known, seed: int, until: tuple[float, ...], every_s: float) -> Array:
    """(times, 2, parts): mean square of the error and mean NEES from SETTLES_S up to each time."""
    plant = Estimated(Replayed(known), known.sensors)
    plant.reset(seed)
    rows = np.ascontiguousarray(plant.truth.rows[: round(until[-1] / plant.dt) + 1])  # type: ignore[attr-defined]
    suite, expected, motion = plant.suite, plant._state, plant._motion
    clock = next(place.start for name, place, _ in plant._measured if name == "imu.time")
    at, sums, count, next_s, result = 0, np.zeros((2, len(PARTS))), 0, SETTLES_S, []
    for end in until:
        while (at + 1) * plant.dt <= end and at + 1 < len(rows):
            at = _until_news(
                rows, at, plant.dt, suite.timing, suite.block, seed, clock, motion, plant.system.scratch, expected
            )
            plant.estimator.update(plant._views)
            if at * plant.dt < next_s:
                continue
            next_s += every_s
            now = plant.estimator.behind()
            row = rows[round(now.time / plant.dt)]
            turn = quaternion_matrix(row[3:7])
            errors_of = compare_with_truth(now, row[:3], turn @ row[7:10], turn)
            sums += [[errors_of[name][0] ** 2 for name in PARTS], [errors_of[name][1] for name in PARTS]]
            count += 1
        result.append(sums / count)
    return np.array(result)
