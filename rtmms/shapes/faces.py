"""Solids as flat faces, for pictures that are painted face by face."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rtmms.base.attitude import Pose, multiply
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import Solid

Array = npt.NDArray[np.float64]

ROUND = 14
"""Faces around a solid that is round."""


def solid_faces(solid: Solid, frame: Pose) -> list[Array]:
    """(4, 3) m, quadrangles of a solid in the body's frame; frame: of the part that it moves with."""
    if solid.kind == "mesh":
        return _mesh_faces(solid, frame)
    unit = _UNIT["cylinder" if solid.kind == "rotor" else solid.kind]
    about = quaternion_matrix(np.array(multiply(frame[1], solid.quaternion)))
    middle = quaternion_matrix(np.array(frame[1])) @ np.array(solid.centre) + np.array(frame[0])
    return [(face * np.array(solid.size)) @ about.T + middle for face in unit]


def _mesh_faces(solid: Solid, frame: Pose) -> list[Array]:
    about = quaternion_matrix(np.array(multiply(frame[1], solid.quaternion)))
    middle = quaternion_matrix(np.array(frame[1])) @ np.array(solid.centre) + np.array(frame[0])
    points = np.array(solid.vertices, dtype=float) @ about.T + middle
    return [points[list(corners)] for corners in solid.triangles]


def _revolved(profile: list[tuple[float, float]]) -> list[Array]:
    """Quadrangles of a body about z whose rings have these radii and heights."""
    angle = np.linspace(0.0, 2.0 * np.pi, ROUND + 1)
    rings = [np.stack([r * np.cos(angle), r * np.sin(angle), np.full_like(angle, z)], axis=1) for r, z in profile]
    return [np.array([low[k], low[k + 1], high[k + 1], high[k]]) for low, high in pairwise(rings) for k in range(ROUND)]


def _box() -> list[Array]:
    faces = []
    for axis in range(3):
        for side in (-0.5, 0.5):
            face = np.full((4, 3), side)
            face[:, (axis + 1) % 3] = (-0.5, 0.5, 0.5, -0.5)
            face[:, (axis + 2) % 3] = (-0.5, -0.5, 0.5, 0.5)
            faces.append(face)
    return faces


_UNIT = {
    "ellipsoid": _revolved([(0.5 * np.sin(a), -0.5 * np.cos(a)) for a in np.linspace(0.0, np.pi, 9)]),
    "cylinder": _revolved([(0.0, -0.5), (0.5, -0.5), (0.5, 0.5), (0.0, 0.5)]),
    "box": _box(),
}
