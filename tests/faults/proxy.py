"""Between one controller and a plant: a proxy that delays, drops, doubles, reorders or corrupts its commands.

A process of its own: `python -m tests.faults.proxy EXCHANGE [--delay PERIODS] [--drop P] ...`. It prints
the endpoint that the controller is to connect to. Hello and warm-up pass as they are, and so do states.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import select
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

import msgpack
import zmq

_NOW = zmq.NOBLOCK
_pack: Any = msgpack.packb
_unpack: Any = msgpack.unpackb  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Mischief:
    """What happens to a command: delays in periods of the plant; the others are probabilities.

    reorder   it waits until the next one has passed
    """

    delay: float = 0.0
    jitter: float = 0.0
    drop: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0


class Proxy:
    """One controller's messages, both ways."""

    def __init__(self, exchange: str, mischief: Mischief, seed: int = 0) -> None:
        self.mischief, self.random = mischief, random.Random(seed)
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.front_door, self.front = self.context.socket(zmq.ROUTER), self.context.socket(zmq.ROUTER)
        self.back_door, self.back = self.context.socket(zmq.DEALER), self.context.socket(zmq.DEALER)
        for socket in (self.front_door, self.front, self.back_door, self.back):
            socket.linger = 0
        self.endpoint = _bind(self.front_door)
        self.step_endpoint = _bind(self.front)
        self.back_door.connect(exchange)
        self.door_id = self.identity = b""
        self.period_ns = 0.0
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, bytes]] = []
        self._stored: bytes | None = None

    def run(self) -> None:
        """For ever."""
        watch: list[Any] = [s.getsockopt(zmq.FD) for s in (self.front_door, self.front, self.back_door, self.back)]
        while True:
            while self._pump():
                pass
            due = self._waiting[0][0] - monotonic_ns() if self._waiting else 50_000_000
            if due > 0:
                select.select(watch, (), (), min(due, 50_000_000) * 1e-9)

    def _pump(self) -> bool:
        """Everything that is there, once; whether there was anything."""
        moved = False
        while self._waiting and self._waiting[0][0] <= monotonic_ns():
            self.back.send(heapq.heappop(self._waiting)[2])
            moved = True
        for socket, pass_on in (
            (self.front_door, self._ask), (self.back_door, self._answer), (self.front, self._command),
            (self.back, self._state),
        ):  # fmt: skip
            try:
                frames = socket.recv_multipart(_NOW)
            except zmq.Again:
                continue
            pass_on(frames)
            moved = True
        return moved

    def _ask(self, frames: list[bytes]) -> None:
        self.door_id = frames[0]
        self.back_door.send(frames[1])

    def _answer(self, frames: list[bytes]) -> None:
        message = _unpack(frames[0])
        if message["type"] == "welcome" and not self.identity:
            self.period_ns = 1e9 * (message["period_s"] or message["dt"])
            self.identity = message["identity"]
            self.back.setsockopt(zmq.ROUTING_ID, self.identity)
            self.back.connect(message["step_endpoint"])
        if message["type"] == "welcome":
            message["step_endpoint"] = self.step_endpoint
        self.front_door.send_multipart([self.door_id, _pack(message)])

    def _state(self, frames: list[bytes]) -> None:
        self.front.send_multipart([self.identity, frames[0]])

    def _command(self, frames: list[bytes]) -> None:
        frame, chance, m = frames[1], self.random.random, self.mischief
        output: dict[str, Any] = _unpack(frame)
        if output["type"] != "command" or output["step"] < 0:
            self.back.send(frame)
            return
        if chance() < m.drop:
            return
        if chance() < m.corrupt:
            broken = bytearray(frame)
            broken[self.random.randrange(len(broken))] ^= 1 << self.random.randrange(8)
            frame = bytes(broken)
        if chance() < m.reorder and self._stored is None:
            self._stored = frame
            return
        for _ in range(2 if chance() < m.double else 1):
            self._send_after(m.delay + m.jitter * chance(), frame)
        if self._stored is not None:
            self._send_after(m.delay, self._stored)
            self._stored = None

    def _send_after(self, periods: float, frame: bytes) -> None:
        heapq.heappush(self._waiting, (monotonic_ns() + int(periods * self.period_ns), next(self._order), frame))


def _bind(socket: zmq.Socket[bytes]) -> str:
    return f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"


def main() -> None:
    """The process."""
    reader = argparse.ArgumentParser()
    reader.add_argument("exchange")
    for name in Mischief.__dataclass_fields__:
        reader.add_argument(f"--{name}", type=float, default=0.0)
    arguments = vars(reader.parse_args())
    proxy = Proxy(arguments.pop("exchange"), Mischief(**arguments))
    print(proxy.endpoint, flush=True)
    proxy.run()


if __name__ == "__main__":
    main()
