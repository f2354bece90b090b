"""The modal moth: two wings that twist along their span, and the thorax, from joint angles (docs/modal_moth.md)."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sin
from typing import Any

from rtmms.shapes.rotations import Vector, multiply
from rtmms.shapes.shape import Pose, Skin, Solid, after, at, sheet, turn
from rtmms.wire.protocol.state import PlantInfo


class ModalMothShape:
    """Chords along each wing, turned about the leading edge by its modes."""

    needs = ("joint_position",)
    PIECES = 10

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        self._modes, self._span = int(told["modes"]), float(told["span_m"])
        self._chord, height = float(told["chord_m"]), float(told["thorax_height_m"])
        self._hinge = (0.0, 0.0, float(told["hinge"]) * height)
        if plant.output("joint_position").shape != (2 * (2 + self._modes),):
            raise ValueError("not the modal moth's joints")
        wide = 2.0 * float(told["thorax_radius_m"])
        self.solids = (Solid("thorax", (0.0, 0.0, 0.0), (wide, wide, 2.0 * height)),)
        right, left = (sheet(f"{side}_wing", self.PIECES + 1, 2) for side in ("right", "left"))
        self.skins: tuple[Skin, ...] = (right, left)

    def wing(self, outputs: Mapping[str, Any], side: int) -> Pose:
        """side 0 right, 1 left: x outwards along the leading edge, z from the trailing to the leading edge."""
        flap, feather = outputs["joint_position"][side * (2 + self._modes) :][:2]
        root: Pose = (self._hinge, turn(2, pi * side - pi / 2))  # s, along the right wing, is -y
        return after(root, ((0.0, 0.0, 0.0), multiply(turn(2, float(flap)), turn(0, float(feather)))))

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        wings = []
        for side in (0, 1):
            pose, first = self.wing(outputs, side), side * (2 + self._modes) + 2
            modes, points = outputs["joint_position"][first : first + self._modes], list[Vector]()
            for k in range(self.PIECES + 1):
                s = k / self.PIECES
                twist = sum(float(r) * sin((2 * m + 1) * pi * s / 2.0) for m, r in enumerate(modes))
                chord = after(pose, ((s * self._span, 0.0, 0.0), turn(0, twist)))
                points += [at(chord, (0.0, 0.0, 0.0)), at(chord, (0.0, 0.0, -self._chord))]
            wings.append(points)
        return tuple(wings)

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        return {f"{name}_wing": self.wing(outputs, side) for side, name in enumerate(("right", "left"))}
