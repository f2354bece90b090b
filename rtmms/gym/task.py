"""Task of an environment: the robot, the meaning of its actions, the observation, and the reward.

Everything but `start` is for many runs at once: arrays have an axis of runs in front. So one environment and 64 of them
have the same bits, and Python's share of a step is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ArgumentError, Renamed, rename_class_attribute
from rtmms.plant.protocol import Plant

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Outputs = Mapping[str, Array]
Memory = dict[str, Array]
"""Memory of a task for each run: its goal, the phase of its gait; (runs, ...)."""


class Task:
    """Task to derive from; each member has a default except `robot` and `reward`.

    Attributes
    ----------
    robot : str, default ''
        Robot as for `rtmms.load`: a name, FILE.urdf or FILE.py:NAME.
    parameters : Mapping[str, Any], default {}
        Parameters of the robot.
    dt : float | None, optional
        Step of the plant, s; None: its own.
    outputs : tuple[str, ...], optional
        Names of outputs in `seen`, each (runs, *shape). Parts of the state are free, the plant computes the others one
        by one.
    step_s : float, default 0.02
        Step of an environment, s, a whole number of the plant's.
    actions : int, default 0
        Count of numbers of an action, each from -1 to 1; 0: one for each actuator.
    max_observation : float, default 1000.0
        Observations are clipped to -max_observation and max_observation.

    Examples
    --------
    >>> from rtmms.gym import Task
    >>> class Fast(Task):
    ...     robot = "moth"
    ...     outputs = ("velocity",)
    ...
    ...     def reward(self, seen, action, memory):
    ...         return seen["velocity"][:, 0]
    >>> float(Fast().reward({"velocity": np.array([[2.0, 0.0, 0.0]])}, np.zeros((1, 4)), {})[0])
    2.0
    """

    robot: str = ""
    parameters: Mapping[str, Any] = {}
    dt: float | None = None
    outputs: tuple[str, ...] = ("position", "quaternion", "velocity", "angular_velocity")
    step_s: float = 0.02
    actions: int = 0
    max_observation: float = 1e3
    most = Renamed("max_observation")

    def __init_subclass__(cls) -> None:
        """Accept the old name of `max_observation`, with a warning."""
        super().__init_subclass__()
        rename_class_attribute(cls, "most", "max_observation")

    def prepare(self, plant: Plant) -> None:
        """Prepare the task, once, with the plant: store the ranges of its actuators.

        Parameters
        ----------
        plant : Plant
            The robot.

        Raises
        ------
        ArgumentError
            An actuator has one limit only.
        """
        for actuator in plant.actuators:
            if (actuator.lower is None) != (actuator.upper is None):
                side = "upper" if actuator.lower is None else "lower"
                raise ArgumentError(
                    f"gym: actuator '{actuator.name}' has a limit on its {side} side only, so its range is "
                    "unknown; write "
                    "a Task with `prepare` and `commands`"
                )
        low = [-1.0 if item.lower is None else item.lower for item in plant.actuators]
        high = [1.0 if item.upper is None else item.upper for item in plant.actuators]
        self.middle = 0.5 * (np.array(low) + np.array(high))
        self.half = 0.5 * (np.array(high) - np.array(low))

    def start(self, random: np.random.Generator, plant: Any) -> Mapping[str, Any]:
        """Start a new episode after the plant's reset: place the plant, and return the memory.

        Parameters
        ----------
        random : np.random.Generator
            Random numbers of the episode.
        plant : Any
            The robot.

        Returns
        -------
        Mapping[str, Any]
            Numbers or arrays of the memory.
        """
        return {}

    def commands(self, action: Array, memory: Memory, steps: int, dt: float) -> Array:
        """Return the commands of the plant's next steps.

        Parameters
        ----------
        action : Array
            (runs, actions) from -1 to 1.
        memory : Memory
            Memory of the runs, which may change.
        steps : int
            Steps of the plant.
        dt : float
            Step, s.

        Returns
        -------
        Array
            (runs, steps or 1, actuators).
        """
        return np.asarray((self.middle + self.half * action)[:, None, :])

    def observation(self, observed: Outputs, memory: Memory) -> Array:
        """Return an agent's observation, of constant length k.

        Parameters
        ----------
        observed : Outputs
            Outputs (runs, *shape) by name.
        memory : Memory
            Memory of the runs.

        Returns
        -------
        Array
            (runs, k).
        """
        parts = [observed[name].reshape(len(observed[name]), -1) for name in self.outputs]
        parts += [value.reshape(len(value), -1) for _, value in sorted(memory.items())]
        return np.concatenate(parts, axis=1)

    def sensor_observation(self, measured: Outputs, memory: Memory) -> Array:
        """Return an agent's observation through sensors.

        Parameters
        ----------
        measured : Outputs
            (runs, *shape) outputs of the robot's instruments ('imu.gyro', 'depth.value', ...), SI units; 0 before the
            first sample.
        memory : Memory
            Memory of the runs.

        Returns
        -------
        Array
            (runs, k); by default all outputs of the instruments, then the memory, by name.
        """
        parts = [value.reshape(len(value), -1) for value in measured.values()]
        parts += [value.reshape(len(value), -1) for _, value in sorted(memory.items())]
        return np.concatenate(parts, axis=1)

    def reward(self, observed: Outputs, action: Array, memory: Memory) -> Array:
        """Return the reward of the last step; a subclass must have it.

        Parameters
        ----------
        observed : Outputs
            Outputs (runs, *shape) by name, at the step's end.
        action : Array
            (runs, actions) from -1 to 1.
        memory : Memory
            Memory of the runs.

        Returns
        -------
        Array
            (runs,).

        Raises
        ------
        NotImplementedError
            The subclass has none.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: reward(seen, action, memory) is missing; write this method, which "
            "returns an array (runs,)"
        )

    def ended(self, observed: Outputs, memory: Memory) -> Mask:
        """Return whether the episode ends.

        Parameters
        ----------
        observed : Outputs
            Outputs (runs, *shape) by name.
        memory : Memory
            Memory of the runs.

        Returns
        -------
        Mask
            (runs,).
        """
        return np.zeros(len(next(iter(observed.values()))), dtype=bool)
