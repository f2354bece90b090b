"""The plant's own listener, step by step: connections that go at any moment, too many of them, halves of messages."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rtmms.wire.protocol.port import FULL, SENT, Received, SocketCallbacks
from rtmms.wire.stream.listener import Connection, Listener
from rtmms.wire.stream.zmtp import GREETING, message_of_frames, ready
from tests.wire.bench import PATIENCE_S
from tests.wire.hostile import message, reset

FOREVER = 1 << 62
HELLO = GREETING + ready(b"DEALER")


class Bench:
    def __init__(self, **options: Any) -> None:
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        self.address = bound.getsockname()
        self.listener = Listener([bound], 512, **({"maximum": 8} | options))

    def peer(self, output: bytes = HELLO) -> socket.socket:
        peer = socket.create_connection(self.address, timeout=PATIENCE_S)
        peer.sendall(output)
        return peer

    def until(self, done: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE_S
        while not (result := done()):
            assert time.monotonic() < end, "waited in vain"
            self.listener.serve(FOREVER)
        return result

    def read_message(self) -> Received:
        result: Received = self.until(self.listener.next)
        return result


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    built: list[Bench] = []

    def bench(**options: Any) -> Bench:
        built.append(Bench(**options))
        return built[-1]

    yield bench
    for item in built:
        item.listener.close()


def test_messages_in_turn_and_answers(make: Callable[..., Bench]) -> None:
    bench = make()
    item, two = bench.peer(HELLO + message(b"a1") + message(b"a2")), bench.peer(HELLO + message(b"b1") + message(b"b2"))
    bench.until(lambda: len(bench.listener._queue) == 2)
    received = [bench.read_message() for _ in range(4)]
    assert [frame for _, _, frame, _ in received[:2]] in ([b"a1", b"b1"], [b"b1", b"a1"])  # each in its turn
    assert sorted(frame for _, _, frame, _ in received) == [b"a1", b"a2", b"b1", b"b2"]
    assert bench.listener.send(received[0][0], b"answer") == SENT
    first = item if received[0][2][:1] == b"a" else two
    got = b""
    while not got.endswith(message(b"answer")):
        got += first.recv(4096)
    assert got == GREETING + ready(b"ROUTER") + message(b"answer")
    item.close()
    two.close()


def test_one_that_breaks_off_with_a_message_behind_its_handshake(
    make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our READY cannot be sent any more, and what it sent is not read; nobody else notices."""
    bench = make()
    peer = bench.peer(HELLO + message(b"last words"))
    real = bench.listener._flush

    def flush(connection: Connection) -> None:
        if connection.reader.ready:
            connection.socket.close()
        real(connection)

    monkeypatch.setattr(bench.listener, "_flush", flush)
    bench.until(lambda: bench.listener._numbers == 1 and not bench.listener.connections)
    assert bench.listener.next() is None
    monkeypatch.undo()
    other = bench.peer(HELLO + message(b"still here"))
    assert bench.read_message()[2] == b"still here"
    peer.close()
    other.close()


def test_nothing_more_is_read_from_one_that_waits(make: Callable[..., Bench]) -> None:
    bench = make()
    peer = bench.peer(HELLO)
    peer.settimeout(0.1)
    sent = 0
    try:
        while sent < 1 << 26:
            sent += peer.send(message(b"x" * 100) * 100)
            bench.listener.serve(FOREVER)
    except TimeoutError:
        pass
    assert sent < 1 << 26, "it was taken in without end"
    (connection,) = bench.listener.connections.values()
    assert connection.reader.held <= 1 << 17
    peer.close()


def test_the_oldest_that_nobody_knows_gives_way(make: Callable[..., Bench]) -> None:
    bench = make(maximum=4)
    known = bench.peer(HELLO + message(b"known"))
    stored = bench.read_message()[0]
    bench.listener.attend(SocketCallbacks(lambda key: key == stored), 512)
    strangers = [bench.peer() for _ in range(10)]
    bench.until(lambda: bench.listener._numbers == 11)
    assert len(bench.listener.connections) == 4
    assert stored in bench.listener.connections
    known.sendall(message(b"again"))
    assert bench.read_message()[2] == b"again"
    for peer in (known, *strangers):
        peer.close()
    bench.until(lambda: not bench.listener.connections)


def test_one_that_never_ends_its_handshake_is_hung_up_on(make: Callable[..., Bench], monkeypatch: Any) -> None:
    monkeypatch.setattr("rtmms.wire.stream.listener._HANDSHAKE_NS", 50_000_000)
    bench = make()
    slow, quick = bench.peer(GREETING[:20]), bench.peer(HELLO)
    bench.until(lambda: bench.listener._numbers == 2 and len(bench.listener.connections) == 1)
    quick.sendall(message(b"x"))
    assert bench.read_message()[2] == b"x"
    slow.close()
    quick.close()


class Few:
    """A bound socket in a process that may have `most` connections open."""

    def __init__(self, bound: socket.socket, open_now: Callable[[], int], maximum: int) -> None:
        self._bound, self._open_now, self._maximum = bound, open_now, maximum

    def accept(self) -> Any:
        if self._open_now() >= self._maximum:  # as Linux: before it looks whether anybody is there
            raise OSError(errno.EMFILE, "Too many open files")
        return self._bound.accept()

    def close(self) -> None:
        self._bound.close()


def test_where_no_descriptor_is_left_strangers_give_way(
    make: Callable[..., Bench],
) -> None:
    bench, other = make(), make()
    refused: list[str] = []
    both = (bench.listener, other.listener)
    for item in both:
        item.other_listeners = tuple(set(both) - {item})
        for descriptor, bound in item._bound.items():
            few: Any = Few(bound, lambda: sum(len(each.connections) for each in both), 4)
            item._bound[descriptor] = few

    known = bench.peer(HELLO + message(b"known"))
    stored = bench.read_message()[0]
    bench.listener.attend(SocketCallbacks(lambda key: key == stored, refused=refused.append), 512)
    strangers = [bench.peer(HELLO + message(b"hi")) for _ in range(2)]
    greeted = {bench.read_message()[0] for _ in strangers}
    idle = other.peer(GREETING[:10])
    other.until(lambda: other.listener.connections)

    newcomer = bench.peer(HELLO + message(b"new"))  # in place of the one beside, the youngest
    assert bench.read_message()[2] == b"new"
    assert (other.listener.connections, refused) == ({}, ["busy"])
    assert greeted < set(bench.listener.connections)

    later = []
    for _ in range(2):  # in place of the oldest strangers
        later.append(bench.peer(HELLO + message(b"later")))
        assert bench.read_message()[2] == b"later"
    assert stored in bench.listener.connections
    assert not greeted & set(bench.listener.connections)
    assert refused == ["busy"] * 3

    for peer in (known, *strangers, idle, newcomer, *later):
        peer.close()


def test_nothing_is_done_when_the_time_is_up(make: Callable[..., Bench]) -> None:
    bench = make()
    peer = bench.peer(HELLO + message(b"x"))
    for _ in range(50):
        bench.listener.serve(1)
    assert bench.listener.connections == {}
    assert bench.read_message()[2] == b"x"
    peer.close()


def test_a_long_answer_leaves_piece_by_piece_and_a_full_one_is_refused(make: Callable[..., Bench]) -> None:
    bench = make()
    peer = bench.peer(HELLO + message(b"x"))
    who = bench.read_message()[0]
    answer = bytes(range(256)) * (1 << 15)  # 8 MiB
    assert bench.listener.send(who, answer) == SENT
    assert bench.listener.send(who, b"more") == FULL
    peer.settimeout(0.01)
    whole = GREETING + ready(b"ROUTER") + message_of_frames((answer,))
    got = bytearray()

    def arrived() -> bool:
        with contextlib.suppress(TimeoutError):
            got.extend(peer.recv(1 << 20))
        return len(got) >= len(whole)

    bench.until(arrived)
    assert bytes(got) == whole
    peer.close()


def test_whatever_peers_do_the_listener_goes_on(make: Callable[..., Bench]) -> None:
    """Connections that come, send something, and go or break off at any moment."""
    draw = random.Random(1)
    bench = make(maximum=6, backlog=1 << 12)
    peers: list[socket.socket] = []
    parts = [HELLO, GREETING, ready(b"DEALER"), message(b"y" * 300), message(b"z", more=True), b"\xff" * 12, b"\x02",
             HELLO + message(b"x") * 30]  # fmt: skip
    for _ in range(1500):
        what = draw.random()
        if what < 0.25 or not peers:
            peers.append(bench.peer(draw.choice(parts)))
        elif what < 0.55:
            with contextlib.suppress(OSError):
                draw.choice(peers).sendall(draw.choice(parts))
        elif what < 0.75:
            peer = peers.pop(draw.randrange(len(peers)))
            (reset if draw.random() < 0.7 else socket.socket.close)(peer)
        bench.listener.serve(FOREVER)
        if draw.random() < 0.5 and (received := bench.listener.next()) is not None:
            bench.listener.send(received[0], b"a" * draw.choice((1, 300, 100_000)))
        assert len(bench.listener.connections) <= 6
    for peer in peers:
        peer.close()
    while bench.listener.next() is not None:
        pass
    last = bench.peer(HELLO + message(b"at last"))
    while bench.read_message()[2] != b"at last":
        pass
    last.close()
