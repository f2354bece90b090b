"""Rows of contact of a mechanism at a shape, A eta + B rd = 0, and what they decide (Boyer 2015, eqs 17 and 18).

eta is the base's twist in its own frame, [linear; angular]; shapes are in the order of `model.joint_names`. Angular
columns are divided by the contacts' length before singular values are compared.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rtmms.errors import ModelError, RtmmsWarning
from rtmms.mechanism.contradiction import followers
from rtmms.model.compiled import Model
from rtmms.model.ground_rank import RANK, TWIST, Rank, contact_rows, rank_of, scaled
from rtmms.spatial import Array


def _shape(model: Model, r: Any) -> Array:
    q = np.asarray(r, dtype=complex if np.iscomplexobj(r) else float)
    if q.shape != (model.n,):
        raise ModelError(f"{model.name}: a shape must be numbers of shape ({model.n},), got {q.shape}")
    if not np.all(np.isfinite(q)):
        raise ModelError(f"{model.name}: a shape must be finite, got {q.tolist()}")
    if not len(model.ground.rows):
        raise ModelError(f"{model.name}: it has no contacts; give it axles, wheels or planes (Mechanism.contacts)")
    return q


def rows(model: Model, r: Any) -> tuple[Array, Array]:
    """A (m, 6) and B (m, n) at a shape r (n,); complex shapes give complex rows. Row i is `model.ground.names[i]`."""
    return contact_rows(model, _shape(model, r))


def rank(model: Model, r: Any) -> Rank:
    """What the rows decide of the base's twist at a shape r (n,)."""
    return rank_of(model, _shape(model, r).real)


def nonholonomic(model: Model, r: Any) -> Array:
    """(6, n) the nonholonomic connection A^+ B: eta = -A^+ B rd where the rows decide the whole twist.

    Of redundant rows the rates must be compatible, see `rates`. ModelError where the rank of A falls below 6: what is
    free, and the joints; an RtmmsWarning where it all but does.
    """
    q = _shape(model, r)
    found = rank(model, q)
    if found.rank < 6:
        raise ModelError(f"{model.name}: {found.told()}; dynamics decides there, not the shape's motion alone")
    if found.weak:
        warnings.warn(f"{model.name}: {found.told()}", RtmmsWarning, stacklevel=2)
    a, b = contact_rows(model, q)
    size = scaled(model, np.ones((1, 6)))[0]
    a = a * size  # (A^T A)^-1 A^T, which takes complex numbers
    own, form = a.T @ a, np.linalg.solve(a.T @ a, a.T @ b)
    for _ in range(2):  # what forming A^T A cost
        form = form + np.linalg.solve(own, a.T @ (b - a @ form))
    out: Array = size[:, None] * form
    return out


def rates(model: Model, r: Any, rd: Any, twist: Any = None) -> tuple[Array, Array]:
    """(eta (6,), rd (n,)) of a shape, what is NaN following from what is given and the rows.

    rd     (n,) rad/s or m/s, NaN for joints that follow
    twist  (6,) m/s, rad/s, NaN for what follows (all, without it)
    ModelError where the rows do not decide it, or where what is given contradicts them: the joints, and which would
    have to follow.
    """
    q = _shape(model, r)
    eta = np.full(6, np.nan) if twist is None else np.array(twist, dtype=float)
    rate = np.array(rd, dtype=float)
    if rate.shape != (model.n,) or eta.shape != (6,):
        raise ModelError(f"{model.name}: rates must have shapes ({model.n},) and (6,), got {rate.shape}, {eta.shape}")
    given = np.concatenate([eta, rate])
    open_ = np.isnan(given)
    whole = np.hstack(contact_rows(model, q))
    size = scaled(model, np.ones((1, 6 + model.n)))[0]
    right = -whole[:, ~open_] @ given[~open_]
    u, s, v = np.linalg.svd(whole[:, open_] * size[open_])
    count = int(np.sum(s > RANK * s[0])) if len(s) else 0
    if count < open_.sum():
        loose = v[count:] @ np.diag(size[open_])
        names = np.array([*TWIST, *model.joint_names])[open_]
        free = names[np.abs(loose).max(axis=0) > 1e-6]
        raise ModelError(
            f"{model.name}: the contacts leave {', '.join(map(str, free))} free; give them, or use dynamics"
        )
    left = u[:, count:].T @ right
    scale = float(np.abs(given[~open_] / size[~open_]).max(initial=0.0))
    if np.any(np.abs(left) > 1e-9 * max(scale, 1e-300)):
        follow = followers(model, q)
        hint = f"; let {', '.join(follow)} follow" if follow else ""
        moved = [model.joint_names[k] for k in np.flatnonzero(~open_[6:])]
        raise ModelError(
            f"{model.name}: the rates of {', '.join(moved)} contradict the contacts by "
            f"{np.abs(left).max():.3g} m/s{hint}"
        )
    given[open_] = size[open_] * (v[:count].T @ ((u[:, :count].T @ right) / s[:count]))
    return given[:6], given[6:]
