"""The libraries that FMI needs, and what to do where they are not installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from rtmms.errors import ModelError


def needed(library: str, what: str) -> ModuleType:
    """The library by its import name; ModelError naming the extra where it is missing."""
    try:
        return import_module(library)
    except ImportError as fault:
        raise ModelError(f"{what} needs {library} ({fault}): pip install 'rtmms[fmi]'") from None
