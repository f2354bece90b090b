"""Controllers that the tests of the command line drive the pendulum by: a good one, and one for each way to fail."""

from __future__ import annotations

import math
import os
import signal
import time
from dataclasses import dataclass

import rtmms


@dataclass
class Swing(rtmms.Controller):
    """A sine of torque."""

    amplitude: float = 1.0
    claim = ("torque",)

    def update(self, state: rtmms.State) -> dict[str, float]:
        return {"torque": self.amplitude * math.sin(2 * math.pi * state.time)}


@dataclass
class Tired(Swing):
    """Swings less and less, by what it remembers."""

    left: float = 1.0

    def update(self, state: rtmms.State) -> dict[str, float]:
        self.left *= 0.99
        return {"torque": self.left * self.amplitude * math.sin(2 * math.pi * state.time)}


class Crash(rtmms.Controller):
    """Fails before it sends anything to the plant."""

    def __init__(self) -> None:
        raise RuntimeError("the cable is not plugged in")

    def update(self, state: rtmms.State) -> dict[str, float]:
        return {}


@dataclass
class Fail(Swing):
    """Raises at a time, as a controller with a fault does."""

    at_s: float = 0.2

    def update(self, state: rtmms.State) -> dict[str, float]:
        if state.time >= self.at_s:
            raise ValueError("a fault in the law")
        return super().update(state)


@dataclass
class Misnamed(Swing):
    """Commands an actuator that is not there."""

    def update(self, state: rtmms.State) -> dict[str, float]:
        return {"torqeu": 0.0}


@dataclass
class Die(Swing):
    """Is killed at a time."""

    at_s: float = 0.2

    def update(self, state: rtmms.State) -> dict[str, float]:
        if state.time >= self.at_s:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().update(state)


@dataclass
class Mute(Swing):
    """Goes on living and sends nothing any more from a time on."""

    at_s: float = 0.2

    def update(self, state: rtmms.State) -> dict[str, float]:
        if state.time >= self.at_s:
            time.sleep(60)
        return super().update(state)


@dataclass
class Slow(Swing):
    """Takes its time over each answer."""

    answer_s: float = 0.03

    def update(self, state: rtmms.State) -> dict[str, float]:
        time.sleep(self.answer_s)
        return super().update(state)


class Sees(rtmms.Controller):
    """Moves the rod of the mover, and looks at its velocity."""

    outputs = ("velocity",)

    def update(self, state: rtmms.State) -> dict[str, float]:
        return {"rod": 0.1 * state["velocity"][0]}


class Deaf(rtmms.Controller):
    """The same, and looks at nothing."""

    outputs = ("none",)

    def update(self, state: rtmms.State) -> dict[str, float]:
        return {"rod": 0.1 * state.time}
