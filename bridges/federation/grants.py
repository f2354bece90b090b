"""Grants and inputs of a federation as notes in the plant's log: what came when, and how late."""

from __future__ import annotations

from collections import deque
from itertools import chain, islice
from time import monotonic
from typing import Any

import rtmms

NOTE_INTERVAL_S = 0.25
ANSWER_S = 2.0
MAX_NOTE_NUMBERS = 1024
"""Numbers in a note."""
MAX_STORED_GRANTS = 10_000


class Grants:
    """Rows of numbers, sent to the plant as notes.

    In lockstep they are sent as soon as the plant has accepted those before, otherwise a few times a second. The last
    of a run may be too late for the plant; the log has the actuators' values all the same.

    Parameters
    ----------
    bridge : rtmms.Bridge
        The bridge.
    engine : str
        First part of their names in the log: ENGINE.columns and ENGINE.grants, row after row.
    inputs : tuple[str, ...]
        Names of the inputs, the last columns; only those with room.
    """

    def __init__(self, bridge: rtmms.Bridge, engine: str, inputs: tuple[str, ...]) -> None:
        self._bridge, self._engine = bridge, engine
        self.columns = ["step", "time_s", "granted_s", "late_s", *inputs][:MAX_NOTE_NUMBERS]
        self._rows: deque[list[float]] = deque(maxlen=MAX_STORED_GRANTS)
        self._under_way, self._sent = False, 0.0

    def add(self, row: list[float]) -> None:
        """Add a row.

        Parameters
        ----------
        row : list[float]
            Step of the plant's state, requested time, granted time, duration of the grant (s), and the inputs.
        """
        self._rows.append(row[: len(self.columns)])
        self._bridge.counts.add("grants")
        if self._bridge.waits:
            self._send()

    def tick(self, now: float) -> None:
        """Send the rows if it is time.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        if self._under_way and now - self._sent > ANSWER_S:
            self._under_way = False  # the plant is another one now
        if now - self._sent > NOTE_INTERVAL_S:
            self._send()

    def _send(self) -> None:
        if self._under_way or not self._rows:
            return
        count = min(len(self._rows), max(1, MAX_NOTE_NUMBERS // len(self.columns)))
        rows = list(chain.from_iterable(islice(self._rows, count)))
        for _ in range(count):
            self._rows.popleft()
        self._under_way, self._sent = True, monotonic()
        noted = {f"{self._engine}.columns": self.columns, f"{self._engine}.grants": rows}
        self._bridge.io.ask("note", self._answered, **noted)

    def _answered(self, accepted: bool, _: Any) -> None:
        self._under_way = False
        if not accepted:
            self._bridge.counts.add("notes_refused")
        if self._bridge.waits:
            self._send()
