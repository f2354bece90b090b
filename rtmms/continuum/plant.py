"""A body with imposed strain as a plant: its step, its memory, and the copy that estimates the error of steps."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rtmms.base.errors import DivergedError, ModelError
from rtmms.base.jit import COMPILED, compile_progress, kernel
from rtmms.base.memory import FLAG, INTEGER, Layout, given, model, number, scratch, state, whole
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
from rtmms.plant.protocol import Channel, SavedState, Surroundings, refuse_fixed, water_density
from rtmms.plant.validation import limits_of, read_seed, refuse_not_finite, refuse_substeps

# One step of a continuous body: parameters follow their commands, and Runge and Kutta's fourth-order step moves it.


SOUND, BAD_COMMAND, NOT_FINITE, BAD_STRAIN = 0, 1, 2, 3
STAGES = 4
BODY = Layout(
    "ContinuousBody",
    state("y", Y_SIZE), state("led", 3, "parameters"), number("function", INTEGER),
    model("section", "along", K_WIDTH), model("inner", "points", "points"), number("spacing", unit="m"),
    model("gravity", 3, unit="m/s2"), model("current", 3, unit="m/s"), number("wake", FLAG),
    model("follow", "parameters", dtype=INTEGER), number("bandwidth", unit="rad/s"),
    model("mix", "parameters", "commands"), given("given", "commands"),
    model("limits", "commands", 2), number("time", unit="s"),
    number("dt", unit="s"), number("substeps", INTEGER),
    scratch("s", "along", P_WIDTH), scratch("base", 1, S_WIDTH), scratch("square", 6, 6), scratch("head", 3, 6),
    scratch("totals", TOTALS), scratch("rates", STAGES, RATE_SIZE), scratch("stage", Y_SIZE),
    scratch("total", RATE_SIZE),
    scratch("p", 3, "parameters"), whole("memory"), scratch("last", "memory"),
)  # fmt: skip
"""All that a continuous body steps with (columns: rtmms.continuum.layout). y: the state; led: of each parameter of the
strain field target, value and rate; function: address of the field; totals: what an evaluation leaves besides; p: the
parameters at the time of an evaluation, with rates; last: the state before the step."""


@kernel
def parameters_at(body: Any, t: float) -> None:
    """body.p (3, k), t seconds after the state's own time."""
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
    """One step of h from time t."""
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
    """Advance by dt with the command body.given. A status, see above: where it is not SOUND the state is that of the
    last sound substep."""
    mix, given, led, substeps = body.mix, body.given, body.led, body.substeps
    for k in range(body.memory.shape[0]):
        body.last[k] = body.memory[k]
    if not finite(given):
        return BAD_COMMAND
    saturate(given, body.limits)
    for k in range(mix.shape[0]):
        driven, total = False, 0.0
        for u in range(mix.shape[1]):
            if mix[k, u] != 0.0:
                driven = True
                total += mix[k, u] * given[u]
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
    """Everything at the present state into the scratch."""
    parameters_at(body, 0.0)
    evaluate(body, body.y, body.time, body.total)


_body_at = BODY.type().at()


@kernel
def enter_step(address: int) -> int:
    """One step of the body whose record stands at `address`; the status of `take_step`."""
    return take_step(_body_at(address))


@kernel
def enter_look(address: int) -> None:
    """`look_at` of that body."""
    look_at(_body_at(address))


# Steps of a continuous body beside the plant's own, in memory of their own (rtmms.plant.protocol.StepErrorEstimator).


class CosseratErrorEstimator(RecordErrorEstimator):
    """See rtmms.plant.protocol.StepErrorEstimator."""

    order, bounded, base_moves = 4, True, True

    def __init__(self, plant: Any) -> None:
        self.length = float(plant.body.length_m)
        super().__init__(plant)

    def _take_up(self) -> None:
        super()._take_up()
        if not COMPILED:
            setattr(self._system, "function", self._of.function)  # noqa: B010

    def _kept(self, memory: Array) -> SavedState:
        y = memory[:Y_SIZE]
        return SavedState(memory, y[:3], y[3:7], y[7:13], np.zeros(0), y[13:14])


# A body whose strain is imposed as a plant: commands move the parameters of its strain field, the fluid moves it.


HALF_TURN = np.array([-1.0, -1.0, 1.0])
"""e1, e2, e3 of the head seen from a body frame that looks ahead: x forward, y left, z up."""


class Remade(NamedTuple):
    """Of a plant with other parameters: what `set` takes from it."""

    parameters: Any
    body: CosseratBody
    field: Field
    current: tuple[float, float, float]
    gravity: float
    bandwidth: float


@dataclass(eq=False)
class CosseratPlant(KernelPlant):
    """See rtmms.plant.protocol.Plant. Body x is forward, y left, z up; the sections' own e1 points from head to tail.

    body, field    what it is, and how it bends
    actuators      channels, one for each column of field.mix
    dt, substeps   s, and steps of the method in each
    nodes, points  along the body, and of each cell (rtmms.continuum.body): integrals of order 2 points - 2
    current        (3,) m/s, uniform, world;  gravity m/s2;  wake  whether the tail sheds one
    bandwidth      rad/s, how fast parameters follow their commands
    Raises ModelError naming the point of the body, the field's time, or the parameter.
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
    remake: Callable[[CosseratPlant, Mapping[str, Any]], Remade] | None = None
    summary: Callable[[CosseratPlant, Array, Any], dict[str, float | None]] | None = None
    trace_outputs: tuple[str, ...] = ("position", "quaternion", "velocity", "power", "work")
    recent_outputs: tuple[str, ...] = ("curvature", "velocity")
    medium: str = "water"
    half_span_m: float | None = None

    def __post_init__(self) -> None:
        name = self.body.name
        if isinstance(self.dt, bool) or not (math.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"{name}: dt must be > 0 s, got {self.dt!r}")
        refuse_substeps(name, self.substeps)
        self.grid: Grid = grid(self.body.length_m, self.nodes, self.points)
        n, k, u = len(self.grid.x), len(self.field.start), len(self.actuators)
        if self.field.mix.shape != (k, u):
            raise ModelError(f"{name}: field.mix must have shape ({k}, {u}), got {self.field.mix.shape}")
        self.neutral = np.array([channel.neutral for channel in self.actuators], dtype=float)
        self._given = self.neutral.copy()
        self._memory: Array | None = None
        self._steps, self._name = 0, name
        self.home: Mapping[str, Any] = {}
        self._take_up()
        self.stations = np.arange(0, n, self.points - 1)
        m = len(self.stations)
        self.outputs = (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
            Channel("centreline", "m", (m, 3), "body"), Channel("curvature", "rad/m", (m, 3)),
            Channel("internal_wrench", "N, N m", (m, 6)),
            Channel("power", "W"), Channel("work", "J"), Channel("energy", "J"), Channel("lost", "J"),
        )  # fmt: skip
        with compile_progress(f"the kernels of '{name}'"):
            self.reset()
            self.step(self.neutral)
            self.observe()
        self.reset()

    def _take_up(self) -> None:
        """The arrays that the kernels get, of the present body, field and surroundings."""
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
            "follow": follow, "bandwidth": self.bandwidth, "mix": mix, "given": self._given, "time": self.time,
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

    def surroundings(self) -> Surroundings:
        """Return what the plant moves in, as it is now."""
        density = water_density(self.medium, self.body.water_density_kg_m3)
        return Surroundings((0.0, 0.0, -float(self.gravity)), density)

    def commanded_gaits(self) -> dict[str, ClockedWave]:
        """Return the wave of its curvature, where a command is the wave's frequency."""
        clocked = any(channel.name == FREQUENCY for channel in self.actuators)
        return {"wave": ClockedWave(self.actuators)} if clocked else {}

    @property
    def mass(self) -> float:
        """kg, without the fluid."""
        return float(self.section[:, at.K_MASS] @ self.section[:, at.K_WEIGHT])

    @property
    def now(self) -> int:
        """Steps since the reset."""
        return self._steps

    def set(self, **given: Any) -> None:
        """Change parameters of `settable` from the next step on; they stay over a reset. Raises UnknownNameError,
        ModelError; nothing is changed then."""
        if self.remake is None:
            raise ModelError(f"set: {self.body.name} has no parameters that can change while it runs")
        refuse_fixed(self.body.name, given, self.settable, (f.name for f in fields(self.parameters)))
        new = self.remake(self, given)
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
        """Back to t = 0, and to `home`. Nothing here is random: the seed is taken and changes nothing."""
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
        self.place(**self.home)

    def start(self, memory: Array, steps: int) -> None:
        """To the memory of a plant of the same field, on whatever grid, at the time of that many steps."""
        self.memory[:] = memory
        self._steps = steps

    def place(self, position: Any = None, quaternion: Any = None, twist: Any = None) -> None:
        """Put the head there: m, (w, x, y, z) and (6,) m/s, rad/s, all as the outputs have them. What is not given
        stays as it is."""
        turn = HALF_TURN if self.ahead else np.ones(3)
        if position is not None:
            self.state[:3] = position
        if quaternion is not None:
            self.state[3:7] = _turned(np.asarray(quaternion, dtype=float)) if self.ahead else quaternion
        if twist is not None:
            twist = np.asarray(twist, dtype=float)
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
        places = {"position": (0, 3), "work": (at.Y_WORK, 1), "lost": (at.Y_LOST, 1)}
        if not self.ahead:
            places |= {"quaternion": (3, 4), "velocity": (7, 3), "angular_velocity": (10, 3)}
        return places

    def _fail(self, status: int) -> NoReturn:
        """Go back to the last sound state, and raise the error that names what ran away from it."""
        name = self.body.name
        if status == BAD_COMMAND:
            refuse_not_finite(name, self.actuators, self._given)
        where = self.section[max(int(self.energies[at.BAD_POINT]), 0), at.K_X]
        self.memory[:] = self.system.last
        seen = self.observe()
        if status == BAD_STRAIN:
            reason = f"the strain field is not finite at X = {where:.6g} m"
            raise DivergedError(self.time + self.dt, "strain", seen, reason)
        reason = f"ran away within one step of {self.dt / self.substeps:.3g} s; take a smaller dt, or slower strains"
        raise DivergedError(self.time + self.dt, "velocity", seen, reason)

    def look(self) -> None:
        """Evaluate at the present state: `scratch` and `totals` are then of it."""
        self._time[0] = self._steps * self.dt
        if COMPILED:
            enter_look(self.system.address)
        else:
            look_at(self.system)

    @property
    def state(self) -> Array:
        """(Y_SIZE,), see rtmms.continuum.layout."""
        return np.asarray(self.system.y)

    @property
    def scratch(self) -> Array:
        """(n, P_WIDTH) of the last evaluation, see rtmms.continuum.layout."""
        return np.asarray(self.system.s)

    @property
    def energies(self) -> Array:
        """(TOTALS,) of the last evaluation."""
        return np.asarray(self.system.totals)

    @property
    def acceleration(self) -> Array:
        """(6,) of the head, its own frame (e1 to the tail), component derivative; of the last evaluation."""
        return np.array(self.system.total[6:12])

    def observe(self) -> dict[str, Array]:
        """The outputs at the present state, by name."""
        self.look()
        s, y, energies = self.scratch[self.stations], self.state, self.energies
        turn = HALF_TURN if self.ahead else np.ones(3)
        return {
            "position": y[:3].copy(), "quaternion": _turned(y[3:7]) if self.ahead else y[3:7].copy(),
            "velocity": turn * y[7:10], "angular_velocity": turn * y[10:13],
            "centreline": turn * s[:, at.P_POS : at.P_POS + 3],
            "curvature": s[:, at.P_STRAIN + 3 : at.P_STRAIN + 6].copy(),
            "internal_wrench": s[:, at.P_WRENCH : at.P_WRENCH + 6].copy(),
            "power": energies[at.POWER].copy(), "work": y[at.Y_WORK].copy(), "energy": energies[at.ENERGY].copy(),
            "lost": y[at.Y_LOST].copy(),
        }  # fmt: skip

    def chart(self) -> CosseratChart:
        """Coordinates around the present state, for `rtmms.linearise`."""
        return CosseratChart(self.memory, self.field, self.body.length_m)

    def step_error_estimator(self) -> CosseratErrorEstimator:
        """Memory and steps beside the plant's own, for `rtmms.plant.monitor`."""
        return CosseratErrorEstimator(self)

    def momentum(self) -> Array:
        """(6,) N s, N m s, of body and added mass in still water, world axes about the world's origin."""
        self.look()
        s, k, y = self.scratch, self.section, self.state
        a, b = s[-1, at.P_SUM : at.P_SUM + 21], np.zeros(6)
        for row, c in zip(s, k, strict=True):
            r, p = row[at.P_ROT : at.P_ROT + 9].reshape(3, 3), row[at.P_POS : at.P_POS + 3]
            v, w = row[at.P_TWIST : at.P_TWIST + 3], row[at.P_TWIST + 3 : at.P_TWIST + 6]
            own = r @ ((c[at.K_MASS] + c[at.K_ADDED : at.K_ADDED + 3]) * (r.T @ (v + np.cross(w, p))))
            j = c[at.K_INERTIA : at.K_INERTIA + 3] + np.array([c[at.K_ROLL], 0.0, 0.0])
            b[:3] += c[at.K_WEIGHT] * own
            b[3:] += c[at.K_WEIGHT] * (r @ (j * (r.T @ w)) + np.cross(p, own))
        b += unpack_inertia(a) @ y[7:13]
        rot = quaternion_matrix(y[3:7])
        force = rot @ b[:3]
        return np.concatenate([force, rot @ b[3:] + np.cross(y[:3], force)])

    def summarise(self, time: Array, trace: Mapping[str, Any]) -> dict[str, float | None]:
        """Numbers for the report."""
        return {} if self.summary is None else self.summary(self, time, trace)


def _turned(q: Array) -> Array:
    """(4,) the attitude of a frame turned by pi about z; its own inverse but for the sign, w >= 0."""
    turned = np.array([-q[3], q[2], -q[1], q[0]])
    return -turned if turned[0] < 0.0 else turned
