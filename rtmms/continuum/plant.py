"""Provide a body with imposed strain as a plant: its step, its memory, and the estimator of its step errors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rtmms.base.errors import DivergedError, ModelError, renamed_fields
from rtmms.base.jit import COMPILED, compile_progress, kernel
from rtmms.base.memory import FLAG, INTEGER, Layout, model, number, scratch, state, step_input, whole
from rtmms.base.override import override
from rtmms.base.renamed_outputs import OutputValues
from rtmms.base.spatial import Array, quaternion_matrix, unpack_inertia
from rtmms.continuum import layout as at
from rtmms.continuum.body import CosseratBody, Grid, grid, table
from rtmms.continuum.chart import CosseratChart
from rtmms.continuum.clocked_wave import FREQUENCY, ClockedWave
from rtmms.continuum.dynamics import evaluate
from rtmms.continuum.field import COAST, Field, check
from rtmms.continuum.layout import BAD_POINT, K_WIDTH, P_WIDTH, RATE_SIZE, TOTALS, Y_SIZE
from rtmms.mechanism.joint_laws import coast, settle
from rtmms.mechanism.step import displace, finite, normalise, saturate, uncurl
from rtmms.model.layout import S_WIDTH
from rtmms.plant.kernel_plant import KernelPlant, RecordErrorEstimator
from rtmms.plant.optional_protocols import SavedState
from rtmms.plant.protocol import Channel, Environment, refuse_fixed, water_density
from rtmms.plant.validation import limits_of, read_numbers, read_seed, refuse_not_finite, refuse_substeps

# One step: parameters follow their commands, and Runge and Kutta's fourth-order step moves the body.


SOUND = 0
BAD_COMMAND = 1
NOT_FINITE = 2
BAD_STRAIN = 3
STAGES = 4
BODY = Layout(
    "ContinuousBody",
    state("y", Y_SIZE), state("led", 3, "parameters"), number("function", INTEGER),
    model("section", "along", K_WIDTH), model("inner", "points", "points"), number("spacing", unit="m"),
    model("gravity", 3, unit="m/s2"), model("current", 3, unit="m/s"), number("wake", FLAG),
    model("follow", "parameters", dtype=INTEGER), number("bandwidth", unit="rad/s"),
    model("mix", "parameters", "commands"), step_input("command", "commands"),
    model("limits", "commands", 2), number("time", unit="s"),
    number("dt", unit="s"), number("substeps", INTEGER),
    scratch("s", "along", P_WIDTH), scratch("base", 1, S_WIDTH), scratch("square", 6, 6), scratch("head", 3, 6),
    scratch("totals", TOTALS), scratch("rates", STAGES, RATE_SIZE), scratch("stage", Y_SIZE),
    scratch("total", RATE_SIZE),
    scratch("p", 3, "parameters"), whole("memory"), scratch("last", "memory"),
)  # fmt: skip
"""Arrays of a continuous body's step (columns: rtmms.continuum.layout).

`y` is the state. `led` has target, value and rate of each parameter of the strain field. `function` is the address of
the field. `totals` has further results of an evaluation. `p` has the parameters at the time of an evaluation, with
rates. `last` is the state before the step.
"""


@kernel
def parameters_at(body: Any, t: float) -> None:
    """Write body.p (3, k) for a time after the state's own.

    Parameters
    ----------
    body : Record
        Record of `plant.BODY`.
    t : float
        s.
    """
    led, follow, bandwidth, p = body.led, body.follow, body.bandwidth, body.p
    n = p.shape[1]
    for k in range(n):
        target, value, rate = led[0, k], led[1, k], led[2, k]
        if follow[k] == COAST:
            a, b, c = coast(value, rate, target, bandwidth, t)
        else:
            a, b, c = settle(value, rate, target, bandwidth, t)
        p[0, k], p[1, k], p[2, k] = a, b, c


@kernel
def advance(body: Any, t: float, h: float) -> int:
    """Take one step of the method.

    Parameters
    ----------
    body : Record
        Record of `plant.BODY`.
    t : float
        Time at the start, s.
    h : float
        Length of the step, s.

    Returns
    -------
    int
        SOUND, NOT_FINITE or BAD_STRAIN.
    """
    state, rates, y, total, p, led = body.y, body.rates, body.stage, body.total, body.p, body.led
    status = SOUND
    for i in range(STAGES):
        c = 0.0 if i == 0 else 1.0 if i == 3 else 0.5
        if i > 0:
            displace(state, rates[i - 1], c * h, y)
        else:
            for m in range(Y_SIZE):
                y[m] = state[m]
        parameters_at(body, c * h)
        evaluate(body, y, t + c * h, rates[i])
        if body.totals[BAD_POINT] >= 0.0:
            status = BAD_STRAIN
        if i > 0:
            for m in range(total.shape[0]):
                total[m] = c * rates[i - 1, m]
            uncurl(rates[i], total, h)
    for m in range(total.shape[0]):
        total[m] = (rates[0, m] + 2.0 * rates[1, m] + 2.0 * rates[2, m] + rates[3, m]) / 6.0
    displace(state, total, h, y)
    normalise(y)
    if status == SOUND and not finite(y):
        status = NOT_FINITE
    if status != SOUND:
        return status
    for m in range(Y_SIZE):
        state[m] = y[m]
    parameters_at(body, h)
    for k in range(p.shape[1]):
        led[1, k], led[2, k] = p[0, k], p[1, k]
    return SOUND


@kernel
def take_step(body: Any) -> int:
    """Advance by dt with the command body.command.

    Parameters
    ----------
    body : Record
        Record of `plant.BODY`.

    Returns
    -------
    int
        Status; unless it is SOUND, the state is that of the last sound substep.
    """
    mix, values, led, substeps = body.mix, body.command, body.led, body.substeps
    for k in range(body.memory.shape[0]):
        body.last[k] = body.memory[k]
    if not finite(values):
        return BAD_COMMAND
    saturate(values, body.limits)
    for k in range(mix.shape[0]):
        driven, total = False, 0.0
        for u in range(mix.shape[1]):
            if mix[k, u] != 0.0:
                driven = True
                total += mix[k, u] * values[u]
        if driven:
            led[0, k] = total
    h = body.dt / substeps
    for i in range(substeps):
        status = advance(body, body.time + i * h, h)
        if status != SOUND:
            return status
    return SOUND


@kernel
def look_at(body: Any) -> None:
    """Evaluate everything at the present state, in the scratch.

    Parameters
    ----------
    body : Record
        Record of `plant.BODY`.
    """
    parameters_at(body, 0.0)
    evaluate(body, body.y, body.time, body.total)


_body_at = BODY.type().at()


@kernel
def enter_step(address: int) -> int:
    """Take one step of the body whose record is at `address`.

    Parameters
    ----------
    address : int
        Address of the record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_body_at(address))


@kernel
def enter_look(address: int) -> None:
    """Call `look_at` for the body whose record is at `address`.

    Parameters
    ----------
    address : int
        Address of the record.
    """
    look_at(_body_at(address))


class CosseratErrorEstimator(RecordErrorEstimator):
    """Step-error estimator of a continuous body (rtmms.plant.StepErrorEstimator), in its own memory.

    Parameters
    ----------
    plant : CosseratPlant
        Plant whose steps are measured.
    """

    order = 4
    bounded = True
    base_moves = True

    def __init__(self, plant: Any) -> None:
        self.length = float(plant.body.length_m)
        super().__init__(plant)

    def _take_up(self) -> None:
        super()._take_up()
        if not COMPILED:
            setattr(self._system, "function", self._of.function)  # noqa: B010

    def _view_saved_state(self, memory: Array) -> SavedState:
        y = memory[:Y_SIZE]
        return SavedState(memory, y[:3], y[3:7], y[7:13], np.zeros(0), y[13:14])


# The plant: commands move the parameters of the strain field, and the fluid moves the body.


HALF_TURN = np.array([-1.0, -1.0, 1.0])
"""e1, e2, e3 of the head in a body frame that looks ahead: x forward, y left, z up."""


class RebuiltParts(NamedTuple):
    """Parts of a plant with other parameters, which `set` takes over.

    Attributes
    ----------
    parameters : Any
        The new parameters.
    body : CosseratBody
        Body with these parameters.
    field : Field
        Strain field with these parameters.
    current : tuple[float, float, float]
        Current of the water, m/s, world.
    gravity : float
        m/s2.
    bandwidth : float
        rad/s.
    """

    parameters: Any
    body: CosseratBody
    field: Field
    current: tuple[float, float, float]
    gravity: float
    bandwidth: float


@renamed_fields(remake="rebuild")
@dataclass(eq=False)
class CosseratPlant(KernelPlant):
    """A body with imposed strain as a plant (rtmms.plant.protocol.Plant).

    Body x is forward, y left, z up; the sections' own e1 points from head to tail.

    Parameters
    ----------
    body : CosseratBody
        The body.
    field : Field
        Its strain field.
    actuators : tuple[Channel, ...], default ()
        Channels, one for each column of field.mix.
    dt : float, default 0.002
        Step, s.
    substeps : int, default 1
        Steps of the method in a step of the plant.
    nodes : int, default 64
        Points along the body.
    points : int, default 4
        Points of each cell (rtmms.continuum.body): integrals of order 2 points - 2.
    current : (3,) array_like, default (0.0, 0.0, 0.0)
        Uniform current, m/s, world.
    gravity : float, default 9.81
        m/s2, along -z.
    wake : bool, default True
        Whether the tail sheds a wake.
    bandwidth : float, default 20.0
        rad/s: parameters follow their commands with it.
    ahead : bool, default True
        Whether the outputs are in a frame with x forward; otherwise in the head's, with e1 to the tail.
    parameters : dataclass, optional
        The robot's own parameters, which the wire reports.
    settable : tuple[str, ...], default ()
        Parameters that `set` may change.
    rebuild : callable, optional
        (plant, parameters to change) -> parts of a plant with the new values.
    summary : callable, optional
        (plant, time (k,) s, samples) -> numbers for the report.
    trace_outputs : tuple[str, ...], optional
        Outputs that `summary` needs.
    recent_outputs : tuple[str, ...], optional
        Outputs of the last seconds for the figure of a run.
    medium : str, default 'water'
        'water', 'air' or ''.
    half_span_m : float, optional
        Depth above which a robot in water is near the surface, m.

    Raises
    ------
    ModelError
        Something is wrong; the message has the point of the body, the field's time, or the parameter.
    """

    body: CosseratBody
    field: Field
    actuators: tuple[Channel, ...] = ()
    dt: float = 2e-3
    substeps: int = 1
    nodes: int = 64
    points: int = 4
    current: Any = (0.0, 0.0, 0.0)
    gravity: float = 9.81
    wake: bool = True
    bandwidth: float = 20.0
    ahead: bool = True
    parameters: Any = None
    settable: tuple[str, ...] = ()
    rebuild: Callable[[CosseratPlant, Mapping[str, Any]], RebuiltParts] | None = None
    summary: Callable[[CosseratPlant, Array, Any], dict[str, float | None]] | None = None
    trace_outputs: tuple[str, ...] = ("position", "quaternion", "velocity", "power", "work")
    recent_outputs: tuple[str, ...] = ("curvature", "velocity")
    medium: str = "water"
    half_span_m: float | None = None

    def __post_init__(self) -> None:
        """Check the fields, build the arrays, and compile the kernels."""
        name = self.body.name
        if isinstance(self.dt, bool) or not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{name}: dt must be > 0 s, got {self.dt!r}")
        refuse_substeps(name, self.substeps)
        self.grid: Grid = grid(self.body.length_m, self.nodes, self.points)
        n, k, u = len(self.grid.x), len(self.field.start), len(self.actuators)
        if self.field.mix.shape != (k, u):
            raise ModelError(f"{name}: field.mix must have shape ({k}, {u}), got {self.field.mix.shape}")
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        self._command = self.neutral.copy()
        self._memory: Array | None = None
        self._steps, self._name = 0, name
        self.initial_pose: Mapping[str, Any] = {}
        self._take_up()
        self.stations = np.arange(0, n, self.points - 1)
        m = len(self.stations)
        self.outputs = (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("centreline", "m", (m, 3), "body"), Channel("curvature", "rad/m", (m, 3)),
            Channel("internal_wrench", "N, N m", (m, 6)),
            Channel("power", "W"), Channel("work", "J"), Channel("energy", "J"), Channel("dissipated_energy", "J"),
        )  # fmt: skip
        with compile_progress(f"the kernels of '{name}'"):
            self.reset()
            self.step(self.neutral)
            self.observe()
        self.reset()

    def _take_up(self) -> None:
        """Build the kernels' arrays of the present body, field and environment."""
        name = self.body.name
        current = np.array(self.current, dtype=float)
        if current.shape != (3,) or not np.all(np.isfinite(current)):
            raise ModelError(f"{name}: current must be 3 finite numbers, got {current.tolist()}")
        section = table(self.body, self.grid)
        check(self.field, np.ascontiguousarray(section[:, at.K_X]), np.array([0.1307, 0.5713, 5.313]), name)
        address = self.field.address()
        gravity = np.array([0.0, 0.0, -float(self.gravity)])
        follow, mix = np.array(self.field.follow, dtype=np.int64), np.ascontiguousarray(self.field.mix, dtype=float)
        self.section = section
        values = {
            "function": address if COMPILED else 0, "section": section, "inner": self.grid.inner,
            "spacing": self.grid.length, "gravity": gravity, "current": current, "wake": bool(self.wake),
            "follow": follow, "bandwidth": self.bandwidth, "mix": mix, "command": self._command, "time": self.time,
            "limits": limits_of(self.actuators),
            "dt": self.dt, "substeps": self.substeps,
        }  # fmt: skip
        self.system = BODY.make(values, memory=self._memory)
        if not COMPILED:  # plain Python calls the field itself
            setattr(self.system, "function", address)  # noqa: B010
        self._memory = self.memory = self.system.memory
        self._time = self.system.cell("time")
        self._bind_step()
        digest = hashlib.sha256(f"{name} {self.substeps} {self.bandwidth} {self.wake}".encode())
        for array in (section, self.grid.inner, gravity, current, follow, mix, self.field.start):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(getattr(self.field.function, "__qualname__", "").encode())
        self._key = digest.digest()

    def environment(self) -> Environment:
        """Return the present gravity and water around the plant.

        Returns
        -------
        Environment
            Gravity, m/s2, and density, kg/m3.
        """
        density = water_density(self.medium, self.body.water_density_kg_m3)
        return Environment((0.0, 0.0, -float(self.gravity)), density)

    def commanded_gaits(self) -> dict[str, ClockedWave]:
        """Return the wave of its curvature as a gait, where a command is the wave's frequency.

        Returns
        -------
        dict[str, ClockedWave]
            Gaits by name; empty without such a command.
        """
        clocked = any(channel.name == FREQUENCY for channel in self.actuators)
        return {"wave": ClockedWave(self.actuators)} if clocked else {}

    @property
    def mass(self) -> float:
        """Mass without the fluid, kg."""
        return float(self.section[:, at.K_MASS] @ self.section[:, at.K_WEIGHT])

    @property
    def now(self) -> int:
        """Steps since the reset."""
        return self._steps

    def set(self, **values: Any) -> None:
        """Change parameters of `settable` from the next step on; they persist over a reset.

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
            raise ModelError(f"set: {self.body.name} has no parameters that can change while it runs")
        refuse_fixed(self.body.name, values, self.settable, (f.name for f in fields(self.parameters)))
        new = self.rebuild(self, values)
        before = (self.parameters, self.body, self.field, self.current, self.gravity, self.bandwidth)
        self.parameters, self.body, self.field, self.current, self.gravity, self.bandwidth = new
        try:
            self._take_up()
        except ModelError:
            self.parameters, self.body, self.field, self.current, self.gravity, self.bandwidth = before
            self._take_up()
            raise
        fixed = ~np.any(self.field.mix != 0.0, axis=1)
        self.system.led[:2, fixed] = self.field.start[fixed]  # constants of the field among its parameters

    def reset(self, seed: int = 0) -> None:
        """Go back to t = 0, and to `initial_pose`.

        Parameters
        ----------
        seed : int, default 0
            Checked; it has no effect, because nothing here is random.
        """
        read_seed(self.body.name, seed)
        field, system = self.field, self.system
        system.clear()
        self.memory[:] = 0.0
        self.state[2] = self.start_height
        self.state[at.Y_QUATERNION + (3 if self.ahead else 0)] = 1.0  # head's e1 to world -x: it looks to +x
        coast = field.follow == COAST
        system.led[0] = field.start
        system.led[1], system.led[2] = np.where(coast, 0.0, field.start), np.where(coast, field.start, 0.0)
        self._steps = 0
        self.place(**self.initial_pose)

    def start(self, memory: Array, steps: int) -> None:
        """Go to the memory of a plant of the same field, on any grid, at a time.

        Parameters
        ----------
        memory : (w,) array
            Memory of that plant.
        steps : int
            Number of steps since the reset.
        """
        self.memory[:] = memory
        self._steps = steps

    def place(self, position: Any = None, quaternion: Any = None, twist: Any = None) -> None:
        """Put the head into a pose and motion; parts that are not given persist.

        Parameters
        ----------
        position : (3,) array_like, optional
            m, world.
        quaternion : (4,) array_like, optional
            (w, x, y, z), as the output.
        twist : (6,) array_like, optional
            m/s and rad/s, as the outputs.
        """
        turn = HALF_TURN if self.ahead else np.ones(3)
        values = {"position": (position, 3), "quaternion": (quaternion, 4), "twist": (twist, 6)}
        read = {
            name: read_numbers(f"{self.body.name}: place", name, value, (size,))
            for name, (value, size) in values.items() if value is not None
        }  # fmt: skip
        if position is not None:
            self.state[:3] = read["position"]
        if quaternion is not None:
            self.state[3:7] = _turned(read["quaternion"]) if self.ahead else read["quaternion"]
        if twist is not None:
            twist = read["twist"]
            self.state[7:10], self.state[10:13] = turn * twist[:3], turn * twist[3:]

    def _step_kernel(self) -> Any:
        return enter_step if COMPILED else None

    def _plain_step(self, system: Any) -> int:
        return int(take_step(system))

    def _prepare(self) -> None:
        self._time[0] = self._steps * self.dt

    def _start_of(self, system: Any) -> Array:
        return np.asarray(system.cell("time"))

    def _sound_of(self, system: Any) -> Array:
        return np.asarray(system.last)

    def _places_of(self, system: Any) -> dict[str, tuple[int, int]]:
        places = {"position": (0, 3), "work": (at.Y_WORK, 1), "dissipated_energy": (at.Y_LOST, 1)}
        if not self.ahead:
            places |= {"quaternion": (3, 4), "velocity": (7, 3), "angular_velocity": (10, 3)}
        return places

    def _fail(self, status: int) -> NoReturn:
        """Go back to the last sound state, and raise the error that names the quantity that diverged."""
        name = self.body.name
        if status == BAD_COMMAND:
            refuse_not_finite(name, self.actuators, self._command)
        where = self.section[max(int(self.energies[at.BAD_POINT]), 0), at.K_X]
        self.memory[:] = self.system.last
        outputs = self.observe()
        if status == BAD_STRAIN:
            reason = f"the strain field is not finite at X = {where:.6g} m"
            raise DivergedError(self.time + self.dt, "strain", outputs, reason)
        reason = f"ran away within one step of {self.dt / self.substeps:.3g} s; take a smaller dt, or slower strains"
        raise DivergedError(self.time + self.dt, "velocity", outputs, reason)

    def look(self) -> None:
        """Evaluate at the present state: `scratch` and `energies` then belong to it."""
        self._time[0] = self._steps * self.dt
        if COMPILED:
            enter_look(self.system.address)
        else:
            look_at(self.system)

    @property
    def state(self) -> Array:
        """(Y_SIZE,) state, see rtmms.continuum.layout."""
        return np.asarray(self.system.y)

    @property
    def scratch(self) -> Array:
        """(n, P_WIDTH) scratch of the last evaluation, see rtmms.continuum.layout."""
        return np.asarray(self.system.s)

    @property
    def energies(self) -> Array:
        """(TOTALS,) further results of the last evaluation."""
        return np.asarray(self.system.totals)

    @property
    def acceleration(self) -> Array:
        """(6,) component derivative of the head's twist, its own frame (e1 to the tail), of the last evaluation."""
        return np.array(self.system.total[6:12])

    @override
    def observe(self) -> dict[str, Array]:
        self.look()
        s, y, energies = self.scratch[self.stations], self.state, self.energies
        turn = HALF_TURN if self.ahead else np.ones(3)
        return OutputValues({
            "position": y[:3].copy(), "quaternion": _turned(y[3:7]) if self.ahead else y[3:7].copy(),
            "velocity": turn * y[7:10], "angular_velocity": turn * y[10:13],
            "centreline": turn * s[:, at.P_POS : at.P_POS + 3],
            "curvature": s[:, at.P_STRAIN + 3 : at.P_STRAIN + 6].copy(),
            "internal_wrench": s[:, at.P_WRENCH : at.P_WRENCH + 6].copy(),
            "power": energies[at.POWER].copy(), "work": y[at.Y_WORK].copy(), "energy": energies[at.ENERGY].copy(),
            "dissipated_energy": y[at.Y_LOST].copy(),
        })  # fmt: skip

    def chart(self) -> CosseratChart:
        """Return the coordinates around the present state, for `rtmms.linearise`.

        Returns
        -------
        CosseratChart
            Chart that reads and writes this plant.
        """
        return CosseratChart(self.memory, self.field, self.body.length_m)

    def step_error_estimator(self) -> CosseratErrorEstimator:
        """Return memory and steps beside the plant's own, for `rtmms.plant.monitor`.

        Returns
        -------
        CosseratErrorEstimator
            A new estimator.
        """
        return CosseratErrorEstimator(self)

    def momentum(self) -> Array:
        """Return the momentum of body and added mass in still water, about the world's origin.

        Returns
        -------
        (6,) array
            Linear, N s, and angular, N m s, world.
        """
        self.look()
        s, k, y = self.scratch, self.section, self.state
        a, b = s[-1, at.P_SUM : at.P_SUM + 21], np.zeros(6)
        for row, c in zip(s, k, strict=True):
            r, p = row[at.P_ROT : at.P_ROT + 9].reshape(3, 3), row[at.P_POS : at.P_POS + 3]
            v, w = row[at.P_TWIST : at.P_TWIST + 3], row[at.P_TWIST + 3 : at.P_TWIST + 6]
            section_momentum = r @ ((c[at.K_MASS] + c[at.K_ADDED : at.K_ADDED + 3]) * (r.T @ (v + np.cross(w, p))))
            j = c[at.K_INERTIA : at.K_INERTIA + 3] + np.array([c[at.K_ROLL], 0.0, 0.0])
            b[:3] += c[at.K_WEIGHT] * section_momentum
            b[3:] += c[at.K_WEIGHT] * (r @ (j * (r.T @ w)) + np.cross(p, section_momentum))
        b += unpack_inertia(a) @ y[7:13]
        rot = quaternion_matrix(y[3:7])
        force = rot @ b[:3]
        return np.concatenate([force, rot @ b[3:] + np.cross(y[:3], force)])

    def summarise(self, time: Array, trace: Mapping[str, Any]) -> dict[str, float | None]:
        """Return numbers for the report.

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


def _turned(q: Array) -> Array:
    """Return the attitude of a frame turned by pi about z; its own inverse except for the sign, w >= 0."""
    turned = np.array([-q[3], q[2], -q[1], q[0]])
    return -turned if turned[0] < 0.0 else turned
