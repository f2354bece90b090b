"""How viewers draw a body, where that is not its solids: solids and meshes that are no part of the dynamics."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError
from rtmms.model.solids import Placement
from rtmms.spatial import Array

Indices = npt.NDArray[np.int64]

KINDS = ("ellipsoid", "box", "cylinder", "mesh")
FINE = 32767
"""Steps from the middle of a mesh to its side, of its points as they are told."""
MOST_POINTS = 900
"""Of all meshes of a robot together: a welcome carries them."""
LEAST_POINTS = 24


@dataclass(frozen=True, eq=False)
class Drawing:
    """A part of a body's look.

    kind        'ellipsoid', 'box', 'cylinder' (along z) or 'mesh';  placement  of its middle in the body's frame
    size        (3,) m, full, along its own axes
    vertices    (n, 3) m, of a mesh, about its middle;  triangles  (k, 3) indices, counter-clockwise from outside
    colour      red, green, blue, 0 to 255; () for the viewer's choice
    """

    kind: str
    placement: Placement
    size: tuple[float, float, float]
    vertices: Array = field(default_factory=lambda: np.zeros((0, 3)))
    triangles: Indices = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    colour: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ModelError(f"drawing: kind must be one of {', '.join(KINDS)}, got '{self.kind}'")
        if self.kind == "mesh" and (not len(self.triangles) or int(np.max(self.triangles)) >= len(self.vertices)):
            raise ModelError("drawing: a mesh needs triangles of its vertices")

    def told(self) -> dict[str, Any]:
        """What a shape (rtmms.plant.PlantDescription) has of a mesh beside place and size: points as whole numbers of
        16 bits, in steps of half its size over FINE; triangles as such of its points. Both little-endian, base64."""
        if self.kind != "mesh":
            return {}
        half = 0.5 * np.maximum(np.array(self.size), 1e-9)
        steps = np.round(np.clip(self.vertices / half, -1.0, 1.0) * FINE).astype("<i2")
        return {
            "points": b64encode(steps.tobytes()).decode("ascii"),
            "triangles": b64encode(np.asarray(self.triangles).astype("<u2").tobytes()).decode("ascii"),
        }


def mesh(vertices: Array, triangles: Indices, placement: Placement, colour: tuple[int, ...] = (),
         most: int = MOST_POINTS) -> Drawing | None:  # fmt: skip
    """A mesh of a file, about the middle of its box, with so many points at most; None where nothing is left of it.

    vertices   (n, 3) m, in the frame that `placement` gives;  triangles  (k, 3)
    """
    points, faces = clustered(np.asarray(vertices, dtype=float), np.asarray(triangles, dtype=np.int64), most)
    if not len(faces):
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = 0.5 * (low + high), np.maximum(high - low, 1e-9)
    place = placement @ Placement(np.eye(3), middle)
    return Drawing("mesh", place, (float(size[0]), float(size[1]), float(size[2])), points - middle, faces, colour)


def clustered(vertices: Array, triangles: Indices, most: int) -> tuple[Array, Indices]:
    """At most so many points: those within a cell of a grid become their mean, triangles without a surface go."""
    most = max(most, LEAST_POINTS)
    low, span = vertices.min(axis=0), float(np.max(np.ptp(vertices, axis=0), initial=1e-9))
    cells, least, largest = 512.0, 1.0, 4096.0
    numbers = _cells(vertices, low, span / cells)
    for _ in range(24):
        numbers = _cells(vertices, low, span / cells)
        if numbers.max() + 1 > most:
            largest = cells
        else:
            least = cells
        cells = (least * largest) ** 0.5
    numbers = _cells(vertices, low, span / least)
    count = int(numbers.max()) + 1
    points = np.zeros((count, 3))
    np.add.at(points, numbers, vertices)
    points /= np.bincount(numbers, minlength=count)[:, None]
    faces = numbers[triangles]
    kept = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    faces = np.unique(faces[kept], axis=0)
    return points, faces


def _cells(vertices: Array, low: Array, apart: float) -> Indices:
    """(n,) the number of each point's cell, from 0."""
    key = np.floor((vertices - low) / apart).astype(np.int64)
    return np.asarray(np.unique(key, axis=0, return_inverse=True)[1]).ravel()
