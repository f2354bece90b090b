"""A flow that a user writes as a function for numba: kernels call it by its address, at each stage's own time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, cfunc, njit, types
from numba.core.errors import NumbaError

from rtmms.addresses import call_at, numbers_at
from rtmms.errors import ModelError, uncoloured
from rtmms.jit import COMPILED, kernel

NUMBERS = 15
"""u (3) m/s, du_a/dx_b by rows (9) 1/s, du/dt (3) m/s2, world frame."""
LENGTH, INSTANT = 1e-4, 1e-4
"""m and s: between the places and times whose difference stands for a derivative that the function does not give."""
_KNOWN: dict[int, Callable[..., None]] = {}


class AskedFunction:
    """function(t, x, y, z, out): writes u into out[0:3], and du_a/dx_b into out[3:12] and du/dt into out[12:15] if it
    likes: where it leaves these alone, central differences stand for them. ModelError for what numba does not take."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ModelError(f"flow: compiled: expected a function f(t, x, y, z, out), got {function!r}")
        plain = getattr(function, "py_func", function)
        inner: Any = plain
        if COMPILED:
            inner = function if hasattr(function, "py_func") else njit(error_model="numpy")(plain)
        given = _gives(inner, plain.__name__)
        self.told = plain.__code__.co_code + repr((plain.__code__.co_consts, plain.__code__.co_names)).encode()
        whole = inner if given else _with_differences(inner)
        if not COMPILED:
            self.address = id(self)
            _KNOWN[self.address] = whole
            return

        @cfunc(types.void(*[types.float64] * 4, types.CPointer(types.float64)))
        def entry(t: float, x: float, y: float, z: float, pointer: Any) -> None:
            whole(t, x, y, z, carray(pointer, (NUMBERS,)))

        self._entry, self.address = entry, int(entry.address)


def _gives(function: Callable[..., Any], name: str) -> bool:
    """Whether the function writes its derivatives, asked at the world's origin."""
    out = np.full(NUMBERS, np.nan)
    try:
        function(0.0, 0.0, 0.0, 0.0, out)
    except NumbaError as fault:
        first = uncoloured(fault).strip().splitlines()[-1]
        raise ModelError(f"flow: compiled: numba does not take {name}(t, x, y, z, out): {first}") from None
    except (TypeError, IndexError, ValueError) as fault:
        raise ModelError(f"flow: compiled: {name}(t, x, y, z, out) fails: {fault}") from None
    written = np.isfinite(out[3:])
    if not np.all(np.isfinite(out[:3])) or (np.any(written) and not np.all(written)):
        raise ModelError(
            f"flow: compiled: {name} must write 3 finite numbers (u), or 15 (u, du/dx by rows, du/dt), got "
            f"{out.tolist()} at the origin, t = 0"
        )
    return bool(np.all(written))


def _with_differences(function: Any) -> Any:
    """The same with central differences for what it does not give."""

    def whole(t: float, x: float, y: float, z: float, out: Any) -> None:
        for axis in range(4):
            h = INSTANT if axis == 3 else LENGTH
            dx, dy, dz, dt = 0.0, 0.0, 0.0, 0.0
            if axis == 0:
                dx = h
            elif axis == 1:
                dy = h
            elif axis == 2:
                dz = h
            else:
                dt = h
            function(t + dt, x + dx, y + dy, z + dz, out)
            a, b, c = out[0], out[1], out[2]
            function(t - dt, x - dx, y - dy, z - dz, out)
            a, b, c = (a - out[0]) / (2.0 * h), (b - out[1]) / (2.0 * h), (c - out[2]) / (2.0 * h)
            if axis == 3:
                out[12], out[13], out[14] = a, b, c
            else:
                out[3 + axis], out[6 + axis], out[9 + axis] = a, b, c
        function(t, x, y, z, out)

    return njit(error_model="numpy")(whole) if COMPILED else whole


@kernel(inline=True)
def _ask(address: int, t: float, x: float, y: float, z: float, out: Any, at: int) -> Any:
    """Its numbers, as a view of the memory of out[at] and on."""
    place = out.ctypes.data + at * out.itemsize
    call_at(address, t, x, y, z, place)
    return carray(numbers_at(place), (NUMBERS,))


def _ask_plain(address: int, t: float, x: float, y: float, z: float, out: Any, at: int) -> Any:
    numbers = np.zeros(NUMBERS)
    _KNOWN[address](float(t), float(x), float(y), float(z), numbers)
    return numbers


if not COMPILED:
    _ask = _ask_plain


@kernel
def add_asked(address: int, time: Any, x: Any, y: Any, z: Any, out: Any) -> None:
    """Add the function's numbers to a sample; out has room for as many again, twice, at its end.

    The function knows no complex numbers: of a displacement i w its slope along w is taken by a difference.
    """
    numbers = _ask(address, time.real, x.real, y.real, z.real, out, NUMBERS)
    a, b, c, d = x - x.real, y - y.real, z - z.real, time - time.real
    size = np.sqrt(x.imag * x.imag + y.imag * y.imag + z.imag * z.imag + time.imag * time.imag)
    for k in range(NUMBERS):
        out[k] += numbers[k]
    if size > 0.0:
        for k in range(3):
            out[k] += numbers[3 + 3 * k] * a + numbers[4 + 3 * k] * b + numbers[5 + 3 * k] * c + numbers[12 + k] * d
        step = (a * x.imag + b * y.imag + c * z.imag + d * time.imag) / size  # i |w|
        h = LENGTH / size
        for sign in (1.0, -1.0):
            at = NUMBERS if sign > 0.0 else 2 * NUMBERS
            w = sign * h
            beside = _ask(
                address,
                time.real + w * time.imag,
                x.real + w * x.imag,
                y.real + w * y.imag,
                z.real + w * z.imag,
                out,
                at,
            )
            for k in range(3, NUMBERS):
                out[k] += sign * beside[k] / (2.0 * LENGTH) * step
