"""Peers of the plant: their states, claims, and limits."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic_ns
from typing import Any

import numpy as np

from rtmms.base.errors import UnknownNameError
from rtmms.loop.impairment import ImpairedLink
from rtmms.plant.protocol import Channel
from rtmms.wire.plant.multirate import Multirate
from rtmms.wire.plant.state_message import PatternMatcher, Selection
from rtmms.wire.protocol.hello import Hello
from rtmms.wire.protocol.limits import MAX_AHEAD_STEPS, MAX_SILENCES, WARM_STEPS
from rtmms.wire.protocol.messages import Reason, Refusal

# One peer, as the plant knows it. Its size is fixed and does not depend on the peer's messages.


MAX_MESSAGES_1_S = 50


class RateLimit:
    """Token bucket that fills with MAX_MESSAGES_1_S tokens a second.

    Parameters
    ----------
    burst : int
        Most tokens in the bucket.
    """

    __slots__ = ("_burst", "_left", "_since_ns")

    def __init__(self, burst: int) -> None:
        self._burst, self._left, self._since_ns = burst, float(burst), monotonic_ns()

    def take(self, now_ns: int) -> bool:
        """Take a token, if there is one.

        Parameters
        ----------
        now_ns : int
            Present instant of CLOCK_MONOTONIC, ns.

        Returns
        -------
        bool
            Whether there was a token.
        """
        self._left = min(self._burst, self._left + (now_ns - self._since_ns) * 1e-9 * MAX_MESSAGES_1_S)
        self._since_ns = now_ns
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


WARMING, READY, LIVE, DEAD, GONE = "warming", "ready", "live", "dead", "gone"
"""States of a peer.

WARMING: it answers the warm-up. READY: it is warm, and is admitted between two steps. LIVE: it works, or observes.
DEAD: its connection broke or it has long sent nothing, but its claim remains. GONE: it sent bye, or lost its place.
"""

WARM, ADMITTED, LOST, RECEIVED, LEFT = "warm", "admitted", "lost", "received", "left"
"""Events of a peer.

WARM: it answered the last warm-up state. ADMITTED: a step may begin. LOST: it died. RECEIVED: it sent a message. LEFT:
it leaves.
"""

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
    """State machine of one peer.

    Only this class writes `state`.

    Parameters
    ----------
    observer : bool
        Whether the peer claims nothing, so that it needs no warm-up.

    Attributes
    ----------
    state : str
        WARMING, READY, LIVE, DEAD or GONE.
    """

    __slots__ = ("state",)

    def __init__(self, observer: bool) -> None:
        self.state = LIVE if observer else WARMING

    def on(self, event: str) -> None:
        """Change the state after an event.

        Parameters
        ----------
        event : str
            WARM, ADMITTED, LOST, RECEIVED or LEFT.

        Raises
        ------
        RuntimeError
            If the event cannot follow in this state; no message of a peer can cause this.
        """
        state = _BECOMES.get((self.state, event))
        if state is None:
            raise RuntimeError(f"a peer in state {self.state} cannot have the event '{event}'")
        self.state = state


ERROR_BURST = 10


class Peer(PeerState):
    """Peer that sent a hello with the session's token.

    Parameters
    ----------
    hello : Hello
        Its hello.
    exchange_id : bytes
        Its routing id on the exchange socket.
    index : dict[str, int]
        Indices of its actuators by name.
    selection : Selection
        States with its outputs.
    now_ns : int
        Present instant of CLOCK_MONOTONIC, ns.
    prefix : str, default ''
        First characters of its names in the whole plant.

    Attributes
    ----------
    identity : bytes
        Its routing id on the step socket. The plant creates it, and only the peer knows it.
    asked : Hello
        Its hello.
    key : bytes
        Key of its connection; b"" if none was required.
    actuators : list of int
        Actuators that it holds; `index` has the same by name.
    settable : dict
        Its parameters that can change while it runs, with their values as last reported.
    figures : dict
        Its last reported metrics.
    warm_step : int
        The warm-up state that it must answer.
    owed : int
        States sent since its last message.
    probes : int
        The same, on the present connection.
    early : bool
        Whether its command for the next step has come (free mode).
    last_frame : bytes
        Its last good command, as it came.
    link : ImpairedLink or None
        Impairment of its messages; None for none.
    multirate : Multirate
        When it owes a command, and for which step.
    ticks : bool
        Whether it sends the ticks of the mode external.
    tick_seq : int
        Number of its newest tick.
    message_count : int
        Messages that were read one by one since the step began.
    floods : int
        Consecutive steps with too many messages.
    queue : dict
        Commands for coming steps, MAX_AHEAD_STEPS at most: seq, values, arrival and expiry by step.
    expiry_ns : int
        Instant from which the present values are stale, CLOCK_MONOTONIC, ns; 0 for never.
    is_stale : bool
        Whether they are stale at the present step.
    stale, missed : int
        Steps with stale values, and steps without its command in time.
    connected, first_command, left : int
        Step of its admission, of its first command, and of its bye; -1 for none.
    lost : list of int
        Steps in which it died, the first MAX_SILENCES of them.
    restarts : int
        Number of its returns.
    watch : dict or None
        Last report about its own peer, see `read_watch`.
    error : tuple or None
        Next error to be sent: code, text, unknown name.
    refusal : str
        Text of the last refusal.
    rejected : int
        Number of refusals.
    refused_step : int
        Step of the last refusal.
    """

    __slots__ = (
        "actuators", "answers", "asked", "claim", "clamped", "commands", "connected", "early", "error",
        "error_ns", "exchange_id", "expiry_ns", "figures", "first_command", "floods", "fresh", "identity",
        "index", "is_stale", "key", "last_frame", "late", "left", "link", "lost", "message_count", "missed",
        "multirate", "name", "observer", "owed", "prefix", "probe_ns", "probes", "queue", "refusal",
        "refused_step", "rejected", "restarts", "selection", "seq", "settable", "since_ns", "skipped", "stale",
        "starved", "tick_seq", "ticks", "warm_step", "watch",
    )  # fmt: skip

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
        self.identity = b"\x01" + secrets.token_bytes(15)  # ZeroMQ reserves ids that begin with 0
        self.key = b""
        self.multirate = Multirate(hello.every, hello.delay, hello.interpolation)
        self.link: ImpairedLink | None = None
        self.index = index
        self.actuators: list[int] = list(index.values())
        self.ticks = hello.ticks
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
        """Record that the peer is dead: another one may now replace it, until it sends a message.

        Parameters
        ----------
        step : int
            The present step.
        starved : bool, default False
            Whether its connection still exists, so that its process may be there and not run.
        """
        self.on(LOST)
        if len(self.lost) < MAX_SILENCES:
            self.lost.append(step)
        self.starved = starved
        self.forget_queue()

    def comes_back(self) -> None:
        """Record a message of a dead peer that nobody has replaced."""
        self.on(RECEIVED)
        self.restarts += 1

    def forget_queue(self) -> None:
        """Discard its commands for coming steps."""
        self.queue.clear()

    def queue_up(self, step: int, seq: int, values: dict[str, float], now: int, expiry_ns: int) -> None:
        """Store a command for a coming step.

        Commands for past steps are discarded first.

        Parameters
        ----------
        step : int
            Step of the command.
        seq : int
            Number of the command.
        values : dict[str, float]
            Values by name of the actuator.
        now : int
            The present step.
        expiry_ns : int
            Instant from which the values are stale, CLOCK_MONOTONIC, ns; 0 for never.

        Raises
        ------
        Refusal
            If too many commands wait.
        """
        if len(self.queue) >= MAX_AHEAD_STEPS and step not in self.queue:
            for past in [item for item in self.queue if item < now]:
                del self.queue[past]
            if len(self.queue) >= MAX_AHEAD_STEPS:
                raise Refusal(
                    Reason.TOO_EARLY, f"command: {MAX_AHEAD_STEPS} commands of this peer already wait for later steps"
                )
        self.queue[step] = (seq, values, monotonic_ns(), expiry_ns)

    def refused(self, text: str, step: int = -1) -> None:
        """Record a refusal.

        Parameters
        ----------
        text : str
            Its text.
        step : int, default -1
            The present step, if a command was refused.
        """
        self.rejected += 1
        self.refusal, self.refused_step = text, step

    def summary(self) -> dict[str, Any]:
        """Return the peer's counts for the report.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        return {
            "name": self.name, "claim": list(self.claim), "state": self.state,
            "starved": self.state is DEAD and self.starved, "commands": self.commands,
            "late": self.late, "every": self.multirate.every, "delay": self.multirate.delay, "clamped": self.clamped,
            "rejected": self.rejected, "refusal": self.refusal, "states_withheld": self.skipped,
            "settable": dict(self.settable), "metrics": dict(self.figures), "figures": dict(self.figures),
        }  # fmt: skip


def timeline(peer: Peer, step: int, dt: float, free: bool) -> dict[str, Any]:
    """Return the times of a peer and its steps by outcome, for the report.

    If a bridge watches its own peer, the first command, the silences and the losses are those of that peer.

    Parameters
    ----------
    peer : Peer
        The peer.
    step : int
        The last step for which commands were collected.
    dt : float
        Simulated time of a step, s.
    free : bool
        Whether no step waits for the peer; then only steps with a new command count.

    Returns
    -------
    dict[str, Any]
        Times in simulated s, counts, and the list of events.
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
    times : Mapping[str, Any]
        connected_s, first_command_s, silences and losses of the peer, simulated s.
    silent : bool
        Whether its last silence continues.
    left_s : float | None
        Time of its bye, simulated s.

    Returns
    -------
    list[dict[str, Any]]
        Entries with t_s and event: connected, first_command, silent (with length_s), resumed, lost, restarted, left. A
        lost peer restarted if a message of it came after the loss.
    """
    result: list[tuple[float, str, dict[str, Any]]] = []
    for name, key in (("connected", "connected_s"), ("first_command", "first_command_s")):
        if times[key] is not None:
            result.append((times[key], name, {}))
    losses, silences = times["losses"], times["silences"]
    result += [(at, "lost", {}) for at in losses]
    for k, silence in enumerate(silences):
        begin, length = silence["begin_s"], silence["length_s"]
        result.append((begin, "silent", {"length_s": length}))
        if not (silent and k == len(silences) - 1):
            back = any(begin <= at <= begin + length for at in losses)
            result.append((begin + length, "restarted" if back else "resumed", {}))
    if left_s is not None:
        result.append((left_s, "left", {}))
    result.sort(key=lambda item: item[0])
    return [{"t_s": at, "event": event, **more} for at, event, more in result]


class MissingPeer:
    """Peer without a command at a deadline; see rtmms.loop.ports.SilentPeer.

    Parameters
    ----------
    peer : Peer
        The peer.
    step : int
        The step.

    Attributes
    ----------
    refused : bool
        Whether the plant refused a command of it in this step.
    """

    __slots__ = ("_commands", "_peer", "refused")

    def __init__(self, peer: Peer, step: int) -> None:
        self._peer, self._commands, self.refused = peer, peer.commands, peer.refused_step == step

    @property
    def gone(self) -> bool:
        """Whether the peer has left or died, and has sent no command since."""
        return self._peer.state in (DEAD, GONE) and self._peer.commands == self._commands

    @property
    def starved(self) -> bool:
        """Whether its connection exists, so that its process may be there and not run."""
        return self._peer.starved


# The claims: all peers, their actuators, and how a claim passes to another peer. This code has no socket.


MAX_PEERS = 64
RESERVED_OBSERVERS = 1
"""Places beyond MAX_PEERS for an observer with the token, so that `status` and `stop` are always possible."""


class Peers:
    """All peers, and the owner of each actuator.

    Parameters
    ----------
    actuators : Sequence[Channel]
        The plant's actuators.
    links : Mapping[str, ImpairedLink] | None, optional
        Impaired links by the name of the peer.

    Attributes
    ----------
    claimed : (n_actuators,) bool array
        Whether an admitted peer holds the actuator, dead or alive.
    claimants : list of Peer
        Admitted peers that hold actuators, in the order of their admission.
    linear : list of Peer
        Claimants whose values are reached over several steps.
    listeners : list of Peer
        Peers that receive every state: the claimants, and a peer that only ticks.
    ticker : Peer or None
        The peer that may tick (mode external).
    gone : list of dict
        Summaries of the peers that left.
    changes : int
        Number of arrivals and departures.
    departed : collection of bytes
        Identities of peers that sent bye, whose late messages are not a stranger's.
    links : dict
        Impaired links by the name of the peer.
    present_step : callable
        Returns the step for which commands count. The owner sets it.
    last_step : callable
        Returns the last step for which all commands were collected. The owner sets it.
    dt : float
        Simulated time of a step, s. The owner sets it.
    free : bool
        Whether the mode is free. The owner sets it.
    displaced : list of (Peer, str)
        Peers that lost all actuators to another one, with its name.
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
        self.departed: deque[bytes] = deque(maxlen=MAX_PEERS)
        self.displaced: list[tuple[Peer, str]] = []
        self.changes = 0
        self.dt, self.free = 0.0, False
        self.present_step: Callable[[], int] = lambda: -1
        self.last_step: Callable[[], int] = lambda: -1

    def summary(self, peer: Peer) -> dict[str, Any]:
        """Return a peer's entry in the report.

        Parameters
        ----------
        peer : Peer
            The peer.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        return peer.summary() | timeline(peer, self.last_step(), self.dt, self.free)

    def match(self, claim: Iterable[str], prefix: str = "") -> dict[str, int]:
        """Return the actuators that patterns name, in the plant's order.

        Parameters
        ----------
        claim : Iterable[str]
            The patterns.
        prefix : str, default ''
            First characters of the actuators that the patterns may name.

        Returns
        -------
        dict[str, int]
            Indices by name without the prefix.

        Raises
        ------
        Refusal
            If a pattern names no actuator.
        """
        by_plain_name = {name.removeprefix(prefix): i for name, i in self._names.items() if name.startswith(prefix)}
        wanted: set[str] = set()
        matching = PatternMatcher()
        for pattern in claim:
            result = matching.matched(pattern, by_plain_name)
            if not result:
                raise Refusal(
                    Reason.UNKNOWN_ACTUATOR,
                    "hello: claim: " + str(UnknownNameError("actuator", pattern, by_plain_name)),
                )
            wanted.update(result)
        return {name: i for name, i in by_plain_name.items() if name in wanted}

    def came(self, identity: bytes) -> None:
        """Record a new connection of a peer.

        Parameters
        ----------
        identity : bytes
            Its routing id on the step socket.
        """
        peer = self.by_identity.get(identity)
        if peer is not None:
            peer.probes = 0

    def known(self, name: str) -> bool:
        """Return whether the whole plant has an actuator.

        Parameters
        ----------
        name : str
            Name of the actuator.

        Returns
        -------
        bool
            True if it has.
        """
        return name in self._names

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all actuators."""
        return tuple(self._names)

    def welcome(
        self, hello: Hello, exchange_id: bytes, selection: Selection, now_ns: int, prefix: str = ""
    ) -> Peer:  # fmt: skip
        """Create a peer with its actuators reserved but not yet claimed.

        Parameters
        ----------
        hello : Hello
            Its hello.
        exchange_id : bytes
            Its routing id on the exchange socket.
        selection : Selection
            States with its outputs.
        now_ns : int
            Present instant of CLOCK_MONOTONIC, ns.
        prefix : str, default ''
            First characters of its names in the whole plant.

        Returns
        -------
        Peer
            The new peer.

        Raises
        ------
        Refusal
            If another live peer holds its actuators or ticks, or if there are too many peers.
        """
        index = self.match(hello.claim, prefix)
        for name, i in index.items():
            for other in self.all:
                if i in other.actuators and other.state is not DEAD and other.exchange_id != exchange_id:
                    raise Refusal(
                        Reason.CLAIM_HELD, f"hello: actuator '{name}' is claimed by peer '{other.name}' already"
                    )
        if hello.ticks:
            for other in self.all:
                if other.ticks and other.state is not DEAD and other.exchange_id != exchange_id:
                    raise Refusal(
                        Reason.CLAIM_HELD,
                        f"hello: expected one peer that sends ticks, got a second; peer '{other.name}' sends them "
                        "already",
                    )
        earlier = self.by_exchange_id.get(exchange_id)
        if earlier is not None:
            self.release(earlier)
        observes = not index and not hello.ticks
        is_full = not observes and sum(not item.observer for item in self.all) >= MAX_PEERS
        if is_full or (len(self.all) >= MAX_PEERS + RESERVED_OBSERVERS * observes and not self._drop_one_observer()):
            raise Refusal(Reason.BUSY, f"hello: the plant has {MAX_PEERS} peers already, its maximum")
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
        used = {peer.name for peer in self.all if peer.state is not DEAD and not peer.observer}
        numbered = (f"{name}-{number}" for number in range(2, MAX_PEERS + 2))
        return name if name not in used else next(item for item in numbered if item not in used)

    def known_again(self, identity: bytes, exchange_id: bytes) -> None:
        """Store the new connection of a peer at the exchange socket.

        Parameters
        ----------
        identity : bytes
            Its routing id on the step socket.
        exchange_id : bytes
            Its new routing id on the exchange socket.

        Raises
        ------
        Refusal
            If there is no such peer.
        """
        peer = self.by_identity.get(identity)
        if peer is None:
            raise Refusal(Reason.TOKEN, "hello: the plant has no peer of this identity; send a hello without identity")
        if self.by_exchange_id.get(peer.exchange_id) is peer:
            del self.by_exchange_id[peer.exchange_id]
        peer.exchange_id = exchange_id
        self.by_exchange_id[exchange_id] = peer

    def admit(self, peer: Peer) -> None:
        """Give a warm peer its actuators from the next step on.

        Actuators of a dead peer pass to it.

        Parameters
        ----------
        peer : Peer
            The peer.
        """
        for i in peer.actuators:
            before = self._owner[i]
            if before is not None and before is not peer:
                before.actuators.remove(i)
                before.index = {name: j for name, j in before.index.items() if j != i}
                before.multirate.drop(i)
                before.forget_queue()  # it may have come back meanwhile, and work again
                if not before.actuators:
                    self._forget(before)  # including its right to tick, if it had that: it was dead
                    self.displaced.append((before, peer.name))
            self._owner[i] = peer
            self.claimed[i] = True
        peer.on(ADMITTED)
        peer.connected = self.present_step() + 1
        peer.link = self.links.get(peer.name) if peer.actuators else None
        if peer.link is not None:
            peer.link.forget()
        peer.fresh = True  # it has not received a state of the present step
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
        """Let a peer tick from now on.

        An earlier ticker that did nothing else loses its place.

        Parameters
        ----------
        peer : Peer
            The peer.
        """
        before, self.ticker, peer.ticks = self.ticker, peer, True
        if before is not None and before is not peer:
            before.ticks = False
            if not before.actuators:
                self._forget(before)
                self.displaced.append((before, peer.name))

    def depart(self, peer: Peer) -> None:
        """Release a peer that sent bye.

        Its last commands on the other socket may still be unread.

        Parameters
        ----------
        peer : Peer
            The peer.
        """
        self.departed.append(peer.identity)
        self.release(peer)

    def release(self, peer: Peer) -> None:
        """Free the actuators of a peer that left or never became warm.

        Parameters
        ----------
        peer : Peer
            The peer.
        """
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
            if len(self.gone) < MAX_PEERS and (peer.commands or peer.observer):
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
        """Remove the oldest observer, and return whether there was one; observers leave no entry."""
        for peer in self.all:
            if peer.observer:
                self._forget(peer)
                return True
        return False
