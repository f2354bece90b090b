"""Coordinates of a continuous body's state: its head's pose and twist, and what drives its strain; of a rod by strain
modes its root's, and its strain."""

from __future__ import annotations

import numpy as np

from rtmms.analysis.chart import displaced, displacement
from rtmms.base.spatial import Array
from rtmms.continuum.field import Field
from rtmms.continuum.layout import Y_SIZE, Y_TWIST


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


class StrainChart:
    """The same of a rod by strain modes, state (13 + 2 n,): pose error and twist of a free root, then q and qd."""

    def __init__(self, state: Array, free: bool, length: float) -> None:
        self.state, self.origin, self._free = state, state.copy(), free
        n = self._n = (len(state) - 13) // 2
        words = [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
        words += ["vx", "vy", "vz", "wx", "wy", "wz"]
        sizes = [length] * 3 + [1.0] * 3 + [length] * 3 + [1.0] * 3
        self.names = (*(words if free else ()), *(f"q{k}" for k in range(n)), *(f"q{k}.rate" for k in range(n)))
        self.size = np.array([*(sizes if free else ()), *[1.0 / length] * (2 * n)])

    def read(self) -> Array:
        """(k,) of the plant's present state."""
        s, o, n = self.state, self.origin, self._n
        joints = np.concatenate([s[7 : 7 + n] - o[7 : 7 + n], s[13 + n :] - o[13 + n :]])
        if not self._free:
            return joints
        return np.concatenate([displacement(o[:7], s[:7]), s[7 + n : 13 + n] - o[7 + n : 13 + n], joints])

    def write(self, coordinates: Array) -> None:
        """Put the rod there."""
        s, o, n, c = self.state, self.origin, self._n, coordinates
        if self._free:
            s[:7], s[7 + n : 13 + n] = displaced(o[:7], c[:6]), o[7 + n : 13 + n] + c[6:12]
            c = c[12:]
        s[7 : 7 + n], s[13 + n :] = o[7 : 7 + n] + c[:n], o[13 + n :] + c[n:]
