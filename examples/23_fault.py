"""A rod that sticks in the middle of a run, and is free again: what a controller has to live with.

python examples/23_fault.py
"""

from __future__ import annotations

from math import pi, radians, sin

import numpy as np

import rtmms
from rtmms.sensing.faults import Faulty


def main(seconds: float = 9.0) -> dict[str, float]:
    """Sound, stuck and sound again, a third each; returns the mean yaw rates, rad/s."""
    plant = Faulty(rtmms.load("manta"))
    plant.reset()
    third, rates = round(seconds / 3.0 / plant.dt), {}
    command = np.zeros(4)
    for part, (name, fault) in enumerate((("sound", ""), ("stuck", "stuck=0.2"), ("sound again", ""))):
        plant.set(**{"fault.left.back": fault})
        turned = 0.0
        for k in range(part * third, (part + 1) * third):
            t = k * plant.dt
            angle, soft = 2.0 * pi * 0.6 * t, min(1.0, t) * radians(35.0)
            front, back = soft * sin(angle + pi / 4.0), soft * sin(angle)
            command[:] = front, back, front, back
            plant.step(command)
            turned += float(plant.observe()["angular_velocity"][2])
        rates[name] = turned / third
        print(f"{name:<12} yaw rate {rates[name]:+.3f} rad/s in the mean")
    return rates


if __name__ == "__main__":
    main()
