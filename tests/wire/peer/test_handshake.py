"""What a peer reports of somebody who listens and is, or seems to be, no plant."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

import rtmms
from rtmms.wire.protocol.errors import NotConnectedError
from tests.wire.bench import Host
from tests.wire.looping import Looping

MUTE = r"no plant answered .*something listens there and does not answer: it may still be loading or compiling"
Listen = Callable[[Callable[[socket.socket], None] | None], str]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """A port where each connection is given to a function; None: nobody accepts."""
    bound = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def begin(deal: Callable[[socket.socket], None] | None) -> str:
        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    deal(bound.accept()[0])  # type: ignore[misc]

        if deal is not None:
            threads.append(threading.Thread(target=accept))
            threads[0].start()
        return f"tcp://127.0.0.1:{bound.getsockname()[1]}"

    yield begin
    with contextlib.suppress(OSError):
        bound.shutdown(socket.SHUT_RDWR)  # wakes the one that accepts
    bound.close()
    for thread in threads:
        thread.join()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handshakes time out after 0.1 s, not 30."""
    from rtmms.wire.libzmq.peer_sockets import Dealers

    built = Dealers._socket

    def quick(self: Dealers, kind: int, endpoint: str) -> zmq.Socket[bytes]:
        result = built(self, kind, endpoint)
        result.setsockopt(zmq.HANDSHAKE_IVL, 100)
        return result

    monkeypatch.setattr(Dealers, "_socket", quick)


def why(exchange: str) -> NotConnectedError:
    with pytest.raises(NotConnectedError) as refused:
        rtmms.connect(exchange, timeout_s=1.5)
    return refused.value


def why_after(exchange: str, met: list[Any], count: int, monkeypatch: pytest.MonkeyPatch) -> NotConnectedError:
    """The same by a clock that stands still until so many connections were met."""
    for module in ("attachment", "session"):
        monkeypatch.setattr(f"rtmms.wire.peer.{module}.monotonic", lambda: 1e6 if len(met) >= count else 0.0)
    return why(exchange)


def test_a_plant_that_loads_has_nothing_to_do_with_keys(listen: Listen) -> None:
    result = why(listen(None))
    assert re.search(MUTE, str(result))
    assert ("keys" in str(result), result.code) == (False, "")


@pytest.mark.usefixtures("impatient")
def test_nor_has_one_that_loads_for_longer_than_a_handshake_may_take(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[socket.socket] = []
    result = why_after(listen(stored.append), stored, 2, monkeypatch)  # it was tried again
    for item in stored:
        item.close()
    assert "loading or compiling" in str(result)
    assert ("keys" in str(result), result.code) == (False, "")


def test_one_that_has_gone_has_not_asked_for_keys() -> None:
    assert "is one running" in str(why("tcp://127.0.0.1:9"))


def test_one_that_breaks_off_every_time_may_ask_for_keys(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[None] = []
    result = why_after(listen(lambda item: met.append(item.close())), met, 5, monkeypatch)  # type: ignore[func-returns-value]
    assert ("asks for keys and none were given" in str(result), result.code) == (True, "key")
    assert "or what answers there is no plant" in str(result)


def test_one_that_shakes_hands_and_sends_nothing() -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        port = router.bind_to_random_port("tcp://127.0.0.1")
        assert "loading or compiling" in str(why(f"tcp://127.0.0.1:{port}"))


def test_a_plant_of_this_user_that_starts_is_waited_for(
    listen: Listen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has left its token and listens; without the token nobody knows who that is."""
    from rtmms.wire.peer import attachment as joining
    from rtmms.wire.session_files import remove_token, write_token

    monkeypatch.setattr(joining, "ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr(joining, "STARTING_TIMEOUT_S", 1.0)
    exchange = listen(None)
    with pytest.raises(NotConnectedError, match=MUTE + r".*wait longer \(timeout_s, --timeout\)") as refused:
        rtmms.connect(exchange)
    assert "within 0.5 s" in str(refused.value)
    assert capsys.readouterr().err == ""
    write_token(exchange, "secret")
    try:
        with pytest.raises(NotConnectedError, match="within 1 s"):
            rtmms.connect(exchange)
    finally:
        remove_token(exchange, "secret")
    assert capsys.readouterr().err == f"rtmms: a plant is starting at '{exchange}', waiting for it\n"


def test_a_token_of_another_plant_names_who_wrote_it(make_host: Callable[..., Host]) -> None:
    """A plant that crashed, a container, a copied folder: the file is there, and its token is another plant's."""
    from rtmms.wire.session_files import remove_token, write_token

    host = make_host(token="of the plant that runs")
    with Looping(host):
        write_token(host.exchange, "of another plant")
        with pytest.raises(NotConnectedError) as refused:
            rtmms.connect(host.exchange, claim=["*"])
        assert refused.value.code == "token"
        text = str(refused.value)
        assert f"was written by process {os.getpid()} (" in text
        assert "which still runs, at 20" in text
        assert f"for {host.exchange}. Another plant answers there: " in text
        assert "XDG_RUNTIME_DIR" in text
        with rtmms.connect(host.exchange) as link, pytest.raises(rtmms.RequestError, match="was written by process"):
            link.request("stop")
        remove_token(host.exchange, "of another plant")
        with pytest.raises(NotConnectedError, match=r"there is no file .*\.token: the plant runs as another user"):
            rtmms.connect(host.exchange, claim=["*"])
        with pytest.raises(NotConnectedError) as values:
            rtmms.connect(host.exchange, claim=["*"], token="typed")
        assert "process" not in str(values.value)


def test_a_token_of_a_process_that_ended_and_one_without_an_origin(
    runtime_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rtmms.wire.session_files import origin_of_token, token_path, write_token

    def ended(pid: int, number: int) -> None:
        raise ProcessLookupError(pid)

    exchange = "tcp://127.0.0.1:1"
    write_token(exchange, "x")
    monkeypatch.setattr(os, "kill", ended)
    assert "which has ended, at 20" in origin_of_token(exchange)
    origin = token_path(exchange).with_suffix(".origin")
    for broken in ("", "{}", "[1]", '{"pid": "x"}', "\0"):
        origin.write_text(broken)
        assert "nothing shows whose" in origin_of_token(exchange)
