"""A file that is whole after every write, also when the disk is full or the process is killed within one."""

from __future__ import annotations

import os


class WholeWrites:
    """The stream that MCAP records are written to. They gather in memory until `commit` puts them on the disk at once.

    A commit that fails leaves the file as it was and keeps what it has for the next one. `size` is what stands there.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.size, self.fault = descriptor, 0, ""
        self._waiting = bytearray()

    def write(self, data: bytes) -> int:
        """Gather."""
        self._waiting += data
        return len(data)

    def tell(self) -> int:
        """Where the next byte will stand."""
        return self.size + len(self._waiting)

    def flush(self) -> None:
        """Nothing: `commit` decides."""

    def commit(self) -> bool:
        """Put what was gathered on the disk. False, with `fault` set, when it will not take it."""
        done, view = 0, memoryview(bytes(self._waiting))
        try:
            while done < len(view):
                done += os.pwrite(self.descriptor, view[done:], self.size + done)
        except OSError as error:
            self.fault = error.strerror or str(error)
            os.ftruncate(self.descriptor, self.size)  # a record begun is none
            return False
        self.size += done
        self._waiting.clear()
        self.fault = ""
        return True

    @property
    def waiting(self) -> int:
        """Bytes gathered."""
        return len(self._waiting)
