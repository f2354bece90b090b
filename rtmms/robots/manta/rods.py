"""Compute rods and support of a fin: from held commands to their motion, never with a jump in acceleration.

SERVO is a position servo with an inner rate loop:

    wanted rate = clip(omega / (2 zeta) (reference - angle), +-rate limit)
    acceleration = clip(2 zeta omega (wanted rate - rate), +-acceleration limit)

Between its limits the servo is linear, angle'' = omega^2 (reference - angle) - 2 zeta omega angle'. Over a step the
reference moves in a straight line from the last command to the present one. The acceleration is therefore continuous
although commands are held. With r = r0 + slope t the motion is

    angle = a0 + (r0 - a0) G + v0 g + slope K,   g the impulse response, G = int omega^2 g, K = int G

The solution is exact, whatever the damping and the step. Each term is computed without the cancellation of the textbook
forms. They cancel near critical damping (where the poles meet), at small steps and far beyond critical damping. At a
limit the rate decays to the limit, or the acceleration is held; the end of each regime is found within the step.

With IDEAL the motors follow exactly: the commands are the control points of a uniform cubic B-spline. The angle at the
end of step k is (u[k-2] + 4 u[k-1] + u[k]) / 6, the rate (u[k] - u[k-2]) / (2 dt), the acceleration (u[k] - 2 u[k-1] +
u[k-2]) / dt^2. The motion is twice differentiable, never beyond the commands, and two steps late. Commands beyond the
limits of rate and acceleration are slowed down to them (`slew`).

The fin's active mechanism has two rods on parallel axes, which carry a support of fixed length (Qu 2024, sec. 3.1,
corrected). Frame F_l is at the back rod's motor, parallel to the body. A = (0, r2 c2, r2 s2) is the tip of the back
rod, B the tip of the front rod, which slides along x. The support's frame F_0 has its origin at A and its x axis from A
to B. Everything is for the left fin; the right one is its mirror image.
"""

from __future__ import annotations

import numpy as np

from rtmms.base.jit import Array, Floats, kernel

SAMPLES = 16
"""Places in the rest of a step at which the end of a regime is sought."""
MAX_SAMPLES = 256
"""Largest number of these places, for a servo that oscillates within the step."""
MAX_TURNS = 64
"""Largest number of regimes within a step."""
MAX_ROOT_STEPS = 60
"""Steps towards the end of a regime."""
ROOT_MARGIN = 1e-12
"""Share of a limit by which the end of a regime may be outside."""

RESPONSES = (5, MAX_SAMPLES)
"""Shape of `servo_responses`: the parts of `servo_response`, and the places within a step."""


@kernel
def _clip(x: float, limit: float) -> float:
    return min(max(x, -limit), limit)


@kernel
def servo_acceleration(
    angle: float, rate: float, reference: float, omega: float, zeta: float, rate_limit: float, accel_limit: float
) -> float:
    """Return the acceleration of the servo, continuous in all of its arguments.

    Parameters
    ----------
    angle, rate : float
        Angle, rad, and rate, rad/s, at the start.
    reference : float
        rad.
    omega, zeta : float
        Natural frequency, rad/s, and damping ratio.
    rate_limit, accel_limit : float
        rad/s and rad/s2.

    Returns
    -------
    float
        rad/s2.
    """
    wanted = _clip(omega / (2.0 * zeta) * (reference - angle), rate_limit)
    return _clip(2.0 * zeta * omega * (wanted - rate), accel_limit)


@kernel
def servo_response(omega: float, zeta: float, t: float) -> Floats:
    """Return the responses of the linear servo.

    Parameters
    ----------
    omega, zeta : float
        Natural frequency, rad/s, and damping ratio.
    t : float
        s.

    Returns
    -------
    tuple of float
        (g, g', g'', G, K) at t: impulse response (s), its two rates, step and ramp response.
    """
    if zeta > 1.0:
        half = np.sqrt((zeta - 1.0) * (zeta + 1.0))
        slow, fast = omega / (zeta + half), omega * (zeta + half)  # the poles, negated; their product is omega^2
        x = -2.0 * omega * half * t
        e_fast = np.exp(-fast * t)
        g = np.exp(-slow * t) * t * (np.expm1(x) / x if x < 0.0 else 1.0)
        g1 = e_fast - slow * g
        g2 = slow * slow * g - 2.0 * zeta * omega * e_fast
        rise = -np.expm1(-slow * t) - slow * g
    else:
        theta = omega * np.sqrt((1.0 - zeta) * (1.0 + zeta)) * t
        decay, half_sine = np.exp(-zeta * omega * t), np.sin(0.5 * theta)
        g = decay * t * (np.sin(theta) / theta if theta > 0.0 else 1.0)
        g1 = decay * np.cos(theta) - zeta * omega * g
        g2 = -omega * omega * g - 2.0 * zeta * omega * g1
        rise = -np.expm1(-zeta * omega * t) + 2.0 * decay * half_sine * half_sine - zeta * omega * g
    return g, g1, g2, rise, t - g - 2.0 * zeta / omega * rise


@kernel
def sample_count(omega: float, t: float) -> int:
    """Return the number of places at which the end of a regime is sought.

    Parameters
    ----------
    omega : float
        Natural frequency, rad/s.
    t : float
        Length of the interval, s.

    Returns
    -------
    int
        At most MAX_SAMPLES.
    """
    return int(min(SAMPLES + 2.0 * omega * t, float(MAX_SAMPLES)))


@kernel
def servo_responses(omega: float, zeta: float, t: float, out: Array) -> int:
    """Write `servo_response` at i / n of t to out[:, i - 1], i = 1 to n; it depends on the model alone.

    Parameters
    ----------
    omega, zeta : float
        Natural frequency, rad/s, and damping ratio.
    t : float
        s.
    out : RESPONSES array
        Result.

    Returns
    -------
    int
        n.
    """
    n = sample_count(omega, t)
    for i in range(1, n + 1):
        out[0, i - 1], out[1, i - 1], out[2, i - 1], out[3, i - 1], out[4, i - 1] = servo_response(
            omega, zeta, t * (i / n)
        )
    return n


@kernel
def servo_linear(angle: float, rate: float, away: float, slope: float, omega: float, response: Floats) -> Floats:
    """Return the motion of the linear servo after the time of `response`.

    Parameters
    ----------
    angle, rate : float
        Angle, rad, and rate, rad/s, at the start.
    away : float
        reference - angle at the start, rad.
    slope : float
        Rate of the reference, rad/s.
    omega : float
        Natural frequency, rad/s.
    response : tuple of float
        From `servo_response`.

    Returns
    -------
    (float, float, float)
        Angle, rate and acceleration.
    """
    g, g1, g2, rise, ramp = response
    w2 = omega * omega
    return (
        angle + away * rise + rate * g + slope * ramp,
        w2 * g * away + rate * g1 + slope * rise,
        w2 * g1 * away + rate * g2 + slope * w2 * g,
    )


@kernel
def _regime(angle: float, rate: float, reference: float, servo: Floats) -> tuple[int, int]:
    """Return the active limits, of the wanted rate and of the acceleration; -1, 0 or 1 each."""
    omega, zeta, rate_limit, accel_limit = servo
    wanted = omega / (2.0 * zeta) * (reference - angle)
    push = 2.0 * zeta * omega * (_clip(wanted, rate_limit) - rate)
    return int(wanted > rate_limit) - int(wanted < -rate_limit), int(push > accel_limit) - int(push < -accel_limit)


@kernel
def _glide(
    regime: tuple[int, int], angle: float, rate: float, away: float, slope: float, t: float, servo: Floats
) -> Floats:
    """Return (angle, rate, acceleration) after t s in one regime."""
    omega, zeta, rate_limit, accel_limit = servo
    if regime[1] != 0:
        accel = regime[1] * accel_limit
        return angle + t * (rate + 0.5 * t * accel), rate + t * accel, accel
    if regime[0] != 0:
        k, wanted = 2.0 * zeta * omega, regime[0] * rate_limit
        beyond, x = rate - wanted, np.expm1(-k * t)
        return angle + wanted * t - beyond * x / k, rate + beyond * x, -k * beyond * (1.0 + x)
    return servo_linear(angle, rate, away, slope, omega, servo_response(omega, zeta, t))


@kernel
def _within(angle: float, rate: float, away: float, slope: float, servo: Floats) -> bool:
    """Return whether a bound guarantees that the servo stays clear of its limits while the reference moves so.

    With e = reference - angle - (2 zeta / omega) slope and u = angle' - slope, the linear servo is e' = -u, u' =
    omega^2 e - 2 zeta omega u, so V = omega^2 e^2 + u^2 never grows. Then |u'| <= omega sqrt((1 + 4 zeta^2) V), and the
    wanted rate stays within |slope| + sqrt(V) / (2 zeta).
    """
    omega, zeta, rate_limit, accel_limit = servo
    k = 2.0 * zeta
    e, u, room = omega * away - k * slope, rate - slope, k * (0.99 * rate_limit - abs(slope))
    v = e * e + u * u
    return room > 0.0 and v <= room * room and (1.0 + k * k) * omega * omega * v <= 0.98 * accel_limit * accel_limit


@kernel
def _clear(
    angle: float, rate: float, away: float, slope: float, t: float, servo: Floats, responses: Array, n: int
) -> bool:
    """Return whether no limit is active at the start nor at any of the n places, as `_limited` would find."""
    omega, zeta, rate_limit, accel_limit = servo
    gain, k, w2 = omega / (2.0 * zeta), 2.0 * zeta * omega, omega * omega
    wanted = gain * away
    beyond = int(abs(wanted) > rate_limit) + int(abs(k * (wanted - rate)) > accel_limit)
    step = t / n
    for i in range(n):  # without a branch: vector instructions
        g, g1, rise, ramp = responses[0, i], responses[1, i], responses[3, i], responses[4, i]
        moved = away * rise + rate * g + slope * ramp
        wanted = gain * (away + slope * (step * (i + 1)) - moved)
        push = k * (wanted - (w2 * g * away + rate * g1 + slope * rise))
        beyond += int(abs(wanted) > rate_limit) + int(abs(push) > accel_limit)
    return beyond == 0


@kernel
def _margin(regime: tuple[int, int], angle: float, rate: float, reference: float, servo: Floats) -> float:
    """Return the servo's distance inside its regime, as a share of the limits: continuous in time, negative outside."""
    omega, zeta, rate_limit, accel_limit = servo
    wanted = omega / (2.0 * zeta) * (reference - angle)
    push = 2.0 * zeta * omega * (_clip(wanted, rate_limit) - rate)
    of_rate = rate_limit - abs(wanted) if regime[0] == 0 else regime[0] * wanted - rate_limit
    of_accel = accel_limit - abs(push) if regime[1] == 0 else regime[1] * push - accel_limit
    return min(of_rate / rate_limit, of_accel / accel_limit)


@kernel
def _end_of(
    regime: tuple[int, int], angle: float, rate: float, here: float, slope: float, low: float, high: float,
    servo: Floats,
) -> float:  # fmt: skip
    """Return a time just behind the end of the regime, between low (inside) and high (outside), by regula falsi, s.

    It is Illinois' variant. The acceleration is continuous there, so that an end that is late by d costs the rate
    O(d^2).
    """
    a, v, _ = _glide(regime, angle, rate, here - angle, slope, low, servo)
    inside = _margin(regime, a, v, here + slope * low, servo)
    a, v, _ = _glide(regime, angle, rate, here - angle, slope, high, servo)
    outside = _margin(regime, a, v, here + slope * high, servo)
    left, side = outside, 0
    for _ in range(MAX_ROOT_STEPS):
        if left > -ROOT_MARGIN or high - low <= 1e-15 * high:
            break
        part = inside / (inside - outside) if inside > outside else 0.5
        middle = low + min(max(part, 1e-3), 0.999) * (high - low)
        a, v, _ = _glide(regime, angle, rate, here - angle, slope, middle, servo)
        margin = _margin(regime, a, v, here + slope * middle, servo)
        if margin >= 0.0:
            low, inside = middle, margin
            outside = 0.5 * outside if side > 0 else outside
            side = 1
        else:
            high, outside, left = middle, margin, margin
            inside = 0.5 * inside if side < 0 else inside
            side = -1
    return high


@kernel
def _limited(
    angle: float, rate: float, reference: float, slope: float, t: float, servo: Floats, responses: Array, samples: int
) -> Floats:
    """Return (angle, rate, acceleration) after t s, from regime to regime, with `servo_responses` of t."""
    here, left = reference, t
    for turn in range(MAX_TURNS):
        regime = _regime(angle, rate, here, servo)
        low, high, turned = 0.0, left, False
        n = samples if turn == 0 else sample_count(servo[0], left)
        for i in range(1, n + 1):
            high = left * (i / n)
            if turn == 0 and regime[0] == 0 and regime[1] == 0:
                a, v, _ = servo_linear(angle, rate, here - angle, slope, servo[0], _column(responses, i - 1))
            else:
                a, v, _ = _glide(regime, angle, rate, here - angle, slope, high, servo)
            turned = _regime(a, v, here + slope * high, servo) != regime
            if turned:
                break
            low = high
        if turned:
            high = _end_of(regime, angle, rate, here, slope, low, high, servo)
        angle, rate, acceleration = _glide(regime, angle, rate, here - angle, slope, high, servo)
        here, left = here + slope * high, left - high
        if not turned or not left > 0.0:
            return angle, rate, acceleration
    return _glide(_regime(angle, rate, here, servo), angle, rate, here - angle, slope, left, servo)


@kernel
def _column(responses: Array, i: int) -> Floats:
    return responses[0, i], responses[1, i], responses[2, i], responses[3, i], responses[4, i]


@kernel
def servo_step(
    angle: float, rate: float, ref0: float, ref1: float, t: float, servo: Floats, responses: Array, n: int
) -> Floats:
    """Return the motion of the servo after a time in which the reference moves from ref0 to ref1.

    Parameters
    ----------
    angle, rate : float
        Angle, rad, and rate, rad/s, at the start.
    ref0, ref1 : float
        Reference at the start and at the end, rad.
    t : float
        s.
    servo : tuple of float
        omega rad/s, zeta, rate limit rad/s, acceleration limit rad/s2.
    responses, n : array, int
        `servo_responses` of t.

    Returns
    -------
    (float, float, float)
        Angle, rate and acceleration.
    """
    slope, away = (ref1 - ref0) / t, ref0 - angle
    if _within(angle, rate, away, slope, servo) or _clear(angle, rate, away, slope, t, servo, responses, n):
        return servo_linear(angle, rate, away, slope, servo[0], _column(responses, n - 1))
    return _limited(angle, rate, ref0, slope, t, servo, responses, n)


SERVO = 0
IDEAL = 1

ROD_SIZE = 5
"""Numbers of a rod: angle, rate, acceleration, last command, the one before."""


KNEE = 0.85
"""Share of the limit of a fin's two rods (their difference) up to which commands are applied unchanged."""


@kernel
def limit_commands(lower: float, upper: float, difference: float, command: Array, out: Array, start: int) -> bool:
    """Write the commands that the rods follow, each within its limits, and with saturated differences.

    Parameters
    ----------
    lower, upper : float
        Limits of each command, rad.
    difference : float
        Limit of the difference of a fin's two rods, rad.
    command : (4,) array
        Front and back rod of each fin, rad.
    out : array
        Result.
    start : int
        First index of the result (4,).

    Returns
    -------
    bool
        Whether any command was changed.

    Notes
    -----
    Beyond the knee the difference d of a fin's rods becomes s(d) = knee + (difference - knee) tanh((d - knee) /
    (difference - knee)), and their mean persists. s is smooth, and the identity below the knee.
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
    """Return the next control point of an ideal motor towards `target` within its limits of rate and acceleration.

    The target is reached exactly where the last two control points permit it. Otherwise the point moves at a rate from
    which it can still stop there.

    Parameters
    ----------
    target : float
        Command, rad.
    last, before : float
        Last two control points, rad.
    dt : float
        Step, s.
    rate_limit, accel_limit : float
        rad/s and rad/s2.

    Returns
    -------
    float
        Control point, rad.
    """
    away, rate = target - last, (last - before) / dt
    wanted = away / dt
    if abs(wanted) > rate_limit or abs(wanted - rate) > accel_limit * dt:
        wanted = np.sign(away) * min(rate_limit, np.sqrt(2.0 * accel_limit * abs(away)), abs(wanted))
        wanted = min(max(wanted, rate - accel_limit * dt), rate + accel_limit * dt)
        return last + dt * wanted
    return target


@kernel
def stop_rods(maximum: float, rods: Array, start: int, stride: int) -> None:
    """Apply an inelastic stop between a fin's two rods: their difference is at most `maximum`, whatever the servos do.

    Parameters
    ----------
    maximum : float
        Largest difference, rad.
    rods : array
        Rods, with angle, rate and acceleration first in each row; changed.
    start : int
        First index of the rods (4, stride).
    stride : int
        Length of a row.
    """
    for f in range(2):
        i, j = start + 2 * f * stride, start + (2 * f + 1) * stride
        beyond = abs(rods[i] - rods[j]) - maximum
        if beyond > 0.0:
            side = np.sign(rods[i] - rods[j])
            rods[i] -= 0.5 * side * beyond
            rods[j] += 0.5 * side * beyond
            for k in range(1, 3):
                excess = side * (rods[i + k] - rods[j + k])
                if excess > 0.0:
                    rods[i + k] -= 0.5 * side * excess
                    rods[j + k] += 0.5 * side * excess


@kernel
def advance_rods(
    kind: int, servo: Array, responses: Array, samples: int, dt: float, command: Array, rods: Array, start: int,
    middle: int, halves: bool,
) -> None:  # fmt: skip
    """Move all rods over one step.

    Parameters
    ----------
    kind : int
        SERVO or IDEAL.
    servo : (6,) array
        omega rad/s, zeta, lower and upper limit rad, rate limit rad/s, acceleration limit rad/s2.
    responses, samples : array, int
        `servo_responses` of dt, or of half of it if `halves`.
    dt : float
        Step, s.
    command : (k,) array
        Held over the step, rad.
    rods : array
        Rods (k, ROD_SIZE) from rods[start] on; moved to the end of the step.
    start : int
        First index of the rods.
    middle : int
        First index in `rods` of angle, rate and acceleration (k, 3) at the middle of the step, written if `halves`.
    halves : bool
        Whether the middle of the step is needed.
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


ROLL_ZERO = 0
ROLL_MEAN = 1

SUPPORT_SIZE = 40
"""Length of the result of `support_motion`; the offsets below are the first index of each quantity."""
ROTATION = 0
POINT = 9
POINT_RATE = 12
POINT_ACCEL = 15
OMEGA = 18
OMEGA_RATE = 21
JACOBIAN_FRONT = 24
JACOBIAN_BACK = 30
SINGULAR_MARGIN = 1e-4


@kernel(inline=True, fused=False)
def _put(out: Array, o: int, x: float, y: float, z: float) -> None:
    out[o], out[o + 1], out[o + 2] = x, y, z


@kernel(fused=False)
def support_motion(
    length: float, r_front: float, r_back: float, roll: int, alpha: Floats, rate: Floats, accel: Floats, out: Array,
    start: int,
) -> bool:  # fmt: skip
    """Compute pose, velocity and acceleration of the support relative to the body.

    Parameters
    ----------
    length, r_front, r_back : float
        Length of the support AB and of the two rods, m.
    roll : int
        ROLL_MEAN: the support rolls with the mean of the rods; ROLL_ZERO: the paper's F_0 without roll.
    alpha, rate, accel : (float, float)
        Angle, rate and acceleration of front and back rod, rad, rad/s, rad/s2.
    out : array
        Result, see Notes.
    start : int
        First index of the result (SUPPORT_SIZE,).

    Returns
    -------
    bool
        False where the geometry is singular (X = 0); `out` is then undefined.

    Notes
    -----
    The result has ROTATION (3, 3) F_0 to F_l; POINT, POINT_RATE, POINT_ACCEL (3,) of A in F_l axes. OMEGA and
    OMEGA_RATE (3,) are the rotation rate of F_0 relative to the body and its component derivative, in F_0.
    JACOBIAN_FRONT and JACOBIAN_BACK (6,) are the twist of F_0 relative to the body, in F_0, for unit rate of each rod.
    """
    a1, a2 = alpha[0], alpha[1]
    s1, c1, s2, c2 = np.sin(a1), np.cos(a1), np.sin(a2), np.cos(a2)
    d1, d2, dd1, dd2 = rate[0], rate[1], accel[0], accel[1]

    u = r_front * c1 - r_back * c2
    w = r_front * s1 - r_back * s2
    ud = -r_front * s1 * d1 + r_back * s2 * d2
    wd = r_front * c1 * d1 - r_back * c2 * d2
    udd = -r_front * (s1 * dd1 + c1 * d1 * d1) + r_back * (s2 * dd2 + c2 * d2 * d2)
    wdd = r_front * (c1 * dd1 - s1 * d1 * d1) - r_back * (c2 * dd2 - s2 * d2 * d2)

    X2 = length * length - u * u - w * w
    if not X2.real > SINGULAR_MARGIN * length * length:
        return False
    X = np.sqrt(X2)
    H2 = length * length - w * w
    H = np.sqrt(H2)
    # AB = (X, u, w): theta turns it about z, beta is minus its elevation
    st, ct, sb, cb = u / H, X / H, -w / length, H / length
    Xd = -(u * ud + w * wd) / X
    Xdd = -(ud * ud + u * udd + wd * wd + w * wdd + Xd * Xd) / X
    td = (X * ud - u * Xd) / H2
    tdd = (X * udd - u * Xdd + 2.0 * td * w * wd) / H2
    bd = -wd / H
    bdd = -(wdd + w * wd * wd / H2) / H

    if roll == ROLL_MEAN:
        g, gd, gdd, half = 0.5 * (a1 + a2), 0.5 * (d1 + d2), 0.5 * (dd1 + dd2), 0.5
    else:
        g, gd, gdd, half = 0.0 * a1, 0.0 * a1, 0.0 * a1, 0.0

    sg, cg = np.sin(g), np.cos(g)
    # R = Rz(theta) Ry(beta) Rx(gamma)
    r = start + ROTATION
    out[r], out[r + 1], out[r + 2] = ct * cb, ct * sb * sg - st * cg, ct * sb * cg + st * sg
    out[r + 3], out[r + 4], out[r + 5] = st * cb, st * sb * sg + ct * cg, st * sb * cg - ct * sg
    out[r + 6], out[r + 7], out[r + 8] = -sb, cb * sg, cb * cg
    _put(out, start + POINT, 0.0, r_back * c2, r_back * s2)
    _put(out, start + POINT_RATE, 0.0, -r_back * s2 * d2, r_back * c2 * d2)
    _put(out, start + POINT_ACCEL, 0.0, -r_back * (s2 * dd2 + c2 * d2 * d2), r_back * (c2 * dd2 - s2 * d2 * d2))
    # omega_r = Rx^T (Ry^T z theta' + y beta') + x gamma'
    b = cb * td
    bp = cb * tdd - sb * bd * td
    _put(out, start + OMEGA, gd - sb * td, cg * bd + sg * b, cg * b - sg * bd)
    o = start + OMEGA_RATE
    out[o] = gdd - sb * tdd - cb * bd * td
    out[o + 1] = cg * bdd + sg * bp + gd * (cg * b - sg * bd)
    out[o + 2] = cg * bp - sg * bdd - gd * (cg * bd + sg * b)

    # the same for unit rates: columns of the Jacobian, for the rods' torques by virtual power
    for rod in range(2):
        sign = 1.0 if rod == 0 else -1.0
        length_r = r_front if rod == 0 else r_back
        s = s1 if rod == 0 else s2
        c = c1 if rod == 0 else c2
        ju, jw = -sign * length_r * s, sign * length_r * c
        jX = -(u * ju + w * jw) / X
        jt = (X * ju - u * jX) / H2
        jb = -jw / H
        o = start + (JACOBIAN_FRONT if rod == 0 else JACOBIAN_BACK)
        py, pz = (0.0 * s, 0.0 * c) if rod == 0 else (-length_r * s, length_r * c)
        for k in range(3):  # R^T (0, py, pz)
            out[o + k] = out[r + 3 + k] * py + out[r + 6 + k] * pz
        _put(out, o + 3, half - sb * jt, cg * jb + sg * cb * jt, cg * cb * jt - sg * jb)
    return True
