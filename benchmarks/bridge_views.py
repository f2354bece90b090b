"""The other ends of the bridges foxglove, dds, zenoh and lcm for `rtmms bench bridges`; see benchmarks/bridge_peers.py.

A program as that one is: `python -m rtmms_benchmarks.bridge_views NAME NUMBER`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import randrange
from time import monotonic
from typing import Any

from .bridge_peers import NotHere, Row, free_port


@contextmanager
def _process(name: str, number: int, *modules: str) -> Iterator[None]:
    """This module as a peer, until the block is left; NotHere where it lacks a library."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise NotHere(module)
    child = subprocess.Popen([sys.executable, "-P", "-m", "rtmms_benchmarks.bridge_views", name, str(number)])
    try:
        yield
    finally:
        child.kill()
        child.wait()


# -- peers, as programs ---------------------------------------------------------------------------------------------


def foxglove(port: int) -> None:
    """Reads /outputs, publishes /command."""
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
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.01)
    with suppress(ConnectionClosed):
        asyncio.run(answer())


def dds(domain: int) -> None:
    """Reads rt/bench/odom, where `sent` is the position's x, and writes rt/bench/joint_commands."""
    from cyclonedds.core import Listener, Policy, Qos
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic

    from rtmms_bridges.dds import configuration
    from rtmms_bridges.messages.ros2 import JointState, Odometry

    kept = Domain(domain, configuration("127.0.0.1"))
    participant = DomainParticipant(domain)
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
    while reader is not None and kept is not None:
        time.sleep(1.0)


def zenoh(port: int) -> None:
    """Reads bench/state, puts bench/command."""
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


def lcm(port: int) -> None:
    """Reads BENCH_OUTPUTS, whose only output is `sent`, and publishes BENCH_COMMAND."""
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


PEERS: dict[str, Callable[[int], None]] = {"foxglove": foxglove, "dds": dds, "zenoh": zenoh, "lcm": lcm}


# -- rows: peer and bridge ------------------------------------------------------------------------------------------


@contextmanager
def foxglove_row(rate: float) -> Iterator[str]:
    port = free_port(socket.SOCK_STREAM)
    with _process("foxglove", port, "foxglove", "websockets"):
        yield f"foxglove:claim=*,port={port},rate_hz=0"


@contextmanager
def dds_row(rate: float) -> Iterator[str]:
    domain = randrange(1, 100)
    with _process("dds", domain, "cyclonedds"):
        yield f"dds:claim=*,domain={domain},namespace=bench,rate_hz=0,tf=false"


@contextmanager
def zenoh_row(rate: float) -> Iterator[str]:
    port = free_port(socket.SOCK_STREAM)
    with _process("zenoh", port, "zenoh"):
        yield f"zenoh:claim=*,prefix=bench,listen=tcp/127.0.0.1:{port},outputs=sent,layout=state,rate_hz=0"


@contextmanager
def lcm_row(rate: float) -> Iterator[str]:
    port = free_port()
    with _process("lcm", port, "lcm"):
        yield f"lcm:claim=*,prefix=BENCH,url=udpm://239.255.76.67:{port}?ttl=0,outputs=sent,rate_hz=0"


ROWS: dict[str, Row] = {"foxglove": foxglove_row, "dds": dds_row, "zenoh": zenoh_row, "lcm": lcm_row}


if __name__ == "__main__":
    PEERS[sys.argv[1]](int(sys.argv[2]))
