"""Who holds which actuators: peers, their claims, and how a claim passes on. No socket here."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from rtmms.errors import UnknownNameError
from rtmms.plant import Channel
from rtmms.wire.protocol.measure import Measure
from rtmms.wire.protocol.messages import AHEAD_STEPS, WARM_STEPS, Hello, Reason, Refused
from rtmms.wire.protocol.selection import Selection

WARMING, LIVE, DEAD = "warming", "live", "dead"
MOST_PEERS = 64
_GRANT_GAP_NS = 1_000_000_000
_ERROR_BURST = 10


class Peer:
    """One that said hello with the session's token. Its size is fixed: nothing in it grows with what it sends.

    identity    its routing id on the step socket, made by us and known to it alone
    door        its routing id on the exchange socket
    key         the key by which it came in, b"" where none was asked for
    actuators   indices it holds; `index` is the same by name
    state       warming until it has answered the warm-up states, then live; dead when its connection is gone, or
                when it has long said nothing; live again with its next message
    warm_step   the warm-up state it owes an answer to
    owed        states sent since its last message;  probes  likewise, and on this connection
    born_ns     when it was welcomed;  granted_ns  when a connection was last let in for it at the step endpoint
    early       its command for the next step has come (free mode)
    every       it is asked for a command at each every-th step; between them its last one stands
    ticks       it sends the ticks of the mode external, or asked to (asked_ticks);  tick_seq  of the newest
    queue       commands for steps ahead, by step modulo the length: (step, seq, values, came at)
    error       the next one to be told: (code, text, unknown name);  told  how many it may be told at the door
    """

    __slots__ = (
        "actuators", "asked_ticks", "born_ns", "claim", "clamped", "commands", "door", "early", "error", "error_ns",
        "every", "fresh", "granted_ns", "identity", "index", "key", "late", "name", "observer", "owed", "probe_ns",
        "probes", "queue", "queued", "ready", "rejected", "selection", "seq", "since_ns", "skipped", "state",
        "tick_seq", "ticks", "told", "warm_step",
    )  # fmt: skip

    def __init__(self, hello: Hello, door: bytes, index: dict[str, int], selection: Selection, now_ns: int) -> None:
        self.name, self.claim, self.door, self.selection = hello.name, hello.claim, door, selection
        self.identity = b"\x01" + secrets.token_bytes(15)  # ZeroMQ keeps ids that begin with 0 for itself
        self.key = b""
        self.every = hello.every
        self.index = index
        self.actuators: list[int] = list(index.values())
        self.ticks = self.asked_ticks = hello.ticks
        self.observer = not index and not hello.ticks
        self.state = LIVE if self.observer else WARMING
        self.warm_step = -WARM_STEPS
        self.ready = False
        self.seq = self.tick_seq = -1
        self.early = False
        self.owed = self.probes = 0
        self.fresh = False
        self.queue: list[tuple[int, int, dict[str, float], int] | None] = [None] * AHEAD_STEPS
        self.queued = 0
        self.since_ns = self.probe_ns = self.born_ns = now_ns
        self.granted_ns = now_ns - _GRANT_GAP_NS
        self.error: tuple[str, str, str] | None = None
        self.error_ns = 0
        self.told = Measure(_ERROR_BURST)
        self.commands = self.late = self.clamped = self.rejected = self.skipped = 0

    def forget_queue(self) -> None:
        if self.queued:
            self.queue = [None] * AHEAD_STEPS
            self.queued = 0

    def summary(self) -> dict[str, Any]:
        """For the final report."""
        return {
            "name": self.name, "claim": list(self.claim), "state": self.state, "commands": self.commands,
            "late": self.late, "clamped": self.clamped, "rejected": self.rejected, "states_withheld": self.skipped,
        }  # fmt: skip


class Missing:
    """A peer whose command was not there at a deadline; see rtmms.loop.ports.Silent."""

    __slots__ = ("_commands", "_peer")

    def __init__(self, peer: Peer) -> None:
        self._peer, self._commands = peer, peer.commands

    @property
    def gone(self) -> bool:
        return self._peer.state is DEAD and self._peer.commands == self._commands


class Peers:
    """All peers and the owner of each actuator.

    claimed    (n_actuators,) bool, held by an admitted peer, dead or alive
    claimants  admitted peers that hold at least one actuator, in the order of their coming
    listeners  those that get every state: the claimants, and one that only ticks
    ticker     the one peer that may tick (mode external)
    gone       what is left to report of those that went;  changes   counts comings and goings
    displaced  those that lost all they held to another one, and its name: to be told
    """

    def __init__(self, actuators: Sequence[Channel]) -> None:
        self._names = {channel.name: i for i, channel in enumerate(actuators)}
        self._owner: list[Peer | None] = [None] * len(actuators)
        self.claimed = np.zeros(len(actuators), dtype=np.bool_)
        self.claimants: list[Peer] = []
        self.listeners: list[Peer] = []
        self.ticker: Peer | None = None
        self.all: list[Peer] = []
        self.by_identity: dict[bytes, Peer] = {}
        self.by_door: dict[bytes, Peer] = {}
        self.gone: list[dict[str, Any]] = []
        self.displaced: list[tuple[Peer, str]] = []
        self.changes = 0

    def match(self, claim: Iterable[str]) -> dict[str, int]:
        """The actuators that the patterns name, in the plant's order; Refused for a pattern that names none."""
        wanted: set[str] = set()
        for pattern in claim:
            found = [name for name in self._names if fnmatchcase(name, pattern)]
            if not found:
                raise Refused(
                    Reason.UNKNOWN_ACTUATOR, "hello: claim: " + str(UnknownNameError("actuator", pattern, self._names))
                )
            wanted.update(found)
        return {name: i for name, i in self._names.items() if name in wanted}

    def comes(self, arrived_ns: int, now_ns: int) -> bool:
        """Whether a connection that arrived then may be a peer's that is to connect to the step endpoint: one that was
        welcomed before, or one that is dead. One a second for each, as others may be quicker."""
        for peer in self.by_identity.values():
            if peer.state == LIVE or now_ns - peer.granted_ns < _GRANT_GAP_NS:
                continue
            if peer.state == WARMING and (peer.owed or peer.warm_step > -WARM_STEPS or arrived_ns < peer.born_ns):
                continue  # it is there already, or was not welcome yet
            peer.granted_ns = now_ns
            return True
        return False

    def came(self, identity: bytes) -> None:
        """This one has a new connection: nothing was sent on it yet."""
        peer = self.by_identity.get(identity)
        if peer is not None:
            peer.probes = 0

    def known(self, name: str) -> bool:
        return name in self._names

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def welcome(self, hello: Hello, door: bytes, selection: Selection, now_ns: int) -> Peer:
        """A new peer, with its actuators kept for it but not yet claimed; Refused if another one lives on them."""
        index = self.match(hello.claim)
        for name, i in index.items():
            for other in self.all:
                if i in other.actuators and other.state != DEAD and other.door != door:
                    raise Refused(Reason.CLAIM_HELD, f"hello: actuator '{name}' is held by '{other.name}'")
        if hello.ticks:
            for other in self.all:
                if other.ticks and other.state != DEAD and other.door != door:
                    raise Refused(Reason.CLAIM_HELD, f"hello: '{other.name}' ticks here")
        earlier = self.by_door.get(door)
        if earlier is not None:
            self.release(earlier)
        if len(self.all) >= MOST_PEERS and not self._drop_one_observer():
            raise Refused(Reason.BUSY, f"hello: {MOST_PEERS} peers are here already")
        peer = Peer(hello, door, index, selection, now_ns)
        self.all.append(peer)
        self.by_door[door] = peer
        if not peer.observer:
            self.by_identity[peer.identity] = peer
        return peer

    def known_again(self, identity: bytes, door: bytes) -> None:
        """The peer's connection to the exchange socket broke, and this is its new one; Refused if there is none."""
        peer = self.by_identity.get(identity)
        if peer is None:
            raise Refused(Reason.TOKEN, "hello: no peer of this identity is here (any more)")
        if self.by_door.get(peer.door) is peer:
            del self.by_door[peer.door]
        peer.door = door
        self.by_door[door] = peer

    def admit(self, peer: Peer) -> None:
        """The peer is warm: it owns its actuators from the next step; what a dead one held passes to it."""
        for i in peer.actuators:
            before = self._owner[i]
            if before is not None and before is not peer:
                before.actuators.remove(i)
                before.index = {name: j for name, j in before.index.items() if j != i}
                before.forget_queue()  # it may have come back meanwhile, and be at work
                if not before.actuators:
                    self._forget(before)  # with its right to tick, if it had it: it was dead
                    self.displaced.append((before, peer.name))
            self._owner[i] = peer
            self.claimed[i] = True
        peer.state, peer.ready = LIVE, False
        peer.fresh = True  # it has not been asked for the present step
        self.changes += 1
        if peer.actuators and peer not in self.claimants:
            self.claimants.append(peer)
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

    def release(self, peer: Peer) -> None:
        """The peer said bye, or never became warm: its actuators are free."""
        for i in peer.actuators:
            if self._owner[i] is peer:
                self._owner[i] = None
                self.claimed[i] = False
        self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        peer.state = DEAD
        self.changes += 1
        if peer in self.all:
            self.all.remove(peer)
            if len(self.gone) < MOST_PEERS and (peer.commands or peer.observer):
                self.gone.append(peer.summary() | {"state": "gone"})
        if peer in self.claimants:
            self.claimants.remove(peer)
        if peer in self.listeners:
            self.listeners.remove(peer)
        if self.ticker is peer:
            self.ticker = None
        self.by_identity.pop(peer.identity, None)
        if self.by_door.get(peer.door) is peer:
            del self.by_door[peer.door]

    def _drop_one_observer(self) -> bool:
        """Observers leave no trace when they go: the oldest gives way."""
        for peer in self.all:
            if peer.observer:
                self._forget(peer)
                return True
        return False
