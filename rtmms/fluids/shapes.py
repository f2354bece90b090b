"""Provide drag, added mass and buoyancy of plain shapes (box, cylinder, sphere), as elements of a body.

The model is deliberately coarse: a shape is one strip along its longest axis, with one drag coefficient for flow from
any side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.spatial import Array, adjoint
from rtmms.model.description import Body
from rtmms.model.elements import Strip
from rtmms.model.solids import Placement
from rtmms.model.urdf import Shape


def volume(shape: Shape) -> float:
    """Return the volume of a shape.

    Parameters
    ----------
    shape : Shape
        Box, cylinder or sphere.

    Returns
    -------
    float
        m3.
    """
    if shape.kind == "sphere":
        return 4.0 / 3.0 * math.pi * shape.sizes[0] ** 3
    if shape.kind == "cylinder":
        return math.pi * shape.sizes[0] ** 2 * shape.sizes[1]
    return math.prod(shape.sizes)


def immersed_body(
    body: Body, shapes: Sequence[Shape], density: float, drag: float, added: float, buoyancy: str
) -> Body:  # fmt: skip
    """Return a body with the fluid's action on its shapes.

    Parameters
    ----------
    body : Body
        The body.
    shapes : Sequence[Shape]
        Its shapes.
    density : float
        Density of the fluid, kg/m3.
    drag : float
        Coefficient of the force 1/2 density drag area |V| V, for the area of a shape along each of its axes.
    added : float
        Factor on a slender body's added mass (a sphere's: half of its displaced mass).
    buoyancy : str
        'none', 'shapes' (of their volume) or 'neutral' (the body's mass, at its centre of mass).

    Returns
    -------
    Body
        The body with elements, added mass and displaced fluid.

    Raises
    ------
    ModelError
        A shape is a mesh.
    """
    if buoyancy == "neutral":
        body = replace(body, displaced=body.mass, displaced_moment=body.first_moment)
    if not (drag or added or buoyancy == "shapes"):
        return body
    strips, more, displaced, moment = [], np.zeros((6, 6)), 0.0, np.zeros(3)
    for shape in shapes:
        if shape.kind == "mesh":
            raise ModelError(
                f"link '{body.name}': drag, added mass and buoyancy need a box, cylinder or sphere, got a mesh; "
                "give its <collision> a plain shape"
            )
        mass = density * volume(shape)
        displaced, moment = displaced + mass, moment + mass * shape.placement.position
        strips.append(_strip(shape, density, drag, added, mass if buoyancy == "shapes" else 0.0))
        if shape.kind == "sphere":
            x = adjoint(np.eye(3), shape.placement.position)
            more += x.T @ np.diag([0.5 * added * mass] * 3 + [0.0] * 3) @ x
    if buoyancy == "shapes":
        body = replace(body, displaced=displaced, displaced_moment=moment)
    return replace(body, elements=strips, added=more)


def _strip(shape: Shape, density: float, drag: float, added: float, displaced: float) -> Strip:
    length, a, b, axes = _slender(shape)
    end, half = math.pi * a * b, 0.5 * density * drag
    if shape.kind == "box":
        end = 4.0 * a * b
    across = (2.0 * b, 2.0 * a)
    ring = (b * b - a * a) ** 2
    masses = (density * math.pi * ring / 8.0, density * math.pi * b * b, density * math.pi * a * a)
    if shape.kind == "sphere":
        across, masses = (end / length, end / length), (0.0, 0.0, 0.0)
    return Strip(
        length=length, drag=(half * end / length, half * across[0], half * across[1]), roll_drag=half * ring,
        added=(added * masses[0], added * masses[1], added * masses[2]), displaced=displaced / length,
        placement=shape.placement @ Placement(axes),
    )  # fmt: skip


def _slender(shape: Shape) -> tuple[float, float, float, Array]:
    """Return length, half-widths along e2 and e3, and the axes e1, e2, e3 as columns, in the shape's own frame."""
    z_first = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    if shape.kind == "sphere":
        r = shape.sizes[0]
        return 2.0 * r, r, r, np.eye(3)
    if shape.kind == "cylinder":
        return shape.sizes[1], shape.sizes[0], shape.sizes[0], z_first
    k = int(np.argmax(shape.sizes))
    order = [k, (k + 1) % 3, (k + 2) % 3]
    size = [shape.sizes[i] for i in order]
    return size[0], 0.5 * size[1], 0.5 * size[2], np.eye(3)[:, order]
