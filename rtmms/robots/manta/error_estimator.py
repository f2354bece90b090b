"""Estimate the errors of a manta's steps by steps beside its own, in separate memory and with the plant's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.jit import COMPILED
from rtmms.base.memory import Record, aligned
from rtmms.base.override import override
from rtmms.plant.optional_protocols import SavedState, StepErrorEstimator
from rtmms.robots.manta import layout as lay
from rtmms.robots.manta.fin_layout import LANES
from rtmms.robots.manta.methods import METHODS, ORDERS, STABILITY
from rtmms.robots.manta.model import Array, MantaModel, compile_manta
from rtmms.robots.manta.outputs import O_ROD_POWER, account
from rtmms.robots.manta.step import arguments, enter_account, enter_step, step

if TYPE_CHECKING:
    from typing import Protocol

    from rtmms.robots.manta.parameters import MantaParameters

    class EstimatedManta(Protocol):
        """The members of a manta that an estimator reads.

        Attributes
        ----------
        dt : float
            Step, s.
        coupling : str
            Coupling of body and fins.
        parameters : MantaParameters
            Parameters of the manta.
        model : MantaModel
            Compiled manta.
        system : Record
            Record of `layout.MANTA`.
        """

        dt: float
        coupling: str
        parameters: MantaParameters
        model: MantaModel
        system: Record
        _state: Array
        _sampler: Any


class MantaErrorEstimator(StepErrorEstimator):
    """Step-error estimator of a manta (rtmms.plant.StepErrorEstimator).

    Parameters
    ----------
    plant : EstimatedManta
        Manta whose steps are measured.

    Attributes
    ----------
    order : int
        Order of the method.
    bounded : bool
        Whether the method is stable only up to some |lambda| dt.
    base_moves : bool
        Whether the body is free.
    length : float
        Edge of a cube of water of the body's mass, m.
    """

    def __init__(self, plant: EstimatedManta) -> None:
        p = plant.parameters
        method = list(METHODS)[plant.model.finned.integrator]
        self.plant, self.dt = plant, plant.dt
        self.order, self.bounded = ORDERS[method], STABILITY[method] is not None
        self.base_moves = p.body != "fixed"
        self.length = float(np.cbrt(p.body_mass_kg / p.water_density_kg_m3))
        self._rows = plant.system.joints.shape[0]
        self.state = self.room()
        self._parts = 2
        self._of: MantaModel | None = None
        self._whole, self._half = self._fork(), self._fork()
        self._take_up()

    def _fork(self) -> Record:
        fork = self.plant.system.fork(self.state.all)
        if not COMPILED and self.plant._sampler is not None:
            setattr(fork, "flow", self.plant._sampler.handle)  # noqa: B010
        return fork

    def _take_up(self) -> None:
        """Copy the plant's parameters, which `set` may have changed."""
        plant, model = self.plant, self.plant.model
        if self._of is model:
            return
        self._of = model
        half = compile_manta(plant.parameters, self.dt / self._parts, plant.coupling)
        half.finned.relaxation[:] = model.finned.relaxation
        for fork, finned in ((self._whole, model.finned), (self._half, half.finned)):
            fork.adopt({"finned": finned, "body": model.body, "param": plant.system.param})

    @property
    @override
    def now(self) -> int:
        return int(self.plant._state[lay.STEP])

    @property
    @override
    def finer(self) -> tuple[str, float]:
        return "dt", self.dt

    @override
    def room(self) -> SavedState:
        """Return memory for one more state: zeros, and views of the measured parts."""
        state = aligned(self.plant._state.size)
        joints = state[lay.FINS :].reshape(self._rows, 2, LANES)[:, 0]
        twist = state[lay.TWIST : lay.TWIST + 6]
        position, quaternion = state[lay.POSITION : lay.QUATERNION], state[lay.QUATERNION : lay.TWIST]
        return SavedState(state, position, quaternion, twist, joints, None)

    @override
    def keep(self, at: SavedState) -> None:
        at.all[:] = self.plant._state

    @override
    def power(self, at: SavedState) -> float:
        """Return the power of the rods; nan in a state without one."""
        self.state.all[:] = at.all
        manta = self._whole
        status = enter_account(*arguments(manta), 0.0) if COMPILED else account(manta, 0.0)
        return float(manta.out[O_ROD_POWER]) if status == lay.OK else np.nan

    @override
    def divide(self, parts: int) -> None:
        if parts != self._parts:
            self._parts, self._of = parts, None
            self._take_up()

    @override
    def start(self, at: SavedState, halves: bool) -> None:
        """Put the estimator into a state.

        Its time is steps times dt, so that it has taken `parts` times as many steps in halves.
        """
        self.state.all[:] = at.all
        if halves:
            self.state.all[lay.STEP] *= float(self._parts)
        self._take_up()

    @override
    def step(self, command: Array, halves: bool) -> bool:
        """Take a step of dt, or of a part of it; the command is (4,), rad."""
        manta = self._half if halves else self._whole
        manta.command[:] = command
        return bool((enter_step(*arguments(manta)) if COMPILED else step(manta)) == lay.OK)
