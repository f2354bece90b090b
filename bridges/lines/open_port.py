"""Check whether a program listens on a UDP port, and for how long, by packets that the program ignores."""

from __future__ import annotations

import socket
from typing import Any


class OpenPort:
    """Check of a UDP port; the system refuses a packet to a port of this machine without a listener.

    A host that refuses nothing, as one behind a firewall does, counts as one with an open port.

    Parameters
    ----------
    family : int
        Address family.
    address : tuple[Any, ...]
        Address of the port, as `socket.connect` takes it.
    ignored : bytes
        Packet that the program ignores.

    Attributes
    ----------
    since : float or None
        Time of the first packet that was not refused, s of the clock of `ask`; None: the port is closed.
    """

    def __init__(self, family: int, address: tuple[Any, ...], ignored: bytes) -> None:
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._address, self._ignored, self._is_connected = address, ignored, False
        self.since: float | None = None

    def ask(self, now: float) -> bool:
        """Send a packet, and report whether the last one was refused.

        Parameters
        ----------
        now : float
            Time, s.

        Returns
        -------
        bool
            Whether the port seems to be open. A closed one seems so at every other call, because a refusal is reported
            with the next packet.
        """
        try:
            if not self._is_connected:  # the system reports refusals to connected sockets alone
                self._socket.connect(self._address)
                self._is_connected = True
            self._socket.send(self._ignored)
        except BlockingIOError:
            pass
        except OSError:
            self.since = None
            return False
        if self.since is None:
            self.since = now
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
