"""A run from its plan to its report: processes, sockets, plant, loop, in the order that starts and ends well."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from rtmms.cli.board import Board
from rtmms.cli.children import Child, Children
from rtmms.cli.final import add_outcome, add_plant, as_json, as_table, blank
from rtmms.cli.recording import begin, conclude
from rtmms.errors import ModelError, RtmmsError
from rtmms.report.figures import drawing

if TYPE_CHECKING:
    from rtmms.cli.plan import Plan
    from rtmms.loop.commands import CommandTrace
    from rtmms.loop.loop import Loop, Outcome
    from rtmms.loop.realtime import Readiness
    from rtmms.loop.trace import Recent, Trace
    from rtmms.plant import Plant
    from rtmms.record.recorder import Recorder
    from rtmms.wire.server import Server
    from rtmms.wire.sockets import Sockets

ADMISSION_S = 10.0
IMPATIENT_S = 1.0
TRACE_BYTES = 1 << 26
TRACE_APART_S = 0.01
MOST_MESSAGES = 50
SMALL = 4
GOOD_ENDS = ("duration", "interrupt", "stop")


class StartError(RtmmsError):
    """A run that could not begin. status is what the command exits with."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Session:
    """One run. `execute` does it and returns the exit status."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.report = plan, blank(plan)
        self.silent = plan.quiet or os.name != "posix"  # the display is handed its files by descriptor
        self.children, self.board = Children(), Board()
        self.display: Child | None = None
        self.holders: Callable[[], set[str]] = set
        self.recorder: Recorder | None = None
        self.phase, self.token = "starting", ""
        self.farewell = False  # the children were told that the run is over
        self.messages: list[str] = []
        self.plant_at_end: Plant | None = None
        self.begun = time.monotonic()

    def execute(self) -> int:
        """Run and print the report. RtmmsError of the words' kind (exit 2) passes through, with nothing printed."""
        status, text = 1, ""
        try:
            with ExitStack() as stack:
                stack.callback(self._close)
                try:
                    status, text = self._run(stack)
                finally:
                    self._end_log(text)
        except KeyboardInterrupt:
            self.report["ended"], status = "interrupt", 0
        except StartError as error:
            if error.status == 2:
                raise ModelError(str(error)) from None
            self.report["ended"], text = "peer", str(error)
        except ModelError:
            raise
        except RtmmsError as error:
            text = str(error)
        except Exception:  # a bug, here or in a plug-in: its author needs to see where
            traceback.print_exc()
        if text:
            click.echo(f"rtmms: {text}", err=True)
        if self.plan.as_json:
            click.echo(as_json(self.report))
        elif self.report["steps"]:
            click.echo(as_table(self.report))
        return status

    # --- the order of things ----------------------------------------------------------------------------------------

    def _run(self, stack: ExitStack) -> tuple[int, str]:
        ready, sockets = self._open_sockets(stack)
        self._start_processes(sockets)
        self._tell("loading the plant")
        plant = self._load()
        self._start_log(plant, stack)
        server, loop, keep = self._assemble(plant, sockets, ready)
        stack.callback(server.close)
        self._await_peers(server)
        if self.recorder is not None:
            self.recorder.await_ready()
        self._raise(ready)
        self.phase = "running"
        with _interrupts_end(loop):
            outcome = loop.run()
        self.report["realtime"] = ready.report()
        add_outcome(self.report, outcome, loop.statistics, server.report())
        server.close()
        self.phase, self.farewell = "finishing", True
        ready.close()
        self.plant_at_end = plant
        return self._finish(plant, loop, outcome, keep)

    def _open_sockets(self, stack: ExitStack) -> tuple[Readiness, Sockets]:
        """Timer and power states, then the endpoints: the children must know where to go."""
        from rtmms.loop.realtime import may_raise, parse_priority, prepare
        from rtmms.wire.sockets import Sockets, Threads
        from rtmms.wire.tokens import new_token, remove_token, write_token

        plan = self.plan
        priority, _ = parse_priority(plan.priority)
        ready = prepare(priority if plan.mode == "realtime" else None)
        stack.callback(ready.close)
        granted = priority if ready.asked is not None and may_raise(priority) else None
        sockets = Sockets(plan.exchange, plan.step, plan.telemetry, free_ports=True, threads=Threads(priority=granted))
        stack.callback(sockets.close)
        # before the children look for it: the first hello is then granted, and not only the second
        self.token = new_token()
        write_token(sockets.endpoints["exchange"], self.token)
        stack.callback(remove_token, sockets.endpoints["exchange"], self.token)
        return ready, sockets

    def _start_processes(self, sockets: Sockets) -> None:
        """Controllers, bridges, and the display unless all is quiet; they start while we load the plant."""
        plan = self.plan
        for word in plan.controllers:
            self.children.start_controller(word, sockets.endpoints["exchange"])
        for word in plan.bridges:
            self.children.start_bridge(word, sockets.endpoints["exchange"])
        if not self.silent:
            files = {child.name: child.words.fileno() for child in self.children.all if child.words is not None}
            arguments = ["-m", "rtmms.cli.display", str(self.board.descriptor)]
            arguments += [f"{name}={descriptor}" for name, descriptor in files.items()]
            handed = (self.board.descriptor, *files.values())
            self.display = Child("display", "", arguments, words=None, pass_fds=handed)
        moved = _moved(plan, sockets.endpoints)
        if moved or not plan.controllers:
            places = "; ".join(f"{role} {endpoint}" for role, endpoint in sockets.endpoints.items())
            asked = {"exchange": plan.exchange, "step": plan.step, "telemetry": plan.telemetry}
            busy = any(asked[role] is None for role in moved)
            self._tell("", f"{places} (the default port is busy)" if busy else places)

    def _load(self) -> Plant:
        """The plant, warm and at t = 0."""
        import rtmms

        plan = self.plan
        if plan.quiet:
            os.environ["RTMMS_QUIET"] = "1"
        try:
            plant = rtmms.load(plan.robot, dt=plan.dt, preset=plan.preset, **plan.load_parameters())
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            raise ModelError(f"robot '{plan.robot}': {error}") from None
        if plan.figure is not None and drawing(plan.robot, plant) is None:
            raise ModelError(f"--figure {plan.figure}: robot '{plan.robot}' has no figure to draw")
        add_plant(self.report, plant)
        return plant

    def _assemble(self, plant: Plant, sockets: Sockets, ready: Readiness) -> tuple[Server, Loop, Keepers]:
        from rtmms.loop.clock import MonotonicClock
        from rtmms.loop.loop import Loop
        from rtmms.loop.pace import Free, Lockstep, Pace, Realtime
        from rtmms.loop.policies import Policies
        from rtmms.loop.realtime import raised
        from rtmms.loop.schedule import Schedule, deadline_s
        from rtmms.loop.statistics import Statistics
        from rtmms.loop.trial import trial
        from rtmms.wire.server import Server

        plan = self.plan
        steps = None if plan.duration is None else round(plan.duration / plant.dt)
        keep = Keepers(plan, plant, steps)
        with raised(ready.asked):  # as the run will be: what starts beside us must not count as the plant's
            p999_s = trial(plant, plan.seed)
        pace: Pace
        deadline: float | None = None
        statistics = Statistics()
        if plan.mode == "realtime":
            period = plant.dt / plan.rate
            deadline = deadline_s(period, p999_s, plan.deadline)
            statistics = Statistics(period_us=period * 1e6, deadline_us=deadline * 1e6)
            self.report["schedule"].update(period_us=period * 1e6, deadline_us=deadline * 1e6)
            pace = Realtime(Schedule(period * 1e9, round(deadline * 1e9)))
        else:
            pace = Lockstep() if plan.mode == "lockstep" else Free()
        server = Server(
            plant, robot=plan.robot, mode=plan.mode, rate=plan.rate, deadline_s=deadline, sockets=sockets,
            seed=plan.seed, token=self.token,
        )  # fmt: skip
        self.holders = server.holders
        self._note(sockets.notes)
        ready.failed.extend(server.notes)
        observers = [*keep.observers, *([self.recorder] if self.recorder is not None else [])]
        policies = Policies(miss=plan.on_miss, overrun=plan.on_overrun)
        loop = Loop(
            plant, server, MonotonicClock(), pace, policies, statistics, observers, steps=steps,
            commands=keep.commands, watch=self._watch, status=self._status, seed=plan.seed,
        )  # fmt: skip
        if self.recorder is not None:
            self.recorder.bind(loop)
        return server, loop, keep

    def _await_peers(self, server: Server) -> None:
        """Until every process that was started is admitted and warm; StartError naming the one that is not."""
        expected = {child.peer for child in self.children.all}
        if expected:
            self._tell("waiting for " + ", ".join(sorted(expected)))
        elif self.plan.wait_for_claim:
            self._tell("waiting for a controller to claim an actuator")
        until = time.monotonic() + ADMISSION_S
        while True:
            server.serve(time.monotonic_ns() + 2_000_000)
            if expected <= server.admitted() and (not self.plan.wait_for_claim or bool(server.claimed.any())):
                return
            for child in self.children.ended():
                status = child.process.returncode
                raise StartError(child.obituary(status), 2 if status == 2 else 1)
            if expected and time.monotonic() > until:
                here = server.admitted()
                silent = ", ".join(child.name for child in self.children.all if child.peer not in here)
                raise StartError(f"{silent} did not say hello within {ADMISSION_S:g} s")
            time.sleep(0.0005)

    def _raise(self, ready: Readiness) -> None:
        """Memory and scheduler last; children only where a number was asked for."""
        from rtmms.loop.realtime import CHILD_BELOW, finish, parse_priority, raise_child

        priority, explicit = parse_priority(self.plan.priority)
        if explicit and ready.asked is not None and priority is not None:
            for child in self.children.all:
                failed = raise_child(child.process.pid, priority - CHILD_BELOW)
                ready.failed.extend([failed] if failed else [])
        finish(ready)

    def _finish(self, plant: Plant, loop: Loop, outcome: Outcome, keep: Keepers) -> tuple[int, str]:
        """What is made of the run when it is over: summary, figure, trace of commands."""
        if keep.trace is not None and outcome.steps:
            self.report["summary"] = plant.summarise(*keep.trace.read())  # type: ignore[attr-defined]
        if self.plan.figure is not None:
            self._tell("drawing the figure")
            draw = drawing(self.plan.robot, plant)
            assert draw is not None  # refused before the run
            draw(self.plan.figure, keep.trace, keep.recent, loop.statistics)
        plan = self.plan
        if keep.commands is not None and plan.trace is not None:
            from rtmms.record.commands import save

            save(plan.trace, keep.commands, plant, {
                "robot": plan.robot, "dt": plant.dt, "preset": plan.preset, "parameters": plan.load_parameters(),
                "seed": loop.seed, "mode": plan.mode, "ended": outcome.ended,
            })  # fmt: skip
        return (0 if outcome.ended in GOOD_ENDS else 1), outcome.message

    def _start_log(self, plant: Plant, stack: ExitStack) -> None:
        self.recorder = begin(self.plan, plant)
        if self.recorder is not None:
            stack.callback(self.recorder.close)

    def _end_log(self, message: str) -> None:
        if self.recorder is not None and self.plant_at_end is not None:
            trouble = conclude(self.recorder, self.plant_at_end, self.report, message)
            self._note([trouble] if trouble else [])

    # --- between steps ----------------------------------------------------------------------------------------------

    def _watch(self) -> list[str]:
        dead, others = self.children.watch(self.holders)
        self._note([f"{sentence}; it held no actuator and the run goes on" for sentence in others])
        if self.recorder is not None:
            self._note(self.recorder.watch())
        if dead and self.plan.mode != "lockstep":
            self._note([f"{sentence}; the run goes on by the miss policy {self.plan.on_miss}" for sentence in dead])
        return dead

    def _status(self, loop: Loop) -> None:
        """A few facts for the display; about 60 us, done in the slack."""
        if self.silent:
            return
        statistics, time_s = loop.statistics, loop.step * loop.plant.dt
        outputs = loop.outputs(loop.step)
        wall_s = (loop.clock.now() - loop.started_ns) * 1e-9
        self.board.write({
            "phase": self.phase, "time_s": time_s, "duration_s": self.plan.duration, "misses": statistics.misses,
            "overruns": statistics.overruns, "exchange_p99_us": statistics.recent("exchange", 0.99),
            "real_time_factor": time_s / wall_s if self.plan.mode != "realtime" and wall_s > 0 else None,
            "outputs": {name: value.tolist() for name, value in outputs.items() if value.size <= SMALL},
            "messages": self.messages,
        })  # fmt: skip

    def _tell(self, phase: str, message: str = "") -> None:
        self.phase = phase or self.phase
        self._note([message] if message else [])
        self.board.write({"phase": self.phase, "messages": self.messages})

    def _note(self, messages: list[str]) -> None:
        """Messages for the display, bounded: a fault that repeats must not fill the memory. Without one, they are
        written here, but within the run."""
        self.messages.extend(messages[: MOST_MESSAGES - len(self.messages)])
        if self.silent and self.phase != "running":
            self._write_messages()

    def _write_messages(self) -> None:
        for message in self.messages:
            print(message, file=sys.stderr)
        self.messages.clear()

    def _close(self) -> None:
        """End what was started, display last, so that the report comes after its last line."""
        self.children.close(patience_s=1.0 if self.farewell else 0.0)
        self.report["bridges"] = self.children.bridge_counts
        self.board.write({"phase": "done", "messages": self.messages})
        if self.display is not None:
            try:
                self.display.process.wait(1.0)
            except Exception:
                self.display.process.kill()
        self.board.close()
        if self.silent:
            self._write_messages()


class Keepers:
    """The observers of a run, made before it: what the summary, the figure and the replay need."""

    def __init__(self, plan: Plan, plant: Plant, steps: int | None) -> None:
        from rtmms.loop.commands import CommandTrace
        from rtmms.loop.trace import CAPACITY, Recent, Trace

        self.trace: Trace | None = None
        self.recent: Recent | None = None
        self.commands: CommandTrace | None = None
        names = getattr(plant, "trace_outputs", ())
        if names and hasattr(plant, "summarise"):
            row = sum(plant.observe()[name].nbytes for name in names)
            capacity = max(1024, min(CAPACITY, TRACE_BYTES // max(1, row)))
            self.trace = Trace(plant.outputs, names, plant.dt, steps, capacity, TRACE_APART_S)
        if plan.figure is not None:
            self.recent = Recent(plant.outputs, getattr(plant, "recent_outputs", ()), plant.dt)
        if plan.trace is not None:
            if steps is None:
                raise ModelError("--trace: needs a --duration")
            self.commands = CommandTrace(plant.actuators, plant.outputs, steps)
        self.observers = tuple(observer for observer in (self.trace, self.recent) if observer is not None)


def _moved(plan: Plan, endpoints: dict[str, str]) -> dict[str, str]:
    """The endpoints that are not the default ones nor those asked for."""
    from rtmms.wire.endpoints import DEFAULTS

    asked = {"exchange": plan.exchange, "step": plan.step, "telemetry": plan.telemetry}
    return {role: endpoint for role, endpoint in endpoints.items() if endpoint != (asked[role] or DEFAULTS[role])}


@contextmanager
def _interrupts_end(loop: Loop) -> Iterator[None]:
    """Within: Ctrl-C and SIGTERM end the run after its step; one more, when that did not help, breaks off."""
    first_s: list[float] = []

    def end(*_: Any) -> None:
        # some senders signal the process and then its group: the second of a pair is not a person's impatience
        if first_s and time.monotonic() - first_s[0] > IMPATIENT_S:
            raise KeyboardInterrupt
        first_s.append(time.monotonic())
        loop.end("interrupt")

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
