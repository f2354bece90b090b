"""Telemetry of our own: what one subscriber may ask for, and what one that does not read finds when it does."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import SocketCallbacks
from rtmms.wire.stream.publisher import _MAX_SUBSCRIPTIONS, _SEND_BUFFER_BYTES, Publisher
from rtmms.wire.stream.zmtp import GREETING, message_of_frames, ready
from tests.wire.bench import PATIENCE_S, Host
from tests.wire.hostile import message

STATE = 2000
HEAD = message_of_frames((b"toy", bytes(4 + STATE)))[: -4 - STATE]
OWN_ROOM = 16 * 1024


class Bench:
    def __init__(self, family: int, address: Any) -> None:
        bound = socket.socket(family)
        bound.bind(address)
        self.address, self.family, self.refused = bound.getsockname(), family, list[str]()
        self.publisher = Publisher(bound)
        self.publisher.attend(SocketCallbacks(refused=self.refused.append), 1 << 16)

    def peer(self, *topics: bytes) -> socket.socket:
        peer = socket.socket(self.family)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, OWN_ROOM)
        peer.settimeout(PATIENCE_S)
        peer.connect(self.address)
        peer.sendall(GREETING + ready(b"SUB") + b"".join(message(b"\x01" + topic) for topic in topics))
        return peer

    def until(self, done: Callable[[], Any]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < end, "waited in vain"
            self.publisher.serve(1 << 62)


@pytest.fixture(params=["tcp", "ipc"])
def bench(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Bench]:
    built = Bench(*(
        (socket.AF_INET, ("127.0.0.1", 0)) if request.param == "tcp" else (socket.AF_UNIX, str(tmp_path / "t"))
    ))  # fmt: skip
    yield built
    built.publisher.close()


def hung_up_on(item: socket.socket) -> bool:
    """What it received is read on the way."""
    try:
        return not item.recv(4096)
    except BlockingIOError:
        return False


def test_as_many_topics_as_may_be_and_one_more(bench: Bench) -> None:
    item = bench.peer(b"toy", *(b"%d" % k for k in range(_MAX_SUBSCRIPTIONS - 1)))
    bench.until(lambda: [len(topics) for topics in bench.publisher._topics.values()] == [_MAX_SUBSCRIPTIONS])
    bench.publisher.send(b"toy", b"x")
    assert len(bench.publisher._due) == 1
    assert bench.refused == []
    item.sendall(message(b"\x01more"))
    bench.until(lambda: bench.refused)
    assert bench.refused == [Reason.BUSY]
    assert bench.publisher.listener.connections == {}
    item.setblocking(False)
    bench.until(lambda: hung_up_on(item))
    bench.publisher.send(b"toy", b"y")
    assert bench.publisher._due == []
    item.close()


def test_what_one_takes_back_is_not_counted(bench: Bench) -> None:
    item = bench.peer()
    output = [message(b"\x01%d" % k) + message(b"\x00%d" % k) for k in range(5 * _MAX_SUBSCRIPTIONS)]
    item.sendall(b"".join(output) + message(b"\x01to"))
    bench.publisher.send(b"toy", b"x")
    bench.until(lambda: bench.publisher._takers)
    assert bench.refused == []
    item.close()


def test_one_that_does_not_read_finds_a_little_that_is_old_and_then_the_newest(bench: Bench) -> None:
    item, count = bench.peer(b"toy"), 3000
    bench.publisher.send(b"toy", b"")
    bench.until(lambda: bench.publisher._takers)
    for step in range(count):
        bench.publisher.send(b"toy", step.to_bytes(4, "big") + bytes(STATE))
        bench.publisher.serve(1 << 62)
    got, steps = bytearray(), list[int]()

    def caught_up() -> bool:
        item.settimeout(0.01)
        with contextlib.suppress(TimeoutError):
            got.extend(item.recv(4096))
        steps[:] = [int.from_bytes(part[:4], "big") for part in got.split(HEAD)[1:]]
        return steps[-1:] == [count - 1]

    bench.until(caught_up)
    gaps = [later - earlier for earlier, later in itertools.pairwise(steps) if later - earlier > 1]
    # all that is old lies before the gap; a second one where the kernel passed a segment on while the steps went
    assert 1 <= len(gaps) <= 3
    assert steps[-1] - steps[-2] == gaps[-1]  # nothing half old: the newest comes right after
    # twice what was asked for, on either side, and what the kernel takes for one segment more
    assert len(steps) * STATE < 2 * (_SEND_BUFFER_BYTES + OWN_ROOM) + (1 << 17)
    item.close()


def test_a_plant_counts_one_that_wants_too_much(host: Host) -> None:
    name, _, port = host.server.endpoints["telemetry"].removeprefix("tcp://").rpartition(":")
    with socket.create_connection((name, int(port)), PATIENCE_S) as peer:
        peer.sendall(GREETING + ready(b"SUB") + message(b"\x01toy") * 17)
        host.until(lambda: host.rejected)
    assert host.rejected == {Reason.BUSY: 1}
