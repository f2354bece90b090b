"""A plant in a script, without loop or sockets: step it, look at it, go back to an earlier state.

python examples/10_plant.py
"""

from __future__ import annotations

from math import pi, radians, sin

import numpy as np

import rtmms


def main(seconds: float = 10.0) -> dict[str, float]:
    """Swim for so many simulated seconds; returns the speed at the end and the path's length."""
    plant = rtmms.load("manta", dt=1e-3)  # any parameter of the manta may stand here, as `rtmms run --set` takes them
    print("actuators:", ", ".join(f"{a.name} ({a.unit}, {a.lower:g} to {a.upper:g})" for a in plant.actuators))
    command = np.zeros(len(plant.actuators))
    start = plant.observe()["position"]
    half, middle = b"", start
    steps = round(seconds / plant.dt)
    for k in range(steps):
        t = k * plant.dt
        soft = min(1.0, t)
        front = soft * radians(34.0) * sin(2.0 * pi * 0.6 * t + radians(40.0))
        back = soft * radians(40.0) * sin(2.0 * pi * 0.6 * t)
        command[:] = front, back, front, back  # in the order of plant.actuators, held for dt
        if k == steps // 2:
            half, middle = plant.snapshot(), plant.observe()["position"]
        plant.step(command)
    outputs = plant.observe()
    speed, route = float(outputs["velocity"][0]), float(np.linalg.norm(outputs["position"] - start))
    print(f"after {seconds:g} s: {speed:.3f} m/s forward, {route:.2f} m from the start")
    plant.restore(half)  # the very same bits as then
    again = bool((plant.observe()["position"] == middle).all())
    print(f"back at half time, {float(np.linalg.norm(middle - start)):.2f} m from the start: same state {again}")
    return {"speed": speed, "way": route, "again": float(again)}


if __name__ == "__main__":
    main()
