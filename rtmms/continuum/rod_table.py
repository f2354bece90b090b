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


class RodTable(NamedTuple):
    """rows (points, K_WIDTH), rest (points, 6), shapes (m, points, 6), stiff (m, m), damping s, and the points."""

    rows: Array
    rest: Array
    shapes: Array
    stiff: Array
    damping: float
    grid: Grid


def rod_table(rod: Rod, shapes: Shapes | None, nodes: int, points: int) -> RodTable:
    """shapes None: Legendre polynomials to degree 3 for each of the rod's freedoms. ModelError names the place."""
    name = f"rod '{rod.name}'"
    rod.check()
    if callable(rod.damping_s):
        raise ModelError(f"{name}: damping_s must be one number for a rod by strain modes")
    shapes = legendre(4, rod.freedoms) if shapes is None else shapes
    along = grid(rod.length_m, nodes, points)
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
    stiff = _stiff(sections, table, shapes.components, along, name)
    return RodTable(rows, rest, np.ascontiguousarray(table), stiff, rod.damping(0.0), along)


def _stiff(sections: list[RodSection], table: Array, components: list[int], along: Grid, name: str) -> Array:
    """(m, m) int Phi^T H Phi."""
    m = len(table)
    out, same = np.zeros((m, m)), np.equal.outer(components, components)
    for i, (section, w) in enumerate(zip(sections, along.weight, strict=True)):
        h = np.array([_of(section, c, name, float(along.x[i])) for c in components])
        own = table[np.arange(m), i, components]
        out += w * np.where(same, np.outer(h * own, own), 0.0)
    size = np.sqrt(np.diag(out))
    if not np.linalg.eigvalsh(out / np.outer(size, size))[0] > 1e-12:
        raise ModelError(f"{name}: shapes must not be sums of each other: their stiffness has the eigenvalue 0")
    return out


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
    row[at.K_ROLL], row[at.K_ADDED + 1], row[at.K_ADDED + 2] = skin.added
    row[at.K_DRAG : at.K_DRAG + 3], row[at.K_ROLL_DRAG] = skin.drag, skin.roll_drag
