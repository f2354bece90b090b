"""Evaluate the equations of motion of a mechanism in a fluid at one state and time."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import FLAG, INTEGER, Layout, model, number, part, scratch
from rtmms.base.spatial import quaternion_columns
from rtmms.dynamics.ground import GROUND, solve_on_ground
from rtmms.dynamics.modal_motion import MODAL, configure_modal, outward_modal
from rtmms.dynamics.modal_passes import solve_modal
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.fluids.immersed import act
from rtmms.fluids.section_couple import REPEATS, reset_couples, section_couples
from rtmms.mechanism.body_actuators import push, spin
from rtmms.mechanism.floor import press
from rtmms.mechanism.joint_laws import (
    BOUND_WIDTH,
    BOUNDED,
    FIRM,
    FREE,
    FROM_ABOVE,
    FROM_BELOW,
    GREAT,
    HELD_FIRMLY,
    MAX_TORQUE,
    MIN_STEPS,
    SATURATES,
    TRACKING,
    acceleration_within,
    bind,
    braking_time,
    next_grip,
    next_side,
    reference,
    reference_at_rate,
)
from rtmms.mechanism.tendons import pull
from rtmms.model.layout import C_WIDTH, S_ACCELERATION, S_HELD, S_WIDTH, T_WIDTH

TREE = Layout(
    "Tree",
    model("topology", "rows", T_WIDTH, dtype=INTEGER), model("constant", "rows", C_WIDTH),
    number("base_mode", INTEGER), model("gravity", 3, unit="m/s2"), model("imposed", "n", dtype=FLAG),
    model("bounds", "n", BOUND_WIDTH), number("limited", FLAG), part("ground", GROUND), part("modal", MODAL),
)  # fmt: skip
"""Compiled model, see rtmms.model.layout.

`ground` belongs to trees with contacts or with joints whose commands are rates, `modal` to trees with modal bodies.
`limited` is whether some joint has limits that are never passed, see rtmms.mechanism.joint_laws.
"""
WORK = Layout(
    "Work",
    scratch("s", "rows", S_WIDTH), scratch("base", 6, 6), scratch("qdd", "n"), scratch("torque", "n", unit="N m"),
    scratch("q", "n"), scratch("qd", "n"), scratch("drive", "n"),
    scratch("stop", "n", unit="N m"), scratch("wanted", "n"), scratch("original_drive", "n"), scratch("held", "n"),
    scratch("side", "n", dtype=INTEGER), scratch("grip", "n", dtype=INTEGER),
)  # fmt: skip
"""Scratch of one evaluation.

`stop` has the torques of limits that are never passed. `wanted` has the accelerations of joints held firmly.
`original_drive`, `held`, `side` and `grip` belong to `keep_within_limits`.
"""
MAX_ROUNDS = 12
"""Largest number of solutions until the active limits of the joints are consistent."""


@kernel
def move_bodies(tree: Any, modal: Any, state: Any, work: Any) -> None:
    """Compute the transforms and twists of all rows.

    Parameters
    ----------
    tree : Record
        Record of `TREE`.
    modal : Record or None
        tree.modal; an argument so that the compiler specialises on None.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    work : Record
        Record of `WORK`.
    """
    n, s, q, qd = work.q.shape[0], work.s, work.q, work.qd
    orientation, twist = state[3:7], state[7 + n : 13 + n]
    if modal is not None:
        configure_modal(tree.topology, tree.constant, modal, orientation, tree.gravity, q, s)
        outward_modal(tree.topology, modal, twist, q, qd, s)
    else:
        configure(tree.topology, tree.constant, orientation, tree.gravity, q, s)
        outward(tree.topology, twist, qd, s)


@kernel
def solve_tree(tree: Any, ground: Any, modal: Any, fluid: Any, work: Any, implicit: float) -> None:
    """Solve for the accelerations and torques by the recursion's remaining passes.

    Parameters
    ----------
    tree : Record
        Record of `TREE`.
    ground : Record or None
        tree.ground; an argument so that the compiler specialises on None.
    modal : Record or None
        tree.modal; an argument so that the compiler specialises on None.
    fluid : Record
        Record of the fluid.
    work : Record
        Record of `WORK`.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    """
    topology, constant, base_mode, imposed = tree.topology, tree.constant, tree.base_mode, tree.imposed
    s, base, qdd, torque, q, qd, drive = work.s, work.base, work.qdd, work.torque, work.q, work.qd, work.drive
    if modal is not None:
        solve_modal(topology, constant, modal, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
    elif ground is not None:
        if ground.rows.shape[0] > 0:
            solve_on_ground(topology, constant, ground, imposed, drive, q, qd, implicit, s, qdd, torque)
        else:
            solve(topology, constant, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
    else:
        solve(topology, constant, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
        if reset_couples(fluid):
            for _ in range(REPEATS):
                section_couples(fluid, s)
                solve(topology, constant, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)


@kernel(merged=True)
def keep_within_limits(
    tree: Any, ground: Any, modal: Any, fluid: Any, work: Any, implicit: float, least: float
) -> None:  # fmt: skip
    """Apply joint limits that are never passed, and joints held firmly, after a solution without them.

    The function solves again with other active limits until no limit is passed and no stop pulls; the result depends on
    the state alone. Afterwards `torque` drives the joints and `stop` has the torques of their stops.

    Parameters
    ----------
    tree : Record
        Record of `TREE`.
    ground : Record or None
        tree.ground; an argument so that the compiler specialises on None.
    modal : Record or None
        tree.modal; an argument so that the compiler specialises on None.
    fluid : Record
        Record of the fluid.
    work : Record
        Record of `WORK`.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    least : float
        Shortest braking time, s, see `rtmms.mechanism.joint_laws.braking_time`.
    """
    bounds, imposed = tree.bounds, tree.imposed
    s, qdd, q, qd, torque, drive = work.s, work.qdd, work.q, work.qd, work.torque, work.drive
    stop, wanted, values, held, side, grip = (
        work.stop,
        work.wanted,
        work.original_drive,
        work.held,
        work.side,
        work.grip,
    )
    n, begun = q.shape[0], False
    for j in range(n):
        values[j], held[j], side[j], grip[j], stop[j] = drive[j], s[j + 1, S_HELD], FREE, TRACKING, 0.0 * q[j]
        begun = begun or (bounds[j, FIRM] == HELD_FIRMLY and not imposed[j])
    for turn in range(MAX_ROUNDS):
        changed = begun and turn == 0
        if not changed:
            for j in range(n):
                if bounds[j, GREAT] > 0.0 and not imposed[j]:
                    result = next_side(bounds, j, side[j], q[j], qd[j], qdd[j], least)
                    if bounds[j, FIRM] > 0.0 and result == side[j]:
                        tight = grip[j]
                        if result == FREE:
                            tight = next_grip(bounds, j, grip[j], wanted[j], qdd[j], values[j], held[j])
                        changed = changed or tight != grip[j]
                        grip[j] = tight
                    changed = changed or result != side[j]
                    side[j] = result
        if not changed:
            break
        for j in range(n):
            if bounds[j, GREAT] > 0.0 and not imposed[j]:
                great, extra, target = bounds[j, GREAT], 0.0, 0.0 * q[j]
                if bounds[j, FIRM] == SATURATES and grip[j] != TRACKING:
                    extra, target = -held[j], grip[j] * bounds[j, MAX_TORQUE] - values[j]
                elif bounds[j, FIRM] == HELD_FIRMLY:
                    if grip[j] == TRACKING:
                        extra, target = great, great * wanted[j]
                    else:
                        target = grip[j] * bounds[j, MAX_TORQUE] + 0.0 * q[j]
                if side[j] != FREE:
                    extra += great
                    target += great * acceleration_within(bounds, j, side[j], q[j], qd[j], least)
                drive[j], s[j + 1, S_HELD] = values[j] + target, held[j] + extra
        solve_tree(tree, ground, modal, fluid, work, implicit)
    for j in range(n):
        if bounds[j, GREAT] > 0.0 and not imposed[j]:
            great, joint_drive = bounds[j, GREAT], values[j]
            if side[j] != FREE:
                stop[j] = great * (acceleration_within(bounds, j, side[j], q[j], qd[j], least) - qdd[j])
            joint_hold = held[j]
            if bounds[j, FIRM] == SATURATES and grip[j] != TRACKING:
                joint_drive, joint_hold = grip[j] * bounds[j, MAX_TORQUE] + 0.0 * q[j], 0.0 * held[j]
            elif bounds[j, FIRM] == HELD_FIRMLY:
                joint_drive += great * (wanted[j] - qdd[j]) if grip[j] == TRACKING else grip[j] * bounds[j, MAX_TORQUE]
            drive[j], torque[j], s[j + 1, S_HELD] = joint_drive, joint_drive, joint_hold


@kernel(inline=True)
def drive_joint(
    tree: Any, law: Any, hold: Any, work: Any, state: Any, j: int, a: Any, b: Any, c: Any, implicit: float, least: float
) -> None:  # fmt: skip
    """Write position, rate and drive of a joint that is not imposed into `work`.

    Parameters
    ----------
    tree : Record
        Record of `TREE`.
    law : Record
        Record of `joint_laws.LAW`.
    hold : Record
        Record of `joint_laws.HOLD`.
    work : Record
        Record of `WORK`.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    j : int
        Index of the coordinate.
    a, b, c : float
        Position, rate and acceleration that the joint follows.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    least : float
        Shortest braking time, s, see `rtmms.mechanism.joint_laws.braking_time`.
    """
    bounds, kp, kd, held_torque = tree.bounds, law.kp, law.kd, hold.torque
    s, q, qd, drive = work.s, work.q, work.qd, work.drive
    n = q.shape[0]
    # kp (a' - q - h qd') + kd (b' - qd') with a', b' and qd' = qd + h qdd at the step's end; plain where h = 0
    q[j], qd[j] = state[7 + j], state[13 + n + j]
    drive[j] = held_torque[j] + kp[j] * (a - q[j] - implicit * qd[j]) + kd[j] * (b - qd[j])
    s[j + 1, S_HELD] = implicit * (kd[j] + implicit * kp[j])
    if bounds[j, BOUNDED] > 0.0:
        bind(bounds, j, q[j], qd[j], implicit, drive, s)
    if bounds[j, FIRM] == HELD_FIRMLY:
        # as critically as a stop brakes: c + 2 (b - qd) / T + (a - q) / T^2
        time = braking_time(bounds, j, least)
        wanted = c + (2.0 * (b - qd[j]) + (a - q[j]) / time) / time
        # no more than the joint's limits allow: drive and stop would hold it against each other
        maximum = acceleration_within(bounds, j, FROM_ABOVE, q[j], qd[j], least)
        fewest = acceleration_within(bounds, j, FROM_BELOW, q[j], qd[j], least)
        if wanted.real > maximum.real:
            wanted = maximum
        if wanted.real < fewest.real:
            wanted = fewest
        work.wanted[j] = wanted


@kernel
def drive_at_rate(
    tree: Any, law: Any, hold: Any, work: Any, state: Any, t: Any, implicit: float, least: float
) -> None:  # fmt: skip
    """Write position, rate and drive again, for joints whose targets move at a limited rate.

    Parameters
    ----------
    tree : Record
        Record of `TREE`.
    law : Record
        Record of `joint_laws.LAW`.
    hold : Record
        Record of `joint_laws.HOLD`.
    work : Record
        Record of `WORK`.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    t : float
        Time, s.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    least : float
        Shortest braking time, s, see `rtmms.mechanism.joint_laws.braking_time`.
    """
    for j in range(work.q.shape[0]):
        if hold.slew[j] < np.inf:
            if tree.imposed[j]:
                work.q[j], work.qd[j], work.drive[j] = reference_at_rate(law, hold, j, t)
            else:
                a, b, c = reference_at_rate(law, hold, j, t + implicit)
                drive_joint(tree, law, hold, work, state, j, a, b, c, implicit, least)


@kernel
def stand_for(tendons: Any, topology: Any, state: Any, s: Any) -> None:
    """Compute the world poses of all rows, where tendons need them.

    Parameters
    ----------
    tendons : Record or None
        Record of TENDONS; an argument so that the compiler specialises on None.
    topology : (rows, T_WIDTH) array
        Of the model.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    if tendons is not None:  # noqa: SIM102
        if tendons.numbers.shape[0] > 0:
            place(topology, state[0:3], state[3:7], s)


@kernel
def evaluate(system: Any, state: Any, t: Any, implicit: float, rate: Any) -> None:
    """Compute the rate of a state by the equations of motion.

    Imposed joints are where their law has them at t, whatever `state` contains. Torques remain in `work`.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    state : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    t : float
        Time, s.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s; 0 for an explicit evaluation.
    rate : (12 + 2 n,) array
        Result, see `rtmms.mechanism.step`.
    """
    tree, law, hold, fluid, work = system.tree, system.law, system.hold, system.fluid, system.work
    imposed, s, qdd, q, qd, drive = tree.imposed, work.s, work.qdd, work.q, work.qd, work.drive
    n, least = q.shape[0], MIN_STEPS * system.dt / system.substeps
    for j in range(n):
        if imposed[j]:
            a, b, c = reference(law, hold, hold.coast, j, t)
            q[j], qd[j], drive[j] = a, b, c
        else:
            a, b, c = reference(law, hold, hold.coast, j, t + implicit)
            drive_joint(tree, law, hold, work, state, j, a, b, c, implicit, least)
    if hold.slews:
        drive_at_rate(tree, law, hold, work, state, t, implicit, least)
    move_bodies(tree, tree.modal, state, work)
    twist = state[7 + n : 13 + n]
    if fluid.acts:
        if fluid.moving:
            place(tree.topology, state[0:3], state[3:7], s)
        act(fluid, t, s)
    push(system.pushes, t - hold.start, s)
    spin(system.pushes, system.pushes.momentum, t - hold.start, s)
    stand_for(system.tendons, tree.topology, state, s)
    pull(system.tendons, system.pushes.command, t - hold.start, s)
    press(system.floor, tree.topology, state, s)
    solve_tree(tree, tree.ground, tree.modal, fluid, work, implicit)
    if tree.limited:
        keep_within_limits(tree, tree.ground, tree.modal, fluid, work, implicit, least)
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(3):
        rate[k] = r[3 * k] * twist[0] + r[3 * k + 1] * twist[1] + r[3 * k + 2] * twist[2]
        rate[3 + k] = twist[3 + k]
    for k in range(6):
        rate[6 + n + k] = s[0, S_ACCELERATION + k]
    for j in range(n):
        rate[6 + j] = qd[j]
        rate[12 + n + j] = qdd[j]


@kernel
def spend(work: Any, h: float, implicit: float, spent: Any) -> None:
    """Add the power of the joints' drives and stops at the evaluation just made, times h, to the work done.

    Parameters
    ----------
    work : Record
        Record of `WORK`.
    h : float
        Weighted length of the step, s.
    implicit : float
        As of that evaluation, s: torque and rate are then those at the end of that step.
    spent : (k,) array
        Sums of work, J.
    """
    s, qdd, torque, qd, stop = work.s, work.qdd, work.torque, work.qd, work.stop
    for j in range(torque.shape[0]):
        if implicit > 0.0:
            spent[0] += h * (torque[j] + stop[j] - s[j + 1, S_HELD] * qdd[j]) * (qd[j] + implicit * qdd[j])
        else:
            spent[0] += h * (torque[j] + stop[j]) * qd[j]
