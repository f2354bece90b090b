"""MQTT client that stores only the beginning of a long message.

MQTT allows 256 MiB, which paho requests in one piece and stores until all of it is there.
"""

from __future__ import annotations

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

_PIECE_BYTES = 65536


class BoundedClient(Client):
    """Client of paho that reads in pieces; `on_message` gets a long message without most of its end.

    Parameters
    ----------
    client_id : str
        Name at the broker; empty: the broker chooses.
    longest : int
        Bytes of a packet that are stored, with its topic; the rest counts as read.
    """

    def __init__(self, client_id: str, longest: int) -> None:
        super().__init__(CallbackAPIVersion.VERSION2, client_id=client_id)
        self._longest = longest

    def _sock_recv(self, bufsize: int) -> bytes:
        """Read no more than a piece of the rest of a packet.

        paho does not accept an empty piece as a received one, so one byte replaces each piece that is left out.
        """
        if bufsize <= _PIECE_BYTES:
            return super()._sock_recv(bufsize)
        came = super()._sock_recv(_PIECE_BYTES)
        packet = self._in_packet
        if came and len(packet["packet"]) >= self._longest:
            packet["to_process"] -= len(came) - 1
            return came[:1]
        return came
