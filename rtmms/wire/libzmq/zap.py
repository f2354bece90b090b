"""Who may come in: libzmq asks (ZeroMQ's ZAP, RFC 27), we answer in the loop's slack, without a thread.

Every context has an endpoint of its own for these questions. A handshake waits for its answer; nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import zmq

DOMAIN = b"rtmms"
_ENDPOINT = "inproc://zeromq.zap.01"
_VERSION = b"1.0"
_MOST = 4
_NOW = int(zmq.NOBLOCK)


class Gatekeeper:
    """Answers the handshakes of one context.

    name_of  the name of a key (32 bytes) that may come in; None where it may not
    refused  counts the keys that were turned away
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], name_of: Callable[[bytes], str | None]) -> None:
        self._name_of = name_of
        self.refused = 0
        self._socket: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(_ENDPOINT)

    def serve(self) -> None:
        """A few questions at most; never waits."""
        for _ in range(_MOST):
            if not _question_waits(self._socket):
                return
            self._socket.send_multipart(self.answer(self._socket.recv_multipart(_NOW)), _NOW)

    def answer(self, frames: Sequence[bytes]) -> list[bytes]:
        """[version, request, domain, address, routing id, mechanism, key] -> the reply, 200 or 400."""
        request, key = read_question(frames)
        name = self._name_of(key) if key is not None else None
        if name is None:
            self.refused += 1
            return [_VERSION, request, b"400", b"this key is not in the plant's folder of clients", b"", b""]
        assert key is not None
        return [_VERSION, request, b"200", b"", key.hex().encode(), b""]

    def close(self) -> None:
        self._socket.close(linger=0)


def _question_waits(socket: zmq.Socket[bytes]) -> bool:
    """Whether a question waits: a tenth of what a recv costs that finds none."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def read_question(frames: Sequence[bytes]) -> tuple[bytes, bytes | None]:
    """The request's id, and the key that asks to come in; None where the question is not one of CURVE in our domain."""
    request = frames[1] if len(frames) > 1 else b""
    if len(frames) != 7 or frames[0] != _VERSION or frames[2] != DOMAIN or frames[5] != b"CURVE":
        return request, None
    return request, frames[6] if len(frames[6]) == 32 else None


def lock(socket: zmq.Socket[bytes], secret: bytes) -> None:
    """Make a socket that will be bound the server of CURVE; without an answer from a Gatekeeper nobody comes in."""
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
    socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
