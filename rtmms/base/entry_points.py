"""Entry points of installed plug-ins, ours and third parties'. Robots, controllers, bridges and parsers are found here.

Reading the metadata of all installed packages takes tens of milliseconds, so each search path is read once a process.
"""

from __future__ import annotations

import importlib.metadata
import sys
from functools import lru_cache
from importlib.metadata import EntryPoint
from typing import Any


def entry_points_of(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group.

    Parameters
    ----------
    group : str
        Name of the group, as rtmms.plants.

    Returns
    -------
    dict of str to EntryPoint
        Entry points by name. A package that is installed while the process runs appears in the next process.
    """
    return {point.name: point for point in _installed(tuple(sys.path)).select(group=group)}


@lru_cache(maxsize=4)
def _installed(path: tuple[str, ...]) -> Any:
    """Return all entry points on a search path, that of `sys.path`, with a method `select`."""
    return importlib.metadata.entry_points()
