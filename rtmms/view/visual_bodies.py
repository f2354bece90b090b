"""Look of any other robot: smooth solids, rotors with blades, surfaces and cords through its own points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rtmms.base.attitude import HOME, Pose, at
from rtmms.plant.drawing import AIR, GROUND, SCENES, WATER, Colour, Solid
from rtmms.view.shape import Shape
from rtmms.view.surface import (
    Array,
    Faces,
    Mesh,
    Surface,
    block,
    cylinder,
    ellipsoid,
    fixed_surface,
    move_mesh,
    propeller,
    tiles,
    tube,
)
from rtmms.wire.protocol.received_state import PlantInfo

PAINT: tuple[Colour, ...] = (
    (70, 118, 170),
    (222, 128, 62),
    (92, 152, 98),
    (150, 108, 160),
    (202, 178, 92),
    (96, 160, 170),
    (190, 96, 96),
)
"""Colours of a body and its descendants, in turn."""
METAL = (120, 126, 134)
CORD = (190, 60, 50)
SHEET = (70, 118, 170)
THIN = 0.004
"""Drawn half thickness of a sheet and radius of a cord, of the robot's size."""
ROUND = 8


def solid_mesh(solid: Solid) -> Mesh:
    """Return the mesh of a solid.

    Parameters
    ----------
    solid : Solid
        The solid.

    Returns
    -------
    Mesh
        A mesh in the frame of its part.
    """
    x, y, z = solid.size
    match solid.kind:
        case "box":
            mesh = block(x, y, z)
        case "cylinder":
            mesh = move_mesh(cylinder(1.0, z), scale=(0.5 * x, 0.5 * y, 1.0))
        case "mesh":
            mesh = np.array(solid.vertices, dtype=float), np.array(solid.triangles, dtype=np.int64)
        case "rotor":
            mesh = propeller(0.5 * max(x, y), 2)
        case _:
            mesh = ellipsoid(x, y, z)
    return move_mesh(mesh, solid.centre, solid.quaternion)


class BodiesVisual:
    """Look of a shape that a plant declares (rtmms.plant.PlantDescription), or of several such shapes.

    Parameters
    ----------
    plant : PlantInfo
        The plant.
    shape : Shape
        Its shape.
    frames, skins : Mapping[str, Pose], Sequence[Array]
        Frames and points with all joints at 0.
    """

    ground = None

    def __init__(self, plant: PlantInfo, shape: Shape, frames: Mapping[str, Pose], skins: Sequence[Array]) -> None:
        self._shape = shape
        order = ["", *frames]
        size = _size(shape, frames, skins)
        self.scene = scene_of(plant)
        self._thin = THIN * size
        built = list(self._solids(order, frames))
        self._sheets = [k for k, skin in enumerate(shape.skins) if skin.triangles]
        self._cords = [(k, strip) for k, skin in enumerate(shape.skins) if not skin.triangles for strip in skin.lines]
        for k in self._sheets:
            skin = shape.skins[k]
            faces = np.array(skin.triangles).reshape(-1, 3)
            built.append(Surface(skin.name, _both(faces, len(skins[k])), SHEET))
        for k, strip in self._cords:
            built.append(Surface(f"{shape.skins[k].name}_{strip[0]}", tiles(len(strip), ROUND, around=True), CORD))
        self.surfaces = tuple(built)

    def _solids(self, order: Sequence[str], frames: Mapping[str, Pose]) -> Iterator[Surface]:
        hub = np.mean([s.centre for s in self._shape.solids if not s.frame and s.kind != "rotor"] or [HOME[0]], axis=0)
        for k, solid in enumerate(self._shape.solids):
            number = order.index(solid.frame) if solid.frame in order else 0
            r, g, b = solid.colour or PAINT[number % len(PAINT)]
            colour: Colour = (r, g, b)
            yield fixed_surface(
                f"{k}.{solid.name}", solid_mesh(solid), colour if solid.kind != "rotor" else (52, 58, 68), solid.frame
            )
            if solid.kind == "rotor":
                radius = 0.5 * max(solid.size)
                disc = move_mesh(cylinder(radius, 0.02 * radius), solid.centre, solid.quaternion)
                yield fixed_surface(f"{k}.{solid.name}_disc", disc, (150, 170, 190), solid.frame, opacity=0.18)
                if not solid.frame and np.linalg.norm(np.array(solid.centre) - hub) > radius:
                    yield fixed_surface(f"{k}.{solid.name}_beam", tube([hub, solid.centre], 0.07 * radius, 10), METAL)

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """Return the vertices of the bending surfaces in a state.

        Parameters
        ----------
        frames : Mapping[str, Pose]
            Frames of the robot's shape, from `Shape.frames`.
        skins : Sequence[Array]
            Points of its skins, from `Shape.points`.

        Returns
        -------
        tuple[Array, ...]
            (n, 3) m, body frame, of each bending surface, in their order.
        """
        result = []
        for k in self._sheets:
            faces = np.array(self._shape.skins[k].triangles).reshape(-1, 3)
            out = self._thin * _point_normals(skins[k], faces)
            result.append(np.concatenate([skins[k] + out, skins[k] - out]))
        for k, strip in self._cords:
            result.append(_cord(skins[k][list(strip)], self._thin))
        return tuple(result)


def _both(faces: Faces, count: int) -> Faces:
    """Return the two sides of a sheet, and its rim: edges of a single triangle."""
    edges: dict[tuple[int, int], int] = {}
    for a, b, c in faces.tolist():
        for edge in ((a, b), (b, c), (c, a)):
            edges[edge] = 1
    rim = [corner for a, b in edges if (b, a) not in edges for corner in ([a, a + count, b], [b, a + count, b + count])]
    return np.concatenate([faces, faces[:, ::-1] + count, np.array(rim).reshape(-1, 3)]).astype(np.int64)


def _point_normals(points: Array, faces: Faces) -> Array:
    a, b, c = (points[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    sums = np.zeros_like(points)
    for k in range(3):
        np.add.at(sums, faces[:, k], across)
    return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))


def _cord(line: Array, radius: float) -> Array:
    """Return (n ROUND, 3): rings round a line, square to it."""
    t = np.gradient(line, axis=0)
    t /= np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-12)
    helper = np.eye(3)[np.argmin(np.abs(t), axis=1)]
    side = np.cross(helper, t)
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12)
    up = np.cross(t, side)
    angle = 2.0 * np.pi * np.arange(ROUND) / ROUND
    rings = line[:, None] + radius * (
        np.cos(angle)[None, :, None] * side[:, None] + np.sin(angle)[None, :, None] * up[:, None]
    )
    return np.asarray(rings.reshape(-1, 3))


def _size(shape: Shape, frames: Mapping[str, Pose], skins: Sequence[Array]) -> float:
    reach = [float(np.abs(points).max()) for points in skins if len(points)]
    reach += [
        float(np.abs(at(frames.get(solid.frame, HOME), solid.centre)).max()) + 0.5 * max(solid.size)
        for solid in shape.solids
    ]
    return min(max(2.0 * max(reach, default=0.5), 1e-6), 1e6)


def scene_of(plant: PlantInfo) -> str:
    """Return the scene of a plant: the one that it declares (`scene` of its shape), or its fluid by its parameters.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    str
        One of SCENES.
    """
    scene = plant.shape.get("scene") if isinstance(plant.shape, Mapping) else None
    if scene in SCENES:
        return str(scene)
    for name, value in plant.parameters.items():
        if "density" in name and isinstance(value, int | float):
            if "water" in name or ("fluid" in name and value > 100.0 and _immersed(plant.parameters)):
                return WATER
            if "air" in name:
                return AIR
    return GROUND


def _immersed(drawing: Mapping[str, Any]) -> bool:
    """Return whether water acts on a URDF, by its parameters."""
    return bool(drawing.get("drag") or drawing.get("added_mass") or drawing.get("buoyancy", "none") != "none")
