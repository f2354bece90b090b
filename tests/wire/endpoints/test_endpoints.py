"""Binding: busy ports, addresses that others could reach, ipc paths; and the token beside them."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rtmms
from rtmms.wire import session_files
from rtmms.wire.addresses import DEFAULTS, check_endpoint, seen_from
from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.plant.sockets import Sockets
from rtmms.wire.protocol.errors import AddressError, EndpointError
from rtmms.wire.session_files import read_token, remove_token, token_path, write_token
from tests.wire.bench import Host
from tests.wire.looping import Looping


@pytest.fixture
def busy() -> Iterator[str]:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        yield f"tcp://127.0.0.1:{used.getsockname()[1]}"


@pytest.mark.parametrize("role", ["exchange", "step", "telemetry"])
def test_a_busy_port_that_was_asked_for_is_named(busy: str, role: str) -> None:
    with pytest.raises(EndpointError, match=f"{role} endpoint '{busy}' is in use by another process"):
        Sockets(**{role: busy}, free_ports=True)


def test_a_busy_default_port_gives_way_to_a_free_one(busy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEFAULTS, "exchange", busy)
    sockets = Sockets(step="tcp://127.0.0.1:*", telemetry="tcp://127.0.0.1:*", free_ports=True)
    assert sockets.endpoints["exchange"] != busy
    assert sockets.endpoints["exchange"].startswith("tcp://127.0.0.1:")
    sockets.close()
    with pytest.raises(EndpointError, match="in use"):
        Sockets(step="tcp://127.0.0.1:*", telemetry="tcp://127.0.0.1:*")


@pytest.mark.parametrize("address", ["tcp://0.0.0.0:9870", "tcp://*:9870", "tcp://192.168.1.5:9870", "tcp://[::]:9870"])
def test_an_address_that_others_reach_is_refused(address: str) -> None:
    with pytest.raises(EndpointError, match="other machines can reach this address"):
        Sockets(exchange=address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:99999", "tcp://127.0.0.1", "inproc://x", "tcp://:1", "nonsense"])
def test_a_malformed_address_is_refused(address: str) -> None:
    with pytest.raises(EndpointError, match="expected tcp://HOST:PORT"):
        Sockets(exchange=address)


@pytest.mark.full
def test_the_default_ports_are_of_the_environment(tmp_path: Path) -> None:
    """RTMMS_PORT moves all three; what is no port is refused where a default is used, and nowhere else."""
    ask = "from rtmms.wire.addresses import DEFAULTS; print(*DEFAULTS.values())"
    for word, first in (("19990", 19990), ("", 9870)):
        result = subprocess.run([sys.executable, "-c", ask], env=os.environ | {"RTMMS_PORT": word}, capture_output=True)
        assert result.stdout.decode().split() == [f"tcp://127.0.0.1:{first + k}" for k in range(3)]


@pytest.mark.parametrize("word", ["port", "0", "65534", "-1", "9" * 5000, "1.5"])
def test_a_default_port_that_is_none_is_refused(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTMMS_PORT", word)
    with pytest.raises(AddressError, match=r"RTMMS_PORT: expected a port from 1 to 65533, got"):
        check_endpoint(DEFAULTS["exchange"], "exchange")
    assert check_endpoint("tcp://127.0.0.1:4000", "exchange") == "tcp://127.0.0.1:4000"


def test_localhost_is_the_loopback_address() -> None:
    assert check_endpoint("tcp://localhost:12", "exchange") == "tcp://127.0.0.1:12"


def test_an_ipc_path_in_use_is_named_and_a_stale_one_is_taken(tmp_path: Path) -> None:
    ends = {role: f"ipc://{tmp_path}/{role}" for role in DEFAULTS}
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f"{tmp_path}/exchange")
    stale.close()
    sockets = Sockets(**ends)
    assert stat.S_IMODE((tmp_path / "exchange").stat().st_mode) & 0o077 == 0
    with pytest.raises(EndpointError, match=r"exchange endpoint '.*' is in use"):
        Sockets(exchange=ends["exchange"])
    sockets.close()
    assert not (tmp_path / "exchange").exists()


def test_an_ipc_socket_lies_in_a_private_folder(tmp_path: Path) -> None:
    free = "tcp://127.0.0.1:*"
    sockets = Sockets(f"ipc://{tmp_path}/made/exchange", free, free)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o700
    sockets.close()
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(AddressError, match=r"open to others \(mode 0755\): chmod 700 '.*/open', or use ipc://NAME"):
        Sockets(f"ipc://{tmp_path}/open/exchange", free, free)
    assert list((tmp_path / "open").iterdir()) == []
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o755
    with pytest.raises(AddressError, match="abstract socket is open to every user"):
        Sockets("ipc://@rtmms-test", free, free)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_an_ipc_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 65534, 65534)
    with pytest.raises(AddressError, match="belongs to another user"):
        Sockets(f"ipc://{tmp_path}/theirs/exchange")


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("years of work")
    with pytest.raises(EndpointError, match=r"'.*/thesis' exists and is not a socket"):
        Sockets(f"ipc://{tmp_path}/thesis")
    assert (tmp_path / "thesis").read_text() == "years of work"
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    with pytest.raises(EndpointError, match="is not a socket"):
        Sockets(f"ipc://{tmp_path}/link")


def test_a_short_ipc_name_is_found_in_the_runtime_directory(runtime_directory: Path, make_host: Any) -> None:
    host = make_host(exchange="ipc://toy", step="ipc://toy-step", telemetry="ipc://toy-telemetry", token=None)
    assert host.exchange == f"ipc://{runtime_directory}/rtmms/toy"
    assert stat.S_IMODE((runtime_directory / "rtmms").stat().st_mode) == 0o700
    with Looping(host), rtmms.connect("ipc://toy", claim="*") as link:
        assert next(link).step >= 0
    assert [path.name for path in (runtime_directory / "rtmms").iterdir()] == []


def test_a_relative_ipc_path_is_the_same_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_endpoint("ipc://./x/../socket", "exchange") == f"ipc://{tmp_path}/socket"


def test_what_a_closed_plant_leaves_is_not_the_next_ones(tmp_path: Path) -> None:
    """The first one's file is taken away before its socket is closed, never after."""
    ends = {role: f"ipc://{tmp_path}/{role}" for role in DEFAULTS}
    first = Sockets(**ends)
    real = first.exchange.close  # the last of them
    later: list[Sockets] = []

    def close(linger_ms: int) -> None:
        real(linger_ms)
        later.append(Sockets(**ends))

    first.exchange.close = close  # type: ignore[method-assign]
    first.close()
    assert (tmp_path / "exchange").exists()
    later[0].close()


def test_ipv6_loopback(make_host: Any) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    host = make_host(**dict.fromkeys(DEFAULTS, "tcp://[::1]:*"), token=None)
    assert host.exchange.startswith("tcp://[::1]:")
    with Looping(host), rtmms.connect(host.exchange, claim="*") as link:
        assert next(link).step >= 0


def test_an_endpoint_on_every_address_is_reached_where_the_exchange_was() -> None:
    assert seen_from("tcp://robot.local:1", "tcp://0.0.0.0:2") == "tcp://robot.local:2"
    assert seen_from("tcp://[fe80::1]:1", "tcp://[::]:2") == "tcp://[fe80::1]:2"
    assert seen_from("tcp://0.0.0.0:1", "tcp://0.0.0.0:2") == "tcp://127.0.0.1:2"
    assert seen_from("ipc:///x", "tcp://[::]:2") == "tcp://127.0.0.1:2"
    assert seen_from("tcp://robot.local:1", "tcp://10.0.0.7:2") == "tcp://10.0.0.7:2"
    assert seen_from("tcp://robot.local:1", "ipc:///x") == "ipc:///x"


def test_an_ipc_path_that_cannot_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match="cannot be bound"):
        Sockets(exchange=f"ipc://{tmp_path}/no/such/folder")
    with pytest.raises(EndpointError, match="expected a path of at most"):
        Sockets(exchange=f"ipc://{tmp_path}/{'x' * 200}")


def test_a_priority_that_is_not_permitted_is_noted_and_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.sched_setscheduler", refuse)
    free = "tcp://127.0.0.1:*"
    sockets = Sockets(free, free, free, threads=Threads(priority=80), libzmq=True)
    assert sockets.notes == ["I/O thread priority 80: not permitted"]
    sockets.close()


def test_the_token_is_private_and_goes_with_the_session(make_host: Callable[..., Host]) -> None:
    host = make_host(token=None)
    file = token_path(host.exchange)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert len(read_token(host.exchange)) == 32
    host.server.close()
    assert list(file.parent.iterdir()) == []


def test_a_newer_sessions_token_is_left_alone() -> None:
    write_token("tcp://127.0.0.1:1", "old")
    write_token("tcp://127.0.0.1:1", "new")
    remove_token("tcp://127.0.0.1:1", "old")
    assert read_token("tcp://127.0.0.1:1") == "new"
    remove_token("tcp://127.0.0.1:1", "new")
    assert read_token("tcp://127.0.0.1:1") == ""


def test_a_runtime_directory_of_someone_else_is_refused(runtime_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (runtime_directory / "rtmms").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EndpointError, match="a directory of your own"):
        write_token("tcp://127.0.0.1:1", "x")


def test_one_open_to_all_is_closed(runtime_directory: Path) -> None:
    (runtime_directory / "rtmms").mkdir(mode=0o755)
    write_token("tcp://127.0.0.1:1", "x")
    assert stat.S_IMODE((runtime_directory / "rtmms").stat().st_mode) == 0o700


def test_without_a_runtime_directory_there_is_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert token_path("tcp://127.0.0.1:1").parent.name == "rtmms"


def test_the_tokens_name_is_the_one_of_the_protocols_page() -> None:
    name = token_path("tcp://127.0.0.1:9870").name
    page = Path(__file__).parents[3] / "docs" / "protocol.md"
    assert f"`{name}`" in page.read_text()


def test_a_place_that_others_may_write_is_refused_as_runtime_directory(
    runtime_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = runtime_directory / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shared))
    with pytest.raises(EndpointError, match=r"can be written by everybody.*set XDG_RUNTIME_DIR"):
        session_files.make_runtime_directory()
    assert list(shared.iterdir()) == []
    shared.chmod(0o700)
    assert session_files.make_runtime_directory() == shared / "rtmms"


def test_a_relative_runtime_directory_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "there")
    assert "there" not in session_files.runtime_directory().parts
