"""Provide drawings of robots as data: frames of moving parts, solids and skins for figures, and surfaces for films.

A robot's drawing is the function `draw` of `rtmms/robots/NAME_drawing.py`. It makes a `Drawing` from the robot's
parameters and loads neither arrays nor kernels. `rtmms.view` reads drawings: it moves their frames, generates their
meshes and bends their skins.

Lengths are in m, angles in rad. Colours have red, green and blue from 0 to 255. Frames and points are in the body's
frame by default.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import cos, inf, pi, sin
from typing import Any, NamedTuple

from rtmms.base.attitude import HOME, Quaternion, Vector

Colour = tuple[int, int, int]

WATER = "water"
AIR = "air"
GROUND = "ground"
SPACE = "space"
SCENES = (WATER, AIR, GROUND, SPACE)

JOINTS = "joint_position"
"""Name of the output whose numbers turn frames."""

ROUND = 32
"""Number of points around a round mesh."""


# Frames of moving parts, in a drawing parent first. A frame without a name only carries others and is not shown.


class Turn(NamedTuple):
    """A turn about an axis of the frame, by a multiple of a joint's angle.

    Attributes
    ----------
    axis : int
        0, 1 or 2 for x, y or z of the frame.
    joint : int
        Index of the joint in the output `joint_position`.
    weight : float, default 1.0
        Factor on the joint's angle.
    """

    axis: int
    joint: int
    weight: float = 1.0


@dataclass(frozen=True)
class Frame:
    """A frame on another frame, which joints turn.

    Parameters
    ----------
    name : str
        Name of the frame; '' for a frame that only serves others and is not shown.
    parent : int, default 0
        0 is the body, k the k-th frame of the drawing.
    position : Vector, default HOME[0]
        m, in the parent's frame with all joints at 0.
    quaternion : Quaternion, default HOME[1]
        Attitude in the parent's frame with all joints at 0.
    turns : tuple[Turn, ...], default ()
        Turns, applied one after the other.
    slide : int, default -1
        Joint that moves the frame along its z; -1 for none.
    """

    name: str
    parent: int = 0
    position: Vector = HOME[0]
    quaternion: Quaternion = HOME[1]
    turns: tuple[Turn, ...] = ()
    slide: int = -1


@dataclass(frozen=True)
class Coupler:
    """The frame of a bar between the tips of two cranks, which turn about axes along x.

    Its origin is the back crank's tip and its x points to the front tip. The back crank turns about `root`. The front
    crank slides along x so that the bar keeps its length.

    Parameters
    ----------
    name : str
        Name of the frame.
    output : str
        Output with the cranks' angles, rad, from y towards z.
    first : int
        Index of the front crank's angle; the back crank's angle follows it.
    root : Vector
        Axis of the back crank, m, body frame.
    front, back : float
        Length of the front and of the back crank, m.
    length : float
        Length of the bar, m.
    mean_roll : bool
        Whether the bar rolls by the mean of both angles; otherwise it does not roll.
    mirrored : bool, default False
        Whether the mechanism is mirrored in y.
    """

    name: str
    output: str
    first: int
    root: Vector
    front: float
    back: float
    length: float
    mean_roll: bool
    mirrored: bool = False


@dataclass(frozen=True)
class Slider:
    """An upright frame at the x of a point of another frame, with its own y and z.

    Parameters
    ----------
    name : str
        Name of the frame.
    parent : int
        0 is the body, k the k-th frame of the drawing.
    point : Vector
        Point in the parent's frame, m.
    y, z : float
        Remaining coordinates of the origin, m, body frame.
    """

    name: str
    parent: int
    point: Vector
    y: float
    z: float


@dataclass(frozen=True)
class Follower:
    """An upright frame at a point of an output of shape (n, 3).

    Parameters
    ----------
    name : str
        Name of the frame.
    output : str
        Output that contains the point, m.
    row : int
        Row of the output; negative from its end.
    """

    name: str
    output: str
    row: int


# Skins and solids: the model's own points and simple bodies, for figures, Foxglove, and the view of the model.


@dataclass(frozen=True)
class Skin:
    """A surface whose triangles are fixed while its points move.

    Parameters
    ----------
    name : str
        Name of the surface.
    triangles : tuple[int, ...]
        Three indices of points for each triangle, flattened; both sides are visible.
    lines : tuple[tuple[int, ...], ...]
        Strips of points, by their indices.
    """

    name: str
    triangles: tuple[int, ...]
    lines: tuple[tuple[int, ...], ...]


class Point(NamedTuple):
    """A point in a frame of the drawing.

    Attributes
    ----------
    frame : int
        0 is the body, k the k-th frame.
    place : Vector
        Position in that frame, m.
    """

    frame: int
    place: Vector


@dataclass(frozen=True)
class PointSkin:
    """A skin whose points are fixed in frames.

    Parameters
    ----------
    skin : Skin
        Triangles and lines.
    points : tuple[Point, ...]
        Points, in the order of the skin's indices.
    """

    skin: Skin
    points: tuple[Point, ...]


@dataclass(frozen=True)
class OutputSkin:
    """A skin whose points are an output of shape (n, 3).

    Parameters
    ----------
    skin : Skin
        Triangles and lines.
    output : str
        Name of the output, m, body frame.
    """

    skin: Skin
    output: str


@dataclass(frozen=True)
class ChainSkin:
    """A sheet of parallel chains of links, which bend in the planes x = constant of a frame.

    Parameters
    ----------
    name : str
        Name of the skin.
    frame : int
        0 is the body, k the k-th frame.
    stations : tuple[float, ...]
        x of each chain, m.
    lengths : tuple[float, ...]
        Length of each link of a chain, m; one number a chain.
    links : int
        Number of links in each chain.
    first : int
        Joint of the first link of the first chain; the chain's index varies fastest.
    mirrored : bool, default False
        Whether the links point along -y.
    """

    name: str
    frame: int
    stations: tuple[float, ...]
    lengths: tuple[float, ...]
    links: int
    first: int
    mirrored: bool = False


@dataclass(frozen=True)
class TubeSkin:
    """Elliptic rings on the points of an output (n, 3), from nose to tail, closed at both ends.

    The rings are upright and perpendicular to the line, whatever the roll of the sections.

    Parameters
    ----------
    name : str
        Name of the skin.
    output : str
        Output with the middle of each ring, m, body frame.
    half_width, half_height : float
        Half-axes of the rings, m.
    round : int, default 12
        Number of points around a ring.
    """

    name: str
    output: str
    half_width: float
    half_height: float
    round: int = 12


DrawnSkin = PointSkin | OutputSkin | ChainSkin | TubeSkin

KINDS = ("ellipsoid", "box", "cylinder", "rotor", "mesh")


@dataclass(frozen=True)
class Solid:
    """A solid fixed to the body or to a moving part, for drawing only; the model need not contain it.

    Parameters
    ----------
    name : str
        Name of the solid.
    centre : Vector
        m, in its frame.
    size : Vector
        Full axes along the solid's own x, y and z, m; a cylinder's axis is z.
    kind : str, default 'ellipsoid'
        One of KINDS; a rotor is a cylinder whose blades are drawn.
    quaternion : Quaternion, default (1.0, 0.0, 0.0, 0.0)
        Attitude in its frame.
    frame : str, default ''
        Name of the frame that it moves with; '' for the body.
    vertices : tuple[Vector, ...], default ()
        Points of a mesh, m, in the solid's own frame; `size` is the size of the mesh.
    triangles : tuple[tuple[int, int, int], ...], default ()
        Three indices of `vertices` for each triangle of a mesh.
    colour : tuple[int, ...], default ()
        Red, green, blue, 0 to 255; () for the viewer's choice.
    """

    name: str
    centre: Vector
    size: Vector
    kind: str = "ellipsoid"
    quaternion: Quaternion = (1.0, 0.0, 0.0, 0.0)
    frame: str = ""
    vertices: tuple[Vector, ...] = ()
    triangles: tuple[tuple[int, int, int], ...] = ()
    colour: tuple[int, ...] = ()


def sheet(name: str, rows: int, columns: int) -> Skin:
    """Return a skin of rows times columns points, row by row, with a line along each column and along the last row.

    Parameters
    ----------
    name : str
        Name of the skin.
    rows, columns : int
        Number of points in each direction.

    Returns
    -------
    Skin
        Two triangles for each cell of the grid.
    """
    triangles: list[int] = []
    for i in range(rows - 1):
        for j in range(columns - 1):
            a, b = i * columns + j, (i + 1) * columns + j
            triangles += (a, b, a + 1, a + 1, b, b + 1)
    along = [tuple(i * columns + j for i in range(rows)) for j in range(columns)]
    edge = tuple((rows - 1) * columns + j for j in range(columns))
    return Skin(name, tuple(triangles), (*along, edge))


def rings(name: str, count: int, round_: int) -> Skin:
    """Return a skin of rings, with a line along the back.

    Each ring has round_ + 1 points, and its last point is its first one. Rings begin on one side and go over the back
    first.

    Parameters
    ----------
    name : str
        Name of the skin.
    count : int
        Number of rings.
    round_ : int
        Number of different points around a ring.

    Returns
    -------
    Skin
        Triangles between successive rings.
    """
    back = tuple(i * (round_ + 1) + round_ // 4 for i in range(count))
    return Skin(name, sheet(name, count, round_ + 1).triangles, (back,))


def disc(name: str, frame: int, rim: Sequence[Vector], middle: Vector) -> PointSkin:
    """Return a face within a rim, and a line from its middle to the first point of the rim.

    Parameters
    ----------
    name : str
        Name of the skin.
    frame : int
        0 is the body, k the k-th frame of the drawing.
    rim : Sequence[Vector]
        Points of the rim, m, in the frame.
    middle : Vector
        Middle of the face, m, in the frame.

    Returns
    -------
    PointSkin
        The points are the rim, then the middle.
    """
    n = len(rim)
    fan = tuple(index for k in range(n) for index in (n, k, (k + 1) % n))
    points = tuple(Point(frame, place) for place in (*rim, middle))
    return PointSkin(Skin(name, fan, ((*range(n), 0), (n, 0))), points)


def plane(name: str, frame: int, x: tuple[float, float], y: tuple[float, float]) -> PointSkin:
    """Return a rectangle in a frame's plane z = 0.

    Parameters
    ----------
    name : str
        Name of the skin.
    frame : int
        0 is the body, k the k-th frame of the drawing.
    x, y : tuple[float, float]
        Lowest and highest coordinate, m.

    Returns
    -------
    PointSkin
        The four corners are its points.
    """
    corners = tuple(Point(frame, (x[i], y[j], 0.0)) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    return PointSkin(Skin(name, (0, 1, 2, 0, 2, 3), ((0, 1, 2, 3, 0),)), corners)


# Meshes by their generators (rtmms.view.surface has one of each name), moved and merged.


class Placing(NamedTuple):
    """A scaling of a mesh along its axes, followed by a rotation and a translation.

    Attributes
    ----------
    position : Sequence[float]
        Translation, m.
    quaternion : Sequence[float]
        Rotation.
    scale : Sequence[float]
        Factors along x, y and z.
    """

    position: Sequence[float]
    quaternion: Sequence[float]
    scale: Sequence[float]


@dataclass(frozen=True)
class Mesh:
    """The result of a mesh generator, as the generator's name and its arguments.

    Parameters
    ----------
    kind : str
        Name of the generator in `rtmms.view.surface`; 'merged' joins several meshes into one.
    arguments : tuple[Any, ...]
        Arguments of the generator; the meshes for 'merged'.
    places : tuple[Placing or int, ...], default ()
        Placings, applied one after the other; a number turns the mesh's z to x (0), y (1) or z (2).
    """

    kind: str
    arguments: tuple[Any, ...]
    places: tuple[Placing | int, ...] = ()


def merged(*meshes: Mesh) -> Mesh:
    """Return one mesh that contains several.

    Parameters
    ----------
    *meshes : Mesh
        Meshes to join.

    Returns
    -------
    Mesh
        Mesh of kind 'merged'.
    """
    return Mesh("merged", meshes)


def moved(
    mesh: Mesh, position: Sequence[float] = HOME[0], quaternion: Sequence[float] = HOME[1],
    scale: Sequence[float] = (1.0, 1.0, 1.0),
) -> Mesh:  # fmt: skip
    """Return a mesh that is scaled along its axes, then turned, then shifted.

    Parameters
    ----------
    mesh : Mesh
        Mesh to place.
    position : sequence of float, default HOME[0]
        Translation, m.
    quaternion : sequence of float, default HOME[1]
        Rotation.
    scale : sequence of float, default (1.0, 1.0, 1.0)
        Factors along x, y and z.

    Returns
    -------
    Mesh
        The same mesh with one more placing.
    """
    return Mesh(mesh.kind, mesh.arguments, (*mesh.places, Placing(position, quaternion, scale)))


def along(axis: int, mesh: Mesh) -> Mesh:
    """Return a mesh whose z axis points along another axis.

    Parameters
    ----------
    axis : int
        0, 1 or 2 for x, y or z.
    mesh : Mesh
        Mesh about z.

    Returns
    -------
    Mesh
        The same mesh with one more placing.
    """
    return Mesh(mesh.kind, mesh.arguments, (*mesh.places, axis))


def ellipsoid(x: float, y: float, z: float, fine: int = ROUND) -> Mesh:
    """Return an ellipsoid.

    Parameters
    ----------
    x, y, z : float
        Full axes, m.
    fine : int, default ROUND
        Number of points around it.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("ellipsoid", (x, y, z, fine))


def sphere(radius: float) -> Mesh:
    """Return a sphere.

    Parameters
    ----------
    radius : float
        m.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("sphere", (radius,))


def cylinder(radius: float, length: float, round_: int = ROUND) -> Mesh:
    """Return a cylinder along z about the origin, with bevelled edges.

    Parameters
    ----------
    radius, length : float
        m.
    round_ : int, default ROUND
        Number of points around it.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("cylinder", (radius, length, round_))


def block(x: float, y: float, z: float, bevel: float = 0.12) -> Mesh:
    """Return a box with bevelled edges.

    Parameters
    ----------
    x, y, z : float
        Full sides, m.
    bevel : float, default 0.12
        Width of the bevel as a share of the shortest side.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("block", (x, y, z, bevel))


def rounded(x: float, y: float, z: float, power: float = 5.0) -> Mesh:
    """Return a box that is round everywhere, less so for a higher power.

    Parameters
    ----------
    x, y, z : float
        Full sides, m.
    power : float, default 5.0
        p of the superellipsoid |x|^p + |y|^p + |z|^p = 1.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("rounded", (x, y, z, power))


def tube(path: Sequence[Sequence[float]], radius: float | Sequence[float], round_: int = 16, flat: float = 1.0) -> Mesh:
    """Return a sweep along a line of points, with round ends.

    Parameters
    ----------
    path : sequence of (x, y, z)
        Points of the line, m.
    radius : float or Sequence[float]
        One radius, or one for each point, m.
    round_ : int, default 16
        Number of points around a section.
    flat : float, default 1.0
        Height over width of a section.

    Returns
    -------
    Mesh
        Mesh in the frame of the path.
    """
    return Mesh("tube", (path, radius, round_, flat))


def revolved(profile: Sequence[tuple[float, float]], edges: Sequence[int] = (), round_: int = ROUND) -> Mesh:
    """Return a body of revolution about z.

    Parameters
    ----------
    profile : Sequence[tuple[float, float]]
        Radius and height of each point, m, from below upwards on the outside.
    edges : Sequence[int], default ()
        Indices of the points of the profile that are sharp.
    round_ : int, default ROUND
        Number of points around it.

    Returns
    -------
    Mesh
        Mesh about the z axis.
    """
    return Mesh("revolved", (profile, edges, round_))


def plate(outline: Sequence[tuple[float, float]], thickness: float) -> Mesh:
    """Return a flat plate about z = 0 with a convex or star-shaped outline.

    Parameters
    ----------
    outline : Sequence[tuple[float, float]]
        x and y of the outline, m, counter-clockwise.
    thickness : float
        m.

    Returns
    -------
    Mesh
        Mesh about the plane z = 0.
    """
    return Mesh("plate", (outline, thickness))


def rounded_plate(length: float, width: float, thickness: float, waist: float = 1.0) -> Mesh:
    """Return a plate along x with round ends.

    Parameters
    ----------
    length, width, thickness : float
        m.
    waist : float, default 1.0
        Width in the middle as a share of `width`.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("rounded_plate", (length, width, thickness, waist))


def tyre(radius: float, width: float) -> Mesh:
    """Return the tyre of a wheel about y.

    Parameters
    ----------
    radius, width : float
        Of the wheel, m.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("tyre", (radius, width))


def hub(radius: float, width: float) -> Mesh:
    """Return the hub of a wheel about y.

    Parameters
    ----------
    radius, width : float
        Of the wheel, m.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("hub", (radius, width))


def propeller(radius: float, blades: int = 2, thick: float = 0.05, pitch: float = 0.3) -> Mesh:
    """Return twisted blades about z with a hub.

    Parameters
    ----------
    radius : float
        m.
    blades : int, default 2
        Number of blades.
    thick, pitch : float, default 0.05
        Thickness and pitch of a blade, passed to the generator `rtmms.view.surface.propeller`.

    Returns
    -------
    Mesh
        Mesh about the origin.
    """
    return Mesh("propeller", (radius, blades, thick, pitch))


def ellipse(a: float, b: float, count: int, middle: float = 0.0) -> list[tuple[float, float]]:
    """Return points of an ellipse, counter-clockwise.

    Parameters
    ----------
    a, b : float
        Half-axes along x and y, m.
    count : int
        Number of points.
    middle : float, default 0.0
        x of the centre, m.

    Returns
    -------
    list of (x, y)
        Points, m.
    """
    angles = [2.0 * pi * k / count for k in range(count)]
    return [(middle + a * cos(angle), b * sin(angle)) for angle in angles]


def steps(start: float, end: float, count: int) -> tuple[float, ...]:
    """Return evenly spaced numbers.

    Parameters
    ----------
    start, end : float
        First and last number.
    count : int
        How many numbers, at least 2.

    Returns
    -------
    tuple[float, ...]
        The numbers.
    """
    return tuple(start + (end - start) * k / (count - 1) for k in range(count))


def interpolated(at: Sequence[float], places: Sequence[float], values: Sequence[float]) -> tuple[float, ...]:
    """Return values at places by linear interpolation, constant beyond the ends.

    Parameters
    ----------
    at : Sequence[float]
        Places at which to interpolate.
    places : Sequence[float]
        Known places, ascending.
    values : Sequence[float]
        Value at each known place.

    Returns
    -------
    tuple[float, ...]
        One value for each element of `at`.
    """
    numbers = []
    for x in at:
        k = min(max(bisect_right(places, x) - 1, 0), len(places) - 2)
        width = places[k + 1] - places[k]
        share = (min(max(x, places[0]), places[-1]) - places[k]) / width if width > 0.0 else 0.0
        numbers.append(values[k] + (values[k + 1] - values[k]) * share)
    return tuple(numbers)


# Surfaces: parts that do not bend, and generators of those that bend with skins and frames.


@dataclass(frozen=True)
class Part:
    """A closed surface of one colour that moves with a frame.

    Parameters
    ----------
    name : str
        Name of the part.
    mesh : Mesh
        Its surface.
    colour : Colour
        Red, green, blue, 0 to 255.
    frame : str, default ''
        Name of the frame that it moves with; '' for the body.
    opacity : float, default 1.0
        0 to 1.
    gloss : float, default 0.25
        Specular reflection, 0 to 1.
    at_rest : bool, default False
        Whether the mesh is in the body's frame with all joints at 0, not in its own frame.
    """

    name: str
    mesh: Mesh
    colour: Colour
    frame: str = ""
    opacity: float = 1.0
    gloss: float = 0.25
    at_rest: bool = False


DARK = (28, 30, 34)
"""Colour of dark parts of robots on wheels."""
METAL = (168, 174, 182)
"""Colour of metal parts of robots on wheels."""
RUBBER = (40, 42, 46)
"""Colour of tyres of robots on wheels."""


def wheels(name: str, radius: float, width: float, places: Sequence[Vector], frame: str = "") -> list[Part]:
    """Return tyres and hubs of wheels about y.

    Parameters
    ----------
    name : str
        Beginning of the names of both parts.
    radius, width : float
        Of a wheel, m.
    places : sequence of (x, y, z)
        Centres, m, in the frame.
    frame : str, default ''
        Frame that has the wheels; '' for the body.

    Returns
    -------
    list[Part]
        One part with all tyres, and one with all hubs.
    """
    tyres, hubs = ([moved(mesh, place) for place in places] for mesh in (tyre(radius, width), hub(radius, width)))
    return [
        Part(f"{name}_tyres", merged(*tyres), RUBBER, frame, gloss=0.1),
        Part(f"{name}_hubs", merged(*hubs), METAL, frame, gloss=0.6),
    ]


class Box(NamedTuple):
    """Ranges of two coordinates of a surface.

    Attributes
    ----------
    along, across : tuple[float, float], default (-inf, inf)
        Lowest and highest value; see the surface for what its coordinates are.
    """

    along: tuple[float, float] = (-inf, inf)
    across: tuple[float, float] = (-inf, inf)


class Stripes(NamedTuple):
    """Stripes along a surface.

    Attributes
    ----------
    number : float
        Stripes for each unit of the coordinate along the surface.
    half_width : float
        Half the width of a stripe, as a share of the distance between stripes.
    """

    number: float
    half_width: float


@dataclass(frozen=True)
class Zone:
    """The faces of a bending surface that have one colour.

    A face belongs to the first zone that has it in one of its boxes.

    Parameters
    ----------
    name : str
        Name of the zone.
    colour : Colour
        Red, green, blue, 0 to 255.
    boxes : tuple[Box, ...], default (Box(),)
        Ranges of the surface's coordinates.
    stripes : Stripes, optional
        Restricts the zone to stripes.
    gloss : float, default 0.25
        Specular reflection, 0 to 1.
    """

    name: str
    colour: Colour
    boxes: tuple[Box, ...] = (Box(),)
    stripes: Stripes | None = None
    gloss: float = 0.25


@dataclass(frozen=True)
class Ridge:
    """A thin fin along the back or the belly of a body.

    Parameters
    ----------
    start, end : float
        Shares of the body's length.
    height : tuple of float or float
        A tuple has heights at even distances from start to end, as shares of the body's largest half height there. A
        number is the largest height of half a sine, m.
    above : bool, default True
        Whether it is on the back; otherwise it is under the belly.
    """

    start: float
    end: float
    height: tuple[float, ...] | float
    above: bool = True


@dataclass(frozen=True)
class Fins:
    """Ridges of one colour.

    Parameters
    ----------
    name : str
        Name of the fins.
    colour : Colour
        Red, green, blue, 0 to 255.
    ridges : tuple[Ridge, ...]
        The fins.
    """

    name: str
    colour: Colour
    ridges: tuple[Ridge, ...]


@dataclass(frozen=True)
class Bands:
    """Bands round a lofted body at the rings of its skin.

    Parameters
    ----------
    name : str
        Name of the bands.
    colour : Colour
        Red, green, blue, 0 to 255.
    skipped : int, default 3
        Number of first and of last rings without a band.
    gloss : float, default 0.5
        Specular reflection, 0 to 1.
    """

    name: str
    colour: Colour
    skipped: int = 3
    gloss: float = 0.5


@dataclass(frozen=True)
class Loft:
    """A smooth body through the rings of a skin, closed at both ends.

    Its zones have two coordinates: the share of the length (along), and the sine of the angle from the side over the
    back (across).

    Parameters
    ----------
    skin : str
        Name of the skin, whose rings have `round` + 1 points (see `rings`).
    zones : tuple[Zone, ...]
        Colours.
    round : int, default 12
        Number of different points around a ring.
    pieces : int, default 3
        Rings of the surface from one ring of the skin to the next.
    bands : Bands, optional
        Bands at the rings.
    fins : tuple[Fins, ...], default ()
        Fins on the body.
    """

    skin: str
    zones: tuple[Zone, ...]
    round: int = 12
    pieces: int = 3
    bands: Bands | None = None
    fins: tuple[Fins, ...] = ()


UPRIGHT, LEVEL, CARRIED = "upright", "level", "carried"
"""Orientation of a sweep's sections, one of three.

UPRIGHT: perpendicular to the spine, up as near z as possible. LEVEL: across the horizontal normal of the spine, up
along z. CARRIED: perpendicular to the spine and turned with a frame.
"""


@dataclass(frozen=True)
class Sweep:
    """A smooth body of elliptic sections along a spine.

    Its zones have two coordinates: `fine` (along), and the sine, for CARRIED the cosine, of the angle in the section
    (across).

    Parameters
    ----------
    spine : tuple of Point or str
        Points in frames, or the name of a `TubeSkin` whose middles are the points.
    fine : tuple[float, ...]
        Coordinates of the sections; the first and the last are the ends.
    wide, high : tuple[float, ...]
        Half-axes of each section, m.
    zones : tuple[Zone, ...]
        Colours.
    stations : tuple[float, ...], default ()
        Coordinate of each point of the spine; () for even ones from 0 to 1.
    axes : str, default UPRIGHT
        One of UPRIGHT, LEVEL and CARRIED.
    round : int, default 16
        Number of points around a section.
    carrier : int, default 0
        For CARRIED: frame with which the sections turn.
    start, end : float, default 0.3
        For CARRIED: the turn grows from `start` to `end` along the spine.
    lift : float, default 0.0
        Shift of the sections along z, m.
    fins : tuple[Fins, ...], default ()
        Fins on the body.
    """

    spine: tuple[Point, ...] | str
    fine: tuple[float, ...]
    wide: tuple[float, ...]
    high: tuple[float, ...]
    zones: tuple[Zone, ...]
    stations: tuple[float, ...] = ()
    axes: str = UPRIGHT
    round: int = 16
    carrier: int = 0
    start: float = 0.3
    end: float = 0.7
    lift: float = 0.0
    fins: tuple[Fins, ...] = ()


@dataclass(frozen=True)
class Wing:
    """A thin membrane between a leading edge and chords from it, with an upper and an under side.

    The coordinates of its zones are the span (along) and the chord (across), both from 0 to 1.

    Parameters
    ----------
    skin : str
        Name of the skin.
    lead : tuple[int, ...]
        Points of the skin along the leading edge, from the root, at even stations from 0 to 1.
    chords : tuple[tuple[int, int], ...]
        Pairs of points, from the leading to the trailing edge, at `chord_stations`.
    chord_stations : tuple[float, ...]
        Station of each pair.
    span : tuple[float, ...]
        Stations of the rows of the membrane; beyond the first and last pair the chords are parallel to it.
    lengths : tuple[float, ...]
        Length of the chord in each row, m; shares of the chord if not `directed`.
    directed : bool
        Whether `chords` are directions only; otherwise their lengths count too.
    thickness : float
        Half of the membrane's thickness, m.
    zones : tuple[Zone, ...]
        Colours.
    columns : int, default 13
        Number of points along a chord.
    """

    skin: str
    lead: tuple[int, ...]
    chords: tuple[tuple[int, int], ...]
    chord_stations: tuple[float, ...]
    span: tuple[float, ...]
    lengths: tuple[float, ...]
    directed: bool
    thickness: float
    zones: tuple[Zone, ...]
    columns: int = 13


@dataclass(frozen=True)
class Membrane:
    """One smooth sheet from tip to tip, through two skins of chains and over a body between them.

    Zones are on the upper side. Their coordinates are the distance from the middle, m (along), and the chord from back
    to front, 0 to 1 (across).

    Parameters
    ----------
    skins : tuple[ChainSkin, ChainSkin]
        Skin of the left and of the right side.
    root : Vector
        Back of the left skin's root, m, body frame.
    chord : float
        Length of the root along x, m.
    outline : tuple[tuple[float, float, float], ...]
        Of the left half of the body: share of the root's y, and front and back in m from the root's middle.
    reach : float
        Distance from the root to the skins' first row, m.
    chain : float
        Distance from the first row to the last row, m.
    thickness : tuple[tuple[float, float], ...]
        Distance from the middle and half the thickness there, m.
    zones : tuple[Zone, ...]
        Colours of the upper side.
    belly : Zone
        Colour of the under side.
    columns : int, default 13
        Number of points along a chord.
    pieces : int, default 3
        Rows of the surface from one row of the skins to the next.
    """

    skins: tuple[ChainSkin, ChainSkin]
    root: Vector
    chord: float
    outline: tuple[tuple[float, float, float], ...]
    reach: float
    chain: float
    thickness: tuple[tuple[float, float], ...]
    zones: tuple[Zone, ...]
    belly: Zone
    columns: int = 13
    pieces: int = 3


Bending = Loft | Sweep | Wing | Membrane


@dataclass(frozen=True)
class Drawing:
    """The appearance of one robot.

    Parameters
    ----------
    frames : tuple[Frame or Coupler or Slider or Follower, ...], default ()
        Frames of moving parts, parents first.
    skins, solids : tuple, default ()
        Shapes of the model, for figures; without any, the plant's own `shape` is drawn.
    bending, parts : tuple, default ()
        Surfaces of films and pages; without any, they are made of skins and solids.
    scene : str, default ''
        One of SCENES; '' where the plant's fluid decides.
    ground : float or None, optional
        Height of the ground under a robot on the ground, m, body frame; None for other robots.
    outputs : Mapping[str, tuple[int, ...]], optional
        Outputs that the drawing needs, with their shapes; it does not fit a plant with other outputs.
    """

    frames: tuple[Frame | Coupler | Slider | Follower, ...] = ()
    skins: tuple[DrawnSkin, ...] = ()
    solids: tuple[Solid, ...] = ()
    bending: tuple[Bending, ...] = ()
    parts: tuple[Part, ...] = ()
    scene: str = ""
    ground: float | None = None
    outputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
