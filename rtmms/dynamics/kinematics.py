"""Compute positions and motions of bodies: poses, twists, accelerations, Jacobians, centre of mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.spatial import Array, adjoint
from rtmms.dynamics.hybrid import described_twists, hybrid_scratch, set_up, solve_any, vector
from rtmms.dynamics.recursion import respond
from rtmms.model import layout as L
from rtmms.model.compiled import Model, State


def body_poses(model: Model, state: State) -> tuple[Array, Array]:
    """Return the world poses of the described bodies.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.

    Returns
    -------
    (array, array)
        Rotations (bodies, 3, 3), body to world, and positions (bodies, 3), m.
    """
    s = hybrid_scratch(model, state)
    rotation = s[model.carrier, L.S_WORLD_ROT : L.S_WORLD_ROT + 9].reshape(-1, 3, 3)
    position = s[model.carrier, L.S_WORLD_POS : L.S_WORLD_POS + 3]
    position = position + np.einsum("kab,kb->ka", rotation, model.offset_position)
    return rotation @ model.offset_rotation, position


def body_twists(model: Model, state: State) -> Array:
    """Return each described body's own twist in its own frame.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.

    Returns
    -------
    (bodies, 6) array
        m/s and rad/s.
    """
    return described_twists(model, hybrid_scratch(model, state)[:, L.S_TWIST : L.S_TWIST + 6])


def body_accelerations(model: Model, state: State, qdd: Any, base_acceleration: Any) -> Array:
    """Return the component derivatives of `body_twists`.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    qdd : (n,) array
        Joint accelerations, rad/s2 or m/s2.
    base_acceleration : (6,) array
        Component derivative of the base twist, m/s2 and rad/s2.

    Returns
    -------
    (bodies, 6) array
        m/s2 and rad/s2.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.
    """
    qdd = vector(qdd, (model.n,), f"{model.name}: qdd")
    s = hybrid_scratch(model, state)
    s[0, L.S_ACCELERATION : L.S_ACCELERATION + 6] = vector(base_acceleration, (6,), f"{model.name}: base_acceleration")
    if len(model.modes):
        return _modal_accelerations(model, state, qdd, base_acceleration)
    imposed, unused = np.ones(model.n, dtype=bool), np.zeros((2, model.n), s.dtype)
    respond(
        model.topology, model.constant, imposed, qdd.astype(s.dtype), state.q, state.qd, s, unused[0], unused[1]
    )  # fmt: skip
    return described_twists(model, s[:, L.S_ACCELERATION : L.S_ACCELERATION + 6])


def jacobian(model: Model, state: State, body: str) -> Array:
    """Return the Jacobian of a described body: its twist in its own frame is J (base twist, qd), or J qd.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    body : str
        Name of the body.

    Returns
    -------
    (6, model.velocities) array
        With the base's columns only for a free base.

    Raises
    ------
    UnknownNameError
        There is no such body.
    """
    if len(model.modes):
        return _modal_jacobian(model, state, model.body(body))
    index, s = model.body(body), hybrid_scratch(model, state)
    out = np.zeros((6, 6 + model.n), dtype=s.dtype)
    row = int(model.carrier[index])
    carry = adjoint(model.offset_rotation[index], model.offset_position[index]).astype(s.dtype)
    while row > 0:
        out[:, 5 + row] = carry[:, 2 if model.topology[row, L.T_KIND] == L.PRISMATIC else 5]
        rotation, position = s[row, L.S_ROT : L.S_ROT + 9].reshape(3, 3), s[row, L.S_POS : L.S_POS + 3]
        carry = carry @ _adjoint(rotation, position)
        row = model.parent(row)
    out[:, :6] = carry
    return out if model.base_mode == L.BASE_FREE else np.ascontiguousarray(out[:, 6:])


def _adjoint(rotation: Array, position: Array) -> Array:
    if np.iscomplexobj(rotation):
        out = adjoint(rotation.real, position.real).astype(complex)
        x, y, z = position
        hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        out[:3, :3] = out[3:, 3:] = rotation.T
        out[:3, 3:] = -rotation.T @ hat
        return out
    return adjoint(rotation, position)


def centre_of_mass(model: Model, state: State) -> Array:
    """Return the centre of mass of the bodies, without the fluid.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.

    Returns
    -------
    (3,) array
        m, world.
    """
    s = hybrid_scratch(model, state)
    rotation = s[:, L.S_WORLD_ROT : L.S_WORLD_ROT + 9].reshape(-1, 3, 3)
    mass, moment = model.constant[:, L.C_MASS], model.constant[:, L.C_MOMENT : L.C_MOMENT + 3]
    world = mass[:, None] * s[:, L.S_WORLD_POS : L.S_WORLD_POS + 3] + np.einsum("kab,kb->ka", rotation, moment)
    centre: Array = world.sum(axis=0) / mass.sum()
    return centre


def _modal_jacobian(model: Model, state: State, index: int) -> Array:
    """Return `jacobian` by unit velocities, for trees with modal bodies."""
    columns = []
    for unit in np.eye(6 + model.n):
        moving = State(state.position, state.orientation, state.q, unit[:6], unit[6:])
        columns.append(body_twists(model, moving)[index])
    out = np.array(columns).T
    return out if model.base_mode == L.BASE_FREE else np.ascontiguousarray(out[:, 6:])


def _modal_accelerations(model: Model, state: State, qdd: Array, base_acceleration: Any) -> Array:
    """Return `body_accelerations` by the whole recursion with every coordinate imposed, for trees with modal bodies."""
    s, modal = set_up(model, state)
    s[0, L.S_ACCELERATION : L.S_ACCELERATION + 6] = vector(base_acceleration, (6,), f"{model.name}: base_acceleration")
    out = np.zeros((2, model.n), s.dtype)
    imposed, q, qd = np.ones(model.n, dtype=bool), state.q.astype(s.dtype), state.qd.astype(s.dtype)
    solve_any(model, modal, L.BASE_PRESCRIBED, imposed, qdd.astype(s.dtype), q, qd, s, out[0], out[1])
    return described_twists(model, s[:, L.S_ACCELERATION : L.S_ACCELERATION + 6])
