"""Pages of other sites, open in the same browser, see nothing of a view on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from rtmms.base.errors import RtmmsError
from rtmms.view.guard import guarding, is_loopback, refusal
from rtmms.view.stage import end, serve
from tests.wire.bench import PATIENCE_S

viser = pytest.importorskip("viser")

pytestmark = pytest.mark.full
WEBSOCKET = (
    "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Sec-WebSocket-Protocol: viser-v{viser.__version__}",
)  # fmt: skip


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = serve("127.0.0.1", 0, "guarded")
    yield server.get_port()
    end(server)


def status(port: int, *headers: str) -> int:
    """Of the answer to a request with these headers alone."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as asking:
        asking.sendall("\r\n".join(("GET / HTTP/1.1", *headers, "", "")).encode())
        line = b""
        while b"\r\n" not in line and (more := asking.recv(4096)):
            line += more
    return int(line.split()[1])


@pytest.mark.parametrize("more", [(), WEBSOCKET], ids=["page", "websocket"])
def test_only_its_own_page_is_answered(port: int, more: tuple[str, ...]) -> None:
    well = 101 if more else 200
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:{port}"
        assert status(port, f"Host: {host}", *more) == well
        assert status(port, f"Host: {host}", f"Origin: http://{host}", *more) == well
    ours = f"Host: 127.0.0.1:{port}"
    for host in (f"robot.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.example:{port}"):
        assert status(port, f"Host: {host}", *more) == 403
        assert status(port, f"Host: {host}", f"Origin: http://{host}", *more) == 403
    for origin in ("https://robot.example", "null", f"http://localhost:{port}", f"https://127.0.0.1:{port}",
                   "http://127.0.0.1:3000", "http://127.0.0.1"):  # fmt: skip
        assert status(port, ours, f"Origin: {origin}", *more) == 403
    assert status(port, ours, f"Origin: http://127.0.0.1:{port}", "Origin: https://robot.example", *more) == 403
    assert status(port, *more) == 403
    assert status(port, ours, f"Host: robot.example:{port}", *more) == 403


def test_frames_that_are_none_end_their_own_connection_without_a_word(
    port: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = "\r\n".join(("GET / HTTP/1.1", f"Host: 127.0.0.1:{port}", *WEBSOCKET, "", "")).encode()
    frame = b"\x82\x84" + b"\0\0\0\0" + b"\xc1" * 4  # binary, masked, no message of the library's
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as asking:
        asking.sendall(asked + frame)
        asking.settimeout(PATIENCE_S)
        received = b""
        while b"\x88\x02\x03\xf3" not in received and (more := asking.recv(65536)):  # closed: 1011
            received = received[-3:] + more
    assert status(port, f"Host: 127.0.0.1:{port}", *WEBSOCKET) == 101
    assert not [record for record in caplog.records if record.exc_info]
    assert "Traceback" not in capfd.readouterr().err


def test_the_port_that_browsers_leave_out() -> None:
    assert refusal("127.0.0.1", 80, ["localhost"], ["http://localhost"]) == ""
    assert refusal("::1", 80, ["[::1]"], []) == ""
    assert refusal("127.0.0.5", 8080, ["127.0.0.5:8080"], []) == ""
    assert refusal("127.0.0.1", 8080, ["127.0.0.5:8080"], []).endswith("got '127.0.0.5:8080'")


def test_what_is_bound_for_others_is_theirs_to_guard() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.2", "robot.example", "")] == [False] * 5


def test_a_library_that_serves_in_another_way_is_not_shown_unguarded() -> None:
    with pytest.raises(RtmmsError, match="that can refuse pages of other sites"), guarding("127.0.0.1"):
        pass
    with guarding("0.0.0.0"):
        pass
