"""The step socket of our own: what it does that a ROUTER does, and what it does with those who play foul."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import zmq

from rtmms.wire.protocol.port import FULL, GONE, MALFORMED, MESSAGE, OVERSIZE, SENT, Received, SocketCallbacks
from rtmms.wire.stream.steps import Steps
from rtmms.wire.stream.zmtp import GREETING, message_of_frames, ready
from tests.wire.hostile import reset

CAP = 1000
PEER = b"\x01peer"
PATIENCE_S = 60.0
READY = b"\x04\x2c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity" + len(PEER).to_bytes(4, "big") + PEER


@pytest.fixture(params=["best", "selected"])
def steps(request: pytest.FixtureRequest) -> Iterator:
    """With epoll and the kernel's alarm where there are some, and as where there are none."""
    built = Steps([socket.create_server(("127.0.0.1", 0))], CAP, selected=request.param == "selected")
    built.strangers = []
    built.attend(SocketCallbacks(lambda identity: identity == PEER, refused=built.strangers.append), CAP)
    yield built
    built.close()
    built.close()


def plain(steps, *output: bytes) -> socket.socket:
    """A connection that sends these bytes."""
    connection = socket.create_connection(next(iter(steps._bound.values())).getsockname(), PATIENCE_S)
    for part in output:
        connection.sendall(part)
    return connection


def until(steps, done) -> None:
    end = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end, "waited in vain"
        steps.serve(1 << 62)
        time.sleep(0.001)


def read_message(steps) -> Received:
    end = time.monotonic_ns() + int(PATIENCE_S * 1e9)
    while (result := steps.next()) is None:
        assert time.monotonic_ns() < end, "nothing arrived"
        steps.wait(end)
    return result


def joined(steps) -> socket.socket:
    built = plain(steps, GREETING, _ready())
    until(steps, lambda: PEER in steps.connections)
    return built


def _ready() -> bytes:
    body = READY[2:]
    return bytes((4, len(body))) + body


def test_a_dealer_of_zeromq_talks_with_it_both_ways(steps) -> None:
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        dealer.setsockopt(zmq.ROUTING_ID, PEER)
        dealer.connect(f"tcp://127.0.0.1:{next(iter(steps._bound.values())).getsockname()[1]}")
        dealer.send(b"hello")
        until(steps, lambda: PEER in steps.connections)
        assert read_message(steps) == (PEER, MESSAGE, b"hello", None)
        for frame in (b"short", b"x" * 255, b"y" * 256, b"z" * 70_000):
            assert steps.send(PEER, frame) == SENT
            assert dealer.poll(int(PATIENCE_S * 1000))
            assert dealer.recv_multipart() == [frame]
        assert steps.next() is None


def test_frames_in_one_piece_and_in_many_come_out_one_by_one(steps) -> None:
    peer = joined(steps)
    whole = message_of_frames([b"one"]) + message_of_frames([b"two"]) + message_of_frames([b"3" * 300])
    peer.sendall(whole)
    assert [read_message(steps)[2] for _ in range(3)] == [b"one", b"two", b"3" * 300]
    for byte in message_of_frames([b"bit by bit"]):
        peer.sendall(bytes((byte,)))
        time.sleep(0.001)
    assert read_message(steps)[2] == b"bit by bit"
    assert steps.next() is None
    peer.close()


def test_a_message_of_several_frames_reports_it_and_the_next_one_is_sound(steps) -> None:
    peer = joined(steps)
    peer.sendall(message_of_frames([b"a", b"b"]) + message_of_frames([b"sound"]))
    assert read_message(steps)[:2] == (PEER, MALFORMED)
    assert read_message(steps) == (PEER, MESSAGE, b"sound", None)
    peer.close()


def test_a_message_that_is_too_long_is_reported_as_such_and_not_kept(steps) -> None:
    peer = joined(steps)
    peer.sendall(message_of_frames([b"l" * (CAP + 500)]) + message_of_frames([b"sound"]))
    assert read_message(steps)[:3] == (PEER, OVERSIZE, b"")
    assert read_message(steps)[2] == b"sound"
    peer.sendall(b"\x02" + (1 << 40).to_bytes(8, "big"))
    assert read_message(steps)[:3] == (PEER, OVERSIZE, b"")
    assert steps.connections == {}
    peer.close()


def test_one_that_is_no_peer_is_cut_off_and_counted(steps) -> None:
    body = _ready()[2:].replace(PEER, b"\x01else")
    stranger = plain(steps, GREETING, bytes((4, len(body))) + body)
    until(steps, lambda: steps.strangers)
    assert steps.connections == {}
    assert steps.next() is None
    stranger.close()


def test_a_second_connection_under_the_same_name_does_not_take_its_place(steps) -> None:
    first, second = joined(steps), plain(steps, GREETING, _ready())
    until(steps, lambda: steps.strangers)
    first.sendall(message_of_frames([b"still here"]))
    assert read_message(steps)[2] == b"still here"
    first.close()
    second.close()


@pytest.mark.parametrize("output", [b"GET / HTTP/1.1\r\n\r\n" * 5, bytes(64), b"\xff" * 64])
def test_what_is_no_zmtp_is_cut_off(steps, output: bytes) -> None:
    other = plain(steps, output)
    other.settimeout(PATIENCE_S)
    until(steps, lambda: steps.connections)
    until(steps, lambda: not steps.connections)
    other.close()


def test_one_that_sends_nothing_is_cut_off_after_a_while(steps, monkeypatch) -> None:
    monkeypatch.setattr("rtmms.wire.stream.listener._HANDSHAKE_NS", 20_000_000)
    silent = plain(steps)
    until(steps, lambda: steps.connections)
    until(steps, lambda: not steps.connections)
    silent.close()


def test_one_that_is_gone_cannot_be_reached(steps) -> None:
    joined(steps).close()
    end = time.monotonic() + PATIENCE_S
    while PEER in steps.connections and time.monotonic() < end:
        assert steps.next() is None
    assert steps.send(PEER, b"anybody?") == GONE


def test_one_that_does_not_read_loses_what_is_sent_and_nobody_waits(steps) -> None:
    peer = joined(steps)

    assert FULL in (steps.send(PEER, b"s" * 60_000) for _ in range(10_000))
    assert len(steps.connections[PEER].unsent) <= 60_009
    peer.close()


def test_one_that_is_held_is_not_received_until_it_is_let_go(steps) -> None:
    peer = joined(steps)
    peer.sendall(message_of_frames([b"one"]) + message_of_frames([b"two"]))
    assert read_message(steps) == (PEER, MESSAGE, b"one", None)
    steps.hold(PEER)
    peer.sendall(message_of_frames([b"three"]))
    assert not steps.wait(time.monotonic_ns() + 20_000_000)  # the wait is not disturbed
    assert steps.next() is None
    assert steps.line(PEER) == -1
    assert steps.send(PEER, b"state") == SENT
    steps.hold(PEER)
    steps.let_go(PEER)
    steps.let_go(PEER)
    assert read_message(steps) == (PEER, MESSAGE, b"two", None)
    assert read_message(steps) == (PEER, MESSAGE, b"three", None)
    assert steps.line(PEER) >= 0 or steps._alarm is None
    steps.hold(b"nobody")
    steps.let_go(b"nobody")
    peer.close()


def test_one_that_is_held_and_gone_is_given_up(steps) -> None:
    peer = joined(steps)
    steps.hold(PEER)
    reset(peer)
    end = time.monotonic() + PATIENCE_S
    while steps.send(PEER, b"state") != GONE and PEER in steps.connections:
        assert time.monotonic() < end, "waited in vain"
        steps.wait(time.monotonic_ns() + 1_000_000)
        steps.next()


def test_one_that_is_cut_off_receives_it(steps) -> None:
    peer = joined(steps)
    steps.hold(PEER)
    steps.cut_off(PEER)
    steps.cut_off(PEER)
    assert PEER not in steps.connections
    steps.serve(1 << 62)
    while peer.recv(1000):
        pass
    peer.close()


def test_one_that_is_no_peer_any_more_is_not_received_within_the_step(steps) -> None:
    peer = joined(steps)
    steps.attend(SocketCallbacks(), CAP)
    until(steps, lambda: steps.connections[PEER].poller is steps._far)
    peer.sendall(message_of_frames([b"anything"]) * 100)
    steps.wait(time.monotonic_ns() + 20_000_000)
    assert steps.next() is None
    assert steps.send(PEER, b"bye") == SENT  # but it can get the reason
    peer.close()


def test_a_wait_ends_when_its_time_is_up_armed_or_not_and_an_alarm_that_rang_disturbs_no_other(steps) -> None:
    peer, waited = joined(steps), []
    for armed in (True, False, True):
        until_ns = time.monotonic_ns() + 5_000_000
        if armed:
            steps.arm(until_ns)
        steps.wait(until_ns)
        waited.append(time.monotonic_ns() >= until_ns)
        steps.wait(until_ns)  # once more: it is over
        assert steps.next() is None
    assert waited == [True] * 3
    later = time.monotonic_ns() + int(PATIENCE_S * 1e9)
    peer.sendall(message_of_frames([b"in time"]))
    steps.wait(later)
    assert time.monotonic_ns() < later
    assert steps.next() == (PEER, MESSAGE, b"in time", None)
    peer.close()


def test_what_it_sent_last_is_received_though_it_has_gone_and_something_was_sent_to_it(steps) -> None:
    peer = joined(steps)
    peer.sendall(message_of_frames([b"bye"]))
    peer.close()
    end = time.monotonic() + PATIENCE_S
    while steps.send(PEER, b"a state") != GONE:
        assert time.monotonic() < end, "it stays"
    assert read_message(steps) == (PEER, MESSAGE, b"bye", None)
    until(steps, lambda: steps.next() is None and steps.send(PEER, b"anybody?") == GONE and not steps.connections)


def test_a_state_larger_than_the_kernel_takes_at_once_leaves_within_the_wait(tmp_path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        bound.bind(str(tmp_path / "s"))
        steps = Steps([bound], CAP)
        steps.attend(SocketCallbacks(lambda identity: identity == PEER), CAP)
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        peer.settimeout(PATIENCE_S)
        peer.connect(str(tmp_path / "s"))
        peer.sendall(GREETING + _ready())
        until(steps, lambda: PEER in steps.connections)
        state, got = b"s" * 3_000_000, bytearray()
        head = len(GREETING + ready(b"ROUTER"))
        assert steps.send(PEER, state) == SENT

        def read() -> None:
            while len(got) < head + 9 + len(state):
                got.extend(peer.recv(1 << 16))
            peer.sendall(message_of_frames([b"answer"]))

        reader = threading.Thread(target=read)
        reader.start()
        assert read_message(steps) == (PEER, MESSAGE, b"answer", None)  # nobody called `serve` meanwhile
        reader.join()
        assert got[head:] == message_of_frames([state])
        assert steps.connections[PEER].unsent == b""
        assert steps.send(PEER, b"t" * 3_000_000) == SENT
        steps.wait(time.monotonic_ns() + 1_000_000)
        steps.close()  # with what the kernel takes of the rest
        assert peer.recv(10)[0] == 2
        peer.close()
