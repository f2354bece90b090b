"""Energy and momentum of a mechanism, added mass included."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rtmms.dynamics.kinematics import centre_of_mass
from rtmms.dynamics.prepare import prepared
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
from rtmms.spatial import Array, unpack_inertia


class Energy(NamedTuple):
    """J. kinetic: bodies, added mass, rotors; gravity: weight less buoyancy, 0 at z = 0; elastic: springs."""

    kinetic: float
    gravity: float
    elastic: float

    @property
    def total(self) -> float:
        return self.kinetic + self.gravity + self.elastic


def energy(model: Model, state: State) -> Energy:
    """Kinetic, gravity's and elastic energy (J) of a state."""
    s = prepared(model, state)
    kinetic, weight = 0.0, np.zeros(3)
    for row, c in zip(s, model.constant, strict=True):
        twist = row[S_TWIST : S_TWIST + 6]
        kinetic += 0.5 * twist @ unpack_inertia(c[C_INERTIA : C_INERTIA + 21]) @ twist
        rotation = row[S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3)
        weight = weight + c[C_WEIGHT] * row[S_WORLD_POS : S_WORLD_POS + 3]
        weight = weight + rotation @ c[C_WEIGHT_MOMENT : C_WEIGHT_MOMENT + 3]
    joints = model.constant[1:]
    kinetic += 0.5 * np.sum(joints[:, C_ROTOR] * state.qd**2)
    elastic = 0.5 * np.sum(joints[:, C_STIFFNESS] * (state.q - joints[:, C_REST]) ** 2)
    return Energy(kinetic, -model.gravity @ weight, elastic)  # type: ignore[arg-type]


def momentum(model: Model, state: State, about: str = "origin") -> Array:
    """(6,) N s, N m s, world frame: linear, and angular about the world's 'origin' or the 'centre' of mass."""
    if about not in ("origin", "centre"):
        raise ValueError(f"about must be 'origin' or 'centre', got '{about}'")
    s = prepared(model, state)
    out = np.zeros(6, dtype=s.dtype)
    for row, c in zip(s, model.constant, strict=True):
        p = unpack_inertia(c[C_INERTIA : C_INERTIA + 21]) @ row[S_TWIST : S_TWIST + 6]
        rotation = row[S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3)
        linear = rotation @ p[:3]
        out[:3] += linear
        out[3:] += rotation @ p[3:] + np.cross(row[S_WORLD_POS : S_WORLD_POS + 3], linear)
    if about == "centre":
        out[3:] -= np.cross(centre_of_mass(model, state), out[:3])
    return out
