"""Simulators for mosaik that know nothing of rtmms, and scenarios of them."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import mosaik
import mosaik_api_v3
from loguru import logger

logger.disable("mosaik")
RECEIVED: list[tuple[int, Any]] = []
"""(time, value) that pilots were given."""


class Pilot(mosaik_api_v3.Simulator):
    """A value each `every` of mosaik's time, or at the times that are given; keeps what it receives."""

    def __init__(self) -> None:
        super().__init__({"models": {"Pilot": {"public": True, "params": [], "attrs": ["out", "seen"]}}})
        self.time = 0

    def init(self, sid: str, time_resolution: float = 1.0, *, every: int = 10, at: Any = (), values: Any = (),
             hang_at: int = -1) -> Any:  # fmt: skip
        self.every, self.at, self.values, self.hang_at = every, list(at), list(values), hang_at
        if at:
            self.meta["type"] = "hybrid"
            self.meta["models"]["Pilot"] |= {"trigger": [], "non-persistent": ["out"]}
        return self.meta

    def create(self, num: int, model: str) -> Any:
        return [{"eid": f"pilot{k}", "type": model} for k in range(num)]

    def step(self, time: int, inputs: Any, max_advance: int) -> Any:
        self.time = time
        for value in inputs.get("pilot0", {}).get("seen", {}).values():
            RECEIVED.append((time, value))
        if time == self.hang_at:
            import time as clock

            print("hangs", flush=True)
            clock.sleep(1000.0)
        if self.at:
            later = [item for item in self.at if item > time]
            return later[0] if later else None
        return time + self.every

    def get_data(self, outputs: Any) -> Any:
        if self.at and self.time not in self.at:
            return {}
        k = self.at.index(self.time) if self.at else self.time // self.every
        value = self.values[min(k, len(self.values) - 1)]
        result: dict[str, Any] = {eid: dict.fromkeys(names, value) for eid, names in outputs.items()}
        return result | ({"time": self.time} if self.at else {})


def scenario(
    robots: dict[str, Any],
    until: int,
    resolution: float,
    drives: tuple[str, ...],
    observed: str,
    *,
    pilots: int = 1,
    arguments: dict[str, Any] | None = None,
    **pilot: Any,
) -> list[tuple[int, Any]]:
    """A pilot that drives these actuators of a robot and sees one of its outputs; what it received."""
    RECEIVED.clear()
    simulators: dict[str, Any] = {"Pilot": {"python": "tests.bridges.mosaik_peers:Pilot"}, "Robots": robots}
    with contextlib.redirect_stdout(io.StringIO()):
        world = mosaik.World(simulators, {"start_timeout": 60}, time_resolution=resolution)  # type: ignore[arg-type]
    try:
        built = world.start("Pilot", **pilot).Pilot.create(pilots)
        robot = world.start("Robots", **(arguments or {})).Robot()
        for item in built:
            world.connect(item, robot, *(("out", name) for name in drives))
        world.connect(robot, built[0], (observed, "seen"), time_shifted=True, initial_data={observed: 0.0})
        world.run(until=until, print_progress=False)
    finally:
        world.shutdown()
    return list(RECEIVED)


if __name__ == "__main__":
    scenario({"connect": sys.argv[1]}, 10**7, 0.01, ("thrust",), "depth", values=[1.5], every=1,
             hang_at=int(sys.argv[2]))  # fmt: skip
