"""Connections of a mechanism, A(r) with eta + A(r) rd = 0: their local form, their curvature, and their cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.jit import compile_progress, kernel
from rtmms.base.memory import INTEGER, Layout, model, scratch
from rtmms.base.spatial import PACKED, PACKED_SIZE, Array, adjoint, cross, scalar, times, unpack_inertia
from rtmms.dynamics.inertia import compose
from rtmms.dynamics.recursion import add_wrench, axis_column, configure, outward, place
from rtmms.locomotion.group import bracket
from rtmms.locomotion.reduced_dynamics import nonholonomic, rates, rows
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.contact_rows import G_BODY, G_JOINT, G_ROW
from rtmms.model.description import Mechanism
from rtmms.model.layout import (
    BASE_FIXED,
    C_INERTIA,
    C_RIGID,
    C_ROT,
    C_ROTOR,
    C_WIDTH,
    PRISMATIC,
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
)

# The local form A(r) of a connection by composite bodies: eta = -A rd, A = M^-1 M_r, for inertia and for drag alike.
#
# What a mechanism's bodies weigh stands where their inertia stands (C_INERTIA): rigid, with added mass, or resistance.
# Twists are (6,) here, [linear; angular], with zeros where the group has no motion; the base frame is at the origin.


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


# Connections of a mechanism: A(r) with eta + A(r) rd = 0, their curvature, and what a shape's motion costs.
#
# kind           eta is such that                                                               A(r)
# mechanical     the momentum is 0                                                              M^-1 M_r of the bodies
# hydrodynamic   the momentum of bodies and perfect fluid is 0 (full Kirchhoff added inertia)   the same, M + M_add
# stokes         the drag of a creeping fluid on the whole is 0 (Body.viscous)                  the same, D for M
# nonholonomic   wheels and axles neither slip nor slide                                        A^+ B of their rows
# (Boyer and Porez 2015, eqs 4, 8, 19, 23.) Twists are those of the base in its own frame.


KINDS = ("mechanical", "hydrodynamic", "stokes", "nonholonomic")
PLANAR, SPATIAL = np.array([0, 1, 5]), np.arange(6)
"""Free rows of a twist: SE(2) = {Vx, Vy, Wz}, SE(3)."""
NAMES = ("Vx", "Vy", "Vz", "Wx", "Wy", "Wz")
SLIP = 1e-9
"""Of redundant contacts: what of a rate may be left, of the largest."""


class Connection:
    """The connection of a mechanism, ready to be asked at many shapes.

    mechanism  a description (its base may be free or prescribed), what `rtmms.compile` made of it, or a plant of it
    kind       see above
    planar     True: SE(2), projected; False: SE(3); None: SE(2) where all joints and bodies are planar
    Shapes are (p,), rad or m, in the order of `model.joint_names`. Raises ModelError, UnknownNameError.
    """

    def __init__(self, mechanism: Mechanism | Model, kind: str = "mechanical", planar: bool | None = None) -> None:
        if kind not in KINDS:
            raise UnknownNameError("kind of connection", str(kind), KINDS)
        self.model, self.kind = model_of(mechanism), kind
        model, p = self.model, self.model.n
        where = f"{model.name}: {kind} connection"
        if model.base_mode == BASE_FIXED:
            raise ModelError(f"{where}: expected a base that moves, got base='fixed'")
        if len(model.modes):
            raise ModelError(f"{where}: expected rigid bodies, got modal ones")
        if p == 0:
            raise ModelError(f"{where}: expected at least one joint, got none: it has no shape")
        weights = _weights(model, kind)
        if kind == "stokes" and not np.any(model.viscous):
            raise ModelError(f"{where}: expected bodies with drag (Body.viscous), got none")
        if planar is None:
            planar = is_level(model) if kind == "nonholonomic" else is_planar(model, weights)
        self.planar = planar
        self.rows = PLANAR if self.planar else SPATIAL
        self._weighted = model.constant.copy()
        self._weighted[:, C_INERTIA : C_INERTIA + PACKED_SIZE] = weights
        if kind == "stokes":
            self._weighted[:, C_ROTOR] = 0.0
        self._weighted.flags.writeable = False
        self.tree = WEIGHTED.make({
            "topology": model.topology, "constant": self._weighted, "free": np.ascontiguousarray(self.rows),
            "upright": np.array([1.0, 0.0, 0.0, 0.0]), "weightless": np.zeros(3),
        })  # fmt: skip
        self.work = WORK.make({}, {**self.tree.sizes, "n": p})
        self._column, self._form, self._twist = np.zeros(6), np.zeros((6, p)), np.zeros(6)
        self._by_rows = kind == "nonholonomic"
        if self._by_rows and not len(model.ground.rows):
            raise ModelError(f"{where}: expected contacts (Mechanism.contacts: axles, wheels, planes), got none")

    @property
    def shape_size(self) -> int:
        return self.model.n

    def form(self, r: Any) -> Array:
        """(6, p) A(r), rows that the group has no motion in at 0; a view that the next call writes anew."""
        q = self._shape(r)
        if self._by_rows:
            self._form[:] = nonholonomic(self.model, q)
        else:
            self._sound(local_form(self.tree, q, self.work, self._column, self._form), q)
        return self._form

    def at(self, r: Any) -> Array:
        """A(r): (3, p) on {Vx, Vy, Wz} where planar, else (6, p)."""
        out: Array = self.form(r)[self.rows]
        return out

    def seen_from(self, body: str, r: Any) -> Array:
        """The local form for another reference body, in that body's own frame: Ad A - J, (dim, p).

        J is the body's twist for qd alone. Of a planar mechanism the body's z must be the base's.
        """
        from rtmms.dynamics.kinematics import jacobian

        state = self.model.state()
        state.q = self._shape(r).copy()
        whole = jacobian(replace(self.model, base_mode=0), state, body)
        out: Array = (whole[:, :6] @ self.form(r) - whole[:, 6:])[self.rows]
        return out

    def slopes(self, r: Any) -> Array:
        """(p, 6, p): [k] is dA/dr_k, exact to rounding (complex step)."""
        q = self._shape(r)
        if self._by_rows:
            moved = [nonholonomic(self.model, q + 1e-30j * unit) for unit in np.eye(len(q))]
            return np.array(moved).imag / 1e-30
        p, work = self.model.n, self.work.as_complex()
        out = np.zeros((p, 6, p))
        form = np.zeros((6, p), dtype=complex)
        self._sound(slopes(self.tree, q.astype(complex), work, np.zeros(6, dtype=complex), form, out), q)
        return out

    def curvature(self, r: Any, *, bracketed: bool = True) -> Array:
        """F_ij = d_i A_j - d_j A_i - [A_i, A_j], (dim, p, p); without the bracket dA alone, `bracketed` False.

        The net motion of a small gait is log g = -iint F (Boyer and Porez 2015, eq 5, for a group that does not
        commute).
        """
        q = self._shape(r).copy()
        slope, form = self.slopes(q), self.form(q).copy()
        p = len(q)
        out = np.zeros((6, p, p))
        for i in range(p):
            for j in range(i):
                f = slope[i, :, j] - slope[j, :, i]
                if bracketed:
                    f = f - bracket(form[:, i], form[:, j])
                out[:, i, j], out[:, j, i] = f, -f
        return out[self.rows]

    def twist(self, r: Any, rd: Any) -> Array:
        """(6,) eta = -A(r) rd, m/s, rad/s, base frame."""
        q, qd = self._shape(r), self._shape(rd, "rate")
        if self._by_rows:
            return self._rolled(q, qd)
        self._sound(net_twist(self.tree, q, qd, self.work, self._twist), q)
        return self._twist.copy()

    def along(self, shapes: Array, rates: Array) -> tuple[Array, Array]:
        """Net twists (m, 6) and efforts (m,) at m shapes and rates (m, p).

        The effort is what the shape's motion costs, quadratic in rd: the drag's power (W) for stokes, twice the kinetic
        energy (J), fluid included, for the others.
        """
        shapes, rates = np.ascontiguousarray(shapes, dtype=float), np.ascontiguousarray(rates, dtype=float)
        twists, efforts = np.zeros((len(shapes), 6)), np.zeros(len(shapes))
        if not self._by_rows:
            fault = along(self.tree, shapes, rates, self.work, twists, efforts)
            self._sound(fault, self.work.q)
            return twists, efforts
        for i, (r, rd) in enumerate(zip(shapes, rates, strict=True)):
            twists[i] = self._rolled(r, rd)
            net_twist(self.tree, r, rd, self.work, self._twist)  # where the bodies are, for the effort
            efforts[i] = effort(self.tree, rd, twists[i], self.work)
        return twists, efforts

    def _rolled(self, q: Array, qd: Array) -> Array:
        """(6,) -A^+ B rd; ModelError where redundant contacts contradict the rate."""
        twist: Array = -self.form(q) @ qd
        a, b = rows(self.model, q)
        slip = np.abs(a @ twist + b @ qd).max(initial=0.0)
        if slip > SLIP * max(float(np.abs(b).max(initial=0.0) * np.abs(qd).max(initial=0.0)), 1e-300):
            rates(self.model, q, qd)  # raises with the joints that would have to follow
        return twist

    def drag(self, r: Any, rd: Any) -> tuple[Array, Array]:
        """Of a Stokes connection: torques (p,) that the joints bear, and the wrench (6,) left on the whole, which is 0.

        torque = (D_rr - D_rg D_gg^-1 D_gr) rd; for the other kinds the same of the momentum.
        """
        twist, qd, torque = self.twist(r, rd), self._shape(rd, "rate"), np.zeros(self.model.n)
        effort(self.tree, qd, twist, self.work)
        resist(self.tree, self.work, torque)
        from rtmms.model.layout import S_BIAS

        return torque, self.work.s[0, S_BIAS : S_BIAS + 6].copy()

    def metric(self, r: Any) -> Array:
        """(p, p) G(r), symmetric: the effort is rd^T G rd."""
        torques = [self.drag(r, unit)[0] for unit in np.eye(self.model.n)]
        rotor = self._weighted[1:, C_ROTOR]
        out = np.array(torques) + np.diag(rotor)
        return 0.5 * (out + out.T)

    def _shape(self, r: Any, what: str = "shape") -> Array:
        if type(r) is np.ndarray and r.dtype == np.float64 and r.shape == (self.model.n,) and r.flags.c_contiguous:
            return r
        array = np.ascontiguousarray(r, dtype=float)
        if array.shape != (self.model.n,):
            raise ModelError(f"{self.model.name}: {what} must be ({self.model.n},) numbers, got {array.shape}")
        return array

    def _sound(self, fault: int, q: Array) -> None:
        if fault < 0:
            return
        what = "drag" if self.kind == "stokes" else "inertia"
        if not np.all(np.isfinite(q)):
            raise ModelError(f"{self.model.name}: shape must be finite, got {q.tolist()}")
        raise ModelError(
            f"{self.model.name}: {self.kind} connection: at shape {np.round(q, 6).tolist()} the motion {NAMES[fault]} "
            f"meets no {what}, so that it is not determined"
        )


def connection(mechanism: Mechanism | Model, r: Any, kind: str = "mechanical", planar: bool | None = None) -> Array:
    """The local form A(r) with eta = -A(r) rd: (3, p) on {Vx, Vy, Wz} for a planar mechanism, else (6, p).

    mechanism, kind, planar  see Connection, which is quicker where many shapes are asked for;  r  (p,) rad or m
    """
    return Connection(mechanism, kind, planar).at(r)


def curvature(
    mechanism: Mechanism | Model, r: Any, kind: str = "mechanical", planar: bool | None = None, *,
    bracketed: bool = True,
) -> Array:  # fmt: skip
    """Curvature (dim, p, p) of the connection at r, with its bracket or without: see Connection.curvature."""
    return Connection(mechanism, kind, planar).curvature(r, bracketed=bracketed)


_COMPILED: WeakKeyDictionary[Mechanism, Model] = WeakKeyDictionary()


def model_of(mechanism: Mechanism | Model) -> Model:
    """Compiled for its kinematics: joints given by their motion, so that bodies need no mass; compiled once."""
    mechanism = getattr(mechanism, "model", mechanism)  # of a plant
    if isinstance(mechanism, Model):
        return mechanism
    if not isinstance(mechanism, Mechanism):
        raise ModelError(f"connection: expected a Mechanism or a compiled model, got {mechanism!r}")
    if mechanism not in _COMPILED:
        base = "prescribed" if mechanism.base == "free" and not mechanism.contacts else mechanism.base
        joints = [replace(joint, drive="motion") for joint in mechanism.joints]
        _COMPILED[mechanism] = compile_model(replace(mechanism, base=base, joints=joints))
    return _COMPILED[mechanism]


def _weights(model: Model, kind: str) -> Array:
    """(n + 1, 21) packed: what stands for the bodies' inertia in a connection of that kind."""
    if kind == "stokes":
        return model.viscous
    first = C_INERTIA if kind == "hydrodynamic" else C_RIGID
    return model.constant[:, first : first + PACKED_SIZE]


def is_planar(model: Model, weights: Array) -> bool:
    """Whether all moves in the base's plane z = 0, and the bodies' weights do not couple it to other motions."""
    normal, tilt = [np.array([0.0, 0.0, 1.0])], [np.eye(3)]
    for row in range(1, model.n + 1):
        turn = tilt[int(model.topology[row, T_PARENT])] @ model.constant[row, C_ROT : C_ROT + 9].reshape(3, 3)
        tilt.append(turn)
        normal.append(turn.T @ normal[0])
        along_axis = abs(normal[row][2])
        if abs(along_axis - (0.0 if model.topology[row, T_KIND] == PRISMATIC else 1.0)) > 1e-9:
            return False
    out_of_plane = np.array([2, 3, 4])
    for turn, packed in zip(tilt, weights, strict=True):
        x = adjoint(turn.T, np.zeros(3))  # into axes parallel to the base's
        w = x.T @ unpack_inertia(packed) @ x
        if np.abs(w[np.ix_(PLANAR, out_of_plane)]).max() > 1e-9 * max(np.abs(w).max(), 1e-300):
            return False
    return True


def is_level(model: Model) -> bool:
    """Whether contacts keep the base in its plane: Vz, Wx and Wy are 0 by rows of its own."""
    own = [row[G_ROW:] for row in model.ground.rows if row[G_BODY] == 0 and row[G_JOINT] == 0]
    held = np.array([*own, np.zeros(6)])
    return all(
        np.linalg.matrix_rank(np.vstack([held, unit]), tol=1e-9) == np.linalg.matrix_rank(held, tol=1e-9)
        for unit in np.eye(6)[2:5]
    )


def warm(one: Connection) -> None:
    """Compile what `Connection` calls, or fetch it, with a report."""
    with compile_progress("the kernels of rtmms.locomotion"):
        q = np.zeros((1, one.model.n))
        one.along(q, q)
