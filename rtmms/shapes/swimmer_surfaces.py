"""Eels and the fish: a smooth tube through the rings of their shapes, with fins and eyes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rtmms.shapes.shape import Pose
from rtmms.shapes.surface import (
    WATER,
    Array,
    Colour,
    Faces,
    Surface,
    between,
    ellipsoid,
    fixed,
    lengths,
    loft,
    merged,
    moved,
    of_tile,
    sphere,
    spline,
    tiles,
)
from rtmms.wire.protocol.state import PlantInfo

DARK = (16, 18, 22)


def fin_faces(rows: int) -> Faces:
    """Of a fin: rows of its foot on one side, its rim, its foot on the other, with both ends closed."""
    last = 3 * (rows - 1)
    ends = np.array([[0, 2, 1], [last, last + 1, last + 2]])
    return np.concatenate([tiles(rows, 3, around=True), ends])


class Tube:
    """Through rings of points: ring by ring as the shape has them, the spline between them.

    rings   (r, k + 1, 3) m, at rest, the last point of each is the first; the first points left, then the back
    """

    def __init__(self, rings: Array, pieces: int) -> None:
        self._shape = rings.shape
        self._round = rings.shape[1] - 1
        ridge = lengths(rings[:, self._round // 4])  # along the back, so that the nose is round
        places = between(ridge, pieces)
        self._matrix = spline(ridge, places)
        self.share = np.concatenate([[0.0], places / places[-1], [1.0]])  # both ends are closed
        faces = loft(len(self.share), self._round)
        angle = (faces % self._round + 0.0) * 2.0 * np.pi / self._round
        height = of_tile(np.sin(angle).mean(axis=1))
        self.at = of_tile(self.share[faces // self._round].mean(axis=1))
        self.faces: Faces = faces
        self.height = height

    def rings(self, skin: Array) -> Array:
        """(m, k, 3) m."""
        coarse = skin.reshape(self._shape)[:, :-1]
        fine = np.einsum("mr,rkx->mkx", self._matrix, coarse)
        ends = [np.broadcast_to(ring.mean(axis=0), ring.shape)[None] for ring in (fine[0], fine[-1])]
        return np.concatenate([ends[0], fine, ends[1]])

    def ridge(self, rings: Array, height: Array, start: float, end: float, above: bool = True) -> Array:
        """(n, 3) of a thin fin on the back (or under the belly) from a share of the length to another.

        height   of it over the body's half height there, at as many shares from start to end
        """
        rows = np.flatnonzero((self.share >= start) & (self.share <= end))
        quarter = self._round // 4
        back, belly = rings[rows, quarter], rings[rows, 3 * quarter]
        middle = 0.5 * (back + belly)
        root = back if above else belly
        up = root - middle
        side = rings[rows, 0] - rings[rows, 2 * quarter]
        side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9)
        thin = 0.06 * np.linalg.norm(up, axis=1, keepdims=True) * side
        h = np.interp(np.linspace(0.0, 1.0, len(rows)), np.linspace(0.0, 1.0, len(height)), height)[:, None]
        foot = middle + 0.85 * up
        top = root + h * np.max(np.linalg.norm(up, axis=1)) * up / np.maximum(
            np.linalg.norm(up, axis=1, keepdims=True), 1e-9
        )
        return np.stack([foot + thin, top, foot - thin], axis=1).reshape(-1, 3)

    def ridge_faces(self, start: float, end: float, above: bool = True) -> Faces:
        rows = int(((self.share >= start) & (self.share <= end)).sum())
        faces = fin_faces(rows)
        return faces if above else faces[:, ::-1]


def painted(
    tube: Tube, back: Colour, belly: Colour, side: Colour | None = None
) -> tuple[tuple[str, Faces, Colour], ...]:
    """The tube's faces in colours by how high they are."""
    low = tube.height < -0.35
    middle = ~low & (np.abs(tube.height) < 0.35) if side else np.zeros(len(low), bool)
    parts = [("back", tube.faces[~low & ~middle], back), ("belly", tube.faces[low], belly)]
    return (*parts, ("side", tube.faces[middle], side)) if side else tuple(parts)


class EelVisual:
    """The eel of links: a skin over head and links, a band where each joint is, a fin along the back."""

    scene = WATER
    ground = None
    FIN = (0.30, 0.985)

    def __init__(self, plant: PlantInfo, rest: Sequence[Array]) -> None:
        told = plant.parameters
        rings = rest[0].reshape(-1, 13, 3)
        self._tube = Tube(rings, 3)
        a, b, nose = (float(told[k]) for k in ("half_width_m", "half_height_m", "nose_length_m"))
        self._parts = painted(self._tube, (104, 108, 62), (226, 214, 168))
        bending = [Surface(name, faces, colour, gloss=0.5) for name, faces, colour in self._parts]
        self._bands = [k for k in range(len(rings)) if 3 <= k < len(rings) - 3]
        self._band = np.concatenate([tiles(2, 12, around=True) + 24 * k for k in range(len(self._bands))])
        upper, under = self._tube.ridge_faces(*self.FIN), self._tube.ridge_faces(0.5, 0.985, above=False)
        fins = Surface("fins", np.concatenate([upper, under + upper.max() + 1]), (66, 76, 50))
        eyes = [moved(sphere(0.16 * b), (-0.62 * nose, side * 0.80 * a, 0.30 * b)) for side in (1, -1)]
        pectoral = [
            moved(
                ellipsoid(1.5 * nose, 0.012, 0.9 * nose),
                (-2.2 * nose, side * 1.15 * a, -0.15 * b),
                (0.94, side * 0.3, 0.15, side * 0.12),
            )
            for side in (1, -1)
        ]
        self.surfaces = (
            *bending,
            Surface("joints", self._band, (58, 64, 44), gloss=0.5),
            fins,
            fixed("eyes", merged(*eyes), DARK, gloss=0.9),
            fixed("pectoral_fins", merged(*pectoral), (84, 92, 58)),
        )

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        rings = self._tube.rings(skins[0])
        flat = rings.reshape(-1, 3)
        coarse = skins[0].reshape(-1, 13, 3)[:, :-1]
        bands = []
        for k in self._bands:
            centre, way = coarse[k].mean(axis=0), coarse[k + 1].mean(axis=0) - coarse[k - 1].mean(axis=0)
            way = way / max(float(np.linalg.norm(way)), 1e-9)
            ring = centre + 1.012 * (coarse[k] - centre)
            thick = 0.07 * float(np.linalg.norm(coarse[k][3] - centre))
            bands += [ring - thick * way, ring + thick * way]
        fin = self._tube.ridge(rings, np.array([0.0, 0.45, 0.7, 0.75, 0.75, 0.7, 0.4]), *self.FIN)
        anal = self._tube.ridge(rings, np.array([0.0, 0.5, 0.6, 0.6, 0.4]), 0.5, 0.985, above=False)
        return (*(flat for _ in self._parts), np.concatenate(bands), np.concatenate([fin, anal]))


class ContinuousEelVisual:
    """A soft body without a joint; nose and tail are round within the length of the model's centre line."""

    scene = WATER
    ground = None
    ROUND = 16
    STATIONS = 44
    FIN = (0.22, 0.99)

    def __init__(self, plant: PlantInfo, rest: Sequence[Array]) -> None:
        told = plant.parameters
        self._a, self._b = float(told["half_width_m"]), float(told["half_height_m"])
        centre = self._centre(rest[0])
        s = lengths(centre)
        places = s[-1] * 0.5 * (1.0 - np.cos(np.linspace(0.0, np.pi, self.STATIONS)))  # close at the ends
        self._matrix, share = spline(s, places), places / s[-1]
        nose, tail = 2.4 * self._b / s[-1], 0.5
        self._size = np.minimum(
            np.sqrt(np.clip(1.0 - (1.0 - np.minimum(share / nose, 1.0)) ** 2, 0.0, 1.0)),
            np.clip((1.0 - share) / tail, 0.0, 1.0) ** 0.45,
        )
        angle = 2.0 * np.pi * np.arange(self.ROUND) / self.ROUND
        self._ring = np.stack([self._a * np.cos(angle), self._b * np.sin(angle)], axis=1)
        faces = loft(self.STATIONS, self.ROUND)[:, ::-1]
        height = of_tile(np.sin(angle)[faces % self.ROUND].mean(axis=1))
        self._fin_rows = np.flatnonzero((share >= self.FIN[0]) & (share <= self.FIN[1]))
        fin = fin_faces(len(self._fin_rows))
        eyes = [
            moved(sphere(0.14 * self._b), (-1.0 * self._b, side * 0.74 * self._a, 0.34 * self._b)) for side in (1, -1)
        ]
        self.surfaces = (
            Surface("back", faces[height >= -0.2], (112, 84, 128), gloss=0.6),
            Surface("belly", faces[height < -0.2], (232, 206, 214), gloss=0.6),
            Surface("fins", np.concatenate([fin[:, ::-1], fin + fin.max() + 1]), (84, 60, 104)),
            fixed("eyes", merged(*eyes), DARK, gloss=0.9),
        )

    def _centre(self, skin: Array) -> Array:
        return np.asarray(skin.reshape(-1, 13, 3)[1:-1, :-1].mean(axis=1))

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        rings = skins[0].reshape(-1, 13, 3)[1:-1]
        centre = self._matrix @ self._centre(skins[0])
        side, up = (self._matrix @ (rings[:, k] - rings[:, k + 6]) for k in (0, 3))
        side, up = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9) for v in (side, up))
        grid = centre[:, None] + self._size[:, None, None] * (
            self._ring[None, :, :1] * side[:, None] + self._ring[None, :, 1:] * up[:, None]
        )
        rows, flat = self._fin_rows, grid.reshape(-1, 3)
        half, b = np.sin(np.linspace(0.0, np.pi, len(rows)))[:, None] ** 0.5, self._b
        fins = []
        for sign in (1.0, -1.0):
            foot = centre[rows] + sign * 0.8 * b * self._size[rows, None] * up[rows]
            top = centre[rows] + sign * (b * self._size[rows, None] + (0.42 if sign > 0 else 0.3) * b * half) * up[rows]
            thin = 0.04 * b * side[rows]
            fins.append(np.stack([foot + thin, top, foot - thin], axis=1).reshape(-1, 3))
        return flat, flat, np.concatenate(fins)


class FishVisual:
    """The trout: its sections, with a fin on the back, two at the sides, and a dark rim of the tail."""

    scene = WATER
    ground = None

    def __init__(self, plant: PlantInfo, rest: Sequence[Array]) -> None:
        l, width = float(plant.parameters["length_m"]), float(plant.parameters["width"])
        self._tube = Tube(rest[0].reshape(-1, 13, 3), 3)
        self._parts = painted(self._tube, (92, 116, 98), (238, 236, 222), (206, 150, 132))
        self._tube_tail = self._tube.at > 0.90
        bending = []
        for name, colour, part in (
            ("back", (92, 116, 98), (self._tube.height >= 0.35) & ~self._tube_tail),
            ("side", (214, 160, 140), (np.abs(self._tube.height) < 0.35) & ~self._tube_tail),
            ("belly", (240, 238, 226), (self._tube.height <= -0.35) & ~self._tube_tail),
            ("tail", (120, 128, 88), self._tube_tail),
        ):
            bending.append(Surface(name, self._tube.faces[part], colour, gloss=0.6))
        fins = [
            Surface("back_fin", self._tube.ridge_faces(0.36, 0.56), (120, 128, 88)),
            Surface("belly_fin", self._tube.ridge_faces(0.62, 0.76, above=False), (196, 140, 108)),
        ]
        eyes = [moved(sphere(0.011 * l), (-0.05 * l, side * 0.034 * l * width, 0.012 * l)) for side in (1, -1)]
        sides = [
            moved(
                ellipsoid(0.11 * l, 0.006 * l, 0.05 * l),
                (-0.25 * l, side * 0.072 * l * width, -0.035 * l),
                (0.93, side * 0.25, -0.2, -side * 0.18),
            )
            for side in (1, -1)
        ]
        self.surfaces = (
            *bending,
            *fins,
            fixed("eyes", merged(*eyes), DARK, gloss=0.9),
            fixed("side_fins", merged(*sides), (196, 140, 108)),
        )

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        rings = self._tube.rings(skins[0])
        flat = rings.reshape(-1, 3)
        back = self._tube.ridge(rings, np.array([0.0, 0.75, 0.8, 0.5, 0.2]), 0.36, 0.56)
        belly = self._tube.ridge(rings, np.array([0.0, 0.7, 0.6, 0.15]), 0.62, 0.76, above=False)
        return flat, flat, flat, flat, back, belly
