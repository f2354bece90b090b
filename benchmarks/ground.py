"""How long one evaluation of a mechanism on the ground takes, and how that grows with the links of a snake.

Times are the least of several batches, inside one compiled loop: joint laws, kinematics, rows, dynamics, reactions.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import rtmms

from .dynamics import best, evaluations

LINKS = (4, 8, 16, 32, 64)


def evaluation(plant: Any) -> float:
    """us, at a bent shape; in short batches, of which some meet a quiet machine."""
    n = plant.model.n
    plant.vector[7 : 7 + n] = 0.3 * np.sin(1.0 + 1.7 * np.arange(n))
    rate = np.zeros(12 + 2 * n)
    arguments = (plant.system, plant.vector, plant.time, rate)
    return best(lambda times: evaluations(times, *arguments), 20, 2000)


def measure() -> dict[str, Any]:
    """us of an evaluation; growth: the power of the links, from 8 up."""
    result: dict[str, Any] = {}
    for drive in ("leader", "torque"):
        sizes = {links: evaluation(rtmms.load("snake", links=links, drive=drive)) for links in LINKS}
        x, y = np.log(LINKS[1:]), np.log([sizes[links] for links in LINKS[1:]])
        result[f"snake_{drive}_us"], result[f"snake_{drive}_growth"] = sizes, float(np.polyfit(x, y, 1)[0])
    for name in ("snakeboard", "unicycle", "roller_racer", "trikke"):
        result[f"{name}_us"] = evaluation(rtmms.load(name))
    return result


def run(as_json: bool = False) -> int:
    """Measure and print; 0."""
    result = measure()
    if as_json:
        print(json.dumps(result))
        return 0
    for drive in ("leader", "torque"):
        row = "".join(f"{links:>5}: {us:6.2f}" for links, us in result[f"snake_{drive}_us"].items())
        growth = result[f"snake_{drive}_growth"]
        print(f"snake, drive={drive}, us by links {row}   growth: links to the power {growth:.2f}")
    for name in ("snakeboard", "unicycle", "roller_racer", "trikke"):
        print(f"{name}: {result[f'{name}_us']:.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(run("--json" in sys.argv))
