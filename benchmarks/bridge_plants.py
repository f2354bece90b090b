"""Plants that send when each of their states was made, for `rtmms bench bridges`, and read it back from the answers."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np

from rtmms.plant.protocol import Channel

WORD = 32768
"""Numbers below this go through every protocol: 16 bits, single precision, and -1 to 1 in steps of 2^-15."""
WORDS = ("step", "low", "middle", "high")


class Stamper:
    """Sends its clock as an output, and receives that again, with the peer's clock, as two actuators."""

    mode = "realtime"

    def __init__(self, dt: float) -> None:
        self.dt = dt
        self.actuators: tuple[Channel, ...] = (Channel("sent", "s"), Channel("received", "s"))
        # some bridges want to know where the robot is: x is when
        self.outputs: tuple[Channel, ...] = (
            Channel("sent", "s"), Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
        )  # fmt: skip

    def reset(self, seed: int = 0) -> None: ...

    def step(self, command: Any) -> None: ...

    def observe(self) -> dict[str, Any]:
        now = monotonic()
        return {"sent": np.array(now), "position": np.array([now, 0.0, 0.0]), "quaternion": np.array([1.0, 0, 0, 0])}

    def snapshot(self) -> bytes:
        return b""

    def restore(self, blob: bytes) -> None: ...

    def begin(self) -> None:
        """The next state is that of step 0."""

    def read(self, command: Any) -> tuple[float, float]:
        """When the state was made that the newest answer answers, and when the peer had it, s; 0 before the first."""
        return float(command[0]), float(command[1])


class Swimmer(Stamper):
    """For protocols that carry a robot's motion and no clock of ours: it rests in the water, and the peer answers with
    the number of the step and its clock in four whole numbers (`words`)."""

    def __init__(self, dt: float) -> None:
        super().__init__(dt)
        self.actuators = tuple(Channel(name) for name in WORDS)
        shapes = {"position": 3, "quaternion": 4, "velocity": 3, "angular_velocity": 3, "acceleration": 3}
        frames = {"position": "world", "quaternion": "world"}
        self.outputs = tuple(Channel(name, "", (size,), frames.get(name, "body")) for name, size in shapes.items())
        self._still = {name: np.zeros(size) for name, size in shapes.items()}
        self._still["quaternion"][0] = 1.0
        self._made: list[float] = []

    def observe(self) -> dict[str, Any]:
        self._made.append(monotonic())
        return dict(self._still)

    def begin(self) -> None:
        self._made.clear()

    def read(self, command: Any) -> tuple[float, float]:
        step, low, middle, high = (int(number) for number in command)
        if not (low or middle or high) or not self._made:
            return 0.0, 0.0
        newest = len(self._made) - 1
        at = newest - (newest - step) % WORD
        return self._made[max(0, at)], 1e-6 * (low + WORD * (middle + WORD * high))


class Locked(Swimmer):
    """The same for those that set the plant's pace where it is in lockstep."""

    mode = "lockstep"


def words(step: int, now: float) -> tuple[int, int, int, int]:
    """What a peer answers: the step's number and its clock in us, each number below WORD."""
    us = round(1e6 * now)
    return step % WORD, us % WORD, us // WORD % WORD, us // WORD // WORD
