"""Steps of a tree beside the plant's own: its twin, whose memory is its own and whose kernels are the plant's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rtmms.dynamics.any_tree import modal_arrays
from rtmms.dynamics.on_ground import ground_arrays
from rtmms.fluids.ambient import SAMPLE_ROOM
from rtmms.mechanism.account import O_TORQUE
from rtmms.mechanism.asked_flow import ask_flow
from rtmms.mechanism.door import DT, START, Door
from rtmms.mechanism.methods import METHODS
from rtmms.mechanism.step import SOUND
from rtmms.mechanism.take_step import take_step
from rtmms.mechanism.unseen_motion import given_rates, nodes
from rtmms.model.layout import BASE_FREE
from rtmms.plant import Kept
from rtmms.spatial import Array

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.fluids.ambient import Flow
    from rtmms.fluids.immersed import Immersed
    from rtmms.mechanism.actuators import Attached
    from rtmms.mechanism.joint_laws import Law
    from rtmms.model.compiled import Model

    class Original(Protocol):
        """What a twin reads of its plant."""

        model: Model
        flow: Flow
        immersed: Immersed
        law: Law
        dt: float
        method: str
        substeps: int
        _memory: Array
        _steps: int
        bandwidth: Array
        attached: Attached
        _counts: Any
        _scratch: Any
        _method: Any
        _tree: Any
        _law: Any
        _kinds: Any
        _joints: Any
        _numbers: Array
        _observed: Any
        _door: Any
        _doors: Any
        _losing: int
        _spending: int

        @property
        def finer(self) -> tuple[str, float]: ...


class Parts(NamedTuple):
    """Everything of a tree that changes, as views of one vector, so that a snapshot is its bytes.

    state (13 + 2 n,); torque (n,), target (n, 2), servo (n, 4): see joint_laws; history (5, 13 + 2 n): see step;
    spent (1,) J, more of a tree that is audited (rtmms.mechanism.audit); lost (2,) of a tree with contacts, else (0,):
    see rtmms.dynamics.ground; command (actuators,); motor (pushes,): see body_actuators
    """

    state: Array
    torque: Array
    target: Array
    servo: Array
    history: Array
    spent: Array
    lost: Array
    command: Array
    motor: Array

    @staticmethod
    def size(n: int, actuators: int, pushes: int, losing: int = 0, spent: int = 1) -> int:
        """Numbers in the vector of n joints."""
        return 6 * (13 + 2 * n) + 7 * n + spent + losing + actuators + pushes

    @classmethod
    def of(cls, memory: Array, n: int, actuators: int, losing: int = 0, spent: int = 1) -> Parts:
        """The views of a vector of that size."""
        m = 13 + 2 * n
        ends = np.cumsum([m, n, 2 * n, 4 * n, 5 * m, spent, losing, actuators])
        state, torque, target, servo, history, work, lost, command, motor = np.split(memory, ends)
        return cls(
            state, torque, target.reshape(n, 2), servo.reshape(n, 4), history.reshape(5, m), work, lost, command, motor
        )


class TreeTwin:
    """See rtmms.plant.Twin."""

    def __init__(self, plant: Original) -> None:
        model, n = plant.model, plant.model.n
        self.plant, self.dt, self.order = plant, plant.dt, METHODS[plant.method].order
        self.bounded = METHODS[plant.method].stability is not None
        self.base_moves = model.base_mode == BASE_FREE
        self.length = float(np.cbrt(model.mass / 1000.0)) if self.base_moves else 1.0
        self._n, self._size = n, plant._memory.size
        self.state = self.room()
        self._parts = Parts.of(self.state.all[: self._size], n, len(plant._kinds), plant._losing, plant._spending)
        self._memory = (self.state.all[: self._size], np.zeros(self._size))
        self._counts = np.zeros(1, dtype=np.int64)
        self._changing = (self._parts.state, self._parts.history, self._counts, self._parts.spent)
        self._work = (model.scratch(), np.zeros((6, 6)), *(np.zeros(n) for _ in range(5)))
        self._scratch = tuple(np.zeros_like(array) for array in plant._scratch)
        self._given = np.zeros(len(plant._kinds))
        self._time, self._imposed = 0.0, model.imposed
        self._nodes, self._weights = nodes(METHODS[plant.method], plant.substeps)
        self._take_up()

    def _take_up(self) -> None:
        """The plant's model, law and fluid, as they are now, with memory of our own."""
        plant, parts, more = self.plant, self._parts, self.plant.attached
        self._of = plant._door
        e = len(plant.immersed.rows)
        self._held, self._ambient = np.zeros((e, 3)), np.zeros((e, SAMPLE_ROOM))
        fluid = (
            *plant.immersed.arrays, self._held, self._ambient, (more.pushes, more.curve, parts.command, parts.motor)
        )  # fmt: skip
        tree: Any = plant._tree
        hold: Any = (parts.torque, parts.target, parts.servo, plant.bandwidth, 0.0)
        if len(tree) == 7:
            tree, hold = (*tree[:6], ground_arrays(plant.model, parts.lost)), (*hold, True)
        elif len(tree) == 8:
            tree = (*tree[:6], modal_arrays(plant.model), True)
        self._system = (tree, plant._law, hold, fluid, self._work)
        self._told = (self._given, plant._kinds, plant._joints)
        self._numbers = plant._numbers.copy()
        n = self._n
        unseen = (np.zeros(12 + 2 * n), plant._observed.points[:0], np.zeros(O_TORQUE + n))
        self._door = Door(
            self._system, plant._method, self._changing, self._scratch, self._told, self._memory, unseen, self._numbers
        )

    @property
    def now(self) -> int:
        return self.plant._steps

    @property
    def finer(self) -> tuple[str, float]:
        return self.plant.finer

    def room(self) -> Kept:
        """Memory for one state, and the number of its step behind it."""
        memory, n = np.zeros(self._size + 1), self._n
        parts = Parts.of(memory[: self._size], n, len(self.plant._kinds), self.plant._losing, self.plant._spending)
        y = parts.state
        return Kept(memory, y[:3], y[3:7], y[7 + n : 13 + n], y[7 : 7 + n], parts.spent[:1])

    def keep(self, at: Kept) -> None:
        """The plant's present state."""
        at.all[:-1] = self.plant._memory
        at.all[-1] = self.plant._steps

    def start(self, at: Kept, halves: bool) -> None:
        """The twin stands there. In halves a multistep method starts anew: its past is of other steps."""
        if self._of is not self.plant._door:  # its parameters were changed
            self._take_up()
        self.state.all[:] = at.all
        self._counts[0] = 0 if halves else self.plant._counts[0]
        self._time = float(at.all[-1]) * self.dt

    def step(self, command: Array, halves: bool) -> bool:
        """A step of dt, or of half of it; False where it fails."""
        plant, parts = self.plant, self._parts
        dt = 0.5 * self.dt if halves else self.dt
        self._given[:] = command
        if plant.flow.field is not None:
            ask_flow(plant, parts.state, self._time, 0.5 * dt, self._work[0], self._held)
        self._numbers[START], self._numbers[DT] = self._time, dt
        status = plant._doors[0](self._door.address) if plant._doors else self._plain_step(dt)
        self._time += dt
        return bool(status == SOUND)

    def unseen(self, begin: Kept, end: Kept) -> float:
        """See rtmms.plant.Given."""
        if not self._imposed.any():
            return 0.0
        n, parts, start = self._n, self._parts, float(begin.all[-1]) * self.dt
        before = Parts.of(begin.all[: self._size], n, len(self.plant._kinds), self.plant._losing, self.plant._spending)
        with np.errstate(all="ignore"):
            rates = given_rates(
                self.plant._law, before.servo, parts.target, self.plant.bandwidth, start, self.dt * self._nodes
            )
            missed = (end.joints - begin.joints - self.dt * (rates @ self._weights))[self._imposed]
        return float(missed @ missed)

    def _plain_step(self, dt: float) -> int:
        """The step where kernels run as plain Python."""
        tree, law, hold, fluid, work = self._system
        system = (tree, law, (*hold[:4], self._time, *hold[5:]), fluid, work)
        return take_step(
            system, self.plant._method, self._changing, self._scratch, self._told, *self._memory, dt,
            self.plant.substeps,
        )  # fmt: skip
