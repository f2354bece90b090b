"""ipc endpoints: short names, the private folder that each socket lies in, and what a former session left there."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rtmms.wire.places.runtime import make_runtime_directory, runtime_directory
from rtmms.wire.protocol.errors import AddressError, EndpointError

SCHEME = "ipc://"
_YOUNG_S = 10.0
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


def prepare(endpoint: str, role: str, keyed: bool) -> None:
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
    with contextlib.suppress(OSError):
        for path in runtime_directory().glob(f"{prefix}*"):
            if time.time() - path.lstat().st_mtime > _YOUNG_S:  # a younger one may be about to listen
                with contextlib.suppress(EndpointError):
                    _clear(path, str(path), "")


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Files made within are for their owner alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
