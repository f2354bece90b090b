"""Compute a geometrically exact rod whose strain is a sum of shapes (Boyer and Renda's reduction).

xi(X, t) = xi_rest(X) + Phi(X) q(t). In the frame of its root the twist of a section is J (eta0; qd), with columns int
Ad_g Phi_k, which the kinematics of an imposed strain integrate along X already. The equations are

    [int J^T M J] (eta0_t; qdd) + int J^T b(q, qd) + (0; K q + D qd) = J_tip^T F
    K = int Phi^T H Phi,  D = damping K

with b as for a body with imposed strain, at xi_tt = 0. K q is linear however large the bending: the geometry is all in
J. State and rate are those of a tree of n joints (rtmms.mechanism.step).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.jit import kernel
from rtmms.base.memory import FLAG, Layout, model, number, scratch, state, step_input, whole
from rtmms.base.spatial import PACKED, Array, cross, quaternion_columns
from rtmms.continuum import layout as at
from rtmms.continuum.body import Grid, grid
from rtmms.continuum.dynamics import bear, carry_along, to_head, weigh
from rtmms.continuum.layout import (
    ENERGY,
    K_PULL,
    K_WEIGHT,
    K_WIDTH,
    LOSS,
    P_LOAD,
    P_POS,
    P_SLOPE,
    P_STRAIN,
    P_WIDTH,
    POWER,
    TOTALS,
)  # fmt: skip
from rtmms.mechanism.step import displace, finite, lead, normalise
from rtmms.model import Placement, Strip
from rtmms.model.rods import AXES, Rod, RodSection

SOUND = 0
BAD_COMMAND = 1
NOT_FINITE = 2


@kernel
def strain(rest_strain: Any, shapes: Any, q: Any, qd: Any, s: Any) -> None:
    """Write P_STRAIN of all points.

    Parameters
    ----------
    rest_strain : (points, 6) array
        Strain at rest.
    shapes : (n, points, 6) array
        Shapes of the strain.
    q, qd : (n,) array
        Coordinates, and their rates.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    """
    for i in range(s.shape[0]):
        for k in range(6):
            s[i, P_STRAIN + k] = rest_strain[i, k]
            s[i, P_STRAIN + 6 + k] = 0.0
            s[i, P_STRAIN + 12 + k] = 0.0
        for a in range(shapes.shape[0]):
            for k in range(6):
                s[i, P_STRAIN + k] += shapes[a, i, k] * q[a]
                s[i, P_STRAIN + 6 + k] += shapes[a, i, k] * qd[a]


@kernel
def columns(shapes: Any, inner: Any, h: float, s: Any, jacobian: Any, mine: Any) -> None:
    """Write the Jacobian int_0^X Ad_g Phi_k, in the root's frame.

    Parameters
    ----------
    shapes : (n, points, 6) array
        Shapes of the strain.
    inner : (q, q) array
        Integrals within a cell, see `body.Grid`.
    h : float
        Length of a cell, m.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*; read and written.
    jacobian : (n, points, 6) array
        Result.
    mine : (points, 6) array
        Scratch.
    """
    q, points = inner.shape[0], s.shape[0]
    for a in range(shapes.shape[0]):
        for i in range(points):
            for k in range(6):
                s[i, P_SLOPE + k] = shapes[a, i, k]
            c = to_head(s, i, P_SLOPE)
            mine[i, 0], mine[i, 1], mine[i, 2], mine[i, 3], mine[i, 4], mine[i, 5] = c
        for k in range(6):
            jacobian[a, 0, k] = 0.0
        for first in range(0, points - 1, q - 1):
            for i in range(1, q):
                for k in range(6):
                    total = 0.0
                    for j in range(q):
                        total += inner[i, j] * mine[first + j, k]
                    jacobian[a, first + i, k] = jacobian[a, first, k] + h * total


@kernel
def times_packed(m: Any, v: Any, out: Any) -> None:
    """Write a packed inertia times a vector.

    Parameters
    ----------
    m : (21,) array
        Packed inertia.
    v : (6,) array
        Vector.
    out : (6,) array
        Result.
    """
    out[0] = m[0] * v[0] + m[1] * v[1] + m[2] * v[2] + m[6] * v[3] + m[7] * v[4] + m[8] * v[5]
    out[1] = m[1] * v[0] + m[3] * v[1] + m[4] * v[2] + m[9] * v[3] + m[10] * v[4] + m[11] * v[5]
    out[2] = m[2] * v[0] + m[4] * v[1] + m[5] * v[2] + m[12] * v[3] + m[13] * v[4] + m[14] * v[5]
    out[3] = m[6] * v[0] + m[9] * v[1] + m[12] * v[2] + m[15] * v[3] + m[16] * v[4] + m[17] * v[5]
    out[4] = m[7] * v[0] + m[10] * v[1] + m[13] * v[2] + m[16] * v[3] + m[18] * v[4] + m[19] * v[5]
    out[5] = m[8] * v[0] + m[11] * v[1] + m[14] * v[2] + m[17] * v[3] + m[19] * v[4] + m[20] * v[5]


@kernel
def assemble(section: Any, s: Any, jacobian: Any, mass: Any, left: Any, room: Any) -> None:
    """Write the mass matrix int J^T M J and the bias int J^T b.

    Parameters
    ----------
    section : (points, K_WIDTH) array
        Sections.
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    jacobian : (n, points, 6) array
        Twist of each point for a unit rate of each coordinate, root's frame.
    mass : (6 + n, 6 + n) array
        Result.
    left : (6 + n,) array
        Result.
    room : (6,) array
        Scratch.
    """
    n, points = jacobian.shape[0], s.shape[0]
    for a in range(6 + n):
        left[a] = 0.0
        for b in range(6 + n):
            mass[a, b] = 0.0
    unit = left[:6]
    for i in range(points):
        w = section[i, K_WEIGHT]
        m = s[i, P_LOAD : P_LOAD + 21]
        for k in range(6):
            for j in range(6):
                unit[j] = 1.0 if j == k else 0.0
            times_packed(m, unit, room)
            for j in range(6):
                mass[j, k] += w * room[j]
        for a in range(n):
            times_packed(m, jacobian[a, i], room)
            for j in range(6):
                mass[j, 6 + a] += w * room[j]
            for b in range(a + 1):
                total = 0.0
                for j in range(6):
                    total += room[j] * jacobian[b, i, j]
                mass[6 + b, 6 + a] += w * total
    for j in range(6):
        left[j] = 0.0
    for i in range(points):
        w, at = section[i, K_WEIGHT], P_LOAD + 21
        for j in range(6):
            left[j] += w * s[i, at + j]
        for a in range(n):
            total = 0.0
            for j in range(6):
                total += jacobian[a, i, j] * s[i, at + j]
            left[6 + a] += w * total
    for a in range(6 + n):
        for b in range(a):
            mass[a, b] = mass[b, a]


@kernel
def solve_upper(mass: Any, right: Any, first: int) -> None:
    """Solve mass x = right from row `first` on, by Cholesky's method in place.

    Parameters
    ----------
    mass : (k, k) array
        Symmetric matrix; overwritten.
    right : (k,) array
        Right-hand side, and result; NaN where the matrix is not positive.
    first : int
        First row.
    """
    size = mass.shape[0]
    for a in range(first, size):
        total = mass[a, a]
        for k in range(first, a):
            total -= mass[a, k] * mass[a, k]
        pivot = np.sqrt(total)
        mass[a, a] = pivot
        for b in range(a + 1, size):
            total = mass[b, a]
            for k in range(first, a):
                total -= mass[b, k] * mass[a, k]
            mass[b, a] = total / pivot
    for a in range(first, size):
        total = right[a]
        for k in range(first, a):
            total -= mass[a, k] * right[k]
        right[a] = total / mass[a, a]
    for a in range(size - 1, first - 1, -1):
        total = right[a]
        for k in range(a + 1, size):
            total -= mass[k, a] * right[k]
        right[a] = total / mass[a, a]


@kernel
def add_carrier(carrier: Any, twist: Any, gravity: Any, mass: Any, left: Any, room: Any) -> float:
    """Add the rigid body at the root to mass and bias, and return its energy.

    Parameters
    ----------
    carrier : (25,) array
        Packed inertia about the root in its frame; mass, kg, and first moments (3,), kg m, that gravity acts on.
    twist : (6,) array
        Twist of the root, its frame, m/s and rad/s.
    gravity : (3,) array
        m/s2, root's frame.
    mass : (6 + n, 6 + n) array
        Mass matrix; M is added.
    left : (6 + n,) array
        Bias; -ad_eta^T M eta less the weight is added.
    room : (6,) array
        Scratch.

    Returns
    -------
    float
        Kinetic energy and that of the weight relative to the root, J.
    """
    vx, vy, vz, wx, wy, wz = twist[0], twist[1], twist[2], twist[3], twist[4], twist[5]
    times_packed(carrier, twist, room)
    energy = 0.5 * (vx * room[0] + vy * room[1] + vz * room[2] + wx * room[3] + wy * room[4] + wz * room[5])
    ax, ay, az = cross(wx, wy, wz, room[0], room[1], room[2])
    bx, by, bz = cross(wx, wy, wz, room[3], room[4], room[5])
    cx, cy, cz = cross(vx, vy, vz, room[0], room[1], room[2])
    gx, gy, gz = gravity[0], gravity[1], gravity[2]
    m, px, py, pz = carrier[21], carrier[22], carrier[23], carrier[24]
    dx, dy, dz = cross(px, py, pz, gx, gy, gz)
    left[0] += ax - m * gx
    left[1] += ay - m * gy
    left[2] += az - m * gz
    left[3] += bx + cx - dx
    left[4] += by + cy - dy
    left[5] += bz + cz - dz
    for k in range(6):
        for j in range(6):
            mass[k, j] += carrier[PACKED[k, j]]
    return energy - (px * gx + py * gy + pz * gz)


ROD = Layout(
    "StrainRod",
    state("y", "13 + 2 * n"),
    state("push", 6, unit="N, N m"),
    model("section", "along", K_WIDTH),
    model("inner", "cell", "cell"),
    number("length", unit="m"),
    model("rest_strain", "along", 6),
    model("shapes", "n", "along", 6),
    model("stiff", "n", "n"),
    number("damping", unit="s"),
    number("free", FLAG),
    model("carrier", 25),
    model("gravity", 3, unit="m/s2"),
    model("current", 3, unit="m/s"),
    step_input("command", 6, unit="N, N m"),
    number("dt", unit="s"),
    scratch("s", "along", P_WIDTH),
    scratch("jacobian", "n", "along", 6),
    scratch("mine", "along", 6),
    scratch("mass", "6 + n", "6 + n"),
    scratch("left", "6 + n"),
    scratch("totals", TOTALS),
    scratch("head", 3, 6),
    scratch("six", 6),
    scratch("rate", "12 + 2 * n"),
    scratch("one_part", "13 + 2 * n"),
    scratch("two", "13 + 2 * n"),
    whole("memory"),
    scratch("last", "memory"),
)
"""Arrays of a `StrainRod`'s step.

`y` is its state. `push`, `command` are force and couple on its tip, world axes, in effect and as commanded. `free` is
whether its root is free. `carrier`: see `add_carrier`. `last` is the state before the step.
"""


@kernel
def evaluate(rod: Any, around: Any, work: Any, state: Any, push: Any, implicit: float, rate: Any) -> None:
    """Compute the rate of a state.

    Parameters
    ----------
    rod : tuple
        section (points, K_WIDTH), inner, length of a cell, rest, shapes, stiff (n, n), damping s, free, carrier (25,).
    around : ((3,) array, (3,) array)
        Gravity, m/s2, and current, m/s, world.
    work : tuple
        s, jacobian (n, points, 6), mine (points, 6), mass, left (6 + n,), totals, head (3, 6), room (6,).
    state : (13 + 2 n,) array
        State vector.
    push : (6,) array
        Force, N, and couple, N m, on the tip, world axes.
    implicit : float
        Step of the linearly implicit stiffness, s, see rtmms.dynamics.recursion.inward.
    rate : (12 + 2 n,) array
        Result.
    """
    section, inner, h, rest_strain, shapes, stiff, damping, free, carrier = rod
    s, jacobian, mine, mass, left, loads, head, room = work
    n, last = shapes.shape[0], section.shape[0] - 1
    q, qd, twist = state[7 : 7 + n], state[13 + n :], state[7 + n : 13 + n]
    strain(rest_strain, shapes, q, qd, s)
    carry_along(inner, h, twist, s)
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(3):
        head[0, k] = r[k] * around[1][0] + r[k + 3] * around[1][1] + r[k + 6] * around[1][2]
        head[1, k] = r[k] * around[0][0] + r[k + 3] * around[0][1] + r[k + 6] * around[0][2]
        head[2, k] = r[k] * push[0] + r[k + 3] * push[1] + r[k + 6] * push[2]
        head[2, k + 3] = r[k] * push[3] + r[k + 3] * push[4] + r[k + 6] * push[5]
    loads[ENERGY] = loads[POWER] = loads[LOSS] = 0.0
    for i in range(last + 1):
        weigh(section, s, i)
        bear(section, s, i, twist, head[0], head[1], loads)
        for k in range(3):
            loads[ENERGY] -= section[i, K_WEIGHT] * section[i, K_PULL] * around[0][k] * state[k]
    columns(shapes, inner, h, s, jacobian, mine)
    assemble(section, s, jacobian, mass, left, room)
    if free:
        loads[ENERGY] += add_carrier(carrier, twist, head[1], mass, left, room)
        for k in range(3):
            loads[ENERGY] -= carrier[21] * around[0][k] * state[k]
    cx, cy, cz = cross(s[last, P_POS], s[last, P_POS + 1], s[last, P_POS + 2], head[2, 0], head[2, 1], head[2, 2])
    head[2, 3], head[2, 4], head[2, 5] = head[2, 3] + cx, head[2, 4] + cy, head[2, 5] + cz
    for k in range(6):
        left[k] = head[2, k] - left[k]
    for a in range(n):
        total, pull, loss = 0.0, 0.0, 0.0
        for k in range(6):
            total += jacobian[a, last, k] * head[2, k]
        for b in range(n):
            ahead = q[b] + (implicit + damping) * qd[b]
            pull += stiff[a, b] * ahead
            loss += stiff[a, b] * qd[b]
            loads[ENERGY] += 0.5 * q[a] * stiff[a, b] * q[b]
            mass[6 + a, 6 + b] += implicit * (damping + implicit) * stiff[a, b]
        loads[LOSS] += damping * qd[a] * loss
        left[6 + a] = total - left[6 + a] - pull
    if not free:
        for k in range(6):
            left[k] = 0.0
    solve_upper(mass, left, 0 if free else 6)
    for k in range(3):
        rate[k] = r[3 * k] * twist[0] + r[3 * k + 1] * twist[1] + r[3 * k + 2] * twist[2]
        rate[3 + k] = twist[3 + k]
    for k in range(6):
        rate[6 + n + k] = left[k]
    for a in range(n):
        rate[6 + a], rate[12 + n + a] = qd[a], left[6 + a]


@kernel
def parts_of(rod: Any) -> Any:
    """Return the first three arguments of `evaluate` from a record.

    Parameters
    ----------
    rod : Record
        Record of `ROD`.

    Returns
    -------
    (tuple, tuple, tuple)
        rod, around, work.
    """
    fixed = (
        rod.section, rod.inner, rod.length, rod.rest_strain, rod.shapes, rod.stiff, rod.damping, rod.free, rod.carrier,
    )  # fmt: skip
    work = rod.s, rod.jacobian, rod.mine, rod.mass, rod.left, rod.totals, rod.head, rod.six
    return fixed, (rod.gravity, rod.current), work


@kernel
def take_step(rod: Any) -> int:
    """Hold the command and take one linearly implicit Euler step in one part and in two, extrapolated.

    The order is 2, and the method is stable at any step (`implicit2` of trees). The state before is in `last`.

    Parameters
    ----------
    rod : Record
        Record of `ROD`.

    Returns
    -------
    int
        SOUND, NOT_FINITE, or BAD_COMMAND, with which nothing has happened.
    """
    memory, last, state, push, command = rod.memory, rod.last, rod.y, rod.push, rod.command
    rate, one_part, two, dt = rod.rate, rod.one_part, rod.two, rod.dt
    if not finite(command):
        return BAD_COMMAND
    for k in range(memory.shape[0]):
        last[k] = memory[k]
    for k in range(6):
        push[k] = command[k]
    fixed, around, work = parts_of(rod)
    evaluate(fixed, around, work, state, push, dt, rate)
    lead(state, rate, dt)
    displace(state, rate, dt, one_part)
    h = 0.5 * dt
    evaluate(fixed, around, work, state, push, h, rate)
    lead(state, rate, h)
    displace(state, rate, h, two)
    evaluate(fixed, around, work, two, push, h, rate)
    lead(two, rate, h)
    displace(two, rate, h, two)
    for k in range(state.shape[0]):
        two[k] = 2.0 * two[k] - one_part[k]
    normalise(two)
    if not finite(two):
        return NOT_FINITE
    for k in range(state.shape[0]):
        state[k] = two[k]
    return SOUND


_rod_at = ROD.type().at()


@kernel
def enter_step(address: int) -> int:
    """Call `take_step` for the rod whose record is at `address`.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_rod_at(address))


@kernel
def look_at(rod: Any) -> None:
    """Evaluate at the present state.

    Parameters
    ----------
    rod : Record
        Record of `ROD`.
    """
    fixed, around, work = parts_of(rod)
    evaluate(fixed, around, work, rod.y, rod.push, 0.0, rod.rate)


@kernel
def enter_look(address: int) -> None:
    """Call `look_at` for the rod whose record is at `address`.

    Parameters
    ----------
    address : int
        Address of the record.
    """
    look_at(_rod_at(address))


@kernel
def end_of(s: Any, state: Any, out: Any) -> None:
    """Write the position of the tip in the world, after `evaluate`.

    Parameters
    ----------
    s : (points, P_WIDTH) array
        Scratch of the points, columns P_*.
    state : (13 + 2 n,) array
        State vector.
    out : (3,) array
        Result, m.
    """
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    last = s.shape[0] - 1
    for k in range(3):
        out[k] = state[k] + (
            r[3 * k] * s[last, P_POS] + r[3 * k + 1] * s[last, P_POS + 1] + r[3 * k + 2] * s[last, P_POS + 2]
        )  # fmt: skip


# Shapes of strain along a rod: Legendre polynomials, or any functions of one's own, as a table at the points.


COMPONENTS = ("stretch", "shear_y", "shear_z", "twist", "bend_y", "bend_z")
Shape = Callable[[float], float]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Shapes of strain along a rod.

    Parameters
    ----------
    functions : Mapping[str, Sequence[Shape]]
        Functions of X / l in (0, 1), for each of the rod's strains (COMPONENTS) that it has.

    Examples
    --------
    >>> from rtmms.continuum.strain_modes import Shapes
    >>> Shapes({"bend_y": [lambda u: 1.0, lambda u: u]}).components
    [4, 4]
    """

    functions: Mapping[str, Sequence[Shape]]

    @property
    def components(self) -> list[int]:
        """Index of the strain of each coordinate."""
        return [COMPONENTS.index(name) for name, many in self.functions.items() for _ in many]

    def table(self, x: Array, length: float, place: str) -> Array:
        """Return the shapes at the points.

        Parameters
        ----------
        x : (points,) array
            m from the root.
        length : float
            Length of the rod, m.
        place : str
            Name of the rod, for the message.

        Returns
        -------
        (n, points, 6) array
            Strain of each coordinate at each point.

        Raises
        ------
        ModelError
            A shape is not a finite number; the message has the shape and the point.
        """
        rows: list[Array] = []
        for name, many in self.functions.items():
            if name not in COMPONENTS:
                raise ModelError(f"{place}: shapes: expected some of {', '.join(COMPONENTS)}, got '{name}'")
            for k, function in enumerate(many):
                row = np.zeros((len(x), 6))
                for i, x_m in enumerate(x):
                    value: Any = function(float(x_m) / length)
                    if not isinstance(value, (int, float)) or not np.isfinite(value):
                        raise ModelError(
                            f"{place}: shape {k} of {name} at X = {x_m:.6g} m: expected a finite number, got {value!r}"
                        )
                    row[i, COMPONENTS.index(name)] = float(value)
                rows.append(row)
        if not rows:
            raise ModelError(f"{place}: shapes: expected at least one")
        return np.array(rows)


def legendre(order: int, components: Sequence[str] = ("twist", "bend_y", "bend_z")) -> Shapes:
    """Return Legendre polynomials on (0, l) as shapes.

    Parameters
    ----------
    order : int
        Number of polynomials, from degree 0.
    components : Sequence[str], optional
        Strains that have them.

    Returns
    -------
    Shapes
        The shapes.
    """

    def make_shape(k: int) -> Shape:
        polynomial = np.polynomial.legendre.Legendre.basis(k, domain=[0.0, 1.0])
        return lambda u: float(polynomial(u))

    return Shapes({name: [make_shape(k) for k in range(order)] for name in components})


# The arrays of a rod by strain modes, from its data and its shapes, with every check of it.


COARSE = 0.01
"""Permitted error of the shapes' stiffness due to the sum over the points."""
FINER = 4
MAX_POINTS = 2000
"""Largest number of points that are tried."""


class RodTable(NamedTuple):
    """Arrays of a rod by strain modes.

    Attributes
    ----------
    rows : (points, K_WIDTH) array
        Sections.
    rest_strain : (points, 6) array
        Strain at rest.
    shapes : (m, points, 6) array
        Shapes of the strain.
    stiff : (m, m) array
        Stiffness of the coordinates.
    damping : float
        Kelvin and Voigt's time, s.
    grid : Grid
        The points.
    """

    rows: Array
    rest_strain: Array
    shapes: Array
    stiff: Array
    damping: float
    grid: Grid


def rod_table(rod: Rod, shapes: Shapes | None, nodes: int | None, points: int, default_nodes: int) -> RodTable:
    """Return the arrays of a rod.

    Parameters
    ----------
    rod : Rod
        The rod.
    shapes : Shapes or None
        None: Legendre polynomials to degree 3 for each of the rod's freedoms.
    nodes : int or None
        Number of points; None: `default_nodes`, or as many as the shapes need.
    points : int
        Points of a cell.
    default_nodes : int
        Default number of points.

    Returns
    -------
    RodTable
        The arrays.

    Raises
    ------
    ModelError
        The rod is wrong, or there are too few points; the message has the place, or the sufficient number.
    """
    name = f"rod '{rod.name}'"
    rod.check()
    if callable(rod.damping_s):
        raise ModelError(f"{name}: damping_s must be one number for a rod by strain modes")
    shapes = legendre(4, rod.freedoms) if shapes is None else shapes
    for strain in shapes.functions:
        if strain in AXES and strain not in rod.freedoms:
            raise ModelError(
                f"{name}: shapes: expected strains among the rod's freedoms ({', '.join(rod.freedoms)}), got {strain}; "
                "leave it out of the shapes, or add it to freedoms"
            )
    along = _fine_enough(rod, shapes, nodes, points, default_nodes)
    table = shapes.table(along.x, rod.length_m, name)
    sections = [rod.at(float(x)) for x in along.x]
    rest_strain, rows = np.zeros((len(along.x), 6)), np.zeros((len(along.x), at.K_WIDTH))
    rest_strain[:, 0] = 1.0
    for x, turn, row, section in zip(along.x, rest_strain, rows, sections, strict=True):
        bend = rod.curvature(float(x)) if callable(rod.curvature) else rod.curvature
        turn[3:] = np.asarray(bend, dtype=float)
        if not np.all(np.isfinite(turn)):
            raise ModelError(f"{name}: curvature at X = {x:.6g} m must be 3 finite numbers, got {bend}")
        row[at.K_MASS] = row[at.K_PULL] = section.mass_kg_m
        row[at.K_INERTIA : at.K_INERTIA + 3] = section.inertia_kg_m
        _wet(rod, row, float(x), name)
    rows[:, at.K_X], rows[:, at.K_WEIGHT] = along.x, along.weight
    stiff = _stiff(rod, shapes, along)
    size = np.sqrt(np.diag(stiff))
    if not np.linalg.eigvalsh(stiff / np.outer(size, size))[0] > 1e-12:
        raise ModelError(f"{name}: shapes: expected linearly independent shapes, got one that is a sum of others")
    return RodTable(rows, rest_strain, np.ascontiguousarray(table), stiff, rod.damping(0.0), along)


def _stiff(rod: Rod, shapes: Shapes, along: Grid) -> Array:
    """Return int Phi^T H Phi, (m, m)."""
    name = f"rod '{rod.name}'"
    table, components = shapes.table(along.x, rod.length_m, name), shapes.components
    m = len(components)
    out, same = np.zeros((m, m)), np.equal.outer(components, components)
    for i, (x, w) in enumerate(zip(along.x, along.weight, strict=True)):
        section = rod.at(float(x))
        h = np.array([_of(section, c, name, float(x)) for c in components])
        mode_column = table[np.arange(m), i, components]
        out += w * np.where(same, np.outer(h * mode_column, mode_column), 0.0)
    return out


def coarseness(rod: Rod, shapes: Shapes, along: Grid) -> float:
    """Return the error of the shapes' stiffness against a grid FINER times as fine, relative to each stiffness.

    Parameters
    ----------
    rod : Rod
        The rod.
    shapes : Shapes
        Shapes of the strain.
    along : Grid
        The grid.

    Returns
    -------
    float
        Largest relative error.
    """
    fine = _stiff(rod, shapes, grid(rod.length_m, FINER * len(along.x), along.points))
    size = np.sqrt(np.maximum(np.diag(fine), np.finfo(float).tiny))
    return float(np.max(np.abs(_stiff(rod, shapes, along) - fine) / np.outer(size, size)))


def _fine_enough(rod: Rod, shapes: Shapes, nodes: int | None, points: int, default_nodes: int) -> Grid:
    """Return the grid of `nodes` points, or of as many as the shapes need."""
    tried = default_nodes if nodes is None else nodes
    along = grid(rod.length_m, tried, points)
    first = off = coarseness(rod, shapes, along)
    while off > COARSE and tried < MAX_POINTS:
        tried = math.ceil(1.25 * tried)
        along = grid(rod.length_m, tried, points)
        off = coarseness(rod, shapes, along)
    if off > COARSE or (nodes is not None and first > COARSE):
        enough = f"expected {len(along.x)} or more" if off <= COARSE else "expected smoother shapes"
        raise ModelError(
            f"rod '{rod.name}': nodes: {nodes or default_nodes} are too few for {len(shapes.components)} shapes: "
            f"{enough}. The error of the stiffness is {100.0 * first:.2g} %, at most {100.0 * COARSE:g} % is "
            "allowed"
        )
    return along


def _of(section: RodSection, component: int, name: str, x: float) -> float:
    strain = COMPONENTS[component]
    key = f"{strain}_n" if component < 3 else f"{strain}_n_m2"
    value = getattr(section, key)
    if value is None or not (math.isfinite(value) and value > 0.0):
        raise ModelError(f"{name}: section at X = {x:.6g} m: {key} must be > 0 for shapes of {strain}, got {value}")
    return float(value)


def _wet(rod: Rod, row: Array, x: float, name: str) -> None:
    """Write the water's data of the rod's skin, for a metre, into a row of the table."""
    if rod.skin is None:
        return
    skin = rod.skin(x, 1.0, Placement())
    if not isinstance(skin, Strip) or skin.law != "kirchhoff" or np.any(skin.placement.rotation != np.eye(3)):
        raise ModelError(
            f"{name}: skin at X = {x:.6g} m: expected a Strip with law 'kirchhoff' and a placement "
            f"without rotation, got a {type(skin).__name__} with law "
            f"{getattr(skin, 'law', None)!r}"
        )
    if skin.polar is not None:
        raise ModelError(
            f"{name}: skin at X = {x:.6g} m: expected a Strip without polar, as rods by strain modes do not support one"
        )
    row[at.K_ROLL], row[at.K_ADDED + 1], row[at.K_ADDED + 2] = skin.added
    row[at.K_DRAG : at.K_DRAG + 3], row[at.K_ROLL_DRAG] = skin.drag, skin.roll_drag
