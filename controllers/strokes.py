"""The manta's two fins as coupled oscillators: the stroke of each fin, and the angles of its rods.

A fin has an amplitude, a lead of its front rod (> 0 drives forward), a bias of both rods (up) and an incidence (front
rod up, back rod down by as much: the fin lifts). Left and right beat together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import asin, degrees, radians, sin
from typing import Any

import rtmms

from .oscillators import Oscillators
from .rods import front_amplitude, rod_ratio

RODS = ("left.front", "left.back", "right.front", "right.back")
RATE_1_S = 15.0
"""Default rate of the fins' oscillators, 1/s, see Oscillators."""
BIAS_RATE_1_S = 15.0
"""Default rate of the oscillators' biases, 1/s."""
COUPLING_1_S = 8.0
"""Default coupling of the oscillators, 1/s."""
_PAIRS = ((0, 1), (2, 3), (3, 1))
"""Each front rod with its back rod, and the back rods with each other."""


@dataclass(slots=True)
class Stroke:
    """Stroke of one fin.

    Attributes
    ----------
    amplitude : float, default 0.0
        Amplitude of the back rod, rad.
    lead : float, default 0.0
        Lead of the front rod, rad.
    bias : float, default 0.0
        Bias of both rods, rad.
    incidence : float, default 0.0
        Incidence of both rods, rad.
    """

    amplitude: float = 0.0
    lead: float = 0.0
    bias: float = 0.0
    incidence: float = 0.0

    def largest(self, ratio: float) -> tuple[float, float]:
        """Return the largest angle of each rod.

        Parameters
        ----------
        ratio : float
            Length of the back rod over that of the front rod.

        Returns
        -------
        tuple[float, float]
            Front and back, rad.
        """
        offset = self.bias + self.incidence, self.bias - self.incidence
        return front_amplitude(self.amplitude, ratio) + abs(offset[0]), self.amplitude + abs(offset[1])


class Fins:
    """Oscillators of both fins.

    Parameters
    ----------
    rate_1_s, bias_rate_1_s, coupling_1_s : float
        See Oscillators.
    """

    def __init__(
        self, rate_1_s: float = RATE_1_S, bias_rate_1_s: float = BIAS_RATE_1_S, coupling_1_s: float = COUPLING_1_S
    ) -> None:
        self.oscillators = Oscillators(4, _PAIRS, (0.0, 0.0, 0.0), rate_1_s, bias_rate_1_s, coupling_1_s)
        self.ratio, self._limit, self._time = rod_ratio({}), radians(68.75), -1.0

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Read the rods' lengths and limits from the plant.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            The plant, with its channels and parameters.
        """
        self.ratio = rod_ratio(plant.parameters)
        limits = [abs(x) for rod in RODS for x in (plant.actuator(rod).lower, plant.actuator(rod).upper) if x]
        self._limit = min(limits, default=self._limit)
        self._time = -1.0

    def aim(self, left: Stroke, right: Stroke, frequency_hz: float) -> None:
        """Set the targets of the oscillators; offsets are reduced where a rod would leave its limits.

        Parameters
        ----------
        left, right : Stroke
            Strokes.
        frequency_hz : float
            Frequency of both.
        """
        o = self.oscillators
        for k, stroke in ((0, left), (2, right)):
            front = asin(min(1.0, self.ratio * sin(stroke.amplitude)))
            o.amplitude[k].target, o.amplitude[k + 1].target = front, stroke.amplitude
            o.bias[k].target = _within(stroke.bias + stroke.incidence, self._limit - front)
            o.bias[k + 1].target = _within(stroke.bias - stroke.incidence, self._limit - stroke.amplitude)
        o.lag[0].target, o.lag[1].target = left.lead, right.lead
        o.frequency_hz.target = frequency_hz

    def at(self, time: float) -> dict[str, float]:
        """Return the rod angles; the first call, or one of an earlier time, starts from rest.

        Parameters
        ----------
        time : float
            Time, s.

        Returns
        -------
        dict[str, float]
            Rod angles by actuator, rad.
        """
        o = self.oscillators
        if time < self._time or self._time < 0.0:
            o.begin([lag.target for lag in o.lag], o.frequency_hz.target)
            self._time = time
        o.advance(time - self._time)
        self._time = time
        return dict(zip(RODS, o.angles(), strict=True))


def _within(value: float, maximum: float) -> float:
    return max(-maximum, min(maximum, value))


def check_rods(controller: str, plant: Any, ratio: float, strokes: Mapping[str, Stroke]) -> None:
    """Check that strokes are within the rods' limits.

    Parameters
    ----------
    controller : str
        Name of the controller, for messages.
    plant : Any
        The plant.
    ratio : float
        Length of the back rod over that of the front rod.
    strokes : Mapping[str, Stroke]
        Strokes by side.

    Raises
    ------
    ModelError
        A rod would leave its limits; the message names it.
    """
    for side, stroke in strokes.items():
        for rod, angle in zip(("front", "back"), stroke.largest(ratio), strict=True):
            channel = plant.actuator(f"{side}.{rod}")
            limits = [abs(limit) for limit in (channel.lower, channel.upper) if limit is not None]
            if limits and angle > min(limits) + 1e-9:
                raise rtmms.ModelError(
                    f"controller '{controller}': {channel.name} would move to {degrees(angle):.3g} deg, beyond its "
                    f"limit of {degrees(min(limits)):.3g} deg"
                )
