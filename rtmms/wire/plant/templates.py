"""States of a known layout: bytes that stay, and numbers that are written into them where they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.contract import Applied
from rtmms.plant import Channel
from rtmms.wire.kernels.patterns import write_state
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.protocol.layout import UnlikelyError, numbers
from rtmms.wire.stream.zmtp import framed

Words = npt.NDArray[np.int64]
_FLOAT = np.dtype(np.float64)
_WHOLES = (
    ("step",), ("deadline_ns",), ("budget_ns",), ("applied", "seq"), ("applied", "step"), ("applied", "lateness_ns"),
)  # fmt: skip
_TIME, _BUDGET = ("timestamp",), ("budget_ns",)
_ROOM = 9
"""Bytes before the message for the head of its frame."""
_MOST, _A_MESSAGE = 4, 1 / 16
"""Templates that are kept, which is also how many may be made in a row; and how many for each message later."""


class Template:
    """One layout: a policy, and how many bytes each whole number takes.

    buffer   (9 + bytes,) the message with room for the head of its frame before it;  size  bytes of the message
    address  of the frame as it leaves, head and all;  bytes  how many
    wholes, reals   where the whole numbers begin in the message, and the float64: time, then those of `names` in order
    budget_at  where in that frame the four bytes of the budget stand; 0: it has fewer, or more
    """

    def __init__(self, payload: bytes, policy: str, channels: Sequence[Channel]) -> None:
        """UnlikelyError for a payload that is not of these channels."""
        found = {path: at for at, _, path in numbers(payload)}
        frame = framed(payload)
        self.policy, self.size = policy, len(payload)
        self.buffer: npt.NDArray[np.uint8] = np.zeros(_ROOM + len(payload), dtype=np.uint8)
        start = _ROOM - (len(frame) - len(payload))
        self.buffer[start:] = np.frombuffer(frame, np.uint8)
        self.payload = self.buffer[_ROOM:]
        self.names = tuple(channel.name for channel in channels)
        self.address, self.bytes = self.buffer.ctypes.data + start, len(frame)
        paths: list[tuple[str | int, ...]] = [_TIME]
        for channel in channels:
            size = math.prod(channel.shape)
            paths += (
                [("outputs", channel.name, k) for k in range(size)] if channel.shape else [("outputs", channel.name)]
            )
        try:
            self.wholes: Words = np.array([found[path] for path in _WHOLES], dtype=np.int64)
            self.reals: Words = np.array([found[path] for path in paths], dtype=np.int64)
            budget = found[_BUDGET]
        except KeyError:
            raise UnlikelyError("not the numbers of a state") from None
        if len(found) != len(self.wholes) + len(self.reals) or any(payload[at] != 0xCB for at in self.reals):
            raise UnlikelyError("other numbers than those of a state")
        self.budget_at = _ROOM - start + budget + 1 if payload[budget] == 0xCE else 0
        # of the last field of all, which is a flag
        self._clamped = len(payload) - 1
        if payload[self._clamped] not in (0xC2, 0xC3):
            raise UnlikelyError("no flag at the end")

    def write(self, wholes: Words, reals: npt.NDArray[np.float64], clamped: bool) -> bool:
        """False where a number does not fit."""
        self.payload[self._clamped] = 0xC3 if clamped else 0xC2
        return bool(write_state(self.payload, self.wholes, self.reals, wholes, reals))


class Templates:
    """Those of one selection of outputs. Where there is none that fits, the general writer makes the message, and the
    next one has one: a new one is made from time to time only.

    used   the one that the last message was written with; None: it was the general writer's
    """

    def __init__(self, channels: Sequence[Channel]) -> None:
        self._channels = tuple(channels)
        self._known: list[Template] = []
        self._wholes = np.zeros(len(_WHOLES), dtype=np.int64)
        self._numbers = np.zeros(1 + sum(math.prod(c.shape) for c in channels))
        self._places: list[tuple[str, slice, tuple[int, ...]]] = []
        at = 1
        for channel in channels:
            size = math.prod(channel.shape)
            self._places.append((channel.name, slice(at, at + size), channel.shape))
            at += size
        self._credit = float(_MOST)
        self.used: Template | None = None

    def write(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> Template | None:
        """The message in place, or None."""
        self.used, self._credit = None, min(_MOST, self._credit + _A_MESSAGE)
        if not AVAILABLE or not self._known or type(time) is not float:
            return None
        flat = self._numbers
        flat[0] = time
        for name, place, shape in self._places:
            value = outputs[name]
            if type(value) is not np.ndarray or value.dtype is not _FLOAT or value.shape != shape:
                return None
            flat[place] = value if len(shape) < 2 else value.ravel()
        try:
            self._wholes[:] = step, deadline_ns, budget_ns, applied.seq, applied.step, applied.lateness_ns
        except OverflowError:
            return None
        for k, one in enumerate(self._known):
            if one.policy == applied.policy and one.write(self._wholes, flat, applied.clamped):
                if k:
                    self._known.insert(0, self._known.pop(k))
                self.used = one
                return one
        return None

    def newest(self, policy: str) -> Template | None:
        """The last one that was made or used for a policy."""
        return next((one for one in self._known if one.policy == policy), None)

    def learn(self, payload: bytes, policy: str) -> bool:
        """What the general writer made in place of it: whether the next like it will be written in place."""
        if not AVAILABLE or self._credit < 1.0:
            return False
        self._credit -= 1.0
        try:
            self._known.insert(0, Template(payload, policy, self._channels))
        except UnlikelyError:
            return False
        del self._known[_MOST:]
        return True
