"""Structs in memory that compiled code and Python share, each declared once as a numpy structured dtype.

The dtype defines the accessor in kernels (`record_at`: an address as a record, whose fields are attributes), arrays of
records (`records_at`, for carray), and the view from Python (`view`: the same attributes, read and written in place). A
name that ends in _ns is an instant or a duration in ns; one that ends in _at is an address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import from_dtype
from numba.extending import intrinsic

from rtmms.base.pointers import pointer_to

WORD = np.int64
NUMBER = np.float64
FLAG = np.bool_
MARK = np.uint8


def record(*fields: tuple[str, Any]) -> np.dtype[Any]:
    """Return a record type, aligned as in C; its elements have attributes in plain Python, too.

    Parameters
    ----------
    *fields : tuple[str, Any]
        Name and type of each field.

    Returns
    -------
    np.dtype[Any]
        The structured dtype.
    """
    return np.dtype((np.record, np.dtype(list(fields), align=True)))


def word_record(*names: str) -> np.dtype[Any]:
    """Return a record type of int64 only.

    Parameters
    ----------
    *names : str
        Names of the fields.

    Returns
    -------
    np.dtype[Any]
        The structured dtype.
    """
    return record(*((name, WORD) for name in names))


def record_at(dtype: np.dtype[Any]) -> Any:
    """Return an intrinsic that takes an address (int64) for a record.

    Parameters
    ----------
    dtype : np.dtype[Any]
        Type of the record.

    Returns
    -------
    Any
        The intrinsic.
    """
    kind = from_dtype(dtype)

    @intrinsic
    def at(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(address), generate

    return at


def records_at(dtype: np.dtype[Any]) -> Any:
    """Return an intrinsic that takes an address for a pointer to records, for carray.

    Parameters
    ----------
    dtype : np.dtype[Any]
        Type of the records.

    Returns
    -------
    Any
        The intrinsic.
    """
    return pointer_to(from_dtype(dtype))


def view(array: npt.NDArray[Any], k: int = 0) -> Any:
    """Return a record of an array, with each field as an attribute.

    The array must live as long as the result.

    Parameters
    ----------
    array : npt.NDArray[Any]
        Array of records.
    k : int, default 0
        Index of the record.

    Returns
    -------
    Any
        The record.
    """
    kind: Any = np.ctypeslib.as_ctypes_type(np.dtype((np.void, array.dtype)))  # type: ignore[arg-type]
    return kind.from_buffer(array, k * array.itemsize)
