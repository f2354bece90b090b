"""Provide the robotic manta as a plant (Qu 2024): body, two elastic fins, four rods; its gait and its summary."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ArgumentError, DivergedError, ModelError, UnknownNameError
from rtmms.base.jit import COMPILED, compile_in_parallel, compile_progress, native
from rtmms.base.memory import aligned
from rtmms.base.override import override
from rtmms.base.parameters import settable
from rtmms.base.spatial import heading
from rtmms.plant.coordinates import StateChart
from rtmms.plant.kernel_plant import KernelPlant
from rtmms.plant.monitor import StepError, step_error
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep, Coordinates, Fork
from rtmms.plant.protocol import Channel, CoupledLimit, Environment, refuse_fixed
from rtmms.plant.validation import read_numbers, read_pose, read_seed, refuse_not_finite
from rtmms.robots.manta import layout as lay
from rtmms.robots.manta.chart import coordinates
from rtmms.robots.manta.coupling import move_supports
from rtmms.robots.manta.current import Field, linear_field, make_sampler
from rtmms.robots.manta.error_estimator import MantaErrorEstimator
from rtmms.robots.manta.fin_layout import FIELDS, LANES, SUM_Q, SUM_QD
from rtmms.robots.manta.levels import Variant, carry_over, cheaper
from rtmms.robots.manta.model import COUPLINGS, check_coupling, check_step, compile_manta
from rtmms.robots.manta.outputs import (
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
from rtmms.robots.manta.parameters import RODS_NAMES, MantaParameters, build, preset_values
from rtmms.robots.manta.rods import KNEE, ROD_SIZE
from rtmms.robots.manta.steered_gait import SteeredGait
from rtmms.robots.manta.step import (
    HALF_TURN,
    RATE_LIMIT,
    arguments,
    enter_account,
    enter_settle,
    enter_step,
    settle,
    step,
)

Array = npt.NDArray[np.float64]


GAIT = {"amplitude_deg": 40.0, "phase_deg": 40.0, "frequency_hz": 0.6}
"""Parameters and their defaults, as the controller `gait` has them."""


@dataclass(frozen=True, slots=True)
class Flapping:
    """Rod angles alpha_i = A_i sin(w t + phi_i); the back rods have no phase, each front rod leads by its own.

    Parameters
    ----------
    amplitude_deg, phase_deg : float
        Of the left fin, and of the right one where `right_...` is None, degrees.
    frequency_hz : float
        Hz.
    right_amplitude_deg, right_phase_deg : float, optional
        Of the right fin, degrees.
    ramp_s : float, default 1.0
        Duration of the soft start, s.

    Notes
    -----
    Qu 2024, eq. (37). A_1 follows from the rule that both rod ends reach the same height.
    """

    amplitude_deg: float
    phase_deg: float
    frequency_hz: float
    right_amplitude_deg: float | None = None
    right_phase_deg: float | None = None
    ramp_s: float = 1.0

    @property
    def period_s(self) -> float:
        """Period, s."""
        return 1.0 / self.frequency_hz

    def angles(self, time: Array, ratio: float) -> Array:
        """Return the rod angles in the order of the plant's actuators.

        Parameters
        ----------
        time : (k,) array
            s.
        ratio : float
            r2 / r1, length of the back rods over that of the front rods.

        Returns
        -------
        (k, 4) array
            rad.
        """
        cycle = 2.0 * np.pi * self.frequency_hz * time
        x = np.clip(time / self.ramp_s, 0.0, 1.0) if self.ramp_s > 0.0 else np.ones_like(time)
        strength = x**3 * (10.0 + x * (6.0 * x - 15.0))
        right_amplitude = self.amplitude_deg if self.right_amplitude_deg is None else self.right_amplitude_deg
        right_phase = self.phase_deg if self.right_phase_deg is None else self.right_phase_deg
        rods = []
        for amplitude, phase in ((self.amplitude_deg, self.phase_deg), (right_amplitude, right_phase)):
            back = np.radians(amplitude)
            front = np.arcsin(ratio * np.sin(back))
            rods += [front * np.sin(cycle + np.radians(phase)), back * np.sin(cycle)]
        angles: Array = strength[:, None] * np.stack(rods, axis=1)
        return angles


def default_gait(gait: Mapping[str, float]) -> Flapping:
    """Return the default gait with some parameters replaced, without a soft start.

    Parameters
    ----------
    gait : Mapping[str, float]
        Parameters that differ.

    Returns
    -------
    Flapping
        The gait.

    Raises
    ------
    ModelError
        The frequency is not > 0.
    """
    flapping = Flapping(**{**GAIT, **gait}, ramp_s=0.0)
    if not flapping.frequency_hz > 0.0:
        raise ModelError(f"gait: frequency_hz must be > 0 Hz, got {flapping.frequency_hz}")
    return flapping


TRACE_OUTPUTS = ("position", "quaternion", "velocity", "thrust", "rod_power", "rod_angle", "tip")
BACK = 1
MIN_TURN = 1e-7
MIN_SPEED = 1e-9


def window(time: Array, angle: Array) -> tuple[float, float, int]:
    """Return the last whole cycles of a rod within the second half of the run.

    A cycle is from one up-crossing of the rod's mean (over that half) to the next. With fewer than two crossings the
    result is the whole second half with 0 cycles.

    Parameters
    ----------
    time : (k,) array
        s.
    angle : (k,) array
        Angle of the rod, rad.

    Returns
    -------
    (float, float, int)
        Start, s, end, s, and number of cycles.
    """
    half = time >= time[0] + 0.5 * (time[-1] - time[0])
    t, a = time[half], angle[half]
    if len(t) < 3:
        return float(time[0]), float(time[-1]), 0
    a = a - a.mean()
    if np.ptp(a) < 1e-6:
        return float(t[0]), float(t[-1]), 0
    up = np.flatnonzero((a[:-1] < 0.0) & (a[1:] >= 0.0))
    if len(up) < 2:
        return float(t[0]), float(t[-1]), 0
    cross = t[up] - a[up] * (t[up + 1] - t[up]) / (a[up + 1] - a[up])
    return float(cross[0]), float(cross[-1]), len(cross) - 1


def mean(time: Array, values: Array, start: float, end: float) -> float:
    """Return the time mean by the trapezoidal rule, with the ends interpolated.

    Parameters
    ----------
    time, values : (k,) array
        Samples.
    start, end : float
        Interval, s.

    Returns
    -------
    float
        Mean.
    """
    inside = (time > start) & (time < end)
    t = np.concatenate([[start], time[inside], [end]])
    v = np.concatenate([[np.interp(start, time, values)], values[inside], [np.interp(end, time, values)]])
    return float(np.trapezoid(v, t) / (end - start)) if end > start else float(v[0])


def summarise(time: Array, trace: Mapping[str, Array], weight: float) -> dict[str, float | None]:
    """Return the manta's summary.

    Parameters
    ----------
    time : (k,) array
        s.
    trace : mapping of str to (k, ...) array
        Samples of TRACE_OUTPUTS.
    weight : float
        Weight in air, N.

    Returns
    -------
    dict[str, float or None]
        Numbers by name; None where undefined (a cost without speed, a radius without a turn).

    Notes
    -----
    strouhal = frequency x peak-to-peak height of the left fin's rear tip / speed.
    """
    if len(time) < 2:
        names = ("mean_speed_m_s", "mean_thrust_n", "mean_power_w", "cost_of_transport", "strouhal", "turn_rate_deg_s")
        return dict.fromkeys((*names, "turn_radius_m"), None)
    start, end, cycles = window(time, trace["rod_angle"][:, BACK])
    speed = mean(time, trace["velocity"][:, 0], start, end)
    thrust = mean(time, trace["thrust"][:, :, 0].sum(axis=1), start, end)
    power = mean(time, trace["rod_power"].reshape(len(time)), start, end)
    yaw = heading(trace["quaternion"])
    turn = float(np.interp(end, time, yaw) - np.interp(start, time, yaw)) / max(end - start, 1e-12)
    inside = (time >= start) & (time <= end)
    strouhal = None
    if cycles and speed > MIN_SPEED:
        strouhal = cycles / (end - start) * float(np.ptp(trace["tip"][inside, 0, 2])) / speed
    step = np.diff(trace["position"][:, :2], axis=0)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(step[:, 0], step[:, 1]))])
    ground = float(np.interp(end, time, along) - np.interp(start, time, along)) / max(end - start, 1e-12)
    return {
        "mean_speed_m_s": speed,
        "mean_thrust_n": thrust,
        "mean_power_w": power,
        "cost_of_transport": power / (weight * speed) if speed > MIN_SPEED and weight > 0.0 else None,
        "strouhal": strouhal,
        "turn_rate_deg_s": float(np.degrees(turn)),
        "turn_radius_m": ground / abs(turn) if abs(turn) > MIN_TURN else None,
    }


DEFAULT_DT = 1e-3
SETTABLE = settable(MantaParameters)
"""Parameters that `set` may change while it runs."""

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


class Manta(KernelPlant):
    """The manta as a plant (rtmms.plant.protocol.Plant).

    Outputs are functions of the state alone: accelerations, torques and thrusts are the true ones of body and fins
    together, also when the run's coupling is sequential. `acceleration` and `angular_acceleration` are the rates of the
    components of `velocity` and `angular_velocity`. `thrust` has one row for each fin, [force; moment] on the body
    about its mass centre. `rod_torque` is the torque that the motors must exert.

    Parameters
    ----------
    parameters : MantaParameters
        Parameters of the manta.
    dt : float
        Step, s.
    coupling : str
        'sequential', 'iterated' or 'monolithic'.
    field : Field, optional
        Current beyond the uniform one, see `load`; None for none.
    """

    trace_outputs = TRACE_OUTPUTS
    medium = "water"
    recent_outputs = ("joint_position", "rod_angle", "tip")
    settable = SETTABLE
    gait = GAIT
    _name = "manta"
    _kernel_counts_steps = True

    def __init__(self, parameters: MantaParameters, dt: float, coupling: str, field: Field | None = None) -> None:
        self.parameters, self.dt, self.coupling = parameters, dt, coupling
        self.initial_pose: Mapping[str, Any] = {}
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
        maximum = self.model.finned.difference
        self.coupled = (CoupledLimit(0, 1, maximum, KNEE * maximum), CoupledLimit(2, 3, maximum, KNEE * maximum))
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
        ahead = f"from rtmms.robots.manta.step import compile_ahead; compile_ahead{shape}"
        with compile_progress("the manta's kernels"), compile_in_parallel(ahead, enter_step, enter_account):
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
        self._bind_step()
        self._key = self._hash()
        self._reset_state()

    @property
    def half_span_m(self) -> float:
        """Distance from the body's middle to the tip of a fin, m."""
        p = self.parameters
        return abs(p.fin_root_m[1]) + max(p.chain_length_back_m, p.chain_length_front_m)

    # --- the interface of a plant -------------------------------------------------------------------------------------

    def gait_period(self, **gait: float) -> float:
        """Return the period of the default gait.

        Parameters
        ----------
        **gait : float
            Parameters that differ.

        Returns
        -------
        float
            s.

        Raises
        ------
        ModelError
            The frequency is not > 0.
        """
        return default_gait(gait).period_s

    def gait_commands(self, steps: int, **gait: float) -> Array:
        """Return the commands of a period of the default gait.

        Parameters
        ----------
        steps : int
            Number of steps.
        **gait : float
            Parameters that differ.

        Returns
        -------
        (steps, 4) array
            rad.

        Raises
        ------
        ModelError
            The frequency is not > 0.
        """
        flapping = default_gait(gait)
        time = np.arange(steps, dtype=np.float64) * (flapping.period_s / steps)
        return flapping.angles(time, self.parameters.back_rod_m / self.parameters.front_rod_m)

    def commanded_gaits(self) -> dict[str, SteeredGait]:
        """Return the default gait with parameters of each fin.

        Returns
        -------
        dict[str, SteeredGait]
            Gaits by name.
        """
        p = self.parameters
        return {"gait": SteeredGait(self.gait, p.back_rod_m / p.front_rod_m, p.rod_limit_rad)}

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0: at rest at `start_depth_m` below the origin or at `initial_pose`, fins straight, rods at 0.

        Parameters
        ----------
        seed : int, default 0
            Checked; it has no effect, because nothing here is random.
        """
        read_seed("manta", seed)
        self._reset_state()
        if self.initial_pose:
            self.place(**self.initial_pose)

    def place(self, **provided: Any) -> None:
        """Put the manta into another state; parts that are not given persist.

        A rod with a given angle was last commanded there.

        Parameters
        ----------
        **provided : array_like
            By the names of the outputs: position (3,) m, quaternion (4,), velocity (3,) m/s and angular_velocity (3,)
            rad/s in body axes, rod_angle (4,) rad and rod_rate (4,) rad/s, joint_position and joint_velocity (2, links,
            chains).

        Raises
        ------
        ArgumentError
            A shape does not fit, or an angle is beyond its limit; nothing changes.
        UnknownNameError, ModelError
            A name is wrong, the body is held, or a support is singular; nothing changes.
        """
        for name in provided:
            if name not in _PLACES:
                raise UnknownNameError("part of a state", name, _PLACES)
        p, before = self.parameters, self._state.copy()
        state = self._state.copy()
        if p.body == "fixed" and not provided.keys().isdisjoint(_PLACES[:4]):
            raise ModelError(
                "manta: place: expected only angles of rods and joints with body=fixed, got a pose or velocity of the "
                "body"
            )
        read_pose("manta: place", provided, state[lay.POSITION : lay.POSITION + 7], state[lay.TWIST : lay.TWIST + 6])
        rods = state[lay.RODS : lay.RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)
        if "rod_angle" in provided:
            angle = read_numbers("manta: place", "rod_angle", provided["rod_angle"], (4,))
            if np.abs(angle).max() > p.rod_limit_rad:
                raise ArgumentError(
                    f"manta: place: rod_angle: expected angles within {p.rod_limit_rad:g} rad, got {angle.tolist()}"
                )
            rods[:, 0], rods[:, 3:] = angle, angle[:, None]
        if "rod_rate" in provided:
            rods[:, 1] = read_numbers("manta: place", "rod_rate", provided["rod_rate"], (4,))
        shape = (2, p.links, p.chains)
        joints = {k: name for k, name in enumerate(_PLACES[6:]) if name in provided}
        values = {k: read_numbers("manta: place", name, provided[name], shape) for k, name in joints.items()}
        for k, value in values.items():
            state[self._coordinates.state_indices[-2 * value.size :].reshape(2, *shape)[k]] = value
        self._state[:] = state
        if self._settle():
            self._state[:] = before
            raise ModelError(
                "manta: place: rod_angle: expected angles that the support can follow, got angles at which it is "
                "singular"
            )

    def compiled_outputs(self) -> CompiledOutputs | None:
        """Return the outputs as compiled code computes them (rtmms.plant.HasCompiledOutputs).

        Returns
        -------
        CompiledOutputs or None
            None where kernels are plain Python, or a current varies.
        """
        return self._account_of(self.system)

    def _account_of(self, system: Any) -> CompiledOutputs | None:
        if not COMPILED or self._sampler is not None:
            return None
        out, values = system.out.ctypes.data, arguments(system)
        parts = {name: (out + 8 * part.start, part.stop - part.start) for name, _, part in self._parts}
        return CompiledOutputs(
            native(enter_account, *values, 0.0), tuple(0 if word is None else word for word in values), parts
        )

    @override
    def observe(self) -> dict[str, Array]:
        """Return all outputs at the present state, in new arrays."""
        if self._sampler is not None:
            m, s = self.system, self._state
            self._sampler.gather(
                self.model.finned, m.param, s, lay.POSITION, s, lay.TWIST, s, lay.SUPPORTS, m.joints, 0.0,
                float(s[lay.TIME]), m.drift, m.body_drift,
            )  # fmt: skip
        self._account(0.0)
        out = self._out.copy()
        return {name: out[part].reshape(shape) for name, shape, part in self._parts}

    def set(self, **values: Any) -> None:
        """Change parameters of SETTABLE at the present state, from the next step on; they persist over a reset.

        Snapshots from before the change then belong to another manta.

        Parameters
        ----------
        **values : object
            New values by name.

        Raises
        ------
        UnknownNameError, ModelError
            A parameter does not exist, is fixed, or its value is wrong; nothing changes.
        """
        refuse_fixed("manta", values, SETTABLE, (f.name for f in fields(MantaParameters)))
        parameters = replace(self.parameters, **values)
        model = compile_manta(parameters, self.dt, self.coupling)
        model.finned.relaxation[:] = self.model.finned.relaxation  # of the masses, which stay
        check_step(model, self.dt)
        # the record stays where it is, and so do all addresses of it; estimators and forks keep what they have
        self.system.adopt({"finned": model.finned, "body": model.body, "param": model.param})
        self.model = replace(self.model, links=model.links, param=model.param)
        self.parameters, self._key = parameters, self._hash()

    def environment(self) -> Environment:
        """Return the present gravity and water around the plant.

        Returns
        -------
        Environment
            Gravity, m/s2, and density, kg/m3.
        """
        p = self.parameters
        return Environment((0.0, 0.0, -p.gravity_m_s2), p.water_density_kg_m3)

    def _step_kernel(self) -> Any:
        return enter_step if COMPILED else None

    def _plain_step(self, system: Any) -> int:
        return int(step(system))

    def _words_of(self, system: Any) -> tuple[Any, ...]:
        return arguments(system)

    def _command_of(self, system: Any) -> Array:
        return np.asarray(system.command)

    def _places_of(self, system: Any) -> dict[str, tuple[int, int]]:
        return {
            "position": (lay.POSITION, 3), "quaternion": (lay.QUATERNION, 4), "velocity": (lay.TWIST, 3),
            "angular_velocity": (lay.TWIST + 3, 3),
        }  # fmt: skip

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
        return coordinates(self.parameters, self.model)

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
        return self._entry_of(enter_settle, fork.owner)

    def structure(self, by: Array) -> Any:
        """Return the structured derivatives of a step (rtmms.analysis.chart.HasStructure).

        Parameters
        ----------
        by : (k + 4,) array
            Differences to either side, of the coordinates and the commands.

        Returns
        -------
        MantaJacobian or None
            None for a manta to which they do not apply.
        """
        from rtmms.robots.manta.jacobian import MantaJacobian, has_manta_structure  # its kernels are for who asks

        if not COMPILED or not has_manta_structure(self.model, self._sampler is not None):
            return None
        return MantaJacobian(self.system.fork(), self._coordinates, by)

    def chart(self) -> StateChart:
        """Return the coordinates around the present state, for `rtmms.analysis`.

        Returns
        -------
        StateChart
            Chart that reads and writes this plant.
        """
        return StateChart(self._coordinates, self._state, self._settle)

    def variants(self) -> list[Variant]:
        """Return cheaper variants of this manta (rtmms.plant.HasVariants).

        Returns
        -------
        list[Variant]
            Each cheaper than the one before.
        """
        return [
            Variant(Manta(parameters, self.dt, coupling, self._field), self, variant)
            for parameters, coupling, variant in cheaper(self.parameters, self.coupling)
        ]

    def copy_state_from(self, other: Any) -> None:
        """Continue from the state of a variant (rtmms.plant.HasVariants).

        Parameters
        ----------
        other : Manta or Variant
            Plant whose state is copied.
        """
        carry_over(self, getattr(other, "manta", other))

    def step_error_estimator(self) -> MantaErrorEstimator:
        """Return memory and steps beside the plant's own, for `rtmms.plant.monitor`.

        Returns
        -------
        MantaErrorEstimator
            A new estimator.
        """
        return MantaErrorEstimator(self)

    def step_error(self, command: Array | None = None) -> StepError:
        """Return the error of a step from the present state, by two steps of half the length; nothing changes.

        Parameters
        ----------
        command : (4,) array, optional
            Held command, rad; None for the last one.

        Returns
        -------
        StepError
            1 where a step fails.
        """
        return step_error(self.step_error_estimator(), self._command.copy() if command is None else command)

    @property
    def accurate(self) -> dict[float, float]:
        """Known steps, s, by the error of the path, for the gait of 40 deg at 0.6 Hz (docs/guards.md)."""
        return {0.01: 2e-2, 0.001: 6e-3} if self.parameters.integrator == "implicit" else {}

    # --- the report --------------------------------------------------------------------------------------------------

    @property
    def weight(self) -> float:
        """Weight of body and fins in air, N."""
        p = self.parameters
        return (p.body_mass_kg + 2.0 * self.model.fin_mass) * p.gravity_m_s2

    def summarise(self, time: Array, trace: Mapping[str, Array]) -> dict[str, float | None]:
        """Return means over the last whole flapping periods within the second half of the run.

        Parameters
        ----------
        time : (k,) array
            s.
        trace : mapping of str to (k, ...) array
            Samples of TRACE_OUTPUTS.

        Returns
        -------
        dict[str, float or None]
            Numbers by name; None where undefined.
        """
        return summarise(time, trace, self.weight)

    # --- within ------------------------------------------------------------------------------------------------------

    @property
    def _steps(self) -> int:
        return int(self._state[lay.STEP])

    @_steps.setter
    def _steps(self, steps: int) -> None:
        self._state[lay.STEP] = steps

    def _hash(self) -> bytes:
        """Return a hash of everything that decides the dynamics, to which snapshots belong."""
        decisive = self.system.finned.model_bytes() + self.system.body.model_bytes() + self.system.param.tobytes()
        return hashlib.sha256(decisive).digest()

    def _reset_state(self) -> None:
        self.system.clear()
        self._state[:] = 0.0
        self._state[lay.POSITION + 2] = self.start_height
        self._state[lay.QUATERNION] = 1.0
        if not move_supports(self.model.finned, self._state, lay.RODS, ROD_SIZE, self._state, lay.SUPPORTS):
            raise ModelError(
                "support_length_m: expected a length that is possible with both rods at 0, got one at which the "
                "mechanism is singular"
            )

    def _advance(self) -> int:
        """Take one step under self._command; return its status."""
        status: int
        if COMPILED:
            status = enter_step(*self._addresses)
        else:
            status = step(self.system)
        return status

    def _settle(self) -> int:
        """Compute the elements of the state that depend on its coordinates; return the status."""
        status: int = enter_settle(*self._addresses) if COMPILED else settle(self.system)
        return status

    def _account(self, g: float) -> None:
        """Compute the outputs at the present state, in self._out; see `account`."""
        if COMPILED:
            enter_account(*self._addresses, g)
        else:
            account(self.system, g)

    def _fail(self, status: int) -> NoReturn:
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
        """Return the quantity of the failed step that left its range; the stage's values are still in the scratch."""
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


def load(
    dt: float | None = None,
    preset: str | None = None,
    coupling: str | None = None,
    current_field: Field | None = None,
    **parameters: Any,
) -> Manta:
    """Build the manta plant (entry point 'manta').

    Parameters
    ----------
    dt : float, optional
        Step, s; default 1e-3 (preset paper: 1e-2).
    preset : str, optional
        'paper' or None.
    coupling : str, optional
        'sequential' (default), 'iterated' or 'monolithic'.
    current_field : callable, optional
        f(x, y, z, t) -> (u, v, w), world m and s to m/s, compiled with numba: a current for the drag, beyond
        `current_m_s`.
    **parameters : Any
        Fields of `MantaParameters`, as numbers or as text.

    Returns
    -------
    Manta
        The plant at t = 0.

    Raises
    ------
    UnknownNameError, ModelError
        The step, the preset, the coupling, the field or a parameter is wrong.
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
