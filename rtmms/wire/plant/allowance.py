"""Allowance of messages that a step reads of each peer. A flooding peer is read no further, and is disconnected."""

from __future__ import annotations

from collections.abc import Callable

from rtmms.wire.plant.peers import Peer
from rtmms.wire.protocol.messages import Reason
from rtmms.wire.protocol.port import Answering

_MIN_MESSAGE_INTERVAL_S = 200e-6
"""Minimum mean interval between messages that are read one by one, s.

To read one takes some 40 us, so all of them take at most a fifth of a period.
"""
_MIN_MESSAGES = 4
"""Messages of a step that are always read."""
FLOOD_STEPS = 100


def max_messages(period_s: float) -> int:
    """Return the limit of a peer's messages in a period.

    Parameters
    ----------
    period_s : float
        Wall time of a step, s.

    Returns
    -------
    int
        Number of messages.
    """
    return max(_MIN_MESSAGES, round(period_s / _MIN_MESSAGE_INTERVAL_S))


class Allowance:
    """Limit of the messages of each peer on the step socket.

    Parameters
    ----------
    socket : Answering
        The step socket.
    most : int
        Most messages of a peer from the begin of a step to that of the next; 0 for no limit.
    count : Callable[[str], None]
        Called with a reason for each peer that is closed, after FLOOD_STEPS such steps in a row.
    expel : Callable[[Peer, str], None]
        Removes a peer if its connection alone cannot be closed, as with libzmq's ROUTER.
    """

    def __init__(
        self, socket: Answering, maximum: int, count: Callable[[str], None], expel: Callable[[Peer, str], None]
    ) -> None:  # fmt: skip
        self._socket = socket
        self.max_step_messages, self._count, self._expel = maximum, count, expel
        self._spoke: list[Peer] = []

    def take(self, peer: Peer) -> None:
        """Count a message of a peer.

        After its last permitted message, the peer is not read until the next step.

        Parameters
        ----------
        peer : Peer
            The peer.
        """
        if not self.max_step_messages:
            return
        if peer.message_count == 0:
            self._spoke.append(peer)
        peer.message_count += 1
        if peer.message_count == self.max_step_messages:
            self._socket.hold(peer.identity)

    def used_up(self, peer: Peer) -> bool:
        """Return whether a peer is not read any more in this step.

        Parameters
        ----------
        peer : Peer
            The peer.

        Returns
        -------
        bool
            True if it has sent its most.
        """
        return 0 < self.max_step_messages <= peer.message_count

    def renew(self) -> None:
        """Begin the next step."""
        spoke, self._spoke = self._spoke, []
        for peer in spoke:
            if not self.used_up(peer):
                peer.message_count = peer.floods = 0
                continue
            peer.message_count = 0
            peer.floods += 1
            if peer.floods < FLOOD_STEPS:
                self._socket.let_go(peer.identity)
                continue
            peer.floods = 0
            self._count(Reason.BUSY)
            why = f"{self.max_step_messages} messages or more in each of {FLOOD_STEPS} steps: the connection is closed"
            peer.refused(why)
            if not self._socket.cut_off(peer.identity):
                self._expel(peer, why)
