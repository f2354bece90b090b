"""Coverage of the 95 % intervals of `rtmms.identify`, on synthetic recordings of `tendon_fish`.

Each recording has parameters of its own, drawn around those of the robot. The fish swims from rest. A camera above it
records its markers with white noise of a size that the fit does not receive, and the fit begins at the robot's own
values.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

import rtmms
from rtmms.base.parameters import parameter_values
from rtmms.base.processes import core_count

from .setting import machine, refuse_less

ROBOT = "tendon_fish"
PARAMETERS = ("tail_drag", "drag_area_m2", "sheet_n_m")
SPREAD = 0.1
"""Standard deviation of a true parameter, as a share of the robot's own."""
FRAMES_HZ = 60.0
MOTOR_RAD_S = 2.0 * math.pi * 1.311
QUANTILE = 1.96
"""Standard errors of half an interval of 95 %."""


def record(truth: dict[str, Any], seconds: float, noise_m: float, chance: np.random.Generator) -> dict[str, Any]:
    """Make a recording.

    Parameters
    ----------
    truth : dict[str, Any]
        Parameters of the fish.
    seconds : float
        Duration, s.
    noise_m : float
        Standard deviation of the markers, m.
    chance : np.random.Generator
        Random numbers.

    Returns
    -------
    dict[str, Any]
        Columns by name: time, the motor's speed, and x and y of the markers with noise.
    """
    plant: Any = rtmms.load(ROBOT, **truth)
    names = [name for name, _, _ in plant.model.markers]
    commands = np.full((1, round(seconds / plant.dt), 1), MOTOR_RAD_S)
    every = round(1.0 / FRAMES_HZ / plant.dt)
    with rtmms.Rollout(plant, 1) as pool:
        runs = pool(commands, outputs=names, every=every)
    count = commands.shape[1] // every
    columns: dict[str, Any] = {"time": np.arange(count + 1) / FRAMES_HZ}
    columns["command.motor.speed"] = np.full(count + 1, MOTOR_RAD_S)
    for name in names:
        observed = runs.outputs[name][0][:count, :2] + noise_m * chance.normal(size=(count, 2))
        for axis in range(2):
            columns[f"{name}[{axis}]"] = np.concatenate([[math.nan], observed[:, axis]])
    return columns


def errors(seed: int, seconds: float, noise_m: float) -> list[float]:
    """Fit one recording.

    Parameters
    ----------
    seed : int
        Seed of the recording.
    seconds : float
        Duration, s.
    noise_m : float
        Standard deviation of the markers, m.

    Returns
    -------
    list[float]
        Errors of the fitted parameters, in standard errors; nan without standard errors.
    """
    chance = np.random.default_rng(seed)
    true_values = parameter_values(rtmms.load(ROBOT))
    truth: dict[str, Any] = {name: float(true_values[name] * (1.0 + SPREAD * chance.normal())) for name in PARAMETERS}
    columns = record(truth, seconds, noise_m, chance)
    markers = list(dict.fromkeys(name.partition("[")[0] for name in columns if "[" in name))
    result = rtmms.identify(
        ROBOT, columns, PARAMETERS, channels=markers, at_rest=True, hold_out=0.0, starts=1, threads=1
    )
    return [(result.values[name] - truth[name]) / result.standard_errors[name] for name in PARAMETERS]


def study(recordings: int, seconds: float, noise_m: float, seed: int, jobs: int) -> Iterator[list[float]]:
    """Fit recordings, in parallel processes.

    Parameters
    ----------
    recordings : int
        Number of recordings.
    seconds : float
        Duration, s.
    noise_m : float
        Standard deviation of the markers, m.
    seed : int
        Seed of the first recording.
    jobs : int
        Number of processes.

    Yields
    ------
    list[float]
        Errors of each recording.
    """
    item = partial(errors, seconds=seconds, noise_m=noise_m)
    seeds = [seed + k for k in range(recordings)]
    if jobs == 1:
        yield from map(item, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(item, seeds)


def main(
    as_json: bool = False, recordings: int = 400, seconds: float = 2.0, noise_mm: float = 1.0, seed: int = 0,
    jobs: int = 0,
) -> int:  # fmt: skip
    """Fit the recordings, and print how often each parameter's interval contains the truth.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    recordings, seconds, seed : int, float
        See `study`.
    noise_mm : float, default 1.0
        Standard deviation of the markers, mm.
    jobs : int, default 0
        Number of processes; 0: one a core.

    Returns
    -------
    int
        0.
    """
    for name, value, least in (("recordings", recordings, 2), ("seconds", seconds, 1), ("noise-mm", noise_mm, 1e-3)):
        refuse_less(f"intervals: --{name}", value, least)
    began, rows = time.perf_counter(), list[list[float]]()
    for row in study(recordings, seconds, 1e-3 * noise_mm, seed, jobs or core_count()):
        rows.append(row)
        if not as_json and len(rows) % 50 == 0:
            print(f"{len(rows)} recordings, {time.perf_counter() - began:.0f} s", flush=True)
    off = np.array(rows)
    off = off[np.isfinite(off).all(axis=1)]  # `identify` reports no standard errors where the model is not smooth
    refuse_less("intervals: recordings with standard errors", len(off), 1)
    table = {
        name: {
            "inside": float(np.mean(np.abs(off[:, k]) <= QUANTILE)), "rms": float(np.sqrt(np.mean(off[:, k] ** 2))),
            "mean": float(off[:, k].mean()),
        }
        for k, name in enumerate(PARAMETERS)
    }  # fmt: skip
    result = {
        "machine": machine(), "recordings": recordings, "with_errors": len(off),
        "inside": float(np.mean(np.abs(off) <= QUANTILE)), "parameters": table,
    }  # fmt: skip
    if as_json:
        print(json.dumps(result))
        return 0
    print(text(result))
    return 0


def text(result: Mapping[str, Any]) -> str:
    """Return the lines that the command prints.

    Parameters
    ----------
    result : Mapping[str, Any]
        The result.

    Returns
    -------
    str
        A line for each parameter, and one for all.
    """
    parameters, recordings = result["parameters"], result["recordings"]
    lines = [f"{'parameter':16}{'in 95 %':>9}{'rms':>7}{'mean':>7}  (errors in standard errors)"]
    for name, item in parameters.items():
        lines.append(f"{name:16}{item['inside']:9.1%}{item['rms']:7.2f}{item['mean']:7.2f}")
    count = result["with_errors"] * len(parameters)
    lines.append(f"{'all':16}{result['inside']:9.1%}  of {count} intervals, {recordings} recordings")
    if left := recordings - result["with_errors"]:
        lines.append(f"no intervals of {left} recordings, near whose values the model changes abruptly")
    return "\n".join(lines)
