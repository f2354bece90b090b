"""Where a robot's parts are, from its joint angles and the parameters that its plant tells of: for viewers.

Everything is in the plant's body frame, in plain Python. A robot that is not known here has no shape: viewers then show
where its body is, and no more. A third party's robot gets one by an entry in SHAPES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Any, Protocol

from rtmms.wire.protocol.state import PlantInfo
from rtmms_bridges.frames import Quaternion, Vector, multiply, rotate

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


@dataclass(frozen=True)
class Solid:
    """An ellipsoid fixed to the body: its centre and its full axes along x, y, z, m. A drawing, not the model's."""

    name: str
    centre: Vector
    size: Vector


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


def shape_of(plant: PlantInfo) -> Shape | None:
    """The shape of the plant's robot; None where it is not known, or the plant tells too little."""
    build = SHAPES.get(plant.robot)
    if build is None:
        return None
    try:
        shape = build(plant)
    except (KeyError, TypeError, ValueError):  # another plant of that name, or one that keeps its parameters to itself
        return None
    known = {channel.name for channel in plant.outputs}
    return shape if shape is not None and known.issuperset(shape.needs) else None


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


# -- robots that are chains of joints ---------------------------------------------------------------------------------


class EelShape:
    """A tube of elliptic rings along the head and the links (docs/eel.md: frames, table I repaired)."""

    needs = ("joint_position",)
    solids: tuple[Solid, ...] = ()
    ROUND = 12

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        self._joints = int(told["joints"])
        self._head, self._link = float(told["head_length_m"]), float(told["link_length_m"])
        self._nose, self._tail = float(told["nose_length_m"]), float(told["tail_length_m"])
        a, b = float(told["half_width_m"]), float(told["half_height_m"])
        self._ring = tuple(
            (a * cos(2 * pi * k / self.ROUND), b * sin(2 * pi * k / self.ROUND)) for k in range(self.ROUND + 1)
        )
        if plant.output("joint_position").shape != (3 * self._joints,):
            raise ValueError("not the eel's joints")
        rings = 4 + self._joints + 2
        skin = sheet("skin", rings, self.ROUND + 1)
        middle = self.ROUND // 4  # the ridge of the back
        self.skins = (Skin("skin", skin.triangles, (tuple(i * (self.ROUND + 1) + middle for i in range(rings)),)),)

    def links(self, angles: Sequence[float]) -> list[Pose]:
        """Frames 3 j at the far ends of the links: z along the link, x to its side, y up."""
        half, poses, last = pi / 2, [], HOME
        for i in range(self._joints):
            yaw, pitch, roll = angles[3 * i : 3 * i + 3]
            # Rot(x, alpha) Trans(x, d) Rot(z, q0 + q) Trans(z, r) of each of the three
            if i == 0:
                pose = after(last, ((self._head, 0.0, 0.0), turn(2, yaw)))
            else:
                pose = after(last, ((0.0, 0.0, 0.0), multiply(turn(0, half), turn(2, half + yaw))))
            pose = after(pose, ((0.0, 0.0, 0.0), multiply(turn(0, -half), turn(2, pitch - half))))
            pose = after(pose, ((0.0, 0.0, 0.0), multiply(turn(0, -half), turn(2, roll + half))))
            last = after(pose, ((0.0, 0.0, self._link), (1.0, 0.0, 0.0, 0.0)))
            poses.append(last)
        return poses

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        points: list[Vector] = []
        for x, size in ((0.0, 0.0), (0.3 * self._nose, 0.714), (self._nose, 1.0), (self._head, 1.0)):
            points += [(x, size * a, size * b) for a, b in self._ring]
        links = self.links(outputs["joint_position"])
        for i, pose in enumerate(links):
            back = -self._tail if i == self._joints - 1 else 0.0
            points += [at(pose, (a, b, back)) for a, b in self._ring]
        for back, size in ((-0.3 * self._tail, 0.714), (0.0, 0.0)):
            points += [at(links[-1], (size * a, size * b, back)) for a, b in self._ring]
        return (points,)

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        return {f"link{i + 1}": pose for i, pose in enumerate(self.links(outputs["joint_position"]))}


class MothShape:
    """Two wings of rectangular blades that twist and bend one after the other, and the thorax (docs/moth.md)."""

    needs = ("joint_position",)

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        self._sections = n = int(told["sections"])
        self._length = float(told["span_m"]) / n
        self._chords = [float(told["chord_m"]) * (1.0 - (k / n) ** 2) ** 0.5 for k in range(n)]
        height = float(told["thorax_c_m"])
        self._hinge = (0.0, 0.0, float(told["hinge"]) * height)
        if plant.output("joint_position").shape != (4 * n,):
            raise ValueError("not the moth's joints")
        axes = (2.0 * float(told["thorax_a_m"]), 2.0 * float(told["thorax_b_m"]), 2.0 * height)
        self.solids = (Solid("thorax", (0.0, 0.0, 0.0), axes),)
        blades = tuple(4 * k + corner for k in range(n) for corner in (0, 1, 2, 2, 1, 3))
        edges = tuple((4 * k, 4 * k + 1, 4 * k + 3, 4 * k + 2, 4 * k) for k in range(n))
        self.skins = (Skin("right_wing", blades, edges), Skin("left_wing", blades, edges))

    def blades(self, angles: Sequence[float], side: int) -> list[Pose]:
        """side 0 right, 1 left; x outwards along the leading edge, z from the trailing to the leading edge."""
        poses: list[Pose] = []
        pose: Pose = (self._hinge, turn(2, pi * side))
        for k in range(self._sections):
            first, bend = angles[2 * (side * self._sections + k) :][:2]
            # the first joint of the root is the stroke, about z; of the others twist, about x; bending is about z
            pose = after(pose, ((0.0, 0.0, 0.0), multiply(turn(2 if k == 0 else 0, first), turn(2, bend))))
            poses.append(pose)
            pose = after(pose, ((self._length, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)))
        return poses

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        angles, length = outputs["joint_position"], self._length
        return tuple(
            [
                at(pose, corner)
                for pose, chord in zip(self.blades(angles, side), self._chords, strict=True)
                for corner in ((0.0, 0.0, 0.0), (length, 0.0, 0.0), (0.0, 0.0, -chord), (length, 0.0, -chord))
            ]
            for side in (0, 1)
        )

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        angles = outputs["joint_position"]
        return {
            f"{name}_blade{k + 1}": pose
            for side, name in enumerate(("right", "left"))
            for k, pose in enumerate(self.blades(angles, side))
        }


def _manta(plant: PlantInfo) -> Shape:
    from rtmms_bridges.manta_shape import MantaShape

    return MantaShape(plant)


SHAPES: dict[str, Callable[[PlantInfo], Shape]] = {"manta": _manta, "eel": EelShape, "moth": MothShape}
