"""A plant made of any mechanism: a model, a fluid, joint laws, actuators on joints and bodies, outputs, a method."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from rtmms.dynamics.any_tree import modal_arrays, move, stand
from rtmms.dynamics.on_ground import ACTIVE, REACTION, ground_arrays
from rtmms.errors import DivergedError, ModelError
from rtmms.fluids.ambient import SAMPLE_ROOM, Flow
from rtmms.fluids.immersed import act, held_flow, immerse
from rtmms.jit import compile_progress, native
from rtmms.mechanism.account import O_ENERGY, O_TORQUE, O_WRENCH, POINT_OUT, account
from rtmms.mechanism.actuators import attached, imposing
from rtmms.mechanism.asked_flow import ask_flow, element_places, moved_on
from rtmms.mechanism.audit import A_ELASTIC, A_FLOW, A_FLUID, A_KINETIC, AUDIT, SPENT, WORKS
from rtmms.mechanism.body_actuators import CHANNEL
from rtmms.mechanism.contradiction import contradiction, thrown
from rtmms.mechanism.door import COUNT, START, Door
from rtmms.mechanism.drawn import drawn
from rtmms.mechanism.equations import evaluate
from rtmms.mechanism.ground_door import doors, enter_keep_to_ground
from rtmms.mechanism.joint_laws import Actuator, Law, follow, hold_commands
from rtmms.mechanism.keep_to_ground import AGAINST, keep_to_ground
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.outputs import observed
from rtmms.mechanism.step import CONTRADICTED, THROWN
from rtmms.mechanism.take_step import BAD_COMMAND, take_step
from rtmms.mechanism.twin import Parts, TreeTwin
from rtmms.model.compiled import Model, State
from rtmms.model.compiler import compile
from rtmms.model.description import Mechanism
from rtmms.model.ground_rank import rank_of
from rtmms.model.layout import BASE_FREE, C_STIFFNESS, S_WRENCH
from rtmms.monitor.measure import StepError, step_error
from rtmms.plant import Channel, Entry, refuse_fixed
from rtmms.spatial import Array

_HEADER = struct.Struct("<8s32sdqq")
_MAGIC = b"rtmmstr2"
_FLOAT = np.dtype(np.float64)
STILL = Law(np.zeros((0, 3)))
"""No motion of any joint's own."""


@dataclass(frozen=True, eq=False)
class Remade:
    """Of a plant with other parameters: what `set` takes from it."""

    parameters: Any
    model: Model
    law: Law
    flow: Flow


@dataclass(eq=False)
class TreePlant:
    """The face of a mechanism in a fluid as a plant (see rtmms.plant.Plant).

    mechanism  the description, or what `rtmms.compile` made of it
    dt         s
    law        what joints do by themselves: a gait (default: nothing)
    actuators  what commands move (rtmms.mechanism.actuators); once it is built, their channels
    outputs    names of outputs, 'BODY.position' and the like among them (rtmms.mechanism.outputs); None for all of
               base and joints; once it is built, their channels
    flow       the fluid's own motion
    drives     actuators of joints that are resolved already; they come before `actuators`
    initial    state at t = 0
    extra      further outputs: (channel, function of this plant -> array)
    trimming   what `rtmms.analysis.trim.trimmed` closes: keywords of `trim`
    parameters the robot's own dataclass, which the wire tells of
    settable, remake   what of them `set` may change, and how: the parts of a plant with the new values
    Raises ModelError, UnknownNameError: the actuator, joint, body or output that cannot be, what was got and expected.
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
    trimming: dict[str, Any] = field(default_factory=dict)
    parameters: Any = None
    settable: tuple[str, ...] = ()
    remake: Callable[[TreePlant, Mapping[str, Any]], Remade] | None = None
    summary: Callable[[TreePlant, Array, Any], dict[str, float | None]] | None = None
    locomotion: Any = None
    """How its shape's motion moves it (rtmms.locomotion.abilities.Locomotion), for `rtmms gaits`; None: not told."""
    audited: bool = False
    """Whether its energy is told term by term, and works of flow, wake, drag and damping are kept (`audit`)."""
    medium: str = ""
    """What it moves in: 'water' or 'air' (rtmms.plant.Surrounded)."""

    def __post_init__(self) -> None:
        self.model = model = self._compiled()
        n = model.n
        self._check()
        self._pushing = self.actuators
        self.attached = attached(model, self.actuators, self.drives)
        self.drives = self.attached.drives
        self.actuators = tuple(drive.channel for drive in self.drives)
        pushes = len(self.attached.pushes)
        self._observed = observed(model, self.outputs, pushes, self.audited)
        self.outputs = (*self._observed.channels, *(channel for channel, _ in self.extra))
        told = {channel.name for channel in self.outputs}
        self.trace_outputs = tuple(name for name in self.trace_outputs if name in told)
        self.recent_outputs = tuple(name for name in self.recent_outputs if name in told)[:2]
        self.immersed = immerse(model, self.flow, **self.nodes)
        e = len(self.immersed.rows)
        self._held, self._ambient = np.zeros((e, 3)), np.zeros((e, SAMPLE_ROOM))
        self._work = (model.scratch(), np.zeros((6, 6)), *(np.zeros(n) for _ in range(5)))
        self._kinds = np.array([drive.kind for drive in self.drives], dtype=np.int64)
        self._joints = np.array([drive.joint for drive in self.drives], dtype=np.int64)
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        self._shape = self.neutral.shape
        self._given = self.neutral.copy()
        if len(model.modes) and np.any(self.attached.bandwidth < 0.0):
            raise ModelError(f"{model.name}: commanded rates and modal bodies in one tree are not supported")
        self._losing = 2 if len(model.ground.rows) or np.any(self.attached.bandwidth < 0.0) else 0
        self._spending = 3 * SPENT if self.audited else 1
        self._memory = np.zeros(Parts.size(n, len(self.drives), pushes, self._losing, self._spending))
        self._last = self._memory.copy()
        parts = Parts.of(self._memory, n, len(self.drives), self._losing, self._spending)
        self.vector, self._torque, self._target, self._servo = parts.state, parts.torque, parts.target, parts.servo
        self._spent, self.commanded, self._motor, self._lost = parts.spent, parts.command, parts.motor, parts.lost
        self._counts = np.zeros(1, dtype=np.int64)
        self._changing = (self.vector, parts.history, self._counts, self._spent)
        stages = len(METHODS[self.method].tableau.c)
        self._scratch = (np.zeros((stages + 1, 12 + 2 * n)), np.zeros((3, 13 + 2 * n)))
        self._rate = np.zeros(12 + 2 * n)
        self._out = np.zeros(O_TORQUE + n + POINT_OUT * len(self._observed.points) + (AUDIT if self.audited else 0))
        self._method = METHODS[self.method].arrays()
        self._numbers, self._steps = np.zeros(COUNT), 0
        self._take_up()
        with compile_progress(f"the kernels of '{model.name}'"):
            self.reset()
            self.step(self.neutral)  # compiled, or fetched from the cache, and warm
            self.observe()
        self.reset()

    def _compiled(self) -> Model:
        if isinstance(self.mechanism, Model):
            return self.mechanism
        if not isinstance(self.mechanism, Mechanism):
            raise ModelError(f"TreePlant: expected a Mechanism or a compiled model, got {self.mechanism!r}")
        return compile(imposing(self.mechanism, self.actuators))

    @property
    def shape(self) -> dict[str, Any]:
        """What viewers draw of it (rtmms.plant.Shaped)."""
        return drawn(self.model, self.mechanism if isinstance(self.mechanism, Mechanism) else None, self._pushing)

    def _check(self) -> None:
        name, dt = self.model.name, self.dt
        if isinstance(dt, bool) or not isinstance(dt, (int, float)) or not (math.isfinite(dt) and dt > 0.0):
            raise ModelError(f"{name}: dt must be > 0 s, got {dt!r}")
        if self.method not in METHODS:
            raise ModelError(f"{name}: method must be one of {', '.join(METHODS)}, got '{self.method}'")
        if np.any(self.model.viscous):
            raise ModelError(
                f"{name}: Body.viscous is of what has no inertia: expected rtmms.locomotion.plant.ConnectionPlant"
            )
        if self.audited and not self.model.elements:
            raise ModelError(f"{name}: audited: expected a tree that a fluid acts on, got one without elements")
        couples = any(getattr(element, "couple", 0.0) for _, element in self.model.elements)
        if couples and (len(self.model.modes) or len(self.model.ground.rows)):
            raise ModelError(f"{name}: strip.couple on trees with contacts or modal bodies is not supported")
        if self.substeps < 1:
            raise ModelError(f"{name}: substeps must be >= 1, got {self.substeps}")
        if not isinstance(self.flow, Flow):
            raise ModelError(f"{name}: flow must be a Flow, got {self.flow!r}")

    def set(self, **given: Any) -> None:
        """Change parameters of `settable` at the present state, from the next step on; they stay over a reset.

        Snapshots taken before are of another plant from then on. Raises UnknownNameError, ModelError; nothing is
        changed then.
        """
        if self.remake is None:
            raise ModelError(f"set: {self.model.name} has no parameters that can change while it runs")
        refuse_fixed(self.model.name, given, self.settable, (f.name for f in fields(self.parameters)))
        new = self.remake(self, given)
        immersed = immerse(new.model, new.flow, **self.nodes)
        self.parameters, self.model, self.law, self.flow = new.parameters, new.model, new.law, new.flow
        self.immersed = immersed
        self._take_up()

    def _take_up(self) -> None:
        """The arrays that the kernels get, of the present model, law and fluid."""
        model, n, more = self.model, self.model.n, self.attached
        motion = np.array(self.law.motion, dtype=float, order="C")
        if motion.shape == (0, 3):
            motion = np.zeros((n, 3))
        if motion.shape != (n, 3):
            raise ModelError(f"{model.name}: law.motion must have shape ({n}, 3), got {motion.shape}")
        self._tree: Any = (model.topology, model.constant, model.base_mode, model.gravity, model.imposed, more.bounds)
        kp, kd = (np.zeros(n) + np.asarray(gain, dtype=float) for gain in (self.law.kp, self.law.kd))
        self._law = (motion, float(self.law.omega), float(self.law.ramp), kp + more.kp, kd + more.kd)
        self.bandwidth = np.where(np.isnan(more.bandwidth), self.law.bandwidth, more.bandwidth)
        if self._losing:
            self._tree = (*self._tree, ground_arrays(model, self._lost))
        elif len(model.modes):
            self._tree = (*self._tree, modal_arrays(model), True)
        self._doors = doors(self._tree)
        self._pushes = (more.pushes, more.curve, self.commanded, self._motor)
        self._fluid = (*self.immersed.arrays, self._held, self._ambient, self._pushes)
        _, _, _, over, gamma, _, _, multistep = self._method
        self._numbers[:] = (
            model.base_mode, *self._law[1:3], self.time, over, gamma, multistep, self.dt, self.substeps,
            self.immersed.moving,
        )  # fmt: skip
        self._told = (self._given, self._kinds, self._joints)
        system = (self._tree, self._law, self._hold, self._fluid, self._work)
        observing = (self._rate, self._observed.points, self._out)
        self._door = Door(
            system, self._method, self._changing, self._scratch, self._told, (self._memory, self._last), observing,
            self._numbers,
        )  # fmt: skip
        self._address = self._door.address
        self._entry: Entry | None = None
        decisive = [*self.immersed.arrays[1:8], *self._law, self.bandwidth, more.bounds, more.pushes, more.curve]
        told = b"".join(np.ascontiguousarray(array).tobytes() for array in decisive)
        words = f"{model.digest} {self.method} {self.substeps}".encode() + self.flow.told
        self._key = hashlib.sha256(words + told + self._kinds.tobytes() + self._joints.tobytes()).digest()

    @property
    def time(self) -> float:
        """s, simulated."""
        return self._steps * self.dt

    @property
    def _hold(self) -> tuple[Any, ...]:
        hold = (self._torque, self._target, self._servo, self.bandwidth, self.time)
        return (*hold, True) if len(self._tree) == 7 else hold

    @property
    def state(self) -> State:
        """A copy of the mechanical state."""
        return unpacked(self.vector, self.model.n)

    def reset(self, seed: int = 0) -> None:
        """Back to t = 0. Nothing here is random: the seed is taken and changes nothing."""
        self._memory[:] = 0.0
        self._counts[:] = 0
        self._steps = 0
        self.place(self.model.state() if self.initial is None else self.initial)
        self.commanded[:] = self.neutral
        self._motor[:] = self.neutral[self.attached.pushes[:, CHANNEL].astype(int)]  # as after a long time at neutral
        hold_commands(self._kinds, self._joints, self.neutral, self._torque, self._target)
        self._servo[:, 1] = np.where(self.bandwidth < 0.0, self._target[:, 0], 0.0)  # commanded rates: at neutral
        follow(self._tree, self._law, self._hold, self.vector, 0.0)
        self._keep_to_ground()

    def _keep_to_ground(self) -> None:
        """Velocities that slip are stopped, as by an impact; ModelError where imposed joints will not have it."""
        if not len(self.model.ground.rows):
            return
        self._tree[6][ACTIVE][:] = 1.0
        before = self._lost.copy()
        held = (
            enter_keep_to_ground(self._address) if self._doors
            else keep_to_ground(self._tree, self._work, self.vector)
        )  # fmt: skip
        self._lost[:] = before  # what is put on the ground has not hit it
        if held == AGAINST:
            raise ModelError(f"{self.model.name}: at the start {' '.join(contradiction(self.model, self.vector))}")

    def place(self, state: State) -> None:
        """Put the mechanism into a state; joints whose motion is imposed stay where their law has them."""
        state = state.check(self.model)
        y, n = self.vector, self.model.n
        y[:3], y[3:7], y[7 : 7 + n] = state.position, state.orientation, state.q
        y[7 + n : 13 + n], y[13 + n :] = state.twist, state.qd
        self._counts[:] = 0
        follow(self._tree, self._law, self._hold, y, self.time)
        self._keep_to_ground()
        beyond = self._beyond(y, self.time)
        if beyond:
            raise ModelError(f"{self.model.name}: {beyond}")

    def _beyond(self, vector: Array, time: float) -> str:
        """Why the flow has no value at one of the elements in a state; '' where it has."""
        if self.flow.grid is None:
            return ""
        return self.flow.outside(element_places(self, vector, self.model.scratch()), time)

    @property
    def ends(self) -> float | None:
        """See rtmms.plant.Ending: a flow from a file may end."""
        return None if self.flow.grid is None else self.flow.grid.ends

    def start(self, vector: Array, steps: int) -> None:
        """From a reset, to a state vector (13 + 2 n,) at the time of that many steps, neutral commands held."""
        self.reset()
        self._steps = steps
        self.vector[:] = vector

    @contextmanager
    def scaled(self, amplitude: float, stiffness: float) -> Iterator[None]:
        """Within: the gait's waves and the joints' springs times a factor."""
        motion, constant = self._law[0], self.model.constant
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

    def step(self, command: Array) -> None:
        """Advance by dt with `command` (n_actuators,) held. ValueError for a wrong size or a value that is not
        finite, DivergedError if it fails: the state is then still the last sound one."""
        if type(command) is np.ndarray and command.dtype is _FLOAT and command.shape == self._shape:
            self._given[:] = command
        else:
            self._convert(command)
        if self.flow.field is not None:
            self._sample_field(0.5 * self.dt)
        self._numbers[START] = self._steps * self.dt
        status = self._doors[0](self._address) if self._doors else self._plain_step()
        if status:
            self._fail(status)
        self._steps += 1

    def enter(self) -> Entry | None:
        """See rtmms.plant.Entered."""
        if self._doors is None:
            return None
        if self.flow.field is not None:
            self._sample_field(0.5 * self.dt)
        self._numbers[START] = self._steps * self.dt
        if self._entry is None:
            self._entry = Entry(native(self._doors[0], self._address), (self._address,), self._given.ctypes.data)
        return self._entry

    def entered(self, status: int) -> None:
        """See rtmms.plant.Entered."""
        if status:
            self._fail(status)
        self._steps += 1

    def _convert(self, command: Any) -> None:
        given = np.asarray(command, dtype=float)
        if given.shape != self._shape:
            raise ValueError(f"{self.model.name}: command must have shape {self._shape}, got {given.shape}")
        self._given[:] = given

    def _plain_step(self) -> int:
        """The step where kernels run as plain Python."""
        system = (self._tree, self._law, self._hold, self._fluid, self._work)
        return take_step(
            system, self._method, self._changing, self._scratch, self._told, self._memory, self._last, self.dt,
            self.substeps,
        )  # fmt: skip

    def _sample_field(self, ahead: float) -> None:
        """Of a flow that is a function: what is held over a step, `ahead` seconds from now."""
        ask_flow(self, self.vector, self.time, ahead, self._work[0], self._held)

    def _fail(self, status: int) -> None:
        """Back to the last sound state, and say what ran away from it."""
        if status == BAD_COMMAND:
            named = ", ".join(c.name for c, v in zip(self.actuators, self._given, strict=True) if not np.isfinite(v))
            raise ValueError(f"{self.model.name}: command: {named} must be finite")
        failed = self.vector.copy()
        self._memory[:] = self._last
        beyond = self._beyond(self.vector, self.time) or self._beyond(self._ahead(), self.time + self.dt)
        if beyond:
            raise DivergedError(self.time + self.dt, "flow", self.observe(), beyond.removeprefix("the flow "))
        if status == CONTRADICTED:
            quantity, reason = contradiction(self.model, failed, self._steps + 1)
            raise DivergedError(self.time + self.dt, quantity, self.observe(), reason)
        if status == THROWN:
            quantity, reason = thrown(self.model, failed, self._steps + 1)
            raise DivergedError(self.time + self.dt, quantity, self.observe(), reason)
        n, h = self.model.n, self.dt / self.substeps
        with np.errstate(all="ignore"):  # sound, but it may be all but beyond the numbers
            good, rates = self.observe(), np.nan_to_num(np.abs(self.evaluate()[6 + n :]), nan=np.inf, posinf=np.inf)
        worst = [(float(part.max(initial=0.0)), name, unit) for part, name, unit in (
            (rates[:3], "velocity", "m/s"), (rates[3:6], "angular_velocity", "rad/s"),
            (rates[6:][self.model.imposed == 0], "joint_velocity", "rad/s"),
        )]  # fmt: skip
        rate, name, unit = max(worst)
        knob, step = self.finer
        reason = (
            f"ran away: at the last sound state it changes by {rate * h:.3g} {unit} within one step of {h:.3g} s, too "
            f"long for {self.method} here; take a smaller step ({knob} < {step:.3g} s), or weaker forces"
        )
        if len(self.model.ground.rows):
            found = rank_of(self.model, self.vector[7 : 7 + n])
            if found.weak or found.rank < 6:
                reason += f"; {found.told()}"
        raise DivergedError(self.time + self.dt, name, good, reason)

    def _ahead(self) -> Array:
        """The state a step on, at its present velocity."""
        return moved_on(self.vector, self.model.n, self.dt)

    @property
    def finer(self) -> tuple[str, float]:
        """The parameter that makes the method's own step smaller, and what it is, s."""
        own = getattr(self.parameters, "step_s", None)
        return ("dt", self.dt) if own is None else ("step_s", self.dt / self.substeps)

    def twin(self) -> TreeTwin:
        """Memory and steps beside the plant's own, for `rtmms.monitor`."""
        return TreeTwin(self)

    def step_error(self, command: Array | None = None) -> StepError:
        """The error of a step from the present state with `command` (None: the last one) held; nothing is changed.

        By two steps of half the length. Raises nothing of its own: an error of 1 where a step fails."""
        return step_error(self.twin(), self.commanded if command is None else command)

    def evaluate(self) -> Array:
        """Rates at the present state and time (see rtmms.mechanism.group); torques are in `torque` afterwards."""
        rate = np.zeros(12 + 2 * self.model.n)
        if self.flow.field is not None:
            self._sample_field(0.0)
        evaluate(self._tree, self._law, self._hold, self._fluid, self._work, self.vector, self.time, 0.0, rate)
        return rate

    def held(self) -> tuple[Array, Array, Array]:
        """Copies of what the joints' laws hold over a step: torque (n,), target (n, 2), servo (n, 4)."""
        return self._torque.copy(), self._target.copy(), self._servo.copy()

    def rates(self, vector: Any, torque: Any, target: Any, servo: Any, water: Any, pushed: Any = None) -> Any:
        """Rates (12 + 2 n,) at any state vector under whatever is held, at the present time; the plant stays as it is.

        All complex, for derivatives by a complex step. water (e, 3) m/s: of a flow given by a function, at each element
        pushed     command (u,) and lagged commands (a,) of actuators on bodies; None for what they are
        """
        rate = np.zeros(12 + 2 * self.model.n, dtype=complex)
        work = tuple(np.asarray(array).astype(complex) for array in self._work)
        tree = self._tree
        hold: Any = (torque, target, servo, self.bandwidth, self.time)
        if len(tree) == 7:
            ground = (*tree[6][:4], *(array.astype(complex) for array in tree[6][4:]))
            tree, hold = (*tree[:6], ground), (*hold, True)
        elif len(tree) == 8:
            tree = (*tree[:6], modal_arrays(self.model, complex), True)
        command, motor = (self.commanded, self._motor) if pushed is None else pushed
        pushes = (self.attached.pushes, self.attached.curve, command.astype(complex), motor.astype(complex))
        fluid = (*self.immersed.arrays, water, self._ambient.astype(complex), pushes)
        evaluate(tree, self._law, hold, fluid, work, vector, self.time, 0.0, rate)
        return rate

    @property
    def motor(self) -> Array:
        """(a,) the commands of actuators on bodies behind their lags."""
        return self._motor

    @property
    def torque(self) -> Array:
        """(n,) N m of the last evaluation."""
        return np.asarray(self._work[3])

    def observe(self) -> dict[str, Array]:
        """The outputs at the present state, by name."""
        if self.flow.field is not None:
            self._sample_field(0.0)
        self._numbers[START] = self._steps * self.dt
        if self._doors:
            self._doors[1](self._address)
        else:
            system = (self._tree, self._law, self._hold, self._fluid, self._work)
            account(system, self.vector, self._rate, self._observed.points, self._out)
        n, y, out = self.model.n, self.vector.copy(), self._out.copy()
        torque, qd = out[O_TORQUE : O_TORQUE + n], y[13 + n :]
        values: dict[str, Any] = {
            "position": y[:3], "quaternion": y[3:7], "velocity": y[7 + n : 10 + n],
            "angular_velocity": y[10 + n : 13 + n],
        }  # fmt: skip
        if n:
            values |= {"joint_position": y[7 : 7 + n], "joint_velocity": qd, "joint_torque": torque}
        values["power"], values["work"] = np.array(torque @ qd), self._spent[0].copy()
        values["energy"] = out[O_ENERGY].copy()
        if self.model.base_mode != BASE_FREE:  # from outside on the base
            values["base_wrench"] = out[O_WRENCH : O_WRENCH + 6]
        if self.audited:
            values |= self._told_audit(out[-AUDIT:])
        if len(self._motor):
            values["motor"] = self._motor.copy()
        if len(self.model.ground.rows):
            values["reaction"], values["lost"] = self._tree[6][REACTION].copy(), self._lost[0].copy()
            values["work"] = values["work"] + self._lost[1]
        chosen = self._observed.chosen
        if chosen is not None:
            values = {name: value for name, value in values.items() if name in chosen}
            values |= {name: out[part] for name, part in self._observed.slices.items()}
        for channel, function in self.extra:
            values[channel.name] = np.asarray(function(self), dtype=float)
        return values

    def _told_audit(self, terms: Array) -> dict[str, Array]:
        stored = {"kinetic": A_KINETIC, "elastic": A_ELASTIC, "fluid": A_FLUID}
        values = {f"{name}_energy": terms[k] for name, k in stored.items()}
        for k, name in enumerate(WORKS):
            values[f"{name}_power"], values[f"{name}_work"] = terms[A_FLOW + k], self._spent[1 + k].copy()
        return values

    def snapshot(self) -> bytes:
        """The whole state; bit-exact."""
        head = _HEADER.pack(_MAGIC, self._key, self.dt, self._steps, self._memory.size)
        return head + self._counts.tobytes() + self._memory.tobytes()

    def restore(self, blob: bytes) -> None:
        """Back to a snapshot of the same model; ModelError if it is another's."""
        size = _HEADER.size + self._counts.nbytes + self._memory.nbytes
        if len(blob) != size:
            raise ModelError(f"{self.model.name}: snapshot must have {size} bytes, got {len(blob)}")
        magic, digest, dt, steps, _ = _HEADER.unpack_from(blob)
        if magic != _MAGIC or digest != self._key or dt != self.dt:
            raise ModelError(f"{self.model.name}: the snapshot is of another model, step or version")
        split = _HEADER.size + self._counts.nbytes
        self._counts[:] = np.frombuffer(blob[_HEADER.size : split], dtype=np.int64)
        self._memory[:] = np.frombuffer(blob[split:])
        self._steps = steps

    def summarise(self, time: Array, trace: Any) -> dict[str, float | None]:
        """Numbers for the report, from the second half of the run."""
        return {} if self.summary is None else self.summary(self, time, trace)


def unpacked(y: Array, n: int) -> State:
    """A state vector (13 + 2 n,) as a State; copies."""
    return State(y[:3].copy(), y[3:7].copy(), y[7 : 7 + n].copy(), y[7 + n : 13 + n].copy(), y[13 + n :].copy())


def fluid_wrench(model: Model, state: State, flow: Flow | None = None, time: float = 0.0, **nodes: int) -> Array:
    """(bodies, 6) wrench of the fluid on each described body, at its origin in its frame: the `wrench` of dynamics.

    Without the part that stands in the inertia matrices (see rtmms.fluids.immersed). nodes: strip_nodes, blade_nodes.
    """
    state.check(model)
    flow = Flow() if flow is None else flow
    immersed, s = immerse(model, flow, **nodes), model.scratch()
    stand(model, state.position, state.orientation, state.q, s)
    move(model, state.twist, state.q, state.qd, s)
    act(
        *immersed.arrays,
        held_flow(model, flow, s, immersed, time),
        time,
        np.zeros((len(immersed.rows), SAMPLE_ROOM)),
        s,
    )
    out: Array = np.zeros((len(model.body_names), 6))
    done: set[int] = set()
    for k, row in enumerate(model.carrier):
        if int(row) not in done:  # a row's whole wrench, given to the first body that it carries
            done.add(int(row))
            r, p = model.offset_rotation[k], model.offset_position[k]
            force, moment = s[row, S_WRENCH : S_WRENCH + 3], s[row, S_WRENCH + 3 : S_WRENCH + 6]
            out[k, :3], out[k, 3:] = r.T @ force, r.T @ (moment - np.cross(p, force))
    return out
