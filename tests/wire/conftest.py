"""Servers and peers for the tests of the wire; each test gets a runtime directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rtmms.wire.keys import make_keys
from tests.wire.bench import Host, Raw


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Keys of a plant and of one peer."""
    make_keys(tmp_path / "keys")
    return tmp_path / "keys"


@pytest.fixture
def make_host() -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def make(**options: Any) -> Host:
        hosts.append(Host(**options))
        return hosts[-1]

    yield make
    for host in hosts:
        for peer in host.raws:
            peer.vanish()
        host.server.close()


@pytest.fixture
def host(make_host: Callable[..., Host]) -> Host:
    return make_host()


@pytest.fixture
def make_raw() -> Iterator[Callable[[Host], Raw]]:
    peers: list[Raw] = []

    def make(host: Host) -> Raw:
        peers.append(Raw(host))
        return peers[-1]

    yield make
    for peer in peers:
        peer.vanish()


@pytest.fixture
def raw(host: Host, make_raw: Callable[[Host], Raw]) -> Raw:
    return make_raw(host)
