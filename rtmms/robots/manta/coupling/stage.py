"""One stage of any method: forces of fins and body at a given state, accelerations by the chosen coupling."""

from __future__ import annotations

from typing import Any

from rtmms.dynamics.rigid_body import rotation_matrix
from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling import iterated, monolithic, sequential
from rtmms.robots.manta.coupling.interface import (
    add_to_body,
    base_acceleration,
    base_velocity,
    fin_on_body,
    fin_on_support,
)
from rtmms.robots.manta.coupling.layout import (
    MONOLITHIC,
    NOT_CONVERGED,
    OK,
    SEQUENTIAL,
    W_BASE,
    W_CARRY,
    W_FORCE,
    W_INERTIA,
    W_MATRIX,
    W_ON_SUPPORT,
    W_POSE,
    W_ROTATION,
    W_SUMS,
    W_TWIST,
    W_WATER,
    W_WRENCH,
)
from rtmms.robots.manta.kernels.body import body_force
from rtmms.robots.manta.kernels.fin_lanes import accelerate_block, condense_block, drive_block
from rtmms.robots.manta.kernels.fin_layout import BASE_SIZE, CARRY_FIELDS, DRIVE_SUMS, LANES, SUMS, Chains
from rtmms.robots.manta.kernels.fin_normals import neighbour_normals
from rtmms.robots.manta.kernels.fin_sums import collect_sums, collect_wrench
from rtmms.robots.manta.kernels.support import SUPPORT_SIZE


@kernel
def put_water(finned: Any, work: Array, drift: Array | None) -> None:
    """W_WATER: the water's velocity at the body, in world axes; drift (3,) m/s beyond the uniform current, or None."""
    for k in range(3):
        work[W_WATER + k] = finned.current[k]
        if drift is not None:
            work[W_WATER + k] += drift[k]


@kernel
def stage(
    coupling: int,
    finned: Any,
    body: Any,
    memory: Any,
    many: int | None,
    way: tuple[float, float, float, float],
    sup: Array,
    s: int,
    lagged: Array,
    acc: Array,
) -> tuple[int, int, float]:
    """Accelerations of body and joints at the state in the scratch.

    coupling   SEQUENTIAL, ITERATED, MONOLITHIC
    memory     in its scratch: Q, QD of the fins, W_TWIST, W_TWIST_FIN (as the fins know it), W_POSE; W_WATER, the
               velocity of the water at the body in world axes; drift. Out: QDD, AN of the fins, W_ON_BODY (2, 6),
               W_ON_SUPPORT (2, 6)
    many       links a chain where they are not three, else None
    way        g, recall, rate_q, rate_a: see fin_lanes; g = 0 for the true accelerations
    sup        from sup[s] on (2, SUPPORT_SIZE): the supports of left and right fin
    lagged     (6,) the body's acceleration as the fins know it (sequential; zero for a fixed body), or a first guess
               (iterated)
    acc        (6,) written: [V'; W'] of the body; may be `lagged`
    Whole numbers should come as np.int64: a literal would be compiled for itself.
    Returns (status, passes, residual).
    """
    param, fins, work, drift, normals = memory.param, memory.fins, memory.work, memory.drift, memory.normals
    sums = work[W_SUMS : W_SUMS + SUMS * LANES]
    chains = Chains(param, fins, drift, normals, work, work[W_CARRY : W_CARRY + CARRY_FIELDS * LANES], sums)
    rotation_matrix(work, W_POSE + 3, W_ROTATION)
    # uniform current as the body sees it
    r = W_ROTATION
    cx, cy, cz = finned.current[0], finned.current[1], finned.current[2]
    ux = work[r] * cx + work[r + 3] * cy + work[r + 6] * cz
    uy = work[r + 1] * cx + work[r + 4] * cy + work[r + 7] * cz
    uz = work[r + 2] * cx + work[r + 5] * cy + work[r + 8] * cz
    driven = coupling == SEQUENTIAL or body.fixed
    for f in range(2):
        o = W_BASE + f * BASE_SIZE
        base_velocity(f, finned, sup, s + f * SUPPORT_SIZE, work, ux, uy, uz)
        neighbour_normals(finned.links, finned.chains, f, param, fins, normals)
        if driven:
            base_acceleration(f, finned, sup, s + f * SUPPORT_SIZE, work, lagged)
            for k in range(DRIVE_SUMS * LANES):
                sums[k] = 0.0
            for b in range(finned.blocks):
                drive_block(many, f, b, chains, o, way)
            collect_wrench(sums, work, W_ON_SUPPORT + 6 * f)
        else:
            for k in range(SUMS * LANES):
                sums[k] = 0.0
            for b in range(finned.blocks):
                condense_block(many, f, b, chains, o, way)
            collect_sums(sums, work, W_INERTIA + 36 * f, W_WRENCH + 6 * f)

    w = W_WATER
    x, y, z = work[w], work[w + 1], work[w + 2]
    work[w] = work[r] * x + work[r + 3] * y + work[r + 6] * z
    work[w + 1] = work[r + 1] * x + work[r + 4] * y + work[r + 7] * z
    work[w + 2] = work[r + 2] * x + work[r + 5] * y + work[r + 8] * z
    body_force(body, work, W_ROTATION, W_TWIST, W_WATER, W_FORCE)
    status, passes, residual = OK, 0, 0.0
    if driven:
        for f in range(2):
            fin_on_body(f, finned, sup, s + f * SUPPORT_SIZE, work)
        if body.fixed:
            for k in range(6):
                acc[k] = 0.0
        else:
            sequential.body_acceleration(finned, work, acc)
            for k in range(6):
                residual = max(residual, abs(acc[k] - lagged[k]))
        return status, passes, residual

    for k in range(36):
        work[W_MATRIX + k] = finned.body_matrix[k]
    for f in range(2):
        add_to_body(f, finned, sup, s + f * SUPPORT_SIZE, work)
    if coupling == MONOLITHIC:
        monolithic.body_acceleration(work, W_MATRIX, W_FORCE, acc)
    else:
        for k in range(6):
            acc[k] = lagged[k]
        passes, residual = iterated.body_acceleration(finned, work, acc)
        if not residual <= finned.tolerance:
            status = NOT_CONVERGED
    for f in range(2):
        base_acceleration(f, finned, sup, s + f * SUPPORT_SIZE, work, acc)
        fin_on_support(f, work)
        fin_on_body(f, finned, sup, s + f * SUPPORT_SIZE, work)
        for b in range(finned.blocks):
            accelerate_block(many, f, b, chains, W_BASE + f * BASE_SIZE)
    return status, passes, residual
