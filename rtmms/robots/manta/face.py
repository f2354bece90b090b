"""The robotic manta as a plant: body, two elastic fins, four rods (Qu 2024). Model and choices: docs/manta.md."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.arguments import read_command, read_numbers, read_pose, read_seed, refuse_not_finite
from rtmms.coordinates import StateChart
from rtmms.errors import ArgumentError, DivergedError, ModelError, UnknownNameError
from rtmms.jit import COMPILED, compile_progress, helped, native
from rtmms.memory import aligned
from rtmms.monitor.measure import StepError, step_error
from rtmms.parameters import settable
from rtmms.plant import Account, Channel, Coordinates, CoupledLimit, Entry, Fork, Surroundings, refuse_fixed
from rtmms.robots.manta.chart import coordinates
from rtmms.robots.manta.checks import check_coupling, check_step
from rtmms.robots.manta.coupling import layout as lay
from rtmms.robots.manta.coupling.account import (
    O_ACCELERATION,
    O_ANGULAR_ACCELERATION,
    O_ANGULAR_VELOCITY,
    O_BUOYANCY,
    O_DAMPING_POWER,
    O_DRAG_POWER,
    O_ELASTIC,
    O_ITERATIONS,
    O_JOINTS,
    O_KINETIC,
    O_POSITION,
    O_QUATERNION,
    O_RESIDUAL,
    O_ROD_ANGLE,
    O_ROD_POWER,
    O_ROD_RATE,
    O_ROD_TORQUE,
    O_THRUST,
    O_TIP,
    O_VELOCITY,
    account,
    output_size,
)
from rtmms.robots.manta.coupling.drift import Field, linear_field, make_sampler
from rtmms.robots.manta.coupling.entry import arguments, enter_account, enter_settle, enter_step
from rtmms.robots.manta.coupling.interface import move_supports
from rtmms.robots.manta.coupling.joints import HALF_TURN, RATE_LIMIT
from rtmms.robots.manta.coupling.settle import settle
from rtmms.robots.manta.coupling.step import step
from rtmms.robots.manta.gait import GAIT, usual
from rtmms.robots.manta.kernels.fin_layout import FIELDS, LANES, SUM_Q, SUM_QD
from rtmms.robots.manta.kernels.rods import KNEE, ROD_SIZE
from rtmms.robots.manta.levels import Variant, carry_over, cheaper
from rtmms.robots.manta.model import COUPLINGS, compile_manta
from rtmms.robots.manta.parameters import RODS_NAMES, MantaParameters, build, preset_values
from rtmms.robots.manta.summary import TRACE_OUTPUTS, summarise
from rtmms.robots.manta.twin import MantaTwin
from rtmms.snapshot import StatefulPlant

Array = npt.NDArray[np.float64]

DEFAULT_DT = 1e-3
SETTABLE = settable(MantaParameters)
"""What `set` may change while it runs."""

# name, unit, shape, frame, where in the array that `account` writes
_OUTPUTS: tuple[tuple[str, str, tuple[int, ...], str, int], ...] = (
    ("position", "m", (3,), "world", O_POSITION),
    ("quaternion", "", (4,), "world", O_QUATERNION),
    ("velocity", "m/s", (3,), "body", O_VELOCITY),
    ("angular_velocity", "rad/s", (3,), "body", O_ANGULAR_VELOCITY),
    ("acceleration", "m/s2", (3,), "body", O_ACCELERATION),
    ("angular_acceleration", "rad/s2", (3,), "body", O_ANGULAR_ACCELERATION),
    ("rod_angle", "rad", (4,), "", O_ROD_ANGLE),
    ("rod_rate", "rad/s", (4,), "", O_ROD_RATE),
    ("rod_torque", "N m", (4,), "", O_ROD_TORQUE),
    ("thrust", "N, N m", (2, 6), "body", O_THRUST),
    ("rod_power", "W", (), "", O_ROD_POWER),
    ("drag_power", "W", (), "", O_DRAG_POWER),
    ("damping_power", "W", (), "", O_DAMPING_POWER),
    ("kinetic_energy", "J", (), "", O_KINETIC),
    ("elastic_energy", "J", (), "", O_ELASTIC),
    ("buoyancy_energy", "J", (), "", O_BUOYANCY),
    ("interface_passes", "", (), "", O_ITERATIONS),
    ("interface_residual", "m/s2, rad/s2", (), "", O_RESIDUAL),
)


class Manta(StatefulPlant):
    """A plant as rtmms.Plant describes it. `seed` changes nothing: the manta has no chance in it.

    Outputs are functions of the state alone: accelerations, torques and thrusts are the true ones of body and fins
    together, also when the run's coupling is sequential. `acceleration` and `angular_acceleration` are the rates of
    the components of `velocity` and `angular_velocity`; `thrust` has one row a fin, [force; moment] on the body about
    its mass centre; `rod_torque` is what the motors must give.
    """

    trace_outputs = TRACE_OUTPUTS
    medium = "water"
    recent_outputs = ("joint_position", "rod_angle", "tip")
    settable = SETTABLE
    gait = GAIT
    _name = "manta"

    def __init__(self, parameters: MantaParameters, dt: float, coupling: str, field: Field | None = None) -> None:
        self.parameters, self.dt, self.coupling = parameters, dt, coupling
        self.home: Mapping[str, Any] = {}
        self._field = field
        p = parameters
        limit = p.rod_limit_rad
        self.actuators = tuple(Channel(name, "rad", (), "body", -limit, limit, 0.0) for name in RODS_NAMES)
        joints = (2, p.links, p.chains)
        self.outputs = (
            *(Channel(name, unit, shape, frame) for name, unit, shape, frame, _ in _OUTPUTS),
            Channel("tip", "m", (2, 3), "body"),
            Channel("joint_position", "rad", joints),
            Channel("joint_velocity", "rad/s", joints),
        )
        self.model = compile_manta(p, dt, coupling)
        most = self.model.finned.difference
        self.coupled = (CoupledLimit(0, 1, most, KNEE * most), CoupledLimit(2, 3, most, KNEE * most))
        self._blocks = self.model.finned.blocks
        check_step(self.model, dt)

        starts = (*(start for *_, start in _OUTPUTS), O_TIP, O_JOINTS, O_JOINTS + 2 * p.links * p.chains)
        self._parts = tuple(
            (o.name, o.shape, slice(start, start + math.prod(o.shape)))
            for o, start in zip(self.outputs, starts, strict=True)
        )
        if field is None and any(p.current_gradient_1_s):
            field = linear_field(p.current_gradient_1_s)
        many, across = p.links != 3, p.fin_normal == "neighbour"
        shape = (many, field is not None, across)
        ahead = f"from rtmms.robots.manta.coupling.ahead import compile_ahead; compile_ahead{shape}"
        with compile_progress("the manta's kernels"), helped(ahead, enter_step, enter_account):
            self._sampler = None if field is None else make_sampler(field)
            values: dict[str, Any] = {"finned": self.model.finned, "body": self.model.body, "param": self.model.param}
            if many:
                values["many"] = p.links
            if across:
                values["normals"] = aligned(2, self._blocks, p.links, 3 * LANES)
            if self._sampler is not None:
                values["drift"], values["body_drift"] = aligned(2, self._blocks, p.links, 3 * LANES), aligned(3)
                values["flow"] = self._sampler.handle if COMPILED else 0
            sizes = {"links": p.links, "out": output_size(p.links, p.chains)}
            self.system = lay.MANTA.make(values, sizes)
            if not COMPILED and self._sampler is not None:  # plain Python calls the sampler itself
                setattr(self.system, "flow", self._sampler.handle)  # noqa: B010
            self.model = replace(self.model, finned=self.system.finned, body=self.system.body)
            self.memory = self._state = self.system.state
            self._out, self._command = self.system.out, self.system.command
            self._addresses = arguments(self.system)
            self._reset_state()
            check_coupling(self.model, self._state, self.system.work, self._account)
            self._advance()  # compiled, or fetched from the cache, and warm
            self.observe()
        self._entry: Entry | None = None
        if COMPILED:
            self._entry = Entry(native(enter_step, *self._addresses), self._words, self._command.ctypes.data)
        self._key = self._hash()
        self._reset_state()

    # --- the plant's face --------------------------------------------------------------------------------------------

    def gait_period(self, **gait: float) -> float:
        """s, of the usual gait; ModelError."""
        return usual(gait).period_s

    def gait_commands(self, steps: int, **gait: float) -> Array:
        """(steps, 4) rad of a period of the usual gait."""
        flapping = usual(gait)
        time = np.arange(steps, dtype=np.float64) * (flapping.period_s / steps)
        return flapping.angles(time, self.parameters.back_rod_m / self.parameters.front_rod_m)

    def reset(self, seed: int = 0) -> None:
        """Back to t = 0: at rest at the origin or at `home`, fins straight, rods at 0."""
        read_seed("manta", seed)
        self._reset_state()
        if self.home:
            self.place(**self.home)

    def place(self, **given: Any) -> None:
        """Put the manta into another state; what is not given stays as it is.

        given   by the names of the outputs: position (3,) m, quaternion (4,), velocity (3,) m/s and angular_velocity
                (3,) rad/s in body axes, rod_angle (4,) rad and rod_rate (4,) rad/s, joint_position and joint_velocity
                (2, links, chains). A rod that is given an angle was last commanded there
        ArgumentError for a shape that does not fit or an angle beyond its limit, UnknownNameError, ModelError for a
        body that is held, or supports that are singular; nothing is changed then.
        """
        for name in given:
            if name not in _PLACES:
                raise UnknownNameError("part of a state", name, _PLACES)
        p, before = self.parameters, self._state.copy()
        state = self._state.copy()
        if p.body == "fixed" and not given.keys().isdisjoint(_PLACES[:4]):
            raise ModelError("manta: place: the body is held (body=fixed): expected rods and joints alone")
        read_pose("manta: place", given, state[lay.POSITION : lay.POSITION + 7], state[lay.TWIST : lay.TWIST + 6])
        rods = state[lay.RODS : lay.RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)
        if "rod_angle" in given:
            angle = read_numbers("manta: place", "rod_angle", given["rod_angle"], (4,))
            if np.abs(angle).max() > p.rod_limit_rad:
                raise ArgumentError(
                    f"manta: place: rod_angle: expected angles within {p.rod_limit_rad:g} rad, got {angle.tolist()}"
                )
            rods[:, 0], rods[:, 3:] = angle, angle[:, None]
        if "rod_rate" in given:
            rods[:, 1] = read_numbers("manta: place", "rod_rate", given["rod_rate"], (4,))
        shape = (2, p.links, p.chains)
        joints = {k: name for k, name in enumerate(_PLACES[6:]) if name in given}
        values = {k: read_numbers("manta: place", name, given[name], shape) for k, name in joints.items()}
        for k, value in values.items():
            state[self._told.words[-2 * value.size :].reshape(2, *shape)[k]] = value
        self._state[:] = state
        if self._settle():
            self._state[:] = before
            raise ModelError("manta: place: the support is singular at these rod angles")

    def step(self, command: Array) -> None:
        """Advance by dt; command (4,) rad, in the order of `actuators`.

        Raises ValueError for a wrong size or a value that is not finite (nothing happens then), DivergedError when the
        state leaves the finite numbers, a joint bends by half a turn or the support becomes singular; the state is
        then still the last good one.
        """
        if type(command) is np.ndarray and command.dtype is _FLOAT and command.shape == _FOUR:
            self._command[:] = command
        else:
            self._convert(command)
        status = self._advance()
        if status:
            self._fail(status)

    def enter(self) -> Entry | None:
        """See rtmms.plant.Entered."""
        return self._entry

    def entered(self, status: int) -> None:
        """See rtmms.plant.Entered."""
        if status:
            self._fail(status)

    def account(self) -> Account | None:
        """See rtmms.plant.Accounted."""
        return self._account_of(self.system)

    def _account_of(self, system: Any) -> Account | None:
        if not COMPILED or self._sampler is not None:
            return None
        out, given = system.out.ctypes.data, arguments(system)
        parts = {name: (out + 8 * part.start, part.stop - part.start) for name, _, part in self._parts}
        return Account(native(enter_account, *given, 0.0), tuple(0 if word is None else word for word in given), parts)

    def observe(self) -> dict[str, Array]:
        """All outputs at the present state, in new arrays."""
        if self._sampler is not None:
            m, s = self.system, self._state
            self._sampler.gather(
                self.model.finned, m.param, s, lay.POSITION, s, lay.TWIST, s, lay.SUPPORTS, m.joints, 0.0,
                float(s[lay.TIME]), m.drift, m.body_drift,
            )  # fmt: skip
        self._account(0.0)
        out = self._out.copy()
        return {name: out[part].reshape(shape) for name, shape, part in self._parts}

    def set(self, **given: Any) -> None:
        """Change parameters of SETTABLE at the present state, from the next step on; they stay over a reset.

        Snapshots taken before are of another manta from then on. Raises UnknownNameError, ModelError; nothing is
        changed then.
        """
        refuse_fixed("manta", given, SETTABLE, (f.name for f in fields(MantaParameters)))
        parameters = replace(self.parameters, **given)
        model = compile_manta(parameters, self.dt, self.coupling)
        model.finned.relaxation[:] = self.model.finned.relaxation  # of the masses, which stay
        check_step(model, self.dt)
        # the record stays where it is, and so do all addresses of it; twins and forks keep what they have
        self.system.adopt({"finned": model.finned, "body": model.body, "param": model.param})
        self.model = replace(self.model, links=model.links, param=model.param)
        self.parameters, self._key = parameters, self._hash()

    def surroundings(self) -> Surroundings:
        """Return what the plant moves in, as it is now."""
        p = self.parameters
        return Surroundings((0.0, 0.0, -p.gravity_m_s2), p.water_density_kg_m3)

    def fork(self) -> Fork | None:
        """See rtmms.plant.Forking."""
        if not COMPILED:
            return None
        other = self.system.fork()
        words = tuple(0 if word is None else word for word in arguments(other))
        entry = Entry(native(enter_step, *arguments(other)), words, other.command.ctypes.data)
        places = {
            "position": (lay.POSITION, 3), "quaternion": (lay.QUATERNION, 4), "velocity": (lay.TWIST, 3),
            "angular_velocity": (lay.TWIST + 3, 3),
        }  # fmt: skip
        return Fork(
            entry, other.state, other.state, np.zeros(1), places, other.clear,
            lambda: other.adopt_from(self.system), other, self._account_of(other),
        )  # fmt: skip

    def coordinates(self) -> Coordinates:
        """See rtmms.plant.Coordinated."""
        return self._told

    @cached_property
    def _told(self) -> Coordinates:
        return coordinates(self.parameters, self.model)

    def settling(self, fork: Fork) -> Entry:
        """See rtmms.plant.Coordinated."""
        given = arguments(fork.owner)
        words = tuple(0 if word is None else word for word in given)
        return Entry(native(enter_settle, *given), words, fork.entry.command)

    def structure(self, by: Array) -> Any:
        """See rtmms.analysis.abilities.Structured."""
        from rtmms.robots.manta.jacobian.structure import MantaJacobian, covered  # its kernels are for who asks

        if not COMPILED or not covered(self.model, self._sampler is not None):
            return None
        return MantaJacobian(self.system.fork(), self._told, by)

    def chart(self) -> StateChart:
        """Coordinates around the present state, for `rtmms.analysis`."""
        return StateChart(self._told, self._state, self._settle)

    def variants(self) -> list[Variant]:
        """See rtmms.plant.Degradable."""
        return [
            Variant(Manta(parameters, self.dt, coupling, self._field), self, words)
            for parameters, coupling, words in cheaper(self.parameters, self.coupling)
        ]

    def take_over(self, other: Any) -> None:
        """See rtmms.plant.Degradable."""
        carry_over(self, getattr(other, "manta", other))

    def twin(self) -> MantaTwin:
        """Memory and steps beside the plant's own, for `rtmms.monitor`."""
        return MantaTwin(self)

    def step_error(self, command: Array | None = None) -> StepError:
        """The error of a step from the present state with `command` (None: the last one) held; nothing is changed.

        By two steps of half the length; 1 where a step fails."""
        return step_error(self.twin(), self._command.copy() if command is None else command)

    @property
    def accurate(self) -> dict[float, float]:
        """Of the gait of 40 deg at 0.6 Hz (docs/guards.md)."""
        return {0.01: 6e-3, 0.001: 1.2e-3} if self.parameters.integrator == "implicit" else {}

    # --- the report --------------------------------------------------------------------------------------------------

    @property
    def weight(self) -> float:
        """N, body and fins in air."""
        p = self.parameters
        return (p.body_mass_kg + 2.0 * self.model.fin_mass) * p.gravity_m_s2

    def summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """Means over the last whole flapping periods within the second half of the run; see manta_summary."""
        return summarise(time, trace, self.weight)

    # --- within ------------------------------------------------------------------------------------------------------

    @property
    def _steps(self) -> int:
        return int(self._state[lay.STEP])

    @_steps.setter
    def _steps(self, steps: int) -> None:
        self._state[lay.STEP] = steps

    def _hash(self) -> bytes:
        """What snapshots are tied to."""
        told = self.system.finned.model_bytes() + self.system.body.model_bytes() + self.system.param.tobytes()
        return hashlib.sha256(told).digest()

    def _reset_state(self) -> None:
        self.system.clear()
        self._state[:] = 0.0
        self._state[lay.QUATERNION] = 1.0
        if not move_supports(self.model.finned, self._state, lay.RODS, ROD_SIZE, self._state, lay.SUPPORTS):
            raise ModelError("support_length_m: the mechanism is singular with both rods at 0")

    def _advance(self) -> int:
        """One step under self._command; the status it returned."""
        status: int
        if COMPILED:
            status = enter_step(*self._addresses)
        else:
            status = step(self.system)
        return status

    def _settle(self) -> int:
        """What follows from the coordinates of the state, in order; its status."""
        status: int = enter_settle(*self._addresses) if COMPILED else settle(self.system)
        return status

    def _account(self, g: float) -> None:
        """The outputs at the present state, in self._out; see `account`."""
        if COMPILED:
            enter_account(*self._addresses, g)
        else:
            account(self.system, g)

    @property
    def _words(self) -> tuple[int, ...]:
        """`_addresses` for compiled code, which takes no notice of what is None."""
        return tuple(0 if word is None else word for word in self._addresses)

    def _convert(self, command: Any) -> None:
        self._command[:] = read_command("manta", self.actuators, command)

    def _fail(self, status: int) -> None:
        time = float(self._state[lay.STEP] + 1.0) * self.dt
        if status == lay.BAD_COMMAND:
            refuse_not_finite("manta", self.actuators, self._command)
        last = self.observe()
        if status == lay.SINGULAR:
            rods = self.system.work[lay.W_RODS : lay.W_RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)[:, 0]
            for side, a, b in (("left", rods[0], rods[1]), ("right", rods[2], rods[3])):
                if abs(a - b) > 1.0:
                    reason = f"is singular: front rod {np.degrees(a):.1f} deg, back rod {np.degrees(b):.1f} deg"
                    raise DivergedError(time, f"{side} support", last, reason)
            raise DivergedError(time, "support", last, f"is singular at rod angles {np.degrees(rods).round(1)} deg")
        if status == lay.NOT_CONVERGED:
            raise DivergedError(
                time, "interface between body and fins", last,
                f"did not converge in {self.parameters.interface_passes_max} passes to "
                f"{self.parameters.interface_tolerance_m_s2:g} m/s2",
            )  # fmt: skip
        self._advance()
        raise DivergedError(time, *self._culprit(last))

    def _culprit(self, last: dict[str, Array]) -> tuple[str, dict[str, Array], str]:
        """Which quantity of the failed step left its range; the stage's values are still in the scratch."""
        p = self.parameters
        for fin, side in enumerate(("left", "right")):
            for field, name, limit in ((SUM_Q, "joint_position", HALF_TURN), (SUM_QD, "joint_velocity", RATE_LIMIT)):
                rows = self.system.fins[fin].reshape(self._blocks, p.links, FIELDS, LANES)
                lanes = rows[:, :, field].transpose(1, 0, 2)
                values = lanes.reshape(p.links, self._blocks * LANES)[:, : p.chains]
                bad = np.argwhere(~(np.abs(values) < limit))
                if len(bad):
                    j, i = bad[0]
                    value = values[j, i]
                    reason = f"reached {value:.3g}" if np.isfinite(value) else "is not finite"
                    return f"{side} {name}[{j}, {i}]", last, reason
        return "velocity of the body", last, "left its range"


_PLACES = (
    "position", "quaternion", "velocity", "angular_velocity", "rod_angle", "rod_rate", "joint_position",
    "joint_velocity",
)  # fmt: skip
_FLOAT, _FOUR = np.dtype(np.float64), (4,)


def load(
    dt: float | None = None,
    preset: str | None = None,
    coupling: str | None = None,
    current_field: Field | None = None,
    **parameters: Any,
) -> Manta:
    """Build a manta.

    dt             s, default 1e-3 (preset paper: 1e-2)
    preset         'paper' or None
    coupling       'sequential' (default), 'iterated' or 'monolithic'
    current_field  f(x, y, z, t) -> (u, v, w), world m and s to m/s, compiled with numba: a current that the drag sees,
                   beyond `current_m_s`
    parameters     fields of MantaParameters, as numbers or as the words a person types
    Raises UnknownNameError, ModelError.
    """
    named = preset_values(preset)
    given_dt = dt if dt is not None else named.get("dt", DEFAULT_DT)
    chosen = coupling if coupling is not None else named.get("coupling", "sequential")
    if chosen not in COUPLINGS:
        raise UnknownNameError("coupling", str(chosen), COUPLINGS)
    try:
        if isinstance(given_dt, bool):
            raise TypeError
        step = float(given_dt)
    except (TypeError, ValueError):
        raise ModelError(f"dt: expected a number in s, got {given_dt!r}") from None
    if not 0.0 < step < np.inf:
        raise ModelError(f"dt: must be > 0 s and finite, got {step:g}")
    return Manta(build(preset, parameters), step, chosen, current_field)
