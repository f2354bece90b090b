"""MQTT against a real broker: out, in, last will, a broker that goes and comes back, users, TLS."""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.config import construct
from rtmms.bridging.untrusted import Refusal
from rtmms_bridges.mqtt import Mqtt, parse
from tests.bridges.broker import Broker, Subscriber, certificates, needs_mosquitto
from tests.bridges.harness import ROOT, Companion, wait
from tests.cli.shell import finish, start
from tests.wire.bench import Host

pytestmark = pytest.mark.full


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as broker:
        yield broker


@pytest.fixture
def listener(broker: Broker) -> Iterator[Subscriber]:
    with Subscriber(broker.port) as listener:
        yield listener


@needs_mosquitto
def test_states_info_and_status(broker: Broker, listener: Subscriber, make_host: Callable[..., Host]) -> None:
    bridge = Mqtt(port=broker.port, outputs=("position", "speed"), layout="both", rate_hz=50.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: len(listener.of("rtmms/toy/state")) > 3)
        wait(lambda: listener.of("rtmms/toy/state/position"))
    states = [json.loads(payload) for payload in listener.of("rtmms/toy/state")]
    assert list(states[0]) == ["time", "step", "position", "speed"]
    assert all(b["step"] - a["step"] >= 10 for a, b in pairwise(states[1:]))
    assert json.loads(listener.of("rtmms/toy/state/position")[0]) == [0.0, 0.0, 0.0]
    assert isinstance(json.loads(listener.of("rtmms/toy/state/speed")[0]), float)
    info = json.loads(listener.of("rtmms/toy/info")[0])
    assert (info["robot"], info["dt"], info["mode"]) == ("toy", 1e-3, "realtime")
    wait(lambda: listener.of("rtmms/toy/status") == [b"online", b"offline"])
    assert json.loads(listener.of("rtmms/toy/counts")[-1])["sent"] > 3
    assert extra.bridged.counts["dropped"] == 0


@needs_mosquitto
def test_commands(broker: Broker, listener: Subscriber, make_host: Callable[..., Host]) -> None:
    bridge = Mqtt(port=broker.port, claim=("left.*",), topic="pool/{name}")
    with Companion(bridge, make_host) as extra:
        wait(lambda: listener.of("pool/bridge/state"))
        info = json.loads(listener.of("pool/bridge/info")[0])
        assert [item["name"] for item in info["actuators"]] == ["left.front", "left.back"]
        listener.send("pool/bridge/command", json.dumps({"values": {"left.front": 0.5}}))
        listener.send("pool/bridge/command/left.back", "-0.25")
        wait(lambda: extra.command == [0.5, -0.25, 0.0, 0.0])
        for topic, payload in (("", "{"), ("", '{"values": {"left.front": NaN}}'), ("/left.front", "true"),
                               ("/nothing", "1"), ("", "x" * 9000)):  # fmt: skip
            listener.send(f"pool/bridge/command{topic}", payload)
        wait(lambda: extra.bridged.counts["refused"] == 5)
        assert extra.bridged.counts.reasons() == {
            "malformed": 1, "not_finite": 1, "wrong_type": 1, "unknown_channel": 1, "oversize": 1,
        }  # fmt: skip
        assert extra.command[:2] == [0.5, -0.25]
        assert extra.running.host.rejected == {}


@needs_mosquitto
def test_a_command_kept_from_earlier_does_not_count(
    broker: Broker, listener: Subscriber, make_host: Callable[..., Host]
) -> None:
    listener.send("rtmms/toy/command/left.front", "1", retain=True)
    with Companion(Mqtt(port=broker.port, claim=("*",)), make_host) as extra:
        wait(lambda: extra.bridged.counts.reasons() == {"retained": 1})
        listener.send("rtmms/toy/command/left.front", "0.5")
        wait(lambda: extra.command[0] == 0.5)


@needs_mosquitto
def test_a_flood_of_commands(broker: Broker, listener: Subscriber, make_host: Callable[..., Host]) -> None:
    with Companion(Mqtt(port=broker.port, claim=("*",)), make_host) as extra:
        wait(lambda: listener.of("rtmms/toy/state"))
        for k in range(3000):
            listener.client.publish("rtmms/toy/command/left.front", str(k * 1e-4))
        listener.send("rtmms/toy/command/left.front", "0.875")
        wait(lambda: extra.command[0] == 0.875)
        counts = extra.bridged.counts
        wait(lambda: counts["received"] + counts["commands_dropped"] == 3001)
        observed = len(listener.of("rtmms/toy/state"))
        wait(lambda: len(listener.of("rtmms/toy/state")) > observed + 2)


@needs_mosquitto
def test_of_a_message_that_is_too_long_the_beginning_is_kept(
    broker: Broker, listener: Subscriber, make_host: Callable[..., Host]
) -> None:
    bridge = Mqtt(port=broker.port, claim=("*",), qos=1)
    with Companion(bridge, make_host) as extra:
        wait(lambda: listener.of("rtmms/toy/state"))
        client: Any = bridge._client
        stored: list[int] = []
        handle = client._packet_handle
        client._packet_handle = lambda: stored.append(len(client._in_packet["packet"])) or handle()
        for _ in range(3):
            listener.send("rtmms/toy/command/left.front", b"1" * 5_000_000)
        listener.send("rtmms/toy/command/left.front", "0.25")
        wait(lambda: extra.command[0] == 0.25)
        assert extra.bridged.counts.reasons() == {"oversize": 3}
        assert extra.bridged.counts["reconnects"] == 0
        assert 8192 < max(stored) < 300_000


@needs_mosquitto
def test_channels(broker: Broker, listener: Subscriber, make_host: Callable[..., Host]) -> None:
    channels = (ChannelMapping(channel="servo1", actuator="right.back", scale=0.01, reversed=True),)
    with Companion(Mqtt(port=broker.port, channels=channels), make_host) as extra:
        wait(lambda: listener.of("rtmms/toy/status"))
        wait(lambda: listener.of("rtmms/toy/state"))
        listener.send("rtmms/toy/command/servo1", "30")
        wait(lambda: extra.command == pytest.approx([0.0, 0.0, 0.0, -0.3]))


@needs_mosquitto
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_broker_that_goes_and_comes_back(broker: Broker, make_host: Callable[..., Host], how: int) -> None:
    bridge = Mqtt(port=broker.port, claim=("*",), rate_hz=100.0)
    with Companion(bridge, make_host) as extra, Subscriber(broker.port) as listener:
        wait(lambda: listener.of("rtmms/toy/state"))
        listener.send("rtmms/toy/command/left.front", "0.5")
        wait(lambda: extra.command[0] == 0.5)
        broker.stop(how)
        wait(lambda: extra.bridged.counts["unsent"])
        wait(lambda: extra.command[0] == 0.0)  # nobody can drive it: neutral
        step = extra.running.host.step
        wait(lambda: extra.running.host.step > step + 50)  # the plant steps on
        broker.start()
        wait(lambda: extra.bridged.counts["reconnects"] == 1)
        observed = len(listener.of("rtmms/toy/state"))
        wait(lambda: len(listener.of("rtmms/toy/state")) > observed + 3)
        listener.send("rtmms/toy/command/left.front", "-0.5")
        wait(lambda: extra.command[0] == -0.5)
        assert any("the broker is connected again" in line for line in extra.bridged.messages)


@needs_mosquitto
def test_a_broker_that_comes_late(tmp_path: Path, make_host: Callable[..., Host]) -> None:
    broker = Broker(tmp_path)
    with Companion(Mqtt(port=broker.port), make_host) as extra:
        wait(lambda: extra.bridged.counts["unsent"])
        wait(lambda: any("no connection to a broker" in line and "refused" in line for line in extra.bridged.messages))
        assert extra.bridged.counts["unreached"] >= 1
        with broker:
            wait(lambda: extra.bridged.counts["sent"])
            assert extra.bridged.counts["reconnects"] == 0


@needs_mosquitto
def test_the_last_will_reports_one_that_was_killed(broker: Broker, listener: Subscriber, tmp_path: Path) -> None:
    process = start(tmp_path, "run", "pendulum", "--dt", "0.01", "--duration", "3600", "--quiet", "--json", "--bridge",
                    f"mqtt:port={broker.port},topic=t")  # fmt: skip
    try:
        wait(lambda: listener.of("t/state"))
        children = subprocess.run(
            ["pgrep", "-P", str(process.pid), "-f", "cli.main bridge"], capture_output=True, text=True
        )
        (child,) = children.stdout.split()
        subprocess.run(["kill", "-9", child], check=True)
        wait(lambda: listener.of("t/status") == [b"online", b"offline"])
        process.send_signal(signal.SIGINT)
        result = finish(process)
    finally:
        process.kill()
    assert result.status == 130
    assert result.report["bridges"] == {"mqtt": None}


@needs_mosquitto
def test_a_silent_plant(broker: Broker, listener: Subscriber, make_host: Callable[..., Host]) -> None:
    with Companion(Mqtt(port=broker.port, watchdog_periods=30), make_host) as extra:
        wait(lambda: listener.of("rtmms/toy/status")[:1] == [b"online"])  # a busy machine is silent by itself
        wait(lambda: extra.bridged.counts["states"])
        extra.running.errands.append(lambda: wait(lambda: extra.bridged.counts["silences"]))
        wait(lambda: listener.of("rtmms/toy/status")[-2:] == [b"plant silent", b"online"])


@needs_mosquitto
@pytest.mark.parametrize(("how", "left"), [("hold", 0.5), ("neutral", 0.0)])
def test_commands_that_stop(
    broker: Broker, listener: Subscriber, make_host: Callable[..., Host], how: Any, left: float
) -> None:
    with Companion(Mqtt(port=broker.port, claim=("*",), peer_timeout_s=0.3, peer_lost=how), make_host) as extra:
        wait(lambda: listener.of("rtmms/toy/state"))
        listener.send("rtmms/toy/command/left.front", "0.5")
        wait(lambda: extra.drove(0.5))
        wait(lambda: extra.bridged.counts["peer_lost"])
        wait(lambda: extra.command[0] == left)
        step = extra.running.host.step
        wait(lambda: extra.running.host.step > step + 5)
        assert extra.command[0] == left


@needs_mosquitto
def test_users(tmp_path: Path, make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> None:
    passwd = shutil.which("mosquitto_passwd")
    if passwd is None:
        pytest.skip("no mosquitto_passwd here")
    subprocess.run([passwd, "-b", "-c", str(tmp_path / "users"), "manta", "secret"], check=True, capture_output=True)
    (tmp_path / "users").chmod(0o644)
    tmp_path.chmod(0o755)
    with Broker(tmp_path, "allow_anonymous false", f"password_file {tmp_path}/users", "user root") as broker:
        with Companion(Mqtt(port=broker.port), make_host) as extra:
            text = "the broker refused the connection: Not authorized"
            wait(lambda: any(text in line for line in extra.bridged.messages))
            assert extra.bridged.counts["broker_refused"] >= 1
        (tmp_path / "word").write_text("secret\n")
        with Companion(Mqtt(port=broker.port, user="manta", password_file=str(tmp_path / "word")), make_host) as extra:
            wait(lambda: extra.bridged.counts["sent"])
        monkeypatch.setenv("RTMMS_MQTT_PASSWORD", "secret")
        with Companion(Mqtt(port=broker.port, user="manta"), make_host) as extra:
            wait(lambda: extra.bridged.counts["sent"])


@needs_mosquitto
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves what it refused open
def test_tls(tmp_path: Path, make_host: Callable[..., Host]) -> None:
    certificates(tmp_path)
    its = (f"certfile {tmp_path}/server.pem", f"keyfile {tmp_path}/server.key")
    lines = ("allow_anonymous true", *its, "listener {port} 127.0.0.2", *its, "user root")
    with Broker(tmp_path, *lines) as broker, Subscriber(broker.port, ca=tmp_path / "ca.pem") as listener:
        good = Mqtt(port=broker.port, tls=True, ca_file=str(tmp_path / "ca.pem"), claim=("*",))
        with Companion(good, make_host) as extra:
            wait(lambda: listener.of("rtmms/toy/state"))
            listener.send("rtmms/toy/command/left.front", "0.5")
            wait(lambda: extra.command[0] == 0.5)
        with Companion(Mqtt(port=broker.port, tls=True), make_host) as extra:  # the system does not know our authority
            message = wait(lambda: [line for line in extra.bridged.messages if "no connection" in line])
            assert f"127.0.0.1:{broker.port} (its certificate is not trusted: " in message[0]
            assert extra.bridged.counts["sent"] == 0
        other = Mqtt(port=broker.port, host="127.0.0.2", tls=True, ca_file=str(tmp_path / "ca.pem"))
        with Companion(other, make_host) as extra:  # the certificate is good, but not for that address
            message = wait(lambda: [line for line in extra.bridged.messages if "no connection" in line])
            assert "its certificate is another host's: IP address mismatch" in message[0]
            assert extra.bridged.counts["sent"] == 0
        with Companion(Mqtt(port=broker.port), make_host) as extra:
            message = wait(lambda: [line for line in extra.bridged.messages if "no connection" in line])
            assert "the broker closed it; does it require tls=true?" in message[0]
    wait(lambda: not any("paho" in thread.name for thread in threading.enumerate()))
    gc.collect()


@needs_mosquitto
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves what it refused open
def test_a_plain_broker_where_tls_is_expected(broker: Broker, make_host: Callable[..., Host], tmp_path: Path) -> None:
    certificates(tmp_path)
    with Companion(Mqtt(port=broker.port, tls=True, ca_file=str(tmp_path / "ca.pem")), make_host) as extra:
        message = wait(lambda: [line for line in extra.bridged.messages if "no connection" in line])
        assert "speak TLS there" in message[0]
    wait(lambda: not any("paho" in thread.name for thread in threading.enumerate()))
    gc.collect()


def test_nothing_waits_for_a_connection(make_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bridge's own thread never connects, nor looks up a name, to find out why there is no broker."""
    asked: list[str] = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        asked.append(threading.current_thread().name)
        raise OSError(113, "No route to host")

    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    with Companion(Mqtt(host="broker.invalid"), make_host) as extra:
        wait(lambda: extra.bridged.messages)
        where = "no connection to a broker at broker.invalid:1883"
        assert extra.bridged.messages == [f"{where} (No route to host); trying again"]
        assert asked
        assert all("paho" in name for name in asked), asked


def test_a_broker_that_acknowledges_nothing(make_host: Callable[..., Host]) -> None:
    """It sends welcome, answers no message of quality of service 1, and hangs up; again and again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ending = threading.Event()

        def serve() -> None:
            while not ending.is_set():
                peer, _ = server.accept()
                with peer, contextlib.suppress(OSError):
                    peer.settimeout(0.1)
                    peer.recv(4096)
                    peer.sendall(b"\x20\x02\x00\x00")
                    end = time.monotonic() + 0.3
                    while time.monotonic() < end and peer.recv(65536):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        bridge = Mqtt(port=server.getsockname()[1], qos=1, rate_hz=200.0)
        with Companion(bridge, make_host) as extra:
            client: Any = wait(lambda: bridge._client)
            client._reconnect_min_delay = client._reconnect_max_delay = 0.01
            wait(lambda: extra.bridged.counts["reconnects"] >= 8 and len(client._out_messages) >= 16)
            assert len(client._out_messages) <= 24
        ending.set()
        with contextlib.suppress(OSError):
            socket.create_connection(server.getsockname()).close()
        thread.join(10.0)


@needs_mosquitto
def test_names_that_are_no_topics(broker: Broker, listener: Subscriber, make_host: Callable[..., Host]) -> None:
    """A robot whose name has a wildcard in it, as an FMU's model may."""
    with Companion(Mqtt(port=broker.port, claim=("*",)), make_host, robot="tank#2") as extra:
        wait(lambda: listener.of("rtmms/tank_2/state"))
        assert json.loads(listener.of("rtmms/tank_2/info")[0])["robot"] == "tank#2"
        listener.send("rtmms/tank_2/command/left.front", "0.5")
        wait(lambda: extra.command[0] == 0.5)


@needs_mosquitto
def test_status_when_the_plant_is_gone(broker: Broker, listener: Subscriber, make_host: Callable[..., Host]) -> None:
    with Companion(Mqtt(port=broker.port), make_host, stay_s=60.0) as extra:
        wait(lambda: listener.of("rtmms/toy/status") == [b"online"])
        extra.running.end()
        wait(lambda: listener.of("rtmms/toy/status") == [b"online", b"no plant"])
    wait(lambda: listener.of("rtmms/toy/status")[-1] == b"offline")


@needs_mosquitto
def test_with_the_brokers_own_tools(broker: Broker, make_host: Callable[..., Host]) -> None:
    tools = [shutil.which(name) for name in ("mosquitto_sub", "mosquitto_pub")]
    if None in tools:
        pytest.skip("no mosquitto_sub and mosquitto_pub here")
    there = ["-h", "127.0.0.1", "-p", str(broker.port)]
    with Companion(Mqtt(port=broker.port, claim=("*",)), make_host) as extra:
        received = subprocess.run(
            [str(tools[0]), *there, "-t", "rtmms/toy/state", "-C", "2", "-W", "20"], capture_output=True, check=True
        )
        assert [json.loads(line)["step"] > 0 for line in received.stdout.splitlines()] == [True, True]
        subprocess.run([str(tools[1]), *there, "-t", "rtmms/toy/command/left.front", "-m", "0.125"], check=True)
        wait(lambda: extra.command[0] == 0.125)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            {"topic": "{plant}"},
            "topic: expected text with no placeholders other than {robot} and {name}, got '{plant}'",
        ),
        ({"topic": "a/#"}, "topic: expected a topic without wildcards"),
        ({"ca_file": "x"}, "tls: expected tls=true with ca_file"),
        ({"tls": "true", "ca_file": "nowhere"}, "ca_file: there is no file 'nowhere'"),
        ({"tls": "true", "cert_file": "x"}, "cert_file and key_file: expected both or neither"),
        ({"password_file": "nowhere"}, "password_file: there is no file 'nowhere'"),
        ({"password_file": "pyproject.toml"}, "password_file: expected user=NAME"),
        ({"password_file": "tests/bridges/__init__.py", "user": "me"}, "password_file: the first line of 'tests"),
    ],
)
def test_wrong_words(parts: dict[str, str], text: str) -> None:
    with pytest.raises(rtmms.ModelError) as result:
        construct(Mqtt, "bridge", "mqtt", parts)
    assert f"bridge 'mqtt': {text}" in str(result.value)


def test_certificates_that_are_none(make_host: Callable[..., Host]) -> None:
    with Companion(Mqtt(tls=True, ca_file=str(ROOT / "README.md")), make_host) as extra:
        extra.bridged.join()
    assert "tls: the certificates cannot be used" in str(extra.bridged.fault)


def test_what_is_taken() -> None:
    assert parse("", b'{"values": {"a": 1}}') == {"a": 1.0}
    assert parse("a", b"-2") == {"a": -2.0}
    for name, payload in (("", b"1"), ("", b"{}"), ("a", b"{}"), ("a", b"1e999"), ("a", b"")):
        with pytest.raises(Refusal):
            parse(name, payload)
