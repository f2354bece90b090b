"""Any robot that has a shape, as figures draw it (rtmms.report.outline.Outline)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rtmms.plant import Plant, Shaped, bare
from rtmms.report.figures import takes_outline
from rtmms.report.outline import Surfaces
from rtmms.shapes.faces import solid_faces
from rtmms.shapes.known import shape_of
from rtmms.shapes.shape import HOME, Shape
from rtmms.wire.protocol.messages import plain_parameters
from rtmms.wire.protocol.state import PlantInfo

FEW_LINES = 4
"""Lines of a skin, about: a figure's robots are small."""


class RobotOutline:
    """Skins as their triangles, solids as flat faces, and some of the skins' lines."""

    def __init__(self, shape: Shape) -> None:
        self._shape, self.needs = shape, shape.needs

    def __call__(self, outputs: Mapping[str, Any]) -> Surfaces:
        shape, found = self._shape, Surfaces([], [], [])
        told = {name: np.ravel(outputs[name]).tolist() for name in self.needs}
        for skin, listed in zip(shape.skins, shape.points(told), strict=True):
            points = np.array(listed, dtype=float).reshape(-1, 3)
            if skin.triangles:
                found.skins.extend(points[np.array(skin.triangles).reshape(-1, 3)])
            found.lines.extend(points[list(strip)] for strip in skin.lines[:: max(1, len(skin.lines) // FEW_LINES)])
        frames = shape.frames(told)
        for solid in shape.solids:
            found.solids.extend(solid_faces(solid, frames.get(solid.frame, HOME)))
        return found


def figure_outline(robot: str, plant: Plant) -> RobotOutline | None:
    """Of the plant itself, within its sensors and faults; None where nothing is known of its shape, and where its
    figure shows none."""
    if not takes_outline(robot, plant):
        return None
    own = bare(plant)
    told = PlantInfo(
        robot, own.dt, "", None, None, own.actuators, own.outputs, parameters=plain_parameters(own),
        shape=own.shape if isinstance(own, Shaped) else {},
    )  # fmt: skip
    shape = shape_of(told)
    return None if shape is None or not (shape.skins or shape.solids) else RobotOutline(shape)
