"""Rollouts beside the compiled step: us a step and core, gain by a second core, and whether the bits stay.

Blocks of each alternate, in one process; the least of each kind counts. The yardstick is a compiled loop that writes
the same commands and calls the same step, with nothing around it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import carray, njit

import rtmms
from rtmms.base.pointers import ARGUMENTS, call, numbers_at

from .setting import machine, refuse_less

Array = npt.NDArray[np.float64]
ROBOTS = ("manta", "quadrotor", "eel", "moth", "fish")
SAMPLE_STEPS = 10


@njit(nogil=True, error_model="numpy")
def _alone(function: int, arguments_at: int, command_at: int, commands: Array, start_at: int, dt: float) -> int:
    """Take steps with each row of commands (steps, n); return the number of successful ones."""
    command, start = carray(numbers_at(command_at), (commands.shape[1],)), carray(numbers_at(start_at), (1,))
    for k in range(commands.shape[0]):
        for i in range(commands.shape[1]):
            command[i] = commands[k, i]
        start[0] = k * dt
        if call(function, arguments_at):
            return k
    return int(commands.shape[0])


def _commands(plant: Any, runs: int, steps: int) -> Array:
    """Return (runs, steps, n): sines of 0.3 of the actuators' range, each run with a phase of its own."""
    low = np.array([-0.3 if actuator.lower is None else actuator.lower for actuator in plant.actuators])
    high = np.array([0.3 if actuator.upper is None else actuator.upper for actuator in plant.actuators])
    middle = np.array([actuator.neutral for actuator in plant.actuators])
    phase = np.arange(runs)[:, None, None] / runs + np.arange(len(middle)) / 5.0
    turn = np.sin(2 * np.pi * (0.6 * plant.dt * np.arange(steps)[:, None] + phase))
    return np.ascontiguousarray(middle + 0.3 * np.minimum(high - middle, middle - low) * turn)


def _time(plant: Any, commands: Array, threads: int) -> tuple[float, Any]:
    with rtmms.Rollout(plant, threads) as pool:
        began = time.perf_counter_ns()
        runs = pool(commands, every=SAMPLE_STEPS)
        return (time.perf_counter_ns() - began) / 1e3 / commands.shape[0] / commands.shape[1], runs


def measure(robot: str, runs: int, steps: int, blocks: int) -> dict[str, Any]:
    """Measure one robot.

    Parameters
    ----------
    robot : str
        Name of the robot.
    runs : int
        Number of runs.
    steps : int
        Steps of a run.
    blocks : int
        Number of blocks.

    Returns
    -------
    dict[str, Any]
        alone_us, rollout_us, ratio; two_us and speed_up of two threads; same_bits for 1, 2, 4.

    Raises
    ------
    RtmmsError
        A step failed.
    """
    plant: Any = rtmms.load(robot)
    commands = _commands(plant, runs, steps)
    start = plant.snapshot()
    fork = plant.fork()
    if fork is None:
        return {"robot": robot, "compiled": False}
    arguments = np.zeros(ARGUMENTS, dtype=np.int64)
    arguments[: len(fork.entry.arguments)] = fork.entry.arguments
    first, _ = plant.present()
    alone, one_thread, two = [], [], []
    _time(plant, commands[:1], 1)
    result: Any = None
    for _ in range(blocks):
        took = 0
        for run in commands:
            fork.state[:] = first
            began = time.perf_counter_ns()
            done = _alone(
                fork.entry.function, arguments.ctypes.data, fork.entry.command, run, fork.start.ctypes.data, plant.dt
            )
            took += time.perf_counter_ns() - began
            if done < steps:
                raise rtmms.RtmmsError(f"bench rollout: {robot} failed at step {done}")
        alone.append(took / 1e3 / runs / steps)
        us, result = _time(plant, commands, 1)
        one_thread.append(us)
        two.append(_time(plant, commands, 2)[0])
    same = all(
        again.final == result.final and all(np.array_equal(again.outputs[n], result.outputs[n]) for n in result.outputs)
        for again in (_time(plant, commands, threads)[1] for threads in (2, 4))
    )
    plant.restore(start)
    return {
        "robot": robot,
        "compiled": True,
        "runs": runs,
        "steps": steps,
        "alone_us": min(alone),
        "rollout_us": min(one_thread),
        "ratio": min(one_thread) / min(alone),
        "two_us": min(two),
        "speed_up": min(one_thread) / min(two),
        "same_bits": same,
    }


def main(as_json: bool = False, runs: int = 64, steps: int = 1000, blocks: int = 3, robot: str = "") -> int:
    """Measure and print.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    runs, steps, blocks : int
        See `measure`.
    robot : str, default ''
        One of the robots, '' for all.

    Returns
    -------
    int
        0.
    """
    refuse_less("rollout: --runs", runs, 1)
    refuse_less("rollout: --steps", steps, SAMPLE_STEPS)
    refuse_less("rollout: --blocks", blocks, 1)
    results = [measure(name, runs, steps, blocks) for name in ([robot] if robot else ROBOTS)]
    result = {"machine": machine(), "robots": results}
    print(json.dumps(result) if as_json else text(result))
    return 0


def text(result: Mapping[str, Any]) -> str:
    """Return the rows as `rtmms bench rollout` prints them.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Lines.
    """
    lines = [f"{'robot':12}{'step, us':>10}{'rollout, us':>13}{'ratio':>8}{'two threads':>13}{'same bits':>11}"]
    for item in result["robots"]:
        numbers = (
            f"{item['alone_us']:10.2f}{item['rollout_us']:13.2f}{item['ratio']:8.3f}"
            f"{item['speed_up']:11.2f} x{item['same_bits']!s:>11}"
            if item["compiled"] else "  stepped from Python: it has no fork"
        )  # fmt: skip
        lines.append(f"{item['robot']:12}{numbers}")
    return "\n".join(lines)
