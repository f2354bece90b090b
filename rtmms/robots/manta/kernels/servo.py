"""A position servo of second order, moved exactly: whatever its damping, whatever the step.

Between its limits the servo is linear, angle'' = omega^2 (reference - angle) - 2 zeta omega angle', and its reference
runs in a straight line over a step. With r = r0 + slope t its motion is

    angle = a0 + (r0 - a0) G + v0 g + slope K,      g the impulse response, G = int omega^2 g, K = int G

each taken without the cancellation that the textbook forms have near critical damping (there the poles meet), at small
steps and far beyond critical damping. At a limit its rate decays to the limit, or its acceleration is held; where one
regime ends is found within the step.
"""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, Floats, kernel

SAMPLES, SAMPLES_MAX, TURNS_MAX = 16, 256, 64
"""The end of a regime is looked for at so many places of what is left of a step, more where the servo swings within it;
so often may regimes follow one another within a step."""

ROOT_STEPS, ROOT_MARGIN = 60, 1e-12
"""Most steps towards the end of a regime, and the share of a limit by which it may lie outside."""

RESPONSES = (5, SAMPLES_MAX)
"""Shape of `servo_responses`: the parts of `servo_response`, and the places within a step."""


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
def servo_response(omega: float, zeta: float, t: float) -> Floats:
    """(g, g', g'', G, K) at t s of the linear servo: impulse response (s), its two rates, step and ramp response."""
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
    """At how many places of t s the end of a regime is looked for."""
    return int(min(SAMPLES + 2.0 * omega * t, float(SAMPLES_MAX)))


@kernel
def servo_responses(omega: float, zeta: float, t: float, out: Array) -> int:
    """`servo_response` at i / n of t s into out[:, i - 1], i = 1 to n; returns n. They depend on the model alone."""
    n = sample_count(omega, t)
    for i in range(1, n + 1):
        out[0, i - 1], out[1, i - 1], out[2, i - 1], out[3, i - 1], out[4, i - 1] = servo_response(
            omega, zeta, t * (i / n)
        )
    return n


@kernel
def servo_linear(angle: float, rate: float, away: float, slope: float, omega: float, response: Floats) -> Floats:
    """(angle, rate, acceleration) after the time of `response`; away = reference - angle at first, slope of the
    reference in rad/s."""
    g, g1, g2, rise, ramp = response
    w2 = omega * omega
    return (
        angle + away * rise + rate * g + slope * ramp,
        w2 * g * away + rate * g1 + slope * rise,
        w2 * g1 * away + rate * g2 + slope * w2 * g,
    )


@kernel
def _regime(angle: float, rate: float, reference: float, servo: Floats) -> tuple[int, int]:
    """Which limits hold: of the wanted rate, of the acceleration; -1, 0 or 1 each."""
    omega, zeta, rate_limit, accel_limit = servo
    wanted = omega / (2.0 * zeta) * (reference - angle)
    push = 2.0 * zeta * omega * (_clip(wanted, rate_limit) - rate)
    return int(wanted > rate_limit) - int(wanted < -rate_limit), int(push > accel_limit) - int(push < -accel_limit)


@kernel
def _glide(
    regime: tuple[int, int], angle: float, rate: float, away: float, slope: float, t: float, servo: Floats
) -> Floats:
    """(angle, rate, acceleration) after t s in one regime."""
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
    """Whether the servo is sure to stay clear of its limits for as long as the reference runs so: by a bound.

    With e = reference - angle - (2 zeta / omega) slope and u = angle' - slope, the linear servo is e' = -u,
    u' = omega^2 e - 2 zeta omega u, so V = omega^2 e^2 + u^2 never grows. Then |u'| <= omega sqrt((1 + 4 zeta^2) V),
    and the wanted rate stays within |slope| + sqrt(V) / (2 zeta).
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
    """Whether no limit holds at the start nor at any of the n places: then `_limited` finds no end of the regime."""
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
    """How far inside its regime the servo is, as a share of the limits: continuous in time, negative outside."""
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
    """s, just behind the end of the regime, which lies between low (inside) and high (outside); by regula falsi.

    Illinois' variant of it. The acceleration is continuous there, so an end that is late by d costs the rate O(d^2).
    """
    a, v, _ = _glide(regime, angle, rate, here - angle, slope, low, servo)
    inside = _margin(regime, a, v, here + slope * low, servo)
    a, v, _ = _glide(regime, angle, rate, here - angle, slope, high, servo)
    outside = _margin(regime, a, v, here + slope * high, servo)
    left, side = outside, 0
    for _ in range(ROOT_STEPS):
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
    """(angle, rate, acceleration) after t s, from regime to regime; responses, samples: `servo_responses` of t."""
    here, left = reference, t
    for turn in range(TURNS_MAX):
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
    """(angle, rate, acceleration) after t s with the reference running from ref0 to ref1.

    servo         omega rad/s, zeta, rate limit rad/s, acceleration limit rad/s2
    responses, n  `servo_responses` of t
    """
    slope, away = (ref1 - ref0) / t, ref0 - angle
    if _within(angle, rate, away, slope, servo) or _clear(angle, rate, away, slope, t, servo, responses, n):
        return servo_linear(angle, rate, away, slope, servo[0], _column(responses, n - 1))
    return _limited(angle, rate, ref0, slope, t, servo, responses, n)
