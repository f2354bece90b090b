"""Energy and momentum of a mechanism, added mass included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rtmms.dynamics.kinematics import centre_of_mass
from rtmms.dynamics.prepare import prepared
from rtmms.jit import kernel
from rtmms.model.compiled import Model, State
from rtmms.model.layout import (
    C_INERTIA,
    C_REST,
    C_ROTOR,
    C_STIFFNESS,
    C_WEIGHT,
    C_WEIGHT_MOMENT,
    S_TWIST,
    S_WORLD_POS,
    S_WORLD_ROT,
)  # fmt: skip
from rtmms.spatial import PACKED_SIZE, Array, times, unpack_inertia


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
