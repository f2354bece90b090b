"""Interface of the transport: messages in and out of a socket.

Two packages implement it: rtmms.wire.stream in the caller's own thread, and rtmms.wire.libzmq with keys or within one
program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

MESSAGE, OVERSIZE, MALFORMED = "message", "oversize", "malformed"
"""Kinds of what comes: one whole frame, a message that was too long, and one of several frames or none.

The socket keeps nothing of an oversized message. The last two have the names of `messages.Reason`.
"""

SENT = 0
"""Result of a send: the message left."""
FULL = 1
"""Result of a send: the message was dropped, because the receiver does not read."""
GONE = 2
"""Result of a send: the message has no receiver."""

Received = tuple[bytes, str, bytes, bytes | None]
"""Sender's name on this socket, kind, frame, and key of the sender (None if it has none)."""


def _nobody(who: bytes) -> bool:
    return False


def _nothing(_: object) -> None: ...


@dataclass(frozen=True, slots=True)
class SocketCallbacks:
    """Callbacks of the owner of a socket to which others connect.

    Parameters
    ----------
    known : Callable[[bytes], bool], default _nobody
        Returns whether a peer is more than a stranger. A known peer stays when there are too many, and may send more at
        a time.
    entered : Callable[[bytes], None], default _nothing
        Called when a known peer has a new connection, on sockets where peers name themselves.
    refused : Callable[[str], None], default _nothing
        Called with one of `messages.Reason` when the socket refused something that `next` does not return.
    """

    known: Callable[[bytes], bool] = _nobody
    entered: Callable[[bytes], None] = _nothing
    refused: Callable[[str], None] = _nothing


class Messages(Protocol):
    """Socket for messages.

    Only `wait` waits. Instants are of CLOCK_MONOTONIC.
    """

    def next(self) -> Received | None:
        """Return the next message.

        Returns
        -------
        Received | None
            Sender, kind, frame and key of the message, or None if there is none.
        """

    def send(self, who: bytes, frame: bytes) -> int:
        """Send a message.

        Parameters
        ----------
        who : bytes
            Name of the receiver. For a publisher it is the topic, for a peer b''.
        frame : bytes
            The packed message.

        Returns
        -------
        int
            SENT, FULL or GONE.
        """

    def serve(self, until_ns: int) -> None:
        """Do work that a step need not wait for, in pieces.

        Such work is the admission of newcomers, handshakes, and messages that could not leave at once.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """

    def wait(self, until_ns: int) -> bool:
        """Wait for a message.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC at which the wait ends, ns.

        Returns
        -------
        bool
            Whether a message may have come.
        """

    def close(self, linger_ms: int = 0) -> None:
        """Close the socket.

        A second call does nothing.

        Parameters
        ----------
        linger_ms : int, default 0
            Time for sent messages to leave, ms.
        """


class Hosting(Messages, Protocol):
    """Bound socket of a plant."""

    def attend(self, guests: SocketCallbacks, cap: int) -> None:
        """Set the callbacks and the limit of the connections.

        Parameters
        ----------
        guests : SocketCallbacks
            Callbacks of the socket's owner.
        cap : int
            Most bytes of a message from a known peer.
        """


class DirectAccess(Protocol):
    """Access of compiled code to the connections of a socket, while nobody calls the socket."""

    @property
    def descriptors(self) -> tuple[int, int] | None:
        """An epoll of all connections and of an alarm, and the alarm's descriptor; None if there is none."""

    def arm_by(self, earliest_ns: int, instant_ns: int) -> None:
        """Set the alarm like `arm`, unless it is already set suitably.

        A suitable alarm rings at the instant itself, or at another one from the earliest instant on.

        Parameters
        ----------
        earliest_ns, instant_ns : int
            Instants of CLOCK_MONOTONIC, ns.
        """

    def line(self, who: bytes) -> int:
        """Return the descriptor of an idle connection.

        Parameters
        ----------
        who : bytes
            Name of the peer on this socket.

        Returns
        -------
        int
            -1 if data are under way in either direction, or if there is no connection.
        """

    def at_rest(self) -> bool:
        """Return whether `next` has returned all that was read from the kernel.

        Returns
        -------
        bool
            True if nothing is left.
        """

    def went(self, who: bytes, frame: bytes, sent: int) -> int:
        """Continue a frame that compiled code has sent in part.

        Parameters
        ----------
        who : bytes
            Name of the peer on this socket.
        frame : bytes
            The frame with its head.
        sent : int
            Bytes that left, or -errno.

        Returns
        -------
        int
            SENT as from `send`, or GONE.
        """

    def came(self, who: bytes, data: bytes) -> None:
        """Accept bytes that compiled code has read, for `next` to return.

        Parameters
        ----------
        who : bytes
            Name of the peer on this socket.
        data : bytes
            The bytes; b"" if the other end has closed.
        """


class Answering(Hosting, Protocol):
    """Bound socket whose peers are known individually.

    Attributes
    ----------
    threaded : bool
        Whether a thread is between the caller and the connected peers.
    """

    threaded: bool

    def arm(self, instant_ns: int) -> None:
        """Prepare, in the slack, for the next wait.

        Parameters
        ----------
        instant_ns : int
            Instant of CLOCK_MONOTONIC at which the next wait will end, ns.
        """

    def connected(self, who: bytes) -> bool | None:
        """Return whether a peer is connected, without sending anything.

        Parameters
        ----------
        who : bytes
            Name of the peer on this socket.

        Returns
        -------
        bool | None
            None if only a send shows it.
        """

    @property
    def direct(self) -> DirectAccess | None:
        """Access of compiled code to the connections; None if the transport has none."""
        return None

    def hold(self, who: bytes) -> None:
        """Stop reading a peer; do nothing if the transport reads all peers.

        `next` returns no more of its messages, and they do not end a `wait`.

        Parameters
        ----------
        who : bytes
            Name of the peer on this socket.
        """
        return

    def let_go(self, who: bytes) -> None:
        """Read a peer again.

        Parameters
        ----------
        who : bytes
            Name of the peer on this socket.
        """
        return

    def cut_off(self, who: bytes) -> bool:
        """Close a peer's connection soon.

        Parameters
        ----------
        who : bytes
            Name of the peer on this socket.

        Returns
        -------
        bool
            False if the transport cannot close one connection.
        """
        return False


class Publishing(Hosting, Protocol):
    """Bound socket that sends the same messages to all peers."""

    @property
    def wanted(self) -> bool:
        """Whether somebody may listen; if not, no message needs to be packed."""

    def hang_up(self) -> None:
        """Close all connections.

        Peers with access connect again.
        """


class ConnectedSocket(Messages, Protocol):
    """Connected socket of a peer, which can wait on it beside others."""

    @property
    def descriptor(self) -> int:
        """File descriptor to wait on.

        It changes when the connection breaks. It may signal a message only once.
        """

    def woken(self) -> None:
        """Record that the descriptor has signalled a message.

        The next `next` then need not ask for it.
        """

    def stands(self) -> None:
        """Record that the last message could be read, so that the connection is good."""

    def gone(self) -> bool:
        """Return whether the plant's end is closed for good.

        Call `serve` first, because it tries to connect again.

        Returns
        -------
        bool
            True if it is.
        """
