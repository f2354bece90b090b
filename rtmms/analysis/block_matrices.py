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


ROWS = 6
"""Rows of a tile."""
COLUMNS = 8
"""Columns of a tile."""
WIDTH = 4
"""Numbers in a vector."""


@intrinsic
def tile(
    typing_context: Any, shares: Any, rows: Any, count: Any, panel: Any, stride: Any, to: Any, out: Any, out_stride: Any
) -> Any:  # fmt: skip
    """Compute ROWS rows of `out` by COLUMNS columns, each a sum of shares times rows of a panel.

    Parameters
    ----------
    typing_context : Any
        Context of numba's typing.
    shares : Any
        Address of (count, ROWS) float64: the share of each of `count` rows of the panel in each row of out.
    rows : Any
        Address of (count,) int64, indices of rows of the panel.
    count : Any
        Number of those rows.
    panel, out : Any
        Addresses of the first column.
    stride, out_stride : Any
        Numbers from row to row.
    to : Any
        Address of (ROWS,) int64, indices of rows of out.

    Returns
    -------
    Any
        Signature and code generator, for numba.
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
            entry = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(entry, nothing, ir.Constant(lanes, [0] * WIDTH))

        begin, loop, end = builder.block, builder.append_basic_block("tile"), builder.append_basic_block("tile.end")
        builder.branch(loop)
        builder.position_at_end(loop)
        n, sums = builder.phi(word), [builder.phi(vector) for _ in range(ROWS * vectors)]
        n.add_incoming(ir.Constant(word, 0), begin)
        for item in sums:
            item.add_incoming(ir.Constant(vector, [0.0] * WIDTH), begin)
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
        for item, value in zip(sums, after, strict=True):
            item.add_incoming(value, builder.block)
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
    """Matrix (h + n, h + n), of which most is zero.

    Attributes
    ----------
    head : Array
        (h, h) first rows and columns.
    right : Array
        (t, n) rows 0 to t - 1 beyond the head; those from t to h - 1 are zero there.
    below : Array
        (n, h) columns below the head.
    blocks : Array
        (w, w, g) blocks of w coordinates each: blocks[i, j, k] is row i, column j of block k.
    members : npt.NDArray[np.int64]
        (w, g) indices of each block's coordinates among the n.
    spread, projection : Array | None, optional
        (n, r) and (r, h + n), or None: spread projection is added to the rows from h on; r is small.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms.analysis.block_matrices import Bordered
    >>> blocks = np.array([[[3.0, 4.0]]])
    >>> one = Bordered(np.eye(1), np.zeros((0, 2)), np.ones((2, 1)), blocks, np.array([[0, 1]]))
    >>> one.times(np.array([1.0, 1.0, 1.0]))
    array([1., 4., 5.])
    """

    head: Array
    right: Array
    below: Array
    blocks: Array
    members: npt.NDArray[np.int64]
    spread: Array | None = None
    projection: Array | None = None

    @property
    def size(self) -> int:
        """Rows of the matrix, h + n."""
        return len(self.head) + len(self.below)

    def copy(self) -> Bordered:
        """Return a copy in memory of its own.

        Returns
        -------
        Bordered
            The copy.
        """
        return Bordered(*(None if item is None else item.copy() for item in self))  # type: ignore[arg-type]

    def dense(self) -> Array:
        """Return the matrix as one array.

        Returns
        -------
        Array
            (h + n, h + n).
        """
        h, n = len(self.head), len(self.below)
        out = np.zeros((h + n, h + n))
        out[:h, :h], out[: len(self.right), h:], out[h:, :h] = self.head, self.right, self.below
        at = h + self.members
        out[at[:, None], at[None]] = self.blocks
        if self.spread is not None and self.projection is not None:
            out[h:] += self.spread @ self.projection
        return out

    def times(self, x: Array) -> Array:
        """Multiply the matrix by a vector or a matrix.

        Parameters
        ----------
        x : Array
            (h + n,) or (h + n, c).

        Returns
        -------
        Array
            In the shape of x.
        """
        h = len(self.head)
        out = np.concatenate([self.head @ x[:h], self.below @ x[:h]])
        out[: len(self.right)] += self.right @ x[h:]
        out[h + self.members] += np.einsum("ijk,jk...->ik...", self.blocks, x[h + self.members])
        if self.spread is not None and self.projection is not None:
            out[h:] += self.spread @ (self.projection @ x)
        return out


@kernel
def sum_rows(count: int, shares: Any, rows: Any, to: Any, panel: Any, out: Any) -> None:
    """Compute rows of `out` as sums of shares of rows of the panel.

    Parameters
    ----------
    count : int
        Number of rows of the panel.
    shares : Any
        (count, ROWS) shares.
    rows : Any
        (count,) indices of rows of the panel.
    to : Any
        (ROWS,) indices of rows of out.
    panel, out : Any
        (., c), with c in whole tiles.
    """
    a, b, t = shares.ctypes.data, rows.ctypes.data, to.ctypes.data
    c = panel.shape[1]
    for first in range(0, c, COLUMNS):
        tile(a, b, count, panel.ctypes.data + 8 * first, c, t, out.ctypes.data + 8 * first, c)


@kernel
def push(
    head: Any,
    right: Any,
    below: Any,
    blocks: Any,
    spread: Any,
    projection: Any,
    members: Any,
    by_inputs: Any,
    first: int,
    panel: Any,
    other: Any,
) -> int:
    """Multiply columns by matrices, one after the other: panel <- A panel (+ columns of B).

    Parameters
    ----------
    head, right, blocks : Any
        As of Bordered, with an axis of the matrices in front.
    below : Any
        (s, h, n), the columns of each matrix.
    spread : Any
        (s, r, n), the columns of each; r in whole tiles, 0 for none.
    projection, members : Any
        As of Bordered, seen with an axis of the matrices in front.
    by_inputs : Any
        (s, h + n, u) slopes by the inputs.
    first : int
        Columns from there on are those by inputs; a column of B is added to each.
    panel : Any
        (h + n + 1 + r, c) with c in whole tiles; its rows from h + n on are scratch.
    other : Any
        Array as large as the panel.

    Returns
    -------
    int
        0 where the result is in the panel, 1 where it is in the other.
    """
    h, n, t, w, q = head.shape[1], below.shape[2], right.shape[1], blocks.shape[1], spread.shape[1]
    shares, rows = np.zeros((h + n + w + q + 1, ROWS)), np.zeros(h + n + w + q + 1, dtype=np.int64)
    to = np.zeros(ROWS, dtype=np.int64)
    for s in range(head.shape[0]):
        source, target = (panel, other) if s % 2 == 0 else (other, panel)
        for r in range(0, q, ROWS):
            for i in range(ROWS):
                to[i] = h + n + 1 + r + i
            for k in range(h + n):
                for i in range(ROWS):
                    shares[k, i] = projection[s, r + i, k]
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
        for g in range(blocks.shape[3]):
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
                        shares[count, i] = blocks[s, e + i, j, g] if e + i < w else 0.0
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
