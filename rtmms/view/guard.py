"""Who may look at a view on loopback: this machine's own pages of it, and no page of others in the same browser.

A page of any site may open a websocket to 127.0.0.1, and by a name of its own that leads there (DNS rebinding) read
what it sends. The browser states in Host and Origin by what name, and for which page, it asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

from rtmms.base.errors import RtmmsError

_NAMES = ("127.0.0.1", "[::1]", "localhost")
_PATCHING = threading.Lock()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound there."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def refusal(bound: str, port: int, hosts: Sequence[str], origins: Sequence[str]) -> str:
    """Why a request is refused, "" where it is not.

    bound, port    where the server listens: a loopback address or localhost
    hosts, origins   the values of these headers
    """
    names = {*_NAMES, f"[{bound}]" if ":" in bound else bound}
    expected = {f"{name}:{port}" for name in names} | (names if port == 80 else set())
    if len(hosts) != 1 or hosts[0].lower() not in expected:
        return f"Host: expected 127.0.0.1:{port} or localhost:{port}, got {_joined(hosts)}"
    if origins and [origin.lower() for origin in origins] != [f"http://{hosts[0].lower()}"]:
        return f"Origin: expected none or http://{hosts[0].lower()}, got {_joined(origins)}"
    return ""


def _joined(values: Sequence[str]) -> str:
    return ", ".join(repr(value[:80]) for value in values[:2]) or "none"


@contextmanager
def guarding(host: str) -> Iterator[None]:
    """Within, a viser server may be made: on loopback each of its requests is looked at first.

    The library has no place for such a check, and keeps the server that it makes to itself. So what it makes it with,
    `serve` of the library websockets, is another one for as long as it is made. RtmmsError where that was not asked:
    a view that is not guarded is not shown.
    """
    if not is_loopback(host):
        yield
        return
    import websockets.asyncio.server as serving

    guarded = False
    with _PATCHING:
        real = serving.serve

        def serve(handler: Any, *arguments: Any, process_request: Any = None, **options: Any) -> Any:
            nonlocal guarded
            guarded = True
            return real(handler, *arguments, process_request=_guarded(host, process_request), **options)

        serving.serve = serve
        try:
            yield
        finally:
            serving.serve = real
    if not guarded:
        raise RtmmsError("view: this version of the library viser cannot be kept from pages of other sites")


def _guarded(host: str, inner: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    def process_request(connection: Any, request: Any) -> Any:
        headers, port = request.headers, connection.local_address[1]
        why = refusal(host, port, headers.get_all("Host"), headers.get_all("Origin"))
        if why:
            return connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n")
        return None if inner is None else inner(connection, request)

    return process_request
