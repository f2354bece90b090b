"""Mass matrix and composite inertia: the composite-body recursion (Khalil 2007, eq 23)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.carry import add_inertia, axis_column, into_parent, packed
from rtmms.dynamics.prepare import prepared
from rtmms.jit import kernel
from rtmms.model.compiled import Model, State
from rtmms.model.layout import (
    BASE_FREE,
    C_INERTIA,
    C_ROTOR,
    REVOLUTE,
    S_INERTIA,
    S_POS,
    S_TWIST,
    T_KIND,
    T_PARENT,
)  # fmt: skip
from rtmms.spatial import PACKED_SIZE, Array, cross, unpack_inertia


@kernel
def compose(topology: Any, constant: Any, s: Any) -> None:
    """(23) J^c_i = J_i + sum Ad^T J^c_j Ad, into S_INERTIA. After `configure`."""
    n = s.shape[0] - 1
    for j in range(n + 1):
        for k in range(PACKED_SIZE):
            s[j, S_INERTIA + k] = constant[j, C_INERTIA + k]
    for j in range(n, 0, -1):
        add_inertia(s, topology[j, T_PARENT], j, packed(s, j, S_INERTIA))


@kernel
def fill_mass_matrix(topology: Any, constant: Any, s: Any, out: Any) -> None:
    """out (6 + n, 6 + n) but for its base block: columns S^T J^c_j carried up the tree. After `compose`."""
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
    """(6, 6) inertia of the whole mechanism, joints locked, about the base's origin, base frame; added mass too."""
    if len(model.modes):
        return _by_velocities(model, state)[:6, :6]
    s = prepared(model, state)
    compose(model.topology, model.constant, s)
    return unpack_inertia(s[0, S_INERTIA : S_INERTIA + PACKED_SIZE])


def mass_matrix(model: Model, state: State) -> Array:
    """M (v, v), v = model.velocities, of (base twist, qd) for a free base, else of qd; rotors, added mass too."""
    if len(model.modes):
        whole = _by_velocities(model, state)
        return whole if model.base_mode == BASE_FREE else np.ascontiguousarray(whole[6:, 6:])
    s = prepared(model, state)
    compose(model.topology, model.constant, s)
    out = np.zeros((6 + model.n, 6 + model.n), dtype=s.dtype)
    out[:6, :6] = unpack_inertia(s[0, S_INERTIA : S_INERTIA + PACKED_SIZE])
    fill_mass_matrix(model.topology, model.constant, s, out)
    return out if model.base_mode == BASE_FREE else np.ascontiguousarray(out[6:, 6:])


def _by_velocities(model: Model, state: State) -> Array:
    """M (6 + n, 6 + n) of a tree with modal bodies: sum over its rows of J^T M_row J, J column by column."""
    size = 6 + model.n
    columns = []
    for unit in np.eye(size):
        moving = State(state.position, state.orientation, state.q, unit[:6], unit[6:])
        columns.append(prepared(model, moving)[:, S_TWIST : S_TWIST + 6])
    j = np.stack(columns, axis=-1)
    own = np.array([unpack_inertia(c[C_INERTIA : C_INERTIA + PACKED_SIZE]) for c in model.constant])
    out: Array = np.einsum("rai,rab,rbj->ij", j, own, j)
    out[6:, 6:] += np.diag(model.constant[1 : model.n + 1, C_ROTOR])
    return out
