"""Tasks of the ids: docs/learning.md has their rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rtmms.base.override import override
from rtmms.gym.task import Array, Mask, Memory, Outputs, Task
from rtmms.plant.coordinates import rotations
from rtmms.plant.description import unwrapped
from rtmms.plant.protocol import Plant


def upwards(quaternion: Array) -> tuple[Array, Array, Array]:
    """Return the world's vertical in the body's axes, the last row of `rotations`.

    Parameters
    ----------
    quaternion : Array
        (runs, 4) body to world.

    Returns
    -------
    tuple[Array, Array, Array]
        Three components, each (runs,).
    """
    w, x, y, z = quaternion.T
    return 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)


def to_world(turn: Array, v: Array) -> Array:
    """Return R v of each run.

    Parameters
    ----------
    turn : Array
        (runs, 3, 3) rotations R.
    v : Array
        (runs, 3) vectors.

    Returns
    -------
    Array
        (runs, 3).
    """
    return turn[:, :, 0] * v[:, :1] + turn[:, :, 1] * v[:, 1:2] + turn[:, :, 2] * v[:, 2:]


def size(v: Array) -> Array:
    """Return the lengths of vectors.

    Parameters
    ----------
    v : Array
        (runs, 3) vectors.

    Returns
    -------
    Array
        (runs,).
    """
    return np.asarray(np.sqrt(v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1] + v[:, 2] * v[:, 2]))


def start_height(plant: Any) -> float:
    """Return z of the robot at t = 0, m, world.

    Parameters
    ----------
    plant : Any
        The robot.

    Returns
    -------
    float
        0 where the plant has no such height.
    """
    return float(getattr(unwrapped(plant), "start_height", 0.0))


class _Manta(Task):
    """Task of the manta, whose fins beat at 0.6 Hz, the front rods 40 deg ahead.

    An action changes amplitude, incidence and turn, a few steps late.
    """

    robot = "manta"
    actions = 3
    frequency_hz = 0.6
    lead = np.radians(40.0)
    rate_1_s = 8.0
    ranges = np.array([np.radians(15.0), np.radians(12.0), np.radians(12.0)])
    """Ranges, rad: of the amplitude about 25 deg, of incidence (front rods up, back ones down), and of the right fin's
    excess over the left.
    """

    def begin(self, random: np.random.Generator, plant: Any) -> dict[str, Any]:
        speed, phase = random.uniform(0.2, 0.5), random.uniform(0.0, 2.0 * np.pi)
        plant.place(velocity=(speed, 0.0, 0.0))
        return {"phase": phase, "held": np.zeros(3), "level": start_height(plant)}

    def commands(self, action: Array, memory: Memory, steps: int, dt: float) -> Array:
        """Return the commands of the beat, with the action's changes at a rate of 8 1/s."""
        time = dt * np.arange(1, steps + 1)
        held, phase = memory["held"], memory["phase"]
        share = np.exp(-self.rate_1_s * time)[None, :, None]
        smooth = action[:, None, :] + (held - action)[:, None, :] * share
        turn = phase[:, None] + 2.0 * np.pi * self.frequency_hz * time
        ahead, along = np.sin(turn + self.lead), np.sin(turn)
        amplitude = np.radians(25.0) + self.ranges[0] * smooth[:, :, 0]
        incidence, more = self.ranges[1] * smooth[:, :, 1], self.ranges[2] * smooth[:, :, 2]
        sides = []
        for sign in (-0.5, 0.5):
            item = amplitude + sign * more
            sides += [item * ahead + incidence, item * along - incidence]
        memory["held"] = smooth[:, -1].copy()
        memory["phase"] = np.mod(turn[:, -1], 2.0 * np.pi)
        return np.stack(sides, axis=2)

    def motion(self, observed: Outputs, memory: Memory) -> list[Array]:
        """Return the columns that every observation of the manta has.

        They are climb (m/s), slopes, speed, rates, phase and the held action.
        """
        a, b, c = upwards(observed["quaternion"])
        x, y, z = observed["velocity"].T
        phase, held, rates = memory["phase"], memory["held"], observed["angular_velocity"]
        return [a * x + b * y + c * z, a, b, x, *rates.T, np.sin(phase), np.cos(phase), *held.T]


class MantaDepth(_Manta):
    """Task to reach and hold a depth at most 0.5 m away."""

    @override
    def start(self, random: np.random.Generator, plant: Any) -> Mapping[str, Any]:
        """Draw the depth."""
        begun = self.begin(random, plant)
        return {**begun, "height": begun["level"] + random.uniform(-0.5, 0.5)}

    @override
    def observation(self, observed: Outputs, memory: Memory) -> Array:
        """Return the height to the goal (m), and the manta's motion."""
        return np.stack([memory["height"] - observed["position"][:, 2], *self.motion(observed, memory)], axis=1)

    @override
    def reward(self, observed: Outputs, action: Array, memory: Memory) -> Array:
        """Return 1 at the depth, 0 at 0.5 m from it, less 0.05 of the largest action's square."""
        off = np.abs(memory["height"] - observed["position"][:, 2])
        return np.asarray(1.0 - np.minimum(off / 0.5, 2.0) - 0.05 * np.max(action * action, axis=1))

    @override
    def ended(self, observed: Outputs, memory: Memory) -> Mask:
        """Return whether the manta is 2 m off or upside down."""
        upright = upwards(observed["quaternion"])[2] > 0.0
        return np.asarray((np.abs(memory["height"] - observed["position"][:, 2]) > 2.0) | ~upright)


class MantaPath(_Manta):
    """Task to follow a circle of 2 to 4 m to either side, at the depth of the start, fast."""

    @override
    def start(self, random: np.random.Generator, plant: Any) -> Mapping[str, Any]:
        """Draw the circle."""
        side = 1.0 if random.random() < 0.5 else -1.0
        return {**self.begin(random, plant), "radius": side * random.uniform(2.0, 4.0)}

    def _course(self, observed: Outputs, memory: Memory) -> tuple[Array, Array, Array]:
        """Return the distance from the circle, outwards (m), and the course's direction there (runs, 2)."""
        radius = memory["radius"]
        x, y = observed["position"][:, 0], observed["position"][:, 1] - radius  # the centre is to the left of the start
        away = np.maximum(np.sqrt(x * x + y * y), 1e-9)
        side = np.sign(radius)
        return away - np.abs(radius), -side * y / away, side * x / away

    @override
    def observation(self, observed: Outputs, memory: Memory) -> Array:
        """Return distance (m) and direction against the circle, its curvature (1/m), height error (m), and motion."""
        turn = rotations(observed["quaternion"])
        off, tx, ty = self._course(observed, memory)
        ahead, across = turn[:, 0, 0] * tx + turn[:, 1, 0] * ty, turn[:, 1, 0] * tx - turn[:, 0, 0] * ty
        curve = 1.0 / memory["radius"]
        return np.stack(
            [off, ahead, across, curve, observed["position"][:, 2] - memory["level"], *self.motion(observed, memory)],
            axis=1,
        )

    @override
    def reward(self, observed: Outputs, action: Array, memory: Memory) -> Array:
        """Return the speed along the course, m/s, less the distances from it, to the side and in depth, m."""
        flow = to_world(rotations(observed["quaternion"]), observed["velocity"])
        off, tx, ty = self._course(observed, memory)
        along = flow[:, 0] * tx + flow[:, 1] * ty
        return np.asarray(along - np.abs(off) - np.abs(observed["position"][:, 2] - memory["level"]))

    @override
    def ended(self, observed: Outputs, memory: Memory) -> Mask:
        """Return whether the manta is 1.5 m off or upside down."""
        off, _, _ = self._course(observed, memory)
        upright = upwards(observed["quaternion"])[2] > 0.0
        return np.asarray((np.abs(off) > 1.5) | (np.abs(observed["position"][:, 2] - memory["level"]) > 1.5) | ~upright)


class _Hover(Task):
    """Task to hold the place of the start."""

    error_scale_m = 1.0
    speed = 1.0
    rate = 1.0

    def observation(self, observed: Outputs, memory: Memory) -> Array:
        turn = rotations(observed["quaternion"])
        parts = [observed["position"] / self.error_scale_m, to_world(turn, observed["velocity"]) / self.speed]
        parts += [turn.reshape(-1, 9), observed["angular_velocity"] / self.rate]
        parts += [value[:, None] if value.ndim == 1 else value for _, value in sorted(memory.items())]
        return np.concatenate(parts, axis=1)

    def reward(self, observed: Outputs, action: Array, memory: Memory) -> Array:
        """Return 1 at the place, 0 at `error_scale_m` from it, less 0.05 of the largest action's square."""
        off = size(observed["position"]) / self.error_scale_m
        return np.asarray(1.0 - np.minimum(off, 2.0) - 0.05 * np.max(action * action, axis=1))

    def ended(self, observed: Outputs, memory: Memory) -> Mask:
        upright = upwards(observed["quaternion"])[2] > 0.0
        return np.asarray((size(observed["position"]) > 3.0 * self.error_scale_m) | ~upright)


class QuadrotorHover(_Hover):
    """Task of a quadrotor to hover, by four speeds of rotors about that of hovering."""

    robot = "quadrotor"
    rate = 5.0

    @override
    def prepare(self, plant: Plant) -> None:
        """Compute the rotor speed of hovering."""
        p: Any = plant.parameters  # type: ignore[attr-defined]
        self.middle = np.full(4, np.sqrt(p.mass_kg * p.gravity_m_s2 / (4.0 * p.thrust_n_s2)))
        self.half = 0.3 * self.middle

    @override
    def start(self, random: np.random.Generator, plant: Any) -> Mapping[str, Any]:
        """Place the quadrotor near the origin, with random velocities."""
        plant.place(
            position=random.uniform(-0.5, 0.5, 3), velocity=random.uniform(-0.3, 0.3, 3),
            angular_velocity=random.uniform(-0.3, 0.3, 3),
        )  # fmt: skip
        return {}


class MothHover(_Hover):
    """Task of a moth to hover, by offsets and gains of both wings, from the trimmed hover with a small push."""

    robot = "moth"
    step_s = 0.01
    error_scale_m = 0.1
    rate = 20.0

    @override
    def prepare(self, plant: Plant) -> None:
        """Compute the phase of the stroke in a step."""
        self.middle, self.half = np.zeros(4), np.full(4, 0.3)
        self.turn = 2.0 * np.pi * self.step_s * float(plant.law.omega) / (2.0 * np.pi)  # type: ignore[attr-defined]

    @override
    def start(self, random: np.random.Generator, plant: Any) -> Mapping[str, Any]:
        """Push the moth by random velocities."""
        outputs = plant.observe()
        plant.place(
            velocity=outputs["velocity"] + random.uniform(-0.02, 0.02, 3),
            angular_velocity=outputs["angular_velocity"] + random.uniform(-0.2, 0.2, 3),
        )  # fmt: skip
        return {"stroke": np.array([0.0, 1.0])}

    @override
    def commands(self, action: Array, memory: Memory, steps: int, dt: float) -> Array:
        """Return held commands, and advance the phase of the stroke."""
        s, c = memory["stroke"].T
        memory["stroke"] = np.stack(
            [s * np.cos(self.turn) + c * np.sin(self.turn), c * np.cos(self.turn) - s * np.sin(self.turn)], axis=1
        )
        return super().commands(action, memory, steps, dt)


class EelCourse(Task):
    """Task of the eel to swim at speed along a heading.

    An action changes amplitude and mean bends of a travelling wave of the yaw joints.
    """

    robot = "eel"
    parameters = {"gait": "none"}  # noqa: RUF012
    actions = 3
    frequency_hz = 0.8
    lag = np.radians(28.0)
    rate_1_s = 6.0
    ranges = np.array([np.radians(6.0), np.radians(5.0), np.radians(3.0)])
    """Ranges, rad: of the amplitude about 8 deg, of the mean yaw and the mean pitch of a joint."""

    @override
    def prepare(self, plant: Plant) -> None:
        """Find the yaw and pitch actuators."""
        names = [actuator.name for actuator in plant.actuators]
        self.yaw = [k for k, name in enumerate(names) if name.startswith("yaw")]
        self.pitch = [k for k, name in enumerate(names) if name.startswith("pitch")]
        self.count = len(names)

    @override
    def start(self, random: np.random.Generator, plant: Any) -> Mapping[str, Any]:
        """Draw the heading and the phase of the wave."""
        course = random.uniform(-np.pi / 2.0, np.pi / 2.0)
        direction = np.array([np.cos(course), np.sin(course)])
        held, level = np.array([-1.0, 0.0, 0.0]), start_height(plant)
        return {"phase": random.uniform(0.0, 2.0 * np.pi), "held": held, "way": direction, "level": level}

    @override
    def commands(self, action: Array, memory: Memory, steps: int, dt: float) -> Array:
        """Return the commands of the wave, with the action's changes at a rate of 6 1/s."""
        time = dt * np.arange(1, steps + 1)
        held, phase = memory["held"], memory["phase"]
        share = np.exp(-self.rate_1_s * time)[None, :, None]
        smooth = action[:, None, :] + (held - action)[:, None, :] * share
        turn = phase[:, None] + 2.0 * np.pi * self.frequency_hz * time
        amplitude = np.radians(8.0) + self.ranges[0] * smooth[:, :, 0]
        result = np.zeros((len(action), steps, self.count))
        along = np.arange(len(self.yaw))
        wave = np.sin(turn[:, :, None] - self.lag * along)
        result[:, :, self.yaw] = amplitude[:, :, None] * wave + (self.ranges[1] * smooth[:, :, 1])[:, :, None]
        result[:, :, self.pitch] = (self.ranges[2] * smooth[:, :, 2])[:, :, None]
        memory["held"] = smooth[:, -1].copy()
        memory["phase"] = np.mod(turn[:, -1], 2.0 * np.pi)
        return result

    @override
    def observation(self, observed: Outputs, memory: Memory) -> Array:
        """Return the observation of the eel.

        It has the heading against the course, slopes, the height error (m), velocities, rates, phase, and the held
        action.
        """
        turn, phase, direction = rotations(observed["quaternion"]), memory["phase"], memory["way"]
        flow = to_world(turn, observed["velocity"])
        ahead = turn[:, 0, 0] * direction[:, 0] + turn[:, 1, 0] * direction[:, 1]
        across = turn[:, 0, 0] * direction[:, 1] - turn[:, 1, 0] * direction[:, 0]
        columns = [ahead, across, turn[:, 2, 0], turn[:, 2, 1], observed["position"][:, 2] - memory["level"], *flow.T]
        columns += [*observed["angular_velocity"].T, np.sin(phase), np.cos(phase), *memory["held"].T]
        return np.stack(columns, axis=1)

    @override
    def reward(self, observed: Outputs, action: Array, memory: Memory) -> Array:
        """Return the speed along the course, m/s, less the change of depth, m."""
        flow, direction = to_world(rotations(observed["quaternion"]), observed["velocity"]), memory["way"]
        return np.asarray(
            flow[:, 0] * direction[:, 0]
            + flow[:, 1] * direction[:, 1]
            - np.abs(observed["position"][:, 2] - memory["level"])
        )

    @override
    def ended(self, observed: Outputs, memory: Memory) -> Mask:
        """Return whether the eel is 1.5 m off its depth."""
        return np.asarray(np.abs(observed["position"][:, 2] - memory["level"]) > 1.5)
