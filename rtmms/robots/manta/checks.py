"""Steps and couplings that cannot hold are refused when a manta is built, with the bound and the ways out."""

from __future__ import annotations

import numpy as np

from rtmms.errors import ModelError
from rtmms.robots.manta.coupling.layout import (
    IMPLICIT,
    ITERATED,
    MONOLITHIC,
    POSITION,
    RK4,
    SEQUENTIAL,
    SUPPORTS,
    W_ACC,
    W_INERTIA,
    W_POSE,
    W_TWIST,
    W_TWIST_FIN,
    W_WATER,
)
from rtmms.robots.manta.coupling.sequential import spectral_radius
from rtmms.robots.manta.coupling.stage import stage
from rtmms.robots.manta.coupling.step_rk4 import largest_step
from rtmms.robots.manta.kernels.fin_layout import ADDED
from rtmms.robots.manta.kernels.support import POINT, ROTATION, SUPPORT_SIZE
from rtmms.robots.manta.model import Array, MantaModel


def check_step(model: MantaModel, dt: float) -> None:
    """ModelError where explicit RK4 cannot hold the chains at this step."""
    if model.finned["integrator"][0] == RK4:
        largest = largest_step(model.links)
        if dt > largest:
            raise ModelError(
                f"dt: integrator rk4 needs dt <= {largest:.3g} s for these chains, got {dt:g} s; "
                "the implicit integrator has no such limit"
            )


def fins_inertia(
    model: MantaModel,
    param: Array,
    state: Array,
    fins: Array,
    work: Array,
    many: int | None,
    normals: Array | None,
    g: float,
) -> Array:
    """(6, 6) inertia of both fins as the body feels it through one step, about its mass centre, at the present state.

    g is gamma dt of the implicit method: the larger, the more the damped joints act as locked; 0 for an explicit one.
    """
    finned, body = model.finned[0], model.body[0]
    fins[:] = 0.0
    work[W_TWIST : W_TWIST + 6] = 0.0
    work[W_TWIST_FIN : W_TWIST_FIN + 6] = 0.0
    work[W_POSE : W_POSE + 7] = state[POSITION : POSITION + 7]
    work[W_WATER : W_WATER + 3] = 0.0
    acc = work[W_ACC : W_ACC + 6]
    acc[:] = 0.0
    stage(MONOLITHIC, finned, body, param, state, SUPPORTS, acc, g, 0.0, 0.0, 0.0, many, None, normals, fins, work, acc)
    total = np.zeros((6, 6))
    for f in range(2):
        s = state[SUPPORTS + f * SUPPORT_SIZE :]
        rotation = s[ROTATION : ROTATION + 9].reshape(3, 3)
        x, y, z = finned["root"] + s[POINT : POINT + 3]
        hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        to_support = np.block([[rotation.T, -rotation.T @ hat], [np.zeros((3, 3)), rotation.T]])
        mirror = np.diag([1.0, 1.0 - 2 * f, 1.0, 1.0 - 2 * f, 1.0, 1.0 - 2 * f])
        inertia = work[W_INERTIA + 36 * f : W_INERTIA + 36 * (f + 1)].reshape(6, 6)
        total += mirror @ to_support.T @ inertia @ to_support @ mirror
    return total


def check_coupling(
    model: MantaModel, param: Array, state: Array, fins: Array, work: Array, many: int | None, normals: Array | None
) -> None:
    """Fill in the iterated coupling's relaxation, and refuse a sequential coupling that would blow up."""
    finned = model.finned[0]
    body = finned["body_matrix"].reshape(6, 6)
    explicit = finned["integrator"] != IMPLICIT
    g = 0.0 if explicit else float(finned["gamma"] * finned["dt"])
    if finned["coupling"] == ITERATED:
        # locked joints: an implicit step of infinite length
        locked = fins_inertia(model, param, state, fins, work, many, normals, 1e6)
        finned["relaxation"] = np.linalg.inv(body + 0.5 * (locked + locked.T)).ravel()
    if finned["coupling"] == SEQUENTIAL and not model.body["fixed"][0]:
        radius = spectral_radius(body, fins_inertia(model, param, state, fins, work, many, normals, g))
        if radius >= 1.0:
            off = "turn added_mass off or " if model.links[ADDED].any() else ""
            raise ModelError(
                f"coupling sequential: would be unstable, the spectral radius of M_b^-1 M_A is {radius:.3g} and must "
                f"be below 1; use coupling iterated or monolithic ({off}make the body heavier otherwise)"
            )
