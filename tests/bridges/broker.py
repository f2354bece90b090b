"""A real mosquitto for a test, that can be stopped and started, and a client of it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from tests.bridges.harness import wait
from tests.ports import reserve_ports

MOSQUITTO = shutil.which("mosquitto", path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
needs_mosquitto = pytest.mark.skipif(MOSQUITTO is None, reason="no mosquitto here")


class Broker:
    """Listens on loopback at `port`. Lines of configuration may be added, in which {port} is that; without any,
    everyone may come in."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.port = reserve_ports()
        self.folder = folder
        lines = tuple(line.replace("{port}", str(self.port)) for line in lines) or ("allow_anonymous true",)
        (folder / "broker.conf").write_text("\n".join([f"listener {self.port} 127.0.0.1", *lines, ""]))
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Broker:
        assert MOSQUITTO is not None
        log = (self.folder / "broker.log").open("ab")
        self.process = subprocess.Popen([MOSQUITTO, "-c", str(self.folder / "broker.conf")], stdout=log, stderr=log)
        log.close()
        wait(self._listens)
        return self

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(10)
            self.process = None

    def _listens(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "broker.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Subscriber:
    """Receives everything; `of(topic)` are the payloads of one."""

    def __init__(self, port: int, name: str = "", password: str = "", ca: Path | None = None) -> None:
        self.received: list[tuple[str, bytes, bool]] = []
        self.client = Client(CallbackAPIVersion.VERSION2)
        if name:
            self.client.username_pw_set(name, password)
        if ca is not None:
            self.client.tls_set(str(ca))
        ready: list[int] = []
        self.client.on_connect = lambda client, *_: client.subscribe("#", 1)
        self.client.on_subscribe = lambda *_: ready.append(1)
        self.client.on_message = lambda client, data, m: self.received.append((m.topic, m.payload, m.retain))
        self.client.reconnect_delay_set(1, 1)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        wait(lambda: ready)

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def of(self, topic: str) -> list[bytes]:
        return [payload for name, payload, _ in self.received if name == topic]

    def send(self, topic: str, payload: Any, retain: bool = False) -> None:
        self.client.publish(topic, payload, 1, retain).wait_for_publish(10)


def certificates(folder: Path) -> None:
    """ca.pem, and server.pem with server.key for localhost and 127.0.0.1."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")

    def openssl(*text: str) -> None:
        subprocess.run(["openssl", *text], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost"
    )
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", "server.pem", "-extfile", "names")  # fmt: skip
    os.chmod(folder / "server.key", 0o644)
    os.chmod(folder, 0o755)
