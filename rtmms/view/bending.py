"""Generators of the surfaces that bend: lofts, sweeps, wings and membranes through a robot's own points.

A drawing names them with parameters (rtmms.plant.drawing). Each reads the robot's frames and skins in a state and
returns the vertices of its surfaces, whose faces stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rtmms.base.attitude import HOME, Pose
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import (
    CARRIED,
    LEVEL,
    Bending,
    Box,
    Drawing,
    Fins,
    Loft,
    Membrane,
    Point,
    Ridge,
    Sweep,
    TubeSkin,
    Wing,
    Zone,
)
from rtmms.view.shape import across
from rtmms.view.surface import (
    Array,
    Faces,
    Surface,
    lengths,
    loft,
    normals,
    refine_stations,
    spline,
    tile_means,
    tiles,
    wing_section,
)


class SurfaceGenerator(Protocol):
    """Surfaces of one generator."""

    @property
    def surfaces(self) -> tuple[Surface, ...]:
        """The surfaces, without vertices."""
        ...

    def bent(self, frames: Mapping[str, Pose], skins: Mapping[str, Array]) -> list[Array]:
        """Return the vertices of the surfaces in a state.

        Parameters
        ----------
        frames : Mapping[str, Pose]
            Frames of the moving parts by name.
        skins : Mapping[str, Array]
            (n, 3) points of each skin by name, m, body frame.

        Returns
        -------
        list[Array]
            (n, 3) m, body frame, of each surface.
        """


def bending_surfaces(data: Bending, drawing: Drawing, neutral: Mapping[str, Array]) -> SurfaceGenerator:
    """Return the generator of a surface of a drawing.

    Parameters
    ----------
    data : Bending
        The surface.
    drawing : Drawing
        The drawing.
    neutral : Mapping[str, Array]
        Points of the skins with all joints at 0, by name.

    Returns
    -------
    SurfaceGenerator
        The generator.
    """
    match data:
        case Loft():
            return _Loft(data, neutral[data.skin])
        case Sweep():
            return _Sweep(data, drawing, neutral)
        case Wing():
            return _Wing(data)
    return _Membrane(data)


# Zones: the faces of a grid in colours.


def _zoned(faces: Faces, columns: int, along: Array, cross: Array, zones: Sequence[Zone]) -> tuple[Surface, ...]:
    """Return the faces of a grid by zones; each face belongs to the first zone that has it.

    `along` and `cross` are coordinates of the rows and of the columns.
    """
    u = tile_means(along[faces // columns].mean(axis=1))
    v = tile_means(cross[faces % columns].mean(axis=1))
    free, surfaces = np.ones(len(faces), bool), []
    for zone in zones:
        chosen = free & np.any([_inside(box, u, v) for box in zone.boxes], axis=0)
        if zone.stripes is not None:
            chosen &= np.abs((u * zone.stripes.number) % 1.0 - 0.5) < zone.stripes.half_width
        free &= ~chosen
        surfaces.append(Surface(zone.name, faces[chosen], zone.colour, gloss=zone.gloss))
    return tuple(surfaces)


def _inside(box: Box, u: Array, v: Array) -> Array:
    return np.asarray((u > box.along[0]) & (u < box.along[1]) & (v > box.across[0]) & (v < box.across[1]))


def _unit(vectors: Array, least: float = 1e-9) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), least))


# Fins: rows of a foot on one side, the rim, the foot on the other, with both ends closed.


def _fin_faces(rows: int) -> Faces:
    last = 3 * (rows - 1)
    ends = np.array([[0, 2, 1], [last, last + 1, last + 2]])
    return np.concatenate([tiles(rows, 3, around=True), ends])


def _fins(fins: Sequence[Fins], share: Array, flipped: bool) -> tuple[Surface, ...]:
    """Return the surfaces of fins; `flipped`: the body goes the other way round than a loft's."""
    surfaces = []
    for group in fins:
        faces, first = [], 0
        for ridge in group.ridges:
            corners = _fin_faces(len(_rows_of(ridge, share)))
            faces.append((corners if ridge.above != flipped else corners[:, ::-1]) + first)
            first = int(faces[-1].max()) + 1
        surfaces.append(Surface(group.name, np.concatenate(faces), group.colour))
    return tuple(surfaces)


def _rows_of(ridge: Ridge, share: Array) -> npt.NDArray[np.int64]:
    return np.flatnonzero((share >= ridge.start) & (share <= ridge.end)).astype(np.int64)


def _heights(ridge: Ridge, rows: int, largest: float) -> Array:
    """Return (rows, 1) m of a ridge over the body; `largest` is the half height of the body along it."""
    if not isinstance(ridge.height, tuple):
        return np.asarray(ridge.height * np.sin(np.linspace(0.0, np.pi, rows))[:, None] ** 0.5)
    known = np.linspace(0.0, 1.0, len(ridge.height))
    return np.asarray(largest * np.interp(np.linspace(0.0, 1.0, rows), known, np.array(ridge.height))[:, None])


class _Loft:
    """Surface through rings of points: ring by ring as the skin has them, with the spline between them."""

    def __init__(self, data: Loft, neutral: Array) -> None:
        self._data = data
        coarse = neutral.reshape(-1, data.round + 1, 3)
        self._shape = coarse.shape
        ridge = lengths(coarse[:, data.round // 4])  # along the back, so that the nose is round
        places = refine_stations(ridge, data.pieces)
        self._matrix = spline(ridge, places)
        self._share = np.concatenate([[0.0], places / places[-1], [1.0]])  # both ends are closed
        angle = 2.0 * np.pi * np.arange(data.round) / data.round
        zones = _zoned(loft(len(self._share), data.round), data.round, self._share, np.sin(angle), data.zones)
        self._zones, bands = len(zones), []
        self._banded = range(0)
        if data.bands is not None:
            self._banded = range(data.bands.skipped, len(coarse) - data.bands.skipped)
            hoop = tiles(2, data.round, around=True)
            faces = np.concatenate([hoop + 2 * data.round * k for k in range(len(self._banded))])
            bands.append(Surface(data.bands.name, faces, data.bands.colour, gloss=data.bands.gloss))
        self.surfaces = (*zones, *bands, *_fins(data.fins, self._share, flipped=False))

    def bent(self, frames: Mapping[str, Pose], skins: Mapping[str, Array]) -> list[Array]:
        """Return the vertices in a state, see SurfaceGenerator."""
        coarse = skins[self._data.skin].reshape(self._shape)[:, :-1]
        fine = np.einsum("mr,rkx->mkx", self._matrix, coarse)
        ends = [np.broadcast_to(ring.mean(axis=0), ring.shape)[None] for ring in (fine[0], fine[-1])]
        rings = np.concatenate([ends[0], fine, ends[1]])
        vertices = [rings.reshape(-1, 3)] * self._zones
        if self._data.bands is not None:
            vertices.append(self._bands(coarse))
        return vertices + [
            np.concatenate([self._fin(rings, ridge) for ridge in fins.ridges]) for fins in self._data.fins
        ]

    def _bands(self, coarse: Array) -> Array:
        bands = []
        for k in self._banded:
            centre = coarse[k].mean(axis=0)
            tangent = _unit(coarse[k + 1].mean(axis=0) - coarse[k - 1].mean(axis=0))
            ring = centre + 1.012 * (coarse[k] - centre)
            thick = 0.07 * float(np.linalg.norm(coarse[k][self._data.round // 4] - centre))
            bands += [ring - thick * tangent, ring + thick * tangent]
        return np.concatenate(bands)

    def _fin(self, rings: Array, ridge: Ridge) -> Array:
        rows, quarter = _rows_of(ridge, self._share), self._data.round // 4
        back, belly = rings[rows, quarter], rings[rows, 3 * quarter]
        middle = 0.5 * (back + belly)
        root = back if ridge.above else belly
        up = root - middle
        high = np.linalg.norm(up, axis=1, keepdims=True)
        thin = 0.06 * high * _unit(rings[rows, 0] - rings[rows, 2 * quarter])
        foot = middle + 0.85 * up
        top = root + _heights(ridge, len(rows), float(high.max())) * _unit(up)
        return np.asarray(np.stack([foot + thin, top, foot - thin], axis=1).reshape(-1, 3))


class _Sweep:
    """Elliptic sections along the spline through the points of a spine."""

    def __init__(self, data: Sweep, drawing: Drawing, neutral: Mapping[str, Array]) -> None:
        self._data = data
        self._names = ["", *(frame.name for frame in drawing.frames)]
        self._ring = next((s.round + 1 for s in drawing.skins if isinstance(s, TubeSkin) and s.name == data.spine), 1)
        self._fine = np.array(data.fine)
        stations = data.stations or np.linspace(0.0, 1.0, len(self._spine({}, neutral)))
        self._matrix = spline(stations, self._fine)
        self._wide, self._high = np.array(data.wide)[:, None], np.array(data.high)[:, None]
        self._angle = 2.0 * np.pi * np.arange(data.round) / data.round
        carried = data.axes == CARRIED
        faces = loft(len(self._fine), data.round)
        height = np.cos(self._angle) if carried else np.sin(self._angle)
        zones = _zoned(faces if carried else faces[:, ::-1], data.round, self._fine, height, data.zones)
        self._zones = len(zones)
        self.surfaces = (*zones, *_fins(data.fins, self._fine, flipped=not carried))

    def bent(self, frames: Mapping[str, Pose], skins: Mapping[str, Array]) -> list[Array]:
        """Return the vertices in a state, see SurfaceGenerator."""
        data, known = self._data, self._spine(frames, skins)
        centre = self._matrix @ known
        side, up = self._axes(frames, known, centre)
        grid = (
            centre[:, None]
            + self._wide[:, :, None] * np.cos(self._angle)[None, :, None] * side[:, None]
            + self._high[:, :, None] * np.sin(self._angle)[None, :, None] * up[:, None]
        )
        grid[:, :, 2] += data.lift
        fins = [np.concatenate([self._fin(centre, side, up, ridge) for ridge in fins.ridges]) for fins in data.fins]
        return [grid.reshape(-1, 3)] * self._zones + fins

    def _spine(self, frames: Mapping[str, Pose], skins: Mapping[str, Array]) -> Array:
        spine = self._data.spine
        if isinstance(spine, str):  # the middles of its rings but the two that close it
            return np.asarray(skins[spine].reshape(-1, self._ring, 3)[1:-1, :-1].mean(axis=1))
        return np.array([_placed(point, frames, self._names) for point in spine])

    def _axes(self, frames: Mapping[str, Pose], known: Array, centre: Array) -> tuple[Array, Array]:
        """Return unit vectors across and up in each section."""
        data = self._data
        if data.axes == LEVEL:
            t = np.gradient(centre, axis=0)
            side = _unit(np.stack([t[:, 1], -t[:, 0], np.zeros(len(t))], axis=1))
            return side, np.broadcast_to(np.array([0.0, 0.0, 1.0]), side.shape)
        if data.axes == CARRIED:
            turned = quaternion_matrix(np.array(frames.get(self._names[data.carrier], HOME)[1]))
            share = np.clip((self._fine - data.start) / (data.end - data.start), 0.0, 1.0)[:, None]
            side = (1.0 - share) * np.array([1.0, 0.0, 0.0]) + share * turned[:, 0]
            t = _unit(np.gradient(centre, axis=0))
            side = _unit(side - t * np.sum(side * t, axis=1, keepdims=True))
            return side, np.cross(t, side)
        line = [(x, y, z) for x, y, z in known.tolist()]
        pairs = np.array([across(line, i) for i in range(len(line))])
        return _unit(self._matrix @ pairs[:, 0]), _unit(self._matrix @ pairs[:, 1])

    def _fin(self, centre: Array, side: Array, up: Array, ridge: Ridge) -> Array:
        rows, sign = _rows_of(ridge, self._fine), 1.0 if ridge.above else -1.0
        largest = float(self._high.max())
        high = self._high[rows]
        foot = centre[rows] + sign * 0.8 * high * up[rows]
        top = centre[rows] + sign * (high + _heights(ridge, len(rows), largest)) * up[rows]
        thin = 0.04 * largest * side[rows]
        return np.asarray(np.stack([foot + thin, top, foot - thin], axis=1).reshape(-1, 3))


def _placed(point: Point, frames: Mapping[str, Pose], names: Sequence[str]) -> Array:
    place, attitude = frames.get(names[point.frame], HOME)
    return np.asarray(np.array(place) + quaternion_matrix(np.array(attitude)) @ np.array(point.place))


class _Wing:
    """Two sides of a membrane, closed at its root and at its tip."""

    def __init__(self, data: Wing) -> None:
        self._data = data
        span = np.array(data.span)
        self._lead = spline(np.linspace(0.0, 1.0, len(data.lead)), span)
        stations = np.array(data.chord_stations)
        inner = np.clip(span, stations[0], stations[-1])
        self._chord = spline(stations, inner) if len(stations) > 1 else np.ones((len(span), 1))
        self._length, self._share = np.array(data.lengths)[:, None], np.linspace(0.0, 1.0, data.columns)
        faces = tiles(len(span), data.columns)
        along = np.linspace(0.0, 1.0, len(span))
        self.surfaces = tuple(
            replace(surface, name=f"{data.skin}_{side}_{surface.name}")
            for side, corners in (("upper", faces[:, ::-1]), ("under", faces))
            for surface in _zoned(corners, data.columns, along, self._share, data.zones)
        )

    def bent(self, frames: Mapping[str, Pose], skins: Mapping[str, Array]) -> list[Array]:
        """Return the vertices in a state, see SurfaceGenerator."""
        data, points = self._data, skins[self._data.skin]
        lead = self._lead @ points[list(data.lead)]
        chord = np.array([points[trail] - points[front] for front, trail in data.chords])
        chord = _unit(self._chord @ _unit(chord, 1e-12), 1e-12) if data.directed else self._chord @ chord
        grid = lead[:, None] + self._share[None, :, None] * (self._length * chord)[:, None]
        thick = np.sin(np.pi * self._share)[None, :, None] * np.ones((len(grid), 1, 1))
        thick[[0, -1]] = 0.0
        out = data.thickness * thick * normals(grid)
        zones = len(data.zones)
        return [(grid + out).reshape(-1, 3)] * zones + [(grid - out).reshape(-1, 3)] * zones


class _Membrane:
    """Rows across the span: those of the body, which are drawn; roots and joints of the chains, which are modelled."""

    def __init__(self, data: Membrane) -> None:
        self._data = data
        left = data.skins[0]
        self._links, columns = left.links, data.columns
        x, y, z = data.root
        y0 = abs(y)
        self._chord = np.linspace(0.0, 1.0, columns)  # from the trailing to the leading edge
        middle = x + 0.5 * data.chord
        half = [(share * y0, fore, aft) for share, fore, aft in data.outline]
        mirrored = [*half[::-1], *((-place, fore, aft) for place, fore, aft in half[1:])]  # from left to right
        self._body = np.array(
            [[(middle + aft + c * (fore - aft), place, z) for c in self._chord] for place, fore, aft in mirrored]
        )
        self._roots = [np.array([(x + c * data.chord, side * y0, z) for c in self._chord]) for side in (1.0, -1.0)]
        self._along = _between_chains(np.array(left.stations) / data.chord, self._chord)
        outwards = [
            *(place for place, _, _ in half),
            y0,
            *(y0 + data.reach + data.chain * j / self._links for j in range(self._links + 1)),
        ]
        spans = np.array([*outwards[::-1], *(-place for place in outwards[1:])])  # from the left tip to the right tip
        rows = refine_stations(spans[::-1], data.pieces)[::-1]
        self._across = spline(spans[::-1], rows)[:, ::-1]
        self._rows = len(rows)
        self._round_tips(np.abs(rows), y0 + data.reach, spans[0])
        faces = tiles(self._rows, columns)
        upper = _zoned(faces[:, ::-1], columns, np.abs(rows), self._chord, data.zones)
        self.surfaces = (*upper, *_zoned(faces, columns, np.abs(rows), self._chord, (data.belly,)))

    def _round_tips(self, distance: Array, fin: float, tip: float) -> None:
        """Round the last part of a fin, whose outline lies within the chains' free ends."""
        begin = fin + 0.25 * (tip - fin)
        beyond = np.clip((distance - begin) / (tip - begin), 0.0, 1.0)
        width, centre = np.sqrt(np.maximum(1.0 - beyond**2, 0.0)), 0.5 - 0.18 * beyond**2
        where = np.clip(centre[:, None] + (self._chord[None] - 0.5) * width[:, None], 0.0, 1.0)
        units = np.eye(len(self._chord))
        shares = np.array([[np.interp(place, self._chord, unit) for unit in units] for place in where.ravel()])
        self._resampled = shares.reshape(self._rows, len(self._chord), len(self._chord))
        places, halves = np.array(self._data.thickness).T
        thick = np.interp(distance, places, halves)[:, None] * wing_section(1.0 - self._chord)[None]
        self._thick = (thick * np.sqrt(np.maximum(width, 0.0))[:, None])[:, :, None]

    def bent(self, frames: Mapping[str, Pose], skins: Mapping[str, Array]) -> list[Array]:
        """Return the vertices in a state, see SurfaceGenerator."""
        left, right = (
            np.einsum("cn,jnk->jck", self._along, skins[data.name].reshape(self._links + 1, -1, 3))
            for data in self._data.skins
        )
        known = np.concatenate([left[::-1], self._roots[0][None], self._body, self._roots[1][None], right])
        rows = np.einsum("rk,kcx->rcx", self._across, known)
        rows = np.einsum("rcd,rdx->rcx", self._resampled, rows)
        up = normals(rows)
        up = up if up[self._rows // 2, len(self._chord) // 2, 2] > 0.0 else -up
        top, under = rows + self._thick * up, rows - 0.55 * self._thick * up
        return [top.reshape(-1, 3)] * len(self._data.zones) + [under.reshape(-1, 3)]


def _between_chains(station: Array, chord: Array) -> Array:
    """Return (c, n): shares of the chains at places along the chord; linear beyond the first and the last."""
    n = len(station)
    if n == 1:
        return np.ones((len(chord), 1))
    k = np.clip(np.searchsorted(station, chord) - 1, 0, n - 2)
    share = (chord - station[k]) / (station[k + 1] - station[k])
    shares = np.zeros((len(chord), n))
    shares[np.arange(len(chord)), k] += 1.0 - share
    shares[np.arange(len(chord)), k + 1] += share
    return shares
