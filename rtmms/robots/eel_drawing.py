"""Draw the eel: a skin over head and links, a band at each joint, and fins along back and belly."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin
from typing import Any

from rtmms.base.attitude import HOME, Pose, after, turn
from rtmms.plant import drawing as d

PAPER: Pose = (HOME[0], (0.0, 0.0, 0.0, 1.0))
"""Pose of the paper's frame, x from nose to tail, in the body's frame, x forward."""
ROUND = 12


def joint_table(joint: int, head_length: float, link_length: float) -> tuple[tuple[float, float, float, float], ...]:
    """Return the parameters of yaw, pitch and roll of a spherical joint, joints 3 i - 2, 3 i - 1 and 3 i.

    Parameters
    ----------
    joint : int
        i, from 1.
    head_length : float
        m.
    link_length : float
        m.

    Returns
    -------
    tuple of (alpha, d, q0, r)
        rad, m, rad, m, of the three joints.

    Notes
    -----
    They are the paper's table I, repaired (docs/eel.md); the model and the drawing use it.
    """
    half = pi / 2
    return (
        (0.0, head_length, 0.0, 0.0) if joint == 1 else (half, 0.0, half, 0.0),
        (-half, 0.0, -half, 0.0),
        (-half, 0.0, half, link_length),
    )


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
    a, b, nose = (float(p[key]) for key in ("half_width_m", "half_height_m", "nose_length_m"))
    count, head, tail = int(p["joints"]), float(p["head_length_m"]), float(p["tail_length_m"])
    frames = [d.Frame("", 0, *PAPER)]
    for k in range(1, count + 1):
        for axis, (alpha, offset, q0, r) in enumerate(joint_table(k, head, float(p["link_length_m"]))):
            # Rot(x, alpha) Trans(x, offset) Rot(z, q0) Trans(z, r)
            pose = after(((offset, 0.0, 0.0), turn(0, alpha)), ((0.0, 0.0, r), turn(2, q0)))
            joint = 3 * (k - 1) + axis
            frames.append(d.Frame(f"link{k}" if axis == 2 else "", joint + 1, *pose, (d.Turn(2, joint),)))
    ring = [(a * cos(2 * pi * k / ROUND), b * sin(2 * pi * k / ROUND)) for k in range(ROUND + 1)]
    points = [
        d.Point(1, (x, size * y, size * z))
        for x, size in ((0.0, 0.0), (0.3 * nose, 0.714), (nose, 1.0), (head, 1.0))
        for y, z in ring
    ]
    # frames of links stand at their far ends, z along the link, x to its side, y down
    ends = [(k, -tail if k == count else 0.0, 1.0) for k in range(1, count + 1)]
    for k, back, size in (*ends, (count, -0.3 * tail, 0.714), (count, 0.0, 0.0)):
        points += [d.Point(3 * k + 1, (-size * x, -size * y, back)) for x, y in ring]
    body = d.Loft(
        "skin", (
            d.Zone("belly", (226, 214, 168), (d.Box(across=(-2.0, -0.35)),), gloss=0.5),
            d.Zone("back", (104, 108, 62), gloss=0.5),
        ),
        bands=d.Bands("joints", (58, 64, 44)),
        fins=(d.Fins("fins", (66, 76, 50), (
            d.Ridge(0.30, 0.985, (0.0, 0.45, 0.7, 0.75, 0.75, 0.7, 0.4)),
            d.Ridge(0.5, 0.985, (0.0, 0.5, 0.6, 0.6, 0.4), above=False),
        )),),
    )  # fmt: skip
    eyes = [d.moved(d.sphere(0.16 * b), (-0.62 * nose, side * 0.80 * a, 0.30 * b)) for side in (1, -1)]
    pectoral = [
        d.moved(
            d.ellipsoid(1.5 * nose, 0.012, 0.9 * nose),
            (-2.2 * nose, side * 1.15 * a, -0.15 * b),
            (0.94, side * 0.3, 0.15, side * 0.12),
        )
        for side in (1, -1)
    ]
    parts = (
        d.Part("eyes", d.merged(*eyes), (16, 18, 22), gloss=0.9),
        d.Part("pectoral_fins", d.merged(*pectoral), (84, 92, 58)),
    )
    skin = d.PointSkin(d.rings("skin", 4 + count + 2, ROUND), tuple(points))
    return d.Drawing(tuple(frames), (skin,), (), (body,), parts, d.WATER, outputs={d.JOINTS: (3 * count,)})
