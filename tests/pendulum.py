"""A plant small enough to follow by hand: a damped pendulum driven by a torque, in plain numpy."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from rtmms.base.errors import DivergedError, ModelError, UnknownNameError
from rtmms.plant.protocol import Channel, refuse_fixed


class Pendulum:
    """theta'' = torque + offset - damping theta' - 9.81 sin theta, semi-implicit Euler."""

    def __init__(self, dt: float = 1e-2, damping: float = 0.1, coupling: str = "sequential") -> None:
        if not dt > 0:
            raise ModelError(f"pendulum: dt must be > 0 s, got {dt}")
        if not damping >= 0:
            raise ModelError(f"pendulum: damping must be >= 0 1/s, got {damping}")
        self.dt, self.damping, self.coupling = dt, damping, coupling
        self.actuators = (
            Channel("torque", "rad/s2", lower=-2.0, upper=2.0),
            Channel("offset", "rad/s2", lower=-1.0, upper=3.0, neutral=0.5),
        )
        self.outputs = (Channel("angle", "rad"), Channel("rate", "rad/s"), Channel("velocity", "m/s", (3,), "body"),
                        Channel("shape", "m", (2, 4)))  # fmt: skip
        self.trace_outputs = ("angle", "rate")
        self.recent_outputs = ("shape",)
        self.diverge_at = self.fault_at = math.inf
        self.reset()

    def reset(self, seed: int = 0) -> None:
        self.state = np.array([0.01 * seed, 0.0, 0.0])

    def step(self, command: np.ndarray) -> None:
        angle, rate, now = self.state
        if now >= self.fault_at:
            raise ZeroDivisionError("a bug in the plant")
        if now >= self.diverge_at - 1e-9:
            raise DivergedError(now + self.dt, "rate", self.observe())
        rate += self.dt * (command[0] + command[1] - self.damping * rate - 9.81 * math.sin(angle))
        self.state[:] = angle + self.dt * rate, rate, now + self.dt

    def observe(self) -> dict[str, Any]:
        angle, rate, _ = self.state
        return {
            "angle": np.array(angle), "rate": np.array(rate), "velocity": np.array([rate, 0.0, 0.0]),
            "shape": np.full((2, 4), angle),
        }  # fmt: skip

    def snapshot(self) -> bytes:
        return self.state.tobytes()

    def restore(self, blob: bytes) -> None:
        if len(blob) != 24:
            raise ModelError(f"pendulum: a snapshot has 24 bytes, got {len(blob)}")
        self.state = np.frombuffer(blob).copy()

    def summarise(self, time: np.ndarray, trace: dict[str, np.ndarray]) -> dict[str, float | None]:
        return {"mean_angle_rad": float(trace["angle"].mean()), "undefined": None, "samples": float(len(time))}


def load(dt: float | None = None, preset: str | None = None, **parameters: Any) -> Pendulum:
    """What an entry point of group rtmms.plants names."""
    known = ("damping", "coupling", "diverge_at", "load_s", "fault_at")
    for name in parameters:
        if name not in known:
            raise UnknownNameError("parameter of pendulum", name, known)
    if preset is not None:
        raise UnknownNameError("preset of pendulum", preset, ())
    diverge_at, fault_at = parameters.pop("diverge_at", math.inf), parameters.pop("fault_at", math.inf)
    time.sleep(parameters.pop("load_s", 0))
    plant = Pendulum(dt=1e-2 if dt is None else dt, **parameters)
    plant.diverge_at, plant.fault_at = diverge_at, fault_at
    return plant


class Tuned(Pendulum):
    """Its damping can be set while it runs."""

    settable = ("damping",)

    def set(self, **parameters: float) -> None:
        refuse_fixed("tuned", parameters, self.settable, self.settable)
        self.damping = parameters["damping"]


def load_tuned(dt: float | None = None, preset: str | None = None, **parameters: Any) -> Tuned:
    """The entry point."""
    return Tuned(dt=1e-2 if dt is None else dt, **parameters)
