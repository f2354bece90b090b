"""Height and speed control of the moth: feedback of means over a stroke on gains and offsets.

    gain = trim + k_z (z_wanted - z) - k_w z'             both wings: more amplitude, more lift
    tilt = -k_a v_wanted - k_v (v_wanted - v_x) - k_q q   right offset +, left -: wings ahead of the centre, nose up
    roll = k_p p                                          right gain +, left -: rolls to the left

z', v_x and the rates p (right wing down) and q (nose up) are means over the last whole stroke; before there is one,
only the trim acts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf, pi
from typing import Annotated

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .rods import SoftStart


@dataclass
class MothHover(rtmms.Controller):
    """Hovers the moth at a height, or flies it ahead at a speed.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    altitude_m: Annotated[float, Parameter(
        "Height to hold, world.", "m", signed=True, le=1e3, live=True,
    )] = 0.0
    speed_m_s: Annotated[float, Parameter(
        "Speed forward to hold, backward < 0.", "m/s", signed=True, le=0.5, live=True,
    )] = 0.0
    gain: Annotated[float, Parameter(
        "Fraction that is added to both wings' amplitudes: 0.1 for a tenth more.",
        signed=True, le=0.3, live=True,
    )] = 0.0
    bias_rad: Annotated[float, Parameter(
        "Angle that is added to both wings' offsets: > 0 turns both to the left, the body to the right.",
        "rad", signed=True, le=0.3, live=True,
    )] = 0.0
    ramp_s: Annotated[float, Parameter(
        "Time in which altitude, speed, gain and bias reach their values.", "s", ge=0,
    )] = 0.5
    # fmt: on

    robots = ("moth",)
    claim = ("right.offset", "right.gain", "left.offset", "left.gain")
    outputs = ("position", "velocity", "angular_velocity")
    setpoints = ("altitude_m", "speed_m_s")

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("controller 'moth_hover': ", self)
        self._strength = SoftStart(self.ramp_s)
        self._window: deque[tuple[float, ...]] = deque(maxlen=1)
        self._time, self._dt = inf, 1.0

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the stroke's period from the plant.

        Raises
        ------
        ModelError
            dt is too long for a mean over a stroke.
        """
        period = 2.0 * pi / float(plant.parameters.get("omega_rad_s", 50.0 * pi))
        steps = round(period / plant.dt)
        if steps < 4:
            raise rtmms.ModelError(
                f"controller 'moth_hover': expected at least 4 steps in a stroke of {period:.3g} s, got dt = {plant.dt}"
            )
        self._window, self._dt = deque(maxlen=steps), plant.dt
        self._time = inf

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return offsets in rad and gains at state.time."""
        if state.time < self._time:  # the first state, or the first after a reset
            self._window.clear()
        self._time = state.time
        outputs = state.outputs
        x, z, w = outputs["velocity"], outputs["position"][2], outputs["angular_velocity"]
        strength, window = self._strength(state.time), self._window
        before = window[0][0] if len(window) == window.maxlen else None
        window.append((z, x[0], w[0], w[1]))
        gain, tilt, roll = strength * self.gain, 0.0, 0.0
        if before is not None:
            size = len(window)
            height, ahead, p, nose_down = (sum(row[k] for row in window) / size for k in range(4))
            climb = (z - before) / (size * self._dt)
            gain += _HEIGHT * (strength * self.altitude_m - height) - _CLIMB * climb
            wanted = strength * self.speed_m_s
            tilt = -_AHEAD * wanted - _SPEED * (wanted - ahead) + _PITCH * nose_down
            roll = _ROLL * p
        bias = strength * self.bias_rad
        return {
            "right.offset": _bounded(bias + tilt), "left.offset": _bounded(bias - tilt),
            "right.gain": _bounded(gain + roll), "left.gain": _bounded(gain - roll),
        }  # fmt: skip


_HEIGHT = 0.8  # 1/m
_CLIMB = 0.3  # s/m; a gain of both wings of 0.03 climbs at 0.2 m/s after a second
_AHEAD = 0.043  # rad s/m, the offset of steady flight ahead
_SPEED = 0.01
_PITCH = 0.005
_ROLL = 0.003
_MAX_COMMAND = 0.4
"""Limit of a command: rad of an offset, fraction of a gain."""


def _bounded(value: float) -> float:
    return max(-_MAX_COMMAND, min(_MAX_COMMAND, value))
