"""Cat, satellite, Purcell's swimmer, three ellipses: a base and what its two joints turn (docs/shape_robots.md)."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin, sqrt
from typing import Any, NamedTuple

from rtmms.shapes.shape import HOME, Pose, Skin, Solid, Vector, after, at, sheet, turn
from rtmms.wire.protocol.state import PlantInfo

ROUND = 24
CENTRE = (0.0, 0.0, 0.0)


class Part(NamedTuple):
    """A body: its joint's place in the base's frame, m, the (axis, joint) that turn it in that order, and its skin in
    its own frame."""

    place: Vector
    turns: tuple[tuple[int, int], ...]
    skin: Skin
    points: list[Vector]


def _half(name: str, place: Vector, turns: tuple[tuple[int, int], ...], middle: float, arm: float) -> Part:
    """Half of the cat: a tube along z that narrows at its ends, with two legs towards x."""
    size, rings = 0.35 * arm, ((-1.0, 0.3), (-0.8, 0.9), (0.0, 1.0), (0.8, 0.9), (1.0, 0.3))
    points = [
        (part * size * cos(2.0 * pi * k / ROUND), part * size * sin(2.0 * pi * k / ROUND), middle + z * arm)
        for z, part in rings
        for k in range(ROUND + 1)
    ]
    tube, first = sheet(name, len(rings), ROUND + 1), len(points)
    for side in (-0.6 * size, 0.6 * size):
        points += [(0.7 * size, side, middle), (2.5 * size, side, middle)]
    lines = (*(tube.lines[k] for k in (0, ROUND // 4, ROUND // 2, 3 * ROUND // 4)), tube.lines[-1])
    legs = ((first, first + 1), (first + 2, first + 3))
    return Part(place, turns, Skin(name, tube.triangles, (*lines, *legs)), points)


def _cat(told: Mapping[str, Any]) -> list[Part]:
    arm = float(told["arm_m"])
    return [_half("hind", CENTRE, (), 0.0, arm), _half("front", (0.0, 0.0, arm), ((0, 0), (1, 1)), arm, arm)]


def _disc(name: str, place: Vector, turns: tuple[tuple[int, int], ...], rim: list[Vector], middle: Vector) -> Part:
    """A face within a rim, and the line from its middle to the rim's first point."""
    n = len(rim)
    fan = tuple(index for k in range(n) for index in (n, k, (k + 1) % n))
    return Part(place, turns, Skin(name, fan, ((*range(n), 0), (n, 0))), [*rim, middle])


def _satellite(told: Mapping[str, Any]) -> list[Part]:
    """Wheels as discs of their axial inertia, m r^2 / 2."""
    r, arm = sqrt(2.0 * float(told["axial_kg_m2"]) / float(told["wheel_kg"])), float(told["arm_m"])
    circle = [(r * cos(2.0 * pi * k / ROUND), r * sin(2.0 * pi * k / ROUND)) for k in range(ROUND)]
    return [
        _disc("wheel_x", (arm, 0.0, 0.0), ((0, 0),), [(0.0, a, b) for a, b in circle], CENTRE),
        _disc("wheel_y", (0.0, arm, 0.0), ((1, 1),), [(b, 0.0, a) for a, b in circle], CENTRE),
    ]


def _purcell(told: Mapping[str, Any]) -> list[Part]:
    length = float(told["length_m"])

    def rod(name: str, at: float, turns: tuple[tuple[int, int], ...], start: float) -> Part:
        wide = 0.03 * length
        corners = ((start, -wide), (start + length, -wide), (start + length, wide), (start, wide))
        skin = Skin(name, (0, 1, 2, 0, 2, 3), ((0, 1, 2, 3, 0),))
        return Part((at, 0.0, 0.0), turns, skin, [(x, y, 0.0) for x, y in corners])

    half = 0.5 * length
    return [rod("middle", 0.0, (), -half), rod("left", -half, ((2, 0),), -length), rod("right", half, ((2, 1),), 0.0)]


def _fluid_swimmer(told: Mapping[str, Any]) -> list[Part]:
    a, b = float(told["half_length_m"]), float(told["half_width_m"])
    reach = a + float(told["gap_m"])

    def ellipse(name: str, place: float, turns: tuple[tuple[int, int], ...], middle: float) -> Part:
        angles = [2.0 * pi * k / ROUND for k in range(ROUND)]
        rim = [(middle + a * cos(angle), b * sin(angle), 0.0) for angle in angles]
        return _disc(name, (place, 0.0, 0.0), turns, rim, (middle, 0.0, 0.0))

    left, right = ellipse("left", -reach, ((2, 0),), -reach), ellipse("right", reach, ((2, 1),), reach)
    return [ellipse("middle", 0.0, (), 0.0), left, right]


PARTS = {"cat": _cat, "satellite": _satellite, "purcell": _purcell, "fluid_swimmer": _fluid_swimmer}


class ShapeRobotShape:
    """A skin for each body; the satellite's hub is a solid, smaller than its inertia tells, so that its wheels show."""

    needs = ("joint_position",)

    def __init__(self, plant: PlantInfo) -> None:
        self._parts = PARTS[plant.robot](plant.parameters)
        self.skins = tuple(part.skin for part in self._parts)
        self.solids: tuple[Solid, ...] = ()
        if plant.robot == "satellite":
            size = 1.5 * float(plant.parameters["arm_m"])
            self.solids = (Solid("hub", CENTRE, (size, size, size)),)
        if plant.output("joint_position").shape != (2,):
            raise ValueError(f"not the joints of a {plant.robot}")

    def _poses(self, outputs: Mapping[str, Any]) -> list[Pose]:
        angles, poses = outputs["joint_position"], list[Pose]()
        for part in self._parts:
            pose: Pose = (part.place, HOME[1])
            for axis, joint in part.turns:
                pose = after(pose, (CENTRE, turn(axis, float(angles[joint]))))
            poses.append(pose)
        return poses

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        return tuple(
            [at(pose, point) for point in part.points]
            for part, pose in zip(self._parts, self._poses(outputs), strict=True)
        )

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        moving = zip(self._parts, self._poses(outputs), strict=True)
        return {part.skin.name: pose for part, pose in moving if part.turns}
