"""How much of a peer is looked at in a step: one that floods is left unread, and hung up on when it goes on and on."""

from __future__ import annotations

from collections.abc import Callable

from rtmms.wire.plant.peer import Peer
from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import Answering, Holding

_EVERY_S, _LEAST = 200e-6, 4
"""To read a message by itself takes some 40 us: together not more than a fifth of a period."""
FLOOD_STEPS = 100


def most_said(period_s: float) -> int:
    """Messages of a peer, in a period of the schedule."""
    return max(_LEAST, round(period_s / _EVERY_S))


class Allowance:
    """Of all peers at the step socket.

    most     messages of one from the beginning of a step to that of the next; 0: as many as it likes
    count    is called with a reason for each that is closed, after FLOOD_STEPS such steps on end
    expel    takes a peer's place away, where its connection cannot be closed by itself: libzmq's ROUTER cannot
    """

    def __init__(
        self, socket: Answering, most: int, count: Callable[[str], None], expel: Callable[[Peer, str], None]
    ) -> None:  # fmt: skip
        self._holding = socket if isinstance(socket, Holding) else None
        self.most, self._count, self._expel = most, count, expel
        self._spoke: list[Peer] = []

    def take(self, peer: Peer) -> None:
        """One message more: where it is the last one, nothing is read of this peer until the next step."""
        if not self.most:
            return
        if peer.said == 0:
            self._spoke.append(peer)
        peer.said += 1
        if peer.said == self.most and self._holding is not None:
            self._holding.hold(peer.identity)

    def used_up(self, peer: Peer) -> bool:
        """What it may still say is not looked at in this step."""
        return 0 < self.most <= peer.said

    def renew(self) -> None:
        """Another step begins."""
        spoke, self._spoke = self._spoke, []
        for peer in spoke:
            if not self.used_up(peer):
                peer.said = peer.floods = 0
                continue
            peer.said = 0
            peer.floods += 1
            if peer.floods < FLOOD_STEPS:
                if self._holding is not None:
                    self._holding.let_go(peer.identity)
                continue
            peer.floods = 0
            self._count(Reason.BUSY)
            why = f"{self.most} messages or more in each of {FLOOD_STEPS} steps: the connection is closed"
            peer.refused(why)
            if self._holding is not None:
                self._holding.cut_off(peer.identity)
            else:
                self._expel(peer, why)
