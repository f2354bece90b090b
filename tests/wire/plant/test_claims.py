"""Hello, tokens, claims and their passing on; requests and telemetry."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
import zmq

from rtmms.base.errors import ModelError
from rtmms.wire.plant.server import Server
from tests.wire.bench import Host, Raw, Toy


def test_the_welcome_reports_what_a_peer_needs(raw: Raw) -> None:
    welcome = raw.hello(["left.*"], outputs=["speed", "pos*"])
    assert (welcome["type"], welcome["protocol"], welcome["robot"], welcome["mode"]) == (
        "welcome",
        2,
        "toy",
        "realtime",
    )
    assert (welcome["dt"], welcome["period_s"], welcome["deadline_s"]) == (1e-3, 1e-3, 5e-4)
    assert welcome["granted"] == ["left.front", "left.back"]
    assert len(welcome["identity"]) == 16
    assert welcome["step_endpoint"] == raw.host.server.endpoints["step"]
    assert welcome["actuators"][0] == {
        "name": "left.front", "unit": "rad", "shape": [], "frame": "", "lower": -1.2, "upper": 1.2, "neutral": 0.0,
    }  # fmt: skip
    assert [channel["name"] for channel in welcome["outputs"]][-1] == "joint_angle"
    assert welcome["selected"] == ["position", "speed"]
    assert welcome["parameters"] == {"r1": 0.215, "r2": 0.185, "body": "free", "table": [1.0, 2.0]}


def test_nobody_paces_lockstep(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]) -> None:
    welcome = make_raw(make_host(mode="lockstep")).hello([])
    assert (welcome["mode"], welcome["period_s"], welcome["deadline_s"]) == ("lockstep", None, None)


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        ({"protocol": 3}, "protocol"),
        ({"protocol": "1"}, "protocol"),
        ({"protocol": True}, "protocol"),
        ({"name": ""}, "wrong_type"),
        ({"name": "x" * 65}, "wrong_type"),
        ({"name": "two\nlines"}, "wrong_type"),
        ({"name": 3}, "wrong_type"),
        ({"claim": "left.*"}, "wrong_type"),
        ({"claim": [3]}, "wrong_type"),
        ({"claim": ["x" * 200]}, "wrong_type"),
        ({"claim": ["*"] * 300}, "wrong_type"),
        ({"claim": ["left.middle"]}, "unknown_actuator"),
        ({"outputs": ["spede"]}, "unknown_output"),
        ({"token": "wrong"}, "token"),
        ({"token": None}, "token"),
        ({"token": 7}, "wrong_type"),
    ],
)
def test_a_bad_hello_is_refused_by_name(raw: Raw, hello: dict[str, Any], code: str) -> None:
    answer = raw.ask(**({"type": "hello", "protocol": 1, "name": "raw", "claim": ["*"], "token": "secret"} | hello))
    assert (answer["type"], answer["code"]) == ("error", code)
    assert raw.host.rejected == {code: 1}
    assert raw.host.server.report()["peers"] == []


def test_the_near_miss_and_the_spoken_versions_are_reported(raw: Raw) -> None:
    assert "left.front" in raw.hello(["left.fornt"])["text"]
    assert "expected one of 1, 2, got 7" in raw.hello([], protocol=7)["text"]


def test_an_observer_needs_no_token_and_leaves_no_trace(raw: Raw) -> None:
    welcome = raw.hello([], token="")
    assert (welcome["type"], welcome["granted"], welcome["identity"]) == ("welcome", [], b"")
    assert raw.host.server.report()["peers"] == []
    assert raw.ask(type="request", id=1, op="stop")["code"] == "token"


def test_nothing_is_claimed_before_the_warm_up_is_answered(raw: Raw) -> None:
    raw.hello(["*"])
    raw.host.serve()
    assert not raw.host.server.claimed.any()
    assert raw.host.server.admitted() == set()
    assert raw.host.collect(0.0)


def test_a_repeated_hello_gets_the_same_welcome(raw: Raw) -> None:
    assert raw.hello(["*"]) == raw.hello(["*"])


def test_a_claim_that_is_held_is_refused_and_free_after_bye(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    first, second = make_raw(host).join(["left.*"], "first"), make_raw(host)
    refusal = second.hello(["left.back"], "second")
    assert (refusal["code"], "first" in refusal["text"]) == ("claim_held", True)
    first.send_message(type="bye", reason="done")
    host.until(lambda: not host.server.claimed.any())
    second.join(["left.back"], "second")
    assert host.server.claimed.tolist() == [False, True, False, False]


def test_a_bye_within_a_step_ends_the_wait(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    peer = make_raw(host).join(["*"])
    host.publish()
    peer.send_message(type="bye")
    assert host.collect()
    assert not host.server.claimed.any()


def test_a_bye_at_the_door_within_a_lockstep_step_ends_the_wait(make_host: Any, make_raw: Any) -> None:
    host = make_host(mode="lockstep")
    peer = make_raw(host).join(["*"])
    host.publish()
    assert not host.collect(0.0)
    peer.exchange.send(msgpack.packb({"type": "bye"}))
    host.until(lambda: not host.server.claimed.any())
    assert host.collect()


def test_a_claim_that_begins_within_a_step_waits_for_the_next(make_host: Any, make_raw: Any) -> None:
    host = make_host(mode="lockstep")
    left = make_raw(host).join(["left.*"], "left")
    host.publish()
    assert not host.collect(0.0)
    right = make_raw(host).join(["right.*"], "right")
    assert host.server.claimed.all()
    left.command({"left.front": 0.1})
    assert host.collect()
    host.advance()
    host.publish()
    left.command({"left.front": 0.2})
    host.arrived()
    assert not host.collect(0.05)
    assert host.server.waiting_for() == ("right",)
    right.command({})
    assert host.collect()


def killed(host: Host, peer: Raw) -> None:
    """The peer's process is gone, and the plant has noticed while stepping."""
    peer.vanish()

    def step() -> bool:
        host.publish()
        host.collect(0.0)
        host.advance()
        return bool(host.server.dead())

    host.until(step)


def test_the_dead_keep_their_claim_until_it_is_taken_over(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    first = make_raw(host).join(["left.*", "right.*"], "first")
    killed(host, first)
    assert host.server.dead() == ("first",)
    assert host.server.claimed.all()
    assert host.server.admitted() == set()
    second = make_raw(host).join(["left.*"], "second")
    assert host.server.claimed.all()
    host.publish()
    second.command({"left.front": 0.5})
    host.arrived()
    assert not host.collect(0.05)  # the right fin is still the dead one's
    assert host.server.waiting_for() == ("first",)
    assert host.server.fresh.tolist() == [True, True, False, False]
    make_raw(host).join(["right.*"], "third")
    assert host.server.dead() == ()
    states = {peer["name"]: peer["state"] for peer in host.server.report()["peers"]}
    assert states == {"second": "live", "third": "live"}


def test_one_that_stays_silent_is_dead_until_it_speaks(
    host: Host, make_raw: Callable[[Host], Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmms.wire.plant.keepalive.SILENT_NS", 50_000_000)
    peer = make_raw(host).join(["*"])

    def step() -> bool:
        host.publish()
        host.collect(0.0)
        host.advance()
        return bool(host.server.dead())

    host.until(step)
    assert host.server.claimed.all()
    (silent,) = host.server.silent()
    assert (silent.gone, silent.starved) == (True, True)  # its connection stands: its process may not run
    assert [item["starved"] for item in host.server.report()["peers"]] == [True]
    host.publish()
    peer.command({"left.front": 0.4})
    host.arrived()
    assert host.collect()
    assert host.server.dead() == ()
    assert host.command[0] == 0.4
    assert [item["starved"] for item in host.server.report()["peers"]] == [False]


FLOOD_AND_DIE = """
import os, sys, time, zmq
context = zmq.Context()
for endpoint in sys.argv[1:]:
    socket = context.socket(zmq.DEALER)
    socket.sndhwm = 0
    socket.connect(endpoint)
    for _ in range(20000):
        socket.send(b"x" * 1000)
time.sleep(0.3)
os._exit(0)
"""


@pytest.mark.full
def test_a_full_connection_that_breaks_while_nobody_reads_does_no_harm(raw: Raw) -> None:
    host = raw.host
    subprocess.run([sys.executable, "-c", FLOOD_AND_DIE, host.exchange, host.server.endpoints["step"]], check=True)
    time.sleep(1.0)  # a heartbeat would fall due here
    raw.join(["*"])
    host.publish()
    raw.command({"left.front": 0.1})
    assert host.collect()


def test_one_that_comes_back_is_live_again(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    peer = make_raw(host).join(["*"])
    assert peer.data is not None
    identity = peer.welcome["identity"]
    peer.data.close(0)

    def step() -> bool:
        host.publish()
        host.collect(0.0)
        host.advance()
        return bool(host.server.dead())

    host.until(step)
    peer.data = peer._dealer(identity)
    peer.data.connect(peer.welcome["step_endpoint"])
    host.until(lambda: peer.data.poll(0))
    output = peer.read_message()
    assert output["step"] == -1
    peer.command({}, output["step"])
    host.until(lambda: not host.server.dead())
    host.publish()
    peer.command({"left.front": 0.3})
    assert host.collect()
    assert host.command[0] == 0.3


def test_one_that_comes_back_before_its_going_was_noticed(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    """No state was sent in between, as in lockstep, which waits: its knocking makes the plant look."""
    peer = make_raw(host).join(["*"])
    host.publish()
    assert peer.data is not None
    peer.data.close(0)
    peer.data = peer._dealer(peer.welcome["identity"])
    peer.data.connect(peer.welcome["step_endpoint"])
    peer.command({"left.front": 0.3})
    host.until(lambda: host.server._peers.claimants[0].commands == 1)
    assert host.collect()
    assert host.command[0] == 0.3


def test_one_that_comes_back_too_late_is_notified(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    first = make_raw(host).join(["*"], "first")
    first.data.close(0)

    def step() -> bool:
        host.publish()
        host.collect(0.0)
        host.advance()
        return bool(host.server.dead())

    host.until(step)
    second = make_raw(host)
    second.welcome = second.hello(["left.*"], "second")
    first.data = first._dealer(first.welcome["identity"])  # back before the second one is warm, and at work
    first.data.connect(first.welcome["step_endpoint"])
    host.until(lambda: first.data.poll(0))
    first.command({"left.front": 0.7, "right.front": 0.7}, host.step + 9)
    host.until(lambda: not host.server.dead())
    second.join(["left.*"], "second")
    host.publish()
    second.command({"left.front": 0.1})
    first.command({"right.front": 0.2})
    assert host.collect()
    for _ in range(12):
        host.advance()
        host.publish()
        host.collect(0.0)
    assert host.command.tolist() == [0.1, 0.0, 0.2, 0.0]
    first.command({"left.front": 0.7})
    host.until(lambda: host.rejected.get("not_claimed"))


def test_one_that_lost_all_gets_a_bye(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    first = make_raw(host).join(["*"], "first")
    host.server._peers.claimants[0].state = "dead"  # as its silence would have it; the connection stands
    make_raw(host).join(["*"], "second")
    assert first.data is not None
    while (output := first.read_message())["type"] != "bye":
        host.serve()
    assert "passed to 'second'" in output["reason"]


def test_requests_are_queued_and_answered(raw: Raw) -> None:
    raw.hello([])
    host = raw.host
    raw.exchange.send(msgpack.packb({"type": "request", "id": "a", "op": "set", "args": {"current": [1.0, 0.0]}}))
    (request,) = host.until(host.server.requests)
    assert (request.op, request.args, request.peer) == ("set", {"current": [1.0, 0.0]}, "raw")
    host.server.reply(request, result={"step": 3, "blob": b"\x00\x01"})
    assert msgpack.unpackb(raw.exchange.recv()) == {"type": "reply", "id": "a", "ok": True,
                                                "result": {"step": 3, "blob": b"\x00\x01"}}  # fmt: skip
    host.server.reply(request, ok=False, error="no")
    assert msgpack.unpackb(raw.exchange.recv()) == {"type": "reply", "id": "a", "ok": False, "error": "no"}
    host.server.reply(request, result=object())
    assert "cannot be sent" in msgpack.unpackb(raw.exchange.recv())["error"]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"id": 1, "op": "explode"}, "unknown_type"),
        ({"id": None, "op": "stop"}, "wrong_type"),
        ({"id": 1, "op": "set", "args": [1]}, "wrong_type"),
        ({"id": 1, "op": 5}, "unknown_type"),
    ],
)
def test_a_bad_request_is_refused_by_name(raw: Raw, request_: dict[str, Any], code: str) -> None:
    raw.hello([])
    assert raw.ask(type="request", **request_)["code"] == code
    assert raw.host.server.requests() == []


def test_more_requests_than_may_wait_are_refused(raw: Raw) -> None:
    raw.hello([])
    for number in range(20):
        raw.exchange.send(msgpack.packb({"type": "request", "id": number, "op": "pause"}))
    raw.host.until(lambda: raw.host.rejected.get("busy", 0) == 4)
    assert len(raw.host.server.requests()) == 16


def test_telemetry_has_everything_under_the_robots_name(raw: Raw) -> None:
    host = raw.host
    with raw.context.socket(zmq.SUB) as subscriber:
        subscriber.linger = 0
        subscriber.subscribe(b"")
        subscriber.connect(host.server.endpoints["telemetry"])

        def publish() -> bool:
            host.publish()
            host.advance()
            return bool(subscriber.poll(0))

        host.until(publish)
        topic, frame = subscriber.recv_multipart()
    message = msgpack.unpackb(frame)
    assert (topic, message["type"]) == (b"toy", "telemetry")
    assert message["timestamp"] == message["step"] * 1e-3
    assert message["outputs"]["joint_angle"] == list(range(15))


def test_a_plant_that_observes_something_else_than_it_declares_is_refused() -> None:
    class Wrong(Toy):
        def observe(self) -> dict[str, Any]:
            return super().observe() | {"position": [0.0, 0.0]}

    with pytest.raises(
        ModelError, match=r"'position': expected the declared shape \(3,\) from observe\(\), got \(2,\)"
    ):
        Server(Wrong(), robot="wrong", free_ports=True)


def test_an_empty_token_is_none(make_host: Callable[..., Host], make_raw: Callable[[Host], Raw]) -> None:
    assert make_raw(make_host(token="")).hello(["*"], token="")["code"] == "token"


def test_two_peers_of_one_name_are_two(host: Host, make_raw: Callable[[Host], Raw]) -> None:
    """The second one gets a number, and its name is free again when it left."""
    make_raw(host).join(["left.front"], "mine")
    second = make_raw(host).join(["left.back"], "mine")
    make_raw(host).join(["right.front"], "mine")
    assert [peer["name"] for peer in host.server.report()["peers"]] == ["mine", "mine-2", "mine-3"]
    assert host.server.holders() == {"mine", "mine-2", "mine-3"}
    second.send_message(type="bye", reason="done")
    host.until(lambda: host.server.holders() == {"mine", "mine-3"})
    make_raw(host).join(["left.back"], "mine")
    assert host.server.holders() == {"mine", "mine-2", "mine-3"}
