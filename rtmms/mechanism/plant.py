"""A plant made of any mechanism: a model, a fluid, joint laws, actuators, a method."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from rtmms.dynamics.balance import energies
from rtmms.dynamics.recursion import configure, outward, place
from rtmms.errors import DivergedError, ModelError
from rtmms.fluids.ambient import SAMPLE, Flow
from rtmms.fluids.immersed import act, held_flow, immerse
from rtmms.jit import compile_progress
from rtmms.mechanism.equations import evaluate
from rtmms.mechanism.group import displace
from rtmms.mechanism.joint_laws import Actuator, Law, finish_servo, follow, hold_commands
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.step import NOT_FINITE, SOUND, UNSTABLE, advance
from rtmms.model.compiled import Model, State
from rtmms.model.layout import BASE_FREE, C_STIFFNESS, S_BIAS, S_WRENCH
from rtmms.plant import Channel, refuse_fixed
from rtmms.spatial import Array

_HEADER = struct.Struct("<8s32sdqq")
_MAGIC = b"rtmmstr1"


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

    initial   state at t = 0
    extra     further outputs: (channel, function of this plant -> array)
    trimming  what `rtmms.analysis.trim.trimmed` closes: keywords of `trim`
    parameters  the robot's own dataclass, which the wire tells of
    settable, remake   what of them `set` may change, and how: the parts of a plant with the new values
    """

    model: Model
    dt: float
    law: Law
    drives: tuple[Actuator, ...] = ()
    flow: Flow = field(default_factory=Flow)
    method: str = "rk4"
    substeps: int = 1
    initial: State | None = None
    nodes: dict[str, int] = field(default_factory=dict)
    extra: tuple[tuple[Channel, Callable[[TreePlant], Any]], ...] = ()
    trace_outputs: tuple[str, ...] = ("position", "quaternion", "velocity", "power", "work")
    recent_outputs: tuple[str, ...] = ("joint_position", "joint_torque")
    trimming: dict[str, Any] = field(default_factory=dict)
    parameters: Any = None
    settable: tuple[str, ...] = ()
    remake: Callable[[TreePlant, Mapping[str, Any]], Remade] | None = None
    summary: Callable[[TreePlant, Array, Any], dict[str, float | None]] | None = None
    medium: str = ""
    """What it moves in: 'water' or 'air' (rtmms.plant.Surrounded)."""

    def __post_init__(self) -> None:
        model, n = self.model, self.model.n
        if not (np.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{model.name}: dt must be > 0 s, got {self.dt}")
        if self.method not in METHODS:
            raise ModelError(f"{model.name}: method must be one of {', '.join(METHODS)}, got '{self.method}'")
        if self.substeps < 1:
            raise ModelError(f"{model.name}: substeps must be >= 1, got {self.substeps}")
        self.actuators = tuple(drive.channel for drive in self.drives)
        self.outputs = (*self._channels(), *(channel for channel, _ in self.extra))
        self.immersed = immerse(model, self.flow, **self.nodes)
        e = len(self.immersed.rows)
        self._held, self._ambient = np.zeros((e, 3)), np.zeros((e, SAMPLE))
        self._take_up()
        self._work = (model.scratch(), np.zeros((6, 6)), *(np.zeros(n) for _ in range(5)))
        self._kinds = np.array([drive.kind for drive in self.drives], dtype=np.int64)
        self._joints = np.array([drive.joint for drive in self.drives], dtype=np.int64)
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        # everything that changes, in one vector, so that a snapshot is its bytes
        sizes = {
            "state": 13 + 2 * n, "torque": n, "target": 2 * n, "servo": 4 * n, "history": 5 * (13 + 2 * n),
            "monitor": 4, "command": len(self.drives),
        }  # fmt: skip
        self._memory = np.zeros(sum(sizes.values()))
        self._last = self._memory.copy()
        ends = np.cumsum(list(sizes.values()))
        parts = np.split(self._memory, ends[:-1])
        self.vector, self._torque = parts[0], parts[1]
        self._target, self._servo = parts[2].reshape(n, 2), parts[3].reshape(n, 4)
        self._history = parts[4].reshape(5, 13 + 2 * n)
        self._monitor, self.commanded = parts[5], parts[6]
        self._limit = METHODS[self.method].stability or np.inf
        self._counts = np.zeros(1, dtype=np.int64)
        self._changing = (self.vector, self._history, self._counts, self._monitor)
        stages = len(METHODS[self.method].tableau.c)
        self._scratch = (np.zeros((stages + 1, 12 + 2 * n)), np.zeros((3, 13 + 2 * n)))
        self._method = METHODS[self.method].arrays()
        with compile_progress(f"the kernels of '{model.name}'"):
            self.reset()
            self.step(self.neutral)  # compiled, or fetched from the cache, and warm
            self.observe()
        self.reset()

    def _channels(self) -> tuple[Channel, ...]:
        n = self.model.n
        held = () if self.model.base_mode == BASE_FREE else (Channel("base_wrench", "N, N m", (6,), "body"),)
        return (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("joint_position", "rad", (n,)), Channel("joint_velocity", "rad/s", (n,)),
            Channel("joint_torque", "N m", (n,)), Channel("power", "W"), Channel("work", "J"), Channel("energy", "J"),
            *held,
        )  # fmt: skip

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
        model, n = self.model, self.model.n
        motion = np.array(self.law.motion, dtype=float, order="C")
        if motion.shape != (n, 3):
            raise ModelError(f"{model.name}: law.motion must have shape ({n}, 3), got {motion.shape}")
        self._tree = (model.topology, model.constant, model.base_mode, model.gravity, model.imposed)
        servo = (np.zeros(n) + np.asarray(gain, dtype=float) for gain in (self.law.kp, self.law.kd))
        self._law = (motion, float(self.law.omega), float(self.law.ramp), *servo)
        self._fluid = (*self.immersed.arrays, self._held, self._ambient)

    @property
    def time(self) -> float:
        """s, simulated."""
        return self._steps * self.dt

    @property
    def _hold(self) -> tuple[Any, ...]:
        return self._torque, self._target, self._servo, float(self.law.bandwidth), self.time

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
        hold_commands(self._kinds, self._joints, self.neutral, self._torque, self._target)
        follow(self._tree, self._law, self._hold, self.vector, 0.0)

    def place(self, state: State) -> None:
        """Put the mechanism into a state; joints whose motion is imposed stay where their law has them."""
        state = state.check(self.model)
        y, n = self.vector, self.model.n
        y[:3], y[3:7], y[7 : 7 + n] = state.position, state.orientation, state.q
        y[7 + n : 13 + n], y[13 + n :] = state.twist, state.qd
        self._counts[:], self._monitor[:3] = 0, 0.0
        follow(self._tree, self._law, self._hold, y, self.time)

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
        command = np.asarray(command, dtype=float)
        if command.shape != self._kinds.shape:
            raise ValueError(f"{self.model.name}: command must have shape {self._kinds.shape}, got {command.shape}")
        if not np.isfinite(command).all():
            bad = ", ".join(c.name for c, v in zip(self.actuators, command, strict=True) if not np.isfinite(v))
            raise ValueError(f"{self.model.name}: command: {bad} must be finite")
        hold_commands(self._kinds, self._joints, command, self._torque, self._target)
        if self.flow.field is not None:
            self._sample_field(0.5 * self.dt)
        self._last[:] = self._memory
        self.commanded[:] = command
        hold = self._hold
        system = (self._tree, self._law, hold, self._fluid, self._work)
        status = advance(
            system, self._method, self._changing, self._scratch, self.dt / self.substeps, self.substeps, self._limit
        )
        if status != SOUND:
            self._fail(status)
        self._steps += 1
        finish_servo(self._target, self._servo, hold[3], self.dt)

    def _sample_field(self, ahead: float) -> None:
        """Ask the flow's function, `ahead` seconds from now, where the elements will then be at their present speed:
        half a step ahead, what is held over the step is right to second order."""
        s, n, model = self._work[0], self.model.n, self.model
        rate, y = np.zeros(12 + 2 * n), np.empty_like(self.vector)
        state = self.state
        rate[:3], rate[3:6], rate[6 : 6 + n] = state.rotation @ state.twist[:3], state.twist[3:], state.qd
        displace(self.vector, rate, ahead, y)
        configure(model.topology, model.constant, y[3:7], model.gravity, y[7 : 7 + n], s)
        place(model.topology, y[:3], y[3:7], s)
        self._held[:] = held_flow(model, self.flow, s, self.immersed, self.time + ahead)

    def _fail(self, status: int) -> None:
        """Back to the last sound state, and say what went wrong after it."""
        h, end = self.dt / self.substeps, self.time + self.dt
        bad = np.flatnonzero(~np.isfinite(self.vector))
        if self._monitor[1] > 0.0 and np.exp(0.5 * self._monitor[0]) > self._limit:
            status = UNSTABLE  # so fast that it was not finite before the watch had seen enough
        self._memory[:] = self._last
        good = self.observe()
        if status == NOT_FINITE:
            raise DivergedError(end, self._name(int(bad[0])), good)
        reason = (
            f"grows by the method's own instability: {self.method} with steps of {h:.3g} s is outside its stable "
            "range; take a smaller step, or the integrator 'implicit'"
        )
        raise DivergedError(end, "joint_velocity", good, reason)

    def _name(self, index: int) -> str:
        n = self.model.n
        for name, start, size in (
            ("position", 0, 3), ("quaternion", 3, 4), ("joint_position", 7, n), ("velocity", 7 + n, 3),
            ("angular_velocity", 10 + n, 3), ("joint_velocity", 13 + n, n),
        ):  # fmt: skip
            if start <= index < start + size:
                return f"{name}[{index - start}]"
        raise IndexError(index)

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

    def rates(self, vector: Any, torque: Any, target: Any, servo: Any, water: Any) -> Any:
        """Rates (12 + 2 n,) at any state vector under whatever is held, at the present time; the plant stays as it is.

        All complex, for derivatives by a complex step. water (e, 3) m/s: of a flow given by a function, at each element
        """
        rate = np.zeros(12 + 2 * self.model.n, dtype=complex)
        work = tuple(np.asarray(array).astype(complex) for array in self._work)
        hold = (torque, target, servo, float(self.law.bandwidth), self.time)
        fluid = (*self.immersed.arrays, water, self._ambient.astype(complex))
        evaluate(self._tree, self._law, hold, fluid, work, vector, self.time, 0.0, rate)
        return rate

    @property
    def torque(self) -> Array:
        """(n,) N m of the last evaluation."""
        return np.asarray(self._work[3])

    def observe(self) -> dict[str, Array]:
        """The outputs at the present state, by name."""
        self.evaluate()
        state, torque = self.state, self.torque.copy()
        values: dict[str, Any] = {
            "position": state.position, "quaternion": state.orientation, "velocity": state.twist[:3],
            "angular_velocity": state.twist[3:], "joint_position": state.q, "joint_velocity": state.qd,
            "joint_torque": torque, "power": np.array(torque @ state.qd), "work": self._monitor[3].copy(),
            "energy": np.array(self._energy()),
        }  # fmt: skip
        if self.model.base_mode != BASE_FREE:  # from outside on the base
            values["base_wrench"] = self._work[0][0, S_BIAS : S_BIAS + 6].copy()
        for channel, function in self.extra:
            values[channel.name] = np.asarray(function(self), dtype=float)
        return values

    def _energy(self) -> float:
        """J of the state just evaluated."""
        s, y, model, out = self._work[0], self.vector, self.model, np.zeros(3)
        place(model.topology, y[:3], y[3:7], s)
        energies(model.constant, model.gravity, self._work[4], self._work[5], s, out)
        return float(out.sum())

    def snapshot(self) -> bytes:
        """The whole state; bit-exact."""
        head = _HEADER.pack(_MAGIC, bytes.fromhex(self.model.digest), self.dt, self._steps, self._memory.size)
        return head + self._counts.tobytes() + self._memory.tobytes()

    def restore(self, blob: bytes) -> None:
        """Back to a snapshot of the same model; ModelError if it is another's."""
        size = _HEADER.size + self._counts.nbytes + self._memory.nbytes
        if len(blob) != size:
            raise ModelError(f"{self.model.name}: snapshot must have {size} bytes, got {len(blob)}")
        magic, digest, dt, steps, _ = _HEADER.unpack_from(blob)
        if magic != _MAGIC or digest != bytes.fromhex(self.model.digest) or dt != self.dt:
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
    configure(model.topology, model.constant, state.orientation, model.gravity, state.q, s)
    place(model.topology, state.position, state.orientation, s)
    outward(model.topology, state.twist, state.qd, s)
    act(*immersed.arrays, held_flow(model, flow, s, immersed, time), time, np.zeros((len(immersed.rows), SAMPLE)), s)
    out: Array = np.zeros((len(model.body_names), 6))
    done: set[int] = set()
    for k, row in enumerate(model.carrier):
        if int(row) not in done:  # a row's whole wrench, given to the first body that it carries
            done.add(int(row))
            r, p = model.offset_rotation[k], model.offset_position[k]
            force, moment = s[row, S_WRENCH : S_WRENCH + 3], s[row, S_WRENCH + 3 : S_WRENCH + 6]
            out[k, :3], out[k, 3:] = r.T @ force, r.T @ (moment - np.cross(p, force))
    return out
