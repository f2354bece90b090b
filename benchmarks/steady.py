"""A controller that answers every state with the same numbers: what an exchange takes when nothing is computed in it.

`registered` makes it known to a run as `steady`, by a distribution that lasts as long as the benchmark.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rtmms

ROOT = Path(__file__).resolve().parents[1]
FOUR = ("quarter0", "quarter1", "quarter2", "quarter3")
_METADATA = "Metadata-Version: 2.1\nName: rtmms-benchmark-controllers\nVersion: 0\n"
_ENTRY_POINTS = "[rtmms.controllers]\nsteady = benchmarks.steady:Steady\nstill = benchmarks.steady:Still\n"
_ENTRY_POINTS += "".join(f"{name} = benchmarks.steady:{name.title()}\n" for name in FOUR)


class Steady(rtmms.Controller):
    """Holds all actuators still; of the state it gets what the gait gets."""

    outputs = ("velocity",)

    def start(self, plant: rtmms.PlantInfo) -> None:
        self.values = dict.fromkeys(plant.granted, 0.123456789)

    def update(self, state: rtmms.State) -> dict[str, float]:
        return self.values


class Still(rtmms.Controller):
    """The same, compiled."""

    outputs = ("velocity",)

    @rtmms.compiled
    def update(time: Any, outputs: Any, memory: Any, command: Any) -> None:
        command[:] = 0.123456789


def _quarter(rod: str) -> type[rtmms.Controller]:
    """One that drives a rod of the manta, compiled: four of them are as much as one of the others."""
    return type("Quarter", (Still,), {"claim": (rod,), "__doc__": f"Holds {rod} still."})


Quarter0, Quarter1, Quarter2, Quarter3 = map(_quarter, ("left.front", "left.back", "right.front", "right.back"))


@contextmanager
def registered() -> Iterator[dict[str, str]]:
    """Within: the environment of a process that knows the controller."""
    with tempfile.TemporaryDirectory(prefix="rtmms-steady-") as folder:
        about = Path(folder) / "rtmms_benchmark_controllers-0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(_METADATA)
        (about / "entry_points.txt").write_text(_ENTRY_POINTS)
        paths = [str(ROOT), folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        yield os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
