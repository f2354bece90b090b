"""Shortest bridge: one line of JSON out for each state, one line of JSON with actuator values in, over UDP.

Copy this file, change it, and register the class in your own pyproject.toml:

    [project.entry-points."rtmms.bridges"]
    mine = "my_package.my_module:Mine"

Then `rtmms bridge mine:port=9000` and `rtmms run manta --bridge mine` find it. docs/bridges.md has the rest.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass

import rtmms
from rtmms.bridging.untrusted import Fuzzed, fuzz, read_json, values_in


def parse(datagram: bytes) -> dict[str, float]:
    """Return the values of {"values": {actuator: number}}; a peer can send anything.

    Parameters
    ----------
    datagram : bytes
        The received bytes.

    Returns
    -------
    dict[str, float]
        Values by name.

    Raises
    ------
    Refusal
        If the message is something else.
    """
    return values_in(read_json(datagram))


def fuzzed() -> Fuzzed:
    """Return the parser of a peer's bytes, for fuzz tests (entry points rtmms.parsers).

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    return fuzz(parse), [b'{"values": {"left.front": 0.25}}']


@dataclass(kw_only=True)  # fields are parameters: key=value, or config=FILE.toml; claim, rate_hz, ... come along
class Template(rtmms.Bridge):
    """States out and commands in as JSON, one object a datagram, on the loopback address.

    Parameters
    ----------
    port : int, default 9900
        Port of the peer; its commands arrive at the port from which the bridge sends.
    """

    port: int = 9900  # where the peer listens; its commands come back to the port we send from

    def open(self, plant: rtmms.PlantInfo) -> None:
        """Bind the socket, once; never wait for the peer.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            The plant: its actuators and outputs are channels with units and limits.
        """
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(("127.0.0.1", 0))
        self.attend(self.socket, self.on_datagram)  # call me when there is something to read; closed at the end

    def on_state(self, state: rtmms.State) -> None:
        """Send each state, or rate_hz of them.

        Parameters
        ----------
        state : rtmms.State
            The state: outputs are plain numbers and lists, SI units, z up, body x forward.
        """
        message = {"time": state.time, "step": state.step, **state.outputs}
        try:
            self.socket.sendto(json.dumps(message, allow_nan=False).encode(), ("127.0.0.1", self.port))
            self.counts.add("sent")
        except (OSError, ValueError):
            self.counts.add("dropped")  # nobody there, or too slow: its loss, never ours

    def on_datagram(self) -> None:
        """Read a datagram of the peer."""
        try:
            datagram = self.socket.recv(65536)
        except OSError:
            return
        with self.counts.message():  # received, or refused with the reason
            self.command(parse(datagram))  # for the next state that is to be answered, and until other values come
