"""The names of modes and policies, apart from what they do: reading a command line must not load numpy."""

from __future__ import annotations

MODES = ("realtime", "lockstep", "free", "external")
TIMED = ("realtime", "external")
"""Modes in which a step has a deadline."""
MISS = ("hold", "extrapolate", "home", "abort")
OVERRUN = ("skip", "slip", "catchup", "abort")
