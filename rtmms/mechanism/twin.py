"""Steps of a tree beside the plant's own: its twin, whose memory is its own and whose kernels are the plant's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.mechanism.flow import ask_flow
from rtmms.mechanism.joint_bounds import BRAKING, GREAT, STEPS
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.step import SOUND, take_step
from rtmms.mechanism.unseen_motion import given_rates, nodes
from rtmms.model.layout import BASE_FREE
from rtmms.plant import Kept
from rtmms.spatial import Array

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.fluids.ambient import Flow
    from rtmms.mechanism.entry import Entries
    from rtmms.memory import Record
    from rtmms.model.compiled import Model

    class Original(Protocol):
        """What a twin reads of its plant."""

        model: Model
        flow: Flow
        immersed: Record
        system: Record
        dt: float
        method: str
        substeps: int
        bandwidth: Array
        _steps: int
        _entries: Entries | None

        @property
        def finer(self) -> tuple[str, float]: ...


def _places(memory: Array, parts: dict[str, Any]) -> slice:
    """Of a state, where the work of the joints stands and, with contacts, that of imposed joints in impacts: any two
    places are evenly spaced."""
    works = [parts["motion.spent"][:1], *([parts["tree.ground.lost"][1:]] if "tree.ground.lost" in parts else [])]
    places = [(one.ctypes.data - memory.ctypes.data) // memory.itemsize for one in works]
    return slice(places[0], places[-1] + 1, max(1, places[-1] - places[0]))


class TreeTwin:
    """See rtmms.plant.Twin."""

    def __init__(self, plant: Original) -> None:
        model = plant.model
        self.plant, self.dt, self.order = plant, plant.dt, METHODS[plant.method].order
        # steps of half the length brake limits in another time: their errors are then no sign of an instability
        bounds, shortest = plant.system.tree.bounds, STEPS * plant.dt / plant.substeps
        coarse = np.any((bounds[:, GREAT] > 0.0) & (bounds[:, BRAKING] < (1.0 - 1e-9) * shortest))
        self.bounded = METHODS[plant.method].stability is not None and not coarse
        self.base_moves = model.base_mode == BASE_FREE
        self.length = float(np.cbrt(model.mass / 1000.0)) if self.base_moves else 1.0
        self._divided, self._count, self._imposed = 2, 0.0, model.imposed
        self._nodes, self._weights = nodes(METHODS[plant.method], plant.substeps)
        self.state = self.room()
        self._take_up()

    def _take_up(self) -> None:
        """The plant's model, law and fluid, as they are now, with memory of our own."""
        self._of = self.plant.system
        self._system = self._of.fork(self.state.all[:-1])
        self._start, self._dt = self._system.hold.cell("start"), self._system.cell("dt")

    @property
    def now(self) -> int:
        return self.plant._steps

    @property
    def finer(self) -> tuple[str, float]:
        return self.plant.finer

    def room(self) -> Kept:
        """Memory for one state, and the number of its step behind it."""
        memory, n = np.zeros(self.plant.system.memory.size + 1), self.plant.model.n
        parts = self._parts(memory)
        y = parts["motion.vector"]
        work = memory[_places(memory, parts)]
        return Kept(memory, y[:3], y[3:7], y[7 + n : 13 + n], y[7 : 7 + n], work)

    def _parts(self, memory: Array) -> dict[str, Any]:
        return self.plant.system.state_views(memory[:-1])

    def keep(self, at: Kept) -> None:
        """The plant's present state."""
        at.all[:-1] = self.plant.system.memory
        at.all[-1] = self.plant._steps

    def divide(self, parts: int) -> None:
        """See rtmms.plant.Twin."""
        self._divided = parts

    def start(self, at: Kept, halves: bool) -> None:
        """The twin stands there. In halves a multistep method starts anew: its past is of other steps."""
        if self._of is not self.plant.system:  # its parameters were changed
            self._take_up()
        self.state.all[:] = at.all
        if halves:
            self._system.motion.counts[0] = 0
        self._count = float(at.all[-1])

    def step(self, command: Array, halves: bool) -> bool:
        """A step of dt, or of a part of it; False where it fails."""
        plant, system = self.plant, self._system
        parts = self._divided if halves else 1
        time, dt = self._count * self.dt, self.dt / parts  # the plant's own count: of an unstable run each bit matters
        system.command.given[:] = command
        if plant.flow.field is not None:
            ask_flow(plant, system.motion.vector, time, 0.5 * dt, system.work.s, system.fluid.held)
        self._start[0], self._dt[0] = time, dt
        status = plant._entries.step(system.address) if plant._entries else take_step(system)
        self._count += 1.0 / parts
        return bool(status == SOUND)

    def unseen(self, begin: Kept, end: Kept) -> float:
        """See rtmms.plant.HasPrescribedJoints."""
        if not self._imposed.any():
            return 0.0
        hold, start = self._system.hold, float(begin.all[-1]) * self.dt
        before = self._parts(begin.all)
        target = np.where(np.isfinite(hold.slew)[:, None], before["hold.target"], hold.target)
        with np.errstate(all="ignore"):
            rates = given_rates(
                self._system.law,
                before["hold.servo"],
                target,
                self.plant.bandwidth,
                start,
                self.dt * self._nodes,
                hold.slew,
                hold.goal,
            )
            missed = (end.joints - begin.joints - self.dt * (rates @ self._weights))[self._imposed]
        return float(missed @ missed)
