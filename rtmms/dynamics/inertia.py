"""Mass matrix and composite inertia: the composite-body recursion (Khalil 2007, eq 23)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.carry import add_inertia, into_parent
from rtmms.dynamics.prepare import prepared
from rtmms.jit import kernel
from rtmms.model import layout as L
from rtmms.model.compiled import Model, State
from rtmms.spatial import Array, cross, unpack_inertia


@kernel
def compose(topology: Any, constant: Any, s: Any) -> None:
    """(23) J^c_i = J_i + sum Ad^T J^c_j Ad, into S_INERTIA. After `configure`."""
    n = s.shape[0] - 1
    for j in range(n + 1):
        for k in range(21):
            s[j, L.S_INERTIA + k] = constant[j, L.C_INERTIA + k]
    m = L.S_INERTIA
    for j in range(n, 0, -1):
        add_inertia(
            s, topology[j, L.T_PARENT], j,
            s[j, m], s[j, m + 1], s[j, m + 2], s[j, m + 3], s[j, m + 4], s[j, m + 5],
            s[j, m + 6], s[j, m + 7], s[j, m + 8], s[j, m + 9], s[j, m + 10], s[j, m + 11],
            s[j, m + 12], s[j, m + 13], s[j, m + 14],
            s[j, m + 15], s[j, m + 16], s[j, m + 17], s[j, m + 18], s[j, m + 19], s[j, m + 20],
        )  # fmt: skip


@kernel
def fill_mass_matrix(topology: Any, constant: Any, s: Any, out: Any) -> None:
    """out (6 + n, 6 + n) but for its base block: columns S^T J^c_j carried up the tree. After `compose`."""
    n = s.shape[0] - 1
    m = L.S_INERTIA
    for j in range(1, n + 1):
        if topology[j, L.T_KIND] == L.REVOLUTE:
            fx, fy, fz = s[j, m + 8], s[j, m + 11], s[j, m + 14]
            mx, my, mz = s[j, m + 17], s[j, m + 19], s[j, m + 20]
            own = mz
        else:
            fx, fy, fz = s[j, m + 2], s[j, m + 4], s[j, m + 5]
            mx, my, mz = s[j, m + 12], s[j, m + 13], s[j, m + 14]
            own = fz
        out[5 + j, 5 + j] = own + constant[j, L.C_ROTOR]
        i = j
        while i > 0:
            fx, fy, fz = into_parent(s, i, fx, fy, fz)
            mx, my, mz = into_parent(s, i, mx, my, mz)
            tx, ty, tz = cross(s[i, L.S_POS], s[i, L.S_POS + 1], s[i, L.S_POS + 2], fx, fy, fz)
            mx, my, mz = mx + tx, my + ty, mz + tz
            i = topology[i, L.T_PARENT]
            if i > 0:
                entry = mz if topology[i, L.T_KIND] == L.REVOLUTE else fz
                out[5 + i, 5 + j] = entry
                out[5 + j, 5 + i] = entry
        for k, entry in enumerate((fx, fy, fz, mx, my, mz)):
            out[k, 5 + j] = entry
            out[5 + j, k] = entry


def composite_inertia(model: Model, state: State) -> Array:
    """(6, 6) inertia of the whole mechanism, joints locked, about the base's origin, base frame; added mass too."""
    s = prepared(model, state)
    compose(model.topology, model.constant, s)
    return unpack_inertia(s[0, L.S_INERTIA : L.S_INERTIA + 21])


def mass_matrix(model: Model, state: State) -> Array:
    """M (v, v), v = model.velocities, of (base twist, qd) for a free base, else of qd; rotors, added mass too."""
    s = prepared(model, state)
    compose(model.topology, model.constant, s)
    out = np.zeros((6 + model.n, 6 + model.n), dtype=s.dtype)
    out[:6, :6] = unpack_inertia(s[0, L.S_INERTIA : L.S_INERTIA + 21])
    fill_mass_matrix(model.topology, model.constant, s, out)
    return out if model.base_mode == L.BASE_FREE else np.ascontiguousarray(out[6:, 6:])
