"""Connections of a mechanism: A(r) with eta + A(r) rd = 0, their curvature, and what a shape's motion costs.

kind           eta is such that                                                               A(r)
mechanical     the momentum is 0                                                              M^-1 M_r of the bodies
hydrodynamic   the momentum of bodies and perfect fluid is 0 (full Kirchhoff added inertia)   the same, M + M_add
stokes         the drag of a creeping fluid on the whole is 0 (Body.viscous)                  the same, D for M
nonholonomic   wheels and axles neither slip nor slide                                        A^+ B of their rows
(Boyer and Porez 2015, eqs 4, 8, 19, 23.) Twists are those of the base in its own frame.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rtmms.errors import ModelError, UnknownNameError
from rtmms.jit import compile_progress
from rtmms.locomotion.constraints import nonholonomic, rates, rows
from rtmms.locomotion.group import bracket
from rtmms.locomotion.local_form import WEIGHTED, WORK, along, effort, local_form, net_twist, resist, slopes
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.contact_rows import G_BODY, G_JOINT, G_ROW
from rtmms.model.description import Mechanism
from rtmms.model.layout import BASE_FIXED, C_INERTIA, C_RIGID, C_ROT, C_ROTOR, PRISMATIC, T_KIND, T_PARENT
from rtmms.spatial import PACKED_SIZE, Array, adjoint, unpack_inertia

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
            rates(self.model, q, qd)  # says which joints would have to follow
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
    """Compile what `Connection` calls, or fetch it, telling of it."""
    with compile_progress("the kernels of rtmms.locomotion"):
        q = np.zeros((1, one.model.n))
        one.along(q, q)
