"""Linear models of plants: A and B of trees by a complex step, of any other plant by differences of one step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rtmms.analysis.block_matrices import Bordered
from rtmms.analysis.chart import Chart, chart_of
from rtmms.base.errors import ModelError, RtmmsWarning
from rtmms.base.spatial import Array, ad
from rtmms.dynamics.hybrid import stand
from rtmms.fluids.immersed import held_flow
from rtmms.mechanism.actuator_arrays import PUSH
from rtmms.mechanism.body_actuators import CHANNEL, LAG
from rtmms.mechanism.joint_laws import TORQUE, Actuator
from rtmms.mechanism.plant import TreePlant
from rtmms.mechanism.tendons import tendon_states
from rtmms.plant.coordinates import coordinates_between
from rtmms.plant.optional_protocols import Coordinates, HasCoordinates
from rtmms.plant.protocol import Channel, Plant

# A linear model of a plant around a motion.


class OperatingPoint(NamedTuple):
    """State at which a linear model was taken.

    Attributes
    ----------
    coordinates : Coordinates | None
        Coordinates of the plant; None where it has none.
    state : Array
        State where the plant has coordinates.
    snapshot : bytes
        Snapshot of any other plant.
    """

    coordinates: Coordinates | None
    state: Array
    snapshot: bytes


@dataclass(frozen=True)
class Linear:
    """Linear model around a motion, with x the error of the state and u that of the command.

    d/dt x = A x + B u where `dt` is None, else x[k + 1] = A x[k] + B u[k] with u held over steps of dt. Outputs add y =
    C x, and parameters P (p - p0).

    Attributes
    ----------
    packed : Array | Bordered
        A as it was computed: an array, or the blocks that are not zero.
    b : Array
        (k, u) matrix B.
    states, inputs : tuple[str, ...]
        Names, in order; see Notes.
    dt : float | None, optional
        Time, s, of a step, or of the period that A is the map of; None for d/dt x.
    error : float, default 1e-15
        Error of the worst entry, in the units of the chart's sizes: rounding for a complex step, else an estimate.
    units, input_units : tuple[str, ...], default ()
        Units of states and inputs, '' where the plant does not declare them.
    c : Array | None, optional
        (rows, k) slopes of the requested outputs, each number a row.
    outputs, output_units : tuple[str, ...], default ()
        Names and units of the rows.
    p : Array | None, optional
        (k, numbers), None without requested parameters.
    parameters : tuple[str, ...], default ()
        Names of its columns.
    around : OperatingPoint | None
        State at which it was taken; None for a mean along a motion, or of d/dt x.
    method : str, default ''
        'structure', 'differences', 'stepping' (by snapshot, restore and step), or 'complex step'.

    Notes
    -----
    States of a plant of a mechanism are body-frame position error e and attitude error theta (R = R_ref exp theta^, p =
    p_ref + R_ref e), twist error, q and qd of the joints driven by torque. Value and rate of the filter of each
    commanded offset and gain follow, and the lagged command of each actuator on a body with a lag. States of any other
    plant are those of its chart.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms.analysis.linearise import Linear
    >>> decay = Linear(np.array([[-1.0]]), np.array([[1.0]]), ("x",), ("u",))
    >>> decay.held(0.1).a.round(4)
    array([[0.9048]])
    """

    packed: Array | Bordered
    b: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    dt: float | None = None
    error: float = 1e-15
    units: tuple[str, ...] = ()
    input_units: tuple[str, ...] = ()
    c: Array | None = None
    outputs: tuple[str, ...] = ()
    output_units: tuple[str, ...] = ()
    p: Array | None = None
    parameters: tuple[str, ...] = ()
    around: OperatingPoint | None = field(default=None, repr=False, compare=False)
    method: str = ""

    @cached_property
    def a(self) -> Array:
        """A as one array (k, k), made at its first use where A is stored as blocks."""
        return self.packed.dense() if isinstance(self.packed, Bordered) else self.packed

    def deviation(self, plant: Plant) -> Array:
        """Return the deviation of a plant's present state from the one of this model; the plant stays in its state.

        Parameters
        ----------
        plant : Plant
            The plant that was linearised, or another of the same robot.

        Returns
        -------
        Array
            (k,) x.

        Raises
        ------
        ModelError
            The model was not taken at a single state, or the plant has other states.
        """
        if self.around is None:
            raise ModelError(
                "deviation: expected a linear model at one state, got one along a path; make it with "
                "rtmms.linearise(plant)"
            )
        coordinates, state, snapshot = self.around
        if coordinates is not None:
            if not isinstance(plant, HasCoordinates) or plant.coordinates().names != coordinates.names:
                raise ModelError(_other(self.states, plant))
            return coordinates_between(coordinates, state, plant.present()[0])
        now = plant.snapshot()
        try:
            plant.restore(snapshot)
            chart = chart_of(plant)
        finally:
            plant.restore(now)
        return chart.read()

    def held(self, dt: float) -> Linear:
        """Return the exact model of a step of dt with the command held: exp((A B; 0 0) dt).

        Parameters
        ----------
        dt : float
            Time step, s.

        Returns
        -------
        Linear
            Model of a step.

        Raises
        ------
        ModelError
            This is a model of a step already.
        """
        from scipy import linalg

        if self.dt is not None:
            raise ModelError(
                f"linear model: expected a continuous model (dt=None), got a discrete one with steps of {self.dt:g} s"
            )
        k, u = self.b.shape
        both = np.zeros((k + u, k + u))
        both[:k, :k], both[:k, k:] = self.a, self.b
        expm: Any = linalg.expm
        step: Array = expm(both * dt)
        return Linear(step[:k, :k], step[:k, k:], self.states, self.inputs, dt, self.error, method=self.method)


def _other(states: tuple[str, ...], plant: Any) -> str:
    return (
        f"deviation: expected a plant with the {len(states)} states of this linear model ({', '.join(states[:3])}, "
        f"...), got a {type(plant).__name__} of others"
    )


@runtime_checkable
class HasStepDerivatives(Protocol):
    """Plant whose simulator computes the derivatives of a step."""

    def step_derivatives(self, command: Array) -> Linear | None:
        """Return A and B at the present state, which stays.

        Parameters
        ----------
        command : Array
            (n,) command of the step.

        Returns
        -------
        Linear | None
            None where only differences of the plant's steps are possible.
        """


# Linearisation of any plant: A and B of one step, by central differences through snapshot, restore and step.


DIFFERENCE_STEP = 1e-6
"""Larger step of the two differences, in the chart's sizes. It is small because drag as |w| w has a kink at w = 0,
which costs an error of order STEP; rounding costs about 1e-16 / STEP.
"""


def linearise_step(plant: Plant, commands: Array | None = None, *, chart: Chart | None = None) -> Linear:
    """Compute x[k + 1] = A x[k] + B u[k] of a plant's step, at the present state or as the mean along a motion.

    The state is left as it was, bit for bit.

    Parameters
    ----------
    plant : Plant
        Any plant with a chart.
    commands : Array | None, optional
        (steps, n_actuators), or (n_actuators,): the held command; several rows: the mean along these steps, each around
        the plant's state at that time. Default: the neutral command.
    chart : Chart | None, optional
        Coordinates; default the plant's own. Along a motion the plant must have its own.

    Returns
    -------
    Linear
        A and B.

    Raises
    ------
    ModelError
        The commands have a wrong shape, or there is no chart.

    Notes
    -----
    Central differences with steps h and h / 2, h 1e-6 of each coordinate's size, extrapolated. `error` is the largest
    correction by the extrapolation, in those sizes: an upper estimate wherever the step is smooth. It includes a kink
    within h.
    """
    held = np.array([c.neutral for c in plant.actuators]) if commands is None else np.asarray(commands, dtype=float)
    held = np.atleast_2d(held)
    if held.ndim != 2 or held.shape[1] != len(plant.actuators) or not len(held):
        raise ModelError(f"linearise: commands must have shape (steps, {len(plant.actuators)}), got {held.shape}")
    if chart is not None and len(held) > 1:
        raise ModelError(
            "linearise: chart: expected none with several commands; give the plant a method chart() instead"
        )
    warn_beyond_limits(plant, held)
    if len(held) == 1:
        return _linearise_command(plant, held[0], chart)
    return mean_of(plant, held, lambda command: _linearise_command(plant, command))


def warn_beyond_limits(plant: Plant, commands: Array) -> None:
    """Warn of the first actuator whose commands the loop would clamp: no run has the motion of such a model.

    Parameters
    ----------
    plant : Plant
        The plant.
    commands : Array
        (steps, n_actuators) commands.
    """
    for channel, values in zip(plant.actuators, np.atleast_2d(commands).T, strict=True):
        low = -math.inf if channel.lower is None else channel.lower
        high = math.inf if channel.upper is None else channel.upper
        worst = float(values[np.argmax(np.maximum(low - values, values - high))])
        if not low <= worst <= high:
            warnings.warn(
                f"linearise: {channel.name}: expected a command from {low:g} to {high:g} {channel.unit}, got "
                f"{worst:g}; in a run it would be clamped", RtmmsWarning, stacklevel=3,
            )  # fmt: skip
            return


def mean_of(plant: Plant, commands: Array, at: Callable[[Array], Linear]) -> Linear:
    """Return the mean of linear models along a motion; the plant is left as it was.

    Parameters
    ----------
    plant : Plant
        Plant at the start of the motion.
    commands : Array
        (steps, n_actuators) commands.
    at : Callable[[Array], Linear]
        Function of a command that returns the model at the plant's present state.

    Returns
    -------
    Linear
        Means of A and B, and the largest error.
    """
    blob, result = plant.snapshot(), []
    try:
        for command in commands:
            result.append(at(command))
            plant.step(command)
    finally:
        plant.restore(blob)
    first = result[0]
    a, b = np.mean([item.a for item in result], axis=0), np.mean([item.b for item in result], axis=0)
    error = max(item.error for item in result)
    return Linear(a, b, first.states, first.inputs, first.dt, error, method=first.method)


def _linearise_command(plant: Plant, command: Array, known_chart: Chart | None = None) -> Linear:
    chart = chart_of(plant) if known_chart is None else known_chart
    blob, size, k = plant.snapshot(), np.asarray(chart.size, dtype=float), len(chart.names)
    reach = reach_of(plant.actuators)

    def after(x: Array, u: Array) -> Array:
        plant.restore(blob)
        if np.any(x):
            chart.write(x)
        plant.step(u)
        return chart.read()

    def slope(h: float) -> Array:
        """(k, k + u) in the chart's sizes, and of each actuator's range."""
        columns = []
        for m in range(k + len(command)):
            x, u = np.zeros(k), np.zeros(len(command))
            if m < k:
                x[m] = h * size[m]
            else:
                u[m - k] = h * reach[m - k]
            columns.append((after(x, command + u) - after(-x, command - u)) / (2.0 * h) / size)
        return np.array(columns).T

    try:
        coarse, fine = slope(DIFFERENCE_STEP), slope(DIFFERENCE_STEP / 2.0)
    finally:
        plant.restore(blob)
    both = fine + (fine - coarse) / 3.0  # Richardson: the error in h^2 drops out
    a, b = both[:, :k] * size[:, None] / size, both[:, k:] * size[:, None] / reach
    inputs = tuple(channel.name for channel in plant.actuators)
    return Linear(
        a, b, tuple(chart.names), inputs, plant.dt, float(np.max(np.abs(fine - coarse), initial=0.0)) / 3.0,
        input_units=tuple(channel.unit for channel in plant.actuators),
        around=OperatingPoint(None, np.zeros(0), blob) if known_chart is None else None, method="stepping",
    )  # fmt: skip


def reach_of(actuators: Sequence[Channel]) -> Array:
    """Return the size that counts as one of each actuator: half its range, 1 where it has no limits.

    Parameters
    ----------
    actuators : Sequence[Channel]
        Channels of the actuators.

    Returns
    -------
    Array
        (n,).
    """
    spans = [(c.upper - c.lower) / 2.0 if c.upper is not None and c.lower is not None else 1.0 for c in actuators]
    return np.array([span if span > 0.0 else 1.0 for span in spans])


# Linearisation of a plant for control: A and B by a complex step, or of a step by differences for any other plant.


DIFFERENCE = 1e-6
ComplexArray = npt.NDArray[np.complex128]
STEP = 1e-30  # imag(f(x + i h)) / h: no difference is taken, so h may be as small as this and the error is rounding


def linearise(
    plant: Plant, *, over_period: bool = False, commands: Array | None = None, chart: Chart | None = None
) -> Linear:  # fmt: skip
    """Return A (k, k) and B (k, u) of a plant at its present state and time, or their mean along its motion from there.

    The state is left as it was.

    Parameters
    ----------
    plant : Plant
        Any plant.
    over_period : bool, default False
        The mean over one period of the plant's own gait.
    commands : Array | None, optional
        (steps, n_actuators): the mean along these; one row: at the present state, under that command. Default: the held
        command for a plant of a mechanism, the neutral command for any other.
    chart : Chart | None, optional
        Coordinates of a plant that is not of a mechanism, where it has none of its own.

    Returns
    -------
    Linear
        The model.

    Raises
    ------
    ModelError
        The plant has no such period, or declares no coordinates.

    Notes
    -----
    For a plant of a mechanism it is of d/dt x, by a complex step through the equations of motion. Its error is
    rounding, about 1e-15 of the largest entry; with a flow given by a function it is that of its central differences,
    about 1e-9. For any other plant it is of one step, see `linearise_step`, with an estimated error. At a kink (|V| V
    at V = 0, Coulomb friction at rest) it is the derivative on the side of the state, or the mean of both.
    """
    if not isinstance(plant, TreePlant):
        if over_period:
            raise ModelError(
                f"linearise: over_period: expected a plant with a gait, got a {type(plant).__name__} without one; give "
                "the commands of one period"
            )
        return linearise_step(plant, commands, chart=chart)
    if over_period:
        if not np.any(plant.law.motion[:, 1:]):
            raise ModelError(f"{plant.model.name}: linearise: over_period: expected a periodic gait, got none")
        if commands is not None:
            raise ModelError(f"{plant.model.name}: linearise: expected over_period or commands, got both")
        steps = max(1, round(2.0 * math.pi / plant.law.omega / plant.dt))
        commands = np.tile(plant.commanded, (steps, 1))
    if commands is not None:
        warn_beyond_limits(plant, np.asarray(commands, dtype=float))
    return _at(plant) if commands is None else mean_of(plant, commands, lambda command: _at(plant))


def _at(plant: TreePlant) -> Linear:
    model, n = plant.model, plant.model.n
    free = np.flatnonzero(~model.imposed)
    slow = [(k, drive) for k, drive in enumerate(plant.drives) if drive.kind not in (TORQUE, PUSH)]
    pushes = [(i, int(row[CHANNEL]), float(row[LAG])) for i, row in enumerate(plant.attached.pushes)]
    lagging = [push for push in pushes if push[2] > 0.0]
    m, filters = len(free), len(slow)
    tendons = tendon_states(plant.attached.tendons)
    size, inputs = 12 + 2 * m + 2 * filters + len(lagging) + sum(cord.size for cord in tendons), len(plant.drives)
    a, b = np.zeros((size, size)), np.zeros((size, inputs))
    call = _Complex(plant)
    rows = np.concatenate([6 + n + np.arange(6), 12 + n + free])  # twist' and qdd in a rate
    for k in range(12 + 2 * m):
        a[6:12, k], a[12 + m : 12 + 2 * m, k] = np.split(call.state(k, free)[rows], [6])
    for f, (k, drive) in enumerate(slow):
        w = float(plant.bandwidth[max(drive.joint, 0)])
        at = 12 + 2 * m + 2 * f
        for rate in (0, 1):
            a[6:12, at + rate], a[12 + m : 12 + 2 * m, at + rate] = np.split(call.servo(drive, rate)[rows], [6])
        if w < 0.0:  # a commanded rate: x'' = |w| (command - x')
            a[at, at + 1], a[at + 1, at + 1], b[at + 1, k] = 1.0, w, -w
            continue
        a[at, at + 1], a[at + 1, at : at + 2], b[at + 1, k] = 1.0, (-w * w, -2.0 * w), w * w
    for k, drive in enumerate(plant.drives):
        if drive.kind != PUSH:
            b[6:12, k], b[12 + m : 12 + 2 * m, k] = np.split(call.command(drive)[rows], [6])
    at = 12 + 2 * m + 2 * filters
    for i, k, tau in pushes:  # tau x' = command - x
        moved, column = (a, at) if tau > 0.0 else (b, k)
        moved[6:12, column], moved[12 + m : 12 + 2 * m, column] = np.split(call.push(i, k, tau)[rows], [6])
        if tau > 0.0:
            if plant.attached.momentum is not None:  # its acceleration follows the command at once
                b[6:12, k], b[12 + m : 12 + 2 * m, k] = np.split(call.push(i, k, 0.0)[rows], [6])
            a[at, at], b[at, k], at = -1.0 / tau, 1.0 / tau, at + 1
    for i, tendon in enumerate(tendons):
        if tendon.channel < 0:
            continue
        if tendon.size == 0:
            b[6:12, tendon.channel], b[12 + m : 12 + 2 * m, tendon.channel] = np.split(
                call.direct(tendon.channel)[rows], [6]
            )
        for k in range(tendon.size):
            a[6:12, at + k], a[12 + m : 12 + 2 * m, at + k] = np.split(call.pull(i, k)[rows], [6])
        a[at : at + tendon.size, at : at + tendon.size], b[at : at + tendon.size, tendon.channel] = tendon.a, tendon.b
        at += tendon.size
    # the errors of pose and joints: delta' = -ad_eta delta + d eta, dq' = d qd
    a[:6, :6], a[:6, 6:12] = -ad(plant.vector[7 + n : 13 + n]), np.eye(6)
    a[12 : 12 + m, 12 + m : 12 + 2 * m] = np.eye(m)
    names = [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
    names += ["vx", "vy", "vz", "wx", "wy", "wz", *(model.joint_names[j] for j in free)]
    names += [f"{model.joint_names[j]}.rate" for j in free]
    for _, drive in slow:
        names += [f"{drive.channel.name}.filter", f"{drive.channel.name}.filter_rate"]
    names += [f"{plant.drives[k].channel.name}.lag" for _, k, _ in lagging]
    for tendon in (item for item in tendons if item.channel >= 0):
        name = plant.drives[tendon.channel].channel.name
        names += [[], [f"{name}.lag"], [f"{name}.filter", f"{name}.filter_rate"]][tendon.size]
    driven = tuple(drive.channel.name for drive in plant.drives)
    return Linear(a, b, tuple(names), driven, method="complex step")


class _Complex:
    """One complex evaluation at a time, with one entry of the state, of a filter or of a command displaced."""

    def __init__(self, plant: TreePlant) -> None:
        self.plant = plant
        self.held = self._water(plant.vector).astype(complex)

    def _water(self, vector: Array) -> Array:
        """Return (elements, 6) m/s, m/s2 of a flow given by a function, at the elements of a state."""
        plant, s = self.plant, self.plant.model.scratch()
        model, n = plant.model, plant.model.n
        if plant.flow.field is not None:
            stand(model, vector[:3], vector[3:7], vector[7 : 7 + n], s)
        return held_flow(model, plant.flow, s, plant.immersed, plant.time)

    def _held(self, vector: ComplexArray) -> ComplexArray:
        """Return the same with its slope along the displacement of `vector`.

        The function of the flow accepts no complex numbers.
        """
        slope = vector.imag / STEP
        if self.plant.flow.field is None or not np.any(slope[: 7 + self.plant.model.n]):
            return self.held
        ends = [self._water(vector.real + sign * DIFFERENCE * slope) for sign in (1.0, -1.0)]
        moved: ComplexArray = self.held + 1j * STEP * (ends[0] - ends[1]) / (2.0 * DIFFERENCE)
        return moved

    def _rate(self, vector: ComplexArray, torque: ComplexArray, target: ComplexArray, servo: ComplexArray) -> Array:
        rate = self.plant.rates(vector, torque, target, servo, self._held(vector))
        slope: Array = rate.imag / STEP
        return slope

    def _copies(self) -> list[ComplexArray]:
        """Return copies of state vector, torque, target, servo."""
        return [array.astype(complex) for array in (self.plant.vector, *self.plant.held())]

    def state(self, k: int, free: npt.NDArray[np.intp]) -> Array:
        """Return the derivative of the rate by error coordinate k."""
        vector, torque, target, servo = self._copies()
        n, m, h = self.plant.model.n, len(free), 1j * STEP
        if k < 3:  # p = p_ref + R_ref e
            vector[:3] += h * self.plant.state.rotation[:, k]
        elif k < 6:  # Q = Q_ref (1, theta / 2)
            w, x, y, z = self.plant.vector[3:7]
            by = np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
            vector[3:7] += 0.5 * h * by[:, k - 3]
        elif k < 12:
            vector[7 + n + k - 6] += h
        elif k < 12 + m:
            vector[7 + free[k - 12]] += h
        else:
            vector[13 + n + free[k - 12 - m]] += h
        return self._rate(vector, torque, target, servo)

    def servo(self, drive: Actuator, rate: int) -> Array:
        """Return the derivative by the value (rate 0) or the rate (1) of the filter of a commanded offset or gain."""
        vector, torque, target, servo = self._copies()
        kind, joint = drive.kind, drive.joint
        column = 2 * (kind - 1) + rate
        servo[joint if joint >= 0 else slice(None), column] += 1j * STEP
        return self._rate(vector, torque, target, servo)

    def push(self, i: int, channel: int, tau: float) -> Array:
        """Return the derivative by the lagged command of actuator i on a body, or by the command where tau is 0."""
        command, motor = self.plant.commanded.astype(complex), self.plant.motor.astype(complex)
        if tau > 0.0:
            motor[i] += 1j * STEP
        else:
            command[channel] += 1j * STEP
        vector, torque, target, servo = self._copies()
        slope: Array = self.plant.rates(vector, torque, target, servo, self.held, (command, motor)).imag / STEP
        return slope

    def direct(self, channel: int) -> Array:
        """Return the derivative by the command of a tendon that follows it at once."""
        command = self.plant.commanded.astype(complex)
        command[channel] += 1j * STEP
        pushed = (command, self.plant.motor.astype(complex))
        vector, torque, target, servo = self._copies()
        slope: Array = self.plant.rates(vector, torque, target, servo, self.held, pushed).imag / STEP
        return slope

    def pull(self, i: int, k: int) -> Array:
        """Return the derivative by the filtered command of tendon i, or by its rate."""
        pulled = self.plant.pulled.astype(complex)
        pulled[i, k] += 1j * STEP
        vector, torque, target, servo = self._copies()
        slope: Array = self.plant.rates(vector, torque, target, servo, self.held, None, pulled).imag / STEP
        return slope

    def command(self, drive: Actuator) -> Array:
        """Return the derivative by a command."""
        vector, torque, target, servo = self._copies()
        kind, joint = drive.kind, drive.joint
        where = joint if joint >= 0 else slice(None)
        if kind == TORQUE:
            torque[where] += 1j * STEP * drive.gain
        else:
            target[where, kind - 1] += 1j * STEP
        return self._rate(vector, torque, target, servo)
