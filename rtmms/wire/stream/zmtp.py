"""ZeroMQ's protocol on a stream (ZMTP 3.0, mechanism NULL; RFC 23): bytes in, messages out, without a socket.

The plant implements it itself where strangers can connect. libzmq stores the frames of a message that never ends. Up to
4.3.5 it ends the process if a connection breaks while it is full, with heartbeats among its messages. Here a peer
occupies at most one message of the permitted size, and no other resource.
"""

from __future__ import annotations

from collections.abc import Sequence

from rtmms.wire.protocol.port import MALFORMED, MESSAGE, OVERSIZE

_SIGNATURE = 0xFF
_LAST = 0x7F
_GREETING = 64
_NULL = b"NULL".ljust(20, b"\0")
_MORE = 1
_LONG = 2
_COMMAND = 4
_MAX_COMMAND_BYTES = 4096
_MAX_SKIPPED_RATIO = 4
"""Ratio of a message's size to the allowed one, beyond which the message is not even skipped."""
_MAX_IDLE_FRAMES = 32
"""Frames in a row that end no message. A peer that sends more of them at a time only costs time."""

READY = "ready"
"""Kind of the other side's READY, in addition to the kinds of messages."""

GREETING = bytes([_SIGNATURE]) + bytes(8) + bytes([_LAST, 3, 0]) + _NULL + bytes(32)
"""Greeting of version 3.0 with NULL, which precedes READY.

Version 3.0 has no heartbeats, and subscriptions are messages.
"""


class ZmtpError(Exception):
    """Violation of the protocol; the connection is to be closed.

    Parameters
    ----------
    text : str
        The error message.
    kind : str, default MALFORMED
        MALFORMED, or OVERSIZE for a frame that is far too long.
    """

    def __init__(self, text: str, kind: str = MALFORMED) -> None:
        super().__init__(text)
        self.kind = kind


def ready(kind: bytes, identity: bytes = b"") -> bytes:
    """Return the command READY.

    Parameters
    ----------
    kind : bytes
        Our socket type (ROUTER, PUB, DEALER).
    identity : bytes, default b''
        Our identity; empty for none.

    Returns
    -------
    bytes
        The framed command.
    """
    body = b"\x05READY\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind
    if identity:
        body += b"\x08Identity" + len(identity).to_bytes(4, "big") + identity
    return bytes([_COMMAND, len(body)]) + body


def message_of_frame(frame: bytes) -> bytes:
    """Return a message of one frame.

    Parameters
    ----------
    frame : bytes
        The packed message.

    Returns
    -------
    bytes
        The frame with its head.
    """
    return frame_head(len(frame)) + frame


def frame_head(size: int) -> bytes:
    r"""Return the head of a message of one frame.

    Parameters
    ----------
    size : int
        Bytes of the message.

    Returns
    -------
    bytes
        The head.

    Examples
    --------
    >>> frame_head(5)
    b'\x00\x05'
    """
    return bytes((0, size)) if size < 256 else b"\x02" + size.to_bytes(8, "big")


def message_of_frames(frames: Sequence[bytes]) -> bytes:
    """Return a message of several frames.

    Parameters
    ----------
    frames : Sequence[bytes]
        The frames.

    Returns
    -------
    bytes
        The frames with their heads.
    """
    parts = []
    for number, frame in enumerate(frames, 1):
        more = _MORE if number < len(frames) else 0
        if len(frame) < 256:
            parts += [bytes([more, len(frame)]), frame]
        else:
            parts += [bytes([more | _LONG]), len(frame).to_bytes(8, "big"), frame]
    return b"".join(parts)


class Reader:
    """Messages from the bytes of one connection.

    Parameters
    ----------
    welcome : frozenset[bytes]
        Socket types that may connect.
    cap : int
        Most bytes of a message. A longer one, or one of several frames, is skipped as it comes.

    Attributes
    ----------
    ready : bool
        Whether the handshake is done.
    identity : bytes
        Identity of the other side.
    """

    def __init__(self, welcome: frozenset[bytes], cap: int) -> None:
        self._welcome, self.cap = welcome, cap
        self._bytes = bytearray()
        self._greeted = self.ready = False
        self.identity = b""
        self._skip = 0  # bytes of a frame that is skipped
        self._fault = ""  # fault of the unfinished message: '', MALFORMED (frames), OVERSIZE
        self._within = False  # a message of several frames has begun
        self._idle = 0  # frames since the last message, or since the last bytes came

    def feed(self, data: bytes) -> None:
        """Accept received bytes.

        Parameters
        ----------
        data : bytes
            The bytes.
        """
        self._idle = 0
        if self._skip:
            passed = min(self._skip, len(data))
            self._skip -= passed
            data = data[passed:]
        self._bytes += data

    def at_once(self, data: bytes) -> bytes | None:
        """Return the frame if the data are one message of one frame, and nothing else is under way.

        Parameters
        ----------
        data : bytes
            The received bytes.

        Returns
        -------
        bytes | None
            None if the data are for `feed`.
        """
        if self._bytes or self._skip or self._within or not self.ready:
            return None
        size = len(data)
        if data[0] == 0 and size > 1 and size - 2 == data[1] <= self.cap:
            return data[2:]
        if data[0] == _LONG and size - 9 == int.from_bytes(data[1:9], "big") <= self.cap and size >= 9:
            return data[9:]
        return None

    @property
    def idle(self) -> bool:
        """Whether the handshake is done and nothing is under way, so that the next byte begins a frame."""
        return self.ready and not (self._bytes or self._skip or self._within)

    @property
    def held(self) -> int:
        """Number of stored bytes."""
        return len(self._bytes)

    def next(self) -> tuple[str, bytes] | None:
        """Return the next message.

        It looks at most at _MAX_IDLE_FRAMES + 1 frames.

        Returns
        -------
        tuple[str, bytes] | None
            (READY, b''), (MESSAGE, frame), (MALFORMED, b'') or (OVERSIZE, b''); None if more bytes are needed.

        Raises
        ------
        ZmtpError
            If the data are no ZMTP 3 with NULL, if a frame is far too long, or if too many frames end no message.
        """
        if not self._greeted and not self._greet():
            return None
        while not self._skip:
            frame = self._frame()
            if frame is None:
                return None
            flags, body = frame
            if flags & _COMMAND:
                if not self.ready:
                    self._shake(body)
                    return READY, b""
                self._pass_by()  # version 3.0 needs nothing of it
                continue
            if not self.ready:
                raise ZmtpError("a message before READY")
            if flags & _MORE or self._within:
                self._fault = self._fault or MALFORMED
            self._within = bool(flags & _MORE)
            if not self._within:
                fault, self._fault, self._idle = self._fault, "", 0
                return (fault, b"") if fault else (MESSAGE, body)
            self._pass_by()
        return None

    def _pass_by(self) -> None:
        """Count a frame that ended no message."""
        self._idle += 1
        if self._idle > _MAX_IDLE_FRAMES:
            raise ZmtpError("many frames without the end of a message")

    def _greet(self) -> bool:
        got = self._bytes
        size = len(got)
        strange = (size > 0 and got[0] != _SIGNATURE) or (size > 9 and got[9] != _LAST) or (size > 10 and got[10] < 3)
        if strange:
            raise ZmtpError("expected a greeting of ZMTP 3, got other bytes")
        if len(got) < _GREETING:
            return False
        if got[12:32] != _NULL:
            raise ZmtpError("expected the mechanism NULL, got another")
        del got[:_GREETING]
        self._greeted = True
        return True

    def _frame(self) -> tuple[int, bytes] | None:
        """Return flags and body of the next whole frame; the body is empty if it is skipped."""
        got = self._bytes
        if len(got) < 2:
            return None
        flags = got[0]
        if flags & ~(_MORE | _LONG | _COMMAND) or (flags & _COMMAND and flags & _MORE):
            raise ZmtpError("a frame with invalid flags")
        head = 9 if flags & _LONG else 2
        if len(got) < head:
            return None
        size = int.from_bytes(got[1:head], "big")
        if flags & _COMMAND:
            if size > _MAX_COMMAND_BYTES:
                raise ZmtpError("a command that is too long")
        elif size > self.cap or self._fault or self._within or flags & _MORE:
            return self._pass_over(flags, head, size)
        if len(got) < head + size:
            return None
        body = bytes(got[head : head + size])
        del got[: head + size]
        return flags, body

    def _pass_over(self, flags: int, head: int, size: int) -> tuple[int, bytes]:
        """Skip a frame, now and when the rest of it comes."""
        if size > _MAX_SKIPPED_RATIO * self.cap:
            raise ZmtpError("a frame that is far too long", OVERSIZE)
        if size > self.cap:
            self._fault = OVERSIZE
        here = min(len(self._bytes), head + size)
        self._skip = head + size - here
        del self._bytes[:here]
        return flags, b""

    def _shake(self, body: bytes) -> None:
        if body[:6] != b"\x05READY":
            raise ZmtpError("expected READY")
        properties = _properties(body[6:])
        self.identity = properties.get(b"identity", b"")
        kind = properties.get(b"socket-type", b"")
        if kind not in self._welcome:
            raise ZmtpError(f"expected a socket type that fits this endpoint, got {kind[:16]!r}")
        self.ready = True


def _properties(body: bytes) -> dict[bytes, bytes]:
    result: dict[bytes, bytes] = {}
    at = 0
    while at < len(body):
        name = body[at + 1 : at + 1 + body[at]]
        at += 1 + body[at]
        size = int.from_bytes(body[at : at + 4], "big")
        if len(body) < at + 4 + size:
            raise ZmtpError("a property that is cut off")
        result[name.lower()] = body[at + 4 : at + 4 + size]
        at += 4 + size
    return result
