"""Colours and light of the scenes: water, air, ground, space, and what is drawn in them.

Films, stills, the live view and the page take them from here, so that they agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rtmms.plant.drawing import AIR, GROUND, SPACE, WATER, Colour


@dataclass(frozen=True)
class SceneColours:
    """Colours of a scene.

    Attributes
    ----------
    above, far : Colour
        Background at its upper edge; at the horizon, into which the floor fades.
    floor, line : Colour
        Floor near the robot, and the lines of its grid.
    has_floor : bool, default True
        False in space.
    text : Colour, default (40, 54, 70)
        Text over a picture.
    """

    above: Colour
    far: Colour
    floor: Colour
    line: Colour
    has_floor: bool = True
    text: Colour = (40, 54, 70)


SCENERIES = {
    WATER: SceneColours((150, 214, 226), (50, 122, 158), (158, 188, 172), (116, 156, 152), text=(240, 248, 250)),
    AIR: SceneColours((186, 214, 240), (232, 240, 247), (206, 216, 206), (174, 190, 178)),
    GROUND: SceneColours((226, 232, 238), (240, 243, 246), (222, 224, 226), (186, 192, 198)),
    SPACE: SceneColours((6, 8, 18), (14, 18, 34), (14, 18, 34), (40, 48, 70), has_floor=False, text=(220, 226, 236)),
}
PATH = (228, 87, 46)
"""Colour of the path."""
FORCE = (214, 40, 40)
"""Colour of forces."""
FLOW = (16, 120, 150)
"""Colour of the flow."""
PLAN = (24, 150, 80)
"""Colour of set-points."""
GHOST = (150, 96, 190)
"""Colour of the estimate."""
AHEAD = (250, 190, 40)
"""Colour of the planned motion."""
TRIED = (240, 222, 170)
"""Colour of other tried motions."""
SUN = np.array([0.35, -0.45, 0.82]) / np.linalg.norm([0.35, -0.45, 0.82])
"""Direction to the light, world."""
