"""Where a user's sessions leave what only this user may see: tokens and sockets."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

from rtmms.wire.protocol.errors import EndpointError


def runtime_directory() -> Path:
    """$XDG_RUNTIME_DIR/rtmms, or where the platform keeps such files. It need not exist."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given:
        return Path(given) / "rtmms"
    import platformdirs

    with warnings.catch_warnings():  # where the variable is missing it warns and falls back, which is what we want
        warnings.simplefilter("ignore")
        return Path(platformdirs.user_runtime_dir("rtmms"))


def make_runtime_directory() -> Path:
    """The directory, there and private. OSError where it cannot be made.

    A directory in a shared place may have been put there by someone else, open to all: EndpointError, it is not used.
    """
    directory = runtime_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hasattr(os, "getuid"):
        return directory
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise EndpointError(f"{directory}: expected a directory of your own; set XDG_RUNTIME_DIR to one")
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)
    return directory
