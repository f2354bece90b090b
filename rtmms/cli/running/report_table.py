"""Report of a run for a person: the most important lines first, in words, with a unit beside every number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rtmms.base.contract import PARTS, QUANTILES

PART_WORDS = {
    "wake": "start after its instant", "exchange": "state out, commands in", "plant": "the robot's step",
    "slack": "time left",
}  # fmt: skip
CAUSE_WORDS = {
    "peer_late": "controllers that answered late", "peer_gone": "controllers that were gone",
    "peer_starved": "controllers that got no processor", "peer_refused": "refused commands",
    "plant_slow": "long steps of the robot", "loop_overhead": "the exchange itself", "machine": "the computer",
    "page_fault": "page faults", "involuntary_switch": "other processes on the core", "unknown": "unknown causes",
}  # fmt: skip
ENDS = {
    "interrupt": "ended by Ctrl-C or SIGTERM", "stop": "ended by a request", "policy": "ended by a policy",
    "peer": "ended as a peer was missing", "diverged": "diverged",
}  # fmt: skip
"""Texts for the ends of a run before its duration."""
UNITS = {
    "m_s": "m/s", "deg_s": "deg/s", "rad_s": "rad/s", "n_m": "N m", "n": "N", "w": "W", "j": "J", "m": "m",
    "deg": "deg", "rad": "rad", "s": "s", "hz": "Hz",
}  # fmt: skip
"""Units by the ends of a quantity's name."""
MAX_CHANGES = 8
"""Changes of a run that its table names."""


def as_table(report: Mapping[str, Any]) -> str:
    """Return the report as text, some 40 lines.

    Parameters
    ----------
    report : Mapping[str, Any]
        The report.

    Returns
    -------
    str
        Lines.
    """
    robots = [
        (f"robot {name}", robot["robot"] + _begins(robot["start_position_m"]))
        for name, robot in report.get("robots", {}).items()
    ]
    blocks = [
        [_what_ran(report), *_in_time(report), *_accuracy(report["accuracy"])],
        _headed("peers", _timelines(report)),
        _rows([
            *(("warning", text) for text in report["warnings"] if text != (report["accuracy"] or {}).get("message")),
            *(("expected", _expected(item)) for item in report.get("expect", [])),
        ]),
        _rows(robots),
        _headed("changed while it ran", _changes(report)),
        _headed("motion", [_quantity(name, value) for name, value in report["summary"].items()]),
        _headed("off the set-points, once settled",
                [(_format_name(name), _tracked(name, item)) for name, item in report["tracking"].items()]),
        _levels(report.get("degrade", {})),
        _headed("off by the estimate (nees: 3 where it knows how wrong it is)",
                [(_format_name(name), f"rms {_number(item['rms'])}{_unit(name)}, nees {_number(item['nees'])}")
                 for name, item in report["estimate"].items()]),
        _headed("at the end", _final(report)),
        _timings(report["timing_us"]),
        _headed("messages", _messages(report)),
        _headed("computer", _computer(report)),
    ]  # fmt: skip
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def change_rows(changes: Sequence[Mapping[str, Any]], dt: float) -> list[tuple[str, str]]:
    """Return the changes of a run as rows of a table.

    Parameters
    ----------
    changes : Sequence[Mapping[str, Any]]
        The changes, as the report has them: `run`, `step`, `op`, `args`.
    dt : float
        Step, s.

    Returns
    -------
    list[tuple[str, str]]
        Time and change of the first MAX_CHANGES changes, and the number of the others.

    Examples
    --------
    >>> change_rows([{"run": 0, "step": 500, "op": "set", "args": {"drag_coefficient": 2.0}}], 1e-3)
    [('0.5 s', 'drag_coefficient = 2.0')]
    """
    result = []
    for change in changes[:MAX_CHANGES]:
        values = ", ".join(f"{name} = {value}" for name, value in (change.get("args") or {}).items())
        again = f" after reset {change['run']}" if change["run"] else ""
        result.append((f"{change['step'] * dt:.6g} s{again}", values or "another state (restore)"))
    if len(changes) > MAX_CHANGES:
        result.append(("later", f"{len(changes) - MAX_CHANGES} more changes"))
    return result


def _changes(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the changes of parameters and state, without those that `_levels` counts."""
    levels = [[step, {"level": level}] for step, level in report.get("degrade", {}).get("changes", ())]
    changes = [change for change in report.get("changes", ()) if [change["step"], change.get("args")] not in levels]
    return change_rows(changes, report["dt"])


def _begins(place: Sequence[float] | None) -> str:
    return "" if place is None else f", begins at {', '.join(f'{x:g}' for x in place)} m"


def _what_ran(report: Mapping[str, Any]) -> str:
    branch = ""
    if report.get("from"):
        branch = f", from {report['from']['log']} at {_number(report['from']['seconds'])} s on"
    if report["ended"] is None:
        return f"{report['robot']}, {report['mode']}: did not begin{branch}"
    factor = report["real_time_factor"]
    pace = "" if factor is None or report["mode"] == "realtime" else f" ({_number(factor)} x real time)"
    more = "".join(f", {word} {report[word]}" for word in ("coupling", "seed") if report[word] not in (None, 0))
    end = f"; {ENDS[report['ended']]}" if report["ended"] in ENDS else ""
    return (
        f"{report['robot']}, {report['mode']}: {_number(report['simulated_s'])} s simulated in "
        f"{_number(report['wall_s'])} s{pace}, {report['steps']} steps of {_time(report['dt'])}{more}{branch}{end}"
    )


def _in_time(report: Mapping[str, Any]) -> list[str]:
    """Return how many commands and steps were late, and why, for a run on a schedule."""
    exchange, schedule = report["exchange"], report["schedule"]
    if report["ended"] is None or (schedule["period_us"] is None and report["mode"] not in ("realtime", "external")):
        return []
    misses, overruns, stale = exchange["misses"], schedule["overruns"], exchange.get("stale", 0)
    old = [f"{stale} of {report['steps']} steps with values that were too old"] if stale else []
    if not misses and not overruns:
        return old or ["in time: every command and every step"]
    result = []
    if misses:
        max_consecutive_misses = exchange["max_consecutive_misses"]
        result.append(
            f"{misses} late command{'s' * (misses > 1)}"
            + (f" (at most {max_consecutive_misses} in a row)" if max_consecutive_misses > 1 else "")
        )
    if overruns:
        result.append(f"{overruns} late step{'s' * (overruns > 1)}")
    causes = {CAUSE_WORDS.get(name, name): count for name, count in schedule["causes"].items() if count}
    why = ""
    if len(causes) == 1:
        why = f", {'all ' if misses + overruns > 1 else ''}caused by {next(iter(causes))}"
    elif causes:
        why = "; caused by " + ", ".join(f"{name} {count}" for name, count in sorted(causes.items(), key=_most_first))
    skipped = f"; {schedule['skipped']} periods skipped" if schedule["skipped"] else ""
    return [f"{' and '.join(result)} of {report['steps']}{why}{skipped}", *old]


def _most_first(pair: tuple[str, int]) -> int:
    return -pair[1]


def _accuracy(accuracy: Mapping[str, Any] | None) -> list[str]:
    """Return the error of the run in a sentence; none where it is unknown."""
    return [] if accuracy is None or accuracy["verdict"] == "unknown" else [accuracy["message"]]


def _timelines(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return when each peer connected, was silent, was lost and left.

    It is for a run with a bridge that claims actuators, and for a run with a lost peer.
    """
    peers = [item for item in report["exchange"]["peers"] if item.get("claim") and item.get("connected_s") is not None]
    if not any(peer["watch"] or peer["losses"] or peer["restarts"] for peer in peers):
        return []
    return [(peer["name"], _timeline(peer)) for peer in peers]


def _timeline(peer: Mapping[str, Any]) -> str:
    watch, silences, losses = peer["watch"] or {}, peer["silences"], peer["losses"]
    facts = [f"connected at {_number(peer['connected_s'])} s"]
    first = peer["first_command_s"]
    facts.append("no command" if first is None else f"first command at {_number(first)} s")
    if silences:
        listed = [
            f"from {_number(silence['begin_s'])} s for {_number(silence['length_s'])} s"
            for silence in silences[:MAX_LISTED]
        ]
        facts.append(f"silent {_times(watch['silences_count'])}: {_listed(listed, watch['silences_count'])}")
    elif watch.get("watched"):
        facts.append("never silent")
    if losses:
        facts.append(f"lost at {_listed([f'{_number(loss)} s' for loss in losses[:MAX_LISTED]], len(losses))}")
    if peer["restarts"]:
        facts.append(f"back {_times(peer['restarts'])}")
    if peer["disconnected_s"] is not None:
        facts.append(f"gone since {_number(peer['disconnected_s'])} s")
    steps = peer["steps"]
    facts.append(f"steps: {steps['applied']} in time, {steps['stale']} too old, {steps['missed']} missing")
    if watch.get("watched") is False:
        facts.append("its silence is not watched, because it sends on events only (peer_period_s)")
    return "; ".join(facts)


MAX_LISTED = 4
"""Silences, or losses, of a peer in the text; the JSON report has more."""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _listed(texts: Sequence[str], count: int) -> str:
    """Return the texts, and the number of further ones."""
    return ", ".join(texts) + (f" and {count - len(texts)} more" if count > len(texts) else "")


def _levels(levels: Mapping[str, Any]) -> list[str]:
    """Return the steps in each cheaper variant of the robot, where it changed to one."""
    if not levels.get("changes"):
        return []
    counts = zip(levels["levels"], levels["steps"], strict=True)
    return _headed(f"changes of level: {len(levels['changes'])}", [(name, f"{count} steps") for name, count in counts])


def _messages(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    if report["ended"] is None:
        return []
    exchange = report["exchange"]
    listed = [f"in time for {exchange['commands_applied']} steps"]
    listed += [f"{label} {exchange[name]}" for name, label in (
        ("stale", "too old for"), ("misses", "missing for"), ("reused", "as before for"),
        ("unclaimed", "unclaimed for"), ("late", "late ones"),
    ) if exchange[name]]  # fmt: skip
    refused = ", ".join(f"{reason} {count}" for reason, count in exchange["rejected"].items())
    return [
        ("commands", ", ".join(listed)),
        *([("refused", refused)] if refused else []),
        ("peers", _peers(exchange["peers"]) or "none"),
        *(("link " + name, _link(counts)) for name, counts in exchange.get("links", {}).items()),
        *(("bridge " + name, _counted(counts)) for name, counts in report.get("bridges", {}).items()),
    ]


def _computer(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    schedule, realtime, detector = report["schedule"], report["realtime"], report["stall_detector"] or {}
    if report["ended"] is None:
        return []
    rows = []
    if schedule["period_us"] is not None:
        deadline = f", commands due after {_number(schedule['deadline_us'])} us" if schedule["deadline_us"] else ""
        policy = f"; late commands: {schedule['policy']['miss']}, late steps: {schedule['policy']['overrun']}"
        rows.append(("schedule", f"a step each {_number(schedule['period_us'])} us{deadline}{policy}"))
    if detector.get("machine_share") is not None and any(schedule["causes"].values()):
        touched = 100 * (detector.get("base_rate") or 0.0)
        rows.append(("stalls", f"they explain {100 * detector['machine_share']:.3g} % of what was late, "
                               f"and touch {touched:.3g} % of all periods"))  # fmt: skip
    rows.append(("scheduler", f"{realtime['scheduler']} {realtime['priority']}, memory "
                              f"{'locked' if realtime['memory_locked'] else 'not locked'}, "
                              f"cores {realtime['affinity']}"))  # fmt: skip
    return [*rows, *(("not set up", text) for text in realtime["failed"])]


def _final(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the short parts of the last state."""
    units, rows = report.get("units", {}), []
    for name, value in report["final"].items():
        if isinstance(value, list) and (len(value) > 4 or any(isinstance(item, list) for item in value)):
            continue
        numbers = "  ".join(f"{item:.4g}" for item in value) if isinstance(value, list) else _number(value)
        unit = units.get(name, "")
        rows.append((_format_name(name), numbers + (f" {unit}" if unit not in ("", "-") else "")))
    return rows


def _timings(timing: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    known = [part for part in PARTS if timing[part]["p50"] is not None]
    if not known:
        return []
    width = max(len(PART_WORDS[part]) for part in known)
    head = f"{'time of a step, us':<{width + 2}}" + "".join(f"{name:>10}" for _, name in QUANTILES.values())
    return [head, *(f"  {PART_WORDS[part]:<{width}}" + "".join(f"{timing[part][q]:>10.1f}" for q in QUANTILES)
                    for part in known)]  # fmt: skip


def _expected(item: Mapping[str, Any]) -> str:
    got = item["got"]
    value = "not in the report" if got is None else _number(got) if isinstance(got, float) else str(got)
    return f"{item['name']} {item['expected']}: {value}, {'holds' if item['holds'] else 'DOES NOT HOLD'}"


def _tracked(name: str, item: Mapping[str, Any]) -> str:
    unit = _unit(name)
    after = "never settled" if item["settled_s"] is None else f"settled after {_number(item['settled_s'])} s"
    return (
        f"rms {_number(item['rms'])}{unit}, mean {_number(item['mean'])}{unit}, max "
        f"{_number(item['max'])}{unit}; {after}"
    )


def _peers(peers: Iterable[Mapping[str, Any]]) -> str:
    """Return names, each with its notes; peers of `rtmms set` and the like are left out."""
    listed = []
    for peer in peers:
        if peer.get("name") == "rtmms" and not peer.get("claim"):
            continue
        more = [f"{peer[key]} {key}" for key in ("late", "clamped", "rejected") if peer.get(key)]
        listed.append(peer.get("name", "?") + (f" ({', '.join(more)})" if more else ""))
    return ", ".join(listed)


def _link(counts: Mapping[str, Any]) -> str:
    """Return the counts of an impaired link's messages, on one line."""
    parts = [
        f"{counts[name]} {name}" for name in counts if name != "mean_delay_ms" and (counts[name] or name == "lost")
    ]
    return ", ".join(parts) + f"; mean delay {_number(counts['mean_delay_ms'])} ms one way"


def _counted(counts: Mapping[str, Any] | None) -> str:
    """Return the counts of a bridge, on one line."""
    if counts is None:
        return "ended without a word"
    refused = counts.get("refused") or {}
    parts = [f"{name} {number}" for name, number in counts.items() if name != "refused"]
    return ", ".join([*parts, *(f"refused ({reason}) {number}" for reason, number in refused.items())]) or "idle"


# --- Names, numbers, units.


def _ending(name: str) -> str:
    """Return the unit's part of a name such as mean_speed_m_s: 'm_s'; '' for none."""
    return max((end for end in UNITS if name.endswith("_" + end)), key=len, default="")


def _unit(name: str) -> str:
    ending = _ending(name)
    return f" {UNITS[ending]}" if ending else ""


def _format_name(name: str) -> str:
    """Convert mean_speed_m_s to 'mean speed'."""
    ending = _ending(name)
    return (name.removesuffix("_" + ending) if ending else name).replace("_", " ")


def _quantity(name: str, value: float | None) -> tuple[str, str]:
    return _format_name(name), _number(value) + (_unit(name) if value is not None else "")


def _number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 1e4 and float(value).is_integer() else f"{value:.4g}"


def _time(seconds: float | None) -> str:
    """Return a step's length in a suitable unit."""
    if seconds is None:
        return "-"
    scale, unit = (1.0, "s") if seconds >= 1.0 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "us")
    return f"{seconds * scale:.6g} {unit}"


def _rows(rows: Iterable[tuple[str, str]]) -> list[str]:
    rows = list(rows)
    width = max(16, *(len(name) for name, _ in rows)) if rows else 16
    return [f"{name:<{width}}  {text}" for name, text in rows]


def _headed(head: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = _rows(rows)
    return [head, *(f"  {line}" for line in lines)] if lines else []
