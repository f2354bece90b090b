"""Common parts of the manta's controllers that close a loop: senses, pilot, fins, and reports for a person."""

from __future__ import annotations

from dataclasses import fields
from math import radians
from typing import Any

import rtmms
from rtmms.base.parameters import check_parameters
from rtmms.base.terminal import print_text

from .following import RodMonitor
from .mixing import StrokeLimits
from .pilot import STROKE_LIMITS, Aim, Gains, Pilot
from .senses import Motion, MotionSource
from .strokes import Fins, check_rods
from .watch import Watch


class Helm:
    """Senses, pilot and fins of one controller; `following` detects stuck rods.

    Parameters
    ----------
    name : str
        Name of the controller, for its errors and reports.
    gains : Gains
        Gains of the cascades.
    most : StrokeLimits
        Largest strokes.
    frequency_hz : float
        Frequency of the stroke.
    """

    def __init__(self, name: str, gains: Gains, stroke_limits: StrokeLimits, frequency_hz: float) -> None:
        self.name, self.frequency_hz = name, frequency_hz
        self.senses, self.fins, self.pilot = MotionSource(name), Fins(), Pilot(gains, stroke_limits)
        self._watch, self.following = Watch(name, print_line), RodMonitor(name, print_line)

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Start anew: find out which outputs give the motion, and check that the rods can do the stroke.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            The plant, with its channels and parameters.

        Raises
        ------
        ModelError
            The plant does not fit.
        """
        self.fins.start(plant)
        self.senses.start(plant)
        self.following.start(plant)
        strongest = self.pilot.max_strokes.stroke()
        check_rods(self.name, plant, self.fins.ratio, {"left": strongest, "right": strongest})
        self.pilot = Pilot(self.pilot.gains, self.pilot.max_strokes)

    def read(self, state: rtmms.State) -> Motion:
        """Return the robot's motion, and report doubts about it.

        Parameters
        ----------
        state : rtmms.State
            The plant's state.

        Returns
        -------
        Motion
            The motion.
        """
        now = self.senses.read(state)
        self._watch(now)
        self.following.look(state)
        return now

    def steer(self, aim: Aim, now: Motion) -> dict[str, float]:
        """Return the rod angles.

        Parameters
        ----------
        aim : Aim
            Set-points.
        now : Motion
            The robot's motion.

        Returns
        -------
        dict[str, float]
            Rod angles by actuator, rad.
        """
        left, right = self.pilot(aim, now)
        self.fins.aim(left, right, self.frequency_hz)
        angles = self.fins.at(now.time)
        self.following.sent(angles)
        return angles


def most_of(amplitude_deg: float, turn: str) -> StrokeLimits:
    """Return the largest strokes from a controller's parameters.

    Parameters
    ----------
    amplitude_deg : float
        Amplitude at full thrust, deg.
    turn : str
        One of TURNS.

    Returns
    -------
    StrokeLimits
        The strokes.
    """
    return StrokeLimits(radians(amplitude_deg), STROKE_LIMITS.lead, STROKE_LIMITS.incidence, STROKE_LIMITS.bias, turn)


def checked_gains(controller: str, instance: Any) -> Gains:
    """Return the gains among a controller's parameters.

    Parameters
    ----------
    controller : str
        Name of the controller, for messages.
    instance : Any
        The controller.

    Returns
    -------
    Gains
        The gains.

    Raises
    ------
    ModelError
        A gain is out of range; the message names it.
    """
    gains = Gains(
        **{field.name: getattr(instance, field.name) for field in fields(Gains) if hasattr(instance, field.name)}
    )
    check_parameters(f"controller '{controller}': ", gains)
    return gains


def print_line(text: str) -> None:
    """Print a line to standard error.

    Parameters
    ----------
    text : str
        The line.
    """
    print_text(text, err=True)
