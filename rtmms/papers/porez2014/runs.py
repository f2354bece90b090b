"""Strokes of the moth on the periodic orbit of each reading, and the numbers that are read off them."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from rtmms.analysis.trim import trim
from rtmms.dynamics import centre_of_mass
from rtmms.errors import DivergedError
from rtmms.monitor.monitor import Monitor
from rtmms.papers.porez2014.figures import Stroke
from rtmms.report.cycles import peak
from rtmms.robots import moth
from rtmms.spatial import Array

READINGS: dict[str, dict[str, Any]] = {
    "no added mass": {"added_mass": "none"},
    "rho pi c^2 / 4": {"added_mass": "flat"},
    "rho pi c^2 (printed)": {"added_mass": "paper"},
    "fit": {"preset": "fit"},
}
SAMPLES, STEP_S = 400, 1e-4
STROKES = 10
"""By the paper's integrator."""
LOST_RAD = 1e-2
"""Joints further than this from RK4's: the run has left the orbit, and its power says nothing."""


def stroke(**given: Any) -> Stroke:
    """The periodic orbit at the paper's amplitude, free thorax, found by shooting."""
    found = trim(moth.in_paper_frame(dt=1e-3, **given))
    plant = moth.in_paper_frame(dt=STEP_S, **given)
    n, rows, states = plant.model.n, [], []
    plant.vector[:] = found.vector
    for _ in range(SAMPLES):
        plant.evaluate()
        y, torque = plant.vector, float(plant.torque[0])
        q = y[7 : 7 + n]
        bend, twist, pitch = q[0] + q[1] + q[3] + q[5] + q[7], q[2] + q[4] + q[6], 2.0 * math.atan2(y[4], y[3])
        power = torque * float(plant.system.work.qd[0])
        states.append(plant.state)
        rows.append([plant.time, q[0], bend, twist, torque, power, *y[1:3], pitch, *y[7 + n : 13 + n]])
        plant.step(plant.neutral)
    d = np.array(rows)
    d[:, 7] -= np.arange(SAMPLES) / SAMPLES * found.travel[2]
    # the air's force is what the centre of mass needs beyond its weight: second differences around the period
    centre = np.array([centre_of_mass(plant.model, state) for state in states])
    centre -= np.outer(np.arange(SAMPLES) / SAMPLES, found.travel)
    acceleration = (np.roll(centre, -1, 0) - 2.0 * centre + np.roll(centre, 1, 0)) / plant.dt**2
    air = plant.model.mass * (acceleration - plant.model.gravity)
    return Stroke(
        d[:, 0], d[:, 1], d[:, 2], d[:, 3], d[:, 4], d[:, 5], d[:, 6:9], d[:, 9:12], d[:, 12:15], air, found.vector,
        plant.model, states,
    )  # fmt: skip


def numbers(s: Stroke) -> dict[str, float]:
    """By the keys of NUMBERS and WORDS, and the weight carried."""
    half, power = np.ptp(s.moved, axis=0) / 2.0, float(np.mean(s.power))
    twist, bend, torque = peak(np.abs(s.twist)), peak(s.bend), peak(np.abs(s.torque))
    least = _phase(peak(-s.air[:, 2]))
    return {
        "twist": math.degrees(twist[1]), "twist_lag": lag_deg(s.twist),
        "bend": math.degrees(bend[1]), "bend_lag": 360.0 * bend[0],
        "torque": 1e3 * torque[1], "power": power, "specific": 2.0 * power / s.model.mass,
        "fore_aft": 1e3 * half[0], "vertical": 1e3 * half[1], "pitch": math.degrees(half[2]),
        "twist_at": _phase(twist), "bend_at": _phase(bend), "bend_alone_at": _phase(peak(np.abs(s.bend - s.stroke))),
        "torque_at": _phase(torque), "lift_at": _phase(peak(s.air[:, 2])),
        "no_lift_at": least - 180.0 if least > 90.0 else least,
        "weight": float(np.mean(s.air[:, 2])) / (s.model.mass * -float(s.model.gravity[2])),
    }  # fmt: skip


def _phase(found: tuple[float, float]) -> float:
    """deg in [0, 180) from the last reversal."""
    return 360.0 * found[0] % 180.0


def lag_deg(signal: Array) -> float:
    """deg in [0, 180) by which the fundamental of one period trails cos, the stroke's own; of either sign."""
    return math.degrees(-float(np.angle(np.fft.rfft(signal)[1]))) % 180.0


def by_own_integrator(vector: Array, step_s: float, **given: Any) -> tuple[float, float, float]:
    """The paper's predictor-corrector from a state on the orbit, beside RK4 at 0.1 ms.

    Returns (rad, the joints' largest distance within STROKES strokes; W a wing over the last of them, nan where the
    orbit is lost; a step's error as the monitor of runs has it, of what changes within the step).
    """
    own = moth.in_paper_frame(dt=STEP_S, step_s=step_s, **{**given, "integrator": "abam"})
    exact = moth.in_paper_frame(dt=STEP_S, **given)
    own.start(vector, 0)
    exact.start(vector, 0)
    monitor, due, far, n = Monitor(own.twin()), 0, 0.0, own.model.n
    work = 0.0
    for k in range(STROKES * SAMPLES):
        if k == (STROKES - 1) * SAMPLES:
            work = float(own.observe()["work"])
        try:
            own.step(own.neutral)
        except DivergedError:
            return math.inf, math.nan, math.inf
        exact.step(exact.neutral)
        if k >= due and not monitor.hopeless:
            due = k + monitor.look(own.neutral)
        far = max(far, float(np.abs(own.vector[7 : 7 + n] - exact.vector[7 : 7 + n]).max()))
    power = (float(own.observe()["work"]) - work) / (2.0 * SAMPLES * STEP_S)
    return far, power if far < LOST_RAD else math.nan, monitor.verdict.step


def period_seconds() -> float:
    """Wall time of one period of 400 RK4 steps, the least of a few."""
    plant, least = moth.load(), math.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(40):
            plant.step(plant.neutral)
        least = min(least, time.perf_counter() - start)
    return least
