"""The robots that have a shape of their own: one file each beside this one, and an entry here.

Others tell what is to be drawn of them (rtmms.plant.protocol.PlantDescription), as every tree does. Of a robot that
does neither viewers show where its body is, and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from rtmms.base.errors import UnknownNameError
from rtmms.shapes.bodies import BodiesShape
from rtmms.shapes.manta import MantaShape
from rtmms.shapes.moths import ModalMothShape, MothShape
from rtmms.shapes.reduced import PARTS, ShapeRobotShape
from rtmms.shapes.shape import Shape
from rtmms.shapes.swimmers import ContinuousEelShape, EelShape, FishShape
from rtmms.shapes.together import TogetherShape, of_one
from rtmms.shapes.wheeled import PLATES, WheeledShape
from rtmms.wire.protocol.state import PlantInfo

SHAPES: dict[str, Callable[[PlantInfo], Shape]] = {
    "manta": MantaShape, "eel": EelShape, "moth": MothShape, "continuous_eel": ContinuousEelShape,
    "fish": FishShape, "modal_moth": ModalMothShape,
    **dict.fromkeys(PLATES, WheeledShape), **dict.fromkeys(PARTS, ShapeRobotShape),
}  # fmt: skip


BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, UnknownNameError)


def shape_of(plant: PlantInfo) -> Shape | None:
    """The shape of the plant's robot; None where it is not known, or the plant tells too little."""
    known = {channel.name for channel in plant.outputs}
    if plant.robots:
        together = TogetherShape({name: shape_of(of_one(plant, name)) for name in plant.robots})
        return together if known.issuperset(together.needs) else None
    for build in (SHAPES.get(plant.robot), BodiesShape if plant.shape else None):
        if build is None:
            continue
        try:
            _refuse_many(plant)
            shape = build(plant)
            if known.issuperset(shape.needs):
                _try(shape, plant)
                return shape
        except BROKEN:  # another plant of that name, or a broken drawing
            continue
    return None


COUNTS = ("joints", "links", "chains", "sections", "modes")
MOST = 1000
"""Of each of them: drawings of what others say of a robot stay small."""


def _refuse_many(plant: PlantInfo) -> None:
    for name in COUNTS:
        value = plant.parameters.get(name, 0)
        if isinstance(value, int | float) and not value <= MOST:
            raise ValueError(f"{name}: expected at most {MOST}, got {value}")


def _try(shape: Shape, plant: PlantInfo) -> None:
    """One of BROKEN where the outputs have not the sizes from which the shape is drawn."""
    outputs = {channel.name: [0.0] * prod(channel.shape) for channel in plant.outputs if channel.name in shape.needs}
    if "quaternion" in outputs:
        outputs["quaternion"] = [1.0, 0.0, 0.0, 0.0]
    frames = shape.frames(outputs)
    skins = shape.points(outputs)
    for skin, points in zip(shape.skins, skins, strict=True):
        last = max((*skin.triangles, *(k for strip in skin.lines for k in strip)), default=-1)
        if last >= len(points):
            raise ValueError(f"{skin.name}: expected a point {last}, got {len(points)}")
    for solid in shape.solids:
        if solid.frame and solid.frame not in frames:
            raise ValueError(f"{solid.name}: there is no frame '{solid.frame}'")
