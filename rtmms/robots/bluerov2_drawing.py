"""Draw the BlueROV2: side panels, tubes, foam, and eight thrusters at the model's places and angles."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, radians
from typing import Any

from rtmms.base.attitude import turn
from rtmms.plant import drawing as d

PANEL = (34, 38, 46)
FOAM = (36, 112, 196)
GLASS = (150, 186, 214)
LENGTH_M = 0.457
"""Length of the frame (Blue Robotics' drawing of the Heavy Retrofit Kit), m."""
HEIGHT_M = 0.254
"""Height of the frame, m."""
RADIUS_M = 0.048
"""Radius of a duct, m."""


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
    xh, yh, zh = float(p["horizontal_x_m"]), float(p["horizontal_y_m"]), -float(p["horizontal_below_m"])
    xv, yv, angle = float(p["vertical_x_m"]), float(p["vertical_y_m"]), radians(float(p["horizontal_deg"]))
    middle, panel_y = -0.02, 0.5 * (yh + yv)
    ducts, screws = [], []
    for ahead in (1, -1):
        for left in (1, -1):
            place, blade_angle = (ahead * xh, left * yh, zh), angle if ahead * left < 0 else -angle
            ducts.append(d.moved(d.tyre(RADIUS_M, 0.052), place, turn(2, blade_angle - 0.5 * pi)))
            screws.append(d.moved(d.along(0, d.propeller(0.78 * RADIUS_M, 3, pitch=0.5)), place, turn(2, blade_angle)))
            place = (ahead * xv, left * yv, 0.03)
            ducts.append(d.moved(d.tyre(RADIUS_M, 0.052), place, turn(0, 0.5 * pi)))
            screws.append(d.moved(d.propeller(0.78 * RADIUS_M, 3, pitch=0.5), place))
    sides = [d.moved(d.rounded(LENGTH_M, 0.012, HEIGHT_M, 6.0), (0.0, y, middle)) for y in (panel_y, -panel_y)]
    floor = d.moved(d.block(0.9 * LENGTH_M, 2.0 * panel_y, 0.012), (0.0, 0.0, middle - 0.42 * HEIGHT_M))
    foam = [d.moved(d.rounded(0.94 * LENGTH_M, 0.44 * panel_y, 0.062, 5.0), (0.0, 0.62 * y, middle + 0.38 * HEIGHT_M))
            for y in (panel_y, -panel_y)]  # fmt: skip
    tube = d.moved(d.along(0, d.cylinder(0.057, 0.30)), (-0.02, 0.0, 0.02))
    dome = d.moved(d.sphere(0.055), (0.135, 0.0, 0.02))
    battery = d.moved(d.along(0, d.cylinder(0.042, 0.26)), (-0.02, 0.0, zh - 0.01))
    lights = [d.moved(d.along(0, d.cylinder(0.018, 0.05)), (0.20, y, -0.10)) for y in (0.06, -0.06)]
    parts = (
        d.Part("panels", d.merged(*sides, floor), PANEL, gloss=0.3),
        d.Part("foam", d.merged(*foam), FOAM, gloss=0.35),
        d.Part("tube", tube, (58, 64, 74), gloss=0.8),
        d.Part("dome", dome, GLASS, gloss=0.95),
        d.Part("battery", battery, (86, 92, 102), gloss=0.7),
        d.Part("ducts", d.merged(*ducts), (24, 26, 32), gloss=0.4),
        d.Part("propellers", d.merged(*screws), (60, 140, 214), gloss=0.5),
        d.Part("lights", d.merged(*lights), (214, 218, 224), gloss=0.8),
    )
    return d.Drawing(parts=parts, scene=d.WATER)
