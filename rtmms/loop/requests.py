"""Requests of peers between steps, and the replay of a recorded past to controllers."""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rtmms.base.contract import TIMED
from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.loop.chores import NEVER, Agenda
from rtmms.loop.modes import Lockstep
from rtmms.plant.description import describe_plant

if TYPE_CHECKING:
    from rtmms.loop.chores import Watch
    from rtmms.loop.clock import Clock
    from rtmms.loop.pace import Pace
    from rtmms.loop.ports import Array, Exchange, Request
    from rtmms.loop.statistics import Statistics
    from rtmms.plant.protocol import Plant


# Requests of peers between steps, and the function that performs each, in HANDLERS.


MAX_WAITING_REQUESTS = 64
MAX_NOTE_NAMES = 16
"""Names in a note."""
MAX_NOTE_VALUES = 1024
"""Numbers or texts of each name in a note."""
WHILE_WAITING = ("note", "set", "snapshot", "status")
"""Requests that are also performed while a step waits for its commands."""
AFTER_BEGIN = ("reset", "restore", "step")
"""Requests that a run that waits for its peers cannot perform."""
PAUSE_SLICE_NS = 5_000_000


class Run(Protocol):
    """Run as requests see it."""

    plant: Plant
    exchange: Exchange
    statistics: Statistics
    clock: Clock
    pace: Pace
    seed: int
    step: int
    steps: int
    started_ns: int
    ended: str

    def end(self, reason: str, message: str = "") -> None:
        """End the run after the present step.

        Parameters
        ----------
        reason : str
            Reason of the end.
        message : str, default ''
            Its explanation.
        """

    def advance(self, step: int) -> None:
        """Take one step.

        Parameters
        ----------
        step : int
            Index of the step.
        """

    def serve(self, until_ns: int) -> None:
        """Do the low-priority work.

        Parameters
        ----------
        until_ns : int
            Instant of CLOCK_MONOTONIC, ns.
        """

    def restart(self, seed: int) -> None:
        """Return to t = 0.

        Parameters
        ----------
        seed : int
            Seed of the reset.
        """

    def altered(self, **how: Any) -> None:
        """Record that the state was changed from outside.

        Parameters
        ----------
        **how : Any
            `op` and `args` of the request.
        """

    def note(self, values: Mapping[str, Any]) -> None:
        """Write a peer's note into the log.

        Parameters
        ----------
        values : Mapping[str, Any]
            Values by name.
        """


class Requests:
    """Requests between steps, and the run's scheduled changes.

    An exchange without requests costs nothing.

    Parameters
    ----------
    run : Run
        The run.
    agenda : Agenda | None, optional
        Scheduled changes.

    Attributes
    ----------
    paused : bool
        Whether no step is taken.
    singles : int
        Requested single steps during the pause.
    begun : bool
        Whether the run has begun.
    """

    def __init__(self, run: Run, agenda: Agenda | None = None) -> None:
        self.run, self.agenda = run, agenda or Agenda()
        self._passed = False
        self.pending: deque[Request] = deque()
        self.paused, self.singles, self.begun = False, 0, False

    def fetch(self) -> None:
        """Read new requests.

        A stop counts at once, so that it also ends a wait. The others wait for their turn.
        """
        if self._passed:
            self._handle_failures()
        exchange = self.run.exchange
        for request in exchange.requests():
            if request.op == "stop":
                exchange.reply(request, result={"step": self.run.step})
                self.run.end("stop", "stopped by request")
            elif len(self.pending) >= MAX_WAITING_REQUESTS:
                exchange.reply(request, ok=False, error=f"{MAX_WAITING_REQUESTS} requests are waiting already")
            else:
                self.pending.append(request)

    def between_steps(self) -> None:
        """Perform all waiting requests; stay here while the run is paused."""
        run = self.run
        self._do_agenda()
        self._do_pending()
        if not self.paused:
            run.pace.let_pass(run.step)
            return
        while self.paused and not run.ended:
            if self.singles:
                self.singles -= 1
                self._do_agenda()
                run.pace.anchor(run.step)
                run.advance(run.step)
                if run.step >= run.steps:
                    return
                if self.pending:  # during a request of many steps, other requests wait for one step at most
                    self._do_pending()
                continue
            now = run.clock.now()
            run.serve(now + PAUSE_SLICE_NS)
            self._do_pending()
            if self.paused and not self.singles:
                run.clock.sleep_until(now + PAUSE_SLICE_NS)
        run.pace.anchor(run.step)

    def stopped_before_begin(self) -> bool:
        """Perform requests while the run waits for its peers, before its first step.

        Returns
        -------
        bool
            Whether one of them stopped the run.
        """
        self.fetch()
        for request in [item for item in self.pending if item.op in AFTER_BEGIN]:
            self.pending.remove(request)
            error = "the run has not begun; it waits for its peers"
            self.run.exchange.reply(request, ok=False, error=error)
        self._do_pending()
        return bool(self.run.ended)

    def begin(self) -> None:
        """Begin the run; it ends if its schedule names a parameter that a connected peer does not have."""
        self.begun = True
        changes = self.agenda.of_peers()
        peers = self.run.exchange.report().get("peers", ()) if changes else ()
        tunable = {peer["name"]: peer.get("settable", {}) for peer in peers}
        for act in changes:
            known = tunable.get(act.owner)
            plain_names = [name.removeprefix(f"{act.owner}.") for name in act.values]
            unknown = None if known is None else next((name for name in plain_names if name not in known), None)
            if unknown is not None:
                reason = f"'{act.owner}' has no parameters that can change while it runs"
                if known:
                    reason = str(UnknownNameError(f"parameter of {act.owner}", unknown, known))
                self.run.end("failed", f"{act.sentence}: set: {reason}")
                return

    def while_waiting(self) -> None:
        """Perform waiting requests that neither move the run's time nor stop it, in their order.

        A claimant may send one before its next command, without which no step ends. The step is not taken yet, so the
        result is as if the request had come before its state.
        """
        self._do_pending(WHILE_WAITING)

    def _do_agenda(self) -> None:
        run = self.run
        for act in self.agenda.take(run.step):
            try:
                if not act.owner:
                    _set(self, act.values)
                else:
                    run.exchange.pass_on(act.values)
                    self._passed = True
            except (RtmmsError, ValueError, TypeError, KeyError) as error:
                run.end("failed", f"{act.sentence}: {error}")
        # without a schedule the run waits for the answers, so that it gives the same bits again
        if run.pace.mode not in TIMED:
            while self._passed and not run.ended:
                run.serve(run.clock.now() + PAUSE_SLICE_NS)

    def _handle_failures(self) -> None:
        for failure in self.run.exchange.failures():
            self.run.end("failed", failure)
        self._passed = self.run.exchange.unanswered()

    def _do_pending(self, these: Container[str] | None = None) -> None:
        """Perform requests in their order; with `these`, up to the first that is not among them."""
        while self.pending and not self.run.ended and (these is None or self.pending[0].op in these):
            request = self.pending.popleft()
            try:
                result = self._do(request.op, request.args or {})
            except (RtmmsError, ValueError, TypeError, KeyError) as error:
                self.run.exchange.reply(request, ok=False, error=str(error) or type(error).__name__)
            else:
                self.run.exchange.reply(request, result=result)

    def _do(self, op: str, args: Mapping[str, Any]) -> Any:
        if op not in HANDLERS:
            raise UnknownNameError("request", op, HANDLERS)
        known, do = HANDLERS[op]
        for name in args:
            if known is not None and name not in known:
                raise UnknownNameError(f"argument of the request {op}", str(name), known)
        more = do(self, args)
        return {"step": self.run.step, **(more or {})}


# --- the operations --------------------------------------------------------------------------------------------------


def _pause(requests: Requests, args: Mapping[str, Any]) -> None:
    requests.paused = True


def _resume(requests: Requests, args: Mapping[str, Any]) -> None:
    requests.paused = False


def _step(requests: Requests, args: Mapping[str, Any]) -> None:
    requests.singles += _whole("step", "count", args.get("count", 1), 1)
    requests.paused = True


def _reset(requests: Requests, args: Mapping[str, Any]) -> None:
    requests.run.restart(_whole("reset", "seed", args.get("seed", requests.run.seed), 0))


def _snapshot(requests: Requests, args: Mapping[str, Any]) -> dict[str, Any]:
    return {"state": base64.b64encode(requests.run.plant.snapshot()).decode()}


def _restore(requests: Requests, args: Mapping[str, Any]) -> None:
    requests.run.plant.restore(_state(args))
    requests.run.altered(op="restore")


def _set(requests: Requests, args: Mapping[str, Any]) -> None:
    plant = requests.run.plant
    about = describe_plant(plant)
    if about.set is None:
        raise ValueError("set: this plant has no parameters that can be changed while it runs")
    # a plant without a list for `set` may refuse the second of two after it accepted the first: one by one
    parts = [dict(args)] if about.settable is not None or not args else [{name: arg} for name, arg in args.items()]
    for values in parts:
        try:
            about.set(**values)
        except UnknownNameError as error:
            raise _of_a_peer(requests, error) from None
        requests.run.altered(op="set", args=values)


def _of_a_peer(requests: Requests, error: UnknownNameError) -> ModelError:
    """Return an error that names a peer's parameter in the form of `set`, if a peer has it."""
    peers = requests.run.exchange.report().get("peers", [])
    theirs = {peer["name"]: tuple(peer.get("settable", ())) for peer in peers}
    owned = [f"{name}.{error.name}" for name, settable in theirs.items() if error.name in settable]
    if owned:
        return ModelError(f"unknown {error.kind} '{error.name}'; did you mean {' or '.join(owned)}?")
    known = [*error.known, *(f"{name}.{item}" for name, settable in theirs.items() for item in settable)]
    if error.name in known:
        return ModelError(f"{error.name}: its peer is not ready yet; send the request again")
    return UnknownNameError(error.kind, error.name, known)


def _status(requests: Requests, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of the run for a person."""
    run, report = requests.run, requests.run.exchange.report()
    statistics = run.statistics
    return {
        "mode": run.pace.mode, "dt": run.plant.dt, "time": run.step * run.plant.dt,
        "wall_s": (run.clock.now() - run.started_ns) * 1e-9 if requests.begun else 0.0,
        "begun": requests.begun, "paused": requests.paused,
        "steps": None if run.steps >= NEVER else run.steps, "commands_applied": statistics.applied,
        "stale": statistics.stale, "misses": statistics.misses, "overruns": statistics.overruns,
        "late": report.get("late", 0),
        "rejected": report.get("rejected", {}), "peers": report.get("peers", []),
        "set_points": report.get("set_points", {}),
    }  # fmt: skip


def _note(requests: Requests, args: Mapping[str, Any]) -> None:
    """Write names with numbers, texts, or lists of those into the log; the run does not change."""
    if len(args) > MAX_NOTE_NAMES:
        raise ModelError(f"note: expected at most {MAX_NOTE_NAMES} names, got {len(args)}")
    for name, value in args.items():
        items = value if isinstance(value, list | tuple) else [value]
        if len(items) > MAX_NOTE_VALUES or not all(type(item) in (int, float, bool, str) for item in items):
            raise ModelError(f"note: {name}: expected numbers or texts, {MAX_NOTE_VALUES} at most, got {value!r:.60}")
    requests.run.note(args)


def _stop(requests: Requests, args: Mapping[str, Any]) -> None:
    """Do nothing, because `fetch` performs a stop."""


Operation = Callable[[Requests, Mapping[str, Any]], "dict[str, Any] | None"]

HANDLERS: Mapping[str, tuple[tuple[str, ...] | None, Operation]] = {
    "note": (None, _note), "pause": ((), _pause), "reset": (("seed",), _reset), "restore": (("state",), _restore),
    "resume": ((), _resume), "set": (None, _set), "snapshot": ((), _snapshot), "status": ((), _status),
    "step": (("count",), _step), "stop": ((), _stop),
}  # fmt: skip
"""Arguments of each request (None: the plant's own), and the function that performs it."""


def _whole(op: str, name: str, value: Any, least: int) -> int:
    """Return a whole number of at least `least`; ModelError for anything else."""
    if type(value) is not int or value < least:
        raise ModelError(f"{op}: {name} must be a whole number >= {least}, got {value!r}"[:200])
    return value


def _state(args: Mapping[str, Any]) -> bytes:
    """Return the snapshot in the arguments of restore; ModelError if there is none."""
    expected = "restore: state: expected the base64 text that a snapshot returned"
    if "state" not in args:
        raise ModelError(f"{expected}, got none")
    text = args["state"]
    if not isinstance(text, (str, bytes)):
        raise ModelError(f"{expected}, got {type(text).__name__}")
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ModelError(f"{expected}, got text that is not base64") from None
    if not blob:
        raise ModelError(f"{expected}, got empty text")
    return blob


# Controllers go through a recorded run before they continue it: they receive its states, and their commands are not
# applied. So they have the same internal state at its end as the recorded ones.


class _ReplayedRun:
    """Recorded run as a pace sees it, see rtmms.loop.pace.Run."""

    def __init__(self, exchange: Exchange, clock: Clock, dt: float, watch: Watch) -> None:
        self.exchange, self.clock, self._dt, self._watch = exchange, clock, dt, watch
        self.outputs: Mapping[str, Array] = {}
        self.command = np.zeros(len(exchange.claimed))
        self.dead: Sequence[str] = ()
        self.ended = ""

    def publish(self, step: int, deadline_ns: int, budget_ns: int) -> None:
        self.exchange.publish(step, step * self._dt, deadline_ns, budget_ns, self.outputs, self.exchange.applied)

    def collect(self, step: int, until_ns: int) -> bool:
        return self.exchange.collect(step, self.command, until_ns)

    def serve(self, until_ns: int) -> None:
        self.exchange.serve(until_ns)

    def answer(self) -> None:
        """Do nothing, because requests are performed when the run continues."""

    def check(self, until_ns: int = 0) -> None:
        """Do nothing, because there is no monitor."""

    def watch_now(self) -> None:
        self.dead = self._watch()


def live_through(
    states: Iterator[tuple[int, Mapping[str, Array]]], exchange: Exchange, clock: Clock, dt: float, watch: Watch
) -> None:
    """Send recorded states to controllers, and wait for their answers like lockstep.

    At the end the controllers have the same memory as in the recorded run.

    Parameters
    ----------
    states : Iterator[tuple[int, Mapping[str, Array]]]
        Step, and outputs before it.
    exchange : Exchange
        The exchange.
    clock : Clock
        Clock of the loop.
    dt : float
        Simulated time of a step, s.
    watch : Watch
        Reports processes that died.

    Raises
    ------
    PeerError
        If a controller dies or is silent.
    """
    past, pace = _ReplayedRun(exchange, clock, dt, watch), Lockstep()
    pace.bind(past)  # type: ignore[arg-type]
    for step, outputs in states:
        past.outputs = outputs
        pace.gather(step)
        pace.finish(step, clock.now())
