"""Steps and couplings that cannot hold are refused when a manta is built, with the bound and the ways out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rtmms.errors import ModelError
from rtmms.robots.manta.coupling.layout import (
    ITERATED,
    SEQUENTIAL,
    SUPPORTS,
    W_INERTIA,
)
from rtmms.robots.manta.coupling.sequential import spectral_radius
from rtmms.robots.manta.coupling.tableaus import GAMMAS, METHODS, STABILITY
from rtmms.robots.manta.kernels.fin_layout import ADDED
from rtmms.robots.manta.kernels.support import POINT, ROTATION, SUPPORT_SIZE
from rtmms.robots.manta.model import Array, MantaModel


def largest_step(links: np.ndarray, limit: float, tip_speed: float = 1.0) -> float:
    """Largest dt (s) at which an explicit method holds every chain, straight and with its root at rest.

    links      (LINK_FIELDS, m, n) of fin_lanes
    limit      |lambda| dt that the method bears (rtmms.mechanism.methods)
    tip_speed  m/s through the water, for the drag's share
    """
    length, mass, j_x, _, _, stiffness, drag, added, damping = links
    m, n = length.shape
    worst = 0.0
    for chain in range(n):
        at = np.concatenate([[0.0], np.cumsum(length[:, chain])])
        middle = 0.5 * (at[1:] + at[:-1])
        lever = np.clip(middle[:, None] - at[None, :-1], 0.0, None) * np.tri(m)
        turn = np.tri(m)
        inertia = lever.T @ np.diag(mass[:, chain] + added[:, chain]) @ lever + turn.T @ np.diag(j_x[:, chain]) @ turn
        slope = 2.0 * drag[:, chain] * tip_speed * middle / at[-1]
        c = np.diag(damping[:, chain]) + lever.T @ np.diag(slope) @ lever
        k = np.diag(stiffness[:, chain] / 4.0)
        inverse = np.linalg.inv(inertia)
        a = np.block([[np.zeros((m, m)), np.eye(m)], [-inverse @ k, -inverse @ c]])
        worst = max(worst, float(np.max(np.abs(np.linalg.eigvals(a)))))
    return limit / worst


def check_step(model: MantaModel, dt: float) -> None:
    """ModelError where an explicit method cannot hold the chains at this step."""
    name = list(METHODS)[model.finned.integrator]
    limit = STABILITY[name]
    if limit is not None:
        largest = largest_step(model.links, limit)
        if dt > largest:
            raise ModelError(
                f"dt: integrator {name} needs dt <= {largest:.3g} s for these chains, got {dt:g} s; "
                "the implicit integrator has no such limit"
            )


def fins_inertia(model: MantaModel, state: Array, work: Array) -> Array:
    """(6, 6) inertia of both fins as the body felt it at the stage just computed, about the body's mass centre."""
    finned = model.finned
    total = np.zeros((6, 6))
    for f in range(2):
        s = state[SUPPORTS + f * SUPPORT_SIZE :]
        rotation = s[ROTATION : ROTATION + 9].reshape(3, 3)
        x, y, z = finned.root + s[POINT : POINT + 3]
        hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        to_support = np.block([[rotation.T, -rotation.T @ hat], [np.zeros((3, 3)), rotation.T]])
        mirror = np.diag([1.0, 1.0 - 2 * f, 1.0, 1.0 - 2 * f, 1.0, 1.0 - 2 * f])
        inertia = work[W_INERTIA + 36 * f : W_INERTIA + 36 * (f + 1)].reshape(6, 6)
        total += mirror @ to_support.T @ inertia @ to_support @ mirror
    return total


def check_coupling(model: MantaModel, state: Array, work: Array, account: Callable[[float], None]) -> None:
    """Fill in the iterated coupling's relaxation, and refuse a sequential coupling that would blow up.

    account  of a g in s: leaves in `work` a stage of the linearly implicit equations over g at the present state (the
             larger g, the more the damped joints act as locked; 0 for an explicit method)
    """
    finned = model.finned
    body = finned.body_matrix.reshape(6, 6)
    if finned.coupling == ITERATED:
        current = finned.current.copy()
        finned.current[:] = 0.0  # in still water: a slope of drag is no inertia, however long the step
        account(1e6)  # locked joints: an implicit step of infinite length
        finned.current[:] = current
        locked = fins_inertia(model, state, work)
        finned.relaxation[:] = np.linalg.inv(body + 0.5 * (locked + locked.T)).ravel()
    if finned.coupling == SEQUENTIAL and not model.body.fixed:
        account(float(GAMMAS[finned.integrator] * finned.dt))
        radius = spectral_radius(body, fins_inertia(model, state, work))
        if radius >= 1.0:
            off = "turn added_mass off or " if model.links[ADDED].any() else ""
            raise ModelError(
                f"coupling sequential: would be unstable, the spectral radius of M_b^-1 M_A is {radius:.3g} and must "
                f"be below 1; use coupling iterated or monolithic ({off}make the body heavier otherwise)"
            )
