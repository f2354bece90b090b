"""Peers of the bridges for `rtmms bench bridges`: each sends its input back, as quickly as it can.

A row of the benchmark is an entry of ROWS: a function of the rate in Hz that starts a peer, yields the words of its
bridge (those after `rtmms bridge`) and ends the peer. The plant's state has the output `sent` (s, CLOCK_MONOTONIC). The
peer must send it back as the actuator `sent`, and as `received` its own clock when the state came. Protocols without
room for a clock carry the number of the step and the peer's clock in four whole numbers (bridge_plants.py). A peer is
another process: this module run as a program, `python -m rtmms_benchmarks.bridge_peers NAME WORD_NAMES...`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from random import randrange
from time import monotonic
from typing import Any

from .bridge_plants import WORD, WORD_NAMES, Locked, Stamper, Swimmer, encode_answer, height_number

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

_ARMED = 128
_LOCKSTEP = 1
_HOME_M = 488.0
"""Altitude of the world's origin by default in the bridge px4, m."""

Row = Callable[[float], AbstractContextManager[str]]


class NotHere(Exception):
    """Requirement of a peer that is not on this machine; the text names it."""


def free_port(kind: int = socket.SOCK_DGRAM) -> int:
    """Return a free port on loopback.

    Parameters
    ----------
    kind : int, default socket.SOCK_DGRAM
        Kind of socket.

    Returns
    -------
    int
        The port.
    """
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _process(name: str, *arguments: object, needs: tuple[str, ...] = ()) -> Iterator[None]:
    """Run this module as a peer until the block ends; raise NotHere where it lacks a library."""
    for module in needs:
        if find_spec(module) is None:
            raise NotHere(module)
    child = subprocess.Popen([sys.executable, "-P", "-m", "rtmms_benchmarks.bridge_peers", name, *map(str, arguments)])
    try:
        yield
    finally:
        child.kill()
        child.wait()


# -- peers, as programs ---------------------------------------------------------------------------------------------


def udp_json(port: str) -> None:
    """Answer JSON datagrams.

    Parameters
    ----------
    port : str
        Port.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", int(port)))
        while True:
            data, place = peer.recvfrom(65536)
            now = monotonic()
            message = json.loads(data)
            peer.sendto(json.dumps({"values": {"sent": message["sent"], "received": now}}).encode(), place)


def udp_struct(port: str) -> None:
    """Answer binary datagrams.

    Parameters
    ----------
    port : str
        Port.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", int(port)))
        while True:
            data, place = peer.recvfrom(65536)
            now = monotonic()
            peer.sendto(struct.pack("<dd", struct.unpack("<d", data)[0], now), place)


def mqtt(port: str) -> None:
    """Answer messages of an MQTT broker.

    Parameters
    ----------
    port : str
        Port.
    """
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)

    def answer(client: Client, data: object, message: object) -> None:
        now = monotonic()
        state = json.loads(message.payload)  # type: ignore[attr-defined]
        client.publish("bench/command", json.dumps({"values": {"sent": state["sent"], "received": now}}))

    client.on_connect = lambda client, *_: client.subscribe("bench/state")
    client.on_message = answer
    client.connect("127.0.0.1", int(port))
    client.loop_forever()


def can_fd(port: str) -> None:
    """Answer frames of a CAN FD bus over UDP multicast.

    Parameters
    ----------
    port : str
        Port.
    """
    import can

    with can.Bus(interface="udp_multicast", channel=_CAN_GROUP, port=int(port), hop_limit=0) as bus:
        while True:
            frame = bus.recv()
            now = monotonic()
            if frame is not None and frame.arbitration_id == 256:
                data = bytes(frame.data) + struct.pack("<d", now)
                bus.send(can.Message(arbitration_id=257, data=data, is_fd=True, is_extended_id=False))


def foxglove(port: str) -> None:
    """Read /outputs and publish /command over Foxglove's websocket.

    Parameters
    ----------
    port : str
        Port.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed

    async def answer() -> None:
        address = f"ws://127.0.0.1:{port}"
        async with connect(address, subprotocols=["foxglove.sdk.v1"], compression=None) as peer:
            offered = {"id": 1, "topic": "/command", "encoding": "json", "schemaName": ""}
            await peer.send(json.dumps({"op": "advertise", "channels": [offered]}))
            async for frame in peer:
                now = monotonic()
                if isinstance(frame, str):
                    message = json.loads(frame)
                    for channel in message["channels"] if message["op"] == "advertise" else ():
                        if channel["topic"] == "/outputs":
                            asked = {"id": 1, "channelId": channel["id"]}
                            await peer.send(json.dumps({"op": "subscribe", "subscriptions": [asked]}))
                elif frame[0] == 1:
                    values = {"sent": json.loads(frame[13:])["sent"], "received": now}
                    await peer.send(struct.pack("<BI", 1, 1) + json.dumps({"values": values}).encode())

    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                break
        time.sleep(0.01)
    with suppress(ConnectionClosed):
        asyncio.run(answer())


def dds(domain: str) -> None:
    """Read rt/bench/odom, where `sent` is the position's x, and write rt/bench/joint_commands.

    Parameters
    ----------
    domain : str
        DDS domain.
    """
    from cyclonedds.core import Listener, Policy, Qos
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic

    from rtmms_bridges.dds import configuration
    from rtmms_bridges.messages.ros2 import JointState, Odometry

    dds_domain = Domain(int(domain), configuration("127.0.0.1"))
    participant = DomainParticipant(int(domain))
    plain = Policy.DataRepresentation(use_cdrv0_representation=True)
    qos = Qos(Policy.Reliability.Reliable(0), Policy.History.KeepLast(10), plain)
    writer = DataWriter(participant, Topic(participant, "rt/bench/joint_commands", JointState), qos=qos)

    class Answer(Listener):  # type: ignore[misc]
        def on_data_available(self, reader: Any) -> None:
            for message in reader.take(10):
                now = monotonic()
                sent = message.pose.pose.position.x
                writer.write(JointState(name=["sent", "received"], position=[sent, now]))

    topic = Topic(participant, "rt/bench/odom", Odometry)
    reader = DataReader(participant, topic, qos=qos, listener=Answer())
    while reader is not None and dds_domain is not None:
        time.sleep(1.0)


def zenoh(port: str) -> None:
    """Read bench/state and put bench/command.

    Parameters
    ----------
    port : str
        Port.
    """
    import zenoh as library

    config = library.Config()
    for key, value in (
        ("mode", "client"), ("connect/endpoints", [f"tcp/127.0.0.1:{port}"]), ("connect/timeout_ms", 20_000),
        ("scouting/multicast/enabled", False),
    ):  # fmt: skip
        config.insert_json5(key, json.dumps(value))
    session = library.open(config)
    publisher = session.declare_publisher("bench/command", express=True)

    def answer(sample: Any) -> None:
        now = monotonic()
        sent = json.loads(sample.payload.to_bytes())["sent"]
        publisher.put(json.dumps({"values": {"sent": sent, "received": now}}))

    subscriber = session.declare_subscriber("bench/state", answer)
    while subscriber is not None:
        time.sleep(1.0)


def lcm(port: str) -> None:
    """Read BENCH_OUTPUTS, whose only output is `sent`, and publish BENCH_COMMAND.

    Parameters
    ----------
    port : str
        Port.
    """
    import lcm as library

    from rtmms_bridges.lcm import encode_command

    peer = library.LCM(f"udpm://239.255.76.67:{port}?ttl=0")

    def answer(channel: str, data: bytes) -> None:
        now = monotonic()
        (sent,) = struct.unpack(">d", data[-8:])
        peer.publish("BENCH_COMMAND", encode_command(0, {"sent": sent, "received": now}))

    peer.subscribe("BENCH_OUTPUTS", answer)
    while True:
        peer.handle()


def ardupilot(port: str, rate: str) -> None:
    """Act as ArduPilot: a packet for each line; the first one again until it is answered.

    Parameters
    ----------
    port : str
        Port.
    rate : str
        Rate, Hz.
    """
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
            pulses, frame = encode_answer(height_number(-json.loads(line)["position"][2]), now), frame + 1


def px4(port: str, rate: str) -> None:
    """Act as PX4: actuators for each HIL_SENSOR.

    Parameters
    ----------
    port : str
        Port.
    rate : str
        Rate, Hz.
    """
    from pymavlink.dialects.v20 import common as of

    from rtmms_bridges.autopilot.mavframes import Reader, Writer

    reader, writer = Reader(lambda reason: None), Writer(1, 1)
    with _connected(int(port)) as peer:
        peer.sendall(writer.pack(of.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3)))
        while data := peer.recv(65536):
            now = monotonic()
            for message in reader.feed(data):
                if message.get_type() == "HIL_SENSOR":
                    values = encode_answer(height_number(message.pressure_alt - _HOME_M), now)
                    controls = [*map(float, values), *[0.0] * 12]
                    peer.sendall(writer.pack(of.MAVLink_hil_actuator_controls_message(0, controls, _ARMED, _LOCKSTEP)))


def mavlink(port: str, rate: str) -> None:
    """Act as a ground station that answers each named value with a command for four actuators.

    Parameters
    ----------
    port : str
        Port.
    rate : str
        Rate, Hz.
    """
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
                    values = [number / WORD for number in encode_answer(round(message.value), now)]
                    nan = float("nan")
                    command = of.MAVLink_command_long_message(1, 1, SET_ACTUATOR, 0, *values, nan, nan, 0)
                    peer.sendto(writer.pack(command), place)


def serial(path: str) -> None:
    """Act as a device on a pseudo-terminal.

    Parameters
    ----------
    path : str
        Path of the link to the terminal.
    """
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


PEERS: dict[str, Callable[..., None]] = {
    item.__name__: item
    for item in (udp_json, udp_struct, mqtt, can_fd, foxglove, dds, zenoh, lcm, ardupilot, px4, mavlink, serial)
}


# -- rows: peer and bridge ------------------------------------------------------------------------------------------


@contextmanager
def template_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge template.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port()
    with _process("udp_json", port):
        yield f"template:claim=*,port={port}"


@contextmanager
def udp_json_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge udp with JSON.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port()
    with _process("udp_json", port):
        yield f"udp:claim=*,port={port},bind_port=0,state_fields=sent,paced=true"


@contextmanager
def udp_struct_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge udp with binary datagrams.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port()
    with _process("udp_struct", port):
        yield (
            f"udp:claim=*,port={port},bind_port=0,format=struct,paced=true,"
            "state_fields=sent:f64,command_fields=sent:f64+received:f64"
        )


@contextmanager
def mqtt_row(rate: float) -> Iterator[str]:
    """Run a broker and a peer of the bridge mqtt.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.

    Raises
    ------
    NotHere
        mosquitto is missing.
    """
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
            with _process("mqtt", port):
                yield f"mqtt:claim=*,port={port},topic=bench,rate_hz=0"
        finally:
            broker.kill()
            broker.wait()


@contextmanager
def can_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge can.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.

    Raises
    ------
    NotHere
        python-can or a multicast route is missing.
    """
    try:
        import can

        port = free_port()
        with can.Bus(interface="udp_multicast", channel=_CAN_GROUP, port=port, hop_limit=0):
            pass
    except ImportError:
        raise NotHere("python-can") from None
    except (OSError, can.CanError):
        raise NotHere("multicast route") from None
    with tempfile.TemporaryDirectory(prefix="rtmms-bench-") as folder, _process("can_fd", port):
        file = Path(folder) / "bench.dbc"
        file.write_text(_CAN_FILE)
        yield (
            f"can:interface=udp_multicast,channel={_CAN_GROUP},options=port={port},fd=true,dbc={file},"
            f"cycle_ms={max(1, round(1000.0 / rate))},signals=State.sent=sent,"
            "channels=Answer.sent:sent+Answer.received:received"
        )


@contextmanager
def foxglove_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge foxglove.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port(socket.SOCK_STREAM)
    with _process("foxglove", port, needs=("foxglove", "websockets")):
        yield f"foxglove:claim=*,port={port},rate_hz=0"


@contextmanager
def dds_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge dds.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    domain = randrange(1, 100)
    with _process("dds", domain, needs=("cyclonedds",)):
        yield f"dds:claim=*,domain={domain},namespace=bench,rate_hz=0,tf=false"


@contextmanager
def zenoh_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge zenoh.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port(socket.SOCK_STREAM)
    with _process("zenoh", port, needs=("zenoh",)):
        yield f"zenoh:claim=*,prefix=bench,listen=tcp/127.0.0.1:{port},outputs=sent,layout=state,rate_hz=0"


@contextmanager
def lcm_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge lcm.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port()
    with _process("lcm", port, needs=("lcm",)):
        yield f"lcm:claim=*,prefix=BENCH,url=udpm://239.255.76.67:{port}?ttl=0,outputs=sent,rate_hz=0"


def _channels(scale: float = 1.0) -> str:
    return "channels=" + "+".join(f"{i}:{name}:{scale:g}" for i, name in enumerate(WORD_NAMES, 1))


@contextmanager
def ardupilot_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge ardupilot.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port()
    with _process("ardupilot", port, rate):
        yield f"ardupilot:port={port},{_channels()}"


@contextmanager
def px4_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge px4.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port(socket.SOCK_STREAM)
    with _process("px4", port, rate):
        yield f"px4:port={port},{_channels()},sensor_hz={rate:g},baro_hz={rate:g}"


@contextmanager
def mavlink_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge mavlink.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    port = free_port()
    with _process("mavlink", port, rate):
        yield (
            f"mavlink:stations=127.0.0.1:{port},{_channels(WORD)},armed=true,attitude_hz=0,position_hz=0,"
            f"values_hz={rate:g},values=step=step"
        )


@contextmanager
def serial_row(rate: float) -> Iterator[str]:
    """Run a peer of the bridge serial.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Yields
    ------
    str
        Words of the bridge.
    """
    with tempfile.TemporaryDirectory(prefix="rtmms-bench-") as folder:
        device = Path(folder) / "line"
        with _process("serial", device):
            yield (
                f"serial:device={device},baud=3000000,claim=*,paced=true,state_fields=sent:f64,"
                "command_fields=sent:f64+received:f64"
            )


ROWS: dict[str, Row] = {
    "can, multicast": can_row, "template": template_row, "udp, JSON": udp_json_row, "udp, packed": udp_struct_row,
    "mqtt": mqtt_row, "foxglove": foxglove_row, "dds": dds_row, "zenoh": zenoh_row, "lcm": lcm_row,
    "ardupilot": ardupilot_row, "px4": px4_row, "mavlink": mavlink_row, "serial, 3 MBd": serial_row,
}  # fmt: skip
PLANTS: dict[str, type[Stamper]] = {"ardupilot": Locked, "px4": Locked, "mavlink": Swimmer}
"""Plants of bridges that need another one than the Stamper."""


if __name__ == "__main__":
    PEERS[sys.argv[1]](*sys.argv[2:])
