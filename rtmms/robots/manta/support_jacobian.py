"""Generate derivatives of the supports' motion by rods, twist and acceleration of the body, and the water's velocity.

The results are the derivatives of the chains' view of a support and of the fin's wrench on the body. Both fins at both
stages are four lanes.
"""

from __future__ import annotations

import math
import types as python
from typing import Any

from numba import types
from numba.extending import intrinsic

from rtmms.analysis import graphs
from rtmms.base.spatial import cross
from rtmms.robots.manta import coupling as interface
from rtmms.robots.manta import rods as support
from rtmms.robots.manta.fin_layout import BASE_SIZE
from rtmms.robots.manta.layout import W_BASE, W_ON_BODY, W_ON_SUPPORT, W_TWIST_FIN, WORK_SIZE
from rtmms.robots.manta.rods import ROLL_MEAN, ROLL_ZERO, SUPPORT_SIZE

SUPPORT_LANES = 4
"""Left and right fin at the first stage, then at the second."""
RODS, TWIST, ACCEL, WATER, WRENCH, SIDE, ROWS = 0, 6, 12, 18, 21, 27, 28
"""Rows of the inputs (ROWS, SUPPORT_LANES).

Angles, rates, accelerations of front and back rod; twist of the body in the fins' version, and its rate; the water's
velocity in body axes; the wrench on the support; 1 or -1.
"""
INTO, LENGTHS, MOTION, ON_BODY = range(4)
"""Arrays of the generated code.

INTO: inputs. LENGTHS: support, front, back rod and the root's place (6,), m. Results: MOTION, derivatives of the motion
and of the wrench on the body (WRENCH, MOTION_ROWS, SUPPORT_LANES) by the rows before WRENCH. ON_BODY, those of the
wrench on the body by that on the support (6, 6, SUPPORT_LANES).
"""
MOTION_ROWS = BASE_SIZE + 6


class _Fin:
    """Number of the fin while functions are recorded: 0 where it is an index, a node where it is in the arithmetic."""

    def __init__(self, value: graphs.Node) -> None:
        self.value = value

    def __mul__(self, other: int) -> int:
        return 0

    def __rmul__(self, other: float) -> Any:
        return 0 if isinstance(other, int) else graphs.multiply(other, self.value)


class _RecordedNumpy:
    """Replacement of np for the recorded functions."""

    sqrt = staticmethod(graphs.square_root)

    @staticmethod
    def sin(a: Any) -> Any:
        return graphs.sine_cosine(a)[0] if isinstance(a, graphs.Node) else math.sin(a)

    @staticmethod
    def cos(a: Any) -> Any:
        return graphs.sine_cosine(a)[1] if isinstance(a, graphs.Node) else math.cos(a)


def _plain(compiled: Any, **more: Any) -> Any:
    """Return the Python function of a kernel, for nodes."""
    py_func: Any = compiled.py_func
    return python.FunctionType(py_func.__code__, {**py_func.__globals__, "np": _RecordedNumpy, **more})


def _record(roll: int) -> list[graphs.Output]:
    graphs.start()
    rows = [graphs.load(INTO, SUPPORT_LANES * k) for k in range(ROWS)]
    length, front, back, *root = (graphs.same(LENGTHS, k) for k in range(6))
    fin = _Fin(graphs.multiply(0.5, graphs.subtract(1.0, rows[SIDE])))  # its side is 1 - 2 f
    sup: list[Any] = [0.0] * SUPPORT_SIZE
    work: list[Any] = [0.0] * WORK_SIZE
    for k in range(6):
        work[W_TWIST_FIN + k], work[W_ON_SUPPORT + k] = rows[TWIST + k], rows[WRENCH + k]
    finned = python.SimpleNamespace(root=root)
    more = {
        "cross": _plain(cross), "_to_support": _plain(interface._to_support), "_to_body": _plain(interface._to_body)
    }  # fmt: skip
    motion = _plain(support.support_motion, _put=_plain(support._put))
    motion(length, front, back, roll, rows[0:2], rows[2:4], rows[4:6], sup, 0)
    _plain(interface.base_velocity, **more)(fin, finned, sup, 0, work, *rows[WATER:WRENCH])
    _plain(interface.base_acceleration, **more)(fin, finned, sup, 0, work, rows[ACCEL:WATER])
    _plain(interface.fin_on_body, **more)(fin, finned, sup, 0, work)
    loads = [*work[W_BASE : W_BASE + BASE_SIZE], *work[W_ON_BODY : W_ON_BODY + 6]]
    end, outputs = len(graphs.Node.graph), []
    for c in range(SIDE):
        result = graphs.slopes(loads, rows[c], end)
        if c < WRENCH:
            outputs += [
                graphs.Output(value, MOTION, (c * MOTION_ROWS + i) * SUPPORT_LANES) for i, value in enumerate(result)
            ]
        else:
            outputs += [
                graphs.Output(value, ON_BODY, ((c - WRENCH) * 6 + i) * SUPPORT_LANES)
                for i, value in enumerate(result[BASE_SIZE:])
            ]
    return [output for output in outputs if not graphs.is_zero(output.value)]


def _written(roll: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        graphs.write(builder, args, SUPPORT_LANES, _record(roll), SUPPORT_LANES)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@intrinsic
def rolling_slopes(typing_context: Any, into: Any, lengths: Any, motion: Any, on_body: Any) -> Any:
    """Write the derivatives for supports that roll with the mean of their rods.

    Parameters
    ----------
    typing_context : object
        Context of numba's type inference.
    into, lengths, motion, on_body : int
        Addresses of the arrays INTO to ON_BODY.

    Returns
    -------
    (Signature, callable)
        Signature and code generator.
    """
    return _written(ROLL_MEAN)


@intrinsic
def upright_slopes(typing_context: Any, into: Any, lengths: Any, motion: Any, on_body: Any) -> Any:
    """Write the derivatives for supports that do not roll.

    Parameters
    ----------
    typing_context : object
        Context of numba's type inference.
    into, lengths, motion, on_body : int
        Addresses of the arrays INTO to ON_BODY.

    Returns
    -------
    (Signature, callable)
        Signature and code generator.
    """
    return _written(ROLL_ZERO)
