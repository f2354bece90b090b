"""What a shape is: skins, solids and the frames of moving parts, in the body's frame; poses to build them from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, sin
from typing import Any, Protocol

from rtmms.shapes.rotations import Quaternion, Vector, multiply, rotate

Pose = tuple[Vector, Quaternion]
"""Position, m, and attitude (w, x, y, z): of a part's frame in the body's."""

HOME: Pose = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Skin:
    """A surface that keeps its triangles while its points move.

    triangles   three indices of points each, one after the other, seen from both sides
    lines       strips of points, by their indices
    """

    name: str
    triangles: tuple[int, ...]
    lines: tuple[tuple[int, ...], ...]


KINDS = ("ellipsoid", "box", "cylinder", "rotor", "mesh")


@dataclass(frozen=True)
class Solid:
    """A solid fixed to the body or to a moving part. A drawing, not the model's.

    centre, size, quaternion   m; its full axes along its own x, y, z (a cylinder's axis is z); its attitude
    kind                       one of KINDS; a rotor is a cylinder whose blades are drawn
    frame                      name of the part (`Shape.frames`) that it moves with; '' for the body
    vertices, triangles        of a mesh: points, m, and three indices each, in the solid's own frame; size is theirs
    colour                     red, green, blue, 0 to 255; () for the viewer's choice
    """

    name: str
    centre: Vector
    size: Vector
    kind: str = "ellipsoid"
    quaternion: Quaternion = (1.0, 0.0, 0.0, 0.0)
    frame: str = ""
    vertices: tuple[Vector, ...] = ()
    triangles: tuple[tuple[int, int, int], ...] = ()
    colour: tuple[int, ...] = ()


class Shape(Protocol):
    """What is to be drawn of one robot."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Outputs that it is drawn from."""

    @property
    def skins(self) -> tuple[Skin, ...]: ...
    @property
    def solids(self) -> tuple[Solid, ...]: ...

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        """The points of each skin, m, body frame."""

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        """Frames of the moving parts, by name."""


def sheet(name: str, rows: int, columns: int) -> Skin:
    """A skin of rows times columns points, row by row, with a line along each column and along the last row."""
    triangles: list[int] = []
    for i in range(rows - 1):
        for j in range(columns - 1):
            a, b = i * columns + j, (i + 1) * columns + j
            triangles += (a, b, a + 1, a + 1, b, b + 1)
    along = [tuple(i * columns + j for i in range(rows)) for j in range(columns)]
    edge = tuple((rows - 1) * columns + j for j in range(columns))
    return Skin(name, tuple(triangles), (*along, edge))


# -- poses ----------------------------------------------------------------------------------------------------------


def after(parent: Pose, child: Pose) -> Pose:
    """The child's pose, given in the parent's frame, in the frame that the parent's is given in."""
    return at(parent, child[0]), multiply(parent[1], child[1])


def at(pose: Pose, point: Sequence[float]) -> Vector:
    """A point given in a frame, in the frame that its pose is given in."""
    (x, y, z), q = pose
    a, b, c = rotate(q, point)
    return x + a, y + b, z + c


def turn(axis: int, angle: float) -> Quaternion:
    """A turn about x (0), y (1) or z (2)."""
    part = [0.0, 0.0, 0.0]
    part[axis] = sin(0.5 * angle)
    return cos(0.5 * angle), part[0], part[1], part[2]
