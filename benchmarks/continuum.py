"""How long one evaluation of a continuous body takes, how that grows with the points along it, and what they buy.

Times are the least of several batches, inside one compiled loop: strain, kinematics, head, internal wrenches, power.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from rtmms.continuum import layout as at
from rtmms.continuum.step import many
from rtmms.robots import continuous_eel

NODES = (16, 31, 64, 127, 256)
TARGET_US, TARGET_GROWTH = 60.0, 1.05


def evaluation(plant: Any) -> float:
    """us, at a bent shape that moves."""
    plant.look()
    many(2, plant.system)
    best = float("inf")
    for _ in range(60):
        start = time.perf_counter()
        many(40, plant.system)
        best = min(best, time.perf_counter() - start)
    return best / 40 * 1e6


def swum(**given: Any) -> Any:
    """The eel after 0.6 s."""
    plant = continuous_eel.load(preset="spatial", dt=4e-3, **given)
    for _ in range(150):
        plant.step(plant.neutral)
    return plant


def accuracy(base: Any) -> dict[str, dict[str, float]]:
    """Error of the head's acceleration, relative to its largest entry, by points a cell and nodes."""

    def found(nodes: int, points: int) -> Any:
        plant = continuous_eel.load(preset="spatial", dt=4e-3, nodes=nodes, points=points)
        plant.start(base.memory, base.now)
        plant.look()
        return plant.acceleration

    exact = found(513, 5)
    return {
        f"order {2 * points - 2}": {
            str(nodes): float(np.abs(found(nodes, points) - exact).max() / np.abs(exact).max()) for nodes in NODES[1:4]
        }
        for points in (3, 4, 5)
    }


def balance(plant: Any) -> float:
    """J: energy + lost - work after 0.6 s at 64 nodes, from 0."""
    seen = plant.observe()
    return float(seen["energy"] + seen["lost"] - seen["work"])


def measure() -> dict[str, Any]:
    """us of an evaluation, its growth with nodes, error by nodes, residual of the energy."""
    base = swum()
    result: dict[str, Any] = {"us": {}, "target_us": TARGET_US, "target_growth": TARGET_GROWTH}
    for preset in ("planar", "spatial"):
        plants = {}
        for nodes in NODES:
            plants[nodes] = continuous_eel.in_paper_frame(preset=preset, dt=4e-3, nodes=nodes)
            if preset == "spatial":
                plants[nodes].start(base.memory, base.now)
            else:
                plants[nodes].step(np.array([1.0, 1.0, 0.1]))
        result["us"][preset] = {str(len(p.grid.x)): evaluation(p) for p in plants.values()}
    for preset, times in result["us"].items():
        sizes = [float(n) for n in times]
        result.setdefault("growth", {})[preset] = float(np.polyfit(np.log(sizes), np.log(list(times.values())), 1)[0])
    result["acceleration_error"] = accuracy(base)
    result["energy_residual_j"] = balance(base)
    result["mass_kg"] = float(base.section[:, at.K_MASS] @ base.section[:, at.K_WEIGHT])
    return result


def run(as_json: bool = False) -> int:
    """Measure and print; 0."""
    result = measure()
    if as_json:
        print(json.dumps(result))
        return 0
    for preset, times in result["us"].items():
        row = "".join(f"{nodes:>5}: {us:6.2f}" for nodes, us in times.items())
        print(f"{preset:8} us by nodes {row}   growth: nodes to the power {result['growth'][preset]:.2f}")
    print(f"targets: {TARGET_US:.0f} us at 64 nodes, growth {TARGET_GROWTH}")
    for order, errors in result["acceleration_error"].items():
        row = "".join(f"{nodes:>5}: {error:9.2e}" for nodes, error in errors.items())
        print(f"{order} in X: error of the head's acceleration by nodes {row}")
    print(f"energy + lost - work after 0.6 s at 64 nodes: {result['energy_residual_j']:.2e} J")
    return 0


if __name__ == "__main__":
    sys.exit(run("--json" in sys.argv))
