"""A file that is whole after every write, also when the disk is full or the process is killed within one."""

from __future__ import annotations

import contextlib
import os
from collections import deque

CHUNK = 0x06
"""The opcode of MCAP's chunk record."""


class WholeWrites:
    """The stream that MCAP records are written to: whole records in each call. They gather in memory until `commit`.

    A commit puts as many of them on the disk as it takes. What does not fit leaves no trace in the file and stays for
    the next commit. `size` is what stands there, `waiting` what does not yet, in bytes; `chunk_end` is where the last
    chunk ends, whose messages can be read once it stands, with or without the index records after it.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.size, self.waiting, self.fault = descriptor, 0, 0, ""
        self.chunk_end = 0
        self._records: deque[bytes] = deque()

    def write(self, data: bytes) -> int:
        """Gather."""
        if data:
            self._records.append(bytes(data))
            self.waiting += len(data)
            if data[0] == CHUNK:
                self.chunk_end = self.tell()
        return len(data)

    def tell(self) -> int:
        """Where the next byte will stand."""
        return self.size + self.waiting

    def flush(self) -> None:
        """Nothing: `commit` decides."""

    def commit(self) -> bool:
        """Put what was gathered on the disk. False, with `fault` set, when it will not take all of it."""
        self.fault = ""
        while self._records:
            record, done = memoryview(self._records[0]), 0
            try:
                while done < len(record):
                    done += os.pwrite(self.descriptor, record[done:], self.size + done)
            except OSError as error:
                self.fault = error.strerror or str(error)
                with contextlib.suppress(OSError):
                    os.ftruncate(self.descriptor, self.size)  # a record begun is none
                return False
            self._records.popleft()
            self.size += done
            self.waiting -= done
        return True
