"""A rigid robot with the outputs that autopilots need, in the real loop, beside a bridge: in threads of the test."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from rtmms.bridging.bridge import Bridge
from rtmms.loop.clock import MonotonicClock, Schedule
from rtmms.loop.loop import Loop
from rtmms.loop.modes import Lockstep, Realtime
from rtmms.loop.policies import Policies
from rtmms.loop.statistics import Statistics
from rtmms.plant.protocol import Channel
from rtmms.wire.plant.server import Server
from tests.bridges.harness import Bridged, wait
from tests.wire.bench import PATIENCE_S


class Swimmer:
    """Goes forward at a speed of `thrust` m/s, along a circle at `rudder` rad/s; what it does is known exactly."""

    def __init__(self, dt: float = 1e-3) -> None:
        self.dt = dt
        self.actuators = (
            Channel("thrust", "m/s", lower=-2.0, upper=2.0),
            Channel("rudder", "rad/s", lower=-1.0, upper=1.0),
        )
        self.outputs = (
            Channel("position", "m", (3,), "world"),
            Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"),
            Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("acceleration", "m/s2", (3,), "body"),
            Channel("depth", "m"),
        )
        self.commands: list[tuple[float, float]] = []
        self.resets = 0
        self.gain = 1.0
        self.reset()

    def reset(self, seed: int = 0) -> None:
        self.state = np.zeros(5)  # x, y, yaw, speed, turn
        self.resets += 1

    def step(self, command: np.ndarray) -> None:
        self.commands.append((float(command[0]), float(command[1])))
        x, y, yaw, _, _ = self.state
        speed, turn = command[0] * self.gain, command[1]
        self.state[:] = (
            x + speed * np.cos(yaw) * self.dt, y + speed * np.sin(yaw) * self.dt, yaw + turn * self.dt, speed, turn,
        )  # fmt: skip

    def observe(self) -> dict[str, Any]:
        x, y, yaw, speed, turn = self.state
        return {
            "position": np.array([x, y, -2.0]),
            "quaternion": np.array([np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]),
            "velocity": np.array([speed, 0.0, 0.0]),
            "angular_velocity": np.array([0.0, 0.0, turn]),
            "acceleration": np.zeros(3),
            "depth": np.array(2.0),
        }

    def set(self, gain: float) -> None:
        self.gain = gain

    def snapshot(self) -> bytes:
        return self.state.tobytes()

    def restore(self, blob: bytes) -> None:
        self.state = np.frombuffer(blob).copy()


class Sailing:
    """A swimmer in a run of the given mode, and a bridge beside it."""

    def __init__(self, bridge: Bridge, mode: str = "lockstep", dt: float = 1e-3, plant: Any = None) -> None:
        self.plant: Any = plant or Swimmer(dt)
        paced = Realtime(Schedule(dt * 1e9, round(0.5 * dt * 1e9)))
        deadline = 0.5 * dt if mode == "realtime" else None
        self.server = Server(self.plant, robot="swimmer", mode=mode, deadline_s=deadline, free_ports=True)
        self.loop = Loop(
            self.plant, self.server, MonotonicClock(), Lockstep() if mode == "lockstep" else paced, Policies(),
            Statistics(),
        )  # fmt: skip
        self.bridged = Bridged(bridge, self.server.endpoints["exchange"])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._over = threading.Event()
        self.outcome: Any = None

    @property
    def command(self) -> tuple[float, float]:
        """Of the last step; NaN before the first."""
        return self.plant.commands[-1] if self.plant.commands else (math.nan, math.nan)

    def drove(self, thrust: float) -> bool:
        """There was a step with it."""
        return any(abs(value - thrust) < 1e-6 for value, _ in self.plant.commands)

    def _run(self) -> None:
        while not self.server.claimed.any() and not self._over.is_set():
            self.server.serve(self.loop.clock.now() + 2_000_000)
            self._over.wait(5e-4)
        self.outcome = self.loop.run()
        self.server.close("the run ended")

    def __enter__(self) -> Sailing:
        self._thread.start()
        self.bridged.start()
        wait(lambda: (self.server.claimed.any() and self.bridged.counts["states"]) or self.bridged.fault)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over.set()
        self.loop.end("stop")
        self._thread.join(PATIENCE_S)
        self.bridged.join()
        if kind is None:
            assert not self._thread.is_alive()
            assert self.bridged.fault is None, self.bridged.fault
