"""Addresses of memory and of functions, as compiled code uses them.

An array as an argument makes numba build a descriptor at each call; an address is a number. The owner of the memory
must keep it in place while the address is used.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def address(array: npt.NDArray[Any]) -> int:
    """Return the address of an array's first element.

    Parameters
    ----------
    array : npt.NDArray[Any]
        The array.

    Returns
    -------
    int
        The address.
    """
    return int(array.ctypes.data)


def pointer_to(dtype: Any) -> Any:
    """Return an intrinsic that takes an address (int64) for a pointer.

    Parameters
    ----------
    dtype : Any
        Type of the elements.

    Returns
    -------
    Any
        The intrinsic.
    """

    @intrinsic
    def cast(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(types.CPointer(dtype)))

        return types.CPointer(dtype)(address), generate

    return cast


numbers_at = pointer_to(types.float64)
words_at = pointer_to(types.int64)
bytes_at = pointer_to(types.uint8)


@intrinsic
def call_at(typing_context: Any, function: Any, a: Any, b: Any, c: Any, d: Any, out: Any) -> Any:
    """Call the C function void(double, double, double, double, double *) at an address.

    Parameters
    ----------
    typing_context : Any
        Context of numba.
    function : Any
        Address of the function.
    a, b, c, d : Any
        Its numbers.
    out : Any
        Address of its results.

    Returns
    -------
    tuple
        Signature and code generator, as an intrinsic returns them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [*[ir.DoubleType()] * 4, ir.DoubleType().as_pointer()])
        pointer = builder.inttoptr(args[5], ir.DoubleType().as_pointer())
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [*args[1:5], pointer])
        return context.get_dummy_value()

    number = types.float64
    return types.void(types.int64, number, number, number, number, types.int64), generate


ARGUMENTS = 12
"""Number of words that `call` passes; a function may take fewer."""


@intrinsic
def call(typing_context: Any, function: Any, arguments: Any) -> Any:
    """Call the C function at an address with ARGUMENTS words from an address, and 0.0.

    rtmms.base.jit.native creates such functions. The calling conventions of x86-64 and AArch64 count words and numbers
    separately. So a function takes as many of each as it has, wherever the number is among them.

    Parameters
    ----------
    typing_context : Any
        Context of numba.
    function : Any
        Address of the function.
    arguments : Any
        Address of the words.

    Returns
    -------
    tuple
        Signature and code generator, as an intrinsic returns them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [*[word] * ARGUMENTS, ir.DoubleType()])
        target = builder.inttoptr(args[0], kind.as_pointer())
        at = builder.inttoptr(args[1], word.as_pointer())
        arguments = [builder.load(builder.gep(at, [ir.Constant(word, k)])) for k in range(ARGUMENTS)]
        return builder.call(target, [*arguments, ir.Constant(ir.DoubleType(), 0.0)])

    return types.int64(types.int64, types.int64), generate
