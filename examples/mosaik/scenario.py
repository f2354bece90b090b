"""A manta in a scenario of mosaik: a pilot at 10 Hz, written against mosaik alone, beside a robot at 100 Hz.

python examples/mosaik/scenario.py
"""

from __future__ import annotations

import math
import sys
from typing import Any

import mosaik
import mosaik_api_v3

RODS = ("left.front", "left.back", "right.front", "right.back")
TICKS = 100
"""mosaik's times a second."""
POSITIONS: dict[float, Any] = {}
"""Where the robot was, as the pilot received it."""


class Pilot(mosaik_api_v3.Simulator):
    """Angles of all rods, and where the robot is; rtmms is not imported here."""

    def __init__(self) -> None:
        model = {"public": True, "params": [], "attrs": [*RODS, "position"]}
        super().__init__({"type": "time-based", "models": {"Pilot": model}})
        self.now_s = 0.0

    def create(self, num: int, model: str) -> list[dict[str, Any]]:
        return [{"eid": "pilot", "type": model}]

    def step(self, time: int, inputs: dict[str, Any], max_advance: int) -> int:
        self.now_s = time / TICKS
        for value in inputs.get("pilot", {}).get("position", {}).values():
            POSITIONS[self.now_s] = value
        return time + TICKS // 10

    def get_data(self, outputs: dict[str, list[str]]) -> dict[str, Any]:
        rise = 0.5 * min(1.0, self.now_s)
        angle = {rod: rise * math.sin(math.tau * 0.6 * self.now_s - (0.6 if "back" in rod else 0.0)) for rod in RODS}
        return {"pilot": {name: angle[name] for name in outputs["pilot"]}}


def main(seconds: float = 5.0, robot: str = "", **arguments: Any) -> dict[float, Any]:
    """Run the scenario, and return the robot's positions. '127.0.0.1:5678' names the bridge of a plant that runs."""
    where = {"connect": robot} if robot else {"python": "rtmms_bridges.federation.simulator:Robots"}
    world = mosaik.World({"Pilot": {"python": f"{__name__}:Pilot"}, "Robots": where}, time_resolution=1.0 / TICKS)
    pilot = world.start("Pilot").Pilot()
    swimmer = world.start("Robots", **({} if robot else {"robot": "manta", "step_s": 0.01, **arguments})).Robot()
    world.connect(pilot, swimmer, *((rod, rod) for rod in RODS))
    world.connect(swimmer, pilot, ("position", "position"), time_shifted=True, initial_data={"position": [0.0] * 3})
    POSITIONS.clear()
    world.run(until=round(seconds * TICKS), print_progress=False)
    far = math.hypot(*list(POSITIONS.values())[-1])
    print(f"after {max(POSITIONS):g} s the robot is {far:.2f} m away")
    return dict(POSITIONS)


if __name__ == "__main__":
    main(robot=sys.argv[1] if len(sys.argv) > 1 else "")
