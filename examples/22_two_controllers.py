"""Two controllers on one robot: each claims a fin, neither knows of the other.

python examples/22_two_controllers.py
"""

from __future__ import annotations

import threading
from math import pi, radians, sin

import rtmms


def beat(exchange: str, side: str, amplitude_deg: float) -> None:
    """Drive one fin until the plant ends."""
    with rtmms.connect(exchange, name=side, claim=[f"{side}.*"], outputs=["none"]) as link:
        for state in link:
            angle = 2.0 * pi * 0.6 * state.time
            soft = min(1.0, state.time) * radians(amplitude_deg)
            link.command({f"{side}.front": soft * sin(angle + pi / 4.0), f"{side}.back": soft * sin(angle)})


def main(seconds: float = 6.0) -> dict[str, float]:
    """Return the rate of turn, rad/s. The left fin beats more than the right one, so the manta turns right."""
    plant = rtmms.load("manta")
    with rtmms.embed(plant, robot="manta", steps=round(seconds / plant.dt)) as served:
        drivers = [
            threading.Thread(target=beat, args=(served.exchange, side, amplitude))
            for side, amplitude in (("left", 35.0), ("right", 15.0))
        ]
        for driver in drivers:
            driver.start()
        outcome = served.wait()
        for driver in drivers:
            driver.join()
    rate = float(outcome.final["angular_velocity"][2])
    print(f"{outcome.simulated_s:g} s with two controllers: turning at {rate:+.3f} rad/s")
    return {"rate": rate}


if __name__ == "__main__":
    main()
