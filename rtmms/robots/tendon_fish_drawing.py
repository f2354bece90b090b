"""Draw tendon_fish: the frame with its box and top fin, the motor's arms, five plates, the fin."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import pi
from typing import Any

from rtmms.base.attitude import turn
from rtmms.plant import drawing as d

HINGES_M = tuple(accumulate((0.285, 0.0295, 0.031, 0.0305, 0.025)))
"""Distance of each hinge behind the head's origin, m."""
PLATES_M = ((0.0145, 0.05, 0.045), (0.015, 0.0475, 0.035), (0.016, 0.045, 0.025), (0.0145, 0.0425, 0.015),
            (0.0105, 0.04, 0.005))  # fmt: skip
"""Middle of each plate behind its hinge, half height, and lever of the cable's hole, m."""
FIN_M = ((0.0215, 0.012), (0.036, 0.056), (0.051, 0.085), (0.0636, 0.0995), (0.0764, 0.1015), (0.0814, 0.09),
         (0.0745, 0.05), (0.0665, 0.02), (0.0636, 0.0))  # fmt: skip
"""Outline of the fin's upper half: distance behind the last hinge and height, m."""
TOP_FIN_M = ((0.2, 0.04), (0.26, 0.04), (0.2855, 0.135), (0.26, 0.123), (0.24, 0.107), (0.215, 0.07))
"""Outline of the top fin: distance behind the head's origin and height, m."""
UPRIGHT = turn(0, pi / 2)
"""Attitude of a plate about z = 0 that is upright: its y points up."""
ACRYLIC = (206, 222, 232)
BOX = (232, 196, 60)
METAL = (168, 174, 182)
BLUE = (96, 140, 190)
RED = (200, 60, 48)


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
    first = 2 if p["head"] == "rolling" else 1
    head = "joint1" if first == 2 else ""
    parts = [
        _part("frame", d.block(0.154, 0.005, 0.1), 0.0, ACRYLIC, head, opacity=0.6),
        _part("deck", d.block(0.16, 0.04, 0.003), 0.01, ACRYLIC, head, z=0.0515),
        _part("box", d.rounded(0.12, 0.08, 0.06, 8.0), 0.005, BOX, head, z=0.083),
        _part("mount", d.block(0.046, 0.03, 0.1), 0.1, (52, 56, 62), head),
        _part("body", d.block(0.155, 0.02, 0.105), 0.2005, METAL, head),
        d.Part("top_fin", d.moved(d.plate([(-x, z) for x, z in TOP_FIN_M][::-1], 0.003), (0, 0, 0), UPRIGHT), ACRYLIC,
               head, opacity=0.7, at_rest=bool(head)),
    ]  # fmt: skip
    arms = [d.moved(d.block(0.015, 0.01, 0.0395), (-0.1655, -side * 0.055, side * 0.01975)) for side in (-1, 1)]
    shaft = d.moved(d.block(0.015, 0.12, 0.015), (-0.1655, 0.0, 0.0))
    parts.append(d.Part("motor", d.merged(shaft, *arms), (40, 44, 52), f"joint{first}", at_rest=True))
    for k, (hinge, (middle, half, lever)) in enumerate(zip(HINGES_M, PLATES_M, strict=True)):
        plate = d.moved(d.block(0.015, 0.003, 2.0 * half), (-hinge - middle, 0.0, 0.0))
        arm = d.moved(d.block(0.006, 2.0 * lever + 0.01, 0.014), (-hinge - middle - 0.0045, 0.0, 0.0))
        parts.append(d.Part(f"plate{k}", d.merged(plate, arm), BLUE, f"joint{first + 1 + k}", at_rest=True))
    last, upper = HINGES_M[-1], [(-HINGES_M[-1] - x, z) for x, z in FIN_M]
    outline = [*upper, *((x, -z) for x, z in upper[-2::-1])]
    fin = d.moved(d.plate(outline, 0.002), (0, 0, 0), UPRIGHT)
    sheet = d.moved(d.block(0.014, 0.002, 0.045), (-last - 0.023, 0.0, 0.0))
    flexible = float(p["fin_n_m"]) > 0.0
    parts.append(d.Part("fin", d.merged(fin, sheet), RED, f"joint{first + 5 + flexible}", opacity=0.9, at_rest=True))
    return d.Drawing(parts=tuple(parts), scene=d.WATER)


def _part(
    name: str, mesh: d.Mesh, x: float, colour: d.Colour, frame: str, *, z: float = 0.0, opacity: float = 1.0
) -> d.Part:
    """Return a part whose middle is x behind the head's origin and z above it."""
    return d.Part(name, d.moved(mesh, (-x, 0.0, z)), colour, frame, opacity=opacity, at_rest=bool(frame))
