"""Actuators on bodies, in kernels: a wrench fixed in a body times a number that follows a command through a lag."""

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
"""curve: command and value; command: of all actuators; motor: lagged commands at the start of the plant's step.
momentum: angular momentum, row frame, for a lagged command of 1 rad/s; None where nothing spins."""


@scalar
def lagged(x: Any, command: Any, tau: float, t: float) -> Any:
    """x after t seconds of tau x' = command - x: exact under a held command; the command itself for tau = 0."""
    return command + (x - command) * np.exp(-t / tau) if tau > 0.0 else command


@kernel
def on_curve(curve: Any, first: int, length: int, x: Any) -> Any:
    """The value at x of the polygon through `length` points, held beyond its ends."""
    if x.real <= curve[first, 0]:
        return curve[first, 1] + 0.0 * x
    for i in range(first + 1, first + length):
        if x.real < curve[i, 0]:
            slope = (curve[i, 1] - curve[i - 1, 1]) / (curve[i, 0] - curve[i - 1, 0])
            return curve[i - 1, 1] + slope * (x - curve[i - 1, 0])
    return curve[first + length - 1, 1] + 0.0 * x


@kernel
def value_of(numbers: Any, curve: Any, i: int, x: Any) -> Any:
    """c1 x + c2 |x| x, or the curve's value."""
    if numbers[i, LENGTH] > 0.0:
        return on_curve(curve, int(numbers[i, FIRST]), int(numbers[i, LENGTH]), x)
    size = x if x.real >= 0.0 else -x
    return numbers[i, LINEAR] * x + numbers[i, QUADRATIC] * size * x


@kernel
def push(pushes: Any, elapsed: float, s: Any) -> None:
    """Add to S_WRENCH, `elapsed` seconds into the plant's step. After `outward`."""
    numbers, curve, command, motor = pushes.numbers, pushes.curve, pushes.command, pushes.motor
    for i in range(numbers.shape[0]):
        j = int(numbers[i, ROW])
        x = lagged(motor[i], command[int(numbers[i, CHANNEL])], numbers[i, LAG], elapsed)
        value = value_of(numbers, curve, i, x)
        for k in range(6):
            s[j, S_WRENCH + k] += value * numbers[i, WRENCH + k]


@kernel
def spin(pushes: Any, momentum: Any, elapsed: float, s: Any) -> None:
    """Add to S_WRENCH what spinning rotors do to the bodies that carry them: -W x h - h', h = momentum x.

    momentum  pushes.momentum, an argument so that it is known when compiled
    """
    if momentum is not None:
        numbers, command, motor = pushes.numbers, pushes.command, pushes.motor
        for i in range(numbers.shape[0]):
            j, tau = int(numbers[i, ROW]), numbers[i, LAG]
            if momentum[i, 0] != 0.0 or momentum[i, 1] != 0.0 or momentum[i, 2] != 0.0:
                asked = command[int(numbers[i, CHANNEL])]
                x = lagged(motor[i], asked, tau, elapsed)
                rate = (asked - x) / tau  # tau x' = command - x
                hx, hy, hz = momentum[i, 0], momentum[i, 1], momentum[i, 2]
                cx, cy, cz = cross(s[j, S_TWIST + 3], s[j, S_TWIST + 4], s[j, S_TWIST + 5], hx, hy, hz)
                s[j, S_WRENCH + 3] -= x * cx + rate * hx
                s[j, S_WRENCH + 4] -= x * cy + rate * hy
                s[j, S_WRENCH + 5] -= x * cz + rate * hz


@scalar
def turning(momentum: Any, i: Any, s: Any, j: Any, at: Any) -> Any:
    """momentum . W or W' of the body on row j; at: S_TWIST or S_ACCELERATION."""
    return momentum[i, 0] * s[j, at + 3] + momentum[i, 1] * s[j, at + 4] + momentum[i, 2] * s[j, at + 5]


@scalar
def spun_energy(momentum: Any, i: Any, x: Any, s: Any, j: Any) -> Any:
    """J: 1/2 J (a . W + x)^2 less what the body's own inertia holds of it, J = |momentum|."""
    mx, my, mz = momentum[i, 0], momentum[i, 1], momentum[i, 2]
    return x * (turning(momentum, i, s, j, S_TWIST) + 0.5 * np.sqrt(mx * mx + my * my + mz * mz) * x)


@scalar
def spun_power(momentum: Any, i: Any, x: Any, rate: Any, s: Any, j: Any) -> Any:
    """W of the motor: its torque J (a . W' + x') times x."""
    mx, my, mz = momentum[i, 0], momentum[i, 1], momentum[i, 2]
    return x * (turning(momentum, i, s, j, S_ACCELERATION) + np.sqrt(mx * mx + my * my + mz * mz) * rate)


@kernel
def spin_energy(pushes: Any, momentum: Any, s: Any) -> float:
    """J of what spins, at the evaluation just made at the start of a step; momentum: see `spin`."""
    energy = 0.0
    if momentum is not None:
        for i in range(momentum.shape[0]):
            energy += spun_energy(momentum, i, pushes.motor[i], s, int(pushes.numbers[i, ROW]))
    return energy


@kernel
def spin_power(numbers: Any, command: Any, motor: Any, momentum: Any, elapsed: float, s: Any) -> float:
    """W that motors give to what spins, at the evaluation just made; arrays of PUSHES."""
    power = 0.0
    for i in range(numbers.shape[0]):
        if momentum[i, 0] != 0.0 or momentum[i, 1] != 0.0 or momentum[i, 2] != 0.0:
            asked, tau = command[int(numbers[i, CHANNEL])], numbers[i, LAG]
            x = lagged(motor[i], asked, tau, elapsed)
            power += spun_power(momentum, i, x, (asked - x) / tau, s, int(numbers[i, ROW]))
    return power


@kernel
def spend_spin(pushes: Any, momentum: Any, elapsed: float, s: Any, h: float, spent: Any) -> None:
    """Add the motors' power at the evaluation just made, times h, to the work done; momentum: see `spin`."""
    if momentum is not None:
        spent[0] += h * spin_power(pushes.numbers, pushes.command, pushes.motor, momentum, elapsed, s)


@kernel
def finish_motors(pushes: Any, dt: float) -> None:
    """Lagged commands at the end of a step."""
    numbers, command, motor = pushes.numbers, pushes.command, pushes.motor
    for i in range(numbers.shape[0]):
        motor[i] = lagged(motor[i], command[int(numbers[i, CHANNEL])], numbers[i, LAG], dt)
