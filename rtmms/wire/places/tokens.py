"""The session's token: a file of mode 0600 in the user's runtime directory, one for each exchange endpoint.

It keeps other users of the same machine from taking a robot's actuators; it does not protect a network.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import zlib
from pathlib import Path

from rtmms.wire.places.runtime import make_runtime_directory, runtime_directory
from rtmms.wire.protocol.errors import EndpointError


def new_token() -> str:
    return secrets.token_hex(16)


def token_path(exchange: str) -> Path:
    """Where the token of the plant at this exchange endpoint lies (whether or not it exists)."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", exchange)[-80:]
    return runtime_directory() / f"{plain}.{zlib.crc32(exchange.encode()):08x}.token"


def write_token(exchange: str, token: str) -> Path:
    """Write the token for this endpoint over what a killed session left; EndpointError if it cannot be private."""
    path = token_path(exchange)
    directory = path.parent
    try:
        make_runtime_directory()
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=".token-")  # mkstemp makes it 0600
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(token)
        os.replace(temporary, path)
    except OSError as fault:
        raise EndpointError(
            f"token of {exchange}: cannot write {path}: {fault.strerror or fault}; "
            "set XDG_RUNTIME_DIR to a directory of your own"
        ) from None
    return path


def read_token(exchange: str) -> str:
    """The token for this endpoint, '' where no session of this user has left one."""
    try:
        return token_path(exchange).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def remove_token(exchange: str, token: str) -> None:
    """Take the file away, unless a newer session has already put its own there."""
    if read_token(exchange) == token:
        token_path(exchange).unlink(missing_ok=True)
