"""Read mechanisms from URDF files, and the meshes that they name."""

from __future__ import annotations

import difflib
import io
import math
import struct
import warnings
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from rtmms.base.errors import ModelError, RtmmsWarning
from rtmms.base.files import XmlLimits, check_xml, read_input
from rtmms.base.install import install_command
from rtmms.base.spatial import Array, skew
from rtmms.model.description import MAX_DRAWN_POINTS, Body, Drawing, Indices, Joint, Mechanism, mesh
from rtmms.model.solids import Placement

# Meshes of files that a URDF names: an explicit list of kinds, each checked before a library loads it. A mesh is only
# drawn: where it is refused, viewers draw the link by its inertia.


KINDS = (".stl", ".obj", ".ply", ".off", ".dae")
"""Endings of the mesh files that are read; archives, and formats that name further files, are excluded."""
MAX_MESH_BYTES = 32 << 20
MAX_POINTS = 500_000
"""Largest number of vertices, and of triangles, of one mesh."""
MAX_WORDS = {".stl": 4_000_000, ".ply": 1_000_000, ".off": 2_000_000, ".dae": 1_000_000}
"""Largest number of numbers and names in a text file, because the libraries make an object of each."""
MAX_PARTS = 2000
"""Largest number of solids of an STL file, and of primitives of a COLLADA file."""
_MAX_HEADER = 16384
_PRIMITIVES = ("triangles", "polylist", "polygons", "lines", "linestrips", "tristrips", "trifans")


def read_mesh(path: Path) -> tuple[Array, Indices]:
    """Read the triangles of a mesh.

    Parameters
    ----------
    path : Path
        File with an ending of `KINDS`. No other file that it names is read.

    Returns
    -------
    (array, array)
        Vertices (n, 3) in the units of the file, and triangles (k, 3), indices of vertices.

    Raises
    ------
    ModelError
        The file is of another kind, too large, or cannot be read.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ModelError(f"expected a file of {', '.join(KINDS)}, got '{path.name[-60:]}'")
    data = read_input(path, max_bytes=MAX_MESH_BYTES, expected=f"a mesh of at most {MAX_MESH_BYTES >> 20} MiB")
    if kind == ".obj":
        return _read_obj(data)
    {".stl": _check_stl, ".ply": _check_ply, ".off": _check_off, ".dae": _check_dae}[kind](data)
    result: Any = import_module("trimesh").load(io.BytesIO(data), file_type=kind[1:], force="mesh")
    vertices, faces = np.asarray(result.vertices, dtype=float), np.asarray(result.faces, dtype=np.int64)
    _refuse_more("vertices", len(vertices), 3 * MAX_POINTS)
    return vertices, faces


def _refuse_more(what: str, count: int, maximum: int) -> None:
    if count > maximum:
        raise ModelError(f"expected at most {maximum} {what}, got {count}")


def _count_words(data: bytes) -> int:
    """Return the number of words, without a list of them."""
    if not data:
        return 0
    blank = np.frombuffer(data, dtype=np.uint8) <= 32
    return int(np.count_nonzero(blank[:-1] & ~blank[1:])) + int(not blank[0])


def _check_stl(data: bytes) -> None:
    if len(data) >= 84:
        (count,) = struct.unpack_from("<I", data, 80)
        if len(data) == 84 + 50 * count:
            return _refuse_more("triangles", count, MAX_POINTS)
    if not data.lstrip()[:5].lower() == b"solid":
        raise ModelError("expected an STL file, got one whose size does not fit its number of triangles")
    lower = data.lower()
    _refuse_more("vertices", lower.count(b"vertex"), 3 * MAX_POINTS)
    _refuse_more("solids", lower.count(b"solid") // 2, MAX_PARTS)
    _refuse_more("words", _count_words(data), MAX_WORDS[".stl"])


def _check_ply(data: bytes) -> None:
    head, mark, _ = data[:_MAX_HEADER].partition(b"end_header")
    if not mark or not head.startswith(b"ply"):
        raise ModelError("expected a PLY file with a header")
    for line in head.decode("latin-1").splitlines():
        parts = line.split()
        if parts[:1] == ["element"]:
            if len(parts) != 3 or not parts[2].isdecimal() or len(parts[2]) > 12:
                raise ModelError(f"expected 'element NAME COUNT', got {line!r:.80}")
            _refuse_more(f"elements {parts[1]:.20}", int(parts[2]), MAX_POINTS)
    if b"ascii" in head:
        _refuse_more("words", _count_words(data), MAX_WORDS[".ply"])


def _check_off(data: bytes) -> None:
    _refuse_more("words", _count_words(data), MAX_WORDS[".off"])


def _check_dae(data: bytes) -> None:
    maximum = MAX_WORDS[".dae"]
    copied = {"instance_geometry": "url", "instance_controller": "url"}
    counts = check_xml(data, "COLLADA", XmlLimits(MAX_MESH_BYTES, max_words=maximum), copied)
    _refuse_more("primitives", sum(counts.elements.get(name, 0) for name in _PRIMITIVES), MAX_PARTS)
    # a library's nodes may contain nodes, and these others again: this bounds the copies of one
    copies = max(counts.values.values(), default=1) * 3.0 ** min(60.0, counts.elements.get("instance_node", 0) / 3.0)
    if max(counts.word_count, 1000) * copies > 3 * maximum:
        raise ModelError("expected fewer nested copies of the parts of the mesh; export it without instances")


def _read_obj(data: bytes) -> tuple[Array, Indices]:
    """Return vertices and faces; materials, textures and groups are in other files, or unused here."""
    points, triangles = array("d"), array("q")
    for line in io.BytesIO(data):
        if line.startswith((b"v ", b"v\t")):
            x, y, z = (float(part) for part in line[:500].split()[1:4])
            points.extend((x, y, z))
            _refuse_more("vertices", len(points) // 3, MAX_POINTS)
        elif line.startswith((b"f ", b"f\t")):
            corner_texts = line.split(maxsplit=1000)[1:]
            _refuse_more("corners of a face", len(corner_texts), 999)
            corners = [int(word.partition(b"/")[0]) for word in corner_texts]
            corners = [corner - 1 if corner > 0 else len(points) // 3 + corner for corner in corners]
            for pair in pairwise(corners[1:]):
                triangles.extend((corners[0], *pair))
            _refuse_more("triangles", len(triangles) // 3, MAX_POINTS)
    vertices = np.array(points, dtype=float).reshape(-1, 3)
    faces = np.array(triangles, dtype=np.int64).reshape(-1, 3)
    if len(faces) and not (faces.min() >= 0 and faces.max() < len(vertices)):
        raise ModelError("expected faces with indices of the vertices of the file, got an index beyond them")
    return vertices, faces


# Mechanisms from URDF files, read by yourdfpy (pip install 'rtmms[urdf]').


TYPES = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed"}


@dataclass(frozen=True)
class Limit:
    """Limits of a joint; None where the file has none.

    Parameters
    ----------
    lower, upper : float, optional
        Range, rad or m.
    effort : float, optional
        N m or N.
    velocity : float, optional
        rad/s or m/s.
    """

    lower: float | None = None
    upper: float | None = None
    effort: float | None = None
    velocity: float | None = None


@dataclass(frozen=True, eq=False)
class Shape:
    """A link's collision geometry, or its visual geometry where it has no other.

    Parameters
    ----------
    kind : str
        'box', 'cylinder', 'sphere' or 'mesh'.
    sizes : tuple[float, ...]
        m: x, y, z of a box; radius and length (along z) of a cylinder; radius of a sphere; () of a mesh.
    placement : Placement
        Frame of the shape in the link's frame.
    """

    kind: str
    sizes: tuple[float, ...]
    placement: Placement


@dataclass(frozen=True, eq=False)
class Urdf:
    """Contents of a URDF file.

    Parameters
    ----------
    mechanism : Mechanism
        Links, joints and inertias.
    limits : dict[str, Limit]
        Limits by joint.
    interfaces : tuple[tuple[str, str], ...]
        (joint, 'effort', 'position' or 'velocity') of its transmissions, in order.
    shapes : dict[str, tuple[Shape, ...]]
        Geometry by link.
    devices : tuple[tuple[str, dict[str, str]], ...]
        (tag, attributes) of the children of an element <rtmms>: rotors and thrusters.
    """

    mechanism: Mechanism
    limits: dict[str, Limit]
    interfaces: tuple[tuple[str, str], ...]
    shapes: dict[str, tuple[Shape, ...]]
    devices: tuple[tuple[str, dict[str, str]], ...]


def from_urdf(
    path: str | Path, *, base: str = "free", drive: str = "torque", gravity: Any = (0, 0, -9.81)
) -> Mechanism:
    """Return the links, joints and inertias of a URDF file as a Mechanism.

    Joint damping and friction become viscous and Coulomb friction. For limits, transmissions and shapes see
    `read_urdf`.

    Parameters
    ----------
    path : str or Path
        URDF file.
    base : str, default 'free'
        'free', 'prescribed' or 'fixed', for the root link.
    drive : str, default 'torque'
        'torque' or 'motion', for every joint.
    gravity : (3,) array_like, default (0, 0, -9.81)
        m/s2, world.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    ModelError
        The file or the library is absent, the file is no URDF, or a joint is floating, planar or mimics another.
    """
    return read_urdf(path, base=base, drive=drive, gravity=gravity).mechanism


def read_urdf(path: str | Path, *, base: str = "free", drive: str = "torque", gravity: Any = (0, 0, -9.81)) -> Urdf:
    """Return the contents of a URDF file, with its limits, transmissions and shapes.

    Parameters
    ----------
    path : str or Path
        URDF file.
    base : str, default 'free'
        'free', 'prescribed' or 'fixed', for the root link.
    drive : str, default 'torque'
        'torque' or 'motion', for every joint.
    gravity : (3,) array_like, default (0, 0, -9.81)
        m/s2, world.

    Returns
    -------
    Urdf
        The contents.

    Raises
    ------
    ModelError
        As `from_urdf`.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"urdf '{path}': no such file")
    root, text = _read_xml(path)
    try:
        yourdfpy = import_module("yourdfpy")
    except ImportError:
        raise ModelError(f"reading URDF needs yourdfpy: {install_command('urdf')}") from None
    scenes = {"build_scene_graph": False, "load_meshes": False, "build_collision_scene_graph": False}
    try:
        robot = yourdfpy.URDF.load(io.BytesIO(text), load_collision_meshes=False, **scenes).robot
    except Exception as fault:  # whatever the library makes of what was not looked at
        raise ModelError(f"urdf '{path}': yourdfpy cannot read it: {type(fault).__name__}: {fault}") from None
    colours = {material.name: material.color for material in robot.materials if material.color is not None}
    looks = _drawings(robot.links, path, colours)
    bodies = [replace(_body(link, path), drawings=looks[link.name]) for link in robot.links]
    joints = [_joint(joint, drive, path) for joint in robot.joints]
    return Urdf(
        Mechanism(robot.name or path.stem, bodies, joints, base=base, gravity=gravity),
        {joint.name: _limit(joint, path) for joint in robot.joints}, _interfaces(root, {j.name for j in joints}, path),
        {link.name: tuple(_shapes(link)) for link in robot.links},
        tuple((str(child.tag), dict(child.attrib)) for extension in root.findall("rtmms") for child in extension),
    )  # fmt: skip


_NUMBERS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "mass": (("value", 1),), "origin": (("xyz", 3), ("rpy", 3)), "axis": (("xyz", 3),),
    "inertia": tuple((name, 1) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
    "limit": (("lower", 1), ("upper", 1), ("effort", 1), ("velocity", 1)),
    "dynamics": (("damping", 1), ("friction", 1)),
    "box": (("size", 3),), "cylinder": (("radius", 1), ("length", 1)), "sphere": (("radius", 1),),
}  # fmt: skip
"""Attributes with numbers, and how many, of each element of a link or a joint."""
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "mass": ("value",), "axis": ("xyz",), "inertia": ("ixx", "iyy", "izz"), "box": ("size",),
    "cylinder": ("radius", "length"), "sphere": ("radius",), "mesh": ("filename",),
}  # fmt: skip
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    **{element: tuple(name for name, _ in numbers) for element, numbers in _NUMBERS.items()},
    "link": ("name", "type"), "joint": ("name", "type"), "parent": ("link",), "child": ("link",),
    "mesh": ("filename", "scale"), "mimic": ("joint", "multiplier", "offset"), "inertial": (), "collision": ("name",),
    "visual": ("name",), "geometry": (),
}  # fmt: skip
"""Attributes of the elements that are read."""
_CHILDREN: Mapping[str, tuple[str, ...]] = {
    "robot": ("link", "joint", "material", "transmission", "ros2_control", "gazebo", "rtmms"),
    "link": ("inertial", "visual", "collision"), "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "calibration", "dynamics", "limit", "mimic", "safety_controller"),
    "visual": ("origin", "geometry", "material"), "collision": ("origin", "geometry", "verbose"),
    "geometry": ("box", "cylinder", "sphere", "mesh", "capsule"),
}  # fmt: skip
"""Elements that may be in these, by URDF's definition. Further ones belong to other tools."""
_NEAR = 0.6
"""Similarity from which on an unknown name is a misspelt one."""
_SEVERAL = ("visual", "collision", *_CHILDREN["robot"])
"""Elements that may occur more than once in one."""


MAX_URDF_BYTES = 16 << 20
MAX_LINKS = 2000
MAX_SHAPES = 10_000
"""Largest number of meshes, boxes, cylinders and spheres of a file."""


def _read_xml(path: Path) -> tuple[ElementTree.Element, bytes]:
    """Return the element <robot>, after checks of what every URDF must have, and the text.

    The library that reads the rest reports neither the fault nor its place. The ModelError here names the file and the
    place in it. The elements of the text are counted before a tree is made of it.
    """
    try:
        text = read_input(path, place="urdf", max_bytes=MAX_URDF_BYTES, expected="a URDF")
        counts = check_xml(text, f"urdf '{path}'", XmlLimits(MAX_URDF_BYTES)).elements
        for what, names, maximum in (
            ("links", ("link",), MAX_LINKS), ("shapes", ("mesh", "box", "cylinder", "sphere", "capsule"), MAX_SHAPES),
        ):  # fmt: skip
            count = sum(counts.get(name, 0) for name in names)
            if count > maximum:
                raise ModelError(f"urdf '{path}': expected at most {maximum} {what}, got {count}")
        root = ElementTree.fromstring(text)
    except OSError as fault:
        raise ModelError(f"urdf '{path}': {fault.strerror or fault}") from None
    except ModelError:
        raise
    except (ElementTree.ParseError, ValueError, LookupError) as fault:  # the last two: of encodings
        raise ModelError(f"urdf '{path}': cannot be read: expected XML: {fault}") from None
    if root.tag != "robot":
        raise ModelError(f"urdf '{path}': expected the element <robot>, got <{root.tag:.40}>")
    for child in root:
        if str(child.tag) not in _CHILDREN["robot"]:
            _refuse_misspelt(child, root, f"urdf '{path}'")
    for kind in ("link", "joint"):
        for k, child in enumerate(root.findall(kind)):
            if not child.get("name"):
                raise ModelError(f"urdf '{path}': <{kind}> number {k + 1}: expected a name, got none")
            place = f"urdf '{path}': {kind} '{child.get('name')}'"
            if kind == "joint":
                _check_joint(child, place)
            _check_element(child, place)
            for inner in child.iter():
                _check_numbers(inner, place)
    return root, text


def _check_joint(joint: ElementTree.Element, place: str) -> None:
    if not joint.get("type"):
        raise ModelError(f"{place}: expected a type ({', '.join(TYPES)}), got none")
    for end in ("parent", "child"):
        element = joint.find(end)
        if element is None or not element.get("link"):
            raise ModelError(f'{place}: expected <{end} link="...">, got none')


def _check_element(element: ElementTree.Element, place: str) -> None:
    """Refuse what a reader would pass over in an element of a link or a joint, and in those within it.

    These are misspelt names, absent attributes, and a second element where the first one would count. Elements and
    attributes that resemble none of URDF's own are extensions of other tools.
    """
    tag, known = element.tag, _ATTRIBUTES.get(element.tag, ())
    for name in element.attrib:
        if tag in _ATTRIBUTES and name not in known:
            near = difflib.get_close_matches(name, [item for item in known if item not in element.attrib], 1, _NEAR)
            if near:
                raise ModelError(f"{place}: <{tag}>: unknown attribute '{name:.40}'; did you mean '{near[0]}'?")
    for name in _REQUIRED.get(tag, ()):
        if name not in element.attrib:
            raise ModelError(f"{place}: <{tag}>: expected the attribute '{name}', got none")
    if tag not in _CHILDREN:
        return
    visited: set[str] = set()
    for inner in element:
        name = str(inner.tag)
        if name in _CHILDREN[tag]:
            if name in visited and name not in _SEVERAL:
                raise ModelError(f"{place}: <{tag}>: expected one <{name}>, got several")
            visited.add(name)
            _check_element(inner, place)
        else:
            _refuse_misspelt(inner, element, place)


def _refuse_misspelt(inner: ElementTree.Element, element: ElementTree.Element, place: str) -> None:
    name, tag = str(inner.tag), element.tag
    near = difflib.get_close_matches(name, _CHILDREN[tag], 1, _NEAR)
    if near and (near[0] in _SEVERAL or element.find(near[0]) is None):
        raise ModelError(f"{place}: <{tag}>: unknown element <{name:.40}>; did you mean <{near[0]}>?")


def _check_numbers(element: ElementTree.Element, place: str) -> None:
    for name, count in _NUMBERS.get(element.tag, ()):
        text = element.get(name)
        if text is None:
            continue
        try:
            right = len([float(word) for word in text.split()]) == count
        except ValueError:
            right = False
        if not right:
            wanted = "a number" if count == 1 else f"{count} numbers"
            raise ModelError(f"{place}: <{element.tag}>: {name}: expected {wanted}, got '{text:.40}'")


def _limit(joint: Any, path: Path) -> Limit:
    """Return the limits of a joint; a range without width, and an effort or velocity of 0, mean no limit.

    ModelError where limits are impossible, and where a revolute or prismatic joint has none.
    """
    limit, where = joint.limit, f"urdf '{path}': joint '{joint.name}'"
    if limit is None:
        if joint.type in ("revolute", "prismatic"):
            more = " (or type='continuous')" if joint.type == "revolute" else ""
            raise ModelError(f"{where}: type '{joint.type}' needs <limit lower upper effort velocity>{more}, got none")
        return Limit()
    numbers: dict[str, float | None] = {}
    for name in ("lower", "upper", "effort", "velocity"):
        value = getattr(limit, name)
        if value is not None and (math.isnan(value) or (name in ("effort", "velocity") and value < 0.0)):
            raise ModelError(
                f"{where}: limit {name} must be a number{' >= 0' if name[0] in 'ev' else ''}, got {value:g}"
            )
        numbers[name] = float(value) if value is not None and math.isfinite(value) else None
    effort, velocity = numbers["effort"] or None, numbers["velocity"] or None
    lower, upper = (0.0 if getattr(limit, name) is None else float(getattr(limit, name)) for name in ("lower", "upper"))
    if joint.type != "continuous" and lower > upper:
        raise ModelError(f"{where}: limit: expected lower <= upper, got {lower:g} and {upper:g}")
    if joint.type == "continuous" or lower == upper:
        return Limit(effort=effort, velocity=velocity)
    low, high = (value if math.isfinite(value) else None for value in (lower, upper))
    return Limit(low, high, effort, velocity)


def _interfaces(root: Any, joints: set[str], path: Path) -> tuple[tuple[str, str], ...]:
    """Return the command interface of each joint, from <transmission> (ROS 1) and <ros2_control>."""
    result: list[tuple[str, str]] = []
    # the interface of older files is in the transmission's actuator alone
    named = [
        (joint, word.text or "")
        for section in root.findall("transmission")
        for joint in section.findall("joint")
        for word in joint.findall("hardwareInterface") or section.findall("actuator/hardwareInterface")
    ]
    named += [
        (joint, word.get("name", ""))
        for section in root.findall("ros2_control")
        for joint in section.findall("joint")
        for word in joint.findall("command_interface")
    ]
    for joint, word in named:
        name, kind = joint.get("name", ""), word.rpartition("/")[2].lower().removesuffix("jointinterface")
        if name not in joints:
            raise ModelError(f"urdf '{path}': transmission: there is no joint '{name}'")
        if kind not in ("effort", "position", "velocity"):
            raise ModelError(
                f"urdf '{path}': transmission of joint '{name}': expected an effort or position interface, got '{word}'"
            )
        result.append((name, kind))
    return tuple(result)


def _shapes(link: Any) -> list[Shape]:
    shapes = []
    for collision in link.collisions or link.visuals:
        g, place = collision.geometry, _placement(collision.origin)
        if g.box is not None:
            shapes.append(Shape("box", tuple(float(v) for v in g.box.size), place))
        elif g.cylinder is not None:
            shapes.append(Shape("cylinder", (float(g.cylinder.radius), float(g.cylinder.length)), place))
        elif g.sphere is not None:
            shapes.append(Shape("sphere", (float(g.sphere.radius),), place))
        else:
            shapes.append(Shape("mesh", (), place))
    return shapes


def _drawings(links: Sequence[Any], path: Path, colours: Mapping[str, Any]) -> dict[str, tuple[Drawing, ...]]:
    """Return the visual geometry of each link, or its collision geometry, with the colours of the file's materials.

    A mesh whose file cannot be read is left out, with an RtmmsWarning.
    """
    shown = {link.name: list(link.visuals or link.collisions) for link in links}
    meshes = sum(item.geometry.mesh is not None for many in shown.values() for item in many)
    maximum = MAX_DRAWN_POINTS // max(meshes, 1)
    return {
        name: tuple(built for item in many if (built := _drawing(item, path, name, maximum, colours)) is not None)
        for name, many in shown.items()
    }


def _drawing(item: Any, path: Path, link: str, maximum: int, colours: Mapping[str, Any]) -> Drawing | None:
    g, place = item.geometry, _placement(item.origin)
    material = getattr(item, "material", None)  # its own colour, or that of the file's material of this name
    material_colour = getattr(material, "color", None) or colours.get(getattr(material, "name", None) or "")
    rgba = getattr(material_colour, "rgba", None)
    colour = () if rgba is None else tuple(round(255.0 * float(min(max(c, 0.0), 1.0))) for c in list(rgba)[:3])
    if g.box is not None:
        x, y, z = (float(v) for v in g.box.size)
        return Drawing("box", place, (x, y, z), colour=colour)
    if g.cylinder is not None:
        wide = 2.0 * float(g.cylinder.radius)
        return Drawing("cylinder", place, (wide, wide, float(g.cylinder.length)), colour=colour)
    if g.sphere is not None:
        wide = 2.0 * float(g.sphere.radius)
        return Drawing("ellipsoid", place, (wide, wide, wide), colour=colour)
    if g.mesh is None:
        return None
    drawn = _read_mesh(g.mesh, path, place, colour, maximum)
    if isinstance(drawn, str):
        warnings.warn(f"urdf '{path}': link '{link}': mesh '{g.mesh.filename}': {drawn}; the link is drawn from its "
                      "inertia instead",
                      RtmmsWarning, stacklevel=2)  # fmt: skip
        return None
    return drawn


def _read_mesh(
    element: Any, path: Path, place: Placement, colour: tuple[int, ...], maximum: int
) -> Drawing | str | None:
    """Return the drawing of a mesh file beside the URDF, also by package://; a text with the reason of a failure."""
    file = mesh_file(str(element.filename), path)
    if file is None:
        return "there is no such file"
    try:
        vertices, faces = read_mesh(file)
    except Exception as fault:  # whatever the library makes of a broken file
        return f"cannot be read ({fault!s:.80})"
    if not len(vertices) or not np.all(np.isfinite(vertices)):
        return "has no points that could be drawn"
    scale = np.ones(3) if element.scale is None else np.broadcast_to(np.asarray(element.scale, dtype=float), 3)
    return mesh(vertices * scale, faces[:, ::-1] if np.prod(scale) < 0.0 else faces, place, colour, maximum)


def mesh_file(name: str, path: Path) -> Path | None:
    """Return the file that a URDF names.

    Parameters
    ----------
    name : str
        Path relative to the URDF's folder, or package://NAME/REST for REST below that folder or one above it.
    path : Path
        URDF file.

    Returns
    -------
    Path or None
        None where there is no such file.
    """
    remaining = name.partition("://")[2] if "://" in name else name
    folders = [path.parent]
    if name.startswith("package://"):
        package, _, remaining = remaining.partition("/")
        folders = [above for up in (path.parent, *path.resolve().parents) for above in (up / package, up)]
    elif name.startswith("file://"):
        remaining = "/" + remaining.lstrip("/")
    return next((folder / remaining for folder in folders if (folder / remaining).is_file()), None)


def _placement(origin: Array | None) -> Placement:
    if origin is None:
        return Placement()
    matrix = np.asarray(origin, dtype=float)
    # angles are written with few digits, but the rotation made of them is a rotation
    return Placement(matrix[:3, :3], matrix[:3, 3])


def _body(link: Any, path: Path) -> Body:
    inertial = link.inertial
    if inertial is None:
        return Body(link.name)
    place = _placement(inertial.origin)
    mass = 0.0 if inertial.mass is None else float(inertial.mass)
    about_centre = np.zeros((3, 3)) if inertial.inertia is None else np.asarray(inertial.inertia, dtype=float)
    if about_centre.shape != (3, 3):
        raise ModelError(f"urdf '{path}': link '{link.name}': inertia must be 3 x 3, got {about_centre.shape}")
    turned = place.rotation @ about_centre @ place.rotation.T
    c = place.position
    return Body(link.name, mass, mass * c, turned - mass * skew(c) @ skew(c))


def _joint(joint: Any, drive: str, path: Path) -> Joint:
    where = f"urdf '{path}': joint '{joint.name}'"
    if joint.type not in TYPES:
        raise ModelError(
            f"{where}: type '{joint.type}' is not supported; use {', '.join(TYPES)} (a floating base: base='free')"
        )
    if joint.mimic is not None:
        raise ModelError(f"{where}: mimics '{joint.mimic.joint}': coupled joints are not supported; remove <mimic>")
    axis = np.array([1.0, 0.0, 0.0]) if joint.axis is None else np.asarray(joint.axis, dtype=float)
    dynamics = joint.dynamics
    damping = 0.0 if dynamics is None or dynamics.damping is None else float(dynamics.damping)
    friction = 0.0 if dynamics is None or dynamics.friction is None else float(dynamics.friction)
    kind = TYPES[joint.type]
    return Joint(
        joint.name, joint.parent, joint.child, kind, _placement(joint.origin), None if kind == "fixed" else axis,
        damping=damping, coulomb=friction, drive=drive,
    )  # fmt: skip
