"""Sequential coupling: the fins move with the body's last known acceleration, then the body under what they gave.

Wrong by the change of the body's acceleration over a step, so of first order in the step whatever the chains' own
method; stable only while the fins' inertia as felt through locked joints stays below the body's (`spectral_radius`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import Array, kernel
from rtmms.robots.manta.coupling.layout import W_FORCE, W_ON_BODY


@kernel
def body_acceleration(finned: Any, work: Array, out: Array) -> None:
    """M_b^-1 (F_body + F_left + F_right) from W_FORCE and W_ON_BODY; out (6,) m/s2, rad/s2."""
    for k in range(6):
        out[k] = (work[W_FORCE + k] + work[W_ON_BODY + k] + work[W_ON_BODY + 6 + k]) / finned.body_matrix[7 * k]


def spectral_radius(body_matrix: np.ndarray, fins_inertia: np.ndarray) -> float:
    """Largest factor by which one lagged exchange amplifies an error in the body's acceleration: |eig(M_b^-1 M_A)|."""
    return float(np.max(np.abs(np.linalg.eigvals(np.linalg.solve(body_matrix, fins_inertia)))))
