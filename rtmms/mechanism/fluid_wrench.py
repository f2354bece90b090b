"""The wrench of a fluid on each body, for those who ask the dynamics alone."""

from __future__ import annotations

import numpy as np

from rtmms.dynamics.any_tree import move, stand
from rtmms.fluids.ambient import SAMPLE_ROOM, Flow
from rtmms.fluids.immersed import act, held_flow, immerse
from rtmms.model.compiled import Model, State
from rtmms.model.layout import S_WRENCH
from rtmms.spatial import Array


def fluid_wrench(model: Model, state: State, flow: Flow | None = None, time: float = 0.0, **nodes: int) -> Array:
    """(bodies, 6) wrench of the fluid on each described body, at its origin in its frame: the `wrench` of dynamics.

    Without the part that stands in the inertia matrices (see rtmms.fluids.immersed). nodes: strip_nodes, blade_nodes.
    """
    state.check(model)
    flow = Flow() if flow is None else flow
    immersed, s = immerse(model, flow, **nodes), model.scratch()
    stand(model, state.position, state.orientation, state.q, s)
    move(model, state.twist, state.q, state.qd, s)
    act(
        *immersed.arrays,
        held_flow(model, flow, s, immersed, time),
        time,
        np.zeros((len(immersed.rows), SAMPLE_ROOM)),
        s,
    )
    out: Array = np.zeros((len(model.body_names), 6))
    done: set[int] = set()
    for k, row in enumerate(model.carrier):
        if int(row) not in done:  # a row's whole wrench, given to the first body that it carries
            done.add(int(row))
            r, p = model.offset_rotation[k], model.offset_position[k]
            force, moment = s[row, S_WRENCH : S_WRENCH + 3], s[row, S_WRENCH + 3 : S_WRENCH + 6]
            out[k, :3], out[k, 3:] = r.T @ force, r.T @ (moment - np.cross(p, force))
    return out
