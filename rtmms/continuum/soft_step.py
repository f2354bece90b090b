"""Compute the equations and the step of a tree whose bodies carry rods by strain modes.

The state (13 + 2 N,) and the rate (12 + 2 N,) are those of a tree (rtmms.mechanism.step) of N coordinates: n joints,
then m of each rod.

A rod passes the body that carries it an articulated inertia and bias at its root. With q's rows solved, M_qq qdd =
left_q - M_qb a, the root has (M_bb - M_bq M_qq^-1 M_qb) a + b + M_bq M_qq^-1 left_q. A rod is a leaf of the tree, so
that only the body's own inertia and bias change in the recursion.

A tendon's point on a rod is at one of its grid's points. Its force F there, carried to the root as a wrench w = (F, p x
F), is J^T w on the strains and w on the root, by virtual work. All else is as for any tree (rtmms.mechanism.tendons).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import COMPILED, kernel
from rtmms.base.memory import INTEGER, Layout, Record, model, number, part, scratch, state, whole
from rtmms.base.spatial import PACKED, cross, quaternion_columns, scalar
from rtmms.continuum.dynamics import bear, carry_along, weigh
from rtmms.continuum.layout import ENERGY, K_WIDTH, LOSS, P_POS, P_ROT, P_TWIST, P_WIDTH, POWER, TOTALS
from rtmms.continuum.strain_modes import assemble, columns, strain
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.fluids.immersed import FLUID, act
from rtmms.mechanism.entry import COMMAND
from rtmms.mechanism.equations import TREE, WORK
from rtmms.mechanism.joint_laws import HOLD, LAW, finish_servo, follow, hold_commands, reference
from rtmms.mechanism.step import displace, finite, lead, normalise, saturate
from rtmms.mechanism.tendons import (
    AT,
    COUNT,
    FIRST,
    MOVES,
    PLACE,
    ROW,
    TENDONS,
    finish_tendons,
    force,
    place_points,
    push_bodies,
    run_along,
    tendon_loss,
    write_tensions,
)
from rtmms.model.layout import (
    C_INERTIA,
    C_WIDTH,
    S_ACCELERATION,
    S_GRAVITY,
    S_HELD,
    S_TWIST,
    S_WORLD_POS,
    S_WORLD_ROT,
    S_WRENCH,
)

PULLED = Layout(
    "Pulled", state("command", "commands"), state("lost", 1, unit="J"), scratch("wrench", "rods", "along", 6)
)  # fmt: skip
"""Tendons on rods.

`command` has the commands of all actuators. `lost` is the energy lost to friction and dampers of tendons. `wrench` has
the tendons' wrenches on each point of each rod, in the root's frame about the root.
"""


@scalar
def in_root(points: Any, k: Any, s: Any) -> Any:
    """Return a tendon's point on a rod, in the root's frame.

    Parameters
    ----------
    points : array
        Points of all tendons.
    k : int
        Index of the point.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.

    Returns
    -------
    (float, float, float)
        m.
    """
    i, y, z = int(points[k, PLACE]), points[k, PLACE + 1], points[k, PLACE + 2]
    r = P_ROT
    return (
        s[i, P_POS] + s[i, r + 1] * y + s[i, r + 2] * z,
        s[i, P_POS + 1] + s[i, r + 4] * y + s[i, r + 5] * z,
        s[i, P_POS + 2] + s[i, r + 7] * y + s[i, r + 8] * z,
    )


@kernel
def place_on_rod(tendons: Any, r: int, place: Any, j: int, head: Any, rod: Any, s: Any) -> None:
    """Write world positions and velocities of the tendons' points on a rod.

    Parameters
    ----------
    tendons : Record
        Tendons.
    r : int
        Index of the rod.
    place : (12,) array
        Rotation by rows and position of the root in the frame of the row that carries it.
    j : int
        Row of the model that carries the root.
    head : (3, 6) array
        See `root_motion`.
    rod : (points, P_WIDTH) array
        Points of the rod after `carry_along`.
    s : (rows, S_WIDTH) array
        Scratch of the tree, columns S_* of `rtmms.model.layout`; read and written.
    """
    points, room, w = tendons.points, tendons.room, S_WORLD_ROT
    for k in range(points.shape[0]):
        if points[k, ROW] == -1.0 - r:
            i = int(points[k, PLACE])
            px, py, pz = in_root(points, k, rod)
            t = P_TWIST
            cx, cy, cz = cross(
                head[2, 3] + rod[i, t + 3], head[2, 4] + rod[i, t + 4], head[2, 5] + rod[i, t + 5], px, py, pz
            )
            vx, vy, vz = head[2, 0] + rod[i, t] + cx, head[2, 1] + rod[i, t + 1] + cy, head[2, 2] + rod[i, t + 2] + cz
            qx = place[9] + place[0] * px + place[1] * py + place[2] * pz
            qy = place[10] + place[3] * px + place[4] * py + place[5] * pz
            qz = place[11] + place[6] * px + place[7] * py + place[8] * pz
            ux = place[0] * vx + place[1] * vy + place[2] * vz
            uy = place[3] * vx + place[4] * vy + place[5] * vz
            uz = place[6] * vx + place[7] * vy + place[8] * vz
            for a in range(3):
                x, y, z = s[j, w + 3 * a], s[j, w + 3 * a + 1], s[j, w + 3 * a + 2]
                room[k, AT + a] = s[j, S_WORLD_POS + a] + x * qx + y * qy + z * qz
                room[k, MOVES + a] = x * ux + y * uy + z * uz


@kernel
def pull_rods(tendons: Any, pulled: Any, elapsed: float, carriers: Any, places: Any, rods: Any, s: Any) -> None:
    """Add the tendons' forces to S_WRENCH and `pulled.wrench`, after `place_on_rod` of every rod.

    Parameters
    ----------
    tendons : Record
        Tendons.
    pulled : Record
        Record of `PULLED`.
    elapsed : float
        Time since the start of the plant's step, s.
    carriers : (rods,) array
        Rows of the model that carry the roots.
    places : (rods, 12) array
        Roots in the frames of these rows.
    rods : (rods, points, P_WIDTH) array
        Points of the rods.
    s : (rows, S_WIDTH) array
        Scratch of the tree, columns S_* of `rtmms.model.layout`; read and written.
    """
    numbers, points, room, wrench = tendons.numbers, tendons.points, tendons.room, pulled.wrench
    wrench[:, :, :] = 0.0 * s[0, S_TWIST]
    for i in range(numbers.shape[0]):
        first, last = int(numbers[i, FIRST]), int(numbers[i, FIRST]) + int(numbers[i, COUNT]) - 1
        place_points(points, room, first, last - first + 1, s)
        length, rate = run_along(room, first, last - first + 1)
        write_tensions(tendons, pulled.command, elapsed, i, length, rate)
        push_bodies(points, room, first, last, s)
        for k in range(first, last + 1):
            if points[k, ROW] < 0.0:
                r = int(-1.0 - points[k, ROW])
                j, node, p, w = carriers[r], int(points[k, PLACE]), places[r], S_WORLD_ROT
                x, y, z = force(room, k, first, last)
                fx = s[j, w] * x + s[j, w + 3] * y + s[j, w + 6] * z
                fy = s[j, w + 1] * x + s[j, w + 4] * y + s[j, w + 7] * z
                fz = s[j, w + 2] * x + s[j, w + 5] * y + s[j, w + 8] * z
                gx, gy, gz = (
                    p[0] * fx + p[3] * fy + p[6] * fz, p[1] * fx + p[4] * fy + p[7] * fz,
                    p[2] * fx + p[5] * fy + p[8] * fz,
                )  # fmt: skip
                ax, ay, az = in_root(points, k, rods[r])
                mx, my, mz = cross(ax, ay, az, gx, gy, gz)
                item = wrench[r, node]
                item[0], item[1], item[2] = item[0] + gx, item[1] + gy, item[2] + gz
                item[3], item[4], item[5] = item[3] + mx, item[4] + my, item[5] + mz


@kernel
def lose(pulled: Any, tendons: Any, h: float) -> None:
    """Add the power lost to friction and dampers of tendons at the evaluation just made, times h.

    Parameters
    ----------
    pulled : Record or None
        Record of `PULLED`; an argument so that the compiler specialises on None.
    tendons : Record or None
        Tendons; an argument so that the compiler specialises on None.
    h : float
        Length of the step, s.
    """
    if pulled is not None:
        pulled.lost[0] += h * tendon_loss(tendons)


@kernel
def strain_under(wrench: Any, jacobian: Any, left: Any) -> None:
    """Subtract the tendons' wrenches at a rod's points from its bias on root and strains.

    Parameters
    ----------
    wrench : (points, 6) array or None
        Wrenches in the root's frame.
    jacobian : (n, points, 6) array
        Twist of each point for a unit rate of each coordinate, root's frame.
    left : (6 + m,) array
        Bias; changed.
    """
    if wrench is not None:
        for i in range(wrench.shape[0]):
            for k in range(6):
                left[k] -= wrench[i, k]
                for a in range(jacobian.shape[0]):
                    left[6 + a] -= jacobian[a, i, k] * wrench[i, k]


@kernel
def root_motion(place: Any, s: Any, j: int, current: Any, head: Any) -> None:
    """Write current and gravity in the root's frame, and the root's twist.

    Parameters
    ----------
    place : (12,) array
        Rotation by rows and position of the root in the frame of the row that carries it.
    s : (rows, S_WIDTH) array
        Scratch of the tree, columns S_* of `rtmms.model.layout`; read and written.
    j : int
        Row of the model that carries the root.
    current : (3,) array
        Current, m/s, world.
    head : (3, 6) array
        Result.
    """
    t = S_TWIST
    wx, wy, wz = s[j, t + 3], s[j, t + 4], s[j, t + 5]
    cx, cy, cz = cross(wx, wy, wz, place[9], place[10], place[11])
    vx, vy, vz = s[j, t] + cx, s[j, t + 1] + cy, s[j, t + 2] + cz
    w = S_WORLD_ROT
    ux = s[j, w] * current[0] + s[j, w + 3] * current[1] + s[j, w + 6] * current[2]
    uy = s[j, w + 1] * current[0] + s[j, w + 4] * current[1] + s[j, w + 7] * current[2]
    uz = s[j, w + 2] * current[0] + s[j, w + 5] * current[1] + s[j, w + 8] * current[2]
    gx, gy, gz = s[j, S_GRAVITY], s[j, S_GRAVITY + 1], s[j, S_GRAVITY + 2]
    for k in range(3):
        a, b, c = place[k], place[k + 3], place[k + 6]
        head[0, k] = a * ux + b * uy + c * uz
        head[1, k] = a * gx + b * gy + c * gz
        head[2, k] = a * vx + b * vy + c * vz
        head[2, k + 3] = a * wx + b * wy + c * wz


@kernel
def eliminate(mass: Any, left: Any, gain: Any) -> None:
    """Write gain = M_qq^-1 (M_qb | left_q), and reduce mass[:6, :6] and left[:6] to those at the root.

    Parameters
    ----------
    mass : (6 + m, 6 + m) array
        Mass matrix of root and strains; Cholesky's factor is in mass[6:, 6:] afterwards.
    left : (6 + m,) array
        Bias; changed.
    gain : (m, 7) array
        Result; NaN where M_qq is not positive.
    """
    m = gain.shape[0]
    for a in range(6, 6 + m):
        total = mass[a, a]
        for k in range(6, a):
            total -= mass[a, k] * mass[a, k]
        pivot = np.sqrt(total)
        mass[a, a] = pivot
        for b in range(a + 1, 6 + m):
            total = mass[b, a]
            for k in range(6, a):
                total -= mass[b, k] * mass[a, k]
            mass[b, a] = total / pivot
    for c in range(7):
        for a in range(m):
            total = left[6 + a] if c == 6 else mass[c, 6 + a]
            for k in range(a):
                total -= mass[6 + a, 6 + k] * gain[k, c]
            gain[a, c] = total / mass[6 + a, 6 + a]
        for a in range(m - 1, -1, -1):
            total = gain[a, c]
            for k in range(a + 1, m):
                total -= mass[6 + k, 6 + a] * gain[k, c]
            gain[a, c] = total / mass[6 + a, 6 + a]
    for k in range(6):
        for a in range(m):
            left[k] += mass[k, 6 + a] * gain[a, 6]
    for k in range(6):
        for j in range(k, 6):
            total = mass[k, j]
            for a in range(m):
                total -= mass[k, 6 + a] * gain[a, j]
            mass[j, k] = total
    for k in range(6):
        for j in range(k):
            mass[j, k] = mass[k, j]


@kernel
def show(place: Any, mass: Any, left: Any, s: Any, j: int, constant: Any, room: Any) -> None:
    """Add the root's mass and bias, carried to row j, to its inertia in `constant` and to S_WRENCH.

    Parameters
    ----------
    place : (12,) array
        Rotation by rows and position of the root in the frame of the row that carries it.
    mass : (6 + m, 6 + m) array
        From `eliminate`.
    left : (6 + m,) array
        From `eliminate`.
    s : (rows, S_WIDTH) array
        Scratch of the tree, columns S_* of `rtmms.model.layout`; read and written.
    j : int
        Row of the model that carries the root.
    constant : (rows, C_WIDTH) array
        Constants of this evaluation; changed.
    room : (3, 6, 6) array
        Scratch.
    """
    x, half, whole = room[0], room[1], room[2]
    px, py, pz = place[9], place[10], place[11]
    for k in range(3):  # X: twist of row j -> of the root, [[R^T, -R^T p^], [0, R^T]]
        a, b, c = place[k], place[k + 3], place[k + 6]
        x[k, 0], x[k, 1], x[k, 2] = a, b, c
        x[k, 3], x[k, 4], x[k, 5] = cross(px, py, pz, a, b, c)
        x[k + 3, 0] = x[k + 3, 1] = x[k + 3, 2] = 0.0
        x[k + 3, 3], x[k + 3, 4], x[k + 3, 5] = a, b, c
    for k in range(6):
        for i in range(6):
            total = 0.0
            for n in range(6):
                total += mass[k, n] * x[n, i]
            half[k, i] = total
    for k in range(6):
        for i in range(6):
            total = 0.0
            for n in range(6):
                total += x[n, k] * half[n, i]
            whole[k, i] = total
    t = S_TWIST
    for k in range(6):  # the momentum that `load` will make of it, taken out again
        total = 0.0
        for i in range(6):
            total += whole[k, i] * s[j, t + i]
        half[0, k] = total
    vx, vy, vz, wx, wy, wz = s[j, t], s[j, t + 1], s[j, t + 2], s[j, t + 3], s[j, t + 4], s[j, t + 5]
    p0, p1, p2, l0, l1, l2 = half[0, 0], half[0, 1], half[0, 2], half[0, 3], half[0, 4], half[0, 5]
    ax, ay, az = cross(wx, wy, wz, p0, p1, p2)
    bx, by, bz = cross(wx, wy, wz, l0, l1, l2)
    cx, cy, cz = cross(vx, vy, vz, p0, p1, p2)
    half[0, 0], half[0, 1], half[0, 2] = ax, ay, az
    half[0, 3], half[0, 4], half[0, 5] = bx + cx, by + cy, bz + cz
    for k in range(6):
        total = half[0, k]
        for n in range(6):
            total -= x[n, k] * left[n]
        s[j, S_WRENCH + k] += total
        for i in range(k, 6):
            constant[j, C_INERTIA + PACKED[k, i]] += 0.5 * (whole[k, i] + whole[i, k])


@kernel
def condense(rod: Any, work: Any, q: Any, qd: Any, implicit: float, pulled: Any) -> None:
    """Compute mass, bias and gain of a rod whose root moves as `head`.

    Parameters
    ----------
    rod : tuple
        section, inner, length of a cell, rest, shapes, stiff, damping.
    work : tuple
        s, jacobian, mine, mass, left, totals, head, room (6,), gain (m, 7).
    q, qd : (m,) array
        Coordinates of the strain, and their rates.
    implicit : float
        Step of the linearly implicit stiffness, s.
    pulled : (points, 6) array or None
        Wrenches of tendons.
    """
    section, inner, h, rest_strain, shapes, stiff, damping = rod
    s, jacobian, mine, mass, left, loads, head, room, gain = work
    m = shapes.shape[0]
    strain(rest_strain, shapes, q, qd, s)
    carry_along(inner, h, head[2], s)
    loads[ENERGY] = loads[POWER] = loads[LOSS] = 0.0
    for i in range(section.shape[0]):
        weigh(section, s, i)
        bear(section, s, i, head[2], head[0], head[1], loads)
    columns(shapes, inner, h, s, jacobian, mine)
    assemble(section, s, jacobian, mass, left, room)
    strain_under(pulled, jacobian, left)
    for a in range(m):
        pull = 0.0
        for b in range(m):
            pull += stiff[a, b] * (q[b] + (implicit + damping) * qd[b])
            loads[ENERGY] += 0.5 * q[a] * stiff[a, b] * q[b]
            mass[6 + a, 6 + b] += implicit * (damping + implicit) * stiff[a, b]
        left[6 + a] = -left[6 + a] - pull
    eliminate(mass, left, gain)


SOUND = 0
BAD_COMMAND = 1
NOT_FINITE = 2
POSED = 12
SOFT = Layout(
    "Soft",
    model("carriers", "rods", dtype=INTEGER), model("places", "rods", POSED),
    model("sections", "rods", "along", K_WIDTH), model("inner", "cell", "cell"), model("lengths", "rods", unit="m"),
    model("rests", "rods", "along", 6),
    model("shapes", "rods", "m", "along", 6), model("stiffs", "rods", "m", "m"), model("dampings", "rods"),
    model("current", 3, unit="m/s"),
)  # fmt: skip
"""The rods.

`carriers` are rows of the model. `places` has rotation (9) and position (3) of the roots there. `sections`: see
rtmms.continuum.layout.
"""
ROOM = Layout(
    "Room",
    scratch("constant", "rows", C_WIDTH), scratch("points", "rods", "along", P_WIDTH),
    scratch("jacobian", "rods", "m", "along", 6), scratch("mine", "along", 6), scratch("mass", "6 + m", "6 + m"),
    scratch("left", "6 + m"), scratch("totals", "rods", TOTALS), scratch("head", 3, 6), scratch("six", 6),
    scratch("gain", "rods", "m", 7), scratch("squares", 3, 6, 6),
)  # fmt: skip
"""Scratch of one evaluation; `constant` is the model's, with the rods' inertia added."""
MOTION = Layout(
    "SoftMotion",
    state("vector", "13 + 2 * (n + rods * m)"), scratch("rate", "12 + 2 * (n + rods * m)"),
    scratch("one_part", "13 + 2 * (n + rods * m)"), scratch("two", "13 + 2 * (n + rods * m)"),
)  # fmt: skip
SYSTEM = Layout(
    "SoftSystem",
    part("motion", MOTION), part("hold", HOLD), part("tree", TREE), part("law", LAW), part("fluid", FLUID),
    part("work", WORK), part("soft", SOFT), part("room", ROOM), part("tendons", TENDONS), part("pulled", PULLED),
    part("command", COMMAND), number("dt", unit="s"), whole("memory"), scratch("last", "memory"),
)  # fmt: skip
"""Arrays of a `SoftTree`'s step; `tendons` and `pulled` exist with tendons; `last` is the state before the step."""


@kernel
def evaluate(system: Any, state: Any, t: float, implicit: float, rate: Any) -> None:
    """Compute the rate of a state.

    Parameters
    ----------
    system : Record
        Record of `SYSTEM`.
    state : (13 + 2 N,) array
        State vector.
    t : float
        s.
    implicit : float
        Step of linearly implicit springs, dampers and servos, s.
    rate : (12 + 2 N,) array
        Result.
    """
    tree, law, hold, fluid, work, soft, room = (
        system.tree, system.law, system.hold, system.fluid, system.work, system.soft, system.room
    )  # fmt: skip
    topology, constant, base_mode, imposed = tree.topology, tree.constant, tree.base_mode, tree.imposed
    s, base, qdd, torque, q, qd, drive = work.s, work.base, work.qdd, work.torque, work.q, work.qd, work.drive
    carriers, places, sections, inner, lengths = soft.carriers, soft.places, soft.sections, soft.inner, soft.lengths
    rests, shapes, stiffs, dampings, current = soft.rests, soft.shapes, soft.stiffs, soft.dampings, soft.current
    local, points, jacobian, mine, mass, left = (
        room.constant, room.points, room.jacobian, room.mine, room.mass, room.left
    )  # fmt: skip
    loads, head, six, gain, squares = room.totals, room.head, room.six, room.gain, room.squares
    n, m, total = topology.shape[0] - 1, shapes.shape[1], (state.shape[0] - 13) // 2
    for j in range(n):
        if imposed[j]:
            q[j], qd[j], drive[j] = reference(law, hold, hold.coast, j, t)
        else:
            q[j], qd[j], drive[j] = state[7 + j], state[13 + total + j], hold.torque[j]
            s[j + 1, S_HELD] = 0.0
    orientation, twist = state[3:7], state[7 + total : 13 + total]
    configure(topology, constant, orientation, tree.gravity, q, s)
    outward(topology, twist, qd, s)
    place(topology, state[0:3], orientation, s)
    if fluid.rows.shape[0] > 0 or fluid.tethers.shape[0] > 0:
        act(fluid, t, s)
    for j in range(n + 1):
        for k in range(constant.shape[1]):
            local[j, k] = constant[j, k]
    pull_all(system, system.tendons, state, t - hold.start)
    for r in range(carriers.shape[0]):
        first = n + r * m
        root_motion(places[r], s, carriers[r], current, head)
        rod = (sections[r], inner, lengths[r], rests[r], shapes[r], stiffs[r], dampings[r])
        mine_ = (points[r], jacobian[r], mine, mass, left, loads[r], head, six, gain[r])
        modes, rates = state[7 + first : 7 + first + m], state[13 + total + first : 13 + total + first + m]
        condense(rod, mine_, modes, rates, implicit, wrench_on(system.pulled, r))
        show(places[r], mass, left, s, carriers[r], local, squares)
    solve(topology, local, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
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
def wrench_on(pulled: Any, r: int) -> Any:
    """Return the tendons' wrenches on the points of a rod.

    Parameters
    ----------
    pulled : Record or None
        Record of `PULLED`; an argument so that the compiler specialises on None.
    r : int
        Index of the rod.

    Returns
    -------
    (points, 6) array or None
        None without tendons.
    """
    if pulled is not None:
        return pulled.wrench[r]
    return None


@kernel
def pull_all(system: Any, tendons: Any, state: Any, elapsed: float) -> None:
    """Add the tendons' forces on bodies and rods.

    Parameters
    ----------
    system : Record
        Record of `SYSTEM`.
    tendons : Record or None
        Tendons; an argument so that the compiler specialises on None.
    state : (13 + 2 N,) array
        State vector.
    elapsed : float
        Time since the start of the plant's step, s.
    """
    if tendons is not None:
        soft, room, s = system.soft, system.room, system.work.s
        n, m, total = system.tree.topology.shape[0] - 1, soft.shapes.shape[1], (state.shape[0] - 13) // 2
        for r in range(soft.carriers.shape[0]):
            first, points = n + r * m, room.points[r]
            root_motion(soft.places[r], s, soft.carriers[r], soft.current, room.head)
            modes, rates = state[7 + first : 7 + first + m], state[13 + total + first : 13 + total + first + m]
            strain(soft.rests[r], soft.shapes[r], modes, rates, points)
            carry_along(soft.inner, soft.lengths[r], room.head[2], points)
            place_on_rod(tendons, r, soft.places[r], soft.carriers[r], room.head, points, s)
        pull_rods(tendons, system.pulled, elapsed, soft.carriers, soft.places, room.points, s)


@kernel
def root_acceleration(place_: Any, s: Any, j: int, out: Any) -> None:
    """Write the component derivative of the root's twist.

    Parameters
    ----------
    place_ : (12,) array
        Rotation by rows and position of the root in row j's frame.
    s : (rows, S_WIDTH) array
        Scratch of the tree, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model that carries the root.
    out : (6,) array
        Result, m/s2 and rad/s2.
    """
    t = S_ACCELERATION
    wx, wy, wz = s[j, t + 3], s[j, t + 4], s[j, t + 5]
    cx, cy, cz = cross(wx, wy, wz, place_[9], place_[10], place_[11])
    vx, vy, vz = s[j, t] + cx, s[j, t + 1] + cy, s[j, t + 2] + cz
    for k in range(3):
        a, b, c = place_[k], place_[k + 3], place_[k + 6]
        out[k], out[k + 3] = a * vx + b * vy + c * vz, a * wx + b * wy + c * wz


@kernel
def euler(system: Any, state: Any, t: float, h: float, rate: Any, out: Any) -> None:
    """Take a step of linearly implicit Euler.

    Parameters
    ----------
    system : Record
        Record of `SYSTEM`.
    state : (13 + 2 N,) array
        State vector.
    t : float
        Time at the start, s.
    h : float
        Length of the step, s.
    rate : (12 + 2 N,) array
        Scratch.
    out : (13 + 2 N,) array
        Result; it may be `state`.
    """
    evaluate(system, state, t, h, rate)
    lead(state, rate, h)
    displace(state, rate, h, out)
    follow(system, out, t + h)


@kernel
def advance(system: Any) -> int:
    """Take a step in one part and in two, extrapolated (`implicit2` of trees); a failed step keeps the state.

    Parameters
    ----------
    system : Record
        Record of `SYSTEM`.

    Returns
    -------
    int
        SOUND or NOT_FINITE.
    """
    motion, t, dt = system.motion, system.hold.start, system.dt
    state, rate, one_part, two = motion.vector, motion.rate, motion.one_part, motion.two
    euler(system, state, t, dt, rate, one_part)
    h = 0.5 * dt
    euler(system, state, t, h, rate, two)
    euler(system, two, t + h, h, rate, two)
    for k in range(state.shape[0]):
        two[k] = 2.0 * two[k] - one_part[k]
    normalise(two)
    follow(system, two, t + dt)
    if not finite(two):
        return NOT_FINITE
    lose(system.pulled, system.tendons, dt)  # of the second half's beginning: what extrapolation makes of the three
    for k in range(state.shape[0]):
        state[k] = two[k]
    return SOUND


@kernel
def take_command(pulled: Any, command: Any) -> None:
    """Hold the commands of tendons.

    Parameters
    ----------
    pulled : Record or None
        Record of `PULLED`; an argument so that the compiler specialises on None.
    command : (n_actuators,) array
        Commands of all actuators.
    """
    if pulled is not None:
        for k in range(command.shape[0]):
            pulled.command[k] = command[k]


@kernel
def finish_pulled(tendons: Any, pulled: Any, dt: float) -> None:
    """Advance the filtered commands of tendons to the end of a step.

    Parameters
    ----------
    tendons : Record
        Tendons.
    pulled : Record or None
        Record of `PULLED`; an argument so that the compiler specialises on None.
    dt : float
        Step, s.
    """
    if pulled is not None:
        finish_tendons(tendons, pulled.command, dt)


@kernel
def take_step(system: Any) -> int:
    """Hold the command, advance by dt, and advance servos and tendons; the state before is in `last`.

    Parameters
    ----------
    system : Record
        Record of `SYSTEM`.

    Returns
    -------
    int
        SOUND, NOT_FINITE, or BAD_COMMAND, with which nothing has happened.
    """
    command, hold, memory, last, dt = system.command, system.hold, system.memory, system.last, system.dt
    values = command.values
    if not finite(values):
        return BAD_COMMAND
    for k in range(memory.shape[0]):
        last[k] = memory[k]
    saturate(values, command.limits)
    hold_commands(command, values, hold.torque, hold.target, hold.slew, hold.goal)
    take_command(system.pulled, values)
    status = advance(system)
    if status == SOUND:
        finish_servo(hold, hold.coast, dt)
        finish_pulled(system.tendons, system.pulled, dt)
    return status


_ABSENT = ("tree.ground", "tree.modal", "hold.coast")
_FOILS = ("fluid.foils", "fluid.polars", "fluid.resistances")
_PULLS = ("tendons", "pulled")
_TYPES = tuple(SYSTEM.type(*_ABSENT, *more) for more in ((*_FOILS, *_PULLS), _FOILS, _PULLS, ()))
_plain_at, _pulled_at, _foils_at, _foils_pulled_at = (kind.at() for kind in _TYPES)


@kernel
def enter_step(address: int) -> int:
    """Call `take_step` for the plant whose record is at `address`.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_plain_at(address))


@kernel
def enter_step_pulled(address: int) -> int:
    """Call `take_step` for a plant with tendons.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_pulled_at(address))


@kernel
def enter_step_with_foils(address: int) -> int:
    """Call `take_step` for a plant with polars.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_foils_at(address))


@kernel
def enter_step_with_foils_pulled(address: int) -> int:
    """Call `take_step` for a plant with polars and tendons.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_foils_pulled_at(address))


def step_kernel(system: Record) -> Any:
    """Return the compiled entry point for the step of a record.

    Parameters
    ----------
    system : Record
        Record of `SYSTEM`.

    Returns
    -------
    callable or None
        None where kernels are plain Python.
    """
    entries = (enter_step, enter_step_pulled, enter_step_with_foils, enter_step_with_foils_pulled)
    return entries[_TYPES.index(system.numba_type)] if COMPILED else None
