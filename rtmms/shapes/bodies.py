"""Any plant that tells what is to be drawn of it (rtmms.plant.protocol.PlantDescription): solids on bodies, skins of
points."""

from __future__ import annotations

from array import array
from base64 import b64decode
from collections.abc import Mapping
from math import cos, isfinite, sin
from sys import byteorder
from typing import Any

from rtmms.shapes.shape import HOME, KINDS, Pose, Quaternion, Skin, Solid, Vector, after, at
from rtmms.wire.protocol.state import PlantInfo

MOST = 4096
"""Joints, parts, indices of a skin: more are not drawn."""


class BodiesShape:
    """Joints one after the other, each about (or along) its z axis; solids in the frames that they move."""

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.shape
        joints = list(told.get("joints", ()))[:MOST]
        self._joints = [(int(j["parent"]), bool(j.get("slides", False)), _pose(j)) for j in joints]
        if any(not 0 <= parent <= k for k, (parent, _, _) in enumerate(self._joints)):
            raise ValueError("shape: a joint's parent comes after it")
        self._names = ["", *(f"joint{k + 1}" for k in range(len(joints)))]
        self.solids = tuple(self._solid(part) for part in list(told.get("parts", ()))[:MOST])
        given = list(told.get("skins", ()))
        self._points = tuple(str(skin["points"]) for skin in given)
        self._cords = [self._cord(cord) for cord in list(told.get("cords", ()))[:MOST]]
        lines = (Skin(f"cord{k + 1}", (), (tuple(range(len(cord))),)) for k, cord in enumerate(self._cords))
        self.skins = (*(_skin(skin, plant) for skin in given), *lines)
        if self._joints and plant.output("joint_position").shape != (len(self._joints),):
            raise ValueError("shape: not the joints that the plant outputs")
        self.needs = (*(("joint_position",) if self._joints else ()), *self._points)

    def _solid(self, part: Mapping[str, Any]) -> Solid:
        body, kind, (position, quaternion) = int(part.get("body", 0)), str(part["kind"]), _pose(part)
        if not 0 <= body < len(self._names) or kind not in KINDS:
            raise ValueError("shape: no such body or kind")
        size = _three(part["size"])
        vertices, triangles = _mesh(part, size) if kind == "mesh" else ((), ())
        return Solid(str(part["name"]), position, size, kind, quaternion, self._names[body], vertices, triangles,
                     _colour(part.get("colour", ())))  # fmt: skip

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        found = []
        for name in self._points:
            numbers = outputs[name]
            found.append([(numbers[k], numbers[k + 1], numbers[k + 2]) for k in range(0, len(numbers), 3)])
        if self._cords:
            frames = {"": HOME, **self.frames(outputs)}
            found += [[at(frames[name], place) for name, place in cord] for cord in self._cords]
        return tuple(found)

    def _cord(self, told: Mapping[str, Any]) -> list[tuple[str, Vector]]:
        """Points of a line, each with the name of its frame."""
        points = [(int(body), _three((x, y, z))) for body, x, y, z in list(told["points"])[:MOST]]
        if len(points) < 2 or not all(0 <= body < len(self._names) for body, _ in points):
            raise ValueError("shape: a cord's points must be two or more, on bodies that there are")
        return [(self._names[body], place) for body, place in points]

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        if not self._joints:
            return {}
        poses = [HOME]
        for (parent, slides, placed), q in zip(self._joints, outputs["joint_position"], strict=True):
            moved: Pose = (
                ((0.0, 0.0, q), HOME[1]) if slides else (HOME[0], (cos(0.5 * q), 0.0, 0.0, sin(0.5 * q)))
            )  # fmt: skip
            poses.append(after(poses[parent], after(placed, moved)))
        return dict(zip(self._names[1:], poses[1:], strict=True))


def _pose(told: Mapping[str, Any]) -> Pose:
    w, x, y, z = (_number(n) for n in told.get("quaternion", HOME[1]))
    attitude: Quaternion = (w, x, y, z)
    return _three(told.get("position", HOME[0])), attitude


def _skin(told: Mapping[str, Any], plant: PlantInfo) -> Skin:
    shape = plant.output(str(told["points"])).shape
    if len(shape) != 2 or shape[1] != 3:
        raise ValueError("shape: expected points of shape (n, 3)")
    triangles = tuple(int(k) for k in list(told.get("triangles", ()))[:MOST])
    lines = tuple(tuple(int(k) for k in strip) for strip in list(told.get("lines", ()))[:MOST])
    if len(triangles) % 3 or not all(0 <= k < shape[0] for strip in (triangles, *lines) for k in strip):
        raise ValueError("shape: an index beyond the points")
    return Skin(str(told["name"]), triangles, lines)


def _mesh(told: Mapping[str, Any], size: Vector) -> tuple[tuple[Vector, ...], tuple[tuple[int, int, int], ...]]:
    """Points, m, and triangles, as rtmms.model.description.Drawing tells them."""
    steps, corners = (
        array(kind, b64decode(str(told[name]), validate=True)) for kind, name in (("h", "points"), ("H", "triangles"))
    )
    if byteorder == "big":
        steps.byteswap()
        corners.byteswap()
    if len(steps) % 3 or len(corners) % 3 or not corners or max(corners) >= len(steps) // 3:
        raise ValueError("shape: triangles of a mesh beyond its points")
    a, b, c = (0.5 * length / 32767.0 for length in size)
    points = tuple((a * steps[k], b * steps[k + 1], c * steps[k + 2]) for k in range(0, len(steps), 3))
    return points, tuple((corners[k], corners[k + 1], corners[k + 2]) for k in range(0, len(corners), 3))


def _colour(told: Any) -> tuple[int, ...]:
    colour = tuple(int(c) for c in told)
    if colour and (len(colour) != 3 or not all(0 <= c <= 255 for c in colour)):
        raise ValueError("shape: a colour is three numbers from 0 to 255")
    return colour


def _three(numbers: Any) -> Vector:
    x, y, z = (_number(n) for n in numbers)
    return x, y, z


def _number(value: Any) -> float:
    if not isfinite(value):
        raise ValueError("shape: not a finite number")
    return float(value)
