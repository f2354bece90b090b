"""The scene round a robot: water, air, ground or space; where its floor is, how wide its grid, from where it is seen.

Films, stills, the live view and the page take it from here, so that they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10, radians, tan

import numpy as np
import numpy.typing as npt

from rtmms.shapes.visual.surface import AIR, GROUND, SPACE, WATER, Colour

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scenery:
    """Colours of a scene.

    above, far   of the background: at its upper edge; at the horizon, into which the floor fades
    floor, line  of the floor near the robot, and of the lines of its grid
    has_floor    False in space
    text         of what is written over a picture
    """

    above: Colour
    far: Colour
    floor: Colour
    line: Colour
    has_floor: bool = True
    text: Colour = (40, 54, 70)


SCENERIES = {
    WATER: Scenery((150, 214, 226), (50, 122, 158), (158, 188, 172), (116, 156, 152), text=(240, 248, 250)),
    AIR: Scenery((186, 214, 240), (232, 240, 247), (206, 216, 206), (174, 190, 178)),
    GROUND: Scenery((226, 232, 238), (240, 243, 246), (222, 224, 226), (186, 192, 198)),
    SPACE: Scenery((6, 8, 18), (14, 18, 34), (14, 18, 34), (40, 48, 70), has_floor=False, text=(220, 226, 236)),
}
PATH, FORCE, FLOW, PLAN, GHOST, AHEAD, TRIED = (
    (228, 87, 46),
    (214, 40, 40),
    (16, 120, 150),
    (24, 150, 80),
    (150, 96, 190),
    (250, 190, 40),
    (240, 222, 170),
)
"""Of the path, forces, flow, set-points, the estimate, the planned motion, and others that were tried."""
SUN = np.array([0.35, -0.45, 0.82]) / np.linalg.norm([0.35, -0.45, 0.82])
"""Where the light comes from, world."""
VIEW_DEG = 28.0
"""Height of the camera's view."""
FROM = np.array([0.60, -1.0, 0.50]) / np.linalg.norm([0.60, -1.0, 0.50])
"""From where the camera looks at a robot whose x is forward: from ahead, from its right, from above."""
FILLED = (0.78, 0.72)
"""Of a picture's width and height that the robot takes."""

SMOOTH_S, ASTRAY = 1.0, 0.15
"""Over which the camera's own motion is averaged."""


def cell(size: float) -> float:
    """m, of a robot of this size: 1, or 0.1, 0.01 of smaller ones."""
    return float(10.0 ** floor(log10(max(size, 1e-9)) + 1e-9))


def floor_height(scene: str, ground: float | None, start: float, lowest: float, size: float) -> float:
    """m, world: of the floor under a robot, which it never crosses.

    ground   of its visual;  start  z of its body at first;  lowest  z of its lowest point so far, or in the whole run
    """
    if ground is not None:
        return min(start + ground, lowest)
    return lowest - (0.45 if scene == WATER else 0.25) * size


def smoothed(path: Array, time: Array, size: float) -> Array:
    """(n, 3) m: the mean over SMOOTH_S round each instant, shorter at the ends, so that a camera that follows does not
    wag with the body; never further from it than ASTRAY of its size."""
    n = max(1, round(0.5 * SMOOTH_S / max(float(time[-1]) / max(len(time) - 1, 1), 1e-9)))
    sums = np.vstack([np.zeros(3), np.cumsum(path, axis=0)])
    at = np.arange(len(path))
    half = np.minimum(np.minimum(at, len(path) - 1 - at), n)
    off = (sums[at + half + 1] - sums[at - half]) / (2 * half + 1)[:, None] - path
    away = np.linalg.norm(off, axis=1, keepdims=True)
    return np.asarray(path + off * np.minimum(1.0, ASTRAY * size / np.maximum(away, 1e-12)))


def frame(points: Sequence[Array] | Array, aspect: float, towards: Array = FROM) -> tuple[Array, float]:
    """The point to look at and the distance, m, from which all points are seen.

    points   (n, 3) m;  towards  from the robot to the camera;  aspect  width over height of the picture
    """
    cloud = np.concatenate(points) if isinstance(points, Sequence) else points
    middle = 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    up = np.cross(towards, right)
    slope = tan(radians(0.5 * VIEW_DEG))
    for _ in range(3):  # the middle of what is seen, which depends on the distance but little
        off = cloud - middle
        x, y, depth = off @ right, off @ up, off @ towards
        middle = middle + 0.5 * (x.max() + x.min()) * right + 0.5 * (y.max() + y.min()) * up
    off = cloud - middle
    x, y, depth = np.abs(off @ right), np.abs(off @ up), off @ towards
    distance = float(np.max(np.maximum(x / (FILLED[0] * aspect), y / FILLED[1]) / slope + depth))
    return middle, max(distance, 1e-6)
