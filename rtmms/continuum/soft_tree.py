"""Provide a tree whose bodies carry geometrically exact rods by strain modes, as a plant."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.jit import compile_progress
from rtmms.base.override import override
from rtmms.base.renamed_outputs import OutputValues
from rtmms.base.spatial import Array
from rtmms.continuum import layout as at
from rtmms.continuum.chart import StrainChart
from rtmms.continuum.soft_step import BAD_COMMAND, POSED, SYSTEM, evaluate, step_kernel, take_step
from rtmms.continuum.strain_modes import RodTable, Shapes, rod_table
from rtmms.fluids.ambient import Flow
from rtmms.fluids.immersed import immerse
from rtmms.mechanism.actuator_arrays import arrays_of_actuators
from rtmms.mechanism.actuators import imposing
from rtmms.mechanism.joint_laws import BOUNDED, Law, follow, hard_limits, hold_commands
from rtmms.mechanism.outputs import DISSIPATED, tendon_channels
from rtmms.mechanism.tendons import RESULT_LENGTH, RESULT_RATE, RESULT_TENSION, START
from rtmms.model.compiled import Model
from rtmms.model.compiler import compile_model
from rtmms.model.description import Mechanism
from rtmms.model.layout import BASE_FREE, S_WORLD_POS, S_WORLD_ROT
from rtmms.model.rods import Rod
from rtmms.plant.kernel_plant import KernelPlant
from rtmms.plant.protocol import Channel
from rtmms.plant.validation import limits_of, read_seed, refuse_not_finite

DEFAULT_POINTS = 17
"""Points along a rod whose shapes do not need more."""


@dataclass(eq=False)
class SoftTree(KernelPlant):
    """The joints of a tree and the strains of rods on its bodies, in one recursion (rtmms.plant.protocol.Plant).

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism without contacts; its own `rods` become links.
    rods : Sequence[Rod]
        Soft rods by strain modes, with the data of `Rod`; their skins have the water's data for a metre.
    shapes : Shapes or Sequence[Shapes], optional
        One for all rods, or one for each (with equal numbers of coordinates); None: Legendre polynomials to degree 3.
    dt : float, default 0.001
        Step, s: one extrapolated linearly implicit step (`implicit2` of trees).
    law : Law, optional
        Motion of joints without commands.
    actuators : sequence of actuator, default ()
        JointMotion, JointTorque, and Tendon, whose points on a rod are the points of the rod's grid nearest to their X.
    flow : Flow, optional
        A uniform current, the only motion of the fluid that rods by strain modes support.
    nodes : int, optional
        Points along each rod (rtmms.continuum.body); None: 17, or as many as the shapes need.
    points : int, default 5
        Points of a cell.
    strip_nodes : int, default 10
        Gauss points along each strip of the tree.
    parameters : dataclass, optional
        The robot's own parameters, which the wire reports.

    Raises
    ------
    ModelError
        Something is wrong; the message names the rod and the place, or the actuator.
    """

    mechanism: Mechanism
    rods: Sequence[Rod]
    shapes: Shapes | Sequence[Shapes] | None = None
    dt: float = 1e-3
    law: Law | None = None
    actuators: Any = ()
    flow: Flow = field(default_factory=Flow)
    nodes: int | None = None
    points: int = 5
    strip_nodes: int = 10
    parameters: Any = None

    def __post_init__(self) -> None:
        """Check the fields, build the arrays, and compile the kernels."""
        self.model = model = self._compiled()
        name, n = model.name, model.n
        if not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{name}: dt must be > 0 s, got {self.dt!r}")
        tables = self._tables(name)
        r, m = len(tables), len(tables[0].shapes)
        self.n, self.m, self._r = n, m, r
        along = {rod.name: (rod, table.grid.x) for rod, table in zip(self.rods, tables, strict=True)}
        self.attached = more = arrays_of_actuators(model, self.actuators, strained=along)
        if (
            len(more.pushes)
            or np.any(more.kp)
            or np.any(more.kd)
            or np.any(more.bounds[:, BOUNDED])
            or hard_limits(more.bounds).any()
        ):
            raise ModelError(
                f"{name}: actuators: expected only JointMotion, JointTorque and Tendon, without "
                "max_rate and joint limits, got "
                f"{', '.join(type(item).__name__ for item in self.actuators)}; remove the others and "
                "the limits, or use rods of links (Mechanism.rods)"
            )
        self.actuators = tuple(drive.channel for drive in more.drives)
        kinds = np.array([drive.kind for drive in more.drives], dtype=np.int64)
        joints = np.array([drive.joint for drive in more.drives], dtype=np.int64)
        gains = np.array([drive.gain for drive in more.drives], dtype=float)
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        law = Law(np.zeros((n, 3))) if self.law is None else self.law
        motion = np.array(law.motion, dtype=float, order="C")
        if motion.shape != (n, 3):
            raise ModelError(f"{name}: law.motion must have shape ({n}, 3), got {motion.shape}")
        if np.any(law.kp) or np.any(law.kd):
            raise ModelError(f"{name}: law: expected kp = kd = 0, as trees with rods by strain modes have no servos")
        bandwidth = np.where(np.isnan(more.bandwidth), law.bandwidth, more.bandwidth)
        if self.flow.field is not None or not np.array_equal(self.flow.pack(), Flow(self.flow.velocity).pack()):
            raise ModelError(
                f"{name}: flow: expected only a velocity, as rods by strain modes support no other parts; use "
                "rods of links (Mechanism.rods)"
            )
        soft = {**self._carried(), **_stacked(tables), "current": self.flow.pack()[0, :3].copy()}
        self.system = SYSTEM.make({
            "motion": {}, "work": {}, "soft": soft, "room": {},
            "hold": {"bandwidth": bandwidth, "slew": np.full(n, np.inf), "slews": False},
            "command": {"kinds": kinds, "joints": joints, "gains": gains, "limits": limits_of(self.actuators)},
            "fluid": immerse(model, self.flow, strip_nodes=self.strip_nodes), "dt": self.dt,
            **self._tendons(),
            "law": {"motion": motion, "omega": law.omega, "ramp": law.ramp, "kp": np.zeros(n), "kd": np.zeros(n)},
            "tree": {
                "topology": model.topology, "constant": model.constant, "base_mode": model.base_mode,
                "gravity": model.gravity, "imposed": model.imposed, "bounds": more.bounds,
            },
        }, {"commands": len(self.neutral)})  # fmt: skip
        self.memory, self.state = self.system.memory, self.system.motion.vector
        self._command, self._start = self.system.command.values, self.system.hold.cell("start")
        self._kernel = step_kernel(self.system)
        self._bind_step()
        self.outputs = (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("joint_position", "rad, m", (n,)), Channel("joint_velocity", "rad/s, m/s", (n,)),
            Channel("joint_torque", "N m, N", (n,)), Channel("strain", "", (r, m)),
            Channel("tip", "m", (r, 3), "world"), *tendon_channels(len(more.tendons)),
            *((DISSIPATED,) if len(more.tendons) else ()),
        )  # fmt: skip
        decisive = [a.tobytes() for a in (*soft.values(), motion, bandwidth, joints, kinds)]
        if len(more.tendons):
            decisive += [more.tendons.tobytes(), more.tendon_points.tobytes()]
        self._key = hashlib.sha256(model.digest.encode() + b"".join(decisive)).digest()
        self._steps, self._name = 0, model.name
        with compile_progress(f"the kernels of '{name}'"):
            self.reset()
            self.step(self.neutral)
        self.reset()

    def _tendons(self) -> dict[str, Any]:
        more = self.attached
        if not len(more.tendons):
            return {}
        return {"tendons": {"numbers": more.tendons, "points": more.tendon_points}, "pulled": {}}

    def _compiled(self) -> Model:
        if not isinstance(self.mechanism, Mechanism):
            raise ModelError(f"SoftTree: expected a Mechanism, got {self.mechanism!r}")
        model = compile_model(imposing(self.mechanism, self.actuators))
        if len(model.ground.rows):
            raise ModelError(
                f"{model.name}: contacts: expected none, as a tree with rods by strain modes does not support them"
            )
        return model

    def _tables(self, name: str) -> list[RodTable]:
        if not self.rods:
            raise ModelError(f"{name}: rods: expected at least one")
        chosen = self.shapes if isinstance(self.shapes, Sequence) else [self.shapes] * len(self.rods)
        if len(chosen) != len(self.rods):
            raise ModelError(f"{name}: shapes: expected one for each of {len(self.rods)} rods, got {len(chosen)}")
        tables = []
        for rod, shapes in zip(self.rods, chosen, strict=True):
            if not isinstance(rod, Rod):
                raise ModelError(f"{name}: rods: expected a Rod, got {rod!r}")
            tables.append(rod_table(rod, shapes, self.nodes, self.points, DEFAULT_POINTS))
        maximum = max(len(table.grid.x) for table in tables)  # as many points on each rod
        tables = [
            table if len(table.grid.x) == maximum else rod_table(rod, shapes, maximum, self.points, DEFAULT_POINTS)
            for rod, shapes, table in zip(self.rods, chosen, tables, strict=True)
        ]
        for rod, table in zip(self.rods, tables, strict=True):
            if len(table.shapes) != len(tables[0].shapes):
                raise ModelError(
                    f"{name}: rod '{rod.name}': expected {len(tables[0].shapes)} shapes like the first rod, "
                    f"got {len(table.shapes)}"
                )
        return tables

    def _carried(self) -> dict[str, Any]:
        """Return the rows of the model that carry the roots, and the roots' placements in them."""
        rows, places = np.zeros(len(self.rods), dtype=np.int64), np.zeros((len(self.rods), POSED))
        for i, rod in enumerate(self.rods):
            k = self.model.body(rod.body)
            rows[i] = self.model.carrier[k]
            turn, offset = self.model.offset_rotation[k], self.model.offset_position[k]
            places[i, :9] = (turn @ rod.placement.rotation).ravel()
            places[i, 9:] = offset + turn @ rod.placement.position
        return {"carriers": rows, "places": places}

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0, without strain, at rest except for imposed joints.

        Parameters
        ----------
        seed : int, default 0
            Checked; it has no effect, because nothing here is random.
        """
        read_seed(self.model.name, seed)
        self.system.clear()
        self.memory[:], self._steps, self._start[0] = 0.0, 0, 0.0
        self.state[3] = 1.0
        command, hold = self.system.command, self.system.hold
        hold_commands(command, self.neutral, hold.torque, hold.target, hold.slew, hold.goal)
        if self.system.tendons is not None:
            self.system.tendons.servo[:, 0] = self.attached.tendons[:, START]
            self.system.pulled.command[:] = self.neutral
        follow(self.system, self.state, 0.0)

    def _step_kernel(self) -> Any:
        return self._kernel

    def _plain_step(self, system: Any) -> int:
        return int(take_step(system))

    def _command_of(self, system: Any) -> Array:
        return np.asarray(system.command.values)

    def _start_of(self, system: Any) -> Array:
        return np.asarray(system.hold.cell("start"))

    def _sound_of(self, system: Any) -> Array:
        return np.asarray(system.last)

    def _places_of(self, system: Any) -> dict[str, tuple[int, int]]:
        n, strains = self.n, self._r * self.m
        total = n + strains
        return {
            "position": (0, 3), "quaternion": (3, 4), "joint_position": (7, n), "strain": (7 + n, strains),
            "velocity": (7 + total, 3), "angular_velocity": (10 + total, 3), "joint_velocity": (13 + total, n),
        }  # fmt: skip

    def _prepare(self) -> None:
        self._start[0] = self.time

    def _fail(self, status: int) -> NoReturn:
        if status == BAD_COMMAND:
            refuse_not_finite(self.model.name, self.actuators, self._command)
        self.memory[:] = self.system.last
        raise DivergedError(self.time + self.dt, "velocity", self.observe(), "grew without bound; give a smaller dt")

    def look(self) -> Array:
        """Return the rate at the present state.

        Returns
        -------
        (12 + 2 N,) array
            See `rtmms.continuum.soft_step`.
        """
        self._start[0], rate = self.time, self.system.motion.rate
        evaluate(self.system, self.state, self.time, 0.0, rate)
        return np.array(rate)

    @override
    def observe(self) -> dict[str, Array]:
        self.look()
        n, r, m, y = self.n, self._r, self.m, self.state.copy()
        total, s, soft = n + r * m, self.system.work.s, self.system.soft
        tips = np.zeros((r, 3))
        for i, (row, place) in enumerate(zip(soft.carriers, soft.places, strict=True)):
            turn, origin = (
                s[row, S_WORLD_ROT : S_WORLD_ROT + 9].reshape(3, 3),
                s[row, S_WORLD_POS : S_WORLD_POS + 3],
            )
            inside = place[9:] + place[:9].reshape(3, 3) @ self.system.room.points[i, -1, at.P_POS : at.P_POS + 3]
            tips[i] = origin + turn @ inside
        tendons: dict[str, Array] = {}
        if self.system.tendons is not None:
            names = {"tendon_length": RESULT_LENGTH, "tendon_rate": RESULT_RATE, "tendon_tension": RESULT_TENSION}
            tendons = {name: self.system.tendons.results[:, k].copy() for name, k in names.items()}
            tendons["dissipated_energy"] = self.system.pulled.lost[0].copy()
        return OutputValues({
            "position": y[:3], "quaternion": y[3:7], "velocity": y[7 + total : 10 + total],
            "angular_velocity": y[10 + total : 13 + total], "joint_position": y[7 : 7 + n],
            "joint_velocity": y[13 + total : 13 + total + n], "joint_torque": self.system.work.torque.copy(),
            "strain": y[7 + n : 7 + total].reshape(r, m), "tip": tips, **tendons,
        })  # fmt: skip

    def chart(self) -> StrainChart:
        """Return the coordinates around the present state, of free base, joints and strains.

        Returns
        -------
        StrainChart
            Chart for `rtmms.analysis.linearise` that reads and writes this plant.
        """
        return StrainChart(self.state, self.model.base_mode == BASE_FREE, max(rod.length_m for rod in self.rods))


def _stacked(tables: Sequence[RodTable]) -> dict[str, Any]:
    """Return the values of a record of SOFT."""
    return {
        "sections": np.array([t.rows for t in tables]), "inner": tables[0].grid.inner,
        "lengths": np.array([t.grid.length for t in tables]), "rests": np.array([t.rest_strain for t in tables]),
        "shapes": np.array([t.shapes for t in tables]), "stiffs": np.array([t.stiff for t in tables]),
        "dampings": np.array([t.damping for t in tables]),
    }  # fmt: skip
