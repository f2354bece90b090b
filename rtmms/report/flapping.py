"""A manta driven by the paper's gait in this process, for figures: no controller, no wire, the same plant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rtmms.robots.manta.summary import mean

if TYPE_CHECKING:
    from rtmms.robots.manta import Manta

Array = npt.NDArray[np.float64]

OUTPUTS = ("position", "quaternion", "velocity", "angular_velocity", "thrust", "rod_power")


@dataclass(frozen=True, slots=True)
class Flapping:
    """Rod angles alpha_i = A_i sin(w t + phi_i), (37); the back rods have no phase, each front rod leads by its own.

    amplitude_deg, phase_deg  of the left fin, and of the right one where `right_...` is None
    A_1 from the rule that both rod ends reach the same height; ramp_s of soft start.
    """

    amplitude_deg: float
    phase_deg: float
    frequency_hz: float
    right_amplitude_deg: float | None = None
    right_phase_deg: float | None = None
    ramp_s: float = 1.0

    @property
    def period_s(self) -> float:
        """1 / frequency."""
        return 1.0 / self.frequency_hz

    def angles(self, time: Array, ratio: float) -> Array:
        """(k, 4) rad in the order of the plant's actuators at time (k,) s; ratio = r2 / r1."""
        cycle = 2.0 * np.pi * self.frequency_hz * time
        x = np.clip(time / self.ramp_s, 0.0, 1.0) if self.ramp_s > 0.0 else np.ones_like(time)
        strength = x**3 * (10.0 + x * (6.0 * x - 15.0))
        right_amplitude = self.amplitude_deg if self.right_amplitude_deg is None else self.right_amplitude_deg
        right_phase = self.phase_deg if self.right_phase_deg is None else self.right_phase_deg
        rods = []
        for amplitude, phase in ((self.amplitude_deg, self.phase_deg), (right_amplitude, right_phase)):
            back = np.radians(amplitude)
            front = np.arcsin(ratio * np.sin(back))
            rods += [front * np.sin(cycle + np.radians(phase)), back * np.sin(cycle)]
        angles: Array = strength[:, None] * np.stack(rods, axis=1)
        return angles


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
