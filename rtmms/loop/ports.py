"""What the loop sees of the world outside: an Exchange for commands and state, and Observers of each finished step.

The loop knows no socket. The wire implements Exchange over ZeroMQ; the tests script one against a fake clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rtmms.base.contract import Applied as Applied

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rtmms.plant.protocol import CompiledOutputs, Plant

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]


class Exchange(Protocol):
    """Commands in, state out. Nothing here may block past the instant it is given, whatever a peer does."""

    claimed: Flags
    """(n_actuators,) held by an admitted peer. A peer that died without bye keeps its claim until it is taken over."""

    fresh: Flags
    """(n_actuators,) set by `collect`: claimed, and its command for this step is in hand (silence of an actuator
    within a command counts as 'hold', so a peer's one command makes all its actuators fresh)."""

    renewed: Flags
    """(n_actuators,) set where a command came too late for its step and became the held value; cleared by the loop."""

    applied: Applied
    """Written by `collect`, `stale` for each step (policy by the loop)."""

    def publish(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:
        """State at t_step to every claimant, who has budget_ns to answer; deadline_ns on CLOCK_MONOTONIC. 0: none."""

    def collect(self, step: int, command: Array, until_ns: int) -> bool:
        """Take commands until every claimed actuator has its own for `step`, or the clock reads until_ns.

        Called again for the same step it goes on: what is fresh stays so (lockstep waits in slices).

        command   (n_actuators,) holds the last good values; written in place, actuators without news keep theirs
        until_ns  CLOCK_MONOTONIC; 0: take what is there, for whatever step it was meant, and return at once (free mode)
        Returns True when every claimed actuator is fresh (also when none is claimed).
        """

    def serve(self, until_ns: int) -> None:
        """The low-priority part, in the loop's slack: hello, requests, bye, telemetry. Back before until_ns."""

    def waiting_for(self) -> tuple[str, ...]:
        """Names of the peers that hold a claim and have no command for the present step yet."""

    def report(self) -> dict[str, Any]:
        """{'late': n, 'rejected': {reason: n}, 'peers': [{'name', 'claim', ...}]} for the final report."""


# What an Exchange may be able to do beside that. The loop asks once, by isinstance, when it is made.


class Memory(Protocol):
    """What a miss policy works on, see rtmms.loop.fallback.FallbackMemory; tape (rows, n_actuators): the command of
    each of the first steps, as the plant got it."""

    command: Array
    actuators: npt.NDArray[Any]
    fallbacks: npt.NDArray[Any]
    tape: Array


class Progress(NamedTuple):
    """How far a compiled call took a step: instants in ns, as in rtmms.loop.fault_attribution.Times.

    resolved   its command is complete, else its state is out and `collect` goes on
    complete   every claimed actuator had its command
    stepped    0: the plant's step is still to be taken;  status  of it
    kept       the step recorder has its row
    """

    resolved: bool
    complete: bool
    begun: int
    published: int
    gathered: int
    called: int
    stepped: int
    status: int
    kept: bool


class Batched(NamedTuple):
    """What many steps in a row came to.

    done       steps;  times (done,) of each: exchange_ns, plant_ns, outcome (see rtmms.wire.kernels.step.TIME)
    status     of the last one: where it is not 0, that one failed
    unfinished one more was begun;  handed   how far it came
    published_ns, answered   when the last state was sent, and whether the last step had a command
    kept       the step recorder has the row of the last one, as of all before it
    """

    done: int
    times: npt.NDArray[Any]
    status: int
    unfinished: bool
    published_ns: int
    answered: bool
    kept: bool
    handed: Progress | None = None


class FastPath(Protocol):
    """The usual step in one call, from waiting for its instant to the plant's step and the step recorder's row.

    keeps   it writes the step recorder's rows
    """

    keeps: bool

    @property
    def run(self) -> Callable[[], int]:
        """INTERRUPTED, PUBLISHED or RESOLVED. Only after `ready`; `commit` comes next."""

    def ready(self, step: int, due_ns: int, deadline_ns: int) -> bool:
        """Whether the step may be taken so: a prepared one. due_ns 0: at once; deadline_ns 0: none."""

    def commit(self, code: int) -> Progress | None:
        """What it came to, into the books; None where it was interrupted before anything was done."""

    def run_batch(self, step: int, most: int, until_ns: int, published_ns: int, answered: bool) -> Batched | None:
        """Steps without a clock, at most so many, none begun after the instant; None where none can be taken so.
        published_ns, answered: in free, of the last state."""


@runtime_checkable
class Compiling(Protocol):
    """An Exchange that can take a usual step without Python, and hands over what is not usual."""

    def fast_path(self, plant: Plant, memory: Memory, step_recorder: StepRecorder | None) -> FastPath | None:
        """Made before the run; None where there is none for this plant, or on this machine."""

    def prepare_alone(self, step: int, deadline_ns: int) -> bool:
        """As Preparing's `prepare`, of the plant's present state as compiled code has it; False where nothing
        was done, for the outputs are needed. Only where there is a fast_path."""


@runtime_checkable
class Preparing(Protocol):
    """An Exchange that can pack a state before its instant."""

    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:  # fmt: skip
        """In the slack: `publish` will be called with these, if nothing comes between. step -1: forget it."""


class Silent(Protocol):
    """A peer whose command was missing at a deadline."""

    @property
    def gone(self) -> bool:
        """It is dead, and has sent no command since."""

    @property
    def starved(self) -> bool:
        """Its connection stands: its process is there, but has not answered for long."""

    @property
    def refused(self) -> bool:
        """Its command for the step came in time, and was refused."""


@runtime_checkable
class AdmitsPeers(Protocol):
    """An Exchange with a handshake endpoint, where newcomers and requests come."""

    looks: int
    """How often it was looked at so far, by `serve` where there was time for it."""

    def look(self, until_ns: int) -> None:
        """Look at it now, and go on with those who are joining. Back before until_ns."""


@runtime_checkable
class Naming(Protocol):
    """An Exchange that can name the peers whose command was missing at the last deadline."""

    def silent(self) -> Sequence[Silent]:
        """Those of the present step; what is known of each may change later."""


@runtime_checkable
class Requesting(Protocol):
    """An Exchange that carries requests: what peers asked of the plant."""

    def requests(self) -> Iterable[Request]:
        """The requests that `serve` or `collect` took in since the last call, oldest first; each is answered once."""

    def reply(self, request: Any, ok: bool = True, result: Any = None, error: str | None = None) -> None:
        """Answer one: ok with a result that msgpack can carry, or not ok with a text that gives the reason."""


@runtime_checkable
class Passing(Protocol):
    """An Exchange that takes parameters to its peers."""

    def pass_on(self, values: Mapping[str, Any]) -> None:
        """Values by 'PEER.NAME', of one peer, sent to it; ModelError where it has none such."""

    def unanswered(self) -> bool:
        """Some peer has not answered yet whether it takes them; served like requests."""

    def failures(self) -> Sequence[str]:
        """What peers refused since the last call, a sentence each."""


@runtime_checkable
class Ticking(Protocol):
    """An Exchange whose peers tick: what the pace `external` needs beside the rest."""

    def next_tick(self, until_ns: int) -> int:
        """The instant at which the oldest unused tick came; waits for one until until_ns. 0 for none. Uses it up."""

    def ticks_waiting(self) -> int:
        """Ticks that have come and were not used, without waiting."""

    def drop_ticks(self) -> None:
        """Forget them: they were meant for a schedule that is no more."""


class Request(Protocol):
    """One request: op is reset, pause, resume, step, set, snapshot, restore or stop."""

    @property
    def op(self) -> str: ...
    @property
    def args(self) -> Any: ...


class Observer(Protocol):
    """Sees finished steps on the loop's thread: must neither block nor allocate what it keeps."""

    due: int
    """The next step it wants to see the end of; the loop skips it, and the cost of observing, until then."""

    def start(self, outputs: Mapping[str, Array]) -> None:
        """The state before the first step."""

    def clear(self) -> None:
        """The plant was reset: forget what was kept."""

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """outputs at t = time (the end of `step`); command was held over it."""


@runtime_checkable
class LogsNotes(Protocol):
    """An Observer that keeps what peers ask to be noted."""

    def note(self, step: int, values: Mapping[str, Any]) -> None:
        """Between steps; `step` is next."""


@runtime_checkable
class StepRecorder(Observer, Protocol):
    """An Observer that keeps every step as a row in memory, which compiled code can write in its place: then it is
    not sent the step."""

    def row_memory(self, command: tuple[int, int], account: CompiledOutputs) -> int:
        """Once, before the run: the address of what compiled code needs for it (rtmms.loop.kernels.row), 0
        where it cannot.  command  address and count of its numbers;  account  of the outputs."""

    def ready(self, step: int) -> None:
        """In the slack before a step that may be taken so: what its row has beside the results of the step."""
