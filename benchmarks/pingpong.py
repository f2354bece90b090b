"""Raw exchanges as a reference for the loop's: `python -m rtmms_benchmarks.pingpong KIND ...`, another process.

Two processes on one core at one priority. The first sends the bytes of a state at each period, the second answers with
those of a command; nothing is checked or computed. It prints JSON: wake and exchange of each period in ns. Kinds:

    datagram  Unix datagrams, awaited with a time-out that never comes;  zeromq  ROUTER and DEALER
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

Exchange = Callable[[], None]
MAX_WAIT_S = 1.0


class Pair(NamedTuple):
    """Exchange with another process.

    Attributes
    ----------
    exchange : Exchange
        Performs one exchange.
    pid : int
        Number of the other process.
    """

    exchange: Exchange
    pid: int


def datagram(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """Exchange over Unix datagrams.

    Parameters
    ----------
    state, command : bytes
        Bytes of both directions.
    settle : Callable[[], None]
        Sets core and priority of the other process.
    endpoint : str
        Not used.

    Returns
    -------
    Pair
        The exchange.
    """
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
        select.select([here], (), (), MAX_WAIT_S)
        here.recv(65536)

    return Pair(exchange, pid)


def zeromq(state: bytes, command: bytes, settle: Callable[[], None], endpoint: str) -> Pair:
    """Exchange over ROUTER and DEALER, awaited as in the plant's server.

    The I/O threads have the same priority and the same core.

    Parameters
    ----------
    state, command : bytes
        Bytes of both directions.
    settle : Callable[[], None]
        Sets core and priority of the other process.
    endpoint : str
        Endpoint of the sockets.

    Returns
    -------
    Pair
        The exchange.
    """
    import zmq

    def context() -> zmq.Context[Any]:
        built: zmq.Context[Any] = zmq.Context()
        built.set(zmq.THREAD_PRIORITY, os.sched_getparam(0).sched_priority)
        built.set(zmq.THREAD_SCHED_POLICY, os.SCHED_FIFO)
        return built

    def await_readable(descriptor: Any, receive: Callable[..., Any]) -> Any:
        while True:
            try:
                return receive(zmq.NOBLOCK)
            except zmq.Again:
                select.select([descriptor], (), (), MAX_WAIT_S)

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
    """Run with the words kind, core, priority, period in us, seconds, bytes of a state, bytes of a command, endpoint.

    Returns
    -------
    int
        0.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=list(KINDS))
    for name in ("core", "priority", "period_us", "state_bytes", "command_bytes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--endpoint", default="")
    asked = parser.parse_args()

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
            wakes, exchanges, begun = paced(pair.exchange, asked.period_us * 1000, asked.seconds)
        finally:
            os.kill(pair.pid, 9)
            os.waitpid(pair.pid, 0)
    sys.stdout.write(json.dumps({"wake": list(wakes), "exchange": list(exchanges), "begun": list(begun)}))
    sys.stdout.flush()
    os._exit(0)  # the sockets have nothing left to send


def paced(exchange: Exchange, period_ns: int, seconds: float) -> tuple[array[int], array[int], array[int]]:
    """Run exchanges on an absolute schedule that skips late ones.

    Parameters
    ----------
    exchange : Exchange
        Performs one exchange.
    period_ns : int
        Period, ns.
    seconds : float
        Duration, s.

    Returns
    -------
    tuple[array[int], array[int], array[int]]
        Wake, exchange, start, ns of each.
    """
    count = round(seconds * 1e9 / period_ns)
    wakes, exchanges, starts = (array("q", [0]) * count for _ in range(3))
    for _ in range(20):
        exchange()
    gc.collect()
    gc.freeze()
    gc.disable()
    now = time.monotonic_ns
    due = now() + period_ns
    for k in range(count):
        left = due - now()
        if left > 0:
            time.sleep(left * 1e-9)
        begun = now()
        exchange()
        exchanges[k], wakes[k], starts[k] = now() - begun, begun - due, begun
        due += period_ns * max(1, -((due - now()) // period_ns))
    return wakes, exchanges, starts


KINDS: dict[str, Callable[..., Pair]] = {"datagram": datagram, "zeromq": zeromq}


if __name__ == "__main__":
    sys.exit(main())
