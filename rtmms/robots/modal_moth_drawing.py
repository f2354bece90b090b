"""Draw the modal moth: wings that twist along their span by modes, and a furry body with antennae."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sin, sqrt
from typing import Any

from rtmms.base.attitude import turn
from rtmms.plant import drawing as d
from rtmms.robots.moth_drawing import SPAN, THIN, moth_body, wing_zones

PIECES = 10


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
    modes, span, chord = int(p["modes"]), float(p["span_m"]), float(p["chord_m"])
    height, wide = float(p["thorax_height_m"]), 2.0 * float(p["thorax_radius_m"])
    hinge = (0.0, 0.0, float(p["hinge"]) * height)
    frames: list[d.Frame] = []
    wings, skins = [], []
    # the wing's tip is rounded within the model's chords
    short = tuple(sqrt(1.0 - min(max((s - 0.7) / 0.3, 0.0), 1.0) ** 2 * 0.999) for s in d.steps(0.0, 1.0, SPAN))
    zones = wing_zones((150, 190, 140), (96, 134, 104), (238, 226, 168))
    for side, name in enumerate(("right_wing", "left_wing")):
        # x outwards along the leading edge (s, along the right wing, is -y), z from the trailing to the leading edge
        first = side * (2 + modes)
        root = d.Turn(2, first), d.Turn(0, first + 1)
        frames.append(d.Frame(name, 0, hinge, turn(2, pi * side - pi / 2), root))
        wing = len(frames)
        for k in range(PIECES + 1):
            s = k / PIECES
            twist = tuple(d.Turn(0, first + 2 + m, sin((2 * m + 1) * pi * s / 2.0)) for m in range(modes))
            frames.append(d.Frame("", wing, (s * span, 0.0, 0.0), turns=twist))
        edges = tuple(
            d.Point(wing + k + 1, corner) for k in range(PIECES + 1) for corner in ((0.0, 0.0, 0.0), (0.0, 0.0, -chord))
        )
        skins.append(d.PointSkin(d.sheet(name, PIECES + 1, 2), edges))
        wings.append(d.Wing(
            name, lead=tuple(2 * k for k in range(PIECES + 1)),
            chords=tuple((2 * k, 2 * k + 1) for k in range(PIECES + 1)), chord_stations=d.steps(0.0, 1.0, PIECES + 1),
            span=d.steps(0.0, 1.0, SPAN), lengths=short, directed=False, thickness=THIN * chord, zones=zones,
        ))  # fmt: skip
    thorax = d.Solid("thorax", (0.0, 0.0, 0.0), (wide, wide, 2.0 * height))
    body = moth_body(wide, 2.0 * height, (226, 222, 206), (150, 150, 120), hinge[2])
    return d.Drawing(
        tuple(frames), tuple(skins), (thorax,), tuple(wings), body, d.AIR, outputs={d.JOINTS: (2 * (2 + modes),)}
    )
