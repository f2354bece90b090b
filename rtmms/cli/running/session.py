"""Run from its plan to its report: processes, sockets, plant, loop, in the order that starts and ends well."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, redirect_stdout
from dataclasses import asdict, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import TIMED
from rtmms.base.errors import ModelError, RtmmsError, limit_reached
from rtmms.base.terminal import print_text
from rtmms.base.trust import is_file, path_of, sentence_of
from rtmms.bridging.config import requirements_of
from rtmms.cli.option_types import INTERRUPTED
from rtmms.cli.running.children import (
    Child,
    Children,
    StartError,
    await_peers,
    keep_off,
    place_controllers,
    put_together,
)
from rtmms.cli.running.display import RunProgress
from rtmms.cli.running.process import brace, heeding_interrupts, interrupts_end
from rtmms.cli.running.recording import RunObservers, begin, conclude, kept_parameters
from rtmms.cli.running.report import (
    Accuracy,
    add_old_names,
    add_outcome,
    add_plant,
    as_json,
    begins,
    blank,
    by_robot,
    to_json_types,
)
from rtmms.cli.running.report_table import as_table
from rtmms.cli.running.setup import await_stall_detector, begin_attribution, changed_endpoints, open_sockets
from rtmms.cli.running.slow_peers import PeerPace, SlowPeers
from rtmms.cli.running.timing import Ticking, pacing, policies, step_time, warnings_before, warnings_of
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import HasRobots
from rtmms.scenario import judge
from rtmms.scenario.plant import agenda, whole_steps, with_faults, with_sensors
from rtmms.view.figures import drawing

if TYPE_CHECKING:
    from rtmms.bridging.bridge import Requirements
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.chores import Agenda
    from rtmms.loop.loop import Loop, Outcome
    from rtmms.loop.machine import Readiness
    from rtmms.loop.policies import Governor
    from rtmms.loop.surface import SurfaceWatch
    from rtmms.loop.trace import Tracking
    from rtmms.plant.protocol import Array, Plant
    from rtmms.record.origin import Branch
    from rtmms.record.recorder import Recorder
    from rtmms.sensing.readings import Consistency
    from rtmms.wire.plant.server import Server
    from rtmms.wire.plant.sockets import Sockets

MAX_FINAL_NUMBERS = 4
GOOD_ENDS = ("duration", "stop")
TELEMETRY_MARGIN = 4.0
"""Rate of telemetry over the rate of steps with which observers get each state, although steps jitter."""


class Session:
    """One run, which `execute` performs.

    Parameters
    ----------
    plan : Plan
        The plan.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.report = plan, blank(plan)
        self.progress = RunProgress(
            silent=plan.quiet or os.name != "posix"
        )  # the display is handed its files by descriptor
        self.children = Children(plan.affinity == "auto")
        self.display: Child | None = None
        self.holders: Callable[[], set[str]] = set
        self.ticking: Callable[[], list[str]] = list
        self.slow_peers = SlowPeers(None, {}, {})
        self.advice: Callable[[], list[str]] = list
        self.recorder: Recorder | None = None
        self.token = ""
        self.farewell = False  # the children know that the run is over
        self.log_failed = False
        self.plant_at_end: Plant | None = None
        self.loop: Loop | None = None
        self.accuracy: Accuracy | None = None
        self.tracking: Tracking | None = None
        self.surface: SurfaceWatch | None = None
        self.estimate: Consistency | None = None
        self.branch: Branch | None = None
        self.governor: Governor | None = None
        self.begins: dict[str, list[float]] = {}
        self.requirements: dict[str, Requirements] = {}
        self._medium = ""
        self.held: Array | None = None  # what the actuators were held at before a run that goes on
        self._to_the_end = ExitStack()

    def execute(self) -> int:
        """Run, and print the report.

        Returns
        -------
        int
            The exit status.

        Raises
        ------
        ModelError
            A word is wrong (exit status 2); nothing is printed.
        """
        status, text = 1, ""
        try:
            with self._to_the_end, ExitStack() as stack:
                stack.callback(self._close)
                try:
                    status, text = self._run(stack)
                finally:
                    self._end_log(text)
            good = status == 0 and self.report["ended"] in GOOD_ENDS
            if self.children.unmet and good and self.plan.peer_failure == "fail":
                status, text = 1, "; ".join(self.children.unmet)
        except KeyboardInterrupt:
            if self.plant_at_end is None:  # else it had ended before, and only what follows was broken off
                self.report["ended"], status = "interrupt", self._broken_off()
        except StartError as error:
            if error.status == 2:
                raise ModelError(str(error)) from None
            self.report["ended"], text = "peer", str(error)
        except ModelError:
            raise
        except RtmmsError as error:
            text = str(error)
        except (OSError, MemoryError) as error:
            text = limit_reached(error)
            if not text:
                traceback.print_exc()
        except Exception:  # a bug, here or in a plug-in: its author needs to see where
            traceback.print_exc()
        if text:
            print_text(f"rtmms: {text}", err=True)
        add_old_names(self.report)
        status = self._judge(max(status, 1) if self.log_failed else status)
        if self.plan.as_json:
            print_text(as_json(self.report))
        elif self.report["steps"]:
            print_text(as_table(self.report))
        return status

    # --- the order of things ----------------------------------------------------------------------------------------

    def _run(self, stack: ExitStack) -> tuple[int, str]:
        ready, sockets, self.token = open_sockets(self.plan, stack)
        self._start_processes(sockets)
        started = [child.process for child in self.children.all]
        keep_off([*started, self.display.process if self.display is not None else None], ready)
        self.progress.report("loading the plant")
        with heeding_interrupts(to_the_end=True):  # a compiler may swallow it
            plant = self._load()
        self._replay(plant)
        with heeding_interrupts(to_the_end=True):
            self._start_log(plant, stack)
            keep_off([self.recorder.process] if self.recorder is not None else [], ready)
            server, loop, keep = self._assemble(plant, sockets, ready, stack)
            stack.callback(server.close)
        await_peers(
            server, self.children, self.plan.wait_for_claim, self.progress.report, loop.requests.stopped_before_begin
        )
        await_stall_detector(loop.attribution, ready)
        if self.recorder is not None:
            self.recorder.await_ready()
        if self.plan.mode == "external":
            self.progress.report("", f"each step waits for a tick of a peer, at {sockets.endpoints['exchange']}")
        self._live_through(server)
        self._raise(ready)
        if self.progress.silent:  # who may drive the robot is printed all the same
            self.progress.note(self.children.who_may_drive())
        self.progress.phase = "running"
        self._to_the_end.enter_context(interrupts_end(loop))  # a late Ctrl-C must not cost report or log
        self.loop = loop
        try:
            outcome = loop.run()
        except Exception as fault:
            steps_taken = loop.step - loop.first
            self.report.update(ended="failed", steps=steps_taken, simulated_s=steps_taken * plant.dt)
            if isinstance(fault, RtmmsError) or not is_file(self.plan.robot):
                raise
            self.plant_at_end = plant
            server.close(f"the plant failed in step {loop.step}")
            place = str(path_of("robot", self.plan.robot).resolve())
            return 1, f"the plant failed in step {loop.step}: {sentence_of(fault, place)}"
        self.report["realtime"] = ready.report() | {"gc_collections": loop.collections}
        add_outcome(self.report, outcome, loop.statistics, server.report(), loop.attribution)
        self.report["seed"] = loop.seed  # of the last reset
        if loop.changes:
            self.report["changes"] = loop.changes
        server.close(names={child.peer for child in self.children.all if child.process.poll() is None})
        for peer, final in zip(self.report["exchange"]["peers"], server.final_reports(), strict=True):
            peer.update(final)
        self.progress.phase, self.farewell = "finishing", True
        ready.close()
        self.plant_at_end = plant
        if self.accuracy is not None:
            if self.accuracy.monitor is not None:
                self.progress.report("taking the run again in shorter steps, to see how wrong it is")
            self.accuracy.add(self.report, loop)
        self.report["warnings"] += warnings_of(self.report)
        self.report["warnings"] += self.slow_peers.at_end(self.report["exchange"]["peers"], self.report["steps"])
        if self.surface is not None:
            self.report["surface"] = self.surface.report()
            self.report["warnings"] += [visit.sentence for visit in self.surface.visits if visit.sentence]
        refused = self.children.refused()
        if refused:
            raise StartError(refused, 2)
        status, text = self._finish(plant, loop, outcome, keep)
        self.children.watch(self.holders)  # one may have died in the last step
        failed = self.children.failures(self.report["exchange"]["peers"])
        if failed and status == 0 and self.plan.peer_failure == "fail":
            return 1, "; ".join(failed)
        return status, text

    def _start_processes(self, sockets: Sockets) -> None:
        """Start controllers, bridges, and the display unless all is quiet; they start while the plant is loaded."""
        from rtmms.wire.addresses import seen_from

        plan = self.plan
        exchange = seen_from("", sockets.endpoints["exchange"])
        for word in plan.controllers:
            self.children.start_controller(word, exchange, plan.keys)
        by_scenario = () if plan.scenario is None else plan.scenario.bridges
        for word in plan.bridges:
            self.children.start_bridge(word, exchange, plan.keys, secrets=word not in by_scenario)
        if not self.progress.silent:
            files = {
                child.name: child.output_file.fileno() for child in self.children.all if child.output_file is not None
            }
            arguments = ["-m", "rtmms.cli.running.display", str(self.progress.board.descriptor)]
            arguments += [f"{name}={descriptor}" for name, descriptor in files.items()]
            handed = (self.progress.board.descriptor, *files.values())
            self.display = Child("display", "", arguments, output_file=None, pass_fds=handed)
        elsewhere = changed_endpoints(plan, sockets.endpoints)
        if elsewhere or not (plan.controllers or plan.quiet):
            places = "; ".join(f"{role} {endpoint}" for role, endpoint in sockets.endpoints.items())
            asked = {"exchange": plan.exchange, "step": plan.step, "telemetry": plan.telemetry}
            busy = any(asked[role] is None for role in elsewhere)
            if busy:
                self.progress.report("", "*** the default port is busy; give peers the address of this plant: ***")
            self.progress.report("", places)

    def _load(self) -> Plant:
        """Return the plant, warm and at t = 0."""
        plan = self.plan
        if plan.quiet:
            os.environ["RTMMS_QUIET"] = "1"
        brace(plan.robot)
        if plan.as_json:  # what a plant prints from Python must not precede the object
            self._to_the_end.enter_context(redirect_stdout(sys.stderr))
        self.requirements = requirements_of(plan.bridges)
        try:
            if plan.parent is not None:
                plant = plan.parent.built()
            else:
                plant = self._built()
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            raise ModelError(f"robot '{plan.robot}': {error}") from None
        whole_steps(plant, plan.robot, plan.duration, self._first)
        if plan.degrade and plan.parent is None:
            from rtmms.plant.levels import Levels

            plant = Levels(plant)
        if plan.parent is None:
            plant = self._equipped(plant)
        if plan.figure is not None and drawing(plan.robot, plant) is None:
            raise ModelError(f"--figure {plan.figure}: robot '{plan.robot}' has no figure to draw")
        add_plant(self.report, plant)
        self.begins, self._medium = begins(plant), describe_plant(plant).medium
        return plant

    def _built(self) -> Plant:
        """Return the plant of the command line.

        It has its bridges' requirements where the command line leaves them open.
        """
        import rtmms

        plan, parameters = self.plan, self.plan.load_parameters()
        plant: Plant = rtmms.plant.loading.build_plant(plan.robot, dt=plan.dt, preset=plan.preset, **parameters)
        for name, requirement in self.requirements.items():
            required = _missing_parameters(plant, parameters, requirement.parameters)
            if required:
                parameters |= required
                # the log has them as well, so that a replay builds the same plant
                self.plan = replace(self.plan, parameters={**self.plan.parameters, **required})
                plant = rtmms.plant.loading.build_plant(plan.robot, dt=plan.dt, preset=plan.preset, **parameters)
                values = [f"{key}={str(value).lower()}" for key, value in required.items()]
                self.progress.note(
                    [f"{' '.join(values)}: bridge '{name}' needs it (--set {' '.join(required)}=... sets it)"]
                )
        for name, requirement in self.requirements.items():
            if plan.dt is not None or plant.dt <= requirement.max_dt_s:
                continue
            before, dt = plant.dt, plant.dt / ceil(plant.dt / requirement.max_dt_s)
            try:
                plant = rtmms.plant.loading.build_plant(plan.robot, dt=dt, preset=plan.preset, **parameters)
            except (ModelError, TypeError):  # its steps cannot be chosen: the bridge reports what comes of it
                continue
            self.progress.note(
                [
                    f"steps of {dt * 1e3:g} ms in place of {before * 1e3:g} ms: bridge '{name}' needs "
                    f"{requirement.max_dt_s * 1e3:.3g} ms or less (--dt sets them)"
                ]
            )
        return plant

    def _telemetry_hz(self, dt: float) -> float:
        """Return the states per second for observers.

        There are more than --telemetry-hz where a bridge without a claim needs each state.
        """
        if any(requirement.every_state for requirement in self.requirements.values()):
            return max(self.plan.telemetry_hz, TELEMETRY_MARGIN * self.plan.rate / dt)
        return self.plan.telemetry_hz

    def _assemble(
        self, plant: Plant, sockets: Sockets, ready: Readiness, stack: ExitStack
    ) -> tuple[Server, Loop, RunObservers]:
        from rtmms.loop.clock import MonotonicClock
        from rtmms.loop.impairment import impaired_links
        from rtmms.loop.loop import Loop, LoopServices
        from rtmms.loop.machine import at_priority, shortest_wait_s
        from rtmms.loop.trace import Tracking
        from rtmms.loop.trial import cold_trial, trial
        from rtmms.wire.plant.server import Server

        plan = self.plan
        steps = None if plan.duration is None else round(plan.duration / plant.dt)
        keep = RunObservers(plan, plant, steps, self._first)
        with at_priority(ready.asked):  # as the run will be: what starts beside us must not count as the plant's
            try:
                measured = trial(plant, plan.seed)
                p999_s = measured.p999_s
                if plan.mode in TIMED:
                    # a miss must not cost a period as well
                    p999_s = max(p999_s, cold_trial(plant, policies(plan), plan.seed))
            except RtmmsError:
                raise
            except SystemExit as end:
                raise RtmmsError(f"the plant called sys.exit({end.code!r}) before the run; remove the call") from None
            except Exception as fault:
                if not is_file(plan.robot):
                    raise
                place = str(path_of("robot", plan.robot).resolve())
                raise RtmmsError(
                    f"the plant failed before the run, while its step was timed: {sentence_of(fault, place)}"
                ) from None
            shortest_s = shortest_wait_s()
        if self.branch is not None:  # the trials had the plant
            plant.restore(self.branch.state)
        pace, statistics, deadline = pacing(plan, plant.dt, p999_s, shortest_s, self.report, self.progress.note)
        self.progress.note(step_time(plan, plant.dt, plant, measured, self.report))
        self.progress.note(warnings_before(plan, plant.dt, p999_s))
        server = Server(
            plant, robot=plan.called, mode=plan.mode, rate=plan.rate, deadline_s=deadline, sockets=sockets,
            seed=plan.seed, token=self.token, telemetry_hz=self._telemetry_hz(plant.dt), duration_s=plan.duration,
            links=impaired_links(plan.links, plant.dt, plan.seed),
        )  # fmt: skip
        self.holders = server.holders
        self.slow_peers = self._looking_for_slow_peers(plant.dt, deadline)
        self.advice = lambda: self.slow_peers.news(server.claimants(), statistics.steps)
        if plan.mode == "external":
            self.ticking = Ticking(server.ticker).news
        self.progress.note(sockets.notes)
        ready.failed.extend(server.notes)
        note = None if self.recorder is None else self.recorder.note_set_points
        self.tracking = Tracking(plant.dt, server.set_points, plan.tracking_start, note)
        self.estimate = self._estimating(plant)
        self.surface = self._surface_watch(plant)
        more = [item for item in (self.surface, self.estimate, self.recorder) if item is not None]
        observers = [*keep.observers, self.tracking, *more]
        self.accuracy = Accuracy(None if plan.parent is not None else plant, steps, plan.controllers)
        self.progress.note(self.accuracy.at_start(quiet=plan.quiet))
        attribution = begin_attribution(ready, statistics, stack, alone=bool(plan.controllers))
        loop = Loop(
            plant, server, MonotonicClock(), pace, policies(plan), statistics, observers,
            steps=None if steps is None else self._first + steps, seed=plan.seed, first=self._first,
            services=LoopServices(
                keep.commands, self._watch, self._status, attribution, self.accuracy.monitor,
                self._agenda(plant, steps), self._governor(plant, statistics.period_us),
            ),
        )  # fmt: skip
        if self.held is not None:
            loop.command[:] = self.held
        if self.recorder is not None:
            self.recorder.bind(loop)
        return server, loop, keep

    def _looking_for_slow_peers(self, dt: float, deadline_s: float | None) -> SlowPeers:
        plan = self.plan
        pace = PeerPace(dt / plan.rate, deadline_s, plan.rate) if deadline_s is not None else None
        delays = {link.controller: 2e-3 * link.delay_ms / plan.rate for link in plan.links}
        return SlowPeers(pace, {child.peer: child.name for child in self.children.all}, delays)

    def _surface_watch(self, plant: Plant) -> SurfaceWatch | None:
        from rtmms.loop.surface import SurfaceWatch

        if self.plan.on_surface == "ignore":
            return None
        stop = self._stop_at_surface if self.plan.on_surface == "stop" else None
        return SurfaceWatch(plant, self.plan.called, stop, self._first)

    def _stop_at_surface(self, sentence: str) -> None:
        if self.loop is not None:
            self.loop.end("policy", sentence)

    @property
    def _first(self) -> int:
        """First step of the run."""
        return 0 if self.plan.parent is None else self.plan.parent.step

    def _replay(self, plant: Plant) -> None:
        """Replay the log up to the run's start, where the run continues from a log."""
        parent = self.plan.parent
        if parent is not None:
            self.progress.report(f"replaying {parent.log.path} to {parent.seconds:g} s")
            self.branch, self.held = parent.replayed(plant)
            self.report["from"] = self.branch.as_fields()
            self.progress.note(parent.not_continued(self.report["from"].get("set") or {}))

    def _live_through(self, server: Server) -> None:
        """Send the recorded states to the controllers of a log, so that they continue from their state."""
        parent = self.plan.parent
        if parent is None or not parent.same_controllers or self.plan.mode == "free" or not self.children.all:
            return
        from rtmms.loop.clock import MonotonicClock
        from rtmms.loop.requests import live_through

        self.progress.report(f"the controllers live through {parent.log.path} to {parent.seconds:g} s")
        live_through(parent.states(), server, MonotonicClock(), float(parent.log.origin["dt"]), self._watch)

    def _estimating(self, plant: Plant) -> Consistency | None:
        """Return the observer of the estimate's error, where the plant has an estimate."""
        if not self.plan.estimate:
            return None
        from rtmms.sensing.readings import Consistency
        from rtmms.sensing.sensed import Estimated

        return Consistency(plant) if isinstance(plant, Estimated) else None

    def _governor(self, plant: Plant, period_us: float | None) -> Governor | None:
        """Return the governor of a plant with levels, where the run may change them."""
        if not self.plan.degrade or period_us is None:
            return None
        from rtmms.loop.policies import Governor
        from rtmms.plant.levels import levels_as_data, levels_of

        levels = levels_of(plant)
        if levels is None:
            raise ModelError("--degrade: the log was recorded without --degrade; expected one with it")
        if not levels.costs:
            levels.measure()
        governor = Governor(levels, period_us * 1e3)
        self.report["degrade"] = {**levels_as_data(levels), "period_us": period_us}
        self.governor = governor
        return governor

    def _equipped(self, plant: Plant) -> Plant:
        """Return the plant with faults and sensors, where the run has some."""
        scenario = self.plan.scenario
        plant = with_faults(plant, scenario.events if scenario is not None else ())
        over = scenario.sensors if scenario is not None else {}
        if self.plan.sensors != "ideal" or over:
            from rtmms.sensing.estimator import compile_ahead

            self.progress.report("fetching the estimator's kernels, which controllers may need")
            compile_ahead()
        return with_sensors(plant, self.plan.sensors, over, self.plan.estimate)

    def _agenda(self, plant: Plant, steps: int | None) -> Agenda | None:
        scenario, parent = self.plan.scenario, self.plan.parent
        if scenario is not None:
            from rtmms.cli.running.scenario import check_expectations

            check_expectations(scenario, plant, self.report)
        if parent is not None:
            return parent.agenda(plant)
        return (
            None
            if scenario is None
            else agenda(scenario.events, plant, self.plan.controllers, str(scenario.path), steps)
        )

    def _judge(self, status: int) -> int:
        """Compare the report with the scenario's expectations; return 1 where one does not hold."""
        scenario = self.plan.scenario
        if scenario is None or not scenario.expect or status == INTERRUPTED:
            return status
        findings = judge(scenario.expect, to_json_types(self.report))
        self.report["expect"] = [asdict(item) for item in findings]
        for finding in findings:
            if not finding.holds:
                print_text(f"rtmms: {finding.sentence}", err=True)
        return status if all(item.holds for item in findings) else max(status, 1)

    def _raise(self, ready: Readiness) -> None:
        """Move children to their places; memory and scheduler last."""
        from rtmms.loop.machine import finish

        holds = self.holders()
        holding = [child for child in self.children.all if child.peer in holds]
        if self.plan.mode == "lockstep" and self.plan.affinity == "auto" and self.plan.priority != "off":
            put_together(holding, ready)
        else:
            place_controllers(holding, ready, self.plan.priority)
        finish(ready)

    def _finish(self, plant: Plant, loop: Loop, outcome: Outcome, keep: RunObservers) -> tuple[int, str]:
        """Complete the run: summary, figure, trace of commands."""
        summarise = describe_plant(plant).summarise
        if keep.trace is not None and outcome.steps and summarise is not None:
            self.report["summary"] = summarise(*keep.trace.read())
        if self.plan.figure is not None:
            self.progress.report("drawing the figure")
            draw = drawing(self.plan.robot, plant, keep.outlined)
            assert draw is not None  # refused before the run
            draw(self.plan.figure, keep.trace, keep.recent, loop.statistics)
        if self.tracking is not None and outcome.steps:
            self.report["tracking"] = self.tracking.report()
            self.report["warnings"] += self.tracking.warnings()
        if self.governor is not None:
            self.report["degrade"] |= self.governor.report()
        if self.estimate is not None:
            self.report["estimate"] = self.estimate.report()
        if isinstance(plant, HasRobots):
            self.report["robots"] = by_robot(self.report, plant, self.begins)
        plan = self.plan
        if keep.commands is not None and plan.trace is not None:
            from rtmms.record.commands import save

            try:
                save(plan.trace, keep.commands, plant, {
                    "robot": plan.robot, "dt": plant.dt, "preset": plan.preset,
                    "parameters": kept_parameters(plan, plant), "seed": loop.seed,
                    "mode": plan.mode, "ended": outcome.ended,
                })  # fmt: skip
            except RtmmsError as fault:
                return 1, str(fault)
        if outcome.ended == "interrupt":
            return self._broken_off(), outcome.message
        return (0 if outcome.ended in GOOD_ENDS else 1), outcome.message

    def _broken_off(self) -> int:
        """Return the status after Ctrl-C: the normal end of a run without another one, else a signal's."""
        return 0 if self.plan.duration is None else INTERRUPTED

    def _start_log(self, plant: Plant, stack: ExitStack) -> None:
        self.recorder = begin(self.plan, plant, self.branch)
        if self.recorder is not None:
            stack.callback(self.recorder.close)
            if not self.progress.silent:  # else to standard error
                self.recorder.patience.report = lambda sentence: self.progress.report("", sentence)

    def _end_log(self, message: str) -> None:
        if self.recorder is not None and self.plant_at_end is not None:
            trouble = conclude(self.recorder, self.plant_at_end, self.report, message)
            self.log_failed = not self.report["log"]["whole"] or self.report["log"]["dropped"] > 0
            self.progress.note([trouble] if trouble else [])

    # --- between steps ----------------------------------------------------------------------------------------------

    def _watch(self) -> list[str]:
        refused = self.children.refused()
        if refused and self.loop is not None:  # before it held anything or sent anything
            self.loop.end("peer", refused)
            return []
        dead, others = self.children.watch(self.holders)
        self.progress.note([f"{sentence}; it held no actuator and the run goes on" for sentence in others])
        self.progress.note(self.ticking())
        self.progress.note(self.advice())
        if self.surface is not None:
            self.progress.note(self.surface.news())
        if self.accuracy is not None:
            self.progress.note(self.accuracy.news())
        if self.recorder is not None:
            self.progress.note(self.recorder.watch())
        if dead and self.plan.mode != "lockstep":
            self.progress.note(
                [f"{sentence}; the run goes on by the miss policy {self.plan.on_miss}" for sentence in dead]
            )
        return dead

    def _status(self, loop: Loop) -> None:
        """Write facts for the display; about 60 us, in the slack."""
        if self.progress.silent:
            return
        statistics, time_s = loop.statistics, loop.step * loop.plant.dt
        outputs = loop.outputs(loop.step)
        wall_s = (loop.clock.now() - loop.started_ns) * 1e-9
        self.progress.board.write({
            "phase": self.progress.phase, "time_s": time_s, "duration_s": self.plan.duration,
            "misses": statistics.misses, "stale": statistics.stale,
            "overruns": statistics.overruns, "exchange_p99_us": statistics.recent("exchange", 0.99),
            "real_time_factor": time_s / wall_s if self.plan.mode != "realtime" and wall_s > 0 else None,
            "outputs": {name: value.tolist() for name, value in outputs.items() if value.size <= MAX_FINAL_NUMBERS},
            "medium": self._medium,
            "messages": self.progress.messages,
        })  # fmt: skip

    def _close(self) -> None:
        """End all started processes, the display last, so that the report comes after its last line."""
        self.progress.note(self.children.close(patience_s=1.0 if self.farewell else 0.0))
        if self.plan.bridges:
            self.report["bridges"] = self.children.bridge_counts
        self.progress.board.write({"phase": "done", "messages": self.progress.messages})
        if self.display is not None:
            try:
                self.display.process.wait(1.0)
            except Exception:
                self.display.process.kill()
                self.display.process.wait()
        self.progress.board.close()
        if self.progress.silent:
            self.progress.write_messages()


def _missing_parameters(
    plant: Plant, provided: Mapping[str, Any], required: Iterable[tuple[str, Any]]
) -> dict[str, Any]:
    """Return the required parameters for which the robot has another value, and that nobody gave."""
    present = describe_plant(plant).parameters()
    values = present if isinstance(present, Mapping) else vars(present) if hasattr(present, "__dict__") else {}
    return {name: value for name, value in required if name not in provided and values.get(name, value) != value}
