"""Files of an MJCF model, checked before MuJoCo reads them.

An MJCF file names further files: includes, meshes, textures, height fields, skins, models. It is data, so each of them
must be in the folder of the model or below. MuJoCo allocates memory by numbers in the file; `LIMITS` bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from rtmms.base.errors import ModelError
from rtmms.base.files import XmlLimits, check_xml, open_input, read_input

MAX_XML_BYTES = 32 << 20
"""Largest size of one XML file, bytes."""
MAX_FILE_BYTES = 512 << 20
"""Largest size of one mesh, texture or height field, bytes."""
MAX_DOCUMENTS = 200
"""XML files of a model: included ones, and models within the model."""
XML_LIMITS = XmlLimits(max_bytes=MAX_XML_BYTES, max_parts=1_000_000, max_value_chars=MAX_XML_BYTES)
"""Limits of an XML file. A mesh may have its vertices in one attribute, so a value has no limit of its own."""

LIMITS = {
    ("composite", "count"): 10_000, ("flexcomp", "count"): 100_000,
    ("texture", "width"): 16_384, ("texture", "height"): 16_384, ("hfield", "nrow"): 16_384, ("hfield", "ncol"): 16_384,
    ("size", "nuserdata"): 1_000_000, ("size", "nuser_body"): 1000, ("size", "nuser_jnt"): 1000,
    ("size", "nuser_geom"): 1000, ("size", "nuser_site"): 1000, ("size", "nuser_cam"): 1000,
    ("size", "nuser_tendon"): 1000, ("size", "nuser_actuator"): 1000, ("size", "nuser_sensor"): 1000,
    ("size", "nkey"): 10_000, ("size", "njmax"): 1_000_000, ("size", "nconmax"): 1_000_000,
    ("numeric", "size"): 1_000_000, ("user", "dim"): 1_000_000,
}  # fmt: skip
"""Largest value of an attribute by which MuJoCo allocates; of several numbers, the largest product."""
MAX_COPIES = 10_000
"""Copies of one element by <replicate>."""
MAX_ARENA_BYTES = 8 << 30
"""Largest `<size memory="...">`, bytes."""
_SUFFIXES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60}
_FOLDERS = ("meshdir", "texturedir", "assetdir")


@dataclass
class _Document:
    """XML file of the model, and the folder in which MuJoCo looks for the files that it names."""

    path: Path
    base: Path
    root: ElementTree.Element
    folders: set[str] = field(default_factory=lambda: {""})


def check_model_files(path: Path) -> None:
    """Check an MJCF file and all files that it names.

    Parameters
    ----------
    path : Path
        The MJCF file.

    Raises
    ------
    ModelError
        A file is missing, is no MJCF, leads out of the folder of `path`, or would make MuJoCo allocate too much.
    """
    folder = path.resolve().parent
    pending = [(path, path.parent, "mujoco")]
    documents: list[_Document] = []
    while pending:
        file, base, tag = pending.pop()
        if len(documents) == MAX_DOCUMENTS:
            raise ModelError(f"{path}: expected at most {MAX_DOCUMENTS} XML files, got more")
        document = _Document(file, base, _read_root(file, tag))
        documents.append(document)
        for element in document.root.iter():
            if element.tag in ("include", "model") and element.get("file"):
                where = f"{file}: <{element.tag}> file"
                name = str(element.get("file"))
                inner = _inside(where, name, [base], folder)
                # an included file is a part of the model; an attached model is looked for from its own folder
                known = any(document.path == inner for document in documents) or any(
                    entry[0] == inner for entry in pending
                )
                if not known:
                    of_model = element.tag == "model"
                    pending.append((inner, inner.parent if of_model else base, "mujoco" if of_model else ""))
    folders = {name for document in documents for name in _asset_folders(document.root)} | {""}
    for item in documents:
        _check_document(item, folders, folder)


def _parsed(path: Path) -> ElementTree.Element:
    data = read_input(path, max_bytes=MAX_XML_BYTES, expected="an MJCF file")
    check_xml(data, str(path), XML_LIMITS)
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as fault:
        raise ModelError(f"{path}: cannot be read: expected XML: {fault}") from None


def _read_root(path: Path, tag: str) -> ElementTree.Element:
    root = _parsed(path)
    if tag and root.tag != tag:
        hint = {
            "robot": "; name a URDF file *.urdf and run it with --set engine=mujoco",
            "mujocoinclude": "; name the file that includes it",
        }.get(str(root.tag), "")
        raise ModelError(f"{path}: expected an MJCF file, whose root is <{tag}>, got <{root.tag!s:.60}>{hint}")
    return root


def _asset_folders(root: ElementTree.Element) -> Iterator[str]:
    for compiler in root.iter("compiler"):
        yield from (value for name in _FOLDERS if (value := compiler.get(name)))


def _refuse_replication(path: Path, element: ElementTree.Element, outer: float = 1.0) -> None:
    """Raise ModelError where nested <replicate> make too many copies."""
    if element.tag == "replicate":
        try:
            outer *= max(float(element.get("count", "1")), 1.0)
        except ValueError:
            return
        if not outer <= MAX_COPIES:
            raise ModelError(f"{path}: <replicate> count: expected at most {MAX_COPIES} copies in all, got {outer:g}")
    for inner in element:
        _refuse_replication(path, inner, outer)


def _check_document(document: _Document, folders: set[str], folder: Path) -> None:
    _refuse_replication(document.path, document.root)
    for element in document.root.iter():
        tag = str(element.tag)
        for name, text in element.attrib.items():
            where = f"{document.path}: <{tag}> {name}"
            if (tag, name) in LIMITS:
                _check_size(where, text, LIMITS[tag, name])
            elif (tag, name) == ("size", "memory"):
                _check_memory(where, text)
            elif tag == "compiler" and name in _FOLDERS:
                _refuse_outside(where, text, document.base, folder)
            elif name.startswith("file") and tag not in ("include", "model") and text:
                bases = [document.base / folder for folder in sorted(folders)]
                result = _inside(where, text, bases, folder)
                with open_input(result, place=where, expected="a file of the model", max_bytes=MAX_FILE_BYTES):
                    pass


def _inside(where: str, name: str, bases: list[Path], folder: Path) -> Path:
    """Return the file of that name; ModelError where there is none, or where it is outside the folder."""
    for base in bases:
        _refuse_outside(where, name, base, folder)
    plain = name.replace("\\", "/")
    candidates = [base / plain for base in bases] + [base / PurePosixPath(plain).name for base in bases]
    result = [candidate for candidate in candidates if candidate.is_file()]
    if not result:
        raise ModelError(f"{where}: '{name}': there is no such file in '{folder}'; copy it there or correct the name")
    for item in result:
        if not item.resolve().is_relative_to(folder):
            raise _outside(where, name, folder)
    return result[0]


def _refuse_outside(where: str, name: str, base: Path, folder: Path) -> None:
    """Raise ModelError for a name that leads out of the folder, whether the file exists or not."""
    plain = PurePosixPath(name.replace("\\", "/"))
    if "\0" in name or plain.is_absolute() or not (base / plain).resolve().is_relative_to(folder):
        raise _outside(where, name, folder)


def _outside(where: str, name: str, folder: Path) -> ModelError:
    return ModelError(
        f"{where}: '{name}' leads out of the folder of the model, '{folder}'; expected a file in that folder or below: "
        "copy the file there, or move the model to the folder that has all its files"
    )


def _check_size(where: str, text: str, largest: int) -> None:
    """Raise ModelError where the product of an attribute's numbers is too large; MuJoCo reports malformed numbers."""
    try:
        product = math.prod(max(float(part), 1.0) for part in text.split())
    except ValueError:
        return
    if not product <= largest:
        raise ModelError(f"{where}: expected at most {largest}, got '{text:.60}'")


def _check_memory(where: str, text: str) -> None:
    number, suffix = text.strip().lower(), ""
    if number[-1:] in _SUFFIXES and number[-1:]:
        number, suffix = number[:-1], number[-1:]
    try:
        count = float(number) * _SUFFIXES[suffix]
    except ValueError:
        return
    if count > MAX_ARENA_BYTES:
        raise ModelError(f"{where}: expected at most {MAX_ARENA_BYTES >> 30}G, got '{text:.60}'")
