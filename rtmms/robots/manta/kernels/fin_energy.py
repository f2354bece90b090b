"""Energy of the chains and the power that drag and damping take from them, lane by lane."""

from __future__ import annotations

import numpy as np

from rtmms.jit import Floats, kernel
from rtmms.robots.manta.kernels.fin_fields import vector_at
from rtmms.robots.manta.kernels.fin_layout import (
    ADDED,
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
from rtmms.robots.manta.kernels.fin_link import sine_cosine

KINETIC, ELASTIC, DRAG_POWER, DAMPING_POWER = 0, 1, 2, 3
ENERGY_FIELDS = 4
CARRY = 7


@kernel(inline=True)
def _lost(c: float, s: float, v: Floats, moving: Floats, stream: Floats | None, across: Floats | None) -> float:
    """What drag takes from a link (c, s), over its coefficient: v (3,) m/s relative to the uniform water, `moving` to
    the world; stream and across as for `link_outward`."""
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
    """Add up one block.

    m, f, b, chains, base   as for fin_lanes.condense_block, but carry (CARRY LANES,) and sums (ENERGY_FIELDS LANES,):
              kinetic and elastic energy J; power lost to drag (the rate at which the chain works on the water) and to
              damping, W
    velocity  from chains.work[velocity] on (3,) m/s, velocity of the support's origin in its own axes, relative to the
              world
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


def lane_totals(out: np.ndarray) -> np.ndarray:
    """(ENERGY_FIELDS,) sums over the lanes of what `account_block` wrote."""
    total: np.ndarray = out.reshape(ENERGY_FIELDS, LANES).sum(axis=1)
    return total
