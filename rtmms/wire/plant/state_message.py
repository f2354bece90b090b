"""Which outputs a peer gets, and the state messages with these outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import TRUTH, Applied
from rtmms.base.errors import UnknownNameError
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.messages import Reason, Refused
from rtmms.wire.protocol.step_layout import (
    APPLIED_LATENESS,
    APPLIED_SEQ,
    APPLIED_STEP,
    FALSE,
    NUMBER_BYTES,
    STATE_BUDGET,
    STATE_DEADLINE,
    STATE_STEP,
    STRIDE,
    TRUE,
    StepLayout,
    ending,
    state_layout,
)
from rtmms.wire.stream.zmtp import frame_head

STRANGERS_WORK = 150
"""Steps of comparison, some 0.3 us each, for all the patterns of one without the token: a display's names cost
one each, and a pattern of letters and stars one or two for each output."""
PEERS_WORK = 1 << 18
"""The same for one that did."""

_WILD = frozenset("*?[")
Run = str | list[str]


class Matching:
    """Patterns matched against names.  work   steps that are left; Refused when it is used up

    fnmatch makes a regular expression of each pattern first. That takes 44 us for `left.*`, all that a stranger may
    take, and 640 us for 128 letters and stars; to match as here takes 6 and 38 us.
    """

    def __init__(self, work: int = PEERS_WORK) -> None:
        self.work = work

    def matched(self, pattern: str, names: Collection[str]) -> list[str]:
        """Those of the names that the pattern matches, in their order."""
        if _WILD.isdisjoint(pattern):
            self._spend(1)
            return [pattern] if pattern in names else []
        if not pattern.strip("*"):
            self._spend(1 + len(names) // 8)
            return list(names)
        runs = _runs(pattern)
        self._spend(sum(len(run) for run in runs) // 4)
        return [name for name in names if self._matches(runs, name)]

    def _matches(self, runs: list[Run], name: str) -> bool:
        """The runs between the stars, in their order: the first and the last at the ends, each other one as far left
        as it goes, so that what was given to those before it need not be taken back."""
        self._spend(1)
        first, last = runs[0], runs[-1]
        at, end = len(first), len(name) - len(last)
        if len(runs) == 1:
            return end == 0 and self._fits(first, name, 0)
        if at > end or not self._fits(first, name, 0) or not self._fits(last, name, end):
            return False
        for run in runs[1:-1]:
            at = self._found(run, name, at, end)
            if at < 0:
                return False
            at += len(run)
        return True

    def _found(self, run: Run, name: str, at: int, end: int) -> int:
        """Where a run lies first between the two; -1: nowhere."""
        if isinstance(run, str):
            self._spend(1)
            return name.find(run, at, end)
        return next((here for here in range(at, end - len(run) + 1) if self._fits(run, name, here)), -1)

    def _fits(self, run: Run, name: str, at: int) -> bool:
        """Letters are compared all at once, a run of wild ones each; the name is long enough."""
        if isinstance(run, str):
            return name.startswith(run, at)
        for k, part in enumerate(run, at):
            self._spend(len(part))
            if not _one(part, name[k]):
                return False
        return True

    def _spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise Refused(Reason.WRONG_TYPE, "hello: these patterns take too long: use fewer, or names")


def _runs(pattern: str) -> list[Run]:
    """What lies between the stars: a text, or parts where there are others than letters."""
    runs: list[list[str]] = [[]]
    for part in _parts(pattern):
        if part == "*":
            runs.append([])
        else:
            runs[-1].append(part)
    return ["".join(run) if _WILD.isdisjoint("".join(run)) else run for run in runs]


def _parts(pattern: str) -> Iterable[str]:
    """'a?[b-d]*' -> 'a', '?', '[b-d]', '*'. Stars side by side are one; a bracket that nothing closes is itself."""
    at, last = 0, ""
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            first = at + 2 if pattern[at + 1 : at + 2] == "!" else at + 1
            found = pattern.find("]", first + 1)
            end = found + 1 if found > 0 else end
        part = pattern[at:end]
        if not part == last == "*":
            yield part
        at, last = end, part


def _one(part: str, letter: str) -> bool:
    if len(part) == 1:
        return part in ("?", letter)
    negated = part[1] == "!"
    return _among(part[1 + negated : -1], letter) is not negated


def _among(letters: str, letter: str) -> bool:
    """'a-cx': one of a, b, c and x."""
    at = 0
    while at < len(letters):
        if at + 2 < len(letters) and letters[at + 1] == "-":
            if letters[at] <= letter <= letters[at + 2]:
                return True
            at += 3
        else:
            if letters[at] == letter:
                return True
            at += 1
    return False


FIELD_DIMENSIONS = 3
"""An output of so many dimensions or more is a field: it travels only where it is asked for."""

NOTHING = "none"


def select(outputs: Sequence[Channel], patterns: Sequence[str], work: int = PEERS_WORK) -> tuple[Channel, ...]:
    """The outputs that match one of the patterns, in the plant's order; Refused for a pattern that names none.

    Without patterns: all but the fields, such as the joints of every chain of every fin, and the truth that sensors
    hide, which only a pattern that begins with its word matches. NOTHING alone: none.
    work   that matching them may take, see Matching
    """
    if tuple(patterns) == (NOTHING,):
        return ()
    if not patterns:
        return tuple(
            channel
            for channel in outputs
            if len(channel.shape) < FIELD_DIMENSIONS and not channel.name.startswith(TRUTH)
        )
    names = dict.fromkeys(channel.name for channel in outputs)
    wanted: set[str] = set()
    matching = Matching(work)
    for pattern in dict.fromkeys(patterns):
        found = matching.matched(pattern, names)
        if not pattern.startswith(TRUTH):
            found = [name for name in found if not name.startswith(TRUTH)]
        if not found:
            # near misses take long to find: for those with the token alone
            why = (
                f"unknown output '{pattern}'" if work < PEERS_WORK else str(UnknownNameError("output", pattern, names))
            )
            raise Refused(Reason.UNKNOWN_OUTPUT, f"hello: outputs: {why}")
        wanted.update(found)
    return tuple(channel for channel in outputs if channel.name in wanted)


_HEAD_BYTES = 9
"""Bytes before the message for the head of its frame."""
_INTEGER = Struct(">q")


class StateMessage:
    """A state in memory: its numbers are written where the layout has them, by Python here or by compiled code.

    Attributes
    ----------
    names : tuple of str
        The plant's names of the outputs, in the order of the message.
    address, bytes : int
        Where the frame begins, its head included, and how many bytes it has.
    begin, size : int
        Where the message begins in `buffer`, and how many bytes it has.
    """

    def __init__(self, layout: StepLayout, channels: Sequence[Channel], prefix: str = "") -> None:
        """prefix  what the plant's names begin with, and the message leaves out"""
        self.layout, self.begin = layout, _HEAD_BYTES
        self.names = tuple(prefix + channel.name for channel in channels)
        room = len(layout.body) + max(map(len, layout.endings))
        self.buffer: npt.NDArray[np.uint8] = np.zeros(_HEAD_BYTES + room, dtype=np.uint8)
        self.buffer[_HEAD_BYTES : _HEAD_BYTES + len(layout.body)] = np.frombuffer(layout.body, np.uint8)
        self._bytes = memoryview(self.buffer.data)
        self._integers = [_HEAD_BYTES + at for at in layout.integers]
        self._time = self._reals(layout.reals[0], ())
        self._outputs = [
            (name, self._reals(layout.outputs[channel.name][0], channel.shape))
            for name, channel in zip(self.names, channels, strict=True)
        ]
        self.set_policy("")

    def _reals(self, at: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return the numbers of an output as an array of its shape."""
        strides = [STRIDE]
        for count in reversed(shape[1:]):
            strides.insert(0, strides[0] * count)
        return np.ndarray(shape, ">f8", self.buffer, _HEAD_BYTES + at, strides[: len(shape)] if shape else ())

    @property
    def payload(self) -> npt.NDArray[np.uint8]:
        """The message."""
        return self.buffer[self.begin : self.begin + self.size]

    @property
    def frame(self) -> bytes:
        """The message behind the head of its frame, as it is sent."""
        end = self.begin + self.size
        return self.buffer[end - self.bytes : end].tobytes()

    @property
    def budget_at(self) -> int:
        """Where the eight bytes of the budget begin in `frame`."""
        return self.bytes - self.size + self.layout.integers[STATE_BUDGET]

    def set_policy(self, policy: str) -> None:
        """Write the end of the message, and the head of the frame, whose length depends on it."""
        self.policy = policy
        tail = ending(policy, False)
        self.size = len(self.layout.body) + len(tail)
        self._bytes[self.begin + len(self.layout.body) : self.begin + self.size] = tail
        head = frame_head(self.size)
        self._bytes[self.begin - len(head) : self.begin] = head
        self.address, self.bytes = self.buffer.ctypes.data + self.begin - len(head), len(head) + self.size

    def write(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:
        """Write all numbers and the ending."""
        if applied.policy != self.policy:
            self.set_policy(applied.policy)
        self._time[...] = time
        for name, numbers in self._outputs:
            numbers[...] = outputs[name]
        put, at = _INTEGER.pack_into, self._integers
        put(self._bytes, at[STATE_STEP], step)
        put(self._bytes, at[STATE_DEADLINE], deadline_ns)
        put(self._bytes, at[STATE_BUDGET], budget_ns)
        put(self._bytes, at[APPLIED_SEQ], applied.seq)
        put(self._bytes, at[APPLIED_STEP], applied.step)
        put(self._bytes, at[APPLIED_LATENESS], applied.lateness_ns)
        self._bytes[self.begin + self.size - 1] = TRUE if applied.clamped else FALSE

    def dated(self, payload: bytes, deadline_ns: int, budget_ns: int) -> bytes:
        """Return a state of this layout with another deadline and budget."""
        at, behind = self.layout.integers[STATE_DEADLINE], self.layout.integers[STATE_BUDGET] + NUMBER_BYTES
        between = payload[at + NUMBER_BYTES : behind - NUMBER_BYTES]
        return b"".join((payload[:at], _INTEGER.pack(deadline_ns), between, _INTEGER.pack(budget_ns), payload[behind:]))


class Selection:
    """States with a fixed set of outputs, in one message whose memory is used again for each.

    prefix     what the plant's names of these outputs begin with, and the message leaves out
    later_ns   of those whose command is for a later step: how much later its deadline is than the state's own
    message    the newest state, or the prepared one
    """

    def __init__(
        self, channels: Sequence[Channel], kind: str = "state", later_ns: int = 0, prefix: str = ""
    ) -> None:  # fmt: skip
        self._later_ns = later_ns
        self.names = tuple(channel.name for channel in channels)
        self.message = StateMessage(state_layout(channels, kind), channels, prefix)
        self._ahead: tuple[int, int] = (-1, 0)
        self._copy: bytes | None = None
        self.round = 0
        self.payload = b""

    @property
    def later_ns(self) -> int:
        """See the class."""
        return self._later_ns

    def packed(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """One state message; `outputs` may hold more than this selection, each an array of the channel's shape."""
        if self._ahead[0] >= 0 and self._copy is None:  # the prepared state is still to be sent
            self._copy = self.message.payload.tobytes()
        self._write(step, time, deadline_ns, budget_ns, outputs, applied)
        self.payload = self.message.payload.tobytes()
        return self.payload

    def _write(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:
        later_ns = self._later_ns if deadline_ns else 0
        self.message.write(step, time, deadline_ns + later_ns, budget_ns + later_ns, outputs, applied)

    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> None:  # fmt: skip
        """Pack a state ahead of its instant, except the budget, which the sending adds; step -1 discards it."""
        if step < 0:
            self._ahead = (-1, 0)
            return
        self._write(step, time, deadline_ns, 0, outputs, applied)
        self.prepared(step, deadline_ns)

    def prepared(self, step: int, deadline_ns: int) -> None:
        """`message` is the state of this step."""
        self._ahead, self._copy = (step, deadline_ns), None

    def ready(self, step: int, deadline_ns: int) -> StateMessage | None:
        """The prepared state of this step and deadline, to be sent once from its memory; None where it is not there."""
        return self.message if self._copy is None and self._ahead == (step, deadline_ns) else None

    def sent(self) -> None:
        """What was `ready` has left, or is about to."""
        self._ahead = (-1, 0)

    def due(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """The same as `packed`, in a tenth of the time where this state was prepared."""
        if self._ahead != (step, deadline_ns):
            return self.packed(step, time, deadline_ns, budget_ns, outputs, applied)
        ready = self.message.payload.tobytes() if self._copy is None else self._copy
        later_ns = self._later_ns if deadline_ns else 0
        self.payload = (
            self.message.dated(ready, deadline_ns + later_ns, budget_ns + later_ns)
            if deadline_ns or budget_ns
            else ready
        )
        return self.payload
