"""Controller that answers every state with the same numbers: the cost of an exchange without computation.

`registered` makes it known to a run as `steady`, by a distribution that exists as long as the benchmark.
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
    """Holds all actuators still; it gets the same part of the state as the gait."""

    outputs = ("velocity",)

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Store the constant commands.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            The plant.
        """
        self.values = dict.fromkeys(plant.granted, 0.123456789)

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the constant commands.

        Parameters
        ----------
        state : rtmms.State
            Not used.

        Returns
        -------
        dict[str, float]
            By actuator.
        """
        return self.values


class Still(rtmms.Controller):
    """The same controller, compiled."""

    outputs = ("velocity",)

    @rtmms.compiled
    def update(time: Any, outputs: Any, memory: Any, command: Any) -> None:
        """Write the constant commands.

        Parameters
        ----------
        time, outputs, memory : Any
            Not used.
        command : Any
            (n,) result.
        """
        command[:] = 0.123456789


def _quarter(rod: str) -> type[rtmms.Controller]:
    """Return a controller of one rod of the manta, compiled: four of them equal one of the others."""
    return type("Quarter", (Still,), {"claim": (rod,), "__doc__": f"Holds {rod} still."})


Quarter0, Quarter1, Quarter2, Quarter3 = map(_quarter, ("left.front", "left.back", "right.front", "right.back"))


@contextmanager
def registered() -> Iterator[dict[str, str]]:
    """Register the controllers within the block.

    Yields
    ------
    dict[str, str]
        Environment of a process that can load them.
    """
    with tempfile.TemporaryDirectory(prefix="rtmms-steady-") as folder:
        about = Path(folder) / "rtmms_benchmark_controllers-0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(_METADATA)
        (about / "entry_points.txt").write_text(_ENTRY_POINTS)
        paths = [str(ROOT), folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        yield os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
