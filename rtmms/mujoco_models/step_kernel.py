"""The compiled part of a step of a MuJoCo plant: one call checks a command, applies it and stores it."""

from __future__ import annotations

import math

from rtmms.base.jit import kernel
from rtmms.base.spatial import Array


@kernel(fused=False)
def accept_command(command: Array, applied: Array, taken: Array, row: int) -> bool:
    """Write a command into `applied` and into a row of `taken`; False, with nothing written, if it is not finite.

    Parameters
    ----------
    command : ndarray, shape (n_actuators,)
    applied : ndarray, shape (n_actuators,)
        MuJoCo's `ctrl`.
    taken : ndarray, shape (steps, n_actuators)
        Commands since the state that the plant has saved.
    row : int
    """
    for k in range(command.shape[0]):
        if not math.isfinite(command[k]):
            return False
    for k in range(command.shape[0]):
        applied[k] = command[k]
        taken[row, k] = command[k]
    return True
