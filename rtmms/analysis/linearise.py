"""Linearisation of a plant for control: A and B by a complex step, or of a step by differences for any other plant."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rtmms.analysis.chart import Chart
from rtmms.analysis.linear import Linear
from rtmms.analysis.linearise_step import linearise_step, mean_of
from rtmms.dynamics.any_tree import stand
from rtmms.errors import ModelError
from rtmms.fluids.immersed import held_flow
from rtmms.mechanism.actuators import PUSH
from rtmms.mechanism.body_actuators import CHANNEL, LAG
from rtmms.mechanism.joint_laws import TORQUE, Actuator
from rtmms.mechanism.plant import TreePlant
from rtmms.mechanism.tendons import tendon_states
from rtmms.plant import Plant
from rtmms.spatial import Array, ad

DIFFERENCE = 1e-6
ComplexArray = npt.NDArray[np.complex128]
STEP = 1e-30  # imag(f(x + i h)) / h: no difference is taken, so h may be as small as this and the error is rounding


def linearise(
    plant: Plant, *, over_period: bool = False, commands: Array | None = None, chart: Chart | None = None
) -> Linear:  # fmt: skip
    """A (k, k) and B (k, u) of a plant at its present state and time, or their mean along its motion from there.

    over_period  the mean over one period of the gait that the plant has of its own
    commands     (steps, n_actuators): the mean along these; one row: at the present state, under that command.
                 Default: what is held now, for a plant of a mechanism; the neutral command, for any other
    chart        coordinates of a plant that is not of a mechanism, where it has none of its own
    A plant of a mechanism: of d/dt x, by a complex step through the equations of motion; the error is rounding, about
    1e-15 of the largest entry (with a flow given by a function, that of its central differences, about 1e-9). Any
    other: of one step, see `linearise_step`; the error is estimated. The state is left as it was. Where the model has
    a kink (|V| V at V = 0, Coulomb friction at rest) it is the derivative on the side where the state stands, or the
    mean of both. ModelError for a period that the plant does not have, or coordinates that it does not tell.
    """
    if not isinstance(plant, TreePlant):
        if over_period:
            raise ModelError(
                f"linearise: over_period needs a gait of the plant's own, which a {type(plant).__name__} has not; give "
                "the commands of one period"
            )
        return linearise_step(plant, commands, chart=chart)
    if over_period:
        if not np.any(plant.law.motion[:, 1:]):
            raise ModelError(f"{plant.model.name}: linearise over a period needs a periodic gait")
        if commands is not None:
            raise ModelError(f"{plant.model.name}: linearise: expected over_period or commands, got both")
        steps = max(1, round(2.0 * math.pi / plant.law.omega / plant.dt))
        commands = np.tile(plant.commanded, (steps, 1))
    return _at(plant) if commands is None else mean_of(plant, commands, lambda command: _at(plant))


def _at(plant: TreePlant) -> Linear:
    model, n = plant.model, plant.model.n
    free = np.flatnonzero(~model.imposed)
    slow = [(k, drive) for k, drive in enumerate(plant.drives) if drive.kind not in (TORQUE, PUSH)]
    pushes = [(i, int(row[CHANNEL]), float(row[LAG])) for i, row in enumerate(plant.attached.pushes)]
    lagging = [push for push in pushes if push[2] > 0.0]
    m, filters = len(free), len(slow)
    tendons = tendon_states(plant.attached.tendons)
    size, inputs = 12 + 2 * m + 2 * filters + len(lagging) + sum(own.size for own in tendons), len(plant.drives)
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
    for i, own in enumerate(tendons):
        if own.size == 0:
            b[6:12, own.channel], b[12 + m : 12 + 2 * m, own.channel] = np.split(call.direct(own.channel)[rows], [6])
        for k in range(own.size):
            a[6:12, at + k], a[12 + m : 12 + 2 * m, at + k] = np.split(call.pull(i, k)[rows], [6])
        a[at : at + own.size, at : at + own.size], b[at : at + own.size, own.channel] = own.a, own.b
        at += own.size
    # the errors of pose and joints: delta' = -ad_eta delta + d eta, dq' = d qd
    a[:6, :6], a[:6, 6:12] = -ad(plant.vector[7 + n : 13 + n]), np.eye(6)
    a[12 : 12 + m, 12 + m : 12 + 2 * m] = np.eye(m)
    names = [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
    names += ["vx", "vy", "vz", "wx", "wy", "wz", *(model.joint_names[j] for j in free)]
    names += [f"{model.joint_names[j]}.rate" for j in free]
    for _, drive in slow:
        names += [f"{drive.channel.name}.filter", f"{drive.channel.name}.filter_rate"]
    names += [f"{plant.drives[k].channel.name}.lag" for _, k, _ in lagging]
    for own in tendons:
        name = plant.drives[own.channel].channel.name
        names += [[], [f"{name}.lag"], [f"{name}.filter", f"{name}.filter_rate"]][own.size]
    driven = tuple(drive.channel.name for drive in plant.drives)
    return Linear(a, b, tuple(names), driven, method="complex step")


class _Complex:
    """One complex evaluation at a time, with one entry of the state, of a filter or of a command displaced."""

    def __init__(self, plant: TreePlant) -> None:
        self.plant = plant
        self.held = self._water(plant.vector).astype(complex)

    def _water(self, vector: Array) -> Array:
        """(elements, 6) m/s, m/s2 of a flow given by a function, where the elements stand in a state."""
        plant, s = self.plant, self.plant.model.scratch()
        model, n = plant.model, plant.model.n
        if plant.flow.field is not None:
            stand(model, vector[:3], vector[3:7], vector[7 : 7 + n], s)
        return held_flow(model, plant.flow, s, plant.immersed, plant.time)

    def _held(self, vector: ComplexArray) -> ComplexArray:
        """The same with its slope along the displacement of `vector`: the function knows no complex numbers."""
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
        """State vector, torque, target, servo."""
        return [array.astype(complex) for array in (self.plant.vector, *self.plant.held())]

    def state(self, k: int, free: npt.NDArray[np.intp]) -> Array:
        """Derivative of the rate by error coordinate k."""
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
        """Derivative by the value (rate 0) or the rate (1) of the filter of a commanded offset or gain."""
        vector, torque, target, servo = self._copies()
        kind, joint = drive.kind, drive.joint
        column = 2 * (kind - 1) + rate
        servo[joint if joint >= 0 else slice(None), column] += 1j * STEP
        return self._rate(vector, torque, target, servo)

    def push(self, i: int, channel: int, tau: float) -> Array:
        """Derivative by what actuator i on a body follows: its lagged command, or the command where tau is 0."""
        command, motor = self.plant.commanded.astype(complex), self.plant.motor.astype(complex)
        if tau > 0.0:
            motor[i] += 1j * STEP
        else:
            command[channel] += 1j * STEP
        vector, torque, target, servo = self._copies()
        slope: Array = self.plant.rates(vector, torque, target, servo, self.held, (command, motor)).imag / STEP
        return slope

    def direct(self, channel: int) -> Array:
        """Derivative by the command of a tendon that follows it at once."""
        command = self.plant.commanded.astype(complex)
        command[channel] += 1j * STEP
        pushed = (command, self.plant.motor.astype(complex))
        vector, torque, target, servo = self._copies()
        slope: Array = self.plant.rates(vector, torque, target, servo, self.held, pushed).imag / STEP
        return slope

    def pull(self, i: int, k: int) -> Array:
        """Derivative by what follows the command of tendon i, or by its rate."""
        pulled = self.plant.pulled.astype(complex)
        pulled[i, k] += 1j * STEP
        vector, torque, target, servo = self._copies()
        slope: Array = self.plant.rates(vector, torque, target, servo, self.held, None, pulled).imag / STEP
        return slope

    def command(self, drive: Actuator) -> Array:
        """Derivative by a command."""
        vector, torque, target, servo = self._copies()
        kind, joint = drive.kind, drive.joint
        where = joint if joint >= 0 else slice(None)
        if kind == TORQUE:
            torque[where] += 1j * STEP
        else:
            target[where, kind - 1] += 1j * STEP
        return self._rate(vector, torque, target, servo)
