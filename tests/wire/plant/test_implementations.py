"""The same plant on each implementation of its port: streams with epoll, streams without, and libzmq."""

from __future__ import annotations

import select
from collections.abc import Callable

import pytest

from rtmms.wire.libzmq.plant_sockets import Router
from rtmms.wire.peer.attachment import PeerRequests
from rtmms.wire.peer.client import Link
from rtmms.wire.plant.sockets import Sockets
from rtmms.wire.protocol.hello import Hello
from rtmms.wire.protocol.port import GONE, MALFORMED, MESSAGE
from rtmms.wire.stream.listener import SelectPoller
from rtmms.wire.stream.steps import Steps
from tests.wire.bench import Host, Raw
from tests.wire.looping import Looping

ANY_PORT = ["tcp://127.0.0.1:*"] * 3
Make = Callable[[], Host]


@pytest.fixture(params=["epoll", "selected", "libzmq"])
def make(request: pytest.FixtureRequest, make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> Make:
    if request.param == "selected":
        monkeypatch.delattr(select, "epoll", raising=False)

    def build() -> Host:
        host = make_host(sockets=Sockets(*ANY_PORT, libzmq=request.param == "libzmq"))
        step = host.server._sockets.step
        assert isinstance(step, Router if request.param == "libzmq" else Steps)
        if isinstance(step, Steps):
            assert isinstance(step._near, SelectPoller) == isinstance(step._far, SelectPoller)
            assert isinstance(step._near, SelectPoller) == (request.param == "selected" or not hasattr(select, "epoll"))
        return host

    return build


@pytest.mark.parametrize("libzmq", [False, True])
def test_a_link_drives(make: Make, libzmq: bool) -> None:
    with Looping(make()) as running:
        terms = PeerRequests(running.host.exchange, Hello("one", ("*",)), token="secret", libzmq=libzmq)
        with Link(terms) as link:
            for state in link:
                link.command({"left.front": 0.25})
                if state["position"][0] == 0.25:
                    break
            assert link.request("pause") == {"op": "pause"}
        running.wait(lambda: not running.host.server.claimed.any())


def test_a_step_misses_nothing_and_reports_what_came(make: Make, make_raw: Callable[[Host], Raw]) -> None:
    host = make()
    peer = make_raw(host).join(["*"])
    steps, who = host.server._sockets.step, peer.welcome["identity"]
    assert not host.something_comes(0.01)
    peer.send(b"one")
    assert host.something_comes(5.0)
    assert steps.next() == (who, MESSAGE, b"one", None)
    peer.send(b"two", b"frames")
    assert host.something_comes(5.0)
    received = steps.next()
    assert received is not None
    assert received[:2] == (who, MALFORMED)
    assert steps.send(b"\x01" * 16, b"nobody") == GONE
    assert steps.connected(who) in (True, None)
    peer.vanish()
    host.until(lambda: steps.next() is None and steps.send(who, b"gone") == GONE)
