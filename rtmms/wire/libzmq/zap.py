"""Who may come in: libzmq asks (ZeroMQ's ZAP, RFC 27), we answer in the loop's slack, without a thread.

Every context has an endpoint of its own for these questions. A handshake waits for its answer; nothing else does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import monotonic_ns

import zmq

from rtmms.wire.places.keys import ServerKeys, read_allowed

DOMAIN = b"rtmms"
_ENDPOINT = "inproc://zeromq.zap.01"
_VERSION = b"1.0"
_MOST = 4
_MOST_WAITING = 16
_WAIT_NS = 2_000_000_000
_LOOK_NS = 1_000_000_000
_NOW = int(zmq.NOBLOCK)


class Allowed:
    """The public keys that a plant lets in, read again when their folder has changed (looked at once a second).

    names    key (32 bytes) -> name of its file
    changes  counts the times they became others;  taken_away  at the last reading one was missing
    """

    def __init__(self, keys: ServerKeys) -> None:
        self._folder = keys.allowed
        self.names: dict[bytes, str] = {}
        self.changes = 0
        self.taken_away = False
        self._stamp: tuple[int, int] | None = None
        self._again = False
        self._looked_ns = 0
        self.look(monotonic_ns())

    def look(self, now_ns: int) -> None:
        """A call to stat, once a second, and files only when there is news. Called in the slack."""
        if self._stamp is not None and now_ns - self._looked_ns < _LOOK_NS:
            return
        self._looked_ns = now_ns
        before = self._stamp
        try:
            found = os.stat(self._folder)
            stamp = (max(found.st_mtime_ns, found.st_ctime_ns), found.st_ino)
        except OSError:  # no folder: nobody may come in
            stamp = (0, 0)
        if stamp != before or self._again:  # once more after a change: a file may have been there before its content
            self._again, self._stamp = stamp != before, stamp
            names = read_allowed(self._folder)
            if names is None:  # others can write there: nobody new comes in, nobody is sent away
                return
            self.changes += names != self.names
            self.taken_away = not set(self.names) <= set(names)
            self.names = names


class Gatekeeper:
    """Answers the handshakes of one context. `refused` counts the keys that were turned away."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], allowed: Allowed) -> None:
        self._allowed = allowed
        self.refused = 0
        self._socket: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(_ENDPOINT)

    def serve(self) -> None:
        """A few questions at most; never waits."""
        for _ in range(_MOST):
            if not asked(self._socket):
                return
            self._socket.send_multipart(self.answer(self._socket.recv_multipart(_NOW)), _NOW)

    def answer(self, frames: Sequence[bytes]) -> list[bytes]:
        """[version, request, domain, address, routing id, mechanism, key] -> the reply, 200 or 400."""
        request, key = read_question(frames)
        name = self._allowed.names.get(key) if key is not None else None
        if name is None:
            self.refused += 1
            return [_VERSION, request, b"400", b"this key is not in the plant's folder of clients", b"", b""]
        assert key is not None
        return [_VERSION, request, b"200", b"", key.hex().encode(), b""]

    def close(self) -> None:
        self._socket.close(linger=0)


class StepGate:
    """Without keys: who may connect to the step endpoint, and when. Nobody, while nobody is expected there.

    A claimant connects after its welcome, or when it had died and comes back. A connection at another time, or one more
    than are expected, waits for a while and is then refused: to the plant it is one question and no more.

    comes    (arrived_ns, now_ns) -> whether a connection that came then may be one that is expected
    strange  is told of each one that comes unexpected
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self.comes: Callable[[int, int], bool] = lambda arrived_ns, now_ns: False
        self.strange: Callable[[], None] = lambda: None
        self._waiting: list[tuple[int, list[bytes], bytes]] = []
        self._socket: zmq.Socket[bytes] = context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(_ENDPOINT)

    def serve(self, now_ns: int) -> None:
        """A few questions at most; never waits. The newest are let in first: a stranger may have waited for long."""
        new = len(self._waiting)
        for _ in range(_MOST):
            if not asked(self._socket):
                break
            frames = self._socket.recv_multipart(_NOW)
            at = frames.index(b"") + 1  # behind the envelope
            self._waiting.append((now_ns, frames[:at], read_question(frames[at:])[0]))
        for index in reversed(range(len(self._waiting))):
            if self.comes(self._waiting[index][0], now_ns):
                self._answer(index, b"200")
            elif index >= new:
                self.strange()
        while self._waiting and (len(self._waiting) > _MOST_WAITING or now_ns - self._waiting[0][0] > _WAIT_NS):
            self._answer(0, b"400")

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def _answer(self, index: int, status: bytes) -> None:
        _, envelope, request = self._waiting.pop(index)
        text = b"" if status == b"200" else b"nobody is expected here: say hello first"
        self._socket.send_multipart([*envelope, _VERSION, request, status, text, b"", b""], _NOW)

    def close(self) -> None:
        self._socket.close(linger=0)


def asked(socket: zmq.Socket[bytes]) -> bool:
    """Whether a question waits: a tenth of what a recv costs that finds none."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def read_question(frames: Sequence[bytes]) -> tuple[bytes, bytes | None]:
    """The request's id, and the key that asks to come in; None where the question is not one of CURVE in our domain."""
    request = frames[1] if len(frames) > 1 else b""
    if len(frames) != 7 or frames[0] != _VERSION or frames[2] != DOMAIN or frames[5] != b"CURVE":
        return request, None
    return request, frames[6] if len(frames[6]) == 32 else None


def guard(socket: zmq.Socket[bytes]) -> None:
    """Make a socket that will be bound ask its StepGate about each connection."""
    socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


def lock(socket: zmq.Socket[bytes], keys: ServerKeys) -> None:
    """Make a socket that will be bound the server of CURVE; without an answer from a Gatekeeper nobody comes in."""
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
    guard(socket)
