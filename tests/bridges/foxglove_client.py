"""A viewer's side of Foxglove's WebSocket protocol, from its description, with messages read by their own schemas."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import time
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from websockets.sync.client import ClientConnection, connect

from tests.wire.bench import PATIENCE_S


class Viewer:
    """Connects, subscribes, and decodes. channels: what the server advertised, by topic."""

    def __init__(self, port: int) -> None:
        self._connecting = connect(
            f"ws://127.0.0.1:{port}", subprotocols=["foxglove.sdk.v1"], compression=None, max_size=None
        )
        self.channels: dict[str, dict[str, Any]] = {}
        self.texts: list[dict[str, Any]] = []
        self.server_info: dict[str, Any] = {}
        self.times: list[int] = []
        self._topics: dict[int, str] = {}
        self._types: dict[str, Any] = {}

    def __enter__(self) -> Viewer:
        self.socket: ClientConnection = self._connecting.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._connecting.__exit__(None, None, None)

    def subscribe(self, *topics: str) -> None:
        while not self.channels.keys() >= set(topics):
            self.read()
        built = []
        for topic in topics:
            channel = self.channels[topic]
            subscription = 100 + channel["id"]
            self._topics[subscription] = topic
            built.append({"id": subscription, "channelId": channel["id"]})
            if channel["encoding"] == "protobuf":
                self._types[topic] = message_type(channel)
        self.send(op="subscribe", subscriptions=built)

    def send(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def publish(self, channel: int, payload: bytes) -> None:
        self.socket.send(struct.pack("<BI", 1, channel) + payload)

    def read(self, wait_s: float = PATIENCE_S) -> tuple[str, int, Any] | None:
        """The next message of a subscription: topic, log time ns, decoded. None for anything else."""
        frame = self.socket.recv(timeout=wait_s)
        if isinstance(frame, str):
            self._receive(json.loads(frame))
            return None
        if frame[0] == 2:
            self.times.append(struct.unpack_from("<Q", frame, 1)[0])
            return None
        assert frame[0] == 1
        subscription, at = struct.unpack_from("<IQ", frame, 1)
        topic, payload = self._topics[subscription], frame[13:]
        if topic in self._types:
            return topic, at, self._types[topic].FromString(payload)
        return topic, at, json.loads(payload)

    def await_(self, topic: str) -> tuple[int, Any]:
        """The next message on a topic: log time ns and content."""
        end = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < end, f"nothing on {topic}"
            result = self.read()
            if result is not None and result[0] == topic:
                return result[1], result[2]

    def _receive(self, message: dict[str, Any]) -> None:
        self.texts.append(message)
        if message["op"] == "serverInfo":
            self.server_info = message
        elif message["op"] == "advertise":
            self.channels |= {channel["topic"]: channel for channel in message["channels"]}


def message_type(channel: dict[str, Any]) -> Any:
    """A class for a channel's messages, from the schema that came with it and nothing else."""
    assert channel["schemaEncoding"] == "protobuf"
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(channel["schema"]))
    pool = descriptor_pool.DescriptorPool()
    left = {file.name: file for file in files.file}
    while left:
        ready = [file for file in left.values() if not any(needed in left for needed in file.dependency)]
        for file in ready:
            pool.Add(file)  # type: ignore[no-untyped-call]
            del left[file.name]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(channel["schemaName"]))  # type: ignore


def upgrade(peer: socket.socket) -> bytes:
    """The WebSocket handshake on a connected socket, by hand; what came with the answer and after it."""
    key = base64.b64encode(os.urandom(16)).decode()
    peer.sendall((
        "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n"
    ).encode())  # fmt: skip
    peer.settimeout(PATIENCE_S)
    received = b""
    while b"serverInfo" not in received:
        received += peer.recv(4096)
    assert received.startswith(b"HTTP/1.1 101")
    return received


def text_frame(text: str) -> bytes:
    """A short text from a client: masked, as it must be, with zeros."""
    data = text.encode()
    assert len(data) < 126
    return bytes([0x81, 0x80 | len(data)]) + bytes(4) + data
