"""Rods for tests, and Reissner's rod under a dead load at its tip, by shooting with scipy: nothing of ours in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

from rtmms.base.spatial import Array
from rtmms.dynamics.kinematics import body_poses
from rtmms.model import Body, Mechanism, Model, Placement, Rod, RodSection, State, compile_model

LITTLE = (1e-9, 1e-9, 1e-9)
UPWARDS = Placement(np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
"""The rod's x along the world's y."""


def rod_of(n: int, section: RodSection, length: float = 1.0, base: str = "fixed", **more: Any) -> tuple[Rod, Model]:
    """A rod of n elements on a wall that weighs nothing."""
    rod = Rod("rod", "wall", length, section, n, **more)
    return rod, compile_model(Mechanism("r", [Body("wall")], rods=[rod], base=base, gravity=(0.0, 0.0, 0.0)))


def tip_of(rod: Rod, model: Model, q: Any) -> tuple[Array, Array]:
    """Where its end stands (3,) and how (3, 3)."""
    state = State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.array(q), np.zeros(6), np.zeros(model.n))
    rotations, positions = body_poses(model, state)
    name, place = rod.tip()
    k = model.body(name)
    return positions[k] + rotations[k] @ place.position, rotations[k]


def hat(v: Any) -> Any:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def shot(force: Any, root: Any, length: float, bend: Any, stiffness: Any, shear: Any = None) -> Array:
    """(3,) tip of a rod with curvature `bend` (3,) at rest, (GJ, EI, EI) and, extensible, (EA, GA, GA)."""

    def end(moment: Any, load: Any) -> Any:
        def slope(s: float, y: Any) -> Any:
            r = y[:9].reshape(3, 3)
            k = bend + (r.T @ y[12:15]) / stiffness
            stretch = np.array([1.0, 0.0, 0.0]) + (0.0 if shear is None else (r.T @ load) / shear)
            along = r @ stretch
            return np.concatenate([(r @ hat(k)).ravel(), along, -np.cross(along, load)])

        start = np.concatenate([root.ravel(), np.zeros(3), moment])
        return solve_ivp(slope, (0.0, length), start, rtol=1e-10, atol=1e-10, method="DOP853").y[:, -1]

    moment = np.zeros(3)
    for share in np.linspace(0.2, 1.0, 5):
        load = share * np.asarray(force)
        moment = fsolve(lambda m, load=load: end(m, load)[12:15], moment, xtol=1e-12)
    out: Array = end(moment, np.asarray(force))[9:12]
    return out
