"""Who holds which actuators: all peers, their claims, and how a claim passes on. No socket here."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rtmms.errors import UnknownNameError
from rtmms.loop.impairment import ImpairedLink
from rtmms.plant import Channel
from rtmms.wire.plant.peer import ADMITTED, DEAD, LEFT, Peer
from rtmms.wire.plant.selection import Matching, Selection
from rtmms.wire.protocol.messages import Hello, Reason, Refused

MOST_PEERS = 64
RESERVED = 1
"""Places beyond them for a peer with the token that drives nothing: `status` and `stop` are always possible."""


class Peers:
    """All peers and the owner of each actuator.

    claimed    (n_actuators,) bool, held by an admitted peer, dead or alive
    claimants  admitted peers that hold at least one actuator, in the order of their coming
    linear     those of them whose values are reached by and by
    listeners  those that get every state: the claimants, and one that only ticks
    ticker     the one peer that may tick (mode external)
    gone       what is left to report of those that went;  changes   counts comings and goings
    departed   identities of those that said bye: what was still under way from them is no stranger's
    links      the impaired ones, by the name of the peer
    displaced  those that lost all they held to another one, and its name: to be told
    """

    def __init__(self, actuators: Sequence[Channel], links: Mapping[str, ImpairedLink] | None = None) -> None:
        self.links = dict(links or {})
        self._names = {channel.name: i for i, channel in enumerate(actuators)}
        self._owner: list[Peer | None] = [None] * len(actuators)
        self.claimed = np.zeros(len(actuators), dtype=np.bool_)
        self.claimants: list[Peer] = []
        self.linear: list[Peer] = []
        self.listeners: list[Peer] = []
        self.ticker: Peer | None = None
        self.all: list[Peer] = []
        self.by_identity: dict[bytes, Peer] = {}
        self.by_exchange_id: dict[bytes, Peer] = {}
        self.gone: list[dict[str, Any]] = []
        self.departed: deque[bytes] = deque(maxlen=MOST_PEERS)
        self.displaced: list[tuple[Peer, str]] = []
        self.changes = 0

    def match(self, claim: Iterable[str], prefix: str = "") -> dict[str, int]:
        """The actuators that the patterns name, in the plant's order; Refused for a pattern that names none.

        prefix   of those that it may name, which goes without saying"""
        own = {name.removeprefix(prefix): i for name, i in self._names.items() if name.startswith(prefix)}
        wanted: set[str] = set()
        matching = Matching()
        for pattern in claim:
            found = matching.matched(pattern, own)
            if not found:
                raise Refused(
                    Reason.UNKNOWN_ACTUATOR, "hello: claim: " + str(UnknownNameError("actuator", pattern, own))
                )
            wanted.update(found)
        return {name: i for name, i in own.items() if name in wanted}

    def came(self, identity: bytes) -> None:
        """This one has a new connection: nothing was sent on it yet."""
        peer = self.by_identity.get(identity)
        if peer is not None:
            peer.probes = 0

    def known(self, name: str) -> bool:
        """Whether there is such an actuator, of all the plant's."""
        return name in self._names

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def welcome(
        self, hello: Hello, exchange_id: bytes, selection: Selection, now_ns: int, prefix: str = ""
    ) -> Peer:  # fmt: skip
        """A new peer, with its actuators kept for it but not yet claimed; Refused if another one lives on them."""
        index = self.match(hello.claim, prefix)
        for name, i in index.items():
            for other in self.all:
                if i in other.actuators and other.state is not DEAD and other.exchange_id != exchange_id:
                    raise Refused(Reason.CLAIM_HELD, f"hello: actuator '{name}' is held by '{other.name}'")
        if hello.ticks:
            for other in self.all:
                if other.ticks and other.state is not DEAD and other.exchange_id != exchange_id:
                    raise Refused(Reason.CLAIM_HELD, f"hello: '{other.name}' ticks here")
        earlier = self.by_exchange_id.get(exchange_id)
        if earlier is not None:
            self.release(earlier)
        observes = not index and not hello.ticks
        if len(self.all) >= MOST_PEERS + RESERVED * observes and not self._drop_one_observer():
            raise Refused(Reason.BUSY, f"hello: {MOST_PEERS} peers are here already")
        peer = Peer(hello, exchange_id, index, selection, now_ns, prefix)
        self.all.append(peer)
        self.by_exchange_id[exchange_id] = peer
        if not peer.observer:
            self.by_identity[peer.identity] = peer
        return peer

    def known_again(self, identity: bytes, exchange_id: bytes) -> None:
        """The peer's connection to the exchange socket broke, and this is its new one; Refused if there is none."""
        peer = self.by_identity.get(identity)
        if peer is None:
            raise Refused(Reason.TOKEN, "hello: no peer of this identity is here (any more)")
        if self.by_exchange_id.get(peer.exchange_id) is peer:
            del self.by_exchange_id[peer.exchange_id]
        peer.exchange_id = exchange_id
        self.by_exchange_id[exchange_id] = peer

    def admit(self, peer: Peer) -> None:
        """The peer is warm: it owns its actuators from the next step; what a dead one held passes to it."""
        for i in peer.actuators:
            before = self._owner[i]
            if before is not None and before is not peer:
                before.actuators.remove(i)
                before.index = {name: j for name, j in before.index.items() if j != i}
                before.multirate.drop(i)
                before.forget_queue()  # it may have come back meanwhile, and be at work
                if not before.actuators:
                    self._forget(before)  # with its right to tick, if it had it: it was dead
                    self.displaced.append((before, peer.name))
            self._owner[i] = peer
            self.claimed[i] = True
        peer.on(ADMITTED)
        peer.link = self.links.get(peer.name) if peer.actuators else None
        if peer.link is not None:
            peer.link.forget()
        peer.fresh = True  # it has not been asked for the present step
        self.changes += 1
        if peer.actuators and peer not in self.claimants:
            self.claimants.append(peer)
            if peer.multirate.linear:
                self.linear.append(peer)
        if peer not in self.listeners:
            self.listeners.append(peer)
        if peer.ticks:
            self.let_tick(peer)

    def let_tick(self, peer: Peer) -> None:
        """From now on this peer ticks; one that did and only did so is done."""
        before, self.ticker, peer.ticks = self.ticker, peer, True
        if before is not None and before is not peer:
            before.ticks = False
            if not before.actuators:
                self._forget(before)
                self.displaced.append((before, peer.name))

    def depart(self, peer: Peer) -> None:
        """The peer said bye, perhaps on one socket before its last commands on the other one were read."""
        self.departed.append(peer.identity)
        self.release(peer)

    def release(self, peer: Peer) -> None:
        """The peer left, or never became warm: its actuators are free."""
        for i in peer.actuators:
            if self._owner[i] is peer:
                self._owner[i] = None
                self.claimed[i] = False
        self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        peer.on(LEFT)
        self.changes += 1
        if peer in self.all:
            self.all.remove(peer)
            if len(self.gone) < MOST_PEERS and (peer.commands or peer.observer):
                self.gone.append(peer.summary() | {"state": "gone"})
        if peer in self.claimants:
            self.claimants.remove(peer)
        if peer in self.linear:
            self.linear.remove(peer)
        if peer in self.listeners:
            self.listeners.remove(peer)
        if self.ticker is peer:
            self.ticker = None
        self.by_identity.pop(peer.identity, None)
        if self.by_exchange_id.get(peer.exchange_id) is peer:
            del self.by_exchange_id[peer.exchange_id]

    def _drop_one_observer(self) -> bool:
        """Observers leave no trace when they go: the oldest gives way."""
        for peer in self.all:
            if peer.observer:
                self._forget(peer)
                return True
        return False
