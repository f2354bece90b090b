"""What a state of body and fins amounts to: true accelerations, torques of the rods, powers, energy."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling.layout import (
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
from rtmms.robots.manta.coupling.stage import put_water, stage
from rtmms.robots.manta.kernels.body import body_drag
from rtmms.robots.manta.kernels.fin_energy import (
    CARRY,
    DAMPING_POWER,
    DRAG_POWER,
    ELASTIC,
    ENERGY_FIELDS,
    KINETIC,
    account_block,
)
from rtmms.robots.manta.kernels.fin_layout import BASE_SIZE, LANES, LENGTH, QD, U_X, U_Y, U_Z, Chains, L, Q
from rtmms.robots.manta.kernels.rods import ROD_SIZE
from rtmms.robots.manta.kernels.support import JACOBIAN_BACK, JACOBIAN_FRONT, POINT, ROTATION, SUPPORT_SIZE

(O_POSITION, O_QUATERNION, O_VELOCITY, O_ANGULAR_VELOCITY, O_ACCELERATION, O_ANGULAR_ACCELERATION) = (
    0, 3, 7, 10, 13, 16,
)  # fmt: skip
O_ROD_ANGLE, O_ROD_RATE, O_ROD_TORQUE, O_THRUST = 19, 23, 27, 31
O_ROD_POWER, O_DRAG_POWER, O_DAMPING_POWER, O_KINETIC, O_ELASTIC, O_BUOYANCY = 43, 44, 45, 46, 47, 48
O_ITERATIONS, O_RESIDUAL, O_TIP, O_JOINTS = 49, 50, 51, 57


def output_size(links: int, chains: int) -> int:
    """Up to O_JOINTS as named; then joint angles and joint rates, (2, links, chains) each."""
    return O_JOINTS + 4 * links * chains


@kernel
def _shape(finned: Any, param: Array, state: Array, joints: Array, out: Array) -> None:
    """Joint angles and rates, chain by chain, and the free end of each fin's rearmost chain in the body frame."""
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

    Accelerations and wrenches are the true ones of body and fins together (monolithic), whatever the coupling of the
    run, for g = 0; with g > 0 s they are those of the linearly implicit equations over g.
    memory  as for the step; its drift at the present state. Returns the status of the stage.
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
