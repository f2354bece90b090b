"""A peer's sockets by libzmq. A call costs microseconds, so the code makes few.

To ask libzmq whether a message waits takes two system calls; a recv without a message takes four and an exception. So
the code asks only if it cannot know the answer.
"""

from __future__ import annotations

import errno
from math import ceil
from time import monotonic, monotonic_ns
from typing import Any

import zmq

from rtmms.base.override import override
from rtmms.wire.libzmq.key_pairs import ClientKeys
from rtmms.wire.libzmq.socket_options import EVENTS, NOW, POLLIN, Socket, set_family
from rtmms.wire.protocol.errors import NotConnectedError
from rtmms.wire.protocol.port import FULL, GONE, MESSAGE, SENT, Messages, Received

_GRACE_S = 1.0


class ConnectionMonitor:
    """Monitor of a socket's connection that tolerates short breaks.

    A plant sends again at once after a short break.

    Parameters
    ----------
    socket : zmq.Socket[bytes]
        The socket to monitor.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        # The address must be new: that of an earlier monitor of this socket remains in use for a while.
        self._monitor: Any = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED, f"inproc://presence.{id(self)}")
        self._lost_at: float | None = None

    def stands(self) -> None:
        """Record that a message has come.

        Each state calls this, so it is cheap.
        """
        self._lost_at = None

    def look(self) -> None:
        """Read the events of the connection."""
        try:
            while True:
                self._monitor.recv_multipart(zmq.NOBLOCK)
                if self._lost_at is None:
                    self._lost_at = monotonic()
        except zmq.Again:
            pass

    def gone(self) -> bool:
        """Return whether the connection broke and no message has come for longer than the grace period.

        Returns
        -------
        bool
            The result of the last `look`.
        """
        return self._lost_at is not None and monotonic() - self._lost_at > _GRACE_S

    def close(self) -> None:
        """Close the monitor before the socket and its context.

        Otherwise the context would wait for the monitor for ever.
        """
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
_MAX_BROKEN_HANDSHAKES = 2
"""Handshakes in a row that fail by a time-out or a broken connection, before an error is reported."""
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
    """Monitor of a socket's connection until it is established.

    Parameters
    ----------
    socket : zmq.Socket[bytes]
        The socket to monitor.
    keyed : bool
        Whether the socket has keys.

    Attributes
    ----------
    refused : str
        Reason of the refusal; empty while the connection may still succeed.
    mute : bool
        Whether a listener is there and sends nothing.
    """

    def __init__(self, socket: zmq.Socket[bytes], keyed: bool) -> None:
        self._socket, self._keyed = socket, keyed
        self._monitor: Any = socket.get_monitor_socket(_MONITORED)
        self._closed = False
        self.refused = ""
        self.mute = False
        self._broken = 0

    def look(self) -> str:
        """Return the reason of a refusal.

        ZeroMQ does not try again after a refusal.

        Returns
        -------
        str
            The reason; empty while the connection may still succeed.
        """
        try:
            while not self.refused:
                event = self._monitor.recv_multipart(zmq.NOBLOCK)[0]
                self._note(int.from_bytes(event[:2], "little"), int.from_bytes(event[2:6], "little"))
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
            self.mute = True  # until the connection breaks
        else:  # a time-out, a finished handshake or a closed port is no sign of keys
            self._broken, self.mute = 0, event != zmq.EVENT_CLOSED

    def hint(self) -> str:
        """Return a likely reason when the time is up.

        Repeatedly broken connections show that a listener is there that refuses ours.

        Returns
        -------
        str
            The reason; empty if none is known.
        """
        if not self.look() and self._broken >= _MAX_BROKEN_HANDSHAKES:
            return _WRONG if self._keyed else f"{_KEYS_WANTED}; or {_STRANGE}"
        return self.refused

    def close(self) -> None:
        """Close the monitor before the socket and its context.

        Otherwise the context would wait for the monitor for ever. A second call does nothing.
        """
        if not self._closed:
            self._closed = True
            self._socket.disable_monitor()
            self._monitor.close(linger=0)


class Dealer(Messages):
    """Connection to one plant by a DEALER or (for telemetry) a SUB socket.

    ZeroMQ connects again by itself.

    Parameters
    ----------
    socket : Socket
        A socket that is not connected yet.
    endpoint : str
        Address of the plant's socket.
    handshake : Handshake | None, optional
        Monitor of the connection until the plant admits the peer. None for a socket that needs none.

    Attributes
    ----------
    descriptor : int
        File descriptor to wait on.
    handshake : Handshake or None
        The same monitor.

    Raises
    ------
    NotConnectedError
        If the socket cannot connect to the address.
    """

    def __init__(self, socket: Socket, endpoint: str, handshake: Handshake | None = None) -> None:
        """Connect the socket; NotConnectedError if that is impossible."""
        self._socket = socket
        self._get, self._recv, self._recv_all = socket.getsockopt, socket.recv, socket.recv_multipart
        self._single = socket.getsockopt(zmq.TYPE) == zmq.DEALER
        self._notified = False
        self.descriptor = int(socket.getsockopt(zmq.FD))
        self.handshake = handshake
        self._presence = ConnectionMonitor(socket) if handshake is None else None
        try:
            socket.connect(endpoint)
        except BaseException as fault:
            self.close()  # otherwise its context would wait for it for ever
            if isinstance(fault, zmq.ZMQError):
                raise NotConnectedError(f"cannot connect to '{endpoint}': {fault}") from None
            raise

    def welcomed(self, watch: bool) -> None:
        """Stop monitoring the handshake, because the plant has admitted the peer.

        Parameters
        ----------
        watch : bool
            Whether `gone` reports the state of this connection from now on.
        """
        if self.handshake is not None:
            self.handshake.close()
        if watch and self._presence is None:
            self._presence = ConnectionMonitor(self._socket)

    def woken(self) -> None:
        """Record that the descriptor has signalled a message."""
        self._notified = True

    @override
    def next(self) -> Received | None:
        if self._notified:
            self._notified = False
        elif not int(self._get(EVENTS)) & POLLIN:
            return None
        try:
            frame = self._recv(NOW) if self._single else self._recv_all(NOW)[-1]
        except zmq.Again:
            return None
        return b"", MESSAGE, frame, None

    @override
    def send(self, who: bytes, frame: bytes) -> int:
        """Send a message to the plant; `who` is unused, because there is one plant."""
        try:
            try:
                self._socket.send(frame, NOW)
            except zmq.Again:
                self._get(EVENTS)  # makes libzmq check how much the plant has read
                self._socket.send(frame, NOW)
        except zmq.Again:
            return FULL
        except zmq.ZMQError:
            return GONE  # a subscriber's socket cannot send
        return SENT

    @override
    def serve(self, until_ns: int) -> None:
        """Check whether the plant is still connected."""
        if self._presence is not None:
            self._presence.look()

    @override
    def wait(self, until_ns: int) -> bool:
        """Wait for a message, with a resolution of a millisecond."""
        return bool(self._socket.poll(max(0, ceil((until_ns - monotonic_ns()) * 1e-6))))

    def stands(self) -> None:
        """Record that a message could be read."""
        if self._presence is not None:
            self._presence.stands()

    def gone(self) -> bool:
        """Return whether the connection has broken.

        Returns
        -------
        bool
            The result of the last `serve`.
        """
        return self._presence is not None and self._presence.gone()

    @override
    def close(self, linger_ms: int = 0) -> None:
        """Close the socket and its monitors."""
        if self.handshake is not None:
            self.handshake.close()
        if self._presence is not None:
            self._presence.close()
        self._socket.close(linger=linger_ms)


class Dealers:
    """Context of the sockets of one peer.

    Parameters
    ----------
    keys : ClientKeys | None
        Keys of the peer; None for a plant that requires none.
    shared : bool
        Whether the sockets use the program's own context, because the plant is in this program.
    """

    def __init__(self, keys: ClientKeys | None, shared: bool) -> None:
        self._keys, self._shared = keys, shared
        self._context: zmq.Context[Socket] = zmq.Context.instance() if shared else zmq.Context()

    def exchange(self, endpoint: str) -> Dealer:
        """Connect a socket for hello and requests.

        Parameters
        ----------
        endpoint : str
            The plant's exchange endpoint.

        Returns
        -------
        Dealer
            The connection. It monitors its handshake until `welcomed`.

        Raises
        ------
        NotConnectedError
            If the socket cannot connect to the address.
        """
        socket = self._socket(zmq.DEALER, endpoint)
        return Dealer(socket, endpoint, Handshake(socket, self._keys is not None))

    def data(self, endpoint: str, identity: bytes) -> Dealer:
        """Connect a socket for states and commands.

        Parameters
        ----------
        endpoint : str
            The plant's step endpoint.
        identity : bytes
            The identity of 16 bytes that the welcome contains.

        Returns
        -------
        Dealer
            The connection.

        Raises
        ------
        NotConnectedError
            If the socket cannot connect to the address.
        """
        socket = self._socket(zmq.DEALER, endpoint)
        socket.setsockopt(zmq.ROUTING_ID, identity)
        return Dealer(socket, endpoint)

    def telemetry(self, endpoint: str, topic: bytes) -> Dealer:
        """Connect a socket for telemetry.

        Parameters
        ----------
        endpoint : str
            The plant's telemetry endpoint.
        topic : bytes
            First bytes of the topics to subscribe to.

        Returns
        -------
        Dealer
            The connection.

        Raises
        ------
        NotConnectedError
            If the socket cannot connect to the address.
        """
        socket = self._socket(zmq.SUB, endpoint)
        socket.setsockopt(zmq.SUBSCRIBE, topic)
        return Dealer(socket, endpoint)

    def close(self) -> None:
        """Close the context, after the sockets."""
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
            socket.setsockopt(zmq.IMMEDIATE, 1)  # do not queue messages for a plant that does not exist
        set_family(socket, endpoint)
        if self._keys is not None:
            socket.setsockopt(zmq.CURVE_SERVERKEY, self._keys.server)
            socket.setsockopt(zmq.CURVE_PUBLICKEY, self._keys.public)
            socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
        return socket
