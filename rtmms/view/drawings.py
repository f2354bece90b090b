"""Drawing of a plant's robot: the one that comes with the robot, or the bodies that the plant exposes.

A robot of ours has its drawing in `rtmms/robots/NAME_drawing.py`. Any other plant may expose its bodies (`shape`,
rtmms.plant.PlantDescription), as every tree does. For a robot without either, viewers show only the pose of
its body.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from math import prod

from rtmms.base.errors import UnknownNameError
from rtmms.plant.drawing import Drawing
from rtmms.view.bodies import exposed_drawing
from rtmms.view.shape import DrawingShape, Shape
from rtmms.view.together import TogetherShape, outputs_of_robot
from rtmms.wire.protocol.received_state import PlantInfo

BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, UnknownNameError)
"""Faults of a drawing for another robot's parameters or outputs, or for a malformed table."""


def shape_of(plant: PlantInfo) -> Shape | None:
    """Return the shape of the plant's robot.

    Neither a plant nor a kernel is built, as a log may have named the robot.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    Shape | None
        None where it is unknown, or the plant exposes too little.
    """
    known = {channel.name for channel in plant.outputs}
    if plant.robots:
        together = TogetherShape({name: shape_of(outputs_of_robot(plant, name)) for name in plant.robots})
        return together if known.issuperset(together.needs) else None
    for find in (robot_drawing, exposed_drawing):
        try:
            drawing = find(plant)
            if drawing is None:
                continue
            shape = DrawingShape(drawing, plant)
            if known.issuperset(shape.needs):
                _try(shape, plant)
                return shape
        except BROKEN:  # another plant of that name, or a broken drawing
            continue
    return None


def robot_drawing(plant: PlantInfo) -> Drawing | None:
    """Return the drawing that comes with a robot of ours, by its name.

    The module is in our own package and loads no kernels. A drawing without skins and solids is over the bodies that
    the plant exposes.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    Drawing | None
        None for other robots.
    """
    module = f"rtmms.robots.{plant.robot}_drawing"
    if not plant.robot.isidentifier() or find_spec(module) is None:
        return None
    _refuse_many(plant)
    drawing: Drawing = import_module(module).draw(plant.parameters)
    if drawing.skins or drawing.solids:
        return drawing
    bodies = exposed_drawing(plant)
    return bodies and replace(drawing, frames=bodies.frames, skins=bodies.skins, solids=bodies.solids,
                              outputs=bodies.outputs)  # fmt: skip


COUNTS = ("joints", "links", "chains", "sections", "modes")
MAX_COUNT = 1000
"""Largest value of each count: drawings of foreign descriptions stay small."""


def _refuse_many(plant: PlantInfo) -> None:
    """Raise ValueError for a count that is no number, or too large."""
    for name in COUNTS:
        value = plant.parameters.get(name, 0)
        if not isinstance(value, int | float) or not value <= MAX_COUNT:
            raise ValueError(f"{name}: expected a number of at most {MAX_COUNT}, got {value!r:.60}")


def _try(shape: Shape, plant: PlantInfo) -> None:
    """Draw once, and raise one of BROKEN where the outputs have other sizes than the shape needs."""
    outputs = {channel.name: [0.0] * prod(channel.shape) for channel in plant.outputs if channel.name in shape.needs}
    if "quaternion" in outputs:
        outputs["quaternion"] = [1.0, 0.0, 0.0, 0.0]
    frames = shape.frames(outputs)
    skins = shape.points(outputs)
    for skin, points in zip(shape.skins, skins, strict=True):
        last = max((*skin.triangles, *(k for strip in skin.lines for k in strip)), default=-1)
        if last >= len(points):
            raise ValueError(f"{skin.name}: expected only points that exist, got point {last} of {len(points)}")
    for solid in shape.solids:
        if solid.frame and solid.frame not in frames:
            raise ValueError(f"{solid.name}: there is no frame '{solid.frame}'")
