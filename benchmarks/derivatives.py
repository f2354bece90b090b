"""Cost of derivatives beside the compiled step: A and B of a step, in multiples of it, and the map of a period.

Blocks of each alternate, in one process; the least of each kind counts. The yardstick is a compiled loop that puts the
state back and takes the step. "structure" is the compiled call alone, many in a row as the steps are, where a plant has
one. "linearise" is the call from Python, with its estimate of the error; "differences" are those of all coordinates.
The error is against differences by `step`, snapshot and restore, extrapolated, in the sizes of the chart.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import carray, njit

import rtmms
from rtmms.analysis.derivatives import structure_of
from rtmms.analysis.linearise import DIFFERENCE_STEP as STEP
from rtmms.analysis.linearise import linearise_step, reach_of
from rtmms.base.pointers import ARGUMENTS, call, numbers_at

from .setting import machine, refuse_less

Array = npt.NDArray[np.float64]
ROBOTS = ("manta", "quadrotor", "eel", "moth")
MONOLITHIC = "monolithic"
"""Row of a manta with that coupling, measured with the manta."""
STEPS = 2000
CALLS = 50
SETTLE_S = 0.7
"""Time that each robot moves before the measurement, s."""


@njit(nogil=True, error_model="numpy")
def _alone(
    function: int, arguments_at: int, command_at: int, command: Array, start_at: int, start: float, state: Array,
    origin: Array, steps: int,
) -> int:  # fmt: skip
    """Take that many steps from one state; return the number of successful ones."""
    values, at = carray(numbers_at(command_at), (command.shape[0],)), carray(numbers_at(start_at), (1,))
    at[0] = start
    for k in range(steps):
        for i in range(state.shape[0]):
            state[i] = origin[i]
        for i in range(command.shape[0]):
            values[i] = command[i]
        if call(function, arguments_at):
            return k
    return steps


def _command(plant: Any, k: int) -> Array:
    """Return (n,): sines of 0.3 of the actuators' range, each with a phase of its own."""
    low = np.array([-0.3 if actuator.lower is None else actuator.lower for actuator in plant.actuators])
    high = np.array([0.3 if actuator.upper is None else actuator.upper for actuator in plant.actuators])
    middle = np.array([actuator.neutral for actuator in plant.actuators])
    turn = np.sin(2 * np.pi * (0.6 * plant.dt * k + np.arange(len(middle)) / 5.0))
    return np.asarray(middle + 0.3 * np.minimum(high - middle, middle - low) * turn)


def measure(robot: str, blocks: int, period: bool, coupling: str = "") -> dict[str, Any]:
    """Measure one robot.

    Parameters
    ----------
    robot : str
        Name of the robot.
    blocks : int
        Number of blocks.
    period : bool
        Also the map of a period.
    coupling : str, default ''
        Coupling of the manta; '' for the default.

    Returns
    -------
    dict[str, Any]
        step_us, states; by kind of work ms and multiples of a step; error; method.

    Raises
    ------
    RtmmsError
        A step failed.
    """
    values: dict[str, Any] = {"coupling": coupling} if coupling else {}
    plant: Any = rtmms.load(robot, **values)
    robot = f"{robot}, {coupling}" if coupling else robot
    settle_steps = round(SETTLE_S / plant.dt)
    for k in range(settle_steps):
        plant.step(_command(plant, k))
    command = _command(plant, settle_steps)
    fork = plant.fork()
    arguments = np.zeros(ARGUMENTS, dtype=np.int64)
    arguments[: len(fork.entry.arguments)] = fork.entry.arguments
    origin, first = plant.present()
    alone: list[float] = []
    result = rtmms.linearise(plant, command, threads=2)
    differences = rtmms.linearise(plant, command, threads=2, method="differences")
    works: dict[str, Callable[[], Any]] = {
        "linearise": lambda: rtmms.linearise(plant, command, threads=1),
        "one": lambda: rtmms.linearise(plant, command, threads=1, method="differences"),
        "two": lambda: rtmms.linearise(plant, command, threads=2, method="differences"),
    }  # fmt: skip
    by = STEP * np.concatenate([plant.chart().size, reach_of(plant.actuators)])
    structure = structure_of(plant, by)
    if structure is not None:
        pose = plant.coordinates().pose
        reference = origin[pose : pose + 7].copy()
        structure.take(origin, command, reference, first * plant.dt)
        works["structure"] = lambda: structure.take(origin, command, reference, first * plant.dt)
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(blocks):
        began = time.perf_counter_ns()
        done = _alone(
            fork.entry.function, arguments.ctypes.data, fork.entry.command, command, fork.start.ctypes.data,
            first * plant.dt, fork.state, origin, STEPS,
        )  # fmt: skip
        alone.append((time.perf_counter_ns() - began) / 1e3 / STEPS)
        if done < STEPS:
            raise rtmms.RtmmsError(f"bench derivatives: {robot} failed at step {done} of {STEPS}")
        for name, work in works.items():
            calls = CALLS if name == "structure" else 1
            began = time.perf_counter_ns()
            for _ in range(calls):
                work()
            times[name].append((time.perf_counter_ns() - began) / 1e3 / calls)
    slow = linearise_step(plant, command)
    size, reach = plant.chart().size, reach_of(plant.actuators)
    wrong = max(
        float(np.max(np.abs(result.a - slow.a) * size / size[:, None], initial=0.0)),
        float(np.max(np.abs(result.b - slow.b) * reach / size[:, None], initial=0.0)),
    )
    step = min(alone)
    out: dict[str, Any] = {
        "robot": robot, "states": len(result.states), "inputs": len(result.inputs), "step_us": step, "error": wrong,
        "estimated": result.error, "reference_error": slow.error, "method": result.method,
        "differences_estimated": differences.error,
    }  # fmt: skip
    for name, took in times.items():
        out |= {f"{name}_ms": min(took) / 1e3, f"{name}_steps": min(took) / step}
    if period and hasattr(plant, "gait_commands"):
        mapped = rtmms.linearise(plant, plant.gait_commands(2), period=True)  # compiled
        began = time.perf_counter_ns()
        mapped = rtmms.linearise(plant, period=True)
        out |= {"period_s": (time.perf_counter_ns() - began) / 1e9, "period_steps": round(mapped.dt / plant.dt)}
    return out


def main(as_json: bool = False, blocks: int = 10, robot: str = "", period: bool = True) -> int:
    """Measure and print.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    blocks : int, default 10
        Number of blocks.
    robot : str, default ''
        One of the robots, '' for all.
    period : bool, default True
        The map of a period too, some seconds.

    Returns
    -------
    int
        0.
    """
    refuse_less("derivatives: --blocks", blocks, 1)
    names = [robot] if robot else ROBOTS
    results = [measure(name, blocks, period) for name in names]
    if "manta" in names:
        results.append(measure("manta", blocks, period, MONOLITHIC))
    result = {"machine": machine(), "robots": results}
    print(json.dumps(result) if as_json else text(result))
    return 0


def text(result: Mapping[str, Any]) -> str:
    """Return the rows as `rtmms bench derivatives` prints them.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Lines.
    """
    robots = result["robots"]
    lines = [
        "A and B of a step. Times are in steps of the robot, except in the columns us and ms.",
        f"{'robot':18}{'states':>7}{'step, us':>10}{'compiled':>11}{'ms':>8}{'linearise':>11}{'differences':>13}"
        f"{'2 threads':>11}{'error':>10}",
    ]
    for item in robots:
        alone = (
            f"{item['structure_steps']:11.0f}{item['structure_ms']:8.3f}"
            if "structure_ms" in item
            else f"{'-':>11}{'':8}"
        )
        lines.append(
            f"{item['robot']:18}{item['states']:7}{item['step_us']:10.2f}{alone}{item['linearise_steps']:11.0f}"
            f"{item['one_steps']:13.0f}{item['two_steps']:11.0f}{item['error']:10.1e}"
        )
    lines += [
        f"{entry['robot']}: the map of a period of {entry['period_steps']} steps took {entry['period_s']:.2f} s"
        for entry in robots if "period_s" in entry
    ]  # fmt: skip
    return "\n".join(lines)
