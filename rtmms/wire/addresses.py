"""Endpoints: their defaults, their checks, and how they are bound.

Errors name the endpoint and a remedy.
"""

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

from rtmms.base.files import private_files
from rtmms.wire.protocol.errors import AddressError, BusyError, EndpointError
from rtmms.wire.session_files import make_runtime_directory, runtime_directory

SCHEME = "ipc://"
_LOCK_S = 1.0
_LOCK_RETRY_S = 0.005
_MAX_PATH_BYTES = 103 if sys.platform == "darwin" else 107  # size of sun_path without its final zero


def absolute_endpoint(endpoint: str) -> str:
    """Return an ipc endpoint with its whole path.

    Parameters
    ----------
    endpoint : str
        ipc://PATH, or ipc://NAME without a slash for a socket in the user's runtime directory.

    Returns
    -------
    str
        The endpoint; unchanged for an abstract socket.
    """
    path = endpoint.removeprefix(SCHEME)
    if path.startswith("@"):
        return endpoint
    return SCHEME + (os.path.abspath(path) if "/" in path else str(runtime_directory() / path))


def short_enough(endpoint: str, role: str) -> str:
    """Return an ipc endpoint after a check of its length.

    Parameters
    ----------
    endpoint : str
        The endpoint with its whole path.
    role : str
        Purpose of the endpoint, for the error message.

    Returns
    -------
    str
        The same endpoint.

    Raises
    ------
    AddressError
        If the path is longer than the operating system allows for a socket.
    """
    length = len(os.fsencode(endpoint.removeprefix(SCHEME)))
    if length > _MAX_PATH_BYTES:
        raise AddressError(
            f"{role} endpoint '{endpoint}': expected a path of at most {_MAX_PATH_BYTES} bytes, got {length}; "
            "use a shorter one, or ipc://NAME"
        )
    return endpoint


def prepare_socket(endpoint: str, role: str, keyed: bool) -> None:
    """Make room for a socket that is about to be bound.

    The socket's folder becomes ours with mode 0700. A socket that a killed session left is removed. ZeroMQ unlinks any
    file of that name, also the socket of a running plant. So this function checks first.

    Parameters
    ----------
    endpoint : str
        An ipc endpoint.
    role : str
        Purpose of the endpoint, for error messages.
    keyed : bool
        Whether peers need keys, so that the folder may be open to others.

    Raises
    ------
    EndpointError
        If another file or a running plant has the place.
    AddressError
        If other users can reach the place.
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
                f"{role} endpoint '{endpoint}' cannot be bound: the folder '{path.parent.parent}' does not "
                "exist; create it, or use ipc://NAME"
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
    result = folder.stat()
    if result.st_uid != os.getuid():
        raise AddressError(
            f"{role} endpoint '{endpoint}': folder '{folder}' belongs to another user; use ipc://NAME, which "
            "is in your own folder, or keys (rtmms keys DIR)"
        )
    mode = stat.S_IMODE(result.st_mode)
    if mode & 0o077:
        raise AddressError(f"{role} endpoint '{endpoint}': folder '{folder}' is open to others (mode {mode:04o}): "
                           f"chmod 700 '{folder}', or use ipc://NAME, or keys (rtmms keys DIR)")  # fmt: skip


def _clear(path: Path, endpoint: str, role: str) -> None:
    try:
        result = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(result.st_mode):
        raise EndpointError(
            f"{role} endpoint '{endpoint}' cannot be bound: '{path}' exists and is not a socket; choose another path"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:  # a killed session left its socket file
            path.unlink(missing_ok=True)
            return
        except OSError as fault:
            if fault.errno == errno.ENOENT:
                return
            # a busy plant listens there
    raise EndpointError(f"{role} endpoint '{endpoint}' is in use by another process")


def sweep(prefix: str) -> None:
    """Remove sockets that killed sessions left in the user's runtime directory.

    Parameters
    ----------
    prefix : str
        First characters of the sockets' names.
    """
    with contextlib.suppress(OSError), _alone_in(runtime_directory(), 0.0) as alone:
        for path in runtime_directory().glob(f"{prefix}*") if alone else ():
            with contextlib.suppress(EndpointError):
                _clear(path, str(path), "")


@contextlib.contextmanager
def _alone_in(folder: Path, wait_s: float) -> Iterator[bool]:
    """Lock a folder against other processes of ours.

    No other process then sweeps the folder, or has a socket there that is bound and not yet listening. The result is
    False if the lock was not free within `wait_s`.
    """
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
                    time.sleep(_LOCK_RETRY_S)
                    continue
                yield False
            else:
                yield True
            return
    finally:
        os.close(handle)


PORT_VARIABLE = "RTMMS_PORT"
DEFAULT_PORT = 9870
MAX_PORT = 65535 - 2


def first_port() -> int:
    """Return the first port of the three default endpoints.

    Returns
    -------
    int
        The port of the environment variable, or the default.

    Raises
    ------
    AddressError
        If the variable is no port.
    """
    word = os.environ.get(PORT_VARIABLE, "")
    if not word:
        return DEFAULT_PORT
    if not (word.isascii() and word.isdigit() and 1 <= int(word[:6]) <= MAX_PORT):
        raise AddressError(f"{PORT_VARIABLE}: expected a port from 1 to {MAX_PORT}, got {word!r:.60}")
    return int(word)


def _defaults() -> tuple[str, str, str]:
    try:
        port = first_port()
    except AddressError:  # `check_endpoint` reports the error where an address is used
        port = DEFAULT_PORT
    return f"tcp://127.0.0.1:{port}", f"tcp://127.0.0.1:{port + 1}", f"tcp://127.0.0.1:{port + 2}"


EXCHANGE, STEP, TELEMETRY = _defaults()
WILDCARD_HOSTS = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""Hosts that stand for every address of a machine, with the address by which the machine reaches itself."""

INPROC = "inproc://"
LOCAL_PREFIXES = ("ipc://", INPROC, "tcp://127.", "tcp://[::1]", "tcp://localhost")
"""First characters of endpoints on this machine."""

DEFAULTS = {"exchange": EXCHANGE, "step": STEP, "telemetry": TELEMETRY}

_TCP = re.compile(r"tcp://(\[[0-9A-Fa-f:.]+\]|[^:/\[\]]+):(\d{1,5}|\*)\Z")


def check_endpoint(endpoint: str, role: str, *, inproc: bool = False) -> str:
    """Return an endpoint in its plain form.

    Parameters
    ----------
    endpoint : str
        The endpoint as a user writes it.
    role : str
        'exchange', 'step' or 'telemetry', for the error message.
    inproc : bool, default False
        Whether inproc://NAME is valid, for peers within a program (rtmms.embed).

    Returns
    -------
    str
        The plain form.

    Raises
    ------
    AddressError
        If the text is no endpoint.
    """
    if endpoint in DEFAULTS.values():
        first_port()
    if endpoint.startswith("ipc://") and len(endpoint) > len("ipc://"):
        return short_enough(absolute_endpoint(endpoint), role)
    if inproc and endpoint.startswith(INPROC) and len(endpoint) > len(INPROC):
        return endpoint
    match = _TCP.match(endpoint)
    if not match or (match[2] != "*" and int(match[2]) > 65535):
        raise AddressError(
            f"{role} endpoint '{endpoint}': expected tcp://HOST:PORT (port 0 to 65535, or * for a free one), "
            "ipc://PATH or ipc://NAME"
        )
    host = "127.0.0.1" if match[1] == "localhost" else match[1]
    return f"tcp://{host}:{match[2]}"


def only_local(endpoint: str, role: str) -> None:
    """Raise AddressError unless only this machine can reach an endpoint.

    Parameters
    ----------
    endpoint : str
        The endpoint in its plain form.
    role : str
        Purpose of the endpoint, for the error message.

    Raises
    ------
    AddressError
        If other machines can reach it.
    """
    if endpoint.startswith(("ipc://", INPROC)):
        return
    host = endpoint[len("tcp://") :].rpartition(":")[0]
    if host == "[::1]" or re.match(r"127\.\d+\.\d+\.\d+\Z", host):
        return
    raise AddressError(
        f"{role} endpoint '{endpoint}': other machines can reach this address, so keys are required: make "
        "them with `rtmms keys DIR` and give --keys DIR; or bind tcp://127.0.0.1:PORT or ipc://NAME"
    )


def seen_from(exchange: str, endpoint: str) -> str:
    """Return where to connect for an endpoint that a plant states.

    An endpoint on every address of its machine is reached at the host of its exchange endpoint.

    Parameters
    ----------
    exchange : str
        The exchange endpoint to which the peer connected.
    endpoint : str
        The endpoint that the plant states.

    Returns
    -------
    str
        The address to connect to.
    """
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not endpoint.startswith("tcp://") or host not in WILDCARD_HOSTS:
        return endpoint
    here = exchange.removeprefix("tcp://").rpartition(":")[0] if exchange.startswith("tcp://") else "127.0.0.1"
    return f"tcp://{WILDCARD_HOSTS.get(here, here)}:{port}"


def nearest(exchange: str, step: str, near: str) -> bool:
    """Return whether the plant's local step socket is available to this peer.

    The socket must belong to our own user, on the machine on which we found the plant. Its name must have the port of
    the step endpoint, because a process between us and the plant may have replaced the name.

    Parameters
    ----------
    exchange : str
        The exchange endpoint to which the peer connected.
    step : str
        The plant's step endpoint.
    near : str
        The local endpoint that the plant states.

    Returns
    -------
    bool
        True if it can be used.
    """
    if not exchange.startswith(LOCAL_PREFIXES) or not near.startswith("ipc:///") or not hasattr(os, "getuid"):
        return False
    if not near.endswith(f"/step-{step.rpartition(':')[2]}"):
        return False
    try:
        result = os.stat(near.removeprefix("ipc://"))
    except (OSError, ValueError):  # ValueError: no file can have this name
        return False
    return stat.S_ISSOCK(result.st_mode) and result.st_uid == os.getuid()


def endpoint_to_bind(endpoint: str, role: str, *, keyed: bool = False, inproc: bool = False) -> str:
    """Return an endpoint in its plain form, ready to be bound.

    Parameters
    ----------
    endpoint : str
        The endpoint as a user writes it.
    role : str
        Purpose of the endpoint, for error messages.
    keyed : bool, default False
        Whether the socket requires keys, so that others may reach it.
    inproc : bool, default False
        Whether inproc://NAME is valid.

    Returns
    -------
    str
        The plain form.

    Raises
    ------
    AddressError
        If the endpoint may not be bound.
    EndpointError
        If the endpoint cannot be bound.
    """
    endpoint = check_endpoint(endpoint, role, inproc=inproc)
    if not keyed:
        only_local(endpoint, role)
    if endpoint.startswith("ipc://"):
        prepare_socket(endpoint, role, keyed)
    return endpoint


def listen(endpoint: str, role: str, *, may_move: bool) -> tuple[plain.socket, str]:
    """Return a listening socket of the operating system, for an endpoint that only this machine reaches.

    Parameters
    ----------
    endpoint : str
        The endpoint as a user writes it.
    role : str
        Purpose of the endpoint, for error messages.
    may_move : bool
        Whether a free tcp port replaces a busy one.

    Returns
    -------
    tuple[plain.socket, str]
        The socket and its address.

    Raises
    ------
    EndpointError
        If the endpoint cannot be bound; it names the endpoint.
    """
    endpoint = endpoint_to_bind(endpoint, role)
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
    """Return a local socket beside a tcp endpoint, for this user's processes on this machine.

    It is faster by a third. It is in the user's runtime directory, and its name has the port.

    Parameters
    ----------
    endpoint : str
        The bound tcp endpoint.

    Returns
    -------
    tuple[plain.socket, str] | None
        The socket and its address, or None if it is unavailable.
    """
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
        if isinstance(address, tuple) and os.name == "posix":  # a port that was closed a moment ago can be bound
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
