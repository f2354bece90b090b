"""Outline of any robot with a shape, for figures (rtmms.view.robot_panels.OutlineFunction)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtmms.base.attitude import HOME, Pose
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.description import describe_plant, unwrapped
from rtmms.plant.protocol import Plant
from rtmms.view.drawings import shape_of
from rtmms.view.figures import takes_outline
from rtmms.view.robot_panels import ColouredSurface, Surfaces
from rtmms.view.shape import Shape
from rtmms.view.surface import Visual
from rtmms.view.visuals import visual_of
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.wire.protocol.welcome import plain_parameters


class RobotOutline:
    """Outline of a robot, in its colours.

    Parameters
    ----------
    shape : Shape
        Its shape.
    visual : Visual
        Its look.
    """

    def __init__(self, shape: Shape, visual: Visual) -> None:
        self._shape, self._visual, self.needs = shape, visual, shape.needs

    def __call__(self, outputs: Mapping[str, Any]) -> Surfaces:
        """Return the surfaces in a state, see rtmms.view.robot_panels.OutlineFunction."""
        flat = {name: np.ravel(outputs[name]).tolist() for name in self.needs}
        skins = [np.array(points, dtype=float).reshape(-1, 3) for points in self._shape.points(flat)]
        return Surfaces(_looks(self._visual, self._shape.frames(flat), skins))


def _looks(visual: Visual, frames: Mapping[str, Pose], skins: Sequence[Any]) -> list[ColouredSurface]:
    bent, result = iter(visual.bent(frames, skins)), []
    for surface in visual.surfaces:
        if surface.vertices is None:
            vertices = next(bent)
        else:
            place, attitude = frames.get(surface.frame, HOME)
            vertices = surface.vertices @ quaternion_matrix(np.array(attitude)).T + np.array(place)
        if surface.opacity > 0.5:
            r, g, b = surface.colour
            result.append(ColouredSurface(vertices[surface.faces], (r / 255.0, g / 255.0, b / 255.0)))
    return result


def figure_outline(robot: str, plant: Plant) -> RobotOutline | None:
    """Return the outline of the plant itself, within its sensors and faults.

    Parameters
    ----------
    robot : str
        Name of the robot.
    plant : Plant
        The plant.

    Returns
    -------
    RobotOutline | None
        None where its shape is unknown, or its figure shows none.
    """
    if not takes_outline(robot, plant):
        return None
    inner_plant = unwrapped(plant)
    info = PlantInfo(
        robot,
        inner_plant.dt,
        "",
        None,
        None,
        inner_plant.actuators,
        inner_plant.outputs,
        parameters=plain_parameters(inner_plant),
        shape=describe_plant(inner_plant).shape() or {},
    )
    shape = shape_of(info)
    visual = visual_of(info, shape)
    return None if shape is None or visual is None or not visual.surfaces else RobotOutline(shape, visual)
