"""Provide the dynamics of any compiled mechanism at one state: inverse, direct, hybrid; inertia, energy, kinematics.

Each name imports its module when first used, so that numba is loaded only then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmms.dynamics.ground import OnGround, ground_dynamics, stopped
    from rtmms.dynamics.hybrid import Solution, bias, forward_dynamics, hybrid_dynamics, inverse_dynamics
    from rtmms.dynamics.inertia import Energy, composite_inertia, energy, mass_matrix, momentum
    from rtmms.dynamics.kinematics import body_accelerations, body_poses, body_twists, centre_of_mass, jacobian

__all__ = [
    "Energy", "OnGround", "Solution", "bias", "body_accelerations", "body_poses", "body_twists", "centre_of_mass",
    "composite_inertia", "energy", "forward_dynamics", "ground_dynamics", "hybrid_dynamics", "inverse_dynamics",
    "jacobian", "mass_matrix", "momentum", "stopped",
]  # fmt: skip

_LATE = {
    **dict.fromkeys(("Energy", "energy", "momentum"), "inertia"),
    **dict.fromkeys(("Solution", "bias", "forward_dynamics", "hybrid_dynamics", "inverse_dynamics"), "hybrid"),
    **dict.fromkeys(("OnGround", "ground_dynamics", "stopped"), "ground"),
    **dict.fromkeys(("composite_inertia", "mass_matrix"), "inertia"),
    **dict.fromkeys(
        ("body_accelerations", "body_poses", "body_twists", "centre_of_mass", "jacobian"), "kinematics"
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return a function or class, imported at its first use."""
    if name in __all__:
        value = getattr(import_module(f"rtmms.dynamics.{_LATE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rtmms.dynamics' has no attribute '{name}'")
