"""A cost of one's own for the manta: straight ahead at 0.5 m/s, at the depth of the start, on little power.

rtmms run manta --controller predictive:cost=thrifty.py:thrifty,frequency_hz=0.5 --mode lockstep --duration 40
"""

from typing import Any

import rtmms

SPEED_M_S = 0.5
"""Wanted mean of the speed over the horizon."""
POWER = 0.05
"""Cost of a watt, in m^2 off the way."""
X, BEGUN = 0, 1
"""Places in the memory: x where the plan begins, and when."""


@rtmms.cost(outputs=("position", "quaternion", "velocity", "rod_power"), memory=4)
def thrifty(state: Any, command: Any, time: float, memory: Any) -> float:
    p, q = state.position, state.quaternion
    if memory[BEGUN] == 0.0:
        memory[X], memory[BEGUN] = p[0], time
    memory[2] = time
    off = p[1] ** 2 + p[2] ** 2 + 0.4 * q[1] ** 2 + 0.08 * q[2] ** 2
    return off + POWER * state.rod_power  # type: ignore[no-any-return]


@thrifty.terminal
def goes_on(state: Any, memory: Any) -> float:
    p, v, q = state.position, state.velocity, state.quaternion
    side = p[1] + v[1] + 2.0 * q[3] * v[0]  # in a second; yaw is 2 q_z where it is small
    high = p[2] + v[2] - 2.0 * q[2] * v[0]
    mean = (p[0] - memory[X]) / max(memory[2] - memory[BEGUN], 1e-6)
    return 0.5 * (side**2 + 0.3 * high**2) + 50.0 * (mean - SPEED_M_S) ** 2  # type: ignore[no-any-return]
