"""A peer's sockets by ZeroMQ, read with as few calls as can be: each costs microseconds.

To ask ZeroMQ whether a message waits takes two system calls, and a recv that finds none takes four and an exception.
So the socket is asked only where the answer is not known already.
"""

from __future__ import annotations

import errno
from math import ceil
from time import monotonic, monotonic_ns
from typing import Any

import zmq

from rtmms.wire.libzmq.key_pairs import ClientKeys
from rtmms.wire.libzmq.server_sockets import set_family
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.port import FULL, GONE, MESSAGE, SENT, Heard

_GRACE_S = 1.0


class Presence:
    """Follows one socket's connection. A short break is forgiven: a plant that sees us again sends at once."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        # an address of its own: that of an earlier monitor on the same socket stays in use for a while
        self._monitor: Any = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED, f"inproc://presence.{id(self)}")
        self._lost_at: float | None = None

    def stands(self) -> None:
        """A message has come. (On the path of every state: cheap.)"""
        self._lost_at = None

    def look(self) -> None:
        """What has happened to the connection?"""
        try:
            while True:
                self._monitor.recv_multipart(zmq.NOBLOCK)
                if self._lost_at is None:
                    self._lost_at = monotonic()
        except zmq.Again:
            pass

    def gone(self) -> bool:
        """When last looked at the connection had broken, and nothing has come since for longer than the grace."""
        return self._lost_at is not None and monotonic() - self._lost_at > _GRACE_S

    def close(self) -> None:
        """Before the socket and its context, or the context would wait for the monitor for ever."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)


_MONITORED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_CONNECTED
    | zmq.EVENT_CLOSED
)
_BROKEN = 2
_TIMED_OUT = frozenset((errno.EAGAIN, errno.ETIMEDOUT))
_MISMATCH = int(zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
_UNLISTED = (
    "the plant does not know this key: add its public file (NAME.key) to the folder 'clients' of the plant's keys"
)
_KEYS_WANTED = "it asks for keys and none were given: --keys DIR, or connect(..., keys=DIR); see `rtmms keys`"
_NO_KEYS_WANTED = "it asks for no keys, and some were given: leave --keys away, or serve with --keys"
_WRONG = "is server.key the one of this plant, and does the plant run with --keys? Or it has only just started"
MUTE = (
    "something listens there and does not answer: it may still be loading or compiling, and "
    "answers when it is ready: wait longer (timeout_s, --timeout)"
)
_STRANGE = "what answers there is no plant of rtmms"


class Handshake:
    """Follows the connection of one socket until it stands.

    keyed    the socket has keys
    refused  why it is over; '' while there is hope
    mute     something listens, and says nothing that it could be known by
    """

    def __init__(self, socket: zmq.Socket[bytes], keyed: bool) -> None:
        self._socket, self._keyed = socket, keyed
        self._monitor: Any = socket.get_monitor_socket(_MONITORED)
        self._closed = False
        self.refused = ""
        self.mute = False
        self._broken = 0

    def look(self) -> str:
        """Why it is over: ZeroMQ does not try again after such a refusal. '' while there is hope."""
        try:
            while not self.refused:
                told = self._monitor.recv_multipart(zmq.NOBLOCK)[0]
                self._note(int.from_bytes(told[:2], "little"), int.from_bytes(told[2:6], "little"))
        except zmq.Again:
            pass
        return self.refused

    def _note(self, event: int, value: int) -> None:
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self.refused = _UNLISTED
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            if value == _MISMATCH:
                self.refused = _NO_KEYS_WANTED if self._keyed else _KEYS_WANTED
            else:
                self.refused = _WRONG if self._keyed else _STRANGE
        elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL and value not in _TIMED_OUT:
            self._broken, self.mute = self._broken + 1, False
        elif event == zmq.EVENT_CONNECTED:
            self.mute = True  # until it breaks off
        else:  # it said nothing for long, went along with us, or is not there at all (closed): no sign of keys
            self._broken, self.mute = 0, event != zmq.EVENT_CLOSED

    def hint(self) -> str:
        """What may be wrong when time is up: connections that were broken off, again and again, say that somebody is
        there who wants none of ours."""
        if not self.look() and self._broken >= _BROKEN:
            return _WRONG if self._keyed else f"{_KEYS_WANTED}; or {_STRANGE}"
        return self.refused

    def close(self) -> None:
        """Before the socket and its context, or the context would wait for the monitor for ever. Twice does nothing."""
        if not self._closed:
            self._closed = True
            self._socket.disable_monitor()
            self._monitor.close(linger=0)


_NOW = int(zmq.NOBLOCK)
_EVENTS, _POLLIN = int(zmq.EVENTS), int(zmq.POLLIN)

Socket = zmq.Socket[bytes]


class Dealer:
    """Messages of one plant, on a DEALER or (telemetry) a SUB. ZeroMQ connects again by itself.

    handshake  why it is not let in; of a door alone, until it is
    """

    def __init__(self, socket: Socket, endpoint: str, handshake: Handshake | None = None) -> None:
        """The socket is made and not yet connected. NotConnectedError where it cannot be."""
        self._socket = socket
        self._get, self._recv, self._recv_all = socket.getsockopt, socket.recv, socket.recv_multipart
        self._single = socket.getsockopt(zmq.TYPE) == zmq.DEALER
        self._told = False
        self.descriptor = int(socket.getsockopt(zmq.FD))
        self.handshake = handshake
        self._presence = Presence(socket) if handshake is None else None
        try:
            socket.connect(endpoint)
        except BaseException as fault:
            self.close()  # or its context would wait for it for ever
            if isinstance(fault, zmq.ZMQError):
                raise NotConnectedError(f"cannot connect to '{endpoint}': {fault}") from None
            raise

    def welcomed(self, watch: bool) -> None:
        """The handshake is over.  watch: `gone` tells of this one, too"""
        if self.handshake is not None:
            self.handshake.close()
        if watch and self._presence is None:
            self._presence = Presence(self._socket)

    def woken(self) -> None:
        """See Dialled."""
        self._told = True

    def next(self) -> Heard | None:
        """See Messages."""
        if self._told:
            self._told = False
        elif not int(self._get(_EVENTS)) & _POLLIN:
            return None
        try:
            frame = self._recv(_NOW) if self._single else self._recv_all(_NOW)[-1]
        except zmq.Again:
            return None
        return b"", MESSAGE, frame, None

    def send(self, who: bytes, frame: bytes) -> int:
        """See Messages."""
        try:
            try:
                self._socket.send(frame, _NOW)
            except zmq.Again:
                self._get(_EVENTS)  # makes libzmq look at what the plant has read since
                self._socket.send(frame, _NOW)
        except zmq.Again:
            return FULL
        except zmq.ZMQError:
            return GONE  # a subscriber's socket cannot send
        return SENT

    def serve(self, until_ns: int) -> None:
        """Is the plant still there?"""
        if self._presence is not None:
            self._presence.look()

    def wait(self, until_ns: int) -> bool:
        """To a millisecond."""
        return bool(self._socket.poll(max(0, ceil((until_ns - monotonic_ns()) * 1e-6))))

    def stands(self) -> None:
        """See Dialled."""
        if self._presence is not None:
            self._presence.stands()

    def gone(self) -> bool:
        """See Dialled."""
        return self._presence is not None and self._presence.gone()

    def close(self, linger_ms: int = 0) -> None:
        """See Messages."""
        if self.handshake is not None:
            self.handshake.close()
        if self._presence is not None:
            self._presence.close()
        self._socket.close(linger=linger_ms)


class Dealers:
    """Makes the sockets of one peer, in a context of its own.

    keys    of a peer whose plant asks for some
    shared  the plant is in this program: in the program's own context
    """

    def __init__(self, keys: ClientKeys | None, shared: bool) -> None:
        self._keys, self._shared = keys, shared
        self._context: zmq.Context[Socket] = zmq.Context.instance() if shared else zmq.Context()

    def exchange(self, endpoint: str) -> Dealer:
        """For hello and requests; its handshake is followed until it is `welcomed`."""
        socket = self._socket(zmq.DEALER, endpoint)
        return Dealer(socket, endpoint, Handshake(socket, self._keys is not None))

    def data(self, endpoint: str, identity: bytes) -> Dealer:
        """For states and commands."""
        socket = self._socket(zmq.DEALER, endpoint)
        socket.setsockopt(zmq.ROUTING_ID, identity)
        return Dealer(socket, endpoint)

    def telemetry(self, endpoint: str, topic: bytes) -> Dealer:
        """For a topic, or all that begin with it."""
        socket = self._socket(zmq.SUB, endpoint)
        socket.setsockopt(zmq.SUBSCRIBE, topic)
        return Dealer(socket, endpoint)

    def close(self) -> None:
        """After the sockets."""
        if not self._shared:
            self._context.term()

    def _socket(self, kind: int, endpoint: str) -> Socket:
        socket: Socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, 32)
        socket.setsockopt(zmq.SNDHWM, 32)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 200)
        if kind == zmq.DEALER:
            socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing is kept for a plant that is not there
        set_family(socket, endpoint)
        if self._keys is not None:
            socket.setsockopt(zmq.CURVE_SERVERKEY, self._keys.server)
            socket.setsockopt(zmq.CURVE_PUBLICKEY, self._keys.public)
            socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
        return socket
