"""Compute inverse, direct and hybrid dynamics of any compiled mechanism, by one recursion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.memory import Record
from rtmms.base.spatial import Array, skew
from rtmms.dynamics.modal_motion import MODAL, configure_modal, outward_modal
from rtmms.dynamics.modal_passes import solve_modal
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.model.compiled import Model, State
from rtmms.model.layout import BASE_FREE, BASE_PRESCRIBED, S_ACCELERATION, S_BIAS, S_WRENCH
from rtmms.model.modal_rows import M_COUNT, M_FIRST


def modal_record(model: Model, dtype: Any = float) -> Record:
    """Return a model's modal bodies for kernels, with their own scratch.

    Parameters
    ----------
    model : Model
        Compiled model.
    dtype : dtype, default float
        float, or complex for complex steps.

    Returns
    -------
    Record
        Record of `MODAL`.
    """
    modes = model.modes
    values = {"book": modes.book, "members": modes.members, "shape": modes.shape}
    kind = complex if np.dtype(dtype).kind == "c" else float
    return MODAL.make(values, {"modal_room": max(modes.room, 1)}, dtype=kind)


def stand(model: Model, position: Any, orientation: Any, q: Any, s: Any) -> None:
    """Compute transforms of all rows, gravity in their frames, and world poses.

    Parameters
    ----------
    model : Model
        Compiled model.
    position : (3,) array
        Origin of the base, m, world.
    orientation : (4,) array
        Base to world.
    q : (n,) array
        Joint positions.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    if len(model.modes):
        configure_modal(model.topology, model.constant, modal_record(model, s.dtype), orientation, model.gravity, q, s)
    else:
        configure(model.topology, model.constant, orientation, model.gravity, q, s)
    place(model.topology, position, orientation, s)


def move(model: Model, twist: Any, q: Any, qd: Any, s: Any) -> Any:
    """Compute twists of all rows, after `stand`.

    Parameters
    ----------
    model : Model
        Compiled model.
    twist : (6,) array
        Twist of the base, base frame, m/s and rad/s.
    q, qd : (n,) array
        Joint positions and rates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.

    Returns
    -------
    Record or None
        Modal bodies for `solve_any`; None for rigid trees.
    """
    if not len(model.modes):
        outward(model.topology, twist, qd, s)
        return None
    modal = modal_record(model, s.dtype)
    outward_modal(model.topology, modal, twist, q, qd, s)
    return modal


def solve_any(
    model: Model, modal: Any, base_mode: int, imposed: Any, drive: Any, q: Any, qd: Any, s: Any, qdd: Any, torque: Any
) -> None:
    """Solve after `move` and the outside wrenches, see `solve`.

    Parameters
    ----------
    model : Model
        Compiled model.
    modal : Record or None
        Result of `move`.
    base_mode : int
        BASE_FREE, BASE_PRESCRIBED or BASE_FIXED.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    q, qd : (n,) array
        Joint positions and rates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    qdd, torque : (n,) array
        Results.
    """
    work = np.zeros((6, 6), s.dtype)
    tree = (model.topology, model.constant)
    if modal is None:
        solve(*tree, base_mode, imposed, drive, q, qd, 0.0, s, work, qdd, torque)
    else:
        solve_modal(*tree, modal, base_mode, imposed, drive, q, qd, 0.0, s, work, qdd, torque)


# The first steps of every function of rtmms.dynamics: check arguments and run the kinematic passes.


def hybrid_scratch(model: Model, state: State, wrench: Any = None) -> Array:
    """Return the scratch of `set_up`.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    wrench : (bodies, 6) array, optional
        See `set_up`.

    Returns
    -------
    (rows, S_WIDTH) array
        Scratch.
    """
    return set_up(model, state, wrench)[0]


def set_up(model: Model, state: State, wrench: Any = None) -> tuple[Array, Any]:
    """Return scratch with transforms, twists, world poses and outside wrenches of a state, and the modal bodies.

    Complex states give complex scratch (for derivatives by a complex step).

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    wrench : (bodies, 6) array, optional
        Outside wrench on each described body, N and N m, at its origin in its own frame; None for none.

    Returns
    -------
    (array, Record or None)
        Scratch, and the argument of `solve_any`.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.
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
    """Add wrenches on described bodies to the scratch of the rows that carry them.

    Parameters
    ----------
    model : Model
        Compiled model.
    wrench : (bodies, 6) array
        N and N m, at each body's origin in its frame.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    for k, row in enumerate(model.carrier):
        r, p = model.offset_rotation[k], model.offset_position[k]
        force, moment = r @ wrench[k, :3], r @ wrench[k, 3:]
        s[row, S_WRENCH : S_WRENCH + 3] += force
        s[row, S_WRENCH + 3 : S_WRENCH + 6] += moment + np.cross(p, force)


def described_twists(model: Model, rows: Array) -> Array:
    """Return the twists of described bodies, each in its own frame.

    Parameters
    ----------
    model : Model
        Compiled model.
    rows : (n + 1, 6) array
        Twists of the rows.

    Returns
    -------
    (bodies, 6) array
        m/s and rad/s.
    """
    out = np.empty((len(model.body_names), 6), dtype=rows.dtype)
    for k, row in enumerate(model.carrier):
        r, p = model.offset_rotation[k], model.offset_position[k]
        out[k, :3] = r.T @ (rows[row, :3] - skew(p) @ rows[row, 3:])
        out[k, 3:] = r.T @ rows[row, 3:]
    return out


def vector(value: Any, shape: tuple[int, ...], place: str) -> Array:
    """Return a value as an array of a shape.

    Parameters
    ----------
    value : array_like
        Value to check.
    shape : tuple[int, ...]
        Required shape.
    place : str
        Name of the value, for the message.

    Returns
    -------
    array
        float64, or complex.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.
    """
    array = np.ascontiguousarray(value, dtype=complex if np.iscomplexobj(value) else float)
    if array.shape != shape:
        raise ModelError(f"{place} must have shape {shape}, got {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{place} must be finite, got {array.tolist()}")
    return array


@dataclass(frozen=True, slots=True)
class Solution:
    """Results of the recursion.

    Parameters
    ----------
    base_acceleration : (6,) array
        Component derivative of the base twist, base frame, m/s2 and rad/s2.
    base_wrench : (6,) array
        Outside wrench on the base that this motion needs, N and N m; 0 for a free base.
    qdd : (n,) array
        rad/s2 or m/s2.
    torque : (n,) array
        Of each joint's actuator, N m or N.
    """

    base_acceleration: Array
    base_wrench: Array
    qdd: Array
    torque: Array


def hybrid_dynamics(
    model: Model, state: State, drive: Any, *, imposed: Any = None, base_acceleration: Any = None, wrench: Any = None,
) -> Solution:  # fmt: skip
    """Return accelerations where torques are given, torques where accelerations are given (Porez 2014, section III).

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    imposed : (n,) array of bool, optional
        None for the description's own drives.
    base_acceleration : (6,) array, optional
        Component derivative. None: it is computed (free base), or is 0 (prescribed and fixed base). A value for a free
        base is imposed, and base_wrench is the necessary wrench.
    wrench : (bodies, 6) array, optional
        Outside wrench on each described body, N and N m, at its origin, in its frame. Gravity is the model's own.

    Returns
    -------
    Solution
        Accelerations, torques and the base's wrench.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.
    """
    n = model.n
    drive = vector(drive, (n,), f"{model.name}: drive")
    flags = model.imposed if imposed is None else np.ascontiguousarray(imposed, dtype=bool)
    if flags.shape != (n,):
        raise ModelError(f"{model.name}: imposed must have shape ({n},), got {flags.shape}")
    for row in np.flatnonzero(model.modes.book[:, M_COUNT]):
        first, count = model.modes.book[row, [M_FIRST, M_COUNT]]
        mode_flags = flags[model.modes.members[first : first + count] - 1]
        if np.any(mode_flags) and not np.all(mode_flags):
            raise ModelError(
                f"{model.name}: imposed: expected all modes of a body, or none, got "
                f"{mode_flags.tolist()} for "
                f"{', '.join(model.joint_names[k - 1] for k in model.modes.members[first : first + count])}"
            )
    s, modal = set_up(model, state, wrench)
    if np.iscomplexobj(drive) and not np.iscomplexobj(s):
        s = s.astype(complex)
        modal = None if modal is None else modal.as_complex(room=modal.room.astype(complex))
    mode = model.base_mode
    if base_acceleration is not None:
        mode = BASE_PRESCRIBED if mode == BASE_FREE else mode
        acceleration = vector(base_acceleration, (6,), f"{model.name}: base_acceleration")
        s[0, S_ACCELERATION : S_ACCELERATION + 6] = acceleration
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
    """Return the torques for given joint accelerations, and the base's acceleration where it is free.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    qdd : (n,) array
        rad/s2 or m/s2.
    base_acceleration : (6,) array, optional
        See `hybrid_dynamics`.
    wrench : (bodies, 6) array, optional
        See `hybrid_dynamics`.

    Returns
    -------
    Solution
        Torques and the base's motion.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.

    Notes
    -----
    Khalil 2007, eqs 17-28.
    """
    imposed = np.ones(model.n, dtype=bool)
    return hybrid_dynamics(
        model, state, qdd, imposed=imposed, base_acceleration=base_acceleration, wrench=wrench
    )  # fmt: skip


def forward_dynamics(
    model: Model, state: State, torque: Any, *, base_acceleration: Any = None, wrench: Any = None
) -> Solution:
    """Return the accelerations for given joint torques (Khalil 2007, 32-43).

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    torque : (n,) array
        N m or N.
    base_acceleration : (6,) array, optional
        See `hybrid_dynamics`.
    wrench : (bodies, 6) array, optional
        See `hybrid_dynamics`.

    Returns
    -------
    Solution
        Accelerations.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.
    """
    imposed = np.zeros(model.n, dtype=bool)
    return hybrid_dynamics(
        model, state, torque, imposed=imposed, base_acceleration=base_acceleration, wrench=wrench
    )  # fmt: skip


def bias(model: Model, state: State, *, wrench: Any = None) -> Array:
    """Return C in M nu' + C = tau, the base's six first when it is free.

    nu is (base twist, qd); tau is (0, joint torques). Springs, dampers and friction are part of C.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    wrench : (bodies, 6) array, optional
        See `hybrid_dynamics`.

    Returns
    -------
    (model.velocities,) array
        N, N m.

    Raises
    ------
    ModelError
        A shape is wrong or a number is not finite.
    """
    still = inverse_dynamics(model, state, np.zeros(model.n), base_acceleration=np.zeros(6), wrench=wrench)
    return np.concatenate([still.base_wrench, still.torque]) if model.base_mode == BASE_FREE else still.torque
