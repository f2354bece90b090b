"""A lock that one process at a time has, as long as it lives: for files that two commands would both write."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from rtmms.errors import ModelError

if sys.platform != "win32":
    import fcntl

TRIES = 8


class Lock:
    """A locked file. The system unlocks it when the process ends, however that is.

    Parameters
    ----------
    path
        The file, which is made, and removed by `close`.
    busy
        Sentence of the error where another process has the lock.

    Raises
    ------
    ModelError
        Another process has the lock, or the file cannot be had.
    """

    def __init__(self, path: Path, busy: str) -> None:
        self.path = path
        self._descriptor = self._locked(busy)

    def close(self) -> None:
        """Remove the file and unlock. Twice does nothing."""
        if self._descriptor < 0:
            return
        with suppress(OSError):
            if self._is_there(self._descriptor):
                os.unlink(self.path)
        os.close(self._descriptor)
        self._descriptor = -1

    def _locked(self, busy: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        for _ in range(TRIES):
            try:
                descriptor = os.open(self.path, flags, 0o600)
            except OSError as fault:
                raise ModelError(f"{self.path}: cannot be the file of a lock: {fault.strerror}: remove it") from None
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise ModelError(f"{self.path}: is not a file that can be locked: remove it")
            try:
                if sys.platform != "win32":
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                raise ModelError(busy) from None
            if self._is_there(descriptor):
                return descriptor
            os.close(descriptor)  # the process before us removed it between our two calls
        raise ModelError(f"{self.path}: cannot be locked: other processes keep removing it")

    def _is_there(self, descriptor: int) -> bool:
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        here = os.fstat(descriptor)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
