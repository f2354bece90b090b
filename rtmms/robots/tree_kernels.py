"""One step of any mechanism in a fluid: joint laws, one evaluation of the equations of motion, and the methods.

Arguments travel in tuples of arrays, unpacked where they are used:
tree   topology, constant, base_mode, gravity, imposed
law    motion (n, 3) offset, cosine, sine; omega rad/s; ramp s; kp, kd (n,)
hold   what is constant over the plant's step: torque (n,), target (n, 2), servo (n, 4), bandwidth rad/s, start s
fluid  Immersed.arrays, held (e, 3), ambient (e, SAMPLE)
work   s, base (6, 6), qdd, torque, q, qd, drive (n,) each
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.fluids.immersed import act
from rtmms.integrators.group import displace, normalise, uncurl
from rtmms.jit import kernel
from rtmms.model.layout import S_ACCELERATION, S_HELD
from rtmms.spatial import quaternion_columns, scalar

SOUND, NOT_FINITE, UNSTABLE = 0, 1, 2


@scalar
def ramp(t: Any, length: float) -> Any:
    """(f, f', f'') of the quintic from 0 at t = 0 to 1 at t = length (Khalil 2007, eq 64); 1 where length is 0."""
    if t >= length:
        return 1.0, 0.0, 0.0
    if t <= 0.0:
        return 0.0, 0.0, 0.0
    x = t / length
    f = x * x * x * (10.0 + x * (6.0 * x - 15.0))
    return f, 30.0 * x * x * (1.0 - x) ** 2 / length, 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / length**2


@scalar
def settle(value: Any, rate: Any, target: Any, w: float, t: Any) -> Any:
    """(x, x', x'') after t seconds of x'' = w^2 (target - x) - 2 w x': a command made smooth, exactly."""
    a = value - target
    b = rate + w * a
    e = np.exp(-w * t)
    x = (a + b * t) * e
    v = (b - w * (a + b * t)) * e
    return target + x, v, -w * w * x - 2.0 * w * v


@scalar
def reference(law: Any, hold: Any, j: Any, t: Any) -> Any:
    """(q, qd, qdd) that joint j is meant to follow: ramp (1 + gain) (offset + wave) + commanded offset."""
    motion, omega, length, _, _ = law
    _, target, servo, bandwidth, start = hold
    f, fd, fdd = ramp(t, length)
    c, s = np.cos(omega * t), np.sin(omega * t)
    a, b = motion[j, 1], motion[j, 2]
    w = motion[j, 0] + a * c + b * s
    wd = omega * (b * c - a * s)
    wdd = -omega * omega * (a * c + b * s)
    x, xd, xdd = settle(servo[j, 0], servo[j, 1], target[j, 0], bandwidth, t - start)
    g, gd, gdd = settle(servo[j, 2], servo[j, 3], target[j, 1], bandwidth, t - start)
    g += 1.0
    return (
        g * f * w + x,
        gd * f * w + g * fd * w + g * f * wd + xd,
        gdd * f * w + g * fdd * w + g * f * wdd + 2.0 * (gd * fd * w + gd * f * wd + g * fd * wd) + xdd,
    )


@kernel
def evaluate(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: Any, implicit: float, rate: Any
) -> None:
    """Equations of motion: the rate (12 + 2 n,) of a state (13 + 2 n,) at time t (see rtmms.integrators.group).

    Imposed joints stand where their law has them at t, whatever `state` says. Torques are left in work.
    implicit  s, > 0: springs, dampers and servos are solved linearly implicitly over that step (`inward`)
    """
    topology, constant, base_mode, gravity, imposed = tree
    rows, common, strip, blade, strip_gauss, blade_gauss, flow, moving, held, ambient = fluid
    s, base, qdd, torque, q, qd, drive = work
    kp, kd = law[3], law[4]
    n = topology.shape[0] - 1
    for j in range(n):
        if imposed[j]:
            a, b, c = reference(law, hold, j, t)
            q[j], qd[j], drive[j] = a, b, c
        else:
            # kp (a' - q - h qd') + kd (b' - qd') with a', b' and qd' = qd + h qdd at the step's end; plain where h = 0
            a, b, c = reference(law, hold, j, t + implicit)
            q[j], qd[j] = state[7 + j], state[13 + n + j]
            drive[j] = hold[0][j] + kp[j] * (a - q[j] - implicit * qd[j]) + kd[j] * (b - qd[j])
            s[j + 1, S_HELD] = implicit * (kd[j] + implicit * kp[j])
    orientation, twist = state[3:7], state[7 + n : 13 + n]
    configure(topology, constant, orientation, gravity, q, s)
    outward(topology, twist, qd, s)
    if rows.shape[0] > 0:
        if moving:
            place(topology, state[0:3], orientation, s)
        act(rows, common, strip, blade, strip_gauss, blade_gauss, flow, moving, held, t, ambient, s)
    solve(topology, constant, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(3):
        rate[k] = r[3 * k] * twist[0] + r[3 * k + 1] * twist[1] + r[3 * k + 2] * twist[2]
        rate[3 + k] = twist[3 + k]
    for k in range(6):
        rate[6 + n + k] = s[0, S_ACCELERATION + k]
    for j in range(n):
        rate[6 + j] = qd[j]
        rate[12 + n + j] = qdd[j]


@kernel
def spend(work: Any, h: float, monitor: Any) -> None:
    """Add the joints' power at the evaluation just made, times h, to the work done."""
    torque, qd = work[3], work[5]
    for j in range(torque.shape[0]):
        monitor[3] += h * torque[j] * qd[j]


@kernel
def follow(tree: Any, law: Any, hold: Any, state: Any, t: float) -> None:
    """Put imposed joints where their law has them at t."""
    imposed = tree[4]
    n = imposed.shape[0]
    for j in range(n):
        if imposed[j]:
            a, b, _ = reference(law, hold, j, t)
            state[7 + j], state[13 + n + j] = a, b


@kernel
def rk4(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, monitor: Any, k: Any, y: Any
) -> float:  # fmt: skip
    """Runge-Kutta of order 4 on the group; k (4, 12 + 2 n), y (13 + 2 n,) scratch.

    Returns an estimate of (lambda h)^2: how much the rates of the joint rates differ where these differ; -1 for none.
    """
    evaluate(tree, law, hold, fluid, work, state, t, 0.0, k[0])
    spend(work, h / 6.0, monitor)
    displace(state, k[0], 0.5 * h, y)
    evaluate(tree, law, hold, fluid, work, y, t + 0.5 * h, 0.0, k[1])
    spend(work, h / 3.0, monitor)
    uncurl(k[1], k[0], 0.5 * h)
    displace(state, k[1], 0.5 * h, y)
    evaluate(tree, law, hold, fluid, work, y, t + 0.5 * h, 0.0, k[2])
    spend(work, h / 3.0, monitor)
    uncurl(k[2], k[1], 0.5 * h)
    displace(state, k[2], h, y)
    evaluate(tree, law, hold, fluid, work, y, t + h, 0.0, k[3])
    spend(work, h / 6.0, monitor)
    uncurl(k[3], k[2], h)
    n = tree[4].shape[0]
    above, below = 0.0, 0.0
    for m in range(12 + n, 12 + 2 * n):
        if not tree[4][m - 12 - n]:
            above += (k[2, m] - k[1, m]) ** 2
            below += (0.5 * (k[1, m] - k[0, m])) ** 2
    for m in range(k.shape[1]):
        k[0, m] = (k[0, m] + 2.0 * (k[1, m] + k[2, m]) + k[3, m]) / 6.0
    displace(state, k[0], h, state)
    return above / below if below > 0.0 and above > 0.0 else -1.0


@kernel
def implicit_euler(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, monitor: Any, rate: Any
) -> None:
    """Linearly implicit in springs, dampers and servos, order 1: (M + h C + h^2 K) a = Q - h K v, then v, x."""
    evaluate(tree, law, hold, fluid, work, state, t, h, rate)
    spend(work, h, monitor)
    n = tree[4].shape[0]
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    v0 = state[7 + n] + h * rate[6 + n]
    v1 = state[8 + n] + h * rate[7 + n]
    v2 = state[9 + n] + h * rate[8 + n]
    for k in range(3):
        rate[k] = r[3 * k] * v0 + r[3 * k + 1] * v1 + r[3 * k + 2] * v2
        rate[3 + k] += h * rate[9 + n + k]
    for j in range(n):
        rate[6 + j] += h * rate[12 + n + j]
    displace(state, rate, h, state)


@kernel
def implicit_step(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, order: int, monitor: Any,
    k: Any, y: Any,
) -> None:  # fmt: skip
    """One step of order 1, or of order 2 by extrapolating one step against two half steps."""
    if order == 2:
        for m in range(state.shape[0]):
            y[m] = state[m]
        spent = monitor[3]
        implicit_euler(tree, law, hold, fluid, work, y, t, h, monitor, k[0])
        monitor[3] = spent
        follow(tree, law, hold, y, t + h)
        implicit_euler(tree, law, hold, fluid, work, state, t, 0.5 * h, monitor, k[0])
        follow(tree, law, hold, state, t + 0.5 * h)
        implicit_euler(tree, law, hold, fluid, work, state, t + 0.5 * h, 0.5 * h, monitor, k[0])
        for m in range(state.shape[0]):
            state[m] = 2.0 * state[m] - y[m]
    else:
        implicit_euler(tree, law, hold, fluid, work, state, t, h, monitor, k[0])


@kernel
def plain_rate(state: Any, rate: Any, out: Any) -> None:
    """Rate of the group -> rate of the vector: the quaternion's own derivative Q (0, W) / 2 in place of W."""
    for k in range(3):
        out[k] = rate[k]
    w, x, y, z = state[3], state[4], state[5], state[6]
    a, b, c = 0.5 * rate[3], 0.5 * rate[4], 0.5 * rate[5]
    out[3] = -x * a - y * b - z * c
    out[4] = w * a + y * c - z * b
    out[5] = w * b + z * a - x * c
    out[6] = w * c + x * b - y * a
    for k in range(6, rate.shape[0]):
        out[k + 1] = rate[k]


@kernel
def abam(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, h: float, history: Any, count: int,
    monitor: Any, k: Any, y: Any,
) -> float:  # fmt: skip
    """Adams-Bashforth 4 predicts, Adams-Moulton 5 corrects, evaluate again (PECE); RK4 starts.

    history  (5, 13 + 2 n): rates at the last four steps, newest first, then room for the predicted one
    count    how many of them are there; below 4 the step is RK4's
    monitor  (4,)  the third is the squared size of the last correction of the joint rates
    Returns an estimate of (lambda h)^2 as `rk4` does.
    """
    evaluate(tree, law, hold, fluid, work, state, t, 0.0, k[0])
    for i in range(3, 0, -1):
        for m in range(state.shape[0]):
            history[i, m] = history[i - 1, m]
    f, n = history, tree[4].shape[0]
    plain_rate(state, k[0], f[0])
    if count < 3:
        rk4(tree, law, hold, fluid, work, state, t, h, monitor, k, y)
        return -1.0
    spend(work, 0.5 * h, monitor)
    above = 0.0  # rates of the last step's prediction (f[4]) and of what it was corrected to (f[0])
    for m in range(13 + n, 13 + 2 * n):
        if not tree[4][m - 13 - n]:
            above += (h * (f[0, m] - f[4, m])) ** 2
    ratio = above / monitor[2] if count > 3 and above > 0.0 and monitor[2] > 0.0 else -1.0
    for m in range(state.shape[0]):
        y[m] = state[m] + h / 24.0 * (55.0 * f[0, m] - 59.0 * f[1, m] + 37.0 * f[2, m] - 9.0 * f[3, m])
    follow(tree, law, hold, y, t + h)
    evaluate(tree, law, hold, fluid, work, y, t + h, 0.0, k[0])
    spend(work, 0.5 * h, monitor)
    plain_rate(y, k[0], f[4])
    for m in range(state.shape[0]):
        state[m] += h / 720.0 * (
            251.0 * f[4, m] + 646.0 * f[0, m] - 264.0 * f[1, m] + 106.0 * f[2, m] - 19.0 * f[3, m]
        )  # fmt: skip
    monitor[2] = 0.0
    for m in range(13 + n, 13 + 2 * n):
        if not tree[4][m - 13 - n]:
            monitor[2] += (state[m] - y[m]) ** 2
    return ratio


@kernel
def watch(monitor: Any, ratio: float) -> float:
    """|lambda| h over the last hundred steps or so: the geometric mean of its estimates, which swing with the phase.

    monitor (4,)  mean of ln (lambda h)^2, how many estimates, the method's own memory, work done (J). 0 before twenty
                  estimates.
    """
    if ratio > 0.0 and np.isfinite(ratio):
        monitor[1] += 1.0
        monitor[0] += (np.log(ratio) - monitor[0]) / min(monitor[1], 100.0)
    return np.exp(0.5 * monitor[0]) if monitor[1] > 20.0 else 0.0


@kernel
def hold_commands(kinds: Any, joints: Any, command: Any, torque: Any, target: Any) -> None:
    """Spread a command over joints. kinds: 0 torque, 1 offset, 2 gain; joint -1 stands for all."""
    for a in range(kinds.shape[0]):
        for j in range(torque.shape[0]):
            if joints[a] == j or joints[a] < 0:
                if kinds[a] == 0:
                    torque[j] = command[a]
                else:
                    target[j, kinds[a] - 1] = command[a]


@kernel
def finish_servo(target: Any, servo: Any, bandwidth: float, dt: float) -> None:
    """Servo states (value, rate of offset; value, rate of gain) at the end of a step."""
    for j in range(target.shape[0]):
        for k in range(2):
            x, v, _ = settle(servo[j, 2 * k], servo[j, 2 * k + 1], target[j, k], bandwidth, dt)
            servo[j, 2 * k], servo[j, 2 * k + 1] = x, v


@kernel
def _finish(tree: Any, law: Any, hold: Any, state: Any, t: float) -> bool:
    """Quaternion and imposed joints in order at a step's end; False where the state is no longer finite."""
    normalise(state)
    follow(tree, law, hold, state, t)
    sound = True
    for m in range(state.shape[0]):
        sound = sound and np.isfinite(state[m])
    return sound


@kernel
def advance_rk4(
    order: int, tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, h: float, substeps: int,
    history: Any, counts: Any, monitor: Any, limit: float, k: Any, y: Any,
) -> int:  # fmt: skip
    """`substeps` steps of h from time hold.start; one function a method, so that only what is used is compiled.

    order    of the method;  history (5, 13 + 2 n) and counts (1,), steps since it was empty: of `abam`
    monitor  (4,) see `watch`;  limit  |lambda| h that the method bears
    Returns SOUND, or what went wrong.
    """
    for i in range(substeps):
        t = hold[4] + i * h
        seen = watch(monitor, rk4(tree, law, hold, fluid, work, state, t, h, monitor, k, y))
        sound = _finish(tree, law, hold, state, t + h)
        if seen > limit:
            return UNSTABLE
        if not sound:
            return NOT_FINITE
    return SOUND


@kernel
def advance_abam(
    order: int, tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, h: float, substeps: int,
    history: Any, counts: Any, monitor: Any, limit: float, k: Any, y: Any,
) -> int:  # fmt: skip
    """As `advance_rk4`, by `abam`."""
    for i in range(substeps):
        t = hold[4] + i * h
        ratio = abam(tree, law, hold, fluid, work, state, t, h, history, counts[0], monitor, k, y)
        counts[0] += 1
        seen = watch(monitor, ratio)
        sound = _finish(tree, law, hold, state, t + h)
        if seen > limit:
            return UNSTABLE
        if not sound:
            return NOT_FINITE
    return SOUND


@kernel
def advance_implicit(
    order: int, tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, h: float, substeps: int,
    history: Any, counts: Any, monitor: Any, limit: float, k: Any, y: Any,
) -> int:  # fmt: skip
    """As `advance_rk4`, by `implicit_step` of order 1 or 2."""
    for i in range(substeps):
        t = hold[4] + i * h
        implicit_step(tree, law, hold, fluid, work, state, t, h, order, monitor, k, y)
        if not _finish(tree, law, hold, state, t + h):
            return NOT_FINITE
    return SOUND
