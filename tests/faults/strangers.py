"""Strangers of a plant that have read its protocol: each sends what costs it little and the plant much.

Each is (exchange endpoint, what to call when at work) -> never; the bytes are ZeroMQ's own, without libzmq.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import zmq

from rtmms.wire.stream.zmtp import GREETING, message_of_frames, ready

_pack: Any = msgpack.packb
_unpack: Any = vars(msgpack)["unpackb"]
PIECE = 64 * 1024
EVERY_S = 0.25
HOLLOW = (b"\x04\x00", b"\x01\x00")
"""Frames that end no message: a command, and the first of several."""
DEAF = 32
Ready = Callable[[], None]


def endpoints(exchange: str) -> dict[str, str]:
    """Of the plant's three sockets: an observer is named, with or without a token."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as door:
        door.linger = 0
        door.connect(exchange)
        door.send(_hello())
        welcome = _unpack(door.recv())
    return {"exchange": exchange} | {role: welcome[f"{role}_endpoint"] for role in ("step", "telemetry")}


def _hello(**more: Any) -> bytes:
    return bytes(_pack({"type": "hello", "protocol": 1, "name": "stranger", "claim": []} | more))


def connected(endpoint: str, kind: bytes) -> socket.socket:
    """With all of the handshake sent."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    connection = socket.create_connection((host, int(port)), 1.0)
    connection.sendall(GREETING + ready(kind))
    return connection


def _shouts(places: dict[str, str], pause_s: float, at_work: Ready) -> None:
    """Hollow frames into each endpoint in turn, on a new connection whenever the plant has closed one."""
    ways = list(itertools.product((("exchange", b"DEALER"), ("step", b"DEALER"), ("telemetry", b"SUB")), HOLLOW))
    open_ones: dict[Any, socket.socket] = {}
    at_work()
    for route in itertools.cycle(ways):
        (role, kind), frame = route
        try:
            item = open_ones.get(route) or connected(places[role], kind)
            open_ones[route] = item
            item.settimeout(0.05)
            item.sendall(frame * (PIECE // len(frame)))
        except OSError:
            if route in open_ones:
                open_ones.pop(route).close()
        time.sleep(pause_s)


def hollow(exchange: str, at_work: Ready) -> None:
    """64 KiB of hollow frames every quarter of a second."""
    _shouts(endpoints(exchange), EVERY_S, at_work)


def hollow_flood(exchange: str, at_work: Ready) -> None:
    """The same, as fast as they go."""
    _shouts(endpoints(exchange), 0.0, at_work)


def _patterns() -> Iterator[list[str]]:
    """256 patterns, never the same twice."""
    for turn in itertools.count():
        yield [f"[!{chr(0x100 + k)}{turn % 97}]*?[!_]*" for k in range(255)] + ["*"]


def patterns(exchange: str, at_work: Ready) -> None:
    """Hellos without a token, with as many patterns as a hello may have."""
    item: socket.socket | None = None
    at_work()
    for many in _patterns():
        try:
            item = item or connected(exchange, b"DEALER")
            item.sendall(message_of_frames((_hello(outputs=many),)))
            with contextlib.suppress(BlockingIOError):
                item.recv(PIECE, socket.MSG_DONTWAIT)
        except OSError:
            item = None
        time.sleep(0.01)


def subscriptions(exchange: str, at_work: Ready) -> None:
    """More topics than a connection may ask for, on one connection after the other."""
    telemetry = endpoints(exchange)["telemetry"]
    topics = b"".join(message_of_frames((b"\x01" + b"%d" % k + bytes(200),)) for k in range(200))
    at_work()
    stored: list[socket.socket] = []
    while True:
        for item in list(stored):
            if _closed(item):
                stored.remove(item)
        with contextlib.suppress(OSError):
            if len(stored) < 4:
                stored.append(connected(telemetry, b"SUB"))
                stored[-1].sendall(topics)
        time.sleep(0.002)


def _closed(item: socket.socket) -> bool:
    try:
        return not item.recv(PIECE, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def deaf(exchange: str, at_work: Ready) -> None:
    """Subscribers that never read."""
    telemetry = endpoints(exchange)["telemetry"]
    stored = [connected(telemetry, b"SUB") for _ in range(DEAF)]
    for item in stored:
        item.sendall(message_of_frames((b"\x01",)))
    at_work()
    while True:
        time.sleep(1.0)


def idle(exchange: str, at_work: Ready) -> None:
    """Connections to telemetry that want nothing: what `deaf` is compared with."""
    telemetry = endpoints(exchange)["telemetry"]
    stored = [connected(telemetry, b"SUB") for _ in range(DEAF)]
    at_work()
    while stored:
        time.sleep(1.0)


ALL = {f.__name__: f for f in (hollow, hollow_flood, patterns, subscriptions, deaf, idle)}
