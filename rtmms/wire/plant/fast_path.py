"""Usual steps in one compiled call: the memory, the conditions, and the results of the call.

rtmms.wire.kernels.step describes the compiled part. This module does the rest before and after it. Peers, claims,
counts and connections are those of the general path, which continues where the compiled one stops.
"""

from __future__ import annotations

from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import Applied
from rtmms.base.pointers import ARGUMENTS, address
from rtmms.base.structs import view
from rtmms.loop.miss_policies import INTERRUPTED, PUBLISHED, RESOLVED
from rtmms.loop.ports import Batched, Progress
from rtmms.plant.optional_protocols import HasCompiledOutputs, HasCompiledStep
from rtmms.wire.kernels.step import BATCH, PEER, STATE, STEP, TIME, UNREAD, take_step, take_steps, write_states
from rtmms.wire.kernels.step_message_layout import CompiledLayout
from rtmms.wire.kernels.system import AVAILABLE, EVENT_BYTES, SCRATCH_WORDS
from rtmms.wire.plant.peers import LIVE
from rtmms.wire.protocol.port import GONE, Answering
from rtmms.wire.protocol.step_message_layout import command_layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtmms.loop.ports import Memory, StepRecorder
    from rtmms.plant.optional_protocols import CompiledOutputs
    from rtmms.plant.protocol import Plant
    from rtmms.wire.plant.peers import Peer, Peers
    from rtmms.wire.plant.state_message import StateMessage
    from rtmms.wire.plant.step_port import StepPort

MAX_FAST_PEERS = 16
MAX_BATCH_STEPS = 512
_BUFFER_BYTES = 65536
_WATCH_NS = 50_000_000
"""Time after which a wait without a deadline returns to Python, ns; it may be twice as long."""

Int64Array = npt.NDArray[np.int64]


class BatchedSteps:
    """Many usual steps in one call, without a clock.

    Parameters
    ----------
    dt : float
        Simulated time of a step, s.
    account : CompiledOutputs
        Compiled outputs of the plant.
    step : (1,) array of STEP
        Memory of the step. `WireFastPath` fills the part of the peers.
    peers : int
        Most peers.
    """

    def __init__(self, dt: float, account: CompiledOutputs, step: npt.NDArray[Any], peers: int) -> None:
        self._account, self._step = account, view(step)
        self._batch = np.zeros(1, dtype=BATCH)
        self._times = np.zeros(MAX_BATCH_STEPS, dtype=TIME)
        self._states = np.zeros(peers, dtype=STATE)
        self._arguments: Int64Array = np.zeros(ARGUMENTS, dtype=np.int64)
        self._arguments[: len(account.arguments)] = account.arguments
        self._fitted: dict[int, StateMessage] = {}
        self._owners: dict[int, tuple[Int64Array, CompiledLayout]] = {}
        self._at = address(step), address(self._batch)
        self._batch_view = batch_view = view(self._batch)
        batch_view.dt, batch_view.function, batch_view.arguments_at = dt, account.function, address(self._arguments)
        batch_view.times_at, batch_view.states_at = address(self._times), address(self._states)

    def fit(self, k: int, state: StateMessage, policy: str) -> bool:
        """Use a message for the states of one peer.

        Parameters
        ----------
        k : int
            Index of the peer.
        state : StateMessage
            The message.
        policy : str
            Name of the applied miss policy.

        Returns
        -------
        bool
            False if the plant does not have all of the message's outputs.
        """
        if state.policy != policy:
            state.set_policy(policy)
        if self._fitted.get(k) is not state:
            parts = [self._account.numbers.get(name) for name in state.names]
            sources: Int64Array = np.array([part for part in parts if part is not None], dtype=np.int64).reshape(-1, 2)
            if len(sources) != len(parts) or len(state.layout.reals) != 1 + int(sources[:, 1].sum()):
                return False
            layout = CompiledLayout(state.layout)
            self._owners[k], self._fitted[k] = (sources, layout), state
            self._states[k] = address(state.payload), 0, layout.at, address(sources), len(sources)
        self._states["payload_bytes"][k] = state.size
        return True

    def write(self, step: int, deadline_ns: int, budget_ns: int, applied: Applied) -> None:
        """Write the state of a step to each peer's message.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Deadline, CLOCK_MONOTONIC, ns; 0 for none.
        budget_ns : int
            Rest of the time until the deadline, ns.
        applied : Applied
            Results of the step before.
        """
        batch_view = self._batch_view
        batch_view.seq, batch_view.step, batch_view.clamped = applied.seq, applied.step, applied.clamped
        batch_view.deadline_ns, batch_view.budget_ns, batch_view.lateness_ns = (
            deadline_ns,
            budget_ns,
            applied.lateness_ns,
        )
        self._step.step = step
        write_states(*self._at)

    def run(
        self, maximum: int, until_ns: int, free: bool, applied: Applied, published_ns: int, answered: bool
    ) -> Batched:  # fmt: skip
        """Take steps.

        Parameters
        ----------
        maximum : int
            Most steps.
        until_ns : int
            Instant of CLOCK_MONOTONIC after which no step begins, ns.
        free : bool
            Whether the mode is free.
        applied : Applied
            Results of the step before.
        published_ns : int
            Instant at which the newest state was sent, ns.
        answered : bool
            Whether that state was answered.

        Returns
        -------
        Batched
            The steps and their times.
        """
        batch_view = self._batch_view
        batch_view.max_steps, batch_view.until_ns, batch_view.free = min(maximum, MAX_BATCH_STEPS), until_ns, free
        batch_view.seq, batch_view.step, batch_view.clamped = applied.seq, applied.step, applied.clamped
        batch_view.published_ns, batch_view.answered = published_ns, answered
        batch_view.deadline_ns = batch_view.budget_ns = batch_view.lateness_ns = 0
        take_steps(*self._at)
        done, unfinished = batch_view.done, bool(batch_view.unfinished)
        # An unfinished step began only because the row of the step before was written.
        stored = bool(self._step.row_memory_at if unfinished else self._step.is_recorded)
        applied.seq, applied.step, applied.clamped = batch_view.seq, batch_view.step, bool(batch_view.clamped)
        if done:
            applied.lateness_ns = 0
        return Batched(
            done, self._times[:done], self._step.status if done else 0, unfinished, batch_view.published_ns,
            bool(batch_view.answered), stored,
        )  # fmt: skip


class _Line:
    """Connection of a claimant.

    Attributes
    ----------
    actuators : numpy.ndarray of int64
        The actuators of its commands, in their order.
    """

    def __init__(self, peer: Peer, descriptor: int, row: Any) -> None:
        self.peer, self.descriptor = peer, descriptor
        self.actuators: Int64Array = np.array(peer.actuators, dtype=np.int64)
        layouts = [command_layout(tuple(peer.index), aged=aged) for aged in (False, True)]
        self._layouts = [(layout, CompiledLayout(layout)) for layout in layouts]
        self._row = row
        self._newest, self._fixed = b"", False

    def writes_layout(self) -> bool:
        """Return whether the newest good command of the peer has a layout, with an age or without.

        The compiled step reads the next command by the same layout.
        """
        if self.peer.last_frame is not self._newest:
            self._newest, self._fixed = self.peer.last_frame, False
            for layout, compiled in self._layouts:
                if layout.matches(self._newest):
                    self._row.layout_at, self._fixed = compiled.at, True
        return self._fixed


class WireFastPath:
    """Implementation of rtmms.loop.ports.FastPath over the streams of the step socket.

    Parameters
    ----------
    port : StepPort
        The general path.
    socket : Answering
        The step socket.
    peers : Peers
        All peers.

    Attributes
    ----------
    run : callable
        The compiled call. It follows `ready`, and `commit` follows it.
    keeps : bool
        Whether the call writes the rows of the step recorder.
    """

    run: Callable[[], int]

    def __init__(self, port: StepPort, socket: Answering, peers: Peers) -> None:
        self._port, self._peers = port, peers
        self._socket = socket.direct
        self._lines: list[_Line] = []
        self._peer_changes = -1
        self._entered: HasCompiledStep | None = None
        self._sent: list[tuple[Peer, StateMessage]] = []
        self._batch: BatchedSteps | None = None
        self._recorder: StepRecorder | None = None
        self.keeps = False

    def bind(self, plant: Plant, memory: Memory, step_recorder: StepRecorder | None = None) -> bool:
        """Prepare the memory, once, before the run.

        Parameters
        ----------
        plant : Plant
            The plant.
        memory : Memory
            The loop's memory.
        step_recorder : StepRecorder | None, optional
            The step recorder; None for none.

        Returns
        -------
        bool
            False if compiled steps are impossible here. Then nothing else of this object may be called.
        """
        if not AVAILABLE or self._socket is None or self._socket.descriptors is None or self._port.ticks is not None:
            return False
        n = len(plant.actuators)
        self._entered = plant if isinstance(plant, HasCompiledStep) else None
        step, peers = np.zeros(1, dtype=STEP), np.zeros(MAX_FAST_PEERS, dtype=PEER)
        self._buffers = np.zeros((MAX_FAST_PEERS, _BUFFER_BYTES), dtype=np.uint8)
        self._arguments = np.zeros(ARGUMENTS, dtype=np.int64)
        scratch, values = np.zeros(SCRATCH_WORDS, dtype=np.int64), np.zeros(max(1, n))
        events = np.zeros((MAX_FAST_PEERS + 1) * EVENT_BYTES, dtype=np.uint8)
        self._referenced_arrays = (
            step,
            peers,
            memory,
            scratch,
            values,
            events,
        )  # the record has the addresses of all of them
        self._step, self._rows = view(step), [view(peers, k) for k in range(MAX_FAST_PEERS)]
        m, port = self._step, self._port
        m.peers_at, m.values_at, m.events_at, m.scratch_at = map(address, (peers, values, events, scratch))
        m.fallbacks_at, m.actuators_at = address(memory.fallbacks), address(memory.actuators)
        m.command_at, m.fresh_at, m.renewed_at = map(address, (memory.command, port.fresh, port.renewed))
        m.arguments_at, m.actuators = address(self._arguments), n
        m.tape_at, m.tape_rows = address(memory.tape), len(memory.tape) if n else 0
        m.epoll, m.alarm = self._socket.descriptors
        self._coupled = np.array([(item.first, item.second, item.obeyed) for item in port.coupled]).reshape(-1, 3)
        m.coupled_at, m.n_coupled = address(self._coupled), len(self._coupled)
        self.run = partial(take_step, address(step))
        # Compile, or load from the cache, before the run. Without peers the call has no effect.
        self.run()
        account = plant.compiled_outputs() if isinstance(plant, HasCompiledOutputs) else None
        if account is not None:
            self._batch = BatchedSteps(plant.dt, account, step, MAX_FAST_PEERS)
            self._batch.run(0, 0, False, Applied(), 0, True)
            self._batch.write(0, 0, 0, Applied())
            if step_recorder is not None:
                m.row_memory_at = step_recorder.row_memory((address(memory.command), n), account)
                self.keeps = m.row_memory_at != 0
                self._recorder = step_recorder if self.keeps else None
        return True

    # --- before the step --------------------------------------------------------------------------------------------

    def prepare(self, step: int, deadline_ns: int) -> bool:
        """Write the state of a coming step for each peer without Python.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Its deadline, CLOCK_MONOTONIC, ns; 0 for none.

        Returns
        -------
        bool
            False if Python must write all of it.
        """
        port, batch = self._port, self._batch
        if batch is None or port.free or not self._meets_conditions(step):
            return False
        policy = port.applied.policy
        if not all(batch.fit(k, line.peer.selection.message, policy) for k, line in enumerate(self._lines)):
            return False
        batch.write(step, deadline_ns, 0, port.applied)
        for line in self._lines:
            line.peer.selection.prepared(step, deadline_ns)
        return True

    def ready(self, step: int, due_ns: int, deadline_ns: int) -> bool:
        """Return whether this step will, as far as can be known, be a usual one.

        Its state has been prepared before.

        Parameters
        ----------
        step : int
            Index of the step.
        due_ns : int
            Begin of the step, CLOCK_MONOTONIC, ns.
        deadline_ns : int
            Its deadline, CLOCK_MONOTONIC, ns; 0 for none.

        Returns
        -------
        bool
            True if `run` may follow.
        """
        if self._port.free or not self._meets_conditions(step):
            return False
        for k, line in enumerate(self._lines):
            state = line.peer.selection.ready(step, deadline_ns)
            if state is None:
                return False
            self._send(k, line.peer, state, state.budget_at if deadline_ns else 0)
        self._port.begin(step, deadline_ns)
        self._set(step, due_ns, deadline_ns)
        return True

    def run_batch(
        self, step: int, maximum: int, until_ns: int, published_ns: int, answered: bool
    ) -> Batched | None:  # fmt: skip
        """Take many steps in one call; see `FastPath`.

        Parameters
        ----------
        step : int
            Index of the first step.
        maximum : int
            Most steps.
        until_ns : int
            Instant of CLOCK_MONOTONIC after which no step begins, ns.
        published_ns : int
            Instant at which the newest state was sent, ns.
        answered : bool
            Whether that state was answered.

        Returns
        -------
        Batched | None
            The steps, or None if the general path must take the next one.
        """
        port, batch = self._port, self._batch
        if (
            batch is None or port.applied.policy or not self._meets_conditions(step)
        ):  # a batch ends where a miss policy applies
            return None
        for k, line in enumerate(self._lines):
            state = line.peer.selection.message
            if not batch.fit(k, state, ""):
                return None
            self._send(k, line.peer, state, 0)
        self._set(step, 0, 0)
        if not self._step.function:
            return None
        result = batch.run(maximum, until_ns, port.free, port.applied, published_ns, answered)
        return self._commit_batch(step, result)

    def _meets_conditions(self, step: int) -> bool:
        """Return whether the conditions that do not depend on the state's content are met."""
        port, socket = self._port, self._socket
        assert socket is not None
        if not port.at_rest() or not socket.at_rest():
            return False
        if self._peer_changes != self._peers.changes:
            self._renew()
        self._sent.clear()
        for line in self._lines:
            peer = line.peer
            if (
                not line.writes_layout()
                or peer.state is not LIVE
                or (peer.owed > port.credits_of(peer) and not port.free)
                or peer.early
                or peer.queue
                or socket.line(peer.identity) != line.descriptor
            ):
                return False
        return bool(self._lines)

    def _send(self, k: int, peer: Peer, state: StateMessage, budget_place: int) -> None:
        """Set the state that a peer receives."""
        row = self._rows[k]
        row.state_at, row.state_bytes, row.budget_place = state.address, state.bytes, budget_place
        row.seq, row.owed, row.commands, row.clamped_all, row.stale_all = peer.seq, peer.owed, 0, 0, 0
        self._sent.append((peer, state))

    def _set(self, step: int, due_ns: int, deadline_ns: int) -> None:
        """Set the step, its alarm, and how the plant is stepped."""
        m, socket = self._step, self._socket
        assert socket is not None
        if deadline_ns:
            socket.arm_by(deadline_ns, deadline_ns)
        else:
            watch_ns = monotonic_ns() + _WATCH_NS
            socket.arm_by(watch_ns, watch_ns + _WATCH_NS)
        m.due_ns, m.deadline_ns, m.step = due_ns, deadline_ns, step
        if self._entered is not None:
            entry = self._entered.compiled_step()
            if entry is None:
                m.function = 0
            else:
                m.function, m.given_at = entry.function, entry.command
                self._arguments[: len(entry.arguments)] = entry.arguments
                if self._recorder is not None:
                    self._recorder.ready(step)

    def _renew(self) -> None:
        """Read the connections of the peers again, because peers came or left."""
        self._peer_changes = self._peers.changes
        self._lines.clear()
        peers, socket = self._peers, self._socket
        assert socket is not None
        listeners = peers.listeners
        plain = all(
            peer.actuators and peer.multirate.plain and not peer.multirate.linear and peer.link is None
            for peer in listeners
        )
        if not plain or len(listeners) > MAX_FAST_PEERS:
            return
        descriptors = [socket.line(peer.identity) for peer in listeners]
        if any(descriptor < 0 for descriptor in descriptors):
            self._peer_changes = -1  # check again
            return
        lines = list(map(_Line, listeners, descriptors, self._rows))
        for k, line in enumerate(lines):
            row = self._rows[k]
            row.descriptor, row.buffer_at, row.buffer_bytes = line.descriptor, address(self._buffers[k]), _BUFFER_BYTES
            row.own_at, row.n_own = address(line.actuators), len(line.actuators)
        self._step.peers = len(lines)
        self._lines = lines

    # --- after it ---------------------------------------------------------------------------------------------------

    def commit(self, code: int) -> Progress | None:
        """Pass the results of `run` to the general path; see `FastPath`.

        Parameters
        ----------
        code : int
            Result of `run`.

        Returns
        -------
        Progress | None
            The progress of the step; None if a signal came before its begin.
        """
        m, port = self._step, self._port
        if code == INTERRUPTED:
            return None
        answering_peers: list[Peer] = []
        stale, resolved, complete = bool(m.stale), code == RESOLVED, bool(m.complete)
        for k, (peer, state) in enumerate(self._sent):
            row = self._rows[k]
            if row.sent:
                peer.owed += 1
                peer.selection.sent()
            if row.answered:
                answering_peers.append(peer)
                peer.seq = row.seq
                peer.clamped += row.out_of_range
                if stale or not (resolved and complete):
                    peer.is_stale, peer.expiry_ns = bool(row.stale), row.expiry_ns
            if row.sent not in (0, row.state_bytes):
                self._unsent(peer, state, row.sent)
        note = m.seq_used, m.lateness_ns, bool(m.clamped)
        port.took(answering_peers, note, complete if resolved else None, stale)
        if not resolved:
            self._unread()
        return Progress(
            resolved, complete, m.begun_ns, m.published_ns, m.gathered_ns, m.called_ns, m.stepped_ns, m.status,
            bool(m.is_recorded),
        )  # fmt: skip

    def _commit_batch(self, step: int, batched: Batched) -> Batched:
        """Pass the finished steps to the general path, then the unfinished one, if any."""
        port = self._port
        for k, (peer, _) in enumerate(self._sent):
            row = self._rows[k]
            peer.commands += row.commands
            peer.clamped += row.clamped_all
            peer.stale += row.stale_all
            peer.owed = row.owed
            if row.commands:
                peer.probes = 0
                if not batched.unfinished or not row.answered:
                    peer.seq = row.seq
        last = step + batched.done
        if not batched.unfinished:
            if batched.done:
                port.begin(last - 1, 0)
                answering_peers = [peer for k, (peer, _) in enumerate(self._sent) if self._rows[k].answered]
                port.finished(answering_peers, bool(self._step.complete))
            return batched
        port.begin(last, 0)
        return batched._replace(handed=self.commit(PUBLISHED))

    def _unsent(self, peer: Peer, state: StateMessage, sent: int) -> None:
        assert self._socket is not None
        if self._socket.went(peer.identity, state.frame, sent) == GONE and peer.state is LIVE:
            peer.dies(self._port.step)

    def _unread(self) -> None:
        """Pass unusual messages to the socket, unchanged."""
        assert self._socket is not None
        for k, (peer, _) in enumerate(self._sent):
            got = self._rows[k].got
            if got != UNREAD:
                self._socket.came(peer.identity, self._buffers[k, : max(0, got)].tobytes())
