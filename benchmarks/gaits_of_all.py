"""One compiled controller for the rods of any number of mantas, for world.py: their straight gait, as sines."""

from __future__ import annotations

from math import pi, sin
from typing import Any

import numpy as np

import rtmms


class Gaits(rtmms.Controller):
    """40 deg at 0.6 Hz of the back rods, 34 deg of the front ones, 40 deg ahead; a soft start of 1 s."""

    claim = ("*",)
    outputs = ("none",)

    def __init__(self) -> None:
        self.memory = np.zeros(1)

    @rtmms.compiled
    def update(time: Any, outputs: Any, memory: Any, command: Any) -> None:
        """Rods in the order front, back of each fin."""
        strength = min(1.0, time)
        for k in range(len(command)):
            front = k % 2 == 0
            amplitude, ahead = (0.6, 0.7) if front else (0.7, 0.0)
            command[k] = strength * amplitude * sin(2.0 * pi * 0.6 * time + ahead)
