"""A wall clock that jumps by hours, for a process that is to take no notice. Imported first, it acts where asked to."""

from __future__ import annotations

import os
import time

SWITCH = "RTMMS_FAULTS_WALL_CLOCK"
JUMP_S = 3600.0
EVERY_S = 0.2


def _jump_s() -> float:
    """Forward and back, by more each time."""
    turn = int(time.monotonic() / EVERY_S)
    return JUMP_S * (turn % 7 - 3)


if os.environ.get(SWITCH) == "1":
    _time, _time_ns = time.time, time.time_ns
    time.time = lambda: _time() + _jump_s()
    time.time_ns = lambda: _time_ns() + int(_jump_s() * 1e9)
