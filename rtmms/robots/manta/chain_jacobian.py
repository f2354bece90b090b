"""Generate derivatives of a chain's step: the equations of fin_link.py, recorded as graphs and differentiated.

The result is vector code for GROUP chains at once, so few that intermediate results stay in the processor's caches.

A stage of a chain in residual form has its joints' accelerations a as inputs, with

    r(q, q', a, support, recall) = 0
    w(...) the wrench on the support
    n(...) the normal accelerations

so that da = -(dr/da)^-1 dr, and dw, dn follow. A step of two stages is composed of both.
"""

from __future__ import annotations

import types as python
from typing import Any

from numba import types
from numba.extending import intrinsic

from rtmms.analysis import graphs
from rtmms.analysis.block_matrices import COLUMNS
from rtmms.robots.manta import fin_link
from rtmms.robots.manta.fin_layout import BASE_SIZE, LANES, LINK_FIELDS, QD, QDD, F, L, Q

GROUP = COLUMNS
"""Number of chains at once."""
PARAMS, JOINTS, BEFORE, SUPPORT, SCALARS, OUT = range(6)
"""Arrays of a stage.

PARAMS is that of fin_layout.pack_links. JOINTS has, for the first stage, angles and rates of the state, a row (2,
LANES) for each link; for the second the scratch of the fins. BEFORE has a and n of the first stage (2 m, LANES).
SUPPORT is the support's motion (BASE_SIZE,). SCALARS has g, recall, rate_q, rate_a. OUT is the result. The first three
begin at the group's first lane.
"""
MAX_TRACED_LINKS = 6
"""Largest number of links for which code is generated: its length grows with the number."""


def _plain(compiled: Any) -> Any:
    """Return the Python function of a kernel, with the sine and cosine of nodes."""
    py_func: Any = compiled.py_func
    return python.FunctionType(py_func.__code__, {**py_func.__globals__, "sine_cosine": graphs.sine_cosine})


def stage_rows(m: int, second: bool) -> int:
    """Return the number of rows of a stage's derivatives: a (m,), wrench (6,), and n (m,) of the first stage.

    Parameters
    ----------
    m : int
        Number of links.
    second : bool
        Whether it is the second stage.

    Returns
    -------
    int
        Rows.
    """
    return m + 6 + (0 if second else m)


def _stage(m: int, second: bool) -> list[graphs.Output]:
    """Return the derivatives of a stage, for OUT (columns, rows, GROUP).

    The columns are by q, q', the support's motion, and for the second stage a and n of the first.
    """
    graphs.start()
    if second:
        q, v, a = ([graphs.load(JOINTS, j * F + item * LANES) for j in range(m)] for item in (Q, QD, QDD))
    else:
        q, v = ([graphs.load(JOINTS, (2 * j + rate) * LANES) for j in range(m)] for rate in range(2))
        a = [graphs.load(BEFORE, j * LANES) for j in range(m)]
    base = [graphs.same(SUPPORT, k) for k in range(BASE_SIZE)]
    back = [graphs.load(BEFORE, k * LANES) for k in range(2 * m)] if second else [0.0] * (2 * m)
    implicit = tuple(graphs.same(SCALARS, k) for k in range(4)) if second else (graphs.same(SCALARS, 0), 0.0, 1.0, 0.0)
    x = graphs.load(PARAMS, m * L)
    links = [tuple(graphs.load(PARAMS, j * L + k * LANES) for k in range(LINK_FIELDS)) for j in range(m)]
    r, w, n = _residuals(m, q, v, a, back, base, x, links, implicit)
    rows = [*r, *w, *([] if second else n)]
    end = len(graphs.Node.graph)
    by_a = [graphs.slopes(rows, item, end) for item in a]  # by_a[j][i]: row i by a_j
    mass = [[by_a[j][i] for j in range(m)] for i in range(m)]
    factors = _factors(mass)
    outputs = []
    columns = [*q, *v, *base, *(back if second else [])]
    for c, column in enumerate(columns):
        moved = graphs.slopes(rows, column, end)
        result = [graphs.negative(k) for k in _solve(factors, moved[:m])]
        for i, direct_slope in enumerate(moved[m:], m):
            total = direct_slope
            for j in range(m):
                total = graphs.add(total, graphs.multiply(by_a[j][i], result[j]))
            result.append(total)
        outputs += [graphs.Output(value, OUT, (c * len(rows) + i) * GROUP) for i, value in enumerate(result)]
    return outputs


def _residuals(
    m: int, q: Any, v: Any, a: Any, back: Any, base: Any, x: Any, links: Any, implicit: Any
) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
    """Return (r, w, n) of a chain, see the module."""
    link_outward = _plain(fin_link.link_outward)
    ax, ay, az, wx, wy, wz, dx, dy, dz, ux, uy, uz = base
    at, stored, shares = fin_link.ROOT, [], [0.0] * 9
    for j in range(m):
        joint = (q[j], v[j], back[j], back[m + j])
        at, link_terms, share = link_outward(at, joint, links[j], x, (wx, wy, wz, ux, uy, uz), implicit, None, None)
        stored.append(link_terms)
        shares = [share + other for share, other in zip(shares, share, strict=True)]
    # out: accelerations of the joints' centres, (y, z, alpha), with the joints' own
    y, z, turn = ay + (dz + wx * wy) * x, az + (wx * wz - dy) * x, dx
    centres, n = [], []
    for j in range(m):
        length, (c, s, om) = links[j][0], stored[j][:3]
        turn = turn + a[j]
        centres.append((y, z, turn))
        n.append(c * z - s * y + 0.5 * length * turn)
        y, z = y - length * (turn * s + om * om * c), z + length * (turn * c - om * om * s)
    # in: forces, and the balance of each joint
    fy, fz, fa = 0.0, 0.0, 0.0
    r: list[Any] = []
    for j in reversed(range(m)):
        length, mass, j_x = links[j][:3]
        c, s, _, kappa, py, pz, pa, gj, tau = stored[j]
        y, z, turn = centres[j]
        fa = fa + length * (c * fz - s * fy)
        h = 0.5 * length
        e, across = h * (mass + kappa), c * z - s * y
        fy = fy + mass * y - kappa * s * across - e * s * turn + py
        fz = fz + mass * z + kappa * c * across + e * c * turn + pz
        fa = fa + e * across + (h * e + j_x) * turn + pa
        r.insert(0, fa + gj * a[j] - tau)
    mass, my, mz, iyy, izz, iyz, fx, sy, sz = shares
    w = [
        fx + mass * ax + mz * dy - my * dz, fy, fz, fa, sy + mz * ax + iyy * dy + iyz * dz - x * fz,
        sz - my * ax + iyz * dy + izz * dz + x * fy,
    ]  # fmt: skip
    return r, w, n


def _factors(matrix: list[list[Any]]) -> tuple[list[list[Any]], list[Any]]:
    """Return (L, 1 / D) of the factorisation L D L^T of a symmetric matrix."""
    n = len(matrix)
    low: list[list[Any]] = [[0.0] * n for _ in range(n)]
    over: list[Any] = []
    d: list[Any] = []
    for j in range(n):
        item = matrix[j][j]
        for k in range(j):
            item = item - low[j][k] * low[j][k] * d[k]
        d.append(item)
        over.append(1.0 / item)
        for i in range(j + 1, n):
            other = matrix[i][j]
            for k in range(j):
                other = other - low[i][k] * low[j][k] * d[k]
            low[i][j] = other * over[j]
    return low, over


def _solve(factors: tuple[list[list[Any]], list[Any]], right: list[Any]) -> list[Any]:
    low, over = factors
    n, y = len(right), list(right)
    for i in range(n):
        for k in range(i):
            y[i] = graphs.subtract(y[i], graphs.multiply(low[i][k], y[k]))
    y = [graphs.multiply(item, factor) for item, factor in zip(y, over, strict=True)]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            y[i] = graphs.subtract(y[i], graphs.multiply(low[k][i], y[k]))
    return y


def _slopes_of(array: int, m: int, second: bool) -> list[list[Any]]:
    """Return the places of a stage's derivatives for `compose`, by columns; None for one that is always zero."""
    empty = [graphs.is_zero(item.value) for item in _stage(m, second)]
    rows = stage_rows(m, second)
    return [
        [None if empty[c * rows + r] else (array, (c * rows + r) * GROUP) for r in range(rows)]
        for c in range(len(empty) // rows)
    ]


def _loaded(places: list[list[Any]]) -> list[list[Any]]:
    return [[0.0 if item is None else graphs.load(*item) for item in column] for column in places]


FIRST, SECOND, TIMES, ENDS, PUSHED, SUMMED = range(6)
"""Arrays of `compose`, written from ENDS on.

FIRST, SECOND: derivatives of both stages. TIMES: g, c, dt. ENDS: derivatives of q, q' after the step (columns, 2 m,
GROUP), columns by q, q' and the support's motion at both stages. PUSHED: derivatives of both wrenches (2 m, 12, GROUP)
by q, q'. SUMMED: the same by the support's motion (2 BASE_SIZE, 12, GROUP), to which they are added.
"""


def _compose(m: int) -> list[graphs.Output]:
    """Return the derivatives of a step of the linearly implicit method (step.py).

    q2 = q + c (v + g a1), v2 = v + c a1; q+ = q + dt/2 (v + v2 + g (a2 - a1)), v+ = v + dt/2 (a1 + a2).
    """
    places = _slopes_of(FIRST, m, False), _slopes_of(SECOND, m, True)
    graphs.start()
    g, c, dt = (graphs.same(TIMES, k) for k in range(3))
    two_rows, column_count, width = stage_rows(m, True), 2 * m + BASE_SIZE, 2 * m
    first, second = (_loaded(place) for place in places)
    columns, half, cg = column_count + BASE_SIZE, 0.5 * dt, c * g
    outputs: list[graphs.Output] = []

    def wrench(k: int, row: int, value: Any) -> None:
        if k < width:
            outputs.append(graphs.Output(value, PUSHED, (k * 12 + row) * GROUP))
        else:
            outputs.append(graphs.Output(value, SUMMED, ((k - width) * 12 + row) * GROUP, added=True))

    for r in range(two_rows):
        # by a and n of the first stage, through the second one's joints and recall
        by_a = [
            graphs.add(
                graphs.add(graphs.multiply(cg, second[j][r]), graphs.multiply(c, second[m + j][r])),
                second[column_count + j][r],
            )
            for j in range(m)
        ]
        by_n = [second[column_count + m + j][r] for j in range(m)]
        for k in range(columns):
            if k < column_count:
                total: Any = 0.0
                for j in range(m):
                    total = graphs.add(total, graphs.multiply(by_a[j], first[k][j]))
                    total = graphs.add(total, graphs.multiply(by_n[j], first[k][m + 6 + j]))
                if k < width:
                    total = graphs.add(total, second[k][r])
                if m <= k < width:
                    total = graphs.add(total, graphs.multiply(c, second[k - m][r]))
            else:
                total = second[width + k - column_count][r]
            if r >= m:
                wrench(k, 6 + r - m, total)
                continue
            before = first[k][r] if k < column_count else 0.0
            moved = graphs.add(graphs.multiply(c, before), graphs.multiply(g, graphs.subtract(total, before)))
            angle, rate = graphs.multiply(half, moved), graphs.multiply(half, graphs.add(before, total))
            if k == r:
                angle = graphs.add(angle, 1.0)
            if k == m + r:
                angle, rate = graphs.add(angle, dt), graphs.add(rate, 1.0)
            outputs.append(graphs.Output(angle, ENDS, (k * width + r) * GROUP))
            outputs.append(graphs.Output(rate, ENDS, (k * width + m + r) * GROUP))
    for r in range(6):
        for k in range(column_count):
            wrench(k, r, first[k][m + r])
    return outputs


def _written(make: Any, arrays: int) -> Any:
    """Return an intrinsic (links, address, ...), with links a tuple of as many members as a chain has links.

    Derivatives that are always zero are not written: arrays are zero at first.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        outputs = [item for item in make(signature.args[0].count) if not graphs.is_zero(item.value)]
        graphs.write(builder, args[1:], GROUP, outputs)
        return context.get_dummy_value()

    return lambda links: (types.void(links, *[types.int64] * arrays), generate)


@intrinsic
def first_slopes(typing_context: Any, links: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Write the derivatives of a chain's first stage.

    Parameters
    ----------
    typing_context : object
        Context of numba's type inference.
    links : tuple
        One member for each link of a chain.
    a, b, c, d, e, f : int
        Addresses of the arrays PARAMS to OUT.

    Returns
    -------
    (Signature, callable)
        Signature and code generator.
    """
    return _written(lambda m: _stage(m, False), 6)(links)


@intrinsic
def second_slopes(typing_context: Any, links: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Write the derivatives of a chain's second stage.

    Parameters
    ----------
    typing_context : object
        Context of numba's type inference.
    links : tuple
        One member for each link of a chain.
    a, b, c, d, e, f : int
        Addresses of the arrays PARAMS to OUT.

    Returns
    -------
    (Signature, callable)
        Signature and code generator.
    """
    return _written(lambda m: _stage(m, True), 6)(links)


@intrinsic
def compose(typing_context: Any, links: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Write the derivatives of a chain's step from those of its stages.

    Parameters
    ----------
    typing_context : object
        Context of numba's type inference.
    links : tuple
        One member for each link of a chain.
    a, b, c, d, e, f : int
        Addresses of the arrays FIRST to SUMMED.

    Returns
    -------
    (Signature, callable)
        Signature and code generator.
    """
    return _written(_compose, 6)(links)
