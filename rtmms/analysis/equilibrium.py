"""Where a mechanism on a fixed base rests under loads that keep their direction: Newton's method on its joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.dynamics.hybrid import bias
from rtmms.dynamics.kinematics import body_poses
from rtmms.errors import ModelError
from rtmms.model.compiled import Model, State
from rtmms.model.layout import BASE_FIXED
from rtmms.model.solids import Placement
from rtmms.spatial import Array

DIFFERENCE = 1e-6
"""rad: of the slopes, by central differences."""


@dataclass(frozen=True, eq=False)
class Load:
    """On a body: force (3,) N and couple (3,) N m, world axes, at a place of its frame. They keep their direction; a
    follower keeps it in the body's frame."""

    body: str
    force: Any = (0.0, 0.0, 0.0)
    couple: Any = (0.0, 0.0, 0.0)
    place: Placement | None = None
    follower: bool = False


def wrenches(model: Model, q: Array, loads: Sequence[Load]) -> Array:
    """(bodies, 6) of `loads` at q, at each body's origin in its frame."""
    rotations, _ = body_poses(model, _at(model, q))
    out = np.zeros((len(model.body_names), 6))
    for load in loads:
        k = model.body(load.body)
        back = np.eye(3) if load.follower else rotations[k].T
        force, couple = back @ np.asarray(load.force, dtype=float), back @ np.asarray(load.couple, dtype=float)
        arm = np.zeros(3) if load.place is None else load.place.position
        out[k, :3] += force
        out[k, 3:] += couple + np.cross(arm, force)
    return out


def equilibrium(
    model: Model, loads: Sequence[Load] = (), *, steps: int = 1, start: Any = None, tolerance: float = 1e-10
) -> Array:
    """(n,) joints at which springs, weight and loads are in balance, all at rest.

    steps      the loads (not the weight) are put on in that many equal parts
    start      (n,) where Newton's method begins; default all 0
    tolerance  of the joints' residuals, relative to the largest of the springs' torques and loads
    ModelError for a base that is not fixed, or where it does not converge.
    """
    if model.base_mode != BASE_FIXED:
        raise ModelError(f"{model.name}: equilibrium: expected base='fixed'")
    q = np.zeros(model.n) if start is None else np.array(start, dtype=float)
    for part in range(1, steps + 1):
        share = part / steps
        q = _newton(model, q, [_scaled(load, share) for load in loads], tolerance)
    return q


def _newton(model: Model, q: Array, loads: Sequence[Load], tolerance: float) -> Array:
    def residual(x: Array) -> Array:
        return bias(model, _at(model, x), wrench=wrenches(model, x, loads))

    scale = 0.0
    for _ in range(60):
        r = residual(q)
        scale = max(scale, float(np.abs(r).max(initial=0.0)), 1e-300)
        if np.abs(r).max(initial=0.0) <= tolerance * scale:
            return q
        slope = np.empty((model.n, model.n))
        for j in range(model.n):
            d = np.zeros(model.n)
            d[j] = DIFFERENCE
            slope[:, j] = (residual(q + d) - residual(q - d)) / (2.0 * DIFFERENCE)
        way = np.linalg.solve(slope, r)
        size = np.abs(r).max()
        for cut in (1.0, 0.5, 0.25, 0.1, 0.02):
            if np.abs(residual(q - cut * way)).max() < size or cut == 0.02:
                q = q - cut * way
                break
        if np.abs(way).max() < 1e-13 * max(1.0, np.abs(q).max()):
            return q
    raise ModelError(f"{model.name}: equilibrium: not found; put the loads on in more steps")


def _scaled(load: Load, share: float) -> Load:
    force, couple = (share * np.asarray(value, dtype=float) for value in (load.force, load.couple))
    return Load(load.body, force, couple, load.place, load.follower)


def _at(model: Model, q: Array) -> State:
    return State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.array(q), np.zeros(6), np.zeros(model.n))
