"""A cost of one's own for the quadrotor: through a gate, then on to a place beyond it.

rtmms run quadrotor --controller predictive:model=quadrotor,method=ilqr,cost=gate.py:gate --mode lockstep --duration 5
"""

from typing import Any

import numpy as np

import rtmms

GATE = (2.0, 0.3, 1.0)
"""Middle of the gate in a wall across x, m. The distance from it counts within 1 m of the wall."""
BEYOND = (4.0, 0.0, 0.5)
"""Destination, m."""


@rtmms.cost
def gate(state: Any, command: Any, time: float) -> float:
    p, v, q, w = state.position, state.velocity, state.quaternion, state.angular_velocity
    wall = np.exp(-2.0 * (p[0] - GATE[0]) ** 2)
    off = (p[1] - GATE[1]) ** 2 + (p[2] - GATE[2]) ** 2
    far = (p[0] - BEYOND[0]) ** 2 + (p[1] - BEYOND[1]) ** 2 + (p[2] - BEYOND[2]) ** 2
    slow = 0.12 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + 0.01 * (w[0] ** 2 + w[1] ** 2 + w[2] ** 2)
    return 200.0 * wall * off + 2.0 * np.sqrt(1.0 + far) + slow + q[1] ** 2 + q[2] ** 2 + 0.2 * q[3] ** 2  # type: ignore[no-any-return]


@gate.terminal
def stops(state: Any) -> float:
    p, v, q = state.position, state.velocity, state.quaternion
    far = (p[0] - BEYOND[0]) ** 2 + (p[1] - BEYOND[1]) ** 2 + (p[2] - BEYOND[2]) ** 2
    return 4.0 * np.sqrt(1.0 + far) + 0.3 * (v[0] ** 2 + v[1] ** 2 + v[2] ** 2) + q[1] ** 2 + q[2] ** 2  # type: ignore[no-any-return]
