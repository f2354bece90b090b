"""From a shape's motion to the net motion: connections, their curvature, the holonomy of gaits, the gaits that do best;
constraints of the ground and what they leave to dynamics. Nothing of one robot. Names load their module when first
used: numba is paid for then."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmms.locomotion.connections import Connection, connection, curvature
    from rtmms.locomotion.optimise import Best, best_gait
    from rtmms.locomotion.paths import Path, gait_path
    from rtmms.locomotion.reconstruction import Motion, holonomy, reconstruct
    from rtmms.locomotion.reduced_dynamics import Reduced, nonholonomic, rank, rates, reduced, rows
    from rtmms.model import Axle, Plane, Wheel

_LATE = {
    **dict.fromkeys(("Axle", "Plane", "Wheel"), "rtmms.model"),
    **dict.fromkeys(("Connection", "connection", "curvature"), "rtmms.locomotion.connections"),
    **dict.fromkeys(("Motion", "holonomy", "reconstruct"), "rtmms.locomotion.reconstruction"),
    **dict.fromkeys(("Best", "best_gait"), "rtmms.locomotion.optimise"),
    "Path": "rtmms.locomotion.paths",
    "gait_path": "rtmms.locomotion.paths",
    **dict.fromkeys(("nonholonomic", "rank", "rates", "rows"), "rtmms.locomotion.reduced_dynamics"),
    **dict.fromkeys(("Reduced", "reduced"), "rtmms.locomotion.reduced_dynamics"),
}

__all__ = [
    "Axle", "Best", "Connection", "Motion", "Path", "Plane", "Reduced", "Wheel", "best_gait", "connection", "curvature",
    "gait_path", "holonomy", "nonholonomic", "rank", "rates", "reconstruct", "reduced", "rows",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATE:
        value = getattr(import_module(_LATE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rtmms.locomotion' has no attribute '{name}'")
