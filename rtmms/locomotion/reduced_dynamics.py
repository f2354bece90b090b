"""The reduced dynamics of Boyer and Porez (2015, eqs 19-20 and 25-28, corrected), by dense matrices, with reactions.

nu = (eta, rates of passive joints), C = [A B_p], D = B_a, M bordered by the passive blocks:

    nu' = a_p + H (H^T M H)^-1 H^T (F - M a_p),   a_p = -C^+ (gamma + D rdd),   H = ker C

The plants get the same from rtmms.dynamics.ground, without a large matrix; here is what people look at: the rank, the
kernel, and the reactions with what of them is unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.dynamics import bias, mass_matrix
from rtmms.dynamics.prepare import vector
from rtmms.errors import ModelError
from rtmms.model.compiled import Model, State
from rtmms.model.ground_rank import RANK, contact_rows, scaled
from rtmms.spatial import Array

LEAST = ("reaction", "torque")


@dataclass(frozen=True)
class Reduced:
    """A mechanism on the ground at one state.

    base_acceleration (6,), qdd (n,)   component derivatives of (eta, rd)
    rank       of C;  mobility  columns of H: what dynamics decides
    kernel     (6 + n, mobility) H, rows of imposed joints 0
    Unique: ground_wrench (6,) A^T lambda on the base; load (n,) torque + B^T lambda; power (W) torque . rd.
    Chosen, where rows are redundant: reaction (m,) lambda of each row, torque (n,) of imposed joints; unique says
    whether there was no choice.
    """

    base_acceleration: Array
    qdd: Array
    rank: int
    mobility: int
    kernel: Array
    ground_wrench: Array
    load: Array
    power: float
    reaction: Array
    torque: Array
    unique: bool


def drift(model: Model, q: Array, qd: Array, eta: Array) -> Array:
    """(m,) gamma = A' eta + B' rd, exact: the derivative along qd by a complex step."""
    a, b = contact_rows(model, q + 1e-30j * qd)
    out: Array = (np.hstack([a, b]).imag / 1e-30) @ np.concatenate([eta, qd])
    return out


def reduced(model: Model, state: State, drive: Any, *, wrench: Any = None, least: str = "reaction") -> Reduced:
    """Accelerations and reactions of a mechanism on the ground.

    drive   (n,) the acceleration of each imposed joint, the torque of each other
    wrench  (bodies, 6) from outside on each described body
    least   what is made least where the reactions are not unique: 'reaction' or 'torque'
    ModelError for wrong shapes, and where the imposed accelerations contradict the rows.
    """
    if least not in LEAST:
        raise ModelError(f"{model.name}: least must be one of {', '.join(LEAST)}, got '{least}'")
    n, held = model.n, np.concatenate([np.zeros(6, dtype=bool), model.imposed])
    drive = vector(drive, (n,), f"{model.name}: drive")
    state.check(model)
    m, c = mass_matrix(model, state), bias(model, state, wrench=wrench)
    whole, free = np.hstack(contact_rows(model, state.q)), ~held
    size = scaled(model, np.ones((1, 6 + n)))[0]
    nu, push = np.zeros(6 + n), np.concatenate([np.zeros(6), drive])
    nu[held] = push[held]
    force = (push - c)[free] - m[np.ix_(free, held)] @ push[held]
    right = -drift(model, state.q, state.qd, state.twist) - whole @ nu
    u, s, v = np.linalg.svd(whole[:, free] * size[free])
    rank = int(np.sum(s > RANK * s[0])) if len(s) else 0
    wrong = u[:, rank:].T @ right
    if np.any(np.abs(wrong) > 1e-8 * (np.abs(right).max(initial=0.0) + np.abs(whole @ nu).max(initial=0.0))):
        raise ModelError(
            f"{model.name}: the imposed accelerations contradict the contacts by {np.abs(wrong).max():.3g}"
        )
    particular = size[free] * (v[:rank].T @ ((u[:, :rank].T @ right) / s[:rank]))
    h = size[free][:, None] * v[rank:].T
    own = m[np.ix_(free, free)]
    answer = particular
    if h.shape[1]:
        answer = particular + h @ np.linalg.solve(h.T @ own @ h, h.T @ (force - own @ particular))
    nu[free] = answer
    reaction = np.linalg.lstsq(whole[:, free].T, own @ answer - force, rcond=RANK)[0]
    total, spare = m @ nu + c, u[:, rank:]
    if least == "torque" and spare.shape[1] and held.any():
        of_torque = whole[:, held].T @ spare
        reaction = reaction + spare @ np.linalg.lstsq(of_torque, (total - whole.T @ reaction)[held], rcond=RANK)[0]
    load = total[6:]
    torque = np.where(model.imposed, load - (whole.T @ reaction)[6:], drive)
    kernel = np.zeros((6 + n, h.shape[1]))
    kernel[free] = h
    return Reduced(
        nu[:6], nu[6:], rank, h.shape[1], kernel, whole[:, :6].T @ reaction, load, float(torque @ state.qd), reaction,
        torque, spare.shape[1] == 0,
    )  # fmt: skip
