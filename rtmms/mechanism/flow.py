"""The flow around a tree: the wrench on each body, and a flow that is a function, asked once a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtmms.base.spatial import Array, quaternion_matrix
from rtmms.dynamics.hybrid import move, stand
from rtmms.fluids.ambient import Flow
from rtmms.fluids.immersed import CENTRE, act, held_flow, immerse
from rtmms.mechanism.step import displace
from rtmms.model.compiled import Model, State
from rtmms.model.layout import S_WORLD_POS, S_WORLD_ROT, S_WRENCH

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.base.memory import Record
    from rtmms.fluids.ambient import Flow
    from rtmms.model.compiled import Model

    class InWater(Protocol):
        """What is asked for: its model, its fluid and the flow."""

        model: Model
        flow: Flow
        immersed: Record


def moved_on(vector: Array, n: int, ahead: float) -> Array:
    """The state (13 + 2 n,) `ahead` seconds on, at its present velocity."""
    rate, y = np.zeros(12 + 2 * n), np.empty_like(vector)
    rate[:3] = quaternion_matrix(vector[3:7]) @ vector[7 + n : 10 + n]
    rate[3:6], rate[6 : 6 + n] = vector[10 + n : 13 + n], vector[13 + n :]
    displace(vector, rate, ahead, y)
    return y


def element_places(plant: InWater, vector: Array, s: Array) -> Array:
    """(e, 3) m, world: where the elements' centres stand in a state (13 + 2 n,)."""
    immersed = plant.immersed
    stand(plant.model, vector[:3], vector[3:7], vector[7 : 7 + plant.model.n], s)
    rows = s[immersed.rows]
    rotation = rows[:, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(-1, 3, 3)
    centre = immersed.common[:, CENTRE : CENTRE + 3]
    out: Array = rows[:, S_WORLD_POS : S_WORLD_POS + 3] + np.einsum("eij,ej->ei", rotation, centre)
    return out


def ask_flow(plant: InWater, vector: Array, time: float, ahead: float, s: Array, held: Array) -> None:
    """Ask the flow's function, `ahead` seconds from `time`, where the elements will then be at their present speed:
    half a step ahead, what is held over the step is right to second order.

    vector (13 + 2 n,) state; s the model's scratch; held (e, 6) m/s, m/s2, written
    """
    y = moved_on(vector, plant.model.n, ahead)
    stand(plant.model, y[:3], y[3:7], y[7 : 7 + plant.model.n], s)
    held[:] = held_flow(plant.model, plant.flow, s, plant.immersed, time + ahead)


def fluid_wrench(model: Model, state: State, flow: Flow | None = None, time: float = 0.0, **nodes: int) -> Array:
    """(bodies, 6) wrench of the fluid on each described body, at its origin in its frame: the `wrench` of dynamics.

    Without the part that stands in the inertia matrices (see rtmms.fluids.immersed). nodes: strip_nodes, blade_nodes.
    """
    state.check(model)
    flow = Flow() if flow is None else flow
    immersed, s = immerse(model, flow, **nodes), model.scratch()
    stand(model, state.position, state.orientation, state.q, s)
    move(model, state.twist, state.q, state.qd, s)
    immersed.held[:] = held_flow(model, flow, s, immersed, time)
    act(immersed, time, s)
    out: Array = np.zeros((len(model.body_names), 6))
    done: set[int] = set()
    for k, row in enumerate(model.carrier):
        if int(row) not in done:  # a row's whole wrench, given to the first body that it carries
            done.add(int(row))
            r, p = model.offset_rotation[k], model.offset_position[k]
            force, moment = s[row, S_WRENCH : S_WRENCH + 3], s[row, S_WRENCH + 3 : S_WRENCH + 6]
            out[k, :3], out[k, 3:] = r.T @ force, r.T @ (moment - np.cross(p, force))
    return out
