"""Guard of a view on loopback: only this machine's own pages of it may read it, no page of other sites.

A page of any site in the same browser may open a websocket to 127.0.0.1. By a name of its own that leads there (DNS
rebinding) it may read the view's data. The browser states in Host and Origin the name, and the page of the request.
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
    """Return whether only this machine can reach a server at an address.

    Parameters
    ----------
    host : str
        Address, or 'localhost'.

    Returns
    -------
    bool
        True for loopback.

    Examples
    --------
    >>> from rtmms.view.guard import is_loopback
    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def refusal(bound: str, port: int, hosts: Sequence[str], origins: Sequence[str]) -> str:
    """Return why a request is refused.

    Parameters
    ----------
    bound : str
        Address of the server: a loopback address or localhost.
    port : int
        Port of the server.
    hosts, origins : Sequence[str]
        Values of these headers.

    Returns
    -------
    str
        '' where it is not refused.
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
    """Guard a viser server that the block makes: on loopback each of its requests is checked first.

    The library has no place for such a check, and does not expose its server. So `serve` of the library websockets,
    which it calls, is replaced within the block.

    Parameters
    ----------
    host : str
        Address of the server.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    RtmmsError
        The library did not call it: an unguarded view is not shown.
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
        raise RtmmsError(
            "view: expected a version of the library viser that can refuse pages of other sites; install "
            "another version"
        )


def _guarded(host: str, inner: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    def process_request(connection: Any, request: Any) -> Any:
        headers, port = request.headers, connection.local_address[1]
        why = refusal(host, port, headers.get_all("Host"), headers.get_all("Origin"))
        if why:
            return connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n")
        return None if inner is None else inner(connection, request)

    return process_request
