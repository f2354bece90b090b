"""Plants that send the time of each of their states, for `rtmms bench bridges`, and read it back from the answers."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np

from rtmms.plant.protocol import Channel

WORD = 32768
"""Limit of numbers that pass through every protocol: 16 bits, single precision, and -1 to 1 in steps of 2^-15."""
WORD_NAMES = ("step", "low", "middle", "high")
HEIGHTS = 64
"""Steps after which a Swimmer is at its first height again."""
STEP_HEIGHT_M = 10.0
"""Height of a step, m: much more than the noise of an altitude."""


class Stamper:
    """Plant that sends its clock as an output, and receives that again, with the peer's clock, as two actuators.

    Parameters
    ----------
    dt : float
        Step, s.
    """

    mode = "realtime"

    def __init__(self, dt: float) -> None:
        self.dt = dt
        self.actuators: tuple[Channel, ...] = (Channel("sent", "s"), Channel("received", "s"))
        # some bridges want to know where the robot is: x is when
        self.outputs: tuple[Channel, ...] = (
            Channel("sent", "s"), Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
        )  # fmt: skip

    def reset(self, seed: int = 0) -> None:
        """Do nothing.

        Parameters
        ----------
        seed : int, default 0
            Not used.
        """
        ...

    def step(self, command: Any) -> None:
        """Do nothing.

        Parameters
        ----------
        command : Any
            Not used.
        """
        ...

    def observe(self) -> dict[str, Any]:
        """Return the clock as outputs.

        Returns
        -------
        dict[str, Any]
            By name.
        """
        now = monotonic()
        return {"sent": np.array(now), "position": np.array([now, 0.0, 0.0]), "quaternion": np.array([1.0, 0, 0, 0])}

    def snapshot(self) -> bytes:
        """Return no state.

        Returns
        -------
        bytes
            Empty.
        """
        return b""

    def restore(self, blob: bytes) -> None:
        """Do nothing.

        Parameters
        ----------
        blob : bytes
            Not used.
        """
        ...

    def begin(self) -> None:
        """Start a run, whose next state is that of step 0."""

    def read(self, command: Any) -> tuple[float, float]:
        """Return the times of the newest answer.

        Parameters
        ----------
        command : Any
            (2,) the answer.

        Returns
        -------
        tuple[float, float]
            Time of its state, and of the state's arrival at the peer, s; 0 before the first.
        """
        return float(command[0]), float(command[1])


class Swimmer(Stamper):
    """Plant for protocols that carry a robot's motion and no clock: its height counts its steps.

    The peer answers with the number of the step, or what `height_number` has of it, and its clock in four whole numbers
    (`encode_answer`). An answer is to the newest state of that height: an autopilot's time stamps leave out pauses and
    missed states, so they are no numbers of steps.

    Parameters
    ----------
    dt : float
        Step, s.
    """

    def __init__(self, dt: float) -> None:
        super().__init__(dt)
        self.actuators = tuple(Channel(name) for name in WORD_NAMES)
        shapes = {"position": 3, "quaternion": 4, "velocity": 3, "angular_velocity": 3, "acceleration": 3}
        frames = {"position": "world", "quaternion": "world"}
        self.outputs = tuple(Channel(name, "", (size,), frames.get(name, "body")) for name, size in shapes.items())
        self._still = {name: np.zeros(size) for name, size in shapes.items()}
        self._still["quaternion"][0] = 1.0
        self._state_times: list[float] = []

    def observe(self) -> dict[str, Any]:
        """Return a pose at the height of the step, and store the time.

        Returns
        -------
        dict[str, Any]
            By name.
        """
        height_m = STEP_HEIGHT_M * (len(self._state_times) % HEIGHTS)
        self._state_times.append(monotonic())
        return self._still | {"position": np.array([0.0, 0.0, height_m])}

    def begin(self) -> None:
        """Start a run, whose next state is that of step 0."""
        self._state_times.clear()

    def read(self, command: Any) -> tuple[float, float]:
        """Return the times of the newest answer.

        Parameters
        ----------
        command : Any
            (4,) the answer.

        Returns
        -------
        tuple[float, float]
            Time of its state, and of the state's arrival at the peer, s; 0 before the first.
        """
        step, low, middle, high = (int(number) for number in command)
        if not (low or middle or high) or not self._state_times:
            return 0.0, 0.0
        newest = len(self._state_times) - 1
        at = newest - (newest - step) % HEIGHTS
        return self._state_times[max(0, at)], 1e-6 * (low + WORD * (middle + WORD * high))


class Locked(Swimmer):
    """Swimmer for bridges that set the plant's pace, in lockstep."""

    mode = "lockstep"


def height_number(height_m: float) -> int:
    """Return the number of a Swimmer's step, without multiples of HEIGHTS.

    Parameters
    ----------
    height_m : float
        Its measured height, m.

    Returns
    -------
    int
        From 0 to HEIGHTS - 1.
    """
    return round(height_m / STEP_HEIGHT_M) % HEIGHTS


def encode_answer(step: int, now: float) -> tuple[int, int, int, int]:
    """Return the answer of a peer: the step's number and its clock in us, each number below WORD.

    Parameters
    ----------
    step : int
        Number of the step.
    now : float
        Clock, s.

    Returns
    -------
    tuple[int, int, int, int]
        Four whole numbers.
    """
    us = round(1e6 * now)
    return step % WORD, us % WORD, us // WORD % WORD, us // WORD // WORD
