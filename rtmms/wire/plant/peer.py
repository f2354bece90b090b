"""One peer, as the plant knows it: its size is fixed, nothing in it grows with what the peer sends."""

from __future__ import annotations

import secrets
from time import monotonic_ns
from typing import Any

from rtmms.wire.plant.measure import Measure
from rtmms.wire.plant.selection import Selection
from rtmms.wire.plant.standing import DEAD, GONE, LOST, Standing
from rtmms.wire.plant.turns import Turns
from rtmms.wire.protocol.messages import AHEAD_STEPS, WARM_STEPS, Hello, Reason, Refused

ERROR_BURST = 10


class Peer(Standing):
    """One that said hello with the session's token.

    identity    its routing id on the step socket, made by us and known to it alone
    door        its routing id on the exchange socket
    asked       its hello
    key         the key by which it came in, b"" where none was asked for
    actuators   indices it holds; `index` is the same by name
    settable    its own parameters that can change while it runs, as it told their values last
    warm_step   the warm-up state it owes an answer to
    owed        states sent since its last message;  probes  likewise, and on this connection
    early       its command for the next step has come (free mode)
    heard       its last good command, as it came
    turns       when it is asked for a command, and for which step
    ticks       it sends the ticks of the mode external, or asked to (wants_ticks);  tick_seq  of the newest
    said        messages of it that were read one by one since the step began;  floods  steps on end with too many
    queue       commands for steps ahead, AHEAD_STEPS at most, by step: (seq, values, came at)
    error       the next one to be told: (code, text, unknown name);  told  how many it may be told at the door
    refusal     the text of the last one;  rejected  how many there were
    """

    __slots__ = (
        "actuators", "asked", "claim", "clamped", "commands", "door", "early", "error", "error_ns", "floods", "fresh",
        "heard", "identity", "index", "key", "late", "name", "observer", "owed", "probe_ns", "probes", "queue",
        "refusal", "rejected", "said", "selection", "seq", "settable", "since_ns", "skipped", "tick_seq", "ticks",
        "told", "turns", "wants_ticks", "warm_step",
    )  # fmt: skip

    def __init__(self, hello: Hello, door: bytes, index: dict[str, int], selection: Selection, now_ns: int) -> None:
        self.name, self.claim, self.door, self.selection = hello.name, hello.claim, door, selection
        self.asked = hello
        self.settable: dict[str, Any] = dict(hello.settable)
        self.identity = b"\x01" + secrets.token_bytes(15)  # ZeroMQ keeps ids that begin with 0 for itself
        self.key = b""
        self.turns = Turns(hello.every, hello.delay, hello.between)
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
        self.error_ns, self.refusal = 0, ""
        self.told = Measure(ERROR_BURST)
        self.commands = self.late = self.clamped = self.rejected = self.skipped = 0

    def dies(self) -> None:
        """It has gone, or long said nothing: until its next message another one may take its place."""
        self.on(LOST)
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

    def refused(self, text: str) -> None:
        """Something of its was."""
        self.rejected += 1
        self.refusal = text

    def summary(self) -> dict[str, Any]:
        """For the final report."""
        return {
            "name": self.name, "claim": list(self.claim), "state": self.state, "commands": self.commands,
            "late": self.late, "every": self.turns.every, "delay": self.turns.delay, "clamped": self.clamped,
            "rejected": self.rejected, "refusal": self.refusal, "states_withheld": self.skipped,
            "settable": dict(self.settable),
        }  # fmt: skip


class Missing:
    """A peer whose command was not there at a deadline; see rtmms.loop.ports.Silent."""

    __slots__ = ("_commands", "_peer")

    def __init__(self, peer: Peer) -> None:
        self._peer, self._commands = peer, peer.commands

    @property
    def gone(self) -> bool:
        return self._peer.state in (DEAD, GONE) and self._peer.commands == self._commands
