"""Wires for lines of text, by an address: udp://HOST:PORT, tcp://HOST:PORT, or a serial device."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Protocol

import rtmms
from rtmms.base.override import override
from rtmms.bridging.bridge import Io
from rtmms.bridging.counters import Counters
from rtmms.bridging.untrusted import Admission

from .addresses import bind_udp, family_of, host_port, resolve_receiver
from .datagrams import datagrams
from .serial_line import SerialLine, checked_device
from .tcp_peer import TcpPeer

_MAX_READS = 4
"""Datagrams that one call reads."""
_MAX_READ_BYTES = 2048
"""Bytes that one call reads, because a state may wait meanwhile."""
_MAX_DATAGRAM_BYTES = 4096
_MAX_WAITING = 4
_BAUD = 4800  # NMEA 0183's

Received = Callable[[bytes, bool], None]
"""Function of bytes, and of whether they are whole messages (a datagram) or a piece of a stream."""


@dataclass(frozen=True)
class Address:
    """Address of a wire: udp://HOST:PORT, tcp://HOST:PORT (listened at), or DEVICE[@BAUD].

    Parameters
    ----------
    kind : Literal['udp', 'tcp', 'serial']
        Kind of the wire.
    host : str
        Host, or name of the device.
    port : int
        Port, or baud rate of a serial line.
    """

    kind: Literal["udp", "tcp", "serial"]
    host: str
    port: int
    """Port, or baud rate of a serial line."""

    @classmethod
    def from_text(cls, text: str, place: str) -> Address:
        """Return the address of a text.

        Parameters
        ----------
        text : str
            The text.
        place : str
            Source of the text, for the error.

        Returns
        -------
        Address
            The address.

        Raises
        ------
        ModelError
            If the text has another form.
        """
        scheme, mark, remaining = text.partition("://")
        if mark and scheme in ("udp", "tcp"):
            return cls("udp" if scheme == "udp" else "tcp", *host_port(remaining, place))
        if mark or (not text.startswith("/") and not text.upper().startswith("COM")):
            raise rtmms.ModelError(f"{place}: expected udp://HOST:PORT, tcp://HOST:PORT or DEVICE[@BAUD], got '{text}'")
        device, at, baud = text.partition("@")
        if at and not baud.isdecimal():
            raise rtmms.ModelError(f"{place}: expected DEVICE@BAUD, got '{text}'")
        checked_device(device, int(baud or _BAUD), place)
        return cls("serial", device, int(baud or _BAUD))

    def __str__(self) -> str:
        """Return the address as text."""
        return f"{self.host} at {self.port} baud" if self.kind == "serial" else f"{self.kind}://{self.host}:{self.port}"


class Wire(Protocol):
    """Interface of the three kinds of wires."""

    def send(self, message: bytes) -> None:
        """Send a message.

        Parameters
        ----------
        message : bytes
            The message.
        """

    def tick(self, now: float) -> None:
        """Handle time-outs.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """

    def close(self) -> None:
        """Close the wire."""


def open_wire(
    address: Address, io: Io, counts: Counters, *, received: Received | None, admission: Admission,
    gone: Callable[[str], None],
) -> Wire:  # fmt: skip
    """Return an open wire to an address.

    A udp address is where messages go; `UdpIn` receives them.

    Parameters
    ----------
    address : Address
        The address.
    io : Io
        Services of the bridge's loop.
    counts : Counters
        Counters of the bridge.
    received : Received | None
        Called with received bytes; None to ignore them.
    admission : Admission
        Admitted senders.
    gone : Callable[[str], None]
        Called with the reason when a client or a device is gone.

    Returns
    -------
    Wire
        The wire.
    """
    take = received or (lambda data, whole: None)
    if address.kind == "udp":
        return UdpOut(address, counts)
    if address.kind == "tcp":
        return TcpWire(address, io, counts, take, admission, gone)
    return SerialWire(address, io, counts, take, gone)


class UdpOut(Wire):
    """Wire to one UDP address.

    Parameters
    ----------
    address : Address
        The address.
    counts : Counters
        Counters of the bridge.

    Raises
    ------
    RtmmsError
        If it cannot send there.
    """

    def __init__(self, address: Address, counts: Counters) -> None:
        family, to = resolve_receiver(f"[{address.host}]:{address.port}", "to")
        self._socket, self._counts = socket.socket(family, socket.SOCK_DGRAM), counts
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            self._socket.connect(to)  # nothing is received from others, and of loopback alone where it goes to loopback
        except OSError as fault:
            self._socket.close()
            raise rtmms.RtmmsError(f"cannot send to {address}: {fault.strerror or fault}") from None

    @override
    def send(self, message: bytes) -> None:
        try:
            self._socket.send(message)
            self._counts.add("sent")
        except OSError:  # nobody there, or too slow
            self._counts.add("dropped")

    @override
    def tick(self, now: float) -> None:
        """Do nothing."""

    @override
    def close(self) -> None:
        self._socket.close()


class UdpIn:
    """Messages to a UDP address of ours, from admitted senders.

    Parameters
    ----------
    address : Address
        The address.
    io : Io
        Services of the bridge's loop.
    counts : Counters
        Counters of the bridge.
    received : Received
        Called with received bytes.
    admission : Admission
        Admitted senders.

    Attributes
    ----------
    port : int
        Bound port.
    """

    def __init__(self, address: Address, io: Io, counts: Counters, received: Received, admission: Admission) -> None:
        self._io, self._counts, self._received, self._admission = io, counts, received, admission
        self._socket = bind_udp(family_of(address.host), (address.host, address.port), str(address))
        self.port = int(self._socket.getsockname()[1])
        io.watch(self._socket, self._on_readable)

    def _on_readable(self) -> None:
        left = _MAX_READ_BYTES
        for data, sender in datagrams(self._socket, _MAX_DATAGRAM_BYTES + 1, _MAX_READS):
            left -= len(data)
            if not self._admission.admits(sender):
                self._counts.refuse("stranger")
            elif len(data) > _MAX_DATAGRAM_BYTES:
                self._counts.refuse("oversize")
            else:
                self._received(data, True)
            if left <= 0:
                return

    def close(self) -> None:
        """Close the socket."""
        self._io.unwatch(self._socket)
        self._socket.close()


class TcpWire(Wire):
    """Wire to a client that connects to us.

    Parameters
    ----------
    address : Address
        Where it listens.
    io : Io
        Services of the bridge's loop.
    counts : Counters
        Counters of the bridge.
    received : Received
        Called with received bytes.
    admission : Admission
        Admitted senders.
    gone : Callable[[str], None]
        Called with the reason when the client is gone.

    Attributes
    ----------
    port : int
        Bound port.
    """

    def __init__(
        self, address: Address, io: Io, counts: Counters, received: Received, admission: Admission,
        gone: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._peer = TcpPeer(
            io, counts, address.host, address.port, received=lambda data: received(data, False), came=lambda: None,
            gone=lambda: gone("the client is gone"), admission=admission,
        )  # fmt: skip
        self.port = int(self._peer.address[1])

    @override
    def send(self, message: bytes) -> None:
        self._peer.send(message)

    @override
    def tick(self, now: float) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Close the server and the connection."""
        self._peer.close()


class SerialWire(Wire):
    """Wire to a serial device, which may come and go.

    Parameters
    ----------
    address : Address
        The device.
    io : Io
        Services of the bridge's loop.
    counts : Counters
        Counters of the bridge.
    received : Received
        Called with received bytes.
    gone : Callable[[str], None]
        Called with the reason when the device is gone.
    """

    def __init__(
        self, address: Address, io: Io, counts: Counters, received: Received, gone: Callable[[str], None]
    ) -> None:
        self.line = SerialLine(
            io, counts, address.host, address.port, received=lambda data: received(data, False),
            came=lambda now: None, gone=gone, limit=_MAX_WAITING,
        )  # fmt: skip
        self.line.plug_in(monotonic())

    @override
    def send(self, message: bytes) -> None:
        self.line.put(message)

    @override
    def tick(self, now: float) -> None:
        """Search for the device, and send waiting messages."""
        self.line.tick(now)
        self.line.pump(now)

    def close(self) -> None:
        """Close the line."""
        self.line.close()
