"""The inverse model of a mechanism in a fluid, fast enough for a controller's loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.errors import ModelError
from rtmms.fluids.ambient import SAMPLE, Flow
from rtmms.fluids.immersed import act, immerse
from rtmms.jit import kernel
from rtmms.model.compiled import Model, State
from rtmms.model.layout import S_ACCELERATION
from rtmms.spatial import Array


@kernel
def _invert(
    topology: Any, constant: Any, base_mode: int, gravity: Any, imposed: Any, fluid: Any, held: Any, time: float,
    ambient: Any, position: Any, orientation: Any, q: Any, twist: Any, qd: Any, qdd: Any, s: Any, base: Any, out: Any,
    torque: Any,
) -> None:  # fmt: skip
    rows, common, strip, blade, strip_gauss, blade_gauss, flow, moving = fluid
    configure(topology, constant, orientation, gravity, q, s)
    outward(topology, twist, qd, s)
    if rows.shape[0] > 0:
        if moving:
            place(topology, position, orientation, s)
        act(rows, common, strip, blade, strip_gauss, blade_gauss, flow, moving, held, time, ambient, s)
    solve(topology, constant, base_mode, imposed, qdd, q, qd, 0.0, s, base, out, torque)


class Inverse:
    """Torques for given joint accelerations, the base's acceleration following if it is free. Keeps its own scratch."""

    def __init__(self, model: Model, flow: Flow | None = None, **nodes: int) -> None:
        if flow is not None and flow.field is not None:
            raise ModelError(f"{model.name}: the inverse model needs a flow given by numbers, not by a function")
        self.model = model
        self._fluid = immerse(model, flow, **nodes)
        e, n = len(self._fluid.rows), model.n
        self._held, self._ambient = np.zeros((e, 3)), np.zeros((e, SAMPLE))
        self._s, self._base = model.scratch(), np.zeros((6, 6))
        self._imposed, self._out, self._torque = np.ones(n, dtype=bool), np.zeros(n), np.zeros(n)

    def __call__(self, state: State, qdd: Array, time: float = 0.0) -> tuple[Array, Array]:
        """(n,) N m torques and (6,) base acceleration for qdd (n,) rad/s2 at a state; copies."""
        model = self.model
        _invert(
            model.topology, model.constant, model.base_mode, model.gravity, self._imposed, self._fluid.arrays,
            self._held, time, self._ambient, state.position, state.orientation, state.q, state.twist, state.qd, qdd,
            self._s, self._base, self._out, self._torque,
        )  # fmt: skip
        return self._torque.copy(), self._s[0, S_ACCELERATION : S_ACCELERATION + 6].copy()
