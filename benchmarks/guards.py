"""rtmms bench guards: search for results that are silently wrong, or refused though right, and check of stated errors.

Each cell is a run at one step. The truth is the same plant with the same commands at an eighth of the step. Where one
command is held throughout, it is an eighth of the shortest step of the line (or a quarter of that, where this one
fails). A cell is wrong where its path is off by more than 1 % of the length travelled, or its work or mean power by
more than 5 %; right where both are within 0.1 %. The run reports the monitor's verdict (rtmms.monitor), an error, or a
refusal. Where the monitor stated the size of an error, it is beside the true one. A cell is also silently wrong where
it is fine and an error of 1 % or more is beyond three times the stated one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import DivergedError, ModelError
from rtmms.plant.monitor import Monitor
from rtmms.plant.replay import MIN_WAY, MIN_WORK_SHARE

from .guards_cases import Case, cases
from .setting import machine

Array = npt.NDArray[np.float64]
MAX_PATH_ERROR = 0.01
MAX_POWER_ERROR = 0.05
MAX_RIGHT_ERROR = 1e-3
MAX_REPORTED_RATIO = 3.0
"""Ratio to the reported error beyond which a run that is fine is wrong."""
MIN_WRONG_ERROR = 0.01
"""Error below which such a run is not wrong."""
STOPPED = ("refused", "diverged", "error")
PATIENCE_S = 60.0
"""Wall time for the repetition of a run, s: long enough for the same verdicts on a slow machine."""
MIN_COMPARED_ERROR = 1e-7
"""Errors below that are not compared."""
MAX_FACTOR = 5.0
"""Ratio of the estimate to the truth, or its reciprocal, within which a share of the cells must be."""
MIN_SHARE = 0.95
"""Share of the cells that must be within MAX_FACTOR."""
MIN_RATIO = 0.5
"""Ratio of the estimate to the truth below which no cell may be."""
MAX_RATIO = 20.0
"""Ratio of the estimate to the truth above which no cell may be."""

PLACES = 400
"""Approximate number of times at which paths are compared."""


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes
    ----------
    times : Array
        (k,) times, s.
    places : Array
        (k, 3) m at these times.
    work : float
        Work, J.
    verdict : str
        A verdict, 'error' or 'refused'.
    text : str
        Reason of the verdict.
    estimates : tuple[float, ...], default ()
        Errors of path and work by the monitor, from as many parts of a step as there was time for, and from two; ()
        without.
    moved : float, default 0.0
        Sum of the work in both directions, J.
    """

    times: Array
    places: Array
    work: float
    verdict: str
    text: str
    estimates: tuple[float, ...] = ()
    moved: float = 0.0


@dataclass(frozen=True)
class Cell:
    """Result of a run against the truth.

    Attributes
    ----------
    case : str
        Name of the line.
    dt : float
        Step, s.
    path, power : float | None
        Errors, fractions, None where there was no run to the end.
    verdict, text : str
        See Run.
    fate : str
        See `judge`.
    estimated_path, estimated_power : float | None, optional
        Errors by the monitor.
    hurried_path, hurried_power : float | None, optional
        Errors by the monitor from two parts of a step, as after a long run.
    """

    case: str
    dt: float
    path: float | None
    power: float | None
    verdict: str
    fate: str
    text: str
    estimated_path: float | None = None
    estimated_power: float | None = None
    hurried_path: float | None = None
    hurried_power: float | None = None


def take_run(case: Case, dt: float, watched: bool, parts: int = 1) -> Run:
    """Take one run, to its end even where the monitor would have stopped it.

    Parameters
    ----------
    case : Case
        The line.
    dt : float
        Step, s.
    watched : bool
        With the monitor.
    parts : int, default 1
        Steps within which a command is held.

    Returns
    -------
    Run
        The result.
    """
    nowhere: tuple[Array, Array, float] = np.zeros(0), np.zeros((0, 3)), 0.0
    try:
        plant = case.load(dt)
    except ModelError as refusal:
        return Run(*nowhere, "refused", str(refusal))
    steps, work = round(case.seconds / dt), 0.0
    monitor = Monitor(plant.step_error_estimator()) if watched else None
    stride = max(1, steps // PLACES)
    while steps % stride:
        stride -= 1
    stride = parts if parts > 1 else stride  # of the truth every step of the line, so that nothing is interpolated
    times: Array = np.linspace(0.0, steps * dt, steps // stride + 1)
    places = np.empty((steps // stride + 1, 3))
    places[0] = plant.observe()["position"]
    neutral, stopped, state = getattr(plant, "neutral", np.zeros(0)), False, plant.step_error_estimator().room()
    reader, counted_up, moved = plant.step_error_estimator(), "work" in plant.observe(), 0.0
    before = 0.0
    if monitor is not None:
        monitor.look(neutral)
    command = neutral
    try:
        for k in range(steps):
            if case.command is not None and k % parts == 0:
                command = case.command(k // parts * (parts * dt))
            plant.step(command)
            if monitor is not None:
                monitor.after(command)
                stopped = stopped or monitor.hopeless
            if (k + 1) % stride == 0:
                reader.keep(state)
                places[(k + 1) // stride] = state.position
                done = before if state.work is None else float(state.work.sum())
                moved, before = moved + abs(done - before), done
            if not counted_up:
                work += float(plant.observe()["rod_power"]) * dt
        if counted_up:
            work = float(plant.observe()["work"])
    except DivergedError as error:
        return Run(*nowhere, "error", str(error))
    if monitor is None:
        return Run(times, places, work, "", "", moved=moved)
    hurried, result = monitor.conclude(PATIENCE_S, 2), monitor.conclude(PATIENCE_S)
    estimates = result.path, result.work, hurried.path, hurried.work
    return Run(times, places, work, "diverged" if stopped else result.verdict, result.sentence, estimates)


def judge(path: float | None, power: float | None, verdict: str, estimates: tuple[float, ...] = ()) -> str:
    """Return the fate of a cell.

    Parameters
    ----------
    path, power : float | None
        Errors against the truth; None without one.
    verdict : str
        Verdict of the run.
    estimates : tuple[float, ...], default ()
        See Run.

    Returns
    -------
    str
        'silent' (wrong), 'refused though right', 'doubted though right', else ''.
    """
    if path is None or power is None:
        return ""
    wrong = not (path <= MAX_PATH_ERROR and power <= MAX_POWER_ERROR)  # not a number is wrong
    wrong = wrong or any(
        true >= MIN_WRONG_ERROR and true > MAX_REPORTED_RATIO * reported
        for true, reported in zip((path, power), estimates, strict=False)
    )
    right = path <= MAX_RIGHT_ERROR and power <= MAX_RIGHT_ERROR
    if wrong and verdict == "fine":
        return "silent"
    if right and verdict in STOPPED:
        return "refused though right"
    return "doubted though right" if right and verdict == "doubtful" else ""


def line(case: Case) -> list[Cell]:
    """Compute a case's cells.

    Parameters
    ----------
    case : Case
        The case.

    Returns
    -------
    list[Cell]
        One for each step.
    """
    result: list[Cell] = []
    for dt in case.steps:
        run = take_run(case, dt, watched=True)
        if not result or (case.varies and len(run.places)):
            exact = take_run(case, dt / 8.0, False, 8)
            if exact.verdict:
                exact = take_run(case, dt / 32.0, False, 32)
            length = float(np.sum(np.linalg.norm(np.diff(exact.places, axis=0), axis=1))) if len(exact.places) else 0.0
        path = power = None
        if len(run.places) and length > 0.0:
            floor = MIN_WAY * case.load(dt).step_error_estimator().length
            with np.errstate(all="ignore"):
                there = np.array([np.interp(run.times, exact.times, exact.places[:, i]) for i in range(3)]).T
                path = float(np.max(np.linalg.norm(run.places - there, axis=1))) / max(length, floor)
                done = max(abs(run.work), abs(exact.work), MIN_WORK_SHARE * exact.moved)  # as the monitor measures it
                power = abs(run.work - exact.work) / done if exact.work else 0.0
        fate = "no reference" if exact.verdict else judge(path, power, run.verdict, run.estimates)
        result.append(Cell(case.name, dt, path, power, run.verdict, fate, run.text, *run.estimates))
    return result


def ratios(cells: Iterable[Cell], whose: str, what: str) -> Array:
    """Return the monitor's errors over the true ones.

    Only cells with a reference and an error above rounding count. Errors of more than all count as all, as the report
    has no more.

    Parameters
    ----------
    cells : Iterable[Cell]
        The cells.
    whose : str
        'estimated' or 'hurried'.
    what : str
        'path' or 'power'.

    Returns
    -------
    Array
        Ascending.
    """
    result = list[float]()
    for cell in cells:
        truth, estimate = getattr(cell, what), getattr(cell, f"{whose}_{what}")
        if truth is None or estimate is None or not np.isfinite(estimate) or cell.fate == "no reference":
            continue
        if truth > MIN_COMPARED_ERROR:
            result.append(min(estimate, 1.0) / min(truth, 1.0))
    return np.sort(np.array(result))


def calibration(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """Return quantiles of the monitor's errors over the true ones.

    Parameters
    ----------
    cells : Iterable[Cell]
        The cells.

    Returns
    -------
    list[dict[str, Any]]
        A row for each estimate and quantity.
    """
    every, rows = list(cells), list[dict[str, Any]]()
    for whose in ("estimated", "hurried"):
        for what in ("path", "power"):
            result = ratios(every, whose, what)
            if len(result):
                low, least, median, percentile_97, high = (
                    float(q) for q in np.quantile(result, (0.0, 0.025, 0.5, 0.975, 1.0))
                )
                within = float(np.mean((result >= 1.0 / MAX_FACTOR) & (result <= MAX_FACTOR)))
                rows.append({"estimate": whose, "of": what, "cells": len(result), "least": low, "2.5 %": least,
                             "median": median, "97.5 %": percentile_97, "most": high, "within": within,
                             "holds": within >= MIN_SHARE and low >= MIN_RATIO and high <= MAX_RATIO})  # fmt: skip
    return rows


def counted(cells: Iterable[Cell]) -> dict[str, int]:
    """Count the cells of each kind.

    Parameters
    ----------
    cells : Iterable[Cell]
        The cells.

    Returns
    -------
    dict[str, int]
        By kind.
    """
    out = dict.fromkeys(("cells", "fine", "doubtful", "diverged", "error", "refused", "unknown", "silent wrongs",
                         "false refusals", "doubted though right", "no reference"), 0)  # fmt: skip
    for cell in cells:
        out["cells"] += 1
        out[cell.verdict] += 1
        out["silent wrongs"] += cell.fate == "silent"
        out["false refusals"] += cell.fate == "refused though right"
        out["doubted though right"] += cell.fate == "doubted though right"
        out["no reference"] += cell.fate == "no reference"
    return out


MARKS = {"fine": "+", "unknown": ".", "doubtful": "d", "diverged": "X", "error": "E", "refused": "R"}


def table(case: Case, cells: list[Cell]) -> str:
    """Return a line with a mark for each step.

    Parameters
    ----------
    case : Case
        The case.
    cells : list[Cell]
        Its cells.

    Returns
    -------
    str
        ! follows a silently wrong cell, ? a right one that was stopped.
    """
    ends = {"silent": "!", "refused though right": "?", "doubted though right": "~"}
    marks = "".join(f"{MARKS[cell.verdict]}{ends.get(cell.fate, ' ')} " for cell in cells)
    return f"{case.name:<42}{case.steps[0]:>8.2g} to {case.steps[-1]:<7.2g} {marks}"


def main(as_json: bool, small: bool = False, only: str = "", detail: bool = False) -> int:
    """Run the grid.

    Parameters
    ----------
    as_json : bool
        Print JSON.
    small : bool, default False
        A part of the grid.
    only : str, default ''
        Only the lines whose names contain it.
    detail : bool, default False
        More numbers.

    Returns
    -------
    int
        1 where a wrong cell is silent, a right one stopped, or errors are not as large as estimated.
    """
    begun, every = time.monotonic(), list[Cell]()
    methods: dict[str, list[Cell]] = {}
    for case in cases(small):
        if only in case.name:
            cells = line(case)
            every += cells
            methods.setdefault(f"{case.robot} {case.method}", []).extend(cells)
            if not as_json:
                print(table(case, cells), flush=True)
                for cell in cells if detail else [cell for cell in cells if cell.fate]:
                    off = [f"{100.0 * part:.3g} %" if part is not None else "-" for part in (cell.path, cell.power)]
                    estimates = [f"{100.0 * part:.3g} %" if part is not None else "-" for part in
                              (cell.estimated_path, cell.estimated_power)]  # fmt: skip
                    print(
                        f"    {cell.dt:<8.3g} path {off[0]} (estimated {estimates[0]}), power {off[1]} "
                        f"({estimates[1]}); "
                        f"{cell.verdict} {cell.fate} {cell.text}"
                    )
    counts, fit = counted(every), calibration(every)
    misfit = any(row["estimate"] == "estimated" and not row["holds"] for row in fit)
    if as_json:
        cells_ = [asdict(cell) for cell in every]
        by_method = {name: counted(cells) for name, cells in methods.items()}
        print(json.dumps({
            "machine": machine(), "counts": counts, "methods": by_method, "calibration": fit, "cells": cells_,
        }))  # fmt: skip
    else:
        for row in fit:
            within = f"within a factor of {MAX_FACTOR:g} in {100.0 * row['within']:.1f} % of {row['cells']} cells"
            named = ", ".join(f"{name} {row[name]:.2g}" for name in ("least", "2.5 %", "median", "97.5 %", "most"))
            print(f"{row['of']}, {row['estimate']} / true: {named}; {within}")
        print(", ".join(f"{name} {count}" for name, count in counts.items()) + f"; {time.monotonic() - begun:.0f} s")
    return 1 if counts["silent wrongs"] or counts["false refusals"] or misfit else 0
