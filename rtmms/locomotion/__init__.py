"""Compute the net motion that a shape's motion causes, for any mechanism.

It has connections, their curvature, the holonomy of gaits, and the best gaits. It also has the constraints of the
ground, and the dynamics that decides the motion which they leave free. The names load their modules at their first use,
because numba takes time to load.
"""

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
    """Import an exported name at its first use.

    Parameters
    ----------
    name : str
        Name of the attribute.

    Returns
    -------
    Any
        The function or class.

    Raises
    ------
    AttributeError
        The package has no such name.
    """
    if name in _LATE:
        value = getattr(import_module(_LATE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rtmms.locomotion' has no attribute '{name}'")
