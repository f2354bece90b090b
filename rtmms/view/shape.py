"""Shape of a robot in a state: points of its skins, solids, frames of its moving parts.

`DrawingShape` reads a drawing (rtmms.plant.drawing) in plain Python, for figures, Foxglove and the view alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import asin, atan2, cos, pi, sin, sqrt
from typing import Any, Protocol

from rtmms.base.attitude import HOME, Pose, Vector, after, at, from_euler, multiply, turn
from rtmms.plant.drawing import (
    JOINTS,
    ChainSkin,
    Coupler,
    Drawing,
    DrawnSkin,
    Follower,
    Frame,
    OutputSkin,
    PointSkin,
    Skin,
    Slider,
    Solid,
    TubeSkin,
    rings,
    sheet,
)
from rtmms.wire.protocol.received_state import PlantInfo


class Shape(Protocol):
    """Shape of one robot."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Outputs that it is drawn from."""

    @property
    def skins(self) -> tuple[Skin, ...]:
        """Skins, whose points `points` returns."""
        ...

    @property
    def solids(self) -> tuple[Solid, ...]:
        """Solids in the frames of the moving parts."""
        ...

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        """Return the points of each skin.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs by name, flat.

        Returns
        -------
        tuple[list[Vector], ...]
            m, body frame.
        """

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        """Return the frames of the moving parts.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs by name, flat.

        Returns
        -------
        dict[str, Pose]
            Poses in the body's frame, by name.
        """


class DrawingShape:
    """Shape of a robot by its drawing.

    Parameters
    ----------
    drawing : Drawing
        The drawing.
    plant : PlantInfo
        The plant.

    Raises
    ------
    ValueError, UnknownNameError
        The plant lacks the outputs that the drawing is for.
    """

    def __init__(self, drawing: Drawing, plant: PlantInfo) -> None:
        for name, shape in drawing.outputs.items():
            if plant.output(name).shape != shape:
                raise ValueError(f"{name}: expected {shape}, got {plant.output(name).shape}")
        self.drawing = drawing
        self.solids = drawing.solids
        self.skins = tuple(_skin(skin, plant) for skin in drawing.skins)
        self.needs = tuple(dict.fromkeys(_needs(drawing)))

    def poses(self, outputs: Mapping[str, Any]) -> list[Pose]:
        """Return the pose of the body and of each frame of the drawing.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs by name, flat.

        Returns
        -------
        list[Pose]
            Poses in the body's frame.
        """
        poses = [HOME]
        for frame in self.drawing.frames:
            poses.append(_pose(frame, poses, outputs))
        return poses

    def points(self, outputs: Mapping[str, Any]) -> tuple[list[Vector], ...]:
        """Return the points of each skin.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs by name, flat.

        Returns
        -------
        tuple[list[Vector], ...]
            m, body frame.
        """
        poses = self.poses(outputs)
        return tuple(_points(skin, poses, outputs) for skin in self.drawing.skins)

    def frames(self, outputs: Mapping[str, Any]) -> dict[str, Pose]:
        """Return the frames of the moving parts.

        Parameters
        ----------
        outputs : Mapping[str, Any]
            Outputs by name, flat.

        Returns
        -------
        dict[str, Pose]
            Poses in the body's frame, by name.
        """
        moving = zip(self.drawing.frames, self.poses(outputs)[1:], strict=True)
        return {frame.name: pose for frame, pose in moving if frame.name}


def _needs(drawing: Drawing) -> list[str]:
    needs = []
    for frame in drawing.frames:
        match frame:
            case Frame(turns=turns, slide=slide):
                needs += [JOINTS] if turns or slide >= 0 else []
            case Coupler(output=output) | Follower(output=output):
                needs.append(output)
    for skin in drawing.skins:
        match skin:
            case ChainSkin():
                needs.append(JOINTS)
            case OutputSkin(output=output) | TubeSkin(output=output):
                needs.append(output)
    return needs


def _pose(frame: Frame | Coupler | Slider | Follower, poses: Sequence[Pose], outputs: Mapping[str, Any]) -> Pose:
    match frame:
        case Coupler():
            return _coupled(frame, outputs[frame.output][frame.first : frame.first + 2])
        case Slider():
            return (at(poses[frame.parent], frame.point)[0], frame.y, frame.z), HOME[1]
        case Follower():
            flat = outputs[frame.output]
            k = 3 * frame.row % len(flat)
            return (flat[k], flat[k + 1], flat[k + 2]), HOME[1]
    pose = after(poses[frame.parent], (frame.position, frame.quaternion))
    if frame.slide >= 0:
        pose = after(pose, ((0.0, 0.0, float(outputs[JOINTS][frame.slide])), HOME[1]))
    for axis, joint, weight in frame.turns:
        pose = pose[0], multiply(pose[1], turn(axis, weight * float(outputs[JOINTS][joint])))
    return pose


def _coupled(bar: Coupler, angles: Sequence[float]) -> Pose:
    front, back = angles
    # from the back crank's tip to the front one's, but for what the front crank slides: (along, u, w)
    u = bar.front * cos(front) - bar.back * cos(back)
    w = bar.front * sin(front) - bar.back * sin(back)
    along = sqrt(max(0.0, bar.length * bar.length - u * u - w * w))
    roll = 0.5 * (front + back) if bar.mean_roll else 0.0
    x, y, z = bar.root
    place = x, y + bar.back * cos(back), z + bar.back * sin(back)
    # R = Rz(theta) Ry(beta) Rx(gamma)
    a, b, c, d = from_euler(roll, asin(max(-1.0, min(1.0, -w / bar.length))), atan2(u, along))
    if bar.mirrored:
        return (place[0], -place[1], place[2]), (a, -b, c, -d)
    return place, (a, b, c, d)


def _skin(skin: DrawnSkin, plant: PlantInfo) -> Skin:
    match skin:
        case ChainSkin():
            return sheet(skin.name, skin.links + 1, len(skin.stations))
        case TubeSkin():
            return rings(skin.name, plant.output(skin.output).shape[0] + 2, skin.round)
    return skin.skin


def _points(skin: DrawnSkin, poses: Sequence[Pose], outputs: Mapping[str, Any]) -> list[Vector]:
    match skin:
        case PointSkin():
            return [at(poses[frame], place) for frame, place in skin.points]
        case ChainSkin():
            return _chains(skin, poses[skin.frame], outputs[JOINTS])
        case TubeSkin():
            return _tube(skin, _rows(outputs[skin.output]))
    return _rows(outputs[skin.output])


def _rows(numbers: Sequence[float]) -> list[Vector]:
    return [(numbers[k], numbers[k + 1], numbers[k + 2]) for k in range(0, len(numbers), 3)]


def _chains(skin: ChainSkin, pose: Pose, angles: Sequence[float]) -> list[Vector]:
    """Return links + 1 rows of points: the chains' joints, from the frame to the free ends."""
    n, side = len(skin.stations), -1.0 if skin.mirrored else 1.0
    y, z, bend = [0.0] * n, [0.0] * n, [0.0] * n
    points = [at(pose, (x, 0.0, 0.0)) for x in skin.stations]
    for j in range(skin.links):
        for i in range(n):
            bend[i] += angles[skin.first + j * n + i]
            y[i] += skin.lengths[i] * cos(bend[i])
            z[i] += skin.lengths[i] * sin(bend[i])
            points.append(at(pose, (skin.stations[i], side * y[i], z[i])))
    return points


def _tube(skin: TubeSkin, line: list[Vector]) -> list[Vector]:
    a, b, n = skin.half_width, skin.half_height, skin.round
    ring = [(a * cos(2 * pi * k / n), b * sin(2 * pi * k / n)) for k in range(n + 1)]
    points: list[Vector] = [line[0]] * (n + 1)
    for i, (x, y, z) in enumerate(line):
        side, up = across(line, i)
        points += [
            (x + a * side[0] + b * up[0], y + a * side[1] + b * up[1], z + a * side[2] + b * up[2]) for a, b in ring
        ]
    return points + [line[-1]] * (n + 1)


def across(line: Sequence[Vector], i: int) -> tuple[Vector, Vector]:
    """Return unit vectors to the side and up at a point of a line from nose to tail, square to it.

    Up is as near z as possible.

    Parameters
    ----------
    line : Sequence[Vector]
        Points.
    i : int
        Index of the point.

    Returns
    -------
    tuple[Vector, Vector]
        Side and up.
    """
    before, behind = line[max(i - 1, 0)], line[min(i + 1, len(line) - 1)]
    x, y, z = before[0] - behind[0], before[1] - behind[1], before[2] - behind[2]
    size = sqrt(x * x + y * y + z * z)
    x, y, z = (x / size, y / size, z / size) if size > 0.0 else (1.0, 0.0, 0.0)  # two points at one place
    flat = sqrt(x * x + y * y)
    side = (-y / flat, x / flat, 0.0) if flat > 1e-9 else (0.0, 1.0, 0.0)
    up = (y * side[2] - z * side[1], z * side[0] - x * side[2], x * side[1] - y * side[0])
    return side, up
