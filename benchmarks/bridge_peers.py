"""The other ends of the bridges for `rtmms bench bridges`: each sends back what it gets, as quickly as it can.

A row of the benchmark is an entry of ROWS: a function of the rate in Hz that starts a peer, gives the words of its
bridge (what follows `rtmms bridge`) and ends the peer. The plant's state has the output `sent` (s, CLOCK_MONOTONIC);
the peer must send it back as the actuator `sent`, and as `received` its own clock when the state came. A peer is a
process of its own: this module run as a program, `python -m rtmms_benchmarks.bridge_peers NAME WORDS...`.
"""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic

_CAN_GROUP = "239.74.163.10"
_CAN_FILE = """VERSION ""
BU_: Robot Peer
BO_ 256 State: 8 Robot
 SG_ sent : 0|64@1- (1,0) [0|0] "s" Peer
BO_ 257 Answer: 16 Peer
 SG_ sent : 0|64@1- (1,0) [0|0] "s" Robot
 SG_ received : 64|64@1- (1,0) [0|0] "s" Robot
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","reserved","J1939PG","StandardCAN_FD";
BA_DEF_DEF_ "VFrameFormat" "StandardCAN";
BA_ "VFrameFormat" BO_ 257 4;
SIG_VALTYPE_ 256 sent : 2;
SIG_VALTYPE_ 257 sent : 2;
SIG_VALTYPE_ 257 received : 2;
"""

Row = Callable[[float], AbstractContextManager[str]]


class NotHere(Exception):
    """What a peer needs is not on this machine; the text says what."""


def free_port(kind: int = socket.SOCK_DGRAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(*words: str) -> Iterator[None]:
    """This module as a peer, until the block is left."""
    child = subprocess.Popen([sys.executable, "-P", "-m", "rtmms_benchmarks.bridge_peers", *words])
    try:
        yield
    finally:
        child.kill()
        child.wait()


# -- peers, as programs ---------------------------------------------------------------------------------------------


def udp_json(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", port))
        while True:
            data, place = peer.recvfrom(65536)
            now = monotonic()
            message = json.loads(data)
            peer.sendto(json.dumps({"values": {"sent": message["sent"], "received": now}}).encode(), place)


def udp_struct(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", port))
        while True:
            data, place = peer.recvfrom(65536)
            now = monotonic()
            peer.sendto(struct.pack("<dd", struct.unpack("<d", data)[0], now), place)


def mqtt(port: int) -> None:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)

    def answer(client: Client, data: object, message: object) -> None:
        now = monotonic()
        state = json.loads(message.payload)  # type: ignore[attr-defined]
        client.publish("bench/command", json.dumps({"values": {"sent": state["sent"], "received": now}}))

    client.on_connect = lambda client, *_: client.subscribe("bench/state")
    client.on_message = answer
    client.connect("127.0.0.1", port)
    client.loop_forever()


def can_fd(port: int) -> None:
    import can

    with can.Bus(interface="udp_multicast", channel=_CAN_GROUP, port=port, hop_limit=0) as bus:
        while True:
            frame = bus.recv()
            now = monotonic()
            if frame is not None and frame.arbitration_id == 256:
                data = bytes(frame.data) + struct.pack("<d", now)
                bus.send(can.Message(arbitration_id=257, data=data, is_fd=True, is_extended_id=False))


PEERS: dict[str, Callable[[int], None]] = {
    "udp_json": udp_json, "udp_struct": udp_struct, "mqtt": mqtt, "can_fd": can_fd,
}  # fmt: skip


# -- rows: peer and bridge ------------------------------------------------------------------------------------------


@contextmanager
def template_row(rate: float) -> Iterator[str]:
    port = free_port()
    with _process("udp_json", str(port)):
        yield f"template:claim=*,port={port}"


@contextmanager
def udp_json_row(rate: float) -> Iterator[str]:
    port = free_port()
    with _process("udp_json", str(port)):
        yield f"udp:claim=*,port={port},bind_port=0,state_fields=sent,paced=true"


@contextmanager
def udp_struct_row(rate: float) -> Iterator[str]:
    port = free_port()
    with _process("udp_struct", str(port)):
        yield (
            f"udp:claim=*,port={port},bind_port=0,format=struct,paced=true,"
            "state_fields=sent:f64,command_fields=sent:f64+received:f64"
        )


@contextmanager
def mqtt_row(rate: float) -> Iterator[str]:
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        raise NotHere("mosquitto")
    port = free_port(socket.SOCK_STREAM)
    with tempfile.TemporaryDirectory(prefix="rtmms-bench-") as folder:
        file = Path(folder) / "broker.conf"
        file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n")
        broker = subprocess.Popen([program, "-c", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(500):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.01)
            with _process("mqtt", str(port)):
                yield f"mqtt:claim=*,port={port},topic=bench,rate_hz=0"
        finally:
            broker.kill()
            broker.wait()


@contextmanager
def can_row(rate: float) -> Iterator[str]:
    try:
        import can

        port = free_port()
        with can.Bus(interface="udp_multicast", channel=_CAN_GROUP, port=port, hop_limit=0):
            pass
    except ImportError:
        raise NotHere("python-can") from None
    except (OSError, can.CanError):
        raise NotHere("multicast route") from None
    with tempfile.TemporaryDirectory(prefix="rtmms-bench-") as folder, _process("can_fd", str(port)):
        file = Path(folder) / "bench.dbc"
        file.write_text(_CAN_FILE)
        yield (
            f"can:interface=udp_multicast,channel={_CAN_GROUP},options=port={port},fd=true,dbc={file},"
            f"cycle_ms={max(1, round(1000.0 / rate))},signals=State.sent=sent,"
            "channels=Answer.sent:sent+Answer.received:received"
        )


ROWS: dict[str, Row] = {
    "can, multicast": can_row,
    "template": template_row,
    "udp, JSON": udp_json_row,
    "udp, packed": udp_struct_row,
    "mqtt": mqtt_row,
}


if __name__ == "__main__":
    PEERS[sys.argv[1]](int(sys.argv[2]))
