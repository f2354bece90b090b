"""The usual step in one compiled call: its memory, what makes a step a usual one, and what it came to.

rtmms.wire.kernels.step says what is done in it. Here, before it and after, is all the rest: peers, claims, counts and
connections are those of the general path, which goes on wherever the compiled one stops.
"""

from __future__ import annotations

from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING

import numpy as np

from rtmms.addresses import ARGUMENTS
from rtmms.contract import Applied
from rtmms.loop.kernels.memory import COMMAND, HANDED, INTERRUPTED, LOWER, TAKEN, UPPER
from rtmms.loop.ports import Passed, Stretched
from rtmms.plant import Accounted, Entered
from rtmms.wire.kernels import desk as d
from rtmms.wire.kernels.system import AVAILABLE, EVENT_BYTES, SCRATCH_WORDS
from rtmms.wire.plant.layouts import Pattern, pattern
from rtmms.wire.plant.selection import STAND_IN
from rtmms.wire.plant.standing import LIVE
from rtmms.wire.plant.stretch import Stretch
from rtmms.wire.protocol.port import GONE, Answering, Bypassed

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rtmms.loop.ports import Keeping, Memory
    from rtmms.plant import Plant
    from rtmms.wire.plant.peer import Peer
    from rtmms.wire.plant.peers import Peers
    from rtmms.wire.plant.step_port import StepPort
    from rtmms.wire.plant.templates import Template

MOST_PEERS = 16
_ROOM = 65536
_LEARN_EVERY = 64
_WATCH_NS = 50_000_000
"""Where there is no deadline: waiting for a command goes back to Python after so long, or twice as long."""
_EXAMPLE = b"\x82\xa3seq\x01\xa4step\x01"


class Direct:
    """
    take     the call, INTERRUPTED, HANDED or TAKEN; only after `ready`, and `settle` follows it
    keeps    it writes the keeper's rows
    """

    take: Callable[[], int]

    def __init__(self, port: StepPort, socket: Answering, peers: Peers) -> None:
        self._port, self._peers = port, peers
        self._socket = socket if isinstance(socket, Bypassed) else None
        self._patterns: dict[Peer, Pattern] = {}
        self._learn_at: dict[Peer, int] = {}
        self._lines: list[tuple[Peer, int]] = []
        self._seen = -1
        self._entered: Entered | None = None
        self._sent: list[tuple[Peer, Template]] = []
        self._stretch: Stretch | None = None
        self._keeper: Keeping | None = None
        self.keeps = False

    def bind(self, plant: Plant, memory: Memory, keeper: Keeping | None = None) -> bool:
        """Once, before the run. False where there are no such calls: then nothing else here may be called."""
        if not AVAILABLE or self._socket is None or self._socket.descriptors is None or self._port.ticks is not None:
            return False
        from rtmms.wire.kernels.step import take_step

        n = len(plant.actuators)
        self._entered = plant if isinstance(plant, Entered) else None
        self._desk = np.zeros(d.DESK, dtype=np.int64)
        self._rows: npt.NDArray[np.int64] = np.zeros((MOST_PEERS, d.ROW), dtype=np.int64)
        self._buffers = np.zeros((MOST_PEERS, _ROOM), dtype=np.uint8)
        self._scratch, self._values = np.zeros(SCRATCH_WORDS, dtype=np.int64), np.zeros(max(1, n))
        self._events = np.zeros((MOST_PEERS + 1) * EVENT_BYTES, dtype=np.uint8)
        self._limits = memory.numbers[LOWER : UPPER + 1]
        self._own: list[npt.NDArray[np.int64]] = []
        self._arguments, self._function_of = np.zeros(ARGUMENTS, dtype=np.int64), 0
        self._memory = memory
        desk, port = self._desk, self._port
        for place, array in (
            (d.ROWS, self._rows), (d.VALUES, self._values), (d.EVENTS, self._events), (d.SCRATCH, self._scratch),
            (d.LOWER_UPPER, self._limits), (d.NUMBERS, memory.numbers), (d.INSTANTS, memory.instants),
            (d.FLAGS, memory.flags), (d.WORDS, memory.words), (d.FRESH, port.fresh), (d.RENEWED, port.renewed),
            (d.ARGUMENTS, self._arguments),
        ):  # fmt: skip
            desk[place] = array.ctypes.data
        desk[d.EPOLL], desk[d.ALARM] = self._socket.descriptors
        desk[d.ACTUATORS] = n
        self.take = partial(take_step, desk.ctypes.data)
        # compiled, or fetched from the cache, before the run: without peers it does nothing
        self.take()
        account = plant.account() if isinstance(plant, Accounted) else None
        if account is not None:
            self._stretch = Stretch(plant.dt, account, desk, self._rows)
            self._stretch.go(0, 0, False, Applied(), 0, True)
            self._stretch.write(0, 0, 0, Applied())
            if keeper is not None:
                desk[d.ROW_MEMORY] = keeper.row_memory((memory.numbers[COMMAND].ctypes.data, n), account)
                self.keeps = desk[d.ROW_MEMORY] != 0
                self._keeper = keeper if self.keeps else None
        Pattern(_EXAMPLE, {}).read(_EXAMPLE)
        return True

    # --- before the step --------------------------------------------------------------------------------------------

    def prepare(self, step: int, deadline_ns: int) -> bool:
        """The state of a step to come, for each peer, without Python; False where it is for Python, all of it."""
        port, stretch = self._port, self._stretch
        if stretch is None or port.free or not self._usual(step):
            return False
        for k, (peer, _) in enumerate(self._lines):
            state = peer.selection.templates.of(port.applied.policy)
            if state is None or not stretch.fit(k, state):
                return False
        if not stretch.write(step, deadline_ns, STAND_IN if deadline_ns else 0, port.applied):
            return False
        for peer, _ in self._lines:
            peer.selection.prepared(step, deadline_ns, port.applied.policy)
        return True

    def ready(self, step: int, due_ns: int, deadline_ns: int) -> bool:
        """Whether, as far as can be known, this step will be a usual one. Its state has been prepared."""
        if self._port.free or not self._usual(step):
            return False
        for k, (peer, _) in enumerate(self._lines):
            state = peer.selection.ready(step, deadline_ns)
            if state is None or (deadline_ns and not state.budget_at):
                return False
            self._send(k, peer, state, state.budget_at if deadline_ns else 0)
        self._port.begin(step, deadline_ns)
        self._set(step, due_ns, deadline_ns)
        return True

    def go_on(
        self, step: int, most: int, until_ns: int, published_ns: int, answered: bool
    ) -> Stretched | None:  # fmt: skip
        """See Passage."""
        port, stretch = self._port, self._stretch
        if stretch is None or not self._usual(step):
            return None
        for k, (peer, _) in enumerate(self._lines):
            state = peer.selection.templates.of("")
            if state is None or not stretch.fit(k, state):
                return None
            self._send(k, peer, state, 0)
        self._set(step, 0, 0)
        if not self._desk[d.FUNCTION]:
            return None
        found = stretch.go(most, until_ns, port.free, port.applied, published_ns, answered)
        return self._went_on(step, found)

    def _usual(self, step: int) -> bool:
        """Of what does not depend on the state that is sent."""
        port, socket = self._port, self._socket
        assert socket is not None
        if not port.at_rest() or not socket.at_rest():
            return False
        if self._seen != self._peers.changes:
            self._renew()
        self._sent.clear()
        for peer, descriptor in self._lines:
            known = self._patterns.get(peer)
            if known is None or not known.holds(peer.heard, peer.index):
                known = self._learn(peer, step)
            if (
                known is None
                or peer.state is not LIVE
                or (peer.owed > port.credits and not port.free)
                or peer.early
                or peer.queue
                or socket.line(peer.identity) != descriptor
            ):
                return False
        return bool(self._lines)

    def _send(self, k: int, peer: Peer, state: Template, budget_at: int) -> None:
        """This state to this peer."""
        row = self._rows[k]
        row[d.STATE], row[d.STATE_BYTES], row[d.BUDGET_AT] = state.address, state.bytes, budget_at
        row[d.SEQ], row[d.OWED], row[d.COMMANDS], row[d.CLAMPED_ALL] = peer.seq, peer.owed, 0, 0
        self._sent.append((peer, state))

    def _set(self, step: int, due_ns: int, deadline_ns: int) -> None:
        """The step, its alarm, and how the plant is stepped."""
        desk, socket = self._desk, self._socket
        assert socket is not None
        if deadline_ns:
            socket.arm_by(deadline_ns, deadline_ns)
        else:
            watch_ns = monotonic_ns() + _WATCH_NS
            socket.arm_by(watch_ns, watch_ns + _WATCH_NS)
        desk[d.DUE], desk[d.DEADLINE], desk[d.STEP] = due_ns, deadline_ns, step
        if self._entered is not None:
            entry = self._entered.enter()
            if entry is None:
                desk[d.FUNCTION] = 0
            else:
                desk[d.FUNCTION], desk[d.TO_PLANT] = entry.function, entry.command
                self._arguments[: len(entry.arguments)] = entry.arguments
                if self._keeper is not None:
                    self._keeper.ready(step)

    def _renew(self) -> None:
        """Peers came or went."""
        self._seen = self._peers.changes
        self._lines.clear()
        peers, socket = self._peers, self._socket
        assert socket is not None
        listeners = peers.listeners
        self._patterns.clear()
        self._learn_at.clear()
        plain = all(peer.actuators and peer.turns.plain and not peer.turns.linear for peer in listeners)
        if not plain or len(listeners) > MOST_PEERS:
            return
        found = [(peer, socket.line(peer.identity)) for peer in listeners]
        if any(descriptor < 0 for _, descriptor in found):
            self._seen = -1  # look again
            return
        self._own = [np.array(peer.actuators, dtype=np.int64) for peer in listeners]
        for k, (_, descriptor) in enumerate(found):
            row = self._rows[k]
            row[d.DESCRIPTOR], row[d.BUFFER], row[d.BUFFER_BYTES] = descriptor, self._buffers[k].ctypes.data, _ROOM
            row[d.OWN], row[d.N_OWN] = self._own[k].ctypes.data, len(self._own[k])
        self._desk[d.PEERS] = len(found)
        self._lines = found

    def _learn(self, peer: Peer, step: int) -> Pattern | None:
        """The pattern of its last good command; seldom, as it takes some 50 us."""
        if not peer.heard or step < self._learn_at.get(peer, 0) <= step + _LEARN_EVERY:
            return None
        self._learn_at[peer] = step + _LEARN_EVERY
        known = pattern(peer.heard, peer.index)
        if known is None:
            self._patterns.pop(peer, None)
            return None
        self._patterns[peer] = known
        row = self._rows[[one for one, _ in self._lines].index(peer)]
        row[d.PATTERN], row[d.PATTERN_BYTES] = known.frame.ctypes.data, len(known.frame)
        row[d.PATTERN_ROWS], row[d.N_ROWS] = known.rows.ctypes.data, len(known.rows)
        row[d.TARGETS], row[d.N_TARGETS] = known.targets.ctypes.data, len(known.targets)
        return known

    # --- after it ---------------------------------------------------------------------------------------------------

    def settle(self, code: int) -> Passed | None:
        """What it came to, into the books of the general path; see Passage."""
        desk, port = self._desk.tolist(), self._port
        if code == INTERRUPTED:
            return None
        taken: list[Peer] = []
        for row, (peer, state) in zip(self._rows[: len(self._sent)].tolist(), self._sent, strict=True):
            if row[d.SENT]:
                peer.owed += 1
                peer.selection.sent()
            if row[d.ANSWERED]:
                taken.append(peer)
                peer.seq = row[d.SEQ]
                peer.clamped += row[d.OUT_OF_RANGE]
            if row[d.SENT] not in (0, row[d.STATE_BYTES]):
                self._unsent(peer, state, row[d.SENT])
        note = (desk[d.SEQ_USED], desk[d.LATENESS], bool(desk[d.CLAMPED]))
        all_taken, complete = code == TAKEN, bool(desk[d.COMPLETE])
        port.took(taken, note, complete if all_taken else None)
        if not all_taken:
            self._unread()
        return Passed(
            all_taken, complete, desk[d.BEGUN], desk[d.PUBLISHED], desk[d.GATHERED], desk[d.CALLED], desk[d.STEPPED],
            desk[d.STATUS], bool(desk[d.KEPT]),
        )  # fmt: skip

    def _went_on(self, step: int, found: Stretched) -> Stretched:
        """The steps that are done, into the books of the general path; then the one that was begun, if any."""
        port, desk = self._port, self._desk
        for k, (peer, _) in enumerate(self._sent):
            row = self._rows[k]
            commands = int(row[d.COMMANDS])
            peer.commands += commands
            peer.clamped += int(row[d.CLAMPED_ALL])
            peer.owed = int(row[d.OWED])
            if commands:
                peer.probes = 0
                if not found.unfinished or not row[d.ANSWERED]:
                    peer.seq = int(row[d.SEQ])
        last = step + found.done
        if not found.unfinished:
            if found.done:
                port.begin(last - 1, 0)
                taken = [peer for k, (peer, _) in enumerate(self._sent) if self._rows[k, d.ANSWERED]]
                port.finished(taken, bool(desk[d.COMPLETE]))
            return found
        port.begin(last, 0)
        return found._replace(handed=self.settle(HANDED))

    def _unsent(self, peer: Peer, state: Template, sent: int) -> None:
        assert self._socket is not None
        frame = state.frame
        if self._socket.went(peer.identity, frame, sent) == GONE and peer.state is LIVE:
            peer.dies()

    def _unread(self) -> None:
        """What came and was not usual, as it came."""
        assert self._socket is not None
        for k, (peer, _) in enumerate(self._sent):
            got = int(self._rows[k, d.GOT])
            if got != d.UNREAD:
                self._socket.came(peer.identity, self._buffers[k, : max(0, got)].tobytes())
