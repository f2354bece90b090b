"""Meshes of files that a URDF names: an explicit list of kinds, each looked through before a library loads it.

`rtmms.model.urdf` uses it. A mesh is drawn only: one that is refused leaves its link to be drawn by its inertia.
"""

from __future__ import annotations

import io
import struct
from array import array
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rtmms.bounded_xml import XmlLimits, check_xml
from rtmms.errors import ModelError
from rtmms.input_file import read_input
from rtmms.model.drawing import Indices
from rtmms.spatial import Array

KINDS = (".stl", ".obj", ".ply", ".off", ".dae")
"""Endings of the files that are read. Archives, and formats that name further files, are not among them."""
MAX_BYTES = 32 << 20
MAX_POINTS = 500_000
"""Vertices, and triangles, of one mesh."""
MAX_WORDS = {".stl": 4_000_000, ".ply": 1_000_000, ".off": 2_000_000, ".dae": 1_000_000}
"""Numbers and names in a file of text; the libraries make an object of each."""
MAX_PARTS = 2000
"""Solids of an STL file, primitives of a COLLADA file."""
_MAX_HEADER = 16384
_PRIMITIVES = ("triangles", "polylist", "polygons", "lines", "linestrips", "tristrips", "trifans")


def read_mesh(path: Path) -> tuple[Array, Indices]:
    """Read the triangles of a mesh.

    Parameters
    ----------
    path
        A file with an ending of `KINDS`. No other file that it names is read.

    Returns
    -------
    tuple
        Vertices (n, 3) in the units of the file, and triangles (k, 3), numbers of vertices.

    Raises
    ------
    ModelError
        A file of another kind, one that is too large, or one that cannot be read.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise ModelError(f"expected a file of {', '.join(KINDS)}, got '{path.name[-60:]}'")
    data = read_input(path, max_bytes=MAX_BYTES, expected=f"a mesh of at most {MAX_BYTES >> 20} MiB")
    if kind == ".obj":
        return _read_obj(data)
    {".stl": _check_stl, ".ply": _check_ply, ".off": _check_off, ".dae": _check_dae}[kind](data)
    found: Any = import_module("trimesh").load(io.BytesIO(data), file_type=kind[1:], force="mesh")
    vertices, faces = np.asarray(found.vertices, dtype=float), np.asarray(found.faces, dtype=np.int64)
    _refuse_more("vertices", len(vertices), 3 * MAX_POINTS)
    return vertices, faces


def _refuse_more(what: str, count: int, most: int) -> None:
    if count > most:
        raise ModelError(f"expected at most {most} {what}, got {count}")


def _words(data: bytes) -> int:
    """Return the number of words, without making them."""
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
        raise ModelError("expected an STL file: the number of its triangles does not fit its size")
    lower = data.lower()
    _refuse_more("vertices", lower.count(b"vertex"), 3 * MAX_POINTS)
    _refuse_more("solids", lower.count(b"solid") // 2, MAX_PARTS)
    _refuse_more("words", _words(data), MAX_WORDS[".stl"])


def _check_ply(data: bytes) -> None:
    head, mark, _ = data[:_MAX_HEADER].partition(b"end_header")
    if not mark or not head.startswith(b"ply"):
        raise ModelError("expected a PLY file with a header")
    for line in head.decode("latin-1").splitlines():
        words = line.split()
        if words[:1] == ["element"]:
            if len(words) != 3 or not words[2].isdecimal() or len(words[2]) > 12:
                raise ModelError(f"expected 'element NAME COUNT', got {line!r:.80}")
            _refuse_more(f"elements {words[1]:.20}", int(words[2]), MAX_POINTS)
    if b"ascii" in head:
        _refuse_more("words", _words(data), MAX_WORDS[".ply"])


def _check_off(data: bytes) -> None:
    _refuse_more("words", _words(data), MAX_WORDS[".off"])


def _check_dae(data: bytes) -> None:
    most = MAX_WORDS[".dae"]
    copied = {"instance_geometry": "url", "instance_controller": "url"}
    counts = check_xml(data, "COLLADA", XmlLimits(MAX_BYTES, max_words=most), copied)
    _refuse_more("primitives", sum(counts.elements.get(name, 0) for name in _PRIMITIVES), MAX_PARTS)
    # nodes may stand in nodes of a library, and each of these in others again: so many copies of one at most
    copies = max(counts.values.values(), default=1) * 3.0 ** min(60.0, counts.elements.get("instance_node", 0) / 3.0)
    if max(counts.words, 1000) * copies > 3 * most:
        raise ModelError("expected a mesh without so many copies of its parts")


def _read_obj(data: bytes) -> tuple[Array, Indices]:
    """Read vertices and faces alone: materials, textures and groups are in other files, or of no use here."""
    points, triangles = array("d"), array("q")
    for line in io.BytesIO(data):
        if line.startswith((b"v ", b"v\t")):
            x, y, z = (float(one) for one in line[:500].split()[1:4])
            points.extend((x, y, z))
            _refuse_more("vertices", len(points) // 3, MAX_POINTS)
        elif line.startswith((b"f ", b"f\t")):
            words = line.split(maxsplit=1000)[1:]
            _refuse_more("corners of a face", len(words), 999)
            corners = [int(word.partition(b"/")[0]) for word in words]
            corners = [one - 1 if one > 0 else len(points) // 3 + one for one in corners]
            for pair in pairwise(corners[1:]):
                triangles.extend((corners[0], *pair))
            _refuse_more("triangles", len(triangles) // 3, MAX_POINTS)
    vertices = np.array(points, dtype=float).reshape(-1, 3)
    faces = np.array(triangles, dtype=np.int64).reshape(-1, 3)
    if len(faces) and not (faces.min() >= 0 and faces.max() < len(vertices)):
        raise ModelError("expected faces of vertices that the file has")
    return vertices, faces
