"""Bordered block-diagonal matrices, and products of matrices in small tiles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array

# Products of matrices in small tiles that stay in registers: vector code that a loop would not become.


ROWS, COLUMNS = 6, 8
"""Of a tile."""
WIDTH = 4
"""Numbers in a vector."""


@intrinsic
def tile(
    typing_context: Any, shares: Any, rows: Any, count: Any, panel: Any, stride: Any, to: Any, out: Any, out_stride: Any
) -> Any:  # fmt: skip
    """ROWS rows of `out` by COLUMNS columns: each a sum of shares times rows of a panel.

    shares  address of (count, ROWS) float64, of each of `count` rows of the panel what goes to each row of out
    rows    address of (count,) int64, which rows of the panel;  to  address of (ROWS,) int64, which of out
    panel, out   addresses of the first column;  stride, out_stride  from row to row
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        shares, rows, count, panel, stride, to, out, out_stride = args
        word, number, vectors = ir.IntType(64), ir.DoubleType(), COLUMNS // WIDTH
        vector, lanes = ir.VectorType(number, WIDTH), ir.VectorType(ir.IntType(32), WIDTH)
        nothing, flags = ir.Constant(vector, ir.Undefined), ("contract", "nsz")

        def at(address: Any, offset: Any, kind: Any) -> Any:
            there = builder.add(address, builder.shl(offset, ir.Constant(word, 3)))
            return builder.inttoptr(there, kind.as_pointer())

        def several(value: Any) -> Any:
            one = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, nothing, ir.Constant(lanes, [0] * WIDTH))

        begin, loop, end = builder.block, builder.append_basic_block("tile"), builder.append_basic_block("tile.end")
        builder.branch(loop)
        builder.position_at_end(loop)
        n, sums = builder.phi(word), [builder.phi(vector) for _ in range(ROWS * vectors)]
        n.add_incoming(ir.Constant(word, 0), begin)
        for one in sums:
            one.add_incoming(ir.Constant(vector, [0.0] * WIDTH), begin)
        first = builder.mul(builder.load(at(rows, n, word)), stride)
        x = [
            builder.load(at(panel, builder.add(first, ir.Constant(word, WIDTH * v)), vector), align=8)
            for v in range(vectors)
        ]
        share, after = builder.mul(n, ir.Constant(word, ROWS)), []
        for r in range(ROWS):
            s = several(builder.load(at(shares, builder.add(share, ir.Constant(word, r)), number)))
            for v in range(vectors):
                product = builder.fmul(s, x[v], flags=flags)
                after.append(builder.fadd(sums[r * vectors + v], product, flags=flags))
        following = builder.add(n, ir.Constant(word, 1))
        n.add_incoming(following, builder.block)
        for one, value in zip(sums, after, strict=True):
            one.add_incoming(value, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, end)
        builder.position_at_end(end)
        for r in range(ROWS):
            row = builder.mul(builder.load(at(to, ir.Constant(word, r), word)), out_stride)
            for v in range(vectors):
                place = at(out, builder.add(row, ir.Constant(word, WIDTH * v)), vector)
                builder.store(after[r * vectors + v], place, align=8)
        return context.get_dummy_value()

    word = types.int64
    return types.void(word, word, word, word, word, word, word, word), generate


# Matrices that are blocks along the diagonal but for a border: chains that know of each other by a head alone, or by a
# few numbers besides.


class Bordered(NamedTuple):
    """(h + n, h + n), of which most is zero.

    head     (h, h) the first rows and columns
    right    (t, n) rows 0 to t - 1 beyond it; those from t to h - 1 are zero there
    below    (n, h) the columns below it
    own      (w, w, g) blocks of w coordinates each: own[i, j, k] is row i, column j of block k
    members  (w, g) which of the n they are
    spread, seen   (n, r) and (r, h + n), or None: spread seen is added to the rows from h on; r of few
    """

    head: Array
    right: Array
    below: Array
    own: Array
    members: npt.NDArray[np.int64]
    spread: Array | None = None
    seen: Array | None = None

    @property
    def size(self) -> int:
        return len(self.head) + len(self.below)

    def copy(self) -> Bordered:
        """In memory of its own."""
        return Bordered(*(None if one is None else one.copy() for one in self))  # type: ignore[arg-type]

    def dense(self) -> Array:
        """As one array."""
        h, n = len(self.head), len(self.below)
        out = np.zeros((h + n, h + n))
        out[:h, :h], out[: len(self.right), h:], out[h:, :h] = self.head, self.right, self.below
        at = h + self.members
        out[at[:, None], at[None]] = self.own
        if self.spread is not None and self.seen is not None:
            out[h:] += self.spread @ self.seen
        return out

    def times(self, x: Array) -> Array:
        """The product with x (h + n,) or (h + n, c)."""
        h = len(self.head)
        out = np.concatenate([self.head @ x[:h], self.below @ x[:h]])
        out[: len(self.right)] += self.right @ x[h:]
        out[h + self.members] += np.einsum("ijk,jk...->ik...", self.own, x[h + self.members])
        if self.spread is not None and self.seen is not None:
            out[h:] += self.spread @ (self.seen @ x)
        return out


@kernel
def sum_rows(count: int, shares: Any, rows: Any, to: Any, panel: Any, out: Any) -> None:
    """Rows `to` of out (., c) as shares (count, ROWS) of rows of the panel (., c); c in whole tiles."""
    a, b, t = shares.ctypes.data, rows.ctypes.data, to.ctypes.data
    c = panel.shape[1]
    for first in range(0, c, COLUMNS):
        tile(a, b, count, panel.ctypes.data + 8 * first, c, t, out.ctypes.data + 8 * first, c)


@kernel
def push(
    head: Any, right: Any, below: Any, own: Any, spread: Any, seen: Any, members: Any, by_inputs: Any, first: int,
    panel: Any, other: Any,
) -> int:  # fmt: skip
    """Columns through matrices, one after the other: panel <- A panel (+ columns of B, for those that begin there).

    head, right, below, own, spread, seen, members   as of Bordered, with an axis of the matrices in front, but for
                members; below (s, h, n) and spread (s, r, n), their columns; r in whole tiles, 0 for none
    by_inputs   (s, h + n, u);  first  the columns from there on are those by inputs, a column of B is added to each
    panel       (h + n + 1 + r, c) with c in whole tiles, its rows from h + n on of no matter;  other  as large
    Returns 0 where the result is in the panel, 1 where it is in the other.
    """
    h, n, t, w, q = head.shape[1], below.shape[2], right.shape[1], own.shape[1], spread.shape[1]
    shares, rows = np.zeros((h + n + w + q + 1, ROWS)), np.zeros(h + n + w + q + 1, dtype=np.int64)
    to = np.zeros(ROWS, dtype=np.int64)
    for s in range(head.shape[0]):
        source, target = (panel, other) if s % 2 == 0 else (other, panel)
        for r in range(0, q, ROWS):
            for i in range(ROWS):
                to[i] = h + n + 1 + r + i
            for k in range(h + n):
                for i in range(ROWS):
                    shares[k, i] = seen[s, r + i, k]
                rows[k] = k
            sum_rows(h + n, shares, rows, to, source, source)
        for r in range(0, h, ROWS):
            for i in range(ROWS):
                to[i] = r + i if r + i < h else h + n
            count = 0
            for k in range(h):
                there = False
                for i in range(ROWS):
                    shares[count, i] = head[s, r + i, k] if r + i < h else 0.0
                    there = there or shares[count, i] != 0.0
                rows[count] = k
                count += 1 if there else 0
            if r < t:
                for k in range(n):
                    for i in range(ROWS):
                        shares[count, i] = right[s, r + i, k] if r + i < t else 0.0
                    rows[count] = h + k
                    count += 1
            sum_rows(count, shares, rows, to, source, target)
        for g in range(own.shape[3]):
            for e in range(0, w, ROWS):
                for i in range(ROWS):
                    to[i] = h + members[e + i, g] if e + i < w else h + n
                count = 0
                for k in range(h):
                    there = False
                    for i in range(ROWS):
                        shares[count, i] = below[s, k, to[i] - h] if e + i < w else 0.0
                        there = there or shares[count, i] != 0.0
                    rows[count] = k
                    count += 1 if there else 0
                for j in range(w):
                    for i in range(ROWS):
                        shares[count, i] = own[s, e + i, j, g] if e + i < w else 0.0
                    rows[count] = h + members[j, g]
                    count += 1
                for k in range(q):
                    for i in range(ROWS):
                        shares[count, i] = spread[s, k, to[i] - h] if e + i < w else 0.0
                    rows[count] = h + n + 1 + k
                    count += 1
                sum_rows(count, shares, rows, to, source, target)
        for u in range(by_inputs.shape[2]):
            column = first + u
            if 0 <= column < panel.shape[1]:
                for r in range(h + n):
                    target[r, column] += by_inputs[s, r, u]
    return int(head.shape[0] % 2)
