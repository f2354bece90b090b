"""Interfaces of the loop: an Exchange for commands and states, and Observers of each finished step.

The loop uses no socket. The wire implements Exchange over ZeroMQ; the tests script one against a fake clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rtmms.base.contract import Applied as Applied
from rtmms.base.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rtmms.plant.optional_protocols import CompiledOutputs
    from rtmms.plant.protocol import Plant

    Array = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]


class Exchange(Protocol):
    """Commands in, states out; nothing may block past the given instant, whatever a peer does.

    An implementation inherits this class. It has to write the five methods from `publish` to `report`. The others do
    nothing by default: an exchange overrides those of its abilities.
    """

    claimed: Flags
    """Actuators of admitted peers, (n_actuators,).

    A peer that died without bye keeps its claim until another peer takes it.
    """

    fresh: Flags
    """Claimed actuators with a command for this step, (n_actuators,), set by `collect`.

    Actuators that a command does not name hold, so a peer's one command makes all its actuators fresh.
    """

    renewed: Flags
    """Actuators whose late command became the held value, (n_actuators,); the loop clears it."""

    applied: Applied
    """Results of a step's exchange; `collect` writes them, `stale` for each step. The loop writes the policy."""

    def publish(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:
        """Send the state at t_step to every claimant.

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

    def collect(self, step: int, command: Array, until_ns: int) -> bool:
        """Read commands until every claimed actuator has its own for `step`, or the clock reads until_ns.

        A further call for the same step continues: fresh actuators remain fresh (lockstep waits in slices).

        Parameters
        ----------
        step : int
            Index of the step.
        command : Array
            (n_actuators,) last good values; written in place, actuators without a new value keep theirs.
        until_ns : int
            End of the wait, CLOCK_MONOTONIC, ns. 0 (free mode): read available commands for any step, and return at
            once.

        Returns
        -------
        bool
            Whether every claimed actuator is fresh (also if none is claimed).
        """

    def serve(self, until_ns: int) -> None:
        """Do the low-priority work in the loop's slack: hello, requests, bye, telemetry.

        Parameters
        ----------
        until_ns : int
            Instant before which it returns, ns.
        """

    def waiting_for(self) -> tuple[str, ...]:
        """Return the claimants without a command for the present step.

        Returns
        -------
        tuple[str, ...]
            Their names.
        """

    def report(self) -> dict[str, Any]:
        """Return the counts for the final report.

        Returns
        -------
        dict[str, Any]
            {'late': n, 'rejected': {reason: n}, 'peers': [{'name', 'claim', ...}]}.
        """

    # -- States packed in the slack ------------------------------------------------------------------------------------

    prepares: bool = False
    """Whether `prepare` packs a state, so that the loop observes the plant in the slack."""

    def prepare(
        self, step: int, time: float, deadline_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:  # fmt: skip
        """Pack a state in the slack; `publish` will send the same if nothing comes between.

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
        return

    # -- Usual steps without Python ------------------------------------------------------------------------------------

    def fast_path(self, plant: Plant, memory: Memory, step_recorder: StepRecorder | None) -> FastPath | None:
        """Return the compiled path, before the run.

        Parameters
        ----------
        plant : Plant
            The plant.
        memory : Memory
            Memory of the miss policies.
        step_recorder : StepRecorder | None
            The step recorder; None for none.

        Returns
        -------
        FastPath | None
            None if there is none for this plant, or on this machine.
        """
        return None

    def prepare_alone(self, step: int, deadline_ns: int) -> bool:
        """Prepare the plant's present state like `prepare`, without Python.

        The loop calls it only if there is a fast path.

        Parameters
        ----------
        step : int
            Index of the step.
        deadline_ns : int
            Its deadline, ns; 0 for none.

        Returns
        -------
        bool
            False if nothing was done, because the outputs are needed.
        """
        return False

    # -- Handshake endpoint, for newcomers and requests ----------------------------------------------------------------

    looks: int | None = None
    """Number of looks at the endpoint so far, by `serve` when there was time for it; None without an endpoint."""

    def look(self, until_ns: int) -> None:
        """Look at the endpoint now, and continue the admission of joining peers.

        Parameters
        ----------
        until_ns : int
            Instant before which it returns, ns.
        """
        return

    # -- Peers without a command at the last deadline ------------------------------------------------------------------

    def silent(self) -> Sequence[SilentPeer]:
        """Return the peers without a command for the present step.

        Returns
        -------
        Sequence[SilentPeer]
            The peers; knowledge about each may change later.
        """
        return ()

    # -- Requests of peers to the plant --------------------------------------------------------------------------------

    def requests(self) -> Iterable[Request]:
        """Return the requests that `serve` or `collect` read since the last call, oldest first.

        Returns
        -------
        Iterable[Request]
            The requests; each is answered once.
        """
        return ()

    def reply(self, request: Any, ok: bool = True, result: Any = None, error: str | None = None) -> None:
        """Answer a request.

        Parameters
        ----------
        request : Any
            The request.
        ok : bool, default True
            Whether it succeeded.
        result : Any, optional
            Its result, which msgpack can express.
        error : str | None, optional
            Reason of a failure.
        """
        return

    # -- Parameters for peers ------------------------------------------------------------------------------------------

    def pass_on(self, values: Mapping[str, Any]) -> None:
        """Send parameters to a peer.

        Parameters
        ----------
        values : Mapping[str, Any]
            Values by 'PEER.NAME', of one peer.

        Raises
        ------
        ModelError
            If the peer has no such parameter.
        """
        name = next(iter(values)).partition(".")[0]
        raise ModelError(f"set: this run has no peer '{name}' to send parameters to")

    def unanswered(self) -> bool:
        """Return whether a peer has not answered yet; the answers are served like requests.

        Returns
        -------
        bool
            True if one has not.
        """
        return False

    def failures(self) -> Sequence[str]:
        """Return refusals of peers since the last call.

        Returns
        -------
        Sequence[str]
            One sentence each.
        """
        return ()

    # -- Ticks of peers, for the pace `external` -----------------------------------------------------------------------

    def next_tick(self, until_ns: int) -> int:
        """Remove the oldest waiting tick.

        Parameters
        ----------
        until_ns : int
            End of the wait for one, ns.

        Returns
        -------
        int
            Instant at which it came, ns; 0 for none.
        """
        raise TypeError("mode external: expected an exchange with ticks, got one without")

    def ticks_waiting(self) -> int:
        """Return the number of waiting ticks, without waiting.

        Returns
        -------
        int
            The number.
        """
        return 0

    def drop_ticks(self) -> None:
        """Discard the waiting ticks, because the schedule has changed."""
        return


class Memory(Protocol):
    """Memory of the miss policies, see rtmms.loop.step_outcome.FallbackMemory.

    Attributes
    ----------
    tape : Array
        (rows, n_actuators) command of each of the first steps, as the plant received it.
    """

    command: Array
    actuators: npt.NDArray[Any]
    fallbacks: npt.NDArray[Any]
    tape: Array


class Progress(NamedTuple):
    """Progress of a step in a compiled call; instants in ns as in rtmms.loop.fault_attribution.Times.

    Attributes
    ----------
    resolved : bool
        Whether its command is complete. Otherwise its state is sent, and `collect` continues.
    complete : bool
        Whether every claimed actuator had its command.
    begun, published, gathered, called : int
        Instants.
    stepped : int
        Instant after the plant's step; 0 if that is still to be taken.
    status : int
        Status of the plant's step.
    is_recorded : bool
        Whether the step recorder has its row.
    """

    resolved: bool
    complete: bool
    begun: int
    published: int
    gathered: int
    called: int
    stepped: int
    status: int
    is_recorded: bool


class Batched(NamedTuple):
    """Result of many steps in a row.

    Attributes
    ----------
    done : int
        Number of steps.
    times : npt.NDArray[Any]
        (done,) exchange_ns, plant_ns and outcome of each (see rtmms.wire.kernels.step.TIME).
    status : int
        Status of the last step; not 0 if it failed.
    unfinished : bool
        Whether one more was begun.
    published_ns : int
        Instant at which the last state was sent, ns.
    answered : bool
        Whether the last step had a command.
    is_recorded : bool
        Whether the step recorder has the row of the last step, as of all before it.
    handed : Progress | None, optional
        Progress of the unfinished step.
    """

    done: int
    times: npt.NDArray[Any]
    status: int
    unfinished: bool
    published_ns: int
    answered: bool
    is_recorded: bool
    handed: Progress | None = None


class FastPath(Protocol):
    """Usual step in one call, from the wait for its instant to the plant's step and the step recorder's row.

    Attributes
    ----------
    keeps : bool
        Whether the call writes the step recorder's rows.
    """

    keeps: bool

    @property
    def run(self) -> Callable[[], int]:
        """The compiled call, which returns INTERRUPTED, PUBLISHED or RESOLVED.

        It is called only after `ready`, and before `commit`.
        """

    def ready(self, step: int, due_ns: int, deadline_ns: int) -> bool:
        """Return whether a prepared step may be taken in one call.

        Parameters
        ----------
        step : int
            Index of the step.
        due_ns : int
            Its instant, ns; 0: at once.
        deadline_ns : int
            Its deadline, ns; 0 for none.

        Returns
        -------
        bool
            True if `run` may follow.
        """

    def commit(self, code: int) -> Progress | None:
        """Record the results of `run`.

        Parameters
        ----------
        code : int
            Result of `run`.

        Returns
        -------
        Progress | None
            None if it was interrupted before anything was done.
        """

    def run_batch(self, step: int, maximum: int, until_ns: int, published_ns: int, answered: bool) -> Batched | None:
        """Take steps without a clock.

        Parameters
        ----------
        step : int
            Index of the first step.
        maximum : int
            Most steps.
        until_ns : int
            Instant after which no step begins, ns.
        published_ns : int
            Instant of the last state (free mode), ns.
        answered : bool
            Whether it was answered (free mode).

        Returns
        -------
        Batched | None
            None if no step can be taken so.
        """


class SilentPeer(Protocol):
    """Peer without a command at a deadline."""

    @property
    def gone(self) -> bool:
        """Whether it is dead, and has sent no command since."""

    @property
    def starved(self) -> bool:
        """Whether it is connected: its process is there, but has not answered for long."""

    @property
    def refused(self) -> bool:
        """Whether its command for the step came in time, and was refused."""


class Request(Protocol):
    """Request of a peer: op is reset, pause, resume, step, set, snapshot, restore or stop."""

    @property
    def op(self) -> str:
        """Name of the operation."""

    @property
    def args(self) -> Any:
        """Arguments of the operation."""


class Observer(Protocol):
    """Observer of finished steps on the loop's thread; it must neither block nor allocate its records."""

    due: int
    """Next step whose end it wants; the loop skips it, and the cost of observing, until then."""

    def start(self, outputs: Mapping[str, Array]) -> None:
        """Receive the state before the first step.

        Parameters
        ----------
        outputs : Mapping[str, Array]
            Outputs at the begin.
        """

    def clear(self) -> None:
        """Discard all records, because the plant was reset."""

    def after_step(
        self, step: int, time: float, outputs: Mapping[str, Array], command: Array, applied: Applied
    ) -> None:
        """Receive a finished step.

        Parameters
        ----------
        step : int
            Index of the finished step.
        time : float
            Simulated time at its end, s.
        outputs : Mapping[str, Array]
            Outputs at its end.
        command : Array
            The command over the step.
        applied : Applied
            Results of the step's exchange.
        """


@runtime_checkable
class StepRecorder(Observer, Protocol):
    """Observer that stores every step as a row in memory, and notes of peers.

    Compiled code can write the row in its place; then it does not receive the step.
    """

    def row_memory(self, command: tuple[int, int], account: CompiledOutputs) -> int:
        """Return the address of the memory for compiled rows (rtmms.loop.row_kernels), once before the run.

        Parameters
        ----------
        command : tuple[int, int]
            Address and count of the command's numbers.
        account : CompiledOutputs
            Compiled outputs of the plant.

        Returns
        -------
        int
            The address; 0 if compiled rows are impossible.
        """

    def ready(self, step: int) -> None:
        """Prepare, in the slack, the row's numbers that are not results of the step.

        Parameters
        ----------
        step : int
            Index of the step.
        """

    def note(self, step: int, values: Mapping[str, Any]) -> None:
        """Store a note between steps.

        Parameters
        ----------
        step : int
            The next step.
        values : Mapping[str, Any]
            Values by name.
        """
