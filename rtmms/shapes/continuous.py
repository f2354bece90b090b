"""The continuous eel: a tube of elliptic rings along its centre line (docs/continuous_eel.md). A drawing: the rings
stand upright, whatever the sections' roll."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin, sqrt
from typing import Any

from rtmms.shapes.rotations import Quaternion, Vector
from rtmms.shapes.shape import Pose, Skin, Solid, sheet
from rtmms.wire.protocol.state import PlantInfo

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
