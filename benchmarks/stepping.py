"""The manta's step timed in three ways: compiled alone, from Python, and in plain Python; blocks of each in turn."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

import rtmms
from rtmms.robots.manta import Manta
from rtmms.robots.manta.coupling.entry import enter_step

from .plain_step import PlainRun

Array = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]


def gait(dt: float, steps: int) -> Array:
    """(steps, 4) rad: both fins flap at 0.6 Hz, 40 deg, the front rods 40 deg ahead."""
    t = 2 * np.pi * 0.6 * dt * np.arange(steps)
    front, back = 0.6 * np.sin(t + 0.7), 0.7 * np.sin(t)
    return np.stack([front, back, front, back], axis=1)


@njit(nogil=True, error_model="numpy")  # no cache: numba cannot write a second one for other kernels beside the first
def _run(step: Any, arguments: Any, command: Array, commands: Array) -> int:
    """One step for each row; stops at the first that fails."""
    for i in range(commands.shape[0]):
        for k in range(command.size):
            command[k] = commands[i, k]
        if step(*arguments):
            return i
    return int(commands.shape[0])


def compiled_loop(plant: Manta) -> Callable[[Array], None]:
    """A function that takes a plant through rows of commands without coming back to Python in between.

    It calls what `plant.step` calls, with the same arguments.
    """
    arguments = plant._addresses

    def run(commands: Array) -> None:
        done = _run(enter_step, arguments, plant._command, commands)
        if done < len(commands):
            raise RuntimeError(f"the plant failed at step {done} of the benchmark's gait")

    return run


def load(dt: float = 1e-3, **parameters: Any) -> Manta:
    plant = rtmms.load("manta", dt=dt, **parameters)
    if not isinstance(plant, Manta):
        raise rtmms.ModelError(f"robot 'manta': expected the one of rtmms, got {type(plant).__module__}")
    return plant


def statistics(block_means_us: list[float], each_us: Array | None = None) -> dict[str, float]:
    """Median over the blocks' means, their least, and the percentiles of all steps where each was timed."""
    out = {"median": float(np.median(block_means_us)), "best": min(block_means_us), "blocks": len(block_means_us)}
    if each_us is not None:
        p50, p99, p999 = np.percentile(each_us, [50, 99, 99.9])
        out |= {"p50": float(p50), "p99": float(p99), "p999": float(p999), "max": float(each_us.max())}
    return out


def time_compiled(run: Callable[[Array], None], commands: Array) -> float:
    """us a step, mean of one block."""
    start = time.perf_counter_ns()
    run(commands)
    return (time.perf_counter_ns() - start) / 1e3 / len(commands)


def time_each(step: Callable[[Array], None], commands: Array, stamps: Times) -> Array:
    """(k,) us of each step; the clock's own 50 ns or so are in it. stamps (>= k + 1,) scratch."""
    clock, k = time.perf_counter_ns, 0
    rows = list(commands)  # so that no view is made while the clock runs
    stamps[0] = clock()
    for row in rows:
        step(row)
        k += 1
        stamps[k] = clock()
    return np.diff(stamps[: k + 1]) / 1e3


def measure(blocks: int, steps: int, plain_steps: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Default manta, sequential, dt = 1 ms: alternating blocks of the three, and whether they computed the same.

    Returns {'compiled_us', 'python_us', 'plain_us'} as `statistics`, {'ratio': ...} and 'largest_difference'.
    """
    alone, called, witness = load(), load(), load()
    plain = PlainRun(called.parameters, called.dt)
    run = compiled_loop(alone)
    warm = min(2000, steps)
    commands = gait(1e-3, blocks * steps + warm)
    stamps: Times = np.zeros(max(steps, plain_steps) + 1, np.int64)
    run(commands[:warm])
    time_each(called.step, commands[:warm], stamps)
    compiled: list[float] = []
    python: list[Array] = []
    slow: list[Array] = []
    for b in range(blocks):
        say(f"block {b + 1} of {blocks}: compiled, from Python, plain Python")
        rows = commands[warm + b * steps : warm + (b + 1) * steps]
        compiled.append(time_compiled(run, rows))
        python.append(time_each(called.step, rows, stamps))
        rows = commands[b * plain_steps : (b + 1) * plain_steps]
        slow.append(time_each(plain.step, rows, stamps))
        for row in rows:
            witness.step(row)
    if alone.snapshot() != called.snapshot():
        raise RuntimeError("the compiled loop and plant.step ended in different states")
    seen = witness.observe()["joint_position"]
    apart = float(np.max(np.abs(seen - plain.joints)) / np.max(np.abs(plain.joints)))
    out: dict[str, Any] = {
        "compiled_us": statistics(compiled),
        "python_us": statistics([float(x.mean()) for x in python], np.concatenate(python)),
        "plain_us": statistics([float(x.mean()) for x in slow], np.concatenate(slow)),
    }
    ratios = [float(s.mean()) / c for s, c in zip(slow, compiled, strict=True)]
    called_ratios = [float(s.mean() / c.mean()) for s, c in zip(slow, python, strict=True)]
    out["plain_over_compiled"] = float(np.median(ratios))
    out["plain_over_python"] = float(np.median(called_ratios))
    out["largest_difference"] = {"quantity": "joint_position", "steps": blocks * plain_steps, "relative": apart}
    return out


def paper(steps: int, repeats: int) -> dict[str, float]:
    """us for 10 ms of simulated time, in one step and in ten; the paper's laptop took 180 000 (sec. 4)."""
    out = {"paper_us": 180_000.0}
    for name, dt, per in (("one_step_of_10_ms_us", 1e-2, 1), ("ten_steps_of_1_ms_us", 1e-3, 10)):
        run = compiled_loop(load(dt=dt))
        commands = gait(dt, steps * per)
        run(commands[:per])
        out[name] = per * float(np.median([time_compiled(run, commands) for _ in range(repeats)]))
    return out


def blocks_kept(steps: int) -> float:
    """Python objects that stay per plant.step (sys.getallocatedblocks over many steps, less those of counting)."""
    plant = load()
    command = np.full(4, 0.1)

    def kept(times: int) -> int:
        before = sys.getallocatedblocks()
        for _ in repeat(None, times):  # a counter would be an object of its own
            plant.step(command)
        return sys.getallocatedblocks() - before

    kept(steps)  # whatever is made once is made now
    return (kept(steps) - kept(1)) / (steps - 1)
