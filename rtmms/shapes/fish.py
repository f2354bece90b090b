"""The fish: a tube of elliptic rings along head and tail, from joint angles (docs/fish.md)."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin, sqrt
from typing import Any

from rtmms.shapes.rotations import Vector
from rtmms.shapes.shape import Pose, Skin, Solid, after, at, sheet, turn
from rtmms.wire.protocol.state import PlantInfo

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
