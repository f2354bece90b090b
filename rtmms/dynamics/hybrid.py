"""Inverse, direct and hybrid dynamics of any compiled mechanism: one recursion, three faces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.dynamics.any_tree import solve_any
from rtmms.dynamics.prepare import set_up, vector
from rtmms.errors import ModelError
from rtmms.model.compiled import Model, State
from rtmms.model.layout import BASE_FREE, BASE_PRESCRIBED, S_ACCELERATION, S_BIAS
from rtmms.model.modal_rows import M_COUNT, M_FIRST
from rtmms.spatial import Array


@dataclass(frozen=True, slots=True)
class Solution:
    """What the recursion yields.

    base_acceleration  (6,) m/s2, rad/s2   component derivative of the base twist, base frame
    base_wrench        (6,) N, N m         from outside on the base, that it takes to move so; 0 for a free base
    qdd                (n,) rad/s2 or m/s2
    torque             (n,) N m or N       of each joint's actuator
    """

    base_acceleration: Array
    base_wrench: Array
    qdd: Array
    torque: Array


def hybrid_dynamics(
    model: Model, state: State, drive: Any, *, imposed: Any = None, base_acceleration: Any = None, wrench: Any = None,
) -> Solution:  # fmt: skip
    """Accelerations where torques are given, torques where accelerations are given (Porez 2014, section III).

    drive              (n,) the acceleration of each imposed joint, the torque of each other
    imposed            (n,) bool; None for the description's own drives
    base_acceleration  (6,) component derivative; None: it follows (free base), or is 0 (prescribed and fixed base).
                       Given for a free base, it is imposed and base_wrench is what that takes.
    wrench             (bodies, 6) from outside on each described body, at its origin, in its frame; gravity is
                       the model's own
    Raises ModelError for a wrong shape or a number that is not finite.
    """
    n = model.n
    drive = vector(drive, (n,), f"{model.name}: drive")
    flags = model.imposed if imposed is None else np.ascontiguousarray(imposed, dtype=bool)
    if flags.shape != (n,):
        raise ModelError(f"{model.name}: imposed must have shape ({n},), got {flags.shape}")
    for row in np.flatnonzero(model.modes.book[:, M_COUNT]):
        first, count = model.modes.book[row, [M_FIRST, M_COUNT]]
        own = flags[model.modes.members[first : first + count] - 1]
        if np.any(own) and not np.all(own):
            raise ModelError(f"{model.name}: imposed: all modes of a body or none, got {own.tolist()}")
    s, modal = set_up(model, state, wrench)
    if np.iscomplexobj(drive) and not np.iscomplexobj(s):
        s = s.astype(complex)
        modal = None if modal is None else modal.as_complex(room=modal.room.astype(complex))
    mode = model.base_mode
    if base_acceleration is not None:
        mode = BASE_PRESCRIBED if mode == BASE_FREE else mode
        given = vector(base_acceleration, (6,), f"{model.name}: base_acceleration")
        s[0, S_ACCELERATION : S_ACCELERATION + 6] = given
    dtype = s.dtype
    qdd, torque = np.zeros(n, dtype), np.zeros(n, dtype)
    q, qd = state.q.astype(dtype), state.qd.astype(dtype)
    solve_any(model, modal, mode, flags, drive.astype(dtype), q, qd, s, qdd, torque)
    base = s[0, S_ACCELERATION : S_ACCELERATION + 6].copy()
    held = np.zeros(6, dtype) if mode == BASE_FREE else s[0, S_BIAS : S_BIAS + 6].copy()
    return Solution(base, held, qdd, torque)


def inverse_dynamics(
    model: Model, state: State, qdd: Any, *, base_acceleration: Any = None, wrench: Any = None
) -> Solution:
    """All joint accelerations given: the torques, and the base's acceleration where it is free (Khalil 2007, 17-28)."""
    imposed = np.ones(model.n, dtype=bool)
    return hybrid_dynamics(
        model, state, qdd, imposed=imposed, base_acceleration=base_acceleration, wrench=wrench
    )  # fmt: skip


def forward_dynamics(
    model: Model, state: State, torque: Any, *, base_acceleration: Any = None, wrench: Any = None
) -> Solution:
    """All joint torques given: the accelerations (Khalil 2007, 32-43)."""
    imposed = np.zeros(model.n, dtype=bool)
    return hybrid_dynamics(
        model, state, torque, imposed=imposed, base_acceleration=base_acceleration, wrench=wrench
    )  # fmt: skip


def bias(model: Model, state: State, *, wrench: Any = None) -> Array:
    """C in M nu' + C = tau: (model.velocities,), the base's six first when it is free.

    nu is (base twist, qd); tau is (0, joint torques). Springs, dampers and friction are part of C.
    """
    still = inverse_dynamics(model, state, np.zeros(model.n), base_acceleration=np.zeros(6), wrench=wrench)
    return np.concatenate([still.base_wrench, still.torque]) if model.base_mode == BASE_FREE else still.torque
