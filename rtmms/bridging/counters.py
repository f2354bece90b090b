"""What a bridge did, in numbers: told on standard error at the end, and in the report of the run that started it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rtmms.bridging.untrusted import Refusal

MARK = "counts "
"""Before the JSON of the last line that a bridge writes."""


class Counters:
    """Numbers by name; `refused` by reason as well. Reasons are words of the bridge's own, never of a peer's.

    The usual names: states (seen), sent and received (messages to and from the peer), dropped (of our own, oldest
    first), reconnects (to the peer), plants (found again), silences (of the plant, for which the safe output was sent).
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._refused: dict[str, int] = {}

    def add(self, name: str, number: int = 1) -> None:
        self._numbers[name] = self._numbers.get(name, 0) + number

    def refuse(self, reason: str) -> None:
        """A message of the peer's that was not taken."""
        self._refused[reason] = self._refused.get(reason, 0) + 1

    @contextmanager
    def message(self) -> Iterator[None]:
        """Around what reads a message of the peer's and takes it: counted as received, or refused by reason."""
        try:
            yield
        except Refusal as refusal:
            self.refuse(refusal.reason)
        else:
            self.add("received")

    def __getitem__(self, name: str) -> int:
        return sum(self._refused.values()) if name == "refused" else self._numbers.get(name, 0)

    def reasons(self) -> dict[str, int]:
        """How many messages of the peer's were refused, by reason."""
        return dict(self._refused)

    def as_dict(self) -> dict[str, Any]:
        return {**self._numbers, "refused": dict(self._refused)}

    def line(self) -> str:
        """One line, for a person and for `read_line`."""
        return MARK + json.dumps(self.as_dict())


def read_line(line: str) -> dict[str, Any] | None:
    """The counters in the last line of a bridge, None if it is another line."""
    _, mark, text = line.partition(MARK)
    if not mark:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
