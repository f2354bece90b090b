"""Patterns of a peer's commands, for the compiled exchange: made in the slack, from one that was good."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from rtmms.wire.kernels.patterns import OTHER, SEQ, STEP, read_command
from rtmms.wire.protocol.layout import Path, UnlikelyError, numbers

Words = npt.NDArray[np.int64]


class Pattern:
    """Commands of the same layout as one that was good.

    index     the actuators by name that it was made for: with other ones it is no good
    targets   (k,) the actuator of each value, in their order
    frame     (bytes,) uint8 of it;  rows (n, 3), see rtmms.wire.kernels.patterns
    """

    def __init__(self, frame: bytes, index: Mapping[str, int]) -> None:
        """UnlikelyError where it is not worth one."""
        self.index = index
        self.frame: npt.NDArray[np.uint8] = np.frombuffer(frame, np.uint8).copy()
        begin, rows, targets = 0, list[tuple[int, int, int]](), list[int]()
        purpose: dict[Path, int] = {("seq",): SEQ, ("step",): STEP}
        needed = set(purpose)
        for at, size, path in numbers(frame):
            needed.discard(path)
            target = purpose.get(path, OTHER)
            if len(path) == 2 and path[0] == "values":
                target = len(targets)
                targets.append(index[str(path[1])])
            rows.append((begin, at - begin, target))
            begin = at + size
        if needed:
            raise UnlikelyError("no command")
        rows.append((begin, len(frame) - begin, OTHER))
        self.rows: Words = np.array(rows, dtype=np.int64)
        self.targets: Words = np.array(targets, dtype=np.int64)
        self._checked = frame
        self._head, self._values = np.zeros(2, dtype=np.int64), np.zeros(len(targets))

    def holds(self, frame: bytes, index: Mapping[str, int]) -> bool:
        """Whether this is still the pattern of a peer that said such a command last."""
        if self.index is not index:
            return False
        if frame is not self._checked and self.read(frame) is not None:
            self._checked = frame
        return frame is self._checked

    def read(self, frame: bytes) -> tuple[int, int, dict[int, float]] | None:
        """seq, step, {actuator: value} of another one; None where it is for the general reader."""
        given = np.frombuffer(frame, np.uint8)
        if not read_command(given, 0, len(given), self.frame, self.rows, self._head, self._values):
            return None
        return (
            int(self._head[0]),
            int(self._head[1]),
            dict(zip(self.targets.tolist(), self._values.tolist(), strict=True)),
        )


def pattern(frame: bytes, index: Mapping[str, int]) -> Pattern | None:
    """None where it is not worth one."""
    try:
        return Pattern(frame, index)
    except (UnlikelyError, KeyError):
        return None
