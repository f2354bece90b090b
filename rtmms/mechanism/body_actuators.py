"""Compute the wrenches of actuators on bodies, in kernels: a wrench fixed in a body times a lagged command."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import kernel
from rtmms.base.memory import Layout, model, state
from rtmms.base.spatial import cross, scalar
from rtmms.model.layout import S_ACCELERATION, S_TWIST, S_WRENCH

# columns: row of the model, channel, time constant (s), linear and quadratic coefficient, curve's first row and length,
# wrench for a value of 1 (row frame, about its origin)
ROW, CHANNEL, LAG, LINEAR, QUADRATIC, FIRST, LENGTH, WRENCH = range(8)
PUSH_WIDTH = WRENCH + 6
PUSHES = Layout(
    "Pushes",
    model("numbers", "pushes", PUSH_WIDTH), model("curve", "curve_points", 2), state("command", "commands"),
    state("motor", "pushes"), model("momentum", "pushes", 3, unit="kg m2", optional=True),
)  # fmt: skip
"""Actuators on bodies.

`curve` has command and value. `command` has the commands of all actuators. `motor` has lagged commands at the start of
the plant's step. `momentum` is the angular momentum in the row's frame for a lagged command of 1 rad/s; None where
nothing spins.
"""


@scalar
def lag_response(x: Any, command: Any, tau: float, t: float) -> Any:
    """Return x after t seconds of tau x' = command - x, exact under a held command.

    Parameters
    ----------
    x : float
        Value at t = 0.
    command : float
        Command.
    tau : float
        Time constant, s; for 0 the result is the command.
    t : float
        s.

    Returns
    -------
    float
        Value at t.
    """
    return command + (x - command) * np.exp(-t / tau) if tau > 0.0 else command


@kernel
def on_curve(curve: Any, first: int, length: int, x: Any) -> Any:
    """Return the value of a polygon, constant beyond its ends.

    Parameters
    ----------
    curve : (k, 2) array
        Points of all curves.
    first, length : int
        First point and number of points.
    x : float or complex
        Command.

    Returns
    -------
    float or complex
        Value at x.
    """
    if x.real <= curve[first, 0]:
        return curve[first, 1] + 0.0 * x
    for i in range(first + 1, first + length):
        if x.real < curve[i, 0]:
            slope = (curve[i, 1] - curve[i - 1, 1]) / (curve[i, 0] - curve[i - 1, 0])
            return curve[i - 1, 1] + slope * (x - curve[i - 1, 0])
    return curve[first + length - 1, 1] + 0.0 * x


@kernel
def value_of(numbers: Any, curve: Any, i: int, x: Any) -> Any:
    """Return c1 x + c2 |x| x, or the curve's value.

    Parameters
    ----------
    numbers : (a, PUSH_WIDTH) array
        Actuators on bodies.
    curve : (k, 2) array
        Points of all curves.
    i : int
        Index of the actuator.
    x : float or complex
        Lagged command.

    Returns
    -------
    float or complex
        Factor of the wrench.
    """
    if numbers[i, LENGTH] > 0.0:
        return on_curve(curve, int(numbers[i, FIRST]), int(numbers[i, LENGTH]), x)
    size = x if x.real >= 0.0 else -x
    return numbers[i, LINEAR] * x + numbers[i, QUADRATIC] * size * x


@kernel
def push(pushes: Any, elapsed: float, s: Any) -> None:
    """Add the wrenches to S_WRENCH, after `outward`.

    Parameters
    ----------
    pushes : Record
        Record of `PUSHES`.
    elapsed : float
        Time since the start of the plant's step, s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    numbers, curve, command, motor = pushes.numbers, pushes.curve, pushes.command, pushes.motor
    for i in range(numbers.shape[0]):
        j = int(numbers[i, ROW])
        x = lag_response(motor[i], command[int(numbers[i, CHANNEL])], numbers[i, LAG], elapsed)
        value = value_of(numbers, curve, i, x)
        for k in range(6):
            s[j, S_WRENCH + k] += value * numbers[i, WRENCH + k]


@kernel
def spin(pushes: Any, momentum: Any, elapsed: float, s: Any) -> None:
    """Add the moments of spinning rotors to S_WRENCH: -W x h - h' on the bodies that carry them, with h = momentum x.

    Parameters
    ----------
    pushes : Record
        Record of `PUSHES`.
    momentum : (a, 3) array or None
        pushes.momentum; an argument so that the compiler specialises on None.
    elapsed : float
        Time since the start of the plant's step, s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`; read and written.
    """
    if momentum is not None:
        numbers, command, motor = pushes.numbers, pushes.command, pushes.motor
        for i in range(numbers.shape[0]):
            j, tau = int(numbers[i, ROW]), numbers[i, LAG]
            if momentum[i, 0] != 0.0 or momentum[i, 1] != 0.0 or momentum[i, 2] != 0.0:
                asked = command[int(numbers[i, CHANNEL])]
                x = lag_response(motor[i], asked, tau, elapsed)
                rate = (asked - x) / tau  # tau x' = command - x
                hx, hy, hz = momentum[i, 0], momentum[i, 1], momentum[i, 2]
                cx, cy, cz = cross(s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5], hx, hy, hz)
                s[j, S_WRENCH + 3] -= x * cx + rate * hx
                s[j, S_WRENCH + 4] -= x * cy + rate * hy
                s[j, S_WRENCH + 5] -= x * cz + rate * hz


@scalar
def turning(momentum: Any, i: Any, s: Any, j: Any, at: Any) -> Any:
    """Return momentum . W or momentum . W' of the body on a row.

    Parameters
    ----------
    momentum : (a, 3) array
        Angular momentum at 1 rad/s, kg m2.
    i : int
        Index of the actuator.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.
    at : int
        S_TWIST or S_ACCELERATION.

    Returns
    -------
    float
        kg m2 rad/s or kg m2 rad/s2.
    """
    return momentum[i, 0] * s[j, at + 3] + momentum[i, 1] * s[j, at + 4] + momentum[i, 2] * s[j, at + 5]


@scalar
def spun_energy(momentum: Any, i: Any, x: Any, s: Any, j: Any) -> Any:
    """Return 1/2 J (a . W + x)^2 less the part in the body's own inertia, with J = |momentum|.

    Parameters
    ----------
    momentum : (a, 3) array
        Angular momentum at 1 rad/s, kg m2.
    i : int
        Index of the actuator.
    x : float
        Lagged speed, rad/s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.

    Returns
    -------
    float
        J.
    """
    mx, my, mz = momentum[i, 0], momentum[i, 1], momentum[i, 2]
    return x * (turning(momentum, i, s, j, S_TWIST) + 0.5 * np.sqrt(mx * mx + my * my + mz * mz) * x)


@scalar
def spun_power(momentum: Any, i: Any, x: Any, rate: Any, s: Any, j: Any) -> Any:
    """Return the power of a motor: its torque J (a . W' + x') times x.

    Parameters
    ----------
    momentum : (a, 3) array
        Angular momentum at 1 rad/s, kg m2.
    i : int
        Index of the actuator.
    x, rate : float
        Lagged speed, rad/s, and its rate, rad/s2.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    j : int
        Row of the model.

    Returns
    -------
    float
        W.
    """
    mx, my, mz = momentum[i, 0], momentum[i, 1], momentum[i, 2]
    return x * (turning(momentum, i, s, j, S_ACCELERATION) + np.sqrt(mx * mx + my * my + mz * mz) * rate)


@kernel
def spin_energy(pushes: Any, momentum: Any, s: Any) -> float:
    """Return the energy of spinning parts, at the evaluation just made at the start of a step.

    Parameters
    ----------
    pushes : Record
        Record of `PUSHES`.
    momentum : (a, 3) array or None
        See `spin`.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.

    Returns
    -------
    float
        J.
    """
    energy = 0.0
    if momentum is not None:
        for i in range(momentum.shape[0]):
            energy += spun_energy(momentum, i, pushes.motor[i], s, int(pushes.numbers[i, ROW]))
    return energy


@kernel
def spin_power(numbers: Any, command: Any, motor: Any, momentum: Any, elapsed: float, s: Any) -> float:
    """Return the power from motors to spinning parts, at the evaluation just made.

    Parameters
    ----------
    numbers, command, motor, momentum : array
        Arrays of `PUSHES`.
    elapsed : float
        Time since the start of the plant's step, s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.

    Returns
    -------
    float
        W.
    """
    power = 0.0
    for i in range(numbers.shape[0]):
        if momentum[i, 0] != 0.0 or momentum[i, 1] != 0.0 or momentum[i, 2] != 0.0:
            asked, tau = command[int(numbers[i, CHANNEL])], numbers[i, LAG]
            x = lag_response(motor[i], asked, tau, elapsed)
            power += spun_power(momentum, i, x, (asked - x) / tau, s, int(numbers[i, ROW]))
    return power


@kernel
def spend_spin(pushes: Any, momentum: Any, elapsed: float, s: Any, h: float, spent: Any) -> None:
    """Add the motors' power at the evaluation just made, times h, to the work done.

    Parameters
    ----------
    pushes : Record
        Record of `PUSHES`.
    momentum : (a, 3) array or None
        See `spin`.
    elapsed : float
        Time since the start of the plant's step, s.
    s : (rows, S_WIDTH) array
        Scratch of the evaluation, columns S_* of `rtmms.model.layout`.
    h : float
        Weighted length of the step, s.
    spent : (k,) array
        Sums of work, J.
    """
    if momentum is not None:
        spent[0] += h * spin_power(pushes.numbers, pushes.command, pushes.motor, momentum, elapsed, s)


@kernel
def finish_motors(pushes: Any, dt: float) -> None:
    """Advance the lagged commands to the end of a step.

    Parameters
    ----------
    pushes : Record
        Record of `PUSHES`.
    dt : float
        Step, s.
    """
    numbers, command, motor = pushes.numbers, pushes.command, pushes.motor
    for i in range(numbers.shape[0]):
        motor[i] = lag_response(motor[i], command[int(numbers[i, CHANNEL])], numbers[i, LAG], dt)
