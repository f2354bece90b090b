"""How a held command becomes the motion of a rod: never a jump in acceleration, whatever arrives and whenever.

servo   A position servo with a rate loop inside:
        wanted rate = clip(omega / (2 zeta) (reference - angle), +-rate limit),
        acceleration = clip(2 zeta omega (wanted rate - rate), +-acceleration limit). Between its limits this is
        angle'' = omega^2 (reference - angle) - 2 zeta omega angle'. The reference runs in a straight line from the
        last command to the present one over the step, so the acceleration is continuous although commands are held.
        Moved exactly, whatever damping and step (servo.py).
ideal   The motors do exactly as told: the commands are the control points of a uniform cubic B-spline. The angle at
        the end of step k is (u[k-2] + 4 u[k-1] + u[k]) / 6, the rate (u[k] - u[k-2]) / (2 dt), the acceleration
        (u[k] - 2 u[k-1] + u[k-2]) / dt^2: twice differentiable, never beyond the commands, two steps late. Commands
        beyond the limits of rate and acceleration are slowed down to them (`slew`).
"""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.robots.manta.kernels.servo import servo_step

SERVO, IDEAL = 0, 1

ROD_SIZE = 5
"""Per rod: angle, rate, acceleration, last command, the one before."""


KNEE = 0.85
"""Share of the limit of a fin's two rods (their difference) up to which commands are obeyed as they are."""


@kernel
def limit_commands(lower: float, upper: float, difference: float, command: Array, out: Array, start: int) -> bool:
    """The commands that the rods obey, into out[start] on: each within its limits, and the difference d of a fin's two
    within `difference`: s(d) = knee + (difference - knee) tanh((d - knee) / (difference - knee)) beyond the knee, their
    mean kept. Smooth, and the identity below the knee.

    command  (4,) rad: front and back rod of each fin
    Returns whether any command was changed.
    """
    changed, knee = False, KNEE * difference
    for k in range(4):
        out[start + k] = min(max(command[k], lower), upper)
        changed = changed or out[start + k] != command[k]
    for f in range(2):
        front, back = out[start + 2 * f], out[start + 2 * f + 1]
        d, middle, room = front - back, 0.5 * (front + back), difference - knee
        if abs(d) > knee:
            half = 0.5 * np.sign(d) * (knee + room * np.tanh((abs(d) - knee) / room))
            out[start + 2 * f], out[start + 2 * f + 1] = middle + half, middle - half
            changed = True
    return changed


@kernel
def slew(target: float, last: float, before: float, dt: float, rate_limit: float, accel_limit: float) -> float:
    """Where an ideal motor's control point goes towards `target` within its limits of rate and acceleration.

    Obeyed exactly where the last two control points lead there; else at a rate from which it can still stop there.
    """
    away, rate = target - last, (last - before) / dt
    wanted = away / dt
    if abs(wanted) > rate_limit or abs(wanted - rate) > accel_limit * dt:
        wanted = np.sign(away) * min(rate_limit, np.sqrt(2.0 * accel_limit * abs(away)), abs(wanted))
        wanted = min(max(wanted, rate - accel_limit * dt), rate + accel_limit * dt)
        return last + dt * wanted
    return target


@kernel
def stop_rods(most: float, rods: Array, start: int, stride: int) -> None:
    """An inelastic stop between a fin's two rods: their difference goes no further than `most`, whatever the servos do.

    rods  from rods[start] on, (4, stride): angle, rate and acceleration first
    """
    for f in range(2):
        i, j = start + 2 * f * stride, start + (2 * f + 1) * stride
        beyond = abs(rods[i] - rods[j]) - most
        if beyond > 0.0:
            side = np.sign(rods[i] - rods[j])
            rods[i] -= 0.5 * side * beyond
            rods[j] += 0.5 * side * beyond
            for k in range(1, 3):
                further = side * (rods[i + k] - rods[j + k])
                if further > 0.0:
                    rods[i + k] -= 0.5 * side * further
                    rods[j + k] += 0.5 * side * further


@kernel
def advance_rods(
    kind: int, servo: Array, responses: Array, samples: int, dt: float, command: Array, rods: Array, start: int,
    middle: int, halves: bool,
) -> None:  # fmt: skip
    """Move all rods over one step.

    kind     SERVO or IDEAL
    servo    (6,) omega rad/s, zeta, lower and upper limit rad, rate limit rad/s, acceleration limit rad/s2
    responses, samples   `servo_responses` of dt, of half of it if `halves`
    command  (k,) rad, held over the step
    rods     from rods[start] on (k, ROD_SIZE): angle rad, rate rad/s, acceleration rad/s2, last command, the one
             before; moved to the end of the step
    middle   from rods[middle] on (k, 3) written if `halves`: angle, rate, acceleration at the middle of the step
    """
    omega, zeta, lower, upper, rate_limit, accel_limit = servo[0], servo[1], servo[2], servo[3], servo[4], servo[5]
    servo_limits = (omega, zeta, rate_limit, accel_limit)
    span = 0.5 * dt if halves else dt
    for k in range(command.size):
        r, h = start + ROD_SIZE * k, middle + 3 * k
        u1, u2 = rods[r + 3], rods[r + 4]
        u = command[k] if kind == SERVO else slew(command[k], u1, u2, dt, rate_limit, accel_limit)
        if kind == SERVO:
            u = min(max(u, lower), upper)
            a, v, from_u = rods[r], rods[r + 1], u1
            if halves:
                from_u = 0.5 * (u1 + u)
                a, v, acceleration = servo_step(a, v, u1, from_u, span, servo_limits, responses, samples)
                rods[h], rods[h + 1], rods[h + 2] = a, v, acceleration
            a, v, acceleration = servo_step(a, v, from_u, u, span, servo_limits, responses, samples)
            rods[r], rods[r + 1], rods[r + 2] = a, v, acceleration
        else:
            angle, rate, accel = rods[r], rods[r + 1], rods[r + 2]
            jerk = ((u - 2.0 * u1 + u2) / (dt * dt) - accel) / dt
            t = 0.5 * dt
            rods[h] = angle + t * (rate + t * (accel / 2.0 + t * jerk / 6.0))
            rods[h + 1] = rate + t * (accel + t * jerk / 2.0)
            rods[h + 2] = accel + t * jerk
            rods[r] = (u2 + 4.0 * u1 + u) / 6.0
            rods[r + 1] = (u - u2) / (2.0 * dt)
            rods[r + 2] = (u - 2.0 * u1 + u2) / (dt * dt)
        rods[r + 3], rods[r + 4] = u, u1
