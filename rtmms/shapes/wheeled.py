"""The robots on wheels: flat plates, one a body, each turned about z by its joint (docs/wheeled.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rtmms.shapes.shape import HOME, Pose, Skin, Solid, Vector, after, at, turn
from rtmms.wire.protocol.state import PlantInfo


class Plate(NamedTuple):
    """parent -1 is the body's frame; joint -1 does not turn. place: of the joint, m; x and y: the plate's edges, m."""

    name: str
    parent: int
    joint: int
    place: Vector
    x: tuple[float, float]
    y: tuple[float, float]


def _snake(told: Mapping[str, Any]) -> list[Plate]:
    h = float(told["half_length_m"])
    plates = [Plate("link1", -1, -1, (0.0, 0.0, 0.0), (-0.9 * h, 0.9 * h), (-0.3 * h, 0.3 * h))]
    for k in range(1, int(told["links"])):
        place = (-h if k == 1 else -2.0 * h, 0.0, 0.0)
        plates.append(Plate(f"link{k + 1}", k - 1, k - 1, place, (-1.9 * h, -0.1 * h), (-0.3 * h, 0.3 * h)))
    return plates


def _unicycle(told: Mapping[str, Any]) -> list[Plate]:
    r, b = float(told["wheel_m"]), float(told["half_track_m"])
    wheels = [
        Plate(name, -1, -1, (0.0, y, 0.0), (-r, r), (-0.1 * b, 0.1 * b)) for name, y in (("left", b), ("right", -b))
    ]
    return [Plate("platform", -1, -1, (0.0, 0.0, 0.0), (-b, b), (-0.8 * b, 0.8 * b)), *wheels]


def _snakeboard(told: Mapping[str, Any]) -> list[Plate]:
    l = float(told["half_length_m"])
    axles = [
        Plate(name, -1, k, (x, 0.0, 0.0), (-0.15 * l, 0.15 * l), (-0.6 * l, 0.6 * l))
        for name, k, x in (("front", 1, l), ("back", 2, -l))
    ]
    rotor = Plate("rotor", -1, 0, (0.0, 0.0, 0.05), (-0.1 * l, 0.1 * l), (-0.9 * l, 0.9 * l))
    return [Plate("board", -1, -1, (0.0, 0.0, 0.0), (-l, l), (-0.1 * l, 0.1 * l)), rotor, *axles]


def _roller_racer(told: Mapping[str, Any]) -> list[Plate]:
    a, b = float(told["seat_m"]), float(told["bar_m"])
    return [
        Plate("seat", -1, -1, (0.0, 0.0, 0.0), (-0.2 * a, a), (-0.3 * a, 0.3 * a)),
        Plate("bar", 0, 0, (a, 0.0, 0.0), (0.0, 1.2 * b), (-0.5 * a, 0.5 * a)),
    ]


def _trikke(told: Mapping[str, Any]) -> list[Plate]:
    l, trail = float(told["base_m"]), float(told["trail_m"])
    return [
        Plate("frame", -1, -1, (0.0, 0.0, 0.0), (0.0, l), (-0.1 * l, 0.1 * l)),
        Plate("rider", -1, 0, (float(told["centre_m"]), 0.0, 0.5), (-0.1 * l, 0.1 * l), (-0.25 * l, 0.25 * l)),
        Plate("fork", -1, 1, (l, 0.0, 0.0), (-trail - 0.1 * l, 0.1 * l), (-0.05 * l, 0.05 * l)),
    ]


PLATES = {
    "snake": _snake, "unicycle": _unicycle, "snakeboard": _snakeboard, "roller_racer": _roller_racer, "trikke": _trikke,
}  # fmt: skip
CORNERS = ((0, 0), (1, 0), (1, 1), (0, 1))


class WheeledShape:
    """A plate for each body."""

    needs = ("joint_position",)
    solids: tuple[Solid, ...] = ()

    def __init__(self, plant: PlantInfo) -> None:
        self._plates = PLATES[plant.robot](plant.parameters)
        edge = (0, 1, 2, 3, 0)
        self.skins = tuple(Skin(plate.name, (0, 1, 2, 0, 2, 3), (edge,)) for plate in self._plates)
        if plant.output("joint_position").shape[0] <= max(plate.joint for plate in self._plates):
            raise ValueError(f"not the joints of a {plant.robot}")

    def _poses(self, outputs: Mapping[str, Any]) -> list[Pose]:
        angles, poses = outputs["joint_position"], list[Pose]()
        for plate in self._plates:
            parent = HOME if plate.parent < 0 else poses[plate.parent]
            poses.append(after(parent, (plate.place, turn(2, 0.0 if plate.joint < 0 else float(angles[plate.joint])))))
        return poses

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        return tuple(
            [at(pose, (plate.x[i], plate.y[j], 0.0)) for i, j in CORNERS]
            for plate, pose in zip(self._plates, self._poses(outputs), strict=True)
        )

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        poses = self._poses(outputs)
        return {plate.name: pose for plate, pose in zip(self._plates[1:], poses[1:], strict=True)}
