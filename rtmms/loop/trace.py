"""What is kept of a run's outputs, in fixed memory: samples over the whole of it, and the last seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.loop.ports import Applied, Array
    from rtmms.plant import Channel

CAPACITY = 32768


def _columns(outputs: Sequence[Channel], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    shapes = {channel.name: channel.shape for channel in outputs}
    return {name: shapes[name] for name in names}


class Trace:
    """Samples of some outputs over a run of any length, evenly spaced, at most `capacity` of them.

    A sample is taken every `stride` steps. When the memory is full, the stride doubles and new samples take the places
    of those that no longer lie on it, one by one: no step copies the whole. So the newest part of the run is as dense
    as the oldest, give or take one doubling under way. With the number of steps known, the stride is chosen at the
    start.

    outputs   the plant's channels;  names   which of them are kept;  dt   s
    steps     of the run, None when it is not known
    apart_s   least time between samples: observing a state costs several times a step
    first     the step that the run begins with; 0 again after a reset
    due       (read by the loop) the next step whose end is wanted
    """

    def __init__(
        self, outputs: Sequence[Channel], names: Sequence[str], dt: float, steps: int | None,
        capacity: int = CAPACITY, apart_s: float = 0.0, first: int = 0,
    ) -> None:  # fmt: skip
        self.names, self.dt, self.capacity, self.first = tuple(names), dt, capacity, first
        self.stride = max(1, round(apart_s / dt))
        if steps is not None:
            self.stride = max(self.stride, math.ceil((steps + 1) / capacity))
        self._values = {name: np.full((capacity, *shape), 0.0) for name, shape in _columns(outputs, self.names).items()}
        self._step = np.full(capacity, -1, dtype=np.int64)
        self._free: npt.NDArray[np.int64] = np.arange(capacity)
        self._next = 0
        self.due = 0

    def clear(self) -> None:
        """Forget the samples; the stride stays."""
        self._step.fill(-1)
        self._free, self._next, self.due, self.first = np.arange(self.capacity), 0, 0, 0

    def start(self, outputs: Mapping[str, Array]) -> None:
        """The state before the first step."""
        if self.first % self.stride == 0:
            self._write(self.first, outputs)
        self.due = (self.first // self.stride + 1) * self.stride - 1

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Observer: `step` has ended, and outputs hold at its end."""
        self._write(step + 1, outputs)
        self.due = ((step + 1) // self.stride + 1) * self.stride - 1

    def _write(self, at_step: int, outputs: Mapping[str, Array]) -> None:
        if self._next == len(self._free):
            self.stride *= 2
            self._free, self._next = np.flatnonzero(self._step % self.stride), 0
            if at_step % self.stride:
                return
        place = self._free[self._next]
        for name, column in self._values.items():
            column[place] = outputs[name]
        self._step[place] = at_step
        self._next += 1

    def read(self) -> tuple[Array, dict[str, Array]]:
        """(time (k,) s, {name: (k, *shape)}), sorted by time, evenly spaced: of a doubling under way the older,
        denser half is thinned in the copy."""
        kept = np.flatnonzero((self._step >= 0) & (self._step % self.stride == 0))
        kept = kept[np.argsort(self._step[kept])]
        time: Array = self._step[kept].astype(np.float64) * self.dt
        return time, {name: column[kept] for name, column in self._values.items()}


class Recent:
    """The last `rows` samples of some outputs, one every `stride` steps: a ring (fin shapes for the figure)."""

    def __init__(
        self, outputs: Sequence[Channel], names: Sequence[str], dt: float, *, seconds: float = 4.0, rows: int = 512
    ) -> None:
        self.names, self.dt, self.rows = tuple(names), dt, rows
        self.stride = max(1, math.ceil(seconds / (rows * dt)))
        self._values = {name: np.full((rows, *shape), 0.0) for name, shape in _columns(outputs, self.names).items()}
        self._step = np.full(rows, -1, dtype=np.int64)
        self._written = 0
        self.due = self.stride - 1

    def clear(self) -> None:
        """Forget the samples."""
        self._step.fill(-1)
        self._written, self.due = 0, self.stride - 1

    def start(self, outputs: Mapping[str, Array]) -> None:
        """Nothing: the ring holds the end of the run."""

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Observer: `step` has ended, and outputs hold at its end."""
        place = self._written % self.rows
        for name, column in self._values.items():
            column[place] = outputs[name]
        self._step[place] = step + 1
        self._written += 1
        self.due = step + self.stride

    def read(self) -> tuple[Array, dict[str, Array]]:
        """(time (k,) s, {name: (k, *shape)}), oldest first."""
        kept = np.flatnonzero(self._step >= 0)
        kept = kept[np.argsort(self._step[kept])]
        time: Array = self._step[kept].astype(np.float64) * self.dt
        return time, {name: column[kept] for name, column in self._values.items()}
