"""The fluid's own motion: uniform currents, gradients, waves, or any function of place and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.jit import kernel
from rtmms.spatial import Array

U, GRADIENT, RATE = 0, 3, 12  # columns of a sample: u (3), du_a/dx_b by rows (9), du/dt (3), world frame
SAMPLE = 15


@dataclass(frozen=True, eq=False)
class Wave:
    """amplitude (3,) m/s times cos(k . x - omega t + phase); k (3,) 1/m, omega rad/s, phase rad."""

    amplitude: Any
    k: Any = (0.0, 0.0, 0.0)
    omega: float = 0.0
    phase: float = 0.0


@dataclass(frozen=True, eq=False)
class Flow:
    """u(x, t) = velocity + gradient x + sum of waves, world frame.

    velocity  (3,) m/s        gradient  (3, 3) 1/s, du_a/dx_b        waves  any number of `Wave`
    field     any function (x (3,) m, t s) -> u (3,) m/s, added to the rest. It is asked once a step for each element,
              half a step ahead, and held over the step: whatever the method, the order is two at most. Its gradient is
              taken as 0. The other parts are known to the kernels, at each stage's own time and place.
    """

    velocity: Any = (0.0, 0.0, 0.0)
    gradient: Any = field(default_factory=lambda: np.zeros((3, 3)))
    waves: Sequence[Wave] = ()
    field: Callable[[Array, float], Any] | None = None

    def pack(self) -> Array:
        """(4 + waves, 8): velocity, gradient by rows, waves. ModelError where a shape is wrong."""
        rows = np.zeros((4 + len(self.waves), 8))
        rows[0, :3] = _shaped(self.velocity, (3,), "flow: velocity")
        rows[1:4, :3] = _shaped(self.gradient, (3, 3), "flow: gradient")
        for k, wave in enumerate(self.waves):
            place = f"flow: wave {k}"
            rows[4 + k, :3] = _shaped(wave.amplitude, (3,), f"{place}: amplitude")
            rows[4 + k, 3:6] = _shaped(wave.k, (3,), f"{place}: k")
            rows[4 + k, 6:] = _shaped((wave.omega, wave.phase), (2,), f"{place}: omega and phase")
        return rows

    @property
    def still(self) -> bool:
        return self.field is None and not np.any(self.pack()[:, :3])


def _shaped(value: Any, shape: tuple[int, ...], place: str) -> Array:
    array = np.array(value, dtype=float)
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise ModelError(f"{place} must be {shape} finite numbers, got {array.tolist()}")
    return array


@kernel
def sample(flow: Any, held: Any, time: Any, x: Any, y: Any, z: Any, out: Any) -> None:
    """out (SAMPLE,) at (x, y, z) m and time s; held (3,) m/s is added to u."""
    for a in range(3):
        g = flow[1 + a]
        out[U + a] = flow[0, a] + held[a] + g[0] * x + g[1] * y + g[2] * z
        for b in range(3):
            out[GRADIENT + 3 * a + b] = flow[1 + a, b]
        out[RATE + a] = 0.0 * x
    for w in range(4, flow.shape[0]):
        phase = flow[w, 3] * x + flow[w, 4] * y + flow[w, 5] * z - flow[w, 6] * time + flow[w, 7]
        cosine, sine = np.cos(phase), np.sin(phase)
        for a in range(3):
            out[U + a] += flow[w, a] * cosine
            out[RATE + a] += flow[w, a] * flow[w, 6] * sine
            for b in range(3):
                out[GRADIENT + 3 * a + b] -= flow[w, a] * flow[w, 3 + b] * sine
