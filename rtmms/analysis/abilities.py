"""What a plant may offer to be analysed beyond a chart; a plant of a mechanism (`TreePlant`) offers all of it."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rtmms.analysis.bordered import Bordered
from rtmms.fluids.ambient import Flow
from rtmms.mechanism.actuators import Attached
from rtmms.mechanism.joint_laws import Actuator, Law
from rtmms.memory import Record
from rtmms.model.compiled import Model, State
from rtmms.plant import Plant
from rtmms.spatial import Array


@runtime_checkable
class Gaited(Plant, Protocol):
    """A plant of a mechanism with a law of its joints of its own: its state is one vector (rtmms.mechanism.group).

    neutral   (n_actuators,) commands that leave the gait as it is
    trimming  what `rtmms.analysis.trim.trimmed` closes: keywords of `trim`
    """

    model: Model
    law: Law
    trimming: dict[str, Any]
    neutral: Array
    vector: Array

    def start(self, vector: Array, steps: int) -> None:
        """From a reset, to a state vector at the time of that many steps."""

    def scaled(self, amplitude: float, stiffness: float) -> AbstractContextManager[None]:
        """Within: the gait's waves and the joints' springs times a factor."""


@runtime_checkable
class Differentiable(Gaited, Protocol):
    """One whose equations of motion take complex numbers too: d/dt x is linearised by a complex step.

    bandwidth  (n,) rad/s, of the filters of commanded offsets and gains; < 0 of commanded rates
    """

    drives: tuple[Actuator, ...]
    bandwidth: Array
    flow: Flow
    immersed: Record
    attached: Attached
    commanded: Array

    @property
    def motor(self) -> Array:
        """(a,) the commands of actuators on bodies behind their lags."""

    @property
    def pulled(self) -> Array:
        """(t, 2) what follows the commands of tendons."""

    @property
    def time(self) -> float:
        """s, simulated."""

    @property
    def state(self) -> State:
        """A copy of the mechanical state."""

    def held(self) -> tuple[Array, Array, Array]:
        """Copies of what the joints' laws hold over a step: torque (n,), target (n, 2), servo (n, 4)."""

    def rates(
        self, vector: Any, torque: Any, target: Any, servo: Any, water: Any, pushed: Any = None, pulled: Any = None
    ) -> Any:
        """Rates (12 + 2 n,) at any state vector under whatever is held, at the present time, all complex."""


def whole_periods(plant: Gaited, time: Array) -> tuple[float, float]:
    """(start, end) s: the last whole periods of the plant's gait within the second half; that half where none fits."""
    period, half = 2.0 * math.pi / plant.law.omega, float(time[-1] - time[0]) / 2.0
    whole = math.floor(half / period * (1.0 + 1e-9)) * period
    return float(time[-1]) - (whole if whole > 0.0 else half), float(time[-1])


def rise(time: Array, values: Array, start: float, end: float) -> float:
    """Mean rate of a quantity (k,) between two times: its rise by interpolation, over the time."""
    first, last = np.interp([start, end], time, values)
    return float(last - first) / (end - start)


class Structure(Protocol):
    """A and B of a step by what a plant knows of its equations.

    a   of the last step taken, in memory that the next one is written to;  b  (k, n), a copy
    """

    a: Bordered

    @property
    def b(self) -> Array: ...

    def take(self, state: Array, command: Array, reference: Array, time: float) -> bool:
        """The step at a time (s) from a state, as a Fork has it, under a command (n,); the pose after is told in the
        chart around `reference` (7,), where the state has one. False where the step fails."""


@runtime_checkable
class Structured(Protocol):
    """A plant whose A and B have a structure (rtmms.analysis.derivatives)."""

    def structure(self, by: Array) -> Structure | None:
        """With memory of its own; by (k + n,) how far coordinates and commands are displaced to either side, where they
        are. None: of this plant nothing is known; differences of all coordinates, one by one, serve."""
