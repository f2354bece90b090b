"""The moth of Porez, Boyer and Belkhiri (2014): figures 5 to 8 again, and its numbers beside every reading's."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.analysis.trim import trim
from rtmms.dynamics import centre_of_mass
from rtmms.report.beside import Row, tell
from rtmms.report.porez2014.figures import Stroke, draw
from rtmms.robots import moth
from rtmms.spatial import Array

READINGS: dict[str, dict[str, Any]] = {
    "no added mass": {"added_mass": "none"},
    "rho pi c^2 / 4": {"added_mass": "flat"},
    "rho pi c^2 (printed)": {"added_mass": "paper"},
    "fit": {"preset": "fit"},
}
WHY = {
    "tip twist, peak": "table I's twist springs are too stiff for it in every reading; 3e-3 N m/rad all along is near",
    "its lag behind the stroke, twist": "of the twist's first harmonic; the paper does not say how it reads a lag",
    "thorax, vertical": "a small remainder of lift less weight, which every reading of the added mass moves",
    "power a wing": "torque and power go with the added mass; the printed one is four times a flat plate's",
}
PUBLISHED = {
    "tip twist, peak": (79.0, "deg"),
    "its lag behind the stroke, twist": (58.0, "deg"),
    "stroke and bending at the tip": (68.0, "deg"),
    "its lag behind the stroke": (36.0, "deg"),
    "peak stroke torque": (12.1, "mN m"),
    "power a wing": (0.42, "W"),
    "specific power": (120.0, "W/kg"),
    "thorax, fore-aft": (2.0, "mm"),
    "thorax, vertical": (0.5, "mm"),
    "thorax, pitch": (7.0, "deg"),
}


def stroke(**given: Any) -> Stroke:
    """The periodic orbit at the paper's amplitude, free thorax, found by shooting."""
    found = trim(moth.in_paper_frame(dt=1e-3, **given))
    plant = moth.in_paper_frame(dt=1e-4, **given)
    n, rows, states = plant.model.n, [], []
    plant.vector[:] = found.vector
    for _ in range(400):
        plant.evaluate()
        y, torque = plant.vector, float(plant.torque[0])
        q = y[7 : 7 + n]
        bend, twist, pitch = q[0] + q[1] + q[3] + q[5] + q[7], q[2] + q[4] + q[6], 2.0 * math.atan2(y[4], y[3])
        power = torque * float(plant._work[5][0])
        states.append(plant.state)
        rows.append([plant.time, q[0], bend, twist, torque, power, *y[1:3], pitch, *y[7 + n : 13 + n]])
        plant.step(plant.neutral)
    d = np.array(rows)
    d[:, 7] -= np.arange(400) / 400.0 * found.travel[2]
    half = np.ptp(d, axis=0) / 2.0
    mean = float(np.mean(d[:, 5]))
    values = (
        math.degrees(np.max(np.abs(d[:, 3]))), _lag(d[:, 3]),
        math.degrees(np.max(np.abs(d[:, 2]))), float(np.argmax(d[:, 2])) * 0.9,
        1e3 * float(np.max(np.abs(d[:, 4]))), mean, 2.0 * mean / plant.model.mass,
        1e3 * half[6], 1e3 * half[7], math.degrees(half[8]),
    )  # fmt: skip
    named = dict(zip(PUBLISHED, (float(v) for v in values), strict=True))
    # the air's force is what the centre of mass needs beyond its weight: second differences around the period
    centre = np.array([centre_of_mass(plant.model, state) for state in states])
    centre -= np.outer(np.arange(400) / 400.0, found.travel)
    acceleration = (np.roll(centre, -1, 0) - 2.0 * centre + np.roll(centre, 1, 0)) / plant.dt**2
    air = plant.model.mass * (acceleration - plant.model.gravity)
    return Stroke(
        d[:, 0], d[:, 1], d[:, 2], d[:, 3], d[:, 4], d[:, 5], d[:, 9:12], d[:, 12:15], air, plant.model, states, named
    )  # fmt: skip


def _lag(twist: Array) -> float:
    """deg by which the first harmonic of a period of 400 samples trails cos, the stroke's own; of either sign."""
    first = np.fft.rfft(twist)[1]
    return math.degrees(-float(np.angle(first))) % 180.0


def period_seconds() -> float:
    """Wall time of one period of 400 RK4 steps, the least of a few."""
    plant, least = moth.load(), math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(40):
            plant.step(plant.neutral)
        least = min(least, time.perf_counter() - start)
    return least


def _words(s: Stroke) -> list[Row]:
    """What the paper says without a number: where in the stroke things are largest. deg of the stroke's phase."""
    phase = 0.9 * np.arange(400)
    largest = (np.abs(s.twist), np.abs(s.torque), s.air[:, 2])
    twist, torque, lift = (float(phase[int(np.argmax(values))]) % 180.0 for values in largest)
    return [
        Row("twist is largest", "at the middle of the stroke, 90", twist, "deg", abs(twist - 90.0) < 30.0,
            "after a reversal, rho pi c^2 / 4"),
        Row("stroke torque is largest", "after the reversals", torque, "deg", 0.0 < torque < 90.0, "the same"),
        Row("lift is largest", "at the middle of the stroke, 90", lift, "deg", abs(lift - 90.0) < 30.0, "the same"),
    ]  # fmt: skip


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Find the orbit of every reading, draw, print the numbers; 0."""
    strokes = {name: stroke(**given) for name, given in READINGS.items()}
    rows = []
    for what, (paper, unit) in PUBLISHED.items():
        for name, s in strokes.items():
            ours = s.values[what]
            good = abs(ours - paper) <= 0.1 * paper
            why = f"; {WHY[what]}" if not good and what in WHY and name == "fit" else ""
            rows.append(Row(what, paper, ours, unit, good, name + why))
    rows += _words(strokes["rho pi c^2 / 4"])
    rows.append(Row("one period on a laptop, 400 steps", 17.0, period_seconds(), "s", None, "compiled, RK4"))
    figures = draw(strokes, out) if out is not None else []
    return tell("porez2014", rows, figures, as_json)
