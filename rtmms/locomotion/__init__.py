"""From a shape's motion to the net motion: constraints of the ground and what they leave to dynamics. Nothing of one
robot. Names load their module when first used: numba is paid for then."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmms.locomotion.constraints import nonholonomic, rank, rates, rows
    from rtmms.locomotion.reduced import Reduced, reduced
    from rtmms.model import Axle, Plane, Wheel

_LATE = {
    **dict.fromkeys(("Axle", "Plane", "Wheel"), "rtmms.model"),
    **dict.fromkeys(("nonholonomic", "rank", "rates", "rows"), "rtmms.locomotion.constraints"),
    **dict.fromkeys(("Reduced", "reduced"), "rtmms.locomotion.reduced"),
}

__all__ = ["Axle", "Plane", "Reduced", "Wheel", "nonholonomic", "rank", "rates", "reduced", "rows"]


def __getattr__(name: str) -> Any:
    if name in _LATE:
        value = getattr(import_module(_LATE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rtmms.locomotion' has no attribute '{name}'")
