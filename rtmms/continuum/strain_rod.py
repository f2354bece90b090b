"""A geometrically exact rod by strain modes, with the data of a `Rod` of links: at rest, and as a plant."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.jit import compile_progress
from rtmms.base.snapshot import StatefulPlant
from rtmms.base.spatial import PACKED_SIZE, Array, adjoint, matrix_quaternion, pack_inertia, unpack_inertia
from rtmms.continuum import layout as at
from rtmms.continuum.chart import StrainChart
from rtmms.continuum.strain_modes import BAD_COMMAND, SOUND, Shapes, assemble, end_of, evaluate, rod_table, take_step
from rtmms.model import Body, Mechanism, compile_model
from rtmms.model.layout import C_INERTIA, C_WEIGHT, C_WEIGHT_MOMENT
from rtmms.model.rods import Rod
from rtmms.plant.protocol import Channel
from rtmms.plant.validation import read_command, read_seed, refuse_not_finite

USUAL = 25
"""Points along a rod whose shapes do not need more."""
PUSHES = ("tip.fx", "tip.fy", "tip.fz", "tip.mx", "tip.my", "tip.mz")


@dataclass(eq=False)
class StrainRod(StatefulPlant):
    """See rtmms.plant.protocol.Plant. Its root is held at the rod's placement, or free there, alone or on a body.

    rod      its data, as of links; `elements` does not count. Its skin is asked for a metre at each point: drag and
             added mass of a Strip of Kirchhoff's law
    shapes   of its strains; default Legendre polynomials to degree 3 for each of the rod's freedoms
    carrier  a rigid body that moves with a free root, at the rod's placement in it; None: nothing
    base     'fixed' or 'free'
    nodes, points   along it, see rtmms.continuum.body; nodes None: 25, or as many as its shapes need
    gravity  m/s2, along -z;  current (3,) m/s of the water, uniform, world;  dt s
    Commands: force (N) and couple (N m) on its tip, world axes. ModelError names the point of the rod, the shape, or
    the strain whose stiffness is missing.
    """

    rod: Rod
    shapes: Shapes | None = None
    base: str = "fixed"
    carrier: Body | None = None
    dt: float = 1e-3
    nodes: int | None = None
    points: int = 5
    gravity: float = 0.0
    current: Any = (0.0, 0.0, 0.0)
    parameters: Any = None

    def __post_init__(self) -> None:
        rod, name = self.rod, f"rod '{self.rod.name}'"
        if self.base not in ("fixed", "free"):
            raise ModelError(f"{name}: base must be one of fixed, free, got '{self.base}'")
        if not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{name}: dt must be > 0 s, got {self.dt!r}")
        table = rod_table(rod, self.shapes, self.nodes, self.points, USUAL)
        rows, rest, shapes, stiff, slow, along = table
        n, points = len(shapes), len(along.x)
        self.n = n
        self.stiffness = stiff
        self._rod = (
            rows, along.inner, along.length, rest, shapes, stiff, slow,
            self.base == "free", self._carried(name),
        )  # fmt: skip
        self._around = (np.array([0.0, 0.0, -float(self.gravity)]), np.array(self.current, dtype=float))
        self._work = (
            np.zeros((points, at.P_WIDTH)), np.zeros((n, points, 6)), np.zeros((points, 6)), np.zeros((6 + n, 6 + n)),
            np.zeros(6 + n), np.zeros(at.TOLD), np.zeros((3, 6)), np.zeros(6),
        )  # fmt: skip
        self._room = (np.zeros(12 + 2 * n), np.zeros(13 + 2 * n), np.zeros(13 + 2 * n))
        self.memory, self._steps, self._name = np.zeros(19 + 2 * n), 0, rod.name
        self.state, self.push = self.memory[:-6], self.memory[-6:]
        self._key = hashlib.sha256(f"rod {self.base} {n}".encode()).digest()
        self.neutral = np.zeros(6)
        self.actuators = tuple(Channel(one, "N" if "f" in one else "N m", frame="world") for one in PUSHES)
        self.outputs = (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("joint_position", "", (n,)), Channel("joint_velocity", "1/s", (n,)),
            Channel("tip", "m", (3,), "world"), Channel("centreline", "m", (points, 3), "body"),
            Channel("energy", "J"),
        )  # fmt: skip
        with compile_progress(f"the kernels of '{rod.name}'"):
            self.reset()
            self.step(self.neutral)
        self.reset()

    def _carried(self, name: str) -> Array:
        """(25,) of the body at the root, in the root's frame, see strain_modes.add_carrier."""
        out = np.zeros(25)
        if self.carrier is None:
            return out
        if self.base != "free":
            raise ModelError(f"{name}: a carrier moves: expected base='free', got base='{self.base}'")
        if self.carrier.elements or self.carrier.viscous is not None:
            raise ModelError(f"{name}: carrier '{self.carrier.name}': expected no elements and no viscous drag")
        row = compile_model(Mechanism("carrier", [self.carrier], base="fixed")).constant[0]
        place = self.rod.placement
        back = np.linalg.inv(adjoint(place.rotation, place.position))
        own = unpack_inertia(row[C_INERTIA : C_INERTIA + PACKED_SIZE])
        out[:21] = pack_inertia(back.T @ own @ back)
        out[21] = row[C_WEIGHT]
        moment = row[C_WEIGHT_MOMENT : C_WEIGHT_MOMENT + 3] - row[C_WEIGHT] * place.position
        out[22:] = place.rotation.T @ moment
        return out

    @property
    def q(self) -> Array:
        """(n,) the coordinates of its strain."""
        return self.state[7 : 7 + self.n]

    def reset(self, seed: int = 0) -> None:
        """Back to t = 0, without strain."""
        read_seed(self.rod.name, seed)
        self._clear()
        self.state[:] = 0.0
        self.state[:3] = self.rod.placement.position
        self.state[3:7] = matrix_quaternion(self.rod.placement.rotation)
        self.push[:], self._steps = 0.0, 0

    def step(self, command: Array) -> None:
        """Advance by dt with `command` (6,) held. ValueError, DivergedError as of any plant."""
        given = read_command(self.rod.name, self.actuators, command)
        self.push[:] = given
        status = take_step(self._rod, self._around, self._work, self.state, self.push, self._room, self.dt)
        if status == BAD_COMMAND:
            refuse_not_finite(self.rod.name, self.actuators, given)
        if status != SOUND:
            self.push[:] = 0.0
            raise DivergedError(self.time + self.dt, "joint_velocity", self.observe(), "ran away; take a smaller dt")
        self._steps += 1

    def look(self) -> None:
        """Evaluate at the present state."""
        evaluate(self._rod, self._around, self._work, self.state, self.push, 0.0, self._room[0])

    def mass_matrix(self) -> Array:
        """(6 + n, 6 + n) of root's twist and coordinates, or (n, n) with a fixed root; at the present state."""
        self.look()
        _, jacobian, _, mass, left, _, _, room = self._work
        assemble(self._rod[0], self._work[0], jacobian, mass, left, room)
        mass[:6, :6] += unpack_inertia(self._rod[-1][:21])
        return mass.copy() if self.base == "free" else mass[6:, 6:].copy()

    def tip(self) -> Array:
        """(3,) m, world."""
        out = np.zeros(3)
        self.look()
        end_of(self._work[0], self.state, out)
        return out

    def observe(self) -> dict[str, Array]:
        """The outputs at the present state, by name."""
        n, y, tip = self.n, self.state.copy(), self.tip()
        return {
            "position": y[:3], "quaternion": y[3:7], "velocity": y[7 + n : 10 + n],
            "angular_velocity": y[10 + n : 13 + n], "joint_position": y[7 : 7 + n], "joint_velocity": y[13 + n :],
            "tip": tip, "centreline": self._work[0][:, at.P_POS : at.P_POS + 3].copy(),
            "energy": self._work[5][at.ENERGY].copy(),
        }  # fmt: skip

    def chart(self) -> StrainChart:
        """Coordinates around the present state, for `rtmms.analysis.linearise`."""
        return StrainChart(self.state, self.base == "free", self.rod.length_m)

    def _clear(self) -> None:
        """Scratch as in a new rod."""
        for array in (*self._work, *self._room):
            array[...] = 0.0

    def rest(self, push: Any, steps: int = 4) -> Array:
        """(n,) coordinates in balance under force and couple (6,) on its tip, world axes, a fixed root; the rod is left
        there. Newton's method by differences, the load put on in equal parts. ModelError where it does not converge."""
        self.state[7 + self.n :] = 0.0
        for part in range(1, steps + 1):
            self.push[:] = np.asarray(push, dtype=float) * part / steps
            self._newton()
        return self.q.copy()

    def _residual(self, q: Array) -> Array:
        """(n,) K q + int J^T b - J_tip^T F: the mass times the acceleration, with a minus sign."""
        self.q[:] = q
        self.look()
        mass = self.mass_matrix()
        self.look()
        return -mass @ self._room[0][12 + self.n :]

    def _newton(self) -> None:
        q, n = self.q.copy(), self.n
        size = 1.0 / self.rod.length_m
        for _ in range(40):
            r, slope = self._residual(q), np.empty((n, n))
            for k in range(n):
                d = np.zeros(n)
                d[k] = 1e-6 * size
                slope[:, k] = (self._residual(q + d) - self._residual(q - d)) / (2e-6 * size)
            way = np.linalg.solve(slope, r)
            q = q - way
            if np.abs(way).max() < 1e-10 * size * max(1.0, float(np.abs(q).max())):
                self.q[:] = q
                return
        raise ModelError(f"rod '{self.rod.name}': rest: not found; put the load on in more steps")
