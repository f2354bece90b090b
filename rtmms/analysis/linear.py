"""A linear model of a plant around a motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rtmms.errors import ModelError
from rtmms.spatial import Array


@dataclass(frozen=True, slots=True)
class Linear:
    """Around a motion, x the error of the state and u that of the command: d/dt x = A x + B u where `dt` is None, else
    x[k + 1] = A x[k] + B u[k] with u held over steps of dt.

    a, b  (k, k) and (k, u)
    states, inputs   their names, in order. Of a plant of a mechanism: body-frame position error e and attitude error
          theta (R = R_ref exp theta^, p = p_ref + R_ref e), twist error, q and qd of the joints driven by torque, then
          value and rate of the filter of each commanded offset and gain, and the lagged command of each actuator on a
          body that lags. Of any other: those of its chart
    dt    s, or None
    error of the largest wrong entry, in the units of the chart's sizes: rounding for a complex step, else an estimate
    """

    a: Array
    b: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    dt: float | None = None
    error: float = 1e-15

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
        return Linear(step[:k, :k], step[:k, k:], self.states, self.inputs, dt, self.error)
