"""Draw the torpedo: a hull of the model's length and radius, round at the nose, slender at the tail, and its fins."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any

from rtmms.base.attitude import turn
from rtmms.plant import drawing as d


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
    l, r = float(p["length_m"]), float(p["radius_m"])
    span, chord, behind = (float(p[k]) for k in ("fin_span_m", "fin_chord_m", "fin_behind_m"))
    nose, tail = 0.13 * l, 0.26 * l
    steps = [k / 12 for k in range(13)]
    back = [(r * (1.0 - (1.0 - s) ** 2.0) * 0.88 + 0.12 * r, -0.5 * l + tail * s) for s in steps]
    front = [(r * (1.0 - s**2.2) ** 0.5, 0.5 * l - nose + nose * s) for s in steps[1:]]
    hull = d.along(0, d.revolved([(0.0, -0.5 * l), *back, (r, 0.5 * l - nose), *front], (1,), 40))
    band = d.moved(d.along(0, d.cylinder(1.006 * r, 0.05 * l, 40)), (0.18 * l, 0.0, 0.0))
    window = d.moved(
        d.along(0, d.revolved([(r * 0.66, -0.02 * l), (0.45 * r, 0.012 * l), (0.0, 0.028 * l)], (), 32)),
        (0.475 * l, 0.0, 0.0),
    )
    screw = d.moved(d.along(0, d.propeller(0.92 * r, 3, pitch=0.5)), (-0.5 * l - 0.02 * l, 0.0, 0.0))
    mast = d.moved(d.rounded(0.09 * l, 0.03 * l, 0.11 * l, 2.5), (0.0, 0.0, r + 0.03 * l))
    parts = [
        d.Part("hull", hull, (244, 196, 48), gloss=0.5),
        d.Part("band", band, (40, 44, 52)),
        d.Part("window", window, (24, 40, 66), gloss=0.95),
        d.Part("propeller", screw, (176, 130, 60), gloss=0.8),
        d.Part("mast", mast, (200, 60, 48)),
    ]
    swept = [
        (-0.75 * chord, 0.0),
        (0.25 * chord, 0.0),
        (0.02 * chord, 0.92 * span),
        (-0.08 * chord, span),
        (-0.68 * chord, span),
        (-0.75 * chord, 0.94 * span),
    ]
    blade = d.plate([(x, r + (y if y else -0.4 * r)) for x, y in swept], 0.012)
    for k, (name, angle) in enumerate((("top", pi / 2), ("left", 0.0), ("bottom", -pi / 2), ("right", pi))):
        out = d.moved(blade, (-behind, 0.0, 0.0), turn(0, angle))
        parts.append(d.Part(f"fin_{name}", out, (40, 44, 52), f"joint{k + 1}", gloss=0.4, at_rest=True))
    return d.Drawing(parts=tuple(parts), scene=d.WATER)
