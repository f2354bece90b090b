"""What a step of a tree costs from `plant.step(command)` to the new state: the kernel alone, and the path to it.

Kernel and step are measured in turns, batch by batch, on the same plant, and the least of each is kept: the path is
what they differ by. `observe` is there for comparison: what the loop asks for after each step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from rtmms.jit import kernel
from rtmms.mechanism.entry import enter_outputs, enter_step
from rtmms.mechanism.plant import TreePlant
from rtmms.model.description import Body, Joint, Mechanism
from rtmms.model.solids import Box, at
from rtmms.robots import eel, moth, quadrotor, torpedo


@kernel
def _steps(times: int, address: int) -> int:
    status = 0
    for _ in range(times):
        status |= enter_step(address)
    return status


@kernel
def _accounts(times: int, address: int) -> None:
    for _ in range(times):
        enter_outputs(address)


def body() -> TreePlant:
    """One rigid body that falls."""
    return TreePlant(Mechanism("body", [Body("body", solids=[Box(0.3, 0.2, 0.1, 1000.0)])]), 1e-3)


def pendulum() -> TreePlant:
    """Two links on a fixed base."""
    link = Box(0.02, 0.02, 0.5, 1000.0, at(z=-0.25))
    bodies = [Body("base"), Body("upper", solids=[link]), Body("lower", solids=[link])]
    joints = [
        Joint("shoulder", "base", "upper", axis=(0, 1, 0)),
        Joint("elbow", "upper", "lower", axis=(0, 1, 0), placement=at(z=-0.5)),
    ]
    return TreePlant(Mechanism("pendulum", bodies, joints, base="fixed"), 1e-3)


TREES: dict[str, Callable[[], TreePlant]] = {
    "body": body, "pendulum": pendulum, "quadrotor": quadrotor.load, "torpedo": torpedo.load, "eel": eel.load,
    "moth": moth.load,
}  # fmt: skip


def cost(plant: TreePlant, batch: int = 40, batches: int = 100) -> dict[str, float]:
    """us: kernel_us, step_us, path_us, account_us, observe_us; each the least of the batches."""
    command = plant.neutral.copy()

    def step(times: int) -> None:
        for _ in range(times):
            plant.step(command)

    def observe(times: int) -> None:
        for _ in range(times):
            plant.observe()

    runs: dict[str, Callable[[int], Any]] = {
        "kernel_us": lambda times: _steps(times, plant._address), "step_us": step,
        "account_us": lambda times: _accounts(times, plant._address), "observe_us": observe,
    }  # fmt: skip
    least = dict.fromkeys(runs, math.inf)
    for run in runs.values():
        run(1)
    for _ in range(batches):
        for name, run in runs.items():
            plant.reset()
            start = time.perf_counter_ns()
            run(batch)
            least[name] = min(least[name], (time.perf_counter_ns() - start) / batch / 1e3)
    return {**least, "path_us": least["step_us"] - least["kernel_us"]}


def measure() -> dict[str, dict[str, float]]:
    """Every tree."""
    return {name: cost(make()) for name, make in TREES.items()}


def table(result: dict[str, dict[str, float]]) -> str:
    """Lines that a person reads."""
    lines = ["a step of a tree, us: kernel alone, plant.step, the path between; plant.observe"]
    for name, row in result.items():
        numbers = "".join(f"{row[key]:10.2f}" for key in ("kernel_us", "step_us", "path_us", "observe_us"))
        lines.append(f"{name:>12}{numbers}")
    return "\n".join(lines)
