"""The manta: one surface from fin tip to fin tip over the body, through the rods' tips and the chains' joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rtmms.shapes.shape import Pose
from rtmms.shapes.surface import (
    WATER,
    Array,
    Surface,
    along,
    between,
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
    wing_section,
)
from rtmms.wire.protocol.state import PlantInfo

TOP, BELLY, MARK, DARK = (56, 78, 106), (226, 232, 236), (168, 184, 198), (16, 18, 22)
CHORD = 13
"""Points along the chord."""
FINE = 3
"""Rows of points from one of the model's to the next."""
OUTLINE = ((0.0, 0.30, -0.345), (0.33, 0.30, -0.325), (0.67, 0.25, -0.27))
"""The body as it is drawn: beside its middle, in shares of the fin root's y, where it begins and ends, m from the
middle of the fin roots."""


class MantaVisual:
    """Rows across the span: the body's, drawn; the fin root, the support, the joints of the chains: the model's."""

    scene = WATER
    ground = None

    def __init__(self, plant: PlantInfo) -> None:
        told = plant.parameters
        self._links, self._chains = int(told["links"]), int(told["chains"])
        support, (x, y, z) = float(told["support_length_m"]), told["fin_root_m"]
        self._z, y = float(z), abs(float(y))
        n, m = self._chains, self._links
        self._chord = np.linspace(0.0, 1.0, CHORD)  # from the trailing to the leading edge
        middle = x + 0.5 * support
        beside = [(share * y, fore, aft) for share, fore, aft in OUTLINE]
        mirrored = [
            *beside[::-1],
            *((-place, fore, aft) for place, fore, aft in beside[1:]),
        ]  # from the left to the right
        self._body = np.array(
            [[(middle + aft + c * (fore - aft), place, self._z) for c in self._chord] for place, fore, aft in mirrored]
        )
        self._roots = [np.array([(x + c * support, side * y, self._z) for c in self._chord]) for side in (1.0, -1.0)]
        # along the chord: between the chains, and to the support's ends beyond the first and the last
        station = (np.arange(n) + 0.5) / n
        k = np.clip(np.searchsorted(station, self._chord) - 1, 0, max(n - 2, 0))
        self._along = np.zeros((CHORD, n))
        if n > 1:
            share = (self._chord - station[k]) / (station[k + 1] - station[k])
            self._along[np.arange(CHORD), k] += 1.0 - share
            self._along[np.arange(CHORD), k + 1] += share
        else:
            self._along[:, 0] = 1.0
        reach = 0.5 * (float(told["front_rod_m"]) + float(told["back_rod_m"]))
        chain = 0.5 * (float(told["chain_length_front_m"]) + float(told["chain_length_back_m"]))
        outwards = [
            *(place for place, _, _ in mirrored[: len(beside)][::-1]),
            y,
            *(y + reach + chain * j / m for j in range(m + 1)),
        ]
        spans = np.array([*(outwards[::-1]), *(-place for place in outwards[1:])])  # from the left tip to the right tip
        rows = between(spans[::-1], FINE)[::-1]
        self._across = spline(spans[::-1], rows)[:, ::-1]
        self._rows, tip, fin = len(rows), spans[0], y + reach
        # rounded tips: of the last part of a fin the outline lies within the chains' free ends
        begin = fin + 0.25 * (tip - fin)
        beyond = np.clip((np.abs(rows) - begin) / (tip - begin), 0.0, 1.0)
        width, centre = np.sqrt(np.maximum(1.0 - beyond**2, 0.0)), 0.5 - 0.18 * beyond**2
        where = np.clip(centre[:, None] + (self._chord[None] - 0.5) * width[:, None], 0.0, 1.0)
        self._resampled = np.array(
            [[np.interp(at, self._chord, unit) for unit in np.eye(CHORD)] for at in where.ravel()]
        )
        self._resampled = self._resampled.reshape(self._rows, CHORD, CHORD)
        thick = np.interp(
            np.abs(rows),
            [0.0, 0.33 * y, 0.67 * y, y, y + 0.6 * reach, fin, tip],
            [0.088, 0.080, 0.055, 0.036, 0.022, 0.016, 0.005],
        )
        self._thick = thick[:, None] * wing_section(1.0 - self._chord)[None] * np.sqrt(np.maximum(width, 0.0))[:, None]
        up, down = tiles(self._rows, CHORD)[:, ::-1], tiles(self._rows, CHORD)
        u, v = (of_tile(x.mean(axis=1)) for x in (np.abs(rows)[up // CHORD], self._chord[up % CHORD]))
        mark = (u > 0.2 * y) & (u < 0.85 * y) & (v > 0.58) & (v < 0.80)
        self.surfaces = (
            Surface("back", up[~mark], TOP),
            Surface("shoulders", up[mark], MARK),
            Surface("belly", down, BELLY),
            *self._drawn(middle, y),
        )

    def _drawn(self, middle: float, y: float) -> tuple[Surface, ...]:
        """Head and tail."""
        z, horns, eyes = self._z, [], []
        for side in (1.0, -1.0):
            horns.append(
                moved(
                    along(
                        0,
                        tube(
                            [(0.0, 0.0, 0.0), (0.0, 0.0, 0.07), (0.0, side * 0.012, 0.14), (0.0, side * 0.04, 0.19)],
                            [0.040, 0.038, 0.027, 0.012],
                            flat=0.45,
                        ),
                    ),
                    (middle + 0.25, side * 0.36 * y, z - 0.012),
                )
            )
            eyes.append(moved(sphere(0.017), (middle + 0.236, side * 0.66 * y, z + 0.004)))
        mouth = moved(ellipsoid(0.05, 0.42 * y, 0.032), (middle + 0.295, 0.0, z - 0.004))
        tail = tube(
            [(middle - 0.30 - 0.12 * k, 0.0, z + 0.004 * k) for k in range(6)],
            [0.022, 0.014, 0.010, 0.008, 0.006, 0.003],
            8,
        )
        dorsal = moved(ellipsoid(0.09, 0.012, 0.075), (middle - 0.31, 0.0, z + 0.02), (0.9, 0.0, -0.43, 0.0))
        return (
            fixed("head", merged(*horns), TOP),
            fixed("tail", merged(tail, dorsal), TOP),
            fixed("eyes", merged(*eyes), DARK, gloss=0.9),
            fixed("mouth", mouth, DARK),
        )

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """See Visual."""
        left, right = (
            np.einsum("cn,jnk->jck", self._along, skin.reshape(self._links + 1, self._chains, 3)) for skin in skins[:2]
        )
        known = np.concatenate([left[::-1], self._roots[0][None], self._body, self._roots[1][None], right])
        rows = np.einsum("rk,kcx->rcx", self._across, known)
        rows = np.einsum("rcd,rdx->rcx", self._resampled, rows)
        up = normals(rows)
        up = up if up[self._rows // 2, CHORD // 2, 2] > 0.0 else -up
        top = (rows + self._thick[:, :, None] * up).reshape(-1, 3)
        return top, top, (rows - 0.55 * self._thick[:, :, None] * up).reshape(-1, 3)
