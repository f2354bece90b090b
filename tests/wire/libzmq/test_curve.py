"""Keys: who comes in with which, what those get that do not, and what is encrypted."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq

import rtmms
from rtmms.wire.keys import ALLOWED, AdmittedKeys, make_keys, read_allowed, read_client, read_server
from rtmms.wire.libzmq.plant_sockets import Gatekeeper, read_question
from rtmms.wire.plant.sockets import Sockets
from rtmms.wire.protocol.errors import AddressError, NotConnectedError
from tests.wire.bench import PATIENCE_S, Host, Raw
from tests.wire.looping import Looping


@pytest.fixture
def locked(folder: Path, make_host: Callable[..., Host]) -> Host:
    return make_host(keys=read_server(folder), token=None)


@pytest.fixture
def running(locked: Host) -> Iterator[Looping]:
    with Looping(locked) as running:
        yield running


class Keyed(Raw):
    """A raw peer with keys."""

    keys: Any = None

    def _dealer(self, identity: bytes | None = None) -> zmq.Socket[bytes]:
        socket = super()._dealer(identity)
        lock_client(socket, self.keys)
        return socket


def lock_client(socket: zmq.Socket[bytes], keys: Any) -> None:
    socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = keys.server, keys.public, keys.secret


@pytest.fixture
def make_keyed(folder: Path) -> Iterator[Callable[[Host], Keyed]]:
    peers: list[Keyed] = []

    def make(host: Host, keys: Path = folder) -> Keyed:
        kind = type("Keyed", (Keyed,), {"keys": read_client(keys)})
        peers.append(kind(host))
        return peers[-1]

    yield make
    for peer in peers:
        peer.vanish()


def test_the_right_key_drives_without_the_token(running: Looping, folder: Path) -> None:
    with rtmms.connect(running.host.exchange, claim="*", token="", keys=folder) as link:
        for state in link:
            link.command({"left.front": 0.25})
            if state["position"][0] == 0.25:
                break
    assert running.host.rejected == {}


def test_an_observer_gets_its_telemetry_encrypted(running: Looping, folder: Path) -> None:
    with rtmms.connect(running.host.exchange, keys=folder) as link:
        assert next(link).step < next(link).step


def test_telemetry_is_not_for_those_without_a_key(running: Looping) -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.linger = 0
        subscriber.subscribe(b"")
        subscriber.connect(running.host.server.endpoints["telemetry"])
        step = running.host.step
        running.wait(lambda: running.host.step > step + 200)
        assert not subscriber.poll(0)


def test_what_travels_is_encrypted(locked: Host, folder: Path) -> None:
    """The bytes on the wire, seen through a relay: a hello's name is not among them, though the plant got it."""
    import socket
    import threading

    port = int(locked.exchange.rpartition(":")[2])
    observed: list[bytes] = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)

        def pump(a: socket.socket, b: socket.socket) -> None:
            with a, b, contextlib.suppress(OSError):
                while data := a.recv(65536):
                    observed.append(data)
                    b.sendall(data)

        def relay() -> None:
            near, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=pump, args=(far, near), daemon=True).start()
            pump(near, far)

        threading.Thread(target=relay, daemon=True).start()
        kind = type("Keyed", (Keyed,), {"keys": read_client(folder)})
        real, locked.exchange = locked.exchange, f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        peer = kind(locked)
        locked.exchange = real
        welcome = peer.hello([], "a name that shows")
        peer.vanish()
    assert welcome["type"] == "welcome"
    bytes_seen = b"".join(observed)
    assert len(bytes_seen) > 1000
    assert b"CURVE" in bytes_seen
    assert b"a name that shows" not in bytes_seen
    assert b"welcome" not in bytes_seen


def test_without_a_key_it_is_reported_what_is_missing(running: Looping) -> None:
    with pytest.raises(NotConnectedError, match="asks for keys and none were given") as refused:
        rtmms.connect(running.host.exchange, claim="*", timeout_s=PATIENCE_S)
    assert refused.value.code == "key"


def test_an_unlisted_key_is_notified_at_once(running: Looping, folder: Path) -> None:
    (folder / ALLOWED / "client.key").rename(folder / "aside.key")
    running.wait(lambda: not running.host.server._allowed.names)
    with pytest.raises(NotConnectedError, match=r"does not know this key.*folder 'clients'") as refused:
        rtmms.connect(running.host.exchange, keys=folder, timeout_s=10 * PATIENCE_S)
    assert refused.value.code == "key"
    (folder / "aside.key").rename(folder / ALLOWED / "client.key")
    running.wait(lambda: running.host.server._allowed.names)
    rtmms.connect(running.host.exchange, keys=folder).close()


def test_another_plants_key_is_not_answered(running: Looping, folder: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "other")
    shutil.copy(folder / "client.key_secret", tmp_path / "other")
    with pytest.raises(NotConnectedError, match=r"admitted this peer at .*: is server.key the one of this plant"):
        rtmms.connect(running.host.exchange, keys=tmp_path / "other", timeout_s=0.5)


def test_keys_for_a_plant_that_asks_for_none(make_host: Callable[..., Host], folder: Path) -> None:
    with Looping(make_host(token=None)) as running, pytest.raises(NotConnectedError) as refused:
        rtmms.connect(running.host.exchange, keys=folder, timeout_s=PATIENCE_S)
    assert "asks for no keys" in str(refused.value) or "server.key" in str(refused.value)


def test_nobody_there_is_still_nobody_there(folder: Path) -> None:
    with pytest.raises(NotConnectedError, match="no plant answered"):
        rtmms.connect("tcp://127.0.0.1:9", keys=folder, timeout_s=0.05)


def test_a_key_that_is_taken_away_ends_the_claim(locked: Host, make_keyed: Any, folder: Path) -> None:
    first = make_keyed(locked).join(["left.*"], "first", token="")
    assert locked.server.claimed.tolist() == [True, True, False, False]
    (folder / ALLOWED / "client.key").unlink()
    locked.until(lambda: not locked.server.claimed.any())
    assert first.data is not None
    while (output := first.read_message())["type"] != "bye":
        pass
    assert output["reason"] == "your key was taken away"
    bye = msgpack.unpackb(first.exchange.recv())
    assert bye["type"] == "bye"
    answer = first.hello(["left.*"], "first")  # on the connection that stands
    assert (answer["code"], "no longer" in answer["text"]) == ("token", True)


def test_a_second_peer_has_its_own_key(locked: Host, make_keyed: Any, folder: Path, tmp_path: Path) -> None:
    make_keys(folder, "second")
    (tmp_path / "theirs").mkdir(mode=0o700)
    for name in ("server.key", "second.key_secret"):
        shutil.copy(folder / name, tmp_path / "theirs")
    locked.until(lambda: len(locked.server._allowed.names) == 2)
    make_keyed(locked).join(["left.*"], "one")
    make_keyed(locked, tmp_path / "theirs").join(["right.*"], "two")
    assert locked.server.claimed.all()
    (folder / ALLOWED / "second.key").unlink()
    locked.until(lambda: not locked.server.claimed.all())
    assert locked.server.claimed.tolist() == [True, True, False, False]


def test_a_key_that_is_taken_away_gets_no_more_telemetry(running: Looping, folder: Path, tmp_path: Path) -> None:
    make_keys(folder, "second")
    (tmp_path / "theirs").mkdir(mode=0o700)
    for name in ("server.key", "second.key_secret"):
        shutil.copy(folder / name, tmp_path / "theirs")
    running.wait(lambda: len(running.host.server._allowed.names) == 2)
    with zmq.Context() as context, context.socket(zmq.SUB) as stays, context.socket(zmq.SUB) as goes:
        for socket, keys in ((stays, folder), (goes, tmp_path / "theirs")):
            socket.linger = 0
            lock_client(socket, read_client(keys))
            socket.subscribe(b"")
            socket.connect(running.host.server.endpoints["telemetry"])
            assert socket.poll(int(PATIENCE_S * 1e3))
        (folder / ALLOWED / "second.key").unlink()
        running.wait(lambda: len(running.host.server._allowed.names) == 1)
        step = running.host.step

        def newest(socket: zmq.Socket[bytes]) -> int:
            assert socket.poll(int(PATIENCE_S * 1e3))
            return int(msgpack.unpackb(socket.recv_multipart()[1])["step"])

        while newest(stays) < step + 20:  # it came back by itself
            pass
        while goes.poll(0):
            assert newest(goes) <= step + 10  # what was under way


# -- the loop ---------------------------------------------------------------------------------------------------------


def test_handshakes_are_answered_in_the_slack_and_nowhere_else(locked: Host, make_keyed: Any) -> None:
    """While a stranger with a key shakes hands, steps go on; its key is looked at by serve, not by publish, collect."""
    served: list[str] = []
    steps: Any = locked.server._sockets.step
    door: Any = locked.server._sockets.exchange
    for gatekeeper in (steps._gatekeeper, door._gatekeeper):
        real = gatekeeper.serve
        gatekeeper.serve = lambda real=real: (served.append("serve"), real())  # type: ignore[method-assign]
    peer = make_keyed(locked)
    peer.exchange.send(msgpack.packb({"type": "hello", "protocol": 1, "name": "slow"}))
    for _ in range(200):
        locked.publish()
        locked.collect(0.0)
        locked.advance()
        time.sleep(1e-4)
    assert served == []
    assert not peer.exchange.poll(50), "nobody can have let it in"
    locked.until(lambda: peer.exchange.poll(0))
    assert served


def test_a_flood_of_handshakes_is_answered_a_few_at_a_time(folder: Path) -> None:
    class Counting:
        def __init__(self) -> None:
            self.waiting, self.answered = 100, 0

        def recv_multipart(self, flags: int) -> list[bytes]:
            self.waiting -= 1
            return [b"1.0", b"1", b"rtmms", b"", b"", b"CURVE", b"k" * 32]

        def getsockopt(self, option: int) -> int:
            return int(zmq.POLLIN) if self.waiting else 0

        def send_multipart(self, frames: list[bytes], flags: int) -> None:
            self.answered += 1
            assert frames[2] == b"400"

    step_recorder = Gatekeeper.__new__(Gatekeeper)
    step_recorder._name_of, step_recorder.refused = AdmittedKeys(read_server(folder)).name_of, 0
    step_recorder._socket = Counting()  # type: ignore[assignment]
    step_recorder.serve()
    assert (step_recorder._socket.answered, step_recorder.refused) == (4, 4)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"1.0"],
        [b"1.0", b"1", b"rtmms", b"", b"", b"CURVE", b"short"],
        [b"1.0", b"1", b"rtmms", b"", b"", b"NULL", b""],
        [b"1.0", b"1", b"other", b"", b"", b"CURVE", b"k" * 32],
        [b"2.0", b"1", b"rtmms", b"", b"", b"CURVE", b"k" * 32],
        [b"1.0", b"1", b"rtmms", b"", b"", b"CURVE", b"k" * 32, b"more"],
    ],
)
def test_a_question_that_is_none_lets_nobody_in(frames: list[bytes]) -> None:
    assert read_question(frames)[1] is None


def test_the_folder_is_looked_at_once_a_second_and_read_when_it_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def counted(path: Path) -> dict[bytes, str]:
        reads.append(path)
        return read_allowed(path)

    monkeypatch.setattr("rtmms.wire.keys.read_allowed", counted)
    allowed = AdmittedKeys(read_server(folder))
    now = time.monotonic_ns()
    for tick in range(1, 3500):
        allowed.look(now + tick * 1_000_000)  # each ms for 3.5 s
    assert (len(reads), len(allowed.names)) == (2, 1)
    make_keys(folder, "second")
    allowed.look(now + 3_600_000_000)
    assert len(allowed.names) == 1
    allowed.look(now + 6_000_000_000)
    assert len(allowed.names) == 2
    shutil.rmtree(folder / ALLOWED)
    allowed.look(now + 8_000_000_000)
    assert allowed.names == {}


# -- addresses --------------------------------------------------------------------------------------------------------


def test_with_keys_others_may_reach_it(folder: Path, make_host: Callable[..., Host]) -> None:
    free = "tcp://*:*"
    host = make_host(keys=read_server(folder), exchange=free, step=free, telemetry=free, token=None)
    assert host.exchange.startswith("tcp://0.0.0.0:")
    exchange = host.exchange.replace("0.0.0.0", "127.0.0.1")
    with Looping(host), rtmms.connect(exchange, claim="*", keys=folder) as link:
        assert next(link).step >= 0  # the step endpoint is found where the exchange endpoint was


def test_without_keys_the_way_to_make_them_is_reported() -> None:
    with pytest.raises(AddressError, match=r"keys are required: make them with `rtmms keys DIR` and give --keys DIR"):
        Sockets("tcp://0.0.0.0:*")
    assert issubclass(AddressError, rtmms.ModelError)
