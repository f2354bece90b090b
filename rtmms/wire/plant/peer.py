"""One peer, as the plant knows it: its size is fixed, nothing in it grows with what the peer sends."""

from __future__ import annotations

import secrets
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from rtmms.wire.plant.selection import Selection
from rtmms.wire.protocol.limits import AHEAD_STEPS, WARM_STEPS
from rtmms.wire.protocol.messages import LINEAR, Hello, Reason, Refused

if TYPE_CHECKING:
    from rtmms.loop.impairment import ImpairedLink
    from rtmms.loop.ports import Array


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
or it has long said nothing, but its claim is kept; it said bye, or lost its place to another one."""

WARM, ADMITTED, LOST, HEARD, LEFT = "warm", "admitted", "lost", "heard", "left"
"""What happens: the last warm-up state is answered; a step may begin; it died; a message of it came; it leaves."""

_BECOMES = {
    (WARMING, WARM): READY,
    (READY, ADMITTED): LIVE,
    (LIVE, LOST): DEAD,
    (DEAD, HEARD): LIVE,
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
    """One that said hello with the session's token.

    identity    its routing id on the step socket, made by us and known to it alone
    exchange_id        its routing id on the exchange socket
    asked       its hello
    key         the key by which it came in, b"" where none was asked for
    actuators   indices it holds; `index` is the same by name
    settable    its own parameters that can change while it runs, as it told their values last
    figures     what it told of itself last
    warm_step   the warm-up state it owes an answer to
    owed        states sent since its last message;  probes  likewise, and on this connection
    early       its command for the next step has come (free mode)
    heard       its last good command, as it came
    link        what impairs its messages; None for nothing
    turns       when it is asked for a command, and for which step
    ticks       it sends the ticks of the mode external, or asked to (wants_ticks);  tick_seq  of the newest
    said        messages of it that were read one by one since the step began;  floods  steps on end with too many
    queue       commands for steps ahead, AHEAD_STEPS at most, by step: (seq, values, came at)
    error       the next one to be told: (code, text, unknown name);  told  how many it may be told beside the steps
    refusal     the text of the last one;  rejected  how many there were;  refused_step  step in which it was
    """

    __slots__ = (
        "actuators", "asked", "claim", "clamped", "commands", "early", "error", "error_ns", "exchange_id", "figures",
        "floods", "fresh", "heard", "identity", "index", "key", "late", "link", "multirate", "name", "observer", "owed",
        "prefix", "probe_ns", "probes", "queue", "refusal", "refused_step", "rejected", "said", "selection", "seq",
        "settable", "since_ns", "skipped", "starved", "tick_seq", "ticks", "told", "wants_ticks", "warm_step",
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
        self.heard = b""
        self.owed = self.probes = self.said = self.floods = 0
        self.fresh = False
        self.queue: dict[int, tuple[int, dict[str, float], int]] = {}
        self.since_ns = self.probe_ns = now_ns
        self.error: tuple[str, str, str] | None = None
        self.error_ns, self.refusal, self.refused_step = 0, "", -1
        self.told, self.starved = RateLimit(ERROR_BURST), False
        self.commands = self.late = self.clamped = self.rejected = self.skipped = 0

    def dies(self, *, starved: bool = False) -> None:
        """It has gone, or long said nothing: until its next message another one may take its place.

        starved   its connection stands: its process may be there, and not run"""
        self.on(LOST)
        self.starved = starved
        self.forget_queue()

    def forget_queue(self) -> None:
        self.queue.clear()

    def queue_up(self, step: int, seq: int, values: dict[str, float], now: int) -> None:
        """Keep a command for a step ahead; Refused when too many wait. Those of steps that are past give way."""
        if len(self.queue) >= AHEAD_STEPS and step not in self.queue:
            for past in [one for one in self.queue if one < now]:
                del self.queue[past]
            if len(self.queue) >= AHEAD_STEPS:
                raise Refused(Reason.TOO_EARLY, f"command: {AHEAD_STEPS} commands of yours wait for their steps")
        self.queue[step] = (seq, values, monotonic_ns())

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
            "settable": dict(self.settable), "figures": dict(self.figures),
        }  # fmt: skip


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
