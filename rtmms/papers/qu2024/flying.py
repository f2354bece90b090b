"""A manta driven by the paper's gait in this process: no controller, no wire, the same plant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rtmms.robots.manta.gait import Array, Flapping
from rtmms.robots.manta.summary import mean

if TYPE_CHECKING:
    from rtmms.robots.manta import Manta

OUTPUTS = ("position", "quaternion", "velocity", "angular_velocity", "thrust", "rod_power")


@dataclass(frozen=True, slots=True)
class Run:
    """Samples of a run: time (k,) s, outputs {name: (k, ...)}, and the gait that made it."""

    gait: Flapping
    time: Array
    outputs: dict[str, Array] = field(repr=False)

    def periods(self, first: float, last: float) -> tuple[float, float]:
        """Instants (s) at which the gait's periods `first` and `last` begin; negative ones count from the end."""
        whole = float(np.floor(self.time[-1] * self.gait.frequency_hz + 1e-9))
        start, end = (whole + number if number < 0 else number for number in (first, last))
        return start * self.gait.period_s, end * self.gait.period_s

    def mean(self, values: Array, start: float, end: float) -> float:
        """Time mean of values (k,) from start to end, s."""
        return mean(self.time, values, start, end)

    @property
    def speed(self) -> Array:
        """(k,) m/s along body x."""
        return self.outputs["velocity"][:, 0]

    @property
    def thrust(self) -> Array:
        """(k,) N, force of both fins on the body along body x."""
        both: Array = self.outputs["thrust"][:, :, 0].sum(axis=1)
        return both

    @property
    def power(self) -> Array:
        """(k,) W into the rods."""
        return self.outputs["rod_power"]


def fly(plant: Manta, gait: Flapping, seconds: float, *, every_s: float = 0.01, names: Sequence[str] = OUTPUTS) -> Run:
    """Run the gait from rest for so many simulated seconds, with a sample every `every_s`.

    With ideal actuation the command is sent two steps ahead, which is what the motors are late (manta/kernels/rods.py),
    so that the rods are where (37) has them at every step size.
    """
    p, dt = plant.parameters, plant.dt
    steps, every = round(seconds / dt), max(1, round(every_s / dt))
    ahead = 2 if p.actuation == "ideal" else 0
    time = np.arange(steps, dtype=np.float64) * dt + ahead * dt
    commands = gait.angles(time, p.back_rod_m / p.front_rod_m)
    plant.reset()
    kept: dict[str, list[Array]] = {name: [] for name in names}
    at = [0]
    _sample(plant, kept)
    for start in range(0, steps, every):
        end = min(start + every, steps)
        for k in range(start, end):
            plant.step(commands[k])
        at.append(end)
        _sample(plant, kept)
    return Run(gait, np.array(at) * dt, {name: np.array(values) for name, values in kept.items()})


def _sample(plant: Manta, kept: dict[str, list[Array]]) -> None:
    seen = plant.observe()
    for name, values in kept.items():
        values.append(seen[name])
