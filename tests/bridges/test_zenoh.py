"""States as keys and commands from them, against Zenoh's own sessions."""

from __future__ import annotations

import json
import math
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("zenoh", reason="needs eclipse-zenoh: pip install 'rtmms[zenoh]'")

import msgpack
import zenoh

import rtmms
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms_bridges.zenoh import Zenoh, parse, read_msgpack
from tests.bridges.by_hand import opened
from tests.bridges.harness import Companion, plant_info, state, wait
from tests.ports import reserve_ports
from tests.wire.bench import Host

pytestmark = pytest.mark.full


@pytest.fixture
def endpoint() -> str:
    return f"tcp/127.0.0.1:{reserve_ports()}"


class Peer:
    """A session that is connected to the bridge's endpoint and keeps the newest sample of each key."""

    def __init__(self, endpoint: str, keys: str = "rtmms/toy/**") -> None:
        config = zenoh.Config()
        for key, value in (("mode", "client"), ("connect/endpoints", [endpoint]), ("connect/timeout_ms", 10_000),
                           ("scouting/multicast/enabled", False)):  # fmt: skip
            config.insert_json5(key, json.dumps(value))
        self.session = zenoh.open(config)
        self.samples: dict[str, Any] = {}
        self.received: Counter[str] = Counter()
        self._subscriber = self.session.declare_subscriber(keys, self._receive)

    def _receive(self, sample: Any) -> None:
        self.samples[str(sample.key_expr)] = sample
        self.received[str(sample.key_expr)] += 1

    def put(self, key: str, data: bytes) -> None:
        """Wait where the link is full: put drops by itself."""
        self.session.put(key, data, congestion_control=zenoh.CongestionControl.BLOCK)

    def text(self, key: str) -> str:
        return str(wait(lambda: self.samples.get(key)).payload.to_string())


@pytest.fixture
def connected(endpoint: str) -> Iterator[Callable[..., Peer]]:
    peers: list[Peer] = []

    def make(*args: Any) -> Peer:
        peers.append(Peer(endpoint, *args))
        return peers[-1]

    yield make
    for peer in peers:
        peer.session.close()


def test_states_as_keys(make_host: Callable[..., Host], endpoint: str, connected: Callable[..., Peer]) -> None:
    bridge = Zenoh(listen=(endpoint,), rate_hz=0.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        peer = connected()
        whole = json.loads(peer.text("rtmms/toy/state"))
        assert set(whole) == {"time", "step", "position", "quaternion", "speed", "thrust"}
        assert whole["thrust"] == [1.0, 2.0, 3.0, 4.0]
        assert whole["speed"] == pytest.approx(whole["time"], abs=2e-3)
        assert json.loads(peer.text("rtmms/toy/quaternion")) == [1.0, 0.0, 0.0, 0.0]
        sample = peer.samples["rtmms/toy/quaternion"]
        assert str(sample.encoding) == "application/json"
        at = json.loads(sample.attachment.to_string())
        assert at["time"] == pytest.approx(at["step"] * 1e-3)
        (info,) = (json.loads(reply.ok.payload.to_string()) for reply in peer.session.get("rtmms/toy/info"))
        assert info["robot"] == "toy"
        assert info["actuators"][0] == {"name": "left.front", "unit": "rad", "lower": -1.2, "upper": 1.2}
        (token,) = peer.session.liveliness().get("rtmms/*")
        assert str(token.ok.key_expr) == "rtmms/toy"
        peer.put("rtmms/toy/command", b'{"values": {"left.front": 0.5}}')  # nothing is claimed
    assert extra.bridged.fault is None
    assert extra.command == [0.0, 0.0, 0.0, 0.0]
    assert extra.bridged.counts["received"] == 0


def test_no_key_starves(make_host: Callable[..., Host], endpoint: str, connected: Callable[..., Peer]) -> None:
    """All outputs of a state go out together; the last of them must come as often as the first."""
    bridge = Zenoh(listen=(endpoint,), rate_hz=50.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        peer = connected()
        wait(lambda: peer.received["rtmms/toy/position"] >= 60)
        counted = dict(peer.received)
    assert len(counted) == 5
    assert min(counted.values()) >= 0.8 * max(counted.values()), counted


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_commands(encoding: str, make_host: Callable[..., Host], endpoint: str, connected: Callable[..., Peer]) -> None:
    pack = msgpack.packb if encoding == "msgpack" else lambda value: json.dumps(value).encode()
    bridge = Zenoh(listen=(endpoint,), claim=("left.*",), encoding=encoding, layout="state")  # type: ignore[arg-type]
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        peer = connected()
        state = wait(lambda: peer.samples.get("rtmms/toy/state")).payload.to_bytes()
        assert (msgpack.unpackb(state) if encoding == "msgpack" else json.loads(state))["thrust"] == [1, 2, 3, 4]
        assert set(peer.samples) == {"rtmms/toy/state"}
        for key in ("command", "command/left.back"):  # until the peer knows who wants it, puts go nowhere
            publisher = peer.session.declare_publisher(f"rtmms/toy/{key}")
            wait(lambda publisher=publisher: publisher.matching_status.matching)
        peer.put("rtmms/toy/command", pack({"values": {"left.front": 0.5, "left.back": -0.25}}))
        wait(lambda: extra.command == [0.5, -0.25, 0.0, 0.0])
        peer.put("rtmms/toy/command/left.back", pack(0.75))
        wait(lambda: extra.command == [0.5, 0.75, 0.0, 0.0])
        for key, wrong in (
            ("command", b"\xc1{"), ("command", pack([])), ("command/left.front", pack("0.5")),
            ("command/left.front", pack(float("inf"))), ("command/right.front", pack(0.5)),
            ("command", b" " * 70_000),
        ):  # fmt: skip
            peer.put(f"rtmms/toy/{key}", wrong)
        wait(lambda: extra.bridged.counts["refused"] == 6)
        assert extra.command == [0.5, 0.75, 0.0, 0.0]
    assert extra.bridged.counts.reasons() == {
        "malformed": 1, "wrong_type": 2, "not_finite": 1, "unknown_actuator": 1, "oversize": 1,
    }  # fmt: skip
    assert extra.running.host.rejected == {}


def test_a_command_that_is_too_long_is_not_put_together(
    make_host: Callable[..., Host], endpoint: str, connected: Callable[..., Peer]
) -> None:
    bridge = Zenoh(listen=(endpoint,), claim=("*",))
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        peer = connected()
        lengths: list[int] = []
        put = bridge.inbox.put
        bridge.inbox.put = lambda message: (lengths.append(len(message[1])), put(message))  # type: ignore[assignment]
        publisher = peer.session.declare_publisher("rtmms/toy/command")
        wait(lambda: publisher.matching_status.matching)  # until the peer knows who wants it, puts go nowhere
        peer.put("rtmms/toy/command", b"1" * 100_000)
        wait(lambda: extra.bridged.counts.reasons() == {"oversize": 1})
        peer.put("rtmms/toy/command", b"1" * 30_000_000)
        wait(lambda: peer.put("rtmms/toy/command/left.front", b"0.25") or extra.command[0] == 0.25)
        assert extra.bridged.counts.reasons() == {"oversize": 1}
        assert max(lengths) == 65537


def test_one_that_does_not_read_costs_nothing(
    make_host: Callable[..., Host], endpoint: str, connected: Callable[..., Peer]
) -> None:
    """Its callback never returns; another peer gets what comes, and the bridge ends when it should."""
    bridge, stuck, free = Zenoh(listen=(endpoint,), rate_hz=0.0), threading.Event(), threading.Event()
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        slow, other = connected("nothing"), connected()

        def hang(sample: Any) -> None:
            stuck.set()
            free.wait()

        subscriber = slow.session.declare_subscriber("rtmms/**", hang)
        try:
            assert stuck.wait(30.0)
            for _ in range(3000):
                bridge._publishers["state"].put(b"x" * 4000)
            sent = extra.bridged.counts["sent"]
            wait(lambda: extra.bridged.counts["sent"] > sent + 100)
            other.samples.clear()
            wait(lambda: "rtmms/toy/speed" in other.samples)
        finally:
            free.set()
        assert subscriber is not None
    assert extra.bridged.fault is None


def test_a_peer_that_is_not_there_yet_is_found_later(make_host: Callable[..., Host], endpoint: str) -> None:
    bridge = Zenoh(listen=(), connect=(endpoint,), rate_hz=0.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        config = zenoh.Config()
        config.insert_json5("listen/endpoints", json.dumps([endpoint]))
        config.insert_json5("scouting/multicast/enabled", "false")
        received: list[Any] = []
        with zenoh.open(config) as session:
            subscriber = session.declare_subscriber("rtmms/toy/speed", received.append)
            wait(lambda: received)
            assert subscriber is not None
    assert extra.bridged.fault is None


def test_numbers_that_are_none_are_not_sent(endpoint: str, connected: Callable[..., Peer]) -> None:
    info = plant_info(Channel("speed", "m/s"), Channel("depth", "m"))
    bridge = opened(Zenoh(listen=(endpoint,)), info)
    peer = connected()

    def received() -> bool:  # again: the peer's wish may still be on its way
        bridge.on_state(state(info, 1, speed=math.nan, depth=3.0))
        return "rtmms/toy/depth" in peer.samples

    wait(received)
    assert json.loads(peer.text("rtmms/toy/depth")) == 3.0
    assert bridge.counts["not_finite"] == 2 * bridge.counts["sent"]  # the output, and the state with it
    assert not {"rtmms/toy/speed", "rtmms/toy/state"} & set(peer.samples)
    bridge.close("the test is over")


def test_closing_waits_for_nobody(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    info = plant_info(Channel("speed", "m/s"))
    bridge = opened(Zenoh(listen=(endpoint,)), info)
    free, session, done = threading.Event(), bridge.session, threading.Event()

    class Slow:
        def close(self) -> None:
            free.wait(60.0)
            session.close()
            done.set()

    bridge.session = Slow()
    monkeypatch.setattr("rtmms_bridges.zenoh._STOP_S", 0.05)
    bridge.close("the test is over")
    assert not done.is_set()
    free.set()
    assert done.wait(60.0)


def test_a_file_for_zenoh_itself(make_host: Callable[..., Host], endpoint: str, tmp_path: Path) -> None:
    """Users with passwords, which only the library's own configuration can have."""
    users = tmp_path / "users.txt"
    users.write_text("manta:ray\n")
    file = tmp_path / "zenoh.json5"
    user = f'{{user: "manta", password: "ray", dictionary_file: "{users}"}}'
    file.write_text(
        f'{{mode: "peer", listen: {{endpoints: ["{endpoint}"]}}, scouting: {{multicast: {{enabled: false}}}}, '
        f"transport: {{auth: {{usrpwd: {user}}}}}}}"
    )
    bridge = Zenoh(zenoh_config=str(file), rate_hz=0.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        config = zenoh.Config()
        for key, value in (("mode", "client"), ("connect/endpoints", [endpoint]), ("connect/timeout_ms", 0),
                           ("scouting/multicast/enabled", False)):  # fmt: skip
            config.insert_json5(key, json.dumps(value))
        with pytest.raises(zenoh.ZError):
            zenoh.open(config)
        config.insert_json5("connect/timeout_ms", "10000")
        config.insert_json5("transport/auth/usrpwd/user", '"manta"')
        config.insert_json5("transport/auth/usrpwd/password", '"ray"')
        received: list[Any] = []
        with zenoh.open(config) as session:
            subscriber = session.declare_subscriber("rtmms/toy/speed", received.append)
            wait(lambda: received)
            assert subscriber is not None


def test_what_is_wrong_is_reported(endpoint: str) -> None:
    info = plant_info()
    address = endpoint.rpartition(":")[2]
    with (
        socket.create_server(("127.0.0.1", int(address))),
        pytest.raises(rtmms.ModelError, match=f"zenoh: .*{address}.*Address already in use"),
    ):
        opened(Zenoh(listen=(endpoint,)), info)
    with pytest.raises(rtmms.ModelError, match="bogus"):
        opened(Zenoh(listen=("bogus/1",)), info)
    with pytest.raises(rtmms.ModelError, match=r"/no\.json5: there is no such file"):
        opened(Zenoh(zenoh_config="/no.json5"), info)
    with pytest.raises(rtmms.ModelError, match=r"expected a key expression of Zenoh, got 'a//b': .*empty chunks"):
        opened(Zenoh(prefix="a//b"), info)
    with pytest.raises(rtmms.ModelError, match="without wildcards"):
        opened(Zenoh(prefix="a/*"), info)
    with pytest.raises(Refusal):
        parse(b"1", "")
    with pytest.raises(Refusal):
        read_msgpack(msgpack.packb({1: 2}))


def test_any_names_are_keys(endpoint: str, connected: Callable[..., Peer]) -> None:
    names = ("out?#1", "speed", "a/b*")
    info = plant_info(*(Channel(name) for name in names), robot="tank#2")
    info = replace(info, granted=("fin$1",), actuators=(Channel("fin$1"),))
    bridge = opened(Zenoh(listen=(endpoint,), claim=("*",)), info)
    peer = connected("rtmms/**")

    def received() -> bool:
        bridge.on_state(state(info, 1, **dict.fromkeys(names, 1.0)))
        return {f"rtmms/tank_2/{key}" for key in ("out__1", "speed", "a_b_", "state")} <= set(peer.samples)

    wait(received)

    def driven() -> bool:
        peer.put("rtmms/tank_2/command/fin_1", b"0.5")
        bridge.on_message()
        return bool(bridge.io.commands)  # type: ignore[attr-defined]

    wait(driven)
    assert bridge.io.commands[0] == {"fin$1": 0.5}  # type: ignore[attr-defined]
    bridge.close("the test is over")
    with pytest.raises(rtmms.ModelError, match=r"no placeholders other than \{robot\}, got '\{nope\}'"):
        Zenoh(prefix="{nope}")
    with pytest.raises(rtmms.ModelError, match="'a b' and 'a_b' have the same topic name 'a_b'"):
        opened(Zenoh(listen=(endpoint,)), plant_info(Channel("a b"), Channel("a_b")))


def test_a_file_as_the_robot(endpoint: str) -> None:
    info = plant_info(robot="/some/where/my model.fmu")
    bridge = opened(Zenoh(listen=(endpoint,)), info)
    try:
        assert bridge.root == "rtmms/my_model.fmu"
        bridge.on_state(state(info, 1))
        assert bridge.counts["sent"] == 1
    finally:
        bridge.close("the test is over")
