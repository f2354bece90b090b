"""A link's data socket of our own, against ZeroMQ's ROUTER and against those who play foul."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

import rtmms
from rtmms.wire.addresses import listen as listen_at
from rtmms.wire.addresses import nearest, sweep
from rtmms.wire.libzmq.peer_sockets import Dealer as ZeroMQ
from rtmms.wire.protocol.port import SENT
from rtmms.wire.session_files import make_runtime_directory
from rtmms.wire.stream import dealer as module
from rtmms.wire.stream.dealer import Dealer
from rtmms.wire.stream.zmtp import GREETING, Reader, message_of_frames, ready
from tests.wire.bench import Host
from tests.wire.looping import Looping

NAME = b"\x01me"
PATIENCE_S = 60.0


@pytest.fixture
def router() -> Iterator[Any]:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as built:
        built.linger = 0
        built.bind("tcp://127.0.0.1:*")
        yield built


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as built:
        built.settimeout(PATIENCE_S)
        yield built


def until(done: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (result := done()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)
    return result


def endpoint(listener: socket.socket) -> str:
    return f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def accepted(listener: socket.socket, dealer: Dealer) -> socket.socket:
    """The plant's end of its connection, shaken hands on."""
    there, _ = listener.accept()
    there.settimeout(PATIENCE_S)
    there.sendall(GREETING + ready(b"ROUTER"))
    until(lambda: received(dealer) is None and dealer._connection.reader.ready)
    output = b""
    while len(output) < len(GREETING + ready(b"DEALER", NAME)):
        output += there.recv(4096)
    assert output == GREETING + ready(b"DEALER", NAME)
    return there


def received(dealer: Dealer) -> bytes | None:
    """The next message, if there is one."""
    result = dealer.next()
    return None if result is None else result[2]


def gone(dealer: Dealer) -> bool:
    """After it was looked after."""
    dealer.serve(time.monotonic_ns())
    return dealer.gone()


def readable(dealer: Dealer, wait_s: float) -> bool:
    return bool(select.select([dealer.descriptor], [], [], wait_s)[0])


def test_it_talks_with_a_router_of_zeromq_both_ways(router: Any) -> None:
    dealer = Dealer(router.getsockopt_string(zmq.LAST_ENDPOINT), NAME)
    until(lambda: received(dealer) is None and dealer.send(b"", b"hello") == SENT)
    assert router.poll(int(PATIENCE_S * 1e3))
    assert router.recv_multipart() == [NAME, b"hello"]
    for frame in (b"", b"short", b"x" * 255, b"y" * 256, b"z" * 70_000, b"w" * 3_000_000):
        router.send_multipart([NAME, frame])
        assert until(lambda: (got := received(dealer)) is not None and [got]) == [frame]
    for frame in (b"x" * 255, b"y" * 256, b"z" * 70_000):
        assert dealer.send(b"", frame) == SENT
        assert router.poll(int(PATIENCE_S * 1e3))
        assert router.recv_multipart() == [NAME, frame]
    dealer.send(b"", b"bye")
    dealer.close()
    assert router.poll(int(PATIENCE_S * 1e3))
    assert router.recv_multipart() == [NAME, b"bye"]


def test_messages_in_one_piece_and_in_many_come_out_one_by_one(listener: socket.socket) -> None:
    dealer = Dealer(endpoint(listener), NAME)
    there = accepted(listener, dealer)
    there.sendall(
        message_of_frames([b"one"])
        + message_of_frames([b"2" * 300])
        + message_of_frames([b"of", b"several"])
        + message_of_frames([b"three"])[:3]
    )
    assert readable(dealer, PATIENCE_S)
    assert received(dealer) == b"one"
    assert received(dealer) == b"2" * 300
    assert received(dealer) is None
    there.sendall(message_of_frames([b"three"])[3:])
    assert until(lambda: received(dealer)) == b"three"
    dealer.close()
    there.close()


class Heap:
    """Stands for a socket in which all that the plant sent lies ready."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def recv(self, size: int, flags: int) -> bytes:
        if not self.data:
            raise BlockingIOError
        piece, self.data = self.data[:size], self.data[size:]
        return piece


@pytest.mark.parametrize("size", [1_000, 20_000, 66_000, 400_000])
def test_all_that_has_come_is_read_before_there_is_none(listener: socket.socket, size: int) -> None:
    """One that slept asks until there is none, and takes the last."""
    dealer = Dealer(endpoint(listener), NAME)
    there, connection = accepted(listener, dealer), dealer._connection._recv
    output = b"".join(message_of_frames([bytes([k]) * size]) for k in range(1, 6))
    dealer._connection._recv = Heap(output + message_of_frames([b"begun"])[:3]).recv
    got = []
    while (frame := received(dealer)) is not None:
        got.append(frame[0])
    assert got == [1, 2, 3, 4, 5]
    dealer._connection._recv = Heap(message_of_frames([b"begun"])[3:]).recv
    assert received(dealer) == b"begun"
    dealer._connection._recv = connection
    dealer.close()
    there.close()


def test_nothing_is_reported_before_the_other_side_is_known(listener: socket.socket) -> None:
    dealer = Dealer(endpoint(listener), NAME)
    assert dealer.send(b"", b"too early") != SENT
    accepted(listener, dealer).close()
    dealer.close()


def test_a_connection_that_breaks_is_made_again_and_a_short_break_is_no_end(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 1e6)
    dealer = Dealer(endpoint(listener), NAME)
    there = accepted(listener, dealer)
    there.sendall(message_of_frames([b"the last"]))
    there.close()
    assert until(lambda: received(dealer)) == b"the last"
    until(lambda: received(dealer) is None and dealer.broken)
    assert dealer.send(b"", b"nobody listens") != SENT
    assert not readable(dealer, 0.05), "who waits on it would turn in circles"
    until(lambda: not gone(dealer) and not dealer.broken)
    there = accepted(listener, dealer)
    there.sendall(message_of_frames([b"back again"]))
    assert until(lambda: received(dealer)) == b"back again"
    dealer.stands()
    monkeypatch.setattr(module, "_GRACE_S", 0.0)
    assert not gone(dealer)
    there.close()
    dealer.close()


def test_it_is_gone_when_nobody_is_there_for_long(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.2)
    dealer = Dealer(endpoint(listener), NAME)
    there = accepted(listener, dealer)
    there.close()
    listener.close()
    until(lambda: received(dealer) is None and gone(dealer))
    assert not readable(dealer, 0.0)
    dealer.close()


def test_one_who_looks_seldom_has_not_tried_in_vain(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The break is older than the grace when it looks again: it tries before it gives up."""
    clock = [time.monotonic()]
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    dealer = Dealer(endpoint(listener), NAME)
    accepted(listener, dealer).close()
    until(lambda: received(dealer) is None and dealer.broken)
    clock[0] += 2 * module._GRACE_S
    assert not gone(dealer)
    assert not dealer.broken
    there = accepted(listener, dealer)
    there.close()
    until(lambda: received(dealer) is None and dealer.broken)
    clock[0] += 2 * module._GRACE_S
    assert gone(dealer), "nothing was sent since the first attempt"
    dealer.close()


@pytest.mark.parametrize("output", [b"HTTP/1.1 400 Bad Request\r\n\r\n".ljust(70), GREETING + b"\xf0" * 20,
                                  GREETING + ready(b"PUB")])  # fmt: skip
def test_one_that_is_no_plant_is_hung_up_on(listener: socket.socket, output: bytes) -> None:
    dealer = Dealer(endpoint(listener), NAME)
    there, _ = listener.accept()
    there.sendall(output)
    until(lambda: received(dealer) is None and dealer.broken)
    dealer.close()
    there.close()


def test_one_that_does_not_read_costs_commands_and_no_time(listener: socket.socket) -> None:
    dealer = Dealer(endpoint(listener), NAME)
    there = accepted(listener, dealer)
    until(lambda: dealer.send(b"", b"c" * 60_000) != SENT)
    assert len(dealer._connection.unsent) <= 60_009
    got = 0
    while dealer._connection.unsent:  # it reads again: what was begun is whole
        got += len(there.recv(1 << 20))
        gone(dealer)
    assert dealer.send(b"", b"d") == SENT
    dealer.close()
    while data := there.recv(1 << 20):
        got += len(data)
        last = data
    assert last.endswith(b"\x00\x01d")
    assert (got - 3) % 60_009 == 0
    there.close()


def test_a_host_that_there_is_none_of_is_reported() -> None:
    with pytest.raises(OSError, match=r"\S"):
        Dealer("tcp://no.such.host.invalid:9", NAME)


def test_without_a_descriptor_to_spare_it_tries_again_later(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "_GRACE_S", 1e6)
    dealer = Dealer(endpoint(listener), NAME)
    there = accepted(listener, dealer)
    with monkeypatch.context() as within:
        within.setattr(socket, "socketpair", none_left)
        within.setattr(socket, "socket", none_left)
        there.close()
        until(lambda: received(dealer) is None and dealer.broken)
        time.sleep(2 * module._RECONNECT_S)
        assert not gone(dealer)
        assert dealer.broken
    until(lambda: not gone(dealer) and not dealer.broken)
    there = accepted(listener, dealer)
    there.close()
    dealer.close()


# --- the shorter way --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no sockets in files here")
def test_the_shorter_way_is_taken_where_it_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, here, step = tmp_path / "step-9871", "tcp://127.0.0.1:9870", "tcp://127.0.0.1:9871"
    assert not nearest(here, step, f"ipc://{path}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        bound.bind(str(path))
        assert nearest(here, step, f"ipc://{path}")
        assert not nearest("tcp://192.0.2.1:9870", step, f"ipc://{path}")
        assert not nearest(here, "tcp://127.0.0.1:40000", f"ipc://{path}"), "a proxy is passed by"
        assert not nearest(here, step, "")
        assert not nearest(here, step, f"tcp://{path}")
        monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
        assert not nearest(here, step, f"ipc://{path}")
    path.unlink()
    path.write_text("no socket")
    monkeypatch.undo()
    assert not nearest(here, step, f"ipc://{path}")
    assert not nearest(here, step, "ipc:///a\0b/step-9871")


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no sockets in files here")
def test_what_killed_plants_left_is_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = make_runtime_directory()
    old, alive, other = (folder / name for name in ("step-1", "step-3", "mine"))
    for path in (old, other):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
            dead.bind(str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as living:
        living.bind(str(alive))
        living.listen()
        sweep("step-")
    assert not old.exists()
    assert alive.exists()
    assert other.exists()


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no sockets in files here")
def test_one_that_is_about_to_listen_is_not_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the wall clock shows of its age."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder, listen = make_runtime_directory(), socket.socket.listen

    class Slow(socket.socket):
        def listen(self, *backlog: int) -> None:
            os.utime(folder / "step-1", (1e9, 1e9))
            sweep("step-")  # as another plant does that starts now
            listen(self, *backlog)

    monkeypatch.setattr(socket, "socket", Slow)
    bound, _ = listen_at("ipc://step-1", "step", may_move=False)
    with bound:
        assert (folder / "step-1").exists()
        sweep("step-")
        assert (folder / "step-1").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peers elsewhere take ZeroMQ's way")
@pytest.mark.parametrize("there", [True, False])
def test_a_claimant_takes_the_shorter_way_and_the_other_one_where_it_is_barred(
    make_host: Callable[..., Host], there: bool
) -> None:
    with Looping(make_host(token=None)) as running:
        near = running.host.server._sockets.near_step
        assert near.startswith("ipc:///")
        path = Path(near.removeprefix("ipc://"))
        assert path.stat().st_mode & 0o077 == 0
        if not there:  # a file that a session which was killed left
            path.unlink()
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
                dead.bind(str(path))
        with rtmms.connect(running.host.exchange, claim="*", name="one") as link:
            family: Any = link._at.data._connection.socket.family  # type: ignore[union-attr]
            assert family == (socket.AF_UNIX if there else socket.AF_INET)
            running.wait(lambda: "one" in running.host.server.admitted() or link.poll())
            next(link)
            link.command({"left.front": 0.25})
            running.wait(lambda: link.poll() or running.host.command[0] == 0.25)
    assert not path.exists()


def test_where_it_is_not_to_be_had_the_socket_is_zeromqs(
    make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmms.wire.peer.attachment._STREAMS", False)
    with Looping(make_host(token=None)) as running, rtmms.connect(running.host.exchange, claim="*", name="one") as link:
        assert isinstance(link._at.data, ZeroMQ)
        running.wait(lambda: "one" in running.host.server.admitted() or link.poll())
        next(link)
        link.command({"left.front": 0.25})
        running.wait(lambda: link.poll() or running.host.command[0] == 0.25)


# --- reading ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=600), min_size=1, max_size=8), st.lists(st.integers(1, 900), max_size=12))
def test_however_a_stream_is_cut_the_same_messages_come_out(messages: list[bytes], cuts: list[int]) -> None:
    reader = Reader(frozenset((b"ROUTER",)), 500)
    reader.feed(GREETING + ready(b"ROUTER"))
    assert reader.next() == ("ready", b"")
    stream, got = b"".join(message_of_frames([message]) for message in messages), []
    for size in [*cuts, len(stream)]:
        piece, stream = stream[:size], stream[size:]
        if not piece:
            continue
        whole = reader.at_once(piece)
        if whole is not None:
            got.append(whole)
            continue
        reader.feed(piece)
        while (result := reader.next()) is not None:
            got.append(result[1])
    assert got == [message if len(message) <= 500 else b"" for message in messages]
