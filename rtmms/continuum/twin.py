"""Steps of a continuous body beside the plant's own, in memory of their own (rtmms.plant.Twin)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.continuum.door import DT, TIME, Door, enter_step
from rtmms.continuum.layout import Y_SIZE
from rtmms.continuum.step import SOUND, take_step
from rtmms.jit import COMPILED
from rtmms.plant import Kept
from rtmms.spatial import Array

if TYPE_CHECKING:
    from typing import Protocol

    class Original(Protocol):
        """What a twin reads of its plant."""

        dt: float
        substeps: int
        memory: Array
        numbers: Array
        told: list[Any]
        sizes: list[int]
        address: Any
        door: Any
        body: Any
        _body: Any
        _around: Any
        _drive: Any

        @property
        def now(self) -> int: ...


_MEMORY, _SCRATCH, _GIVEN, _NUMBERS = 11, 4, 16, 17


class CosseratTwin:
    """See rtmms.plant.Twin."""

    def __init__(self, plant: Original) -> None:
        self.plant, self.dt, self.order, self.bounded, self.base_moves = plant, plant.dt, 4, True, True
        self.length = float(plant.body.length_m)
        self.state = self.room()
        self._size = plant.memory.size
        self._time = 0.0
        self._take_up()

    def _take_up(self) -> None:
        plant = self.plant
        self._of = plant.door
        arrays = list(plant.told)
        for k in (*range(_SCRATCH, _SCRATCH + 5), *range(_MEMORY + 1, _NUMBERS + 1)):
            arrays[k] = np.array(arrays[k])
        arrays[_MEMORY] = self.state.all[: self._size]
        self._arrays, self._given, self._numbers = arrays, arrays[_GIVEN], arrays[_NUMBERS]
        self._door = Door(plant.address if COMPILED else 0, arrays, plant.sizes)

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

    def start(self, at: Kept, halves: bool) -> None:
        """The twin stands there."""
        if self._of is not self.plant.door:
            self._take_up()
        self.state.all[:] = at.all
        self._time = float(at.all[-1]) * self.dt

    def step(self, command: Array, halves: bool) -> bool:
        """A step of dt, or of half of it; False where it fails."""
        dt = 0.5 * self.dt if halves else self.dt
        self._given[:] = command
        self._numbers[TIME], self._numbers[DT] = self._time, dt
        if COMPILED:
            status = enter_step(self._door.address)
        else:
            a, plant = self._arrays, self.plant
            status = take_step(
                plant._body, plant._around, tuple(a[_SCRATCH : _SCRATCH + 5]), plant._drive, a[_MEMORY],
                tuple(a[_MEMORY + 1 : _GIVEN]), self._given, self._time, dt, plant.substeps,
            )  # fmt: skip
        self._time += dt
        return bool(status == SOUND)
