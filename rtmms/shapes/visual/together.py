"""Several robots' visuals as one, in the frame of the first one's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rtmms.shapes.rotations import multiply
from rtmms.shapes.shape import HOME, Pose, at
from rtmms.shapes.together import BODY, TogetherShape
from rtmms.shapes.visual.surface import Array, Surface, Visual
from rtmms.spatial import quaternion_matrix

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
