"""The one port of transport: messages in and out of a socket, whoever carries them.

Two rooms implement it: stream, in the caller's own thread, and libzmq, with keys or within one program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

MESSAGE, OVERSIZE, MALFORMED = "message", "oversize", "malformed"
"""Kinds of what comes: one whole frame; one that was too long, of which nothing is kept; several frames, or none. Those
that are no message are named as the reasons for refusing them, see messages.Reason."""

SENT, FULL, GONE = 0, 1, 2
"""What became of a message: on its way; left out, as the other side does not read; nobody is there."""

Received = tuple[bytes, str, bytes, bytes | None]
"""(who, kind, frame, key): by what the sender is known here, and the key it came in with (None: it has none)."""


def _nobody(who: bytes) -> bool:
    return False


def _nothing(_: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Guests:
    """What a socket that others connect to asks of its owner, and reports to it.

    known    whether this one is more than a stranger: it stays when there are too many, and may send more at a time
    entered  a known one has a new connection (where it names itself when it connects)
    refused  something was refused that `next` does not return; why, one of messages.Reason
    """

    known: Callable[[bytes], bool] = _nobody
    entered: Callable[[bytes], None] = _nothing
    refused: Callable[[str], None] = _nothing


class Messages(Protocol):
    """A socket. Nothing here waits but `wait`; instants are of CLOCK_MONOTONIC."""

    def next(self) -> Received | None:
        """The next message; None when there is none."""

    def send(self, who: bytes, frame: bytes) -> int:
        """SENT, FULL or GONE. A publisher's `who` is the topic; a peer has but one to talk to, b''."""

    def serve(self, until_ns: int) -> None:
        """What need not be done within a step, in pieces: newcomers, handshakes, what could not leave at once."""

    def wait(self, until_ns: int) -> bool:
        """Until something may have come (True), or the clock reads until_ns."""

    def close(self, linger_ms: int = 0) -> None:
        """What was sent may leave within linger_ms. Twice does nothing."""


class Hosting(Messages, Protocol):
    """A bound socket of a plant."""

    def attend(self, guests: Guests, cap: int) -> None:
        """Whose guests come here, and how many bytes a message of a known one may have."""


class Answering(Hosting, Protocol):
    """One whose peers are known one by one.

    threaded  a thread stands between the caller and those who are connected
    """

    threaded: bool

    def arm(self, instant_ns: int) -> None:
        """In the slack: the next `wait` will be until then."""

    def connected(self, who: bytes) -> bool | None:
        """As far as is known without sending something; None where only sending shows it."""


@runtime_checkable
class Bypassed(Protocol):
    """An Answering whose connections compiled code may read and write past it, while nobody calls it."""

    @property
    def descriptors(self) -> tuple[int, int] | None:
        """An epoll of all connections within the step and of an alarm, and the alarm's; None where there is none."""

    def arm_by(self, earliest_ns: int, instant_ns: int) -> None:
        """As `arm`, unless the alarm rings at the instant already, or at some other from the earliest on."""

    def line(self, who: bytes) -> int:
        """Descriptor of a connection on which nothing is under way, either way; -1 where it is, or there is none."""

    def at_rest(self) -> bool:
        """`next` has returned all that was taken from the kernel."""

    def went(self, who: bytes, frame: bytes, sent: int) -> int:
        """Of a frame with its head, only so many bytes left, or -errno: SENT, as `send` would have it, or GONE."""

    def came(self, who: bytes, data: bytes) -> None:
        """What was read, for `next` to return; b"": the other end has gone."""


@runtime_checkable
class Holding(Protocol):
    """An Answering that can leave one of its peers unread."""

    def hold(self, who: bytes) -> None:
        """`next` returns nothing more of this one, and `wait` does not end because of it."""

    def let_go(self, who: bytes) -> None:
        """As before."""

    def cut_off(self, who: bytes) -> None:
        """Its connection is closed, by and by."""


class Publishing(Hosting, Protocol):
    """One that answers all alike."""

    @property
    def wanted(self) -> bool:
        """Somebody may listen: where it is known that nobody does, nothing needs to be packed."""

    def hang_up(self) -> None:
        """On all that are connected: who may come in comes again."""


class Dialled(Messages, Protocol):
    """A socket that a peer has connected, to be waited on beside others."""

    @property
    def descriptor(self) -> int:
        """To wait on. Another one after the connection broke. It may signal news only once."""

    def woken(self) -> None:
        """The descriptor has just signalled that something came: the next `next` need not ask."""

    def stands(self) -> None:
        """What came last could be read: the connection is a good one."""

    def gone(self) -> bool:
        """The plant's end is closed, and stays so. `serve` first: it tries a connection that broke again."""
