"""Addresses as pointers: to numbers, and to the records of a manta."""

from __future__ import annotations

from typing import Any

from numba import from_dtype, types
from numba.extending import intrinsic

from rtmms.robots.manta.coupling.layout import FINNED_DTYPE
from rtmms.robots.manta.kernels.body import BODY_DTYPE

FINNED_RECORD, BODY_RECORD = from_dtype(FINNED_DTYPE), from_dtype(BODY_DTYPE)


def _pointer_to(dtype: Any) -> Any:
    """An intrinsic that takes an address (int64) for a pointer to dtype."""

    @intrinsic
    def cast(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(types.CPointer(dtype)))

        return types.CPointer(dtype)(address), generate

    return cast


numbers_at, finned_at, body_at = _pointer_to(types.float64), _pointer_to(FINNED_RECORD), _pointer_to(BODY_RECORD)
