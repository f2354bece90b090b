"""Provide coordinates of a plant's state: the difference of two states, and a chart around a state."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, matrix_quaternion, quaternion_matrix, rotation_about
from rtmms.plant.optional_protocols import Coordinates


def rotations(quaternion: Array) -> Array:
    """Return the rotation matrices of unit quaternions.

    Parameters
    ----------
    quaternion : (k, 4) array
        Unit quaternions (w, x, y, z), body to world.

    Returns
    -------
    (k, 3, 3) array
        Rotations, body to world.
    """
    w, x, y, z = quaternion.T
    rows = (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip
    return np.stack(rows, axis=1).reshape(-1, 3, 3)


def displace_pose(pose: Array, c: Array) -> Array:
    """Return a pose moved by a displacement in its own axes.

    Parameters
    ----------
    pose : (7,) array
        Position, m, world, and quaternion, body to world.
    c : (6,) array
        Translation, m, and rotation vector, rad, both in the body's axes.

    Returns
    -------
    (7,) array
        Moved pose. Its quaternion has the sign that makes the difference from `pose` small.
    """
    out, r = pose.copy(), quaternion_matrix(pose[3:])
    out[:3] += r @ c[:3]
    angle = float(np.linalg.norm(c[3:]))
    if angle > 0.0:
        out[3:] = matrix_quaternion(r @ rotation_about(c[3:] / angle, angle))
        if out[3:] @ pose[3:] < 0.0:  # the same sheet, so that differences of quaternions stay small
            out[3:] *= -1.0
    return out


def displacement(pose: Array, other: Array) -> Array:
    """Return the displacement that moves one pose to another.

    Parameters
    ----------
    pose : (7,) array
        Position, m, world, and quaternion, body to world.
    other : (7,) array
        Pose to reach.

    Returns
    -------
    (6,) array
        Translation, m, and rotation vector, rad, in the axes of `pose`; the inverse of `displace_pose`.
    """
    r = quaternion_matrix(pose[3:])
    turn = r.T @ quaternion_matrix(other[3:])
    axial = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    sine, cosine = float(np.linalg.norm(axial)) / 2.0, (float(np.trace(turn)) - 1.0) / 2.0
    theta = axial / 2.0 * (math.atan2(sine, cosine) / sine if sine > 1e-12 else 1.0)
    if sine <= 1e-7 and cosine < 0.0:  # half a turn: the axis is the column of the symmetric part that is largest
        columns = 0.5 * (turn + turn.T) + np.eye(3)
        axis = columns[:, int(np.argmax(np.diag(columns)))]
        theta = math.pi * axis / np.linalg.norm(axis) * (-1.0 if float(axis @ axial) < 0.0 else 1.0)
    return np.concatenate([r.T @ (other[:3] - pose[:3]), theta])


def coordinates_between(coordinates: Coordinates, origin: Array, state: Array) -> Array:
    """Return the coordinates of a state in the chart around another state.

    Parameters
    ----------
    coordinates : Coordinates
        Places of the coordinates in a state.
    origin : (w,) array
        State at the chart's origin, as a Fork stores it.
    state : (w,) array
        State whose coordinates are computed.

    Returns
    -------
    (k,) array
        Differences, in the units of `coordinates.units`.
    """
    result: Array = state[coordinates.state_indices] - origin[coordinates.state_indices]
    if coordinates.pose >= 0:
        pose = slice(coordinates.pose, coordinates.pose + 7)
        result[:6] = displacement(origin[pose], state[pose])
    return result


class StateChart:
    """A `rtmms.analysis.chart.Chart` of a plant that steps on an array, around its present state.

    Parameters
    ----------
    coordinates : Coordinates
        Places of the coordinates in the state.
    state : (w,) array
        State of the plant; the chart reads and writes it in place, and copies it as the origin.
    settle : Callable[[], int]
        Computes the dependent elements of the state, and returns a number other than 0 where that fails.
    """

    def __init__(self, coordinates: Coordinates, state: Array, settle: Callable[[], int]) -> None:
        self.names, self.size = coordinates.names, coordinates.size
        self._coordinates, self._state, self._origin, self._settle = coordinates, state, state.copy(), settle

    def read(self) -> Array:
        """Return the coordinates of the plant's present state.

        Returns
        -------
        (k,) array
            Differences from the chart's origin.
        """
        return coordinates_between(self._coordinates, self._origin, self._state)

    def write(self, coordinates: Array) -> None:
        """Write the state that has these coordinates; other elements of the state remain.

        Parameters
        ----------
        coordinates : (k,) array
            Differences from the chart's origin.

        Raises
        ------
        ModelError
            No state of the plant has these coordinates.
        """
        chart, s, o = self._coordinates, self._state, self._origin
        free_part = slice(6 if chart.pose >= 0 else 0, None)
        s[chart.state_indices[free_part]] = o[chart.state_indices[free_part]] + coordinates[free_part]
        if chart.pose >= 0:
            pose = slice(chart.pose, chart.pose + 7)
            s[pose] = displace_pose(o[pose], coordinates[:6])
        s[chart.history_indices] = 0.0
        if self._settle():
            raise ModelError("chart: no state of the plant has these coordinates: its mechanism is singular there")
