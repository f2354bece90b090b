"""Provide strain fields: compiled functions of place, time and parameters, and those of the robots.

A field is `function(x, t, p, out)` with x m from the head and t s. p (3, k) has the parameters, their rates and
accelerations. The function writes xi = [linear; angular], xi_t and xi_tt of the section to out (3, 6). A straight
unstretched body has xi = (1, 0, 0, 0, 0, 0); the last two entries are its curvatures, rad/m, about e2 and e3.

Kernels call a field by its address, so that one kernel serves all fields and is stored on disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic

from rtmms.base.errors import ModelError
from rtmms.base.jit import COMPILED, kernel, native
from rtmms.base.pointers import numbers_at
from rtmms.base.spatial import Array, scalar
from rtmms.mechanism.joint_laws import ramp

SETTLE, COAST = 0, 1
"""Response of a parameter to its command: a value through a critically damped filter, or a rate that is integrated."""


@dataclass(frozen=True, eq=False)
class Field:
    """A strain field and its drives.

    Parameters
    ----------
    function : Callable[..., Any]
        Plain Python that numba compiles, or a compiled function, see the module.
    start : (k,) array
        Parameters at t = 0; rates of those that coast.
    follow : (k,) array
        SETTLE or COAST.
    mix : (k, u) array
        Sum of the commands of u actuators in each parameter; rows of 0 for constant parameters.
    entry : callable, optional
        Compiled C function of the field; None: it is compiled here.
    """

    function: Callable[..., Any]
    start: Array
    follow: Array
    mix: Array
    entry: Callable[..., Any] | None = None

    def address(self) -> Any:
        """Return the argument for the kernels.

        Returns
        -------
        int or callable
            Address, or the function itself where kernels are plain Python.

        Raises
        ------
        ModelError
            numba cannot compile the function.
        """
        if not COMPILED:
            return getattr(self.function, "py_func", self.function)
        if self.entry is not None:
            return native(self.entry, 0.0, 0.0, 0, len(self.start), 0)
        return _compiled(self.function)


_COMPILED: dict[Any, Any] = {}


def _compiled(function: Any) -> int:
    """Return the address of a user's function; ModelError with numba's text where it cannot be compiled."""
    if function not in _COMPILED:
        inner = function if hasattr(function, "py_func") else njit(error_model="numpy")(function)

        def entry(x: float, t: float, p: int, k: int, out: int) -> None:
            inner(x, t, carray(numbers_at(p), (3, k)), carray(numbers_at(out), (3, 6)))

        signature = types.void(types.float64, types.float64, types.int64, types.int64, types.int64)
        try:
            _COMPILED[function] = cfunc(signature)(entry)
        except Exception as fault:  # whatever numba raises for a user's code
            name = getattr(function, "__name__", "?")
            raise ModelError(f"strain field '{name}': numba cannot compile it: {str(fault).strip()[:400]}") from None
    return int(_COMPILED[function].address)


@intrinsic
def _call(typing_context: Any, function: Any, x: Any, t: Any, p: Any, k: Any, out: Any) -> Any:
    """Call a C function (double, double, int64, int64, int64) at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        real, word = ir.DoubleType(), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [real, real, word, word, word])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    integers = (types.int64, types.int64, types.int64)
    return types.none(types.int64, types.float64, types.float64, *integers), generate


def _ask(function: Any, x: float, t: float, p: Any, out: Any) -> None:
    """Write the field at a place to out (18,)."""
    _call(function, x, t, p.ctypes.data, p.shape[1], out.ctypes.data)


def _ask_plainly(function: Any, x: float, t: float, p: Any, out: Any) -> None:
    function(x, t, p, out.reshape(3, 6))


ask: Any = kernel(_ask) if COMPILED else _ask_plainly


@kernel
def look(function: Any, x: Any, t: float, p: Any, out: Any) -> None:
    """Write the field at several points.

    Parameters
    ----------
    function : int
        Address of the field.
    x : (n,) array
        m from the head.
    t : float
        s.
    p : (3, k) array
        Parameters, with rates and accelerations.
    out : (n, 18) array
        Result.
    """
    for i in range(x.shape[0]):
        ask(function, x[i], t, p, out[i])


def check(field: Field, x: Array, times: Array, place: str) -> None:
    """Check that a field is finite, and that xi_t and xi_tt are the rates of xi.

    Parameters
    ----------
    field : Field
        The field.
    x : (n,) array
        Points, m from the head.
    times : (k,) array
        s.
    place : str
        Name of the body, for the message.

    Raises
    ------
    ModelError
        The check fails; the message has the point and the time.
    """
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
                    f"{place}: strain field at X = {x[i]:.6g} m, t = {t:.6g} s: {('xi_t', 'xi_tt')[j]}[{c}]: expected "
                    f"{slope[i, c]:.6g} a second, the rate of change of {('xi', 'xi_t')[j]}, got "
                    f"{here[i, j + 1, c]:.6g}"
                )


# Two strain fields: a travelling wave of curvature, and curvature through nodes along the body.


(PHASE, YAW_GAIN, YAW_OFFSET, PITCH_GAIN, PITCH_OFFSET, YAW, YAW_GROWTH, PITCH, PITCH_GROWTH, PITCH_LEAD, WAVELENGTH,
 RAMP) = range(12)  # fmt: skip
"""Parameters of `wave`.

Driven: phase in periods, gains with neutral value 1, offsets rad/m. Constant: amplitudes rad/m and their growth rad/m2,
lead rad, wavelength m and soft start s.
"""
WAVE_SIZE = 12


@scalar
def bend(x: Any, f: Any, fd: Any, fdd: Any, p: Any, gain: Any, offset: Any, first: Any, lead: Any) -> Any:
    """Return K, K_t, K_tt of f (gain (first + growth x) sin(2 pi (phase - x / wavelength) + lead) + offset).

    Parameters
    ----------
    x : float
        m from the head.
    f, fd, fdd : float
        Soft start and its derivatives.
    p : (3, WAVE_SIZE) array
        Parameters, with rates and accelerations.
    gain, offset, first : int
        Indices of the parameters.
    lead : float
        rad.

    Returns
    -------
    (float, float, float)
        rad/m, rad/m/s, rad/m/s2.
    """
    envelope = p[0, first] + p[0, first + 1] * x
    angle = 2.0 * math.pi * (p[0, PHASE] - x / p[0, WAVELENGTH]) + lead
    w, wd = 2.0 * math.pi * p[1, PHASE], 2.0 * math.pi * p[2, PHASE]
    s, c = envelope * np.sin(angle), envelope * np.cos(angle)
    g, gd, gdd = p[0, gain], p[1, gain], p[2, gain]
    k = g * s + p[0, offset]
    kd = gd * s + g * w * c + p[1, offset]
    kdd = gdd * s + 2.0 * gd * w * c + g * (wd * c - w * w * s) + p[2, offset]
    return f * k, fd * k + f * kd, fdd * k + 2.0 * fd * kd + f * kdd


@kernel
def wave(x: float, t: float, p: Any, out: Any) -> None:
    """Write the strain of a wave: curvatures about e3 (yaw) and e2 (pitch) along the body.

    Parameters
    ----------
    x : float
        m from the head.
    t : float
        s.
    p : (3, WAVE_SIZE) array
        Parameters, with rates and accelerations.
    out : (3, 6) array
        Result.
    """
    f, fd, fdd = ramp(t, p[0, RAMP])
    for i in range(3):
        for k in range(6):
            out[i, k] = 0.0
    out[0, 0] = 1.0
    out[0, 5], out[1, 5], out[2, 5] = bend(x, f, fd, fdd, p, YAW_GAIN, YAW_OFFSET, YAW, 0.0)
    if p[0, PITCH] != 0.0 or p[0, PITCH_GROWTH] != 0.0 or p[0, PITCH_OFFSET] != 0.0 or p[1, PITCH_OFFSET] != 0.0:
        out[0, 4], out[1, 4], out[2, 4] = bend(
            x, f, fd, fdd, p, PITCH_GAIN, PITCH_OFFSET, PITCH, p[0, PITCH_LEAD]
        )  # fmt: skip


@kernel
def wave_entry(x: float, t: float, p: int, k: int, out: int) -> None:
    """Write `wave` with arrays at addresses.

    Parameters
    ----------
    x : float
        m from the head.
    t : float
        s.
    p, k : int
        Address and number of the parameters.
    out : int
        Address of the result.
    """
    wave(x, t, carray(numbers_at(p), (3, k)), carray(numbers_at(out), (3, 6)))


def wave_field(values: Array, driven: list[int]) -> Field:
    """Return the field of a wave.

    Parameters
    ----------
    values : (WAVE_SIZE,) array
        Parameters; the rate of PHASE, 1/s.
    driven : list[int]
        Parameters that actuators command, one each.

    Returns
    -------
    Field
        The field.
    """
    follow = np.full(WAVE_SIZE, SETTLE)
    follow[PHASE] = COAST
    mix = np.zeros((WAVE_SIZE, len(driven)))
    mix[driven, range(len(driven))] = 1.0
    return Field(wave, np.array(values, dtype=float), follow, mix, wave_entry)


@kernel
def nodes(x: float, t: float, p: Any, out: Any) -> None:
    """Write the strain of curvatures through cubic B-splines of equal pieces.

    Parameters
    ----------
    x : float
        m from the head.
    t : float
        s; without effect.
    p : (3, k) array
        Whether there is pitch, length of a piece (m), then the coefficients of yaw and of pitch.
    out : (3, 6) array
        Result.
    """
    pitched = p[0, 0] > 0.0
    n = (p.shape[1] - 2) // 2 if pitched else p.shape[1] - 2
    u = x / p[0, 1]
    j = min(max(int(u), 0), n - 4)
    u -= j
    v = 1.0 - u
    a, d = v * v * v / 6.0, u * u * u / 6.0
    b, c = 2.0 / 3.0 - 0.5 * u * u * (1.0 + v), 2.0 / 3.0 - 0.5 * v * v * (1.0 + u)
    for i in range(3):
        for k in range(6):
            out[i, k] = 0.0
        m = 2 + j
        out[i, 5] = a * p[i, m] + b * p[i, m + 1] + c * p[i, m + 2] + d * p[i, m + 3]
        if pitched:
            m += n
            out[i, 4] = a * p[i, m] + b * p[i, m + 1] + c * p[i, m + 2] + d * p[i, m + 3]
    out[0, 0] = 1.0


@kernel
def nodes_entry(x: float, t: float, p: int, k: int, out: int) -> None:
    """Write `nodes` with arrays at addresses.

    Parameters
    ----------
    x : float
        m from the head.
    t : float
        s.
    p, k : int
        Address and number of the parameters.
    out : int
        Address of the result.
    """
    nodes(x, t, carray(numbers_at(p), (3, k)), carray(numbers_at(out), (3, 6)))


def through_nodes(n: int) -> Array:
    """Return the coefficients of the natural cubic B-spline through values at equal distances.

    Parameters
    ----------
    n : int
        Number of values.

    Returns
    -------
    (n + 2, n) array
        Coefficients for each value.
    """
    rows = np.zeros((n + 2, n + 2))
    for i in range(n):
        rows[i, i : i + 3] = np.array([1.0, 4.0, 1.0]) / 6.0
    rows[n, :3] = rows[n + 1, -3:] = [1.0, -2.0, 1.0]
    wanted = np.zeros((n + 2, n))
    wanted[:n] = np.eye(n)
    return np.asarray(np.linalg.solve(rows, wanted), dtype=float)


def nodes_field(length: float, n: int, pitched: bool) -> Field:
    """Return the field of curvatures at nodes from head to tail.

    Parameters
    ----------
    length : float
        m.
    n : int
        Number of nodes, at least 2.
    pitched : bool
        Whether curvatures about e2 follow those about e3.

    Returns
    -------
    Field
        The field.
    """
    through = through_nodes(n)
    size = (n + 2) * (2 if pitched else 1)
    start = np.zeros(2 + size)
    start[0], start[1] = float(pitched), length / (n - 1)
    mix = np.zeros((2 + size, 2 * n if pitched else n))
    mix[2 : n + 4, :n] = through
    if pitched:
        mix[n + 4 :, n:] = through
    return Field(nodes, start, np.full(2 + size, SETTLE), mix, nodes_entry)
