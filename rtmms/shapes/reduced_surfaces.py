"""The cat, the satellite, Purcell's swimmer and the three ellipses, on the frames of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from rtmms.base.spatial import quaternion_matrix
from rtmms.shapes.shape import HOME, Pose, multiply, turn
from rtmms.shapes.surface import (
    AIR,
    SPACE,
    WATER,
    Array,
    Rigid,
    Surface,
    along,
    block,
    cylinder,
    ellipsoid,
    fixed,
    loft,
    merged,
    moved,
    of_tile,
    revolved,
    sphere,
    spline,
    tube,
)
from rtmms.wire.protocol.state import PlantInfo

DARK, METAL = (26, 26, 30), (176, 182, 190)


class CatVisual:
    """A torso through both halves, which turn as the model's do; head, legs and tail are drawn. z goes from the hind to
    the front half, x to the side of the legs."""

    scene = AIR
    ground = None
    ROUND, RINGS = 20, 41

    def __init__(self, plant: PlantInfo) -> None:
        arm = float(plant.parameters["arm_m"])
        self._arm, size = arm, 0.36 * arm
        fur, stripes, white, pink = (218, 138, 62), (150, 84, 34), (244, 236, 224), (226, 140, 140)
        self._share = np.linspace(0.0, 1.0, self.RINGS)
        self._size = size * np.interp(
            self._share,
            [0.0, 0.04, 0.14, 0.35, 0.5, 0.65, 0.86, 0.96, 1.0],
            [0.0, 0.62, 1.05, 1.0, 0.86, 0.98, 1.02, 0.66, 0.0],
        )
        angle = 2.0 * pi * np.arange(self.ROUND) / self.ROUND
        self._ring = np.stack([0.95 * np.cos(angle), np.sin(angle) * 0.86], axis=1)
        faces = loft(self.RINGS, self.ROUND)
        row = of_tile(self._share[faces // self.ROUND].mean(axis=1))
        low = of_tile(np.cos(angle)[faces % self.ROUND].mean(axis=1)) > 0.7
        stripe = ~low & (np.abs((row * 7.0) % 1.0 - 0.5) < 0.16) & (row > 0.1) & (row < 0.9)
        bending = [
            Surface("back", faces[~low & ~stripe], fur, gloss=0.05),
            Surface("stripes", faces[stripe], stripes, gloss=0.05),
            Surface("belly", faces[low], white, gloss=0.05),
        ]

        def legs(z: float, back: bool) -> tuple[list[Any], list[Any]]:
            made, paws = [], []
            for y in (0.55 * size, -0.55 * size):
                knee = z - 0.10 * arm if back else z + 0.04 * arm
                foot = z + 0.02 * arm
                made.append(
                    tube(
                        [(0.35 * size, y, z), (1.35 * size, y, knee), (2.15 * size, y, foot), (2.5 * size, y, foot)],
                        [0.30 * size, 0.21 * size, 0.15 * size, 0.14 * size],
                        12,
                    )
                )
                paws.append(
                    moved(ellipsoid(0.26 * size, 0.34 * size, 0.42 * size), (2.62 * size, y, foot + 0.08 * size))
                )
            return made, paws

        hind, hind_paws = legs(-0.62 * arm, back=True)
        fore, fore_paws = legs(arm + 0.62 * arm, back=False)
        tail = tube(
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
        neck = tube(
            [(-0.05 * size, 0.0, zf - 0.3 * arm), (-0.6 * size, 0.0, zf + 0.1 * arm), (xh, 0.0, zh)], 0.62 * size, 12
        )
        skull = moved(ellipsoid(1.5 * hs, 1.7 * hs, 1.45 * hs), (xh, 0.0, zh))
        cheeks = moved(ellipsoid(0.55 * hs, 0.95 * hs, 0.6 * hs), (xh + 0.22 * hs, 0.0, zh + 0.55 * hs))
        nose = moved(ellipsoid(0.14 * hs, 0.2 * hs, 0.16 * hs), (xh + 0.06 * hs, 0.0, zh + 0.86 * hs))
        cone = revolved([(0.0, -0.5), (0.5, -0.5), (0.30, 0.1), (0.0, 0.5)], (1,), 16)
        ears = [
            moved(
                cone,
                (xh - 0.82 * hs, y * 0.50 * hs, zh - 0.02 * hs),
                multiply(turn(0, -y * 0.28), turn(1, -pi / 2)),
                (0.40 * hs, 0.58 * hs, 0.72 * hs),
            )
            for y in (1, -1)
        ]
        eyes = [
            moved(ellipsoid(0.34 * hs, 0.28 * hs, 0.2 * hs), (xh - 0.12 * hs, y * 0.36 * hs, zh + 0.62 * hs))
            for y in (1, -1)
        ]
        pupils = [
            moved(ellipsoid(0.28 * hs, 0.1 * hs, 0.12 * hs), (xh - 0.12 * hs, y * 0.37 * hs, zh + 0.69 * hs))
            for y in (1, -1)
        ]
        hairs = [
            tube(
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
        # the front half's frame stands at arm along z; what is given here is in the hind half's
        front = {
            name: moved(mesh, (0.0, 0.0, -arm))
            for name, mesh in (
                ("legs", merged(*fore, neck, skull, *ears)),
                ("paws", merged(*fore_paws, cheeks)),
                ("nose", nose),
                ("eyes", merged(*eyes)),
                ("pupils", merged(*pupils, *hairs)),
            )
        }
        self.surfaces = (
            *bending,
            fixed("hind_legs", merged(*hind, tail), fur, gloss=0.05),
            fixed("hind_paws", merged(*hind_paws), white, gloss=0.05),
            fixed("head", front["legs"], fur, "front", gloss=0.05),
            fixed("front_paws", front["paws"], white, "front", gloss=0.05),
            fixed("nose", front["nose"], pink, "front"),
            fixed("eyes", front["eyes"], (150, 190, 70), "front", gloss=0.9),
            fixed("pupils", front["pupils"], DARK, "front", gloss=0.9),
        )

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        place, attitude = frames.get("front", HOME)
        turned, arm = quaternion_matrix(np.array(attitude)), self._arm
        rear = np.array([[0.0, 0.0, -arm], [0.0, 0.0, 0.0]])
        ahead = np.array(place) + np.array([[0.0, 0.0, 0.0], [0.0, 0.0, arm]]) @ turned.T
        known = np.vstack([rear[:1], rear[:1] * 0.5, ahead[:1] + 0.5 * (ahead[1:] - ahead[:1]), ahead[1:]])
        centre = spline([0.0, 0.25, 0.75, 1.0], self._share) @ known
        share = np.clip((self._share - 0.3) / 0.4, 0.0, 1.0)[:, None]
        x = (1.0 - share) * np.array([1.0, 0.0, 0.0]) + share * turned[:, 0]
        y = (1.0 - share) * np.array([0.0, 1.0, 0.0]) + share * turned[:, 1]
        t = np.gradient(centre, axis=0)
        t /= np.linalg.norm(t, axis=1, keepdims=True)
        x = x - t * np.sum(x * t, axis=1, keepdims=True)
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
        sense = np.sign(np.sum(np.cross(t, x) * y, axis=1, keepdims=True))
        y = np.cross(t, x) * np.where(sense == 0.0, 1.0, np.abs(sense))
        grid = centre[:, None] + self._size[:, None, None] * (
            self._ring[None, :, :1] * x[:, None] + self._ring[None, :, 1:] * y[:, None]
        )
        flat = grid.reshape(-1, 3)
        return flat, flat, flat


def satellite(told: Mapping[str, Any]) -> Rigid:
    """Two decks of foil with the reaction wheels between them, where the model has them, as rings of its axial inertia;
    panels and an antenna are drawn."""
    arm = float(told["arm_m"])
    r = sqrt(float(told["axial_kg_m2"]) / float(told["wheel_kg"]))  # m r^2
    size = 2.7 * max(r, arm)
    gold, blue, grey = (224, 170, 62), (36, 66, 150), (214, 218, 224)
    low, high = -0.56 * size, 0.56 * size
    decks = [moved(block(size, size, 0.22 * size, 0.1), (0.0, 0.0, z)) for z in (low, high)]
    posts = [
        moved(cylinder(0.035 * size, 0.92 * size), (x * size, y * size, 0.0))
        for x in (-0.44, 0.44)
        for y in (-0.44, 0.44)
    ]
    cells, frames = [], []
    for side in (1, -1):
        frames.append(tube([(0.0, side * 0.45 * size, high), (0.0, side * 4.0 * size, high)], 0.03 * size))
        for k in range(3):
            place = side * (1.35 + 1.08 * k) * size
            cells += [
                moved(block(0.72 * size, 0.98 * size, 0.03 * size, 0.2), (x * size, place, high), turn(1, 0.5))
                for x in (0.0,)
            ]
            frames.append(
                moved(
                    block(0.80 * size, 1.05 * size, 0.02 * size, 0.2),
                    (-0.012 * size, place, high - 0.016 * size),
                    turn(1, 0.5),
                )
            )
            frames.append(moved(block(0.72 * size, 0.02 * size, 0.036 * size, 0.2), (0.0, place, high), turn(1, 0.5)))
    dish = moved(
        revolved(
            [
                (0.0, 0.0),
                (0.25, 0.04),
                (0.45, 0.14),
                (0.6, 0.28),
                (0.58, 0.29),
                (0.43, 0.16),
                (0.25, 0.07),
                (0.0, 0.03),
            ],
            (3, 4),
        ),
        (0.0, 0.0, 0.70 * size),
        scale=(0.6 * size, 0.6 * size, 0.6 * size),
    )
    horn = moved(cylinder(0.03 * size, 0.34 * size), (0.0, 0.0, 0.84 * size))
    nozzle = moved(
        revolved([(0.0, 0.1), (0.20, -0.3), (0.22, -0.3), (0.10, 0.2), (0.0, 0.2)], (1, 2, 3)),
        (0.0, 0.0, low - 0.3 * size),
        scale=(size, size, 0.6 * size),
    )
    surfaces = [
        fixed("decks", merged(*decks), gold, gloss=0.9),
        fixed("posts", merged(*posts), grey, gloss=0.5),
        fixed("cells", merged(*cells), blue, gloss=0.8),
        fixed("frames", merged(*frames), grey),
        fixed("dish", dish, (240, 242, 246)),
        fixed("horn", merged(horn, nozzle), METAL, gloss=0.8),
    ]
    for name, axis, colour in (("wheel_x", 0, (206, 76, 66)), ("wheel_y", 1, (70, 150, 96))):
        rim = revolved(
            [(0.80 * r, -0.09 * r), (r, -0.09 * r), (r, 0.09 * r), (0.80 * r, 0.09 * r), (0.80 * r, -0.09 * r)],
            (1, 2, 3),
        )
        spokes = [moved(block(1.7 * r, 0.10 * r, 0.06 * r), (0.0, 0.0, 0.0), turn(2, k * pi / 3)) for k in range(3)]
        surfaces += [
            fixed(f"{name}_rim", along(axis, rim), colour, name, gloss=0.7),
            fixed(
                f"{name}_spokes",
                along(axis, merged(*spokes, cylinder(0.16 * r, 0.3 * r))),
                (196, 200, 208),
                name,
                gloss=0.6,
            ),
        ]
    return Rigid(tuple(surfaces), SPACE)


def purcell(told: Mapping[str, Any]) -> Rigid:
    """Three slender rods with pins."""
    l = float(told["length_m"])
    w = 0.05 * l

    def rod(start: float) -> Any:
        return tube([(start + 0.045 * l, 0.0, 0.0), (start + 0.5 * l, 0.0, 0.0), (start + 0.955 * l, 0.0, 0.0)], w)

    pins = [moved(cylinder(1.25 * w, 2.9 * w), (x, 0.0, 0.0)) for x in (-0.5 * l, 0.5 * l)]
    return Rigid(
        (
            fixed("middle", rod(-0.5 * l), (44, 110, 180)),
            fixed("left", rod(-l), (228, 120, 60), "left"),
            fixed("right", rod(0.0), (228, 120, 60), "right"),
            fixed("pins", merged(*pins), METAL, gloss=0.7),
        ),
        WATER,
    )


def fluid_swimmer(told: Mapping[str, Any]) -> Rigid:
    """Three ellipses, drawn as bodies as deep as they are wide, with the links between them."""
    a, b = float(told["half_length_m"]), float(told["half_width_m"])
    gap = float(told["gap_m"])
    reach = a + gap
    hull = ellipsoid(2.0 * a, 2.0 * b, 2.0 * b)
    pins = [moved(sphere(0.4 * b), (x, 0.0, 0.0)) for x in (-reach, reach)]
    neck = [tube([(side * 0.97 * a, 0.0, 0.0), (side * reach, 0.0, 0.0)], 0.18 * b, 10) for side in (1, -1)]
    made = [fixed("middle", hull, (232, 236, 240)), fixed("pins", merged(*pins, *neck), METAL, gloss=0.7)]
    for name, side in (("left", -1), ("right", 1)):
        made += [
            fixed(name, moved(hull, (side * reach, 0.0, 0.0)), (38, 140, 148), name),
            fixed(
                f"{name}_link", tube([(0.0, 0.0, 0.0), (side * (gap + 0.03 * a), 0.0, 0.0)], 0.18 * b, 10), METAL, name
            ),
        ]
    return Rigid(tuple(made), WATER)


REDUCED: dict[str, Callable[[Mapping[str, Any]], Rigid]] = {
    "satellite": satellite,
    "purcell": purcell,
    "fluid_swimmer": fluid_swimmer,
}
