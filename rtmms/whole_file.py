"""A file that is there whole or not at all: written under a name of its own beside it, then put in its place."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rtmms.errors import ModelError, RtmmsError, shown
from rtmms.input_file import open_input


@dataclass(frozen=True)
class Kind:
    """What the files of a kind are called, and what tells them from others.

    begins  the first bytes of one, behind `skip` bytes;  said  what stands near the beginning of one that rtmms made
    sealed  people edit such files: one has the checksum of its text (`sealed`), and an edited one is not overwritten
    """

    name: str
    begins: tuple[bytes, ...]
    skip: int = 0
    said: bytes = b""
    sealed: bool = False

    def fits(self, begun: bytes) -> bool:
        """Whether a file that begins so is of this kind; an empty one has nothing to lose."""
        return not begun or (begun[self.skip :].lower().startswith(self.begins) and self.said in begun)


_ZIP = (b"pk\x03\x04",)
_NEAR = 4096
KINDS: Mapping[str, Kind] = {
    ".png": Kind("PNG picture", (b"\x89png",)), ".jpg": Kind("JPEG picture", (b"\xff\xd8",)),
    ".jpeg": Kind("JPEG picture", (b"\xff\xd8",)), ".tif": Kind("TIFF picture", (b"ii*\0", b"mm\0*")),
    ".tiff": Kind("TIFF picture", (b"ii*\0", b"mm\0*")), ".webp": Kind("WebP picture", (b"riff",)),
    ".svg": Kind("SVG picture", (b"<?xml", b"<svg"), said=b"<svg"), ".pdf": Kind("PDF", (b"%pdf",)),
    ".eps": Kind("PostScript file", (b"%!ps",)), ".ps": Kind("PostScript file", (b"%!ps",)),
    ".gif": Kind("GIF", (b"gif8",)), ".mp4": Kind("MP4 film", (b"ftyp",), skip=4),
    ".html": Kind("page of rtmms", (b"<!doctype html",), said=b'content="rtmms"'),
    ".mcap": Kind("log (MCAP)", (b"\x89mcap",)), ".npz": Kind("trace of commands", _ZIP), ".fmu": Kind("FMU", _ZIP),
    ".parquet": Kind("Parquet file", (b"par1",)), ".csv": Kind("table of rtmms log csv", (b"run,step,time,",)),
    ".toml": Kind("preset of rtmms identify", (b"# ",), said=b", fitted by rtmms identify to ", sealed=True),
    ".dbc": Kind("DBC file", (b"version ",)),
}  # fmt: skip
"""By the ending, in small letters. Of text, which anybody may have written, rtmms's own alone."""
_LONGEST = 1 << 22
_SEAL = "# unedited while the rest of this file has the SHA-256 {}"
_SEAL_LINE = re.compile(rb"^# unedited while the rest of this file has the SHA-256 ([0-9a-f]{64})\r?\n", re.MULTILINE)
PAGE_MARK = '<meta name="generator" content="rtmms">'
"""In the head of each page of HTML."""


def refuse_output(
    path: Path, word: str, kind: Kind | None, sources: tuple[Path, ...] = (), way_out: str = "it stays as it is"
) -> None:
    """ModelError where a file must not or cannot be written at `path`: before the work, for every command.

    Refused are a name that is none, a folder that is missing or takes no file, a link, whatever is no file, a file
    that is read (`sources`), and one of another kind, which would be lost.

    word      what the user named it by, for the error;  kind  None: of any kind
    way_out   what becomes of the other file, or how to have it overwritten
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
        if kind is not None and path.is_file():
            with open_input(path, place=word) as file:
                begun = file.read(_NEAR)
                if not kind.fits(begun):
                    raise ModelError(
                        f"{word} {path}: is no {kind.name}; expected a new name or that of a {kind.name}; {way_out}"
                    )
                if kind.sealed and begun and not _has_its_seal(begun + file.read(_LONGEST)):
                    raise ModelError(
                        f"{word} {path}: was edited, or an earlier version wrote it; expected a new name; {way_out}"
                    )
        refuse_closed_folder(path.parent, f"{word} {path}")
    except OSError as fault:  # a name that is too long, a file that we may not look at
        raise ModelError(f"{word} {path}: {fault.strerror or fault}") from None


def sealed(comment: str, body: str) -> str:
    """Return a text whose first line is the comment, and whose second is the checksum of all the rest."""
    head = comment + "\n"
    digest = hashlib.sha256((head + body).encode()).hexdigest()
    return head + _SEAL.format(digest) + "\n" + body


def _has_its_seal(text: bytes) -> bool:
    """Whether a text is as `sealed` made it."""
    found = _SEAL_LINE.search(text)
    if found is None:
        return False
    rest = text[: found.start()] + text[found.end() :]
    return hashlib.sha256(rest).hexdigest().encode() == found[1]


def refuse_closed_folder(folder: Path, place: str) -> None:
    """ModelError where no file can be made in a folder: whether one can be, only the attempt says."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        raise ModelError(f"{place}: no file can be written in '{folder}': {fault.strerror or fault}") from None


def refuse_other_than_file(path: Path, word: str, sources: tuple[Path, ...] = ()) -> None:
    """ModelError where `path` is a link, a device, a pipe or a folder, which a file would take the place of, or a
    source."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(f"{word} {path}: is not a file; expected the name of one, or a new name")
    for source in sources:
        if path.exists() and source.exists() and path.samefile(source):
            raise ModelError(f"{word} {path}: is {source}, which is read; expected another name")
    if path.is_symlink():  # a file would be put in the place of the link, not in that of what it leads to
        raise ModelError(f"{word} {path}: is a link to '{path.readlink()}'; expected the name of a file, or a new name")


@contextmanager
def beside(path: Path, option: str | None = None) -> Iterator[Path]:
    """Within: a new empty file in the folder of `path`, of the same ending, which nobody can have made before.

    At the end the file goes to the disk and replaces `path`. After a fault nothing is left of the file, and `path` is
    as before.

    Parameters
    ----------
    path : Path
        The file to write.
    option : str, optional
        What the user named the file by, for the error; "" for nothing.

    Raises
    ------
    RtmmsError
        With `option`: the file cannot be written, or not to its end.
    OSError
        Without `option`, the same.
    """
    if option is None:
        with _new_part(path) as part:
            yield part
        return
    try:
        with _new_part(path) as part:
            yield part
    except OSError as fault:
        raise unwritten(path, option, fault) from None


def unwritten(path: Path, option: str, fault: OSError | str) -> RtmmsError:
    """Return the error for a file that could not be written to its end."""
    why = fault if isinstance(fault, str) else fault.strerror or str(fault)
    where = shown(f"{option} {path}".lstrip())
    return RtmmsError(f"{where}: could not be written: {why}; expected a folder with room for the whole file")


@contextmanager
def _new_part(path: Path) -> Iterator[Path]:
    """Within: the file that replaces `path` at the end."""
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
    """Write a file's bytes to the disk: some file systems report only here that they have no room."""
    descriptor = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
