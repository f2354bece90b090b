"""Looks of robots: the surfaces of a drawing, or of skins and solids; several robots as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from rtmms.base.attitude import HOME, Pose, at, multiply
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import Part
from rtmms.view.bending import bending_surfaces
from rtmms.view.drawings import BROKEN
from rtmms.view.shape import DrawingShape, Shape
from rtmms.view.surface import Array, Surface, Visual, fixed_surface, generate_mesh, seen_from
from rtmms.view.together import BODY, TogetherShape, outputs_of_robot
from rtmms.view.visual_bodies import BodiesVisual, scene_of
from rtmms.wire.protocol.received_state import PlantInfo

# Several robots' visuals as one, in the frame of the first one's body.


TINTS = ((1.0, 1.0, 1.0), (1.0, 0.72, 0.55), (0.62, 1.0, 0.72), (1.0, 0.9, 0.5), (0.85, 0.65, 1.0))
"""Factors on the colours of each robot in turn, so that they can be distinguished."""


class TogetherVisual:
    """Look of several robots; parts are called ROBOT.part, as in the shape.

    Parameters
    ----------
    shape : TogetherShape
        Their shape.
    visuals : Mapping[str, Visual | None]
        Look of each robot by its name, None where it is unknown.
    """

    def __init__(self, shape: TogetherShape, visuals: Mapping[str, Visual | None]) -> None:
        self._visuals = {name: visual for name, visual in visuals.items() if visual is not None}
        kinds = [visual.scene for visual in self._visuals.values()]
        self.scene = kinds[0] if kinds else "ground"
        self.ground = next((v.ground for v in self._visuals.values() if v.ground is not None), None)
        self._counts = shape.counts
        built: list[Surface] = []
        for k, (name, visual) in enumerate(self._visuals.items()):
            tint = np.array(TINTS[k % len(TINTS)])
            for surface in visual.surfaces:
                r, g, b = (int(c) for c in np.clip(np.array(surface.colour) * tint, 0, 255))
                built.append(
                    replace(
                        surface,
                        name=f"{name}.{surface.name}",
                        frame=f"{name}.{surface.frame or BODY}",
                        colour=(r, g, b),
                    )
                )
        self.surfaces = tuple(built)

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
        result: list[Array] = []
        first = 0
        for name, count in self._counts.items():
            own_skins, first = skins[first : first + count], first + count
            visual = self._visuals.get(name)
            if visual is None:
                continue
            place, attitude = frames.get(f"{name}.{BODY}", HOME)
            turned = quaternion_matrix(np.array(attitude))
            home = [(points - np.array(place)) @ turned for points in own_skins]
            back: Pose = ((0.0, 0.0, 0.0), (attitude[0], -attitude[1], -attitude[2], -attitude[3]))
            robot_frames = {
                part.removeprefix(f"{name}."): (at(back, tuple(np.array(p) - np.array(place))), multiply(back[1], q))
                for part, (p, q) in frames.items()
                if part.startswith(f"{name}.")
            }
            result += [points @ turned.T + np.array(place) for points in visual.bent(robot_frames, home)]
        return tuple(result)


# A robot's look by its drawing, or else by its skins and solids.


class DrawingVisual:
    """Surfaces of a drawing: those that bend, then the parts.

    Parameters
    ----------
    shape : DrawingShape
        Shape with the drawing.
    scene : str
        Environment of the robot.
    frames, skins : Mapping[str, Pose], Sequence[Array]
        Frames and points of its shape with all joints at 0.
    """

    def __init__(self, shape: DrawingShape, scene: str, frames: Mapping[str, Pose], skins: Sequence[Array]) -> None:
        self.drawing = drawing = shape.drawing
        self.scene, self.ground = scene, drawing.ground
        self._names = [skin.name for skin in shape.skins]
        neutral = dict(zip(self._names, skins, strict=True))
        self._bending = [bending_surfaces(data, drawing, neutral) for data in drawing.bending]
        parts = [_part(part, frames) for part in drawing.parts]
        self.surfaces = (*(surface for item in self._bending for surface in item.surfaces), *parts)

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
        named = dict(zip(self._names, skins, strict=True))
        return tuple(vertices for item in self._bending for vertices in item.bent(frames, named))


def _part(part: Part, frames: Mapping[str, Pose]) -> Surface:
    mesh = generate_mesh(part.mesh)
    if part.at_rest:
        mesh = seen_from(frames[part.frame], mesh)
    return fixed_surface(part.name, mesh, part.colour, part.frame, opacity=part.opacity, gloss=part.gloss)


MAX_COORDINATE_M = 1e9
"""Largest coordinate of a robot that has a look, m."""


def visual_of(plant: PlantInfo, shape: Shape | None) -> Visual | None:
    """Return the look of the robot of a shape.

    Parameters
    ----------
    plant : PlantInfo
        The plant, with its own outputs under their own names, as for `shape_of`.
    shape : Shape | None
        Its shape.

    Returns
    -------
    Visual | None
        None without a shape, or for impossible points.
    """
    if shape is None:
        return None
    if isinstance(shape, TogetherShape):
        return TogetherVisual(
            shape, {name: visual_of(outputs_of_robot(plant, name), shape) for name, shape in shape.shapes.items()}
        )
    frames, skins = _at_rest(plant, shape)
    if any(len(points) and not np.abs(points).max() < MAX_COORDINATE_M for points in skins):
        return None
    if isinstance(shape, DrawingShape) and (shape.drawing.bending or shape.drawing.parts):
        try:
            drawn = DrawingVisual(shape, shape.drawing.scene or scene_of(plant), frames, skins)
            _try(drawn, frames, skins)
            return drawn
        except BROKEN:  # another plant of that name
            pass
    try:
        visual = BodiesVisual(plant, shape, frames, skins)
        _try(visual, frames, skins)
    except BROKEN:
        return None
    return visual


def _at_rest(plant: PlantInfo, shape: Shape) -> tuple[Mapping[str, Pose], list[Array]]:
    """Return frames and points with all joints at 0, and all points of outputs at the origin."""
    sizes = {channel.name: channel.shape for channel in plant.outputs}
    rest_outputs: dict[str, Any] = {name: [0.0] * prod(sizes[name]) for name in shape.needs}
    if "quaternion" in rest_outputs:
        rest_outputs["quaternion"] = [1.0, 0.0, 0.0, 0.0]
    skins = [np.array(points, dtype=float).reshape(-1, 3) for points in shape.points(rest_outputs)]
    return shape.frames(rest_outputs), skins


def _try(visual: Visual, frames: Mapping[str, Pose], skins: Sequence[Array]) -> None:
    """Raise ValueError where faces and points do not fit."""
    bent = [surface for surface in visual.surfaces if surface.vertices is None]
    for surface, vertices in zip(bent, visual.bent(frames, skins), strict=True):
        if len(surface.faces) and surface.faces.max() >= len(vertices):
            raise ValueError(
                f"{surface.name}: expected only points that exist, got point {surface.faces.max()} of {len(vertices)}"
            )
    for surface in visual.surfaces:
        if surface.vertices is not None and surface.frame and surface.frame not in frames:
            raise ValueError(f"{surface.name}: there is no frame '{surface.frame}'")
