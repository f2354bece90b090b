"""The inverse model of a mechanism in a fluid, fast enough for a controller's loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.errors import ModelError
from rtmms.fluids.ambient import SAMPLE_ROOM, Flow
from rtmms.fluids.immersed import act, immerse
from rtmms.jit import kernel
from rtmms.model.compiled import Model, State
from rtmms.model.layout import S_ACCELERATION
from rtmms.spatial import Array


@kernel
def _invert(tree: Any, fluid: Any, time: float, state: Any, qdd: Any, work: Any) -> None:
    """tree, fluid: as for rtmms.mechanism.equations; state: position, orientation, q, twist, qd; work: s, base (6, 6),
    and (n,) the accelerations and the torques."""
    topology, constant, base_mode, gravity, imposed = tree
    rows, common, strip, blade, strip_gauss, blade_gauss, wake, tether, flow, moving, held, ambient = fluid
    position, orientation, q, twist, qd = state
    s, base, out, torque = work
    configure(topology, constant, orientation, gravity, q, s)
    outward(topology, twist, qd, s)
    if rows.shape[0] > 0 or tether.shape[0] > 0:
        if moving:
            place(topology, position, orientation, s)
        act(
            rows, common, strip, blade, strip_gauss, blade_gauss, wake, tether, flow, moving, held, time, ambient, s
        )  # fmt: skip
    solve(topology, constant, base_mode, imposed, qdd, q, qd, 0.0, s, base, out, torque)


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
        immersed, n = immerse(model, flow, **nodes), model.n
        e = len(immersed.rows)
        self._fluid = (*immersed.arrays, np.zeros((e, 3)), np.zeros((e, SAMPLE_ROOM)))
        self._tree = (model.topology, model.constant, model.base_mode, model.gravity, np.ones(n, dtype=bool))
        self._work = (model.scratch(), np.zeros((6, 6)), np.zeros(n), np.zeros(n))

    def __call__(self, state: State, qdd: Array, time: float = 0.0) -> tuple[Array, Array]:
        """(n,) N m torques and (6,) base acceleration for qdd (n,) rad/s2 at a state; copies."""
        where = (state.position, state.orientation, state.q, state.twist, state.qd)
        _invert(self._tree, self._fluid, time, where, qdd, self._work)
        return self._work[3].copy(), self._work[0][0, S_ACCELERATION : S_ACCELERATION + 6].copy()
