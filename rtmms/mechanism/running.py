"""Provide a tree while it runs: steps, outputs, state, and the estimator of the error of its steps."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np

from rtmms.base.errors import DivergedError
from rtmms.base.jit import native
from rtmms.base.memory import Record
from rtmms.base.override import override
from rtmms.base.renamed_outputs import OutputValues
from rtmms.base.spatial import Array
from rtmms.fluids.ambient import Flow
from rtmms.mechanism import chart as tree
from rtmms.mechanism.actuator_arrays import ActuatorArrays
from rtmms.mechanism.audit import A_ELASTIC, A_FLOW, A_FLUID, A_KINETIC, AUDIT, WORKS, given_rates, nodes
from rtmms.mechanism.body_actuators import spin_power
from rtmms.mechanism.contradiction import contradiction, divergence
from rtmms.mechanism.entry import Entries
from rtmms.mechanism.equations import evaluate
from rtmms.mechanism.floor import PRESSES
from rtmms.mechanism.flow import ask_flow, element_places, moved_on
from rtmms.mechanism.joint_laws import (
    BRAKING,
    CEILING,
    FLOOR,
    GREAT,
    LOWER,
    MAX_SPEED,
    MAX_TORQUE,
    MIN_STEPS,
    OFFSET,
    TORQUE,
    UPPER,
    Actuator,
    Law,
)
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.outputs import O_ENERGY, O_TORQUE, O_WRENCH, ResolvedOutputs, write_outputs
from rtmms.mechanism.step import BAD_COMMAND, CONTRADICTED, THROWN, take_step
from rtmms.mechanism.tendons import RESULT_LENGTH, RESULT_POWER, RESULT_RATE, RESULT_TENSION
from rtmms.model.compiled import Model, State
from rtmms.model.ground_rank import rank_of
from rtmms.model.layout import BASE_FREE
from rtmms.plant.coordinates import StateChart
from rtmms.plant.kernel_plant import KernelPlant, RecordErrorEstimator
from rtmms.plant.monitor import StepError, step_error
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep, Coordinates, Fork, SavedState
from rtmms.plant.validation import refuse_not_finite


def _places(memory: Array, parts: dict[str, Any]) -> slice:
    """Return the places in a state of the joints' work and, with contacts, of imposed joints' work in impacts.

    Any two places are evenly spaced, so that a slice can have them.
    """
    works = [parts["motion.spent"][:1], *([parts["tree.ground.lost"][1:]] if "tree.ground.lost" in parts else [])]
    places = [(work.ctypes.data - memory.ctypes.data) // memory.itemsize for work in works]
    return slice(places[0], places[-1] + 1, max(1, places[-1] - places[0]))


class TreeErrorEstimator(RecordErrorEstimator):
    """Step-error estimator of a tree, with its own memory and the plant's kernels.

    Parameters
    ----------
    plant : Running
        Plant whose steps are measured.

    Attributes
    ----------
    order : int
        Order of the method.
    bounded : bool
        Whether the method is stable only up to some |lambda| dt.
    base_moves : bool
        Whether the base is free.
    length : float
        Edge of a cube of water of the tree's mass, m; 1 with a base that is not free.
    """

    def __init__(self, plant: Any) -> None:
        model = plant.model
        self.order = METHODS[plant.method].order
        # steps of half the length brake limits in another time: their errors are then no sign of an instability
        bounds, shortest = plant.system.tree.bounds, MIN_STEPS * plant.dt / plant.substeps
        coarse = np.any((bounds[:, GREAT] > 0.0) & (bounds[:, BRAKING] < (1.0 - 1e-9) * shortest))
        self.bounded = METHODS[plant.method].stability is not None and not coarse
        self.base_moves = model.base_mode == BASE_FREE
        self.length = float(np.cbrt(model.mass / 1000.0)) if self.base_moves else 1.0
        self._imposed = model.imposed
        self._nodes, self._weights = nodes(METHODS[plant.method], plant.substeps)
        super().__init__(plant)

    @property
    @override
    def finer(self) -> tuple[str, float]:
        result: tuple[str, float] = self.plant.finer
        return result

    def _view_saved_state(self, memory: Array) -> SavedState:
        parts, n = self._parts(memory), self.plant.model.n
        y = parts["motion.vector"]
        return SavedState(memory, y[:3], y[3:7], y[7 + n : 13 + n], y[7 : 7 + n], memory[_places(memory, parts)])

    def _parts(self, memory: Array) -> dict[str, Any]:
        result: dict[str, Any] = self.plant.system.state_views(memory[:-1])
        return result

    @override
    def start(self, at: SavedState, halves: bool) -> None:
        """Put the estimator into a state; in halves a multistep method restarts, because its past has other steps."""
        super().start(at, halves)
        if halves:
            self._system.motion.counts[0] = 0

    def _before_step(self) -> None:
        if self.plant.flow.field is not None:
            system = self._system
            time = self._count * self.dt  # the plant's own count: of an unstable run each bit matters
            ask_flow(self.plant, system.motion.vector, time, 0.5 * self._dt[0], system.work.s, system.fluid.held)

    @override
    def unseen(self, begin: SavedState, end: SavedState) -> float:
        if not self._imposed.any():
            return 0.0
        hold, start = self._system.hold, float(begin.all[-1]) * self.dt
        before = self._parts(begin.all)
        target = np.where(np.isfinite(hold.slew)[:, None], before["hold.target"], hold.target)
        with np.errstate(all="ignore"):
            rates = given_rates(
                self._system.law,
                before["hold.servo"],
                target,
                self.plant.bandwidth,
                start,
                self.dt * self._nodes,
                hold.slew,
                hold.goal,
            )
            missed = (end.joints - begin.joints - self.dt * (rates @ self._weights))[self._imposed]
        return float(missed @ missed)


class Running(KernelPlant):
    """Behaviour of a plant that is a tree once it is built, on arrays that remain in place.

    Attributes
    ----------
    model : Model
        Compiled tree.
    method, substeps : str, int
        Name of the method, and its steps in a step of the plant.
    law : Law
        Motion of joints without commands.
    flow : Flow
        The fluid's own motion.
    immersed : Record
        Elements in the fluid.
    attached : ActuatorArrays
        Arrays of the actuators.
    bandwidth : (n,) array
        Of each joint's commands, rad/s; negative for commanded rates.
    vector : (13 + 2 n,) array
        State vector, see `rtmms.mechanism.step`.
    commanded : (n_actuators,) array
        Last command.
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.
    drives : tuple of Actuator
        Channels and their targets.
    parameters, actuators, audited, extra : object
        As of `rtmms.mechanism.plant.TreePlant`.
    """

    model: Model
    method: str
    substeps: int
    law: Law
    flow: Flow
    immersed: Record
    parameters: Any
    actuators: Any
    audited: bool
    extra: Any
    attached: ActuatorArrays
    bandwidth: Array
    vector: Array
    commanded: Array
    system: Record
    _start: Array
    _motor: Array
    _spent: Array
    _limited: Array
    drives: tuple[Actuator, ...]
    _observed: ResolvedOutputs
    _entries: Entries | None
    _address: int

    @property
    def ends(self) -> float | None:
        """Time until which the flow is known, s; None for a flow without end."""
        return None if self.flow.grid is None else self.flow.grid.ends

    @property
    def state(self) -> State:
        """Copy of the mechanical state."""
        return state_of_vector(self.vector, self.model.n)

    def _step_kernel(self) -> Any:
        return None if self._entries is None else self._entries.step

    def _plain_step(self, system: Any) -> int:
        return int(take_step(system))

    def _prepare(self) -> None:
        if self.flow.field is not None:
            self._sample_field(0.5 * self.dt)
        self._start[0] = self._steps * self.dt

    def _command_of(self, system: Any) -> Array:
        return np.asarray(system.command.values)

    def _start_of(self, system: Any) -> Array:
        return np.asarray(system.hold.cell("start"))

    def _sound_of(self, system: Any) -> Array:
        return np.asarray(system.last)

    def _can_fork(self) -> bool:
        return self.flow.field is None  # Python samples a flow that is a function

    def _places_of(self, system: Any) -> dict[str, tuple[int, int]]:
        n, at = self.model.n, (system.motion.vector.ctypes.data - system.memory.ctypes.data) // 8
        places = {
            "position": (at, 3), "quaternion": (at + 3, 4), "velocity": (at + 7 + n, 3),
            "angular_velocity": (at + 10 + n, 3), "joint_position": (at + 7, n), "joint_velocity": (at + 13 + n, n),
        }  # fmt: skip
        extra_names = {channel.name for channel, _ in self.extra} | set(self._observed.slices)
        return {name: place for name, place in places.items() if name not in extra_names and place[1]}

    def _account_of(self, system: Any) -> CompiledOutputs | None:
        """Return compiled outputs of a record; `observe` computes those of `extra` and the power of spinning rotors."""
        if self._entries is None:
            return None
        n, out, ground, tendons = self.model.n, system.outputs.out, system.tree.ground, system.tendons
        spent = system.motion.spent
        parts = {"energy": out[O_ENERGY:][:1], "joint_torque": out[O_TORQUE:][:n], "work": spent[:1]}
        parts["base_wrench"] = out[O_WRENCH:][:6]
        parts |= {name: out[part] for name, part in self._observed.slices.items()}
        parts |= {"motor": system.pushes.motor, "stop_torque": system.work.stop}
        if self.audited:
            terms = out[-AUDIT:]
            stored = {"kinetic": A_KINETIC, "elastic": A_ELASTIC, "fluid": A_FLUID}
            parts |= {f"{name}_energy": terms[k : k + 1] for name, k in stored.items()}
            for k, name in enumerate(WORKS):
                parts[f"{name}_power"], parts[f"{name}_work"] = terms[A_FLOW + k :][:1], spent[1 + k :][:1]
        derived: dict[str, tuple[tuple[str, ...], Any]] = {}
        powers: tuple[str, ...] = ("joint_torque", "joint_velocity") if n else ()
        if tendons is not None and len(self.attached.tendons):
            parts |= {"tendons": tendons.results.reshape(-1), "tendon_loss": spent[len(spent) // 3 - 1 :][:1]}
            for name, k in (("length", RESULT_LENGTH), ("rate", RESULT_RATE), ("tension", RESULT_TENSION)):
                derived[f"tendon_{name}"] = ("tendons",), partial(_of_each, tendons.results.shape[1], k)
            powers, width = (*powers, "tendons"), tendons.results.shape[1]
        else:
            width = 0
        if ground is not None and len(self.model.ground.rows):
            parts |= {"reaction": ground.reaction, "impact_loss": ground.lost[:1], "ground_work": ground.lost[1:2]}
            parts["joint_work"] = parts.pop("work")
            derived["work"] = ("joint_work", "ground_work"), np.add
        losses = [name for name in ("tendon_loss", "impact_loss") if name in parts]
        if len(losses) == 1:
            parts["dissipated_energy"] = parts.pop(losses[0])
        elif losses:
            derived["dissipated_energy"] = tuple(losses), np.add
        if powers and system.pushes.momentum is None:
            derived["power"] = powers, partial(_power, n, width)
        extra_names = {channel.name for channel, _ in self.extra}
        numbers = {
            name: (part.ctypes.data, part.size) for name, part in parts.items() if part.size and name not in extra_names
        }
        derived = {name: item for name, item in derived.items() if name not in extra_names}
        return CompiledOutputs(native(self._entries.outputs, system.address), (system.address,), numbers, derived)

    @property
    def joint_limits(self) -> dict[str, dict[str, float]]:
        """Limits by joint, if any: lower, upper (rad, m), velocity (rad/s, m/s), effort (N m, N)."""
        result: dict[str, dict[str, float]] = {}
        bound_columns = {
            "lower": (FLOOR, LOWER),
            "upper": (CEILING, UPPER),
            "velocity": (MAX_SPEED,),
            "effort": (MAX_TORQUE,),
        }
        for name, row in zip(self.model.joint_names, self.attached.bounds, strict=True):
            limits = {
                word: float(row[k])
                for word, columns in bound_columns.items()
                for k in columns[::-1]
                if np.isfinite(row[k])
            }
            if limits:
                result[name] = limits
        for drive in self.drives:
            if drive.kind in (TORQUE, OFFSET) and 0 <= drive.joint < self.model.n:
                limits = result.setdefault(self.model.joint_names[drive.joint], {})
                upper = drive.channel.upper
                if drive.kind == TORQUE and upper is not None:
                    limits["effort"] = upper * abs(drive.gain)
                elif drive.kind == OFFSET and self.bandwidth[drive.joint] > 0.0:
                    for word, value in (("lower", drive.channel.lower), ("upper", upper)):
                        if value is not None:
                            limits.setdefault(word, value)
        return {name: local for name, local in result.items() if local}

    def _sample_field(self, ahead: float) -> None:
        """Sample a flow that is a function, `ahead` seconds from now; the values are held over a step."""
        ask_flow(self, self.vector, self.time, ahead, self.system.work.s, self.system.fluid.held)

    def _fail(self, status: int) -> NoReturn:
        """Go back to the last sound state, and raise the error that names the quantity that diverged."""
        if status == BAD_COMMAND:
            refuse_not_finite(self.model.name, self.actuators, self._command)
        failed = self.vector.copy()
        self.system.memory[:] = self.system.last
        beyond = self._left_the_flow()
        if beyond:
            raise DivergedError(self.time + self.dt, "flow", self.observe(), beyond.removeprefix("the flow "))
        if status == CONTRADICTED:
            quantity, reason = contradiction(self.model, failed, self._steps + 1)
            raise DivergedError(self.time + self.dt, quantity, self.observe(), reason)
        if status == THROWN:
            quantity, reason = divergence(self.model, failed, self._steps + 1)
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
            result = rank_of(self.model, self.vector[7 : 7 + n])
            if result.weak or result.rank < 6:
                reason += f"; {result.sentence()}"
        raise DivergedError(self.time + self.dt, name, good, reason)

    def _left_the_flow(self) -> str:
        """Return why the flow has no value at an element now, or after a step at the present velocity; '' if none."""
        if self.flow.grid is None:
            return ""
        with np.errstate(all="ignore"):  # sound, but it may be all but beyond the numbers
            ahead = moved_on(self.vector, self.model.n, self.dt)
            return self._beyond(self.vector, self.time) or self._beyond(ahead, self.time + self.dt)

    def _beyond(self, vector: Array, time: float) -> str:
        """Return why the flow has no value at one of the elements in a state; '' where it has."""
        if self.flow.grid is None:
            return ""
        return self.flow.outside(element_places(self, vector, self.model.scratch()), time)

    @property
    def finer(self) -> tuple[str, float]:
        """Parameter that shortens the method's own step, and its value, s."""
        step_s = getattr(self.parameters, "step_s", None)
        return ("dt", self.dt) if step_s is None else ("step_s", self.dt / self.substeps)

    def coordinates(self) -> Coordinates:
        """Return the coordinates of the state (rtmms.plant.HasCoordinates).

        Returns
        -------
        Coordinates
            Names, units and places.
        """
        return self._coordinates

    @cached_property
    def _coordinates(self) -> Coordinates:
        return tree.coordinates(self)

    def settling(self, fork: Fork) -> CompiledStep:
        """Return compiled code that computes the dependent elements of a fork's state.

        See `rtmms.plant.HasCoordinates`.

        Parameters
        ----------
        fork : Fork
            Fork of this plant.

        Returns
        -------
        CompiledStep
            Its status is 0 on success.
        """
        assert self._entries is not None
        return self._entry_of(self._entries.settle, fork.owner)

    def chart(self) -> StateChart:
        """Return the coordinates around the present state, for `rtmms.analysis`.

        Returns
        -------
        StateChart
            Chart that reads and writes this plant.
        """
        return StateChart(self._coordinates, self.system.memory, self._settle)

    def _settle(self) -> int:
        """Compute the elements of the state that depend on its coordinates."""
        self._start[0] = self._steps * self.dt
        status: int = self._entries.settle(self._address) if self._entries else tree.settle(self.system)
        return status

    def step_error_estimator(self) -> TreeErrorEstimator:
        """Return memory and steps beside the plant's own, for `rtmms.plant.monitor`.

        Returns
        -------
        TreeErrorEstimator
            A new estimator.
        """
        return TreeErrorEstimator(self)

    def step_error(self, command: Array | None = None) -> StepError:
        """Return the error of a step from the present state, by two steps of half the length; nothing changes.

        Parameters
        ----------
        command : (n_actuators,) array, optional
            Held command; None for the last one.

        Returns
        -------
        StepError
            1 where a step fails.
        """
        return step_error(self.step_error_estimator(), self.commanded if command is None else command)

    def evaluate(self) -> Array:
        """Return the rate at the present state and time; torques are in `torque` afterwards.

        Returns
        -------
        (12 + 2 n,) array
            See `rtmms.mechanism.step`.
        """
        rate = np.zeros(12 + 2 * self.model.n)
        if self.flow.field is not None:
            self._sample_field(0.0)
        self._start[0] = self.time
        evaluate(self.system, self.vector, self.time, 0.0, rate)
        return rate

    def held(self) -> tuple[Array, Array, Array]:
        """Return copies of the values that the joints' laws hold over a step.

        Returns
        -------
        (array, array, array)
            Torque (n,), target (n, 2), servo (n, 4), see `rtmms.mechanism.joint_laws.HOLD`.
        """
        hold = self.system.hold
        return hold.torque.copy(), hold.target.copy(), hold.servo.copy()

    def rates(
        self, vector: Any, torque: Any, target: Any, servo: Any, water: Any, pushed: Any = None, pulled: Any = None
    ) -> Any:
        """Return the rate of any state vector under any held values, at the present time; the plant does not change.

        All arrays are complex, for derivatives by a complex step.

        Parameters
        ----------
        vector : (13 + 2 n,) array
            State vector.
        torque, target, servo : array
            Held values, see `held`.
        water : (e, 6) array
            Held flow, see `rtmms.fluids.ambient.held_flow`.
        pushed : (array, array), optional
            Command (u,) and lagged commands (a,) of actuators on bodies; None for the present ones.
        pulled : (t, 2) array, optional
            Filtered commands of tendons; None for the present ones.

        Returns
        -------
        (12 + 2 n,) array
            Complex rate.
        """
        rate = np.zeros(12 + 2 * self.model.n, dtype=complex)
        command, motor = (self.commanded, self._motor) if pushed is None else pushed
        values = self.system.shared()
        values["hold"] |= {"torque": torque, "target": target, "servo": servo, "start": self.time}
        values["pushes"] |= {"command": command.astype(complex), "motor": motor.astype(complex)}
        if values["tendons"] is not None:
            servos = self.pulled if pulled is None else pulled
            values["tendons"] |= {"servo": servos.astype(complex)}
        if values["floor"] is not None:
            values["floor"] |= {"anchor": self.system.floor.anchor.astype(complex)}
        values["fluid"] |= {"held": water}
        system = self.system.as_complex(**values)
        if system.tree.ground is not None:
            system.tree.ground.active[:] = self.system.tree.ground.active
        evaluate(system, vector, self.time, 0.0, rate)
        return rate

    @property
    def motor(self) -> Array:
        """(a,) lagged commands of actuators on bodies."""
        return self._motor

    @property
    def pulled(self) -> Array:
        """(t, 2) filtered commands of tendons: value and rate."""
        return np.zeros((0, 2)) if self.system.tendons is None else self.system.tendons.servo

    @property
    def torque(self) -> Array:
        """(n,) torques of the last evaluation, N m or N."""
        return np.asarray(self.system.work.torque)

    @override
    def observe(self) -> dict[str, Array]:
        if self.flow.field is not None:
            self._sample_field(0.0)
        self._start[0] = self._steps * self.dt
        if self._entries:
            self._entries.outputs(self._address)
        else:
            write_outputs(self.system)
        n, y, out = self.model.n, self.vector.copy(), self.system.outputs.out.copy()
        torque, qd = out[O_TORQUE : O_TORQUE + n], y[13 + n :]
        values: dict[str, Any] = {
            "position": y[:3], "quaternion": y[3:7], "velocity": y[7 + n : 10 + n],
            "angular_velocity": y[10 + n : 13 + n],
        }  # fmt: skip
        if n:
            values |= {"joint_position": y[7 : 7 + n], "joint_velocity": qd, "joint_torque": torque}
        if self._limited.any():
            values["stop_torque"] = self.system.work.stop.copy()
        values["power"], values["work"] = np.array(torque @ qd), self._spent[0].copy()
        pushes = self.system.pushes
        if pushes.momentum is not None:
            spun = spin_power(
                pushes.numbers, pushes.command, pushes.motor, pushes.momentum, 0.0, self.system.work.s
            )  # fmt: skip
            values["power"] = values["power"] + spun
        values["energy"] = out[O_ENERGY].copy()
        if self.model.base_mode != BASE_FREE:  # from outside on the base
            values["base_wrench"] = out[O_WRENCH : O_WRENCH + 6]
        if self.audited:
            values |= self._audit_outputs(out[-AUDIT:])
        if len(self._motor):
            values["motor"] = self._motor.copy()
        if len(self.model.ground.rows):
            ground = self.system.tree.ground
            values["reaction"], values["dissipated_energy"] = ground.reaction.copy(), ground.lost[0].copy()
            values["work"] = values["work"] + ground.lost[1]
        if len(self.model.floor):
            values["floor_force"] = self.system.floor.loads[:, PRESSES].copy()
        if len(self.attached.tendons):
            values |= self._tendon_outputs(values)
        chosen = self._observed.chosen
        if chosen is not None:
            values = {name: value for name, value in values.items() if name in chosen}
            values |= {name: out[part] for name, part in self._observed.slices.items()}
        for channel, function in self.extra:
            values[channel.name] = np.asarray(function(self), dtype=float)
        return OutputValues(values) if "dissipated_energy" in values else values

    def _tendon_outputs(self, values: dict[str, Array]) -> dict[str, Array]:
        reported = self.system.tendons.results
        return {
            "tendon_length": reported[:, RESULT_LENGTH].copy(), "tendon_rate": reported[:, RESULT_RATE].copy(),
            "tendon_tension": reported[:, RESULT_TENSION].copy(),
            "power": values["power"] + reported[:, RESULT_POWER].sum(),
            "dissipated_energy": self._spent[len(self._spent) // 3 - 1] + values.get("dissipated_energy", 0.0),
        }  # fmt: skip

    def _audit_outputs(self, terms: Array) -> dict[str, Array]:
        stored = {"kinetic": A_KINETIC, "elastic": A_ELASTIC, "fluid": A_FLUID}
        values = {f"{name}_energy": terms[k] for name, k in stored.items()}
        for k, name in enumerate(WORKS):
            values[f"{name}_power"], values[f"{name}_work"] = terms[A_FLOW + k], self._spent[1 + k].copy()
        return values

    def _state_arrays(self) -> dict[str, Array]:
        return self.system.state_views()


def _of_each(width: int, k: int, rows: Array) -> Array:
    """Return number k of each tendon, (samples, tendons), from rows (samples, tendons * width)."""
    return rows.reshape(len(rows), -1, width)[:, :, k]


def _power(n: int, width: int, *parts: Array) -> Array:
    """Return the power, (samples, 1), W, of joints, and of tendons whose rows have `width` numbers each."""
    power = np.zeros(len(parts[0]))
    if n:
        power += np.matmul(parts[0][:, None, :], parts[1][:, :, None])[:, 0, 0]  # the bits of torque @ qd
    if width:
        power += _of_each(width, RESULT_POWER, parts[-1]).sum(axis=1)
    return power[:, None]


def state_of_vector(y: Array, n: int) -> State:
    """Return a state vector as a State with its own arrays.

    Parameters
    ----------
    y : (13 + 2 n,) array
        State vector.
    n : int
        Number of coordinates.

    Returns
    -------
    State
        The state.
    """
    return State(y[:3].copy(), y[3:7].copy(), y[7 : 7 + n].copy(), y[7 + n : 13 + n].copy(), y[13 + n :].copy())
