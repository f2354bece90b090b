"""How a held command becomes the motion of a rod: never a jump in acceleration, whatever arrives and whenever.

servo   A position servo with a rate loop inside:
        wanted rate = clip(omega / (2 zeta) (reference - angle), +-rate limit),
        acceleration = clip(2 zeta omega (wanted rate - rate), +-acceleration limit). Between its limits this is
        angle'' = omega^2 (reference - angle) - 2 zeta omega angle'. The reference runs in a straight line from the
        last command to the present one over the step, so the acceleration is continuous although commands are held.
        Moved exactly, whatever damping and step (servo.py).
ideal   The motors do exactly as told: the commands are the control points of a uniform cubic B-spline. The angle at
        the end of step k is (u[k-2] + 4 u[k-1] + u[k]) / 6, the rate (u[k] - u[k-2]) / (2 dt), the acceleration
        (u[k] - 2 u[k-1] + u[k-2]) / dt^2: twice differentiable, never beyond the commands, two steps late.
"""

from __future__ import annotations

from rtmms.jit import Array, kernel
from rtmms.robots.manta.kernels.servo import servo_response, servo_step

SERVO, IDEAL = 0, 1

ROD_SIZE = 5
"""Per rod: angle, rate, acceleration, last command, the one before."""


@kernel
def advance_rods(
    kind: int, servo: Array, dt: float, command: Array, rods: Array, start: int, middle: int, halves: bool
) -> None:
    """Move all rods over one step.

    kind     SERVO or IDEAL
    servo    (6,) omega rad/s, zeta, lower and upper limit rad, rate limit rad/s, acceleration limit rad/s2
    command  (k,) rad, held over the step
    rods     from rods[start] on (k, ROD_SIZE): angle rad, rate rad/s, acceleration rad/s2, last command, the one
             before; moved to the end of the step
    middle   from rods[middle] on (k, 3) written if `halves`: angle, rate, acceleration at the middle of the step
    """
    omega, zeta, lower, upper, rate_limit, accel_limit = servo[0], servo[1], servo[2], servo[3], servo[4], servo[5]
    servo_limits = (omega, zeta, rate_limit, accel_limit)
    span = 0.5 * dt if halves else dt
    response = servo_response(omega, zeta, span)  # of all rods
    for k in range(command.size):
        r, h = start + ROD_SIZE * k, middle + 3 * k
        u = command[k]
        u1, u2 = rods[r + 3], rods[r + 4]
        if kind == SERVO:
            u = min(max(u, lower), upper)
            a, v, from_u = rods[r], rods[r + 1], u1
            if halves:
                from_u = 0.5 * (u1 + u)
                a, v, acceleration = servo_step(a, v, u1, from_u, span, servo_limits, response)
                rods[h], rods[h + 1], rods[h + 2] = a, v, acceleration
            a, v, acceleration = servo_step(a, v, from_u, u, span, servo_limits, response)
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
