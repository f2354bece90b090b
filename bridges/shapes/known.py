"""The robots that have a shape: one file each beside this one, and an entry here.

A robot that is not known has none: viewers then show where its body is, and no more. A third party's gets one by an
entry in SHAPES.
"""

from __future__ import annotations

from collections.abc import Callable

from rtmms.wire.protocol.state import PlantInfo
from rtmms_bridges.shapes.eel import EelShape
from rtmms_bridges.shapes.fish import FishShape
from rtmms_bridges.shapes.manta import MantaShape
from rtmms_bridges.shapes.modal_moth import ModalMothShape
from rtmms_bridges.shapes.moth import MothShape
from rtmms_bridges.shapes.shape import Shape
from rtmms_bridges.shapes.shape_robots import PARTS, ShapeRobotShape
from rtmms_bridges.shapes.wheeled import PLATES, WheeledShape

SHAPES: dict[str, Callable[[PlantInfo], Shape]] = {
    "manta": MantaShape, "eel": EelShape, "fish": FishShape, "moth": MothShape, "modal_moth": ModalMothShape,
    **dict.fromkeys(PLATES, WheeledShape),
    **dict.fromkeys(PARTS, ShapeRobotShape),
}  # fmt: skip


def shape_of(plant: PlantInfo) -> Shape | None:
    """The shape of the plant's robot; None where it is not known, or the plant tells too little."""
    build = SHAPES.get(plant.robot)
    if build is None:
        return None
    try:
        shape = build(plant)
    except (KeyError, TypeError, ValueError):  # another plant of that name, or one that keeps its parameters to itself
        return None
    known = {channel.name for channel in plant.outputs}
    return shape if shape is not None and known.issuperset(shape.needs) else None
