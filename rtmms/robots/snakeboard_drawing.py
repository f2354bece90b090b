"""Draw the snakeboard: a board with a plate for a foot on each axle, and the rotor that represents its rider."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin
from typing import Any

from rtmms.base.attitude import turn
from rtmms.plant import drawing as d
from rtmms.plant.drawing import METAL, wheels


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
    l = float(p["half_length_m"])
    r, top = 0.16 * l, 0.42 * l
    board = d.moved(d.rounded_plate(2.0 * l, 0.34 * l, 0.07 * l, 0.6), (0.0, 0.0, top - 0.12 * l))
    post = d.moved(d.cylinder(0.09 * l, 0.5 * l), (0.0, 0.0, top + 0.13 * l))
    bar = d.moved(d.along(0, d.cylinder(0.05 * l, 1.5 * l)), (0.0, 0.0, 0.33 * l), turn(2, pi / 2))
    weights = [d.moved(d.along(1, d.cylinder(0.17 * l, 0.2 * l)), (0.0, y * 0.78 * l, 0.33 * l)) for y in (1, -1)]
    n = 36
    pad = d.plate([(0.42 * l * cos(2 * pi * k / n), 0.5 * l * sin(2 * pi * k / n)) for k in range(n)], 0.06 * l)
    parts = [
        d.Part("board", board, (39, 110, 174)),
        d.Part("post", post, METAL, gloss=0.6),
        d.Part("bar", bar, (90, 96, 104), "rotor", gloss=0.6),
        d.Part("weights", d.merged(*weights), (192, 57, 43), "rotor"),
    ]
    for name in ("front", "back"):
        axle = d.moved(d.along(1, d.cylinder(0.04 * l, 0.92 * l)), (0.0, 0.0, 0.0))
        truck = d.moved(d.cylinder(0.08 * l, 0.3 * l), (0.0, 0.0, 0.16 * l))
        parts += [
            d.Part(f"{name}_foot", d.moved(pad, (0.0, 0.0, top - 0.03 * l)), (44, 62, 80), name),
            d.Part(f"{name}_truck", d.merged(axle, truck), METAL, name, gloss=0.6),
            *wheels(name, r, 0.14 * l, [(0.0, 0.42 * l, 0.0), (0.0, -0.42 * l, 0.0)], name),
        ]
    frames = (
        d.Frame("rotor", position=(0.0, 0.0, 0.05), turns=(d.Turn(2, 0),)),
        d.Frame("front", position=(l, 0.0, 0.0), turns=(d.Turn(2, 1),)),
        d.Frame("back", position=(-l, 0.0, 0.0), turns=(d.Turn(2, 2),)),
    )
    skins = (
        d.plane("board", 0, (-l, l), (-0.1 * l, 0.1 * l)),
        d.plane("rotor", 1, (-0.1 * l, 0.1 * l), (-0.9 * l, 0.9 * l)),
        *(d.plane(axle, k, (-0.15 * l, 0.15 * l), (-0.6 * l, 0.6 * l)) for axle, k in (("front", 2), ("back", 3))),
    )
    return d.Drawing(frames, skins, parts=tuple(parts), scene=d.GROUND, ground=-r)
