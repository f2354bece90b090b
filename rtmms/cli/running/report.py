"""Report of a run: one object, printed as JSON, or as text by report_table.py."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rtmms
from rtmms.base.contract import PARTS, QUANTILES
from rtmms.loop.fault_attribution import CAUSES
from rtmms.plant.description import describe_plant, unwrapped
from rtmms.plant.optional_protocols import HasRobots

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.fault_attribution import FaultAttribution
    from rtmms.loop.loop import Loop, Outcome
    from rtmms.loop.statistics import Statistics
    from rtmms.plant.monitor import Monitor
    from rtmms.plant.protocol import Plant
    from rtmms.plant.step_advice import Calibration, KnownStep


MIN_REPEAT_S = 2.0
"""Wall time to repeat a run for its accuracy, s. Between the two limits it is a tenth of the run's."""
MAX_REPEAT_S = 5.0
"""Wall time to repeat a long run for its accuracy, s."""
HURRIED_REPEAT_S = 0.3
"""Wall time to repeat a run for its accuracy after Ctrl-C, s."""


def blank(plan: Plan) -> dict[str, Any]:
    """Return the report of a run that did not begin: unknown values are None.

    Parameters
    ----------
    plan : Plan
        The plan.

    Returns
    -------
    dict[str, Any]
        The report.
    """
    return {
        "robot": plan.robot, "mode": plan.mode, "dt": plan.dt, "rate": plan.rate, "steps": 0, "simulated_s": 0.0,
        "wall_s": None, "real_time_factor": None, "coupling": plan.coupling, "seed": plan.seed,
        "version": rtmms.__version__, "ended": None,
        "exchange": {"commands_applied": 0, "stale": 0, "misses": 0, "unclaimed": 0, "reused": 0,
                     "max_consecutive_misses": 0, "late": 0, "rejected": {}, "peers": [], "links": {}},
        "schedule": {"period_us": None, "deadline_us": None, "trial_us": None, "overruns": 0, "skipped": 0,
                     "policy": {"miss": plan.on_miss, "overrun": plan.on_overrun}, "causes": dict.fromkeys(CAUSES, 0)},
        "stall_detector": None,
        "timing_us": {part: dict.fromkeys(QUANTILES) for part in PARTS},
        "realtime": {"scheduler": None, "priority": None, "memory_locked": None, "affinity": None, "failed": []},
        "final": {}, "units": {}, "summary": {}, "accuracy": None, "tracking": {}, "estimate": {}, "surface": {},
        "warnings": [],
    }  # fmt: skip


def add_plant(report: dict[str, Any], plant: Plant) -> None:
    """Add the plant's own values: its dt, its coupling, and the units of its outputs.

    Parameters
    ----------
    report : dict[str, Any]
        The report, changed in place.
    plant : Plant
        The plant.
    """
    report["dt"] = plant.dt
    report["units"] = {channel.name: channel.unit for channel in plant.outputs}
    coupling = describe_plant(plant).coupling
    if isinstance(coupling, str):
        report["coupling"] = coupling


def add_outcome(
    report: dict[str, Any], outcome: Outcome, statistics: Statistics, exchange: Mapping[str, Any],
    attribution: FaultAttribution | None = None,
) -> None:  # fmt: skip
    """Add the outcome of the run.

    Parameters
    ----------
    report : dict[str, Any]
        The report, changed in place.
    outcome : Outcome
        Outcome of the loop.
    statistics : Statistics
        Statistics of the steps.
    exchange : Mapping[str, Any]
        Report of the exchange.
    attribution : FaultAttribution | None, optional
        Causes of misses and overruns.
    """
    factor = outcome.simulated_s / outcome.wall_s if outcome.wall_s > 0 else None
    report.update(
        steps=outcome.steps, simulated_s=outcome.simulated_s, wall_s=outcome.wall_s, real_time_factor=factor,
        ended=outcome.ended, final={name: value.tolist() for name, value in outcome.final.items()},
    )  # fmt: skip
    report["exchange"] = {
        "commands_applied": statistics.applied, "stale": statistics.stale, "misses": statistics.misses,
        "unclaimed": statistics.unclaimed, "reused": statistics.reused,
        "max_consecutive_misses": statistics.max_consecutive,
        "late": exchange.get("late", 0), "rejected": dict(exchange.get("rejected", {})),
        "peers": list(exchange.get("peers", [])), "links": dict(exchange.get("links", {})),
        **({"ticks": exchange["ticks"]} if exchange.get("ticks") else {}),
    }  # fmt: skip
    report["schedule"].update(overruns=statistics.overruns, skipped=statistics.skipped)
    if attribution is not None:
        report["schedule"]["causes"] = attribution.counts()
        report["stall_detector"] = attribution.report(statistics.steps + statistics.skipped)
    report["timing_us"] = statistics.timing_us()


PARTS_OF_ROBOT = ("final", "summary", "tracking")
"""Parts of a report with names of one robot."""


def begins(plant: Plant) -> dict[str, list[float]]:
    """Return the present position of each of several robots, where it has one.

    Parameters
    ----------
    plant : Plant
        The plant.

    Returns
    -------
    dict[str, list[float]]
        m, world, by robot.
    """
    if not isinstance(plant, HasRobots):
        return {}
    positions = {name: unwrapped(robot).observe().get("position") for name, robot in plant.robots.items()}
    return {name: [float(x) for x in value] for name, value in positions.items() if value is not None}


def by_robot(report: Mapping[str, Any], world: HasRobots, begins: Mapping[str, Any]) -> dict[str, Any]:
    """Return each robot's part of the report, with the names that it has alone.

    Parameters
    ----------
    report : Mapping[str, Any]
        The report.
    world : HasRobots
        The robots.
    begins : Mapping[str, Any]
        Position of each robot at the start, m, world.

    Returns
    -------
    dict[str, Any]
        By robot.
    """
    result: dict[str, Any] = {}
    for name, kind in world.robot_types.items():
        begin = name + "."
        result[name] = {"robot": kind, "start_position_m": begins.get(name)}
        for part in PARTS_OF_ROBOT:
            part_values = {
                key.removeprefix(begin): value for key, value in report[part].items() if key.startswith(begin)
            }
            result[name][part] = part_values
    return result


def to_json_types(value: Any) -> Any:
    """Convert a value to JSON's own types; infinite values and nan become None.

    Parameters
    ----------
    value : Any
        Any value.

    Returns
    -------
    Any
        The converted value.
    """
    if isinstance(value, Mapping):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json_types(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return to_json_types(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


RENAMED: Mapping[str, str] = {
    "schedule.blame": "schedule.causes", "schedule.blame.own_exchange": "schedule.causes.loop_overhead",
    "witness": "stall_detector", "accuracy.use": "accuracy.recommended_step", "accuracy.sentence": "accuracy.message",
    "robots.*.begins_m": "robots.*.start_position_m", "exchange.forced_looks": "exchange.forced_polls",
    "exchange.peers.*.figures": "exchange.peers.*.metrics",
}  # fmt: skip
"""Old names of keys, which work for one minor version; * is each element."""


def add_old_names(report: dict[str, Any]) -> None:
    """Add renamed keys under their old names, and `deprecated`, which has the new name of each old one.

    Parameters
    ----------
    report : dict[str, Any]
        Report of a run. Keys that it has under both names stay.
    """
    causes = report.get("schedule", {}).get("causes")
    if isinstance(causes, dict):
        report["schedule"]["blame"] = {
            {"loop_overhead": "own_exchange"}.get(name, name): n for name, n in causes.items()
        }
    for old, new in RENAMED.items():
        if not old.startswith("schedule."):
            *path, key = new.split(".")
            _copy(report, path, key, old.split(".")[-1])
    report["deprecated"] = dict(RENAMED)


def _copy(place: Any, path: Sequence[str], key: str, old: str) -> None:
    if path and path[0] == "*":
        for item in place.values() if isinstance(place, dict) else place if isinstance(place, list) else ():
            _copy(item, path[1:], key, old)
    elif not isinstance(place, dict):
        return
    elif path:
        _copy(place.get(path[0]), path[1:], key, old)
    elif key in place:
        place.setdefault(old, place[key])


def as_json(report: Mapping[str, Any]) -> str:
    """Return the report as JSON on one line.

    Parameters
    ----------
    report : Mapping[str, Any]
        The report.

    Returns
    -------
    str
        JSON.
    """
    return json.dumps(to_json_types(report), allow_nan=False)


# --- How wrong the steps of a run are, from the side of the command line: what is printed while it runs and in its
# report.


class Accuracy:
    """Estimate of a run's accuracy.

    Parameters
    ----------
    plant : Plant | None
        The plant; None: no estimate.
    steps : int | None
        Steps of the run, None where it has no end: so many commands are stored, as far as there is room.
    driven_by : tuple[str, ...]
        Words of the controllers that the run starts.

    Attributes
    ----------
    monitor : Monitor or None
        Monitor of the run; None for a plant without an estimator of step errors.
    """

    def __init__(self, plant: Plant | None, steps: int | None, driven_by: tuple[str, ...]) -> None:
        self._driven = bool(driven_by)
        self.monitor: Monitor | None = None
        self._calibration: Calibration | None = None
        self._known: KnownStep | None = None
        self._warned = False
        estimator = None if plant is None else describe_plant(plant).step_error_estimator
        if plant is not None and estimator is not None:
            import numpy as np

            from rtmms.base.kernel_cache import cache_folder
            from rtmms.plant.monitor import TAPE_BYTES, Monitor
            from rtmms.plant.step_advice import Calibration

            n = len(plant.actuators)
            rows = min(TAPE_BYTES // (8 * max(1, n)), TAPE_BYTES if steps is None else steps)
            # written, not only reserved: a first touch within the run would be a page fault within a step
            self.monitor = Monitor(estimator(), np.full((rows, n), 0.0))
            self._calibration = Calibration(plant, self.monitor.estimator, cache_folder(), driven_by)
            self._known = self._calibration.known()

    def at_start(self, *, quiet: bool) -> list[str]:
        """Return sentences about the step before the run: always a warning, and else recommended steps.

        Parameters
        ----------
        quiet : bool
            Only warnings.

        Returns
        -------
        list[str]
            Sentences.
        """
        known = self._known
        return [] if known is None else [line for line in ("" if quiet else known.sentence, known.warning) if line]

    def news(self) -> list[str]:
        """Return a sentence, once, when the measurements show that the run is doubtful.

        It has no advice, as the effect of the steps is measured after the run.

        Returns
        -------
        list[str]
            Empty or one sentence.
        """
        if self._warned or self.monitor is None or not self.monitor.settled:
            return []
        verdict = self.monitor.verdict
        self._warned = verdict.finer is not None
        return [f"accuracy: {verdict.worst}; the report at the end states the error"] if self._warned else []

    def add(self, report: dict[str, Any], loop: Loop) -> None:
        """Add the verdict to the report, and a warning where the run is doubtful.

        The run is repeated for it, for a tenth of its time at most, or two seconds.

        Parameters
        ----------
        report : dict[str, Any]
            The report, changed in place.
        loop : Loop
            The loop.
        """
        if self.monitor is None:
            return
        hurried = report["ended"] == "interrupt"
        verdict = self.monitor.conclude(
            HURRIED_REPEAT_S if hurried else min(max(MIN_REPEAT_S, 0.1 * report["wall_s"]), MAX_REPEAT_S)
        )
        report["accuracy"] = {
            "verdict": verdict.verdict, "step_error": verdict.step, "path_error": verdict.path,
            "work_error": verdict.work, "measured": verdict.measured, "seconds": verdict.seconds,
            "recommended_step": None if verdict.finer is None else {verdict.finer[0]: verdict.finer[1]},
            "message": verdict.sentence or f"accuracy: fine: {verdict.worst}",
        }  # fmt: skip
        if self._known is not None:
            report["accuracy"] |= {
                "known_step_s": self._known.steps.get(0.01), "conditions": dict(self._known.conditions),
            }  # fmt: skip
        # what was measured of this run, rather than what others predicted
        warning = "" if self._known is None else self._known.warning
        sentence = warning or verdict.sentence if verdict.verdict == "unknown" else verdict.sentence
        report["warnings"] += [sentence] if sentence else []
        others = not self._driven and any(peer["commands"] for peer in report["exchange"]["peers"])
        if self._calibration is not None and verdict.seconds is None and not (others or was_disturbed(report, loop)):
            self._calibration.keep(verdict)
            report["accuracy"]["known_step_s"] = self._calibration.known().steps.get(0.01)


def was_disturbed(report: Mapping[str, Any], loop: Loop) -> bool:
    """Return whether commands were late or missing, or the run was altered.

    The measured motion is then not the robot's usual one.

    Parameters
    ----------
    report : Mapping[str, Any]
        The report.
    loop : Loop
        The loop.

    Returns
    -------
    bool
        True for such a run.
    """
    exchange, schedule = report["exchange"], report["schedule"]
    late = (
        exchange["misses"]
        + exchange["stale"]
        + exchange["late"]
        + schedule["skipped"]
        + schedule["overruns"]
        + exchange["reused"]
    )
    return bool(late or loop.alterations or report["ended"] not in ("duration", "stop"))
