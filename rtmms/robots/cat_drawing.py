"""Draw the cat: a torso through both halves, which turn as the model's do, with head, legs and tail.

z goes from the hind to the front half, x to the side of the legs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin
from typing import Any

from rtmms.base.attitude import multiply, turn
from rtmms.plant import drawing as d

FUR = (218, 138, 62)
STRIPES = (150, 84, 34)
WHITE = (244, 236, 224)
PINK = (226, 140, 140)
DARK = (26, 26, 30)
ROUND = 24
RINGS = 41


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
    arm = float(p["arm_m"])
    return d.Drawing(
        (d.Frame("front", position=(0.0, 0.0, arm), turns=(d.Turn(0, 0), d.Turn(1, 1))),),
        (_half("hind", 0, 0.0, arm), _half("front", 1, arm, arm)),
        bending=(_torso(arm),),
        parts=_parts(arm),
        scene=d.AIR,
        outputs={d.JOINTS: (2,)},
    )


def _half(name: str, frame: int, middle: float, arm: float) -> d.PointSkin:
    """Return a half of the cat: a tube along z that narrows at its ends, with two legs towards x."""
    size, rings = 0.35 * arm, ((-1.0, 0.3), (-0.8, 0.9), (0.0, 1.0), (0.8, 0.9), (1.0, 0.3))
    points = [
        (part * size * cos(2.0 * pi * k / ROUND), part * size * sin(2.0 * pi * k / ROUND), middle + z * arm)
        for z, part in rings
        for k in range(ROUND + 1)
    ]
    body, first = d.sheet(name, len(rings), ROUND + 1), len(points)
    for side in (-0.6 * size, 0.6 * size):
        points += [(0.7 * size, side, middle), (2.5 * size, side, middle)]
    lines = (*(body.lines[k] for k in (0, ROUND // 4, ROUND // 2, 3 * ROUND // 4)), body.lines[-1])
    legs = ((first, first + 1), (first + 2, first + 3))
    return d.PointSkin(d.Skin(name, body.triangles, (*lines, *legs)), tuple(d.Point(frame, point) for point in points))


def _torso(arm: float) -> d.Sweep:
    size, share = 0.36 * arm, d.steps(0.0, 1.0, RINGS)
    half = d.interpolated(
        share,
        [0.0, 0.04, 0.14, 0.35, 0.5, 0.65, 0.86, 0.96, 1.0],
        [0.0, 0.62, 1.05, 1.0, 0.86, 0.98, 1.02, 0.66, 0.0],
    )
    spine = ((0, -arm), (0, -0.5 * arm), (1, 0.5 * arm), (1, arm))
    return d.Sweep(
        spine=tuple(d.Point(frame, (0.0, 0.0, z)) for frame, z in spine),
        stations=(0.0, 0.25, 0.75, 1.0), fine=share, axes=d.CARRIED, carrier=1, round=20,
        wide=tuple(0.95 * size * h for h in half), high=tuple(0.86 * size * h for h in half),
        zones=(
            d.Zone("belly", WHITE, (d.Box(across=(0.7, 2.0)),), gloss=0.05),
            d.Zone("stripes", STRIPES, (d.Box((0.1, 0.9)),), d.Stripes(7.0, 0.16), gloss=0.05),
            d.Zone("back", FUR, gloss=0.05),
        ),
    )  # fmt: skip


def _parts(arm: float) -> tuple[d.Part, ...]:
    size = 0.36 * arm

    def legs(z: float, back: bool) -> tuple[list[d.Mesh], list[d.Mesh]]:
        limbs, paws = [], []
        for y in (0.55 * size, -0.55 * size):
            knee = z - 0.10 * arm if back else z + 0.04 * arm
            foot = z + 0.02 * arm
            limbs.append(
                d.tube(
                    [(0.35 * size, y, z), (1.35 * size, y, knee), (2.15 * size, y, foot), (2.5 * size, y, foot)],
                    [0.30 * size, 0.21 * size, 0.15 * size, 0.14 * size],
                    12,
                )
            )
            paws.append(
                d.moved(d.ellipsoid(0.26 * size, 0.34 * size, 0.42 * size), (2.62 * size, y, foot + 0.08 * size))
            )
        return limbs, paws

    hind, hind_paws = legs(-0.62 * arm, back=True)
    fore, fore_paws = legs(arm + 0.62 * arm, back=False)
    tail = d.tube(
        [
            (-0.3 * size, 0.0, -0.95 * arm),
            (-0.6 * size, 0.0, -1.3 * arm),
            (-1.4 * size, 0.0, -1.55 * arm),
            (-2.3 * size, 0.0, -1.5 * arm),
            (-2.9 * size, 0.0, -1.3 * arm),
        ],
        [0.15 * size, 0.14 * size, 0.13 * size, 0.12 * size, 0.08 * size],
        10,
    )
    zf, hs = 2.0 * arm, 1.18 * size
    xh, zh = -0.85 * size, zf + 0.32 * arm
    neck = d.tube(
        [(-0.05 * size, 0.0, zf - 0.3 * arm), (-0.6 * size, 0.0, zf + 0.1 * arm), (xh, 0.0, zh)], 0.62 * size, 12
    )
    skull = d.moved(d.ellipsoid(1.5 * hs, 1.7 * hs, 1.45 * hs), (xh, 0.0, zh))
    cheeks = d.moved(d.ellipsoid(0.55 * hs, 0.95 * hs, 0.6 * hs), (xh + 0.22 * hs, 0.0, zh + 0.55 * hs))
    nose = d.moved(d.ellipsoid(0.14 * hs, 0.2 * hs, 0.16 * hs), (xh + 0.06 * hs, 0.0, zh + 0.86 * hs))
    cone = d.revolved([(0.0, -0.5), (0.5, -0.5), (0.30, 0.1), (0.0, 0.5)], (1,), 16)
    ears = [
        d.moved(
            cone,
            (xh - 0.82 * hs, y * 0.50 * hs, zh - 0.02 * hs),
            multiply(turn(0, -y * 0.28), turn(1, -pi / 2)),
            (0.40 * hs, 0.58 * hs, 0.72 * hs),
        )
        for y in (1, -1)
    ]
    eyes = [
        d.moved(d.ellipsoid(0.34 * hs, 0.28 * hs, 0.2 * hs), (xh - 0.12 * hs, y * 0.36 * hs, zh + 0.62 * hs))
        for y in (1, -1)
    ]
    pupils = [
        d.moved(d.ellipsoid(0.28 * hs, 0.1 * hs, 0.12 * hs), (xh - 0.12 * hs, y * 0.37 * hs, zh + 0.69 * hs))
        for y in (1, -1)
    ]
    hairs = [
        d.tube(
            [
                (xh + 0.2 * hs, y * 0.3 * hs, zh + 0.75 * hs),
                (xh + (0.1 + 0.14 * k) * hs, y * 1.25 * hs, zh + 0.8 * hs),
            ],
            0.012 * hs,
            5,
        )
        for y in (1, -1)
        for k in range(3)
    ]
    # the front half's frame stands at arm along z; these are given in the hind half's, with the joints at 0
    return (
        d.Part("hind_legs", d.merged(*hind, tail), FUR, gloss=0.05),
        d.Part("hind_paws", d.merged(*hind_paws), WHITE, gloss=0.05),
        d.Part("head", d.merged(*fore, neck, skull, *ears), FUR, "front", gloss=0.05, at_rest=True),
        d.Part("front_paws", d.merged(*fore_paws, cheeks), WHITE, "front", gloss=0.05, at_rest=True),
        d.Part("nose", nose, PINK, "front", at_rest=True),
        d.Part("eyes", d.merged(*eyes), (150, 190, 70), "front", gloss=0.9, at_rest=True),
        d.Part("pupils", d.merged(*pupils, *hairs), DARK, "front", gloss=0.9, at_rest=True),
    )
