"""Products of matrices in small tiles that stay in registers: vector code that a loop would not become."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

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
