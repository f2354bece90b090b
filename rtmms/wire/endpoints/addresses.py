"""Endpoints: their defaults, which may be bound, and binding them with an error that a person can act on."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import socket as plain
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rtmms.wire.endpoints.session_files import make_runtime_directory, runtime_directory
from rtmms.wire.protocol.messages import AddressError, BusyError, EndpointError

SCHEME = "ipc://"
_LOCK_S, _LOCK_LOOK_S = 1.0, 0.005
_LONGEST_PATH = 103 if sys.platform == "darwin" else 107  # sun_path, less its zero


def resolved(endpoint: str) -> str:
    """An ipc endpoint with its whole path: ipc://NAME (no slash) lies in the user's runtime directory."""
    path = endpoint.removeprefix(SCHEME)
    if path.startswith("@"):
        return endpoint
    return SCHEME + (os.path.abspath(path) if "/" in path else str(runtime_directory() / path))


def short_enough(endpoint: str, role: str) -> str:
    """The endpoint itself; AddressError if its path is longer than the operating system lets a socket's be."""
    length = len(os.fsencode(endpoint.removeprefix(SCHEME)))
    if length > _LONGEST_PATH:
        raise AddressError(f"{role} endpoint '{endpoint}': its path has {length} bytes, a socket's may have at most "
                           f"{_LONGEST_PATH}: use a shorter one, or ipc://NAME")  # fmt: skip
    return endpoint


def prepare_socket(endpoint: str, role: str, keyed: bool) -> None:
    """Make room for a socket that is about to be bound: its folder, made if need be, is ours and 0700; a socket that a
    killed session left is taken away.

    ZeroMQ unlinks whatever has the name, also the socket of a plant that still runs: so we look first.
    keyed   peers need keys, so that the folder may be open to others
    EndpointError where something is in the way; AddressError for a place that others can reach.
    """
    path = Path(endpoint.removeprefix(SCHEME))
    if str(path).startswith("@"):
        if not keyed:
            raise AddressError(f"{role} endpoint '{endpoint}': an abstract socket is open to every user; "
                               "use ipc://NAME, or keys (rtmms keys DIR)")  # fmt: skip
        return
    try:
        if path.parent == runtime_directory():
            make_runtime_directory()
        if not path.parent.parent.is_dir():
            raise AddressError(
                f"{role} endpoint '{endpoint}' cannot be bound: there is no folder '{path.parent.parent}'"
            )
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(mode=0o700)
        if not keyed:
            _check_folder(path.parent, endpoint, role)
        _clear(path, endpoint, role)
    except OSError as fault:
        raise EndpointError(f"{role} endpoint '{endpoint}' cannot be bound: {fault.strerror or fault}") from None


def _check_folder(folder: Path, endpoint: str, role: str) -> None:
    if not hasattr(os, "getuid"):
        return
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise AddressError(f"{role} endpoint '{endpoint}': folder '{folder}' belongs to somebody else; use ipc://NAME, "
                           "which lies in a folder of your own, or keys (rtmms keys DIR)")  # fmt: skip
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise AddressError(f"{role} endpoint '{endpoint}': folder '{folder}' is open to others (mode {mode:04o}): "
                           f"chmod 700 '{folder}', or use ipc://NAME, or keys (rtmms keys DIR)")  # fmt: skip


def _clear(path: Path, endpoint: str, role: str) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise EndpointError(
            f"{role} endpoint '{endpoint}' cannot be bound: '{path}' is there already, and is no socket"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:  # nobody listens: a session that was killed left it
            path.unlink(missing_ok=True)
            return
        except OSError as fault:
            if fault.errno == errno.ENOENT:
                return
            # somebody listens, and is busy
    raise EndpointError(f"{role} endpoint '{endpoint}' is in use by another process")


def sweep(prefix: str) -> None:
    """Take away the sockets of that beginning which killed sessions left in the user's runtime directory."""
    with contextlib.suppress(OSError), _alone_in(runtime_directory(), 0.0) as alone:
        for path in runtime_directory().glob(f"{prefix}*") if alone else ():
            with contextlib.suppress(EndpointError):
                _clear(path, str(path), "")


@contextlib.contextmanager
def _alone_in(folder: Path, wait_s: float) -> Iterator[bool]:
    """Within: no other process of ours sweeps the folder, nor has a socket there that is bound and about to listen.
    False where that could not be had in `wait_s`."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        until = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() < until:
                    time.sleep(_LOCK_LOOK_S)
                    continue
                yield False
            else:
                yield True
            return
    finally:
        os.close(handle)


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Files made within are for their owner alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


PORT_VARIABLE, USUAL_PORT = "RTMMS_PORT", 9870
LAST_PORT = 65535 - 2


def first_port() -> int:
    """Of the three default endpoints: that of the environment, or the usual one. AddressError for what is no port."""
    word = os.environ.get(PORT_VARIABLE, "")
    if not word:
        return USUAL_PORT
    if not (word.isascii() and word.isdigit() and 1 <= int(word[:6]) <= LAST_PORT):
        raise AddressError(f"{PORT_VARIABLE}: expected a port from 1 to {LAST_PORT}, got {word!r:.60}")
    return int(word)


def _defaults() -> tuple[str, str, str]:
    try:
        port = first_port()
    except AddressError:  # `checked` reports it, where one of them is used
        port = USUAL_PORT
    return f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{port + 1}", f"tcp://127.0.0.1:{port + 2}"


EXCHANGE, STEP, TELEMETRY = _defaults()
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
    if endpoint in DEFAULTS.values():
        first_port()
    if endpoint.startswith("ipc://") and len(endpoint) > len("ipc://"):
        return short_enough(resolved(endpoint), role)
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
    """Where to connect for an endpoint that a plant states: one that is bound to every address of its machine is
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
        prepare_socket(endpoint, role, keyed)
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
        sweep("step-")
        return listen(f"ipc://step-{endpoint.rpartition(':')[2]}", "step", may_move=False)
    except EndpointError:
        return None


def _bound(family: int, address: str | tuple[str, int], endpoint: str, role: str) -> plain.socket:
    bound = plain.socket(family, plain.SOCK_STREAM)
    try:
        if isinstance(address, tuple) and os.name == "posix":  # a port that was closed a moment ago is free
            bound.setsockopt(plain.SOL_SOCKET, plain.SO_REUSEADDR, 1)
        with _alone_in(Path(address).parent, _LOCK_S) if isinstance(address, str) else contextlib.nullcontext():
            with private_files():
                bound.bind(address)
            bound.listen()
    except OSError as fault:
        bound.close()
        if fault.errno == errno.EADDRINUSE:
            raise BusyError(f"{role} endpoint '{endpoint}' is in use by another process", endpoint) from None
        raise EndpointError(f"{role} endpoint '{endpoint}' cannot be bound: {fault}") from None
    return bound
