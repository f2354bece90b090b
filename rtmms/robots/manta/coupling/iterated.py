"""Iterated coupling: body and fins exchange acceleration and wrench until they agree.

Each pass asks the fins for their wrench at the body's present acceleration a, forms what is left over,
r = F - M_b a - (M_A a + p), and moves the body by (M_b + M~)^-1 r. M~, constant, is the fins' locked inertia at rest:
since the articulated inertia M_A stays below it (to within the fins' change of shape), the passes contract where the
plain exchange (M~ = 0) would blow up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling.layout import W_FORCE, W_MATRIX, W_ON_BODY


@kernel
def body_acceleration(finned: Any, work: Array, out: Array) -> tuple[int, float]:
    """Iterate the interface until the acceleration changes by less than finned.tolerance, or max_iterations.

    work  W_MATRIX (6, 6) body and fins together, lower triangle filled; W_FORCE (6,) on the body at zero acceleration
    out   (6,) first guess in, acceleration out, m/s2, rad/s2
    Returns (passes, residual): the residual is the greatest change in the last pass.
    """
    passes = 0
    residual = np.inf
    while passes < finned.max_iterations and not residual <= finned.tolerance:
        for i in range(6):
            s = work[W_FORCE + i]
            for k in range(6):
                s -= work[W_MATRIX + (6 * i + k if k <= i else 6 * k + i)] * out[k]
            work[W_ON_BODY + i] = s
        residual = 0.0
        for i in range(6):
            d = 0.0
            for k in range(6):
                d += finned.relaxation[6 * i + k] * work[W_ON_BODY + k]
            out[i] += d
            residual = max(residual, abs(d))
        passes += 1
    return passes, residual
