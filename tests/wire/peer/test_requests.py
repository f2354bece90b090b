"""Requests that are too large, refused at once, or asked on a connection that broke and came again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest

import rtmms
from rtmms.wire.plant.peers import RateLimit
from rtmms.wire.protocol.errors import RequestError
from tests.wire.bench import Host, Raw
from tests.wire.looping import Looping


@pytest.fixture
def running(make_host: Callable[..., Host]) -> Iterator[Looping]:
    with Looping(make_host(token=None)) as looping:
        yield looping


def _break(running: Looping) -> None:
    """All exchange connections break off, and the peers have noticed: what is sent into one that has just broken
    is lost, as with any socket."""
    listener: Any = running.host.server._sockets.exchange
    before = set(listener.connections)
    running.errands.append(lambda: [listener.drop(c) for c in list(listener.connections.values())])
    running.wait(lambda: not before & set(listener.connections))
    running.wait(lambda: len(listener.connections) >= len(before))


@pytest.mark.parametrize("claim", [(), "*"])
def test_a_request_over_the_limit_is_refused_here_and_the_next_one_is_answered(running: Looping, claim: Any) -> None:
    with rtmms.connect(running.host.exchange, claim=claim) as link:
        with pytest.raises(RequestError, match=r"expected at most \d+ bytes, which this plant accepts, got 3000"):
            link.request("restore", {"state": "A" * 3_000_000})
        with pytest.raises(RequestError, match="expected at most"):
            link.post("restore", {"state": "A" * 3_000_000})
        assert link.request("pause") == {"op": "pause"}


@pytest.mark.parametrize("claim", [(), "*"])
def test_a_link_whose_door_broke_is_known_again(running: Looping, claim: Any) -> None:
    with rtmms.connect(running.host.exchange, claim=claim, name="one") as link:
        running.wait(lambda: "one" in running.host.server.admitted() or link.poll())
        _break(running)
        assert link.request("pause") == {"op": "pause"}
        if claim:
            assert len(running.host.summaries) == 1  # the same one, with its claim
            assert running.host.server.claimed.all()
            next(link)
            link.command({"left.front": 0.25})
            running.wait(lambda: link.poll() or running.host.command[0] == 0.25)
            _break(running)
            link.close()
            running.wait(lambda: not running.host.server.claimed.any())


def test_a_large_request_gets_through_a_door_that_broke(running: Looping) -> None:
    with rtmms.connect(running.host.exchange) as link:
        size = link.plant.request_bytes - 100
        assert size > 65_000
        _break(running)
        assert len(link.request("restore", {"state": "A" * size})["state"]) == size


def test_a_posted_request_to_a_door_that_broke_is_reported_and_the_next_one_is_received(running: Looping) -> None:
    message: list[tuple[bool, Any]] = []

    def one_more() -> bool:
        link.look_around()
        return len(message) == 1

    with rtmms.connect(running.host.exchange) as link:
        _break(running)
        assert link._at.exchange._socket.poll(5000, 2)  # POLLOUT: it is connected again
        link.post("pause", None, lambda ok, result: message.append((ok, result)))
        running.wait(one_more)
        assert not message[0][0]
        assert "expected a hello" in message.pop()[1]
        link.post("pause", None, lambda ok, result: message.append((ok, result)))
        running.wait(one_more)
        assert message == [(True, {"op": "pause"})]


def test_an_identity_that_nobody_has_is_refused(raw: Raw) -> None:
    assert raw.hello(["*"], identity=bytes(15) + b"x")["code"] == "token"
    assert raw.hello(["*"], identity=b"short")["code"] == "wrong_type"
    assert raw.hello(["*"], identity=b"")["type"] == "welcome"


def test_refusals_that_come_at_once_are_each_answered_with_their_id(host: Host, raw: Raw) -> None:
    raw.hello([])
    for number in range(8):
        raw.exchange.send(msgpack.packb({"type": "request", "id": number, "op": "explode"}))
    answers = []
    while len(answers) < 8:
        host.until(lambda: raw.exchange.poll(0))
        answers.append(msgpack.unpackb(raw.exchange.recv()))
    assert [(a["type"], a["id"], a["ok"], a["code"]) for a in answers] == [
        ("reply", number, False, "unknown_type") for number in range(8)
    ]
    assert "op must be one of" in answers[0]["error"]


def test_a_strangers_request_is_refused_with_its_id(raw: Raw) -> None:
    answer = raw.ask(type="request", id="mine", op="stop")
    assert (answer["type"], answer["code"], answer["id"]) == ("error", "token", "mine")
    assert "id" not in raw.ask(type="request", id=[1], op="stop")


def test_a_flood_of_refusals_is_answered_50_times_a_second() -> None:
    measure = RateLimit(10)
    begin = measure._since_ns
    assert sum(measure.take(begin) for _ in range(100)) == 10
    assert sum(measure.take(begin + ms * 1_000_000) for ms in range(1, 1001)) in (49, 50)
    assert sum(measure.take(begin + 3_600_000_000_000) for _ in range(100)) == 10
