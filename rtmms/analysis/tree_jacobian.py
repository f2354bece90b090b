"""A and B of one step of a tree: the tangents of its stages, one after the other (rtmms.mechanism.step.one_step)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rtmms.analysis.block_matrices import COLUMNS, Bordered, sum_rows
from rtmms.analysis.tree_jacobian_bodies import (
    COMMAND,
    FOLLOWED,
    JOINTS,
    POSE,
    RATE,
    TARGET,
    TREE_JACOBIAN,
    TWIST,
    VALUE,
    acceleration_slopes,
)
from rtmms.base.jit import kernel
from rtmms.base.spatial import Array, quaternion_columns
from rtmms.mechanism.body_actuators import CHANNEL, LAG
from rtmms.mechanism.chart import RATE_RAD_S
from rtmms.mechanism.equations import evaluate
from rtmms.mechanism.joint_laws import BOUNDED, GAIN, OFFSET, TORQUE, hard_limits, hold_commands, ramp, settle
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.running import Running
from rtmms.mechanism.step import add, displace, lead, normalise, saturate, uncurl
from rtmms.model.layout import BASE_FREE, C_COULOMB, S_ACCELERATION


@kernel
def tree_jacobian(system: Any, room: Any) -> bool:
    """Compute room.a_and_b of the step from room.origin under room.input_commands from hold.start on.

    The pose after is in the chart around room.reference.

    Parameters
    ----------
    system : Any
        Record of the tree's step.
    room : Any
        Record TREE_JACOBIAN.

    Returns
    -------
    bool
        False where the result is not finite.
    """
    _begin(system, room)
    hold, vector, start, place = system.hold, system.motion.vector, room.start, room.place
    n = place.shape[0]
    start[:] = 0.0
    for k in range(2 * room.base):
        start[k, k] = 1.0
    for j in range(n):
        if place[j, 0] >= 0:
            start[JOINTS + j, place[j, 0]] = 1.0
            start[JOINTS + n + j, place[j, 1]] = 1.0
    _rotation(vector, room.turn[0])
    h = system.dt / system.substeps
    for i in range(system.substeps):
        if system.method.parts.shape[0] == 1:
            _one_step(system, room, vector, hold.start + i * h, h)
        else:
            _extrapolated(system, room, vector, hold.start + i * h, h)
        normalise(vector)
    _finish(system, room, vector)
    sound = True
    for k in range(vector.shape[0]):
        sound = sound and np.isfinite(vector[k])
    result = room.a_and_b
    for r in range(result.shape[0]):
        total = 0.0
        for c in range(result.shape[1]):
            total += result[r, c]
        sound = sound and np.isfinite(total)
    return sound


@kernel
def tree_accelerations(system: Any, room: Any) -> None:
    """Compute room.residual of the state room.origin under room.input_commands at hold.start.

    See `acceleration_slopes` for its columns.

    Parameters
    ----------
    system : Any
        Record of the tree's step.
    room : Any
        Record TREE_JACOBIAN.
    """
    _begin(system, room)
    evaluate(system, system.motion.vector, system.hold.start, 0.0, system.motion.rates[0])
    acceleration_slopes(system, room, system.hold.start, 0.0)


@kernel
def _begin(system: Any, room: Any) -> None:
    """Write the state and the held commands of the step, as `take_step` has them."""
    command, hold, pushes, memory, origin = system.command, system.hold, system.pushes, system.memory, room.origin
    values = command.values
    for k in range(memory.shape[0]):
        memory[k] = origin[k]
    for k in range(values.shape[0]):
        values[k] = room.input_commands[k]
    _command_slopes(system, room)
    saturate(values, command.limits)
    hold_commands(command, values, hold.torque, hold.target, hold.slew, hold.goal)
    for k in range(values.shape[0]):
        pushes.command[k] = values[k]


@kernel
def _rotation(state: Any, out: Any) -> None:
    r = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(9):
        out[k] = r[k]


@kernel
def _command_slopes(system: Any, room: Any) -> None:
    """Compute the weight (n, 2) of each command, behind its limits, in each joint's offset and gain."""
    command, weight, cut, reach = system.command, room.weight, room.cut, room.reach
    limits, kinds, joints = command.limits, command.kinds, command.joints
    weight[:] = 0.0
    for a in range(cut.shape[0]):
        low, high = limits[a, 0], limits[a, 1]
        above = min(max(room.input_commands[a] + reach[a], low), high)
        below = min(max(room.input_commands[a] - reach[a], low), high)
        cut[a] = (above - below) / (2.0 * reach[a])
        if kinds[a] != OFFSET and kinds[a] != GAIN:
            continue
        for j in range(weight.shape[0]):
            if joints[a] == j or joints[a] < 0:
                weight[j, 1 if kinds[a] == GAIN else 0] = cut[a]


@kernel
def _filter_slopes(hold: Any, j: int, t: float, out: Any) -> None:
    """Write out (2, 4, 3): the slopes of a filter's value, rate and second rate, t seconds after the step's start.

    The axes are offset and gain; the filter's value, rate, target and command; the slopes. The time at which the target
    arrives has no slope: value and rates of the filter have no jump there.
    """
    w, going = hold.bandwidth[j], 0.0
    for m in range(2):
        if m == 0 and hold.slew[j] < np.inf:
            going = abs(hold.goal[j] - hold.target[j, 0]) / hold.slew[j]
        slews = m == 0 and hold.slew[j] < np.inf
        for i in range(4):
            value, rate, target = 1.0 if i == 0 else 0.0, 1.0 if i == 1 else 0.0, 1.0 if i == 2 else 0.0
            if not slews:
                x, xd, xdd = settle(value, rate, 1.0 if i == 3 else target, w, t)
            elif t <= going:
                x, xd, xdd = settle(value, rate, target, w, t)
            else:
                x, xd, xdd = settle(value, rate, target, w, going)
                x, xd, xdd = settle(x, xd, 1.0 if i == 3 else 0.0, w, t - going)
            out[m, i, 0], out[m, i, 1], out[m, i, 2] = x, xd, xdd


@kernel
def _law_slopes(law: Any, hold: Any, j: int, t: float, out: Any) -> None:
    """Write out (2, 4, 3): the slopes of rtmms.mechanism.joint_laws.reference.

    The axes are offset and gain; the filter's value, rate, target and command; the slopes.
    """
    f, fd, fdd = ramp(t, law.ramp)
    omega, motion = law.omega, law.motion
    c, s = math.cos(omega * t), math.sin(omega * t)
    w = motion[j, 0] + motion[j, 1] * c + motion[j, 2] * s
    wd = omega * (motion[j, 2] * c - motion[j, 1] * s)
    wdd = -omega * omega * (motion[j, 1] * c + motion[j, 2] * s)
    _filter_slopes(hold, j, t - hold.start, out)
    for i in range(4):
        x, xd, xdd = out[1, i, 0], out[1, i, 1], out[1, i, 2]
        out[1, i, 0] = x * f * w
        out[1, i, 1] = xd * f * w + x * (fd * w + f * wd)
        out[1, i, 2] = xdd * f * w + x * (fdd * w + 2.0 * fd * wd + f * wdd) + 2.0 * xd * (fd * w + f * wd)


@kernel
def _add_followed(room: Any, j: int, m: int, which: int, factor: float, row: Any) -> None:
    """Add the slopes of joint j's reference to a row of tangents.

    They are of its offset (m = 0) or gain, and of value, rate or second rate.
    """
    followed, slope, weight = room.followed, room.slope, room.weight
    if followed[j, 4 * m + VALUE] >= 0:
        row[followed[j, 4 * m + VALUE]] += factor * slope[m, 0, which]
        row[followed[j, 4 * m + RATE]] += factor * slope[m, 1, which]
    if followed[j, 4 * m + TARGET] >= 0:
        row[followed[j, 4 * m + TARGET]] += factor * slope[m, 2, which]
    if followed[j, 4 * m + COMMAND] >= 0:
        row[followed[j, 4 * m + COMMAND]] += factor * weight[j, m] * slope[m, 3, which]


@kernel
def _inputs(system: Any, room: Any, t: float, implicit: float) -> None:
    """Write the rows of room.at that follow from time, filters and lags alone."""
    law, hold, pushes, imposed, at = system.law, system.hold, system.pushes, system.tree.imposed, room.at
    n, torques, motors, states = imposed.shape[0], room.torques, room.motors, room.states
    q0, v0, x0 = JOINTS, JOINTS + n, JOINTS + 2 * n
    at[x0:] = 0.0
    for j in range(n):
        if imposed[j]:
            at[q0 + j] = 0.0
            at[v0 + j] = 0.0
            _law_slopes(law, hold, j, t, room.slope)
            for m in range(2):
                _add_followed(room, j, m, 0, 1.0, at[q0 + j])
                _add_followed(room, j, m, 1, 1.0, at[v0 + j])
                _add_followed(room, j, m, 2, 1.0, at[x0 + j])
        else:
            if law.kp[j] != 0.0 or law.kd[j] != 0.0:
                _law_slopes(law, hold, j, t + implicit, room.slope)
                for m in range(2):
                    _add_followed(room, j, m, 0, law.kp[j], at[x0 + j])
                    _add_followed(room, j, m, 1, law.kd[j], at[x0 + j])
            if torques[j] >= 0:
                at[x0 + j, torques[j]] += room.cut[torques[j] - states]
    for b in range(motors.shape[0]):
        _add_lagged(room, pushes.numbers[b, LAG], b, t - hold.start, at[x0 + n + b])
        at[x0 + n + motors.shape[0] + b, motors[b, 1]] = room.cut[motors[b, 1] - states]


@kernel
def _add_lagged(room: Any, tau: float, b: int, elapsed: float, row: Any) -> None:
    motors, states = room.motors, room.states
    decay = math.exp(-elapsed / tau) if tau > 0.0 else 0.0
    if motors[b, 0] >= 0:
        row[motors[b, 0]] += decay
    row[motors[b, 1]] += (1.0 - decay) * room.cut[motors[b, 1] - states]


@kernel
def _multiply(room: Any) -> None:
    """Compute room.solved = room.residual room.at."""
    residual, at, shares, chosen, to, solved = room.residual, room.at, room.shares, room.chosen, room.to, room.solved
    unknown = residual.shape[0]
    for r in range(0, unknown, 6):
        count = 0
        for i in range(6):
            to[i] = r + i
        for k in range(residual.shape[1]):
            there = False
            for i in range(6):
                shares[count, i] = residual[r + i, k] if r + i < unknown else 0.0
                there = there or shares[count, i] != 0.0
            chosen[count] = k
            count += 1 if there else 0
        if count > 0:
            sum_rows(count, shares, chosen, to, at, solved)
        else:
            solved[r : r + 6] = 0.0


@kernel
def _turn_back(u: Any, back: Any, right: Any) -> None:
    """Compute back = exp(-u^), and right with d exp(u^) = exp(u^) (right du)^; u (3,), matrices (9,)."""
    x, y, z = u
    square = x * x + y * y + z * z
    if square > 1e-8:
        angle = math.sqrt(square)
        a, b = math.sin(angle) / angle, (1.0 - math.cos(angle)) / square
        c = (1.0 - a) / square
    else:
        a, b, c = 1.0 - square / 6.0, 0.5 - square / 24.0, 1.0 / 6.0 - square / 120.0
    _polynomial(u, 1.0, -a, b, back)
    _polynomial(u, 1.0, -b, c, right)


@kernel
def _polynomial(u: Any, item: float, first: float, second: float, out: Any) -> None:
    """Compute one 1 + first u^ + second u^ u^."""
    x, y, z = u
    square = x * x + y * y + z * z
    d = item - second * square
    out[0], out[4], out[8] = d + second * x * x, d + second * y * y, d + second * z * z
    out[1], out[3] = second * x * y - first * z, second * x * y + first * z
    out[2], out[6] = second * x * z + first * y, second * x * z - first * y
    out[5], out[7] = second * y * z - first * x, second * y * z + first * x


@kernel
def _rotate(r: Any, source: Any, at: int, out: Any, to: int) -> None:
    """Compute out[to : to + 3] = R source[at : at + 3], rows of tangents; R (9,) by rows."""
    for c in range(out.shape[1]):
        x, y, z = source[at, c], source[at + 1, c], source[at + 2, c]
        out[to, c] = r[0] * x + r[1] * y + r[2] * z
        out[to + 1, c] = r[3] * x + r[4] * y + r[5] * z
        out[to + 2, c] = r[6] * x + r[7] * y + r[8] * z


@kernel
def _along(room: Any, along: Any, h: float, start: Any, out: Any) -> None:
    """Compute tangents of a state displaced from `start`'s along a rate whose tangents are the last of room.rates."""
    rates, turn = room.rates[room.rates.shape[0] - 1], room.turn
    for r in range(rates.shape[0]):
        if r < 3 or r >= TWIST:
            for c in range(out.shape[1]):
                out[r, c] = start[r, c] + h * rates[r, c]
    if room.base > 0:
        _turn_back((h * along[3], h * along[4], h * along[5]), turn[1], turn[2])
        b, j = turn[1], turn[2]
        for c in range(out.shape[1]):
            x, y, z = start[3, c], start[4, c], start[5, c]
            p, q, r = h * rates[3, c], h * rates[4, c], h * rates[5, c]
            out[3, c] = b[0] * x + b[1] * y + b[2] * z + j[0] * p + j[1] * q + j[2] * r
            out[4, c] = b[3] * x + b[4] * y + b[5] * z + j[3] * p + j[4] * q + j[5] * r
            out[5, c] = b[6] * x + b[7] * y + b[8] * z + j[6] * p + j[7] * q + j[8] * r


@kernel
def _relative(first: Any, second: Any, out: Any) -> None:
    """Compute out = A^T B of matrices (9,) by rows."""
    for r in range(3):
        for c in range(3):
            out[3 * r + c] = first[r] * second[c] + first[3 + r] * second[3 + c] + first[6 + r] * second[6 + c]


@kernel
def _one_step(system: Any, room: Any, state: Any, t: float, h: float) -> None:
    """Take a step of the tableau, state and room.start in place."""
    method, motion = system.method, system.motion
    nodes, matrix, b, over, gamma = method.nodes, method.matrix, method.weights, method.over, method.gamma
    k, y, start, at, rates = motion.rates, motion.states[0], room.start, room.at, room.rates
    stages, along, total = nodes.shape[0], k[k.shape[0] - 1], rates[rates.shape[0] - 1]
    for i in range(stages):
        for m in range(k.shape[1]):
            along[m] = 0.0
        total[:] = 0.0
        for j in range(i):
            if matrix[i, j] != 0.0:
                add(along, matrix[i, j], k[j])
                for r in range(total.shape[0]):
                    add(total[r], matrix[i, j], rates[j, r])
        displace(state, along, h, y)
        _along(room, along, h, start, at)
        time, implicit = t + nodes[i] * h, gamma * h
        evaluate(system, y, time, implicit, k[i])
        acceleration_slopes(system, room, time, implicit)
        _inputs(system, room, time, implicit)
        _stage_rates(system, room, y, i, implicit)
        if gamma > 0.0:
            lead(y, k[i], implicit)
        if i > 0:
            if room.base > 0:
                _uncurl_rates(k[i], along, h, total, rates[i])
            uncurl(k[i], along, h)
    for m in range(k.shape[1]):
        along[m] = 0.0
    total[:] = 0.0
    for i in range(stages):
        add(along, b[i] / over, k[i])
        for r in range(total.shape[0]):
            add(total[r], b[i] / over, rates[i, r])
    displace(state, along, h, state)
    _along(room, along, h, start, start)


@kernel
def _extrapolated(system: Any, room: Any, state: Any, t: float, h: float) -> None:
    """Take the step in each number of parts, mixed, as in rtmms.mechanism.step; state and room.start in place."""
    parts, mix, states, start = system.method.parts, system.method.mix, system.motion.states, room.start
    before, mixed, turned, quaternions = room.before, room.mixed, room.turned, room.quaternions
    part, total = states[1], states[2]
    for m in range(state.shape[0]):
        total[m] = 0.0
    mixed[:] = 0.0
    for r in range(before.shape[0]):
        before[r] = start[r]
    for p in range(parts.shape[0]):
        length = h / parts[p]
        for m in range(state.shape[0]):
            part[m] = state[m]
        for r in range(before.shape[0]):
            start[r] = before[r]
        for q in range(int(parts[p])):
            _one_step(system, room, part, t + q * length, length)
        for m in range(state.shape[0]):
            total[m] += mix[p] * part[m]
        for r in range(before.shape[0]):
            add(mixed[r], mix[p], start[r])
        for m in range(3):
            turned[p, m] = start[3 + m]
        for m in range(4):
            quaternions[p, m] = part[3 + m]
    for m in range(state.shape[0]):
        state[m] = total[m]
    for r in range(before.shape[0]):
        start[r] = mixed[r]
    if room.base > 0:  # quaternions are mixed, q = sum m_p q_p: theta = sum m_p (conj(q) q_p (0, theta_p)) / |q|^2
        w, x, y, z = state[3], -state[4], -state[5], -state[6]
        square = w * w + x * x + y * y + z * z
        for m in range(3):
            start[3 + m] = 0.0
        for p in range(parts.shape[0]):
            a, b, c, d = quaternions[p, 0], quaternions[p, 1], quaternions[p, 2], quaternions[p, 3]
            share = mix[p] / square
            r0 = share * (w * a - x * b - y * c - z * d)
            rx, ry = share * (w * b + x * a + y * d - z * c), share * (w * c - x * d + y * a + z * b)
            rz = share * (w * d + x * c - y * b + z * a)
            for m in range(start.shape[1]):
                i, j, k = turned[p, 0, m], turned[p, 1, m], turned[p, 2, m]
                start[3, m] += r0 * i + ry * k - rz * j
                start[4, m] += r0 * j + rz * i - rx * k
                start[5, m] += r0 * k + rx * j - ry * i


@kernel
def _stage_rates(system: Any, room: Any, y: Any, i: int, ahead: float) -> None:
    """Compute room.rates[i], tangents of the rate of stage i at y, whose tangents are room.at."""
    at, out, solved, turn, imposed, free = (
        room.at,
        room.rates[i],
        room.solved,
        room.turn,
        system.tree.imposed,
        room.free,
    )
    n, base, work = imposed.shape[0], room.base, system.work
    if base > 0:
        _rotation(y, turn[1])
        _relative(turn[0], turn[1], turn[2])
        if system.fluid.moving:  # place in the body's axes, only for the product
            _relative(turn[1], turn[0], turn[3])
            _rotate(turn[3], at, POSE, at, POSE)
    _multiply(room)
    if base > 0:
        r = turn[2]
        s = work.s
        vx = y[7 + n] + ahead * s[0, S_ACCELERATION]
        vy = y[8 + n] + ahead * s[0, S_ACCELERATION + 1]
        vz = y[9 + n] + ahead * s[0, S_ACCELERATION + 2]
        for c in range(out.shape[1]):
            tx, ty, tz = at[3, c], at[4, c], at[5, c]
            x = at[6, c] + ahead * solved[0, c] + ty * vz - tz * vy
            p = at[7, c] + ahead * solved[1, c] + tz * vx - tx * vz
            q = at[8, c] + ahead * solved[2, c] + tx * vy - ty * vx
            out[0, c] = r[0] * x + r[1] * p + r[2] * q
            out[1, c] = r[3] * x + r[4] * p + r[5] * q
            out[2, c] = r[6] * x + r[7] * p + r[8] * q
            for m in range(3):
                out[3 + m, c] = at[9 + m, c] + ahead * solved[3 + m, c]
        for m in range(6):
            out[TWIST + m] = solved[m]
    for u in range(base, free.shape[0]):
        j = free[u]
        for c in range(out.shape[1]):
            out[JOINTS + j, c] = at[JOINTS + n + j, c] + ahead * solved[u, c]
            out[JOINTS + n + j, c] = solved[u, c]


@kernel
def _uncurl_rates(rate: Any, before: Any, h: float, total: Any, out: Any) -> None:
    """Compute tangents of `uncurl`, with the rate before it."""
    x, y, z = h * before[3], h * before[4], h * before[5]
    a, b, c = rate[3], rate[4], rate[5]
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    for m in range(out.shape[1]):
        p, q, r = h * total[3, m], h * total[4, m], h * total[5, m]
        i, j, k = out[3, m], out[4, m], out[5, m]
        # d(u x W)
        u = q * c - r * b + y * k - z * j
        v = r * a - p * c + z * i - x * k
        w = p * b - q * a + x * j - y * i
        out[3, m] = i + 0.5 * u + (q * f - r * e + y * w - z * v) / 12.0
        out[4, m] = j + 0.5 * v + (r * d - p * f + z * u - x * w) / 12.0
        out[5, m] = k + 0.5 * w + (p * e - q * d + x * v - y * u) / 12.0


@kernel
def _finish(system: Any, room: Any, state: Any) -> None:
    """Write room.a_and_b: the coordinates after, from the tangents of the state, filters and lags."""
    hold, pushes, result, start, turn = system.hold, system.pushes, room.a_and_b, room.start, room.turn
    n, place, followed, slope = room.place.shape[0], room.place, room.followed, room.slope
    result[:] = 0.0
    if room.base > 0:
        r, reference = turn[1], room.reference
        q = quaternion_columns(reference[3], reference[4], reference[5], reference[6])
        for k in range(9):
            r[k] = q[k]
        _relative(r, turn[0], turn[2])
        _rotate(turn[2], start, POSE, result, POSE)
        w, x, y, z = reference[3], -reference[4], -reference[5], -reference[6]
        a, b, c, d = state[3], state[4], state[5], state[6]
        cosine = w * a - x * b - y * c - z * d
        ux, uy, uz = w * b + x * a + y * d - z * c, w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a
        if cosine < 0.0:
            cosine, ux, uy, uz = -cosine, -ux, -uy, -uz
        sine = math.sqrt(ux * ux + uy * uy + uz * uz)
        angle = 2.0 * math.atan2(sine, cosine)
        factor = angle / sine if sine > 1e-12 else 2.0
        if angle > 1e-4:  # 1/a^2 - (1 + cos a) / (2 a sin a), with the half angle's cotangent
            share = (1.0 - 0.5 * angle * cosine / sine) / (angle * angle)
        else:
            share = 1.0 / 12.0 + angle * angle / 720.0
        _polynomial((factor * ux, factor * uy, factor * uz), 1.0, 0.5, share, turn[3])
        _rotate(turn[3], start, POSE + 3, result, POSE + 3)
        for k in range(6):
            result[TWIST + k] = start[TWIST + k]
    for j in range(n):
        if place[j, 0] >= 0:
            result[place[j, 0]] = start[JOINTS + j]
            result[place[j, 1]] = start[JOINTS + n + j]
        for m in range(2):
            if followed[j, 4 * m + VALUE] < 0:
                continue
            _filter_slopes(hold, j, system.dt, slope)
            _add_followed(room, j, m, 0, 1.0, result[followed[j, 4 * m + VALUE]])
            _add_followed(room, j, m, 1, 1.0, result[followed[j, 4 * m + RATE]])
            if followed[j, 4 * m + TARGET] >= 0:
                row, away = result[followed[j, 4 * m + TARGET]], abs(hold.goal[j] - hold.target[j, 0])
                if away > hold.slew[j] * system.dt:
                    row[followed[j, 4 * m + TARGET]] += 1.0
                elif followed[j, 4 * m + COMMAND] >= 0:
                    row[followed[j, 4 * m + COMMAND]] += room.weight[j, m]
    for b in range(room.motors.shape[0]):
        if room.motors[b, 0] >= 0:
            _add_lagged(room, pushes.numbers[b, LAG], b, system.dt, result[room.motors[b, 0]])


# A and B of a step of a tree by its structure, as `rtmms.analysis.derivatives` asks for them.


def has_tree_structure(plant: Running) -> bool:
    """Return whether the structure covers the step of such a tree.

    It covers rigid bodies and one-step methods. It does not cover contacts, floors, tendons, limits or stops of joints,
    sections' couples, commanded rates, commands with a gain, or Coulomb friction of a free joint.

    Parameters
    ----------
    plant : Running
        Plant of a mechanism.

    Returns
    -------
    bool
        True where it is covered.
    """
    system, method, free = plant.system, METHODS[plant.method], ~plant.model.imposed
    tree = system.tree
    owned = [
        (drive.kind, j) for drive in plant.drives if drive.kind in (TORQUE, OFFSET, GAIN)
        for j in (range(plant.model.n) if drive.joint < 0 else [drive.joint])
    ]  # fmt: skip
    return bool(
        not method.multistep and plant.flow.field is None
        and tree.ground is None and tree.modal is None and system.hold.coast is None
        and not np.any(hard_limits(tree.bounds)[free]) and not np.any(tree.bounds[free, BOUNDED])
        and not np.any(tree.constant[1:][free, C_COULOMB])
        and not len(plant.attached.tendons) and not len(plant.model.floor)
        and not any(getattr(element, "couple", 0.0) for _, element in plant.model.elements)
        and len(owned) == len(set(owned)) and all(drive.gain == 1.0 for drive in plant.drives)
    )  # fmt: skip


class TreeJacobian:
    """Evaluator of A and B of a tree's step, see rtmms.analysis.chart.Structure.

    Parameters
    ----------
    plant : Running
        A tree for which `has_tree_structure` is true.
    by : Array
        (k + n_actuators,) steps to either side, of the coordinates and the commands.
    """

    def __init__(self, plant: Running, by: Array) -> None:
        coordinates, model, n = plant.coordinates(), plant.model, plant.model.n
        self._system = system = plant.system.fork()
        self._start = system.hold.cell("start")
        k, commands = len(coordinates.names), len(plant.actuators)
        base = 6 if model.base_mode == BASE_FREE else 0
        column = {int(word): i for i, word in enumerate(coordinates.state_indices) if i >= base}
        first = system.memory.ctypes.data

        def at(part: Any, index: int) -> int:
            return column.get((part.ctypes.data - first) // 8 + index, -1)

        vector, hold = system.motion.vector, system.hold
        place = np.full((n, 2), -1, dtype=np.int64)
        followed = np.full((n, FOLLOWED), -1, dtype=np.int64)
        torques = np.full(n, -1, dtype=np.int64)
        for j in np.flatnonzero(~model.imposed).tolist():
            place[j] = at(vector, 7 + j), at(vector, 13 + n + j)
        for a, drive in enumerate(plant.drives):
            for j in range(n) if drive.joint < 0 else [drive.joint]:
                if drive.kind == TORQUE and 0 <= j < n:
                    torques[j] = k + a
                elif drive.kind in (OFFSET, GAIN):
                    m = drive.kind - 1
                    followed[j, 4 * m + VALUE] = at(hold.servo, 4 * j + 2 * m)
                    followed[j, 4 * m + RATE] = at(hold.servo, 4 * j + 2 * m + 1)
                    followed[j, 4 * m + TARGET] = at(hold.target, 2 * j + m)
                    followed[j, 4 * m + COMMAND] = k + a
        numbers = system.pushes.numbers
        motors = np.array(
            [[at(system.pushes.motor, b) if row[LAG] > 0.0 else -1, k + int(row[CHANNEL])]
             for b, row in enumerate(numbers)], dtype=np.int64,
        ).reshape(-1, 2)  # fmt: skip
        free = np.array([-1] * base + np.flatnonzero(~model.imposed).tolist(), dtype=np.int64)
        rows, columns = JOINTS + 3 * n + 2 * len(numbers), -(-(k + commands) // COLUMNS) * COLUMNS
        length = float(np.cbrt(model.mass / 1000.0)) if model.mass > 0.0 else 1.0
        far = 1e-6 * RATE_RAD_S * np.array([length] * 3 + [1.0] * 3)
        acts = len(system.fluid.rows) > 0 or len(system.fluid.tethers) > 0 or system.pushes.momentum is not None
        values = {
            "place": place, "followed": followed, "torques": torques, "motors": motors, "free": free,
            "reach": np.array(by[k:], dtype=float), "far": far, "base": base, "states": k,
            "watered": acts,
        }  # fmt: skip
        sizes = {
            "wide": system.memory.size, "columns": columns, "rows": rows, "moving": JOINTS + 2 * n, "bodies": n + 1,
            "stages": len(system.method.nodes), "parts": len(system.method.parts), "words": k,
        }  # fmt: skip
        self._room = TREE_JACOBIAN.make(values, sizes)
        whole, none = self._room.a_and_b, np.zeros((0, 0))
        self.a = Bordered(whole[:, :k], none, np.zeros((0, k)), np.zeros((0, 0, 0)), np.zeros((0, 0), dtype=np.int64))
        self._b = whole[:, k : k + commands]

    def take(self, state: Array, command: Array, reference: Array, time: float) -> bool:
        """Compute `a` and `b` of the step from a state.

        Parameters
        ----------
        state : Array
            (w,) as a Fork has it.
        command : Array
            (n_actuators,) command.
        reference : Array
            (7,) pose whose chart has the pose after.
        time : float
            Time, s.

        Returns
        -------
        bool
            False where the step fails.
        """
        room = self._room
        room.origin[:], room.input_commands[:] = state, command
        if room.base:
            room.reference[:] = reference
        self._start[0] = time
        if tree_jacobian(self._system, room):
            return True
        self._system.clear()
        return False

    def accelerations(self, state: Array, command: Array, time: float) -> Array:
        """Return the slopes of the unknown accelerations, of a free base and of joints that are not imposed.

        Columns: pose and twist of the base (6 + 6), q, qd of all n joints, torques of free joints or accelerations of
        imposed ones (n), lagged commands of actuators on bodies, and the commands of those that spin.

        Parameters
        ----------
        state : Array
            (w,) as a Fork has it.
        command : Array
            (n_actuators,) command.
        time : float
            Time, s.

        Returns
        -------
        Array
            (6 + m, rows).
        """
        room = self._room
        room.origin[:], room.input_commands[:] = state, command
        self._start[0] = time
        tree_accelerations(self._system, room)
        slopes: Array = room.residual.copy()
        return slopes

    @property
    def b(self) -> Array:
        """B of the last step, (k, n_actuators), a copy."""
        result: Array = self._b.copy()
        return result
