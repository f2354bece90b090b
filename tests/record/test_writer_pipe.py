"""The pipe to a log's writer: no row is released before the set-points that belong to it."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from rtmms.record.recorder import WriterPipe


class Counted:
    """A ring that counts how often its rows were released."""

    head, settled = 5, 0

    def settle(self) -> None:
        self.settled += 1


def test_rows_wait_while_the_pipe_is_full() -> None:
    reads, writes = os.pipe()
    ring: Any = Counted()
    with os.fdopen(writes, "wb", buffering=0) as stream, os.fdopen(reads, "rb", buffering=0) as reader:
        pipe = WriterPipe(ring, SimpleNamespace(stdin=stream))  # type: ignore[arg-type]
        os.set_blocking(writes, False)
        pipe.settle()
        assert ring.settled == 1, "without notes all rows are free"
        pipe.set_points(7, {"text": "x" * 300_000})  # more than a pipe takes
        pipe.settle()
        pipe.settle()
        assert ring.settled == 1
        observed = b""
        while ring.settled == 1:
            observed += reader.read(1 << 16)
            pipe.settle()
        os.set_blocking(reads, False)
        observed += reader.read(1 << 20) or b""
        assert observed.endswith(b"}\n")
        assert b'"set_points"' in observed
        pipe.settle()
        assert ring.settled == 3
