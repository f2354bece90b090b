"""Straight gait of the manta, and its open-loop turns: rod angles as sines of time, alike on both sides or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, pi, radians, sin
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .rods import front_amplitude, rod_ratio, within_limits

(_NOW, _FROM, _RAMP, _FINS) = range(4)
(_OMEGA, _PHASE, _BIAS, _FRONT, _BACK, _BEHIND) = range(6)
_FIN = 6
_MEMORY_SIZE = _FINS + 2 * _FIN
"""Numbers in the memory of its update: the time, that of the first state, the length of the soft start; and those of
each fin.
"""


@dataclass
class Gait(rtmms.Controller):
    """Flaps both fins at a steady gait (Qu 2024, section 5); any of the first four can be given for one side.

    A stronger left fin turns right: right_phase_deg=0, or right_amplitude_deg=20, beside the defaults.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    amplitude_deg: Annotated[float, Parameter(
        "Amplitude of the back rod; the front rod's follows from the rule of equal height.",
        "deg", ge=0, le=90, live=True,
    )] = 40.0
    frequency_hz: Annotated[float, Parameter("Frequency of the flapping.", "Hz", ge=0, le=50, live=True)] = 0.6
    phase_deg: Annotated[float, Parameter(
        "Phase lead of the front rod; > 0 drives forward.", "deg", signed=True, le=180, live=True,
    )] = 40.0
    bias_deg: Annotated[float, Parameter(
        "Angle that is added to both rods.", "deg", signed=True, le=90, live=True,
    )] = 0.0
    ramp_s: Annotated[float, Parameter("Duration of the soft start.", "s", ge=0)] = 1.0
    left_amplitude_deg: Annotated[float | None, Parameter(
        "Amplitude of the left side alone.", "deg", ge=0, le=90, live=True,
    )] = None
    left_frequency_hz: Annotated[float | None, Parameter(
        "Frequency of the left side alone.", "Hz", ge=0, le=50, live=True,
    )] = None
    left_phase_deg: Annotated[float | None, Parameter(
        "Phase of the left side alone.", "deg", signed=True, le=180, live=True,
    )] = None
    left_bias_deg: Annotated[float | None, Parameter(
        "Bias of the left side alone.", "deg", signed=True, le=90, live=True,
    )] = None
    right_amplitude_deg: Annotated[float | None, Parameter(
        "Amplitude of the right side alone.", "deg", ge=0, le=90, live=True,
    )] = None
    right_frequency_hz: Annotated[float | None, Parameter(
        "Frequency of the right side alone.", "Hz", ge=0, le=50, live=True,
    )] = None
    right_phase_deg: Annotated[float | None, Parameter(
        "Phase of the right side alone.", "deg", signed=True, le=180, live=True,
    )] = None
    right_bias_deg: Annotated[float | None, Parameter(
        "Bias of the right side alone.", "deg", signed=True, le=90, live=True,
    )] = None
    # fmt: on

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    outputs = ("none",)

    def __post_init__(self) -> None:
        """Check the parameters, and fill the memory."""
        check_parameters("controller 'gait': ", self)
        import numpy as np  # with the first of them, not with this file

        self._fins = [(side, *self._of_side(side)) for side in ("left", "right")]
        self._ratio = rod_ratio({})
        self.memory = np.zeros(_MEMORY_SIZE)
        self._begin()

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the rods' lengths from the plant, and check that its rods can do the gait."""
        self._plant, self._ratio = plant, rod_ratio(plant.parameters)
        self._see_to_limits()
        self._begin()

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use another gait at the same point of the stroke: a frequency changes without a jump."""
        trial = replace(self, **values)
        trial._plant, trial._ratio = self._plant, self._ratio
        trial._see_to_limits()
        before = self._fins
        super().on_parameters_changed(values)
        self._fins = trial._fins
        for i, ((_, _, old, *_), (_, _, new, *_)) in enumerate(zip(before, self._fins, strict=True)):
            self.memory[_FINS + i * _FIN + _BEHIND] += (old - new) * self.memory[_NOW]
        self._remember()

    def _see_to_limits(self) -> None:
        for side, amplitude, _, _, bias in self._fins:
            front = front_amplitude(amplitude, self._ratio)
            within_limits("gait", self._plant, side, front + abs(bias), amplitude + abs(bias))

    @rtmms.compiled
    def update(time: Any, outputs: Any, memory: Any, command: Any) -> None:
        """Write the rod angles at `time`; see rods.py for the equations.

        Parameters
        ----------
        time : Any
            Time, s.
        outputs : Any
            Not used.
        memory : Any
            Numbers of the gait, see _MEMORY_SIZE.
        command : Any
            (4,) result, rad.
        """
        memory[_NOW] = time
        if not time >= memory[_FROM]:  # the first state, or the first after a reset
            memory[_FROM] = time
        ramp, strength = memory[_RAMP], 1.0
        if ramp > 0.0 and time < memory[_FROM] + ramp:
            x = (time - memory[_FROM]) / ramp
            strength = x * x * x * (10.0 + x * (6.0 * x - 15.0))
        for fin in range(2):
            fin_memory = memory[_FINS + fin * _FIN : _FINS + (fin + 1) * _FIN]
            cycle = fin_memory[_OMEGA] * time + fin_memory[_BEHIND]
            front = fin_memory[_FRONT] * sin(cycle + fin_memory[_PHASE]) + fin_memory[_BIAS]  # alpha1
            back = fin_memory[_BACK] * sin(cycle) + fin_memory[_BIAS]  # alpha2
            command[2 * fin], command[2 * fin + 1] = strength * front, strength * back

    def _begin(self) -> None:
        """Go to the beginning of the stroke, and of the soft start."""
        self.memory[:] = 0.0
        self.memory[_FROM] = inf
        self._remember()

    def _remember(self) -> None:
        """Write the gait into the memory of the update."""
        self.memory[_RAMP] = self.ramp_s
        for i, (_, amplitude, omega, phase, bias) in enumerate(self._fins):
            place = _FINS + i * _FIN
            front = front_amplitude(amplitude, self._ratio)
            self.memory[place : place + _BEHIND] = omega, phase, bias, front, amplitude

    def _of_side(self, side: str) -> tuple[float, float, float, float]:
        """Return amplitude, angular frequency, phase and bias of a side in rad and rad/s."""
        values = []
        for name in ("amplitude_deg", "frequency_hz", "phase_deg", "bias_deg"):
            side_value = getattr(self, f"{side}_{name}")
            values.append(float(getattr(self, name) if side_value is None else side_value))
        amplitude, frequency, phase, bias = values
        return radians(amplitude), 2.0 * pi * frequency, radians(phase), radians(bias)
