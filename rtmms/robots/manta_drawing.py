"""Draw the manta: one surface from fin tip to fin tip, through the rods' tips and the chains' joints.

The model contains no shape of the body, the head and the tail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rtmms.plant import drawing as d

TOP = (56, 78, 106)
BELLY = (226, 232, 236)
MARK = (168, 184, 198)
DARK = (16, 18, 22)
BODY = (0.70, 0.60, 0.16)
"""Full axes of the ellipsoid that represents the body in figures, m; the second is the distance of the fin roots."""
OUTLINE = ((0.0, 0.30, -0.345), (0.33, 0.30, -0.325), (0.67, 0.25, -0.27))
"""Outline of the drawn body: share of the fin root's y, and its begin and end, m from the middle of the fin roots."""


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
    links, n, support = int(p["links"]), int(p["chains"]), float(p["support_length_m"])
    front, back = float(p["front_rod_m"]), float(p["back_rod_m"])
    first, last = float(p["chain_length_front_m"]), float(p["chain_length_back_m"])
    x, y, z = (float(number) for number in p["fin_root_m"])
    stations = tuple((i + 0.5) * support / n for i in range(n))
    lengths = tuple((last + (first - last) * s / support) / links for s in stations)
    frames: list[d.Coupler | d.Slider] = []
    fins, rods = [], []
    for k, side in enumerate(("left", "right")):
        mirrored, sign = k == 1, -1.0 if k else 1.0
        frames += [
            d.Coupler(f"{side}_fin", "rod_angle", 2 * k, (x, y, z), front, back, support, p["support_roll"] == "mean",
                    mirrored),
            # the front rod slides along x on its motor: it is drawn where its tip is
            d.Slider("", 2 * k + 1, (support, 0.0, 0.0), sign * y, z),
        ]  # fmt: skip
        fins.append(d.ChainSkin(f"{side}_fin", 2 * k + 1, stations, lengths, links, k * links * n, mirrored))
        bars = (
            d.Point(2 * k + 2, (0.0, 0.0, 0.0)), d.Point(2 * k + 1, (support, 0.0, 0.0)),
            d.Point(2 * k + 1, (0.0, 0.0, 0.0)), d.Point(0, (x, sign * y, z)),
        )  # fmt: skip
        rods.append(d.PointSkin(d.Skin(f"{side}_rods", (), ((0, 1, 2, 3),)), bars))
    middle, root, reach = x + 0.5 * support, abs(y), 0.5 * (front + back)
    chain = 0.5 * (first + last)
    skin = d.Membrane(
        (fins[0], fins[1]), (x, y, z), support, OUTLINE, reach, chain,
        thickness=(
            (0.0, 0.088), (0.33 * root, 0.080), (0.67 * root, 0.055), (root, 0.036), (root + 0.6 * reach, 0.022),
            (root + reach, 0.016), (root + reach + chain, 0.005),
        ),
        zones=(d.Zone("shoulders", MARK, (d.Box((0.2 * root, 0.85 * root), (0.58, 0.80)),)), d.Zone("back", TOP)),
        belly=d.Zone("belly", BELLY),
    )  # fmt: skip
    body = d.Solid("body", (middle, 0.0, z), (BODY[0], 2.0 * root or BODY[1], BODY[2]))
    return d.Drawing(
        tuple(frames), (*fins, *rods), (body,), (skin,), _parts(middle, root, z), d.WATER,
        outputs={d.JOINTS: (2, links, n)},
    )  # fmt: skip


def _parts(middle: float, y: float, z: float) -> tuple[d.Part, ...]:
    """Return head and tail."""
    horns, eyes = [], []
    for side in (1.0, -1.0):
        horn = d.tube(
            [(0.0, 0.0, 0.0), (0.0, 0.0, 0.07), (0.0, side * 0.012, 0.14), (0.0, side * 0.04, 0.19)],
            [0.040, 0.038, 0.027, 0.012],
            flat=0.45,
        )
        horns.append(d.moved(d.along(0, horn), (middle + 0.25, side * 0.36 * y, z - 0.012)))
        eyes.append(d.moved(d.sphere(0.017), (middle + 0.236, side * 0.66 * y, z + 0.004)))
    mouth = d.moved(d.ellipsoid(0.05, 0.42 * y, 0.032), (middle + 0.295, 0.0, z - 0.004))
    tail = d.tube(
        [(middle - 0.30 - 0.12 * k, 0.0, z + 0.004 * k) for k in range(6)],
        [0.022, 0.014, 0.010, 0.008, 0.006, 0.003],
        8,
    )
    dorsal = d.moved(d.ellipsoid(0.09, 0.012, 0.075), (middle - 0.31, 0.0, z + 0.02), (0.9, 0.0, -0.43, 0.0))
    return (
        d.Part("head", d.merged(*horns), TOP),
        d.Part("tail", d.merged(tail, dorsal), TOP),
        d.Part("eyes", d.merged(*eyes), DARK, gloss=0.9),
        d.Part("mouth", mouth, DARK),
    )
