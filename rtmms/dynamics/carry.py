"""Carrying twists, wrenches and inertias between a body and its parent, in scalars. Columns: rtmms.model.layout."""

from __future__ import annotations

from typing import Any

from rtmms.model.layout import S_INERTIA, S_POS, S_ROT
from rtmms.spatial import (
    AXX,
    AXY,
    AXZ,
    AYY,
    AYZ,
    AZZ,
    BXX,
    BXY,
    BXZ,
    BYX,
    BYY,
    BYZ,
    BZX,
    BZY,
    BZZ,
    CXX,
    CXY,
    CXZ,
    CYY,
    CYZ,
    CZZ,
    cross,
    scalar,
)


@scalar
def into_child(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """R^T (x, y, z): components in the parent's frame -> in body j's."""
    return (
        s[j, S_ROT] * x + s[j, S_ROT + 3] * y + s[j, S_ROT + 6] * z,
        s[j, S_ROT + 1] * x + s[j, S_ROT + 4] * y + s[j, S_ROT + 7] * z,
        s[j, S_ROT + 2] * x + s[j, S_ROT + 5] * y + s[j, S_ROT + 8] * z,
    )


@scalar
def into_parent(s: Any, j: Any, x: Any, y: Any, z: Any) -> Any:
    """R (x, y, z): components in body j's frame -> in its parent's."""
    return (
        s[j, S_ROT] * x + s[j, S_ROT + 1] * y + s[j, S_ROT + 2] * z,
        s[j, S_ROT + 3] * x + s[j, S_ROT + 4] * y + s[j, S_ROT + 5] * z,
        s[j, S_ROT + 6] * x + s[j, S_ROT + 7] * y + s[j, S_ROT + 8] * z,
    )


@scalar
def packed(m: Any, j: Any, c: Any) -> Any:
    """The 21 numbers of the inertia that stands in m[j] from column c on."""
    return (
        m[j, c + AXX], m[j, c + AXY], m[j, c + AXZ], m[j, c + AYY], m[j, c + AYZ], m[j, c + AZZ],
        m[j, c + BXX], m[j, c + BXY], m[j, c + BXZ], m[j, c + BYX], m[j, c + BYY], m[j, c + BYZ],
        m[j, c + BZX], m[j, c + BZY], m[j, c + BZZ],
        m[j, c + CXX], m[j, c + CXY], m[j, c + CXZ], m[j, c + CYY], m[j, c + CYZ], m[j, c + CZZ],
    )  # fmt: skip


@scalar
def axis_column(s: Any, j: Any, revolute: Any) -> Any:
    """M*_j S: the column of body j's inertia that belongs to its joint's axis, z."""
    m = S_INERTIA
    if revolute:
        return (
            s[j, m + BXZ], s[j, m + BYZ], s[j, m + BZZ], s[j, m + CXZ], s[j, m + CYZ], s[j, m + CZZ],
        )  # fmt: skip
    return s[j, m + AXZ], s[j, m + AYZ], s[j, m + AZZ], s[j, m + BZX], s[j, m + BZY], s[j, m + BZZ]


@scalar
def _turned(r: Any, x: Any) -> Any:
    """R X R^T for a symmetric X, packed as xx xy xz yy yz zz."""
    r0, r1, r2, r3, r4, r5, r6, r7, r8 = r
    xx, xy, xz, yy, yz, zz = x
    a, b, c = r0 * xx + r1 * xy + r2 * xz, r0 * xy + r1 * yy + r2 * yz, r0 * xz + r1 * yz + r2 * zz
    d, e, f = r3 * xx + r4 * xy + r5 * xz, r3 * xy + r4 * yy + r5 * yz, r3 * xz + r4 * yz + r5 * zz
    g, h, i = r6 * xx + r7 * xy + r8 * xz, r6 * xy + r7 * yy + r8 * yz, r6 * xz + r7 * yz + r8 * zz
    return (
        a * r0 + b * r1 + c * r2, a * r3 + b * r4 + c * r5, a * r6 + b * r7 + c * r8,
        d * r3 + e * r4 + f * r5, d * r6 + e * r7 + f * r8, g * r6 + h * r7 + i * r8,
    )  # fmt: skip


@scalar
def add_inertia(s: Any, i: Any, j: Any, inertia: Any) -> None:
    """M*_i += Ad^T K Ad, K given in body j's frame by its packed numbers."""
    a0, a1, a2, a3, a4, a5, b0, b1, b2, b3, b4, b5, b6, b7, b8, c0, c1, c2, c3, c4, c5 = inertia
    r0, r1, r2 = s[j, S_ROT], s[j, S_ROT + 1], s[j, S_ROT + 2]
    r3, r4, r5 = s[j, S_ROT + 3], s[j, S_ROT + 4], s[j, S_ROT + 5]
    r6, r7, r8 = s[j, S_ROT + 6], s[j, S_ROT + 7], s[j, S_ROT + 8]
    px, py, pz = s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2]
    rotation = (r0, r1, r2, r3, r4, r5, r6, r7, r8)
    a0, a1, a2, a3, a4, a5 = _turned(rotation, (a0, a1, a2, a3, a4, a5))
    c0, c1, c2, c3, c4, c5 = _turned(rotation, (c0, c1, c2, c3, c4, c5))
    # B <- R B R^T
    t0, t1, t2 = r0 * b0 + r1 * b3 + r2 * b6, r0 * b1 + r1 * b4 + r2 * b7, r0 * b2 + r1 * b5 + r2 * b8
    t3, t4, t5 = r3 * b0 + r4 * b3 + r5 * b6, r3 * b1 + r4 * b4 + r5 * b7, r3 * b2 + r4 * b5 + r5 * b8
    t6, t7, t8 = r6 * b0 + r7 * b3 + r8 * b6, r6 * b1 + r7 * b4 + r8 * b7, r6 * b2 + r7 * b5 + r8 * b8
    b0, b1, b2 = t0 * r0 + t1 * r1 + t2 * r2, t0 * r3 + t1 * r4 + t2 * r5, t0 * r6 + t1 * r7 + t2 * r8
    b3, b4, b5 = t3 * r0 + t4 * r1 + t5 * r2, t3 * r3 + t4 * r4 + t5 * r5, t3 * r6 + t4 * r7 + t5 * r8
    b6, b7, b8 = t6 * r0 + t7 * r1 + t8 * r2, t6 * r3 + t7 * r4 + t8 * r5, t6 * r6 + t7 * r7 + t8 * r8
    # C <- C - B^T p^ + p^ (B - A p^), B <- B - A p^
    n0, n1, n2 = b0 - a1 * pz + a2 * py, b1 + a0 * pz - a2 * px, b2 - a0 * py + a1 * px
    n3, n4, n5 = b3 - a3 * pz + a4 * py, b4 + a1 * pz - a4 * px, b5 - a1 * py + a3 * px
    n6, n7, n8 = b6 - a4 * pz + a5 * py, b7 + a2 * pz - a5 * px, b8 - a2 * py + a4 * px
    c0 += -(b3 * pz - b6 * py) + py * n6 - pz * n3
    c1 += -(b6 * px - b0 * pz) + py * n7 - pz * n4
    c2 += -(b0 * py - b3 * px) + py * n8 - pz * n5
    c3 += -(b7 * px - b1 * pz) + pz * n1 - px * n7
    c4 += -(b1 * py - b4 * px) + pz * n2 - px * n8
    c5 += -(b2 * py - b5 * px) + px * n5 - py * n2
    k = S_INERTIA
    s[i, k + AXX] += a0
    s[i, k + AXY] += a1
    s[i, k + AXZ] += a2
    s[i, k + AYY] += a3
    s[i, k + AYZ] += a4
    s[i, k + AZZ] += a5
    s[i, k + BXX] += n0
    s[i, k + BXY] += n1
    s[i, k + BXZ] += n2
    s[i, k + BYX] += n3
    s[i, k + BYY] += n4
    s[i, k + BYZ] += n5
    s[i, k + BZX] += n6
    s[i, k + BZY] += n7
    s[i, k + BZZ] += n8
    s[i, k + CXX] += c0
    s[i, k + CXY] += c1
    s[i, k + CXZ] += c2
    s[i, k + CYY] += c3
    s[i, k + CYZ] += c4
    s[i, k + CZZ] += c5


@scalar
def add_wrench(s: Any, c: Any, i: Any, j: Any, fx: Any, fy: Any, fz: Any, mx: Any, my: Any, mz: Any) -> None:
    """s[i, c : c + 6] += Ad^T f, f in body j's frame."""
    fx, fy, fz = into_parent(s, j, fx, fy, fz)
    mx, my, mz = into_parent(s, j, mx, my, mz)
    tx, ty, tz = cross(s[j, S_POS], s[j, S_POS + 1], s[j, S_POS + 2], fx, fy, fz)
    s[i, c] += fx
    s[i, c + 1] += fy
    s[i, c + 2] += fz
    s[i, c + 3] += mx + tx
    s[i, c + 4] += my + ty
    s[i, c + 5] += mz + tz
