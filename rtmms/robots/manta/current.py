"""Sample a current that varies in space and time, at every link and at the body, for the drag alone.

Each stage samples at its own time. A method of order two samples at the places that everything would then have at the
velocity of the step's start. These places are right to second order, so that the method keeps its own order. A method
of higher order samples at its stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from rtmms.base.errors import ModelError, uncoloured
from rtmms.base.jit import COMPILED, Array, kernel
from rtmms.base.memory import address_of
from rtmms.base.pointers import numbers_at
from rtmms.dynamics.recursion import move_pose, rotation_matrix
from rtmms.robots.manta.fin_layout import FIELDS, LANES, LENGTH, LINK_FIELDS, L
from rtmms.robots.manta.layout import (
    FINS,
    POSITION,
    SUPPORTS,
    TIME,
    TWIST,
    W_POSE,
    W_TWIST,
    finned_at,
)
from rtmms.robots.manta.methods import CURVED
from rtmms.robots.manta.rods import OMEGA, POINT, POINT_RATE, ROTATION, SUPPORT_SIZE

Field = Callable[[float, float, float, float], tuple[float, float, float]]


def linear_field(gradient: tuple[float, ...]) -> Field:
    """Return the current u_i = G_ij x_j in world axes.

    Parameters
    ----------
    gradient : tuple[float, ...]
        G row by row, (9,), 1/s.

    Returns
    -------
    Field
        Function of x, y, z (m) and t (s) that returns three velocities, m/s.
    """
    a, b, c, d, e, f, g, h, i = gradient

    def field(x: float, y: float, z: float, t: float) -> tuple[float, float, float]:
        """Return the current at a place.

        Parameters
        ----------
        x, y, z : float
            m, world.
        t : float
            s; without effect.

        Returns
        -------
        tuple[float, float, float]
            m/s, world.
        """
        return a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z

    return field


@dataclass(frozen=True, slots=True)
class Sampler:
    """The compiled sampling of a field.

    Parameters
    ----------
    gather : Callable[..., None]
        Function of arrays, see `make_sampler`.
    handle : object
        Argument for kernels: the address of the variant that takes addresses, or `gather` where kernels are plain
        Python.
    by_address : object, optional
        Object that owns the code at that address.
    """

    gather: Callable[..., None]
    handle: Any
    by_address: Any = None


_ADDRESSES = [types.int64] * 6


@intrinsic
def _call(typing_context: Any, handle: Any, finned: Any, param: Any, pose: Any, twist: Any, support: Any, joints: Any,
          stride: Any, ahead: Any, time: Any, drift: Any, body: Any) -> Any:  # fmt: skip
    """Call a sampler's C function of six addresses, a number, two times and two addresses."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole, real = ir.IntType(64), ir.DoubleType()
        kind = ir.FunctionType(ir.VoidType(), [*[whole] * 7, real, real, whole, whole])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(types.int64, *_BY_ADDRESS.args), generate


_BY_ADDRESS = types.void(*_ADDRESSES, types.int64, types.float64, types.float64, types.int64, types.int64)


@kernel(fused=False)
def take_samples(finned: Any, memory: Any, flow: Any, supports: Array, at: int, ahead: float) -> None:
    """Write memory.drift and body_drift for a stage.

    Parameters
    ----------
    finned : Record
        Record of `layout.FINNED`.
    memory : Record
        Record of `layout.MANTA`.
    flow : int or callable or None
        Handle of the sampler; None for none.
    supports : array
        Supports at the stage.
    at : int
        First index of the supports.
    ahead : float
        Time from the step's start to the stage, s.
    """
    if flow is None:
        return
    state, work = memory.state, memory.work
    time = state[TIME] + ahead
    if not COMPILED:
        exact = CURVED[finned.integrator]
        pose, p, v = (work, W_POSE, W_TWIST) if exact else (state, POSITION, TWIST)
        sup, s, joints = (supports, at, memory.rows) if exact else (state, SUPPORTS, memory.joints)
        flow(
            finned, memory.param, pose, p, pose, v, sup, s, joints, 0.0 if exact else ahead, time,
            memory.drift, memory.body_drift,
        )  # fmt: skip
        return
    here, scratch, model = state.ctypes.data, work.ctypes.data, address_of(finned)
    param, drift, body = memory.param.ctypes.data, memory.drift.ctypes.data, memory.body_drift.ctypes.data
    if CURVED[finned.integrator]:
        _call(
            flow, model, param, scratch + 8 * W_POSE, scratch + 8 * W_TWIST, supports.ctypes.data + 8 * at,
            memory.rows.ctypes.data, FIELDS * LANES, 0.0, time, drift, body,
        )  # fmt: skip
    else:
        _call(
            flow, model, param, here + 8 * POSITION, here + 8 * TWIST, here + 8 * SUPPORTS, here + 8 * FINS, 2 * LANES,
            ahead, time, drift, body,
        )  # fmt: skip


def make_sampler(field: Field) -> Sampler:
    """Compile the sampling of a field.

    Parameters
    ----------
    field : Field
        f(x, y, z, t) -> (u, v, w): m and s to m/s, world axes.

    Returns
    -------
    Sampler
        The compiled sampling.

    Raises
    ------
    ModelError
        The field does not compile or does not return three numbers.

    Notes
    -----
    gather(finned, param, pose, p, twist, v, sup, s, joints, ahead, t, drift, body) writes drift (2, blocks, links, 3
    LANES) in support axes and body (3,) in world axes. It samples at time t and at the places of pose[p], twist[v],
    sup[s] and joints (rows, >= 2 LANES: angles, rates), moved on by `ahead` s.
    """
    try:
        flow = njit(error_model="numpy")(field)
        sample = flow(0.0, 0.0, 0.0, 0.0)
    except (NumbaError, TypeError, ZeroDivisionError) as error:
        first = (uncoloured(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"current_field: must compile with numba as f(x, y, z, t) -> (u, v, w); {first}") from None
    if not isinstance(sample, tuple) or len(sample) != 3:
        raise ModelError(f"current_field: must return three velocities in m/s, got {sample!r}")

    @njit(error_model="numpy")
    def gather(
        finned: Any, params: Any, at: Any, p: int, twist: Any, v: int, state: Any, supports: int, joints: Any,
        ahead: float, t: float, drift: Any, body: Any,
    ) -> None:  # fmt: skip  # pragma: no cover (compiled)
        """Write drift and body, see `make_sampler`."""
        m, blocks = finned.links, finned.blocks
        pose = np.empty(16)
        move_pose(at, p, twist, v, ahead, pose, 0)
        rotation_matrix(pose, 3, 7)
        body[0], body[1], body[2] = flow(pose[0], pose[1], pose[2], t)
        for f in range(2):
            side = 1.0 - 2.0 * f
            s = supports + f * SUPPORT_SIZE
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
                        half = 0.5 * params[f, b, j * L + LENGTH * LANES + i]
                        dy, dz = half * np.cos(angle), half * np.sin(angle)
                        px, py, pz = params[f, b, m * L + i], y + dy, z + dz
                        y, z = py + dy, pz + dz
                        ax, ay, az = px + oy * pz - oz * py, py + oz * px - ox * pz, pz + ox * py - oy * px
                        r = s + ROTATION
                        bx = rx + state[r] * ax + state[r + 1] * ay + state[r + 2] * az
                        by = side * (ry + state[r + 3] * ax + state[r + 4] * ay + state[r + 5] * az)
                        bz = rz + state[r + 6] * ax + state[r + 7] * ay + state[r + 8] * az
                        wx, wy, wz = flow(
                            pose[0] + pose[7] * bx + pose[8] * by + pose[9] * bz,
                            pose[1] + pose[10] * bx + pose[11] * by + pose[12] * bz,
                            pose[2] + pose[13] * bx + pose[14] * by + pose[15] * bz,
                            t,
                        )
                        ux = pose[7] * wx + pose[10] * wy + pose[13] * wz
                        uy = side * (pose[8] * wx + pose[11] * wy + pose[14] * wz)
                        uz = pose[9] * wx + pose[12] * wy + pose[15] * wz
                        vx = state[r] * ux + state[r + 3] * uy + state[r + 6] * uz
                        vy = state[r + 1] * ux + state[r + 4] * uy + state[r + 7] * uz
                        vz = state[r + 2] * ux + state[r + 5] * uy + state[r + 8] * uz
                        drift[f, b, j, i] = vx + vy * oz - vz * oy
                        drift[f, b, j, LANES + i] = vy + vz * ox - vx * oz
                        drift[f, b, j, 2 * LANES + i] = vz + vx * oy - vy * ox

    if not COMPILED:
        return Sampler(gather, gather)

    @cfunc(_BY_ADDRESS)
    def by_address(
        model: Any, param: Any, pose: Any, twist: Any, sup: Any, joints: Any, stride: Any, ahead: Any, t: Any,
        drift: Any, body: Any,
    ) -> None:  # fmt: skip  # pragma: no cover (compiled)
        finned = finned_at(model)
        m, blocks = finned.links, finned.blocks
        gather(
            finned,
            carray(numbers_at(param), (2, blocks, (m * LINK_FIELDS + 1) * LANES)),
            carray(numbers_at(pose), (7,)), 0, carray(numbers_at(twist), (6,)), 0,
            carray(numbers_at(sup), (2 * SUPPORT_SIZE,)), 0,
            carray(numbers_at(joints), (2 * blocks * m, stride)), ahead, t,
            carray(numbers_at(drift), (2, blocks, m, 3 * LANES)), carray(numbers_at(body), (3,)),
        )  # fmt: skip

    return Sampler(gather, by_address.address, by_address)
