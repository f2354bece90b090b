"""Shapes of the moths: two wings and the thorax, from joint angles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi, sin
from typing import Any

from rtmms.shapes.shape import Pose, Skin, Solid, Vector, after, at, multiply, sheet, turn
from rtmms.wire.protocol.state import PlantInfo

# The moth: two wings of rectangular blades and the thorax, from joint angles (docs/moth.md).


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
        axes = (2.0 * float(told["thorax_b_m"]), 2.0 * float(told["thorax_a_m"]), 2.0 * height)
        self.solids = (Solid("thorax", (0.0, 0.0, 0.0), axes),)
        blades = tuple(4 * k + corner for k in range(n) for corner in (0, 1, 2, 2, 1, 3))
        edges = tuple((4 * k, 4 * k + 1, 4 * k + 3, 4 * k + 2, 4 * k) for k in range(n))
        self.skins = (Skin("right_wing", blades, edges), Skin("left_wing", blades, edges))

    def blades(self, angles: Sequence[float], side: int) -> list[Pose]:
        """side 0 right, 1 left; x outwards along the leading edge, z from the trailing to the leading edge."""
        poses: list[Pose] = []
        pose: Pose = (self._hinge, turn(2, pi * side - pi / 2))  # s, along the right wing, is -y
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


# The modal moth: two wings that twist along their span, and the thorax, from joint angles (docs/modal_moth.md).


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
