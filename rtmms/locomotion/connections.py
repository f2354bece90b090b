"""Provide connections of a mechanism, A(r) with eta + A(r) rd = 0: their local form, their curvature, and their cost.

eta is the twist of the base in its own frame, [linear; angular], r the shape and rd its rates.

Notes
-----
Boyer and Porez 2015, eqs 4, 8, 19, 23. The kinds differ in the condition on eta and in A(r):

- mechanical: the momentum is 0; M^-1 M_r of the bodies.
- hydrodynamic: the momentum of bodies and perfect fluid is 0 (full Kirchhoff added inertia); the same with M + M_add.
- stokes: the drag of a creeping fluid on the whole is 0 (Body.viscous); the same with D in place of M.
- nonholonomic: wheels and axles neither slip nor slide; A^+ B of their rows.

Composite bodies give the local form for inertia and for drag alike. The weights of the bodies (rigid, with added mass,
or resistance) have the place of their inertia, C_INERTIA. Kernels have twists (6,), with zeros where the group has no
motion; the base frame is at the origin.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.jit import compile_progress, kernel
from rtmms.base.memory import INTEGER, Layout, model, scratch
from rtmms.base.spatial import PACKED, PACKED_SIZE, Array, adjoint, cross, times, unpack_inertia
from rtmms.dynamics.inertia import compose
from rtmms.dynamics.recursion import add_wrench, axis_column, configure, outward, place
from rtmms.fluids.immersed import to_world
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
    T_KIND,
    T_PARENT,
    T_WIDTH,
)

WEIGHTED = Layout(
    "Weighted",
    model("topology", "rows", T_WIDTH, dtype=INTEGER), model("constant", "rows", C_WIDTH),
    model("free", "free", dtype=INTEGER), model("upright", 4), model("weightless", 3),
)  # fmt: skip
"""A tree whose bodies have the weights of a connection. free: rows of the twist that can differ from 0."""
WORK = Layout(
    "ConnectionWork",
    scratch("s", "rows", S_WIDTH), scratch("base", 6, 6), scratch("couple", 6, "n"), scratch("qd", "n"),
    scratch("q", "n"),
)  # fmt: skip
"""Scratch of one evaluation."""
SINGULAR = 1e-12
"""A pivot below this share of its diagonal means that a net motion meets neither inertia nor drag."""


@kernel
def couple(tree: Any, q: Any, work: Any) -> None:
    """Compute the composite inertia M and the coupling M_r, with columns Ad^T M^c_j S_j; O(n).

    M goes to s[0, S_INERTIA], and M_r (6, p) to `work.couple`.

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    q : (p,) array
        Shape, rad or m.
    work : Record
        Scratch, record of `WORK`; written.
    """
    topology, constant, upright, weightless = tree.topology, tree.constant, tree.upright, tree.weightless
    s, columns = work.s, work.couple
    configure(topology, constant, upright, weightless, q, s)
    place(topology, weightless, upright, s)  # weightless is (0, 0, 0): the base's frame is the world's
    compose(topology, constant, s)
    for j in range(1, topology.shape[0]):
        fx, fy, fz, mx, my, mz = axis_column(s, j, topology[j, T_KIND] == REVOLUTE)
        fx, fy, fz = to_world(s, j, fx, fy, fz)
        mx, my, mz = to_world(s, j, mx, my, mz)
        tx, ty, tz = cross(s[j, S_WORLD_POS], s[j, S_WORLD_POS + 1], s[j, S_WORLD_POS + 2], fx, fy, fz)
        columns[0, j - 1], columns[1, j - 1], columns[2, j - 1] = fx, fy, fz
        columns[3, j - 1], columns[4, j - 1], columns[5, j - 1] = mx + tx, my + ty, mz + tz


@kernel
def factor(tree: Any, work: Any) -> int:
    """Write Cholesky's factor of M's free rows to `work.base`.

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    work : Record
        Scratch, record of `WORK`, after `couple`; written.

    Returns
    -------
    int
        -1, or the row of the twist that neither inertia nor drag determines.
    """
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
    """Solve M x' = x in the free rows, in place, and set the other rows to 0.

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    work : Record
        Scratch, record of `WORK`, after `factor`.
    x : (6,) array
        Wrench on entry, twist on return.
    """
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
    """Compute the local form A(q).

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    q : (p,) array
        Shape, rad or m.
    work : Record
        Scratch, record of `WORK`; written.
    column : (6,) array
        Scratch.
    out : (6, p) array
        A(q); written.

    Returns
    -------
    int
        -1, or the row of the twist that neither inertia nor drag determines.
    """
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
    """Compute the twist -A(q) qd, with one right-hand side.

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    q : (p,) array
        Shape, rad or m.
    qd : (p,) array
        Rates of the shape, rad/s or m/s.
    work : Record
        Scratch, record of `WORK`; written.
    twist : (6,) array
        Twist of the base, its frame; written.

    Returns
    -------
    int
        -1, or the row of the twist that neither inertia nor drag determines.
    """
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
    """Return sum eta_j^T W_j eta_j + sum rotor qd^2 of bodies that move so; it leaves the twists in `work.s`.

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    qd : (p,) array
        Rates of the shape, rad/s or m/s.
    twist : (6,) array
        Twist of the base, its frame.
    work : Record
        Scratch, record of `WORK`, after `couple`; written.

    Returns
    -------
    float
        The power of the drag, W, or twice the kinetic energy, J.
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
    """Compute the torques of actuators against the drag: S_j^T times the sum of W eta of all bodies beyond joint j.

    With inertia in place of drag these are the joints' parts of the momentum. The base's wrench is left in s[0,
    S_BIAS].

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    work : Record
        Scratch, record of `WORK`, after `effort`; written.
    torque : (p,) array
        N m or N; written.
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
    """Compute net twists and efforts at m shapes and rates.

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    shapes : (m, p) array
        Shapes, rad or m.
    rates : (m, p) array
        Rates, rad/s or m/s.
    work : Record
        Scratch, record of `WORK`; written.
    twists : (m, 6) array
        Twists of the base, its frame; written.
    efforts : (m,) array
        See `effort`; written.

    Returns
    -------
    int
        -1, or the row of the twist that neither inertia nor drag determines.
    """
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
    """Compute the derivatives dA/dr_k by a complex step.

    Parameters
    ----------
    tree : Record
        Tree of the connection, record of `WEIGHTED`.
    q : (p,) complex array
        Shape, rad or m; unchanged on return.
    work : Record
        Complex scratch, record of `WORK`; written.
    column : (6,) complex array
        Scratch.
    form : (6, p) complex array
        Scratch.
    out : (p, 6, p) array
        out[k] = dA/dr_k; written.

    Returns
    -------
    int
        -1, or the row of the twist that neither inertia nor drag determines.
    """
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


KINDS = ("mechanical", "hydrodynamic", "stokes", "nonholonomic")
PLANAR = np.array([0, 1, 5])
"""Free rows of a twist of SE(2) = {Vx, Vy, Wz}."""
SPATIAL = np.arange(6)
"""Free rows of a twist of SE(3)."""
NAMES = ("Vx", "Vy", "Vz", "Wx", "Wy", "Wz")
SLIP = 1e-9
"""Redundant contacts may leave this share of the largest rate."""


class Connection:
    """The connection of a mechanism, compiled once for many shapes.

    Shapes are (p,), rad or m, in the order of `model.joint_names`.

    Parameters
    ----------
    mechanism : Mechanism or Model
        A description, its compiled model, or a plant of it; its base is free or prescribed.
    kind : str, default 'mechanical'
        'mechanical', 'hydrodynamic', 'stokes' or 'nonholonomic', see the module.
    planar : bool, optional
        True: SE(2), projected; False: SE(3); None: SE(2) where all joints and bodies are planar.

    Raises
    ------
    ModelError
        The mechanism has no such connection, or a shape has another size.
    UnknownNameError
        The kind does not exist.
    """

    def __init__(self, mechanism: Mechanism | Model, kind: str = "mechanical", planar: bool | None = None) -> None:
        """Compile the mechanism and allocate the scratch."""
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
            raise ModelError(f"{where}: expected at least one joint, got none: a mechanism without joints has no shape")
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
        """Number of shape variables, p."""
        return self.model.n

    def form(self, r: Any) -> Array:
        """Return A(r) with all rows of a twist; rows without a motion of the group are 0.

        Parameters
        ----------
        r : (p,) array_like
            Shape, rad or m.

        Returns
        -------
        (6, p) array
            A view that the next call overwrites.

        Raises
        ------
        ModelError
            The net motion is not determined at this shape.
        """
        q = self._shape(r)
        if self._by_rows:
            self._form[:] = nonholonomic(self.model, q)
        else:
            self._sound(local_form(self.tree, q, self.work, self._column, self._form), q)
        return self._form

    def at(self, r: Any) -> Array:
        """Return A(r) in the rows of the group.

        Parameters
        ----------
        r : (p,) array_like
            Shape, rad or m.

        Returns
        -------
        (dim, p) array
            dim is 3 (Vx, Vy, Wz) where planar, else 6.

        Raises
        ------
        ModelError
            The net motion is not determined at this shape.
        """
        out: Array = self.form(r)[self.rows]
        return out

    def seen_from(self, body: str, r: Any) -> Array:
        """Return the local form for another reference body, in that body's own frame: Ad A - J.

        J is the body's twist for qd alone. In a planar mechanism the body's z must be the base's.

        Parameters
        ----------
        body : str
            Name of the body.
        r : (p,) array_like
            Shape, rad or m.

        Returns
        -------
        (dim, p) array
            Local form of that body.
        """
        from rtmms.dynamics.kinematics import jacobian

        state = self.model.state()
        state.q = self._shape(r).copy()
        whole = jacobian(replace(self.model, base_mode=0), state, body)
        out: Array = (whole[:, :6] @ self.form(r) - whole[:, 6:])[self.rows]
        return out

    def slopes(self, r: Any) -> Array:
        """Return the derivatives dA/dr_k, exact to rounding (complex step).

        Parameters
        ----------
        r : (p,) array_like
            Shape, rad or m.

        Returns
        -------
        (p, 6, p) array
            [k] is dA/dr_k.
        """
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
        """Return the curvature F_ij = d_i A_j - d_j A_i - [A_i, A_j].

        Parameters
        ----------
        r : (p,) array_like
            Shape, rad or m.
        bracketed : bool, default True
            False: dA alone, without the bracket.

        Returns
        -------
        (dim, p, p) array
            F, antisymmetric in i and j.

        Notes
        -----
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
        """Return the net twist eta = -A(r) rd.

        Parameters
        ----------
        r : (p,) array_like
            Shape, rad or m.
        rd : (p,) array_like
            Rates of the shape, rad/s or m/s.

        Returns
        -------
        (6,) array
            m/s, rad/s, base frame.

        Raises
        ------
        ModelError
            The net motion is not determined, or redundant contacts contradict the rate.
        """
        q, qd = self._shape(r), self._shape(rd, "rate")
        if self._by_rows:
            return self._rolled(q, qd)
        self._sound(net_twist(self.tree, q, qd, self.work, self._twist), q)
        return self._twist.copy()

    def along(self, shapes: Array, rates: Array) -> tuple[Array, Array]:
        """Compute net twists and efforts at m shapes and rates.

        The effort is the cost of the shape's motion and quadratic in rd. For stokes it is the drag's power (W), for the
        others twice the kinetic energy (J), fluid included.

        Parameters
        ----------
        shapes : (m, p) array_like
            Shapes, rad or m.
        rates : (m, p) array_like
            Rates, rad/s or m/s.

        Returns
        -------
        (array, array)
            Twists (m, 6) and efforts (m,).

        Raises
        ------
        ModelError
            The net motion is not determined, or redundant contacts contradict a rate.
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
        """Return -A^+ B rd, (6,), or raise ModelError where redundant contacts contradict the rate."""
        twist: Array = -self.form(q) @ qd
        a, b = rows(self.model, q)
        slip = np.abs(a @ twist + b @ qd).max(initial=0.0)
        if slip > SLIP * max(float(np.abs(b).max(initial=0.0) * np.abs(qd).max(initial=0.0)), 1e-300):
            rates(self.model, q, qd)  # raises with the joints that would have to follow
        return twist

    def drag(self, r: Any, rd: Any) -> tuple[Array, Array]:
        """Return the torques of the joints and the wrench on the whole, for a Stokes connection.

        For the other kinds both are the same of the momentum.

        Parameters
        ----------
        r : (p,) array_like
            Shape, rad or m.
        rd : (p,) array_like
            Rates of the shape, rad/s or m/s.

        Returns
        -------
        (array, array)
            Torques (p,), N m or N, and the wrench (6,) that is left on the whole, which is 0.

        Notes
        -----
        torque = (D_rr - D_rg D_gg^-1 D_gr) rd
        """
        twist, qd, torque = self.twist(r, rd), self._shape(rd, "rate"), np.zeros(self.model.n)
        effort(self.tree, qd, twist, self.work)
        resist(self.tree, self.work, torque)
        from rtmms.model.layout import S_BIAS

        return torque, self.work.s[0, S_BIAS : S_BIAS + 6].copy()

    def metric(self, r: Any) -> Array:
        """Return the metric G(r): the effort is rd^T G rd.

        Parameters
        ----------
        r : (p,) array_like
            Shape, rad or m.

        Returns
        -------
        (p, p) array
            Symmetric.
        """
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
            f"{self.model.name}: {self.kind} connection: at shape {np.round(q, 6).tolist()} the motion "
            f"{NAMES[fault]} is undetermined, as it has no {what}; add {what} to a body"
        )


def connection(mechanism: Mechanism | Model, r: Any, kind: str = "mechanical", planar: bool | None = None) -> Array:
    """Return the local form A(r) with eta = -A(r) rd.

    `Connection` is quicker for many shapes.

    Parameters
    ----------
    mechanism : Mechanism or Model
        A description, its compiled model, or a plant of it; its base is free or prescribed.
    r : (p,) array_like
        Shape, rad or m.
    kind : str, default 'mechanical'
        'mechanical', 'hydrodynamic', 'stokes' or 'nonholonomic', see `Connection`.
    planar : bool, optional
        True: SE(2), projected; False: SE(3); None: SE(2) where all joints and bodies are planar.

    Returns
    -------
    array
        (3, p) on {Vx, Vy, Wz} for a planar mechanism, else (6, p).

    Raises
    ------
    ModelError
        The mechanism has no such connection, or the net motion is not determined at this shape.
    """
    return Connection(mechanism, kind, planar).at(r)


def curvature(
    mechanism: Mechanism | Model, r: Any, kind: str = "mechanical", planar: bool | None = None, *,
    bracketed: bool = True,
) -> Array:  # fmt: skip
    """Return the curvature of the connection at a shape, see `Connection.curvature`.

    Parameters
    ----------
    mechanism : Mechanism or Model
        A description, its compiled model, or a plant of it; its base is free or prescribed.
    r : (p,) array_like
        Shape, rad or m.
    kind : str, default 'mechanical'
        'mechanical', 'hydrodynamic', 'stokes' or 'nonholonomic', see `Connection`.
    planar : bool, optional
        True: SE(2), projected; False: SE(3); None: SE(2) where all joints and bodies are planar.
    bracketed : bool, default True
        False: without the bracket.

    Returns
    -------
    array
        (dim, p, p), dim 3 where planar, else 6.
    """
    return Connection(mechanism, kind, planar).curvature(r, bracketed=bracketed)


_COMPILED: WeakKeyDictionary[Mechanism, Model] = WeakKeyDictionary()


def model_of(mechanism: Mechanism | Model) -> Model:
    """Return the model of a mechanism, compiled once for its kinematics.

    Its joints have a given motion, so that its bodies need no mass.

    Parameters
    ----------
    mechanism : Mechanism or Model
        A description, its compiled model, or a plant of it.

    Returns
    -------
    Model
        Compiled model.

    Raises
    ------
    ModelError
        It is none of these.
    """
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
    """Return the packed matrices (n + 1, 21) that have the place of the bodies' inertia in a connection of a kind."""
    if kind == "stokes":
        return model.viscous
    first = C_INERTIA if kind == "hydrodynamic" else C_RIGID
    return model.constant[:, first : first + PACKED_SIZE]


def is_planar(model: Model, weights: Array) -> bool:
    """Return whether all motion is in the base's plane z = 0, and the weights do not couple it to other motions.

    Parameters
    ----------
    model : Model
        Compiled model.
    weights : (n + 1, 21) array
        Packed weights of the bodies.

    Returns
    -------
    bool
        True for a planar mechanism.
    """
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
    """Return whether contacts keep the base in its plane: rows of the base alone make Vz, Wx and Wy 0.

    Parameters
    ----------
    model : Model
        Compiled model.

    Returns
    -------
    bool
        True where they do.
    """
    base_rows = [row[G_ROW:] for row in model.ground.rows if row[G_BODY] == 0 and row[G_JOINT] == 0]
    held = np.array([*base_rows, np.zeros(6)])
    return all(
        np.linalg.matrix_rank(np.vstack([held, unit]), tol=1e-9) == np.linalg.matrix_rank(held, tol=1e-9)
        for unit in np.eye(6)[2:5]
    )


def warm(item: Connection) -> None:
    """Compile the kernels of `Connection`, or load them, with a report.

    Parameters
    ----------
    item : Connection
        Connection of the mechanism.
    """
    with compile_progress("the kernels of rtmms.locomotion"):
        q = np.zeros((1, item.model.n))
        item.along(q, q)
