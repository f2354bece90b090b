"""Coordinates of a plant's state that lie in it as they are: how far from a state, and put there."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, matrix_quaternion, quaternion_matrix, rotation_about
from rtmms.plant.protocol import Coordinates


def rotations(quaternion: Array) -> Array:
    """(k, 3, 3) of unit quaternions (k, 4): body to world."""
    w, x, y, z = quaternion.T
    rows = (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip
    return np.stack(rows, axis=1).reshape(-1, 3, 3)


def displaced(pose: Array, c: Array) -> Array:
    """(7,) position m and quaternion, of a pose (7,) moved by c (6,) m, rad."""
    out, r = pose.copy(), quaternion_matrix(pose[3:])
    out[:3] += r @ c[:3]
    angle = float(np.linalg.norm(c[3:]))
    if angle > 0.0:
        out[3:] = matrix_quaternion(r @ rotation_about(c[3:] / angle, angle))
        if out[3:] @ pose[3:] < 0.0:  # the same sheet, so that differences of quaternions stay small
            out[3:] *= -1.0
    return out


def displacement(pose: Array, other: Array) -> Array:
    """(6,) m, rad: the c that moves `pose` to `other`, both (7,)."""
    r = quaternion_matrix(pose[3:])
    turn = r.T @ quaternion_matrix(other[3:])
    axial = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    sine, cosine = float(np.linalg.norm(axial)) / 2.0, (float(np.trace(turn)) - 1.0) / 2.0
    theta = axial / 2.0 * (math.atan2(sine, cosine) / sine if sine > 1e-12 else 1.0)
    return np.concatenate([r.T @ (other[:3] - pose[:3]), theta])


def between(coordinates: Coordinates, origin: Array, state: Array) -> Array:
    """(k,) coordinates of a state in the chart around `origin`, both as a Fork has them."""
    found: Array = state[coordinates.words] - origin[coordinates.words]
    if coordinates.pose >= 0:
        pose = slice(coordinates.pose, coordinates.pose + 7)
        found[:6] = displacement(origin[pose], state[pose])
    return found


class StateChart:
    """A `rtmms.analysis.chart.Chart` of the plant that steps on `state`, around where it stands.

    settle  puts what follows from the coordinates in order; something other than 0 where that cannot be
    """

    def __init__(self, coordinates: Coordinates, state: Array, settle: Callable[[], int]) -> None:
        self.names, self.size = coordinates.names, coordinates.size
        self._coordinates, self._state, self._origin, self._settle = coordinates, state, state.copy(), settle

    def read(self) -> Array:
        """(k,) coordinates of the plant's present state."""
        return between(self._coordinates, self._origin, self._state)

    def write(self, coordinates: Array) -> None:
        """Put the plant there; whatever else it keeps stays. ModelError where there is no such state."""
        chart, s, o = self._coordinates, self._state, self._origin
        own = slice(6 if chart.pose >= 0 else 0, None)
        s[chart.words[own]] = o[chart.words[own]] + coordinates[own]
        if chart.pose >= 0:
            pose = slice(chart.pose, chart.pose + 7)
            s[pose] = displaced(o[pose], coordinates[:6])
        s[chart.history_indices] = 0.0
        if self._settle():
            raise ModelError("chart: no state of the plant has these coordinates: its mechanism is singular there")
