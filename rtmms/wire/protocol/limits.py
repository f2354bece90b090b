"""How long, how many, how far ahead: what a message may have, on either side of the wire."""

from __future__ import annotations

COMMAND_BYTES = 32 * 1024
"""Longest message that is read on the step socket: 500 actuators of 40 bytes and room to spare."""

EXCHANGE_BYTES = 64 * 1024
"""Longest message that is read on the exchange socket, before room for the plant's own snapshots is added."""

NAME_LENGTH = 64
PATTERNS = 256
PATTERN_LENGTH = 128
LIST_LENGTH = 16
SHAPE = 1 << 15
"""Characters of what a plant tells viewers to draw, at most."""
AHEAD_STEPS = 64
"""A command may be at most this many steps ahead of now: the length of the queue in which it waits its turn."""

WARM_STEPS = 10
"""States that are exchanged with a claimant, with steps -10 to -1, before it counts as admitted."""

MOST_EVERY = 10_000
"""A claimant may ask for each n-th state only; n is at most this."""

MOST_SETTABLE = 64
MOST_FIGURES, TEXT_LENGTH = 16, 128
MOST_TRACKS, TRACK_LENGTH = 16, 4096

CREDITS = 4
"""States that may lie unanswered with a claimant before the plant stops sending it more."""
