"""Coordinates of a continuous body's state: its head's pose and twist, and what drives its strain."""

from __future__ import annotations

import numpy as np

from rtmms.analysis.pose_chart import displaced, displacement
from rtmms.continuum.field import Field
from rtmms.continuum.layout import Y_SIZE, Y_TWIST
from rtmms.spatial import Array


class CosseratChart:
    """See rtmms.analysis.chart.Chart. Pose error and twist in the head's own axes, e1 to the tail; then of each driven
    parameter its value and rate (of one that coasts too: its integral and the rate)."""

    def __init__(self, memory: Array, field: Field, length: float) -> None:
        self.memory, self.origin = memory, memory.copy()
        k = len(field.start)
        driven = np.flatnonzero(np.any(field.mix != 0.0, axis=1))
        self._at = np.concatenate([Y_SIZE + k + driven, Y_SIZE + 2 * k + driven])
        words = [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
        words += ["vx", "vy", "vz", "wx", "wy", "wz"]
        words += [f"parameter{i}" for i in driven] + [f"parameter{i}.rate" for i in driven]
        self.names = tuple(words)
        sizes = [length] * 3 + [1.0] * 3 + [length] * 3 + [1.0] * 3 + [1.0] * (2 * len(driven))
        self.size = np.array(sizes)

    def read(self) -> Array:
        """(k,) of the plant's present state."""
        m, o = self.memory, self.origin
        pose = displacement(o[:7], m[:7])
        twist = m[Y_TWIST : Y_TWIST + 6] - o[Y_TWIST : Y_TWIST + 6]
        return np.concatenate([pose, twist, m[self._at] - o[self._at]])

    def write(self, coordinates: Array) -> None:
        """Put the plant there; what it has worked and lost stays."""
        c, m, o = coordinates, self.memory, self.origin
        m[:7] = displaced(o[:7], c[:6])
        m[Y_TWIST : Y_TWIST + 6] = o[Y_TWIST : Y_TWIST + 6] + c[6:12]
        m[self._at] = o[self._at] + c[12:]
