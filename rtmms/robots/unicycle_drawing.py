"""Draw the unicycle: a cart of two driven wheels, a caster in front of them, an arrow ahead."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin
from typing import Any

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
    r, b = float(p["wheel_m"]), float(p["half_track_m"])
    n = 48
    rim = [(1.05 * b * cos(2 * pi * k / n), 0.92 * b * sin(2 * pi * k / n)) for k in range(n)]
    deck = d.moved(d.plate(rim, 0.16 * b), (0.0, 0.0, 0.55 * r))
    upper = d.moved(d.plate([(0.82 * x, 0.82 * y) for x, y in rim], 0.05 * b), (0.0, 0.0, 0.55 * r + 0.42 * b))
    posts = [
        d.moved(d.cylinder(0.03 * b, 0.42 * b), (x * b, y * b, 0.55 * r + 0.21 * b))
        for x, y in ((0.5, 0.45), (0.5, -0.45), (-0.5, 0.45), (-0.5, -0.45))
    ]
    tower = d.moved(d.cylinder(0.2 * b, 0.16 * b), (0.0, 0.0, 0.55 * r + 0.55 * b))
    arrow = d.moved(
        d.plate([(0.95 * b, 0.0), (0.55 * b, 0.22 * b), (0.62 * b, 0.0), (0.55 * b, -0.22 * b)], 0.02 * b),
        (-0.25 * b, 0.0, 0.55 * r + 0.46 * b),
    )
    caster = d.moved(d.sphere(0.35 * r), (0.75 * b, 0.0, -0.65 * r))
    fork = d.moved(d.cylinder(0.2 * r, 1.0 * r), (0.75 * b, 0.0, 0.1 * r))
    parts = [
        d.Part("deck", deck, (230, 126, 34)),
        d.Part("upper_deck", upper, (236, 240, 241)),
        d.Part("arrow", arrow, (192, 57, 43)),
        d.Part("sensor", tower, DARK, gloss=0.7),
        d.Part("frame", d.merged(*posts, fork), METAL, gloss=0.6),
        d.Part("caster", caster, METAL, gloss=0.8),
        *wheels("driven", r, 0.2 * b, [(0.0, b, 0.0), (0.0, -b, 0.0)]),
    ]
    # the wheels do not turn: a drawing shows no difference
    frames = (d.Frame("left", position=(0.0, b, 0.0)), d.Frame("right", position=(0.0, -b, 0.0)))
    skins = (
        d.plane("platform", 0, (-b, b), (-0.8 * b, 0.8 * b)),
        *(d.plane(side, k, (-r, r), (-0.1 * b, 0.1 * b)) for side, k in (("left", 1), ("right", 2))),
    )
    return d.Drawing(frames, skins, parts=tuple(parts), scene=d.GROUND, ground=-r)
