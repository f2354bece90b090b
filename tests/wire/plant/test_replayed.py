"""The recorded sessions of version 1, replayed: an old peer meets this plant, an old plant meets this peer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq

import rtmms
from tests.wire.bench import PATIENCE_S, Host, Raw, is_probe

FIXTURES = Path(__file__).parents[1] / "fixtures"
CHANGING = {"session", "identity", "step_endpoint", "telemetry_endpoint"}


def recorded(name: str) -> list[tuple[str, bytes, dict[str, Any]]]:
    """(sender, frame, message) of each line."""
    lines = [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]
    frames = [(line["from"], bytes.fromhex(line["hex"])) for line in lines]
    return [(sender, frame, msgpack.unpackb(frame)) for sender, frame in frames]


def held_to(was: dict[str, Any], now: dict[str, Any]) -> None:
    """Every field that was there is there, in its place, with its value or, where it changes, of its type; later fields
    come behind."""
    assert list(now)[: len(was)] == list(was)
    for name, value in was.items():
        if name in CHANGING:
            assert type(now[name]) is type(value)
        elif isinstance(value, dict) and name != "values":
            held_to(value, now[name])
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for item, other in zip(value, now[name], strict=True):
                held_to(item, other)
        elif name == "text":
            assert isinstance(now[name], str)
        elif name == "lateness_ns":
            assert isinstance(now[name], int)
        else:
            assert now[name] == value, name


class OldPeer(Raw):
    """Sends recorded bytes; each message of the plant is held to the one that was recorded."""

    def expect(self, was: dict[str, Any], at_door: bool) -> dict[str, Any]:
        socket = self.exchange if at_door else self.data
        assert socket is not None

        def arrived() -> bool:
            if was["type"] == "state" and was["step"] >= 0 and self.host.step == was["step"] and not socket.poll(0):
                self.host.publish()
            return bool(socket.poll(1))

        while True:
            self.host.until(arrived)
            now: dict[str, Any] = msgpack.unpackb(socket.recv())
            if not is_probe(now) or is_probe(was):  # a slow machine gets probes that the recording has not
                held_to(was, now)
                return now


def test_an_old_peer_is_answered_as_it_was(make_host: Callable[..., Host]) -> None:
    host = make_host(mode="realtime")
    peer = OldPeer(host)
    output = recorded("version1.jsonl")
    for number, (sender, frame, was) in enumerate(output):
        kind = was["type"]
        at_door = kind in ("hello", "welcome", "request", "reply")
        if kind == "telemetry":
            continue
        if sender == "plant":
            if kind == "reply":
                request = host.until(host.server.requests)[0]
                host.server.reply(request, result={"step": host.step})
            now = peer.expect(was, at_door)
            if kind == "welcome":
                peer.data = peer._dealer(now["identity"])
                peer.data.connect(now["step_endpoint"])
            continue
        if at_door:
            peer.exchange.send(frame)
            continue
        assert peer.data is not None
        peer.data.send(frame)
        if kind == "command" and was["step"] >= 0:
            host.arrived()
            host.collect(0.0)
            host.advance()
        elif kind == "command" and was["step"] == -1:
            host.until(lambda: "fixture" in host.server.admitted())
        assert number < len(output)
    host.until(lambda: not host.server.claimed.any())
    assert host.rejected == {"not_finite": 1}
    assert host.plant.state[:2].tolist() == [1.2, -0.5]
    peer.vanish()


class OldPlant:
    """A plant of version 1 as it was recorded: sends its bytes as a peer goes on."""

    def __init__(self) -> None:
        self.context = zmq.Context()
        self.handshakes, self.step = (self.context.socket(zmq.ROUTER) for _ in range(2))
        for socket in (self.handshakes, self.step):
            socket.linger = 0
        port, step_port = (socket.bind_to_random_port("tcp://127.0.0.1") for socket in (self.handshakes, self.step))
        self.exchange, self.step_endpoint = f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{step_port}"
        self.received: list[dict[str, Any]] = []
        self.fault: BaseException | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._replay()
        except BaseException as fault:
            self.fault = fault

    def _receive(self, socket: zmq.Socket[bytes]) -> bytes:
        assert socket.poll(int(PATIENCE_S * 1e3)), "the peer sent nothing"
        identity, frame = socket.recv_multipart()
        self.received.append(msgpack.unpackb(frame))
        return identity

    def _replay(self) -> None:
        identity = b""
        for sender, frame, was in recorded("version1.jsonl"):
            if sender == "peer":
                if was["type"] == "command":
                    self._receive(self.step)
                continue
            if was["type"] == "welcome":
                sender_id = self._receive(self.handshakes)
                identity = was["identity"]
                self.handshakes.send_multipart([sender_id, msgpack.packb(was | {"step_endpoint": self.step_endpoint})])
                self.step.setsockopt(zmq.ROUTER_MANDATORY, 1)
            elif was["type"] in ("state", "error"):
                end = time.monotonic() + PATIENCE_S
                while time.monotonic() < end:
                    try:
                        self.step.send_multipart([identity, frame])
                        break
                    except zmq.ZMQError:  # it has yet to connect
                        time.sleep(0.01)
        self.step.send_multipart([identity, msgpack.packb({"type": "bye", "reason": "that was all"})])

    def close(self) -> None:
        self.thread.join(PATIENCE_S)
        self.context.destroy(linger=200)


def test_an_old_plant_is_understood() -> None:
    plant = OldPlant()
    try:
        with rtmms.connect(plant.exchange, name="fixture", claim="left.*", token="secret", errors="collect") as link:
            states = []
            for state in link:
                states.append(state)
                link.command({"left.front": 0.25})
    finally:
        plant.close()
    if plant.fault is not None:
        raise plant.fault
    assert [state.step for state in states] == [0, 1, 2]
    assert states[1]["position"].tolist() == [0.25, -0.5, 0.0]  # type: ignore[union-attr]
    assert states[2].applied.clamped
    assert (link.plant.robot, link.plant.granted) == ("toy", ("left.front", "left.back"))
    assert link.errors[0][0] == "not_finite"
    assert link.ended == "the plant sent bye: that was all"
    commands = [message for message in plant.received if message["type"] == "command"]
    assert [message["step"] for message in commands] == [*range(-10, 0), 0, 1, 2]
    old = next(was for sender, _, was in recorded("version1.jsonl") if was["type"] == "command")
    assert list(commands[0]) == list(old)


def test_an_unknown_version_gets_the_ones_that_are_spoken(make_host: Callable[..., Host]) -> None:
    host = make_host()
    peer = Raw(host)
    for version in (0, 3, 99, "1", None):
        answer = peer.ask(type="hello", protocol=version, name=7, claim="broken", outputs={}, token=[])
        assert (answer["type"], answer["code"]) == ("error", "protocol")
        assert "protocol: expected one of 1, 2, got " in answer["text"]
    peer.vanish()


@pytest.mark.parametrize("kind", ["hello", "command"])
def test_fields_of_later_versions_are_passed_over(kind: str, make_host: Callable[..., Host]) -> None:
    host = make_host()
    peer = Raw(host)
    later = {"novelty": [1, {"a": b"\x00"}], "zeal": None}
    peer.join(["*"], **(later if kind == "hello" else {}))
    host.publish()
    message = {"type": "command", "seq": 99, "step": 0, "values": {"left.front": 0.5}}
    peer.send_message(**message, **(later if kind == "command" else {}))
    assert host.collect()
    assert host.command[0] == 0.5
    assert host.rejected == {}
    peer.vanish()
