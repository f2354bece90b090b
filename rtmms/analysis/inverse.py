"""The inverse model of a mechanism in a fluid, fast enough for a controller's loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.errors import ModelError
from rtmms.fluids.ambient import Flow
from rtmms.fluids.immersed import act, immerse
from rtmms.jit import kernel
from rtmms.mechanism.equations import TREE, WORK
from rtmms.mechanism.joint_bounds import no_bounds
from rtmms.model.compiled import Model, State
from rtmms.model.layout import S_ACCELERATION
from rtmms.spatial import Array


@kernel
def _invert(tree: Any, fluid: Any, time: float, state: Any, work: Any) -> None:
    """tree, work: records of rtmms.mechanism.equations, accelerations in work.drive; state: position, orientation, q,
    twist, qd."""
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
    """Torques for given joint accelerations, the base's acceleration following if it is free. Keeps its own scratch."""

    def __init__(self, model: Model, flow: Flow | None = None, **nodes: int) -> None:
        if flow is not None and flow.field is not None:
            raise ModelError(f"{model.name}: the inverse model needs a flow given by numbers, not by a function")
        if len(model.ground.rows):
            raise ModelError(f"{model.name}: the inverse model knows no contacts; see rtmms.locomotion.reduced")
        if len(model.modes):
            raise ModelError(f"{model.name}: the inverse model knows no modal bodies; see rtmms.dynamics")
        self.model = model
        self._fluid = immerse(model, flow, **nodes)
        self._tree = TREE.make({
            "topology": model.topology, "constant": model.constant, "base_mode": model.base_mode,
            "gravity": model.gravity, "imposed": np.ones(model.n, dtype=bool), "bounds": no_bounds(model.n),
        })  # fmt: skip
        self._work = WORK.make({}, self._tree.sizes)

    def __call__(self, state: State, qdd: Array, time: float = 0.0) -> tuple[Array, Array]:
        """(n,) N m torques and (6,) base acceleration for qdd (n,) rad/s2 at a state; copies."""
        where = (state.position, state.orientation, state.q, state.twist, state.qd)
        self._work.drive[:] = qdd
        _invert(self._tree, self._fluid, time, where, self._work)
        return self._work.torque.copy(), self._work.s[0, S_ACCELERATION : S_ACCELERATION + 6].copy()
