"""Shapes of the eel, the fish and the continuous eel: tubes of elliptic rings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, pi, sin, sqrt
from typing import Any

from rtmms.shapes.shape import Pose, Quaternion, Skin, Solid, Vector, after, at, multiply, sheet, turn
from rtmms.wire.protocol.state import PlantInfo

# The eel: a tube of elliptic rings along the head and the links, from joint angles (docs/eel.md).


PAPER: Pose = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
"""The paper's frame, x from nose to tail, in the body's, x forward."""


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
        """Frames 3 j at the far ends of the links: z along the link, x to its side, y down."""
        half, poses, last = pi / 2, [], PAPER
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
            points += [at(PAPER, (x, size * a, size * b)) for a, b in self._ring]
        # a link's x and y, bent by nothing, are turned by pi against the head's
        links = self.links(outputs["joint_position"])
        for i, pose in enumerate(links):
            back = -self._tail if i == self._joints - 1 else 0.0
            points += [at(pose, (-a, -b, back)) for a, b in self._ring]
        for back, size in ((-0.3 * self._tail, 0.714), (0.0, 0.0)):
            points += [at(links[-1], (-size * a, -size * b, back)) for a, b in self._ring]
        return (points,)

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        return {f"link{i + 1}": pose for i, pose in enumerate(self.links(outputs["joint_position"]))}


# The fish: a tube of elliptic rings along head and tail, from joint angles (docs/fish.md).


TO_TAIL: Pose = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
"""The sections' frame, x from nose to tail, in the body's, x forward."""


class FishShape:
    """Rings where the head's slices end and at both ends of each link."""

    needs = ("joint_position",)
    solids: tuple[Solid, ...] = ()
    ROUND = 12
    HEAD = 6

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        self._length, self._joints, head = float(told["length_m"]), int(told["joints"]), float(told["head"])
        self._width, self._height = float(told["width"]), float(told["height"])
        if plant.output("joint_position").shape != (self._joints,):
            raise ValueError("not the fish's joints")
        piece = self._length * (1.0 - head) / self._joints
        self._stations = [head * self._length + piece * (j + 0.5) for j in range(self._joints)]
        self._rings = [self._stations[0] * (k / self.HEAD) ** 2 for k in range(self.HEAD + 1)]
        count = len(self._rings) + self._joints
        skin, ridge = sheet("skin", count, self.ROUND + 1), self.ROUND // 4
        self.skins = (Skin("skin", skin.triangles, (tuple(i * (self.ROUND + 1) + ridge for i in range(count)),)),)

    def _ring(self, pose: Pose, x: float, along: float) -> list[Vector]:
        """Of the section at x from the nose, `along` in the frame of the pose."""
        s, l = min(x / self._length, 1.0), self._length
        a = self._width * 0.06 * l * (1.92 * sqrt(s) * (1.0 - s) ** 0.8 + 0.08 * s)
        b = self._height * (0.228 * l * sqrt(s) * (1.0 - s) + 0.1 * l * s**6)
        angles = [2.0 * pi * k / self.ROUND for k in range(self.ROUND + 1)]
        return [at(pose, (along, a * cos(angle), b * sin(angle))) for angle in angles]

    def _links(self, outputs: Mapping[str, Any]) -> list[Pose]:
        pose, last, poses = TO_TAIL, 0.0, []
        for x, angle in zip(self._stations, outputs["joint_position"], strict=True):
            pose = after(pose, ((x - last, 0.0, 0.0), turn(2, float(angle))))
            poses.append(pose)
            last = x
        return poses

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        points = [point for x in self._rings for point in self._ring(TO_TAIL, x, x)]
        ends = [*self._stations[1:], self._length]
        for pose, start, end in zip(self._links(outputs), self._stations, ends, strict=True):
            points += self._ring(pose, end, end - start)
        return (points,)

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        return {f"link{k + 1}": pose for k, pose in enumerate(self._links(outputs))}


# The continuous eel: a tube of elliptic rings along its centre line (docs/continuous_eel.md). A drawing: the rings
# stand upright, whatever the sections' roll.


ROUND = 12


class ContinuousEelShape:
    """Rings at the stations of `centreline`, closed at nose and tail."""

    needs = ("centreline",)
    solids: tuple[Solid, ...] = ()

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        a, b = float(told["half_width_m"]), float(told["half_height_m"])
        self._ring = tuple((a * cos(2 * pi * k / ROUND), b * sin(2 * pi * k / ROUND)) for k in range(ROUND + 1))
        self._stations = plant.output("centreline").shape[0]
        rings = self._stations + 2
        skin = sheet("skin", rings, ROUND + 1)
        ridge = tuple(i * (ROUND + 1) + ROUND // 4 for i in range(rings))
        self.skins = (Skin("skin", skin.triangles, (ridge,)),)

    def _line(self, outputs: Mapping[str, Any]) -> list[Vector]:
        flat = outputs["centreline"]
        return [(flat[3 * i], flat[3 * i + 1], flat[3 * i + 2]) for i in range(self._stations)]

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        line = self._line(outputs)
        points: list[Vector] = [line[0]] * (ROUND + 1)
        for i, (x, y, z) in enumerate(line):
            side, up = _across(line, i)
            points += [
                (x + a * side[0] + b * up[0], y + a * side[1] + b * up[1], z + a * side[2] + b * up[2])
                for a, b in self._ring
            ]
        points += [line[-1]] * (ROUND + 1)
        return (points,)

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        still: Quaternion = (1.0, 0.0, 0.0, 0.0)
        return {"tail": (self._line(outputs)[-1], still)}


def _across(line: list[Vector], i: int) -> tuple[Vector, Vector]:
    """Unit vectors to the side and up at station i, square to the line there; up is as near z as it can be."""
    before, after = line[max(i - 1, 0)], line[min(i + 1, len(line) - 1)]
    x, y, z = before[0] - after[0], before[1] - after[1], before[2] - after[2]
    size = sqrt(x * x + y * y + z * z)
    x, y, z = (x / size, y / size, z / size) if size > 0.0 else (1.0, 0.0, 0.0)  # two stations at one place
    flat = sqrt(x * x + y * y)
    side = (-y / flat, x / flat, 0.0) if flat > 1e-9 else (0.0, 1.0, 0.0)
    up = (y * side[2] - z * side[1], z * side[0] - x * side[2], x * side[1] - y * side[0])
    return side, up
