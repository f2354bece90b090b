"""`rtmms bench balance`: at what order the manta's energy is accounted for, over steps and the joints' damping.

The residual is the largest difference, along a run of the default gait's first periods, between the energy and what
power of the rods less losses has brought, as a fraction of the rods' work; monolithic coupling, so that the fins' step
is all that is seen. Stiffly damped joints, c dt / M far beyond 1, cost the implicit step its second order; lightly
damped, or in short steps, it comes back (docs/manta.md, Stepping).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from rtmms.errors import ModelError

from . import setting
from .stepping import load

AMPLITUDE, FREQUENCY, RAMP_S = 0.7, 0.6, 1.0


def command(time: float) -> np.ndarray:
    """(4,) rad: both fins alike, the front rods ahead, begun softly."""
    s = min(time / RAMP_S, 1.0)
    soft = s**4 * (35.0 - 84.0 * s + 70.0 * s**2 - 20.0 * s**3) * AMPLITUDE
    angle = 2.0 * math.pi * FREQUENCY * time
    front, back = 0.8 * soft * math.sin(angle + AMPLITUDE), soft * math.sin(angle)
    return np.array([front, back, front, back])


def residual(dt: float, seconds: float, **given: Any) -> float:
    """Fraction of the rods' work; trapezes over the steps."""
    plant, count = load(dt=dt, coupling="monolithic", **given), round(seconds / dt)
    power, rods, energy = (np.empty(count + 1) for _ in range(3))
    for k in range(count + 1):
        seen = plant.observe()
        rods[k] = seen["rod_power"]
        power[k] = rods[k] - seen["drag_power"] - seen["damping_power"]
        energy[k] = seen["kinetic_energy"] + seen["elastic_energy"] + seen["buoyancy_energy"]
        if k < count:
            plant.step(command(k * dt))
    work = np.concatenate([[0.0], np.cumsum(0.5 * dt * (power[1:] + power[:-1]))])
    return float(np.abs(energy - energy[0] - work).max() / np.trapezoid(np.abs(rods), dx=dt))


def orders(steps: Sequence[float], values: Sequence[float]) -> list[float]:
    """From each step to the next."""
    return [math.log(a / b) / math.log(s / t) for a, b, s, t in zip(values, values[1:], steps, steps[1:], strict=False)]


def main(
    as_json: bool = False, steps: str = "2e-3,1e-3,5e-4,2.5e-4,1.25e-4,6.25e-5", dampings: str = "0.1,0.01,0.001",
    seconds: float = 1.5,
) -> int:  # fmt: skip
    """The command. steps: s, falling; dampings: joint_damping_n_m_s, N m s. The default takes half a minute."""
    try:
        times, damped = ([float(word) for word in text.split(",")] for text in (steps, dampings))
    except ValueError:
        raise ModelError(f"bench balance: expected numbers with commas, got '{steps}' and '{dampings}'") from None
    rows: list[dict[str, Any]] = []
    for added_mass in (False, True):
        for c in damped:
            print(f"balance: added_mass={added_mass}, damping {c:g} N m s", file=sys.stderr, flush=True)
            found = [residual(dt, seconds, added_mass=added_mass, joint_damping_n_m_s=c) for dt in times]
            rows.append(
                {"added_mass": added_mass, "damping_n_m_s": c, "residual": found, "orders": orders(times, found)}
            )
    if as_json:
        print(json.dumps({"commit": setting.commit(), "steps_s": times, "rows": rows}))
        return 0
    print("| added mass | damping, N m s | " + " | ".join(f"{1e3 * dt:g} ms" for dt in times) + " | orders |")
    print("|---" * (len(times) + 3) + "|")
    for row in rows:
        told = " | ".join(f"{value:.1e}" for value in row["residual"])
        between = ", ".join(f"{order:.2f}" for order in row["orders"])
        print(f"| {'yes' if row['added_mass'] else 'no'} | {row['damping_n_m_s']:g} | {told} | {between} |")
    return 0
