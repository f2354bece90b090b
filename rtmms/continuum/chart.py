"""Provide coordinates of a continuous body's state: pose and twist of its head or root, and its strain or drives."""

from __future__ import annotations

import numpy as np

from rtmms.base.spatial import Array
from rtmms.continuum.field import Field
from rtmms.continuum.layout import Y_SIZE, Y_TWIST
from rtmms.plant.coordinates import displace_pose, displacement


class CosseratChart:
    """A `rtmms.analysis.chart.Chart` of a body with imposed strain.

    The coordinates are pose error and twist in the head's own axes, e1 to the tail. Then they are value and rate of
    each driven parameter, or integral and rate of a coasting parameter.

    Parameters
    ----------
    memory : (w,) array
        State of the plant; read and written in place.
    field : Field
        Strain field of the body.
    length : float
        Typical length, m.
    """

    def __init__(self, memory: Array, field: Field, length: float) -> None:
        self.memory, self.origin = memory, memory.copy()
        k = len(field.start)
        driven = np.flatnonzero(np.any(field.mix != 0.0, axis=1))
        self._at = np.concatenate([Y_SIZE + k + driven, Y_SIZE + 2 * k + driven])
        names = [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
        names += ["vx", "vy", "vz", "wx", "wy", "wz"]
        names += [f"parameter{i}" for i in driven] + [f"parameter{i}.rate" for i in driven]
        self.names = tuple(names)
        sizes = [length] * 3 + [1.0] * 3 + [length] * 3 + [1.0] * 3 + [1.0] * (2 * len(driven))
        self.size = np.array(sizes)

    def read(self) -> Array:
        """Return the coordinates of the plant's present state.

        Returns
        -------
        (k,) array
            Differences from the chart's origin.
        """
        m, o = self.memory, self.origin
        pose = displacement(o[:7], m[:7])
        twist = m[Y_TWIST : Y_TWIST + 6] - o[Y_TWIST : Y_TWIST + 6]
        return np.concatenate([pose, twist, m[self._at] - o[self._at]])

    def write(self, coordinates: Array) -> None:
        """Write the state that has these coordinates; work and loss persist.

        Parameters
        ----------
        coordinates : (k,) array
            Differences from the chart's origin.
        """
        c, m, o = coordinates, self.memory, self.origin
        m[:7] = displace_pose(o[:7], c[:6])
        m[Y_TWIST : Y_TWIST + 6] = o[Y_TWIST : Y_TWIST + 6] + c[6:12]
        m[self._at] = o[self._at] + c[12:]


class StrainChart:
    """A chart of a rod by strain modes: pose error and twist of a free root, then q and qd.

    Parameters
    ----------
    state : (13 + 2 n,) array
        State of the rod; read and written in place.
    free : bool
        Whether the root is free.
    length : float
        Typical length, m.
    """

    def __init__(self, state: Array, free: bool, length: float) -> None:
        self.state, self.origin, self._free = state, state.copy(), free
        n = self._n = (len(state) - 13) // 2
        names = [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
        names += ["vx", "vy", "vz", "wx", "wy", "wz"]
        sizes = [length] * 3 + [1.0] * 3 + [length] * 3 + [1.0] * 3
        self.names = (*(names if free else ()), *(f"q{k}" for k in range(n)), *(f"q{k}.rate" for k in range(n)))
        self.size = np.array([*(sizes if free else ()), *[1.0 / length] * (2 * n)])

    def read(self) -> Array:
        """Return the coordinates of the plant's present state.

        Returns
        -------
        (k,) array
            Differences from the chart's origin.
        """
        s, o, n = self.state, self.origin, self._n
        joints = np.concatenate([s[7 : 7 + n] - o[7 : 7 + n], s[13 + n :] - o[13 + n :]])
        if not self._free:
            return joints
        return np.concatenate([displacement(o[:7], s[:7]), s[7 + n : 13 + n] - o[7 + n : 13 + n], joints])

    def write(self, coordinates: Array) -> None:
        """Write the state that has these coordinates.

        Parameters
        ----------
        coordinates : (k,) array
            Differences from the chart's origin.
        """
        s, o, n, c = self.state, self.origin, self._n, coordinates
        if self._free:
            s[:7], s[7 + n : 13 + n] = displace_pose(o[:7], c[:6]), o[7 + n : 13 + n] + c[6:12]
            c = c[12:]
        s[7 : 7 + n], s[13 + n :] = o[7 : 7 + n] + c[:n], o[13 + n :] + c[n:]
