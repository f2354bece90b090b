"""XML of anybody, looked through before a library builds its tree: no document type, and bounded numbers of its parts.

Readers of URDF, COLLADA and FMUs use it. A document type may define entities that grow to a hundred times the file, and
some libraries read files that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from rtmms.errors import ModelError

_PIECE = 1 << 16


@dataclass(frozen=True)
class XmlLimits:
    """What a document may have.

    Parameters
    ----------
    max_bytes
        Bytes of the document.
    max_parts
        Elements and attributes together.
    max_depth
        Elements within each other.
    max_value_chars
        Characters of one attribute.
    max_words
        Words in the text of all elements, each of which may be a number.
    """

    max_bytes: int = 16 << 20
    max_parts: int = 200_000
    max_depth: int = 100
    max_value_chars: int = 4096
    max_words: int = 1_000_000


@dataclass
class XmlCounts:
    """What a document has: words in its text, elements by their local names, and values of the attributes that were
    asked for."""

    words: int = 0
    elements: dict[str, int] = field(default_factory=dict)
    values: dict[tuple[str, str], int] = field(default_factory=dict)


def check_xml(
    data: bytes, place: str, limits: XmlLimits | None = None, counted: Mapping[str, str] | None = None
) -> XmlCounts:
    """Look through a document without building its tree.

    Parameters
    ----------
    data
        The document.
    place
        What names it, for errors.
    limits
        What it may have; by default those of `XmlLimits`.
    counted
        Elements, by their local names, each with the attribute whose values are counted.

    Returns
    -------
    XmlCounts
        Counts of its parts.

    Raises
    ------
    ModelError
        It is no XML, has a document type, or has more than the limits.
    """
    limits = limits or XmlLimits()
    if len(data) > limits.max_bytes:
        raise ModelError(f"{place}: expected at most {limits.max_bytes} bytes, got {len(data)}")
    counts, parts, depth, named = XmlCounts(), 0, 0, 0

    def refuse(*_: Any) -> None:
        raise ModelError(f"{place}: expected no document type (<!DOCTYPE>), got one")

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal parts, depth, named
        parts, depth = parts + 1 + len(attributes), depth + 1
        local = name.rpartition(":")[2][:100]
        if local in counts.elements or named < 1000:
            named += local not in counts.elements
            counts.elements[local] = counts.elements.get(local, 0) + 1
        if counted and local in counted:
            found = local, attributes.get(counted[local], "")
            counts.values[found] = counts.values.get(found, 0) + 1
        if parts > limits.max_parts:
            raise ModelError(f"{place}: expected at most {limits.max_parts} elements and attributes, got more")
        if depth > limits.max_depth:
            raise ModelError(f"{place}: expected at most {limits.max_depth} elements within each other, got more")
        for key, value in attributes.items():
            if len(value) > limits.max_value_chars or len(key) > limits.max_value_chars:
                raise ModelError(
                    f"{place}: <{name:.60}>: {key:.60}: expected at most {limits.max_value_chars} characters, "
                    f"got {len(value)}"
                )

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def text(said: str) -> None:
        counts.words += len(said.split()) or 0
        if counts.words > limits.max_words:
            raise ModelError(f"{place}: expected at most {limits.max_words} words of text, got more")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, text
    try:
        for at in range(0, len(data), _PIECE):
            parser.Parse(data[at : at + _PIECE], False)
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as fault:  # the last two: of encodings
        if isinstance(fault, ModelError):
            raise
        raise ModelError(f"{place}: cannot be read: expected XML: {fault}") from None
    return counts
