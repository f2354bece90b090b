"""The surfaces of each robot by name, and several robots as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from rtmms.base.spatial import quaternion_matrix
from rtmms.shapes.craft import CRAFT
from rtmms.shapes.known import BROKEN
from rtmms.shapes.manta_surface import MantaVisual
from rtmms.shapes.moth_surfaces import ModalMothVisual, MothVisual
from rtmms.shapes.reduced_surfaces import REDUCED, CatVisual
from rtmms.shapes.shape import HOME, Pose, Shape, at, multiply
from rtmms.shapes.surface import Array, Surface, Visual
from rtmms.shapes.swimmer_surfaces import ContinuousEelVisual, EelVisual, FishVisual
from rtmms.shapes.together import BODY, TogetherShape, of_one
from rtmms.shapes.visual_bodies import BodiesVisual
from rtmms.shapes.wheeled_surfaces import WHEELED, SnakeVisual
from rtmms.wire.protocol.state import PlantInfo

# Several robots' visuals as one, in the frame of the first one's body.


TINTS = ((1.0, 1.0, 1.0), (1.0, 0.72, 0.55), (0.62, 1.0, 0.72), (1.0, 0.9, 0.5), (0.85, 0.65, 1.0))
"""Of the colours of each robot in turn, so that they can be told apart."""


class TogetherVisual:
    """Parts are called ROBOT.part, as in the shape."""

    def __init__(self, shape: TogetherShape, visuals: Mapping[str, Visual | None]) -> None:
        self._visuals = {name: visual for name, visual in visuals.items() if visual is not None}
        kinds = [visual.scene for visual in self._visuals.values()]
        self.scene = kinds[0] if kinds else "ground"
        self.ground = next((v.ground for v in self._visuals.values() if v.ground is not None), None)
        self._counts = shape.counts
        made: list[Surface] = []
        for k, (name, visual) in enumerate(self._visuals.items()):
            tint = np.array(TINTS[k % len(TINTS)])
            for one in visual.surfaces:
                r, g, b = (int(c) for c in np.clip(np.array(one.colour) * tint, 0, 255))
                made.append(
                    replace(one, name=f"{name}.{one.name}", frame=f"{name}.{one.frame or BODY}", colour=(r, g, b))
                )
        self.surfaces = tuple(made)

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        found: list[Array] = []
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
            own = {
                part.removeprefix(f"{name}."): (at(back, tuple(np.array(p) - np.array(place))), multiply(back[1], q))
                for part, (p, q) in frames.items()
                if part.startswith(f"{name}.")
            }
            found += [points @ turned.T + np.array(place) for points in visual.bent(own, home)]
        return tuple(found)


# The robots that have a look of their own, and what others get from their shapes.


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
