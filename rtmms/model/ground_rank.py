"""Compute rows of contact at a shape, in plain numpy: A (m, 6) on the base's twist, B (m, n) on the joints' rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import PACKED_SIZE, Array, unpack_inertia
from rtmms.model import layout as at
from rtmms.model.compiled import Model
from rtmms.model.contact_rows import G_BODY, G_GAIN, G_JOINT, G_ROW

RANK = 1e-9
"""Part of the largest singular value below which a singular value is 0."""


TWIST = ("Vx", "Vy", "Vz", "Wx", "Wy", "Wz")
WEAK = 1e-4
"""Part of the largest singular value below which a singular value is reported as weak."""


@dataclass(frozen=True)
class Rank:
    """The rank of A at a shape.

    Parameters
    ----------
    rank : int
        Number of singular values with s / s1 > 1e-9.
    singular : (min(m, 6),) array
        Singular values over the largest.
    weak : bool
        Whether the least of those that count is below 1e-4.
    free : tuple[str, ...]
        Components of the base's twist that the rows leave free, or nearly free: 'Vx', ...
    joints : tuple[str, ...]
        Joints whose angles reduce the rank: with another angle the rank would be full.
    """

    rank: int
    singular: Array
    weak: bool
    free: tuple[str, ...]
    joints: tuple[str, ...]

    def sentence(self) -> str:
        """Return the loss of rank, and the joints that cause it, as a sentence.

        Returns
        -------
        str
            For a user.
        """
        where = f", where {', '.join(self.joints)} stand" if self.joints else ""
        least = f" (all but: least singular value {self.singular[self.rank - 1]:.2g})" if self.weak else ""
        return f"the contacts leave {', '.join(self.free)} free{where}: A has rank {self.rank} of 6{least}"


def carries(model: Model, q: Any) -> list[Array]:
    """Return the maps from (base twist, qd) to the twists of the compiled bodies, in their own frames.

    Parameters
    ----------
    model : Model
        Compiled model.
    q : (n,) array_like
        Joint positions, rad or m; complex ones too.

    Returns
    -------
    list of (6, 6 + n) array
        One for each row of the model.
    """
    q = np.asarray(q)
    kind = complex if np.iscomplexobj(q) else float
    out = [np.zeros((6, 6 + model.n), dtype=kind) for _ in range(model.n + 1)]
    out[0][:, :6] = np.eye(6)
    for j in range(1, model.n + 1):
        c, rotation, position = model.constant[j], np.zeros((3, 3), dtype=kind), np.zeros(3, dtype=kind)
        fixed = c[at.C_ROT : at.C_ROT + 9].reshape(3, 3)
        rotation[:], position[:] = fixed, c[at.C_POS : at.C_POS + 3]
        axis = 5
        if model.topology[j, at.T_KIND] == at.REVOLUTE:
            co, si = np.cos(q[j - 1]), np.sin(q[j - 1])
            rotation = fixed @ np.array([[co, -si, 0.0], [si, co, 0.0], [0.0, 0.0, 1.0]])
        else:
            position, axis = position + q[j - 1] * fixed[:, 2], 2
        x, y, z = position
        x6 = np.zeros((6, 6), dtype=kind)
        x6[:3, :3] = x6[3:, 3:] = rotation.T
        x6[:3, 3:] = -rotation.T @ np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        out[j] = x6 @ out[model.parent(j)]
        out[j][axis, 5 + j] += 1.0
    return out


def contact_rows(model: Model, q: Any) -> tuple[Array, Array]:
    """Return A and B at a shape, with A eta + B qd = 0 and eta the base's twist in its frame.

    Parameters
    ----------
    model : Model
        Compiled model with contacts.
    q : (n,) array_like
        Joint positions, rad or m; complex ones too.

    Returns
    -------
    (array, array)
        A (m, 6) and B (m, n).
    """
    ground, carried = model.ground, carries(model, q)
    whole = np.zeros((len(ground.rows), 6 + model.n), dtype=carried[0].dtype)
    for i, row in enumerate(ground.rows):
        whole[i] = row[G_ROW:] @ carried[int(row[G_BODY])]
        if row[G_JOINT]:
            whole[i, 5 + int(row[G_JOINT])] += row[G_GAIN]
    return whole[:, :6], whole[:, 6:]


def scaled(model: Model, whole: Array) -> Array:
    """Return rows with the columns of angles divided by the ground's length, so that columns are comparable.

    Parameters
    ----------
    model : Model
        Compiled model with contacts.
    whole : (m, 6) or (m, 6 + n) array
        Rows on (base twist, qd).

    Returns
    -------
    (m, 6) or (m, 6 + n) array
        Scaled rows.
    """
    size = np.ones(6 + model.n)
    size[3:6] = model.ground.length
    size[6:][model.topology[1:, at.T_KIND] == at.REVOLUTE] = model.ground.length
    return whole / size[: whole.shape[1]]


def rank_of(model: Model, q: Array) -> Rank:
    """Return how many components of the base's twist the rows determine at a shape.

    Parameters
    ----------
    model : Model
        Compiled model with contacts.
    q : (n,) array
        Joint positions, rad or m.

    Returns
    -------
    Rank
        The rank, and what is free.
    """
    a = scaled(model, contact_rows(model, q)[0])
    _, s, v = np.linalg.svd(a)
    part = np.concatenate([s / s[0], np.zeros(6 - len(s))])
    count = int(np.sum(part > RANK))
    left = v[part < WEAK]
    free = tuple(name for name, size in zip(TWIST, np.abs(left).max(axis=0, initial=0.0), strict=True) if size > 1e-3)
    joints: list[str] = []
    if len(left):
        for k in range(model.n):  # whether the rows would hold what is free if joint k stood elsewhere
            moved = q.copy()
            moved[k] += 0.1
            if np.linalg.norm(scaled(model, contact_rows(model, moved)[0]) @ left.T) > 1e-6 * s[0]:
                joints.append(model.joint_names[k])
    return Rank(count, part[: len(s)], bool(part[max(count - 1, 0)] < WEAK), free, tuple(joints))


def check_on_ground(model: Model, where: str) -> None:
    """Check that every motion that the contacts leave free moves inertia, at one generic shape.

    Parameters
    ----------
    model : Model
        Compiled model with contacts.
    where : str
        Name of the mechanism, for the message.

    Raises
    ------
    ModelError
        A free motion moves no inertia; the message names its components.
    """
    q = 0.3 * np.sin(1.0 + 1.7 * np.arange(model.n))
    carried, free = carries(model, q), np.concatenate([np.ones(6, dtype=bool), ~model.imposed])
    a, b = contact_rows(model, q)
    mass = sum(
        x.T @ unpack_inertia(c[at.C_INERTIA : at.C_INERTIA + PACKED_SIZE]) @ x
        for x, c in zip(carried, model.constant, strict=True)
    ) + np.diag(np.concatenate([np.zeros(6), model.constant[1:, at.C_ROTOR]]))
    _, s, v = np.linalg.svd(scaled(model, np.hstack([a, b]))[:, free])
    rank = int(np.sum(s > RANK * s[0]))
    kernel = v[rank:].T / np.where(free, _sizes(model), 1.0)[free][:, None]
    left = kernel.T @ mass[np.ix_(free, free)] @ kernel
    if left.size == 0:
        return
    size = np.sqrt(np.maximum(np.diag(left), 0.0))
    scale = float(np.trace(mass[:3, :3])) / 3.0
    values, vectors = np.linalg.eigh(left)
    if values[0] > 1e-12 * max(scale, float(size.max()) ** 2):
        return
    motion = kernel @ vectors[:, 0]
    names = np.array(["vx", "vy", "vz", "wx", "wy", "wz", *model.joint_names])[free]
    worst = names[np.abs(motion) > 0.1 * np.abs(motion).max()]
    raise ModelError(
        f"{where}: the contacts allow a motion of {', '.join(map(str, worst[:6]))} that has no inertia; give its "
        "bodies mass and inertia, or add a contact that prevents it"
    )


def _sizes(model: Model) -> Array:
    """Return the columns' sizes, (6 + n,), see `scaled`."""
    return np.asarray(scaled(model, np.ones((1, 6 + model.n)))[0] ** -1)
