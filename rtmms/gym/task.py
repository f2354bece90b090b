"""What an environment is about: which robot, what its actions mean, what is seen, and what it is worth.

Everything but `start` is for many runs at once: arrays have an axis of runs in front. Then one environment and 64 of
them get the same bits, and Python's share of a step is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.plant.protocol import Plant

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Seen = Mapping[str, Array]
Memory = dict[str, Array]
"""Of each run what a task remembers of it: its goal, the phase of its gait; (runs, ...)."""


class Task:
    """To be derived from; each member has a default but `robot` and `reward`.

    robot, parameters, dt   as of `rtmms.load`
    outputs   names of outputs that `seen` holds, each (runs, *shape): what stands in the state is free, the rest is
              asked from the plant one by one
    step_s    s, of an environment's step, a whole number of the plant's
    actions   how many numbers an action has, each from -1 to 1; 0: one for each actuator
    most      observations are kept within -most and most
    """

    robot: str = ""
    parameters: Mapping[str, Any] = {}
    dt: float | None = None
    outputs: tuple[str, ...] = ("position", "quaternion", "velocity", "angular_velocity")
    step_s: float = 0.02
    actions: int = 0
    most: float = 1e3

    def prepare(self, plant: Plant) -> None:
        """Called once with the plant: ranges of its actuators."""
        low = [-1.0 if one.lower is None else one.lower for one in plant.actuators]
        high = [1.0 if one.upper is None else one.upper for one in plant.actuators]
        self.middle = 0.5 * (np.array(low) + np.array(high))
        self.half = 0.5 * (np.array(high) - np.array(low))

    def start(self, random: np.random.Generator, plant: Any) -> Mapping[str, Any]:
        """A new episode: the plant was reset; put it elsewhere, and return what to remember: numbers or arrays."""
        return {}

    def commands(self, action: Array, memory: Memory, steps: int, dt: float) -> Array:
        """(runs, steps or 1, actuators) of the plant's next steps; action (runs, actions). May change memory."""
        return np.asarray((self.middle + self.half * action)[:, None, :])

    def observation(self, seen: Seen, memory: Memory) -> Array:
        """(runs, k) what an agent sees; of k the length is known from the first."""
        parts = [seen[name].reshape(len(seen[name]), -1) for name in self.outputs]
        parts += [value.reshape(len(value), -1) for _, value in sorted(memory.items())]
        return np.concatenate(parts, axis=1)

    def sensor_observation(self, measured: Seen, memory: Memory) -> Array:
        """Return what an agent observes through sensors, (runs, k).

        Parameters
        ----------
        measured : mapping of str to (runs, *shape) array
            Outputs of the robot's instruments ('imu.gyro', 'depth.value', ...), SI units; 0 before the first sample.
        memory : dict of str to (runs, ...) array
            What the task remembers.

        Returns
        -------
        (runs, k) array
            By default all outputs of the instruments, then what is remembered, by name.
        """
        parts = [value.reshape(len(value), -1) for value in measured.values()]
        parts += [value.reshape(len(value), -1) for _, value in sorted(memory.items())]
        return np.concatenate(parts, axis=1)

    def reward(self, seen: Seen, action: Array, memory: Memory) -> Array:
        """(runs,) of the step that led here."""
        raise NotImplementedError(f"{type(self).__name__}.reward(seen, action, memory) is to be written: (runs,)")

    def ended(self, seen: Seen, memory: Memory) -> Mask:
        """(runs,) whether the episode ends here."""
        return np.zeros(len(next(iter(seen.values()))), dtype=bool)
