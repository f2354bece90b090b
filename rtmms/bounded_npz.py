"""NumPy archives of anybody, looked through before their arrays are made.

Readers of traces and of finite element models use it.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import BinaryIO

from rtmms.errors import ModelError

MAX_UNPACKED_BYTES = 64 << 20
"""Of all arrays together, where these are packed; arrays that are stored as they are have the size of their file."""


def check_npz(file: BinaryIO, path: str | Path) -> None:
    """Raise ModelError for an archive (.npz) whose arrays are far larger than the file.

    Parameters
    ----------
    file
        The open file, which is left at its beginning. zipfile's own errors pass for what is no archive.
    path
        The name of the file, for the error.
    """
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(one.file_size for one in archive.infolist())
    file.seek(0)
    most = max(MAX_UNPACKED_BYTES, 2 * os.fstat(file.fileno()).st_size)
    if unpacked > most:
        raise ModelError(f"{path}: expected arrays of at most {most >> 20} MiB, got {unpacked >> 20} MiB unpacked")
