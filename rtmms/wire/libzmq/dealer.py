"""A peer's sockets by ZeroMQ, read with as few calls as can be: each costs microseconds.

To ask ZeroMQ whether a message waits takes two system calls, and a recv that finds none takes four and an exception.
So the socket is asked only where the answer is not known already.
"""

from __future__ import annotations

from math import ceil
from time import monotonic_ns

import zmq

from rtmms.wire.libzmq.curve import ClientKeys
from rtmms.wire.libzmq.handshake import Handshake
from rtmms.wire.libzmq.presence import Presence
from rtmms.wire.libzmq.served import set_family
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.port import FULL, GONE, MESSAGE, SENT, Heard

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

    def door(self, endpoint: str) -> Dealer:
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
