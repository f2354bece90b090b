"""Coordinates of any plant's state: what a plant offers to be linearised and trimmed."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np

from rtmms.errors import ModelError
from rtmms.plant import Plant
from rtmms.spatial import Array, matrix_quaternion, quaternion_matrix, rotation_about


class Chart(Protocol):
    """Coordinates of a plant's state around where the plant stood when the chart was made: all 0 there.

    names  of the coordinates, in order
    size   (k,) what counts as one of each
    """

    names: tuple[str, ...]
    size: Array

    def read(self) -> Array:
        """(k,) of the plant's present state."""

    def write(self, coordinates: Array) -> None:
        """Put the plant into the state of these coordinates; whatever else it keeps stays as it is."""


@runtime_checkable
class Charted(Protocol):
    """A plant that gives coordinates of its state: with `chart` any plant can be linearised and trimmed."""

    def chart(self) -> Chart:
        """Coordinates around the present state."""


def chart_of(plant: Plant) -> Chart:
    """The plant's own chart; ModelError where it has none."""
    if isinstance(plant, Charted):
        return plant.chart()
    raise ModelError(
        f"linearise: a {type(plant).__name__} gives no coordinates of its state; give it a method chart(), or pass one "
        "(rtmms.analysis.chart.Chart: names, size, read, write)"
    )


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
