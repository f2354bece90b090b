"""Compute mass matrix, composite inertia, energy and momentum of a mechanism."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import PACKED_SIZE, Array, cross, times, unpack_inertia
from rtmms.dynamics.hybrid import hybrid_scratch
from rtmms.dynamics.kinematics import centre_of_mass
from rtmms.dynamics.recursion import add_inertia, axis_column, into_parent, packed
from rtmms.model.compiled import Model, State
from rtmms.model.layout import (
    BASE_FREE,
    C_INERTIA,
    C_REST,
    C_ROTOR,
    C_STIFFNESS,
    C_WEIGHT,
    C_WEIGHT_MOMENT,
    REVOLUTE,
    S_INERTIA,
    S_POS,
    S_TWIST,
    S_WORLD_POS,
    S_WORLD_ROT,
    T_KIND,
    T_PARENT,
)


@kernel
def compose(topology: Any, constant: Any, s: Any) -> None:
    """Write the composite inertias J^c_i = J_i + sum Ad^T J^c_j Ad to S_INERTIA, after `configure`.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Notes
    -----
    Khalil 2007, eq 23.
    """
    n = s.shape[0] - 1
    for j in range(n + 1):
        for k in range(PACKED_SIZE):
            s[j, S_INERTIA + k] = constant[j, C_INERTIA + k]
    for j in range(n, 0, -1):
        add_inertia(s, topology[j, T_PARENT], j, packed(s, j, S_INERTIA))


@kernel
def fill_mass_matrix(topology: Any, constant: Any, s: Any, out: Any) -> None:
    """Write the mass matrix except its base block: columns S^T J^c_j carried up the tree, after `compose`.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    out : (6 + n, 6 + n) array
        Result.
    """
    n = s.shape[0] - 1
    for j in range(1, n + 1):
        revolute = topology[j, T_KIND] == REVOLUTE
        fx, fy, fz, mx, my, mz = axis_column(s, j, revolute)
        out[5 + j, 5 + j] = (mz if revolute else fz) + constant[j, C_ROTOR]
        i = j
        while i > 0:
            fx, fy, fz = into_parent(s, i, fx, fy, fz)
            mx, my, mz = into_parent(s, i, mx, my, mz)
            tx, ty, tz = cross(s[i, S_POS], s[i, S_POS + 1], s[i, S_POS + 2], fx, fy, fz)
            mx, my, mz = mx + tx, my + ty, mz + tz
            i = topology[i, T_PARENT]
            if i > 0:
                entry = mz if topology[i, T_KIND] == REVOLUTE else fz
                out[5 + i, 5 + j] = entry
                out[5 + j, 5 + i] = entry
        for k, entry in enumerate((fx, fy, fz, mx, my, mz)):
            out[k, 5 + j] = entry
            out[5 + j, k] = entry


def composite_inertia(model: Model, state: State) -> Array:
    """Return the inertia of the whole mechanism with locked joints, added mass included.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.

    Returns
    -------
    (6, 6) array
        About the base's origin, base frame, kg, kg m, kg m2.
    """
    if len(model.modes):
        return _by_velocities(model, state)[:6, :6]
    s = hybrid_scratch(model, state)
    compose(model.topology, model.constant, s)
    return unpack_inertia(s[0, S_INERTIA : S_INERTIA + PACKED_SIZE])


def mass_matrix(model: Model, state: State) -> Array:
    """Return the mass matrix, with rotors and added mass.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.

    Returns
    -------
    (v, v) array
        v = model.velocities, of (base twist, qd) for a free base, else of qd.
    """
    if len(model.modes):
        whole = _by_velocities(model, state)
        return whole if model.base_mode == BASE_FREE else np.ascontiguousarray(whole[6:, 6:])
    s = hybrid_scratch(model, state)
    compose(model.topology, model.constant, s)
    out = np.zeros((6 + model.n, 6 + model.n), dtype=s.dtype)
    out[:6, :6] = unpack_inertia(s[0, S_INERTIA : S_INERTIA + PACKED_SIZE])
    fill_mass_matrix(model.topology, model.constant, s, out)
    return out if model.base_mode == BASE_FREE else np.ascontiguousarray(out[6:, 6:])


def _by_velocities(model: Model, state: State) -> Array:
    """Return M (6 + n, 6 + n) of a tree with modal bodies: sum over rows of J^T M_row J, J column by column."""
    size = 6 + model.n
    columns = []
    for unit in np.eye(size):
        moving = State(state.position, state.orientation, state.q, unit[:6], unit[6:])
        columns.append(hybrid_scratch(model, moving)[:, S_TWIST : S_TWIST + 6])
    j = np.stack(columns, axis=-1)
    inertias = np.array([unpack_inertia(c[C_INERTIA : C_INERTIA + PACKED_SIZE]) for c in model.constant])
    out: Array = np.einsum("rai,rab,rbj->ij", j, inertias, j)
    out[6:, 6:] += np.diag(model.constant[1 : model.n + 1, C_ROTOR])
    return out


class Energy(NamedTuple):
    """Energy of a mechanism, added mass included.

    Attributes
    ----------
    kinetic : float
        Of bodies, added mass and rotors, J.
    gravity : float
        Of weight less buoyancy, 0 at z = 0, J.
    elastic : float
        Of springs, J.

    Examples
    --------
    >>> from rtmms.dynamics import Energy
    >>> Energy(1.0, 2.0, 0.5).total
    3.5
    """

    kinetic: float
    gravity: float
    elastic: float

    @property
    def total(self) -> float:
        """Sum of the three energies, J."""
        return self.kinetic + self.gravity + self.elastic


@kernel
def energies(constant: Any, gravity: Any, q: Any, qd: Any, s: Any, out: Any) -> None:
    """Write the energies, after `place` and `outward`.

    Parameters
    ----------
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    gravity : (3,) array
        m/s2, world.
    q, qd : (n,) array
        Joint positions and rates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    out : (3,) array
        Kinetic, gravity's, elastic, J.
    """
    out[0] = out[1] = out[2] = 0.0 * s[0, S_TWIST]
    for j in range(s.shape[0]):
        v0, v1, v2 = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
        v3, v4, v5 = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        p0, p1, p2, p3, p4, p5 = times(constant, j, C_INERTIA, v0, v1, v2, v3, v4, v5)
        out[0] += 0.5 * (p0 * v0 + p1 * v1 + p2 * v2 + p3 * v3 + p4 * v4 + p5 * v5)
        x, y, z = constant[j, C_WEIGHT_MOMENT], constant[j, C_WEIGHT_MOMENT + 1], constant[j, C_WEIGHT_MOMENT + 2]
        r = S_WORLD_ROT
        for k in range(3):
            moment = s[j, r + 3 * k] * x + s[j, r + 3 * k + 1] * y + s[j, r + 3 * k + 2] * z
            out[1] -= gravity[k] * (constant[j, C_WEIGHT] * s[j, S_WORLD_POS + k] + moment)
        if 0 < j <= qd.shape[0]:
            out[0] += 0.5 * constant[j, C_ROTOR] * qd[j - 1] * qd[j - 1]
            stretch = q[j - 1] - constant[j, C_REST]
            out[2] += 0.5 * constant[j, C_STIFFNESS] * stretch * stretch


def energy(model: Model, state: State) -> Energy:
    """Return the energies of a state.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.

    Returns
    -------
    Energy
        J.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.
    """
    s = hybrid_scratch(model, state)
    out = np.zeros(3, dtype=s.dtype)
    energies(model.constant, model.gravity, state.q.astype(s.dtype), state.qd.astype(s.dtype), s, out)
    return Energy(*out)


def momentum(model: Model, state: State, about: str = "origin") -> Array:
    """Return the momentum of a mechanism, added mass included.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    about : str, default 'origin'
        'origin' of the world or 'centre' of mass, for the angular part.

    Returns
    -------
    (6,) array
        Linear, N s, and angular, N m s, world.

    Raises
    ------
    ValueError
        `about` is neither.
    """
    if about not in ("origin", "centre"):
        raise ValueError(f"about must be 'origin' or 'centre', got '{about}'")
    s = hybrid_scratch(model, state)
    out = np.zeros(6, dtype=s.dtype)
    for row, c in zip(s, model.constant, strict=True):
        p = unpack_inertia(c[C_INERTIA : C_INERTIA + PACKED_SIZE]) @ row[S_TWIST : S_TWIST + 6]
        rotation = row[S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3)
        linear = rotation @ p[:3]
        out[:3] += linear
        out[3:] += rotation @ p[3:] + np.cross(row[S_WORLD_POS : S_WORLD_POS + 3], linear)
    if about == "centre":
        out[3:] -= np.cross(centre_of_mass(model, state), out[:3])
    return out
