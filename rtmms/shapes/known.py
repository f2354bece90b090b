"""The robots that have a shape of their own: one file each beside this one, and an entry here.

Others tell what is to be drawn of them (rtmms.plant.Shaped), as every tree does. Of a robot that does neither viewers
show where its body is, and no more.
"""

from __future__ import annotations

from collections.abc import Callable

from rtmms.errors import UnknownNameError
from rtmms.shapes.bodies import BodiesShape
from rtmms.shapes.continuous import ContinuousEelShape
from rtmms.shapes.eel import EelShape
from rtmms.shapes.fish import FishShape
from rtmms.shapes.manta import MantaShape
from rtmms.shapes.modal_moth import ModalMothShape
from rtmms.shapes.moth import MothShape
from rtmms.shapes.shape import Shape
from rtmms.shapes.shape_robots import PARTS, ShapeRobotShape
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
    for build in (SHAPES.get(plant.robot), BodiesShape if plant.shape else None):
        if build is None:
            continue
        try:
            shape = build(plant)
        except BROKEN:  # another plant of that name, or a broken drawing
            continue
        if known.issuperset(shape.needs):
            return shape
    return None
