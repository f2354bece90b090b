"""Peers as the plant knows them: states, claims, allowances."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.errors import UnknownNameError
from rtmms.loop.impairment import ImpairedLink
from rtmms.plant.protocol import Channel
from rtmms.wire.plant.state_message import Matching, Selection
from rtmms.wire.protocol.messages import AHEAD_STEPS, LINEAR, MAX_SILENCES, WARM_STEPS, Hello, Reason, Refused
from rtmms.wire.protocol.port import Answering, Holding

if TYPE_CHECKING:
    from rtmms.loop.ports import Array


# One peer, as the plant knows it: its size is fixed, nothing in it grows with what the peer sends.


ALLOWED_A_SECOND = 50


class RateLimit:
    """A bucket of `burst` tokens that fills by ALLOWED_A_SECOND a second; a flood takes what comes in, and no more."""

    __slots__ = ("_burst", "_left", "_since_ns")

    def __init__(self, burst: int) -> None:
        self._burst, self._left, self._since_ns = burst, float(burst), monotonic_ns()

    def take(self, now_ns: int) -> bool:
        """Whether it may be done now; counted if so."""
        self._left = min(self._burst, self._left + (now_ns - self._since_ns) * 1e-9 * ALLOWED_A_SECOND)
        self._since_ns = now_ns
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Multirate:
    """A claimant's.

    every    steps from state to state;  delay  steps from a state to the one that its command is for
    plain    a state a step, answered within it: there is nothing to look up
    linear   values are reached in equal parts over the `every` steps from theirs on; else at once
    """

    __slots__ = ("_first", "_ways", "delay", "every", "linear", "plain")

    def __init__(self, every: int, delay: int, interpolation: str) -> None:
        self.every, self.delay, self.linear = every, delay, interpolation == LINEAR
        self.plain = every == 1 and delay == 0
        self._first = -1
        self._ways: dict[int, tuple[int, float | None, float]] = {}  # of an actuator: first step, from where, to where

    def forget(self) -> None:
        """It was asked for nothing yet, and nothing is on its way: the loop went back."""
        self._first = -1
        self._ways.clear()

    def asks(self, step: int) -> bool:
        """The state of this step is one of its own."""
        return step % self.every == 0

    def asked(self, step: int) -> None:
        """That state goes out."""
        if self._first < 0:
            self._first = step

    def owes(self, step: int) -> bool:
        """Its command for this step was asked for. Without a delay that is asked with the step itself."""
        since = step - self.delay
        return since % self.every == 0 and (self.delay == 0 or 0 <= self._first <= since)

    # -- between two commands ----------------------------------------------------------------------------------------

    def aim(self, actuator: int, step: int, goal: float) -> None:
        """From `step` on, the actuator goes from where it is then to a value of a command."""
        self._ways[actuator] = (step, None, goal)

    def move(self, step: int, command: Array) -> None:
        """Write the values of this step; again for the same step: the same."""
        for actuator, (begun, start, goal) in list(self._ways.items()):
            parts = step - begun + 1
            if start is None:
                start = float(command[actuator])
                self._ways[actuator] = (begun, start, goal)
            if parts < self.every:
                command[actuator] = start + (goal - start) * (parts / self.every)
            else:
                command[actuator] = goal
                if parts > self.every:
                    del self._ways[actuator]

    def drop(self, actuator: int) -> None:
        """It is another one's now."""
        self._ways.pop(actuator, None)


WARMING, READY, LIVE, DEAD, GONE = "warming", "ready", "live", "dead", "gone"
"""Answering the warm-up; done with it, to be admitted between two steps; at work, or an observer; its connection broke
or it has long sent nothing, but its claim is kept; it sent bye, or lost its place to another one."""

WARM, ADMITTED, LOST, RECEIVED, LEFT = "warm", "admitted", "lost", "received", "left"
"""What happens: the last warm-up state is answered; a step may begin; it died; a message of it came; it leaves."""

_BECOMES = {
    (WARMING, WARM): READY,
    (READY, ADMITTED): LIVE,
    (LIVE, LOST): DEAD,
    (DEAD, RECEIVED): LIVE,
    (WARMING, LEFT): GONE,
    (READY, LEFT): GONE,
    (LIVE, LEFT): GONE,
    (DEAD, LEFT): GONE,
}


class PeerState:
    """One peer's. Nobody else writes `state`; RuntimeError for what is not in the table, which none of a peer's words
    can bring about."""

    __slots__ = ("state",)

    def __init__(self, observer: bool) -> None:
        self.state = LIVE if observer else WARMING

    def on(self, event: str) -> None:
        """This has happened."""
        state = _BECOMES.get((self.state, event))
        if state is None:
            raise RuntimeError(f"a peer that is {self.state} cannot become what follows '{event}'")
        self.state = state


ERROR_BURST = 10


class Peer(PeerState):
    """One that sent a hello with the session's token.

    identity    its routing id on the step socket, made by us and known to it alone
    exchange_id        its routing id on the exchange socket
    asked       its hello
    key         the key by which it came in, b"" where none was asked for
    actuators   indices it holds; `index` is the same by name
    settable    its own parameters that can change while it runs, with their values as last reported
    figures     the metrics that it last reported
    warm_step   the warm-up state it owes an answer to
    owed        states sent since its last message;  probes  likewise, and on this connection
    early       its command for the next step has come (free mode)
    last_frame  its last good command, as it came
    link        what impairs its messages; None for nothing
    turns       when it is asked for a command, and for which step
    ticks       it sends the ticks of the mode external, or asked to (wants_ticks);  tick_seq  of the newest
    message_count  messages of it that were read one by one since the step began;  floods  steps on end with too many
    queue       commands for steps ahead, AHEAD_STEPS at most, by step: (seq, values, came at, expiry)
    expiry_ns   instant from which the values in use are stale, 0 for never;  is_stale  at the present step
    stale, missed   steps with old values of its, and without its command in time
    connected, first_command, left   steps: the first that it holds actuators in, that of its first command, the one in
                which it left; -1 for none
    lost        steps in which it died, the first MAX_SILENCES of them;  restarts  how often it came back
    watch       what it reported of its own peer last, see `read_watch`; None for nothing
    error       the next one to be sent: (code, text, unknown name)
    refusal     the text of the last one;  rejected  how many there were;  refused_step  step in which it was
    """

    __slots__ = (
        "actuators", "answers", "asked", "claim", "clamped", "commands", "connected", "early", "error",
        "error_ns", "exchange_id", "expiry_ns", "figures", "first_command", "floods", "fresh", "identity",
        "index", "is_stale", "key", "last_frame", "late", "left", "link", "lost", "message_count", "missed",
        "multirate", "name", "observer", "owed", "prefix", "probe_ns", "probes", "queue", "refusal",
        "refused_step", "rejected", "restarts", "selection", "seq", "settable", "since_ns", "skipped", "stale",
        "starved", "tick_seq", "ticks", "wants_ticks", "warm_step", "watch",
    )  # fmt: skip  # fmt: skip

    def __init__(
        self,
        hello: Hello,
        exchange_id: bytes,
        index: dict[str, int],
        selection: Selection,
        now_ns: int,
        prefix: str = "",
    ) -> None:
        self.name, self.claim, self.exchange_id, self.selection = hello.name, hello.claim, exchange_id, selection
        self.asked, self.prefix = hello, prefix
        self.settable: dict[str, Any] = dict(hello.settable)
        self.figures: dict[str, Any] = {}
        self.identity = b"\x01" + secrets.token_bytes(15)  # ZeroMQ keeps ids that begin with 0 for itself
        self.key = b""
        self.multirate = Multirate(hello.every, hello.delay, hello.interpolation)
        self.link: ImpairedLink | None = None
        self.index = index
        self.actuators: list[int] = list(index.values())
        self.ticks = self.wants_ticks = hello.ticks
        self.observer = not index and not hello.ticks
        super().__init__(self.observer)
        self.warm_step = -WARM_STEPS
        self.seq = self.tick_seq = -1
        self.early = False
        self.last_frame = b""
        self.owed = self.probes = self.message_count = self.floods = 0
        self.fresh = False
        self.queue: dict[int, tuple[int, dict[str, float], int, int]] = {}
        self.expiry_ns, self.is_stale = 0, False
        self.connected = self.first_command = self.left = -1
        self.lost: list[int] = []
        self.restarts = 0
        self.watch: dict[str, Any] | None = None
        self.since_ns = self.probe_ns = now_ns
        self.error: tuple[str, str, str] | None = None
        self.error_ns, self.refusal, self.refused_step = 0, "", -1
        self.answers, self.starved = RateLimit(ERROR_BURST), False
        self.commands = self.late = self.clamped = self.rejected = self.skipped = self.stale = self.missed = 0

    def dies(self, step: int, *, starved: bool = False) -> None:
        """It has gone, or long sent nothing: until its next message another one may take its place.

        step      the present one
        starved   its connection stands: its process may be there, and not run"""
        self.on(LOST)
        if len(self.lost) < MAX_SILENCES:
            self.lost.append(step)
        self.starved = starved
        self.forget_queue()

    def comes_back(self) -> None:
        """A message of it has come after it died, and nobody has taken its place."""
        self.on(RECEIVED)
        self.restarts += 1

    def forget_queue(self) -> None:
        self.queue.clear()

    def queue_up(self, step: int, seq: int, values: dict[str, float], now: int, expiry_ns: int) -> None:
        """Keep a command for a step ahead; Refused when too many wait. Those of steps that are past give way."""
        if len(self.queue) >= AHEAD_STEPS and step not in self.queue:
            for past in [one for one in self.queue if one < now]:
                del self.queue[past]
            if len(self.queue) >= AHEAD_STEPS:
                raise Refused(Reason.TOO_EARLY, f"command: {AHEAD_STEPS} commands of yours wait for their steps")
        self.queue[step] = (seq, values, monotonic_ns(), expiry_ns)

    def refused(self, text: str, step: int = -1) -> None:
        """Something of its was.  step: the present one, of a command"""
        self.rejected += 1
        self.refusal, self.refused_step = text, step

    def summary(self) -> dict[str, Any]:
        """For the final report."""
        return {
            "name": self.name, "claim": list(self.claim), "state": self.state,
            "starved": self.state is DEAD and self.starved, "commands": self.commands,
            "late": self.late, "every": self.multirate.every, "delay": self.multirate.delay, "clamped": self.clamped,
            "rejected": self.rejected, "refusal": self.refusal, "states_withheld": self.skipped,
            "settable": dict(self.settable), "metrics": dict(self.figures), "figures": dict(self.figures),
        }  # fmt: skip


def timeline(peer: Peer, step: int, dt: float, free: bool) -> dict[str, Any]:
    """When a peer came, fell silent, was lost and left, in simulated s, and its steps by outcome; for the report.

    Of a bridge that watches its own peer, the first command, the silences and the losses are those of that peer.

    step, dt   the present step, and its length in s
    free       no step waits for it: only those with a new command count
    """

    def seconds(at: int) -> float | None:
        return None if at < 0 else at * dt

    watch = peer.watch or {"silences": [], "losses": [], "restarts_count": 0, "first_s": seconds(peer.first_command)}
    end = peer.left if peer.left >= 0 else step + 1
    silences = [
        {"begin_s": begin, "begin_step": at, "length_s": max(0.0, end * dt - begin) if length is None else length}
        for begin, at, length in watch["silences"]
    ]
    ended = [silences[-1]["begin_s"]] if silences and watch["silences"][-1][2] is None else []
    ended += [seconds(peer.lost[-1])] if peer.lost and peer.state is DEAD else []
    ended += [seconds(peer.left)] if peer.left >= 0 else []
    held = max(0, end - peer.connected) if peer.connected >= 0 else 0
    if free:
        held = peer.commands
    watched = {
        name: watch[name] for name in ("watched", "learned", "period_s", "silences_count", "losses_count")
    } if peer.watch else None  # fmt: skip
    times: dict[str, Any] = {
        "connected_s": seconds(peer.connected), "first_command_s": watch["first_s"], "silences": silences,
        "losses": sorted([*watch["losses"], *(at * dt for at in peer.lost)]),
        "restarts": watch["restarts_count"] + peer.restarts, "disconnected_s": min(ended, default=None),
    }  # fmt: skip
    steps = {"applied": max(0, held - peer.stale - peer.missed), "stale": peer.stale, "missed": peer.missed}
    still = bool(silences) and watch["silences"][-1][2] is None
    return {**times, "steps": steps, **steps, "timeline": events(times, still, seconds(peer.left)), "watch": watched}


def events(times: Mapping[str, Any], silent: bool, left_s: float | None) -> list[dict[str, Any]]:
    """Return the events of a peer by their time.

    Parameters
    ----------
    times : mapping
        connected_s, first_command_s, silences and losses of the peer, simulated s.
    silent : bool
        Whether its last silence goes on.
    left_s : float or None
        When it announced that it leaves, simulated s.

    Returns
    -------
    list of dict
        t_s and event: connected, first_command, silent (with length_s), resumed, lost, restarted, left. A peer that
        was lost restarted where something came from it after the loss.
    """
    found: list[tuple[float, str, dict[str, Any]]] = []
    for name, key in (("connected", "connected_s"), ("first_command", "first_command_s")):
        if times[key] is not None:
            found.append((times[key], name, {}))
    losses, silences = times["losses"], times["silences"]
    found += [(at, "lost", {}) for at in losses]
    for k, one in enumerate(silences):
        begin, length = one["begin_s"], one["length_s"]
        found.append((begin, "silent", {"length_s": length}))
        if not (silent and k == len(silences) - 1):
            back = any(begin <= at <= begin + length for at in losses)
            found.append((begin + length, "restarted" if back else "resumed", {}))
    if left_s is not None:
        found.append((left_s, "left", {}))
    found.sort(key=lambda one: one[0])
    return [{"t_s": at, "event": event, **more} for at, event, more in found]


class Missing:
    """A peer whose command was not there at a deadline; see rtmms.loop.ports.Silent."""

    __slots__ = ("_commands", "_peer", "refused")

    def __init__(self, peer: Peer, step: int) -> None:
        self._peer, self._commands, self.refused = peer, peer.commands, peer.refused_step == step

    @property
    def gone(self) -> bool:
        return self._peer.state in (DEAD, GONE) and self._peer.commands == self._commands

    @property
    def starved(self) -> bool:
        return self._peer.starved


# Who holds which actuators: all peers, their claims, and how a claim passes on. No socket here.


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
    departed   identities of those that sent bye: what was still under way from them is no stranger's
    links      the impaired ones, by the name of the peer
    present_step, dt, free   returns the step that commands are for; its length in s; the mode: the owner sets them
    displaced  those that lost all they held to another one, and its name, to be reported
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
        self.dt, self.free = 0.0, False
        self.present_step: Callable[[], int] = lambda: -1

    def summary(self, peer: Peer) -> dict[str, Any]:
        """For the final report."""
        return peer.summary() | timeline(peer, self.present_step(), self.dt, self.free)

    def match(self, claim: Iterable[str], prefix: str = "") -> dict[str, int]:
        """The actuators that the patterns name, in the plant's order; Refused for a pattern that names none.

        prefix   of those that it may name, always among them"""
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
        if not observes:
            peer.name = self._own_name(hello.name)
        self.all.append(peer)
        self.by_exchange_id[exchange_id] = peer
        if not peer.observer:
            self.by_identity[peer.identity] = peer
        return peer

    def _own_name(self, name: str) -> str:
        """Return the name, or NAME-2 and so on where others of that name are alive."""
        taken = {peer.name for peer in self.all if peer.state is not DEAD and not peer.observer}
        numbered = (f"{name}-{number}" for number in range(2, MOST_PEERS + 2))
        return name if name not in taken else next(one for one in numbered if one not in taken)

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
        peer.connected = self.present_step() + 1
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
        """The peer sent bye, perhaps on one socket before its last commands on the other one were read."""
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
        peer.left = self.present_step() + 1
        self.changes += 1
        if peer in self.all:
            self.all.remove(peer)
            if len(self.gone) < MOST_PEERS and (peer.commands or peer.observer):
                self.gone.append(self.summary(peer) | {"state": "gone"})
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


# How much of a peer is looked at in a step: one that floods is left unread, and hung up on when it goes on and on.


_EVERY_S, _LEAST = 200e-6, 4
"""To read a message by itself takes some 40 us: together not more than a fifth of a period."""
FLOOD_STEPS = 100


def max_messages(period_s: float) -> int:
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
        if peer.message_count == 0:
            self._spoke.append(peer)
        peer.message_count += 1
        if peer.message_count == self.most and self._holding is not None:
            self._holding.hold(peer.identity)

    def used_up(self, peer: Peer) -> bool:
        """What it may still send is not looked at in this step."""
        return 0 < self.most <= peer.message_count

    def renew(self) -> None:
        """Another step begins."""
        spoke, self._spoke = self._spoke, []
        for peer in spoke:
            if not self.used_up(peer):
                peer.message_count = peer.floods = 0
                continue
            peer.message_count = 0
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
