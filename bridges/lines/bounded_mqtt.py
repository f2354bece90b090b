"""An MQTT client that keeps no more than the beginning of a long message.

MQTT allows 256 MiB, which paho asks for in one piece and keeps until all of it is there.
"""

from __future__ import annotations

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

_PIECE = 65536


class BoundedClient(Client):
    """paho's, which reads in pieces. `on_message` has a message that is longer without most of what is behind.

    longest   bytes of a packet that are kept whole, topic and all; what is behind them counts as read
    """

    def __init__(self, client_id: str, longest: int) -> None:
        super().__init__(CallbackAPIVersion.VERSION2, client_id=client_id)
        self._longest = longest

    def _sock_recv(self, bufsize: int) -> bytes:
        """Of what paho asks for, all the rest of a packet, no more than a piece. It takes no piece of nothing for one
        that came, so one byte stands for each that is left out."""
        if bufsize <= _PIECE:
            return super()._sock_recv(bufsize)
        came = super()._sock_recv(_PIECE)
        packet = self._in_packet
        if came and len(packet["packet"]) >= self._longest:
            packet["to_process"] -= len(came) - 1
            return came[:1]
        return came
