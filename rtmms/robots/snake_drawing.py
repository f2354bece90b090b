"""Draw the snake: a skin over the links' joints, with a head, a tail, and the wheels of each link."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from rtmms.plant import drawing as d
from rtmms.plant.drawing import DARK, wheels

PIECES = 5
"""Sections of the skin between two stations of the spine."""


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
    h, n = float(p["half_length_m"]), int(p["links"])
    r = 0.24 * h
    frames = tuple(
        d.Frame(f"link{k + 1}", k - 1, (-h if k == 1 else -2.0 * h, 0.0, 0.0), turns=(d.Turn(2, k - 1),))
        for k in range(1, n)
    )
    skins = tuple(
        d.plane(f"link{k + 1}", k, (-1.9 * h, -0.1 * h) if k else (-0.9 * h, 0.9 * h), (-0.3 * h, 0.3 * h))
        for k in range(n)
    )
    eyes = [d.moved(d.sphere(0.055 * h), (0.52 * h, side * 0.27 * h, 0.30 * h)) for side in (1, -1)]
    tongue = [
        d.tube(
            [(0.95 * h, 0.0, 0.08 * h), (1.2 * h, 0.0, 0.08 * h), (1.36 * h, side * 0.07 * h, 0.09 * h)],
            0.014 * h,
            6,
        )
        for side in (1, -1)
    ]
    parts = [d.Part("eyes", d.merged(*eyes), DARK, gloss=0.9), d.Part("tongue", d.merged(*tongue), (192, 57, 43))]
    for k in range(n):
        x, name = -h if k else 0.0, f"link{k + 1}"
        parts += wheels(name, r, 0.14 * h, [(x, 0.40 * h, 0.0), (x, -0.40 * h, 0.0)], name if k else "")
    return d.Drawing(frames, skins, (), (_skin(h, n),), tuple(parts), d.GROUND, -r)


def _skin(h: float, n: int) -> d.Sweep:
    """Return the skin; along the spine a link has length 2, and the first is from h in front to h behind the origin."""
    stations = (0.0, 0.35, 1.0, *(2.0 * k for k in range(1, n)), 2.0 * n - 0.8, 2.0 * n)
    ahead = [d.Point(0, (x, 0.0, 0.0)) for x in (h, 0.65 * h, 0.0)]
    joints = [d.Point(k, (-2.0 * h if k else -h, 0.0, 0.0)) for k in range(n - 1)]
    end = -2.0 * h if n > 1 else -h
    behind = [d.Point(n - 1, (x, 0.0, 0.0)) for x in (end + 0.8 * h, end)]
    fine = tuple(sorted({s for a, b in pairwise(stations) for s in d.steps(a, b, PIECES + 1)}))
    wide = d.interpolated(
        fine,
        [0.0, 0.15, 0.5, 0.9, 1.4, 2.0, max(2.0, 2.0 * n - 6.0), 2.0 * n - 1.2, 2.0 * n],
        [0.0, 0.22, 0.38, 0.40, 0.30, 0.33, 0.33, 0.18, 0.0],
    )
    high = d.interpolated(
        fine,
        [0.0, 0.2, 0.6, 1.0, 1.6, max(1.6, 2.0 * n - 6.0), 2.0 * n - 1.2, 2.0 * n],
        [0.0, 0.16, 0.24, 0.27, 0.30, 0.30, 0.17, 0.0],
    )
    return d.Sweep(
        (*ahead, *joints, *behind), fine, tuple(h * x for x in wide), tuple(h * x for x in high), (
            d.Zone("belly", (220, 208, 150), (d.Box(across=(-2.0, -0.4)),), gloss=0.4),
            d.Zone("saddles", (58, 74, 34), (d.Box((1.2, 2.0 * n), (0.45, 2.0)),), d.Stripes(1.0, 0.22), gloss=0.4),
            d.Zone("back", (96, 130, 62), gloss=0.4),
        ),
        stations=stations, axes=d.LEVEL, round=14, lift=0.10 * h,
    )  # fmt: skip
