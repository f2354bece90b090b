"""A plant whose compiler swallows Ctrl-C, in a callback of C, and then fails for it or goes on all the same."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any

from tests.pendulum import Pendulum


def load(dt: float | None = None, fails: bool = True, **_: Any) -> Pendulum:
    """What an entry point of group rtmms.plants names."""
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))()
    if fails:
        raise AttributeError("no compiled object yet")
    return Pendulum(dt=1e-2 if dt is None else dt)
