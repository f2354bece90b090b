"""Raw exchanges to measure the loop's by: `python -m rtmms_benchmarks.pingpong KIND ...`, a process of its own.

Two processes on one core at one priority. The first sends the bytes of a state at each period, the second answers with
those of a command; nothing is checked or computed. Prints JSON: wake and exchange of each period in ns. Kinds:

    datagram  Unix datagrams, awaited with a time-out that never comes;  zeromq  ROUTER and DEALER
    timeout   datagrams, awaited with half a period as the time-out
    alarm     datagrams, the same deadline as an alarm of the kernel that is set before the period begins
    four      datagrams to four processes at once, and an answer of each
    packed    a stream, with the alarm, and msgpack on both sides: what no exchange of ours can be shorter than
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import socket
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import msgpack

from rtmms.wire.protocol.codec import packer
from rtmms.wire.stream.alarm import Alarm

Exchange = Callable[[], None]
LONGEST_S = 1.0


class Pair(NamedTuple):
    """exchange  one of them;  pid, more  the other sides;  arm  is told each deadline ahead of its period"""

    exchange: Exchange
    pid: int
    arm: Callable[[int], None] | None = None
    more: tuple[int, ...] = ()


def datagram(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """Unix datagrams."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pid = os.fork()
    if pid == 0:
        here.close()
        settle()
        while True:
            there.recv(65536)
            there.send(command)
    here.setblocking(False)

    def exchange() -> None:
        here.send(state)
        select.select([here], (), (), LONGEST_S)
        here.recv(65536)

    return Pair(exchange, pid)


def four(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """Datagrams to four peers."""
    peers = [_echo(socket.SOCK_DGRAM, settle, lambda data: command) for _ in range(4)]
    sockets, every = [here for here, _ in peers], select.poll()
    by = {here.fileno(): here for here in sockets}
    for descriptor in by:
        every.register(descriptor, select.POLLIN)

    def exchange() -> None:
        for here in sockets:
            here.send(state)
        left = len(sockets)
        while left:
            for descriptor, _ in every.poll(1e3 * LONGEST_S):
                by[descriptor].recv(65536)
                left -= 1

    return Pair(exchange, peers[0][1], None, tuple(pid for _, pid in peers[1:]))


def timeout(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """Datagrams, awaited until a deadline by the wait itself."""
    here, pid = _echo(socket.SOCK_DGRAM, settle, lambda data: command)
    until = [0]

    def exchange() -> None:
        here.send(state)
        while not select.select([here], (), (), max(1, until[0] - time.monotonic_ns()) * 1e-9)[0]:
            until[0] = time.monotonic_ns() + 1_000_000_000  # these exchanges are waited for to their end
        here.recv(65536)

    return Pair(exchange, pid, lambda deadline_ns: until.__setitem__(0, deadline_ns))


def alarm(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """Datagrams, awaited until an alarm rings."""
    here, pid = _echo(socket.SOCK_DGRAM, settle, lambda data: command)
    until, wait = _alarmed(here)

    def exchange() -> None:
        here.send(state)
        wait()
        here.recv(65536)

    return Pair(exchange, pid, until.set)


def packed(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """A stream of msgpack's, made and read as often as an exchange of ours does."""
    pack: Any = packer()
    unpack: Any = vars(msgpack)["unpackb"]
    told: dict[str, Any] = {"type": "state", "step": 1, "timestamp": 0.5, "deadline_ns": 1 << 50, "budget_ns": 1 << 19,
            "outputs": {"velocity": [0.1, 0.2, 0.3]}, "applied": {}}  # fmt: skip
    answer: dict[str, Any] = {
        "type": "command",
        "seq": 1,
        "step": 1,
        "values": dict.fromkeys(("a", "b", "c", "d"), 0.123456789),
    }
    for message, size, filling in ((told, len(state), "outputs"), (answer, len(command), "values")):
        message[filling]["x" * max(1, size - len(pack(message)) - 11)] = 0.5  # to the same length
    ready = pack(told)

    def reply(data: bytes) -> bytes:
        answer["step"] = unpack(data)["step"]
        return bytes(pack(answer))

    here, pid = _echo(socket.SOCK_STREAM, settle, reply)
    until, wait = _alarmed(here)

    def exchange() -> None:
        here.send(ready)
        wait()
        unpack(here.recv(65536))

    return Pair(exchange, pid, until.set)


def _echo(kind: int, settle: Callable[[], None], reply: Callable[[bytes], bytes]) -> tuple[socket.socket, int]:
    """A Unix socket to a process that answers."""
    here, there = socket.socketpair(socket.AF_UNIX, kind)
    pid = os.fork()
    if pid == 0:
        here.close()
        settle()
        gc.disable()
        while True:
            there.send(reply(there.recv(65536)))
    here.setblocking(False)
    return here, pid


def _alarmed(here: socket.socket) -> tuple[Alarm, Callable[[], None]]:
    """An alarm, and a wait for the socket that hears it."""
    until, both = Alarm(), select.epoll()
    both.register(here.fileno(), select.EPOLLIN)
    both.register(until.descriptor, select.EPOLLIN)
    descriptor = here.fileno()

    def wait() -> None:
        while all(found != descriptor for found, _ in both.poll(LONGEST_S)):
            until.set(time.monotonic_ns() + 1_000_000_000)  # it rang: likewise

    return until, wait


def zeromq(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """ROUTER and DEALER, I/O threads at the same priority on the same core, awaited as the plant's server does."""
    import zmq

    def context() -> zmq.Context[Any]:
        made: zmq.Context[Any] = zmq.Context()
        made.set(zmq.THREAD_PRIORITY, os.sched_getparam(0).sched_priority)
        made.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
        return made

    def await_readable(descriptor: Any, receive: Callable[..., Any]) -> Any:
        while True:
            try:
                return receive(zmq.NOBLOCK)
            except zmq.Again:
                select.select([descriptor], (), (), LONGEST_S)

    pid = os.fork()
    if pid == 0:
        settle()
        peer: zmq.Socket[bytes] = context().socket(zmq.DEALER)
        peer.setsockopt(zmq.ROUTING_ID, b"A" * 16)
        peer.connect(endpoint)
        peer.send(command)
        waits: Any = peer.getsockopt(zmq.FD)
        while True:
            await_readable(waits, peer.recv)
            peer.send(command)
    settle()
    router: zmq.Socket[bytes] = context().socket(zmq.ROUTER)
    router.bind(endpoint)
    identity = router.recv()
    router.recv()
    ready: Any = router.getsockopt(zmq.FD)

    def exchange() -> None:
        router.send(identity, zmq.SNDMORE | zmq.NOBLOCK)
        router.send(state, zmq.NOBLOCK)
        await_readable(ready, router.recv)
        router.recv()

    return Pair(exchange, pid)


def main() -> int:
    """Words: kind, core, priority, period in us, seconds, bytes of a state, bytes of a command, endpoint."""
    words = argparse.ArgumentParser()
    words.add_argument("kind", choices=list(KINDS))
    for name in ("core", "priority", "period_us", "state_bytes", "command_bytes"):
        words.add_argument(f"--{name}", type=int, required=True)
    words.add_argument("--seconds", type=float, required=True)
    words.add_argument("--endpoint", default="")
    asked = words.parse_args()

    def settle() -> None:
        os.sched_setaffinity(0, {asked.core})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(asked.priority))

    latency = os.open("/dev/cpu_dma_latency", os.O_RDWR) if os.access("/dev/cpu_dma_latency", os.W_OK) else -1
    if latency >= 0:
        os.write(latency, (0).to_bytes(4, sys.byteorder))
    with tempfile.TemporaryDirectory() as folder:
        endpoint = asked.endpoint or f"ipc://{folder}/pingpong"
        pair = KINDS[asked.kind](b"s" * asked.state_bytes, b"c" * asked.command_bytes, settle, endpoint)
        try:
            settle()
            wakes, exchanges, begun = paced(pair.exchange, asked.period_us * 1000, asked.seconds, pair.arm)
        finally:
            for pid in (pair.pid, *pair.more):
                os.kill(pid, 9)
                os.waitpid(pid, 0)
    sys.stdout.write(json.dumps({"wake": list(wakes), "exchange": list(exchanges), "begun": list(begun)}))
    sys.stdout.flush()
    os._exit(0)  # the sockets have nothing left to say


def paced(
    exchange: Exchange, period_ns: int, seconds: float, arm: Callable[[int], None] | None = None
) -> tuple[array[int], array[int], array[int]]:
    """Exchanges on an absolute schedule that skips what it could not keep: (wake, exchange, begun) ns of each."""
    count = round(seconds * 1e9 / period_ns)
    wakes, exchanges, starts = (array("q", [0]) * count for _ in range(3))
    for _ in range(20):
        if arm is not None:
            arm(time.monotonic_ns() + 1_000_000_000)
        exchange()
    gc.collect()
    gc.freeze()
    gc.disable()
    now = time.monotonic_ns
    due = now() + period_ns
    for k in range(count):
        if arm is not None:
            arm(due + period_ns // 2)
        left = due - now()
        if left > 0:
            time.sleep(left * 1e-9)
        begun = now()
        exchange()
        exchanges[k], wakes[k], starts[k] = now() - begun, begun - due, begun
        due += period_ns * max(1, -((due - now()) // period_ns))
    return wakes, exchanges, starts


KINDS: dict[str, Callable[..., Pair]] = {
    "datagram": datagram, "zeromq": zeromq, "timeout": timeout, "alarm": alarm, "packed": packed, "four": four,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
