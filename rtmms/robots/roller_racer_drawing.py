"""Draw the roller racer, the toy: a seat on two wheels behind, handlebars over two wheels in front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtmms.base.attitude import turn
from rtmms.plant import drawing as d
from rtmms.plant.drawing import DARK, METAL, wheels


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
    a, b = float(p["seat_m"]), float(p["bar_m"])
    r, rear = 0.19 * a, 0.34 * a
    hull = d.moved(d.rounded_plate(1.25 * a, 0.5 * a, 0.12 * a, 0.75), (0.42 * a, 0.0, 0.42 * a - r))
    seat = d.moved(d.rounded(0.62 * a, 0.62 * a, 0.16 * a, 3.0), (0.02 * a, 0.0, 0.52 * a - r))
    back = d.moved(d.rounded(0.12 * a, 0.62 * a, 0.42 * a, 3.0), (-0.26 * a, 0.0, 0.66 * a - r), turn(1, -0.25))
    axle = d.along(1, d.cylinder(0.04 * a, 2.0 * rear))
    struts = [d.moved(d.cylinder(0.05 * a, 0.4 * a), (0.0, y, 0.16 * a)) for y in (0.5 * rear, -0.5 * rear)]
    column = d.moved(d.cylinder(0.055 * a, 0.95 * a), (0.0, 0.0, 0.34 * a))
    bars = d.tube(
        [
            (0.0, -0.5 * a, 0.78 * a),
            (-0.02 * a, -0.3 * a, 0.80 * a),
            (0.0, 0.0, 0.78 * a),
            (-0.02 * a, 0.3 * a, 0.80 * a),
            (0.0, 0.5 * a, 0.78 * a),
        ],
        0.04 * a,
    )
    grips = [d.moved(d.along(1, d.cylinder(0.06 * a, 0.22 * a)), (0.0, y, 0.78 * a)) for y in (0.47 * a, -0.47 * a)]
    reach = d.tube([(0.0, 0.0, 0.0), (b, 0.0, 0.0)], 0.05 * a)
    front = d.moved(d.along(1, d.cylinder(0.04 * a, 0.5 * a)), (b, 0.0, 0.0))
    parts = [
        d.Part("hull", hull, (214, 48, 49)),
        d.Part("seat", d.merged(seat, back), (44, 62, 80)),
        d.Part("axle", d.merged(axle, *struts), METAL, gloss=0.6),
        *wheels("rear", r, 0.11 * a, [(0.0, rear, 0.0), (0.0, -rear, 0.0)]),
        d.Part("column", d.merged(column, reach, front), METAL, "bar", gloss=0.6),
        d.Part("handlebars", bars, (241, 196, 15), "bar"),
        d.Part("grips", d.merged(*grips), DARK, "bar"),
        *wheels("front", 0.8 * r, 0.10 * a, [(b, 0.24 * a, -0.2 * r), (b, -0.24 * a, -0.2 * r)], "bar"),
    ]
    frames = (d.Frame("bar", position=(a, 0.0, 0.0), turns=(d.Turn(2, 0),)),)
    skins = (
        d.plane("seat", 0, (-0.2 * a, a), (-0.3 * a, 0.3 * a)),
        d.plane("bar", 1, (0.0, 1.2 * b), (-0.5 * a, 0.5 * a)),
    )
    return d.Drawing(frames, skins, parts=tuple(parts), scene=d.GROUND, ground=-r)
