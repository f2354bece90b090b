"""A current that varies in space and time: sampled at every link and at the body, for the drag alone.

The field is sampled at the start of a step and at its end, where everything would be after moving on at its present
velocity; the error of that place is of second order in the step, so the methods keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core.errors import NumbaError

from rtmms.dynamics.rigid_body import move_pose, rotation_matrix
from rtmms.errors import ModelError
from rtmms.robots.manta.coupling.layout import POSITION, SUPPORTS, TIME, TWIST
from rtmms.robots.manta.kernels.fin_layout import LANES, LENGTH, L
from rtmms.robots.manta.kernels.support import OMEGA, POINT, POINT_RATE, ROTATION, SUPPORT_SIZE

Field = Callable[[float, float, float, float], tuple[float, float, float]]
Gather = Callable[..., None]


def linear_field(gradient: tuple[float, ...]) -> Field:
    """u_i = G_ij x_j in world axes; gradient (9,) row by row, 1/s."""
    a, b, c, d, e, f, g, h, i = gradient

    def field(x: float, y: float, z: float, t: float) -> tuple[float, float, float]:
        return a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z

    return field


def make_gather(field: Field) -> Gather:
    """Compile the sampling of field(x, y, z, t) -> (u, v, w): m and s in, m/s out, world axes.

    Returns gather(finned, params, state, joints, ahead, drift, body): writes drift (2, blocks, links, 3 LANES) in
    support axes and body (3,) in world axes for the state moved on by `ahead` seconds. ModelError if the field does
    not compile or does not give three numbers.
    """
    try:
        flow = njit(error_model="numpy")(field)
        sample = flow(0.0, 0.0, 0.0, 0.0)
    except (NumbaError, TypeError, ZeroDivisionError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"current_field: must compile with numba as f(x, y, z, t) -> (u, v, w); {first}") from None
    if not isinstance(sample, tuple) or len(sample) != 3:
        raise ModelError(f"current_field: must return three velocities in m/s, got {sample!r}")

    @njit(error_model="numpy")
    def gather(
        finned_: Any, params: Any, state: Any, joints: Any, ahead: float, drift: Any, body: Any
    ) -> None:  # pragma: no cover (compiled)
        finned = finned_[0]
        m, blocks = finned.links, finned.blocks
        pose = np.empty(16)
        move_pose(state, POSITION, state, TWIST, ahead, pose, 0)
        rotation_matrix(pose, 3, 7)
        t = state[TIME] + ahead
        body[0], body[1], body[2] = flow(pose[0], pose[1], pose[2], t)
        for f in range(2):
            side = 1.0 - 2.0 * f
            s = SUPPORTS + f * SUPPORT_SIZE
            rx = finned.root[0] + state[s + POINT] + ahead * state[s + POINT_RATE]
            ry = finned.root[1] + state[s + POINT + 1] + ahead * state[s + POINT_RATE + 1]
            rz = finned.root[2] + state[s + POINT + 2] + ahead * state[s + POINT_RATE + 2]
            # support to (mirrored) body axes: R (1 + ahead omega^)
            ox, oy, oz = ahead * state[s + OMEGA], ahead * state[s + OMEGA + 1], ahead * state[s + OMEGA + 2]
            for b in range(blocks):
                for i in range(LANES):
                    y, z, angle = 0.0, 0.0, 0.0
                    for j in range(m):
                        n = (f * blocks + b) * m + j
                        angle += joints[n, i] + ahead * joints[n, LANES + i]
                        half = 0.5 * params[b, j * L + LENGTH * LANES + i]
                        dy, dz = half * np.cos(angle), half * np.sin(angle)
                        px, py, pz = params[b, m * L + i], y + dy, z + dz
                        y, z = py + dy, pz + dz
                        ax, ay, az = px + oy * pz - oz * py, py + oz * px - ox * pz, pz + ox * py - oy * px
                        r = s + ROTATION
                        bx = rx + state[r] * ax + state[r + 1] * ay + state[r + 2] * az
                        by = side * (ry + state[r + 3] * ax + state[r + 4] * ay + state[r + 5] * az)
                        bz = rz + state[r + 6] * ax + state[r + 7] * ay + state[r + 8] * az
                        u, v, w = flow(
                            pose[0] + pose[7] * bx + pose[8] * by + pose[9] * bz,
                            pose[1] + pose[10] * bx + pose[11] * by + pose[12] * bz,
                            pose[2] + pose[13] * bx + pose[14] * by + pose[15] * bz,
                            t,
                        )
                        ux = pose[7] * u + pose[10] * v + pose[13] * w
                        uy = side * (pose[8] * u + pose[11] * v + pose[14] * w)
                        uz = pose[9] * u + pose[12] * v + pose[15] * w
                        vx = state[r] * ux + state[r + 3] * uy + state[r + 6] * uz
                        vy = state[r + 1] * ux + state[r + 4] * uy + state[r + 7] * uz
                        vz = state[r + 2] * ux + state[r + 5] * uy + state[r + 8] * uz
                        drift[f, b, j, i] = vx + vy * oz - vz * oy
                        drift[f, b, j, LANES + i] = vy + vz * ox - vx * oz
                        drift[f, b, j, 2 * LANES + i] = vz + vx * oy - vy * ox

    compiled: Gather = gather
    return compiled
