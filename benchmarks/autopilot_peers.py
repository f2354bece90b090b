"""The other ends of the bridges to autopilots, ground stations and serial devices for `rtmms bench bridges`.

See benchmarks/bridge_peers.py. Protocols without room for a clock carry the number of the step and the peer's clock in
four whole numbers (benchmarks/bridge_stampers.py).
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from .bridge_peers import Row, free_port
from .bridge_stampers import WORD, WORDS, Locked, Stamper, Swimmer, words

_ARMED, _LOCKSTEP, _FIRST_US = 128, 1, 1_000_000


@contextmanager
def _process(*arguments: str) -> Iterator[None]:
    child = subprocess.Popen([sys.executable, "-P", "-m", "rtmms_benchmarks.autopilot_peers", *arguments])
    try:
        yield
    finally:
        child.kill()
        child.wait()


# -- peers, as programs ---------------------------------------------------------------------------------------------


def ardupilot(port: str, rate: str) -> None:
    """As ArduPilot: a packet for each line; the first one again until it is answered."""
    pulses, frame = (0, 0, 0, 0), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(0.2)
        while True:
            packet = struct.pack("<HHI16H", 18458, round(float(rate)), frame, *pulses, *[0] * 12)
            peer.sendto(packet, ("127.0.0.1", int(port)))
            try:
                line = peer.recv(65536)
            except OSError:
                continue
            now = monotonic()
            pulses, frame = words(round(json.loads(line)["timestamp"] * float(rate)), now), frame + 1


def px4(port: str, rate: str) -> None:
    """As PX4: actuators for each HIL_SENSOR."""
    from pymavlink.dialects.v20 import common as of

    from rtmms_bridges.autopilot.mavframes import Reader, Writer

    reader, writer = Reader(lambda reason: None), Writer(1, 1)
    with _connected(int(port)) as peer:
        peer.sendall(writer.pack(of.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3)))
        while data := peer.recv(65536):
            now = monotonic()
            for message in reader.feed(data):
                if message.get_type() == "HIL_SENSOR":
                    told = words(round((message.time_usec - _FIRST_US) * 1e-6 * float(rate)), now)
                    controls = [*map(float, told), *[0.0] * 12]
                    peer.sendall(writer.pack(of.MAVLink_hil_actuator_controls_message(0, controls, _ARMED, _LOCKSTEP)))


def mavlink(port: str, rate: str) -> None:
    """A ground station that answers each named value with a command for four actuators."""
    from pymavlink.dialects.v20 import common as of

    from rtmms_bridges.autopilot.mavframes import Reader, Writer
    from rtmms_bridges.autopilot.setpoints import SET_ACTUATOR

    reader, writer = Reader(lambda reason: None), Writer(255, 190)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", int(port)))
        while True:
            data, place = peer.recvfrom(65536)
            now = monotonic()
            for message in reader.datagram(data):
                if message.get_type() == "NAMED_VALUE_FLOAT":
                    told = [number / WORD for number in words(round(message.value), now)]
                    nan = float("nan")
                    command = of.MAVLink_command_long_message(1, 1, SET_ACTUATOR, 0, *told, nan, nan, 0)
                    peer.sendto(writer.pack(command), place)


def serial(path: str) -> None:
    """A device on a pseudo-terminal."""
    from rtmms_bridges.lines.framing import Deframer, encode

    master, slave = os.openpty()
    tty.setraw(master)
    os.symlink(os.ttyname(slave), path)
    deframer = Deframer(8, lambda reason: None)
    begun = b"\0"
    while True:
        data = os.read(master, 4096)
        now = monotonic()
        for payload in deframer.feed(data):
            os.write(master, begun + encode(payload + struct.pack("<d", now)))
            begun = b""


def _connected(port: int) -> socket.socket:
    while True:
        try:
            peer = socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.02)
            continue
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return peer


PEERS: dict[str, Callable[..., None]] = {"ardupilot": ardupilot, "px4": px4, "mavlink": mavlink, "serial": serial}


# -- rows: peer and bridge ------------------------------------------------------------------------------------------


def _channels(scale: float = 1.0) -> str:
    return "channels=" + "+".join(f"{i}:{name}:{scale:g}" for i, name in enumerate(WORDS, 1))


@contextmanager
def ardupilot_row(rate: float) -> Iterator[str]:
    port = free_port()
    with _process("ardupilot", str(port), str(rate)):
        yield f"ardupilot:port={port},{_channels()}"


@contextmanager
def px4_row(rate: float) -> Iterator[str]:
    port = free_port(socket.SOCK_STREAM)
    with _process("px4", str(port), str(rate)):
        yield f"px4:port={port},{_channels()},sensor_hz={rate:g}"


@contextmanager
def mavlink_row(rate: float) -> Iterator[str]:
    port = free_port()
    with _process("mavlink", str(port), str(rate)):
        yield (
            f"mavlink:stations=127.0.0.1:{port},{_channels(WORD)},armed=true,attitude_hz=0,position_hz=0,"
            f"values_hz={rate:g},values=step=step"
        )


@contextmanager
def serial_row(rate: float) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="rtmms-bench-") as folder:
        device = Path(folder) / "line"
        with _process("serial", str(device)):
            yield (
                f"serial:device={device},baud=3000000,claim=*,paced=true,state_fields=sent:f64,"
                "command_fields=sent:f64+received:f64"
            )


ROWS: dict[str, Row] = {
    "ardupilot": ardupilot_row,
    "px4": px4_row,
    "mavlink": mavlink_row,
    "serial, 3 MBd": serial_row,
}
PLANTS: dict[str, type[Stamper]] = {"ardupilot": Locked, "px4": Locked, "mavlink": Swimmer}
"""The plants of those that need another one than the Stamper."""


if __name__ == "__main__":
    arguments: list[Any] = sys.argv[2:]
    PEERS[sys.argv[1]](*arguments)
