"""Steps of a plant without inertia beside its own, in memory of their own (rtmms.plant.Twin)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rtmms.jit import COMPILED
from rtmms.locomotion.glide import SOUND, enter_glide, glide
from rtmms.plant import Kept
from rtmms.spatial import Array, unpack_inertia

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.memory import Record
    from rtmms.model.compiled import Model

    class Original(Protocol):
        """What a twin reads of its plant."""

        model: Model
        system: Record
        dt: float
        _steps: int


ORDER = 6
"""Of the integral over the group; joints follow their commands exactly."""


def _reach(model: Model) -> float:
    """m, how far from their origins the bodies' drag acts: sqrt of its moments over its forces."""
    drag = np.sum([np.diag(unpack_inertia(packed)) for packed in model.viscous], axis=0)
    return float(np.sqrt(drag[3:].sum() / drag[:3].sum()))


class GlideTwin:
    """See rtmms.plant.Twin. Velocities are no part of the state: what is measured is where the robot comes to."""

    def __init__(self, plant: Original) -> None:
        self.plant, self.dt, self.order, self.bounded, self.base_moves = plant, plant.dt, ORDER, False, True
        self.length = _reach(plant.model)
        self.state, self._parts = self.room(), 2
        self._system = plant.system.fork(self.state.all[:-1])
        self._dt = self._system.cell("dt")

    @property
    def now(self) -> int:
        return self.plant._steps

    @property
    def finer(self) -> tuple[str, float]:
        return "dt", self.dt

    def room(self) -> Kept:
        """Memory for one state, and the number of its step behind it."""
        memory = np.zeros(self.plant.system.memory.size + 1)
        parts = self.plant.system.state_views(memory[:-1])
        pose, joints = parts["pose"], parts["joints"]
        return Kept(memory, pose[:3], pose[3:], np.zeros(6), joints[1], parts["spent"])

    def keep(self, at: Kept) -> None:
        """The plant's present state."""
        at.all[:-1] = self.plant.system.memory
        at.all[-1] = self.plant._steps

    def divide(self, parts: int) -> None:
        """See rtmms.plant.Twin."""
        self._parts = parts

    def start(self, at: Kept, halves: bool) -> None:
        """The twin stands there."""
        self.state.all[:] = at.all

    def step(self, command: Array, halves: bool) -> bool:
        """A step of dt, or of a part of it; False where it fails."""
        system = self._system
        system.given[:] = command
        self._dt[0] = self.dt / self._parts if halves else self.dt
        return bool((enter_glide(system.address) if COMPILED else glide(system)) == SOUND)
