"""Counters of a bridge, which it prints on standard error at its end; the report of the run has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rtmms.bridging.untrusted import Refusal

MARK = "counts "
"""Text before the JSON of the last line that a bridge writes."""


class Counters:
    """Counters by name; `refused` by reason as well.

    Reasons are the bridge's own words, never a peer's. Usual names are states (received from the plant), sent and
    received (messages to and from the peer), dropped (own messages, oldest first). Others are reconnects (to the peer),
    plants (found again), and silences (of the plant, for which the safe output was sent).

    Examples
    --------
    >>> counts = Counters()
    >>> counts.add("sent", 2)
    >>> counts.line()
    'counts {"sent": 2, "refused": {}}'
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._texts: list[str] = []

    def add(self, name: str, number: int = 1) -> None:
        """Increase a counter.

        Parameters
        ----------
        name : str
            Name of the counter.
        number : int, default 1
            Increase.
        """
        self._numbers[name] = self._numbers.get(name, 0) + number

    def refuse(self, reason: str, text: str = "") -> None:
        """Count a refused message of the peer.

        Parameters
        ----------
        reason : str
            Reason of the refusal.
        text : str, default ''
            Explanation for a person, who gets the first one of each reason.
        """
        if text and reason not in self._refused:
            self._texts.append(text)
        self._refused[reason] = self._refused.get(reason, 0) + 1

    def new_texts(self) -> list[str]:
        """Return the explanations of refusals since the last call, the first one of each reason.

        Returns
        -------
        list[str]
            Explanations.
        """
        texts, self._texts = self._texts, []
        return texts

    @contextmanager
    def message(self) -> Iterator[None]:
        """Count the message of the peer that the block reads: as received, or as refused by reason.

        Yields
        ------
        None
            Nothing.
        """
        try:
            yield
        except Refusal as refusal:
            self.refuse(refusal.reason, str(refusal))
        else:
            self.add("received")

    def __getitem__(self, name: str) -> int:
        """Return a counter; 0 for an unknown name."""
        return sum(self._refused.values()) if name == "refused" else self._numbers.get(name, 0)

    def reasons(self) -> dict[str, int]:
        """Return the numbers of refused messages by reason.

        Returns
        -------
        dict[str, int]
            Numbers by reason.
        """
        return dict(self._refused)

    def as_dict(self) -> dict[str, Any]:
        """Return all counters.

        Returns
        -------
        dict[str, Any]
            Numbers by name, and `refused` by reason.
        """
        return {**self._numbers, "refused": dict(self._refused)}

    def line(self) -> str:
        """Return all counters as a line for a person and for `read_line`.

        Returns
        -------
        str
            The line.
        """
        return MARK + json.dumps(self.as_dict())


def read_line(line: str) -> dict[str, Any] | None:
    """Return the counters in the last line of a bridge.

    Parameters
    ----------
    line : str
        The line.

    Returns
    -------
    dict[str, Any] | None
        Counters by name; None for another line.
    """
    _, mark, text = line.partition(MARK)
    if not mark:
        return None
    try:
        content = json.loads(text)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
