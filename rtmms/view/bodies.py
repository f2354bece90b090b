"""Drawing of any plant that exposes its bodies (`shape`, rtmms.plant.PlantDescription).

The table comes from a peer or a log: a wrong entry raises one of rtmms.view.drawings.BROKEN.
"""

from __future__ import annotations

from array import array
from base64 import b64decode
from collections.abc import Mapping
from math import isfinite
from sys import byteorder
from typing import Any

from rtmms.base.attitude import HOME, Pose, Quaternion, Vector
from rtmms.plant.drawing import JOINTS, KINDS, Drawing, Frame, OutputSkin, Point, PointSkin, Skin, Solid, Turn
from rtmms.wire.protocol.received_state import PlantInfo

MAX_ENTRIES = 4096
"""Joints, parts, indices of a skin: more are not drawn."""


def exposed_drawing(plant: PlantInfo) -> Drawing | None:
    """Return the drawing of the bodies that a plant exposes.

    It has solids in the frames of its joints, skins over outputs, and cords. A joint turns about z, or moves along it.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    Drawing | None
        None for a plant that exposes none.

    Raises
    ------
    ValueError
        The table is wrong.
    """
    table = plant.shape
    if not table:
        return None
    frames = tuple(_frame(k, joint) for k, joint in enumerate(list(table.get("joints", ()))[:MAX_ENTRIES]))
    if any(not 0 <= frame.parent <= k for k, frame in enumerate(frames)):
        raise ValueError("shape: joints: expected each joint after its parent in the list")
    names = ["", *(frame.name for frame in frames)]
    skins = [_skin(skin, plant) for skin in table.get("skins", ())]
    cords = [_cord(k, cord, len(names)) for k, cord in enumerate(list(table.get("cords", ()))[:MAX_ENTRIES])]
    return Drawing(
        frames,
        (*skins, *cords),
        tuple(_solid(part, names) for part in list(table.get("parts", ()))[:MAX_ENTRIES]),
        outputs={JOINTS: (len(frames),)} if frames else {},
    )


def _frame(k: int, joint: Mapping[str, Any]) -> Frame:
    slides = bool(joint.get("slides", False))
    return Frame(
        f"joint{k + 1}", int(joint["parent"]), *_pose(joint),
        turns=() if slides else (Turn(2, k),), slide=k if slides else -1,
    )  # fmt: skip


def _solid(part: Mapping[str, Any], names: list[str]) -> Solid:
    body, kind, (position, quaternion) = int(part.get("body", 0)), str(part["kind"]), _pose(part)
    if not 0 <= body < len(names) or kind not in KINDS:
        raise ValueError("shape: solids: unknown body or kind")
    size = _three(part["size"])
    vertices, triangles = _mesh(part, size) if kind == "mesh" else ((), ())
    return Solid(str(part["name"]), position, size, kind, quaternion, names[body], vertices, triangles,
                 _colour(part.get("colour", ())))  # fmt: skip


def _cord(k: int, cord: Mapping[str, Any], bodies: int) -> PointSkin:
    """Return a line through points, each in the frame of a body."""
    points = tuple(Point(int(body), _three((x, y, z))) for body, x, y, z in list(cord["points"])[:MAX_ENTRIES])
    if len(points) < 2 or not all(0 <= body < bodies for body, _ in points):
        raise ValueError("shape: cords: expected two or more points on bodies of the shape")
    return PointSkin(Skin(f"cord{k + 1}", (), (tuple(range(len(points))),)), points)


def _pose(table: Mapping[str, Any]) -> Pose:
    w, x, y, z = (_number(n) for n in table.get("quaternion", HOME[1]))
    attitude: Quaternion = (w, x, y, z)
    return _three(table.get("position", HOME[0])), attitude


def _skin(table: Mapping[str, Any], plant: PlantInfo) -> OutputSkin:
    shape = plant.output(str(table["points"])).shape
    if len(shape) != 2 or shape[1] != 3:
        raise ValueError("shape: expected points of shape (n, 3)")
    triangles = tuple(int(k) for k in list(table.get("triangles", ()))[:MAX_ENTRIES])
    lines = tuple(tuple(int(k) for k in strip) for strip in list(table.get("lines", ()))[:MAX_ENTRIES])
    if len(triangles) % 3 or not all(0 <= k < shape[0] for strip in (triangles, *lines) for k in strip):
        raise ValueError("shape: expected indices below the number of points")
    return OutputSkin(Skin(str(table["name"]), triangles, lines), str(table["points"]))


def _mesh(table: Mapping[str, Any], size: Vector) -> tuple[tuple[Vector, ...], tuple[tuple[int, int, int], ...]]:
    """Return points, m, and triangles, as rtmms.model.description.Drawing writes them."""
    steps, corners = (
        array(kind, b64decode(str(table[name]), validate=True)) for kind, name in (("h", "points"), ("H", "triangles"))
    )
    if byteorder == "big":
        steps.byteswap()
        corners.byteswap()
    if len(steps) % 3 or len(corners) % 3 or not corners or max(corners) >= len(steps) // 3:
        raise ValueError("shape: mesh: expected triangles with indices below the number of points")
    a, b, c = (0.5 * length / 32767.0 for length in size)
    points = tuple((a * steps[k], b * steps[k + 1], c * steps[k + 2]) for k in range(0, len(steps), 3))
    return points, tuple((corners[k], corners[k + 1], corners[k + 2]) for k in range(0, len(corners), 3))


def _colour(table: Any) -> tuple[int, ...]:
    colour = tuple(int(c) for c in table)
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
