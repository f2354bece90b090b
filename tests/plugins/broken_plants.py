"""Plants in plain Python that break the rules of `rtmms.Plant`, one each."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import rtmms

BREAKS_AT = 50


class Plain:
    """A plant with eight members, as a user writes it."""

    actuators: Any = (rtmms.Channel("u", "N", lower=-1.0, upper=1.0),)
    outputs: Any = (rtmms.Channel("x", "m", (2,)),)

    def __init__(self, dt: float = 0.01) -> None:
        self.dt = dt
        self.reset()

    def reset(self, seed: int = 0) -> None:
        self.state, self.count = np.zeros(2), 0

    def step(self, command: Any) -> None:
        self.state = self.state + self.dt * np.array([self.state[1], command[0]])
        self.count += 1

    def observe(self) -> dict[str, Any]:
        return {"x": self.state.copy()}

    def snapshot(self) -> Any:
        return self.state.tobytes()

    def restore(self, blob: bytes) -> None:
        self.state = np.frombuffer(blob).copy()


class Shape(Plain):
    def observe(self) -> dict[str, Any]:
        return {"x": self.state.copy() if self.count < BREAKS_AT else np.zeros(1)}


class Missing(Plain):
    def observe(self) -> dict[str, Any]:
        return {"x": self.state.copy()} if self.count < BREAKS_AT else {}


class TextSnapshot(Plain):
    def snapshot(self) -> Any:
        return "text"


class SameNames(Plain):
    outputs = (rtmms.Channel("x", "m", (2,)), rtmms.Channel("x", "m", (2,)))


class SameActuators(Plain):
    actuators = (rtmms.Channel("u"), rtmms.Channel("u"))


class Neutral(Plain):
    actuators = (rtmms.Channel("u", "N", lower=-1.0, upper=1.0, neutral=5.0),)


class Exits(Plain):
    def step(self, command: Any) -> None:
        super().step(command)
        if self.count == BREAKS_AT:
            sys.exit(0)


class Prints(Plain):
    def step(self, command: Any) -> None:
        super().step(command)
        print("a word from the plant")


class WritesCommand(Plain):
    """It writes into its argument, as one that clips it does: this is allowed."""

    def step(self, command: Any) -> None:
        super().step(command)
        command[0] = 99.0
