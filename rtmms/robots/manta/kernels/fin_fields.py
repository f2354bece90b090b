"""Reading and writing the fields of one lane: a link's parameters, its joint, what is kept of it."""

from __future__ import annotations

from numba import types
from numba.extending import overload

from rtmms.jit import INLINE, Array, Floats, kernel
from rtmms.robots.manta.kernels.fin_layout import (
    ADDED,
    AN,
    DAMPING,
    DRAG,
    INV_D,
    J_D,
    J_N,
    J_X,
    LANES,
    LENGTH,
    MASS,
    OMEGA,
    QD,
    QDD,
    STIFFNESS,
    TAU,
    U_AA,
    U_YY,
    U_ZZ,
    C,
    Q,
    S,
)


@kernel(inline=True)
def nine(a: Array, k: int, i: int) -> Floats:
    """Nine fields of a lane, from field k on."""
    return (
        a[k * LANES + i], a[(k + 1) * LANES + i], a[(k + 2) * LANES + i], a[(k + 3) * LANES + i],
        a[(k + 4) * LANES + i], a[(k + 5) * LANES + i], a[(k + 6) * LANES + i], a[(k + 7) * LANES + i],
        a[(k + 8) * LANES + i],
    )  # fmt: skip


@kernel(inline=True)
def add_six(a: Array, i: int, values: Floats) -> None:
    for n in range(6):
        a[n * LANES + i] += values[n]


@kernel(inline=True)
def put_nine(a: Array, k: int, i: int, values: Floats) -> None:
    a[k * LANES + i], a[(k + 1) * LANES + i], a[(k + 2) * LANES + i] = values[0], values[1], values[2]
    a[(k + 3) * LANES + i], a[(k + 4) * LANES + i], a[(k + 5) * LANES + i] = values[3], values[4], values[5]
    a[(k + 6) * LANES + i], a[(k + 7) * LANES + i], a[(k + 8) * LANES + i] = values[6], values[7], values[8]


@kernel(inline=True)
def add_nine(a: Array, k: int, i: int, values: Floats) -> None:
    for n in range(9):
        a[(k + n) * LANES + i] += values[n]


@kernel(inline=True)
def link_at(p: Array, o: int, i: int) -> Floats:
    """Parameters of the link that starts at p[o], in the order of the names above."""
    return (
        p[o + LENGTH * LANES + i], p[o + MASS * LANES + i], p[o + J_X * LANES + i],
        p[o + J_D * LANES + i], p[o + J_N * LANES + i], p[o + STIFFNESS * LANES + i],
        p[o + DRAG * LANES + i], p[o + ADDED * LANES + i], p[o + DAMPING * LANES + i],
    )  # fmt: skip


@kernel(inline=True)
def inertia_at(p: Array, o: int, i: int) -> Floats:
    return p[o + LENGTH * LANES + i], p[o + MASS * LANES + i], p[o + J_X * LANES + i]


@kernel(inline=True)
def joint_at(r: Array, o: int, i: int) -> Floats:
    return (
        r[o + Q * LANES + i], r[o + QD * LANES + i], r[o + QDD * LANES + i],
        r[o + AN * LANES + i],
    )  # fmt: skip


def vector_at(a: Array | None, f: int, b: int, j: int, i: int) -> Floats | None:
    """The three fields of one link of an optional array, or None."""
    return None if a is None else (a[f, b, j, i], a[f, b, j, LANES + i], a[f, b, j, 2 * LANES + i])


@overload(vector_at, jit_options=INLINE)
def _vector_compiled(a, f, b, j, i):  # type: ignore[no-untyped-def]  # numba wants it to look like the lambdas
    # chosen by type: left to the compiler's pruning, the array's case would have an optional result
    if isinstance(a, types.NoneType):
        return lambda a, f, b, j, i: None
    return lambda a, f, b, j, i: (a[f, b, j, i], a[f, b, j, LANES + i], a[f, b, j, 2 * LANES + i])


@kernel(inline=True)
def keep(r: Array, o: int, i: int, kept: Floats, solve: Floats) -> None:
    """Store what `accelerate_block` needs of a link."""
    r[o + C * LANES + i] = kept[0]
    r[o + S * LANES + i] = kept[1]
    r[o + OMEGA * LANES + i] = kept[2]
    r[o + U_YY * LANES + i] = solve[0]
    r[o + U_ZZ * LANES + i] = solve[1]
    r[o + U_AA * LANES + i] = solve[2]
    r[o + INV_D * LANES + i] = solve[3]
    r[o + TAU * LANES + i] = solve[4]
