"""The board: one page of memory on which a run tells its display how it goes. Writing never waits for a reader."""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
from typing import Any

SIZE = 1 << 14
_HEAD = struct.Struct("<QQ")


class Board:
    """A page shared by file descriptor: a counter, odd while it is written, a length, and a JSON object."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Without a descriptor a new page is made (the run); with one it is opened (the display)."""
        if descriptor is None:
            with tempfile.TemporaryFile() as file:
                os.ftruncate(file.fileno(), SIZE)
                descriptor = os.dup(file.fileno())
        self.descriptor = descriptor
        self._page = mmap.mmap(descriptor, SIZE)
        self._count = 0

    def write(self, content: dict[str, Any]) -> None:
        """Replace what stands there; what does not fit is left out as a whole."""
        text = json.dumps(content).encode()
        if len(text) > SIZE - _HEAD.size:
            return
        _HEAD.pack_into(self._page, 0, self._count + 1, len(text))
        self._page[_HEAD.size : _HEAD.size + len(text)] = text
        self._count += 2
        _HEAD.pack_into(self._page, 0, self._count, len(text))

    def read(self) -> dict[str, Any] | None:
        """What stands there; None when there is nothing yet or it is being written."""
        count, length = _HEAD.unpack_from(self._page, 0)
        if count == 0 or count % 2:
            return None
        text = self._page[_HEAD.size : _HEAD.size + length]
        if _HEAD.unpack_from(self._page, 0)[0] != count:
            return None
        content: dict[str, Any] = json.loads(text)
        return content

    def close(self) -> None:
        self._page.close()
        os.close(self.descriptor)
