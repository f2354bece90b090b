"""Addresses as pointers. Handing an array to compiled code makes numba build a descriptor for it each time; an address
is a number. Who owns the memory keeps it in place for as long as the address is used."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def pointer_to(dtype: Any) -> Any:
    """An intrinsic that takes an address (int64) for a pointer to dtype."""

    @intrinsic
    def cast(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(types.CPointer(dtype)))

        return types.CPointer(dtype)(address), generate

    return cast


numbers_at, integers_at, flags_at = pointer_to(types.float64), pointer_to(types.int64), pointer_to(types.uint8)


@intrinsic
def call_at(typing_context: Any, function: Any, a: Any, b: Any, c: Any, d: Any, out: Any) -> Any:
    """Call the C function void(double, double, double, double, double *) at an address; out is an address too."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [*[ir.DoubleType()] * 4, ir.DoubleType().as_pointer()])
        pointer = builder.inttoptr(args[5], ir.DoubleType().as_pointer())
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [*args[1:5], pointer])
        return context.get_dummy_value()

    number = types.float64
    return types.void(types.int64, number, number, number, number, types.int64), generate


ARGUMENTS = 12
"""Words that `call` passes, of which a function may take fewer."""


@intrinsic
def call(typing_context: Any, function: Any, arguments: Any) -> Any:
    """The C function at an address with ARGUMENTS words from an address, and 0.0: rtmms.jit.native makes such.

    Of words and numbers the calling conventions of x86-64 and AArch64 keep separate count: a function takes as many of
    each as it has, wherever the number stands among them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [*[word] * ARGUMENTS, ir.DoubleType()])
        target = builder.inttoptr(args[0], kind.as_pointer())
        at = builder.inttoptr(args[1], word.as_pointer())
        words = [builder.load(builder.gep(at, [ir.Constant(word, k)])) for k in range(ARGUMENTS)]
        return builder.call(target, [*words, ir.Constant(ir.DoubleType(), 0.0)])

    return types.int64(types.int64, types.int64), generate
