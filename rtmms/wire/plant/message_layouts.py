"""States of a known layout: bytes that stay, and numbers that are written into them where they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import APPLIED_POLICIES, Applied
from rtmms.plant.protocol import Channel
from rtmms.wire.kernels.message_layout import OTHER, SEQ, STEP, lay_out, read_command, write_state
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.protocol.message_layout import Path, UnlikelyError, numbers, with_policy
from rtmms.wire.stream.zmtp import frame_head

Words = npt.NDArray[np.int64]


class CommandPattern:
    """Commands of the same layout as one that was good.

    index     the actuators by name that it was made for: with other ones it is no good
    targets   (k,) the actuator of each value, in their order
    frame     (bytes,) uint8 of it;  rows (n, 3), see rtmms.wire.kernels.message_layout
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


def command_pattern(frame: bytes, index: Mapping[str, int]) -> CommandPattern | None:
    """None where it is not worth one."""
    try:
        return CommandPattern(frame, index)
    except (UnlikelyError, KeyError):
        return None


_FLOAT = np.dtype(np.float64)
_WHOLES = (
    ("step",), ("deadline_ns",), ("budget_ns",), ("applied", "seq"), ("applied", "step"), ("applied", "lateness_ns"),
)  # fmt: skip
_TIME, _BUDGET = ("timestamp",), ("budget_ns",)
_ROOM = 9
"""Bytes before the message for the head of its frame."""
_WIDEST = 9
_TRIES = 4
"""Messages that are looked at for a layout, where the first ones have none."""


class StateTemplate:
    """States of one policy. Its numbers are written where they stand; where a whole number needs another width than
    there is, the message is laid out anew around it, of the same pieces.

    buffer   the message, from byte 9 on, with the head of its frame right before it;  size  bytes of the message
    address  of the frame as it leaves, head and all;  bytes  how many
    wholes, reals   where the whole numbers begin in the message, and the float64: time, then those of `names` in order
    budget_at  where in that frame the four bytes of the budget stand; 0: it has fewer, or more
    """

    def __init__(
        self, policy: str, names: tuple[str, ...], tail: bytes, pieces: bytes, ends: Words, order: Words
    ) -> None:
        """pieces, ends   what stands between the numbers, and where each of them ends;  tail  what follows the last
        order   for each number, in the order of the message: its place among the whole ones, then among the others
        """
        self.policy, self.names = policy, names
        self._tail = tail
        self._pieces = np.frombuffer(pieces + tail, np.uint8)
        self._ends, self._order = ends, order
        self.buffer: npt.NDArray[np.uint8] = np.zeros(_ROOM + len(self._pieces) + _WIDEST * len(order), dtype=np.uint8)
        self._frame = self.buffer[_ROOM:]
        self.wholes: Words = np.zeros(len(_WHOLES), dtype=np.int64)
        self.reals: Words = np.zeros(len(order) - len(_WHOLES), dtype=np.int64)
        self._start = self.buffer.ctypes.data
        self._lay_out(np.zeros(len(self.wholes), dtype=np.int64), np.zeros(len(self.reals)))

    @classmethod
    def of(cls, payload: bytes, policy: str, channels: Sequence[Channel], prefix: str = "") -> StateTemplate:
        """From a message. UnlikelyError for one that is not of these channels.  prefix  see StateTemplates"""
        found = numbers(payload)
        paths: list[tuple[str | int, ...]] = [*_WHOLES, _TIME]
        for channel in channels:
            size = math.prod(channel.shape)
            paths += (
                [("outputs", channel.name, k) for k in range(size)] if channel.shape else [("outputs", channel.name)]
            )
        places = {path: k for k, path in enumerate(paths)}
        if {number.path for number in found} != places.keys() or len(found) != len(places):
            raise UnlikelyError("other numbers than those of a state")
        if payload[-1] not in (0xC2, 0xC3):
            raise UnlikelyError("no flag at the end")
        pieces, ends, begin = bytearray(), [], 0
        for at, size, _ in found:
            pieces += payload[begin:at]
            ends.append(len(pieces))
            begin = at + size
        names = tuple(prefix + channel.name for channel in channels)
        order = [places[number.path] for number in found]
        return cls(policy, names, payload[begin:], bytes(pieces), np.array(ends), np.array(order))

    def of_policy(self, policy: str) -> StateTemplate:
        """The same of another one. UnlikelyError where this one's does not stand behind the last number."""
        tail = with_policy(self._tail, policy)
        pieces = self._pieces.tobytes()[: len(self._pieces) - len(self._tail)]
        return StateTemplate(policy, self.names, tail, pieces, self._ends, self._order)

    @property
    def payload(self) -> npt.NDArray[np.uint8]:
        """The message."""
        return self._frame[: self.size]

    @property
    def frame(self) -> bytes:
        """The same with its head, as it leaves."""
        end = _ROOM + self.size
        return self.buffer[end - self.bytes : end].tobytes()

    def write(self, wholes: Words, reals: npt.NDArray[np.float64], clamped: bool) -> None:
        """In place, as msgpack would write it."""
        if not write_state(self._frame, self.wholes, self.reals, wholes, reals):
            self._lay_out(wholes, reals)
        self._frame[self.size - 1] = 0xC3 if clamped else 0xC2

    def _lay_out(self, wholes: Words, reals: npt.NDArray[np.float64]) -> None:
        self.size = size = int(
            lay_out(self._frame, self._pieces, self._ends, self._order, self.wholes, self.reals, wholes, reals)
        )
        head = frame_head(size)
        self.buffer[_ROOM - len(head) : _ROOM] = np.frombuffer(head, np.uint8)
        self.address, self.bytes = self._start + _ROOM - len(head), len(head) + size
        budget = int(self.wholes[_WHOLES.index(_BUDGET)])
        self.budget_at = len(head) + budget + 1 if self._frame[budget] == 0xCE else 0


class StateTemplates:
    """Those of one selection of outputs, one for each policy. Where there is none, the general writer makes the
    message, and the next one has them."""

    def __init__(self, channels: Sequence[Channel], prefix: str = "") -> None:
        """prefix  what the plant's names begin with, and the message leaves out"""
        self._channels, self._prefix = tuple(channels), prefix
        self._known: dict[str, StateTemplate] = {}
        self._wholes = np.zeros(len(_WHOLES), dtype=np.int64)
        self._numbers = np.zeros(1 + sum(math.prod(c.shape) for c in channels))
        self._places: list[tuple[str, slice, tuple[int, ...]]] = []
        at = 1
        for channel in channels:
            size = math.prod(channel.shape)
            self._places.append((prefix + channel.name, slice(at, at + size), channel.shape))
            at += size
        self._tries = _TRIES if AVAILABLE else 0
        self._to_come: list[tuple[StateTemplate, str]] = []

    def write(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> StateTemplate | None:
        """The message in place, or None."""
        if self._to_come:
            self._derive()
        one = self._known.get(applied.policy)
        if one is None or type(time) is not float:
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
        one.write(self._wholes, flat, applied.clamped)
        return one

    def of(self, policy: str) -> StateTemplate | None:
        """What states of this policy are written by."""
        return self._known.get(policy)

    def learn(self, payload: bytes, policy: str) -> bool:
        """What the general writer made: whether there are templates of it that there were not before."""
        if self._tries < 1 or policy in self._known:
            return False
        self._tries -= 1
        try:
            one = self._known[policy] = StateTemplate.of(payload, policy, self._channels, self._prefix)
        except UnlikelyError:
            return False
        self._to_come = [(one, other) for other in APPLIED_POLICIES if other not in self._known]
        return True

    def _derive(self) -> None:
        """One for another policy, before there is a step that needs it: one a message, as each takes a while."""
        one, policy = self._to_come.pop()
        if policy not in self._known:
            with suppress(UnlikelyError):
                self._known[policy] = one.of_policy(policy)
