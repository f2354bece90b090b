"""rtmms: real-time mobile multibody systems.

Importing the package costs a few milliseconds: numba and scipy load with the first plant, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmms.base.errors import (
    ArgumentError,
    DivergedError,
    ModelError,
    RenamedWarning,
    RtmmsError,
    RtmmsWarning,
    UnknownNameError,
)
from rtmms.base.moved_modules import find_moved_modules
from rtmms.plant.loading import load
from rtmms.plant.protocol import Channel, Plant
from rtmms.version import VERSION as __version__

if TYPE_CHECKING:
    from rtmms import analysis, dynamics, fluids, model, sensing
    from rtmms.analysis.derivatives import linearise
    from rtmms.analysis.steady_motion import trim
    from rtmms.base.parameters import Parameter
    from rtmms.bridging.bridge import Bridge
    from rtmms.mechanism.plant import TreePlant
    from rtmms.model import Mechanism
    from rtmms.model import compile_model as compile
    from rtmms.mujoco_models.own_engine import from_mjcf
    from rtmms.planning.cost import cost
    from rtmms.record.log_arrays import read_log
    from rtmms.studies.fit_model import identify
    from rtmms.wire.peer.client import Link, connect
    from rtmms.wire.peer.controller import Controller, compiled
    from rtmms.wire.plant.embed import embed
    from rtmms.wire.protocol.errors import NotConnectedError, RefusedError, RequestError
    from rtmms.wire.protocol.received_state import PlantInfo, State
    from rtmms.world.world import World

__all__ = [
    "ArgumentError", "Bridge", "Channel", "Controller", "DivergedError", "Link", "Mechanism", "ModelError",
    "NotConnectedError", "Parameter", "Plant", "PlantInfo", "RefusedError", "RenamedWarning", "RequestError", "Rollout",
    "RtmmsError", "RtmmsWarning", "State", "TreePlant", "UnknownNameError", "World",
    "__version__", "analysis", "compile", "compiled", "connect", "cost", "dynamics", "embed", "fluids", "from_mjcf",
    "identify",
    "linearise", "load", "model", "read_log", "rollout", "sensing", "trim",
]  # fmt: skip

_LATE = {
    "Parameter": "rtmms.base.parameters", "identify": "rtmms.studies.fit_model",
    "connect": "rtmms.wire.peer.client", "Link": "rtmms.wire.peer.client", "embed": "rtmms.wire.plant.embed",
    "Controller": "rtmms.wire.peer.controller", "compiled": "rtmms.wire.peer.controller",
    "Bridge": "rtmms.bridging.bridge", "TreePlant": "rtmms.mechanism.plant", "World": "rtmms.world.world",
    "cost": "rtmms.planning.cost", "linearise": "rtmms.analysis.derivatives", "trim": "rtmms.analysis.steady_motion",
    "read_log": "rtmms.record.log_arrays", "from_mjcf": "rtmms.mujoco_models.own_engine",
    **dict.fromkeys(("Rollout", "rollout"), "rtmms.analysis.rollouts"),
    **dict.fromkeys(("Mechanism", "compile"), "rtmms.model"),
    **dict.fromkeys(("NotConnectedError", "RefusedError", "RequestError"), "rtmms.wire.protocol.errors"),
    **dict.fromkeys(("PlantInfo", "State"), "rtmms.wire.protocol.received_state"),
}  # fmt: skip
"""Names that are loaded when they are first used, and their modules."""

_CALLED = {"compile": "compile_model"}
"""Names in their own module of those that differ there, so that no builtin is shadowed."""

_PARTS = ("analysis", "dynamics", "fluids", "gym", "model", "sensing")
"""Packages that `import rtmms` alone gives, when they are first named."""


def __getattr__(name: str) -> Any:
    """Load a name that `import rtmms` left out."""
    from importlib import import_module

    if name in _PARTS:
        return import_module(f"rtmms.{name}")
    if name in _LATE:
        return getattr(import_module(_LATE[name]), _CALLED.get(name, name))
    raise AttributeError(f"module 'rtmms' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names, those not loaded yet included."""
    return sorted(__all__)


def _announce() -> None:
    """Register the ids of `rtmms.gym` with gymnasium where it is loaded already.

    Gymnasium looks for no entry points; with this, `gymnasium.make` finds the ids.
    """
    import sys

    if "gymnasium" in sys.modules:
        from rtmms.gym.ids import register

        register()


_announce()
find_moved_modules()
