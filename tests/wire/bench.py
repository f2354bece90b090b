"""A plant small enough to see through, a peer in plain ZeroMQ and msgpack, and a server stepped by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq

from rtmms.plant.protocol import Channel
from rtmms.wire.plant.server import Server

PATIENCE_S = 240.0
"""A test fails after this long without what it waits for; none passes or fails by how long something took."""


class Toy:
    """Four rods that are where they are commanded to be, and some outputs of each kind."""

    dt = 1e-3

    def __init__(self) -> None:
        rods = ("left.front", "left.back", "right.front", "right.back")
        self.actuators = tuple(Channel(name, "rad", lower=-1.2, upper=1.2) for name in rods)
        self.outputs = (
            Channel("position", "m", (3,), "world"),
            Channel("quaternion", "", (4,), "world"),
            Channel("speed", "m/s"),
            Channel("thrust", "N", (2, 2), "body"),
            Channel("joint_angle", "rad", (1, 3, 5)),
        )
        self.parameters = {"r1": 0.215, "r2": 0.185, "body": "free", "table": [1, 2], "broken": float("nan")}
        self.reset()

    def reset(self, seed: int = 0) -> None:
        self.state = np.zeros(5)

    def step(self, command: np.ndarray) -> None:
        self.state[:4] = command
        self.state[4] += self.dt

    def observe(self) -> dict[str, Any]:
        return {
            "position": self.state[:3].copy(),
            "quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
            "speed": np.array(self.state[4]),
            "thrust": np.array([[1.0, 2.0], [3.0, 4.0]]),
            "joint_angle": np.arange(15.0).reshape(1, 3, 5),
        }

    def snapshot(self) -> bytes:
        return self.state.tobytes()

    def restore(self, blob: bytes) -> None:
        self.state = np.frombuffer(blob).copy()


class Host:
    """A server and its plant, driven by the test."""

    def __init__(self, **options: Any) -> None:
        self.plant = Toy()
        anywhere = dict.fromkeys(("exchange", "step", "telemetry"), "tcp://127.0.0.1:*")
        options = {"robot": "toy", "token": "secret", "deadline_s": 5e-4} | anywhere | options
        self.server = Server(self.plant, **options)
        self.exchange = self.server.endpoints["exchange"]
        self.command = np.zeros(4)
        self.step = 0
        self.raws: list[Raw] = []

    def publish(self, deadline_ns: int = 0) -> None:
        applied = self.server.applied
        self.server.publish(self.step, self.step * 1e-3, deadline_ns, 500_000, self.plant.observe(), applied)

    def collect(self, wait_s: float = PATIENCE_S) -> bool:
        until = time.monotonic_ns() + int(wait_s * 1e9) if wait_s else 1
        return self.server.collect(self.step, self.command, until)

    def advance(self) -> None:
        self.plant.step(self.command)
        self.step += 1

    def serve(self) -> None:
        self.server.serve(time.monotonic_ns() + 1_000_000_000)

    def until(self, done: Callable[[], Any]) -> Any:
        """Serve until done() is true; what it returned."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.serve()
            result = done()
            if result:
                return result
            time.sleep(5e-4)
        pytest.fail("waited in vain")

    def arrived(self) -> None:
        """Wait until a message lies in the step socket."""
        assert self.something_comes(PATIENCE_S), "nothing arrived"

    def something_comes(self, wait_s: float) -> bool:
        """Whether a message lies in the step socket, or does so within that time."""
        return self.server._sockets.step.wait(time.monotonic_ns() + int(wait_s * 1e9))

    @property
    def rejected(self) -> dict[str, int]:
        """Not by `report`, which sends: a test may look while the plant steps in another thread."""
        return dict(self.server._port.rejected)

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """What the report has of the peers that are here; likewise."""
        return [peer.summary() for peer in list(self.server._peers.all)]


def is_probe(message: Mapping[str, Any]) -> bool:
    """Return whether a message only asks if a peer is there: the plant sends it where an answer takes long."""
    return message["type"] == "state" and message["step"] == -1 and not message["outputs"]


class Raw:
    """A peer that sends exactly what the test wants, right or wrong."""

    def __init__(self, host: Host) -> None:
        self.host = host
        host.raws.append(self)  # whoever made the host closes it
        self.context = zmq.Context()
        self.exchange = self._dealer()
        self.exchange.connect(host.exchange)
        self.data: zmq.Socket[bytes] | None = None
        self.welcome: dict[str, Any] = {}
        self.seq = 0

    def _dealer(self, identity: bytes | None = None) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self.context.socket(zmq.DEALER)
        socket.linger = 0
        if identity is not None:
            socket.setsockopt(zmq.ROUTING_ID, identity)
        return socket

    def ask(self, **message: Any) -> dict[str, Any]:
        """Send something at the exchange endpoint and wait for the answer."""
        self.exchange.send(msgpack.packb(message))
        self.host.until(lambda: self.exchange.poll(0))
        return dict(msgpack.unpackb(self.exchange.recv()))

    def hello(self, claim: list[str], name: str = "raw", **more: Any) -> dict[str, Any]:
        hello = {"type": "hello", "protocol": 2, "name": name, "claim": claim, "token": "secret"} | more
        return self.ask(**hello)

    def join(self, claim: list[str], name: str = "raw", **more: Any) -> Raw:
        """Hello, the step socket, and all warm-up states."""
        self.welcome = self.hello(claim, name, **more)
        assert self.welcome["type"] == "welcome", self.welcome
        self.data = self._dealer(self.welcome["identity"])
        self.data.connect(self.welcome["step_endpoint"])

        def warm() -> bool:
            assert self.data is not None
            while self.data.poll(0):
                self.command({}, msgpack.unpackb(self.data.recv())["step"])
            mine = self.host.server._peers.by_identity.get(self.welcome["identity"])
            return (name if mine is None else mine.name) in self.host.server.admitted()

        self.host.until(warm)
        return self

    def send(self, frame: bytes, *more: bytes) -> None:
        assert self.data is not None
        self.data.send_multipart([frame, *more])

    def send_message(self, **message: Any) -> None:
        self.send(msgpack.packb(message))

    def command(self, values: Any, step: Any = None, seq: Any = None) -> None:
        if seq is None:
            self.seq += 1
            seq = self.seq
        self.send_message(type="command", seq=seq, step=self.host.step if step is None else step, values=values)

    def read_message(self) -> dict[str, Any]:
        """The next message on the step socket."""
        assert self.data is not None
        assert self.data.poll(int(PATIENCE_S * 1e3)), "the plant sent nothing"
        return dict(msgpack.unpackb(self.data.recv()))

    def receive_error(self) -> dict[str, Any]:
        """The next error, past any states."""
        assert self.data is not None
        while True:
            self.host.until(lambda: self.data.poll(0))
            message = dict(msgpack.unpackb(self.data.recv()))
            if message["type"] == "error":
                return message

    def vanish(self) -> None:
        """Gone without a bye, as a killed process."""
        self.context.destroy(linger=0)
