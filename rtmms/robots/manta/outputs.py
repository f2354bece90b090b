"""Compute the outputs of a manta's state: accelerations, torques of the rods, powers, energies."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.base.jit import Array, Floats, kernel
from rtmms.robots.manta.body import body_drag
from rtmms.robots.manta.coupling import put_water, stage
from rtmms.robots.manta.fin_layout import (
    ADDED,
    BASE_SIZE,
    DAMPING,
    DRAG,
    J_D,
    J_N,
    J_X,
    LANES,
    LENGTH,
    MASS,
    QD,
    STIFFNESS,
    U_X,
    U_Y,
    U_Z,
    W_X,
    W_Y,
    W_Z,
    Chains,
    F,
    L,
    Q,
)
from rtmms.robots.manta.fin_link import sine_cosine, vector_at
from rtmms.robots.manta.layout import (
    ITERATIONS,
    MONOLITHIC,
    POSITION,
    RESIDUAL,
    RODS,
    SUPPORTS,
    TWIST,
    W_ACC,
    W_BASE,
    W_ON_BODY,
    W_ON_SUPPORT,
    W_POSE,
    W_ROTATION,
    W_SUMS,
    W_TWIST,
    W_TWIST_FIN,
    W_WATER,
)
from rtmms.robots.manta.rods import JACOBIAN_BACK, JACOBIAN_FRONT, POINT, ROD_SIZE, ROTATION, SUPPORT_SIZE

KINETIC = 0
ELASTIC = 1
DRAG_POWER = 2
DAMPING_POWER = 3
ENERGY_FIELDS = 4
CARRY = 7


@kernel(inline=True)
def _lost(c: float, s: float, v: Floats, moving: Floats, stream: Floats | None, across: Floats | None) -> float:
    """Return the power that a link (c, s) loses to drag, over its coefficient.

    `v` (3,) m/s is relative to the uniform water, `moving` to the world; `stream` and `across` are as for
    `link_outward`.
    """
    x, y, z = v
    if stream is not None:
        x, y, z = x - stream[0], y - stream[1], z - stream[2]
    if across is None:
        w = c * z - s * y
        return w * abs(w) * (c * moving[2] - s * moving[1])
    w = across[0] * x + across[1] * y + across[2] * z
    return w * abs(w) * (across[0] * moving[0] + across[1] * moving[1] + across[2] * moving[2])


@kernel
def account_block(m: int, f: int, b: int, chains: Chains, base: int, velocity: int) -> None:
    """Add the energies and powers of one block, lane by lane.

    The sums (ENERGY_FIELDS LANES,) are kinetic and elastic energy, J, and power lost to drag and to damping, W. Power
    lost to drag is the rate at which the chain works on the water.

    Parameters
    ----------
    m : int
        Number of links of a chain.
    f, b : int
        Index of the fin and of its block.
    chains : Chains
        As for `fin_chains.condense_block`, but carry (CARRY LANES,) and sums (ENERGY_FIELDS LANES,).
    base : int
        First index in chains.work of the support's motion (BASE_SIZE,).
    velocity : int
        First index in chains.work of the velocity (3,) of the support's origin, m/s, in its own axes, relative to the
        world.
    """
    params, scratch, water, normal, work, carry, out = chains
    wx, wy, wz = work[base + W_X], work[base + W_Y], work[base + W_Z]
    fx, fy, fz = (
        work[velocity] - work[base + U_X],
        work[velocity + 1] - work[base + U_Y],
        work[velocity + 2] - work[base + U_Z],
    )
    for i in range(LANES):
        for k in range(CARRY):
            carry[k * LANES + i] = 0.0
        carry[i] = 1.0
    station = params[f, b, m * L : m * L + LANES]
    for j in range(m):
        p = params[f, b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            sq, cq = sine_cosine(r[Q * LANES + i])
            qd = r[QD * LANES + i]
            c0, s0 = carry[i], carry[LANES + i]
            c, s = c0 * cq - s0 * sq, s0 * cq + c0 * sq
            td = carry[2 * LANES + i] + qd
            py, pz, vy, vz = carry[3 * LANES + i], carry[4 * LANES + i], carry[5 * LANES + i], carry[6 * LANES + i]
            l = p[LENGTH * LANES + i]
            h = 0.5 * l
            cy, cz = py + h * c, pz + h * s
            x = station[i]
            # velocity of the middle relative to the uniformly moving water
            rx = work[base + U_X] + wy * cz - wz * cy
            ry = work[base + U_Y] + wz * x - wx * cz + vy - h * td * s
            rz = work[base + U_Z] - wy * x + wx * cy + vz + h * td * c
            om, od, on = wx + td, wy * c + wz * s, wz * c - wy * s
            vn = c * rz - s * ry
            ax, ay, az = rx + fx, ry + fy, rz + fz
            kinetic = p[MASS * LANES + i] * (ax * ax + ay * ay + az * az) + p[ADDED * LANES + i] * vn * vn
            kinetic += p[J_X * LANES + i] * om * om + p[J_D * LANES + i] * od * od + p[J_N * LANES + i] * on * on
            # elastic energy 1/2 EI kappa^2 dl with kappa = 2 tan(q/2) / dl, (13)
            t = sq / (1.0 + cq)
            elastic = 0.5 * p[STIFFNESS * LANES + i] * t * t
            lost = _lost(c, s, (rx, ry, rz), (ax, ay, az), vector_at(water, f, b, j, i), vector_at(normal, f, b, j, i))
            out[KINETIC * LANES + i] += 0.5 * kinetic
            out[ELASTIC * LANES + i] += elastic
            out[DRAG_POWER * LANES + i] += p[DRAG * LANES + i] * lost
            out[DAMPING_POWER * LANES + i] += p[DAMPING * LANES + i] * qd * qd
            carry[i], carry[LANES + i], carry[2 * LANES + i] = c, s, td
            carry[3 * LANES + i], carry[4 * LANES + i] = py + l * c, pz + l * s
            carry[5 * LANES + i], carry[6 * LANES + i] = vy - l * td * s, vz + l * td * c


O_POSITION = 0
O_QUATERNION = 3
O_VELOCITY = 7
O_ANGULAR_VELOCITY = 10
O_ACCELERATION = 13
O_ANGULAR_ACCELERATION = 16
O_ROD_ANGLE = 19
O_ROD_RATE = 23
O_ROD_TORQUE = 27
O_THRUST = 31
O_ROD_POWER = 43
O_DRAG_POWER = 44
O_DAMPING_POWER = 45
O_KINETIC = 46
O_ELASTIC = 47
O_BUOYANCY = 48
O_ITERATIONS = 49
O_RESIDUAL = 50
O_TIP = 51
O_JOINTS = 57


def output_size(links: int, chains: int) -> int:
    """Return the number of outputs: O_JOINTS, then joint angles and joint rates, (2, links, chains) each.

    Parameters
    ----------
    links, chains : int
        Numbers of links of a chain, and of chains of a fin.

    Returns
    -------
    int
        Numbers of `account`.
    """
    return O_JOINTS + 4 * links * chains


@kernel
def _shape(finned: Any, param: Array, state: Array, joints: Array, out: Array) -> None:
    """Write joint angles and rates, chain by chain, and the free end of each fin's rearmost chain in the body frame."""
    blocks, m, n = finned.blocks, finned.links, finned.chains
    rate = O_JOINTS + 2 * m * n
    for f in range(2):
        for j in range(m):
            for chain in range(n):
                row = (f * blocks + chain // LANES) * m + j
                k = (f * m + j) * n + chain
                out[O_JOINTS + k] = joints[row, chain % LANES]
                out[rate + k] = joints[row, LANES + chain % LANES]
        y, z, angle = 0.0, 0.0, 0.0
        for j in range(m):
            angle += out[O_JOINTS + (f * m + j) * n]
            length = param[f, 0, j * L + LENGTH * LANES]
            y += length * np.cos(angle)
            z += length * np.sin(angle)
        x = param[f, 0, m * L]
        s = SUPPORTS + f * SUPPORT_SIZE
        for k in range(3):
            r = s + ROTATION + 3 * k
            at = finned.root[k] + state[s + POINT + k] + state[r] * x + state[r + 1] * y + state[r + 2] * z
            out[O_TIP + 3 * f + k] = -at if f == 1 and k == 1 else at


@kernel(merged=True)
def account(memory: Any, g: float) -> int:
    """Write all outputs at the present state into memory.out, a function of the state alone.

    For g = 0, accelerations and wrenches are the true ones of body and fins together (monolithic), whatever the
    coupling of the run. With g > 0 s they are those of the linearly implicit equations over g.

    Parameters
    ----------
    memory : Record
        As for the step, with its drift at the present state.
    g : float
        s.

    Returns
    -------
    int
        Status of the stage.
    """
    param, state, joints, links = memory.param, memory.state, memory.joints, memory.rows
    out, many = memory.out, memory.many
    fins, work, drift, normals = memory.fins, memory.work, memory.drift, memory.normals
    finned, body = memory.finned, memory.body
    blocks, m = finned.blocks, finned.links
    for n in range(2 * blocks * m):
        for i in range(LANES):
            links[n, Q * LANES + i], links[n, QD * LANES + i] = joints[n, i], joints[n, LANES + i]
    for k in range(6):
        work[W_TWIST + k] = state[TWIST + k]
        work[W_TWIST_FIN + k] = state[TWIST + k]
    for k in range(7):
        work[W_POSE + k] = state[POSITION + k]
    put_water(finned, work, memory.body_drift)
    acc = work[W_ACC : W_ACC + 6]
    status, _, _ = stage(
        np.int64(MONOLITHIC), finned, body, memory, many, (g, 0.0, 0.0, 0.0), state, np.int64(SUPPORTS), acc, acc
    )

    for k in range(13):
        out[O_POSITION + k] = state[POSITION + k]
    for k in range(6):
        out[O_ACCELERATION + k] = acc[k]
    power = 0.0
    for r in range(4):
        f = r // 2
        column = SUPPORTS + f * SUPPORT_SIZE + (JACOBIAN_FRONT if r % 2 == 0 else JACOBIAN_BACK)
        rod = RODS + r * ROD_SIZE
        # virtual power: torque = wrench of the support on the fin . twist of the support for unit rate of the rod
        torque = 0.0
        for k in range(6):
            torque += work[W_ON_SUPPORT + 6 * f + k] * state[column + k]
        out[O_ROD_ANGLE + r], out[O_ROD_RATE + r], out[O_ROD_TORQUE + r] = state[rod], state[rod + 1], torque
        power += torque * state[rod + 1]
    out[O_ROD_POWER] = power
    for k in range(12):
        out[O_THRUST + k] = work[W_ON_BODY + k]

    rotation = work[W_ROTATION : W_ROTATION + 9]
    sums = work[W_SUMS : W_SUMS + ENERGY_FIELDS * LANES]
    carry = work[W_SUMS + ENERGY_FIELDS * LANES : W_SUMS + (ENERGY_FIELDS + CARRY) * LANES]
    for k in range(ENERGY_FIELDS * LANES):
        sums[k] = 0.0
    chains = Chains(param, fins, drift, normals, work, carry, sums)
    velocity = W_ACC + 6
    cx, cy, cz = finned.current[0], finned.current[1], finned.current[2]
    ux = rotation[0] * cx + rotation[3] * cy + rotation[6] * cz
    uy = rotation[1] * cx + rotation[4] * cy + rotation[7] * cz
    uz = rotation[2] * cx + rotation[5] * cy + rotation[8] * cz
    for f in range(2):
        s = SUPPORTS + f * SUPPORT_SIZE + ROTATION
        my = uy if f == 0 else -uy
        # the uniform current in support axes, to be added to the velocity relative to the water
        for k in range(3):
            work[velocity + k] = state[s + k] * ux + state[s + 3 + k] * my + state[s + 6 + k] * uz
        work[velocity + 0] += work[W_BASE + f * BASE_SIZE + U_X]
        work[velocity + 1] += work[W_BASE + f * BASE_SIZE + U_Y]
        work[velocity + 2] += work[W_BASE + f * BASE_SIZE + U_Z]
        for b in range(blocks):
            account_block(m, f, b, chains, W_BASE + f * BASE_SIZE, velocity)
    kinetic, elastic, drag, damping = 0.0, 0.0, 0.0, 0.0
    for i in range(LANES):
        kinetic += sums[KINETIC * LANES + i]
        elastic += sums[ELASTIC * LANES + i]
        drag += sums[DRAG_POWER * LANES + i]
        damping += sums[DAMPING_POWER * LANES + i]

    # the body: W_WATER holds the water's velocity in the body frame since the stage
    lost = W_ACC + 12
    body_drag(body, work, W_TWIST, W_WATER, lost)
    for k in range(6):
        v = state[TWIST + k]
        drag -= work[lost + k] * v
        kinetic += 0.5 * finned.body_matrix[7 * k] * v * v
    c = body.buoyancy_centre
    out[O_DRAG_POWER] = drag
    out[O_DAMPING_POWER] = damping
    out[O_KINETIC] = kinetic
    out[O_ELASTIC] = elastic
    out[O_BUOYANCY] = -body.weight * (rotation[6] * c[0] + rotation[7] * c[1] + rotation[8] * c[2])
    out[O_ITERATIONS] = state[ITERATIONS]
    out[O_RESIDUAL] = state[RESIDUAL]
    _shape(finned, param, state, joints, out)
    return status
