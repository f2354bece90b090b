"""rtmms: real-time mobile multibody systems.

Importing the package costs a few milliseconds: numba and scipy load with the first plant, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmms.errors import DivergedError, ModelError, RtmmsError, UnknownNameError
from rtmms.plant import Channel, Plant, load
from rtmms.version import VERSION as __version__

if TYPE_CHECKING:
    from rtmms import dynamics, model
    from rtmms.bridging.bridge import Bridge
    from rtmms.fluids.ambient import Flow, Wave
    from rtmms.fluids.flow_grid import Grid
    from rtmms.fluids.vortex_row import Street, VortexRow
    from rtmms.mechanism.actuators import (
        BodyWrench,
        JointMotion,
        JointServo,
        JointSpeed,
        JointStop,
        JointTorque,
        Rotor,
        Thruster,
    )
    from rtmms.mechanism.plant import TreePlant
    from rtmms.model import Mechanism, compile
    from rtmms.wire.peer.client import Link
    from rtmms.wire.peer.compiled import compiled
    from rtmms.wire.peer.connecting import connect
    from rtmms.wire.peer.controller import Controller
    from rtmms.wire.plant.embed import embed
    from rtmms.wire.protocol.errors import NotConnectedError, RefusedError, RequestError
    from rtmms.wire.protocol.state import PlantInfo, State

__all__ = [
    "BodyWrench", "Bridge", "Channel", "Controller", "DivergedError", "Flow", "Grid", "JointMotion", "JointServo",
    "JointSpeed", "JointStop", "JointTorque", "Link", "Mechanism", "ModelError", "NotConnectedError", "Plant",
    "PlantInfo", "RefusedError", "RequestError", "Rotor", "RtmmsError", "State", "Street", "Thruster", "TreePlant",
    "UnknownNameError", "VortexRow", "Wave", "__version__", "compile", "compiled", "connect", "dynamics", "embed",
    "load", "model",
]  # fmt: skip

_LATE = {"connect": "rtmms.wire.peer.connecting", "Link": "rtmms.wire.peer.client"}
_LATE |= {"Controller": "rtmms.wire.peer.controller", "compiled": "rtmms.wire.peer.compiled"}
_LATE |= dict.fromkeys(
    ("BodyWrench", "JointMotion", "JointServo", "JointSpeed", "JointStop", "JointTorque", "Rotor", "Thruster"),
    "rtmms.mechanism.actuators",
)
_LATE |= dict.fromkeys(("Flow", "Wave"), "rtmms.fluids.ambient") | {"TreePlant": "rtmms.mechanism.plant"}
_LATE |= {"Grid": "rtmms.fluids.flow_grid"} | dict.fromkeys(("Street", "VortexRow"), "rtmms.fluids.vortex_row")
_LATE["Bridge"] = "rtmms.bridging.bridge"
_LATE |= dict.fromkeys(("Mechanism", "compile"), "rtmms.model")
_LATE["embed"] = "rtmms.wire.plant.embed"
_LATE |= dict.fromkeys(("NotConnectedError", "RefusedError", "RequestError"), "rtmms.wire.protocol.errors")
_LATE |= dict.fromkeys(("PlantInfo", "State"), "rtmms.wire.protocol.state")


_PARTS = ("dynamics", "model")
"""Packages that `import rtmms` alone gives, when they are first named."""


def __getattr__(name: str) -> Any:
    if name in _LATE or name in _PARTS:
        from importlib import import_module

        return import_module(f"rtmms.{name}") if name in _PARTS else getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'rtmms' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
