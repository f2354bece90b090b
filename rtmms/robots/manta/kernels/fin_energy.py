"""Energy of the chains and the power that drag and damping take from them, lane by lane."""

from __future__ import annotations

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.robots.manta.kernels import fin_layout as lay
from rtmms.robots.manta.kernels.fin_layout import LANES, F, L
from rtmms.robots.manta.kernels.fin_link import sine_cosine

KINETIC, ELASTIC, DRAG_POWER, DAMPING_POWER = 0, 1, 2, 3
ENERGY_FIELDS = 4
CARRY = 7


@kernel
def account_block(
    m: int, f: int, b: int, params: Array, scratch: Array, water: Array | None, normal: Array | None, work: Array,
    base: int, velocity: int, carry: Array, out: Array,
) -> None:  # fmt: skip
    """Add up one block.

    m, f, b, params, scratch, water, normal, work, base   as for fin_lanes.condense_block
    velocity  from work[velocity] on (3,) m/s, velocity of the support's origin in its own axes, relative to the world
    carry     (CARRY LANES,) scratch
    out       (ENERGY_FIELDS LANES,) added to: kinetic and elastic energy J; power lost to drag (the rate at which the
              chain works on the water) and to damping, W
    """
    wx, wy, wz = work[base + lay.W_X], work[base + lay.W_Y], work[base + lay.W_Z]
    fx, fy, fz = (
        work[velocity] - work[base + lay.U_X],
        work[velocity + 1] - work[base + lay.U_Y],
        work[velocity + 2] - work[base + lay.U_Z],
    )
    for i in range(LANES):
        for k in range(CARRY):
            carry[k * LANES + i] = 0.0
        carry[i] = 1.0
    station = params[b, m * L : m * L + LANES]
    for j in range(m):
        p = params[b, j * L : (j + 1) * L]
        r = scratch[f, b, j * F : (j + 1) * F]
        for i in range(LANES):
            sq, cq = sine_cosine(r[lay.Q * LANES + i])
            qd = r[lay.QD * LANES + i]
            c0, s0 = carry[i], carry[LANES + i]
            c, s = c0 * cq - s0 * sq, s0 * cq + c0 * sq
            td = carry[2 * LANES + i] + qd
            py, pz, vy, vz = carry[3 * LANES + i], carry[4 * LANES + i], carry[5 * LANES + i], carry[6 * LANES + i]
            l = p[lay.LENGTH * LANES + i]
            h = 0.5 * l
            cy, cz = py + h * c, pz + h * s
            x = station[i]
            # velocity of the middle relative to the uniformly moving water
            rx = work[base + lay.U_X] + wy * cz - wz * cy
            ry = work[base + lay.U_Y] + wz * x - wx * cz + vy - h * td * s
            rz = work[base + lay.U_Z] - wy * x + wx * cy + vz + h * td * c
            om, od, on = wx + td, wy * c + wz * s, wz * c - wy * s
            vn = c * rz - s * ry
            ax, ay, az = rx + fx, ry + fy, rz + fz
            kinetic = p[lay.MASS * LANES + i] * (ax * ax + ay * ay + az * az) + p[lay.ADDED * LANES + i] * vn * vn
            kinetic += (
                p[lay.J_X * LANES + i] * om * om + p[lay.J_D * LANES + i] * od * od + p[lay.J_N * LANES + i] * on * on
            )
            # elastic energy 1/2 EI kappa^2 dl with kappa = 2 tan(q/2) / dl, (13)
            t = sq / (1.0 + cq)
            elastic = 0.5 * p[lay.STIFFNESS * LANES + i] * t * t
            dx, dy, dz = rx, ry, rz
            if water is not None:
                dx, dy, dz = rx - water[f, b, j, i], ry - water[f, b, j, LANES + i], rz - water[f, b, j, 2 * LANES + i]
            if normal is None:
                w = c * dz - s * dy
                lost = w * abs(w) * (c * az - s * ay)
            else:
                nx, ny, nz = normal[f, b, j, i], normal[f, b, j, LANES + i], normal[f, b, j, 2 * LANES + i]
                w = nx * dx + ny * dy + nz * dz
                lost = w * abs(w) * (nx * ax + ny * ay + nz * az)
            out[KINETIC * LANES + i] += 0.5 * kinetic
            out[ELASTIC * LANES + i] += elastic
            out[DRAG_POWER * LANES + i] += p[lay.DRAG * LANES + i] * lost
            out[DAMPING_POWER * LANES + i] += p[lay.DAMPING * LANES + i] * qd * qd
            carry[i], carry[LANES + i], carry[2 * LANES + i] = c, s, td
            carry[3 * LANES + i], carry[4 * LANES + i] = py + l * c, pz + l * s
            carry[5 * LANES + i], carry[6 * LANES + i] = vy - l * td * s, vz + l * td * c


def lane_totals(out: np.ndarray) -> np.ndarray:
    """(ENERGY_FIELDS,) sums over the lanes of what `account_block` wrote."""
    total: np.ndarray = out.reshape(ENERGY_FIELDS, LANES).sum(axis=1)
    return total
