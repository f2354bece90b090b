"""Compute a tree on the ground: its accelerations under its drives, and the velocities that the contacts allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import INTEGER, Layout, Record, model, number, scratch, state
from rtmms.base.spatial import PACKED_SIZE, Array
from rtmms.dynamics.ground_passes import (
    MIN_PART,
    R_WIDTH,
    RANKED,
    inward_on_ground,
    respond_on_ground,
    solve_base_on_ground,
)
from rtmms.dynamics.hybrid import hybrid_scratch, vector
from rtmms.dynamics.recursion import friction, load
from rtmms.model.compiled import Model, State
from rtmms.model.contact_rows import G_BODY, G_GAIN, G_JOINT, G_ROW, G_WIDTH
from rtmms.model.layout import (
    C_DAMPING,
    C_INERTIA,
    C_ROTOR,
    C_STIFFNESS,
    S_ACCELERATION,
    S_BIAS,
    S_HELD,
    S_INERTIA,
    S_TWIST,
    S_ZETA,
)

GROUND = Layout(
    "Ground",
    model("rows", "contacts", G_WIDTH), model("first", "n + 2", dtype=INTEGER), model("joint", "n + 1", dtype=INTEGER),
    number("length", unit="m"), scratch("room", "n + 2", R_WIDTH), scratch("offset", "contacts"), scratch("net", "n"),
    scratch("soft", "n"), scratch("reaction", "contacts", unit="N"), scratch("change", "n", unit="rad/s"),
    scratch("active", "contacts", fill=1.0), state("lost", 2, unit="J"),
)  # fmt: skip
"""Contacts of a tree.

`rows`, `first`, `joint`, `length`: see rtmms.model.contact_rows. `room`: see ground_passes. `active` is 0 where a
one-sided row is open. `lost` is the energy that impacts dissipated, and the work of imposed joints in them.
"""


@kernel
def solve_on_ground(
    topology: Any, constant: Any, ground: Any, imposed: Any, drive: Any, q: Any, qd: Any, implicit: float, s: Any,
    qdd: Any, torque: Any,
) -> None:  # fmt: skip
    """Solve as `recursion.solve`, for a free base with contacts.

    Call `configure`, `outward`, and the functions that add outside wrenches before. Reactions are in ground.reaction,
    see `respond_on_ground`.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    ground : Record
        Record of `GROUND`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    q, qd : (n,) array
        Joint positions and rates.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    qdd, torque : (n,) array
        Results.
    """
    room, offset, net, soft, reaction = ground.room, ground.offset, ground.net, ground.soft, ground.reaction
    load(topology, constant, s)
    for r in range(offset.shape[0]):
        offset[r] = 0.0
    for j in range(drive.shape[0]):
        net[j], soft[j] = drive[j], constant[j + 1, C_ROTOR]
        if not imposed[j]:
            k, c = constant[j + 1, C_STIFFNESS], constant[j + 1, C_DAMPING]
            net[j] -= friction(constant, j + 1, q[j], qd[j]) + implicit * k * qd[j]
            soft[j] = constant[j + 1, C_ROTOR] + implicit * (c + implicit * k) + s[j + 1, S_HELD]
    inward_on_ground(topology, ground, imposed, net, soft, offset, s, room)
    solve_base_on_ground(s, room, ground.length)
    respond_on_ground(topology, ground, imposed, net, soft, s, room, qdd, torque, reaction)
    for j in range(drive.shape[0]):
        if imposed[j]:
            torque[j] += constant[j + 1, C_ROTOR] * qdd[j] + friction(constant, j + 1, q[j], qd[j])
        else:
            torque[j] = drive[j]


@kernel
def slip(ground: Any, s: Any, qd: Any, out: Any) -> None:
    """Write A eta + B qd, for twists after `outward`.

    Parameters
    ----------
    ground : Record
        Record of `GROUND`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    qd : (n,) array
        Joint rates.
    out : (m,) array
        Result, m/s or rad/s.
    """
    rows = ground.rows
    for r in range(rows.shape[0]):
        j = int(rows[r, G_BODY])
        total = 0.0 * s[j, S_TWIST]
        for k in range(6):
            total += rows[r, G_ROW + k] * s[j, S_TWIST + k]
        wheel = int(rows[r, G_JOINT])
        if wheel > 0:
            total += rows[r, G_GAIN] * qd[wheel - 1]
        out[r] = total


@kernel
def stop_slip(
    topology: Any, constant: Any, ground: Any, imposed: Any, qd: Any, s: Any, torque: Any
) -> None:  # fmt: skip
    """Compute the change of velocities by the ground's impulses with all rows active.

    The change of the base is in S_ACCELERATION, that of the joints in ground.change (n,). It is the least in the metric
    of the kinetic energy, as in an inelastic impact; imposed joints keep their rates. Call `configure` and `outward` at
    these velocities before.

    Parameters
    ----------
    topology : (rows, T_WIDTH) array
        Columns T_* of `rtmms.model.layout`.
    constant : (rows, C_WIDTH) array
        Columns C_* of `rtmms.model.layout`.
    ground : Record
        Record of `GROUND`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    qd : (n,) array
        Joint rates.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    torque : (n,) array
        Impulses of imposed joints; written.
    """
    room, offset, net, soft, reaction = ground.room, ground.offset, ground.net, ground.soft, ground.reaction
    slip(ground, s, qd, offset)
    for j in range(topology.shape[0]):
        for k in range(PACKED_SIZE):
            s[j, S_INERTIA + k] = constant[j, C_INERTIA + k]
        for k in range(6):
            s[j, S_BIAS + k] = 0.0
            s[j, S_ZETA + k] = 0.0
    for j in range(qd.shape[0]):
        net[j], soft[j] = 0.0, constant[j + 1, C_ROTOR]
    inward_on_ground(topology, ground, imposed, net, soft, offset, s, room)
    solve_base_on_ground(s, room, ground.length)
    respond_on_ground(topology, ground, imposed, net, soft, s, room, ground.change, torque, reaction)


@kernel
def add_change(state: Any, s: Any, imposed: Any, change: Any) -> None:
    """Add the change of velocities of `stop_slip` to a state vector.

    Parameters
    ----------
    state : (13 + 2 n,) array
        State vector; changed.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    imposed : (n,) array of bool
        True: `drive` has the acceleration; False: the torque or force.
    change : (n,) array
        ground.change.
    """
    n = change.shape[0]
    for k in range(6):
        state[7 + n + k] += s[0, S_ACCELERATION + k]
    for j in range(n):
        if not imposed[j]:
            state[13 + n + j] += change[j]


# Functions for users, at one state.


@dataclass(frozen=True, slots=True)
class OnGround:
    """Results of the recursion for a mechanism with contacts.

    Parameters
    ----------
    base_acceleration : (6,) array
        Component derivative of the base twist, base frame, m/s2 and rad/s2.
    qdd, torque : (n,) array
        As for `hybrid_dynamics`.
    reaction : (m,) array
        Of each row, N; rows that depend on others and come later have none.
    rank : int
        Rank of the rows on base and passive joints.
    least : float
        Least part of a row that other rows did not imply.
    """

    base_acceleration: Array
    qdd: Array
    torque: Array
    reaction: Array
    rank: int
    least: float


def ground_record(model: Model) -> Record:
    """Return a model's rows of contact for kernels, with scratch for one evaluation at a time.

    Parameters
    ----------
    model : Model
        Compiled model.

    Returns
    -------
    Record
        Record of `GROUND`.
    """
    ground = model.ground
    values = {"rows": ground.rows, "first": ground.first, "joint": ground.joint, "length": ground.length}
    return GROUND.make(values, {"n": model.n})


def ground_dynamics(model: Model, state: State, drive: Any, *, wrench: Any = None) -> OnGround:
    """Return accelerations where torques are given, torques where accelerations are given, on the ground.

    Whether the imposed accelerations contradict the contacts is not checked (rtmms.locomotion.reduced_dynamics checks
    it).

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.
    drive : (n,) array
        Acceleration of each imposed joint, torque or force of each other.
    wrench : (bodies, 6) array, optional
        Outside wrench on each described body, N and N m; None for none.

    Returns
    -------
    OnGround
        Accelerations, torques and reactions.

    Raises
    ------
    ModelError
        A shape is wrong.
    """
    n, ground = model.n, ground_record(model)
    drive, s = vector(drive, (n,), f"{model.name}: drive"), hybrid_scratch(model, state, wrench)
    qdd, torque = np.zeros(n), np.zeros(n)
    solve_on_ground(
        model.topology, model.constant, ground, model.imposed, drive, state.q, state.qd, 0.0, s, qdd, torque
    )  # fmt: skip
    last = ground.room[-1]
    base = s[0, S_ACCELERATION : S_ACCELERATION + 6].copy()
    return OnGround(base, qdd, torque, ground.reaction, round(last[RANKED]), float(last[MIN_PART]))


def stopped(model: Model, state: State) -> State:
    """Return the state after an inelastic impact with the ground: the rows hold, imposed joints keep their rates.

    Parameters
    ----------
    model : Model
        Compiled model.
    state : State
        State of the tree.

    Returns
    -------
    State
        A new state.
    """
    n, ground, s = model.n, ground_record(model), hybrid_scratch(model, state)
    stop_slip(model.topology, model.constant, ground, model.imposed, state.qd, s, np.zeros(n))
    y = np.concatenate([np.zeros(7), state.q, state.twist, state.qd])
    add_change(y, s, model.imposed, ground.change)
    return State(state.position, state.orientation, state.q, y[7 + n : 13 + n], y[13 + n :])
