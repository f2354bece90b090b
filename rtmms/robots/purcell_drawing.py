"""Draw Purcell's swimmer: three slender rods with pins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtmms.plant import drawing as d

METAL = (176, 182, 190)


def draw(p: Mapping[str, Any]) -> d.Drawing:
    """Return the drawing of the robot.

    Parameters
    ----------
    p : Mapping[str, Any]
        Parameters of the robot, by name.

    Returns
    -------
    d.Drawing
        Frames, skins and surfaces, in the frame of the body.
    """
    l = float(p["length_m"])
    w = 0.05 * l

    def rod(start: float) -> d.Mesh:
        return d.tube([(start + 0.045 * l, 0.0, 0.0), (start + 0.5 * l, 0.0, 0.0), (start + 0.955 * l, 0.0, 0.0)], w)

    pins = [d.moved(d.cylinder(1.25 * w, 2.9 * w), (x, 0.0, 0.0)) for x in (-0.5 * l, 0.5 * l)]
    parts = (
        d.Part("middle", rod(-0.5 * l), (44, 110, 180)),
        d.Part("left", rod(-l), (228, 120, 60), "left"),
        d.Part("right", rod(0.0), (228, 120, 60), "right"),
        d.Part("pins", d.merged(*pins), METAL, gloss=0.7),
    )
    frames = (
        d.Frame("left", position=(-0.5 * l, 0.0, 0.0), turns=(d.Turn(2, 0),)),
        d.Frame("right", position=(0.5 * l, 0.0, 0.0), turns=(d.Turn(2, 1),)),
    )
    wide = (-0.03 * l, 0.03 * l)
    skins = (
        d.plane("middle", 0, (-0.5 * l, 0.5 * l), wide),
        d.plane("left", 1, (-l, 0.0), wide),
        d.plane("right", 2, (0.0, l), wide),
    )
    return d.Drawing(frames, skins, parts=parts, scene=d.WATER, outputs={d.JOINTS: (2,)})
