"""Layout of the messages of each step: the state of a plant and the command of a claimant.

A plant and its peers derive the same layout from the welcome, and write msgpack of a fixed width: each integer as an
int64 (0xd3), each other number as a float64 (0xcb). So each field has one place in the message. Only the end of a state
varies: it contains the name of a policy. Messages of any other form go to the general reader (`decode`).

`rtmms.wire.kernels.step_message_layout` has the compiled reader and writer, `rtmms.wire.plant.state_message` and
`rtmms.wire.peer.step_messages` those in Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from msgpack import Packer  # type: ignore[attr-defined]

from rtmms.base.contract import APPLIED_POLICIES
from rtmms.plant.protocol import Channel

INT64 = b"\xd3"
FLOAT64 = b"\xcb"
FALSE = 0xC2
TRUE = 0xC3
NUMBER_BYTES = 8
"""Bytes of a number behind its type byte."""
STRIDE = 1 + NUMBER_BYTES
"""Bytes from one number of a list to the next."""

STATE_STEP, STATE_DEADLINE, STATE_BUDGET, APPLIED_SEQ, APPLIED_STEP, APPLIED_LATENESS = range(6)
"""Places of a state's integers among `StepLayout.integers`."""
COMMAND_SEQ, COMMAND_STEP, COMMAND_AGE, COMMAND_FRESH = range(4)
"""The same of a command; one without an age has the first two alone."""

_new_packer: Callable[[], Any] = Packer
_packer = _new_packer()
_ZERO = bytes(NUMBER_BYTES)


@dataclass(frozen=True)
class StepLayout:
    """Bytes of a message with zeros for its numbers, and the places of these numbers.

    Parameters
    ----------
    body : bytes
        The message up to its ending.
    integers, reals : tuple of int
        Offsets of the int64 and of the float64 numbers, which are big-endian. A state's first real is its time, the
        others are its outputs. A command's reals are its values.
    endings : tuple of bytes
        The ends that a message may have. A command has one, of no bytes; `ending` returns those of a state.
    outputs : dict of str to (int, int or None)
        Offset of the first number, and count of the list's numbers, of each output of a state. None for a scalar.
    """

    body: bytes
    integers: tuple[int, ...]
    reals: tuple[int, ...]
    endings: tuple[bytes, ...] = (b"",)
    outputs: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    @cached_property
    def mask(self) -> bytes:
        """0xff for each byte of the body that is the same in each message, 0 for the numbers."""
        mask = bytearray(b"\xff" * len(self.body))
        for at in (*self.integers, *self.reals):
            mask[at : at + NUMBER_BYTES] = _ZERO
        return bytes(mask)

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        """The bytes before each number of the body (with its type byte), and those after the last number."""
        begins = [0, *(at + NUMBER_BYTES for at in self._offsets)]
        ends = [*self._offsets, len(self.body)]
        return tuple(self.body[begin:end] for begin, end in zip(begins, ends, strict=True))

    @cached_property
    def _offsets(self) -> list[int]:
        """The places of all numbers, in the order of the message."""
        return sorted((*self.integers, *self.reals))

    @cached_property
    def _bits(self) -> tuple[int, int]:
        """Mask and body as one great number each."""
        return int.from_bytes(self.mask, "little"), int.from_bytes(self.body, "little")

    def matches(self, frame: bytes) -> bool:
        """Return whether a frame is a message of this layout.

        Parameters
        ----------
        frame : bytes
            The received bytes.

        Returns
        -------
        bool
            True if all bytes other than numbers agree.
        """
        end = len(self.body)
        mask, body = self._bits
        return (
            len(frame) >= end and frame[end:] in self.endings and int.from_bytes(frame[:end], "little") & mask == body
        )


class _Body:
    """Body of a message under construction."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.integers: list[int] = []
        self.reals: list[int] = []

    def text(self, *texts: str) -> None:
        for text in texts:
            self.bytes += _packer.pack(text)

    def map(self, count: int) -> None:
        self.bytes += _packer.pack_map_header(count)

    def integer(self, key: str) -> None:
        self.text(key)
        self.integers.append(len(self.bytes) + 1)
        self.bytes += INT64 + _ZERO

    def real(self, key: str, count: int | None = None) -> tuple[int, int | None]:
        """Append one number, or a list of `count` numbers, and return its place."""
        self.text(key)
        if count is not None:
            self.bytes += _packer.pack_array_header(count)
        numbers = 1 if count is None else count
        first = len(self.bytes) + 1
        self.reals += range(first, first + STRIDE * numbers, STRIDE)
        self.bytes += (FLOAT64 + _ZERO) * numbers
        return first, count


def state_layout(channels: Iterable[Channel], kind: str = "state") -> StepLayout:
    """Return the layout of states with these outputs, in this order.

    Parameters
    ----------
    channels : Iterable[Channel]
        The outputs that the welcome lists as `selected`.
    kind : str, default 'state'
        The message's `type`.

    Returns
    -------
    StepLayout
        The layout.
    """
    body, channels = _Body(), tuple(channels)
    body.map(7)
    body.text("type", kind)
    body.integer("step")
    body.real("timestamp")
    body.integer("deadline_ns")
    body.integer("budget_ns")
    body.text("outputs")
    body.map(len(channels))
    outputs = {c.name: body.real(c.name, math.prod(c.shape) if c.shape else None) for c in channels}
    body.text("applied")
    body.map(5)
    for key in ("seq", "step", "lateness_ns"):
        body.integer(key)
    body.text("policy")
    endings = tuple(ending(policy, clamped) for policy in APPLIED_POLICIES for clamped in (False, True))
    return StepLayout(bytes(body.bytes), tuple(body.integers), tuple(body.reals), endings, outputs)


def ending(policy: str, clamped: bool) -> bytes:
    """Return the end of a state.

    Parameters
    ----------
    policy : str
        Name of the applied policy.
    clamped : bool
        Whether a value was clamped.

    Returns
    -------
    bytes
        The packed bytes.
    """
    return bytes(_packer.pack(policy) + _packer.pack("clamped") + _packer.pack(clamped))


def command_layout(actuators: Sequence[str], *, aged: bool = False) -> StepLayout:
    """Return the layout of commands that name each of these actuators, in this order.

    Parameters
    ----------
    actuators : Sequence[str]
        The names that the welcome lists as `granted`.
    aged : bool, default False
        Whether the command has the age of its values.

    Returns
    -------
    StepLayout
        The layout.
    """
    body = _Body()
    keys = ("seq", "step", *(("age_ns", "fresh_ns") if aged else ()))
    body.map(2 + len(keys))
    body.text("type", "command")
    for key in keys:
        body.integer(key)
    body.text("values")
    body.map(len(actuators))
    for name in actuators:
        body.real(name)
    return StepLayout(bytes(body.bytes), tuple(body.integers), tuple(body.reals))
