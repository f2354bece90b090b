"""Peers of protocol versions 1 and 2 at one plant, and a link at a plant that speaks version 1 alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack
import pytest

import rtmms
from rtmms.wire.plant.handshake import HandshakePort
from rtmms.wire.protocol import messages
from rtmms.wire.protocol.hello import Hello, hello_message, read_hello
from rtmms.wire.protocol.messages import IN_VERSION_1, Reason, Refusal
from tests.wire.bench import Host, Raw
from tests.wire.looping import Looping

WELCOME = {"local_step_endpoint", "robot_name", "geometry", "environment"}


@pytest.mark.parametrize("version", [1, 2])
def test_each_peer_gets_the_names_of_its_version(host: Host, raw: Raw, version: int) -> None:
    welcome = raw.hello(["*"], protocol=version)
    assert welcome["protocol"] == version
    old = {IN_VERSION_1[name] for name in WELCOME}
    assert (WELCOME if version == 2 else old) <= set(welcome)
    assert not (old if version == 2 else WELCOME) & set(welcome)
    raw.exchange.send(b"\xc1")
    host.until(lambda: raw.exchange.poll(0))
    error = msgpack.unpackb(raw.exchange.recv())
    assert (error["type"], error["code"]) == ("error", "malformed" if version == 2 else "garbled")
    assert host.rejected == {"malformed": 1}


@pytest.mark.parametrize(("version", "key"), [(1, "between"), (2, "interpolation")])
def test_a_hello_is_read_and_written_with_the_names_of_its_version(version: int, key: str) -> None:
    hello = Hello("mine", every=4, delay=4, interpolation="linear", protocol=version)
    message = hello_message(hello)
    assert message[key] == "linear"
    assert read_hello(message).interpolation == "linear"
    other = {1: "interpolation", 2: "between"}[version]
    read = read_hello({**{name: value for name, value in message.items() if name != key}, other: "linear"})
    assert read.interpolation == "hold", "a field of another version is an unknown one"


@pytest.mark.parametrize("kind", ["metrics", "figures"])
def test_numbers_of_a_peer_go_by_both_types(host: Host, raw: Raw, kind: str) -> None:
    raw.join(["*"])
    raw.exchange.send(msgpack.packb({"type": kind, "values": {"plans": 3}}))
    host.until(lambda: host.summaries[0]["metrics"] == {"plans": 3})


def test_a_link_speaks_version_1_to_a_plant_that_speaks_no_other(
    make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[dict[str, Any]] = []

    def of_version_1(
        self: HandshakePort, exchange_id: bytes, peer: Any, message: dict[str, Any], key: Any = None
    ) -> None:
        received.append(message)
        if message["type"] == "hello" and message["protocol"] != 1:
            raise Refusal(Reason.PROTOCOL, "hello: protocol: expected one of 1, got 2")
        receive(self, exchange_id, peer, message, key)

    receive = HandshakePort._receive
    monkeypatch.setattr(HandshakePort, "_receive", of_version_1)
    with (
        Looping(make_host(token="secret")) as running,
        rtmms.connect(
            running.host.exchange, name="new", claim="*", token="secret", every=2, interpolation="linear"
        ) as link,
    ):
        assert link.plant.environment
        link.report_metrics({"plans": 1})
        for state in link:
            link.command({})
            if state.step > 6:
                break
        running.wait(lambda: any(message["type"] == "figures" for message in received))
    hellos = [message for message in received if message["type"] == "hello"]
    assert {message["protocol"] for message in hellos} == {1, 2}
    assert next(message for message in hellos if message["protocol"] == 1)["between"] == "linear"
    assert not any(message["type"] == "metrics" for message in received)
    assert messages.PROTOCOL == 2
