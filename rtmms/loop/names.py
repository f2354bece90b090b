"""The names of modes and policies, apart from what they do: reading a command line must not load numpy."""

from __future__ import annotations

MODES = ("realtime", "lockstep", "free")
MISS = ("hold", "extrapolate", "home", "abort")
OVERRUN = ("skip", "slip", "catchup", "abort")
