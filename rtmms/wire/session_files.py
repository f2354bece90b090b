"""Token of the session: a file of mode 0600 in the user's runtime directory, one for each exchange endpoint.

It prevents other users of the same machine from claiming a robot's actuators. It does not protect a network.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import stat
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

from rtmms.base.errors import ModelError
from rtmms.base.files import read_input_text
from rtmms.base.trust import exposed_way
from rtmms.wire.protocol.errors import EndpointError

MAX_TOKEN_FILE_BYTES = 4096
"""Most bytes of a token file."""


def runtime_directory() -> Path:
    """Return the user's runtime directory for rtmms.

    Returns
    -------
    Path
        $XDG_RUNTIME_DIR/rtmms, or the platform's place for such files. It need not exist.
    """
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(folder):  # the XDG specification ignores relative paths
        return Path(folder) / "rtmms"
    import platformdirs

    with warnings.catch_warnings():  # if the variable is missing, platformdirs warns and uses its default
        warnings.simplefilter("ignore")
        return Path(platformdirs.user_runtime_dir("rtmms"))


def make_runtime_directory() -> Path:
    """Create the runtime directory, for its owner alone.

    Returns
    -------
    Path
        The directory.

    Raises
    ------
    OSError
        If it cannot be made.
    EndpointError
        If somebody else may have put it into a shared place, or can replace it.
    """
    directory = runtime_directory()
    if why := exposed_way(directory.parent):  # who can rename the directory can replace it
        raise EndpointError(f"{directory}: {why}; set XDG_RUNTIME_DIR to a directory of your own")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "getuid"):
        return directory
    result = directory.lstat()
    if not stat.S_ISDIR(result.st_mode) or result.st_uid != os.getuid():
        raise EndpointError(f"{directory}: expected a directory of your own; set XDG_RUNTIME_DIR to one")
    if stat.S_IMODE(result.st_mode) & 0o077:
        directory.chmod(0o700)
    return directory


def new_token() -> str:
    """Return a random token.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    return secrets.token_hex(16)


def token_path(exchange: str) -> Path:
    """Return the path of the token file of a plant, whether or not it exists.

    Parameters
    ----------
    exchange : str
        The plant's exchange endpoint.

    Returns
    -------
    Path
        The path.
    """
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", exchange)[-80:]
    return runtime_directory() / f"{plain}.{zlib.crc32(exchange.encode()):08x}.token"


def write_token(exchange: str, token: str) -> Path:
    """Write the token of an endpoint, and overwrite one that a killed session left.

    Parameters
    ----------
    exchange : str
        The plant's exchange endpoint.
    token : str
        The token.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    EndpointError
        If the file cannot be private.
    """
    path = token_path(exchange)
    directory = path.parent
    try:
        make_runtime_directory()
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=".token-")  # mkstemp makes it 0600
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(token)
        os.replace(temporary, path)
        _write_origin(path, exchange)
    except OSError as fault:
        raise EndpointError(
            f"token of {exchange}: cannot write {path}: {fault.strerror or fault}; "
            "set XDG_RUNTIME_DIR to a directory of your own"
        ) from None
    return path


def read_token(exchange: str) -> str:
    """Return the token of an endpoint.

    Parameters
    ----------
    exchange : str
        The plant's exchange endpoint.

    Returns
    -------
    str
        The token; empty if no session of this user has left one.
    """
    try:
        return read_input_text(token_path(exchange), max_bytes=MAX_TOKEN_FILE_BYTES).strip()
    except ModelError:
        return ""


def remove_token(exchange: str, token: str) -> None:
    """Remove a token file, unless a newer session has written its own.

    Parameters
    ----------
    exchange : str
        The plant's exchange endpoint.
    token : str
        The token of the ending session.
    """
    if read_token(exchange) == token:
        token_path(exchange).unlink(missing_ok=True)
        _origin_path(token_path(exchange)).unlink(missing_ok=True)


# The origin of a token, for a peer whose token the plant refuses: a second file beside it, which only people read.


def _origin_path(path: Path) -> Path:
    return path.with_suffix(".origin")


def _write_origin(path: Path, exchange: str) -> None:
    origin = {
        "endpoint": exchange, "pid": os.getpid(), "program": " ".join(map(os.path.basename, sys.argv[:1])) or "python",
        "host": socket.gethostname(), "time_s": time.time(),
    }  # fmt: skip
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".token-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(origin, file)
    os.replace(temporary, _origin_path(path))


def origin_of_token(exchange: str) -> str:
    """Explain a refused token: who wrote its file, when, for what, and what to do.

    Parameters
    ----------
    exchange : str
        The exchange endpoint that the peer connects to.

    Returns
    -------
    str
        Sentences for a person.
    """
    path = token_path(exchange)
    ways = "let both processes have the same user and XDG_RUNTIME_DIR, give the token yourself (token=), or use keys"
    if not path.exists():
        return (
            f"there is no file {path}: the plant runs as another user, in a container, or with another "
            f"XDG_RUNTIME_DIR; {ways}"
        )
    try:
        origin = json.loads(read_input_text(_origin_path(path), max_bytes=MAX_TOKEN_FILE_BYTES))
        pid, host, program = int(origin["pid"]), str(origin["host"]), str(origin["program"])
        written, endpoint = float(origin["time_s"]), str(origin["endpoint"])
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(written))
    except (ModelError, ValueError, TypeError, KeyError, OverflowError, OSError):
        return f"the token in {path} is another plant's, and nothing shows whose; {ways}"
    state = ""
    if host == socket.gethostname() and os.name == "posix":
        state = ", which still runs" if _runs(pid) else ", which has ended"
    return (
        f"the token in {path} was written by process {pid} ({program}) on {host}{state}, at {when}, for {endpoint}. "
        f"Another plant answers there: {ways}"
    )


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
