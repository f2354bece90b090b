"""The moth of Porez, Boyer and Belkhiri (2014): figures 6 and 7 again, and its numbers beside every reading's."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.report.beside import Row, canvas, save, tell
from rtmms.robots import moth
from rtmms.robots.trim import trim
from rtmms.spatial import Array

READINGS: dict[str, dict[str, Any]] = {
    "no added mass": {"added_mass": "none"},
    "rho pi c^2 / 4": {"added_mass": "flat"},
    "rho pi c^2 (printed)": {"added_mass": "paper"},
    "fit": {"preset": "fit"},
}
PUBLISHED = {
    "tip twist, peak": (79.0, "deg"),
    "stroke and bending at the tip": (68.0, "deg"),
    "its lag behind the stroke": (36.0, "deg"),
    "peak stroke torque": (12.1, "mN m"),
    "power a wing": (0.42, "W"),
    "specific power": (120.0, "W/kg"),
    "thorax, fore-aft": (2.0, "mm"),
    "thorax, vertical": (0.5, "mm"),
    "thorax, pitch": (7.0, "deg"),
}


@dataclass(frozen=True)
class Stroke:
    """One period on the periodic orbit, 400 samples: stroke, tip bending with stroke, tip twist (rad), torque (N m),
    power (W) of the right wing; velocity (400, 3) and angular velocity of the thorax; values: PUBLISHED's, ours."""

    time: Array
    stroke: Array
    bend: Array
    twist: Array
    torque: Array
    power: Array
    velocity: Array
    spin: Array
    values: dict[str, float]


def stroke(**given: Any) -> Stroke:
    """The periodic orbit at the paper's amplitude, free thorax, found by shooting."""
    found = trim(moth.load(start="rest", dt=1e-3, **given))
    plant = moth.load(start="rest", dt=1e-4, **given)
    n, rows = plant.model.n, []
    plant.vector[:] = found.vector
    for _ in range(400):
        plant.evaluate()
        y, torque = plant.vector, float(plant.torque[0])
        q = y[7 : 7 + n]
        bend, twist, pitch = q[0] + q[1] + q[3] + q[5] + q[7], q[2] + q[4] + q[6], 2.0 * math.atan2(y[4], y[3])
        power = torque * float(plant._work[5][0])
        rows.append([plant.time, q[0], bend, twist, torque, power, *y[1:3], pitch, *y[7 + n : 13 + n]])
        plant.step(plant._neutral)
    d = np.array(rows)
    d[:, 7] -= np.arange(400) / 400.0 * found.travel[2]
    half = np.ptp(d, axis=0) / 2.0
    mean = float(np.mean(d[:, 5]))
    values = (
        math.degrees(np.max(np.abs(d[:, 3]))), math.degrees(np.max(np.abs(d[:, 2]))), float(np.argmax(d[:, 2])) * 0.9,
        1e3 * float(np.max(np.abs(d[:, 4]))), mean, 2.0 * mean / plant.model.mass,
        1e3 * half[6], 1e3 * half[7], math.degrees(half[8]),
    )  # fmt: skip
    named = dict(zip(PUBLISHED, (float(v) for v in values), strict=True))
    return Stroke(d[:, 0], d[:, 1], d[:, 2], d[:, 3], d[:, 4], d[:, 5], d[:, 9:12], d[:, 12:15], named)


def period_seconds() -> float:
    """Wall time of one period of 400 RK4 steps, the least of a few."""
    plant, least = moth.load(), math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(40):
            plant.step(plant._neutral)
        least = min(least, time.perf_counter() - start)
    return least


def draw(strokes: dict[str, Stroke], out: Path) -> list[Path]:
    """Figures 6 and 7, every reading in the same axes."""
    figure, axes = canvas(2, 1, (7.0, 6.0))
    figure7, axes7 = canvas(3, 1, (7.0, 8.0))
    for name, s in strokes.items():
        t = s.time / s.time[-1]
        line = axes[0].plot(t, s.velocity[:, 1], label=f"{name}: n")[0]
        axes[0].plot(t, s.velocity[:, 2], "--", color=line.get_color())
        axes[1].plot(t, s.spin[:, 0], label=name)
        axes7[0].plot(t, np.degrees(s.bend), label=name)
        axes7[1].plot(t, np.degrees(s.twist))
        axes7[2].plot(t, 1e3 * s.torque)
    axes[0].set(ylabel="m/s, body (dashed: a)", title="Fig. 6: linear and angular velocity of the thorax")
    axes[1].set(xlabel="t / T", ylabel="rad/s about s")
    axes7[0].plot(t, np.degrees(s.stroke), "k:", label="stroke")
    axes7[0].set(ylabel="stroke and bending (deg)", title="Fig. 7: the right wing's tip, and its stroke torque")
    axes7[1].set(ylabel="twist (deg)")
    axes7[2].set(xlabel="t / T", ylabel="torque (mN m)")
    axes[0].legend()
    axes7[0].legend()
    return [save(figure, out, "porez2014-fig06"), save(figure7, out, "porez2014-fig07")]


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Find the orbit of every reading, draw, print the numbers; 0."""
    strokes = {name: stroke(**given) for name, given in READINGS.items()}
    rows = []
    for what, (paper, unit) in PUBLISHED.items():
        for name, s in strokes.items():
            ours = s.values[what]
            rows.append(Row(what, paper, ours, unit, abs(ours - paper) <= 0.1 * paper, name))
    rows.append(Row("one period on a laptop, 400 steps", 17.0, period_seconds(), "s", None, "compiled, RK4"))
    figures = draw(strokes, out) if out is not None else []
    return tell("porez2014", rows, figures, as_json)
