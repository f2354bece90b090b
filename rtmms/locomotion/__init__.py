"""From a shape's motion to the net motion: connections, their curvature, the holonomy of gaits, the gaits that do best.
Nothing of one robot. Names load their module when first used: numba is paid for then."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmms.locomotion.connections import Connection, connection, curvature
    from rtmms.locomotion.gait_words import gait_path
    from rtmms.locomotion.optimise import Best, best_gait
    from rtmms.locomotion.paths import Path
    from rtmms.locomotion.reconstruction import Motion, holonomy, reconstruct

_LATE = {
    **dict.fromkeys(("Connection", "connection", "curvature"), "connections"),
    **dict.fromkeys(("Motion", "holonomy", "reconstruct"), "reconstruction"),
    **dict.fromkeys(("Best", "best_gait"), "optimise"),
    "Path": "paths",
    "gait_path": "gait_words",
}

__all__ = [
    "Best", "Connection", "Motion", "Path", "best_gait", "connection", "curvature", "gait_path", "holonomy",
    "reconstruct",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATE:
        value = getattr(import_module(f"rtmms.locomotion.{_LATE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rtmms.locomotion' has no attribute '{name}'")
