"""How fast the manta swims at each frequency: one plant, many runs, a figure.

python examples/11_sweep.py
"""

from __future__ import annotations

from math import pi, radians, sin

import numpy as np
from matplotlib.figure import Figure

import rtmms


def mean_speed(plant: rtmms.Plant, frequency_hz: float, seconds: float) -> float:
    """m/s along the body, over the second half."""
    plant.reset()
    command, speeds = np.zeros(4), []
    for k in range(round(seconds / plant.dt)):
        t = k * plant.dt
        angle = 2.0 * pi * frequency_hz * t
        front, back = radians(34.0) * sin(angle + radians(40.0)), radians(40.0) * sin(angle)
        command[:] = np.array((front, back, front, back)) * min(1.0, t)
        plant.step(command)
        if t > 0.5 * seconds and k % 10 == 0:
            speeds.append(float(plant.observe()["velocity"][0]))
    return float(np.mean(speeds))


def main(seconds: float = 12.0, picture: str = "sweep.png") -> dict[float, float]:
    """Sweep the frequency; returns the speeds."""
    plant = rtmms.load("manta")
    result = {}
    for frequency in np.linspace(0.2, 1.0, 5).round(2):
        result[float(frequency)] = mean_speed(plant, float(frequency), seconds)
        print(f"{frequency:.2f} Hz   {result[float(frequency)]:.3f} m/s")
    page = Figure(figsize=(5, 3), layout="constrained")
    axes = page.add_subplot(xlabel="frequency, Hz", ylabel="mean speed, m/s")
    axes.plot(list(result), list(result.values()), "o-")
    page.savefig(picture)
    return result


if __name__ == "__main__":
    main()
