"""NumPy archives of anybody, looked through before their arrays are made.

Readers of traces and of finite element models use it.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from rtmms.errors import ModelError

MAX_UNPACKED_BYTES = 64 << 20
"""Of all arrays together, where these are packed; arrays that are stored as they are have the size of their file."""


def check_npz(path: Path) -> None:
    """Raise ModelError for an archive (.npz) whose arrays are far larger than the file.

    Parameters
    ----------
    path
        The file. zipfile's own errors pass for what is no archive.
    """
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(one.file_size for one in archive.infolist())
    most = max(MAX_UNPACKED_BYTES, 2 * path.stat().st_size)
    if unpacked > most:
        raise ModelError(f"{path}: expected arrays of at most {most >> 20} MiB, got {unpacked >> 20} MiB unpacked")
