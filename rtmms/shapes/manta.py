"""Where the manta's fins and rods are, from rod and joint angles (docs/manta.md), in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import asin, atan2, cos, sin, sqrt
from typing import Any

from rtmms.shapes.shape import Pose, Skin, Solid, Vector, at, from_euler, sheet
from rtmms.wire.protocol.state import PlantInfo

LEFT, RIGHT = 0, 1
BODY = (0.70, 0.60, 0.16)
"""m, full axes of the ellipsoid that stands for the body, whose shape the model does not know."""


class MantaShape:
    """Fins as sheets of their chains' joints, rods as lines, the body as an ellipsoid between the fins' roots."""

    needs = ("rod_angle", "joint_position")

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        self._links, self._chains = int(told["links"]), int(told["chains"])
        self._support = float(told["support_length_m"])
        self._front, self._back = float(told["front_rod_m"]), float(told["back_rod_m"])
        self._mean = told["support_roll"] == "mean"
        x, y, z = told["fin_root_m"]
        self._root = (float(x), float(y), float(z))
        if plant.output("joint_position").shape != (2, self._links, self._chains):
            raise ValueError("not the manta's joints")
        n = self._chains
        self._station = [(i + 0.5) * self._support / n for i in range(n)]
        taper = float(told["chain_length_front_m"]) - float(told["chain_length_back_m"])
        back = float(told["chain_length_back_m"])
        self._length = [(back + taper * s / self._support) / self._links for s in self._station]
        fins = (sheet("left_fin", self._links + 1, n), sheet("right_fin", self._links + 1, n))
        rods = tuple(Skin(f"{side}_rods", (), ((0, 1, 2, 3),)) for side in ("left", "right"))
        self.skins = (*fins, *rods)
        centre = (self._root[0] + 0.5 * self._support, 0.0, self._root[2])
        self.solids = (Solid("body", centre, (BODY[0], 2.0 * abs(self._root[1]) or BODY[1], BODY[2])),)

    def support(self, rods: Sequence[float]) -> Pose:
        """The left fin's support: origin at the back rod's tip, x to the front rod's, in the body's frame."""
        front, back = rods
        r1, r2, length = self._front, self._back, self._support
        u, w = r1 * cos(front) - r2 * cos(back), r1 * sin(front) - r2 * sin(back)
        along = sqrt(max(0.0, length * length - u * u - w * w))  # AB = (along, u, w)
        roll = 0.5 * (front + back) if self._mean else 0.0
        x, y, z = self._root
        point = (x, y + r2 * cos(back), z + r2 * sin(back))
        # R = Rz(theta) Ry(beta) Rx(gamma)
        return point, from_euler(roll, asin(max(-1.0, min(1.0, -w / length))), atan2(u, along))

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        rods, joints = outputs["rod_angle"], outputs["joint_position"]
        m, n = self._links, self._chains
        fins = [self._fin(rods[2 * fin : 2 * fin + 2], joints[fin * m * n : (fin + 1) * m * n]) for fin in (0, 1)]
        bars = [self._bars(rods[2 * fin : 2 * fin + 2]) for fin in (0, 1)]
        return fins[LEFT], _mirrored(fins[RIGHT]), bars[LEFT], _mirrored(bars[RIGHT])

    def _fin(self, rods: Sequence[float], angles: Sequence[float]) -> list[Vector]:
        """(links + 1) rows of chains points: the joints of a left fin, from the support to the free end."""
        pose, n = self.support(rods), self._chains
        y, z, bend = [0.0] * n, [0.0] * n, [0.0] * n
        points = [at(pose, (s, 0.0, 0.0)) for s in self._station]
        for j in range(self._links):
            for i in range(n):
                bend[i] += angles[j * n + i]
                y[i] += self._length[i] * cos(bend[i])
                z[i] += self._length[i] * sin(bend[i])
                points.append(at(pose, (self._station[i], y[i], z[i])))
        return points

    def _bars(self, rods: Sequence[float]) -> list[Vector]:
        """Motor of the front rod, tips of the front and the back rod, motor of the back rod; left side."""
        pose = self.support(rods)
        tip = at(pose, (self._support, 0.0, 0.0))
        x, y, z = self._root
        # the front rod's tip slides along x on its rod: it is drawn where the tip is
        return [(tip[0], y, z), tip, pose[0], (x, y, z)]

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        """The fins' supports; the right one's is the mirror image of the left one's, its chains along -y."""
        rods = outputs["rod_angle"]
        (x, y, z), (a, b, c, d) = self.support(rods[2:4])
        return {"left_fin": self.support(rods[0:2]), "right_fin": ((x, -y, z), (a, -b, c, -d))}


def _mirrored(points: list[Vector]) -> list[Vector]:
    return [(x, -y, z) for x, y, z in points]
