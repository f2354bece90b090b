"""Why the ground does not allow a motion: which rows, which joints, and which of them would have to follow."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from rtmms.base.spatial import Array
from rtmms.model.compiled import Model
from rtmms.model.ground_rank import RANK, contact_rows, rank_of, scaled


def excess(model: Model, q: Array) -> tuple[Array, Array]:
    """What redundant rows ask of the joints that are imposed.

    Returns U2 (m, d), combinations of rows that neither the base nor a passive joint can serve, and U2^T B (d, n), 0 in
    the columns of passive joints: compatible are the rates with U2^T B qd = 0.
    """
    a, b = contact_rows(model, q)
    free = np.concatenate([np.ones(6, dtype=bool), ~model.imposed])
    u, s, _ = np.linalg.svd(scaled(model, np.hstack([a, b]))[:, free])
    u2 = u[:, int(np.sum(s > RANK * s[0])) :]
    return u2, np.where(model.imposed, u2.T @ b, 0.0)


def followers(model: Model, q: Array) -> tuple[str, ...]:
    """Joints that have to follow the others so that all rows can hold: of a QR factorisation with pivots."""
    _, asked = excess(model, q)
    if asked.size == 0 or not np.any(np.abs(asked) > 1e-12):
        return ()
    _, r, pivots = qr(asked, pivoting=True, mode="economic")
    size = np.abs(np.diag(r))
    return tuple(model.joint_names[j] for j in sorted(pivots[: int(np.sum(size > RANK * size[0]))]))


def contradiction(model: Model, vector: Array, step: int | None = None) -> tuple[str, str]:
    """(what, why) of a state vector (13 + 2 n,) whose imposed joints move against the ground."""
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
        f"{_one(joints, 'moves', 'move')} against the ground{'' if step is None else f' in step {step}'}: of the rows "
        f"{_listed(rows)}, which depend on each other, '{model.ground.names[worst]}' slips by "
        f"{abs(slip[worst]):.3g} m/s{more}",
    )


def thrown(model: Model, vector: Array, step: int) -> tuple[str, str]:
    """(what, why) of a state vector whose contacts are all but singular."""
    n = model.n
    twist, qd = vector[7 + n : 13 + n], vector[13 + n :]
    found = rank_of(model, vector[7 : 7 + n])
    return (
        "the base",
        f"is thrown about at {np.abs(twist[:3]).max():.3g} m/s by joints at {np.abs(qd).max(initial=0.0):.3g} rad/s in "
        f"step {step}: {found.sentence()}; keep away from that shape, or let a joint follow (drive='torque')",
    )


def _one(names: list[str], single: str, several: str) -> str:
    return single if len(names) == 1 else several


def _listed(names: list[str] | tuple[str, ...]) -> str:
    """At most six of them."""
    shown = ", ".join(f"'{name}'" for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")
