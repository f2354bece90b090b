"""The manta's straight gait, and its open-loop turns: rod angles as sines of time, alike on both sides or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, pi, radians
from typing import Any

import rtmms
from rtmms_controllers.rods import SoftStart, checked, front_amplitude, rod_angles, rod_ratio, within_limits

_LIMITS = {
    "amplitude_deg": (0.0, 90.0),
    "frequency_hz": (0.0, 50.0),
    "phase_deg": (-180.0, 180.0),
    "bias_deg": (-90.0, 90.0),
}


@dataclass
class Gait(rtmms.Controller):
    """Flaps both fins at a steady gait (Qu 2024, section 5); any of the first four can be given for one side.

    amplitude_deg  of the back rod; the front rod's follows from the rule of equal height
    frequency_hz   of the flapping
    phase_deg      by which the front rod leads; > 0 drives forward
    bias_deg       added to both rods
    ramp_s         time of the soft start

    A stronger left fin turns right: right_phase_deg=0, or right_amplitude_deg=20, beside the defaults.
    """

    amplitude_deg: float = 40.0
    frequency_hz: float = 0.6
    phase_deg: float = 40.0
    bias_deg: float = 0.0
    ramp_s: float = 1.0
    left_amplitude_deg: float | None = None
    left_frequency_hz: float | None = None
    left_phase_deg: float | None = None
    left_bias_deg: float | None = None
    right_amplitude_deg: float | None = None
    right_frequency_hz: float | None = None
    right_phase_deg: float | None = None
    right_bias_deg: float | None = None

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    outputs = ("none",)
    settable = tuple(
        f"{side}{name}"
        for side in ("", "left_", "right_")
        for name in ("amplitude_deg", "frequency_hz", "phase_deg", "bias_deg")
    )

    def __post_init__(self) -> None:
        checked("gait", "ramp_s", self.ramp_s, 0.0, inf)
        self._fins = [(side, *self._of_side(side)) for side in ("left", "right")]
        self._behind = [0.0, 0.0]
        self._time = 0.0
        self._ratio = rod_ratio({})
        self._strength = SoftStart(self.ramp_s)

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Take the rods' lengths from the plant, and see that its rods can do the gait."""
        self._plant, self._ratio = plant, rod_ratio(plant.parameters)
        self._behind, self._time = [0.0, 0.0], 0.0
        self._see_to_limits()

    def change(self, values: Mapping[str, Any]) -> None:
        """Another gait from now on, at the same point of the stroke: a frequency changes without a jump."""
        trial = replace(self, **values)
        trial._plant, trial._ratio = self._plant, self._ratio
        trial._see_to_limits()
        before = self._fins
        super().change(values)
        self._fins = trial._fins
        for i, ((_, _, old, *_), (_, _, new, *_)) in enumerate(zip(before, self._fins, strict=True)):
            self._behind[i] += (old - new) * self._time

    def _see_to_limits(self) -> None:
        for side, amplitude, _, _, bias in self._fins:
            front = front_amplitude(amplitude, self._ratio)
            within_limits("gait", self._plant, side, front + abs(bias), amplitude + abs(bias))

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Rod angles in rad at state.time."""
        time = self._time = state.time
        strength = self._strength(time)
        command = {}
        for (side, amplitude, omega, phase, bias), behind in zip(self._fins, self._behind, strict=True):
            front, back = rod_angles(omega * time + behind, amplitude, phase, bias, self._ratio, strength)
            command[f"{side}.front"], command[f"{side}.back"] = front, back
        return command

    def _of_side(self, side: str) -> tuple[float, float, float, float]:
        """Amplitude, angular frequency, phase and bias of a side in rad and rad/s."""
        values = []
        for name, (lower, upper) in _LIMITS.items():
            own = getattr(self, f"{side}_{name}")
            place = name if own is None else f"{side}_{name}"
            values.append(checked("gait", place, getattr(self, place), lower, upper))
        amplitude, frequency, phase, bias = values
        return radians(amplitude), 2.0 * pi * frequency, radians(phase), radians(bias)
