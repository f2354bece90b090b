"""One word of memory that two processes share, written and read in order with what stands around it: on any processor
whoever sees the word sees all that was written before it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def load_acquire(typing_context: Any, address: Any) -> Any:
    """The int64 at an address; what is read after it is not read before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        return builder.load_atomic(builder.inttoptr(args[0], word.as_pointer()), "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def store_release(typing_context: Any, address: Any, value: Any) -> Any:
    """The int64 to an address; what was written before it is there when it is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate
