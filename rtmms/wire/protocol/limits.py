"""Limits of messages: sizes, entries, steps, for both sides of the wire."""

from __future__ import annotations

MAX_COMMAND_BYTES = 32 * 1024
"""Size of a message on the step socket: 500 actuators of 40 bytes, with a margin."""

MAX_EXCHANGE_BYTES = 64 * 1024
"""Size of a message on the exchange socket, without the room for the plant's own snapshots."""

MAX_PLANT_BYTES = 16 * 1024 * 1024
MAX_PLANT_ENTRIES = 65536
MAX_NAME_LENGTH = 64
MAX_PATTERNS = 256
MAX_PATTERN_LENGTH = 128
MAX_LIST_LENGTH = 16
MAX_SHAPE_LENGTH = 1 << 15
"""Characters of the drawing that a plant sends to viewers."""

MAX_AHEAD_STEPS = 64
"""Steps by which a command may be ahead; also the length of the queue in which it waits."""

WARM_STEPS = 10
"""Number of states exchanged with a claimant, with steps -10 to -1, before the plant admits it."""

MAX_EVERY_STEPS = 10_000
"""Largest n for a claimant that asks for each n-th state only."""

MAX_SETTABLE = 64
MAX_METRICS = 16
MAX_TEXT_LENGTH = 128
MAX_TRACKS = 16
MAX_TRACK_LENGTH = 4096
MAX_SILENCES = 64
CREDITS = 4
"""Number of unanswered states beyond which the plant sends no state to a claimant: it has one credit more."""
