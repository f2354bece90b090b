"""Provide a plant from any mechanism: a model, a fluid, joint laws, actuators, outputs, and a method."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError, renamed_fields
from rtmms.base.jit import compile_in_parallel, compile_progress
from rtmms.base.memory import Record
from rtmms.base.spatial import Array
from rtmms.dynamics.ground import ground_record
from rtmms.dynamics.hybrid import modal_record
from rtmms.dynamics.inertia import mass_matrix
from rtmms.fluids.ambient import Flow
from rtmms.fluids.immersed import immerse
from rtmms.mechanism.actuator_arrays import arrays_of_actuators
from rtmms.mechanism.actuators import imposing
from rtmms.mechanism.audit import AUDIT, SPENT
from rtmms.mechanism.body_actuators import CHANNEL
from rtmms.mechanism.contradiction import contradiction
from rtmms.mechanism.entry import SYSTEM, entries
from rtmms.mechanism.joint_laws import (
    CEILING,
    FLOOR,
    GREAT,
    MAX_SPEED,
    RATIO,
    Actuator,
    Law,
    follow,
    hard_limits,
    hold_commands,
)
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.outputs import O_TORQUE, POINT_OUT, resolve_outputs, shape_of_tree
from rtmms.mechanism.running import Running
from rtmms.mechanism.step import AGAINST, keep_to_ground
from rtmms.mechanism.tendons import FACTOR, START
from rtmms.mechanism.thrusters import thruster_table
from rtmms.model.compiled import Model, State
from rtmms.model.compiler import compile_model
from rtmms.model.description import Mechanism, displaced_density
from rtmms.model.floor_rows import F_HEIGHT, floor_reach
from rtmms.model.layout import BASE_FIXED, C_POS, C_STIFFNESS, PRISMATIC
from rtmms.plant.protocol import Channel, Environment, TunableGait, refuse_fixed, water_density
from rtmms.plant.validation import limits_of, read_numbers, read_pose, read_seed, refuse_substeps

_PLACES = ("position", "quaternion", "velocity", "angular_velocity", "joint_position", "joint_velocity")
STILL = Law(np.zeros((0, 3)))
"""A law without motion."""


@dataclass(frozen=True, eq=False)
class RebuiltParts:
    """Parts of a plant with other parameters, which `set` takes over.

    Parameters
    ----------
    parameters : Any
        The new parameters.
    model : Model
        Model with these parameters.
    law : Law
        Law with these parameters.
    flow : Flow
        Flow with these parameters.
    """

    parameters: Any
    model: Model
    law: Law
    flow: Flow


@renamed_fields(trimming="trim_options", remake="rebuild")
@dataclass(eq=False)
class TreePlant(Running):
    """A mechanism in a fluid as a plant (see rtmms.plant.protocol.Plant).

    Parameters
    ----------
    mechanism : Mechanism or Model
        Description, or the model that `rtmms.compile` made of it.
    dt : float, default 0.001
        Step, s.
    law : Law, default STILL
        Motion of joints without commands, such as a gait.
    drives : tuple[Actuator, ...], default ()
        Actuators of joints that are resolved already; they come before `actuators`.
    actuators : sequence of actuator, default ()
        Actuators (rtmms.mechanism.actuators); once the plant is built, their channels.
    outputs : sequence of str, optional
        Names of outputs, such as 'BODY.position' (rtmms.mechanism.outputs); None for all of base and joints. Once the
        plant is built, their channels.
    flow : Flow, optional
        The fluid's own motion.
    method : str, default 'rk4'
        'rk4', 'implicit1', 'implicit2' or 'abam' (`rtmms.mechanism.methods.METHODS`).
    substeps : int, default 1
        Steps of the method in a step of the plant.
    initial : State, optional
        State at t = 0; None: at rest at the origin, with all joints at 0.
    nodes : dict[str, int], optional
        `strip_nodes` and `blade_nodes`, numbers of Gauss points of elements.
    extra : tuple[tuple[Channel, Callable[[TreePlant], Any]], ...], default ()
        Further outputs: (channel, function of this plant -> array).
    trace_outputs : tuple[str, ...], optional
        Outputs that `summary` needs.
    recent_outputs : tuple[str, ...], optional
        Outputs of the last seconds for the figure of a run, at most two.
    trim_options : dict[str, Any], optional
        Keywords of `trim` for `rtmms.analysis.trim.trimmed`.
    parameters : dataclass, optional
        The robot's own parameters, which the wire reports.
    settable : tuple[str, ...], default ()
        Parameters that `set` may change.
    rebuild : callable, optional
        (plant, parameters to change) -> parts of a plant with the new values.
    summary : callable, optional
        (plant, time (k,) s, samples) -> numbers for the report.
    locomotion : Locomotion, optional
        Relation of the shape's motion to that of the robot (rtmms.locomotion.plant), for `rtmms gaits`.
    audited : bool, default False
        Whether the energy is reported term by term (`rtmms.mechanism.audit`).
    medium : str, default ''
        'water', 'air' or ''.
    half_span_m : float, optional
        Depth above which a robot in water is near the surface, m.
    airframe : str, default ''
        Name of the layout of its rotors or thrusters.
    density : float, optional
        Density of the water around, kg/m3; None: that of the fluid that its bodies displace.

    Raises
    ------
    ModelError, UnknownNameError
        An actuator, joint, body or output is wrong; the message has its place, the value and what is expected.
    """

    mechanism: Mechanism | Model
    dt: float = 1e-3
    law: Law = STILL
    drives: tuple[Actuator, ...] = ()
    actuators: Any = ()
    outputs: Any = None
    flow: Flow = field(default_factory=Flow)
    method: str = "rk4"
    substeps: int = 1
    initial: State | None = None
    nodes: dict[str, int] = field(default_factory=dict)
    extra: tuple[tuple[Channel, Callable[[TreePlant], Any]], ...] = ()
    trace_outputs: tuple[str, ...] = ("position", "quaternion", "velocity", "power", "work")
    recent_outputs: tuple[str, ...] = ("joint_position", "joint_torque", "angular_velocity", "velocity")
    trim_options: dict[str, Any] = field(default_factory=dict)
    parameters: Any = None
    settable: tuple[str, ...] = ()
    rebuild: Callable[[TreePlant, Mapping[str, Any]], RebuiltParts] | None = None
    summary: Callable[[TreePlant, Array, Any], dict[str, float | None]] | None = None
    locomotion: Any = None
    """Relation of its shape's motion to its own (rtmms.locomotion.plant.Locomotion), for `rtmms gaits`; or None."""
    audited: bool = False
    """Whether its energy is reported term by term, with works of flow, wake, drag and damping (`audit`)."""
    medium: str = ""
    """Its medium, 'water' or 'air' (rtmms.plant.PlantDescription)."""
    half_span_m: float | None = None
    """Depth, m, above which a robot in water is near the surface; None: nothing uses it."""
    airframe: str = ""
    """Name of the layout of its rotors or thrusters (rtmms.plant.PlantDescription)."""
    density: float | None = None
    """Density of the water around, kg/m3; None: that of the fluid that its bodies displace (`Body.fluid_density`)."""

    def __post_init__(self) -> None:
        """Compile the mechanism, resolve actuators and outputs, and compile the kernels."""
        self.model = model = self._compiled()
        self._check()
        self._pushing = self.actuators
        rods = self.mechanism.rods if isinstance(self.mechanism, Mechanism) else ()
        self.attached = arrays_of_actuators(model, self.actuators, self.drives, rods)
        self.drives = self.attached.drives
        self.actuators = tuple(drive.channel for drive in self.drives)
        pushes = len(self.attached.pushes)
        self._limited = hard_limits(self.attached.bounds)
        tendons = len(self.attached.tendons)
        self._observed = resolve_outputs(model, self.outputs, pushes, self.audited, bool(self._limited.any()), tendons)
        self.outputs = (*self._observed.channels, *(channel for channel, _ in self.extra))
        names = {channel.name for channel in self.outputs}
        self.trace_outputs = tuple(name for name in self.trace_outputs if name in names)
        self.recent_outputs = tuple(name for name in self.recent_outputs if name in names)[:2]
        self.immersed = self._immerse(model, self.flow)
        self._kinds = np.array([drive.kind for drive in self.drives], dtype=np.int64)
        self._joints = np.array([drive.joint for drive in self.drives], dtype=np.int64)
        self._gains = np.array([drive.gain for drive in self.drives], dtype=float)
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        self._command = self.neutral.copy()
        if len(model.modes) and np.any(self.attached.bandwidth < 0.0):
            raise ModelError(
                f"{model.name}: commanded rates (JointSpeed) are not supported in a tree with modal bodies"
            )
        if len(model.modes) and self._has_optional_parts:
            raise ModelError(
                f"{model.name}: tendons, floors, polars, resistances and rotors with inertia are not "
                "supported in a tree with modal bodies"
            )
        self._memory: Array | None = None
        self._steps, self._name = 0, model.name
        self.initial_pose: Mapping[str, Any] = {}
        self._take_up()
        with compile_progress(f"the kernels of '{model.name}'"), compile_in_parallel(*self._ahead()):
            self.reset()
            self.step(self.neutral)  # compiled, or fetched from the cache, and warm
            self.observe()
        self.reset()

    def _ahead(self) -> tuple[Any, ...]:
        """Return the program of a second process that compiles from the end, and the kernels of its entry points."""
        if self._entries is None:
            return ("",)
        kernels = self._entries.outputs, self._entries.step
        kernel_names = kernels[0].__module__, *(kernel.__name__ for kernel in kernels)
        return (
            f"from rtmms.base.compile_ahead import compile_from_the_end; compile_from_the_end{kernel_names}",
            *kernels,
        )

    def _compiled(self) -> Model:
        if isinstance(self.mechanism, Model):
            return self.mechanism
        if not isinstance(self.mechanism, Mechanism):
            raise ModelError(f"TreePlant: expected a Mechanism or a compiled model, got {self.mechanism!r}")
        return compile_model(imposing(self.mechanism, self.actuators))

    @property
    def _has_optional_parts(self) -> bool:
        """Whether it has parts that most trees do not have (rtmms.mechanism.entry.OPTIONAL_PARTS)."""
        more = self.attached
        return (
            len(more.tendons) > 0 or more.momentum is not None or self.immersed.foils is not None
            or len(self.model.floor) > 0
        )  # fmt: skip

    @property
    def shape(self) -> dict[str, Any]:
        """Its shape for viewers (rtmms.plant.PlantDescription)."""
        shape = shape_of_tree(
            self.model, self.mechanism if isinstance(self.mechanism, Mechanism) else None, self._pushing
        )
        return {**shape, **thruster_table(self.model, self._pushing)} if shape else shape

    def environment(self) -> Environment:
        """Return the present gravity and water around the plant.

        Returns
        -------
        Environment
            Gravity, m/s2, and density, kg/m3.
        """
        x, y, z = self.model.gravity.tolist()
        density = displaced_density(self.mechanism) if self.density is None else self.density
        return Environment((x, y, z), water_density(self.medium, density))

    def _immerse(self, model: Model, flow: Flow) -> Record:
        more = self.attached
        additional = len(more.tendons) > 0 or more.momentum is not None or len(model.floor) > 0
        return immerse(model, flow, **self.nodes, polars=int(additional))

    def _floor(self, model: Model) -> dict[str, Any]:
        """Return the floor's record: without points where the tree has none."""
        positions = model.constant[:, C_POS : C_POS + 3]
        return {
            "points": model.floor, "reach": floor_reach(model.floor, model.topology, positions, PRISMATIC),
            "highest": float(model.floor[:, F_HEIGHT].max(initial=-np.inf)), "count": len(model.floor),
        }  # fmt: skip

    def _check(self) -> None:
        name, dt = self.model.name, self.dt
        if isinstance(dt, bool) or not isinstance(dt, (int, float)) or not (math.isfinite(dt) and dt > 0.0):
            raise ModelError(f"{name}: dt must be > 0 s, got {dt!r}")
        if self.method not in METHODS:
            raise ModelError(f"{name}: method must be one of {', '.join(METHODS)}, got '{self.method}'")
        if np.any(self.model.viscous):
            raise ModelError(
                f"{name}: Body.viscous needs a plant without inertia; build it with "
                "rtmms.locomotion.plant.ConnectionPlant"
            )
        if self.audited and len(self.model.floor):
            raise ModelError(f"{name}: audited: expected a tree without a floor, got one with a Floor")
        if self.audited and not self.model.elements:
            raise ModelError(f"{name}: audited: expected a tree that a fluid acts on, got one without elements")
        couples = any(getattr(element, "couple", 0.0) for _, element in self.model.elements)
        if couples and (len(self.model.modes) or len(self.model.ground.rows)):
            raise ModelError(f"{name}: strip.couple on trees with contacts or modal bodies is not supported")
        refuse_substeps(name, self.substeps)
        if not isinstance(self.flow, Flow):
            raise ModelError(f"{name}: flow must be a Flow, got {self.flow!r}")
        self._check_types()
        if self.initial is not None:
            if not isinstance(self.initial, State):
                raise ModelError(f"{name}: initial: expected a State, got {self.initial!r:.60}")
            self.initial = self._checked("initial", self.initial)

    def _check_types(self) -> None:
        """Raise ModelError for a member of another type, before it is used."""
        name = self.model.name
        part_value: Any = self.law
        if not all(hasattr(part_value, part) for part in ("motion", "kp", "kd", "bandwidth")):
            raise ModelError(f"{name}: law: expected a Law, got {part_value!r:.60}")
        for member in ("trace_outputs", "recent_outputs", "settable", "outputs"):
            part_value = getattr(self, member)
            optional = member == "outputs" and part_value is None
            if not optional and not (
                isinstance(part_value, (list, tuple)) and all(isinstance(entry, str) for entry in part_value)
            ):
                raise ModelError(f"{name}: {member}: expected names, got {part_value!r:.60}")
        for member in ("nodes", "trim_options"):
            part_value = getattr(self, member)
            if not isinstance(part_value, Mapping):
                raise ModelError(f"{name}: {member}: expected a mapping, got {part_value!r:.60}")
        for member, kind in (("drives", Actuator), ("extra", tuple)):
            part_value = getattr(self, member)
            if not isinstance(part_value, (list, tuple)) or not all(isinstance(entry, kind) for entry in part_value):
                raise ModelError(f"{name}: {member}: expected a tuple of {kind.__name__}, got {part_value!r:.60}")
        for item in self.extra:
            if len(item) != 2 or not isinstance(item[0], Channel) or not callable(item[1]):
                raise ModelError(f"{name}: extra: expected pairs of a Channel and a function, got {item!r:.60}")
        part_value = self.density
        if part_value is not None and not (
            isinstance(part_value, (int, float)) and math.isfinite(part_value) and part_value >= 0.0
        ):
            raise ModelError(f"{name}: density: expected a number >= 0 kg/m3, got {part_value!r:.60}")

    def set(self, **values: Any) -> None:
        """Change parameters of `settable` at the present state, from the next step on; they persist over a reset.

        Snapshots from before the change then belong to another plant.

        Parameters
        ----------
        **values : Any
            New values by name.

        Raises
        ------
        UnknownNameError, ModelError
            A parameter does not exist, is fixed, or its value is wrong; nothing changes.
        """
        if self.rebuild is None:
            raise ModelError(f"set: {self.model.name} has no parameters that can change while it runs")
        refuse_fixed(self.model.name, values, self.settable, (f.name for f in fields(self.parameters)))
        new = self.rebuild(self, values)
        immersed = self._immerse(new.model, new.flow)
        self.parameters, self.model, self.law, self.flow = new.parameters, new.model, new.law, new.flow
        self.immersed = immersed
        self._take_up()

    def _take_up(self) -> None:
        """Build the kernels' arrays of the present model, law and fluid."""
        model, n, more = self.model, self.model.n, self.attached
        motion = np.array(self.law.motion, dtype=float, order="C")
        if motion.shape == (0, 3):
            motion = np.zeros((n, 3))
        if motion.shape != (n, 3):
            raise ModelError(f"{model.name}: law.motion must have shape ({n}, 3), got {motion.shape}")
        kp, kd = (np.zeros(n) + np.asarray(gain, dtype=float) for gain in (self.law.kp, self.law.kd))
        self.bandwidth = np.where(np.isnan(more.bandwidth), self.law.bandwidth, more.bandwidth)
        bounds = self._bounds(model)
        slew = np.where(self.bandwidth < 0.0, np.inf, bounds[:, MAX_SPEED])  # of rates: see `arrays_of_actuators`
        on_ground = len(model.ground.rows) > 0 or bool(np.any(self.attached.bandwidth < 0.0))
        fluid, additional = self.immersed, self._has_optional_parts
        works = (SPENT if self.audited else 1) + (1 if len(more.tendons) else 0)
        momentum = np.zeros((len(more.pushes), 3)) if additional and more.momentum is None else more.momentum
        law = {"motion": motion, "omega": self.law.omega, "ramp": self.law.ramp, "kp": kp + more.kp, "kd": kd + more.kd}
        out = O_TORQUE + n + POINT_OUT * len(self._observed.points) + (AUDIT if self.audited else 0)
        self.system = system = SYSTEM.make(
            {
                "motion": {}, "law": law, "fluid": fluid, "work": {}, "method": METHODS[self.method].values(),
                "hold": {
                    "bandwidth": self.bandwidth, "coast": self.bandwidth < 0.0 if on_ground else None, "slew": slew,
                    "slews": bool(np.isfinite(slew).any()),
                },
                "pushes": {"numbers": more.pushes, "curve": more.curve, "momentum": momentum},
                "tendons": {"numbers": more.tendons, "points": more.tendon_points} if additional else None,
                "floor": self._floor(model) if additional else None,
                "tree": {
                    "topology": model.topology, "constant": model.constant, "base_mode": model.base_mode,
                    "gravity": model.gravity, "imposed": model.imposed, "bounds": bounds,
                    "limited": bool(self._limited.any()),
                    "ground": ground_record(model) if on_ground else None,
                    "modal": modal_record(model) if len(model.modes) else None,
                },
                "command": {
                    "values": self._command, "kinds": self._kinds, "joints": self._joints, "gains": self._gains,
                    "limits": limits_of(self.actuators),
                },
                "outputs": {"points": self._observed.points}, "dt": self.dt, "substeps": self.substeps,
            },
            {"spent": 3 * works if works > 1 else 1, "out": out}, memory=self._memory,
        )  # fmt: skip
        self._memory = self.memory = system.memory
        self.vector, self._spent = system.motion.vector, system.motion.spent
        self.commanded, self._motor = system.pushes.command, system.pushes.motor
        self._start = system.hold.cell("start")
        self._start[0] = self.time
        self._address, self._entries = system.address, entries(system)
        self._bind_step()
        decisive = [
            fluid.common, fluid.strips, fluid.blades, fluid.strip_gauss, fluid.blade_gauss, fluid.wakes, fluid.tethers,
            motion, np.array([system.law.omega, system.law.ramp]), system.law.kp, system.law.kd, self.bandwidth,
            bounds, more.pushes, more.curve,
        ]  # fmt: skip
        if additional:
            tendons = more.tendons if np.any(more.tendons[:, FACTOR] != 1.0) else more.tendons[:, :FACTOR]
            decisive += [momentum, tendons, more.tendon_points, fluid.foils, fluid.polars, fluid.resistances]
        if np.any(self._gains != 1.0):
            decisive.append(self._gains)
        contents = b"".join(np.ascontiguousarray(array).tobytes() for array in decisive)
        identity = f"{model.digest} {self.method} {self.substeps}".encode() + self.flow.contents
        self._key = hashlib.sha256(identity + contents + self._kinds.tobytes() + self._joints.tobytes()).digest()

    def _bounds(self, model: Model) -> Array:
        """Return the joints' bounds (n, BOUND_WIDTH) with H of limits that are never passed (see `joint_laws`)."""
        bounds = self.attached.bounds.copy()
        if self._limited.any():
            inertia = np.diag(mass_matrix(model, model.state()))[-model.n :]
            bounds[:, GREAT] = np.where(self._limited, RATIO * inertia, 0.0)
        return bounds

    def _start_state(self) -> State:
        """Return the state at t = 0, with joints within their limits."""
        state = self.model.state() if self.initial is None else self.initial
        q = state.q
        if self.initial is None and self._limited.any():
            q = np.clip(q, self.attached.bounds[:, FLOOR], self.attached.bounds[:, CEILING])
        position = state.position + np.array([0.0, 0.0, self.start_height])
        return State(position, state.orientation, q, state.twist, state.qd)

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0, and to `initial_pose`.

        Parameters
        ----------
        seed : int, default 0
            Checked; it has no effect, because nothing here is random.
        """
        read_seed(self.model.name, seed)
        system, hold = self.system, self.system.hold
        system.memory[:] = 0.0
        system.clear()
        self._steps = 0
        self.place(self._start_state())
        self.commanded[:] = self.neutral
        self._motor[:] = self.neutral[self.attached.pushes[:, CHANNEL].astype(int)]  # as after a long time at neutral
        at_once = np.full(self.model.n, np.inf)
        hold_commands(system.command, self.neutral, hold.torque, hold.target, at_once, hold.goal)
        # the angle of a commanded rate is a state: it begins where `place` has put it
        hold.servo[:, 0] = np.where(self.bandwidth < 0.0, hold.servo[:, 0], hold.target[:, 0])
        hold.servo[:, 1] = np.where(self.bandwidth < 0.0, hold.target[:, 0], 0.0)  # commanded rates: at neutral
        if system.tendons is not None:
            system.tendons.servo[:, 0] = self.attached.tendons[:, START]
        self._start[0] = 0.0
        follow(system, self.vector, 0.0)
        self._keep_to_ground()
        if self.initial_pose:
            self.place(**self.initial_pose)

    def _keep_to_ground(self) -> None:
        """Stop velocities that slip, as by an impact; ModelError where imposed joints contradict the contacts."""
        if not len(self.model.ground.rows):
            return
        system, ground = self.system, self.system.tree.ground
        ground.active[:] = 1.0
        before = ground.lost.copy()
        held = (
            self._entries.keep_to_ground(self._address) if self._entries
            else keep_to_ground(system.tree, ground, system.work, self.vector)
        )  # fmt: skip
        ground.lost[:] = before  # what is put on the ground has not hit it
        if held == AGAINST:
            raise ModelError(
                f"{self.model.name}: initial: the contacts contradict this state: "
                f"{' '.join(contradiction(self.model, self.vector))}"
            )

    def place(self, state: State | None = None, **values: Any) -> None:
        """Put the mechanism into a state; joints whose motion is imposed remain where their law has them.

        The angle of a joint whose rate is commanded (JointSpeed) is a state: such a joint is placed, and turns on from
        there.

        Parameters
        ----------
        state : State, optional
            The new state; None for the present one with `values`.
        **values : array_like
            Parts that differ from the present state, by the names of the outputs: position (3,) m, quaternion (4,),
            velocity (3,) m/s and angular_velocity (3,) rad/s in base axes, joint_position and joint_velocity (n,).

        Raises
        ------
        ArgumentError
            A shape does not fit.
        UnknownNameError, ModelError
            A name is wrong, or the plant cannot be in this state.

        Notes
        -----
        Contacts with the ground stop the velocities that they forbid, as an impact does: a wheel that does not turn
        stops a velocity along it.
        """
        if state is None:
            state = self._placed(values)
        elif values:
            raise ModelError(f"{self.model.name}: place: expected a state or {', '.join(values)}, got both")
        state = self._checked("place", state)
        y, n = self.vector, self.model.n
        y[:3], y[3:7], y[7 : 7 + n] = state.position, state.orientation, state.q
        y[7 + n : 13 + n], y[13 + n :] = state.twist, state.qd
        self.system.motion.counts[:] = 0
        self._start[0] = self.time
        self._follow_placed(y)
        self._keep_to_ground()
        beyond = self._beyond(y, self.time)
        if beyond:
            raise ModelError(f"{self.model.name}: {beyond}")

    def _checked(self, place: str, state: State) -> State:
        """Return a state of the plant, or raise an error for shapes that do not fit and a fixed base that moves."""
        state = state.check(self.model)
        if self.model.base_mode == BASE_FIXED and np.any(state.twist):
            raise ModelError(
                f"{self.model.name}: {place}: velocity, angular_velocity: expected 0 for a fixed base, got "
                f"{state.twist[:3].tolist()} m/s, {state.twist[3:].tolist()} rad/s"
            )
        return state

    def _follow_placed(self, vector: Array) -> None:
        """Write imposed joints from their law, and joints whose rate is commanded from `vector`."""
        n, servo = self.model.n, self.system.hold.servo
        placed = np.stack([vector[7 : 7 + n], vector[13 + n :]], axis=1)
        follow(self.system, vector, self.time)
        rated = np.flatnonzero(self.bandwidth < 0.0)
        if len(rated):
            reached = np.stack([vector[7 : 7 + n], vector[13 + n :]], axis=1)
            servo[rated, :2] += placed[rated] - reached[rated]
            follow(self.system, vector, self.time)

    def _placed(self, values: Mapping[str, Any]) -> State:
        """Return the present state with the given parts."""
        where, n = f"{self.model.name}: place", self.model.n
        for name in values:
            if name not in _PLACES:
                raise UnknownNameError("part of a state", name, _PLACES)
        vector = self.vector.copy()
        read_pose(where, values, vector[:7], vector[7 + n : 13 + n])
        for name, part in (("joint_position", vector[7 : 7 + n]), ("joint_velocity", vector[13 + n :])):
            if name in values:
                part[:] = read_numbers(where, name, values[name], (n,))
        return State(vector[:3], vector[3:7], vector[7 : 7 + n], vector[7 + n : 13 + n], vector[13 + n :])

    def start(self, vector: Array, steps: int) -> None:
        """Reset, then go to a state at a later time, with neutral commands held.

        Parameters
        ----------
        vector : (13 + 2 n,) array
            State vector.
        steps : int
            Number of steps since the reset.
        """
        self.reset()
        self._steps = steps
        self.vector[:] = vector

    @contextmanager
    def scaled(self, amplitude: float, stiffness: float) -> Iterator[None]:
        """Multiply the gait's waves and the joints' springs by factors within a context.

        Parameters
        ----------
        amplitude : float
            Factor of the waves.
        stiffness : float
            Factor of the springs.

        Yields
        ------
        None
            The plant has its own values again at the end of the context.
        """
        motion, constant = self.system.law.motion, self.model.constant
        before = constant[:, C_STIFFNESS].copy()

        def write(springs: Array) -> None:
            # the compiled model is read-only for all others, and kernels are compiled for read-only arrays
            constant.flags.writeable = True
            constant[:, C_STIFFNESS] = springs
            constant.flags.writeable = False

        motion[:, 1:] *= amplitude
        if stiffness != 1.0:
            write(stiffness * before)
        try:
            yield
        finally:
            motion[:] = self.law.motion
            if stiffness != 1.0:
                write(before)

    def commanded_gaits(self) -> Mapping[str, TunableGait]:
        """Return the gaits of its shape as commands.

        Returns
        -------
        Mapping[str, TunableGait]
            Gaits by name; empty without `locomotion`.
        """
        gaits: Mapping[str, TunableGait] = self.locomotion.commanded(self.actuators) if self.locomotion else {}
        return gaits

    def summarise(self, time: Array, trace: Any) -> dict[str, float | None]:
        """Return numbers for the report, from the second half of the run.

        Parameters
        ----------
        time : (k,) array
            s.
        trace : mapping of str to array
            Samples of `trace_outputs`.

        Returns
        -------
        dict[str, float or None]
            Numbers by name; None where undefined.
        """
        return {} if self.summary is None else self.summary(self, time, trace)
