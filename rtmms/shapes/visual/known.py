"""The robots that have a look of their own, and what others get from their shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from rtmms.shapes.known import BROKEN
from rtmms.shapes.shape import Pose, Shape
from rtmms.shapes.together import TogetherShape, of_one
from rtmms.shapes.visual.bodies import BodiesVisual
from rtmms.shapes.visual.craft import CRAFT
from rtmms.shapes.visual.manta import MantaVisual
from rtmms.shapes.visual.moths import ModalMothVisual, MothVisual
from rtmms.shapes.visual.reduced import REDUCED, CatVisual
from rtmms.shapes.visual.surface import Array, Visual
from rtmms.shapes.visual.swimmers import ContinuousEelVisual, EelVisual, FishVisual
from rtmms.shapes.visual.together import TogetherVisual
from rtmms.shapes.visual.wheeled import WHEELED, SnakeVisual
from rtmms.wire.protocol.state import PlantInfo

LARGEST = 1e9
"""m: of a robot that has a look."""

Frames = Mapping[str, Pose]
Build = Callable[[PlantInfo, Frames, Sequence[Array]], Visual]


def _of_plant(build: Callable[[PlantInfo], Visual], plant: PlantInfo, frames: Frames, skins: Sequence[Array]) -> Visual:
    return build(plant)


def _of_skins(
    build: Callable[[PlantInfo, Sequence[Array]], Visual], plant: PlantInfo, frames: Frames, skins: Sequence[Array]
) -> Visual:
    return build(plant, skins)


def _of_parameters(
    build: Callable[[Mapping[str, Any]], Visual], plant: PlantInfo, frames: Frames, skins: Sequence[Array]
) -> Visual:
    return build(plant.parameters)


def _of_frames(
    build: Callable[[Mapping[str, Any], Frames], Visual], plant: PlantInfo, frames: Frames, skins: Sequence[Array]
) -> Visual:
    return build(plant.parameters, frames)


VISUALS: dict[str, Build] = {
    "manta": partial(_of_plant, MantaVisual),
    "moth": partial(_of_plant, MothVisual),
    "modal_moth": partial(_of_plant, ModalMothVisual),
    "snake": partial(_of_plant, SnakeVisual),
    "cat": partial(_of_plant, CatVisual),
    "eel": partial(_of_skins, EelVisual),
    "continuous_eel": partial(_of_skins, ContinuousEelVisual),
    "fish": partial(_of_skins, FishVisual),
    **{name: partial(_of_parameters, build) for name, build in (WHEELED | REDUCED).items()},
    **{name: partial(_of_frames, build) for name, build in CRAFT.items()},
}


def visual_of(plant: PlantInfo, shape: Shape | None) -> Visual | None:
    """How the robot of a shape looks; None without a shape.

    plant   with its own outputs under their own names, as `shape_of` takes it
    """
    if shape is None:
        return None
    if isinstance(shape, TogetherShape):
        return TogetherVisual(shape, {name: visual_of(of_one(plant, name), one) for name, one in shape.shapes.items()})
    frames, skins = _at_rest(plant, shape)
    if any(len(points) and not np.abs(points).max() < LARGEST for points in skins):
        return None
    build = VISUALS.get(plant.robot)
    if build is not None:
        try:
            visual = build(plant, frames, skins)
            _try(visual, frames, skins)
            return visual
        except BROKEN:  # another plant of that name
            pass
    try:
        visual = BodiesVisual(plant, shape, frames, skins)
        _try(visual, frames, skins)
    except BROKEN:
        return None
    return visual


def _at_rest(plant: PlantInfo, shape: Shape) -> tuple[Frames, list[Array]]:
    """With all joints at 0; of a robot that outputs its points, those of a straight line towards its tail."""
    sizes = {channel.name: channel.shape for channel in plant.outputs}
    told: dict[str, Any] = {name: [0.0] * prod(sizes[name]) for name in shape.needs}
    if "quaternion" in told:
        told["quaternion"] = [1.0, 0.0, 0.0, 0.0]
    if "centreline" in told:
        n = prod(sizes["centreline"]) // 3
        length = float(plant.parameters.get("length_m", 1.0))
        told["centreline"] = [x for k in range(n) for x in (-length * k / max(n - 1, 1), 0.0, 0.0)]
    skins = [np.array(points, dtype=float).reshape(-1, 3) for points in shape.points(told)]
    return shape.frames(told), skins


def _try(visual: Visual, frames: Frames, skins: Sequence[Array]) -> None:
    """ValueError where faces and points do not fit."""
    bent = [one for one in visual.surfaces if one.vertices is None]
    for surface, vertices in zip(bent, visual.bent(frames, skins), strict=True):
        if len(surface.faces) and surface.faces.max() >= len(vertices):
            raise ValueError(f"{surface.name}: expected a point {surface.faces.max()}, got {len(vertices)}")
    for surface in visual.surfaces:
        if surface.vertices is not None and surface.frame and surface.frame not in frames:
            raise ValueError(f"{surface.name}: there is no frame '{surface.frame}'")
