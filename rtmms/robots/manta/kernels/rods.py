"""How a held command becomes the motion of a rod: never a jump in acceleration, whatever arrives and whenever.

servo   A position servo with a rate loop inside:
        wanted rate = clip(omega / (2 zeta) (reference - angle), +-rate limit),
        acceleration = clip(2 zeta omega (wanted rate - rate), +-acceleration limit). Between its limits this is
        angle'' = omega^2 (reference - angle) - 2 zeta omega angle'. The reference runs in a straight line from the
        last command to the present one over the step, so the acceleration is continuous although commands are held.
ideal   The motors do exactly as told: the commands are the control points of a uniform cubic B-spline. The angle at
        the end of step k is (u[k-2] + 4 u[k-1] + u[k]) / 6, the rate (u[k] - u[k-2]) / (2 dt), the acceleration
        (u[k] - 2 u[k-1] + u[k-2]) / dt^2: twice differentiable, never beyond the commands, two steps late.
"""

from __future__ import annotations

from rtmms.jit import Array, kernel

SERVO, IDEAL = 0, 1

ROD_SIZE = 5
"""Per rod: angle, rate, acceleration, last command, the one before."""


@kernel
def _clip(x: float, limit: float) -> float:
    return min(max(x, -limit), limit)


@kernel
def servo_acceleration(
    angle: float, rate: float, reference: float, omega: float, zeta: float, rate_limit: float, accel_limit: float
) -> float:
    """rad/s2; continuous in all of its arguments."""
    wanted = _clip(omega / (2.0 * zeta) * (reference - angle), rate_limit)
    return _clip(2.0 * zeta * omega * (wanted - rate), accel_limit)


@kernel
def _servo(
    angle: float, rate: float, ref0: float, ref1: float, dt: float, substeps: int, omega: float, zeta: float,
    rate_limit: float, accel_limit: float,
) -> tuple[float, float]:  # fmt: skip
    """RK4 over dt with the reference running from ref0 to ref1."""
    h = dt / substeps
    for i in range(substeps):
        r0 = ref0 + (ref1 - ref0) * (i / substeps)
        r1 = ref0 + (ref1 - ref0) * ((i + 1) / substeps)
        rm = 0.5 * (r0 + r1)
        a1 = servo_acceleration(angle, rate, r0, omega, zeta, rate_limit, accel_limit)
        v2 = rate + 0.5 * h * a1
        a2 = servo_acceleration(angle + 0.5 * h * rate, v2, rm, omega, zeta, rate_limit, accel_limit)
        v3 = rate + 0.5 * h * a2
        a3 = servo_acceleration(angle + 0.5 * h * v2, v3, rm, omega, zeta, rate_limit, accel_limit)
        v4 = rate + h * a3
        a4 = servo_acceleration(angle + h * v3, v4, r1, omega, zeta, rate_limit, accel_limit)
        angle += h / 6.0 * (rate + 2.0 * v2 + 2.0 * v3 + v4)
        rate += h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return angle, rate


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
    substeps = 1 + int(omega * dt)
    for k in range(command.size):
        r, h = start + ROD_SIZE * k, middle + 3 * k
        u = command[k]
        u1, u2 = rods[r + 3], rods[r + 4]
        if kind == SERVO:
            u = min(max(u, lower), upper)
            a, v, from_u, span = rods[r], rods[r + 1], u1, dt
            if halves:
                from_u, span = 0.5 * (u1 + u), 0.5 * dt
                a, v = _servo(a, v, u1, from_u, span, substeps, omega, zeta, rate_limit, accel_limit)
                rods[h], rods[h + 1] = a, v
                rods[h + 2] = servo_acceleration(a, v, from_u, omega, zeta, rate_limit, accel_limit)
            a, v = _servo(a, v, from_u, u, span, substeps, omega, zeta, rate_limit, accel_limit)
            rods[r], rods[r + 1] = a, v
            rods[r + 2] = servo_acceleration(a, v, u, omega, zeta, rate_limit, accel_limit)
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
