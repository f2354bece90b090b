"""`rtmms bench plant`: cost of a step of the manta, against plain Python of the same step in the same run.

It is compiled alone, as `plant.step`, and in plain Python (the peer of tests/robots/manta), in blocks that alternate.
Results are percentiles, growth with chains and links, and how many times faster than real time `--mode free` runs.
Progress goes to standard error; the report, or one JSON object, to standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

import rtmms
from rtmms.robots.manta import Manta
from rtmms.robots.manta.fin_layout import LANES
from rtmms.robots.manta.step import enter_step

from . import setting

ROOT = Path(__file__).resolve().parents[1]
Array = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Effort:
    """Amount of measurements; the default takes about a minute.

    Attributes
    ----------
    blocks, steps : int
        Blocks, and steps of each.
    plain_steps : int, default 15
        Steps of a block in plain Python.
    chains, links : tuple[int, ...], optional
        Sizes for the growth.
    growth_block_us, growth_repeats : float, int
        Length of a block of the growth, us, and blocks of a size.
    free_s, free_gait_s : float
        Simulated times of the free runs, s.
    """

    blocks: int = 9
    steps: int = 20_000
    plain_steps: int = 15
    chains: tuple[int, ...] = (10, 16, 30, 32, 64, 100, 128, 256, 512, 992, 1000)
    links: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)
    growth_block_us: float = 20_000.0
    growth_repeats: int = 7
    free_s: float = 200.0
    free_gait_s: float = 40.0


def gait(dt: float, steps: int) -> Array:
    """Return commands: both fins flap at 0.6 Hz, 40 deg, the front rods 40 deg ahead.

    Parameters
    ----------
    dt : float
        Step, s.
    steps : int
        Number of steps.

    Returns
    -------
    Array
        (steps, 4) rad.
    """
    t = 2 * np.pi * 0.6 * dt * np.arange(steps)
    front, back = 0.6 * np.sin(t + 0.7), 0.7 * np.sin(t)
    return np.stack([front, back, front, back], axis=1)


@njit(nogil=True, error_model="numpy")  # no cache: numba cannot write a second one for other kernels beside the first
def _run(step: Any, arguments: Any, command: Array, commands: Array) -> int:
    """Take one step for each row, up to the first that fails."""
    for i in range(commands.shape[0]):
        for k in range(command.size):
            command[k] = commands[i, k]
        if step(*arguments):
            return i
    return int(commands.shape[0])


def compiled_loop(plant: Manta) -> Callable[[Array], None]:
    """Return a function that takes a plant through rows of commands without Python in between.

    It calls what `plant.step` calls, with the same arguments.

    Parameters
    ----------
    plant : Manta
        The manta.

    Returns
    -------
    Callable[[Array], None]
        Function of commands (steps, 4).
    """
    arguments = plant._addresses

    def run(commands: Array) -> None:
        done = _run(enter_step, arguments, plant._command, commands)
        if done < len(commands):
            raise RuntimeError(f"the plant failed at step {done} of the benchmark's gait")

    return run


def load(dt: float = 1e-3, **parameters: Any) -> Manta:
    """Return the manta.

    Parameters
    ----------
    dt : float, default 0.001
        Step, s.
    **parameters : Any
        Its parameters.

    Returns
    -------
    Manta
        The plant.

    Raises
    ------
    ModelError
        The robot of that name is another one.
    """
    plant = rtmms.load("manta", dt=dt, **parameters)
    if not isinstance(plant, Manta):
        raise rtmms.ModelError(
            f"robot 'manta': expected the robot of rtmms itself, got one of module {type(plant).__module__}"
        )
    return plant


def statistics(block_means_us: list[float], each_us: Array | None = None) -> dict[str, float]:
    """Return statistics of step times.

    Parameters
    ----------
    block_means_us : list[float]
        Mean of each block, us.
    each_us : Array | None, optional
        Time of each step, us, where it was measured.

    Returns
    -------
    dict[str, float]
        Median over the blocks' means, their least, and the percentiles of all steps.
    """
    out = {"median": float(np.median(block_means_us)), "best": min(block_means_us), "blocks": len(block_means_us)}
    if each_us is not None:
        p50, p99, p999 = np.percentile(each_us, [50, 99, 99.9])
        out |= {"p50": float(p50), "p99": float(p99), "p999": float(p999), "max": float(each_us.max())}
    return out


def time_compiled(run: Callable[[Array], None], commands: Array) -> float:
    """Time a step of the compiled loop.

    Parameters
    ----------
    run : Callable[[Array], None]
        The loop.
    commands : Array
        (steps, 4) commands of a block.

    Returns
    -------
    float
        us, mean of the block.
    """
    start = time.perf_counter_ns()
    run(commands)
    return (time.perf_counter_ns() - start) / 1e3 / len(commands)


def time_each(step: Callable[[Array], None], commands: Array, stamps: Times) -> Array:
    """Time each step; the clock's own 50 ns or so are in it.

    Parameters
    ----------
    step : Callable[[Array], None]
        Takes a step.
    commands : Array
        (k, 4) commands.
    stamps : Times
        (>= k + 1,) scratch.

    Returns
    -------
    Array
        (k,) us.
    """
    clock, k = time.perf_counter_ns, 0
    rows = list(commands)  # so that no view is made while the clock runs
    stamps[0] = clock()
    for row in rows:
        step(row)
        k += 1
        stamps[k] = clock()
    return np.diff(stamps[: k + 1]) / 1e3


def plain_run(plant: Manta) -> Any:
    """Return the peer of the plant in plain Python, which is among the tests of this repository.

    Parameters
    ----------
    plant : Manta
        The manta.

    Returns
    -------
    : PlainRun
        The peer.
    """
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from tests.robots.manta.plain_step import PlainRun

    return PlainRun(plant.parameters, plant.dt)


def measure_step(blocks: int, steps: int, plain_steps: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Measure the default manta, sequential, dt = 1 ms, in alternating blocks of the three kinds.

    Parameters
    ----------
    blocks, steps, plain_steps : int
        See Effort.
    report : Callable[[str], None]
        Receives lines about the progress.

    Returns
    -------
    dict[str, Any]
        {'compiled_us', 'python_us', 'plain_us'} as `statistics`, {'ratio': ...} and 'largest_difference'.

    Raises
    ------
    RuntimeError
        If the compiled loop and `plant.step` end in different states.
    """
    alone, called, peer = load(), load(), load()
    plain = plain_run(called)
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
        report(f"block {b + 1} of {blocks}: compiled, from Python, plain Python")
        rows = commands[warm + b * steps : warm + (b + 1) * steps]
        compiled.append(time_compiled(run, rows))
        python.append(time_each(called.step, rows, stamps))
        rows = commands[b * plain_steps : (b + 1) * plain_steps]
        slow.append(time_each(plain.step, rows, stamps))
        for row in rows:
            peer.step(row)
    if alone.snapshot() != called.snapshot():
        raise RuntimeError("the compiled loop and plant.step ended in different states")
    joint_position = peer.observe()["joint_position"]
    apart = float(np.max(np.abs(joint_position - plain.joints)) / np.max(np.abs(plain.joints)))
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
    """Time 10 ms of simulated time, in one step and in ten; the paper's laptop took 180 000 us (sec. 4).

    Parameters
    ----------
    steps : int
        Steps of a block.
    repeats : int
        Number of blocks.

    Returns
    -------
    dict[str, float]
        us.
    """
    out = {"paper_us": 180_000.0}
    for name, dt, per in (("one_step_of_10_ms_us", 1e-2, 1), ("ten_steps_of_1_ms_us", 1e-3, 10)):
        run = compiled_loop(load(dt=dt))
        commands = gait(dt, steps * per)
        run(commands[:per])
        out[name] = per * float(np.median([time_compiled(run, commands) for _ in range(repeats)]))
    return out


def _times(
    cases: Sequence[dict[str, int]], budget_us: float, repeats: int, report: Callable[[str], None]
) -> list[float]:
    """Time a step of each case, us, as the median of its blocks.

    The cases alternate so that a slow minute affects them all.
    """
    runs = []
    report("growth: building " + ", ".join(f"{case['chains']} x {case['links']}" for case in cases))
    for case in cases:
        run = compiled_loop(load(**case))
        run(gait(1e-3, 5))
        once = time_compiled(run, gait(1e-3, 5))
        runs.append((run, gait(1e-3, max(5, int(budget_us / once)))))
    blocks: list[list[float]] = [[] for _ in cases]
    for r in range(repeats):
        report(f"growth: round {r + 1} of {repeats}")
        for (run, commands), times in zip(runs, blocks, strict=True):
            times.append(time_compiled(run, commands))
    return [float(np.median(times)) for times in blocks]


def _exponent(size: Sequence[int], times: Sequence[float]) -> float:
    """Return the slope of log time over log size, by least squares."""
    return float(np.polyfit(np.log(size), np.log(times), 1)[0])


def measure_growth(
    chains: Sequence[int], links: Sequence[int], budget_us: float, repeats: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Measure the growth over n at m = 3 and over m at n = 30.

    Parameters
    ----------
    chains, links : Sequence[int]
        Sizes; the fit over n uses whole blocks of lanes, from two blocks on; over m all but m = 3, which has code of
        its own.
    budget_us : float
        Length of one timed block, us.
    repeats : int
        Blocks of a size.
    report : Callable[[str], None]
        Receives lines about the progress.

    Returns
    -------
    dict[str, Any]
        Times and exponents.
    """
    over_n = _times([{"chains": n, "links": 3} for n in chains], budget_us, repeats, report)
    over_m = _times([{"chains": 30, "links": m} for m in links], budget_us, repeats, report)
    fit_n = [(n, t) for n, t in zip(chains, over_n, strict=True) if n % LANES == 0 and n >= 2 * LANES]
    fit_m = [(m, t) for m, t in zip(links, over_m, strict=True) if m != 3]
    out: dict[str, Any] = {
        "chains": {str(n): t for n, t in zip(chains, over_n, strict=True)},
        "links": {str(m): t for m, t in zip(links, over_m, strict=True)},
    }
    for name, fit in (("exponent_chains", fit_n), ("exponent_links", fit_m)):
        out[name] = _exponent(*zip(*fit, strict=True)) if len(fit) > 1 else None
    return out


def free_run(controller: str, duration: float) -> dict[str, Any]:
    """Run `rtmms run manta --mode free`.

    Parameters
    ----------
    controller : str
        Name of the controller.
    duration : float
        Simulated time, s.

    Returns
    -------
    dict[str, Any]
        Real-time factor and the plant's percentiles, from its own report.
    """
    arguments = ["run", "manta", "--mode", "free", "--controller", controller, "--duration", f"{duration:g}", "--json"]
    child = subprocess.run(
        [sys.executable, "-P", "-m", "rtmms", *arguments, "--quiet"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if child.returncode:
        lines = child.stderr.strip().splitlines()
        return {"real_time_factor": None, "failed": lines[-1] if lines else f"exit status {child.returncode}"}
    report = json.loads(child.stdout)
    return {
        "real_time_factor": report["real_time_factor"],
        "simulated_s": report["simulated_s"],
        "wall_s": report["wall_s"],
        "plant_us": report["timing_us"]["plant"],
        "commands_applied": report["exchange"]["commands_applied"],
    }


def measure(effort: Effort, report: Callable[[str], None]) -> dict[str, Any]:
    """Measure all.

    Parameters
    ----------
    effort : Effort
        Amount of measurements.
    report : Callable[[str], None]
        Receives lines about the progress.

    Returns
    -------
    dict[str, Any]
        One object for JSON.
    """
    start = time.monotonic()
    out: dict[str, Any] = {
        "benchmark": "plant",
        "time": setting.now(),
        "commit": setting.commit(),
        "machine": setting.machine(),
        "load_before": setting.load(),
        "robot": {"name": "manta", "chains": 30, "links": 3, "fins": 2, "dt": 1e-3, "coupling": "sequential"},
        "effort": asdict(effort),
    }
    out["step"] = measure_step(effort.blocks, effort.steps, effort.plain_steps, report)
    report("10 ms as in the paper")
    out["ten_ms"] = paper(effort.steps // 10, effort.blocks)
    out["growth"] = measure_growth(effort.chains, effort.links, effort.growth_block_us, effort.growth_repeats, report)
    out["free"] = {}
    for controller, duration in (("none", effort.free_s), ("gait", effort.free_gait_s)):
        report(f"--mode free, controller {controller}, {duration:g} s simulated")
        out["free"][controller] = free_run(controller, duration)
    out["load_after"] = setting.load()
    out["wall_s"] = round(time.monotonic() - start, 1)
    return out


def _number(x: float | None, unit: str = "") -> str:
    return "not measured" if x is None else f"{x:,.4g}{unit}" if x < 1000 else f"{x:,.0f}{unit}"


def table(result: dict[str, Any]) -> str:
    """Return the report for a person.

    Parameters
    ----------
    result : dict[str, Any]
        The result.

    Returns
    -------
    str
        Lines.
    """
    step, ten, grown, free = (result[k] for k in ("step", "ten_ms", "growth", "free"))
    n, m, machine = grown["chains"], grown["links"], result["machine"]
    python = step["python_us"]
    rows = [
        ("machine", f"{machine['cpu']}, {machine['cores']} cores, {' '.join(machine['vectors']) or 'no AVX'}"),
        ("commit", result["commit"] or "not a checkout"),
        ("load before, after", f"{result['load_before']}, {result['load_after']}"),
        ("", ""),
        ("step, compiled part", _number(step["compiled_us"]["median"], " us")),
        ("step, from Python", _number(python["median"], " us")),
        ("  each: p50, p99, p99.9, max", ", ".join(_number(python[k]) for k in ("p50", "p99", "p999", "max")) + " us"),
        ("step, plain Python", _number(step["plain_us"]["median"], " us")),
        ("  over compiled part", _number(step["plain_over_compiled"], " x")),
        ("  over plant.step", _number(step["plain_over_python"], " x")),
        ("  joint angles apart by", f"{step['largest_difference']['relative']:.1e} of the largest"),
        ("10 ms in one step, in ten", ", ".join(_number(ten[k], " us") for k in ten if k != "paper_us")),
        ("  the paper's laptop", _number(ten["paper_us"], " us")),
        ("growth with chains", ", ".join(f"{k}: {_number(t)}" for k, t in n.items()) + " us"),
        ("  exponent, whole blocks of lanes", _number(grown["exponent_chains"])),
        ("growth with links", ", ".join(f"{k}: {_number(t)}" for k, t in m.items()) + " us"),
        ("  exponent", _number(grown["exponent_links"])),
        ("--mode free against real time", _number(free["none"]["real_time_factor"], " x")),
        ("  with the gait attached", _number(free["gait"]["real_time_factor"], " x")),
    ]  # fmt: skip
    return "\n".join(f"{a:<36}{b}".rstrip() for a, b in rows)


def main(as_json: bool, effort: Effort | None = None) -> int:
    """Measure and print.

    Parameters
    ----------
    as_json : bool
        Print JSON.
    effort : Effort | None, optional
        Amount of measurements.

    Returns
    -------
    int
        0.
    """

    def report(text: str) -> None:
        print(f"bench plant: {text}", file=sys.stderr, flush=True)

    result = measure(effort or Effort(), report)
    print(json.dumps(result, indent=1) if as_json else table(result))
    return 0
