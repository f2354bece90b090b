"""Compile contacts with the ground to rows e . eta_b + gain qd_w = 0 in flat arrays, with every check of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, adjoint
from rtmms.model.contacts import Axle, Contact, Floor, Plane, Wheel
from rtmms.model.solids import Placement

G_BODY, G_JOINT, G_GAIN, G_SIDE, G_ROW = range(5)
"""Columns of a row.

G_BODY: compiled body in whose frame the row is given. G_JOINT: joint (from 1) whose rate counts too, or 0. G_GAIN: its
factor. G_SIDE: whether the row holds in one direction only. G_ROW: e (6,).
"""
G_WIDTH = G_ROW + 6


@dataclass(frozen=True, eq=False)
class Ground:
    """Rows of contact, sorted by body; a model without contacts has none.

    Parameters
    ----------
    rows : (m, G_WIDTH) array
        Sorted by body.
    first : (n + 2,) array of int64
        Index of each body's first row.
    joint : (n + 1,) array of int64
        Row with joint j's rate, or -1.
    names : (m,) tuple of str, default ()
        For example 'link2.axle'.
    length : float, default 1.0
        Divisor of angular parts before a comparison with linear ones, m.
    """

    rows: Array
    first: npt.NDArray[np.int64]
    joint: npt.NDArray[np.int64]
    names: tuple[str, ...] = ()
    length: float = 1.0


def compile_ground(
    contacts: Sequence[Contact], offsets: dict[str, tuple[int, Placement]], joints: dict[str, Any], where: str
) -> Ground:
    """Check contacts and return their rows.

    Parameters
    ----------
    contacts : Sequence[Contact]
        Contacts of the mechanism; floors are skipped.
    offsets : dict[str, tuple[int, Placement]]
        Of each body: its compiled row, and its frame in the row's frame.
    joints : dict[str, Any]
        Of each joint: its description, and the compiled rows of its coordinates.
    where : str
        Name of the mechanism, for messages.

    Returns
    -------
    Ground
        Read-only rows.

    Raises
    ------
    ModelError
        A contact is wrong; the message names it, the value and what is expected.
    """
    built: list[tuple[str, Array]] = []
    for k, contact in enumerate(contacts):
        place = f"{where}: contacts[{k}]"
        if isinstance(contact, Floor):
            continue
        if not isinstance(contact, (Axle, Wheel, Plane)):
            raise ModelError(f"{place}: expected an Axle, a Wheel, a Plane or a Floor, got {contact!r}")
        place = f"{place} ({type(contact).__name__})"
        if isinstance(contact, Wheel):
            built += _wheel(contact, offsets, joints, place)
        else:
            built += _on_body(contact, offsets, place)
    names = [name for name, _ in built]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(
                f"{where}: contacts: {names.count(name)} of them have the name '{name}'; give each its own name"
            )
    count = max((row for row, _ in offsets.values()), default=0) + 1
    count = max(count, 1 + max((r for _, rows in joints.values() for r in rows), default=0))
    order = sorted(range(len(built)), key=lambda i: built[i][1][G_BODY])
    rows = np.array([built[i][1] for i in order]).reshape(-1, G_WIDTH)
    joint = np.full(count, -1, dtype=np.int64)
    for i, row in enumerate(rows):
        if row[G_JOINT]:
            if joint[int(row[G_JOINT])] >= 0:
                name = next(name for name, (_, joint_rows) in joints.items() if joint_rows[0] == int(row[G_JOINT]))
                raise ModelError(f"{where}: contacts: joint '{name}' has two wheels; expected a joint for each wheel")
            joint[int(row[G_JOINT])] = i
    first = np.searchsorted(rows[:, G_BODY], np.arange(count + 1)).astype(np.int64)
    ground = Ground(rows, first, joint, tuple(names[i] for i in order), _length(rows, offsets))
    for array in (ground.rows, ground.first, ground.joint):
        array.flags.writeable = False
    return ground


def _length(rows: Array, offsets: dict[str, tuple[int, Placement]]) -> float:
    """Return the mean lever of the rows, m; 1 where they have none."""
    moment, force = np.linalg.norm(rows[:, G_ROW + 3 :], axis=1), np.linalg.norm(rows[:, G_ROW : G_ROW + 3], axis=1)
    levers = moment[(force > 0.0) & (moment > 1e-9)]
    return float(np.exp(np.mean(np.log(levers)))) if len(levers) else 1.0


def _row(e: Array, pose: Placement, row: int, joint: int = 0, gain: float = 0.0, side: bool = False) -> Array:
    """Return a row given in a frame at `pose` of the compiled body, transformed to the body's frame."""
    out = np.zeros(G_WIDTH)
    out[G_BODY], out[G_JOINT], out[G_GAIN], out[G_SIDE] = row, joint, gain, side
    out[G_ROW:] = e @ adjoint(pose.rotation, pose.position)
    return out


def _pose(body: Any, placement: Any, offsets: dict[str, tuple[int, Placement]], place: str) -> tuple[int, Placement]:
    if body not in offsets:
        raise ModelError(f"{place}: '{body}' is not a body; known: {', '.join(sorted(offsets))}")
    if not isinstance(placement, Placement):
        raise ModelError(f"{place}: placement must be a Placement, got {placement!r}")
    row, offset = offsets[body]
    return row, offset @ placement


def _on_body(
    contact: Axle | Plane, offsets: dict[str, tuple[int, Placement]], place: str
) -> list[tuple[str, Array]]:  # fmt: skip
    row, pose = _pose(contact.body, contact.placement, offsets, place)
    unit = np.eye(6)
    if isinstance(contact, Plane):
        name = contact.name or f"{contact.body}.plane"
        return [(f"{name}.{what}", _row(unit[k], pose, row)) for what, k in (("z", 2), ("roll", 3), ("pitch", 4))]
    return [(contact.name or f"{contact.body}.axle", _row(unit[1], pose, row, side=bool(contact.one_sided)))]


def _wheel(
    wheel: Wheel, offsets: dict[str, tuple[int, Placement]], joints: dict[str, Any], place: str
) -> list[tuple[str, Array]]:  # fmt: skip
    """Return the rows of a rolling wheel: the velocity of its contact point is 0.

    The rows are in the carrier's frame, with the gain -R on the wheel's rate.
    """
    if wheel.joint not in joints:
        raise ModelError(f"{place}: '{wheel.joint}' is not a joint; known: {', '.join(sorted(joints)) or 'none'}")
    joint, rows = joints[wheel.joint]
    if joint.type != "revolute":
        raise ModelError(f"{place}: joint '{wheel.joint}' must be revolute, got '{joint.type}': a wheel turns about it")
    try:
        radius = float(wheel.radius)
        normal = np.array(wheel.normal, dtype=float).reshape(3)
    except (TypeError, ValueError):
        raise ModelError(
            f"{place}: expected a radius in m and a normal of shape (3,), got {wheel.radius!r} and {wheel.normal!r}"
        ) from None
    if not (np.isfinite(radius) and radius > 0.0):
        raise ModelError(f"{place}: radius must be > 0 m, got {wheel.radius!r}")
    size = float(np.linalg.norm(normal))
    if not np.isfinite(size) or size < 1e-12:
        raise ModelError(f"{place}: normal must be finite and not 0, got {normal.tolist()}")
    carrier, offset = offsets[joint.parent]
    axis = joint.axes()[0]
    axis = joint.placement.rotation @ (axis / np.linalg.norm(axis))  # in the parent's frame
    normal = normal / size
    if abs(float(axis @ normal)) > 1e-9:
        raise ModelError(
            f"{place}: the axis of joint '{wheel.joint}' must be level with the ground, got an angle of "
            f"{np.degrees(np.arcsin(abs(float(axis @ normal)))):.3g} deg to it"
        )
    forward = np.cross(axis, normal)  # where it rolls when it turns about its axis in the positive sense
    touch = joint.placement.position - radius * normal
    pose = offset @ Placement(np.column_stack([forward, axis, normal]), touch)
    name, unit = wheel.name or wheel.joint, np.eye(6)
    out = [(f"{name}.rolling", _row(unit[0], pose, carrier, joint=rows[0], gain=-radius))]
    if wheel.lateral:
        out.append((f"{name}.lateral", _row(unit[1], pose, carrier)))
    return out
