"""Selection of a peer's outputs, and the state messages with these outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import TRUTH, Applied
from rtmms.base.errors import UnknownNameError
from rtmms.base.renamed_outputs import present_output
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.messages import Reason, Refusal
from rtmms.wire.protocol.step_message_layout import (
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

MAX_STRANGERS_WORK = 150
"""Most comparisons, some 0.3 us each, for all patterns of a peer without the token.

The names of a display cost one each. A pattern of letters and stars costs one or two for each output.
"""
MAX_PEERS_WORK = 1 << 18
"""Comparisons for all patterns of a peer with the token."""

_WILD = frozenset("*?[")
Run = str | list[str]


class PatternMatcher:
    """Matching of patterns against names, with limited work.

    Parameters
    ----------
    work : int, default MAX_PEERS_WORK
        Most comparisons; Refused is raised when they are used up.

    Notes
    -----
    fnmatch makes a regular expression of each pattern first. This takes 44 us for `left.*`, the whole allowance of a
    stranger, and 640 us for 128 letters and stars. This class takes 6 and 38 us.
    """

    def __init__(self, work: int = MAX_PEERS_WORK) -> None:
        self.work = work

    def matched(self, pattern: str, names: Collection[str]) -> list[str]:
        """Return the names that a pattern matches, in their order.

        Parameters
        ----------
        pattern : str
            Text with `*`, `?`, `[a-c]` and `[!a-c]` as in fnmatch.
        names : Collection[str]
            The names.

        Returns
        -------
        list[str]
            The matching names.

        Raises
        ------
        Refusal
            If the allowed work is used up.
        """
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
        """Return whether the runs between the stars occur in a name, in their order.

        The first and the last run are at the ends. Each other run is placed as far left as possible, so that no earlier
        placement need be changed.
        """
        self._spend(1)
        first, last = runs[0], runs[-1]
        at, end = len(first), len(name) - len(last)
        if len(runs) == 1:
            return end == 0 and self._fits(first, name, 0)
        if at > end or not self._fits(first, name, 0) or not self._fits(last, name, end):
            return False
        for run in runs[1:-1]:
            at = self._find_run(run, name, at, end)
            if at < 0:
                return False
            at += len(run)
        return True

    def _find_run(self, run: Run, name: str, at: int, end: int) -> int:
        """Return the first place of a run between two positions; -1 for none."""
        if isinstance(run, str):
            self._spend(1)
            return name.find(run, at, end)
        return next((here for here in range(at, end - len(run) + 1) if self._fits(run, name, here)), -1)

    def _fits(self, run: Run, name: str, at: int) -> bool:
        """Return whether a run is at a place of a name that is long enough.

        Letters are compared all at once, wildcards one by one.
        """
        if isinstance(run, str):
            return name.startswith(run, at)
        for k, part in enumerate(run, at):
            self._spend(len(part))
            if not _matches_letter(part, name[k]):
                return False
        return True

    def _spend(self, work: int) -> None:
        self.work -= work
        if self.work < 0:
            raise Refusal(
                Reason.WRONG_TYPE, "hello: these patterns take too long to match; use fewer patterns, or names"
            )


def _runs(pattern: str) -> list[Run]:
    """Return the runs between the stars: a text, or a list of parts with wildcards."""
    runs: list[list[str]] = [[]]
    for part in _parts(pattern):
        if part == "*":
            runs.append([])
        else:
            runs[-1].append(part)
    return ["".join(run) if _WILD.isdisjoint("".join(run)) else run for run in runs]


def _parts(pattern: str) -> Iterable[str]:
    """Yield the parts of a pattern: 'a?[b-d]*' has 'a', '?', '[b-d]', '*'.

    Adjacent stars are one. A bracket that is not closed is a letter.
    """
    at, last = 0, ""
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            first = at + 2 if pattern[at + 1 : at + 2] == "!" else at + 1
            result = pattern.find("]", first + 1)
            end = result + 1 if result > 0 else end
        part = pattern[at:end]
        if not part == last == "*":
            yield part
        at, last = end, part


def _matches_letter(part: str, letter: str) -> bool:
    if len(part) == 1:
        return part in ("?", letter)
    negated = part[1] == "!"
    return _among(part[1 + negated : -1], letter) is not negated


def _among(letters: str, letter: str) -> bool:
    """Return whether a letter is in a set such as 'a-cx': a, b, c and x."""
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


MIN_FIELD_DIMENSIONS = 3
"""Dimensions from which an output is a field, which is sent only if a peer names it."""

NOTHING = "none"


def select(outputs: Sequence[Channel], patterns: Sequence[str], work: int = MAX_PEERS_WORK) -> tuple[Channel, ...]:
    """Return the outputs that match patterns, in the plant's order.

    Without patterns these are all but two groups. Fields, such as the joints of every chain of every fin, are left out.
    So is the truth that sensors hide; only a pattern that begins with its word matches it. NOTHING alone selects none.

    Parameters
    ----------
    outputs : Sequence[Channel]
        The plant's outputs.
    patterns : Sequence[str]
        The patterns.
    work : int, default MAX_PEERS_WORK
        Most comparisons, see `PatternMatcher`.

    Returns
    -------
    tuple[Channel, ...]
        The selected outputs.

    Raises
    ------
    Refusal
        If a pattern names no output, or takes too long.
    """
    if tuple(patterns) == (NOTHING,):
        return ()
    if not patterns:
        return tuple(
            channel
            for channel in outputs
            if len(channel.shape) < MIN_FIELD_DIMENSIONS and not channel.name.startswith(TRUTH)
        )
    names = dict.fromkeys(channel.name for channel in outputs)
    wanted: set[str] = set()
    matching = PatternMatcher(work)
    for pattern in dict.fromkeys(patterns):
        result = matching.matched(present_output(pattern, names), names)
        if not pattern.startswith(TRUTH):
            result = [name for name in result if not name.startswith(TRUTH)]
        if not result:
            # the search for similar names takes long: only for peers with the token
            why = (
                f"unknown output '{pattern}'"
                if work < MAX_PEERS_WORK
                else str(UnknownNameError("output", pattern, names))
            )
            if TRUTH + pattern in names:
                why += (
                    f". This plant has sensors: its true values are {TRUTH}NAME, and controllers that read true values "
                    "run without --sensors"
                )
            raise Refusal(Reason.UNKNOWN_OUTPUT, f"hello: outputs: {why}")
        wanted.update(result)
    return tuple(channel for channel in outputs if channel.name in wanted)


_HEAD_BYTES = 9
"""Bytes before the message for the head of its frame."""
_INTEGER = Struct(">q")


class StateMessage:
    """State in memory; Python or compiled code writes its numbers at the places of the layout.

    Parameters
    ----------
    layout : StepLayout
        Layout of the message.
    channels : Sequence[Channel]
        Outputs of the message, in order.
    prefix : str, default ''
        First characters of the plant's names, which the message leaves out.

    Attributes
    ----------
    names : tuple of str
        The plant's names of the outputs, in the order of the message.
    address, bytes : int
        Address and bytes of the frame, its head included.
    begin, size : int
        Offset of the message in `buffer`, and its bytes.
    """

    def __init__(self, layout: StepLayout, channels: Sequence[Channel], prefix: str = "") -> None:
        """Reserve the memory and write all that does not change."""
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
        """The message with the head of its frame, as it is sent."""
        end = self.begin + self.size
        return self.buffer[end - self.bytes : end].tobytes()

    @property
    def budget_at(self) -> int:
        """Offset of the budget's eight bytes in `frame`."""
        return self.bytes - self.size + self.layout.integers[STATE_BUDGET]

    def set_policy(self, policy: str) -> None:
        """Write the end of the message, and the head of the frame, whose length depends on it.

        Parameters
        ----------
        policy : str
            Name of the applied policy; empty for none.
        """
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
        """Write all numbers and the ending.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        outputs : Mapping[str, Any]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
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
        """Return a state of this layout with another deadline and budget.

        Parameters
        ----------
        payload : bytes
            The state.
        deadline_ns : int
            New deadline, CLOCK_MONOTONIC, ns.
        budget_ns : int
            New budget, ns.

        Returns
        -------
        bytes
            The new message.
        """
        at, behind = self.layout.integers[STATE_DEADLINE], self.layout.integers[STATE_BUDGET] + NUMBER_BYTES
        between = payload[at + NUMBER_BYTES : behind - NUMBER_BYTES]
        return b"".join((payload[:at], _INTEGER.pack(deadline_ns), between, _INTEGER.pack(budget_ns), payload[behind:]))


class Selection:
    """States with a fixed set of outputs, in one message whose memory is reused.

    Parameters
    ----------
    channels : Sequence[Channel]
        The outputs.
    kind : str, default 'state'
        The message's `type`.
    later_ns : int, default 0
        Time by which the deadline is later than the state's own, ns, for commands of a later step.
    prefix : str, default ''
        First characters of the plant's names, which the message leaves out.

    Attributes
    ----------
    names : tuple of str
        Names of the outputs in the message.
    message : StateMessage
        The newest state, or the prepared one.
    payload : bytes
        The newest packed state.
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
        """Time by which the deadline is later than the state's own, ns."""
        return self._later_ns

    def packed(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """Return a state message.

        `outputs` may have more than this selection, each an array of the channel's shape.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        outputs : Mapping[str, Any]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.

        Returns
        -------
        bytes
            The packed message.
        """
        if self._ahead[0] >= 0 and self._copy is None:  # the prepared state is not sent yet
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
        """Pack a state ahead of its instant, except the budget, which `due` adds.

        Parameters
        ----------
        step : int
            Index of the step; -1 discards the prepared state.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        outputs : Mapping[str, Any]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
        if step < 0:
            self._ahead = (-1, 0)
            return
        self._write(step, time, deadline_ns, 0, outputs, applied)
        self.prepared(step, deadline_ns)

    def prepared(self, step: int, deadline_ns: int) -> None:
        """Record that `message` is the state of a step.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Its deadline, CLOCK_MONOTONIC, ns.
        """
        self._ahead, self._copy = (step, deadline_ns), None

    def ready(self, step: int, deadline_ns: int) -> StateMessage | None:
        """Return the prepared state of a step, to be sent once from its memory.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Its deadline, CLOCK_MONOTONIC, ns.

        Returns
        -------
        StateMessage | None
            None if the state is not prepared.
        """
        return self.message if self._copy is None and self._ahead == (step, deadline_ns) else None

    def sent(self) -> None:
        """Record that the state of `ready` has left, or is about to."""
        self._ahead = (-1, 0)

    def due(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Any], applied: Applied
    ) -> bytes:
        """Return a state message, in a tenth of the time of `packed` if the state was prepared.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        outputs : Mapping[str, Any]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.

        Returns
        -------
        bytes
            The packed message.
        """
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
