"""Files: limited inputs, checks of XML and archives before a library reads them, whole outputs, and private ones."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat

from rtmms.base.errors import ModelError, RtmmsError, safe_text

# Opening the files that a user, a log or a scenario names: regular files alone, never waited for, and of a limited
# size.
#
# Every module that reads such a file opens it here. A pipe would be waited for, a device may do anything when it is
# opened, and a file without a limit takes all memory.


MIB = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def open_input(
    path: str | Path, *, place: str = "", expected: str = "the name of a file", max_bytes: int | None = None
) -> BinaryIO:
    """Open a file to read its bytes.

    Parameters
    ----------
    path : str | Path
        The file; ~ is not expanded.
    place : str, default ''
        Source of the file's name, for the error: "--preset", "dbc:".
    expected : str, default 'the name of a file'
        Expected kind of file, for the error.
    max_bytes : int | None, optional
        Most bytes of the file.

    Returns
    -------
    BinaryIO
        The open file; its `name` is the path.

    Raises
    ------
    ModelError
        If there is no such file, if it is a folder, a pipe or a device, if it may not be read, or if it is larger than
        `max_bytes`.
    """
    where = _where(path, place)
    try:
        _refuse_other_than_file(os.stat(path), where, expected)  # opening a device may have effects
        descriptor = os.open(path, _FLAGS | getattr(os, "O_CLOEXEC", 0))
        try:
            result = os.fstat(descriptor)  # another file may have come to that name in between
            _refuse_other_than_file(result, where, expected)
            if max_bytes is not None and result.st_size > max_bytes:
                raise ModelError(f"{where}: expected {expected} of at most {_size(max_bytes)}, got a larger file")
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as fault:
        raise unreadable(path, fault, place=place) from None
    except ValueError as fault:
        if isinstance(fault, ModelError):
            raise
        raise ModelError(f"{where}: expected {expected}, got text that is not a valid file name") from None
    return open(descriptor, "rb")


def read_input(path: str | Path, *, max_bytes: int, place: str = "", expected: str = "the name of a file") -> bytes:
    """Read all bytes of a file.

    Parameters
    ----------
    path : str | Path
        The file; ~ is not expanded.
    max_bytes : int
        Most bytes of the file.
    place : str, default ''
        Source of the file's name, for the error: "--preset", "dbc:".
    expected : str, default 'the name of a file'
        Expected kind of file, for the error.

    Returns
    -------
    bytes
        The bytes.

    Raises
    ------
    ModelError
        As `open_input` raises it.
    """
    with open_input(path, place=place, expected=expected, max_bytes=max_bytes) as file:
        try:
            result = file.read(max_bytes + 1)
        except OSError as fault:
            raise unreadable(path, fault, place=place) from None
    if len(result) > max_bytes:  # it grows, or its size is not known before it is read
        raise ModelError(f"{_where(path, place)}: expected {expected} of at most {_size(max_bytes)}, got a larger file")
    return result


def read_input_text(path: str | Path, *, max_bytes: int, place: str = "", expected: str = "a text in UTF-8") -> str:
    """Read a text in UTF-8, with or without a byte order mark.

    Parameters
    ----------
    path : str | Path
        The file; ~ is not expanded.
    max_bytes : int
        Most bytes of the file.
    place : str, default ''
        Source of the file's name, for the error: "--preset", "dbc:".
    expected : str, default 'a text in UTF-8'
        Expected kind of file, for the error.

    Returns
    -------
    str
        The text.

    Raises
    ------
    ModelError
        As `open_input` raises it, and if the text is not UTF-8.
    """
    result = read_input(path, max_bytes=max_bytes, place=place, expected=expected)
    try:
        return result.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as fault:
        wide = result[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        got = "UTF-16" if wide else f"byte {result[fault.start]:#04x}"
        raise ModelError(f"{_where(path, place)}: expected text in UTF-8, got {got}") from None


def unreadable(path: str | Path, fault: OSError, *, place: str = "") -> ModelError:
    """Return the error for a file that cannot be opened or read.

    Parameters
    ----------
    path : str | Path
        The file.
    fault : OSError
        Error of the system.
    place : str, default ''
        Source of the file's name, for the error: "--preset", "dbc:".

    Returns
    -------
    ModelError
        The error, not raised.
    """
    why = "there is no such file" if isinstance(fault, FileNotFoundError) else fault.strerror or str(fault)
    return ModelError(f"{_where(path, place)}: {why}")


def _where(path: str | Path, place: str) -> str:
    """Return a file's name for an error, on one line."""
    return safe_text(f"{place} {path}".lstrip())


def _refuse_other_than_file(result: os.stat_result, where: str, expected: str) -> None:
    """Raise ModelError for a folder, a pipe, a socket or a device."""
    if stat.S_ISDIR(result.st_mode):
        raise ModelError(f"{where}: is a folder; expected {expected}")
    if not stat.S_ISREG(result.st_mode):
        raise ModelError(f"{where}: is not a file; expected {expected}")


def _size(count: int) -> str:
    """Return a size as text for a person."""
    return f"{count // MIB} MiB" if count >= MIB else f"{count:,} bytes"


MAX_UNPACKED_BYTES = 64 << 20
"""Most bytes of all packed arrays together; arrays that are stored plainly have the size of their file."""


def check_npz(file: BinaryIO, path: str | Path) -> None:
    """Raise ModelError for an archive (.npz) with arrays far larger than the file.

    Parameters
    ----------
    file : BinaryIO
        The open file, which is left at its beginning.
    path : str | Path
        Name of the file, for the error.

    Raises
    ------
    ModelError
        If the arrays are too large. zipfile's own errors pass for a file that is no archive.
    """
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(item.file_size for item in archive.infolist())
    file.seek(0)
    maximum = max(MAX_UNPACKED_BYTES, 2 * os.fstat(file.fileno()).st_size)
    if unpacked > maximum:
        raise ModelError(
            f"{path}: expected arrays of at most {maximum >> 20} MiB, got {unpacked >> 20} MiB once unpacked"
        )


# A file that is there whole or not at all: written under a name of its own beside it, then put in its place.


@dataclass(frozen=True)
class Kind:
    """Kind of files, and its distinction from others.

    Parameters
    ----------
    name : str
        Name of the kind.
    begins : tuple[bytes, ...]
        First bytes of a file, behind `skip` bytes.
    skip : int, default 0
        Bytes before them.
    mark : bytes, default b''
        Bytes near the beginning of a file that rtmms made.
    sealed : bool, default False
        Whether people edit such files: a file has the checksum of its text (`with_checksum`), and an edited one is not
        overwritten.
    """

    name: str
    begins: tuple[bytes, ...]
    skip: int = 0
    mark: bytes = b""
    sealed: bool = False

    def fits(self, begun: bytes) -> bool:
        """Return whether a file is of this kind.

        Parameters
        ----------
        begun : bytes
            First bytes of the file.

        Returns
        -------
        bool
            True also for an empty file, which has nothing to lose.
        """
        return not begun or (begun[self.skip :].lower().startswith(self.begins) and self.mark in begun)


_ZIP = (b"pk\x03\x04",)
_HEAD_BYTES = 4096
KINDS: Mapping[str, Kind] = {
    ".png": Kind("PNG picture", (b"\x89png",)), ".jpg": Kind("JPEG picture", (b"\xff\xd8",)),
    ".jpeg": Kind("JPEG picture", (b"\xff\xd8",)), ".tif": Kind("TIFF picture", (b"ii*\0", b"mm\0*")),
    ".tiff": Kind("TIFF picture", (b"ii*\0", b"mm\0*")), ".webp": Kind("WebP picture", (b"riff",)),
    ".svg": Kind("SVG picture", (b"<?xml", b"<svg"), mark=b"<svg"), ".pdf": Kind("PDF", (b"%pdf",)),
    ".eps": Kind("PostScript file", (b"%!ps",)), ".ps": Kind("PostScript file", (b"%!ps",)),
    ".gif": Kind("GIF", (b"gif8",)), ".mp4": Kind("MP4 film", (b"ftyp",), skip=4),
    ".html": Kind("page of rtmms", (b"<!doctype html",), mark=b'content="rtmms"'),
    ".mcap": Kind("log (MCAP)", (b"\x89mcap",)), ".npz": Kind("trace of commands", _ZIP), ".fmu": Kind("FMU", _ZIP),
    ".parquet": Kind("Parquet file", (b"par1",)), ".csv": Kind("table of rtmms log csv", (b"run,step,time,",)),
    ".toml": Kind("preset of rtmms identify", (b"# ",), mark=b", fitted by rtmms identify to ", sealed=True),
    ".dbc": Kind("DBC file", (b"version ",)),
}  # fmt: skip
"""Kinds of files by the ending, in lower case; of text, which anybody may have written, rtmms's own only."""
_MAX_SEALED_BYTES = 1 << 22
_SEAL = "# unedited while the rest of this file has the SHA-256 {}"
_SEAL_LINE = re.compile(rb"^# unedited while the rest of this file has the SHA-256 ([0-9a-f]{64})\r?\n", re.MULTILINE)
PAGE_MARK = '<meta name="generator" content="rtmms">'
"""Mark in the head of each HTML page."""


def refuse_output(
    path: Path, word: str, kind: Kind | None, sources: tuple[Path, ...] = (), way_out: str = "the file is unchanged"
) -> None:
    """Raise ModelError if a file must not or cannot be written, before the work of a command.

    Refused are an invalid name, a missing or closed folder, a link, anything that is no file, and a file that is read
    (`sources`). A file of another kind is refused, too, because it would be lost, and a name with its ending.

    Parameters
    ----------
    path : Path
        The file to write.
    word : str
        Source of the file's name, for the error.
    kind : Kind | None
        Kind of the file; None: any kind.
    sources : tuple[Path, ...], optional
        Files that are read.
    way_out : str, default 'the file is unchanged'
        Fate of the other file, or how to have it overwritten, for the error.

    Raises
    ------
    ModelError
        If the file is refused.
    """
    if not path.name:
        raise ModelError(f"{word}: expected the name of a file, got '{path if path.parts else ''}'")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ModelError(f"{word} {str(path)!a}: expected a name in UTF-8") from None
    try:
        if not path.parent.is_dir():
            raise ModelError(f"{word} {path}: there is no folder '{path.parent}'")
        refuse_other_than_file(path, word, sources)
        endings = [ending for ending, item in KINDS.items() if item == kind]
        if endings and path.suffix.lower() in KINDS and path.suffix.lower() not in endings:
            raise ModelError(f"{word} {path}: expected a name that ends in {' or '.join(endings)}, got {path.suffix}")
        if kind is not None and path.is_file():
            with open_input(path, place=word) as file:
                begun = file.read(_HEAD_BYTES)
                if not kind.fits(begun):
                    raise ModelError(
                        f"{word} {path}: expected a new name, or an existing {kind.name}, got another file; {way_out}"
                    )
                if kind.sealed and begun and not _has_its_seal(begun + file.read(_MAX_SEALED_BYTES)):
                    raise ModelError(
                        f"{word} {path}: the file was edited, or an earlier version wrote it; "
                        f"give a new name; {way_out}"
                    )
        refuse_closed_folder(path.parent, f"{word} {path}")
    except OSError as fault:  # a name that is too long, a file that we may not look at
        raise ModelError(f"{word} {path}: {fault.strerror or fault}") from None


def with_checksum(comment: str, body: str) -> str:
    """Return a text with a comment, the checksum of all the rest, and a body.

    Parameters
    ----------
    comment : str
        First line.
    body : str
        The rest.

    Returns
    -------
    str
        The text.
    """
    head = comment + "\n"
    digest = hashlib.sha256((head + body).encode()).hexdigest()
    return head + _SEAL.format(digest) + "\n" + body


def _has_its_seal(text: bytes) -> bool:
    """Return whether a text is unchanged since `with_checksum` made it."""
    match = _SEAL_LINE.search(text)
    if match is None:
        return False
    remaining = text[: match.start()] + text[match.end() :]
    return hashlib.sha256(remaining).hexdigest().encode() == match[1]


def refuse_closed_folder(folder: Path, place: str) -> None:
    """Raise ModelError if no file can be created in a folder, by trying it.

    Parameters
    ----------
    folder : Path
        The folder.
    place : str
        Source of the folder's name, for the error.

    Raises
    ------
    ModelError
        If none can be created.
    """
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise ModelError(f"{place}: no file can be written in '{folder}': {fault.strerror or fault}") from None


def refuse_other_than_file(path: Path, word: str, sources: tuple[Path, ...] = ()) -> None:
    """Raise ModelError for a link, a device, a pipe, a folder, or a source, which a file would replace.

    Parameters
    ----------
    path : Path
        The file to write.
    word : str
        Source of its name, for the error.
    sources : tuple[Path, ...], optional
        Files that are read.

    Raises
    ------
    ModelError
        If the path is one of them.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(f"{word} {path}: is not a file; expected the name of one, or a new name")
    for source in sources:
        if path.exists() and source.exists() and path.samefile(source):
            raise ModelError(
                f"{word} {path}: expected another file than the input {source}, got the same; give another name"
            )
    if path.is_symlink():  # a file would be put in the place of the link, not in that of what it leads to
        raise ModelError(f"{word} {path}: is a link to '{path.readlink()}'; expected the name of a file, or a new name")


@contextmanager
def private_files() -> Iterator[None]:
    """Create files with mode 0600 and folders with 0700, within the context.

    Yields
    ------
    None
        Nothing.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def new_file_beside(path: Path, option: str | None = None) -> Iterator[Path]:
    """Provide a new empty file in the folder of `path`, of the same ending, which nobody can have made before.

    At the end the file goes to the disk and replaces `path`. After a fault nothing is left of the file, and `path` is
    as before.

    Parameters
    ----------
    path : Path
        The file to write.
    option : str | None, optional
        Source of the file's name, for the error; "" for nothing.

    Yields
    ------
    Path
        The new file.

    Raises
    ------
    RtmmsError
        With `option`, if the file cannot be written, or not to its end.
    OSError
        Without `option`, in the same case.
    """
    if option is None:
        with _new_part(path) as part:
            yield part
        return
    try:
        with _new_part(path) as part:
            yield part
    except OSError as fault:
        raise write_error(path, option, fault) from None


def write_error(path: Path, option: str, fault: OSError | str) -> RtmmsError:
    """Return the error for a file that could not be written to its end.

    Parameters
    ----------
    path : Path
        The file.
    option : str
        Source of the file's name.
    fault : OSError | str
        Error of the system, or a text.

    Returns
    -------
    RtmmsError
        The error, not raised.
    """
    why = fault if isinstance(fault, str) else fault.strerror or str(fault)
    where = safe_text(f"{option} {path}".lstrip())
    return RtmmsError(f"{where}: could not be written: {why}; expected a folder with room for the whole file")


@contextmanager
def _new_part(path: Path) -> Iterator[Path]:
    """Provide the file that replaces `path` at the end."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.stem[:64]}.", suffix=path.suffix, dir=path.parent)
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
        _sync(part)
        if os.name == "posix":
            mask = os.umask(0)
            os.umask(mask)
            part.chmod(0o666 & ~mask)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sync(part: Path) -> None:
    """Write a file's bytes to the disk, because some file systems report only here that they have no room."""
    descriptor = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# XML of anybody, looked through before a library builds its tree: no document type, and bounded numbers of its parts.
#
# Readers of URDF, COLLADA and FMUs use it. A document type may define entities that grow to a hundred times the file,
# and some libraries read files that it names.


_PIECE_BYTES = 1 << 16


@dataclass(frozen=True)
class XmlLimits:
    """Limits of a document.

    Parameters
    ----------
    max_bytes : int, optional
        Bytes of the document.
    max_parts : int, default 200000
        Elements and attributes together.
    max_depth : int, default 100
        Elements within each other.
    max_value_chars : int, default 4096
        Characters of one attribute.
    max_words : int, default 1000000
        Words in the text of all elements, each of which may be a number.
    """

    max_bytes: int = 16 << 20
    max_parts: int = 200_000
    max_depth: int = 100
    max_value_chars: int = 4096
    max_words: int = 1_000_000


@dataclass
class XmlCounts:
    """Counts of a document's parts.

    Parameters
    ----------
    word_count : int, default 0
        Words in its text.
    elements : dict[str, int], optional
        Number of elements by local name.
    values : dict[tuple[str, str], int], optional
        Number of uses of each value of the counted attributes.
    """

    word_count: int = 0
    elements: dict[str, int] = field(default_factory=dict)
    values: dict[tuple[str, str], int] = field(default_factory=dict)


def check_xml(
    data: bytes, place: str, limits: XmlLimits | None = None, counted: Mapping[str, str] | None = None
) -> XmlCounts:
    """Check a document without building its tree.

    Parameters
    ----------
    data : bytes
        The document.
    place : str
        Source of the document, for errors.
    limits : XmlLimits | None, optional
        Its limits; None for the defaults of `XmlLimits`.
    counted : Mapping[str, str] | None, optional
        Local names of elements, each with the attribute to count.

    Returns
    -------
    XmlCounts
        Counts of its parts.

    Raises
    ------
    ModelError
        If it is no XML, has a document type, or exceeds the limits.

    Examples
    --------
    >>> check_xml(b"<a><b/><b/></a>", "page").elements
    {'a': 1, 'b': 2}
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
            result = local, attributes.get(counted[local], "")
            counts.values[result] = counts.values.get(result, 0) + 1
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

    def text(content: str) -> None:
        counts.word_count += len(content.split()) or 0
        if counts.word_count > limits.max_words:
            raise ModelError(f"{place}: expected at most {limits.max_words} words of text, got more")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, text
    try:
        for at in range(0, len(data), _PIECE_BYTES):
            parser.Parse(data[at : at + _PIECE_BYTES], False)
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as fault:  # the last two: of encodings
        if isinstance(fault, ModelError):
            raise
        raise ModelError(f"{place}: cannot be read: expected XML: {fault}") from None
    return counts
