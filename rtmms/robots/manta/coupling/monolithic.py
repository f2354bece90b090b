"""Monolithic coupling: the fins' articulated inertia and bias force are added to the body's, and solved with them."""

from __future__ import annotations

from rtmms.dynamics.rigid_body import solve_spd6
from rtmms.jit import Array, kernel


@kernel
def body_acceleration(work: Array, matrix: int, force: int, out: Array) -> None:
    """out = matrix^-1 force, both in `work`; matrix (6, 6) body and fins, lower triangle, overwritten; force (6,)."""
    solve_spd6(work, matrix, force, out)
