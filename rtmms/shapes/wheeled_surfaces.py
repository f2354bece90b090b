"""The robots on wheels: decks, wheels and riders on the frames of their bodies; the snake, a skin over its links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import cos, pi, sin
from typing import Any

import numpy as np

from rtmms.shapes.shape import Pose, turn
from rtmms.shapes.surface import (
    GROUND,
    Array,
    Rigid,
    Surface,
    along,
    between,
    cylinder,
    ellipsoid,
    fixed,
    loft,
    merged,
    moved,
    of_tile,
    plate,
    rounded,
    rounded_outline,
    sphere,
    spline,
    tube,
    wheel,
)
from rtmms.wire.protocol.state import PlantInfo

DARK, METAL, RUBBER = (28, 30, 34), (168, 174, 182), (40, 42, 46)


def _wheels(
    name: str, radius: float, width: float, places: Sequence[Sequence[float]], frame: str = ""
) -> list[Surface]:
    """About y, at places of their middles."""
    tyre, hub = wheel(radius, width)
    return [
        fixed(f"{name}_tyres", merged(*(moved(tyre, p) for p in places)), RUBBER, frame, gloss=0.1),
        fixed(f"{name}_hubs", merged(*(moved(hub, p) for p in places)), METAL, frame, gloss=0.6),
    ]


def unicycle(told: Mapping[str, Any]) -> Rigid:
    """A cart of two driven wheels, a caster before them, an arrow ahead."""
    r, b = float(told["wheel_m"]), float(told["half_track_m"])
    n = 48
    rim = [(1.05 * b * cos(2 * pi * k / n), 0.92 * b * sin(2 * pi * k / n)) for k in range(n)]
    deck = moved(plate(rim, 0.16 * b), (0.0, 0.0, 0.55 * r))
    upper = moved(plate([(0.82 * x, 0.82 * y) for x, y in rim], 0.05 * b), (0.0, 0.0, 0.55 * r + 0.42 * b))
    posts = [
        moved(cylinder(0.03 * b, 0.42 * b), (x * b, y * b, 0.55 * r + 0.21 * b))
        for x, y in ((0.5, 0.45), (0.5, -0.45), (-0.5, 0.45), (-0.5, -0.45))
    ]
    tower = moved(cylinder(0.2 * b, 0.16 * b), (0.0, 0.0, 0.55 * r + 0.55 * b))
    arrow = moved(
        plate([(0.95 * b, 0.0), (0.55 * b, 0.22 * b), (0.62 * b, 0.0), (0.55 * b, -0.22 * b)], 0.02 * b),
        (-0.25 * b, 0.0, 0.55 * r + 0.46 * b),
    )
    caster = moved(sphere(0.35 * r), (0.75 * b, 0.0, -0.65 * r))
    fork = moved(cylinder(0.2 * r, 1.0 * r), (0.75 * b, 0.0, 0.1 * r))
    surfaces = [
        fixed("deck", deck, (230, 126, 34)),
        fixed("upper_deck", upper, (236, 240, 241)),
        fixed("arrow", arrow, (192, 57, 43)),
        fixed("sensor", tower, DARK, gloss=0.7),
        fixed("frame", merged(*posts, fork), METAL, gloss=0.6),
        fixed("caster", caster, METAL, gloss=0.8),
        *_wheels("driven", r, 0.2 * b, [(0.0, b, 0.0), (0.0, -b, 0.0)]),
    ]
    return Rigid(tuple(surfaces), GROUND, -r)


def snakeboard(told: Mapping[str, Any]) -> Rigid:
    """A board with a plate for a foot on each axle, and the rotor that stands for its rider."""
    l = float(told["half_length_m"])
    r, top = 0.16 * l, 0.42 * l
    board = moved(plate(rounded_outline(2.0 * l, 0.34 * l, 0.6), 0.07 * l), (0.0, 0.0, top - 0.12 * l))
    post = moved(cylinder(0.09 * l, 0.5 * l), (0.0, 0.0, top + 0.13 * l))
    bar = moved(along(0, cylinder(0.05 * l, 1.5 * l)), (0.0, 0.0, 0.33 * l), turn(2, pi / 2))
    weights = [moved(along(1, cylinder(0.17 * l, 0.2 * l)), (0.0, y * 0.78 * l, 0.33 * l)) for y in (1, -1)]
    n = 36
    pad = plate([(0.42 * l * cos(2 * pi * k / n), 0.5 * l * sin(2 * pi * k / n)) for k in range(n)], 0.06 * l)
    surfaces = [
        fixed("board", board, (39, 110, 174)),
        fixed("post", post, METAL, gloss=0.6),
        fixed("bar", bar, (90, 96, 104), "rotor", gloss=0.6),
        fixed("weights", merged(*weights), (192, 57, 43), "rotor"),
    ]
    for name in ("front", "back"):
        axle = moved(along(1, cylinder(0.04 * l, 0.92 * l)), (0.0, 0.0, 0.0))
        truck = moved(cylinder(0.08 * l, 0.3 * l), (0.0, 0.0, 0.16 * l))
        surfaces += [
            fixed(f"{name}_foot", moved(pad, (0.0, 0.0, top - 0.03 * l)), (44, 62, 80), name),
            fixed(f"{name}_truck", merged(axle, truck), METAL, name, gloss=0.6),
            *_wheels(name, r, 0.14 * l, [(0.0, 0.42 * l, 0.0), (0.0, -0.42 * l, 0.0)], name),
        ]
    return Rigid(tuple(surfaces), GROUND, -r)


def roller_racer(told: Mapping[str, Any]) -> Rigid:
    """The toy: a seat on two wheels behind, handlebars over two wheels before."""
    a, b = float(told["seat_m"]), float(told["bar_m"])
    r, rear = 0.19 * a, 0.34 * a
    hull = moved(plate(rounded_outline(1.25 * a, 0.5 * a, 0.75), 0.12 * a), (0.42 * a, 0.0, 0.42 * a - r))
    seat = moved(rounded(0.62 * a, 0.62 * a, 0.16 * a, 3.0), (0.02 * a, 0.0, 0.52 * a - r))
    back = moved(rounded(0.12 * a, 0.62 * a, 0.42 * a, 3.0), (-0.26 * a, 0.0, 0.66 * a - r), turn(1, -0.25))
    axle = along(1, cylinder(0.04 * a, 2.0 * rear))
    struts = [moved(cylinder(0.05 * a, 0.4 * a), (0.0, y, 0.16 * a)) for y in (0.5 * rear, -0.5 * rear)]
    column = moved(cylinder(0.055 * a, 0.95 * a), (0.0, 0.0, 0.34 * a))
    bars = tube(
        [
            (0.0, -0.5 * a, 0.78 * a),
            (-0.02 * a, -0.3 * a, 0.80 * a),
            (0.0, 0.0, 0.78 * a),
            (-0.02 * a, 0.3 * a, 0.80 * a),
            (0.0, 0.5 * a, 0.78 * a),
        ],
        0.04 * a,
    )
    grips = [moved(along(1, cylinder(0.06 * a, 0.22 * a)), (0.0, y, 0.78 * a)) for y in (0.47 * a, -0.47 * a)]
    reach = tube([(0.0, 0.0, 0.0), (b, 0.0, 0.0)], 0.05 * a)
    front = moved(along(1, cylinder(0.04 * a, 0.5 * a)), (b, 0.0, 0.0))
    surfaces = [
        fixed("hull", hull, (214, 48, 49)),
        fixed("seat", merged(seat, back), (44, 62, 80)),
        fixed("axle", merged(axle, *struts), METAL, gloss=0.6),
        *_wheels("rear", r, 0.11 * a, [(0.0, rear, 0.0), (0.0, -rear, 0.0)]),
        fixed("column", merged(column, reach, front), METAL, "bar", gloss=0.6),
        fixed("handlebars", bars, (241, 196, 15), "bar"),
        fixed("grips", merged(*grips), DARK, "bar"),
        *_wheels("front", 0.8 * r, 0.10 * a, [(b, 0.24 * a, -0.2 * r), (b, -0.24 * a, -0.2 * r)], "bar"),
    ]
    return Rigid(tuple(surfaces), GROUND, -r)


def trikke(told: Mapping[str, Any]) -> Rigid:
    """Two decks behind the fork, and a rider over the frame who turns as the model's does."""
    l, trail = float(told["base_m"]), float(told["trail_m"])
    r, half, z0 = 0.11 * l, 0.30 * l, 0.0
    arms = [
        tube(
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
    deck = plate(rounded_outline(0.36 * l, 0.15 * l), 0.035 * l)
    decks = [moved(deck, (0.2 * l, y * 0.88 * half, 0.055 * l), turn(2, -y * 0.22)) for y in (1, -1)]
    lean, top = -0.22 * l, 0.95 * l  # the column leans back
    column = tube(
        [(-0.5 * trail, 0.0, 0.1 * l), (0.4 * lean, 0.0, 0.5 * l), (lean, 0.0, top)], [0.035 * l, 0.028 * l, 0.024 * l]
    )
    legs = [
        tube(
            [(-trail, y * 0.07 * l, z0), (-0.6 * trail, y * 0.07 * l, 0.13 * l), (-0.5 * trail, 0.0, 0.16 * l)],
            0.018 * l,
        )
        for y in (1, -1)
    ]
    bars = tube(
        [
            (lean - 0.06 * l, -0.26 * l, top),
            (lean, -0.12 * l, top + 0.01 * l),
            (lean, 0.12 * l, top + 0.01 * l),
            (lean - 0.06 * l, 0.26 * l, top),
        ],
        0.02 * l,
    )
    grips = [moved(along(1, cylinder(0.028 * l, 0.12 * l)), (lean - 0.05 * l, y * 0.23 * l, top)) for y in (1, -1)]
    fender = moved(rounded(0.2 * l, 0.07 * l, 0.05 * l, 3.0), (-trail, 0.0, 0.13 * l))
    centre = float(told["centre_m"])
    low = -0.5 + 0.075 * l  # in the rider's frame, 0.5 m above the body's: the decks
    k = 0.9 * l  # a rider as tall as 1.7 l
    hips, chest, head = low + 0.78 * k, low + 1.2 * k, low + 1.53 * k
    x0 = 0.2 * l - centre
    # the rider's hips and chest turn with the model's joint; the legs are drawn down to the decks
    limbs = [
        tube(
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
        moved(rounded(0.26 * k, 0.1 * k, 0.09 * k, 3.0), (x0 + 0.05 * k, y * 0.88 * half, low + 0.04 * k))
        for y in (1, -1)
    ]
    torso = moved(
        rounded(0.24 * k, 0.40 * k, 0.56 * k, 2.6), (0.0, 0.0, 0.5 * (hips + chest) + 0.05 * k), turn(1, 0.08)
    )
    neck = tube([(0.0, 0.0, chest + 0.05 * k), (0.02 * k, 0.0, head)], 0.05 * k)
    skull = merged(moved(ellipsoid(0.21 * k, 0.18 * k, 0.25 * k), (0.03 * k, 0.0, head)), neck)
    helmet = moved(ellipsoid(0.27 * k, 0.23 * k, 0.18 * k), (0.02 * k, 0.0, head + 0.075 * k))
    hand = (l + lean - 0.02 * l - centre, 0.22 * l, top - 0.5)
    sleeves = [
        tube(
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
    surfaces = [
        fixed("arms", merged(*arms), (46, 64, 83), gloss=0.5),
        fixed("decks", merged(*decks), (241, 196, 15)),
        *_wheels("rear", r, 0.06 * l, [(0.0, half, 0.0), (0.0, -half, 0.0)]),
        fixed("column", merged(column, *legs), METAL, "fork", gloss=0.6),
        fixed("fender", fender, (46, 64, 83), "fork"),
        fixed("handlebars", bars, METAL, "fork", gloss=0.6),
        fixed("grips", merged(*grips), DARK, "fork"),
        *_wheels("front", r, 0.06 * l, [(-trail, 0.0, 0.0)], "fork"),
        fixed("trousers", merged(*limbs), (52, 73, 94), "rider"),
        fixed("shirt", merged(torso, *sleeves), (39, 174, 96), "rider"),
        fixed("shoes", merged(*shoes), DARK, "rider"),
        fixed("face", skull, (224, 172, 136), "rider"),
        fixed("helmet", helmet, (192, 57, 43), "rider", gloss=0.6),
    ]
    return Rigid(tuple(surfaces), GROUND, -r)


class SnakeVisual:
    """A skin over the links' joints, with a head, a tail, and the wheels of each link."""

    scene = GROUND
    ROUND, PIECES = 14, 5

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        h, n = float(told["half_length_m"]), int(told["links"])
        self._h, self._n = h, n
        r = 0.24 * h
        self.ground = -r
        # of each link its two ends; the first goes from h before to h behind the body's origin
        s = np.array([0.0, 0.35, 1.0, *(2.0 * k for k in range(1, n)), 2.0 * n - 0.8, 2.0 * n])
        fine = between(s, self.PIECES)
        self._matrix = spline(s, fine)
        wide = np.interp(
            fine,
            [0.0, 0.15, 0.5, 0.9, 1.4, 2.0, 2.0 * n - 6.0, 2.0 * n - 1.2, 2.0 * n],
            [0.0, 0.22, 0.38, 0.40, 0.30, 0.33, 0.33, 0.18, 0.0],
        )
        high = np.interp(
            fine,
            [0.0, 0.2, 0.6, 1.0, 1.6, 2.0 * n - 6.0, 2.0 * n - 1.2, 2.0 * n],
            [0.0, 0.16, 0.24, 0.27, 0.30, 0.30, 0.17, 0.0],
        )
        self._wide, self._high = wide * h, high * h
        angle = 2.0 * pi * np.arange(self.ROUND) / self.ROUND
        self._angle = angle
        faces = loft(len(fine), self.ROUND)[:, ::-1]
        height, row = (of_tile(x.mean(axis=1)) for x in (np.sin(angle)[faces % self.ROUND], fine[faces // self.ROUND]))
        saddle = (height > 0.45) & (np.abs((row % 1.0) - 0.5) < 0.22) & (row > 1.2)
        pieces = [
            Surface("back", faces[(height >= -0.4) & ~saddle], (96, 130, 62), gloss=0.4),
            Surface("saddles", faces[saddle], (58, 74, 34), gloss=0.4),
            Surface("belly", faces[height < -0.4], (220, 208, 150), gloss=0.4),
        ]
        self._bending = len(pieces)
        eyes = [moved(sphere(0.055 * h), (0.52 * h, side * 0.27 * h, 0.30 * h)) for side in (1, -1)]
        tongue = [
            tube(
                [(0.95 * h, 0.0, 0.08 * h), (1.2 * h, 0.0, 0.08 * h), (1.36 * h, side * 0.07 * h, 0.09 * h)],
                0.014 * h,
                6,
            )
            for side in (1, -1)
        ]
        made = [*pieces, fixed("eyes", merged(*eyes), DARK, gloss=0.9), fixed("tongue", merged(*tongue), (192, 57, 43))]
        for k in range(n):
            place = 0.0 if k == 0 else -h
            made += _wheels(
                f"link{k + 1}",
                r,
                0.14 * h,
                [(place, 0.40 * h, 0.0), (place, -0.40 * h, 0.0)],
                "" if k == 0 else f"link{k + 1}",
            )
        self.surfaces = tuple(made)

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        corners = np.stack(
            [skin.reshape(4, 3) for skin in skins]
        )  # of a plate: behind right, before right, before left
        ahead, behind = 0.5 * (corners[:, 1] + corners[:, 2]), 0.5 * (corners[:, 0] + corners[:, 3])
        # plates end 0.1 h (0.1 h of 1.8 h, a link has 2 h) before the joints
        way = (ahead - behind) / np.linalg.norm(ahead - behind, axis=1, keepdims=True)
        first, last = ahead[0] + 0.1 * self._h * way[0], behind[-1] - 0.1 * self._h * way[-1]
        joints = behind[:-1] - 0.1 * self._h * way[:-1]
        h = self._h
        known = np.vstack(
            [first, first - 0.35 * h * way[0], first - h * way[0], joints, last + 0.8 * h * way[-1], last]
        )
        centre = self._matrix @ known
        t = np.gradient(centre, axis=0)
        side = np.stack([-t[:, 1], t[:, 0], np.zeros(len(t))], axis=1)
        side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9)
        # rings begin on the left (of a body that goes from head to tail, -side), then go over the back
        rings = centre[:, None] - self._wide[:, None, None] * np.cos(self._angle)[None, :, None] * side[:, None]
        rings[:, :, 2] += self._high[:, None] * np.sin(self._angle)[None] + 0.10 * h
        flat = rings.reshape(-1, 3)
        return (flat,) * self._bending


WHEELED: dict[str, Callable[[Mapping[str, Any]], Rigid]] = {
    "unicycle": unicycle,
    "snakeboard": snakeboard,
    "roller_racer": roller_racer,
    "trikke": trikke,
}
