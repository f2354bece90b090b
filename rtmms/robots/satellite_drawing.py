"""Draw the satellite: two decks of foil with the reaction wheels between them, rings of their axial inertia."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import Any

from rtmms.base.attitude import HOME, turn
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
    arm = float(p["arm_m"])
    r = sqrt(float(p["axial_kg_m2"]) / float(p["wheel_kg"]))  # m r^2
    size = 2.7 * max(r, arm)
    gold, blue, grey = (224, 170, 62), (36, 66, 150), (214, 218, 224)
    low, high = -0.56 * size, 0.56 * size
    decks = [d.moved(d.block(size, size, 0.22 * size, 0.1), (0.0, 0.0, z)) for z in (low, high)]
    posts = [
        d.moved(d.cylinder(0.035 * size, 0.92 * size), (x * size, y * size, 0.0))
        for x in (-0.44, 0.44)
        for y in (-0.44, 0.44)
    ]
    cells, struts = [], []
    for side in (1, -1):
        struts.append(d.tube([(0.0, side * 0.45 * size, high), (0.0, side * 4.0 * size, high)], 0.03 * size))
        for k in range(3):
            place = side * (1.35 + 1.08 * k) * size
            cells.append(d.moved(d.block(0.72 * size, 0.98 * size, 0.03 * size, 0.2), (0.0, place, high), turn(1, 0.5)))
            struts.append(
                d.moved(
                    d.block(0.80 * size, 1.05 * size, 0.02 * size, 0.2),
                    (-0.012 * size, place, high - 0.016 * size),
                    turn(1, 0.5),
                )
            )
            struts.append(
                d.moved(d.block(0.72 * size, 0.02 * size, 0.036 * size, 0.2), (0.0, place, high), turn(1, 0.5))
            )
    dish = d.moved(
        d.revolved(
            [
                (0.0, 0.0),
                (0.25, 0.04),
                (0.45, 0.14),
                (0.6, 0.28),
                (0.58, 0.29),
                (0.43, 0.16),
                (0.25, 0.07),
                (0.0, 0.03),
            ],
            (3, 4),
        ),
        (0.0, 0.0, 0.70 * size),
        scale=(0.6 * size, 0.6 * size, 0.6 * size),
    )
    horn = d.moved(d.cylinder(0.03 * size, 0.34 * size), (0.0, 0.0, 0.84 * size))
    nozzle = d.moved(
        d.revolved([(0.0, 0.1), (0.20, -0.3), (0.22, -0.3), (0.10, 0.2), (0.0, 0.2)], (1, 2, 3)),
        (0.0, 0.0, low - 0.3 * size),
        scale=(size, size, 0.6 * size),
    )
    parts = [
        d.Part("decks", d.merged(*decks), gold, gloss=0.9),
        d.Part("posts", d.merged(*posts), grey, gloss=0.5),
        d.Part("cells", d.merged(*cells), blue, gloss=0.8),
        d.Part("frames", d.merged(*struts), grey),
        d.Part("dish", dish, (240, 242, 246)),
        d.Part("horn", d.merged(horn, nozzle), METAL, gloss=0.8),
    ]
    for name, axis, colour in (("wheel_x", 0, (206, 76, 66)), ("wheel_y", 1, (70, 150, 96))):
        rim = d.revolved(
            [(0.80 * r, -0.09 * r), (r, -0.09 * r), (r, 0.09 * r), (0.80 * r, 0.09 * r), (0.80 * r, -0.09 * r)],
            (1, 2, 3),
        )
        spokes = [d.moved(d.block(1.7 * r, 0.10 * r, 0.06 * r), (0.0, 0.0, 0.0), turn(2, k * pi / 3)) for k in range(3)]
        parts += [
            d.Part(f"{name}_rim", d.along(axis, rim), colour, name, gloss=0.7),
            d.Part(
                f"{name}_spokes",
                d.along(axis, d.merged(*spokes, d.cylinder(0.16 * r, 0.3 * r))),
                (196, 200, 208),
                name,
                gloss=0.6,
            ),
        ]
    radius = sqrt(2.0 * float(p["axial_kg_m2"]) / float(p["wheel_kg"]))  # of a full disc: m r^2 / 2
    circle = d.ellipse(radius, radius, ROUND)
    frames = (
        d.Frame("wheel_x", position=(arm, 0.0, 0.0), turns=(d.Turn(0, 0),)),
        d.Frame("wheel_y", position=(0.0, arm, 0.0), turns=(d.Turn(1, 1),)),
    )
    skins = (
        d.disc("wheel_x", 1, [(0.0, a, b) for a, b in circle], HOME[0]),
        d.disc("wheel_y", 2, [(b, 0.0, a) for a, b in circle], HOME[0]),
    )
    hub = d.Solid("hub", HOME[0], (1.5 * arm, 1.5 * arm, 1.5 * arm))  # less than its inertia: the wheels show
    return d.Drawing(frames, skins, (hub,), parts=tuple(parts), scene=d.SPACE, outputs={d.JOINTS: (2,)})
