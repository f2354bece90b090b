"""rtmms bench guards: is a result ever wrong without a word, or right and refused? Are errors as large as stated?

Each cell is a run at one step. The truth is the same plant with the same commands at an eighth of the step; where one
command is held throughout, an eighth of the shortest step of the line (or a quarter of that, where this one fails). A
cell is wrong where its path is off by more than 1 % of the length travelled, or its work or mean power by more than
5 %; right where both are within 0.1 %. What the run reports is the monitor's verdict (rtmms.monitor), an error, or a
refusal. Where the monitor stated how large an error is, it stands beside the true one: a cell is also wrong without a
word where it is fine and an error of 1 % or more is beyond three times what the monitor stated.
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
from rtmms.plant.replay import SHORTEST, SWAYING

from .guards_cases import Case, cases
from .setting import machine

Array = npt.NDArray[np.float64]
WRONG_PATH, WRONG_POWER, RIGHT = 0.01, 0.05, 1e-3
BEYOND, WORTH = 3.0, 0.01
"""A run that is fine is wrong where an error of at least WORTH is more than BEYOND times the one that was reported."""
STOPPED = ("refused", "diverged", "error")
PATIENCE_S = 60.0
"""Wall time for taking a run again: enough, so that a slow machine gets the same verdicts."""
ROUNDING = 1e-7
"""Errors below that are not compared."""
FACTOR, SHARE, LEAST, MOST = 5.0, 0.95, 0.5, 20.0
"""What is thought over what is true: within FACTOR in SHARE of the cells, never below LEAST nor above MOST."""

PLACES = 400
"""At about so many times paths are compared, or at each step."""


@dataclass(frozen=True)
class Run:
    """times (k,) s, places (k, 3) m there; work J; verdict: a verdict, 'error' or 'refused'; text what of it; thought:
    the errors of path and work as the monitor has them, from as many parts of a step as there was time for, and from
    two; () where it has none; moved  J, the sum of the work that went to and fro."""

    times: Array
    places: Array
    work: float
    verdict: str
    text: str
    thought: tuple[float, ...] = ()
    moved: float = 0.0


@dataclass(frozen=True)
class Cell:
    """path, power: fractions, None where there was no run to the end; verdict, text: see Run; fate: see `judge`;
    thought_path, thought_power, hurried_path, hurried_power: as the monitor has them, the latter from two parts of a
    step, as after a long run."""

    case: str
    dt: float
    path: float | None
    power: float | None
    verdict: str
    fate: str
    text: str
    thought_path: float | None = None
    thought_power: float | None = None
    hurried_path: float | None = None
    hurried_power: float | None = None


def taken(case: Case, dt: float, watched: bool, parts: int = 1) -> Run:
    """One run, to its end even where the monitor would have stopped it; parts: steps within which a command is held."""
    nowhere: tuple[Array, Array, float] = np.zeros(0), np.zeros((0, 3)), 0.0
    try:
        plant = case.load(dt)
    except ModelError as refusal:
        return Run(*nowhere, "refused", str(refusal))
    steps, work = round(case.seconds / dt), 0.0
    monitor = Monitor(plant.step_error_estimator()) if watched else None
    seen = max(1, steps // PLACES)
    while steps % seen:
        seen -= 1
    seen = parts if parts > 1 else seen  # of the truth every step of the line, so that nothing is interpolated
    times: Array = np.linspace(0.0, steps * dt, steps // seen + 1)
    places = np.empty((steps // seen + 1, 3))
    places[0] = plant.observe()["position"]
    every = max(1, round(0.01 / dt / parts)) * parts  # of what is sampled, in both runs at the same instants
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
            if (k + 1) % seen == 0:
                reader.keep(state)
                places[(k + 1) // seen] = state.position
                done = before if state.work is None else float(state.work.sum())
                moved, before = moved + abs(done - before), done
            if not counted_up and (k + 1) % every == 0:
                work += float(plant.observe()["rod_power"]) * dt * every
        if counted_up:
            work = float(plant.observe()["work"])
    except DivergedError as error:
        return Run(*nowhere, "error", str(error))
    if monitor is None:
        return Run(times, places, work, "", "", moved=moved)
    hurried, found = monitor.conclude(PATIENCE_S, 2), monitor.conclude(PATIENCE_S)
    thought = found.path, found.work, hurried.path, hurried.work
    return Run(times, places, work, "diverged" if stopped else found.verdict, found.sentence, thought)


def judge(path: float | None, power: float | None, verdict: str, thought: tuple[float, ...] = ()) -> str:
    """'silent' wrong, 'refused though right', 'doubted though right', else '' . thought: see Run"""
    if path is None or power is None:
        return ""
    wrong = not (path <= WRONG_PATH and power <= WRONG_POWER)  # not a number is wrong
    wrong = wrong or any(
        true >= WORTH and true > BEYOND * reported for true, reported in zip((path, power), thought, strict=False)
    )
    right = path <= RIGHT and power <= RIGHT
    if wrong and verdict == "fine":
        return "silent"
    if right and verdict in STOPPED:
        return "refused though right"
    return "doubted though right" if right and verdict == "doubtful" else ""


def line(case: Case) -> list[Cell]:
    """A case's cells."""
    found: list[Cell] = []
    for dt in case.steps:
        run = taken(case, dt, watched=True)
        if not found or (case.varies and len(run.places)):
            exact = taken(case, dt / 8.0, False, 8)
            if exact.verdict:
                exact = taken(case, dt / 32.0, False, 32)
            length = float(np.sum(np.linalg.norm(np.diff(exact.places, axis=0), axis=1))) if len(exact.places) else 0.0
        path = power = None
        if len(run.places) and length > 0.0:
            floor = SHORTEST * case.load(dt).step_error_estimator().length
            with np.errstate(all="ignore"):
                there = np.array([np.interp(run.times, exact.times, exact.places[:, i]) for i in range(3)]).T
                path = float(np.max(np.linalg.norm(run.places - there, axis=1))) / max(length, floor)
                done = max(abs(run.work), abs(exact.work), SWAYING * exact.moved)  # as the monitor measures it
                power = abs(run.work - exact.work) / done if exact.work else 0.0
        fate = "no reference" if exact.verdict else judge(path, power, run.verdict, run.thought)
        found.append(Cell(case.name, dt, path, power, run.verdict, fate, run.text, *run.thought))
    return found


def ratios(cells: Iterable[Cell], whose: str, what: str) -> Array:
    """What the monitor thought ('thought' or 'hurried') of 'path' or 'power', over the truth, ascending: of cells with
    a reference whose error is above rounding. Errors of more than all count as all, as the report has no more."""
    found = list[float]()
    for cell in cells:
        truth, thought = getattr(cell, what), getattr(cell, f"{whose}_{what}")
        if truth is None or thought is None or not np.isfinite(thought) or cell.fate == "no reference":
            continue
        if truth > ROUNDING:
            found.append(min(thought, 1.0) / min(truth, 1.0))
    return np.sort(np.array(found))


def calibration(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """How far what was thought is from the truth: a row of quantiles for each estimate and quantity."""
    every, rows = list(cells), list[dict[str, Any]]()
    for whose in ("thought", "hurried"):
        for what in ("path", "power"):
            found = ratios(every, whose, what)
            if len(found):
                low, least, median, most, high = (float(q) for q in np.quantile(found, (0.0, 0.025, 0.5, 0.975, 1.0)))
                within = float(np.mean((found >= 1.0 / FACTOR) & (found <= FACTOR)))
                rows.append({"estimate": whose, "of": what, "cells": len(found), "least": low, "2.5 %": least,
                             "median": median, "97.5 %": most, "most": high, "within": within,
                             "holds": within >= SHARE and low >= LEAST and high <= MOST})  # fmt: skip
    return rows


def counted(cells: Iterable[Cell]) -> dict[str, int]:
    """How many cells of each kind."""
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
    """A line: a mark for each step, ! behind a wrong one without a word, ? behind a right one that was stopped."""
    ends = {"silent": "!", "refused though right": "?", "doubted though right": "~"}
    marks = "".join(f"{MARKS[cell.verdict]}{ends.get(cell.fate, ' ')} " for cell in cells)
    return f"{case.name:<42}{case.steps[0]:>8.2g} to {case.steps[-1]:<7.2g} {marks}"


def main(as_json: bool, small: bool = False, only: str = "", detail: bool = False) -> int:
    """Run the grid, or the lines whose names contain `only`; 1 where a wrong cell is silent, a right one
    stopped, or errors are not as large as was thought."""
    begun, every = time.monotonic(), list[Cell]()
    for case in cases(small):
        if only in case.name:
            cells = line(case)
            every += cells
            if not as_json:
                print(table(case, cells), flush=True)
                for cell in cells if detail else [cell for cell in cells if cell.fate]:
                    off = [f"{100.0 * part:.3g} %" if part is not None else "-" for part in (cell.path, cell.power)]
                    beside = [f"{100.0 * part:.3g} %" if part is not None else "-" for part in
                              (cell.thought_path, cell.thought_power)]  # fmt: skip
                    print(f"    {cell.dt:<8.3g} path {off[0]} (thought {beside[0]}), power {off[1]} ({beside[1]}); "
                          f"{cell.verdict} {cell.fate} {cell.text}")  # fmt: skip
    counts, fit = counted(every), calibration(every)
    misfit = any(row["estimate"] == "thought" and not row["holds"] for row in fit)
    if as_json:
        cells_ = [asdict(cell) for cell in every]
        print(json.dumps({"machine": machine(), "counts": counts, "calibration": fit, "cells": cells_}))
    else:
        for row in fit:
            within = f"within a factor of {FACTOR:g} in {100.0 * row['within']:.1f} % of {row['cells']} cells"
            named = ", ".join(f"{name} {row[name]:.2g}" for name in ("least", "2.5 %", "median", "97.5 %", "most"))
            print(f"{row['of']}, {row['estimate']} / true: {named}; {within}")
        print(", ".join(f"{name} {count}" for name, count in counts.items()) + f"; {time.monotonic() - begun:.0f} s")
    return 1 if counts["silent wrongs"] or counts["false refusals"] or misfit else 0
