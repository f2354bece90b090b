"""The report of a run: one object, printed as JSON or as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import rtmms
from rtmms.loop.fault_attribution import CAUSES
from rtmms.plant import Composed, Coupled, Twinned

if TYPE_CHECKING:
    from rtmms.cli.running.plan import Plan
    from rtmms.loop.fault_attribution import FaultAttribution
    from rtmms.loop.loop import Loop, Outcome
    from rtmms.loop.statistics import Statistics
    from rtmms.monitor.calibration import Calibration
    from rtmms.monitor.monitor import Monitor
    from rtmms.plant import Plant


LEAST_S, MOST_S, HURRIED_S = 2.0, 5.0, 0.3
"""Wall time for taking a run again to see how wrong it is: a tenth of the run's, within these; after Ctrl-C."""
PARTS = ("wake", "exchange", "plant", "slack")
QUANTILES = ("p50", "p99", "p999", "max")


def blank(plan: Plan) -> dict[str, Any]:
    """The report of a run that did not begin: everything that is not known is None."""
    return {
        "robot": plan.robot, "mode": plan.mode, "dt": plan.dt, "rate": plan.rate, "steps": 0, "simulated_s": 0.0,
        "wall_s": None, "real_time_factor": None, "coupling": plan.coupling, "seed": plan.seed,
        "version": rtmms.__version__, "ended": None,
        "exchange": {"commands_applied": 0, "misses": 0, "unclaimed": 0, "reused": 0, "max_consecutive_misses": 0,
                     "late": 0, "rejected": {}, "peers": [], "links": {}},
        "schedule": {"period_us": None, "deadline_us": None, "overruns": 0, "skipped": 0,
                     "policy": {"miss": plan.on_miss, "overrun": plan.on_overrun}, "blame": dict.fromkeys(CAUSES, 0)},
        "witness": None,
        "timing_us": {part: dict.fromkeys(QUANTILES) for part in PARTS},
        "realtime": {"scheduler": None, "priority": None, "memory_locked": None, "affinity": None, "failed": []},
        "final": {}, "summary": {}, "accuracy": None, "tracking": {}, "estimate": {}, "warnings": [],
    }  # fmt: skip


def add_plant(report: dict[str, Any], plant: Plant) -> None:
    """What the plant itself says: its dt and coupling."""
    report["dt"] = plant.dt
    if isinstance(plant, Coupled) and isinstance(plant.coupling, str):
        report["coupling"] = plant.coupling


def add_outcome(
    report: dict[str, Any], outcome: Outcome, statistics: Statistics, exchange: Mapping[str, Any],
    blame: FaultAttribution | None = None,
) -> None:  # fmt: skip
    """How the run went."""
    factor = outcome.simulated_s / outcome.wall_s if outcome.wall_s > 0 else None
    report.update(
        steps=outcome.steps, simulated_s=outcome.simulated_s, wall_s=outcome.wall_s, real_time_factor=factor,
        ended=outcome.ended, final={name: value.tolist() for name, value in outcome.final.items()},
    )  # fmt: skip
    report["exchange"] = {
        "commands_applied": statistics.applied, "misses": statistics.misses, "unclaimed": statistics.unclaimed,
        "reused": statistics.reused, "max_consecutive_misses": statistics.max_consecutive,
        "late": exchange.get("late", 0), "rejected": dict(exchange.get("rejected", {})),
        "peers": list(exchange.get("peers", [])), "links": dict(exchange.get("links", {})),
        **({"ticks": exchange["ticks"]} if exchange.get("ticks") else {}),
    }  # fmt: skip
    report["schedule"].update(overruns=statistics.overruns, skipped=statistics.skipped)
    if blame is not None:
        report["schedule"]["blame"] = blame.counts()
        report["witness"] = blame.report(statistics.steps + statistics.skipped)
    report["timing_us"] = statistics.timing_us()


PARTS_OF_ROBOT = ("final", "summary", "tracking")
"""Of a report: what names of one robot stand in."""


def by_robot(report: Mapping[str, Any], world: Composed) -> dict[str, Any]:
    """What of the report is each robot's, under the names that it has alone."""
    found: dict[str, Any] = {}
    for name, kind in world.kinds.items():
        begin = name + "."
        found[name] = {"robot": kind}
        for part in PARTS_OF_ROBOT:
            own = {key.removeprefix(begin): value for key, value in report[part].items() if key.startswith(begin)}
            found[name][part] = own
    return found


def plain(value: Any) -> Any:
    """JSON's own types; what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def as_json(report: Mapping[str, Any]) -> str:
    """The one object, on one line for a pipe to read."""
    return json.dumps(plain(report), allow_nan=False)


def as_table(report: Mapping[str, Any]) -> str:
    """The same facts for a person."""
    exchange, schedule, realtime = report["exchange"], report["schedule"], report["realtime"]
    blocks = [
        [
            *[(f"robot {name}", one["robot"]) for name, one in report.get("robots", {}).items()],
            ("robot", f"{report['robot']}, {report['mode']}, dt {_number(report['dt'])} s, "
                      f"coupling {report['coupling'] or 'none'}, seed {report['seed']}"),
            ("ended", report["ended"] or "did not begin"),
            ("simulated", f"{_number(report['simulated_s'])} s in {_number(report['wall_s'])} s "
                          f"({_number(report['real_time_factor'])} x real time), {report['steps']} steps"),
            *[("from", f"{one['log']} at {_number(one['seconds'])} s") for one in [report.get("from")] if one],
            *[("accuracy", text) for text in _accuracy(report["accuracy"])],
            *[("warning", text) for text in report["warnings"] if text != (report["accuracy"] or {}).get("sentence")],
            *[("expected", _expected(one)) for one in report.get("expect", [])],
        ],
        [
            ("commands", f"{exchange['commands_applied']} steps applied, {exchange['misses']} missed "
                         f"(at most {exchange['max_consecutive_misses']} in a row), {exchange['unclaimed']} unclaimed"
                         + (f", {exchange['reused']} reused" if exchange["reused"] else "")),
            ("late, rejected", f"{exchange['late']}, {sum(exchange['rejected'].values())}"
                               + "".join(f"; {reason} {count}" for reason, count in exchange["rejected"].items())),
            ("peers", _peers(exchange["peers"]) or "none"),
            *[("link " + name, _link(counts)) for name, counts in exchange.get("links", {}).items()],
            *[("bridge " + name, _counted(counts)) for name, counts in report.get("bridges", {}).items()],
            ("schedule", f"period {_number(schedule['period_us'])} us, deadline {_number(schedule['deadline_us'])} us, "
                         f"{schedule['overruns']} overruns, {schedule['skipped']} periods skipped "
                         f"(policies {schedule['policy']['miss']}, {schedule['policy']['overrun']})"),
            *[("blame", text) for text in _blame(schedule['blame'], report['witness'])],
            ("scheduler", f"{realtime['scheduler']} {realtime['priority']}, memory "
                          f"{'locked' if realtime['memory_locked'] else 'not locked'}, cores {realtime['affinity']}"),
            *[("  not set up", text) for text in realtime["failed"]],
        ],
    ]  # fmt: skip
    lines = [line for block in blocks for line in (*_rows(block), "")]
    lines += _timings(report["timing_us"])
    if report["tracking"]:
        lines += ["", "off the set-points, once settled"]
        lines += _rows([("  " + name, _tracked(one)) for name, one in report["tracking"].items()])
    if report.get("degrade", {}).get("changes"):
        found = report["degrade"]
        lines += ["", f"changes of level: {len(found['changes'])}"]
        lines += _rows(
            [("  " + name, f"{count} steps") for name, count in zip(found["levels"], found["steps"], strict=True)]
        )
    if report["estimate"]:
        lines += ["", "off by the estimate (nees: 3 where it knows how wrong it is)"]
        found = report["estimate"].items()
        lines += _rows(
            [("  " + name, f"rms {_number(one['rms'])}, nees {_number(one['nees'])}") for name, one in found]
        )
    if report["summary"]:
        lines += ["", *_rows([(name, _number(value)) for name, value in report["summary"].items()])]
    small = [(n, _array(v)) for n, v in report["final"].items() if not isinstance(v, list) or len(v) <= 4]
    small = [(name, text) for name, text in small if text]
    if small:
        lines += ["", "at the end", *_rows([(f"  {name}", text) for name, text in small])]
    return "\n".join(lines)


def _expected(one: Mapping[str, Any]) -> str:
    got = one["got"]
    told = "not in the report" if got is None else _number(got) if isinstance(got, float) else str(got)
    return f"{one['name']} {one['expected']}: {told}, {'holds' if one['holds'] else 'DOES NOT HOLD'}"


def _tracked(one: Mapping[str, Any]) -> str:
    after = "never settled" if one["settled_s"] is None else f"settled after {_number(one['settled_s'])} s"
    return f"rms {_number(one['rms'])}, mean {_number(one['mean'])}, most {_number(one['max'])}; {after}"


def _peers(peers: list[Mapping[str, Any]]) -> str:
    """Names, with what a person should know of each; `rtmms set` and the like are nobody's business."""
    told = []
    for peer in peers:
        if peer.get("name") == "rtmms" and not peer.get("claim"):
            continue
        more = [f"{peer[key]} {key}" for key in ("late", "clamped", "rejected") if peer.get(key)]
        told.append(peer.get("name", "?") + (f" ({', '.join(more)})" if more else ""))
    return ", ".join(told)


def _accuracy(accuracy: Mapping[str, Any] | None) -> list[str]:
    """How wrong the run is, in a sentence; none where it is not known."""
    if accuracy is None or accuracy["verdict"] == "unknown":
        return []
    return [accuracy["sentence"].removeprefix("accuracy: ")]


def _blame(blame: Mapping[str, int], witness: Mapping[str, Any] | None) -> list[str]:
    """Whose fault it was, in a line; none when there was none."""
    counted = [f"{cause} {count}" for cause, count in blame.items() if count]
    if not counted:
        return []
    share, base = (witness or {}).get("machine_share"), (witness or {}).get("base_rate")
    if share is None:
        return [", ".join(counted) + " (no witness of the machine)"]
    return [", ".join(counted) + f"; the machine explains {100 * share:.3g} %, "
            f"its stalls touch {100 * (base or 0.0):.3g} % of all periods"]  # fmt: skip


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    width = max(16, *(len(name) for name, _ in rows)) if rows else 16
    return [f"{name:<{width}}  {text}" for name, text in rows]


def _link(counts: Mapping[str, Any]) -> str:
    """What became of the messages of an impaired link, on one line."""
    told = [f"{counts[name]} {name}" for name in counts if name != "mean_delay_ms" and (counts[name] or name == "lost")]
    return ", ".join(told) + f"; mean delay {_number(counts['mean_delay_ms'])} ms one way"


def _counted(counts: Mapping[str, Any] | None) -> str:
    """What a bridge did, on one line."""
    if counts is None:
        return "ended without a word"
    refused = counts.get("refused") or {}
    told = [f"{name} {number}" for name, number in counts.items() if name != "refused"]
    return ", ".join([*told, *(f"refused ({reason}) {number}" for reason, number in refused.items())]) or "idle"


def _timings(timing: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    known = [part for part in PARTS if timing[part]["p50"] is not None]
    if not known:
        return []
    head = f"{'us':<16}" + "".join(f"{name:>10}" for name in QUANTILES)
    return [head, *(f"{part:<16}" + "".join(f"{timing[part][q]:>10.1f}" for q in QUANTILES) for part in known)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _array(value: Any) -> str:
    if not isinstance(value, list):
        return _number(value)
    if any(isinstance(item, list) for item in value):
        return ""
    return "  ".join(f"{item:.4g}" for item in value)


# --- How wrong the steps of a run are, from the side of the command line: what is told while it goes and in its
# report.


class Accuracy:
    """monitor   of the run's plant; None for a plant that offers no twin, and where none is given

    steps   of the run, None where it has no end: so many commands are kept, as far as there is room
    """

    def __init__(self, plant: Plant | None, steps: int | None) -> None:
        self.monitor: Monitor | None = None
        self._calibration: Calibration | None = None
        self._known, self._warning, self._told = "", "", False
        if plant is not None and isinstance(plant, Twinned):
            import numpy as np

            from rtmms.jit import cache_folder
            from rtmms.monitor.calibration import Calibration
            from rtmms.monitor.monitor import TAPE_BYTES, Monitor

            n = len(plant.actuators)
            rows = min(TAPE_BYTES // (8 * max(1, n)), TAPE_BYTES if steps is None else steps)
            # written, not only reserved: a first touch within the run would be a page fault within a step
            self.monitor = Monitor(plant.twin(), np.full((rows, n), 0.0))
            self._calibration = Calibration(plant, self.monitor.twin, cache_folder())
            self._known, self._warning = self._calibration.sentences()

    def at_start(self, *, quiet: bool) -> list[str]:
        """What is known of the step before it is taken: always a warning, and else which steps would do."""
        return [line for line in ("" if quiet else self._known, self._warning) if line]

    def news(self) -> list[str]:
        """A sentence, once, when enough was measured to doubt the run; no advice, for what the steps lead to is
        measured when it has ended."""
        if self._told or self.monitor is None or not self.monitor.settled:
            return []
        verdict = self.monitor.verdict
        self._told = verdict.finer is not None
        return [f"accuracy: {verdict.worst}; what that leads to is told at the end"] if self._told else []

    def add(self, report: dict[str, Any], loop: Loop) -> None:
        """The verdict at the end of the run, and a warning where there is doubt. The run is taken again for it, for a
        tenth of its time at most, or two seconds."""
        if self.monitor is None:
            return
        hurried = report["ended"] == "interrupt"
        verdict = self.monitor.conclude(HURRIED_S if hurried else min(max(LEAST_S, 0.1 * report["wall_s"]), MOST_S))
        report["accuracy"] = {
            "verdict": verdict.verdict, "step_error": verdict.step, "path_error": verdict.path,
            "work_error": verdict.work, "measured": verdict.measured, "seconds": verdict.seconds,
            "use": None if verdict.finer is None else {verdict.finer[0]: verdict.finer[1]},
            "sentence": verdict.sentence or f"accuracy: fine: {verdict.worst}",
        }  # fmt: skip
        # what was measured of this run, rather than what others foretold
        said = self._warning or verdict.sentence if verdict.verdict == "unknown" else verdict.sentence
        report["warnings"] += [said] if said else []
        if self._calibration is not None and verdict.seconds is None and not disturbed(report, loop):
            self._calibration.keep(verdict)


def disturbed(report: Mapping[str, Any], loop: Loop) -> bool:
    """Whether commands came late or not at all, or the run was altered: what was measured of it is not of the robot's
    usual motion."""
    exchange, schedule = report["exchange"], report["schedule"]
    late = exchange["misses"] + exchange["late"] + schedule["skipped"] + schedule["overruns"] + exchange["reused"]
    return bool(late or loop.alterations or report["ended"] not in ("duration", "stop"))
