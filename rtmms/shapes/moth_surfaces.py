"""The moths: wings through the hinges and edges of their blades, and a furry body with antennae."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rtmms.shapes.shape import Pose
from rtmms.shapes.surface import (
    AIR,
    Array,
    Colour,
    Surface,
    ellipsoid,
    fixed,
    merged,
    moved,
    normals,
    of_tile,
    sphere,
    spline,
    tiles,
    tube,
)
from rtmms.wire.protocol.state import PlantInfo

CHORD, SPAN = 13, 29
DARK = (24, 18, 16)
THIN = 0.015
"""Of the chord: half the thickness of a wing as it is drawn."""


def _body(wide: float, high: float, fur: Colour, dark: Colour, hinge: float) -> tuple[Surface, ...]:
    """Along z: the thorax, an ellipsoid of the model's axes, with head, antennae and the end of the abdomen; x is the
    belly's side."""
    half = 0.5 * high
    abdomen = [
        moved(ellipsoid(0.86 * wide * s, 0.86 * wide * s, 0.30 * high), (0.0, 0.0, -half * z))
        for z, s in ((0.30, 0.95), (0.55, 0.82), (0.80, 0.62), (1.0, 0.4))
    ]
    bands = [
        moved(ellipsoid(0.90 * wide * s, 0.90 * wide * s, 0.06 * high), (0.0, 0.0, -half * z))
        for z, s in ((0.42, 0.90), (0.68, 0.73), (0.92, 0.50))
    ]
    head = moved(ellipsoid(0.62 * wide, 0.62 * wide, 0.5 * wide), (0.06 * wide, 0.0, half + 0.05 * wide))
    eyes = [moved(sphere(0.16 * wide), (0.16 * wide, side * 0.26 * wide, half + 0.12 * wide)) for side in (1, -1)]
    antennae = [
        tube(
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
        tube(
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
    thorax = ellipsoid(wide, wide, high)
    collar = moved(ellipsoid(1.06 * wide, 1.06 * wide, 0.34 * high), (0.0, 0.0, hinge * 0.8))
    return (
        fixed("thorax", merged(thorax, collar, *abdomen, head), fur, gloss=0.05),
        fixed("bands", merged(*bands), dark, gloss=0.05),
        fixed("eyes", merged(*eyes), DARK, gloss=0.9),
        fixed("antennae", merged(*antennae, *legs), dark, gloss=0.05),
    )


class _Wings:
    """Two wings of rows (leading edge, trailing edge) along the span."""

    scene = AIR
    ground = None

    def __init__(self, wing: Colour, rim: Colour, spot: Colour) -> None:
        up = tiles(SPAN, CHORD)
        v, u = of_tile((up // CHORD).mean(axis=1)) / (SPAN - 1), of_tile((up % CHORD).mean(axis=1)) / (CHORD - 1)
        is_rim = (u > 0.84) | (v > 0.90)
        is_spot = (v > 0.56) & (v < 0.68)
        kinds = [(wing, ~is_rim & ~is_spot), (rim, is_rim), (spot, is_spot & ~is_rim)]
        made = []
        for side in ("right", "left"):
            for name, faces in (("upper", up[:, ::-1]), ("under", up)):
                made += [
                    Surface(f"{side}_wing_{name}_{k}", faces[part], colour, gloss=0.1)
                    for k, (colour, part) in enumerate(kinds)
                ]
        self._wings = tuple(made)

    def _sheets(self, lead: Array, trail: Array, thin: float) -> list[Array]:
        """Of one wing, (SPAN, 3) each: as the surfaces of a side stand."""
        share = np.linspace(0.0, 1.0, CHORD)[None, :, None]
        grid = lead[:, None] + share * (trail - lead)[:, None]
        thick = np.sin(np.pi * np.linspace(0.0, 1.0, CHORD))[None, :, None] * np.ones((SPAN, 1, 1))
        thick[[0, -1]] = 0.0  # closed at the root and at the tip
        out = thin * thick * normals(grid)
        upper, under = (grid + out).reshape(-1, 3), (grid - out).reshape(-1, 3)
        return [upper] * 3 + [under] * 3


class MothVisual(_Wings):
    """The hawk moth: the leading edge through the blades' hinges, chords of the law that the blades are cut from."""

    def __init__(self, plant: PlantInfo) -> None:
        super().__init__((168, 124, 84), (104, 70, 48), (232, 190, 132))
        told = plant.parameters
        self._sections, self._chord = int(told["sections"]), float(told["chord_m"])
        n = self._sections
        share = 1.0 - (1.0 - np.linspace(0.0, 1.0, SPAN)) ** 1.6  # close at the tip
        self._law = self._chord * np.sqrt(np.maximum(1.0 - share**2, 0.0))
        self._lead = spline(np.linspace(0.0, n, n + 1), n * share)
        middles = np.linspace(0.5, n - 0.5, n)
        inner = np.asarray(np.clip(n * share, 0.5, n - 0.5), dtype=float)
        self._way = spline(middles, inner) if n > 1 else np.ones((SPAN, 1))
        self.surfaces = (
            *self._wings,
            *_body(
                2.0 * float(told["thorax_a_m"]),
                2.0 * float(told["thorax_c_m"]),
                (188, 152, 112),
                (112, 76, 52),
                float(told["hinge"]) * float(told["thorax_c_m"]),
            ),
        )

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        found: list[Array] = []
        for skin in skins[:2]:
            corners = skin.reshape(self._sections, 4, 3)
            lead = self._lead @ np.vstack([corners[:, 0], corners[-1:, 1]])
            way = corners[:, 2] - corners[:, 0]
            way = self._way @ (way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12))
            way /= np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12)
            found += self._sheets(lead, lead + self._law[:, None] * way, THIN * self._chord)
        return tuple(found)


class ModalMothVisual(_Wings):
    """The moth with wings of modes: chords along the span as its shape has them, the wing's tip rounded within them."""

    def __init__(self, plant: PlantInfo) -> None:
        super().__init__((150, 190, 140), (96, 134, 104), (238, 226, 168))
        told = plant.parameters
        self._chord = float(told["chord_m"])
        share = np.linspace(0.0, 1.0, SPAN)
        self._rows = spline(np.linspace(0.0, 1.0, 11), share)
        self._short = np.sqrt(1.0 - np.clip((share - 0.7) / 0.3, 0.0, 1.0) ** 2 * 0.999)
        wide = 2.0 * float(told["thorax_radius_m"])
        self.surfaces = (
            *self._wings,
            *_body(
                wide,
                2.0 * float(told["thorax_height_m"]),
                (226, 222, 206),
                (150, 150, 120),
                float(told["hinge"]) * float(told["thorax_height_m"]),
            ),
        )

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        found: list[Array] = []
        for skin in skins[:2]:
            edges = np.einsum("mr,rex->mex", self._rows, skin.reshape(11, 2, 3))
            lead, trail = edges[:, 0], edges[:, 1]
            found += self._sheets(lead, lead + self._short[:, None] * (trail - lead), THIN * self._chord)
        return tuple(found)
