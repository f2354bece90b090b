"""Addresses on this machine, and the parameters that name an address.

A scenario may come from anybody: what it opens stays on this machine. `rtmms.bridging` and `rtmms.cli` use this module.
"""

from __future__ import annotations

import ipaddress
import re
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from rtmms.base.errors import ModelError

_ADDRESS = re.compile(
    r"(?P<scheme>(?:udp|udpm|tcp|tls|quic|ws|wss|http|https)(?:://|/))?"
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<host>[\w.-]+|[0-9A-Fa-f:.]+(?:%\w+)?))"
    r"(?::(?:\d+|\*))?(?P<rest>[/?#].*)?",
    re.ASCII | re.DOTALL,
)
_OWN_SOCKET = re.compile(r"ipc://[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_LOCAL_NAMES = ("localhost", "ip6-localhost", "ip6-loopback")


@dataclass(frozen=True)
class NamesAddress:
    """Metadata of a parameter with an address as its text: `host: Annotated[str, NamesAddress("listen")]`.

    Parameters
    ----------
    use : Literal['listen', 'connect']
        "listen": the program receives connections or datagrams at the address; an empty text means every address of the
        machine. "connect": it connects or sends to the address; an empty text means none.
    """

    use: Literal["listen", "connect"]


def address_parameters(hints: dict[str, Any]) -> dict[str, str]:
    """Return the parameters that name addresses, each with its use.

    Parameters
    ----------
    hints : dict[str, Any]
        Types of parameters by name, with their metadata (`typing.get_type_hints(..., include_extras=True)`).

    Returns
    -------
    dict[str, str]
        Use of the address by parameter. A union or a tuple names an address if one of its parts does.
    """
    result = {name: _use(hint) for name, hint in hints.items()}
    return {name: use for name, use in result.items() if use}


def _use(hint: Any) -> str:
    for item in getattr(hint, "__metadata__", ()):
        if isinstance(item, NamesAddress):
            return item.use
    return next((use for part in typing.get_args(hint) if (use := _use(part))), "")


def host_of(text: str) -> str:
    """Return the host of an address.

    Parameters
    ----------
    text : str
        HOST, HOST:PORT, [HOST]:PORT, SCHEME://HOST:PORT or SCHEME/HOST:PORT.

    Returns
    -------
    str
        The host, without brackets, port, path and query. A text of another form, which some library may read otherwise,
        is returned unchanged: it is the name of no host.

    Examples
    --------
    >>> host_of("tcp://127.0.0.1:9870")
    '127.0.0.1'
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or (match["rest"] and not match["scheme"]):
        return text.strip()
    return match["six"] or match["host"]


def is_on_this_machine(host: str) -> bool:
    """Return whether a host is an address of loopback or `localhost`, without looking up names.

    Parameters
    ----------
    host : str
        The host.

    Returns
    -------
    bool
        True if it is.
    """
    if host.lower().rstrip(".") in _LOCAL_NAMES:
        return True
    try:
        _, percent, zone = host.partition("%")
        return ipaddress.ip_address(host).is_loopback and (not percent or zone.isalnum())
    except ValueError:
        return False


def first_beyond(value: Any, use: str) -> str | None:
    """Return the first address of a parameter that reaches beyond this machine.

    Parameters
    ----------
    value : Any
        A text, or a tuple of texts; None counts as empty.
    use : str
        As of `NamesAddress`.

    Returns
    -------
    str | None
        None if all addresses are on this machine.
    """
    texts: Iterable[str] = value if isinstance(value, (tuple, list)) else ("" if value is None else str(value),)
    for text in texts:
        host = host_of(text)
        if (use == "listen" and not text) or (text and not is_on_this_machine(host)):
            return text
    return None


def refuse_endpoint(option: str, value: str) -> None:
    """Raise ModelError if a scenario's endpoint opens the plant to others.

    Parameters
    ----------
    option : str
        Name of an option of `rtmms run` for an address at which the plant listens.
    value : str
        Its value in the scenario.

    Raises
    ------
    ModelError
        If it is neither a TCP address of loopback nor ipc://NAME.
    """
    local = value.startswith("tcp://") and is_on_this_machine(host_of(value))
    if not local and not _OWN_SOCKET.match(value):
        raise ModelError(
            f"{option}: expected tcp://127.0.0.1:PORT or ipc://NAME in a scenario, got '{value}'; give other "
            f"addresses on the command line (--{option})"
        )
