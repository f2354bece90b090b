"""Location of a log, and the libraries that logs need."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import stat
import sys
from pathlib import Path

from rtmms.base.errors import ModelError
from rtmms.base.install import install_command

# File of a log: FILE.part beside FILE, held by a lock, and renamed to FILE when it ends.
#
# Two runs never write one log. A new log never destroys an existing one before it ends. The writer detects that its
# file was moved or deleted.


if sys.platform != "win32":  # Windows cannot move or delete an open file
    import fcntl

MAX_TRIES = 8


def part_of(path: Path) -> Path:
    """Return the file that is written until the log is at its end.

    Parameters
    ----------
    path : Path
        The log.

    Returns
    -------
    Path
        FILE.part beside it.
    """
    return path.with_name(path.name + ".part")


class Place:
    """File of a log, from its first byte to its final location.

    Parameters
    ----------
    path : Path
        The log.

    Attributes
    ----------
    descriptor : int
        Descriptor of FILE.part, which is empty at first.
    synced : bool
        False if the disk has not accepted all data, as `settle` found.

    Raises
    ------
    OSError
        If the file cannot be had; its strerror is a sentence.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.part, self.synced = path, part_of(path), True
        _refuse_other_than_file(path)
        self.descriptor = self._locked()
        os.ftruncate(self.descriptor, 0)

    def _locked(self) -> int:
        for _ in range(MAX_TRIES):
            descriptor = _opened(self.part)
            try:
                _lock(descriptor)
            except OSError:
                os.close(descriptor)
                raise OSError(0, "another run writes this log; give each run another log") from None
            if self._stands(descriptor):
                return descriptor
            os.close(descriptor)  # the previous owner renamed it between our two calls
        raise OSError(0, f"{self.part} cannot be locked, as other processes keep renaming it")

    def _stands(self, descriptor: int) -> bool:
        """Return whether FILE.part still is the file that we have open."""
        try:
            there = os.stat(self.part)
        except OSError:
            return False
        here = os.fstat(descriptor)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def settle(self, keep: bool) -> bool:
        """Close the file; FILE.part becomes FILE, or is removed if it has nothing worth keeping.

        Parameters
        ----------
        keep : bool
            Whether to keep it.

        Returns
        -------
        bool
            False if it was moved or deleted while it was written, or cannot be put there.
        """
        stood = self._stands(self.descriptor)
        try:
            os.fsync(self.descriptor)
        except OSError:  # some file systems report a full disk only here
            self.synced = False
        try:
            if stood and keep:
                os.replace(self.part, self.path)
            elif stood:
                os.unlink(self.part)
        except OSError:
            stood = False
        os.close(self.descriptor)
        return stood


def rescue(path: Path) -> None:
    """Move the file of a killed writer to its final location, unless a writer still has it.

    Parameters
    ----------
    path : Path
        The log.
    """
    part = part_of(path)
    with contextlib.suppress(OSError):
        descriptor = os.open(part, os.O_RDWR)
        try:
            _lock(descriptor)
            if os.fstat(descriptor).st_size:
                os.replace(part, path)
        finally:
            os.close(descriptor)


def _opened(part: Path) -> int:
    """Open FILE.part to write, created if necessary; a link to another file is refused."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(part, flags | getattr(os, "O_NONBLOCK", 0), 0o644)
    except OSError as error:
        if part.is_symlink():
            raise OSError(0, f"{part} is a link, expected a file or none; remove it") from None
        raise OSError(error.errno, f"{part}: {error.strerror}") from None
    result = os.fstat(descriptor)
    if stat.S_ISREG(result.st_mode) and result.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    why = "has other names (hard links)" if stat.S_ISREG(result.st_mode) else "is not a regular file"
    raise OSError(0, f"{part} {why}; remove it")


def _lock(descriptor: int) -> None:
    """Lock a file; OSError if another process has it."""
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _refuse_other_than_file(path: Path) -> None:
    """Raise OSError for a device, a pipe or a folder."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError(0, "expected a file or a new name, got a device, a pipe or a folder")


# The libraries that write logs and tables, and how to install a missing one.


def refuse_without_mcap(what: str) -> None:
    """Raise ModelError if logs cannot be written or read here.

    Parameters
    ----------
    what : str
        Option or file, for the error.

    Raises
    ------
    ModelError
        If they cannot; it names what to install.
    """
    if what == "--log" and os.name != "posix":
        raise ModelError(
            f"--log: expected a POSIX system, whose processes can share memory by descriptor, got {sys.platform}"
        )
    missing = [name for name in ("mcap", "orjson") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(f"{what}: logs need the library {missing[0]}: pip install {' '.join(missing)}")


def refuse_without_pyarrow(what: str, otherwise: str = "") -> None:
    """Raise ModelError without the library for Parquet.

    Parameters
    ----------
    what : str
        Option or file, for the error.
    otherwise : str, default ''
        Alternative of the user.

    Raises
    ------
    ModelError
        If it is missing; it names what to install.
    """
    if importlib.util.find_spec("pyarrow") is None:
        more = f", {otherwise}" if otherwise else ""
        raise ModelError(f"{what}: Parquet needs the library pyarrow: {install_command('parquet')}{more}")
