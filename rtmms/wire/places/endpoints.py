"""Endpoints: their defaults, which may be bound, and binding them with an error that a person can act on."""

from __future__ import annotations

import errno
import os
import re
import socket as plain
import stat

from rtmms.wire.places import ipc
from rtmms.wire.protocol.errors import AddressError, BusyError, EndpointError

EXCHANGE = "tcp://127.0.0.1:9870"
STEP = "tcp://127.0.0.1:9871"
TELEMETRY = "tcp://127.0.0.1:9872"
ANYWHERE = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""Hosts that stand for every address of a machine, and how the machine itself reaches them."""

INPROC = "inproc://"
NEAR = ("ipc://", INPROC, "tcp://127.", "tcp://[::1]", "tcp://localhost")
"""How endpoints on this machine begin."""

DEFAULTS = {"exchange": EXCHANGE, "step": STEP, "telemetry": TELEMETRY}

_TCP = re.compile(r"tcp://(\[[0-9A-Fa-f:.]+\]|[^:/\[\]]+):(\d{1,5}|\*)\Z")


def checked(endpoint: str, role: str, *, inproc: bool = False) -> str:
    """The endpoint in its plain form; AddressError if it is not one.

    role    what it is for, for the error: 'exchange', 'step', 'telemetry'
    inproc  inproc://NAME is one, too: within a program (rtmms.embed)
    """
    if endpoint.startswith("ipc://") and len(endpoint) > len("ipc://"):
        return ipc.short_enough(ipc.resolved(endpoint), role)
    if inproc and endpoint.startswith(INPROC) and len(endpoint) > len(INPROC):
        return endpoint
    found = _TCP.match(endpoint)
    if not found or (found[2] != "*" and int(found[2]) > 65535):
        raise AddressError(
            f"{role} endpoint '{endpoint}': expected tcp://HOST:PORT (port 0 to 65535, or * for a free one), "
            "ipc://PATH or ipc://NAME"
        )
    host = "127.0.0.1" if found[1] == "localhost" else found[1]
    return f"tcp://{host}:{found[2]}"


def only_local(endpoint: str, role: str) -> None:
    """AddressError unless only this machine can reach the endpoint."""
    if endpoint.startswith(("ipc://", INPROC)):
        return
    host = endpoint[len("tcp://") :].rpartition(":")[0]
    if host == "[::1]" or re.match(r"127\.\d+\.\d+\.\d+\Z", host):
        return
    raise AddressError(
        f"{role} endpoint '{endpoint}': others could reach it, and that takes keys: make them with "
        "`rtmms keys DIR` and give --keys DIR; or bind tcp://127.0.0.1:PORT or ipc://NAME"
    )


def seen_from(exchange: str, endpoint: str) -> str:
    """Where to connect for an endpoint that a plant tells of: one that is bound to every address of its machine is
    reached where its exchange endpoint was."""
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not endpoint.startswith("tcp://") or host not in ANYWHERE:
        return endpoint
    here = exchange.removeprefix("tcp://").rpartition(":")[0] if exchange.startswith("tcp://") else "127.0.0.1"
    return f"tcp://{ANYWHERE.get(here, here)}:{port}"


def nearest(exchange: str, step: str, near: str) -> bool:
    """Whether a plant's shorter way is there for us: a socket of our own user, on the machine where we found it, and
    named by the port of the step endpoint, which somebody between us and the plant may have put in place of its own."""
    if not exchange.startswith(NEAR) or not near.startswith("ipc:///") or not hasattr(os, "getuid"):
        return False
    if not near.endswith(f"/step-{step.rpartition(':')[2]}"):
        return False
    try:
        found = os.stat(near.removeprefix("ipc://"))
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


def cleared(endpoint: str, role: str, *, keyed: bool = False, inproc: bool = False) -> str:
    """The endpoint in its plain form, with nothing of ours in the way of binding it.

    keyed   its socket lets in whom it has a key of, so that others may reach it
    AddressError where it may not be bound, EndpointError where it cannot be.
    """
    endpoint = checked(endpoint, role, inproc=inproc)
    if not keyed:
        only_local(endpoint, role)
    if endpoint.startswith("ipc://"):
        ipc.prepare(endpoint, role, keyed)
    return endpoint


def listen(endpoint: str, role: str, *, may_move: bool) -> tuple[plain.socket, str]:
    """A bound socket of the operating system, for an endpoint that only this machine reaches, and its address.

    may_move  a busy tcp port gives way to a free one; otherwise EndpointError names the endpoint
    """
    endpoint = cleared(endpoint, role)
    if endpoint.startswith("ipc://"):
        return _bound(plain.AF_UNIX, endpoint.removeprefix("ipc://"), endpoint, role), endpoint
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    family, plain_host = (plain.AF_INET6, host[1:-1]) if host[0] == "[" else (plain.AF_INET, host)
    try:
        bound = _bound(family, (plain_host, 0 if port == "*" else int(port)), endpoint, role)
    except EndpointError:
        if not may_move:
            raise
        bound = _bound(family, (plain_host, 0), endpoint, role)
    return bound, f"tcp://{host}:{bound.getsockname()[1]}"


def listen_near(endpoint: str) -> tuple[plain.socket, str] | None:
    """A second way to a tcp endpoint for this user's processes on this machine, which is shorter by a third: a socket
    in the user's runtime directory, named by the port. None where that cannot be had."""
    if not endpoint.startswith("tcp://") or not hasattr(plain, "AF_UNIX"):
        return None
    try:
        ipc.sweep("step-")
        return listen(f"ipc://step-{endpoint.rpartition(':')[2]}", "step", may_move=False)
    except EndpointError:
        return None


def _bound(family: int, address: str | tuple[str, int], endpoint: str, role: str) -> plain.socket:
    bound = plain.socket(family, plain.SOCK_STREAM)
    try:
        if isinstance(address, tuple) and os.name == "posix":  # a port that was closed a moment ago is free
            bound.setsockopt(plain.SOL_SOCKET, plain.SO_REUSEADDR, 1)
        with ipc.private_files():
            bound.bind(address)
        bound.listen()
    except OSError as fault:
        bound.close()
        if fault.errno == errno.EADDRINUSE:
            raise BusyError(f"{role} endpoint '{endpoint}' is in use by another process", endpoint) from None
        raise EndpointError(f"{role} endpoint '{endpoint}' cannot be bound: {fault}") from None
    return bound
