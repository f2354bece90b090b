"""The fluid's own motion: uniform or accelerating currents, gradients, waves, vortex streets, a grid, any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.fluids.asked_function import AskedFunction, add_asked
from rtmms.fluids.flow_grid import Grid, add_grid
from rtmms.fluids.vortex_row import Street, VortexRow, add_vortex_row
from rtmms.jit import kernel
from rtmms.spatial import Array

U, GRADIENT, RATE = 0, 3, 12  # columns of a sample: u (3), du_a/dx_b by rows (9), du/dt (3), world frame
SAMPLE = 15
SAMPLE_ROOM = 45
"""A sample with room behind it for what a function writes."""

# in the table: velocity (3), acceleration (3), numbers of waves and of vortex rows; the gradient by rows (3 x 3), and
# beside it, 0 where there is none, the addresses of a function (row 1) and of a grid (row 2)
ACCELERATION, WAVES, VORTICES, ADDRESS, LEADING = 3, 6, 7, 3, 4
FLOW_WIDTH = 8


@dataclass(frozen=True, eq=False)
class Wave:
    """amplitude (3,) m/s times cos(k . x - omega t + phase); k (3,) 1/m, omega rad/s, phase rad."""

    amplitude: Any
    k: Any = (0.0, 0.0, 0.0)
    omega: float = 0.0
    phase: float = 0.0


@dataclass(frozen=True, eq=False)
class Flow:
    """u(x, t) = velocity + acceleration t + gradient x + waves + vortex rows + grid + functions, world frame.

    velocity      (3,) m/s        acceleration  (3,) m/s2       gradient  (3, 3) 1/s, du_a/dx_b (a shear, say)
    waves         any number of `Wave`;  vortices  any number of `VortexRow`
    grid          a `Grid` from a flow solver: linear between nodes; a step that leaves it fails and says where
    compiled      function(t, x, y, z, out) that numba takes: see `AskedFunction`
    field         any function (x (3,) m, t s) -> u (3,) m/s, added to the rest. A plant calls it in each step for each
                  element, half a step ahead, and holds the values over the step: whatever the method, the order is two
                  at most. Its du/dt is a difference over 0.1 ms; its gradient is taken as 0. The kernels evaluate the
                  other parts at each stage's own time and place.
    """

    velocity: Any = (0.0, 0.0, 0.0)
    gradient: Any = field(default_factory=lambda: np.zeros((3, 3)))
    waves: Sequence[Wave] = ()
    field: Callable[[Array, float], Any] | None = None
    acceleration: Any = (0.0, 0.0, 0.0)
    vortices: Sequence[VortexRow] = ()
    grid: Grid | None = None
    compiled: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if self.grid is not None and not isinstance(self.grid, Grid):
            raise ModelError(f"flow: grid must be a Grid, got {self.grid!r}")
        for name, kind in (("waves", Wave), ("vortices", VortexRow)):
            given: Any = getattr(self, name)
            if not isinstance(given, (list, tuple)) or not all(isinstance(one, kind) for one in given):
                raise ModelError(f"flow: {name}: expected a list of {kind.__name__}, got {given!r:.60}")
        if self.field is not None and not callable(self.field):
            raise ModelError(f"flow: field: expected a function of (x, t) or None, got {self.field!r:.60}")
        asked = None if self.compiled is None else AskedFunction(self.compiled)
        object.__setattr__(self, "_asked", asked)

    @classmethod
    def street(cls, street: Street | None = None, **more: Any) -> Flow:
        """A von Karman street in its stream; more: further parts."""
        chosen = Street() if street is None else street
        return cls((chosen.stream, 0.0, 0.0), vortices=chosen.rows(), **more)

    def pack(self) -> Array:
        """(4 + waves + vortex rows, 8). ModelError where a shape is wrong."""
        rows = np.zeros((LEADING + len(self.waves) + len(self.vortices), FLOW_WIDTH))
        rows[0, :3] = _shaped(self.velocity, (3,), "flow: velocity")
        rows[0, ACCELERATION : ACCELERATION + 3] = _shaped(self.acceleration, (3,), "flow: acceleration")
        rows[0, WAVES:] = len(self.waves), len(self.vortices)
        rows[1:4, :3] = _shaped(self.gradient, (3, 3), "flow: gradient")
        asked: AskedFunction | None = self._asked  # type: ignore[attr-defined]
        rows[1, ADDRESS] = 0.0 if asked is None else asked.address
        rows[2, ADDRESS] = 0.0 if self.grid is None else self.grid.block.ctypes.data
        for k, wave in enumerate(self.waves):
            place = f"flow: wave {k}"
            rows[LEADING + k, :3] = _shaped(wave.amplitude, (3,), f"{place}: amplitude")
            rows[LEADING + k, 3:6] = _shaped(wave.k, (3,), f"{place}: k")
            rows[LEADING + k, 6:] = _shaped((wave.omega, wave.phase), (2,), f"{place}: omega and phase")
        for k, row in enumerate(self.vortices):
            rows[LEADING + len(self.waves) + k] = row.packed(f"flow: vortex row {k}")
        return rows

    @property
    def told(self) -> bytes:
        """What decides it, whatever the addresses are: for keys of snapshots."""
        rows = self.pack()
        rows[1:3, ADDRESS] = 0.0
        asked: AskedFunction | None = self._asked  # type: ignore[attr-defined]
        grid = b"" if self.grid is None else self.grid.block.tobytes()
        return rows.tobytes() + grid + (b"" if asked is None else asked.told)

    @property
    def still(self) -> bool:
        rows = self.pack()
        parts = (rows[:LEADING, :6], rows[LEADING:, :3])
        return self.field is None and not any(np.any(part) for part in parts)

    def outside(self, places: Array, time: float) -> str:
        """Why it has no value at one of the places (k, 3) m at a time, s; '' where it has one at all."""
        if self.grid is None:
            return ""
        return next((told for x in places if (told := self.grid.outside(x, time))), "")


def _shaped(value: Any, shape: tuple[int, ...], place: str) -> Array:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{place} must be {shape} finite numbers, got {value!r:.60}") from None
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise ModelError(f"{place} must be {shape} finite numbers, got {array.tolist()}")
    return array


@kernel
def sample(flow: Any, held: Any, time: Any, x: Any, y: Any, z: Any, out: Any) -> None:
    """out (SAMPLE,), or (SAMPLE_ROOM,) for a function, at (x, y, z) m and time s; held (3,) m/s is added to u."""
    for a in range(3):
        g = flow[1 + a]
        out[U + a] = flow[0, a] + held[a] + g[0] * x + g[1] * y + g[2] * z + flow[0, ACCELERATION + a] * time
        for b in range(3):
            out[GRADIENT + 3 * a + b] = flow[1 + a, b]
        out[RATE + a] = flow[0, ACCELERATION + a] + 0.0 * x
    waves = int(flow[0, WAVES])
    for w in range(LEADING, LEADING + waves):
        phase = flow[w, 3] * x + flow[w, 4] * y + flow[w, 5] * z - flow[w, 6] * time + flow[w, 7]
        cosine, sine = np.cos(phase), np.sin(phase)
        for a in range(3):
            out[U + a] += flow[w, a] * cosine
            out[RATE + a] += flow[w, a] * flow[w, 6] * sine
            for b in range(3):
                out[GRADIENT + 3 * a + b] -= flow[w, a] * flow[w, 3 + b] * sine
    for w in range(LEADING + waves, flow.shape[0]):
        add_vortex_row(flow[w], time, x, y, out)
    if flow[2, ADDRESS] > 0.0:
        add_grid(int(flow[2, ADDRESS]), time, x, y, z, out)
    if flow[1, ADDRESS] > 0.0:
        add_asked(int(flow[1, ADDRESS]), time, x, y, z, out)
