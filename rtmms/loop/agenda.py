"""What a run does to itself at certain steps: it sets parameters of the plant or of its peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtmms.loop.observation import NEVER


@dataclass(frozen=True)
class Due:
    """Before `step` is taken; values by name: of the plant (owner ''), or of a peer, 'PEER.NAME'.  told: its time and
    place, for an error."""

    step: int
    owner: str
    values: Mapping[str, Any]
    told: str = ""


class Agenda:
    """Acts in the order of their steps; those of one step in the order given.  next  the step of the first one left."""

    __slots__ = ("_acts", "_at", "next")

    def __init__(self, acts: Sequence[Due] = ()) -> None:
        self._acts = sorted(acts, key=lambda act: act.step)
        self.next = NEVER
        self.rewind()

    def rewind(self) -> None:
        """To before the first step."""
        self._at = -1
        self._advance()

    def take(self, step: int) -> list[Due]:
        """Those that are due by the step, taken off."""
        taken = []
        while self.next <= step:
            taken.append(self._acts[self._at])
            self._advance()
        return taken

    def _advance(self) -> None:
        self._at += 1
        self.next = self._acts[self._at].step if self._at < len(self._acts) else NEVER
