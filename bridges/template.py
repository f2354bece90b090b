"""The shortest bridge: one line of JSON out for each state, one line of JSON with actuator values in, over UDP.

Copy this file, change it, and register the class in your own pyproject.toml:

    [project.entry-points."rtmms.bridges"]
    mine = "my_package.my_module:Mine"

after which `rtmms bridge mine:port=9000` and `rtmms run manta --bridge mine` find it. docs/bridges.md has the rest.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass

import rtmms
from rtmms.bridging.untrusted import Fuzzed, fuzz, read_json, values_in


def parse(datagram: bytes) -> dict[str, float]:
    """{"values": {actuator: number}} -> the values; Refusal for anything else: a peer can send whatever it likes."""
    return values_in(read_json(datagram))


def fuzzed() -> Fuzzed:
    """What reads a stranger's bytes, for the fuzz tests (entry points rtmms.parsers), and a right sample."""
    return fuzz(parse), [b'{"values": {"left.front": 0.25}}']


@dataclass(kw_only=True)  # fields are parameters: key=value, or config=FILE.toml; claim, rate_hz, ... come along
class Template(rtmms.Bridge):
    """States out and commands in as JSON, one object a datagram, on the loopback address."""

    port: int = 9900  # where the peer listens; its commands come back to the port we send from

    def open(self, plant: rtmms.PlantInfo) -> None:
        """Once: plant.actuators and plant.outputs are channels with units and limits. Never wait for the peer."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(("127.0.0.1", 0))
        self.attend(self.socket, self.on_datagram)  # call me when there is something to read; closed at the end

    def on_state(self, state: rtmms.State) -> None:
        """Each state, or rate_hz of them: plain numbers and lists in state.outputs, SI units, z up, body x forward."""
        message = {"time": state.time, "step": state.step, **state.outputs}
        try:
            self.socket.sendto(json.dumps(message, allow_nan=False).encode(), ("127.0.0.1", self.port))
            self.counts.add("sent")
        except (OSError, ValueError):
            self.counts.add("dropped")  # nobody there, or too slow: its loss, never ours

    def on_datagram(self) -> None:
        """The peer sent something."""
        try:
            datagram = self.socket.recv(65536)
        except OSError:
            return
        with self.counts.message():  # received, or refused with the reason
            self.command(parse(datagram))  # for the next state that is to be answered, and until other values come
