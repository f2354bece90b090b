"""Angles of a fin's two driving rods: one sine each, of one frequency, the front rod ahead by the phase.

    alpha1 = A1 sin(w t + phi) + delta      front
    alpha2 = A2 sin(w t)       + delta      back
    sin A1 = r2 sin A2 / r1                 the ends of both rods reach the same height (Qu 2024, section 5)

A leading front rod (phi > 0) drives forward.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import asin, pi, radians, sin
from typing import Any

import rtmms

FRONT_LENGTH_M = 0.215
BACK_LENGTH_M = 0.185


def rod_ratio(parameters: Mapping[str, Any]) -> float:
    """Return r2 / r1 from the plant's front_rod_m and back_rod_m, or from the defaults.

    Parameters
    ----------
    parameters : Mapping[str, Any]
        Parameters that the plant sends.

    Returns
    -------
    float
        Ratio of the lengths.
    """
    front = parameters.get("front_rod_m", FRONT_LENGTH_M)
    back = parameters.get("back_rod_m", BACK_LENGTH_M)
    return float(back) / float(front)


def front_amplitude(back: float, ratio: float) -> float:
    """Return A1 from A2 by the rule of equal height.

    Parameters
    ----------
    back : float
        A2, rad.
    ratio : float
        r2 / r1.

    Returns
    -------
    float
        rad.

    Raises
    ------
    ModelError
        The front rod is too short.

    Examples
    --------
    >>> from rtmms_controllers.rods import front_amplitude
    >>> front_amplitude(0.5, 1.0)
    0.5
    """
    height = ratio * sin(back)
    if height > 1.0:
        raise rtmms.ModelError(
            f"gait: the front rod is too short: it cannot reach the height of the back rod at {back * 180 / pi:.3g} deg"
        )
    return asin(height)


def rod_angles(
    cycle: float, amplitude: float, phase: float, bias: float, ratio: float, strength: float = 1.0
) -> tuple[float, float]:
    """Return the angles of front and back rod.

    Parameters
    ----------
    cycle : float
        w t, rad.
    amplitude, phase, bias : float
        A2, phi, delta, rad.
    ratio : float
        r2 / r1.
    strength : float, default 1.0
        0 to 1, on amplitude and bias: the soft start.

    Returns
    -------
    tuple[float, float]
        rad.
    """
    front = front_amplitude(amplitude, ratio) * sin(cycle + phase) + bias  # alpha1
    back = amplitude * sin(cycle) + bias  # alpha2
    return strength * front, strength * back


class SoftStart:
    """Factor that rises from 0 to 1 within ramp_s of the first state, with zero rate and acceleration at both ends.

    Parameters
    ----------
    ramp_s : float
        Time of the rise, s.

    Examples
    --------
    >>> from rtmms_controllers.rods import SoftStart
    >>> strength = SoftStart(2.0)
    >>> [strength(t) for t in (0.0, 1.0, 2.0)]
    [0.0, 0.5, 1.0]
    """

    def __init__(self, ramp_s: float) -> None:
        self.ramp_s = ramp_s
        self._from: float | None = None

    def __call__(self, time: float) -> float:
        """Return the factor at a time, s."""
        if self._from is None or time < self._from:  # the first state, or the first after a reset
            self._from = time
        if self.ramp_s <= 0.0 or time >= self._from + self.ramp_s:
            return 1.0
        x = (time - self._from) / self.ramp_s
        return x * x * x * (10.0 + x * (6.0 * x - 15.0))


def within_limits(controller: str, plant: rtmms.PlantInfo, side: str, front: float, back: float) -> None:
    """Check that a rod's largest angles are within the plant's limits.

    Parameters
    ----------
    controller : str
        Name of the controller, for messages.
    plant : rtmms.PlantInfo
        The plant.
    side : str
        'left' or 'right'.
    front, back : float
        Largest angle of each rod, bias included, rad.

    Raises
    ------
    ModelError
        An angle is beyond a limit.
    """
    for rod, angle in (("front", front), ("back", back)):
        channel = plant.actuator(f"{side}.{rod}")
        limits = [abs(limit) for limit in (channel.lower, channel.upper) if limit is not None]
        if limits and angle > min(limits) + 1e-9:
            raise rtmms.ModelError(
                f"controller '{controller}': {channel.name} would move to {angle / radians(1):.3g} deg, "
                f"beyond its limit of {min(limits) / radians(1):.3g} deg"
            )
