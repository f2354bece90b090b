"""One step of a continuous body: parameters follow their commands, and Runge and Kutta's fourth-order step moves it."""

from __future__ import annotations

from typing import Any

from rtmms.continuum.dynamics import evaluate
from rtmms.continuum.field import COAST
from rtmms.continuum.layout import BAD_POINT, K_WIDTH, P_WIDTH, RATE_SIZE, TOLD, Y_SIZE
from rtmms.jit import kernel
from rtmms.mechanism.group import displace, normalise, uncurl
from rtmms.mechanism.joint_laws import coast, settle
from rtmms.mechanism.step import finite, saturate
from rtmms.memory import FLAG, INTEGER, Layout, given, model, number, scratch, state, whole
from rtmms.model.layout import S_WIDTH

SOUND, BAD_COMMAND, NOT_FINITE, BAD_STRAIN = 0, 1, 2, 3
STAGES = 4
BODY = Layout(
    "ContinuousBody",
    state("y", Y_SIZE), state("led", 3, "parameters"), number("function", INTEGER),
    model("section", "along", K_WIDTH), model("inner", "points", "points"), number("spacing", unit="m"),
    model("gravity", 3, unit="m/s2"), model("current", 3, unit="m/s"), number("wake", FLAG),
    model("follow", "parameters", dtype=INTEGER), number("bandwidth", unit="rad/s"),
    model("mix", "parameters", "commands"), given("given", "commands"),
    model("limits", "commands", 2), number("time", unit="s"),
    number("dt", unit="s"), number("substeps", INTEGER),
    scratch("s", "along", P_WIDTH), scratch("base", 1, S_WIDTH), scratch("square", 6, 6), scratch("head", 3, 6),
    scratch("told", TOLD), scratch("rates", STAGES, RATE_SIZE), scratch("stage", Y_SIZE), scratch("total", RATE_SIZE),
    scratch("p", 3, "parameters"), whole("memory"), scratch("last", "memory"),
)  # fmt: skip
"""All that a continuous body steps with (columns: rtmms.continuum.layout). y: the state; led: of each parameter of the
strain field target, value and rate; function: address of the field; told: what an evaluation leaves besides; p: the
parameters at the time of an evaluation, with rates; last: the state before the step."""


@kernel
def parameters_at(body: Any, t: float) -> None:
    """body.p (3, k), t seconds after the state's own time."""
    led, follow, bandwidth, p = body.led, body.follow, body.bandwidth, body.p
    n = p.shape[1]
    for k in range(n):
        target, value, rate = led[0, k], led[1, k], led[2, k]
        if follow[k] == COAST:
            a, b, c = coast(value, rate, target, bandwidth, t)
        else:
            a, b, c = settle(value, rate, target, bandwidth, t)
        p[0, k], p[1, k], p[2, k] = a, b, c


@kernel
def advance(body: Any, t: float, h: float) -> int:
    """One step of h from time t."""
    state, rates, y, total, p, led = body.y, body.rates, body.stage, body.total, body.p, body.led
    status = SOUND
    for i in range(STAGES):
        c = 0.0 if i == 0 else 1.0 if i == 3 else 0.5
        if i > 0:
            displace(state, rates[i - 1], c * h, y)
        else:
            for m in range(Y_SIZE):
                y[m] = state[m]
        parameters_at(body, c * h)
        evaluate(body, y, t + c * h, rates[i])
        if body.told[BAD_POINT] >= 0.0:
            status = BAD_STRAIN
        if i > 0:
            for m in range(total.shape[0]):
                total[m] = c * rates[i - 1, m]
            uncurl(rates[i], total, h)
    for m in range(total.shape[0]):
        total[m] = (rates[0, m] + 2.0 * rates[1, m] + 2.0 * rates[2, m] + rates[3, m]) / 6.0
    displace(state, total, h, y)
    normalise(y)
    if status == SOUND and not finite(y):
        status = NOT_FINITE
    if status != SOUND:
        return status
    for m in range(Y_SIZE):
        state[m] = y[m]
    parameters_at(body, h)
    for k in range(p.shape[1]):
        led[1, k], led[2, k] = p[0, k], p[1, k]
    return SOUND


@kernel
def take_step(body: Any) -> int:
    """Advance by dt with the command body.given. A status, see above: where it is not SOUND the state is that of the
    last sound substep."""
    mix, given, led, substeps = body.mix, body.given, body.led, body.substeps
    if not finite(given):
        return BAD_COMMAND
    saturate(given, body.limits)
    for k in range(mix.shape[0]):
        driven, total = False, 0.0
        for u in range(mix.shape[1]):
            if mix[k, u] != 0.0:
                driven = True
                total += mix[k, u] * given[u]
        if driven:
            led[0, k] = total
    h = body.dt / substeps
    for i in range(substeps):
        status = advance(body, body.time + i * h, h)
        if status != SOUND:
            return status
    return SOUND


@kernel
def look_at(body: Any) -> None:
    """Everything at the present state into the scratch."""
    parameters_at(body, 0.0)
    evaluate(body, body.y, body.time, body.total)


_body_at = BODY.type().at()


@kernel
def enter_step(address: int) -> int:
    """One step of the body whose record stands at `address`; the status of `take_step`."""
    return take_step(_body_at(address))


@kernel
def enter_look(address: int) -> None:
    """`look_at` of that body."""
    look_at(_body_at(address))
