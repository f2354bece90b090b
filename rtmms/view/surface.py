"""Surfaces of robots: visuals, and the generators of meshes and grids that drawings name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import pi
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from rtmms.base.attitude import Pose
from rtmms.base.spatial import quaternion_matrix
from rtmms.plant.drawing import ROUND, Colour, Placing
from rtmms.plant.drawing import Mesh as DrawnMesh

Array = npt.NDArray[np.float64]


# What a visual is: surfaces that move with a part of a robot, and surfaces that bend with its model's points.


Faces = npt.NDArray[np.int64]
Mesh = tuple[Array, Faces]
"""Vertices (n, 3) m and indices (k, 3), counter-clockwise as seen from outside."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Closed surface of one colour.

    Attributes
    ----------
    name : str
        Name of the surface.
    faces : Faces
        (k, 3) indices of its vertices, counter-clockwise as seen from outside.
    colour : Colour
        Red, green, blue, 0 to 255.
    vertices : Array | None, optional
        (n, 3) m, in its frame; None for a surface that bends: the visual returns them state by state.
    frame : str, default ''
        Name of the part (`Shape.frames`) that it moves with; '' for the body.
    opacity : float, default 1.0
        0 to 1.
    gloss : float, default 0.25
        0 to 1.
    """

    name: str
    faces: Faces
    colour: Colour
    vertices: Array | None = None
    frame: str = ""
    opacity: float = 1.0
    gloss: float = 0.25


class Visual(Protocol):
    """Look of one robot."""

    @property
    def surfaces(self) -> tuple[Surface, ...]:
        """Surfaces, fixed to parts or bending."""
        ...

    @property
    def scene(self) -> str:
        """Environment of the robot, one of SCENES."""
        ...

    @property
    def ground(self) -> float | None:
        """Height of the ground under a robot that stands on it, m, body frame; None for others."""
        ...

    def bent(self, frames: Mapping[str, Pose], skins: Sequence[Array]) -> tuple[Array, ...]:
        """Return the vertices of the bending surfaces in a state.

        Parameters
        ----------
        frames : Mapping[str, Pose]
            Frames of the robot's shape, from `Shape.frames`.
        skins : Sequence[Array]
            Points of its skins, from `Shape.points`.

        Returns
        -------
        tuple[Array, ...]
            (n, 3) m, body frame, of each bending surface, in their order.
        """


def fixed_surface(
    name: str, mesh: Mesh, colour: Colour, frame: str = "", *, opacity: float = 1.0, gloss: float = 0.25
) -> Surface:
    """Return a surface that moves with a part.

    Parameters
    ----------
    name : str
        Name of the surface.
    mesh : Mesh
        Vertices in the part's frame, and faces.
    colour : Colour
        Red, green, blue.
    frame : str, default ''
        Name of the part; '' for the body.
    opacity : float, default 1.0
        0 to 1.
    gloss : float, default 0.25
        0 to 1.

    Returns
    -------
    Surface
        The surface.
    """
    vertices, faces = mesh
    return Surface(name, faces, colour, vertices, frame, opacity, gloss)


# Meshes of what is usual: ellipsoids, boxes, cylinders, tubes, wheels, rotors. Vertices at sharp edges are double, so
# that a viewer that shades smoothly keeps the edges.


def merge_meshes(*meshes: Mesh) -> Mesh:
    """Merge several meshes into one.

    Parameters
    ----------
    *meshes : Mesh
        The meshes.

    Returns
    -------
    Mesh
        One mesh.
    """
    vertices, faces, first = [], [], 0
    for points, corners in meshes:
        vertices.append(points)
        faces.append(corners + first)
        first += len(points)
    return np.concatenate(vertices), np.concatenate(faces)


def move_mesh(
    mesh: Mesh,
    position: Sequence[float] = (0.0, 0.0, 0.0),
    quaternion: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
    scale: Sequence[float] = (1.0, 1.0, 1.0),
) -> Mesh:
    """Scale a mesh along its axes, then turn it, then shift it.

    Parameters
    ----------
    mesh : Mesh
        The mesh.
    position : Sequence[float], default (0.0, 0.0, 0.0)
        Shift, m.
    quaternion : Sequence[float], default (1.0, 0.0, 0.0, 0.0)
        Turn of the mesh, w x y z.
    scale : Sequence[float], default (1.0, 1.0, 1.0)
        Factors along x, y, z.

    Returns
    -------
    Mesh
        A mesh.
    """
    vertices, faces = mesh
    factor = np.array(scale, dtype=float)
    turned = (vertices * factor) @ quaternion_matrix(np.array(quaternion, dtype=float)).T
    return turned + np.array(position, dtype=float), faces[:, ::-1] if np.prod(factor) < 0.0 else faces


def seen_from(frame: Pose, mesh: Mesh) -> Mesh:
    """Return a mesh of the body's frame in the frame of a part.

    Parameters
    ----------
    frame : Pose
        Pose of the part in the body's frame.
    mesh : Mesh
        The mesh.

    Returns
    -------
    Mesh
        A mesh.
    """
    vertices, faces = mesh
    return (vertices - np.array(frame[0])) @ quaternion_matrix(np.array(frame[1])), faces


def along(axis: int, mesh: Mesh) -> Mesh:
    """Turn a mesh about z into one about another axis.

    Parameters
    ----------
    axis : int
        x (0), y (1) or z (2).
    mesh : Mesh
        The mesh.

    Returns
    -------
    Mesh
        A mesh.
    """
    vertices, faces = mesh
    return np.roll(vertices, axis + 1, axis=1), faces  # a cyclic change of axes is a turn


def tiles(rows: int, columns: int, around: bool = False) -> Faces:
    """Return two triangles for each tile of a grid of points, row by row.

    Parameters
    ----------
    rows, columns : int
        Size of the grid.
    around : bool, default False
        The last column meets the first.

    Returns
    -------
    Faces
        (k, 3).

    Examples
    --------
    >>> from rtmms.view.surface import tiles
    >>> tiles(2, 2).tolist()
    [[0, 1, 2], [1, 3, 2]]
    """
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns if around else columns - 1), indexing="ij")
    a, b = i * columns + j, i * columns + (j + 1) % columns
    c, d = a + columns, b + columns
    return np.stack([np.stack([a, b, c], axis=-1), np.stack([b, d, c], axis=-1)], axis=-2).reshape(-1, 3)


def tile_means(values: Array) -> Array:
    """Average values of triangles of `tiles` over each tile, so that colours meet along rows and columns.

    Parameters
    ----------
    values : Array
        (k,) of each triangle.

    Returns
    -------
    Array
        (k,).
    """
    return np.repeat(values.reshape(-1, 2).mean(axis=1), 2)


def revolved(profile: Sequence[tuple[float, float]], edges: Sequence[int] = (), round_: int = ROUND) -> Mesh:
    """Return the mesh of a profile revolved about z.

    Parameters
    ----------
    profile : Sequence[tuple[float, float]]
        Radii and heights from below upwards on the outside, m.
    edges : Sequence[int], default ()
        Points of the profile that are sharp.
    round_ : int, default ROUND
        Points of a ring.

    Returns
    -------
    Mesh
        A mesh.
    """
    angle = np.linspace(0.0, 2.0 * pi, round_, endpoint=False)
    cuts = sorted({0, len(profile) - 1, *edges})
    pieces = []
    for start, end in pairwise(cuts):
        rings = [
            np.stack([r * np.cos(angle), r * np.sin(angle), np.full(round_, z)], axis=1)
            for r, z in profile[start : end + 1]
        ]
        pieces.append((np.concatenate(rings), tiles(len(rings), round_, around=True)))
    return merge_meshes(*pieces)


def ellipsoid(x: float, y: float, z: float, fine: int = ROUND) -> Mesh:
    """Return an ellipsoid.

    Parameters
    ----------
    x, y, z : float
        Full axes, m.
    fine : int, default ROUND
        Points of a ring.

    Returns
    -------
    Mesh
        A mesh.
    """
    profile = [(0.5 * np.sin(a), -0.5 * np.cos(a)) for a in np.linspace(0.0, pi, fine // 2 + 1)]
    return move_mesh(revolved(profile, round_=fine), scale=(x, y, z))


def sphere(radius: float) -> Mesh:
    """Return a sphere.

    Parameters
    ----------
    radius : float
        Radius, m.

    Returns
    -------
    Mesh
        A mesh.
    """
    return ellipsoid(2.0 * radius, 2.0 * radius, 2.0 * radius, 20)


def cylinder(radius: float, length: float, round_: int = ROUND) -> Mesh:
    """Return a cylinder along z, about the origin, with broken edges.

    Parameters
    ----------
    radius, length : float
        Radius and length, m.
    round_ : int, default ROUND
        Points of a ring.

    Returns
    -------
    Mesh
        A mesh.
    """
    e, h = min(0.08 * radius, 0.2 * length), 0.5 * length
    return revolved(
        [(0.0, -h), (radius - e, -h), (radius, e - h), (radius, h - e), (radius - e, h), (0.0, h)], (1, 2, 3, 4), round_
    )


def block(x: float, y: float, z: float, bevel: float = 0.12) -> Mesh:
    """Return a box about the origin with broken edges.

    Parameters
    ----------
    x, y, z : float
        Sides, m.
    bevel : float, default 0.12
        Bevel, of its shortest side.

    Returns
    -------
    Mesh
        A mesh.
    """
    half = 0.5 * np.array([x, y, z])
    cut = bevel * 0.5 * float(half.min())
    vertices: list[Array] = []
    faces: list[list[int]] = []

    def face(corners: list[Array]) -> None:
        first, middle = len(vertices), np.mean(corners, axis=0)
        if np.cross(corners[1] - corners[0], corners[2] - corners[0]) @ middle < 0.0:
            corners = corners[::-1]
        vertices.extend(corners)
        faces.extend([first, first + k, first + k + 1] for k in range(1, len(corners) - 1))

    def corner(signs: Array, out: int) -> Array:
        """Return the corner of a side: out along one axis, in by the bevel along the others."""
        place: Array = signs * (half - cut)
        place[out] = signs[out] * half[out]
        return place

    signs = [np.array([a, b, c], dtype=float) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1.0, 1.0):
            of_side = sorted((s for s in signs if s[axis] == side), key=lambda s: np.arctan2(s[v], s[u]))
            face([corner(s, axis) for s in of_side])
        for first in (-1.0, 1.0):
            for second in (-1.0, 1.0):
                ends = [s for s in signs if s[u] == first and s[v] == second]
                face([corner(ends[0], u), corner(ends[0], v), corner(ends[1], v), corner(ends[1], u)])
    for s in signs:
        face([corner(s, axis) for axis in range(3)])
    return np.array(vertices), np.array(faces)


def rounded(x: float, y: float, z: float, power: float = 5.0, fine: int = ROUND) -> Mesh:
    """Return a superellipsoid |x|^p + |y|^p + |z|^p = 1: a box that is round everywhere.

    Parameters
    ----------
    x, y, z : float
        Full axes, m.
    power : float, default 5.0
        Exponent p.
    fine : int, default ROUND
        Points of a ring.

    Returns
    -------
    Mesh
        A mesh.
    """
    vertices, faces = ellipsoid(2.0, 2.0, 2.0, fine)
    size = (np.abs(vertices) ** power).sum(axis=1) ** (-1.0 / power)
    return vertices * size[:, None] * 0.5 * np.array([x, y, z]), faces


def tube(path: Sequence[Sequence[float]], radius: float | Sequence[float], round_: int = 16, flat: float = 1.0) -> Mesh:
    """Return a tube round a line of points, with round ends.

    Parameters
    ----------
    path : Sequence[Sequence[float]]
        Points, m.
    radius : float | Sequence[float]
        Radius, m, one or one a point.
    round_ : int, default 16
        Points of a ring.
    flat : float, default 1.0
        Height over width.

    Returns
    -------
    Mesh
        A mesh.
    """
    line = np.array(path, dtype=float)
    radii = np.broadcast_to(np.array(radius, dtype=float), len(line))
    t = np.gradient(line, axis=0)
    t /= np.linalg.norm(t, axis=1)[:, None]
    # a half circle: distance a r before the end, radius sqrt(1 - a^2) r
    centres = [line[0] - t[0] * radii[0] * a for a in (1.0, 0.92, 0.7, 0.38)]
    sizes = [radii[0] * float(np.sqrt(1.0 - a * a)) for a in (1.0, 0.92, 0.7, 0.38)]
    centres += [*line, *(line[-1] + t[-1] * radii[-1] * a for a in (0.38, 0.7, 0.92, 1.0))]
    sizes += [*radii, *(radii[-1] * float(np.sqrt(1.0 - a * a)) for a in (0.38, 0.7, 0.92, 1.0))]
    ways = [t[0]] * 4 + list(t) + [t[-1]] * 4
    angle = np.linspace(0.0, 2.0 * pi, round_, endpoint=False)
    rings, side = [], None
    for centre, size, direction in zip(centres, sizes, ways, strict=True):
        if side is None:
            helper = np.array([0.0, 0.0, 1.0]) if abs(direction[2]) < 0.9 else np.array([1.0, 0.0, 0.0])
            side = np.cross(helper, direction)
        side = side - direction * (side @ direction)
        side /= np.linalg.norm(side)
        up = np.cross(direction, side)
        rings.append(centre + size * (np.cos(angle)[:, None] * side + flat * np.sin(angle)[:, None] * up))
    return np.concatenate(rings), tiles(len(rings), round_, around=True)


def tyre(radius: float, width: float) -> Mesh:
    """Return the tyre of a wheel about y.

    Parameters
    ----------
    radius, width : float
        Radius and width of the wheel, m.

    Returns
    -------
    Mesh
        A mesh.
    """
    h = 0.5 * width
    bulge = [(radius * (0.78 + 0.22 * np.sin(a)), -h * np.cos(a)) for a in np.linspace(0.0, pi, 11)]
    low, high = (0.62 * radius, -0.8 * h), (0.62 * radius, 0.8 * h)
    return along(1, revolved([low, *bulge, high, low], (1, 11, 12)))


def hub(radius: float, width: float) -> Mesh:
    """Return the hub of a wheel about y.

    Parameters
    ----------
    radius, width : float
        Radius and width of the wheel, m.

    Returns
    -------
    Mesh
        A mesh.
    """
    return along(1, merge_meshes(cylinder(0.64 * radius, 1.0 * width), cylinder(0.16 * radius, 1.5 * width)))


def propeller(radius: float, blades: int = 2, thick: float = 0.05, pitch: float = 0.3) -> Mesh:
    """Return twisted blades about z with a hub.

    Parameters
    ----------
    radius : float
        Radius, m.
    blades : int, default 2
        Number of blades.
    thick : float, default 0.05
        Thickness of a blade, of the radius.
    pitch : float, default 0.3
        Pitch of the blades.

    Returns
    -------
    Mesh
        A mesh.
    """
    r = np.concatenate([[0.12], np.linspace(0.12, 1.0, 9), [1.0]])
    chord = 0.2 * np.sqrt(np.clip(1.0 - ((r - 0.45) / 0.56) ** 2, 0.02, None))
    chord[[0, -1]] = 0.0  # closed at both ends
    ring = np.linspace(0.0, 2.0 * pi, 10, endpoint=False)
    slope = np.arctan(pitch / np.maximum(r, 0.3))
    points = np.stack(
        [
            np.stack(
                [
                    np.full(10, ri),
                    c * np.cos(ring) * np.cos(a) - thick * c * np.sin(ring) * np.sin(a),
                    c * np.cos(ring) * np.sin(a) + thick * 4.0 * c * np.sin(ring) * np.cos(a),
                ],
                axis=1,
            )
            for ri, c, a in zip(r, chord, slope, strict=True)
        ]
    )
    blade: Mesh = radius * points.reshape(-1, 3), tiles(len(r), 10, around=True)
    turned = [
        move_mesh(blade, quaternion=(np.cos(pi * k / blades), 0.0, 0.0, np.sin(pi * k / blades))) for k in range(blades)
    ]
    return merge_meshes(*turned, ellipsoid(0.3 * radius, 0.3 * radius, 0.34 * radius, 16))


def plate(outline: Sequence[tuple[float, float]], thickness: float) -> Mesh:
    """Return a flat plate about z = 0.

    Parameters
    ----------
    outline : Sequence[tuple[float, float]]
        Counter-clockwise, m; convex, or star-like about its middle.
    thickness : float
        Thickness, m.

    Returns
    -------
    Mesh
        A mesh.
    """
    edge, n = np.array(outline, dtype=float), len(outline)
    middle, h = edge.mean(axis=0), 0.5 * thickness
    meshes = []
    for z, order in ((h, 1), (-h, -1)):
        points = np.column_stack([np.vstack([edge, middle]), np.full(n + 1, z)])
        fan = np.array([[n, k, (k + 1) % n] for k in range(n)])
        meshes.append((points, fan[:, ::order]))
    rim = np.concatenate([np.column_stack([edge, np.full(n, z)]) for z in (-h, h)])
    return merge_meshes(*meshes, (rim, tiles(2, n, around=True)))


def rounded_plate(length: float, width: float, thickness: float, waist: float = 1.0, n: int = 40) -> Mesh:
    """Return a plate with round ends, along x.

    Parameters
    ----------
    length, width, thickness : float
        Dimensions, m.
    waist : float, default 1.0
        Width in the middle, of the whole width.
    n : int, default 40
        Points of the outline.

    Returns
    -------
    Mesh
        A mesh.
    """
    a = np.linspace(0.0, 2.0 * pi, n, endpoint=False)
    x = 0.5 * length * np.sign(np.cos(a)) * np.abs(np.cos(a)) ** 0.5
    y = 0.5 * width * np.sign(np.sin(a)) * np.abs(np.sin(a)) ** 0.5
    y = y * (waist + (1.0 - waist) * np.minimum(1.0, (np.abs(2.0 * x / length) / 0.7) ** 2))
    return plate(list(zip(x.tolist(), y.tolist(), strict=True)), thickness)


GENERATORS: dict[str, Callable[..., Mesh]] = {
    make.__name__: make
    for make in (
        block,
        cylinder,
        ellipsoid,
        hub,
        plate,
        propeller,
        revolved,
        rounded,
        rounded_plate,
        sphere,
        tube,
        tyre,
    )
}
"""Generators of the meshes of drawings, by name (rtmms.plant.drawing has a function of each name)."""


def generate_mesh(drawn: DrawnMesh) -> Mesh:
    """Return the mesh that a drawing describes.

    Parameters
    ----------
    drawn : DrawnMesh
        The description.

    Returns
    -------
    Mesh
        A mesh.
    """
    arguments: tuple[Any, ...] = drawn.arguments
    if drawn.kind == "merged":
        mesh = merge_meshes(*(generate_mesh(argument) for argument in arguments))
    else:
        mesh = GENERATORS[drawn.kind](*arguments)
    for place in drawn.places:
        mesh = move_mesh(mesh, *place) if isinstance(place, Placing) else along(place, mesh)
    return mesh


# Surfaces that bend: grids of points through the model's own, fine enough to look smooth.


def spline(stations: Sequence[float] | Array, fine: Sequence[float] | Array) -> Array:
    """Return the matrix of the cubic spline through n points, at m other stations.

    At the stations themselves the spline has the points, so a surface that it makes goes through them.

    Parameters
    ----------
    stations : Sequence[float] | Array
        (n,) rising.
    fine : Sequence[float] | Array
        (m,) other stations.

    Returns
    -------
    Array
        (m, n).
    """
    places = np.asarray(stations, dtype=float)
    return np.asarray(CubicSpline(places, np.eye(len(places)))(np.asarray(fine, dtype=float)))  # type: ignore[no-untyped-call]


def refine_stations(stations: Array, pieces: int) -> Array:
    """Return stations with further ones between any two of them.

    Parameters
    ----------
    stations : Array
        Rising.
    pieces : int
        Pieces between two stations.

    Returns
    -------
    Array
        Rising.
    """
    return np.unique(np.concatenate([np.linspace(a, b, pieces + 1) for a, b in pairwise(stations)]))


def lengths(points: Array) -> Array:
    """Return the lengths along a line of points, from the first.

    Parameters
    ----------
    points : Array
        (n, 3) points, m.

    Returns
    -------
    Array
        (n,) m.
    """
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    return np.concatenate([[0.0], np.cumsum(np.maximum(steps, 1e-9))])


def normals(grid: Array) -> Array:
    """Return the unit normals of a grid: along rows cross along columns.

    Parameters
    ----------
    grid : Array
        (r, c, 3) grid of points.

    Returns
    -------
    Array
        (r, c, 3).
    """
    across = np.cross(np.gradient(grid, axis=0), np.gradient(grid, axis=1))
    size = np.linalg.norm(across, axis=2, keepdims=True)
    return np.asarray(across / np.maximum(size, 1e-12))


def loft(rings: int, round_: int) -> Faces:
    """Return the faces of a tube of rings, whose points go round counter-clockwise as seen from where the rings end.

    Parameters
    ----------
    rings : int
        Number of rings.
    round_ : int
        Points of a ring.

    Returns
    -------
    Faces
        (k, 3).
    """
    return tiles(rings, round_, around=True)


def wing_section(x: Array) -> Array:
    """Return half the thickness of a wing's section, 1 at its thickest place.

    Parameters
    ----------
    x : Array
        From the leading (0) to the trailing edge (1).

    Returns
    -------
    Array
        In the shape of x.
    """
    x = np.clip(x, 0.0, 1.0)
    thick = 1.4845 * np.sqrt(x) - 0.63 * x - 1.758 * x**2 + 1.4215 * x**3 - 0.518 * x**4
    return np.maximum(thick, 0.0) / 0.5
