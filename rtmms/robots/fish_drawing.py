"""Draw the trout: its sections, with a fin on the back, two at the sides, and a dark rim of the tail."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin, sqrt
from typing import Any

from rtmms.plant import drawing as d

ROUND = 12
HEAD = 6
"""Number of slices of the head."""


def joint_stations(length: float, head: float, joints: int) -> list[float]:
    """Return the distances of the joints from the nose, for the model and the drawing.

    They are (j - 1/2) of a piece of the tail behind the head, so that the end links have half a piece.

    Parameters
    ----------
    length : float
        Length of the fish, m.
    head : float
        Share of the head.
    joints : int
        Number of joints.

    Returns
    -------
    list[float]
        m.
    """
    piece = length * (1.0 - head) / joints
    return [head * length + piece * (j + 0.5) for j in range(joints)]


def half_axes(x: float, length: float, width: float, height: float) -> tuple[float, float]:
    """Return the half-axes of a section, for the model and the drawing.

    Parameters
    ----------
    x : float
        Distance from the nose, m.
    length : float
        Length of the fish, m.
    width, height : float
        Factors on the half-axes.

    Returns
    -------
    (float, float)
        a (lateral) and b (vertical), m.

    Notes
    -----
    With s = x / l: a / .06 l = 1.92 sqrt(s) (1 - s)^.8 + .08 s, b / l = .228 sqrt(s) (1 - s) + .1 s^6.
    """
    s = min(max(x / length, 0.0), 1.0)
    a = 0.06 * length * (1.92 * sqrt(s) * (1.0 - s) ** 0.8 + 0.08 * s)
    b = 0.228 * length * sqrt(s) * (1.0 - s) + 0.1 * length * s**6
    return width * a, height * b


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
    length, count, head = float(p["length_m"]), int(p["joints"]), float(p["head"])
    width, height = float(p["width"]), float(p["height"])
    stations = joint_stations(length, head, count)
    # the sections' frame, x from nose to tail, in the body's, x forward
    frames = [d.Frame("", quaternion=(0.0, 0.0, 0.0, 1.0))]
    for k, x in enumerate(stations):
        before = stations[k - 1] if k else 0.0
        frames.append(d.Frame(f"link{k + 1}", k + 1, (x - before, 0.0, 0.0), turns=(d.Turn(2, k),)))

    def ring(frame: int, x: float, start: float) -> list[d.Point]:
        """Return points of the section at x from the nose, in a frame whose origin is at `start`, m."""
        a, b = half_axes(x, length, width, height)
        angles = [2.0 * pi * k / ROUND for k in range(ROUND + 1)]
        return [d.Point(frame, (x - start, a * cos(angle), b * sin(angle))) for angle in angles]

    points = [point for k in range(HEAD + 1) for point in ring(1, stations[0] * (k / HEAD) ** 2, 0.0)]
    for k, (start, end) in enumerate(zip(stations, [*stations[1:], length], strict=True)):
        points += ring(k + 2, end, start)
    body = d.Loft(
        "skin", (
            d.Zone("tail", (120, 128, 88), (d.Box((0.90, 2.0)),), gloss=0.6),
            d.Zone("side", (214, 160, 140), (d.Box(across=(-0.35, 0.35)),), gloss=0.6),
            d.Zone("belly", (240, 238, 226), (d.Box(across=(-2.0, -0.35)),), gloss=0.6),
            d.Zone("back", (92, 116, 98), gloss=0.6),
        ),
        fins=(
            d.Fins("back_fin", (120, 128, 88), (d.Ridge(0.36, 0.56, (0.0, 0.75, 0.8, 0.5, 0.2)),)),
            d.Fins("belly_fin", (196, 140, 108), (d.Ridge(0.62, 0.76, (0.0, 0.7, 0.6, 0.15), above=False),)),
        ),
    )  # fmt: skip
    l = length
    eyes = [d.moved(d.sphere(0.011 * l), (-0.05 * l, side * 0.034 * l * width, 0.012 * l)) for side in (1, -1)]
    sides = [
        d.moved(
            d.ellipsoid(0.11 * l, 0.006 * l, 0.05 * l),
            (-0.25 * l, side * 0.072 * l * width, -0.035 * l),
            (0.93, side * 0.25, -0.2, -side * 0.18),
        )
        for side in (1, -1)
    ]
    parts = (
        d.Part("eyes", d.merged(*eyes), (16, 18, 22), gloss=0.9),
        d.Part("side_fins", d.merged(*sides), (196, 140, 108)),
    )
    skin = d.PointSkin(d.rings("skin", HEAD + 1 + count, ROUND), tuple(points))
    return d.Drawing(tuple(frames), (skin,), (), (body,), parts, d.WATER, outputs={d.JOINTS: (count,)})
