"""The log of a run, from the side of the run: what it is told at the start and at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rtmms.cli.running.final import plain
from rtmms.cli.running.lateness import told
from rtmms.errors import ModelError
from rtmms.loop.names import TIMED

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.plant import Plant
    from rtmms.record.recorder import Recorder


def begin(plan: Plan, plant: Plant) -> Recorder | None:
    """The recorder and its writer, if a log was asked for; the writer starts while the peers do."""
    if plan.log is None:
        return None
    from rtmms.record.origin import describe
    from rtmms.record.recorder import Recorder

    origin = describe(plant, {
        "robot": plan.robot, "preset": plan.preset, "parameters": plan.load_parameters(), "seed": plan.seed,
        "mode": plan.mode, "rate": plan.rate, "duration": plan.duration, "controllers": plan.controllers,
        "deadline": plan.deadline, "policies": told(plan),
    })  # fmt: skip
    timed = plan.mode in TIMED
    return Recorder(plan.log, origin, period_s=plant.dt / plan.rate if timed else None, patient=not timed)


def conclude(recorder: Recorder, plant: Plant, report: dict[str, Any], message: str) -> str:
    """The report and the plant's last state close the log; report['log'] says what became of it. Returns a sentence
    when it is not whole."""
    end = {"ended": report["ended"], "message": message, "steps": report["steps"], "report": plain(report)}
    report["log"] = log = recorder.finish(end, _state(plant) if report["ended"] != "diverged" else None)
    if "moved" in log:
        return f"{log['file']}: was moved, deleted or replaced while the run wrote it; there is no such log"
    if log["dropped"]:
        return f"{log['file']}: {log['dropped']} rows are not in the log"
    return "" if log["whole"] else f"{log['file']}: the log has no end; what it has can be read"


def _state(plant: Plant) -> bytes | None:
    """The plant's state; None of one that cannot give it, as some FMUs."""
    try:
        return plant.snapshot()
    except ModelError:
        return None
