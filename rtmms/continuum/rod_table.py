"""The arrays of a rod by strain modes, from its data and its shapes: every check of it is here."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rtmms.continuum import layout as at
from rtmms.continuum.collocation import Grid, grid
from rtmms.continuum.shapes import COMPONENTS, Shapes, legendre
from rtmms.errors import ModelError
from rtmms.model import Placement, Strip
from rtmms.model.rods import Rod, RodSection
from rtmms.spatial import Array

COARSE = 0.01
"""Of the shapes' stiffness: what the sum over the points may be off by."""
FINER = 4
MOST = 2000
"""Points that are tried."""


class RodTable(NamedTuple):
    """rows (points, K_WIDTH), rest (points, 6), shapes (m, points, 6), stiff (m, m), damping s, and the points."""

    rows: Array
    rest: Array
    shapes: Array
    stiff: Array
    damping: float
    grid: Grid


def rod_table(rod: Rod, shapes: Shapes | None, nodes: int | None, points: int, usual: int) -> RodTable:
    """shapes None: Legendre polynomials to degree 3 for each of the rod's freedoms; nodes None: `usual`, or as many as
    the shapes need. ModelError names the place, and the nodes that would do where there are too few."""
    name = f"rod '{rod.name}'"
    rod.check()
    if callable(rod.damping_s):
        raise ModelError(f"{name}: damping_s must be one number for a rod by strain modes")
    shapes = legendre(4, rod.freedoms) if shapes is None else shapes
    along = _fine_enough(rod, shapes, nodes, points, usual)
    table = shapes.table(along.x, rod.length_m, name)
    sections = [rod.at(float(x)) for x in along.x]
    rest, rows = np.zeros((len(along.x), 6)), np.zeros((len(along.x), at.K_WIDTH))
    rest[:, 0] = 1.0
    for x, turn, row, section in zip(along.x, rest, rows, sections, strict=True):
        bend = rod.curvature(float(x)) if callable(rod.curvature) else rod.curvature
        turn[3:] = np.asarray(bend, dtype=float)
        if not np.all(np.isfinite(turn)):
            raise ModelError(f"{name}: curvature at X = {x:.6g} m must be 3 finite numbers, got {bend}")
        row[at.K_MASS] = row[at.K_PULL] = section.mass_kg_m
        row[at.K_INERTIA : at.K_INERTIA + 3] = section.inertia_kg_m
        _wet(rod, row, float(x), name)
    rows[:, at.K_X], rows[:, at.K_WEIGHT] = along.x, along.weight
    stiff = _stiff(rod, shapes, along)
    size = np.sqrt(np.diag(stiff))
    if not np.linalg.eigvalsh(stiff / np.outer(size, size))[0] > 1e-12:
        raise ModelError(f"{name}: shapes must not be sums of each other: their stiffness has the eigenvalue 0")
    return RodTable(rows, rest, np.ascontiguousarray(table), stiff, rod.damping(0.0), along)


def _stiff(rod: Rod, shapes: Shapes, along: Grid) -> Array:
    """(m, m) int Phi^T H Phi."""
    name = f"rod '{rod.name}'"
    table, components = shapes.table(along.x, rod.length_m, name), shapes.components
    m = len(components)
    out, same = np.zeros((m, m)), np.equal.outer(components, components)
    for i, (x, w) in enumerate(zip(along.x, along.weight, strict=True)):
        section = rod.at(float(x))
        h = np.array([_of(section, c, name, float(x)) for c in components])
        own = table[np.arange(m), i, components]
        out += w * np.where(same, np.outer(h * own, own), 0.0)
    return out


def coarseness(rod: Rod, shapes: Shapes, along: Grid) -> float:
    """By how much the shapes' stiffness differs from that on a grid FINER times as fine, of the stiffness of each."""
    fine = _stiff(rod, shapes, grid(rod.length_m, FINER * len(along.x), along.points))
    size = np.sqrt(np.maximum(np.diag(fine), np.finfo(float).tiny))
    return float(np.max(np.abs(_stiff(rod, shapes, along) - fine) / np.outer(size, size)))


def _fine_enough(rod: Rod, shapes: Shapes, nodes: int | None, points: int, usual: int) -> Grid:
    """The grid of so many nodes, or of as many as the shapes need."""
    tried = usual if nodes is None else nodes
    along = grid(rod.length_m, tried, points)
    first = off = coarseness(rod, shapes, along)
    while off > COARSE and tried < MOST:
        tried = math.ceil(1.25 * tried)
        along = grid(rod.length_m, tried, points)
        off = coarseness(rod, shapes, along)
    if off > COARSE or (nodes is not None and first > COARSE):
        enough = f"expected {len(along.x)} or more" if off <= COARSE else "expected smoother shapes"
        raise ModelError(
            f"rod '{rod.name}': nodes: {nodes or usual} are too few for {len(shapes.components)} shapes, whose "
            f"stiffness is off by {100.0 * first:.2g} %: {enough}, at most {100.0 * COARSE:g} %"
        )
    return along


def _of(section: RodSection, component: int, name: str, x: float) -> float:
    strain = COMPONENTS[component]
    key = f"{strain}_n" if component < 3 else f"{strain}_n_m2"
    value = getattr(section, key)
    if value is None or not (math.isfinite(value) and value > 0.0):
        raise ModelError(f"{name}: section at X = {x:.6g} m: {key} must be > 0 for shapes of {strain}, got {value}")
    return float(value)


def _wet(rod: Rod, row: Array, x: float, name: str) -> None:
    """What the rod's skin says of the water a metre, into a row of the table."""
    if rod.skin is None:
        return
    skin = rod.skin(x, 1.0, Placement())
    if not isinstance(skin, Strip) or skin.law != "kirchhoff" or np.any(skin.placement.rotation != np.eye(3)):
        raise ModelError(f"{name}: skin at X = {x:.6g} m: expected a Strip along the rod, law 'kirchhoff'")
    if skin.polar is not None:
        raise ModelError(f"{name}: skin at X = {x:.6g} m: a polar on a rod by strain modes is not supported")
    row[at.K_ROLL], row[at.K_ADDED + 1], row[at.K_ADDED + 2] = skin.added
    row[at.K_DRAG : at.K_DRAG + 3], row[at.K_ROLL_DRAG] = skin.drag, skin.roll_drag
