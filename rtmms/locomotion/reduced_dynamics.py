"""Compute the reduced dynamics of Boyer and Porez (2015) by dense matrices, and the constraints that decide a motion.

It gives users the rank, the kernel, and the reactions with their unique part. The plants get the same accelerations
from rtmms.dynamics.ground, without a large matrix. eta is the base's twist in its own frame, [linear; angular]; shapes
are in the order of `model.joint_names`.

Notes
-----
Boyer and Porez 2015, eqs 19-20 and 25-28, corrected. With nu = (eta, rates of passive joints), C = [A B_p], D = B_a,
and M bordered by the passive blocks:

    nu' = a_p + H (H^T M H)^-1 H^T (F - M a_p),   a_p = -C^+ (gamma + D rdd),   H = ker C

Rows of contact at a shape, A eta + B rd = 0, and what they decide: eqs 17 and 18. Angular columns are divided by the
contacts' length before singular values are compared.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, RtmmsWarning
from rtmms.base.spatial import Array
from rtmms.dynamics import bias, mass_matrix
from rtmms.dynamics.hybrid import vector
from rtmms.mechanism.contradiction import followers
from rtmms.model.compiled import Model, State
from rtmms.model.ground_rank import RANK, TWIST, Rank, contact_rows, rank_of, scaled

MINIMISED = ("reaction", "torque")


@dataclass(frozen=True)
class Reduced:
    """A mechanism on the ground at one state.

    Where rows are redundant, `reaction` and `torque` are a choice; the other fields are unique.

    Attributes
    ----------
    base_acceleration : (6,) array
        Component derivative of eta, base frame.
    qdd : (n,) array
        Derivative of rd.
    rank : int
        Rank of C.
    mobility : int
        Columns of H: the number of motions that dynamics decides.
    kernel : (6 + n, mobility) array
        H; rows of imposed joints are 0.
    ground_wrench : (6,) array
        A^T lambda on the base.
    load : (n,) array
        torque + B^T lambda.
    power : float
        torque . rd, W.
    reaction : (m,) array
        lambda of each row.
    torque : (n,) array
        Torques of the imposed joints, and those given.
    unique : bool
        Whether there was no choice.
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
    """Return gamma = A' eta + B' rd, exactly: a complex step gives the derivative along qd.

    Parameters
    ----------
    model : Model
        Compiled model.
    q : (n,) array
        Shape, rad or m.
    qd : (n,) array
        Rates of the shape.
    eta : (6,) array
        Twist of the base, its frame.

    Returns
    -------
    (m,) array
        One number for each row.
    """
    a, b = contact_rows(model, q + 1e-30j * qd)
    out: Array = (np.hstack([a, b]).imag / 1e-30) @ np.concatenate([eta, qd])
    return out


def reduced(model: Model, state: State, drive: Any, *, wrench: Any = None, least: str = "reaction") -> Reduced:
    """Compute accelerations and reactions of a mechanism on the ground.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        Its state.
    drive : (n,) array_like
        The acceleration of each imposed joint, the torque of each other.
    wrench : (bodies, 6) array_like, optional
        Wrench from outside on each described body; None for none.
    least : str, default 'reaction'
        Quantity that is least where the reactions are not unique: 'reaction' or 'torque'.

    Returns
    -------
    Reduced
        Accelerations and reactions.

    Raises
    ------
    ModelError
        An argument has another shape, or the imposed accelerations contradict the rows.
    """
    if least not in MINIMISED:
        raise ModelError(f"{model.name}: least must be one of {', '.join(MINIMISED)}, got '{least}'")
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
            f"{model.name}: expected imposed accelerations that the contacts allow, got a contradiction of up to "
            f"{np.abs(wrong).max():.3g}; impose other accelerations"
        )
    particular = size[free] * (v[:rank].T @ ((u[:, :rank].T @ right) / s[:rank]))
    h = size[free][:, None] * v[rank:].T
    free_mass = m[np.ix_(free, free)]
    answer = particular
    if h.shape[1]:
        answer = particular + h @ np.linalg.solve(h.T @ free_mass @ h, h.T @ (force - free_mass @ particular))
    nu[free] = answer
    reaction = np.linalg.lstsq(whole[:, free].T, free_mass @ answer - force, rcond=RANK)[0]
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


def _shape(model: Model, r: Any) -> Array:
    """Return a shape as an array, or raise ModelError where it is wrong or the model has no contacts."""
    q = np.asarray(r, dtype=complex if np.iscomplexobj(r) else float)
    if q.shape != (model.n,):
        raise ModelError(f"{model.name}: a shape must be numbers of shape ({model.n},), got {q.shape}")
    if not np.all(np.isfinite(q)):
        raise ModelError(f"{model.name}: a shape must be finite, got {q.tolist()}")
    if not len(model.ground.rows):
        raise ModelError(f"{model.name}: contacts: expected axles, wheels or planes (Mechanism.contacts), got none")
    return q


def rows(model: Model, r: Any) -> tuple[Array, Array]:
    """Return the rows of contact A and B at a shape; row i is `model.ground.names[i]`.

    Parameters
    ----------
    model : Model
        Compiled model.
    r : (n,) array_like
        Shape, rad or m; complex shapes give complex rows.

    Returns
    -------
    (array, array)
        A (m, 6) and B (m, n).

    Raises
    ------
    ModelError
        The shape is wrong, or the model has no contacts.
    """
    return contact_rows(model, _shape(model, r))


def rank(model: Model, r: Any) -> Rank:
    """Return the part of the base's twist that the rows decide at a shape.

    Parameters
    ----------
    model : Model
        Compiled model.
    r : (n,) array_like
        Shape, rad or m.

    Returns
    -------
    Rank
        Rank of the rows, and the free motions.

    Raises
    ------
    ModelError
        The shape is wrong, or the model has no contacts.
    """
    return rank_of(model, _shape(model, r).real)


def nonholonomic(model: Model, r: Any) -> Array:
    """Return the nonholonomic connection A^+ B: eta = -A^+ B rd where the rows decide the whole twist.

    With redundant rows the rates must be compatible, see `rates`. Where the rank of A almost falls below 6, it warns
    with an RtmmsWarning.

    Parameters
    ----------
    model : Model
        Compiled model.
    r : (n,) array_like
        Shape, rad or m.

    Returns
    -------
    (6, n) array
        A^+ B.

    Raises
    ------
    ModelError
        The rank of A is below 6; the message has the free motions and the joints.
    """
    q = _shape(model, r)
    result = rank(model, q)
    if result.rank < 6:
        raise ModelError(
            f"{model.name}: {result.sentence()}, so the shape alone does not determine the motion; simulate "
            "the dynamics"
        )
    if result.weak:
        warnings.warn(f"{model.name}: {result.sentence()}", RtmmsWarning, stacklevel=2)
    a, b = contact_rows(model, q)
    size = scaled(model, np.ones((1, 6)))[0]
    a = a * size  # (A^T A)^-1 A^T, which takes complex numbers
    gram, form = a.T @ a, np.linalg.solve(a.T @ a, a.T @ b)
    for _ in range(2):  # what forming A^T A cost
        form = form + np.linalg.solve(gram, a.T @ (b - a @ form))
    out: Array = size[:, None] * form
    return out


def rates(model: Model, r: Any, rd: Any, twist: Any = None) -> tuple[Array, Array]:
    """Complete the rates of a shape: the rows give those that are NaN.

    Parameters
    ----------
    model : Model
        Compiled model.
    r : (n,) array_like
        Shape, rad or m.
    rd : (n,) array_like
        rad/s or m/s; NaN for joints that follow.
    twist : (6,) array_like, optional
        m/s, rad/s; NaN for components that follow; None: all follow.

    Returns
    -------
    (array, array)
        eta (6,) and rd (n,).

    Raises
    ------
    ModelError
        The rows do not decide the rates, or the given ones contradict them; the message has the joints, and which would
        have to follow.
    """
    q = _shape(model, r)
    eta = np.full(6, np.nan) if twist is None else np.array(twist, dtype=float)
    rate = np.array(rd, dtype=float)
    if rate.shape != (model.n,) or eta.shape != (6,):
        raise ModelError(f"{model.name}: rates must have shapes ({model.n},) and (6,), got {rate.shape}, {eta.shape}")
    values = np.concatenate([eta, rate])
    open_ = np.isnan(values)
    whole = np.hstack(contact_rows(model, q))
    size = scaled(model, np.ones((1, 6 + model.n)))[0]
    right = -whole[:, ~open_] @ values[~open_]
    u, s, v = np.linalg.svd(whole[:, open_] * size[open_])
    count = int(np.sum(s > RANK * s[0])) if len(s) else 0
    if count < open_.sum():
        loose = v[count:] @ np.diag(size[open_])
        names = np.array([*TWIST, *model.joint_names])[open_]
        free = names[np.abs(loose).max(axis=0) > 1e-6]
        raise ModelError(
            f"{model.name}: the contacts do not determine the rates of {', '.join(map(str, free))}; give these rates, "
            "or simulate the dynamics"
        )
    left = u[:, count:].T @ right
    scale = float(np.abs(values[~open_] / size[~open_]).max(initial=0.0))
    if np.any(np.abs(left) > 1e-9 * max(scale, 1e-300)):
        follow = followers(model, q)
        hint = f"; let {', '.join(follow)} follow" if follow else ""
        moved = [model.joint_names[k] for k in np.flatnonzero(~open_[6:])]
        raise ModelError(
            f"{model.name}: the rates of {', '.join(moved)} contradict the contacts by "
            f"{np.abs(left).max():.3g} m/s{hint}"
        )
    values[open_] = size[open_] * (v[:count].T @ ((u[:, :count].T @ right) / s[:count]))
    return values[:6], values[6:]
