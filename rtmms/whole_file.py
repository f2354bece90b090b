"""A file that is there whole or not at all: written under a name of its own beside it, then put in its place."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtmms.errors import ModelError


def refuse_other_than_file(path: Path, word: str, sources: tuple[Path, ...] = ()) -> None:
    """ModelError where `path` is a device, a pipe or a folder, which a file would take the place of, or a source.

    word   what the user named it by, for the error
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(f"{word} {path}: is not a file; expected the name of one, or a new name")
        for source in sources:
            if path.samefile(source):
                raise ModelError(f"{word} {path}: is {source}, which is read; expected another name")


def refuse_other_kind(path: Path, word: str, magic: bytes, kind: str, way_out: str = "--force overwrites") -> None:
    """ModelError where a file stands at `path` that is of another kind, and would be lost.

    magic   what files of this kind begin with;  kind: what they are, for the error
    """
    if not path.is_file():
        return  # others look whether a file can stand there
    with path.open("rb") as file:
        begun = file.read(len(magic))
        if begun and begun != magic:
            raise ModelError(f"{word} {path}: is no {kind}; expected a new name or that of a {kind}; {way_out}")


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Within: a new empty file in the folder of `path`, of the same ending, which nobody can have made before.

    At the end it is put in the place of `path`; after a fault nothing is left of it. OSError where it cannot be had.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.stem[:64]}.", suffix=path.suffix, dir=path.parent)
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
        if os.name == "posix":
            mask = os.umask(0)
            os.umask(mask)
            part.chmod(0o666 & ~mask)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
