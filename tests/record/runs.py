"""A recorded run of the pendulum within the test's process, driven by a scripted exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rtmms.loop.clock import MonotonicClock
from rtmms.loop.loop import Loop
from rtmms.loop.modes import Free
from rtmms.loop.policies import Policies
from rtmms.loop.ports import Applied, Exchange
from rtmms.loop.statistics import Statistics
from rtmms.record.origin import describe
from rtmms.record.recorder import Recorder
from tests.pendulum import Pendulum


class Scripted(Exchange):
    """Holds the torque and answers every step at once."""

    def __init__(self) -> None:
        self.claimed, self.fresh = np.array([True, False]), np.array([False, False])
        self.renewed = np.array([False, False])
        self.applied = Applied()

    def publish(self, *_: Any) -> None: ...

    def collect(self, step: int, command: np.ndarray, until_ns: int) -> bool:
        command[0] = np.sin(0.1 * step)
        self.fresh[0] = True
        self.applied.seq = self.applied.step = step
        return True

    def serve(self, until_ns: int) -> None: ...

    def waiting_for(self) -> tuple[str, ...]:
        return ()

    def report(self) -> dict[str, Any]:
        return {}


def recorder(path: Path, plant: Pendulum, *, patient: bool = True, seed: int = 0) -> Recorder:
    run = {"robot": "pendulum", "preset": None, "parameters": {}, "seed": seed, "mode": "free", "rate": 1.0}
    built = Recorder(path, describe(plant, run), period_s=None, patient=patient)
    built.await_ready()
    return built


def loop_of(plant: Pendulum, stored: Recorder, steps: int, seed: int = 0) -> Loop:
    plant.reset(seed)
    loop = Loop(plant, Scripted(), MonotonicClock(), Free(), Policies(), Statistics(), [stored], steps=steps, seed=seed)
    stored.bind(loop)
    return loop


def record(path: Path, steps: int, plant: Pendulum | None = None) -> dict[str, Any]:
    """A whole run; returns what became of the log."""
    plant = plant or Pendulum()
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, steps)
    try:
        outcome = loop.run()
        return stored.finish({"ended": outcome.ended, "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
