"""Draw the trikke: two decks behind the fork, and a rider over the frame who turns as the model's does."""

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
    l, trail = float(p["base_m"]), float(p["trail_m"])
    r, half, z0 = 0.11 * l, 0.30 * l, 0.0
    arms = [
        d.tube(
            [
                (0.93 * l, 0.0, 0.16 * l),
                (0.7 * l, y * 0.12 * l, 0.06 * l),
                (0.25 * l, y * 0.9 * half, 0.03 * l),
                (0.0, y * half, 0.02 * l),
            ],
            [0.035 * l, 0.03 * l, 0.025 * l, 0.022 * l],
        )
        for y in (1, -1)
    ]
    deck = d.rounded_plate(0.36 * l, 0.15 * l, 0.035 * l)
    decks = [d.moved(deck, (0.2 * l, y * 0.88 * half, 0.055 * l), turn(2, -y * 0.22)) for y in (1, -1)]
    lean, top = -0.22 * l, 0.95 * l  # the column leans back
    column = d.tube(
        [(-0.5 * trail, 0.0, 0.1 * l), (0.4 * lean, 0.0, 0.5 * l), (lean, 0.0, top)], [0.035 * l, 0.028 * l, 0.024 * l]
    )
    legs = [
        d.tube(
            [(-trail, y * 0.07 * l, z0), (-0.6 * trail, y * 0.07 * l, 0.13 * l), (-0.5 * trail, 0.0, 0.16 * l)],
            0.018 * l,
        )
        for y in (1, -1)
    ]
    bars = d.tube(
        [
            (lean - 0.06 * l, -0.26 * l, top),
            (lean, -0.12 * l, top + 0.01 * l),
            (lean, 0.12 * l, top + 0.01 * l),
            (lean - 0.06 * l, 0.26 * l, top),
        ],
        0.02 * l,
    )
    grips = [
        d.moved(d.along(1, d.cylinder(0.028 * l, 0.12 * l)), (lean - 0.05 * l, y * 0.23 * l, top)) for y in (1, -1)
    ]
    fender = d.moved(d.rounded(0.2 * l, 0.07 * l, 0.05 * l, 3.0), (-trail, 0.0, 0.13 * l))
    centre = float(p["centre_m"])
    low = -0.5 + 0.075 * l  # in the rider's frame, 0.5 m above the body's: the decks
    k = 0.9 * l  # a rider as tall as 1.7 l
    hips, chest, head = low + 0.78 * k, low + 1.2 * k, low + 1.53 * k
    x0 = 0.2 * l - centre
    # the rider's hips and chest turn with the model's joint; the legs are drawn down to the decks
    limbs = [
        d.tube(
            [
                (x0 * 0.6, y * 0.10 * k, hips),
                (x0 + 0.09 * k, y * 0.22 * k, low + 0.42 * k),
                (x0, y * 0.88 * half, low + 0.03 * k),
            ],
            [0.085 * k, 0.065 * k, 0.045 * k],
            flat=1.0,
        )
        for y in (1, -1)
    ]
    shoes = [
        d.moved(d.rounded(0.26 * k, 0.1 * k, 0.09 * k, 3.0), (x0 + 0.05 * k, y * 0.88 * half, low + 0.04 * k))
        for y in (1, -1)
    ]
    torso = d.moved(
        d.rounded(0.24 * k, 0.40 * k, 0.56 * k, 2.6), (0.0, 0.0, 0.5 * (hips + chest) + 0.05 * k), turn(1, 0.08)
    )
    neck = d.tube([(0.0, 0.0, chest + 0.05 * k), (0.02 * k, 0.0, head)], 0.05 * k)
    skull = d.merged(d.moved(d.ellipsoid(0.21 * k, 0.18 * k, 0.25 * k), (0.03 * k, 0.0, head)), neck)
    helmet = d.moved(d.ellipsoid(0.27 * k, 0.23 * k, 0.18 * k), (0.02 * k, 0.0, head + 0.075 * k))
    hand = (l + lean - 0.02 * l - centre, 0.22 * l, top - 0.5)
    sleeves = [
        d.tube(
            [
                (0.0, y * 0.21 * k, chest + 0.06 * k),
                (0.13 * k, y * 0.30 * k, chest - 0.17 * k),
                (0.6 * hand[0], y * 1.05 * hand[1], 0.55 * hand[2] + 0.45 * (chest - 0.17 * k)),
                (0.95 * hand[0], y * hand[1], hand[2]),
            ],
            [0.06 * k, 0.052 * k, 0.045 * k, 0.04 * k],
        )
        for y in (1, -1)
    ]
    parts = [
        d.Part("arms", d.merged(*arms), (46, 64, 83), gloss=0.5),
        d.Part("decks", d.merged(*decks), (241, 196, 15)),
        *wheels("rear", r, 0.06 * l, [(0.0, half, 0.0), (0.0, -half, 0.0)]),
        d.Part("column", d.merged(column, *legs), METAL, "fork", gloss=0.6),
        d.Part("fender", fender, (46, 64, 83), "fork"),
        d.Part("handlebars", bars, METAL, "fork", gloss=0.6),
        d.Part("grips", d.merged(*grips), DARK, "fork"),
        *wheels("front", r, 0.06 * l, [(-trail, 0.0, 0.0)], "fork"),
        d.Part("trousers", d.merged(*limbs), (52, 73, 94), "rider"),
        d.Part("shirt", d.merged(torso, *sleeves), (39, 174, 96), "rider"),
        d.Part("shoes", d.merged(*shoes), DARK, "rider"),
        d.Part("face", skull, (224, 172, 136), "rider"),
        d.Part("helmet", helmet, (192, 57, 43), "rider", gloss=0.6),
    ]
    frames = (
        d.Frame("rider", position=(centre, 0.0, 0.5), turns=(d.Turn(2, 0),)),
        d.Frame("fork", position=(l, 0.0, 0.0), turns=(d.Turn(2, 1),)),
    )
    skins = (
        d.plane("frame", 0, (0.0, l), (-0.1 * l, 0.1 * l)),
        d.plane("rider", 1, (-0.1 * l, 0.1 * l), (-0.25 * l, 0.25 * l)),
        d.plane("fork", 2, (-trail - 0.1 * l, 0.1 * l), (-0.05 * l, 0.05 * l)),
    )
    return d.Drawing(frames, skins, parts=tuple(parts), scene=d.GROUND, ground=-r)
