"""Draw the quadrotor with arms as long as the model's; the front rotors are red."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtmms.base.attitude import turn
from rtmms.plant import drawing as d

DARK = (30, 32, 38)
METAL = (170, 176, 184)


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
    r, up = 0.60 * arm, 0.16 * arm
    places = [(arm, 0.0), (0.0, arm), (-arm, 0.0), (0.0, -arm)]
    beams = [d.tube([(0.15 * x, 0.15 * y, 0.0), (x, y, 0.02 * arm)], 0.06 * arm, 12) for x, y in places]
    motors = [d.moved(d.cylinder(0.11 * arm, 0.22 * arm), (x, y, 0.06 * arm)) for x, y in places]
    blades = [
        d.moved(d.propeller(r, 2, pitch=0.18), (x, y, up), turn(2, 0.4 + 0.9 * k)) for k, (x, y) in enumerate(places)
    ]
    discs = [d.moved(d.cylinder(r, 0.012 * arm), (x, y, up)) for x, y in places]
    hull = d.moved(d.rounded(0.62 * arm, 0.42 * arm, 0.24 * arm, 3.0), (0.0, 0.0, 0.03 * arm))
    camera = d.moved(d.sphere(0.10 * arm), (0.30 * arm, 0.0, -0.08 * arm))
    skids = []
    for side in (1, -1):
        y = side * 0.32 * arm
        skids.append(d.tube([(-0.4 * arm, y, -0.42 * arm), (0.4 * arm, y, -0.42 * arm)], 0.025 * arm, 8))
        skids += [d.tube([(x, 0.6 * y, 0.0), (x, y, -0.42 * arm)], 0.022 * arm, 8) for x in (0.2 * arm, -0.2 * arm)]
    parts = (
        d.Part("hull", hull, (238, 240, 243), gloss=0.5),
        d.Part("beams", d.merged(*beams), DARK),
        d.Part("motors", d.merged(*motors), METAL, gloss=0.7),
        d.Part("front_blades", blades[0], (214, 48, 49)),
        d.Part("blades", d.merged(*blades[1:]), (52, 58, 68)),
        d.Part("discs", d.merged(*discs), (150, 170, 190), opacity=0.18),
        d.Part("camera", camera, DARK, gloss=0.9),
        d.Part("skids", d.merged(*skids), DARK),
    )
    return d.Drawing(parts=parts, scene=d.AIR)
