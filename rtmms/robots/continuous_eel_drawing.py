"""Draw the continuous eel: a soft body without a joint, round at nose and tail within its centre line."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sqrt
from typing import Any

from rtmms.plant import drawing as d

SECTIONS = 44


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
    a, b, length = float(p["half_width_m"]), float(p["half_height_m"]), float(p["length_m"])
    share = tuple(0.5 * (1.0 - cos(angle)) for angle in d.steps(0.0, pi, SECTIONS))  # close at the ends
    nose, tail = 2.4 * b / length, 0.5
    half = [
        min(
            sqrt(min(max(1.0 - (1.0 - min(s / nose, 1.0)) ** 2, 0.0), 1.0)),
            min(max((1.0 - s) / tail, 0.0), 1.0) ** 0.45,
        )
        for s in share
    ]
    ridges = d.Ridge(0.22, 0.99, 0.42 * b), d.Ridge(0.22, 0.99, 0.3 * b, above=False)
    body = d.Sweep(
        "skin", share, tuple(a * h for h in half), tuple(b * h for h in half), (
            d.Zone("belly", (232, 206, 214), (d.Box(across=(-2.0, -0.2)),), gloss=0.6),
            d.Zone("back", (112, 84, 128), gloss=0.6),
        ),
        fins=(d.Fins("fins", (84, 60, 104), ridges),),
    )  # fmt: skip
    eyes = [d.moved(d.sphere(0.14 * b), (-1.0 * b, side * 0.74 * a, 0.34 * b)) for side in (1, -1)]
    return d.Drawing(
        (d.Follower("tail", "centreline", -1),), (d.TubeSkin("skin", "centreline", a, b),), (), (body,),
        (d.Part("eyes", d.merged(*eyes), (16, 18, 22), gloss=0.9),), d.WATER,
    )  # fmt: skip
