"""Provide a geometrically exact rod by strain modes, with the data of a `Rod` of links, at rest and as a plant."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from rtmms.base.errors import DivergedError, ModelError, Renamed
from rtmms.base.jit import COMPILED, compile_progress
from rtmms.base.override import override
from rtmms.base.spatial import PACKED_SIZE, Array, adjoint, matrix_quaternion, pack_inertia, unpack_inertia
from rtmms.continuum import layout as at
from rtmms.continuum.chart import StrainChart
from rtmms.continuum.strain_modes import (
    BAD_COMMAND,
    ROD,
    Shapes,
    assemble,
    end_of,
    enter_look,
    enter_step,
    look_at,
    rod_table,
    take_step,
)  # fmt: skip
from rtmms.model import Body, Mechanism, compile_model
from rtmms.model.layout import C_INERTIA, C_WEIGHT, C_WEIGHT_MOMENT
from rtmms.model.rods import Rod
from rtmms.plant.kernel_plant import KernelPlant
from rtmms.plant.protocol import Channel
from rtmms.plant.validation import read_seed, refuse_not_finite

DEFAULT_POINTS = 25
"""Points along a rod whose shapes do not need more."""
PUSHES = ("tip.fx", "tip.fy", "tip.fz", "tip.mx", "tip.my", "tip.mz")


@dataclass(eq=False)
class StrainRod(KernelPlant):
    """A rod by strain modes as a plant (rtmms.plant.protocol.Plant).

    Its root is fixed at the rod's placement, or free there, alone or on a body. The commands are force (N) and couple
    (N m) on its tip, world axes.

    Parameters
    ----------
    rod : Rod
        Its data, as for links; `elements` does not count. Its skin is evaluated for a metre at each point: drag and
        added mass of a Strip of Kirchhoff's law.
    shapes : Shapes, optional
        Shapes of its strains; None: Legendre polynomials to degree 3 for each of the rod's freedoms.
    base : str, default 'fixed'
        'fixed' or 'free'.
    carrier : Body, optional
        Rigid body that moves with a free root, at the rod's placement in it; None for none.
    dt : float, default 0.001
        Step, s.
    nodes : int, optional
        Points along it (rtmms.continuum.body); None: 25, or as many as its shapes need.
    points : int, default 5
        Points of a cell.
    gravity : float, default 0.0
        m/s2, along -z.
    current : (3,) array_like, default (0.0, 0.0, 0.0)
        Uniform current of the water, m/s, world.
    parameters : dataclass, optional
        The robot's own parameters, which the wire reports.

    Raises
    ------
    ModelError
        Something is wrong; the message has the point of the rod, the shape, or the strain without stiffness.
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
        """Check the fields, build the arrays, and compile the kernels."""
        rod, name = self.rod, f"rod '{self.rod.name}'"
        if self.base not in ("fixed", "free"):
            raise ModelError(f"{name}: base must be one of fixed, free, got '{self.base}'")
        if not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{name}: dt must be > 0 s, got {self.dt!r}")
        table = rod_table(rod, self.shapes, self.nodes, self.points, DEFAULT_POINTS)
        rows, rest_strain, shapes, stiff, slow, along = table
        n, points = len(shapes), len(along.x)
        self.n = n
        self.stiffness = stiff
        self.system = ROD.make({
            "section": rows, "inner": along.inner, "length": along.length, "rest_strain": rest_strain, "shapes": shapes,
            "stiff": stiff, "damping": slow, "free": self.base == "free", "carrier": self._carried(name),
            "gravity": np.array([0.0, 0.0, -float(self.gravity)]), "current": np.array(self.current, dtype=float),
            "dt": self.dt,
        })  # fmt: skip
        self.memory, self._steps, self._name = self.system.memory, 0, rod.name
        self.state, self.push, self._command = self.system.y, self.system.push, self.system.command
        self._bind_step()
        self._key = hashlib.sha256(f"rod {self.base} {n}".encode()).digest()
        self.neutral = np.zeros(6)
        self.actuators = tuple(Channel(push, "N" if "f" in push else "N m", frame="world") for push in PUSHES)
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
        """Return the numbers (25,) of the body at the root, in the root's frame, see strain_modes.add_carrier."""
        out = np.zeros(25)
        if self.carrier is None:
            return out
        if self.base != "free":
            raise ModelError(f"{name}: base: expected 'free' with a carrier, got '{self.base}'")
        if self.carrier.elements or self.carrier.viscous is not None:
            raise ModelError(f"{name}: carrier '{self.carrier.name}': expected no elements and no viscous drag")
        row = compile_model(Mechanism("carrier", [self.carrier], base="fixed")).constant[0]
        place = self.rod.placement
        back = np.linalg.inv(adjoint(place.rotation, place.position))
        inertia = unpack_inertia(row[C_INERTIA : C_INERTIA + PACKED_SIZE])
        out[:21] = pack_inertia(back.T @ inertia @ back)
        out[21] = row[C_WEIGHT]
        moment = row[C_WEIGHT_MOMENT : C_WEIGHT_MOMENT + 3] - row[C_WEIGHT] * place.position
        out[22:] = place.rotation.T @ moment
        return out

    @property
    def q(self) -> Array:
        """(n,) coordinates of its strain."""
        return self.state[7 : 7 + self.n]

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0, without strain.

        Parameters
        ----------
        seed : int, default 0
            Checked; it has no effect, because nothing here is random.
        """
        read_seed(self.rod.name, seed)
        self._clear()
        self.state[:] = 0.0
        self.state[:3] = self.rod.placement.position
        self.state[3:7] = matrix_quaternion(self.rod.placement.rotation)
        self.push[:], self._steps = 0.0, 0

    def _step_kernel(self) -> Any:
        return enter_step if COMPILED else None

    def _plain_step(self, system: Any) -> int:
        return int(take_step(system))

    def _sound_of(self, system: Any) -> Array:
        return np.asarray(system.last)

    def _places_of(self, system: Any) -> dict[str, tuple[int, int]]:
        n = self.n
        return {
            "position": (0, 3), "quaternion": (3, 4), "joint_position": (7, n), "velocity": (7 + n, 3),
            "angular_velocity": (10 + n, 3), "joint_velocity": (13 + n, n),
        }  # fmt: skip

    def _fail(self, status: int) -> NoReturn:
        if status == BAD_COMMAND:
            refuse_not_finite(self.rod.name, self.actuators, self._command)
        self.memory[:] = self.system.last
        self.push[:] = 0.0
        raise DivergedError(
            self.time + self.dt, "joint_velocity", self.observe(), "grew without bound; give a smaller dt"
        )

    def look(self) -> None:
        """Evaluate at the present state."""
        if COMPILED:
            enter_look(self.system.address)
        else:
            look_at(self.system)

    def mass_matrix(self) -> Array:
        """Return the mass matrix at the present state.

        Returns
        -------
        array
            (6 + n, 6 + n) of the root's twist and the coordinates, or (n, n) with a fixed root.
        """
        self.look()
        rod = self.system
        mass = rod.mass
        assemble(rod.section, rod.s, rod.jacobian, mass, rod.left, rod.six)
        mass[:6, :6] += unpack_inertia(rod.carrier[:21])
        return mass.copy() if self.base == "free" else mass[6:, 6:].copy()

    def tip(self) -> Array:
        """Return the position of the tip.

        Returns
        -------
        (3,) array
            m, world.
        """
        out = np.zeros(3)
        self.look()
        end_of(self.system.s, self.state, out)
        return out

    @override
    def observe(self) -> dict[str, Array]:
        n, y, tip = self.n, self.state.copy(), self.tip()
        return {
            "position": y[:3], "quaternion": y[3:7], "velocity": y[7 + n : 10 + n],
            "angular_velocity": y[10 + n : 13 + n], "joint_position": y[7 : 7 + n], "joint_velocity": y[13 + n :],
            "tip": tip, "centreline": self.system.s[:, at.P_POS : at.P_POS + 3].copy(),
            "energy": self.system.totals[at.ENERGY].copy(),
        }  # fmt: skip

    def chart(self) -> StrainChart:
        """Return the coordinates around the present state.

        Returns
        -------
        StrainChart
            Chart for `rtmms.analysis.linearise` that reads and writes this plant.
        """
        return StrainChart(self.state, self.base == "free", self.rod.length_m)

    rest = Renamed("equilibrium")

    def equilibrium(self, push: Any, steps: int = 4) -> Array:
        """Return the coordinates in balance under a load on the tip of a rod with a fixed root; the rod is left there.

        Newton's method with differences finds them, and the load grows in equal parts.

        Parameters
        ----------
        push : (6,) array_like
            Force, N, and couple, N m, world axes.
        steps : int, default 4
            Number of parts.

        Returns
        -------
        (n,) array
            Coordinates of the strain.

        Raises
        ------
        ModelError
            The method does not converge.
        """
        self.state[7 + self.n :] = 0.0
        for part in range(1, steps + 1):
            self.push[:] = np.asarray(push, dtype=float) * part / steps
            self._newton()
        return self.q.copy()

    def _residual(self, q: Array) -> Array:
        """Return K q + int J^T b - J_tip^T F, (n,): the mass times the acceleration, with a minus sign."""
        self.q[:] = q
        self.look()
        mass = self.mass_matrix()
        self.look()
        return -mass @ self.system.rate[12 + self.n :]

    def _newton(self) -> None:
        q, n = self.q.copy(), self.n
        size = 1.0 / self.rod.length_m
        for _ in range(40):
            r, slope = self._residual(q), np.empty((n, n))
            for k in range(n):
                d = np.zeros(n)
                d[k] = 1e-6 * size
                slope[:, k] = (self._residual(q + d) - self._residual(q - d)) / (2e-6 * size)
            newton_step = np.linalg.solve(slope, r)
            q = q - newton_step
            if np.abs(newton_step).max() < 1e-10 * size * max(1.0, float(np.abs(q).max())):
                self.q[:] = q
                return
        raise ModelError(
            f"rod '{self.rod.name}': equilibrium: the method did not converge; apply the load in more steps"
        )
