"""The equations of motion of a mechanism in a fluid at one state and time.

Arguments travel in tuples of arrays, unpacked where they are used; law and hold: see rtmms.mechanism.joint_laws.
tree   topology, constant, base_mode, gravity, imposed, bounds (see rtmms.mechanism.joint_bounds); with contacts a
       seventh, rows, first, joint, length (see rtmms.model.contact_rows), and the scratch of rtmms.dynamics.ground;
       with modal bodies book, members, shape, room (rtmms.model.modal_rows) as the seventh, and an eighth, True
fluid  Immersed.arrays, held (e, 3), ambient (e, SAMPLE), pushes (see rtmms.mechanism.body_actuators)
work   s, base (6, 6), qdd, torque, q, qd, drive (n,) each
"""

from __future__ import annotations

from typing import Any

from rtmms.dynamics.ground import solve_on_ground
from rtmms.dynamics.modal_motion import configure_modal, outward_modal
from rtmms.dynamics.modal_passes import solve_modal
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.fluids.immersed import act
from rtmms.fluids.section_couple import REPEATS, coupled, section_couples
from rtmms.jit import kernel
from rtmms.mechanism.body_actuators import push
from rtmms.mechanism.joint_bounds import BOUNDED, bind
from rtmms.mechanism.joint_laws import reference
from rtmms.model.layout import S_ACCELERATION, S_HELD
from rtmms.spatial import quaternion_columns


@kernel
def evaluate(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: Any, implicit: float, rate: Any
) -> None:
    """Equations of motion: the rate (12 + 2 n,) of a state (13 + 2 n,) at time t (see rtmms.mechanism.group).

    Imposed joints stand where their law has them at t, whatever `state` says. Torques are left in work.
    implicit  s, > 0: springs, dampers and servos are solved linearly implicitly over that step (`inward`)
    """
    topology, constant, base_mode, gravity, imposed, bounds = tree[:6]
    rows, common, strip, blade, strip_gauss, blade_gauss, wake, tether, flow, moving, held, ambient, pushes = fluid
    s, base, qdd, torque, q, qd, drive = work
    kp, kd = law[3], law[4]
    n = q.shape[0]
    for j in range(n):
        if imposed[j]:
            a, b, c = reference(law, hold, j, t)
            q[j], qd[j], drive[j] = a, b, c
        else:
            # kp (a' - q - h qd') + kd (b' - qd') with a', b' and qd' = qd + h qdd at the step's end; plain where h = 0
            a, b, c = reference(law, hold, j, t + implicit)
            q[j], qd[j] = state[7 + j], state[13 + n + j]
            drive[j] = hold[0][j] + kp[j] * (a - q[j] - implicit * qd[j]) + kd[j] * (b - qd[j])
            s[j + 1, S_HELD] = implicit * (kd[j] + implicit * kp[j])
            if bounds[j, BOUNDED] > 0.0:
                bind(bounds, j, q[j], qd[j], implicit, drive, s)
    orientation, twist = state[3:7], state[7 + n : 13 + n]
    if len(tree) == 8:  # known when compiled
        configure_modal(topology, constant, tree[6], orientation, gravity, q, s)
        outward_modal(topology, tree[6], twist, q, qd, s)
    else:
        configure(topology, constant, orientation, gravity, q, s)
        outward(topology, twist, qd, s)
    if rows.shape[0] > 0 or tether.shape[0] > 0:
        if moving:
            place(topology, state[0:3], orientation, s)
        act(
            rows, common, strip, blade, strip_gauss, blade_gauss, wake, tether, flow, moving, held, t, ambient, s
        )  # fmt: skip
    push(pushes, t - hold[4], s)
    if len(tree) == 8:
        solve_modal(topology, constant, tree[6], base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
    elif len(tree) == 7:  # known when compiled
        if tree[6][0].shape[0] > 0:
            solve_on_ground(topology, constant, tree[6], imposed, drive, q, qd, implicit, s, qdd, torque)
        else:
            solve(topology, constant, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
    else:
        solve(topology, constant, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
        if coupled(strip, ambient):
            for _ in range(REPEATS):
                section_couples(rows, strip, moving, ambient, s)
                solve(topology, constant, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
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
    """Add the joints' power at the evaluation just made, times h, to the work done.

    implicit  s, as of that evaluation: torque and rate are then those at the end of that step
    """
    s, qdd, torque, qd = work[0], work[2], work[3], work[5]
    for j in range(torque.shape[0]):
        if implicit > 0.0:
            spent[0] += h * (torque[j] - s[j + 1, S_HELD] * qdd[j]) * (qd[j] + implicit * qdd[j])
        else:
            spent[0] += h * torque[j] * qd[j]
