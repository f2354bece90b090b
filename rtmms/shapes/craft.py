"""The quadrotor and the torpedo: their model's sizes, with what such craft look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi
from typing import Any

from rtmms.shapes.shape import Pose, turn
from rtmms.shapes.surface import (
    AIR,
    WATER,
    Rigid,
    along,
    cylinder,
    fixed,
    merged,
    moved,
    plate,
    propeller,
    revolved,
    rounded,
    seen_from,
    sphere,
    tube,
)

DARK, METAL = (30, 32, 38), (170, 176, 184)


def quadrotor(told: Mapping[str, Any], frames: Mapping[str, Pose]) -> Rigid:
    """Arms as long as the model's; the front rotors are red."""
    arm = float(told["arm_m"])
    r, up = 0.60 * arm, 0.16 * arm
    places = [(arm, 0.0), (0.0, arm), (-arm, 0.0), (0.0, -arm)]
    beams = [tube([(0.15 * x, 0.15 * y, 0.0), (x, y, 0.02 * arm)], 0.06 * arm, 12) for x, y in places]
    motors = [moved(cylinder(0.11 * arm, 0.22 * arm), (x, y, 0.06 * arm)) for x, y in places]
    blades = [moved(propeller(r, 2, pitch=0.18), (x, y, up), turn(2, 0.4 + 0.9 * k)) for k, (x, y) in enumerate(places)]
    discs = [moved(cylinder(r, 0.012 * arm), (x, y, up)) for x, y in places]
    hull = moved(rounded(0.62 * arm, 0.42 * arm, 0.24 * arm, 3.0), (0.0, 0.0, 0.03 * arm))
    camera = moved(sphere(0.10 * arm), (0.30 * arm, 0.0, -0.08 * arm))
    skids = []
    for side in (1, -1):
        y = side * 0.32 * arm
        skids.append(tube([(-0.4 * arm, y, -0.42 * arm), (0.4 * arm, y, -0.42 * arm)], 0.025 * arm, 8))
        skids += [tube([(x, 0.6 * y, 0.0), (x, y, -0.42 * arm)], 0.022 * arm, 8) for x in (0.2 * arm, -0.2 * arm)]
    return Rigid(
        (
            fixed("hull", hull, (238, 240, 243), gloss=0.5),
            fixed("beams", merged(*beams), DARK),
            fixed("motors", merged(*motors), METAL, gloss=0.7),
            fixed("front_blades", blades[0], (214, 48, 49)),
            fixed("blades", merged(*blades[1:]), (52, 58, 68)),
            fixed("discs", merged(*discs), (150, 170, 190), opacity=0.18),
            fixed("camera", camera, DARK, gloss=0.9),
            fixed("skids", merged(*skids), DARK),
        ),
        AIR,
    )


def torpedo(told: Mapping[str, Any], frames: Mapping[str, Pose]) -> Rigid:
    """A hull of the model's length and radius with a round nose and a slender tail; fins where the model has them."""
    l, r = float(told["length_m"]), float(told["radius_m"])
    span, chord, behind = (float(told[k]) for k in ("fin_span_m", "fin_chord_m", "fin_behind_m"))
    nose, tail = 0.13 * l, 0.26 * l
    steps = [k / 12 for k in range(13)]
    back = [(r * (1.0 - (1.0 - s) ** 2.0) * 0.88 + 0.12 * r, -0.5 * l + tail * s) for s in steps]
    front = [(r * (1.0 - s**2.2) ** 0.5, 0.5 * l - nose + nose * s) for s in steps[1:]]
    hull = along(0, revolved([(0.0, -0.5 * l), *back, (r, 0.5 * l - nose), *front], (1,), 40))
    band = moved(along(0, cylinder(1.006 * r, 0.05 * l, 40)), (0.18 * l, 0.0, 0.0))
    window = moved(
        along(0, revolved([(r * 0.66, -0.02 * l), (0.45 * r, 0.012 * l), (0.0, 0.028 * l)], (), 32)),
        (0.475 * l, 0.0, 0.0),
    )
    screw = moved(along(0, propeller(0.92 * r, 3, pitch=0.5)), (-0.5 * l - 0.02 * l, 0.0, 0.0))
    mast = moved(rounded(0.09 * l, 0.03 * l, 0.11 * l, 2.5), (0.0, 0.0, r + 0.03 * l))
    made = [
        fixed("hull", hull, (244, 196, 48), gloss=0.5),
        fixed("band", band, (40, 44, 52)),
        fixed("window", window, (24, 40, 66), gloss=0.95),
        fixed("propeller", screw, (176, 130, 60), gloss=0.8),
        fixed("mast", mast, (200, 60, 48)),
    ]
    swept = [
        (-0.75 * chord, 0.0),
        (0.25 * chord, 0.0),
        (0.02 * chord, 0.92 * span),
        (-0.08 * chord, span),
        (-0.68 * chord, span),
        (-0.75 * chord, 0.94 * span),
    ]
    blade = plate([(x, r + (y if y else -0.4 * r)) for x, y in swept], 0.012)
    for k, (name, angle) in enumerate((("top", pi / 2), ("left", 0.0), ("bottom", -pi / 2), ("right", pi))):
        out = moved(blade, (-behind, 0.0, 0.0), turn(0, angle))
        made.append(
            fixed(f"fin_{name}", seen_from(frames[f"joint{k + 1}"], out), (40, 44, 52), f"joint{k + 1}", gloss=0.4)
        )
    return Rigid(tuple(made), WATER)


CRAFT: dict[str, Callable[[Mapping[str, Any], Mapping[str, Pose]], Rigid]] = {
    "quadrotor": quadrotor,
    "torpedo": torpedo,
}
