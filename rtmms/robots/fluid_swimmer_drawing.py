"""Draw the three ellipses as bodies as deep as they are wide, with the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtmms.plant import drawing as d

METAL = (176, 182, 190)
ROUND = 24


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
    a, b = float(p["half_length_m"]), float(p["half_width_m"])
    gap = float(p["gap_m"])
    reach = a + gap
    hull = d.ellipsoid(2.0 * a, 2.0 * b, 2.0 * b)
    pins = [d.moved(d.sphere(0.4 * b), (x, 0.0, 0.0)) for x in (-reach, reach)]
    neck = [d.tube([(side * 0.97 * a, 0.0, 0.0), (side * reach, 0.0, 0.0)], 0.18 * b, 10) for side in (1, -1)]
    parts = [d.Part("middle", hull, (232, 236, 240)), d.Part("pins", d.merged(*pins, *neck), METAL, gloss=0.7)]
    for name, side in (("left", -1), ("right", 1)):
        parts += [
            d.Part(name, d.moved(hull, (side * reach, 0.0, 0.0)), (38, 140, 148), name),
            d.Part(
                f"{name}_link",
                d.tube([(0.0, 0.0, 0.0), (side * (gap + 0.03 * a), 0.0, 0.0)], 0.18 * b, 10),
                METAL,
                name,
            ),
        ]
    frames = (
        d.Frame("left", position=(-reach, 0.0, 0.0), turns=(d.Turn(2, 0),)),
        d.Frame("right", position=(reach, 0.0, 0.0), turns=(d.Turn(2, 1),)),
    )
    skins = tuple(
        d.disc(name, k, [(x, y, 0.0) for x, y in d.ellipse(a, b, ROUND, middle)], (middle, 0.0, 0.0))
        for k, (name, middle) in enumerate((("middle", 0.0), ("left", -reach), ("right", reach)))
    )
    return d.Drawing(frames, skins, parts=tuple(parts), scene=d.WATER, outputs={d.JOINTS: (2,)})
