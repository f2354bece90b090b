"""The equations and the step of a tree whose bodies carry rods by strain modes.

state (13 + 2 N,), rate (12 + 2 N,) as of a tree (rtmms.mechanism.group) of N coordinates: n joints, then m of each rod.
soft   rows (r,), places (r, 12), sections (r, points, K_WIDTH), inner, lengths (r,), rests (r, points, 6),
       shapes (r, m, points, 6), stiffs (r, m, m), dampings (r,), current (3,)
room   constant (n + 1, C_WIDTH) own copy, s (r, points, P_WIDTH), jacobian (r, m, points, 6), mine (points, 6),
       mass (6 + m, 6 + m), left (6 + m,), told (r, TOLD), head (3, 6), six (6,), gain (r, m, 7), squares (3, 6, 6)
"""

from __future__ import annotations

from typing import Any

from rtmms.continuum.condense import condense, root_motion, show
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.fluids.immersed import act
from rtmms.jit import kernel
from rtmms.mechanism.group import displace, lead, normalise
from rtmms.mechanism.joint_laws import reference
from rtmms.mechanism.take_step import finite
from rtmms.model.layout import S_ACCELERATION, S_HELD
from rtmms.spatial import cross, quaternion_columns

SOUND, NOT_FINITE = 0, 2


@kernel
def evaluate(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, soft: Any, room: Any, state: Any, t: float, implicit: float,
    rate: Any,
) -> None:  # fmt: skip
    """Rate of a state at time t; tree, law, hold, fluid, work as rtmms.mechanism.equations has them."""
    topology, constant, base_mode, gravity, imposed, _ = tree
    rows, common, strip, blade, strip_gauss, blade_gauss, wake, tether, flow, moving, held, ambient = fluid
    s, base, qdd, torque, q, qd, drive = work
    carriers, places, sections, inner, lengths, rests, shapes, stiffs, dampings, current = soft
    own, points, jacobian, mine, mass, left, told, head, six, gain, squares = room
    n, m, total = topology.shape[0] - 1, shapes.shape[1], (state.shape[0] - 13) // 2
    for j in range(n):
        if imposed[j]:
            q[j], qd[j], drive[j] = reference(law, hold, j, t)
        else:
            q[j], qd[j], drive[j] = state[7 + j], state[13 + total + j], hold[0][j]
            s[j + 1, S_HELD] = 0.0
    orientation, twist = state[3:7], state[7 + total : 13 + total]
    configure(topology, constant, orientation, gravity, q, s)
    outward(topology, twist, qd, s)
    place(topology, state[0:3], orientation, s)
    if rows.shape[0] > 0 or tether.shape[0] > 0:
        act(
            rows, common, strip, blade, strip_gauss, blade_gauss, wake, tether, flow, moving, held, t, ambient, s
        )  # fmt: skip
    for j in range(n + 1):
        for k in range(constant.shape[1]):
            own[j, k] = constant[j, k]
    for r in range(carriers.shape[0]):
        first = n + r * m
        root_motion(places[r], s, carriers[r], current, head)
        rod = (sections[r], inner, lengths[r], rests[r], shapes[r], stiffs[r], dampings[r])
        mine_ = (points[r], jacobian[r], mine, mass, left, told[r], head, six, gain[r])
        modes, rates = state[7 + first : 7 + first + m], state[13 + total + first : 13 + total + first + m]
        condense(rod, mine_, modes, rates, implicit)
        show(places[r], mass, left, s, carriers[r], own, squares)
    solve(topology, own, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
    columns = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(3):
        rate[k] = columns[3 * k] * twist[0] + columns[3 * k + 1] * twist[1] + columns[3 * k + 2] * twist[2]
        rate[3 + k] = twist[3 + k]
    for k in range(6):
        rate[6 + total + k] = s[0, S_ACCELERATION + k]
    for j in range(n):
        rate[6 + j], rate[12 + total + j] = qd[j], qdd[j]
    for r in range(carriers.shape[0]):
        root_acceleration(places[r], s, carriers[r], six)
        for a in range(m):
            at = n + r * m + a
            value = gain[r, a, 6]
            for k in range(6):
                value -= gain[r, a, k] * six[k]
            rate[6 + at], rate[12 + total + at] = state[13 + total + at], value


@kernel
def root_acceleration(place_: Any, s: Any, j: int, out: Any) -> None:
    """out (6,): the component derivative of the root's twist."""
    t = S_ACCELERATION
    wx, wy, wz = s[j, t + 3], s[j, t + 4], s[j, t + 5]
    cx, cy, cz = cross(wx, wy, wz, place_[9], place_[10], place_[11])
    vx, vy, vz = s[j, t] + cx, s[j, t + 1] + cy, s[j, t + 2] + cz
    for k in range(3):
        a, b, c = place_[k], place_[k + 3], place_[k + 6]
        out[k], out[k + 3] = a * vx + b * vy + c * vz, a * wx + b * wy + c * wz


@kernel
def follow(tree: Any, law: Any, hold: Any, state: Any, t: float) -> None:
    """Put imposed joints where their law has them at t."""
    imposed = tree[4]
    total = (state.shape[0] - 13) // 2
    for j in range(imposed.shape[0]):
        if imposed[j]:
            a, b, _ = reference(law, hold, j, t)
            state[7 + j], state[13 + total + j] = a, b


@kernel
def part(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, soft: Any, room: Any, state: Any, t: float, h: float,
    rate: Any, out: Any,
) -> None:  # fmt: skip
    """Linearly implicit Euler from t on; out may be state."""
    evaluate(tree, law, hold, fluid, work, soft, room, state, t, h, rate)
    lead(state, rate, h)
    displace(state, rate, h, out)
    follow(tree, law, hold, out, t + h)


@kernel
def take_step(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, soft: Any, room: Any, state: Any, scratch: Any, t: float,
    dt: float,
) -> int:  # fmt: skip
    """In one part and in two, extrapolated (`implicit2` of trees). scratch: rate, one, two. The state stays as it is
    where it fails."""
    rate, one, two = scratch
    part(tree, law, hold, fluid, work, soft, room, state, t, dt, rate, one)
    h = 0.5 * dt
    part(tree, law, hold, fluid, work, soft, room, state, t, h, rate, two)
    part(tree, law, hold, fluid, work, soft, room, two, t + h, h, rate, two)
    for k in range(state.shape[0]):
        two[k] = 2.0 * two[k] - one[k]
    normalise(two)
    follow(tree, law, hold, two, t + dt)
    if not finite(two):
        return NOT_FINITE
    for k in range(state.shape[0]):
        state[k] = two[k]
    return SOUND
