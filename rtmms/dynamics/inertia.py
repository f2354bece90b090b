"""Mass matrix, composite inertia, energy and momentum of a mechanism."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.spatial import PACKED_SIZE, Array, cross, times, unpack_inertia
from rtmms.dynamics.hybrid import prepared
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

# Mass matrix and composite inertia: the composite-body recursion (Khalil 2007, eq 23).


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


# Energy and momentum of a mechanism, added mass included.


class Energy(NamedTuple):
    """J. kinetic: bodies, added mass, rotors; gravity: weight less buoyancy, 0 at z = 0; elastic: springs."""

    kinetic: float
    gravity: float
    elastic: float

    @property
    def total(self) -> float:
        return self.kinetic + self.gravity + self.elastic


@kernel
def energies(constant: Any, gravity: Any, q: Any, qd: Any, s: Any, out: Any) -> None:
    """out (3,) J: kinetic, gravity's, elastic; of a scratch after `place` and `outward`."""
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
    """Kinetic, gravity's and elastic energy (J) of a state."""
    s = prepared(model, state)
    out = np.zeros(3, dtype=s.dtype)
    energies(model.constant, model.gravity, state.q.astype(s.dtype), state.qd.astype(s.dtype), s, out)
    return Energy(*out)


def momentum(model: Model, state: State, about: str = "origin") -> Array:
    """(6,) N s, N m s, world frame: linear, and angular about the world's 'origin' or the 'centre' of mass."""
    if about not in ("origin", "centre"):
        raise ValueError(f"about must be 'origin' or 'centre', got '{about}'")
    s = prepared(model, state)
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
