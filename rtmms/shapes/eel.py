"""The eel: a tube of elliptic rings along the head and the links, from joint angles (docs/eel.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import cos, pi, sin
from typing import Any

from rtmms.shapes.rotations import Vector, multiply
from rtmms.shapes.shape import Pose, Skin, Solid, after, at, sheet, turn
from rtmms.wire.protocol.state import PlantInfo

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
