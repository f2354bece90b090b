"""A batch on all cores: each process has a plant of its own, and the same seed gives the same bits in any of them.

python examples/12_batch.py
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from math import pi, radians, sin
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

import rtmms


class Case(NamedTuple):
    drag: float
    phase_deg: float
    seconds: float


def swim(case: Case) -> float:
    """m, how far it gets."""
    plant = rtmms.load("manta", drag_coefficient=case.drag)
    plant.reset(seed=0)
    command = np.zeros(4)
    for k in range(round(case.seconds / plant.dt)):
        t = k * plant.dt
        angle = 2.0 * pi * 0.6 * t
        front = radians(40.0) * sin(angle + radians(case.phase_deg))
        back = radians(40.0) * sin(angle)
        command[:] = np.array((front, back, front, back)) * min(1.0, t)
        plant.step(command)
    return float(np.linalg.norm(plant.observe()["position"]))


def main(seconds: float = 8.0) -> dict[Case, float]:
    """All cases; the kernels are compiled once, here, before the others start."""
    rtmms.load("manta")
    cases = [Case(drag, phase, seconds) for drag in (1.0, 2.0) for phase in (20.0, 40.0, 60.0)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        result = dict(zip(cases, pool.map(swim, cases), strict=True))
    for case, route in result.items():
        print(f"drag {case.drag:.1f}   phase {case.phase_deg:3.0f} deg   {route:6.3f} m")
    return result


if __name__ == "__main__":
    main()
