"""One step of a plant that is a tree: the command is checked and spread, the tree advances, filters and motors too."""

from __future__ import annotations

from typing import Any

import numpy as np

from rtmms.jit import kernel
from rtmms.mechanism.body_actuators import finish_motors
from rtmms.mechanism.joint_laws import finish_servo, hold_commands
from rtmms.mechanism.step import SOUND, advance

BAD_COMMAND = -1


@kernel(fused=False)
def finite(values: Any) -> bool:
    sound = True
    for k in range(values.shape[0]):
        sound = sound and np.isfinite(values[k])
    return sound


@kernel(merged=True)
def take_step(
    system: Any, method: Any, changing: Any, scratch: Any, told: Any, memory: Any, last: Any, dt: float, substeps: int
) -> int:  # fmt: skip
    """Advance by dt. told: command given, kinds and joints of actuators; memory is kept in `last` before.

    Returns SOUND, what `advance` says, or BAD_COMMAND: nothing has happened then.
    """
    given, kinds, joints = told
    if not finite(given):
        return BAD_COMMAND
    hold = system[2]
    pushes = system[3][12]
    hold_commands(kinds, joints, given, hold[0], hold[1])
    for k in range(memory.shape[0]):
        last[k] = memory[k]
    for k in range(given.shape[0]):
        pushes[2][k] = given[k]
    status = advance(system, method, changing, scratch, dt / substeps, substeps)
    if status == SOUND:
        finish_servo(hold, dt)
        finish_motors(pushes, dt)
    return status
