"""Records of a run: the observers for summary, figure and replay, and its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmms.base.contract import TIMED
from rtmms.base.errors import ModelError
from rtmms.cli.running.report import to_json_types
from rtmms.cli.running.timing import policies_as_data
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import HasRobots
from rtmms.scenario.links import as_word
from rtmms.view.figures import small_outputs

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.trace import CommandTrace, Recent, Trace
    from rtmms.plant.protocol import Plant
    from rtmms.record.origin import Branch
    from rtmms.record.recorder import Recorder


def kept_parameters(plan: Plan, plant: Plant) -> dict[str, Any]:
    """Return the parameters from which the plant can be built again, beside robot, preset and dt.

    Parameters
    ----------
    plan : Plan
        The plan.
    plant : Plant
        The plant.

    Returns
    -------
    dict[str, Any]
        Parameters by name.
    """
    return {"robots": plant.described()} if isinstance(plant, HasRobots) else plan.load_parameters()


def begin(plan: Plan, plant: Plant, branch: Branch | None = None) -> Recorder | None:
    """Return the recorder with its writer, if a log is requested; the writer starts while the peers do.

    Parameters
    ----------
    plan : Plan
        The plan.
    plant : Plant
        The plant.
    branch : Branch | None, optional
        Moment that the run continues from.

    Returns
    -------
    Recorder | None
        None without a log.
    """
    if plan.log is None:
        return None
    from rtmms.record.origin import describe
    from rtmms.record.recorder import Recorder

    origin = describe(plant, {
        "robot": plan.robot, "preset": plan.preset, "parameters": kept_parameters(plan, plant), "seed": plan.seed,
        "mode": plan.mode, "rate": plan.rate, "duration": plan.duration, "controllers": plan.controllers,
        "deadline": plan.deadline, "links": [as_word(link) for link in plan.links],
        "policies": policies_as_data(plan), "branch": None if branch is None else branch.as_data(),
    })  # fmt: skip
    timed = plan.mode in TIMED
    return Recorder(plan.log, origin, period_s=plant.dt / plan.rate if timed else None, patient=not timed)


def conclude(recorder: Recorder, plant: Plant, report: dict[str, Any], message: str) -> str:
    """Close the log with the report and the plant's last state; report['log'] has the result.

    Parameters
    ----------
    recorder : Recorder
        The recorder.
    plant : Plant
        The plant.
    report : dict[str, Any]
        Report of the run.
    message : str
        Message at its end.

    Returns
    -------
    str
        A sentence when the log is not whole, else ''.
    """
    steps = recorder.first + report["steps"]  # as they are counted in its rows
    end = {"ended": report["ended"], "message": message, "steps": steps, "report": to_json_types(report)}
    report["log"] = log = recorder.finish(end, _state(plant) if report["ended"] != "diverged" else None)
    if "moved" in log:
        return f"{log['file']}: was moved, deleted or replaced while the run wrote it; there is no such log"
    if log["dropped"]:
        return f"{log['file']}: {log['dropped']} rows are not in the log"
    return "" if log["whole"] else f"{log['file']}: the log has no end; what it has can be read"


def _state(plant: Plant) -> bytes | None:
    """Return the plant's state; None where it has no snapshot, as some FMUs."""
    try:
        return plant.snapshot()
    except ModelError:
        return None


# --- What is kept of a run while it goes: for the summary, the figure and the replay.

MAX_TRACE_BYTES = 1 << 26
TRACE_SAMPLE_S = 0.01


class RunObservers:
    """Observers of a run, made before it, for the summary, the figure and the replay.

    Parameters
    ----------
    plan : Plan
        The plan.
    plant : Plant
        The plant.
    steps : int | None
        Steps of the run, None where it has no end.
    first : int, default 0
        First step of the run.

    Raises
    ------
    ModelError
        A trace is requested without a duration.
    """

    def __init__(self, plan: Plan, plant: Plant, steps: int | None, first: int = 0) -> None:
        """Make the observers that the plan needs."""
        from rtmms.loop.trace import MAX_SAMPLES, CommandTrace, Recent, Trace

        self.trace: Trace | None = None
        self.recent: Recent | None = None
        self.outlined: RobotOutline | None = None
        self.commands: CommandTrace | None = None
        states: Trace | None = None
        trace_outputs = describe_plant(plant).trace_outputs
        if not trace_outputs and plan.figure is not None:
            trace_outputs = small_outputs(plant)
        if trace_outputs:
            row = sum(plant.observe()[name].nbytes for name in trace_outputs)
            capacity = max(1024, min(MAX_SAMPLES, MAX_TRACE_BYTES // max(1, row)))
            self.trace = Trace(plant.outputs, trace_outputs, plant.dt, steps, capacity, TRACE_SAMPLE_S, first)
        if plan.figure is not None:
            from rtmms.view.outline import figure_outline
            from rtmms.view.robot_panels import RobotOutline, along, recent_names

            outline = figure_outline(plan.robot, plant)
            self.recent = Recent(plant.outputs, recent_names(outline, plant), plant.dt)
            states = along(outline, plant, steps, first)
            if outline is not None and states is not None:
                self.outlined = RobotOutline(outline, states)
        if plan.trace is not None:
            if steps is None:
                raise ModelError("--trace: needs a --duration")
            self.commands = CommandTrace(plant.actuators, plant.outputs, steps)
        self.observers = tuple(observer for observer in (self.trace, self.recent, states) if observer is not None)
