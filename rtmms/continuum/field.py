"""Strain fields: any compiled function of place, time and parameters, called by its address, so that one kernel serves
all of them and is kept on disk.

A field is `function(x, t, p, out)`: x m from the head, t s, p (3, k) the parameters, their rates and accelerations, and
out (3, 6), where it writes xi = [linear; angular], xi_t and xi_tt of the section there. A straight unstretched body
has xi = (1, 0, 0, 0, 0, 0); the last two entries are its curvatures, rad/m, about e2 and e3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic

from rtmms.addresses import numbers_at
from rtmms.errors import ModelError
from rtmms.jit import COMPILED, kernel, native
from rtmms.spatial import Array

SETTLE, COAST = 0, 1
"""How a commanded parameter follows: as a value through a critically damped filter, or as a rate whose integral the
parameter is."""


@dataclass(frozen=True, eq=False)
class Field:
    """A strain field and what drives it.

    function   see above: plain Python that numba takes, or compiled by it
    start      (k,) parameters at t = 0; of those that coast it is their rate that is commanded
    follow     (k,) SETTLE or COAST
    mix        (k, u) what the commands of u actuators add up to in each parameter; rows of 0 for what stays
    entry      its address as a C function where it is compiled already; None: it is compiled here
    """

    function: Callable[..., Any]
    start: Array
    follow: Array
    mix: Array
    entry: Callable[..., Any] | None = None

    def address(self) -> Any:
        """What kernels call: an address, or the function itself where kernels run as plain Python."""
        if not COMPILED:
            return getattr(self.function, "py_func", self.function)
        if self.entry is not None:
            return native(self.entry, 0.0, 0.0, 0, len(self.start), 0)
        return _compiled(self.function)


_KEPT: dict[Any, Any] = {}


def _compiled(function: Any) -> int:
    """The address of a user's function; ModelError with numba's words where it cannot be compiled."""
    if function not in _KEPT:
        inner = function if hasattr(function, "py_func") else njit(error_model="numpy")(function)

        def entry(x: float, t: float, p: int, k: int, out: int) -> None:
            inner(x, t, carray(numbers_at(p), (3, k)), carray(numbers_at(out), (3, 6)))

        signature = types.void(types.float64, types.float64, types.int64, types.int64, types.int64)
        try:
            _KEPT[function] = cfunc(signature)(entry)
        except Exception as fault:  # whatever numba says of a user's code
            name = getattr(function, "__name__", "?")
            raise ModelError(f"strain field '{name}': numba cannot compile it: {str(fault).strip()[:400]}") from None
    return int(_KEPT[function].address)


@intrinsic
def _call(typing_context: Any, function: Any, x: Any, t: Any, p: Any, k: Any, out: Any) -> Any:
    """A C function (double, double, int64, int64, int64) at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        real, word = ir.DoubleType(), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [real, real, word, word, word])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    words = (types.int64, types.int64, types.int64)
    return types.none(types.int64, types.float64, types.float64, *words), generate


def _ask(function: Any, x: float, t: float, p: Any, out: Any) -> None:
    """Write the field there into out (18,)."""
    _call(function, x, t, p.ctypes.data, p.shape[1], out.ctypes.data)


def _ask_plainly(function: Any, x: float, t: float, p: Any, out: Any) -> None:
    function(x, t, p, out.reshape(3, 6))


ask: Any = kernel(_ask) if COMPILED else _ask_plainly


@kernel
def look(function: Any, x: Any, t: float, p: Any, out: Any) -> None:
    """The field at points x (n,) into out (n, 18)."""
    for i in range(x.shape[0]):
        ask(function, x[i], t, p, out[i])


def check(field: Field, x: Array, times: Array, place: str) -> None:
    """Refuse what is not finite, or whose xi_t or xi_tt are not the rates of xi; ModelError names point and time."""
    function, k = field.address(), len(field.start)
    out = np.zeros((len(x), 18))

    def at(t: float, p: Array) -> Array:
        out[:] = np.nan
        look(function, x, t, np.ascontiguousarray(p), out)
        return out.reshape(-1, 3, 6).copy()

    rng, h = np.random.default_rng(5), 1e-4
    moved = np.any(field.mix != 0.0, axis=1)
    for t in times:
        rate, second = (0.3 * rng.uniform(-1.0, 1.0, k) * moved for _ in range(2))
        coast = np.where(field.follow == COAST, field.start, 0.0)
        value = np.where(field.follow == COAST, 0.0, field.start)

        def p_at(d: float, value: Array = value, rate: Array = rate + coast, second: Array = second) -> Array:
            return np.array([value + rate * d + 0.5 * second * d * d, rate + second * d, second])

        here = at(float(t), p_at(0.0))
        if not np.all(np.isfinite(here)):
            i, j, c = np.argwhere(~np.isfinite(here))[0]
            raise ModelError(
                f"{place}: strain field at X = {x[i]:.6g} m, t = {t:.6g} s: expected finite numbers, got "
                f"{('xi', 'xi_t', 'xi_tt')[j]}[{c}] = {here[i, j, c]}"
            )
        ahead, behind = at(float(t) + h, p_at(h)), at(float(t) - h, p_at(-h))
        for j in range(2):
            slope = (ahead[:, j] - behind[:, j]) / (2.0 * h)
            size = np.max(np.abs(here[:, j + 1])) + np.max(np.abs(slope)) + 1e-3
            wrong = np.abs(slope - here[:, j + 1])
            if np.max(wrong) > 1e-3 * size:
                i, c = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
                raise ModelError(
                    f"{place}: strain field at X = {x[i]:.6g} m, t = {t:.6g} s: {('xi_t', 'xi_tt')[j]}[{c}] is "
                    f"{here[i, j + 1, c]:.6g}, but {('xi', 'xi_t')[j]} changes by {slope[i, c]:.6g} a second"
                )
