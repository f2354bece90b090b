"""A peer of a bridge in a process of its own, that sends a value for left.front each so many seconds by its own clock.

    python steady_peer.py KIND PLACE PERIOD_S

It loads its libraries, waits for a line on standard input, and then begins. SIGUSR1 makes it four times as slow. It
reads no state, but what it must read to know where to send.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SLOW = 8.0
LIBRARIES = {
    "mavlink": ("pymavlink.dialects.v20.common", "rtmms_bridges.autopilot.setpoints"), "can": ("can",),
    "serial": ("rtmms_bridges.lines.framing",), "mqtt": ("paho.mqtt.client",), "zenoh": ("zenoh",),
}  # fmt: skip
"""They take seconds to load on a busy machine."""
Send = Callable[[float], Any]


def udp(place: str) -> Send:
    peer, to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", int(place))
    return lambda value: peer.sendto(json.dumps({"values": {"left.front": value}}).encode(), to)


def nmea(place: str) -> Send:
    peer, to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", int(place))

    def send(value: float) -> None:
        body, total = f"PRTMS,{value:.3f}", 0
        for letter in body.encode():
            total ^= letter
        peer.sendto(f"${body}*{total:02X}\r\n".encode(), to)

    return send


def mavlink(place: str) -> Send:
    """Its port; it sends to where the vehicle's messages come from."""
    from pymavlink.dialects.v20 import common as of

    from rtmms_bridges.autopilot.mavframes import Writer
    from rtmms_bridges.autopilot.setpoints import SET_ACTUATOR

    peer, writer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), Writer(255, 190)
    peer.bind(("127.0.0.1", int(place)))
    _, to = peer.recvfrom(65536)
    remaining = [float("nan")] * 5

    def send(value: float) -> None:
        peer.sendto(writer.pack(of.MAVLink_command_long_message(1, 1, SET_ACTUATOR, 0, value, *remaining, 0)), to)

    return send


def serial(place: str) -> Send:
    """The descriptor of the other end of a pseudo-terminal."""
    from rtmms_bridges.lines.framing import encode

    line = int(place)
    os.set_blocking(line, False)

    def send(value: float) -> None:
        with suppress(BlockingIOError):
            while os.read(line, 65536):
                pass
        os.write(line, b"\0" + encode(struct.pack("<d", value)))

    return send


def can(place: str) -> Send:
    """GROUP:PORT of a multicast bus."""
    import can as library

    group, _, port = place.partition(":")
    bus = library.Bus(interface="udp_multicast", channel=group, port=int(port), hop_limit=0)

    def send(value: float) -> None:
        bus.send(library.Message(arbitration_id=257, data=struct.pack("<d", value), is_extended_id=False))

    return send


def mqtt(place: str) -> Send:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", int(place))
    client.loop_start()
    return lambda value: client.publish("bench/command", json.dumps({"values": {"left.front": value}}))


def zenoh(place: str) -> Send:
    import zenoh as library

    config = library.Config()
    for key, value in (
        ("mode", "client"), ("connect/endpoints", [f"tcp/127.0.0.1:{place}"]), ("connect/timeout_ms", 60_000),
        ("scouting/multicast/enabled", False),
    ):  # fmt: skip
        config.insert_json5(key, json.dumps(value))
    session = library.open(config)
    return lambda value: session.put("bench/command", json.dumps({"values": {"left.front": value}}))


def main(kind: str, place: str, period_s: str) -> None:
    opened: dict[str, Callable[[str], Send]] = {
        item.__name__: item for item in (udp, nmea, mavlink, serial, can, mqtt, zenoh)
    }
    pause_s = [float(period_s)]
    for module in LIBRARIES.get(kind, ()):
        importlib.import_module(module)
    print("loaded", flush=True)
    sys.stdin.readline()
    signal.signal(signal.SIGUSR1, lambda *_: pause_s.append(SLOW * pause_s[0]))
    send, due, k = opened[kind](place), time.monotonic(), 0
    while True:
        send(0.1 * (k % 3))
        k += 1
        due = max(due + pause_s[-1], time.monotonic())
        while (left := due - time.monotonic()) > 0:
            time.sleep(left)


if __name__ == "__main__":
    main(*sys.argv[1:])
