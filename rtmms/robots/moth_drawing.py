"""Draw the hawk moth: wings of blades that twist and bend one after the other, and a furry body with antennae."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import Any

from rtmms.base.attitude import Vector, turn
from rtmms.plant import drawing as d

DARK = (24, 18, 16)
SPAN = 29
"""Number of rows of a wing's surface."""
THIN = 0.015
"""Half the drawn thickness of a wing, as a fraction of the chord."""


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
    n, chord, height = int(p["sections"]), float(p["chord_m"]), float(p["thorax_c_m"])
    length, hinge = float(p["span_m"]) / n, (0.0, 0.0, float(p["hinge"]) * height)
    chords = [chord * sqrt(1.0 - (k / n) ** 2) for k in range(n)]
    frames = [frame for side in (0, 1) for frame in _blades(side, n, length, hinge)]
    span = tuple(1.0 - (1.0 - share) ** 1.6 for share in d.steps(0.0, 1.0, SPAN))  # close at the tip
    wings, skins = [], []
    for side, name in enumerate(("right_wing", "left_wing")):
        skins.append(_wing(name, n * side, chords, length))
        wings.append(d.Wing(
            name, lead=(*(4 * k for k in range(n)), 4 * n - 3), chords=tuple((4 * k, 4 * k + 2) for k in range(n)),
            chord_stations=tuple((k + 0.5) / n for k in range(n)), span=span,
            lengths=tuple(chord * sqrt(max(1.0 - share**2, 0.0)) for share in span), directed=True,
            thickness=THIN * chord, zones=wing_zones((168, 124, 84), (104, 70, 48), (232, 190, 132)),
        ))  # fmt: skip
    wide = 2.0 * float(p["thorax_a_m"])
    thorax = d.Solid("thorax", (0.0, 0.0, 0.0), (2.0 * float(p["thorax_b_m"]), wide, 2.0 * height))
    body = moth_body(wide, 2.0 * height, (188, 152, 112), (112, 76, 52), hinge[2])
    return d.Drawing(tuple(frames), tuple(skins), (thorax,), tuple(wings), body, d.AIR, outputs={d.JOINTS: (4 * n,)})


def _blades(side: int, n: int, length: float, hinge: Vector) -> list[d.Frame]:
    """Return frames of the right (0) or the left wing (1): x is outwards along the leading edge, z towards that edge.

    The first joint of the root is the stroke, about z; of the others twist, about x. Bending is about z.
    """
    frames = []
    for k in range(n):
        number = side * n + k
        turns = d.Turn(2 if k == 0 else 0, 2 * number), d.Turn(2, 2 * number + 1)
        name = f"{('right', 'left')[side]}_blade{k + 1}"
        if k == 0:  # s, along the right wing, is -y
            frames.append(d.Frame(name, 0, hinge, turn(2, pi * side - pi / 2), turns))
        else:
            frames.append(d.Frame(name, number, (length, 0.0, 0.0), turns=turns))
    return frames


def _wing(name: str, first: int, chords: list[float], length: float) -> d.PointSkin:
    """Return the corners of blades: at the leading edge, at its far end, and the two at the trailing edge."""
    blades = tuple(4 * k + corner for k in range(len(chords)) for corner in (0, 1, 2, 2, 1, 3))
    edges = tuple((4 * k, 4 * k + 1, 4 * k + 3, 4 * k + 2, 4 * k) for k in range(len(chords)))
    points = tuple(
        d.Point(first + k + 1, corner)
        for k, chord in enumerate(chords)
        for corner in ((0.0, 0.0, 0.0), (length, 0.0, 0.0), (0.0, 0.0, -chord), (length, 0.0, -chord))
    )
    return d.PointSkin(d.Skin(name, blades, edges), points)


def wing_zones(wing: d.Colour, rim: d.Colour, spot: d.Colour) -> tuple[d.Zone, ...]:
    """Return a wing's rim at the trailing edge and the tip, a spot across it, and the rest.

    Parameters
    ----------
    wing, rim, spot : Colour
        Red, green, blue, 0 to 255.

    Returns
    -------
    tuple[d.Zone, ...]
        Zones in order of precedence.
    """
    return (
        d.Zone("rim", rim, (d.Box(across=(0.84, 2.0)), d.Box((0.90, 2.0))), gloss=0.1),
        d.Zone("spot", spot, (d.Box((0.56, 0.68)),), gloss=0.1),
        d.Zone("wing", wing, gloss=0.1),
    )


def moth_body(wide: float, high: float, fur: d.Colour, dark: d.Colour, hinge: float) -> tuple[d.Part, ...]:
    """Return the thorax along z, an ellipsoid of the model's axes, with head, antennae and the end of the abdomen.

    x is the belly's side.

    Parameters
    ----------
    wide, high : float
        Full axes of the thorax, m.
    fur, dark : Colour
        Red, green, blue, 0 to 255.
    hinge : float
        Height of the wings' hinges above the thorax's centre, m.

    Returns
    -------
    tuple[d.Part, ...]
        Parts in the body's frame.
    """
    half = 0.5 * high
    abdomen = [
        d.moved(d.ellipsoid(0.86 * wide * s, 0.86 * wide * s, 0.30 * high), (0.0, 0.0, -half * z))
        for z, s in ((0.30, 0.95), (0.55, 0.82), (0.80, 0.62), (1.0, 0.4))
    ]
    bands = [
        d.moved(d.ellipsoid(0.90 * wide * s, 0.90 * wide * s, 0.06 * high), (0.0, 0.0, -half * z))
        for z, s in ((0.42, 0.90), (0.68, 0.73), (0.92, 0.50))
    ]
    head = d.moved(d.ellipsoid(0.62 * wide, 0.62 * wide, 0.5 * wide), (0.06 * wide, 0.0, half + 0.05 * wide))
    eyes = [d.moved(d.sphere(0.16 * wide), (0.16 * wide, side * 0.26 * wide, half + 0.12 * wide)) for side in (1, -1)]
    antennae = [
        d.tube(
            [
                (0.1 * wide, side * 0.12 * wide, half + 0.2 * wide),
                (0.35 * wide, side * 0.5 * wide, half + 0.75 * wide),
                (0.45 * wide, side * 1.0 * wide, half + 1.1 * wide),
            ],
            [0.03 * wide, 0.07 * wide, 0.03 * wide],
            8,
        )
        for side in (1, -1)
    ]
    legs = [
        d.tube(
            [
                (0.3 * wide, side * 0.2 * wide, z),
                (0.75 * wide, side * 0.32 * wide, z - 0.1 * high),
                (0.7 * wide, side * 0.3 * wide, z - 0.25 * high),
            ],
            0.03 * wide,
            6,
        )
        for side in (1, -1)
        for z in (0.25 * high, 0.1 * high)
    ]
    thorax = d.ellipsoid(wide, wide, high)
    collar = d.moved(d.ellipsoid(1.06 * wide, 1.06 * wide, 0.34 * high), (0.0, 0.0, hinge * 0.8))
    return (
        d.Part("thorax", d.merged(thorax, collar, *abdomen, head), fur, gloss=0.05),
        d.Part("bands", d.merged(*bands), dark, gloss=0.05),
        d.Part("eyes", d.merged(*eyes), DARK, gloss=0.9),
        d.Part("antennae", d.merged(*antennae, *legs), dark, gloss=0.05),
    )
