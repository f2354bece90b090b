"""Outputs of autopilots for the airframes that plants name (`PlantDescription.airframe`): ready channel maps.

The bridges `ardupilot`, `px4` and `betaflight` use them if their configuration has no `channels`. The actuators of a
robot have the senses of its airframe: a larger output has the effect that the autopilot's mixer expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Autopilot = Literal["ardupilot", "px4", "betaflight"]

AIRFRAMES: Mapping[str, Mapping[Autopilot, tuple[str, ...]]] = {
    "quad_plus": {
        # FRAME_CLASS 1, FRAME_TYPE 0 (AP_Motors): right and left turn counter-clockwise, front and back clockwise
        "ardupilot": ("right.speed", "left.speed", "front.speed", "back.speed"),
        # mixer QUADP, in the order of the packet of Betaflight 4.6 for Gazebo
        "betaflight": ("right.speed", "left.speed", "front.speed", "back.speed"),
        # in the order of the CA_ROTOR parameters of bridges/examples/px4_quadrotor.params
        "px4": ("front.speed", "left.speed", "back.speed", "right.speed"),
    },
    "vectored_6dof": {
        # FRAME_CONFIG 2, SUB_FRAME_VECTORED_6DOF (AP_Motors6DOF): motors 1 to 4 across the corners, 5 to 8 vertical
        "ardupilot": (
            "horizontal.front_right.command", "horizontal.front_left.command", "horizontal.rear_right.command",
            "horizontal.rear_left.command", "vertical.front_right.command", "vertical.front_left.command",
            "vertical.rear_right.command", "vertical.rear_left.command",
        ),
    },
}  # fmt: skip
"""Actuators of outputs 1, 2, ... by airframe and autopilot."""

FLOOR = (("floor", True),)
"""Parameters that bridges of autopilots require of robots that have them: an aircraft takes off from a floor."""

PULSES_US: Mapping[str, tuple[float, float]] = {"vectored_6dof": (1100.0, 1900.0)}
"""ArduPilot's pulses at the limits of an airframe's actuators, us: those of ArduSub's motors."""
OTHER_PULSES_US = (1000.0, 2000.0)


def pulses_of(airframe: str) -> tuple[float, float]:
    """Return ArduPilot's pulses at an actuator's lower and upper limit.

    Parameters
    ----------
    airframe : str
        Name of the airframe.

    Returns
    -------
    tuple[float, float]
        Pulses, us.
    """
    return PULSES_US.get(airframe, OTHER_PULSES_US)


def outputs_of(airframe: str, autopilot: Autopilot) -> tuple[str, ...]:
    """Return the actuators of an autopilot's outputs 1, 2, ...

    Parameters
    ----------
    airframe : str
        Name of the airframe.
    autopilot : Autopilot
        Name of the autopilot.

    Returns
    -------
    tuple[str, ...]
        Names of actuators; empty without a ready map.
    """
    return AIRFRAMES.get(airframe, {}).get(autopilot, ())
