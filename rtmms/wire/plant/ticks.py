"""Ticks, in the mode external: who may send them, and those that wait for their step. No socket here."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from rtmms.wire.plant.peer import LIVE, READY, Peer
from rtmms.wire.plant.peers import Peers
from rtmms.wire.protocol.messages import Reason, Refused, shown

MOST_WAITING = 16
"""Ticks that may wait for the steps before theirs; what comes beyond is surplus."""


class Ticks:
    """One peer at a time ticks: the one that asked for it in its hello, or else the first claimant that does.

    used      ticks that started a step
    surplus   ticks that came while MOST_WAITING waited, or that waited when the run was paused or reset: no step
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._arrived: deque[int] = deque()
        self.used = self.surplus = 0

    def read_message(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """A tick of a peer that is known on the step socket; Refused if it may not, or if its seq does not rise."""
        seq = message.get("seq")
        if type(seq) is not int:
            raise Refused(Reason.WRONG_TYPE, f"tick: expected a whole number seq, got {shown(seq)}")
        if peer.state not in (LIVE, READY):
            raise Refused(Reason.TOO_EARLY, "tick: answer the warm-up states first")
        ticker = self._peers.ticker
        if ticker is not peer:
            if ticker is not None and ticker.state is LIVE:
                raise Refused(Reason.NOT_CLAIMED, f"tick: '{ticker.name}' ticks here")
            self._peers.let_tick(peer)
        if not peer.tick_seq < seq < 1 << 63:
            raise Refused(Reason.SEQ, f"tick: seq must rise; newest {peer.tick_seq}, got {shown(seq)}")
        peer.tick_seq = seq
        if len(self._arrived) >= MOST_WAITING:
            self.surplus += 1
        else:
            self._arrived.append(monotonic_ns())

    @property
    def waiting(self) -> int:
        return len(self._arrived)

    def take(self) -> int:
        """The instant at which the oldest waiting tick came, in ns of CLOCK_MONOTONIC; 0 for none."""
        if not self._arrived:
            return 0
        self.used += 1
        return self._arrived.popleft()

    def drop(self) -> None:
        """What waits was meant for a schedule that is no more."""
        self.surplus += len(self._arrived)
        self._arrived.clear()

    def report(self) -> dict[str, Any]:
        ticker = self._peers.ticker
        return {"used": self.used, "surplus": self.surplus, "peer": None if ticker is None else ticker.name}
