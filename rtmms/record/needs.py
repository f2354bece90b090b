"""The libraries that logs and tables are written with: what to install where one is missing."""

from __future__ import annotations

import importlib.util
import os
import sys

from rtmms.errors import ModelError


def refuse_without_mcap(what: str) -> None:
    """ModelError that says what to install, when logs cannot be written or read here."""
    if what == "--log" and os.name != "posix":
        raise ModelError(f"--log: the recorder hands memory to its writer by descriptor, which {sys.platform} has not")
    missing = [name for name in ("mcap", "orjson") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(f"{what}: logs need the library {missing[0]}: pip install {' '.join(missing)}")


def refuse_without_pyarrow(what: str) -> None:
    """The same for Parquet."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ModelError(f"{what}: Parquet needs the library pyarrow: pip install 'rtmms[parquet]'")
