"""What every function of rtmms.dynamics does first: check its arguments and run the kinematic passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.any_tree import move, stand
from rtmms.errors import ModelError
from rtmms.model.compiled import Model, State
from rtmms.model.layout import S_WRENCH
from rtmms.spatial import Array, skew


def prepared(model: Model, state: State, wrench: Any = None) -> Array:
    """The scratch of `set_up`."""
    return set_up(model, state, wrench)[0]


def set_up(model: Model, state: State, wrench: Any = None) -> tuple[Array, Any]:
    """Scratch with transforms, twists, world poses and outside wrenches of `state`, and what `solve_any` needs.

    wrench  (bodies, 6) N, N m, from outside on each described body, at its origin in its own frame; or None
    Complex states give complex scratch (for derivatives by a complex step). ModelError where a shape is wrong.
    """
    state.check(model)
    fields = (state.position, state.orientation, state.q, state.twist, state.qd)
    dtype = complex if any(np.iscomplexobj(value) for value in fields) else float
    s = model.scratch(dtype)
    orientation, q = state.orientation.astype(dtype), state.q.astype(dtype)
    stand(model, state.position.astype(dtype), orientation, q, s)
    modal = move(model, state.twist.astype(dtype), q, state.qd.astype(dtype), s)
    if wrench is not None:
        add_described(model, vector(wrench, (len(model.body_names), 6), f"{model.name}: wrench"), s)
    return s, modal


def add_described(model: Model, wrench: Array, s: Array) -> None:
    """Wrenches on described bodies, (bodies, 6), into the scratch of the rows that carry them."""
    for k, row in enumerate(model.carrier):
        r, p = model.offset_rotation[k], model.offset_position[k]
        force, moment = r @ wrench[k, :3], r @ wrench[k, 3:]
        s[row, S_WRENCH : S_WRENCH + 3] += force
        s[row, S_WRENCH + 3 : S_WRENCH + 6] += moment + np.cross(p, force)


def described(model: Model, rows: Array) -> Array:
    """Twists of rows, (n + 1, 6), as those of the described bodies, (bodies, 6), each in its own frame."""
    out = np.empty((len(model.body_names), 6), dtype=rows.dtype)
    for k, row in enumerate(model.carrier):
        r, p = model.offset_rotation[k], model.offset_position[k]
        out[k, :3] = r.T @ (rows[row, :3] - skew(p) @ rows[row, 3:])
        out[k, 3:] = r.T @ rows[row, 3:]
    return out


def vector(value: Any, shape: tuple[int, ...], place: str) -> Array:
    """`value` as an array of that shape; ModelError where it is not, or is not finite."""
    array = np.ascontiguousarray(value, dtype=complex if np.iscomplexobj(value) else float)
    if array.shape != shape:
        raise ModelError(f"{place} must have shape {shape}, got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{place} must be finite, got {array.tolist()}")
    return array
