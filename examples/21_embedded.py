"""A plant and its controller in one program, without processes or ports: for tests of controllers, and for batches.

python examples/21_embedded.py
"""

from __future__ import annotations

import rtmms
from rtmms_controllers.gait import Gait


def main(seconds: float = 5.0) -> dict[str, float]:
    """Swim in lockstep with a controller class, as `rtmms run` would start it; returns how far and how fast."""
    plant = rtmms.load("manta")
    controller = Gait(frequency_hz=0.6)
    with rtmms.embed(plant, robot="manta", steps=round(seconds / plant.dt)) as served:
        with rtmms.connect(served.exchange, name="gait", claim=controller.claim) as link:
            controller.start(link.plant)
            for state in link:
                link.command(controller.update(state) or {})
        outcome = served.wait()
    x, y, _ = outcome.final["position"]
    speed = float(outcome.final["velocity"][0])
    took = f"{outcome.simulated_s:g} s of swimming in {outcome.wall_s:.1f} s"
    print(f"{took}: at x = {x:.2f} m, y = {y:.2f} m, {speed:.2f} m/s")
    return {"x": float(x), "speed": speed, "steps": float(outcome.steps)}


if __name__ == "__main__":
    main()
