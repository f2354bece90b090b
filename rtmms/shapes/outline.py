"""Any robot that has a shape, as figures draw it (rtmms.report.robot_panels.Outline)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtmms.base.attitude import HOME, Pose
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.protocol import Plant, bare, describe_plant
from rtmms.report.figures import takes_outline
from rtmms.report.robot_panels import Look, Surfaces
from rtmms.shapes.drawings import shape_of
from rtmms.shapes.faces import solid_faces
from rtmms.shapes.shape import Shape
from rtmms.shapes.surface import Visual
from rtmms.shapes.visuals import visual_of
from rtmms.wire.protocol.messages import plain_parameters
from rtmms.wire.protocol.state import PlantInfo

FEW_LINES = 4
"""Lines of a skin, about: a figure's robots are small."""


class RobotOutline:
    """What it looks like, in its colours; of a robot without a visual the triangles of its skins, its solids as flat
    faces, and some of the skins' lines."""

    def __init__(self, shape: Shape, visual: Visual | None = None) -> None:
        self._shape, self._visual, self.needs = shape, visual, shape.needs

    def __call__(self, outputs: Mapping[str, Any]) -> Surfaces:
        shape, found = self._shape, Surfaces([], [], [])
        told = {name: np.ravel(outputs[name]).tolist() for name in self.needs}
        frames = shape.frames(told)
        skins = [np.array(listed, dtype=float).reshape(-1, 3) for listed in shape.points(told)]
        if self._visual is not None:
            return Surfaces([], [], [], _looks(self._visual, frames, skins))
        for skin, points in zip(shape.skins, skins, strict=True):
            if skin.triangles:
                found.skins.extend(points[np.array(skin.triangles).reshape(-1, 3)])
            found.lines.extend(points[list(strip)] for strip in skin.lines[:: max(1, len(skin.lines) // FEW_LINES)])
        for solid in shape.solids:
            found.solids.extend(solid_faces(solid, frames.get(solid.frame, HOME)))
        return found


def _looks(visual: Visual, frames: Mapping[str, Pose], skins: Sequence[Any]) -> list[Look]:
    bent, found = iter(visual.bent(frames, skins)), []
    for one in visual.surfaces:
        if one.vertices is None:
            vertices = next(bent)
        else:
            place, attitude = frames.get(one.frame, HOME)
            vertices = one.vertices @ quaternion_matrix(np.array(attitude)).T + np.array(place)
        if one.opacity > 0.5:
            r, g, b = one.colour
            found.append(Look(vertices[one.faces], (r / 255.0, g / 255.0, b / 255.0)))
    return found


def figure_outline(robot: str, plant: Plant) -> RobotOutline | None:
    """Of the plant itself, within its sensors and faults; None where nothing is known of its shape, and where its
    figure shows none."""
    if not takes_outline(robot, plant):
        return None
    own = bare(plant)
    told = PlantInfo(
        robot, own.dt, "", None, None, own.actuators, own.outputs, parameters=plain_parameters(own),
        shape=describe_plant(own).shape() or {},
    )  # fmt: skip
    shape = shape_of(told)
    return None if shape is None or not (shape.skins or shape.solids) else RobotOutline(shape, visual_of(told, shape))
