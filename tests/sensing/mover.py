"""A plant that moves as it is commanded: a pose, a velocity and a rate that are functions of time, and two rods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from rtmms.plant.protocol import Channel

Motion = Callable[[float], tuple[Any, Any, Any, Any]]


def still(time: float) -> tuple[Any, Any, Any, Any]:
    """position (3,), a scipy rotation, velocity and rate (3,) of the body frame."""
    return np.zeros(3), Rotation.identity(), np.zeros(3), np.zeros(3)


class Mover:
    """Has what sensors measure, and a snapshot."""

    medium = "water"

    def __init__(self, motion: Motion = still, dt: float = 1e-3) -> None:
        self.motion, self.dt, self.steps = motion, dt, 0
        self.actuators = (Channel("rod"),)
        self.outputs = (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,)),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("rod_angle", "rad", (2,)),
            Channel("rod_torque", "N m", (2,)), Channel("speed", "m/s"), Channel("shape", "m", (2, 2)),
        )  # fmt: skip
        self.command = 0.0

    def reset(self, seed: int = 0) -> None:
        self.steps, self.command = 0, 0.0

    def step(self, command: np.ndarray) -> None:
        self.steps += 1
        self.command = float(command[0])

    def observe(self) -> dict[str, Any]:
        time = self.steps * self.dt
        position, turn, velocity, rate = self.motion(time)
        x, y, z, w = turn.as_quat()
        return {
            "position": np.array(position, dtype=float), "quaternion": np.array([w, x, y, z]),
            "velocity": np.array(velocity, dtype=float), "angular_velocity": np.array(rate, dtype=float),
            "rod_angle": np.array([time, self.command]), "rod_torque": np.array([2.0, 4.0]),
            "speed": np.array(float(np.linalg.norm(velocity))), "shape": np.eye(2),
        }  # fmt: skip

    def snapshot(self) -> bytes:
        return f"{self.steps} {self.command!r}".encode()

    def restore(self, blob: bytes) -> None:
        steps, command = blob.split()
        self.steps, self.command = int(steps), float(command)


def load(dt: float | None = None, preset: str | None = None, **parameters: Any) -> Mover:
    """The entry point."""
    return Mover(dt=dt or 1e-3)
