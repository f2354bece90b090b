"""Equilibrium of a mechanism on a fixed base, and the inverse model of a mechanism in a fluid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.jit import kernel
from rtmms.base.spatial import Array
from rtmms.dynamics.hybrid import bias
from rtmms.dynamics.kinematics import body_poses
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.fluids.ambient import Flow
from rtmms.fluids.immersed import act, immerse
from rtmms.mechanism.equations import TREE, WORK
from rtmms.mechanism.joint_laws import no_bounds
from rtmms.model.compiled import Model, State
from rtmms.model.layout import BASE_FIXED, S_ACCELERATION
from rtmms.model.solids import Placement

# Where a mechanism on a fixed base rests under loads that keep their direction: Newton's method on its joints.


DIFFERENCE = 1e-6
"""Step of the central differences for slopes, rad."""


@dataclass(frozen=True, eq=False)
class Load:
    """Load on a body.

    Attributes
    ----------
    body : str
        Name of the body.
    force : Any, default (0.0, 0.0, 0.0)
        (3,) force, N, world axes.
    couple : Any, default (0.0, 0.0, 0.0)
        (3,) couple, N m, world axes.
    place : Placement | None, optional
        Place of the force in the body's frame; None: its origin.
    follower : bool, default False
        The load keeps its direction in the body's frame, else in the world.
    """

    body: str
    force: Any = (0.0, 0.0, 0.0)
    couple: Any = (0.0, 0.0, 0.0)
    place: Placement | None = None
    follower: bool = False


def wrenches(model: Model, q: Array, loads: Sequence[Load]) -> Array:
    """Return the wrenches of loads on all bodies.

    Parameters
    ----------
    model : Model
        The mechanism.
    q : Array
        (n,) joint positions.
    loads : Sequence[Load]
        Loads on its bodies.

    Returns
    -------
    Array
        (bodies, 6) N and N m, at each body's origin in its frame.
    """
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
    """Return the joint positions at which springs, weight and loads are in balance, at rest.

    Parameters
    ----------
    model : Model
        Mechanism with a fixed base.
    loads : Sequence[Load], default ()
        Loads on its bodies.
    steps : int, default 1
        Equal parts in which the loads (not the weight) are applied.
    start : Any, optional
        (n,) start of Newton's method; default all 0.
    tolerance : float, default 1e-10
        Bound on the joints' residuals, relative to the largest of the springs' torques and loads.

    Returns
    -------
    Array
        (n,).

    Raises
    ------
    ModelError
        The base is not fixed, or the method does not converge.
    """
    if model.base_mode != BASE_FIXED:
        raise ModelError(f"{model.name}: equilibrium: expected base='fixed', got a base that moves")
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
        newton_step = np.linalg.solve(slope, r)
        size = np.abs(r).max()
        for cut in (1.0, 0.5, 0.25, 0.1, 0.02):
            if np.abs(residual(q - cut * newton_step)).max() < size or cut == 0.02:
                q = q - cut * newton_step
                break
        if np.abs(newton_step).max() < 1e-13 * max(1.0, np.abs(q).max()):
            return q
    raise ModelError(f"{model.name}: equilibrium: the method did not converge; apply the loads in more steps")


def _scaled(load: Load, share: float) -> Load:
    force, couple = (share * np.asarray(value, dtype=float) for value in (load.force, load.couple))
    return Load(load.body, force, couple, load.place, load.follower)


def _at(model: Model, q: Array) -> State:
    return State(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.array(q), np.zeros(6), np.zeros(model.n))


# The inverse model of a mechanism in a fluid, fast enough for a controller's loop.


@kernel
def _invert(tree: Any, fluid: Any, time: float, state: Any, work: Any) -> None:
    """Compute the inverse model; accelerations are in work.drive.

    `tree` and `work` are records of rtmms.mechanism.equations; `state` is position, orientation, q, twist, qd.
    """
    position, orientation, q, twist, qd = state
    topology, constant, s = tree.topology, tree.constant, work.s
    configure(topology, constant, orientation, tree.gravity, q, s)
    outward(topology, twist, qd, s)
    if fluid.rows.shape[0] > 0 or fluid.tethers.shape[0] > 0:
        if fluid.moving:
            place(topology, position, orientation, s)
        act(fluid, time, s)
    solve(
        topology, constant, tree.base_mode, tree.imposed, work.drive, q, qd, 0.0, s, work.base, work.qdd, work.torque
    )  # fmt: skip


class Inverse:
    """Inverse model: torques for given joint accelerations; a free base's acceleration follows.

    An object has its own scratch.

    Parameters
    ----------
    model : Model
        Mechanism without contacts and modal bodies.
    flow : Flow | None, optional
        Flow given by numbers, not by a function.
    **nodes : int
        Nodes of the fluid's elements, see `immerse`.

    Raises
    ------
    ModelError
        The flow is a function, or the mechanism has contacts or modal bodies.
    """

    def __init__(self, model: Model, flow: Flow | None = None, **nodes: int) -> None:
        if flow is not None and flow.field is not None:
            raise ModelError(
                f"{model.name}: inverse model: flow: expected a flow without `field`, got one with it; give a velocity "
                "and its other parts"
            )
        if len(model.ground.rows):
            raise ModelError(
                f"{model.name}: inverse model: expected no contacts, which it does not support; use "
                "rtmms.locomotion.reduced"
            )
        if len(model.modes):
            raise ModelError(
                f"{model.name}: inverse model: expected rigid bodies, got modal ones, which it does not support; use "
                "rtmms.dynamics"
            )
        self.model = model
        self._fluid = immerse(model, flow, **nodes)
        self._tree = TREE.make({
            "topology": model.topology, "constant": model.constant, "base_mode": model.base_mode,
            "gravity": model.gravity, "imposed": np.ones(model.n, dtype=bool), "bounds": no_bounds(model.n),
        })  # fmt: skip
        self._work = WORK.make({}, self._tree.sizes)

    def __call__(self, state: State, qdd: Array, time: float = 0.0) -> tuple[Array, Array]:
        """Return torques (n,) N m and the base's acceleration (6,) for joint accelerations qdd (n,) rad/s2.

        Both are copies.
        """
        where = (state.position, state.orientation, state.q, state.twist, state.qd)
        self._work.drive[:] = qdd
        _invert(self._tree, self._fluid, time, where, self._work)
        return self._work.torque.copy(), self._work.s[0, S_ACCELERATION : S_ACCELERATION + 6].copy()
