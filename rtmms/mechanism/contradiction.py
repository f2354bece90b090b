"""Explain why the ground does not allow a motion: rows and joints that contradict, and joints that would follow."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from rtmms.base.spatial import Array
from rtmms.model.compiled import Model
from rtmms.model.ground_rank import RANK, contact_rows, rank_of, scaled


def excess(model: Model, q: Array) -> tuple[Array, Array]:
    """Return the conditions that redundant rows impose on imposed joints.

    Parameters
    ----------
    model : Model
        Compiled tree with contacts.
    q : (n,) array
        Joint positions, rad or m.

    Returns
    -------
    (array, array)
        U2 (m, d), combinations of rows that neither the base nor a passive joint can satisfy. U2^T B (d, n), 0 in the
        columns of passive joints: rates with U2^T B qd = 0 are compatible.
    """
    a, b = contact_rows(model, q)
    free = np.concatenate([np.ones(6, dtype=bool), ~model.imposed])
    u, s, _ = np.linalg.svd(scaled(model, np.hstack([a, b]))[:, free])
    u2 = u[:, int(np.sum(s > RANK * s[0])) :]
    return u2, np.where(model.imposed, u2.T @ b, 0.0)


def followers(model: Model, q: Array) -> tuple[str, ...]:
    """Return joints that must follow the others so that all rows can hold, by a QR factorisation with pivots.

    Parameters
    ----------
    model : Model
        Compiled tree with contacts.
    q : (n,) array
        Joint positions, rad or m.

    Returns
    -------
    tuple[str, ...]
        Names; empty where every motion is compatible.
    """
    _, asked = excess(model, q)
    if asked.size == 0 or not np.any(np.abs(asked) > 1e-12):
        return ()
    _, r, pivots = qr(asked, pivoting=True, mode="economic")
    size = np.abs(np.diag(r))
    return tuple(model.joint_names[j] for j in sorted(pivots[: int(np.sum(size > RANK * size[0]))]))


def contradiction(model: Model, vector: Array, step: int | None = None) -> tuple[str, str]:
    """Return what contradicts the ground in a state whose imposed joints move against it, and why.

    Parameters
    ----------
    model : Model
        Compiled tree with contacts.
    vector : (13 + 2 n,) array
        State vector.
    step : int, optional
        Number of the step, for the text; None at the start.

    Returns
    -------
    (str, str)
        Subject and reason, as a sentence.
    """
    n = model.n
    q, twist, qd = vector[7 : 7 + n], vector[7 + n : 13 + n], vector[13 + n :]
    a, b = contact_rows(model, q)
    slip = a @ twist + b @ qd
    worst = int(np.argmax(np.abs(slip)))
    u2, asked = excess(model, q)
    rows = [model.ground.names[k] for k in np.flatnonzero(np.abs(u2).max(axis=1, initial=0.0) > 1e-6)]
    joints = [model.joint_names[k] for k in np.flatnonzero(np.abs(asked).max(axis=0, initial=0.0) > 1e-9)]
    follow = followers(model, q)
    more = f"; let {_listed(follow)} follow (drive='torque')" if follow else ""
    return (
        f"joint{'s' if len(joints) > 1 else ''} {_listed(joints)}",
        f"{_choose_plural(joints, 'moves', 'move')} against the "
        f"ground{'' if step is None else f' in step {step}'}: of the rows "
        f"{_listed(rows)}, which depend on each other, '{model.ground.names[worst]}' slips by "
        f"{abs(slip[worst]):.3g} m/s{more}",
    )


def divergence(model: Model, vector: Array, step: int) -> tuple[str, str]:
    """Return what diverges in a state whose contacts are nearly singular, and why.

    Parameters
    ----------
    model : Model
        Compiled tree with contacts.
    vector : (13 + 2 n,) array
        State vector.
    step : int
        Number of the step, for the text.

    Returns
    -------
    (str, str)
        Subject and reason, as a sentence.
    """
    n = model.n
    twist, qd = vector[7 + n : 13 + n], vector[13 + n :]
    result = rank_of(model, vector[7 : 7 + n])
    return (
        "the base",
        f"is thrown about at {np.abs(twist[:3]).max():.3g} m/s by joints at {np.abs(qd).max(initial=0.0):.3g} rad/s in "
        f"step {step}: {result.sentence()}; keep away from that shape, or let a joint follow (drive='torque')",
    )


def _choose_plural(names: list[str], single: str, several: str) -> str:
    return single if len(names) == 1 else several


def _listed(names: list[str] | tuple[str, ...]) -> str:
    """Return at most six names as text."""
    shown = ", ".join(f"'{name}'" for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")
