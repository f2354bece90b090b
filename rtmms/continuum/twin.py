"""Steps of a continuous body beside the plant's own, in memory of their own (rtmms.plant.Twin)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.continuum.layout import Y_SIZE
from rtmms.continuum.step import SOUND, enter_step, take_step
from rtmms.jit import COMPILED
from rtmms.plant import Kept
from rtmms.spatial import Array

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.memory import Record

    class Original(Protocol):
        """What a twin reads of its plant."""

        dt: float
        system: Record
        body: Any

        @property
        def memory(self) -> Array: ...

        @property
        def now(self) -> int: ...


class CosseratTwin:
    """See rtmms.plant.Twin."""

    def __init__(self, plant: Original) -> None:
        self.plant, self.dt, self.order, self.bounded, self.base_moves = plant, plant.dt, 4, True, True
        self.length = float(plant.body.length_m)
        self.state = self.room()
        self._size = plant.memory.size
        self._count, self._parts = 0.0, 2
        self._take_up()

    def _take_up(self) -> None:
        self._of = self.plant.system
        self._system = self._of.fork(self.state.all[: self._size])
        self._at, self._dt = self._system.cell("time"), self._system.cell("dt")
        if not COMPILED:
            setattr(self._system, "function", self._of.function)  # noqa: B010

    @property
    def now(self) -> int:
        return self.plant.now

    @property
    def finer(self) -> tuple[str, float]:
        return "dt", self.dt

    def room(self) -> Kept:
        """Memory for one state, and the number of its step behind it."""
        all_ = np.zeros(self.plant.memory.size + 1)
        y = all_[:Y_SIZE]
        return Kept(all_, y[:3], y[3:7], y[7:13], np.zeros(0), y[13:14])

    def keep(self, at: Kept) -> None:
        """The plant's present state."""
        at.all[:-1] = self.plant.memory
        at.all[-1] = self.plant.now

    def divide(self, parts: int) -> None:
        """See rtmms.plant.Twin."""
        self._parts = parts

    def start(self, at: Kept, halves: bool) -> None:
        """The twin stands there."""
        if self._of is not self.plant.system:
            self._take_up()
        self.state.all[:] = at.all
        self._count = float(at.all[-1])

    def step(self, command: Array, halves: bool) -> bool:
        """A step of dt, or of a part of it; False where it fails."""
        parts = self._parts if halves else 1
        self._system.given[:] = command
        self._at[0], self._dt[0] = self._count * self.dt, self.dt / parts
        status = enter_step(self._system.address) if COMPILED else take_step(self._system)
        self._count += 1.0 / parts
        return bool(status == SOUND)
