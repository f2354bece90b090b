"""A tree on its way: its steps, what it tells, its snapshots. `rtmms.mechanism.plant` builds it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from rtmms.dynamics.any_tree import modal_arrays
from rtmms.dynamics.on_ground import REACTION
from rtmms.errors import DivergedError, ModelError
from rtmms.fluids.ambient import Flow
from rtmms.fluids.immersed import Immersed
from rtmms.jit import native
from rtmms.mechanism.account import O_ENERGY, O_TORQUE, O_WRENCH, account
from rtmms.mechanism.actuators import Attached
from rtmms.mechanism.asked_flow import ask_flow, element_places, moved_on
from rtmms.mechanism.audit import A_ELASTIC, A_FLOW, A_FLUID, A_KINETIC, AUDIT, WORKS
from rtmms.mechanism.contradiction import contradiction, thrown
from rtmms.mechanism.door import START, Door
from rtmms.mechanism.equations import evaluate
from rtmms.mechanism.joint_laws import Law
from rtmms.mechanism.outputs import Observed
from rtmms.mechanism.step import CONTRADICTED, THROWN
from rtmms.mechanism.take_step import BAD_COMMAND, take_step
from rtmms.mechanism.twin import TreeTwin
from rtmms.model.compiled import Model, State
from rtmms.model.ground_rank import rank_of
from rtmms.model.layout import BASE_FREE
from rtmms.monitor.measure import StepError, step_error
from rtmms.plant import Entry
from rtmms.spatial import Array

_HEADER = struct.Struct("<8s32sdqq")
_MAGIC = b"rtmmstr2"
_FLOAT = np.dtype(np.float64)


class Running:
    """What a plant that is a tree does once it is built, on arrays that stay in place."""

    model: Model
    dt: float
    method: str
    substeps: int
    law: Law
    flow: Flow
    immersed: Immersed
    parameters: Any
    actuators: Any
    audited: bool
    extra: Any
    attached: Attached
    bandwidth: Array
    vector: Array
    commanded: Array
    _memory: Array
    _last: Array
    _counts: Any
    _steps: int
    _numbers: Array
    _shape: tuple[int, ...]
    _given: Array
    _kinds: Any
    _joints: Any
    _torque: Array
    _target: Array
    _servo: Array
    _motor: Array
    _spent: Array
    _lost: Array
    _held: Array
    _ambient: Array
    _rate: Array
    _out: Array
    _observed: Observed
    _tree: Any
    _law: Any
    _fluid: Any
    _work: Any
    _method: Any
    _changing: Any
    _scratch: Any
    _told: Any
    _door: Door
    _doors: Any
    _address: int
    _entry: Entry | None
    _key: bytes
    _losing: int
    _spending: int

    @property
    def time(self) -> float:
        """s, simulated."""
        return self._steps * self.dt

    @property
    def ends(self) -> float | None:
        """See rtmms.plant.Ending: a flow from a file may end."""
        return None if self.flow.grid is None else self.flow.grid.ends

    @property
    def state(self) -> State:
        """A copy of the mechanical state."""
        return unpacked(self.vector, self.model.n)

    @property
    def _hold(self) -> tuple[Any, ...]:
        hold = (self._torque, self._target, self._servo, self.bandwidth, self.time)
        return (*hold, True) if len(self._tree) == 7 else hold

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

    def _beyond(self, vector: Array, time: float) -> str:
        """Why the flow has no value at one of the elements in a state; '' where it has."""
        if self.flow.grid is None:
            return ""
        return self.flow.outside(element_places(self, vector, self.model.scratch()), time)

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


def unpacked(y: Array, n: int) -> State:
    """A state vector (13 + 2 n,) as a State; copies."""
    return State(y[:3].copy(), y[3:7].copy(), y[7 : 7 + n].copy(), y[7 + n : 13 + n].copy(), y[13 + n :].copy())
