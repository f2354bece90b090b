"""The local form A(r) of a connection by composite bodies: eta = -A rd, A = M^-1 M_r, for inertia and for drag alike.

What a mechanism's bodies weigh stands where their inertia stands (C_INERTIA): rigid, with added mass, or resistance.
Twists are (6,) here, [linear; angular], with zeros where the group has no motion; the base frame is at the origin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.carry import add_wrench, axis_column
from rtmms.dynamics.inertia import compose
from rtmms.dynamics.recursion import configure, outward, place
from rtmms.jit import kernel
from rtmms.memory import INTEGER, Layout, model, scratch
from rtmms.model.layout import (
    C_INERTIA,
    C_ROTOR,
    C_WIDTH,
    REVOLUTE,
    S_BIAS,
    S_INERTIA,
    S_TWIST,
    S_WIDTH,
    S_WORLD_POS,
    S_WORLD_ROT,
    T_KIND,
    T_PARENT,
    T_WIDTH,
)  # fmt: skip
from rtmms.spatial import PACKED, cross, scalar, times

WEIGHTED = Layout(
    "Weighted",
    model("topology", "rows", T_WIDTH, dtype=INTEGER), model("constant", "rows", C_WIDTH),
    model("free", "free", dtype=INTEGER), model("upright", 4), model("weightless", 3),
)  # fmt: skip
"""A tree whose bodies weigh what a connection has them weigh. free: rows of the twist that can be other than 0."""
WORK = Layout(
    "ConnectionWork",
    scratch("s", "rows", S_WIDTH), scratch("base", 6, 6), scratch("couple", 6, "n"), scratch("qd", "n"),
    scratch("q", "n"),
)  # fmt: skip
"""Of one evaluation."""
SINGULAR = 1e-12
"""A pivot below this share of its diagonal: some net motion meets neither inertia nor drag."""


@kernel
def couple(tree: Any, q: Any, work: Any) -> None:
    """M into s[0, S_INERTIA] and M_r (6, p), columns Ad^T M^c_j S_j, into work's `couple`; O(n)."""
    topology, constant, upright, weightless = tree.topology, tree.constant, tree.upright, tree.weightless
    s, columns = work.s, work.couple
    configure(topology, constant, upright, weightless, q, s)
    place(topology, weightless, upright, s)  # weightless is (0, 0, 0): the base stands at the origin
    compose(topology, constant, s)
    for j in range(1, topology.shape[0]):
        fx, fy, fz, mx, my, mz = axis_column(s, j, topology[j, T_KIND] == REVOLUTE)
        fx, fy, fz = _to_base(s, j, fx, fy, fz)
        mx, my, mz = _to_base(s, j, mx, my, mz)
        tx, ty, tz = cross(s[j, S_WORLD_POS], s[j, S_WORLD_POS + 1], s[j, S_WORLD_POS + 2], fx, fy, fz)
        columns[0, j - 1], columns[1, j - 1], columns[2, j - 1] = fx, fy, fz
        columns[3, j - 1], columns[4, j - 1], columns[5, j - 1] = mx + tx, my + ty, mz + tz


@scalar
def _to_base(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    r = S_WORLD_ROT
    return (
        s[j, r] * x + s[j, r + 1] * y + s[j, r + 2] * z,
        s[j, r + 3] * x + s[j, r + 4] * y + s[j, r + 5] * z,
        s[j, r + 6] * x + s[j, r + 7] * y + s[j, r + 8] * z,
    )


@kernel
def factor(tree: Any, work: Any) -> int:
    """Cholesky's factor of M's free rows into work's `base`; -1, or the row of the twist that meets nothing."""
    rows, s, base = tree.free, work.s, work.base
    for a in range(rows.shape[0]):
        for b in range(a + 1):
            total = s[0, S_INERTIA + PACKED[rows[a], rows[b]]]
            for k in range(b):
                total -= base[a, k] * base[b, k]
            if a > b:
                base[a, b] = total / base[b, b]
            elif total.real > SINGULAR * s[0, S_INERTIA + PACKED[rows[a], rows[a]]].real:
                base[a, a] = np.sqrt(total)
            else:
                return int(rows[a])
    return -1


@kernel
def solve_twist(tree: Any, work: Any, x: Any) -> None:
    """x (6,) <- M^-1 x in the free rows, 0 in the others, in place. After `factor`."""
    rows, base = tree.free, work.base
    dim = rows.shape[0]
    held = 0
    for k in range(6):
        if held < dim and rows[held] == k:
            held += 1
        else:
            x[k] = 0.0 * x[k]
    for a in range(dim):
        for k in range(a):
            x[rows[a]] -= base[a, k] * x[rows[k]]
        x[rows[a]] /= base[a, a]
    for a in range(dim - 1, -1, -1):
        for k in range(a + 1, dim):
            x[rows[a]] -= base[k, a] * x[rows[k]]
        x[rows[a]] /= base[a, a]


@kernel
def local_form(tree: Any, q: Any, work: Any, column: Any, out: Any) -> int:
    """out (6, p) = A(q); column (6,) scratch. -1, or the row of the twist that meets nothing."""
    couple(tree, q, work)
    fault = factor(tree, work)
    if fault >= 0:
        return fault
    for j in range(out.shape[1]):
        for k in range(6):
            column[k] = work.couple[k, j]
        solve_twist(tree, work, column)
        for k in range(6):
            out[k, j] = column[k]
    return -1


@kernel
def net_twist(tree: Any, q: Any, qd: Any, work: Any, twist: Any) -> int:
    """twist (6,) = -A(q) qd, with one right hand side. -1, or the row of the twist that meets nothing."""
    couple(tree, q, work)
    fault = factor(tree, work)
    if fault >= 0:
        return fault
    for k in range(6):
        total = 0.0 * q[0]
        for j in range(q.shape[0]):
            total -= work.couple[k, j] * qd[j]
        twist[k] = total
    solve_twist(tree, work, twist)
    return -1


@kernel
def effort(tree: Any, qd: Any, twist: Any, work: Any) -> Any:
    """sum eta_j^T W_j eta_j + sum rotor qd^2 of the bodies that move so: a power for drag, twice an energy for inertia.

    After `couple`; leaves the twists in s.
    """
    topology, constant = tree.topology, tree.constant
    s = work.s
    outward(topology, twist, qd, s)
    total = 0.0 * s[0, S_TWIST]
    for j in range(topology.shape[0]):
        v0, v1, v2 = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
        v3, v4, v5 = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        p0, p1, p2, p3, p4, p5 = times(constant, j, C_INERTIA, v0, v1, v2, v3, v4, v5)
        total += p0 * v0 + p1 * v1 + p2 * v2 + p3 * v3 + p4 * v4 + p5 * v5
        if j > 0:
            total += constant[j, C_ROTOR] * qd[j - 1] * qd[j - 1]
    return total


@kernel
def resist(tree: Any, work: Any, torque: Any) -> None:
    """torque (p,) = S_j^T sum of W eta of all bodies beyond joint j: what actuators bear against drag. After `effort`.

    With inertia in place of drag it is the joints' part of the momentum. The base's wrench is left in s[0, S_BIAS].
    """
    topology, constant = tree.topology, tree.constant
    s = work.s
    for j in range(topology.shape[0]):
        v0, v1, v2 = s[j, S_TWIST], s[j, S_TWIST + 1], s[j, S_TWIST + 2]
        v3, v4, v5 = s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5]
        p0, p1, p2, p3, p4, p5 = times(constant, j, C_INERTIA, v0, v1, v2, v3, v4, v5)
        b = S_BIAS
        s[j, b], s[j, b + 1], s[j, b + 2], s[j, b + 3], s[j, b + 4], s[j, b + 5] = p0, p1, p2, p3, p4, p5
    for j in range(topology.shape[0] - 1, 0, -1):
        torque[j - 1] = s[j, S_BIAS + 5] if topology[j, T_KIND] == REVOLUTE else s[j, S_BIAS + 2]
        b = S_BIAS
        add_wrench(
            s, b, topology[j, T_PARENT], j, s[j, b], s[j, b + 1], s[j, b + 2], s[j, b + 3], s[j, b + 4], s[j, b + 5]
        )


@kernel
def along(tree: Any, shapes: Any, rates: Any, work: Any, twists: Any, efforts: Any) -> int:
    """Net twists (m, 6) and efforts (m,) at m shapes and rates (m, p); -1, or the row of a twist that meets nothing."""
    q, qd = work.q, work.qd
    for i in range(shapes.shape[0]):
        for j in range(shapes.shape[1]):
            q[j], qd[j] = shapes[i, j], rates[i, j]
        fault = net_twist(tree, q, qd, work, twists[i])
        if fault >= 0:
            return fault
        efforts[i] = effort(tree, qd, twists[i], work)
    return -1


@kernel
def slopes(tree: Any, q: Any, work: Any, column: Any, form: Any, out: Any) -> int:
    """out (p, 6, p): out[k] = dA/dr_k by a complex step; q, work, column and form are complex. As `local_form`."""
    step = 1e-30
    for k in range(q.shape[0]):
        q[k] += step * 1j
        fault = local_form(tree, q, work, column, form)
        q[k] = q[k].real
        if fault >= 0:
            return fault
        for a in range(6):
            for j in range(form.shape[1]):
                out[k, a, j] = form[a, j].imag / step
    return -1
