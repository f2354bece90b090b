"""Drawings of robots as data: frames of moving parts, what figures draw on them, and the surfaces of films and pages.

A robot's drawing is the function `draw` of `rtmms/robots/NAME_drawing.py`. It makes a `Drawing` from the robot's
parameters and loads neither arrays nor kernels. `rtmms.shapes` reads drawings: it moves their frames, generates their
meshes and bends their skins.

Lengths are in m, angles in rad, colours have red, green and blue from 0 to 255. Frames and points are in the body's
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

WATER, AIR, GROUND, SPACE = "water", "air", "ground", "space"
SCENES = (WATER, AIR, GROUND, SPACE)

JOINTS = "joint_position"
"""Output whose numbers turn frames."""

ROUND = 32
"""Points around a mesh that is round."""


# Frames of moving parts. A drawing lists them parent first; one without a name serves others and is not shown.


class Turn(NamedTuple):
    """A turn about x (0), y (1) or z (2) of the frame, by `weight` times a joint's angle."""

    axis: int
    joint: int
    weight: float = 1.0


@dataclass(frozen=True)
class Frame:
    """A frame on another one, which joints turn.

    parent                 0 is the body, k the k-th frame of the drawing
    position, quaternion   in the parent's frame, with all joints at 0
    turns                  one after the other
    slide                  the joint that moves it along its z; -1 for none
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

    Its origin is the back crank's tip and its x points to the front one's. The back crank turns about `root`; the front
    one slides along x so that the bar keeps its length.

    output         has the cranks' angles from y towards z, the front one's at `first`, the back one's after it
    front, back    lengths of the cranks;  length  of the bar
    mean_roll      whether the bar rolls by the mean of both angles, or not at all
    mirrored       whether the whole is mirrored in y
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
    """An upright frame at the x of a point of another frame, at y and z of its own."""

    name: str
    parent: int
    point: Vector
    y: float
    z: float


@dataclass(frozen=True)
class Follower:
    """An upright frame at a point of an output of shape (n, 3).  row  of the output, negative from its end"""

    name: str
    output: str
    row: int


# Skins and solids: the model's own points and simple bodies, for figures, Foxglove, and the view of the model.


@dataclass(frozen=True)
class Skin:
    """A surface that keeps its triangles while its points move.

    triangles   three indices of points each, one after the other, seen from both sides
    lines       strips of points, by their indices
    """

    name: str
    triangles: tuple[int, ...]
    lines: tuple[tuple[int, ...], ...]


class Point(NamedTuple):
    """A point in a frame of the drawing: 0 is the body, k the k-th frame."""

    frame: int
    place: Vector


@dataclass(frozen=True)
class PointSkin:
    """A skin whose points are fixed in frames."""

    skin: Skin
    points: tuple[Point, ...]


@dataclass(frozen=True)
class OutputSkin:
    """A skin whose points are an output of shape (n, 3)."""

    skin: Skin
    output: str


@dataclass(frozen=True)
class ChainSkin:
    """A sheet of parallel chains of links, which bend in the planes x = constant of a frame.

    stations, lengths   of each chain: its x, and the length of each of its links
    links               of each chain
    first               joint of the first link of the first chain; chains count fastest
    mirrored            whether the links point along -y
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
    """Elliptic rings on the points of an output (n, 3), which go from nose to tail, closed at both ends.

    The rings stand upright, square to the line, whatever the roll of the sections.
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
    """A solid fixed to the body or to a moving part. It is drawn; the model need not have it.

    centre, size, quaternion   m; its full axes along its own x, y, z (a cylinder's axis is z); its attitude
    kind                       one of KINDS; a rotor is a cylinder whose blades are drawn
    frame                      name of the frame that it moves with; '' for the body
    vertices, triangles        of a mesh: points, m, and three indices each, in the solid's own frame; size is theirs
    colour                     red, green, blue, 0 to 255; () for the viewer's choice
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
    """Return a skin of rows times columns points, row by row, with a line along each column and along the last row."""
    triangles: list[int] = []
    for i in range(rows - 1):
        for j in range(columns - 1):
            a, b = i * columns + j, (i + 1) * columns + j
            triangles += (a, b, a + 1, a + 1, b, b + 1)
    along = [tuple(i * columns + j for i in range(rows)) for j in range(columns)]
    edge = tuple((rows - 1) * columns + j for j in range(columns))
    return Skin(name, tuple(triangles), (*along, edge))


def rings(name: str, count: int, round_: int) -> Skin:
    """Return a skin of rings, each of round_ + 1 points that end where they begin, with a line along the back.

    Rings begin on one side and go over the back first.
    """
    back = tuple(i * (round_ + 1) + round_ // 4 for i in range(count))
    return Skin(name, sheet(name, count, round_ + 1).triangles, (back,))


def disc(name: str, frame: int, rim: Sequence[Vector], middle: Vector) -> PointSkin:
    """Return a face within a rim, and the line from its middle to the rim's first point."""
    n = len(rim)
    fan = tuple(index for k in range(n) for index in (n, k, (k + 1) % n))
    points = tuple(Point(frame, place) for place in (*rim, middle))
    return PointSkin(Skin(name, fan, ((*range(n), 0), (n, 0))), points)


def plane(name: str, frame: int, x: tuple[float, float], y: tuple[float, float]) -> PointSkin:
    """Return a rectangle in a frame's plane z = 0, between two x and two y."""
    corners = tuple(Point(frame, (x[i], y[j], 0.0)) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    return PointSkin(Skin(name, (0, 1, 2, 0, 2, 3), ((0, 1, 2, 3, 0),)), corners)


# Meshes by their generators (rtmms.shapes.surface has one of each name), moved and merged.


class Placing(NamedTuple):
    """A mesh is scaled along its axes, then turned, then shifted."""

    position: Sequence[float]
    quaternion: Sequence[float]
    scale: Sequence[float]


@dataclass(frozen=True)
class Mesh:
    """What a generator makes of its arguments.

    kind        the generator's name; 'merged' makes one mesh of several
    arguments   the generator's, or the meshes
    places      where it is then placed, one after the other; a number lays its z along x (0), y (1) or z (2)
    """

    kind: str
    arguments: tuple[Any, ...]
    places: tuple[Placing | int, ...] = ()


def merged(*meshes: Mesh) -> Mesh:
    """Return one mesh of several."""
    return Mesh("merged", meshes)


def moved(
    mesh: Mesh, position: Sequence[float] = HOME[0], quaternion: Sequence[float] = HOME[1],
    scale: Sequence[float] = (1.0, 1.0, 1.0),
) -> Mesh:  # fmt: skip
    """Return a mesh that is scaled along its axes, then turned, then shifted."""
    return Mesh(mesh.kind, mesh.arguments, (*mesh.places, Placing(position, quaternion, scale)))


def along(axis: int, mesh: Mesh) -> Mesh:
    """Return a mesh about z laid along x (0), y (1) or z (2)."""
    return Mesh(mesh.kind, mesh.arguments, (*mesh.places, axis))


def ellipsoid(x: float, y: float, z: float, fine: int = ROUND) -> Mesh:
    """Return an ellipsoid of full axes."""
    return Mesh("ellipsoid", (x, y, z, fine))


def sphere(radius: float) -> Mesh:
    """Return a sphere."""
    return Mesh("sphere", (radius,))


def cylinder(radius: float, length: float, round_: int = ROUND) -> Mesh:
    """Return a cylinder along z about the origin, with broken edges."""
    return Mesh("cylinder", (radius, length, round_))


def block(x: float, y: float, z: float, bevel: float = 0.12) -> Mesh:
    """Return a box of full sides with broken edges.  bevel  share of its shortest side"""
    return Mesh("block", (x, y, z, bevel))


def rounded(x: float, y: float, z: float, power: float = 5.0) -> Mesh:
    """Return a box of full sides that is round everywhere, the less the higher the power."""
    return Mesh("rounded", (x, y, z, power))


def tube(path: Sequence[Sequence[float]], radius: float | Sequence[float], round_: int = 16, flat: float = 1.0) -> Mesh:
    """Return a sweep along a line of points, with round ends.

    radius   one, or one a point;  flat  height over width
    """
    return Mesh("tube", (path, radius, round_, flat))


def revolved(profile: Sequence[tuple[float, float]], edges: Sequence[int] = (), round_: int = ROUND) -> Mesh:
    """Return a body about z of radii and heights, from below upwards on the outside.

    edges   points of the profile that are sharp
    """
    return Mesh("revolved", (profile, edges, round_))


def plate(outline: Sequence[tuple[float, float]], thickness: float) -> Mesh:
    """Return a flat plate about z = 0 of a convex or star-like outline, counter-clockwise."""
    return Mesh("plate", (outline, thickness))


def rounded_plate(length: float, width: float, thickness: float, waist: float = 1.0) -> Mesh:
    """Return a plate with round ends, along x, narrower by `waist` in its middle."""
    return Mesh("rounded_plate", (length, width, thickness, waist))


def tyre(radius: float, width: float) -> Mesh:
    """Return the tyre of a wheel about y."""
    return Mesh("tyre", (radius, width))


def hub(radius: float, width: float) -> Mesh:
    """Return the hub of a wheel about y; radius and width are the wheel's."""
    return Mesh("hub", (radius, width))


def propeller(radius: float, blades: int = 2, thick: float = 0.05, pitch: float = 0.3) -> Mesh:
    """Return twisted blades about z with a hub."""
    return Mesh("propeller", (radius, blades, thick, pitch))


def ellipse(a: float, b: float, count: int, middle: float = 0.0) -> list[tuple[float, float]]:
    """Return points of an ellipse of half-axes a along x and b along y, about x = middle, counter-clockwise."""
    angles = [2.0 * pi * k / count for k in range(count)]
    return [(middle + a * cos(angle), b * sin(angle)) for angle in angles]


def steps(start: float, end: float, count: int) -> tuple[float, ...]:
    """Return even numbers from start to end."""
    return tuple(start + (end - start) * k / (count - 1) for k in range(count))


def interpolated(at: Sequence[float], places: Sequence[float], values: Sequence[float]) -> tuple[float, ...]:
    """Return values at places, linear between those that are known, as at the ends beyond them."""
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

    frame     its name, '' for the body
    opacity   0 to 1;  gloss  how much it shines, 0 to 1
    at_rest   whether the mesh is given in the body's frame with all joints at 0, not in its frame
    """

    name: str
    mesh: Mesh
    colour: Colour
    frame: str = ""
    opacity: float = 1.0
    gloss: float = 0.25
    at_rest: bool = False


DARK, METAL, RUBBER = (28, 30, 34), (168, 174, 182), (40, 42, 46)
"""Colours of robots on wheels."""


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
    frame : str
        Frame that has the wheels; "" for the body.
    """
    tyres, hubs = ([moved(mesh, place) for place in places] for mesh in (tyre(radius, width), hub(radius, width)))
    return [
        Part(f"{name}_tyres", merged(*tyres), RUBBER, frame, gloss=0.1),
        Part(f"{name}_hubs", merged(*hubs), METAL, frame, gloss=0.6),
    ]


class Box(NamedTuple):
    """Ranges of two coordinates of a surface."""

    along: tuple[float, float] = (-inf, inf)
    across: tuple[float, float] = (-inf, inf)


class Stripes(NamedTuple):
    """`number` stripes a unit along the surface, each of half a width, in shares of their distance."""

    number: float
    half_width: float


@dataclass(frozen=True)
class Zone:
    """The faces of a bending surface that have one colour: of those that no zone before has, the ones in a box."""

    name: str
    colour: Colour
    boxes: tuple[Box, ...] = (Box(),)
    stripes: Stripes | None = None
    gloss: float = 0.25


@dataclass(frozen=True)
class Ridge:
    """A thin fin along the back or the belly of a body.

    start, end   shares of the body's length
    height       over the body: in shares of its largest half height there, at even shares from start to end; or one
                 number, m, the largest of half a sine
    above        on the back, else under the belly
    """

    start: float
    end: float
    height: tuple[float, ...] | float
    above: bool = True


@dataclass(frozen=True)
class Fins:
    """Ridges of one colour."""

    name: str
    colour: Colour
    ridges: tuple[Ridge, ...]


@dataclass(frozen=True)
class Bands:
    """A band round a lofted body at each ring of its skin but the first and the last `skipped`."""

    name: str
    colour: Colour
    skipped: int = 3
    gloss: float = 0.5


@dataclass(frozen=True)
class Loft:
    """A smooth body through the rings of a skin, closed at both ends.

    Zones have the share of the length along, and the sine of the angle from the side over the back across.

    skin     its name: rings of `round` + 1 points (see `rings`)
    pieces   rings of the surface from one of the skin's to the next
    """

    skin: str
    zones: tuple[Zone, ...]
    round: int = 12
    pieces: int = 3
    bands: Bands | None = None
    fins: tuple[Fins, ...] = ()


UPRIGHT, LEVEL, CARRIED = "upright", "level", "carried"
"""How the sections of a sweep stand: square to the spine, up as near z as can be; across the horizontal normal of the
spine, up along z; or square to it and turned with a frame."""


@dataclass(frozen=True)
class Sweep:
    """A smooth body of elliptic sections along a spine.

    Zones have `fine` along, and the sine (CARRIED: the cosine) of the angle in the section across.

    spine      points in frames, or the name of a tube (TubeSkin), whose middles they are
    stations   coordinate of each point of the spine; () for even ones from 0 to 1
    fine       coordinates of the sections, the first and the last at the ends
    wide, high half-axes of each section
    axes       one of UPRIGHT, LEVEL and CARRIED
    carrier    CARRIED: frame with which the sections turn, from `start` to `end` along the spine
    lift       the sections stand higher by it, along z
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
    """A thin membrane between a leading edge and chords from it, upper and under side.

    Zones have the span along and the chord across, both from 0 to 1.

    skin        its name
    lead        points of the skin along the leading edge, from the root, at even stations from 0 to 1
    chords      pairs of points, from the leading to the trailing edge, at `chord_stations`
    span        stations of the rows of the membrane; chords follow the first and last pair beyond them
    lengths     of the chord in each row, m; in shares of the chord where `chords` have their length
    directed    whether `chords` are directions alone
    thickness   half of it, m
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

    Zones are on the upper side: they have the distance from the middle, m, along and the chord from back to front, 0 to
    1, across.

    skins       of the left and the right side
    root        back of the left one's root;  chord  length of the root, along x
    outline     of the left half of the body: shares of the root's y, front and back in m from the root's middle
    reach       from the root to the skins' first row;  chain  from there to the last row
    thickness   half of it, m, at distances from the middle, m
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
    """How one robot looks.

    frames    of moving parts, parents first
    skins, solids   of the model, for figures; without any of them those that the plant itself exposes (its `shape`)
    bending, parts  surfaces of films and pages; without any of them they are made of skins and solids
    scene     one of SCENES, where it belongs; '' where the plant's fluid decides
    ground    m, body frame: the height of the ground under a robot that stands on it; None of others
    outputs   that it is drawn from, with their shapes: a plant that has others is another robot
    """

    frames: tuple[Frame | Coupler | Slider | Follower, ...] = ()
    skins: tuple[DrawnSkin, ...] = ()
    solids: tuple[Solid, ...] = ()
    bending: tuple[Bending, ...] = ()
    parts: tuple[Part, ...] = ()
    scene: str = ""
    ground: float | None = None
    outputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
