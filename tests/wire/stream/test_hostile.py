"""Peers that speak ZeroMQ's own protocol to do harm: the plant goes on, in the memory it had."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

import rtmms
from rtmms.wire.stream.zmtp import GREETING, Reader, ZmtpError, message_of_frames, ready
from tests.wire.bench import PATIENCE_S
from tests.wire.hostile import PING, connected, message, pour, reset, shaken
from tests.wire.looping import plant_process

KINDS = {"exchange": b"DEALER", "step": b"DEALER", "telemetry": b"SUB"}


class Victim:
    """A plant in a process of its own."""

    def __init__(self) -> None:
        self.process, exchange = plant_process()
        with zmq.Context() as context, context.socket(zmq.DEALER) as door:
            door.linger = 0
            door.connect(exchange)
            door.send(msgpack.packb({"type": "hello", "protocol": 1, "name": "scout"}))
            assert door.poll(int(PATIENCE_S * 1e3))
            welcome = msgpack.unpackb(door.recv())
        self.endpoints = {"exchange": exchange} | {r: welcome[f"{r}_endpoint"] for r in ("step", "telemetry")}

    def memory_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def drives(self) -> bool:
        """A peer comes in and its commands count."""
        assert self.process.poll() is None, "the plant died"
        with rtmms.connect(self.endpoints["exchange"], claim="*", timeout_s=PATIENCE_S) as link:
            for state in link:
                link.command({"left.front": 0.25})
                if state["position"][0] == 0.25:
                    return True
        return False


@pytest.fixture
def victim() -> Iterator[Victim]:
    victim = Victim()
    yield victim
    victim.process.kill()
    victim.process.communicate()


@pytest.mark.full
@pytest.mark.parametrize("role", KINDS)
def test_heartbeats_in_a_flood_that_breaks_off(victim: Victim, role: str) -> None:
    """With libzmq at that end: Assertion failed: !_io_error."""
    for _ in range(5):
        peer = shaken(victim.endpoints[role], KINDS[role])
        pour(peer, (message(b"hello") * 3 + PING) * 2000, 1 << 22)
        time.sleep(0.05)
        reset(peer)
    time.sleep(0.2)
    assert victim.drives()


@pytest.mark.full
def test_heartbeats_in_a_flood_while_a_claimant_works(victim: Victim) -> None:
    with rtmms.connect(victim.endpoints["exchange"], claim="*") as link:
        link.command({}, next(link).step)
        for _ in range(5):
            peer = shaken(victim.endpoints["step"])
            pour(peer, (message(b"hello") * 3 + PING) * 2000, 1 << 22)
            reset(peer)
        for state in link:
            link.command({"left.front": 0.25})
            if state["position"][0] == 0.25:
                break
    assert victim.process.poll() is None


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("role", KINDS)
def test_a_message_that_never_ends_takes_no_memory(victim: Victim, role: str) -> None:
    before = victim.memory_kib()
    peer = shaken(victim.endpoints[role], KINDS[role])
    pour(peer, message(b"x" * 200, more=True) * 500, 1 << 27)
    grown = victim.memory_kib() - before
    assert grown < 8192, f"{grown} KiB"
    reset(peer)
    assert victim.drives()


@pytest.mark.full
def test_hundreds_that_connect_and_send_nothing_keep_nobody_out(victim: Victim) -> None:
    idle = [connected(victim.endpoints["exchange"]) for _ in range(300)]
    assert victim.drives()
    half = [shaken(victim.endpoints["exchange"]) for _ in range(300)]
    assert victim.drives()
    for peer in (*idle, *half):
        peer.close()


@pytest.mark.full
@pytest.mark.parametrize(
    "output",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x01\x00",  # ZMTP 1
        b"\xff" + bytes(8) + b"\x7f\x01\x00",  # ZMTP 2
        GREETING[:12] + b"CURVE".ljust(20, b"\0") + bytes(32),
        GREETING + ready(b"PUB"),
        GREETING + message(b"before READY"),
        GREETING + b"\x04\x03\x02XY",
        GREETING + ready(b"DEALER") + b"\xff\xff",
        GREETING + ready(b"DEALER") + b"\x02" + b"\xff" * 8,  # 2^64 bytes are to come
        GREETING + b"\x06" + b"\xff" * 8,
    ],
)
def test_what_is_no_zeromq_is_hung_up_on(victim: Victim, output: bytes) -> None:
    peer = connected(victim.endpoints["exchange"])
    peer.sendall(output)
    while peer.recv(4096):
        pass  # until it hangs up, or the time is up and this raises
    peer.close()
    assert victim.drives()


@pytest.mark.full
def test_bytes_one_by_one(victim: Victim) -> None:
    peer = connected(victim.endpoints["exchange"])
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in GREETING + ready(b"DEALER") + message(b"\xc1"):
        peer.sendall(bytes([byte]))
        time.sleep(1e-4)
    got = b""
    while b"garbled" not in got:  # a stranger may be of version 1
        got += peer.recv(4096)
    peer.close()


@pytest.mark.full
def test_one_that_does_not_read_its_answers_is_left_behind(victim: Victim) -> None:
    peer = shaken(victim.endpoints["exchange"])
    pour(peer, message(b"\xc1") * 1000, 1 << 22)
    assert victim.drives()
    peer.close()


@pytest.mark.full
def test_a_subscriber_that_does_not_read_costs_the_others_nothing(victim: Victim) -> None:
    stopped = shaken(victim.endpoints["telemetry"], b"SUB")
    stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stopped.sendall(message(b"\x01toy"))
    with zmq.Context() as context, context.socket(zmq.SUB) as other:
        other.linger = 0
        other.subscribe(b"to")
        other.connect(victim.endpoints["telemetry"])
        for _ in range(300):
            assert other.poll(int(PATIENCE_S * 1e3))
            assert other.recv_multipart()[0] == b"toy"
        other.unsubscribe(b"to")
        other.subscribe(b"another robot")
        end = time.monotonic() + PATIENCE_S
        while other.poll(300):  # until the plant has read that
            assert time.monotonic() < end, "it goes on"
            other.recv_multipart()
    stopped.close()
    assert victim.drives()


@pytest.mark.full
def test_the_descriptors_of_those_that_went_are_closed(victim: Victim) -> None:
    folder = Path(f"/proc/{victim.process.pid}/fd")
    if not folder.exists():
        pytest.skip("descriptors are counted in /proc")
    victim.drives()
    before = len(list(folder.iterdir()))
    for _ in range(200):
        reset(shaken(victim.endpoints["exchange"]))
    assert victim.drives()
    deadline = time.monotonic() + PATIENCE_S
    while len(list(folder.iterdir())) > before + 8:
        assert time.monotonic() < deadline, "descriptors are left"
        time.sleep(0.05)


# -- the reader ---------------------------------------------------------------------------------------------------

frames = st.lists(st.lists(st.binary(max_size=700), min_size=1, max_size=3), max_size=6)


@given(frames, st.data())
def test_pieces_make_no_difference(sent: list[list[bytes]], data: st.DataObject) -> None:
    stream = GREETING + ready(b"DEALER") + b"".join(message_of_frames(entry) for entry in sent)
    expected = [("ready", b"")]
    for item in sent:
        if any(len(frame) > 512 for frame in item):
            expected.append(("oversize", b""))
        else:
            expected.append(("message", item[0]) if len(item) == 1 else ("malformed", b""))
    reader, received = Reader(frozenset([b"DEALER"]), 512), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        reader.feed(stream[:size])
        stream = stream[size:]
        while (result := reader.next()) is not None:
            received.append(result)
        assert reader.held <= max(512 + 9, 64 + 128)
    assert [frame for what, frame in received if what == "message"] == [f for what, f in expected if what == "message"]
    assert len(received) == len(expected)


def test_a_property_that_is_cut_off_is_no_handshake() -> None:
    reader = Reader(frozenset([b"DEALER"]), 512)
    reader.feed(GREETING + b"\x04\x12\x05READY\x0bSocket-Type")
    with pytest.raises(ZmtpError):
        reader.next()


@pytest.mark.full
def test_the_plant_survives_what_a_killed_libzmq_client_with_heartbeats_leaves(victim: Victim) -> None:
    program = (
        "import os, sys, time, zmq\n"
        "context = zmq.Context()\n"
        "for endpoint in sys.argv[1:]:\n"
        "    socket = context.socket(zmq.DEALER)\n"
        "    socket.heartbeat_ivl = 1\n"
        "    socket.sndhwm = 0\n"
        "    socket.connect(endpoint)\n"
        "    for _ in range(3000): socket.send(b'x' * 100)\n"
        "time.sleep(0.3)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    import sys

    subprocess.run([sys.executable, "-c", program, victim.endpoints["exchange"], victim.endpoints["step"]], check=False)
    assert victim.drives()
