"""Compute the flow around a tree: the wrench on each body, and a Python function sampled once a step."""

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
        """A plant with a model, a fluid and a flow, as the functions here need it.

        Attributes
        ----------
        model : Model
            Compiled tree.
        flow : Flow
            The fluid's own motion.
        immersed : Record
            Elements in the fluid.
        """

        model: Model
        flow: Flow
        immersed: Record


def moved_on(vector: Array, n: int, ahead: float) -> Array:
    """Return the state after a time at its present velocity.

    Parameters
    ----------
    vector : (13 + 2 n,) array
        State vector.
    n : int
        Number of coordinates.
    ahead : float
        Time, s.

    Returns
    -------
    (13 + 2 n,) array
        State vector.
    """
    rate, y = np.zeros(12 + 2 * n), np.empty_like(vector)
    rate[:3] = quaternion_matrix(vector[3:7]) @ vector[7 + n : 10 + n]
    rate[3:6], rate[6 : 6 + n] = vector[10 + n : 13 + n], vector[13 + n :]
    displace(vector, rate, ahead, y)
    return y


def element_places(plant: InWater, vector: Array, s: Array) -> Array:
    """Return the positions of the elements' centres in a state.

    Parameters
    ----------
    plant : InWater
        Plant with the elements.
    vector : (13 + 2 n,) array
        State vector.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Returns
    -------
    (e, 3) array
        m, world.
    """
    immersed = plant.immersed
    stand(plant.model, vector[:3], vector[3:7], vector[7 : 7 + plant.model.n], s)
    rows = s[immersed.rows]
    rotation = rows[:, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(-1, 3, 3)
    centre = immersed.common[:, CENTRE : CENTRE + 3]
    out: Array = rows[:, S_WORLD_POS : S_WORLD_POS + 3] + np.einsum("eij,ej->ei", rotation, centre)
    return out


def ask_flow(plant: InWater, vector: Array, time: float, ahead: float, s: Array, held: Array) -> None:
    """Sample the flow's function at the elements' extrapolated places, and write the values that are held over a step.

    The places are those after `ahead` seconds at the present velocity. Half a step ahead makes the held values correct
    to second order.

    Parameters
    ----------
    plant : InWater
        Plant with the elements.
    vector : (13 + 2 n,) array
        State vector.
    time : float
        Time of the state, s.
    ahead : float
        Time from there to the sample, s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    held : (e, 6) array
        Result: velocity, m/s, and acceleration, m/s2, world.
    """
    y = moved_on(vector, plant.model.n, ahead)
    stand(plant.model, y[:3], y[3:7], y[7 : 7 + plant.model.n], s)
    held[:] = held_flow(plant.model, plant.flow, s, plant.immersed, time + ahead)


def fluid_wrench(model: Model, state: State, flow: Flow | None = None, time: float = 0.0, **nodes: int) -> Array:
    """Return the wrench of the fluid on each described body, at its origin in its frame: the `wrench` of dynamics.

    The part in the inertia matrices is not included (see rtmms.fluids.immersed). A row's whole wrench belongs to the
    first body that the row carries.

    Parameters
    ----------
    model : Model
        Compiled tree.
    state : State
        State of the tree.
    flow : Flow, optional
        The fluid's own motion; None for still fluid.
    time : float, default 0.0
        s.
    **nodes : int
        `strip_nodes` and `blade_nodes`, numbers of Gauss points.

    Returns
    -------
    (bodies, 6) array
        Force, N, and moment, N m.
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
