"""Outputs of autopilots for the airframes that plants name (`PlantDescription.airframe`): channel maps that are ready.

The bridges `ardupilot`, `px4` and `betaflight` use them where their configuration has no `channels`.
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
}  # fmt: skip
"""By airframe and autopilot: the actuators of outputs 1, 2, ..."""


def outputs_of(airframe: str, autopilot: Autopilot) -> tuple[str, ...]:
    """Return the actuators of an autopilot's outputs 1, 2, ...; empty where there is no ready mapping."""
    return AIRFRAMES.get(airframe, {}).get(autopilot, ())
