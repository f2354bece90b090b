"""Parameters of a peer, set by another one through the plant."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

import rtmms
from rtmms.wire.plant import handshake as relay
from rtmms.wire.plant.handshake import MAX_WAITING_MESSAGES
from tests.wire.bench import PATIENCE_S, Host, Raw
from tests.wire.looping import Looping

GAINS = {"gain": 1.5, "on": True, "mode": "slow", "limit": None}


@pytest.fixture
def owner(host: Host, make_raw: Callable[[Host], Raw]) -> Raw:
    return make_raw(host).join(["left.*"], "mine", settable=GAINS)


@pytest.fixture
def asker(host: Host, make_raw: Callable[[Host], Raw], owner: Raw) -> Raw:
    peer = make_raw(host)
    assert peer.hello([], "person")["type"] == "welcome"
    return peer


def ask(peer: Raw, ident: int = 1, **args: Any) -> None:
    peer.exchange.send(msgpack.packb({"type": "request", "id": ident, "op": "set", "args": args}))


def read_message(host: Host, peer: Raw) -> dict[str, Any]:
    host.until(lambda: peer.exchange.poll(0))
    return dict(msgpack.unpackb(peer.exchange.recv()))


def answer(peer: Raw, ident: Any, **more: Any) -> None:
    peer.exchange.send(msgpack.packb({"type": "parameters", "id": ident} | more))


def test_it_is_passed_on_and_the_answer_back(host: Host, owner: Raw, asker: Raw) -> None:
    ask(asker, 7, **{"mine.gain": 2.0, "mine.on": False})
    asked = read_message(host, owner)
    assert (asked["type"], asked["values"]) == ("parameters", {"gain": 2.0, "on": False})
    answer(owner, asked["id"], ok=True, settable=GAINS | {"gain": 2.0, "on": False})
    assert read_message(host, asker) == {
        "type": "reply", "id": 7, "ok": True, "result": {"values": {"gain": 2.0, "on": False}},
    }  # fmt: skip
    assert host.summaries[0]["settable"]["gain"] == 2.0
    assert host.server.requests() == [], "the plant itself was asked nothing"


def test_a_refusal_comes_back_by_name(host: Host, owner: Raw, asker: Raw) -> None:
    ask(asker, **{"mine.gain": -1})
    answer(owner, read_message(host, owner)["id"], ok=False, error="gain must be > 0")
    reply = read_message(host, asker)
    assert (reply["ok"], reply["error"]) == (False, "mine: gain must be > 0")
    assert host.summaries[0]["settable"] == GAINS


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [({"mine.gian": 1}, "not_settable", "did you mean gain"), ({"person.x": 1}, "not_settable", "has no parameters"),
     ({"mine.gain": 1, "dt": 1}, "wrong_type", "or of one peer only"),
     ({"mine.gain": 1, "person.x": 1}, "wrong_type", "or of one peer only")],
)  # fmt: skip
def test_what_cannot_be_passed_on_is_refused(
    host: Host, owner: Raw, asker: Raw, args: dict[str, Any], code: str, message: str
) -> None:
    ask(asker, **args)
    reply = read_message(host, asker)
    assert (reply["ok"], reply["code"]) == (False, code)
    assert message in reply["error"]


def test_other_names_are_the_plants(host: Host, owner: Raw, asker: Raw) -> None:
    ask(asker, **{"other.gain": 1})
    requests: list[Any] = []
    host.until(lambda: requests.extend(host.server.requests()) or requests)
    assert dict(requests[0].args) == {"other.gain": 1}


def test_one_that_does_not_answer_is_reported(
    host: Host, owner: Raw, asker: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "ANSWER_NS", 1000)
    ask(asker, **{"mine.gain": 1})
    asked = read_message(host, owner)
    assert "mine did not answer" in read_message(host, asker)["error"]
    answer(owner, asked["id"], ok=True)
    assert read_message(host, owner)["code"] == "wrong_type", "too late: it answers nothing"


def test_nobody_answers_for_another_and_none_pile_up(
    host: Host, owner: Raw, asker: Raw, make_raw: Callable[[Host], Raw]
) -> None:
    for ident in range(MAX_WAITING_MESSAGES + 1):
        ask(asker, ident, **{"mine.gain": 1})
    assert read_message(host, asker)["code"] == "busy"
    asked = read_message(host, owner)
    answer(asker, asked["id"], ok=True)
    assert read_message(host, asker)["code"] == "wrong_type"
    stranger = make_raw(host)
    answer(stranger, asked["id"], ok=True)
    assert read_message(host, stranger)["code"] == "unknown_type"
    answer(owner, asked["id"], ok=True)
    assert read_message(host, asker)["ok"]


@pytest.mark.parametrize(
    "wrong", [3, {"": 1}, {"x" * 65: 1}, {"x": [1]}, {"x": "y" * 129}, {str(k): 1 for k in range(65)}]
)
def test_settable_that_makes_no_sense_is_refused(host: Host, raw: Raw, wrong: Any) -> None:
    assert raw.hello(["left.*"], settable=wrong)["code"] == "wrong_type"


@pytest.mark.parametrize("wrong", [None, 3, {"": 1}, {"x": [1]}, {"x": "y" * 129}, {str(k): 1 for k in range(17)}])
def test_figures_that_make_no_sense_are_refused_and_the_last_ones_count(host: Host, owner: Raw, wrong: Any) -> None:
    owner.exchange.send(msgpack.packb({"type": "metrics", "values": {"plans": 3, "late": None}}))
    host.until(lambda: host.summaries[0]["figures"])
    owner.exchange.send(msgpack.packb({"type": "metrics", "values": wrong}))
    assert read_message(host, owner)["code"] == "wrong_type"
    assert host.summaries[0]["figures"] == {"plans": 3, "late": None}


def test_a_motion_that_a_peer_plans_stands_among_the_set_points(host: Host, owner: Raw) -> None:
    message = {"planned_motion": "0,0,0 1,1,1", "planned_samples": "9,9,9", "plans": 3}
    owner.exchange.send(msgpack.packb({"type": "metrics", "values": message}))
    host.until(lambda: host.summaries[0]["figures"])
    points = host.server.set_points()
    assert {name: points[name] for name in message if name in points} == {
        name: message[name] for name in ("planned_motion", "planned_samples")
    }


def test_a_link_and_its_owner_see_the_change(make_host: Callable[..., Host]) -> None:
    with Looping(make_host(token=None)) as running:
        place = running.host.exchange
        with (
            rtmms.connect(
                place, name="mine", claim="left.*", tunable_parameters={"gain": 1.0, "on": True, "mode": "a"}
            ) as link,
            rtmms.connect(place, name="person") as person,
        ):
            replies: list[tuple[bool, Any]] = []

            def keep_reply(ok: bool, result: Any) -> None:
                replies.append((ok, result))

            wrong = [{"mine.gain": "x"}, {"mine.gain": True}, {"mine.gain": float("nan")}, {"mine.on": 1}]
            for values in ({"mine.gain": 3, "mine.mode": 5}, *wrong):
                person.post("set", values, keep_reply)
            end = time.monotonic() + PATIENCE_S
            while len(replies) < 5 and time.monotonic() < end:
                state = next(link)
                link.command({"left.front": 0.1}, state.step)
                person.look_around()
    assert [ok for ok, _ in replies] == [True, False, False, False, False]
    assert dict(link.tunable_parameters) == {"gain": 3.0, "on": True, "mode": "5"}
    assert type(link.tunable_parameters["gain"]) is float
    assert "mine: gain: expected a number, got 'x'" in str(replies[1][1])
