"""What one look at a connection may cost, counted in frames: nobody keeps the plant busy with nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import MALFORMED, MESSAGE, SocketCallbacks
from rtmms.wire.stream.listener import Listener
from rtmms.wire.stream.publisher import Publisher
from rtmms.wire.stream.zmtp import _MAX_IDLE_FRAMES, GREETING, READY, Reader, ZmtpError, message_of_frames, ready
from tests.wire.bench import PATIENCE_S, Host

MAX_FRAMES = _MAX_IDLE_FRAMES + 1
NOTHING = {"commands": b"\x04\x00", "long commands": b"\x06" + bytes(8), "frames of a message": b"\x01\x00",
           "both": b"\x04\x00\x01\x00"}  # fmt: skip


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Frames looked at, by the call of Reader.next."""
    counts: list[int] = []
    next_, frame = Reader.next, Reader._frame

    def counted(self: Reader) -> Any:
        counts.append(0)
        return next_(self)

    def item(self: Reader) -> Any:
        result = frame(self)
        counts[-1] += result is not None
        return result

    monkeypatch.setattr(Reader, "next", counted)
    monkeypatch.setattr(Reader, "_frame", item)
    return counts


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as built:
        yield built


@pytest.mark.parametrize("output", NOTHING.values(), ids=NOTHING)
def test_one_that_sends_nothing_over_and_over_is_given_up(output: bytes, looked: list[int]) -> None:
    reader = Reader(frozenset([b"DEALER"]), 1000)
    reader.feed(GREETING + ready(b"DEALER") + output * 30_000)
    assert reader.next() == (READY, b"")
    with pytest.raises(ZmtpError, match="without the end of a message"):
        reader.next()
    assert max(looked) <= MAX_FRAMES


def test_a_few_of_them_among_messages_are_passed_by(looked: list[int]) -> None:
    """As one that sends heartbeats, or messages of several frames by mistake."""
    reader = Reader(frozenset([b"DEALER"]), 1000)
    few = b"\x04\x00" * _MAX_IDLE_FRAMES + message_of_frames([b"text"])
    reader.feed(GREETING + ready(b"DEALER") + few * 100 + message_of_frames([b"two", b"frames"]) * 100)
    assert reader.next() == (READY, b"")
    assert [reader.next() for _ in range(200)] == [(MESSAGE, b"text")] * 100 + [(MALFORMED, b"")] * 100
    for _ in range(100):
        reader.feed(b"\x04\x00" * _MAX_IDLE_FRAMES)  # a little at a time
        assert reader.next() is None
    assert max(looked) <= MAX_FRAMES


@pytest.mark.parametrize("make", [lambda bound: Listener([bound], 1000), Publisher], ids=["door", "telemetry"])
@pytest.mark.parametrize("output", NOTHING.values(), ids=NOTHING)
def test_it_is_cut_off_and_counted(
    bound: socket.socket, make: Callable[[socket.socket], Any], output: bytes, looked: list[int]
) -> None:
    at, refused = make(bound), list[str]()
    at.attend(SocketCallbacks(refused=refused.append), 1000)
    kind = b"SUB" if isinstance(at, Publisher) else b"DEALER"
    peer = socket.create_connection(bound.getsockname(), PATIENCE_S)
    peer.sendall(GREETING + ready(kind) + output * 30_000)
    end = time.monotonic() + PATIENCE_S
    while not refused:
        assert time.monotonic() < end
        at.serve(1 << 62)
        if (received := at.next()) is not None:
            refused.append(received[1])
    assert refused == [Reason.MALFORMED]
    assert max(looked) <= MAX_FRAMES
    assert sum(looked) <= 2 * MAX_FRAMES
    peer.close()
    at.close()


@pytest.mark.parametrize(("role", "kind"), [("exchange", b"DEALER"), ("telemetry", b"SUB")])
def test_a_plant_counts_it(host: Host, role: str, kind: bytes) -> None:
    output = GREETING + ready(kind) + b"\x04\x00" * 30_000
    name, _, port = host.server.endpoints[role].removeprefix("tcp://").rpartition(":")
    with socket.create_connection((name, int(port)), PATIENCE_S) as peer:
        peer.sendall(output)
        host.until(lambda: host.rejected)
    assert host.rejected == {Reason.MALFORMED: 1}


def test_a_stranger_pays_for_its_patterns(host: Host, raw: Any) -> None:
    """Without the token 256 patterns are not even matched to their end; with it they are."""
    many = [f"*{'abcdefghijklmnop'[k % 16]}*{k % 10}" for k in range(255)] + ["*"]
    wild = ["?" * before + "*" + "?" * after for before in range(6) for after in range(6)]
    refused = raw.hello([], outputs=wild, token="wrong")
    assert (refused["type"], refused["code"]) == ("error", Reason.WRONG_TYPE)
    assert raw.hello([], outputs=["speed", "pos*"], token="wrong")["selected"] == ["position", "speed"]
    assert "did you mean" not in raw.hello([], outputs=["sped"], token="wrong")["text"]
    assert "did you mean speed" in raw.hello([], outputs=["sped"])["text"]
    assert len(raw.hello([], outputs=wild)["selected"]) == 5
    assert len(raw.hello([], outputs=["*"] * 256, token="wrong")["selected"]) == 5
    assert raw.hello([], outputs=many)["code"] == Reason.UNKNOWN_OUTPUT
