"""Steps of a manta beside its own: a twin whose memory is its own, by the kernels of the plant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.jit import COMPILED
from rtmms.plant import Kept
from rtmms.robots.manta.coupling import layout as lay
from rtmms.robots.manta.coupling.entry import address, enter_step
from rtmms.robots.manta.coupling.layout import Memory
from rtmms.robots.manta.coupling.step import step
from rtmms.robots.manta.coupling.tableaus import METHODS, ORDERS, STABILITY
from rtmms.robots.manta.kernels.fin_layout import LANES
from rtmms.robots.manta.model import Array, MantaModel, compile_manta

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.robots.manta.parameters import MantaParameters

    class Original(Protocol):
        """What a twin reads of its manta."""

        dt: float
        coupling: str
        parameters: MantaParameters
        model: MantaModel
        _memory: Memory
        _state: Array
        _many: int | None
        _sampler: Any


def aligned(*shape: int) -> Array:
    """Zeros that start on a cache line, so that no vector load straddles two."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 8)
    first = (-raw.ctypes.data // 8) % 8
    return raw[first : first + size].reshape(shape)


class MantaTwin:
    """See rtmms.plant.Twin."""

    def __init__(self, plant: Original) -> None:
        p, m = plant.parameters, plant._memory
        method = list(METHODS)[plant.model.finned["integrator"][0]]
        self.plant, self.dt = plant, plant.dt
        self.order, self.bounded = ORDERS[method], STABILITY[method] is not None
        self.base_moves = p.body != "fixed"
        self.length = float(np.cbrt(p.body_mass_kg / p.water_density_kg_m3))
        self._rows = m.links.shape[0]
        self.state = self.room()
        fins = aligned(*m.fins.shape)
        copies = (
            None if array is None else aligned(*array.shape) for array in (m.work, m.drift, m.body_drift, m.normals)
        )
        work, drift, body_drift, normals = copies
        state = self.state.all
        self._memory = Memory(
            m.param, state, state[lay.FINS :].reshape(m.joints.shape), fins, fins.reshape(m.links.shape), work, drift,
            body_drift, normals,
        )  # fmt: skip
        self._command = np.zeros(4)
        self._whole, self._half = plant.model.finned.copy(), plant.model.finned.copy()
        self._parts = 2
        self._of: MantaModel | None = None
        self._take_up()
        self._where = self._addresses(self._whole), self._addresses(self._half)

    def _take_up(self) -> None:
        """The plant's parameters, which `set` may have changed."""
        model = self.plant.model
        if self._of is model:
            return
        self._of = model
        half = compile_manta(self.plant.parameters, self.dt / self._parts, self.plant.coupling)
        self._whole[:], self._half[:] = model.finned, half.finned
        self._half["relaxation"] = model.finned["relaxation"]

    @property
    def now(self) -> int:
        return int(self.plant._state[lay.STEP])

    @property
    def finer(self) -> tuple[str, float]:
        return "dt", self.dt

    def room(self) -> Kept:
        """Memory for one state."""
        state = aligned(self.plant._state.size)
        joints = state[lay.FINS :].reshape(self._rows, 2, LANES)[:, 0]
        twist = state[lay.TWIST : lay.TWIST + 6]
        position, quaternion = state[lay.POSITION : lay.QUATERNION], state[lay.QUATERNION : lay.TWIST]
        return Kept(state, position, quaternion, twist, joints, None)

    def keep(self, at: Kept) -> None:
        """The plant's present state."""
        at.all[:] = self.plant._state

    def divide(self, parts: int) -> None:
        """See rtmms.plant.Twin."""
        if parts != self._parts:
            self._parts, self._of = parts, None
            self._take_up()

    def start(self, at: Kept, halves: bool) -> None:
        """The twin stands there. Its time is steps times dt, so in halves it has taken twice as many."""
        self.state.all[:] = at.all
        if halves:
            self.state.all[lay.STEP] *= float(self._parts)
        self._take_up()

    def step(self, command: Array, halves: bool) -> bool:
        """A step of dt, or of a part of it; False where it fails."""
        self._command[:] = command
        if COMPILED:
            return bool(enter_step(*self._where[halves]) == lay.OK)
        plant, finned = self.plant, self._half if halves else self._whole
        flow = None if plant._sampler is None else plant._sampler.handle
        return bool(step(finned, plant.model.body, self._memory, self._command, plant._many, flow) == lay.OK)

    def _addresses(self, finned: np.ndarray) -> tuple[int | None, ...]:
        """The arguments of `enter_step`; the arrays stay where they are."""
        plant, m = self.plant, self._memory
        arrays = (m.param, m.state, m.fins, m.work, m.drift, m.body_drift, m.normals)
        flow = None if plant._sampler is None else plant._sampler.handle
        return (*map(address, (finned, plant.model.body, *arrays)), plant._many, address(self._command), flow)
