"""Step socket: states to the claimants, and their commands by the deadline.

This is the critical path of the wire. Only welcomed peers have an identity here; messages of others are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import Applied
from rtmms.base.errors import UnknownNameError
from rtmms.loop.miss_policies import clamp_to_limits
from rtmms.plant.protocol import Channel, CoupledLimit
from rtmms.wire.kernels.step import MAX_READS_AFTER_DEADLINE
from rtmms.wire.plant.allowance import Allowance
from rtmms.wire.plant.handshake import Ticks
from rtmms.wire.plant.peers import DEAD, LIVE, READY, WARM, WARMING, Peer, Peers
from rtmms.wire.protocol.limits import CREDITS, MAX_AHEAD_STEPS, MAX_COMMAND_BYTES
from rtmms.wire.protocol.messages import Reason, Refusal, decode, not_a_message, packer, peer_text
from rtmms.wire.protocol.port import FULL, GONE, MESSAGE, Answering, SocketCallbacks

if TYPE_CHECKING:
    from rtmms.loop.ports import Array, Flags


_HINTS_AMONG = 64
_HINT_LENGTH = 40


def read_head(newest: int, message: Mapping[str, Any]) -> tuple[int, int, dict[str, Any]]:
    """Return seq, step and values of a command.

    Parameters
    ----------
    newest : int
        Newest seq of the peer.
    message : Mapping[str, Any]
        The command.

    Returns
    -------
    tuple[int, int, dict[str, Any]]
        seq, step and values.

    Raises
    ------
    Refusal
        If a field has a wrong type, or if seq does not rise.
    """
    seq, step, values = message.get("seq"), message.get("step"), message.get("values")
    if type(seq) is not int or type(step) is not int or type(values) is not dict:
        raise Refusal(
            Reason.WRONG_TYPE,
            "command: expected whole numbers seq and step, and a map values, got "
            f"{peer_text(seq)}, {peer_text(step)} and {peer_text(values)}",
        )
    if not newest < seq < 1 << 63:
        raise Refusal(Reason.SEQ, f"command: seq must rise; newest {newest}, got {peer_text(seq)}")
    return seq, step, values


LONG_AGO_NS = 1


def read_expiry(message: Mapping[str, Any], now_ns: int) -> int:
    """Return the instant from which the values of a command are stale.

    Parameters
    ----------
    message : Mapping[str, Any]
        The command.
    now_ns : int
        Instant at which it came, CLOCK_MONOTONIC, ns.

    Returns
    -------
    int
        Instant, ns; 0 for never.

    Raises
    ------
    Refusal
        If the age is invalid.
    """
    age_ns, fresh_ns = message.get("age_ns", 0), message.get("fresh_ns", 0)
    if type(age_ns) is not int or type(fresh_ns) is not int or not (0 <= age_ns < 1 << 62 and 0 <= fresh_ns < 1 << 62):
        raise Refusal(
            Reason.WRONG_TYPE,
            "command: expected whole numbers age_ns and fresh_ns from 0 to 2^62 - 1, got "
            f"{peer_text(age_ns)} and {peer_text(fresh_ns)}",
        )
    fresh = message.get("fresh", True)
    if type(fresh) is not bool:
        raise Refusal(Reason.WRONG_TYPE, f"command: fresh: expected true or false, got {peer_text(fresh)}")
    if not fresh:
        return LONG_AGO_NS
    return now_ns + fresh_ns - age_ns if fresh_ns else 0


def check_step(step: int, now: int, behind: int, delay: int = 0) -> int:
    """Return how far a command's step is ahead of the present step.

    Parameters
    ----------
    step : int
        Step of the command.
    now : int
        The present step.
    behind : int
        Most steps behind.
    delay : int, default 0
        Steps from a state to the step for which the peer's command counts.

    Returns
    -------
    int
        Steps ahead; negative if behind.

    Raises
    ------
    Refusal
        If it is too far ahead or behind.
    """
    ahead, maximum = step - now, max(MAX_AHEAD_STEPS, delay)
    if ahead > maximum:
        raise Refusal(
            Reason.TOO_EARLY, f"command: step {peer_text(step)} is more than {maximum} steps ahead of the plant"
        )
    if -ahead > behind:
        raise Refusal(Reason.TOO_LATE, f"command: step {step} is more than {behind} steps behind the plant")
    return ahead


def check_values(index: Mapping[str, int], values: dict[str, Any], warm: bool, known: Callable[[str], bool]) -> None:
    """Check the values of a command, and convert them to float in place.

    Parameters
    ----------
    index : Mapping[str, int]
        Indices of the peer's actuators by name.
    values : dict[str, Any]
        Values by name, changed in place.
    warm : bool
        Whether the peer is warm.
    known : Callable[[str], bool]
        Returns whether the plant has an actuator of a name.

    Raises
    ------
    Refusal
        If a value is not finite, if the peer does not hold an actuator, or before the end of the warm-up.
    """
    for name, value in values.items():
        if name not in index:
            _refuse_name(name, known)
        if type(value) is not float:
            if type(value) is not int:
                raise Refusal(Reason.WRONG_TYPE, f"command: {name}: expected a number, got {peer_text(value)}")
            value = values[name] = float(value)  # integers of msgpack have at most 64 bits
        if not isfinite(value):
            raise Refusal(Reason.NOT_FINITE, f"command: {name}: expected a finite number, got {value}")
    if not index:
        raise Refusal(Reason.NOT_CLAIMED, "command: this peer has no claim; send a hello with claim")
    if not warm:
        raise Refusal(Reason.TOO_EARLY, "command: this peer must first answer the warm-up states (docs/protocol.md)")


def _refuse_name(name: object, known: Callable[[str], bool]) -> None:
    if type(name) is str and known(name):
        raise Refusal(
            Reason.NOT_CLAIMED, f"command: actuator '{name}' is not among the actuators that this peer claims"
        )
    unknown = name if type(name) is str and len(name) <= _HINT_LENGTH else ""
    raise Refusal(Reason.UNKNOWN_ACTUATOR, f"command: there is no actuator {peer_text(name)}", unknown)


def with_hint(text: str, unknown: str, names: Sequence[str]) -> str:
    """Return the text of an error with similar names.

    The search takes some 100 us. So the caller does it in the slack, when it sends the error.

    Parameters
    ----------
    text : str
        Text of the error.
    unknown : str
        The unknown name; empty for none.
    names : Sequence[str]
        Names to search.

    Returns
    -------
    str
        The text.
    """
    if not unknown or len(names) > _HINTS_AMONG:
        return text
    return f"{text}; {str(UnknownNameError('actuator', unknown, names)).partition('; ')[2]}"


_MAX_FREE_READS = 64
_MAX_SLACK_READS = 8
_DEADLINES = 64
_MAX_TICK_READS = 64


class StepPort:
    """States out and commands in, on one socket.

    Parameters
    ----------
    socket : Answering
        The step socket.
    peers : Peers
        All peers.
    actuators : tuple[Channel, ...]
        The plant's actuators.
    free : bool
        Whether the mode is free.
    behind_steps : int
        Commands that are older are refused; younger ones count as late.
    external : bool, default False
        Whether the mode is external.
    max_messages : int, default 0
        Most messages of a peer in a step with a deadline, see `Allowance`.
    coupled : tuple[CoupledLimit, ...], optional
        Limits of two actuators together.

    Attributes
    ----------
    claimed, fresh, renewed : bool array
        As in rtmms.loop.ports.Exchange.
    applied : Applied
        As in rtmms.loop.ports.Exchange.
    ticks : Ticks or None
        Ticks of the mode external; None in all others.
    """

    def __init__(
        self, socket: Answering, peers: Peers, actuators: tuple[Channel, ...], *, free: bool, behind_steps: int,
        external: bool = False, max_messages: int = 0, coupled: tuple[CoupledLimit, ...] = (),
    ) -> None:  # fmt: skip
        self._socket, self._peers, self._free, self._behind = socket, peers, free, behind_steps
        self.free = free
        self._allowance = Allowance(socket, max_messages, self.count, self._expel)
        self._lower = [-inf if a.lower is None else float(a.lower) for a in actuators]
        self._upper = [inf if a.upper is None else float(a.upper) for a in actuators]
        self.coupled = coupled
        self._neutral = [float(a.neutral) for a in actuators]
        self._pack = packer()
        self.claimed: Flags = peers.claimed
        self.fresh: Flags = np.zeros(len(actuators), dtype=np.bool_)
        self.renewed: Flags = np.zeros(len(actuators), dtype=np.bool_)
        self.applied = Applied()
        self.ticks = Ticks(peers) if external else None
        self.rejected: dict[str, int] = {}
        self.late = 0
        self._step, self._round = -1, 0
        self._missing = self._peer_changes = 0
        self._first = True
        self._deadline_ns = 0
        self._deadlines = [(-1, 0)] * _DEADLINES
        self._command: Array | None = None
        self._dated = False  # some peer has stated the age of its values
        self._held: dict[int, float] = {}
        self._held_note: tuple[int, int, int, bool] | None = None
        self._done = False
        self._ready = False
        socket.attend(SocketCallbacks(peers.by_identity.__contains__, peers.came, self.count), MAX_COMMAND_BYTES)

    # -- out ---------------------------------------------------------------------------------------------------------

    def publish(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:
        """Send the state to the claimants.

        Parameters
        ----------
        step : int
            Index of the step.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        outputs : Mapping[str, Array]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
        if self._ready:
            self.admit_ready()
        self.begin(step, deadline_ns)
        self._round += 1
        for peer in self._peers.listeners:
            if peer.link is not None:
                self._send_impaired(peer, step, time, deadline_ns, budget_ns, outputs, applied)
                continue
            turns = peer.multirate
            if not turns.plain and not self._free:
                if not turns.asks(step):
                    continue
                turns.asked(step)
            if peer.state is DEAD:
                continue
            if peer.owed > self.credits_of(peer):
                peer.skipped += not self._free
                continue
            self._pack_state(peer, step, time, deadline_ns, budget_ns, outputs, applied)
            peer.owed += 1
            self.transmit(peer, peer.selection.payload)

    def _pack_state(
        self, peer: Peer, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array],
        applied: Applied,
    ) -> None:  # fmt: skip
        """Pack the state into the payload of its selection, once for all peers that share it."""
        selection = peer.selection
        if selection.round != self._round:  # not the step, which is the same again after a reset
            selection.due(step, time, deadline_ns, budget_ns, outputs, applied)
            selection.round = self._round

    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:  # fmt: skip
        """Pack, in the slack, the state that `publish` will send at the instant of its step.

        Parameters
        ----------
        step : int
            Index of the step; -1 discards the prepared state.
        time : float
            Simulated time of the state, s.
        deadline_ns : int
            Deadline for the commands, CLOCK_MONOTONIC, ns; 0 for none.
        outputs : Mapping[str, Array]
            The plant's outputs by name.
        applied : Applied
            Results of the step before.
        """
        self._round += 1
        for peer in self._peers.listeners:
            if peer.selection.round != self._round and (peer.multirate.asks(step) or step < 0 or self._free):
                peer.selection.prepare(step, time, deadline_ns, outputs, applied)
                peer.selection.round = self._round
        if deadline_ns:
            self._socket.arm(deadline_ns)

    def transmit(self, peer: Peer, payload: bytes) -> bool:
        """Send a message without waiting.

        A peer whose connection has closed is dead within a step.

        Parameters
        ----------
        peer : Peer
            The peer.
        payload : bytes
            The packed message.

        Returns
        -------
        bool
            False if the peer is not connected.
        """
        became = self._socket.send(peer.identity, payload)
        if became == FULL:
            peer.skipped += 1  # its queue is full, because it does not read
        elif became == GONE:
            if peer.state is LIVE:
                peer.dies(self._step)
            return False
        return True

    def credits_of(self, peer: Peer) -> int:
        """Return how many states may be unanswered before the peer gets no further one.

        Parameters
        ----------
        peer : Peer
            The peer.

        Returns
        -------
        int
            The number; in the mode free 0, so that each state is the newest.
        """
        return 0 if self._free else CREDITS + peer.multirate.outstanding

    # -- an impaired link, see rtmms.loop.impairment ------------------------------------------------------------------

    def _send_impaired(
        self, peer: Peer, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array],
        applied: Applied,
    ) -> None:  # fmt: skip
        """Put the state on the impaired link, and deliver the newest one that has arrived."""
        link, turns = peer.link, peer.multirate
        assert link is not None
        if peer.state is not DEAD and (self._free or turns.asks(step)) and link.sends(step, turns.every):
            self._pack_state(peer, step, time, deadline_ns, budget_ns, outputs, applied)
            link.states.put(step, step, peer.selection.payload, step)
        self._deliver(peer, step, deadline_ns, budget_ns)

    def _deliver(self, peer: Peer, step: int, deadline_ns: int, budget_ns: int) -> None:
        """Send a peer the newest state that its link has delivered; only then does it owe an answer."""
        link = peer.link
        assert link is not None
        result = link.states.take(step)
        if result is None or peer.state is DEAD:
            return
        if peer.owed > self.credits_of(peer):
            peer.skipped += not self._free
        else:
            later_ns = peer.selection.later_ns
            dated = peer.selection.message.dated
            payload = dated(result[1], deadline_ns + later_ns, budget_ns + later_ns) if deadline_ns else result[1]
            peer.owed += 1
            self.transmit(peer, payload)
        due = step if self._free else step + peer.multirate.delay
        link.asked(result[0], due)
        if due == step and peer.fresh:
            peer.fresh = False
            self._missing += 1
            for i in peer.actuators:
                self.fresh[i] = False

    def _impair_command(self, peer: Peer, seq: int, step: int, values: Mapping[str, float], expiry_ns: int) -> None:
        """Put a command on the impaired link, at the step at which it is owed, or later if it is late."""
        link, now = peer.link, self._step
        assert link is not None
        number = step - (0 if self._free else peer.multirate.delay)
        due = link.answered(number)
        open_ = self._command is not None or (not self._free and not self._closed())
        if due < 0:
            due = max(now, step)
        elif not self._free and (due < now or (due == now and not open_)):
            peer.late += 1
            self.late += 1
            for i in peer.actuators:
                self.renewed[i] = True
        link.commands.put(seq, max(now + (not open_), due), (step, values, expiry_ns), number)
        if due == now and open_ and not peer.fresh:
            peer.fresh = True
            self._missing -= 1
            for i in peer.actuators:
                self.fresh[i] = True
        if self._command is not None:
            self._take_impaired(peer)

    def _take_impaired(self, peer: Peer) -> None:
        """Apply the newest command that the link has delivered by this step."""
        assert peer.link is not None
        result = peer.link.commands.take(self._step)
        if result is not None:
            seq, (step, values, expiry_ns) = result
            clamped = self._set(peer, values, self._step, expiry_ns) or (self.applied.clamped and not self._first)
            self._first = False
            self._note(seq, step, 0, clamped)

    def send(self, peer: Peer, message: Mapping[str, Any]) -> None:
        """Send an error or a bye, if that is possible at once.

        Parameters
        ----------
        peer : Peer
            The peer.
        message : Mapping[str, Any]
            The message.
        """
        self.transmit(peer, self._pack(message))

    # -- a compiled step, see rtmms.wire.plant.fast_path --------------------------------------------------------------

    @property
    def step(self) -> int:
        """The step for which commands count."""
        return self._step

    @property
    def last_step(self) -> int:
        """The last step for which all commands were collected: without a deadline, the present one may never be."""
        return self._step - (not self._done and not self._deadline_ns)

    def at_rest(self) -> bool:
        """Return whether nothing waits for the next step that the general path must handle.

        Returns
        -------
        bool
            True if nothing waits.
        """
        return not (self._ready or self._held or self._held_note is not None)

    def took(self, peers: Sequence[Peer], note: tuple[int, int, bool], complete: bool | None, stale: bool) -> None:
        """Record commands that compiled code has taken for the present step.

        Parameters
        ----------
        peers : Sequence[Peer]
            Peers of these commands.
        note : tuple[int, int, bool]
            Newest seq, its lateness in ns, and whether a value was clamped.
        complete : bool | None
            Whether all commands have come; None while the step is still collecting.
        stale : bool
            Whether a peer has stale values.
        """
        for peer in peers:
            peer.owed = peer.probes = 0
            peer.commands += 1
            peer.fresh = True
            for i in peer.actuators:
                self.fresh[i] = True
        self._missing -= len(peers)
        if peers:
            self._first = False
            self._note(note[0], self._step, note[1], note[2])
        self.applied.stale = stale
        if complete is not None:
            self._done = complete
            if stale or not complete:
                self._count()

    def finished(self, peers: Sequence[Peer], complete: bool) -> None:
        """Record the last of several compiled steps.

        Parameters
        ----------
        peers : Sequence[Peer]
            Peers with a command in it.
        complete : bool
            Whether all commands had come.
        """
        for peer in peers:
            peer.fresh = True
            for i in peer.actuators:
                self.fresh[i] = True
        self._missing -= len(peers)
        self._first, self._done = not peers, complete

    # -- in ----------------------------------------------------------------------------------------------------------

    def begin(self, step: int, deadline_ns: int) -> None:
        """Begin a step, for which commands count from now on.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Its deadline, CLOCK_MONOTONIC, ns; 0 for none.
        """
        if step < self._step:  # after a reset or a restore, queued commands belong to another run
            for peer in self._peers.claimants:
                peer.forget_queue()
                peer.multirate.forget()
                if step <= 0:  # a reset: its steps are counted anew, as those of the run
                    peer.missed = peer.stale = peer.connected = 0
                if peer.link is not None:
                    peer.link.forget()
        self._step, self._deadline_ns, self._first, self._done = step, deadline_ns, True, False
        self._deadlines[step % _DEADLINES] = (step, deadline_ns)
        self._allowance.renew()
        self.fresh[:] = False
        self._missing = 0
        for peer in self._peers.claimants:
            spared = self._spared(peer, step) if peer.link is not None or not peer.multirate.plain else False
            peer.fresh, peer.early = peer.early or spared, False
            if peer.fresh:
                for i in peer.actuators:
                    self.fresh[i] = True
            else:
                self._missing += 1
        self._peer_changes = self._peers.changes

    def _count(self) -> None:
        """Count the present step for each peer that had no command for it, or stale values."""
        for peer in self._peers.claimants:
            if peer.fresh:
                peer.stale += peer.is_stale
            elif not self._free:
                peer.missed += 1

    def _spared(self, peer: Peer, step: int) -> bool:
        """Return whether a peer owes nothing for this step, so that its last command remains."""
        if peer.link is not None:
            return peer.state is LIVE and not (peer.owed if self._free else peer.link.owes(step))
        return not peer.multirate.owes(step) and peer.state is LIVE and not self._free

    def collect(self, step: int, command: Array, until_ns: int) -> bool:
        """Read commands for a step.

        Parameters
        ----------
        step : int
            Index of the step.
        command : Array
            The step's command, changed in place.
        until_ns : int
            Instant of CLOCK_MONOTONIC at which the wait ends, ns.

        Returns
        -------
        bool
            Whether all commands have come.
        """
        if step != self._step:
            self.begin(step, 0)
            for peer in self._peers.claimants:  # in free mode not every state is sent, and impaired links continue
                if peer.link is not None:
                    self._deliver(peer, step, 0, 0)
        self._command = command
        try:
            if self._peer_changes != self._peers.changes:
                self._recount()
            if self._held:
                for i, value in self._held.items():
                    command[i] = value
                self._held.clear()
            if self._held_note is not None:
                self._note(*self._held_note)
                self._held_note = None
            if self._first:
                self._take_queued(step)
            for peer in self._peers.claimants:
                if peer.link is not None:
                    self._take_impaired(peer)
            complete = self._gather(until_ns) if self._peers.claimants else True
            for peer in self._peers.linear:
                peer.multirate.move(step, command)
            self.applied.stale = stale = self._dated and self._has_stale()
            is_last = complete or self._free or 0 < self._deadline_ns <= until_ns  # request for this step
            if is_last and (stale or not complete):
                self._count()
            self._done = complete or (self._deadline_ns > 0 and self._nobody_comes())
            return complete
        finally:
            self._command = None

    def _has_stale(self) -> bool:
        """Return whether a claimant's values are stale, and mark each such claimant."""
        now_ns, result = monotonic_ns(), False
        for peer in self._peers.claimants:
            peer.is_stale = 0 != peer.expiry_ns < now_ns
            result |= peer.is_stale
        return result

    def _recount(self) -> None:
        """Count the missing commands again, because peers came or left within the step."""
        self._peer_changes = self._peers.changes
        self._missing = sum(not peer.fresh for peer in self._peers.claimants)

    def _gather(self, until_ns: int) -> bool:
        """Wait and read until all commands have come, or the clock reads until_ns.

        Then a few messages that are already in the socket are still read. With a deadline the port waits neither for
        dead peers nor for those that send too much. If only their commands are missing, they are missed at once.
        """
        wait, past = self._socket.wait, 0
        while self._missing or self._free:
            in_time = monotonic_ns() < until_ns and not (self._deadline_ns and self._nobody_comes())
            if in_time:
                wait(until_ns)
            if self._read_one():
                past += not in_time
                if past >= (MAX_READS_AFTER_DEADLINE if until_ns else _MAX_FREE_READS):
                    break
            elif not in_time:
                break
        return self._missing == 0

    def _nobody_comes(self) -> bool:
        """Return whether no live peer that is still read owes a command for this step."""
        used_up = self._allowance.used_up
        return all(peer.fresh or peer.state is DEAD or used_up(peer) for peer in self._peers.claimants)

    def next_tick(self, until_ns: int) -> int:
        """Wait for a tick.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC at which the wait ends, ns; 0 to read waiting ticks only.

        Returns
        -------
        int
            Instant at which the oldest waiting tick came, ns; 0 for none.
        """
        assert self.ticks is not None
        reads = 0
        while not self.ticks.waiting:
            if self._read_one():
                reads += 1
                if reads >= _MAX_TICK_READS and monotonic_ns() >= until_ns:
                    break
                continue
            if monotonic_ns() >= until_ns:
                break
            self._socket.wait(until_ns)
        return self.ticks.take()

    def await_answer(self, until_ns: int) -> None:
        """Wait, in the slack, until a message may have come.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        self._socket.wait(until_ns)

    def read_in_slack(self, until_ns: int) -> None:
        """Read a few answers to warm-up states, byes and late commands.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """
        for _ in range(_MAX_SLACK_READS):
            if monotonic_ns() >= until_ns or not self._read_one():
                return

    def _read_one(self) -> bool:
        """Read and handle one message, and return whether there was one."""
        result = self._socket.next()
        if result is None:
            return False
        identity, kind, frame, _ = result
        peer = self._peers.by_identity.get(identity)
        if peer is None:
            if identity not in self._peers.departed:
                self.count(Reason.STRANGER)
            return True
        peer.owed = peer.probes = 0
        if self._deadline_ns:
            self._allowance.take(peer)
        try:
            if kind != MESSAGE:
                raise not_a_message(kind, MAX_COMMAND_BYTES)
            message = decode(frame, MAX_COMMAND_BYTES)
            if message["type"] == "command":
                self._take_command(peer, message)
                if message["step"] >= 0:
                    peer.last_frame = frame
            else:
                self._receive(peer, message)
        except Refusal as refusal:
            self.count(refusal.code)
            peer.refused(refusal.text, self._step)
            if peer.error is None:
                peer.error = (refusal.code, refusal.text, refusal.unknown)
        return True

    def _expel(self, peer: Peer, why: str) -> None:
        """Remove a peer: its later messages are ignored, and the bye ends its link."""
        self.send(peer, {"type": "bye", "reason": why})
        self._peers.release(peer)

    def connected(self, peer: Peer) -> bool | None:
        """Return whether a peer is connected; see `Answering`.

        Parameters
        ----------
        peer : Peer
            The peer.

        Returns
        -------
        bool | None
            None if only a send shows it.
        """
        return self._socket.connected(peer.identity)

    def count(self, reason: str) -> None:
        """Count a refusal.

        Parameters
        ----------
        reason : str
            Its code.
        """
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def _receive(self, peer: Peer, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "bye":
            self._peers.depart(peer)
            self._recount()
        elif kind == "tick":
            if self.ticks is None:
                raise Refusal(
                    Reason.TYPE, "tick: ticks need a plant with --mode external; this plant runs in another mode"
                )
            if peer.state is DEAD:
                peer.comes_back()
            self.ticks.read_message(peer, message)
        else:
            raise Refusal(
                Reason.TYPE,
                f"step socket: expected messages of type command, tick or bye, got {peer_text(kind)}",
            )

    def _take_command(self, peer: Peer, message: dict[str, Any]) -> None:
        """Check and take a command; it is taken as a whole or not at all."""
        seq, step, values = read_head(peer.seq, message)
        if peer.state is DEAD:
            peer.comes_back()
        if step < 0:
            peer.seq = seq
            self._take_warm_answer(peer, step)
            return
        now = self._step
        ahead = (
            0
            if step == now or (self._free and step < now)
            else check_step(
                step, now, self._behind + (peer.link.longest if peer.link is not None else 0), peer.multirate.delay
            )
        )
        check_values(peer.index, values, peer.state is LIVE, lambda name: self._peers.known(peer.prefix + name))
        came_ns = monotonic_ns()
        expiry_ns = read_expiry(message, came_ns)
        self._dated = self._dated or expiry_ns != 0
        if peer.commands == 0:
            peer.first_command = now
        if peer.link is not None:
            peer.seq, peer.commands = seq, peer.commands + 1
            self._impair_command(peer, seq, step, values, expiry_ns)
            return
        if ahead > 0:
            peer.queue_up(step, seq, values, now, expiry_ns)
        peer.seq = seq
        peer.commands += 1
        if self._free or (ahead == 0 and (self._command is not None or not self._closed())):
            self._use(peer, seq, step, values, came_ns, expiry_ns)
        elif ahead <= 0:
            self._hold(peer, seq, step, values, expiry_ns)

    def _hold(self, peer: Peer, seq: int, step: int, values: Mapping[str, float], expiry_ns: int) -> None:
        """Store a command that is too late for its step as the value held from the next one on."""
        peer.late += 1
        self.late += 1
        for i in peer.actuators:
            self.renewed[i] = True
        deadline_ns = self._deadline_of(step)
        lateness_ns = monotonic_ns() - deadline_ns if deadline_ns else 0
        clamped = self._set(peer, values, self._step + (self._command is None), expiry_ns)
        if self._command is None:  # its step is still to come
            self._held_note = (seq, step, lateness_ns, clamped)
        else:
            self._note(seq, step, lateness_ns, clamped)

    def _closed(self) -> bool:
        """Return whether the present step has gone on, while no commands are being collected.

        Then all commands had come, or the deadline has passed.
        """
        return self._done or 0 < self._deadline_ns < monotonic_ns()

    def _use(
        self, peer: Peer, seq: int, step: int, values: Mapping[str, float], came_ns: int, expiry_ns: int
    ) -> None:  # fmt: skip
        """Apply a command to the present step; actuators that it does not name hold."""
        clamped = self._set(peer, values, self._step, expiry_ns) or (self.applied.clamped and not self._first)
        if self._free and self._command is None:  # it came between two steps and counts for the second
            peer.early, self._held_note = True, (seq, step, 0, clamped)
            return
        self._first = False
        self._note(seq, step, came_ns - self._deadline_ns if self._deadline_ns else 0, clamped)
        if not peer.fresh:
            peer.fresh = True
            self._missing -= 1
            for i in peer.actuators:
                self.fresh[i] = True

    def _set(self, peer: Peer, values: Mapping[str, float], step: int, expiry_ns: int) -> bool:
        """Set the values of a command from a step on, and return whether a value was clamped.

        The values are stale from expiry_ns on, 0 for never.
        """
        peer.expiry_ns, peer.is_stale = expiry_ns, False
        index, lower, upper, command = peer.index, self._lower, self._upper, self._command
        clamped, linear = False, peer.multirate.linear
        for name, value in values.items():
            i = index[name]
            provided, value = value, clamp_to_limits(value, lower[i], upper[i])
            clamped = clamped or value != provided
            if linear:
                peer.multirate.aim(i, step, value)
            elif command is None:
                self._held[i] = value
            else:
                command[i] = value
        clamped = clamped or any(
            item.first in peer.actuators and abs(self._valued(item.first) - self._valued(item.second)) > item.obeyed
            for item in self.coupled
        )
        peer.clamped += clamped
        return clamped

    def _valued(self, i: int) -> float:
        """Return the present command of an actuator."""
        return self._held.get(i, self._neutral[i]) if self._command is None else float(self._command[i])

    def _note(self, seq: int, step: int, lateness_ns: int, clamped: bool) -> None:
        applied = self.applied
        applied.seq, applied.step, applied.lateness_ns, applied.clamped = seq, step, lateness_ns, clamped

    def _deadline_of(self, step: int) -> int:
        result, deadline_ns = self._deadlines[step % _DEADLINES]
        return deadline_ns if result == step else self._deadline_ns

    def _take_queued(self, step: int) -> None:
        for peer in self._peers.claimants:
            if peer.queue and (waiting := peer.queue.pop(step, None)) is not None:
                self._use(peer, waiting[0], step, *waiting[1:])

    def _take_warm_answer(self, peer: Peer, step: int) -> None:
        if peer.state is WARMING and step == peer.warm_step:
            peer.warm_step += 1
            if peer.warm_step == 0:
                peer.on(WARM)
                self._ready = True

    def admit_ready(self) -> None:
        """Admit warm peers, between steps only.

        A claim that began within a step would wait for a command that nobody was asked for.
        """
        if self._ready:
            self._ready = False
            for peer in list(self._peers.all):
                if peer.state is READY:
                    self._peers.admit(peer)
