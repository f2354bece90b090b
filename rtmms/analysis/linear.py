"""A linear model of a plant around a motion."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rtmms.analysis.bordered import Bordered
from rtmms.analysis.chart import chart_of
from rtmms.coordinates import between
from rtmms.errors import ModelError
from rtmms.plant import Coordinated, Coordinates, Plant
from rtmms.spatial import Array


class Around(NamedTuple):
    """Where a linear model was taken: coordinates and a state of a plant that tells them, else a snapshot."""

    told: Coordinates | None
    state: Array
    snapshot: bytes


@dataclass(frozen=True)
class Linear:
    """Around a motion, x the error of the state and u that of the command: d/dt x = A x + B u where `dt` is None, else
    x[k + 1] = A x[k] + B u[k] with u held over steps of dt; y = C x of outputs, and P (p - p0) more of parameters.

    a, b  (k, k) and (k, u)
    packed   A as it was found: as an array, or by the blocks that are not zero
    states, inputs   their names, in order. Of a plant of a mechanism: body-frame position error e and attitude error
          theta (R = R_ref exp theta^, p = p_ref + R_ref e), twist error, q and qd of the joints driven by torque, then
          value and rate of the filter of each commanded offset and gain, and the lagged command of each actuator on a
          body that lags. Of any other: those of its chart
    dt    s, or None: of a step, or of the period that A is the map of
    error of the largest wrong entry, in the units of the chart's sizes: rounding for a complex step, else an estimate
    units, input_units   of states and inputs, '' where the plant does not tell them
    c, outputs, output_units      (rows, k), what was asked for, each number a row
    p, parameters   (k, numbers), None where nothing was asked for
    around   where it was taken; None for a mean along a motion, or of d/dt x
    method   how: 'structure', 'differences', 'stepping' (by snapshot, restore and step), 'complex step'
    """

    packed: Array | Bordered
    b: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    dt: float | None = None
    error: float = 1e-15
    units: tuple[str, ...] = ()
    input_units: tuple[str, ...] = ()
    c: Array | None = None
    outputs: tuple[str, ...] = ()
    output_units: tuple[str, ...] = ()
    p: Array | None = None
    parameters: tuple[str, ...] = ()
    around: Around | None = field(default=None, repr=False, compare=False)
    method: str = ""

    @cached_property
    def a(self) -> Array:
        """(k, k), made when it is first asked for where A was found as blocks."""
        return self.packed.dense() if isinstance(self.packed, Bordered) else self.packed

    def deviation(self, plant: Plant) -> Array:
        """(k,) x of a plant now: how far its state is from the one of this model. The plant stays as it is.

        plant   the one that was linearised, or another of the same robot
        ModelError for a model that was taken at no single state, or a plant of other states.
        """
        if self.around is None:
            raise ModelError(
                "deviation: this linear model was not taken at one state; take one with rtmms.linearise(plant)"
            )
        told, state, snapshot = self.around
        if told is not None:
            if not isinstance(plant, Coordinated) or plant.coordinates().names != told.names:
                raise ModelError(_other(self.states, plant))
            return between(told, state, plant.present()[0])
        now = plant.snapshot()
        try:
            plant.restore(snapshot)
            chart = chart_of(plant)
        finally:
            plant.restore(now)
        return chart.read()

    def held(self, dt: float) -> Linear:
        """The same of a step of dt with the command held, exactly: exp((A B; 0 0) dt). ModelError if it is one."""
        from scipy import linalg

        if self.dt is not None:
            raise ModelError(f"linear model: expected one of d/dt x, got one of steps of {self.dt:g} s")
        k, u = self.b.shape
        both = np.zeros((k + u, k + u))
        both[:k, :k], both[:k, k:] = self.a, self.b
        expm: Any = linalg.expm
        step: Array = expm(both * dt)
        return Linear(step[:k, :k], step[:k, k:], self.states, self.inputs, dt, self.error, method=self.method)


def _other(states: tuple[str, ...], plant: Any) -> str:
    return (
        f"deviation: expected a plant with the {len(states)} states of this linear model ({', '.join(states[:3])}, "
        f"...), got a {type(plant).__name__} of others"
    )
