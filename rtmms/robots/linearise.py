"""Linearisation of a plant for control: A and B by a complex step, exact to rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError
from rtmms.fluids.ambient import SAMPLE
from rtmms.robots.tree_kernels import evaluate
from rtmms.robots.tree_plant import TORQUE, Actuator, TreePlant
from rtmms.spatial import Array, ad

ComplexArray = npt.NDArray[np.complex128]
STEP = 1e-30  # imag(f(x + i h)) / h: no difference is taken, so h may be as small as this and the error is rounding


@dataclass(frozen=True, slots=True)
class Linear:
    """d/dt x = A x + B u around a motion: x is the error of the state, u that of the command.

    x  body-frame position error e and attitude error theta (R = R_ref exp theta^, p = p_ref + R_ref e), twist error,
       q and qd of the joints driven by torque, then value and rate of the filter of each commanded offset and gain
    states, inputs   their names, in order
    """

    a: Array
    b: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]


def linearise(plant: TreePlant, *, over_period: bool = False) -> Linear:
    """A (k, k) and B (k, u) of a plant at its present state and time, or their mean over one gait period from there.

    By a complex step through the equations of motion: the error is rounding, about 1e-15 of the largest entry. The
    state is left as it was. Where the model has a kink (|V| V at V = 0, Coulomb friction at rest) it is the derivative
    on the side where the state stands. ModelError for a flow given by a function, which knows no complex numbers.
    """
    if plant.flow.field is not None:
        raise ModelError(f"{plant.model.name}: linearise needs a flow given by numbers, not by a function")
    here = _at(plant)
    if not over_period:
        return here
    blob, steps = plant.snapshot(), max(1, round(2.0 * math.pi / plant.law.omega / plant.dt))
    a, b = np.zeros_like(here.a), np.zeros_like(here.b)
    command = plant.commanded.copy()
    for _ in range(steps):
        one = _at(plant)
        a += one.a / steps
        b += one.b / steps
        plant.step(command)
    plant.restore(blob)
    return Linear(a, b, here.states, here.inputs)


def _at(plant: TreePlant) -> Linear:
    model, n = plant.model, plant.model.n
    free = np.flatnonzero(~model.imposed)
    slow = [(k, drive) for k, drive in enumerate(plant.drives) if drive.kind != TORQUE]
    m, filters = len(free), len(slow)
    size, inputs = 12 + 2 * m + 2 * filters, len(plant.drives)
    a, b = np.zeros((size, size)), np.zeros((size, inputs))
    call = _Complex(plant)
    rows = np.concatenate([6 + n + np.arange(6), 12 + n + free])  # twist' and qdd in a rate
    for k in range(12 + 2 * m):
        a[6:12, k], a[12 + m : 12 + 2 * m, k] = np.split(call.state(k, free)[rows], [6])
    w = float(plant.law.bandwidth)
    for f, (k, drive) in enumerate(slow):
        at = 12 + 2 * m + 2 * f
        for rate in (0, 1):
            a[6:12, at + rate], a[12 + m : 12 + 2 * m, at + rate] = np.split(call.servo(drive, rate)[rows], [6])
        a[at, at + 1], a[at + 1, at : at + 2], b[at + 1, k] = 1.0, (-w * w, -2.0 * w), w * w
    for k, drive in enumerate(plant.drives):
        b[6:12, k], b[12 + m : 12 + 2 * m, k] = np.split(call.command(drive)[rows], [6])
    # the errors of pose and joints: delta' = -ad_eta delta + d eta, dq' = d qd
    a[:6, :6], a[:6, 6:12] = -ad(plant.vector[7 + n : 13 + n]), np.eye(6)
    a[12 : 12 + m, 12 + m : 12 + 2 * m] = np.eye(m)
    names = [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
    names += ["vx", "vy", "vz", "wx", "wy", "wz", *(model.joint_names[j] for j in free)]
    names += [f"{model.joint_names[j]}.rate" for j in free]
    for _, drive in slow:
        names += [f"{drive.channel.name}.filter", f"{drive.channel.name}.filter_rate"]
    return Linear(a, b, tuple(names), tuple(drive.channel.name for drive in plant.drives))


class _Complex:
    """One complex evaluation at a time, with one entry of the state, of a filter or of a command displaced."""

    def __init__(self, plant: TreePlant) -> None:
        self.plant = plant
        self.work = tuple(np.asarray(array).astype(complex) for array in plant._work)
        self.ambient = np.zeros((len(plant.immersed.rows), SAMPLE), dtype=complex)

    def _rate(self, vector: ComplexArray, torque: ComplexArray, target: ComplexArray, servo: ComplexArray) -> Array:
        plant = self.plant
        rate = np.zeros(12 + 2 * plant.model.n, dtype=complex)
        hold = (torque, target, servo, float(plant.law.bandwidth), plant.time)
        fluid = (*plant.immersed.arrays, plant._held, self.ambient)
        evaluate(plant._tree, plant._law, hold, fluid, self.work, vector, plant.time, 0.0, rate)
        slope: Array = rate.imag / STEP
        return slope

    def _copies(self) -> list[ComplexArray]:
        """State vector, torque, target, servo."""
        plant = self.plant
        return [array.astype(complex) for array in (plant.vector, plant._torque, plant._target, plant._servo)]

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
