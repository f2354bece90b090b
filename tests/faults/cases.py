"""The faults that are tried, each with what the plant must do about it. Data, and the few actions that need code."""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.record.log_location import part_of

from . import wall_clock

if TYPE_CHECKING:
    from .processes import Bench

SIDES = ("left.*", "right.*")
LOG_ROOM = 5_000
MAX_GROWTH_MIB = 8.0

Act = Callable[["Bench", Any, str, float], None]
Turn = Callable[["Bench", list[Any], bool], None]


def _nothing(bench: Bench, side: Any, right: str, seconds: float) -> None:
    pass


def _kill(bench: Bench, side: Any, right: str, seconds: float) -> None:
    time.sleep(seconds / 3)
    side.kill()


def _pause(bench: Bench, side: Any, right: str, seconds: float) -> None:
    """Stopped for a third of the time, then let go on."""
    time.sleep(seconds / 3)
    side.send_signal(signal.SIGSTOP)
    time.sleep(seconds / 3)
    side.send_signal(signal.SIGCONT)


def _restart(bench: Bench, side: Any, right: str, seconds: float) -> None:
    """Killed, and another one started in its place."""
    time.sleep(seconds / 4)
    side.kill()
    bench.controller("steady", "--claim", right)


def _stop_and_go(bench: Bench, extra: list[Any], on: bool, running: bool) -> None:
    """In turns; running: they run while the fault is on, else they are stopped then."""
    for process in extra:
        process.send_signal(signal.SIGCONT if on == running else signal.SIGSTOP)


def _kill_observer(bench: Bench, extra: list[Any], on: bool) -> None:
    """An observer for most of the turn: killed in one, gone with a bye in the other."""
    item = bench.peer("watching", *(() if on else ("--seconds", "0.5")))
    time.sleep(0.5)
    if on:
        item.kill()
    item.wait()


def _deafen(bench: Bench, extra: list[Any], on: bool) -> None:
    """Subscribers that do not read in one turn, such as want nothing in the other."""
    for process in extra:
        process.kill()
        process.wait()
    extra[:] = [bench.peer("deaf" if on else "idle")]
    time.sleep(0.5)


def _fill_disk(bench: Bench, side: Any, right: str, seconds: float) -> None:
    """From now on the log's writer has no more room than LOG_ROOM beyond what it has written."""
    room = part_of(bench.folder / "run.mcap").stat().st_size + LOG_ROOM
    plant = bench.started[0].pid
    for child in Path(f"/proc/{plant}/task/{plant}/children").read_text().split():
        if b"rtmms.record.writer" in Path(f"/proc/{child}/cmdline").read_bytes():
            resource.prlimit(int(child), resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))


@dataclass(frozen=True)
class Case:
    """One fault.

    right    kind of the controller of the right side (see peers.py)
    proxy    words of the proxy between it and the plant
    act      done once, while the time of the trial runs
    neighbours   kinds of further peers;  turn  brings the fault, and takes it away, in turns
    status   what the plant's command is to exit with
    expects  what must hold beyond what always must: (result) -> a sentence where it does not, '' where it does
    """

    name: str
    what: str
    right: str = "steady"
    proxy: tuple[str, ...] = ()
    act: Act = _nothing
    neighbours: tuple[str, ...] = ()
    turn: Turn | None = None
    expects: Callable[[Mapping[str, Any]], str] = lambda result: ""
    environment: Mapping[str, str] = field(default_factory=dict)
    whole_log: bool = True
    status: int = 0
    sides: tuple[str, str] = SIDES


def problems(case: Case, result: Mapping[str, Any]) -> list[str]:
    """What did not hold, in sentences."""
    results = []
    if (result["status"], result["ended"]) != (case.status, "stop"):
        results.append(f"the run ended by '{result['ended']}' with exit status {result['status']}")
    if result["traceback"]:
        results.append("there was a traceback")
    if not result["sum_holds"]:
        results.append("steps are not applied + stale + missed + unclaimed + reused")
    if not result["finite"]:
        results.append("an output is not finite")
    if result["growth_mib"] > MAX_GROWTH_MIB:
        results.append(f"memory grew by {result['growth_mib']} MiB")
    log = result["log"] or {}
    if case.whole_log and not (log.get("whole") and result["log_has_all"] and not log.get("dropped")):
        results.append(f"the log is not whole: {log}")
    if not _good_one_served(result):
        results.append("the good controller was not served")
    text = case.expects(result)
    return [*results, text] if text else results


def _good_one_served(result: Mapping[str, Any]) -> bool:
    """The left side's controller answered nearly each step, and nothing of it was refused."""
    good = [peer for peer in result["peers"] if peer["name"] == "steady"]
    return any(peer["commands"] > 0.5 * result["steps"] and not peer["rejected"] for peer in good)


# --- what is expected -------------------------------------------------------------------------------------------------


def _share(least: float, maximum: float, result: Mapping[str, Any]) -> str:
    share = result["misses_percent"]
    return (
        ""
        if share is not None and least <= share <= maximum
        else f"{share} % missed, expected {least:g} to {maximum:g}"
    )


def _reported(code: str, result: Mapping[str, Any]) -> str:
    return "" if result["rejected"].get(code) else f"nothing was refused as {code}: {result['rejected']}"


def _refused(code: str, result: Mapping[str, Any]) -> str:
    return _reported(code, result) or _share(20.0, 100.0, result)


def _late(result: Mapping[str, Any]) -> str:
    return _share(50.0, 100.0, result) if result["late"] else "no command counted as late"


def _recovered(result: Mapping[str, Any]) -> str:
    return _share(5.0, 90.0, result)


def _drops(result: Mapping[str, Any]) -> str:
    return "" if (result["log"] or {}).get("dropped") else "no row was dropped"


PROXIES = (
    Case("delay", "commands 5 periods late", proxy=("--delay", "5"), expects=_late),
    Case("jitter", "commands up to 2 periods late", proxy=("--jitter", "2"), expects=partial(_share, 1.0, 100.0)),
    Case("drop", "one command in ten lost", proxy=("--drop", "0.1"), expects=partial(_share, 3.0, 100.0)),
    Case("double", "every other command twice", proxy=("--double", "0.5")),
    Case("reorder", "one command in five after the next", proxy=("--reorder", "0.2"),
         expects=partial(_share, 5.0, 100.0)),
    Case("corrupt", "one bit in a command of five wrong", proxy=("--corrupt", "0.2")),
)  # fmt: skip

CONTROLLERS = (
    Case("killed", "SIGKILL after a third", act=_kill, expects=partial(_share, 50.0, 90.0)),
    Case("stopped", "SIGSTOP for a third", act=_pause, expects=_recovered),
    Case("restarted", "SIGKILL, and another one started", act=_restart, expects=_recovered),
    Case("mute", "sends nothing after its first command", right="mute", expects=partial(_share, 90.0, 100.0)),
    Case("closing", "closes its sockets without a bye", right="closing", expects=partial(_share, 60.0, 100.0)),
    Case("late", "answers a period and a half after each state", right="late", expects=_late),
    Case("flooding", "as many commands as it can send", right="flooding"),
    Case("wrong_steps", "every other command for a step far off", right="wrong_steps",
         expects=partial(_refused, "too_early")),
    Case("not_finite", "NaN and infinities", right="not_finite", expects=partial(_refused, "not_finite")),
    Case("wrong_types", "texts, nil, flags, lists for numbers", right="wrong_types",
         expects=partial(_refused, "wrong_type")),
    Case("unknown_names", "actuators that there are none of", right="unknown_names",
         expects=partial(_refused, "unknown_actuator")),
    Case("oversize", "48 KiB a command", right="oversize", expects=partial(_refused, "oversize")),
    Case("huge", "1 MiB a command: the connection is closed each time", right="huge"),
    Case("empty_frames", "64 KiB of empty frames beside its commands, every 0.25 s", right="empty_frames",
         expects=partial(_reported, "malformed")),
    Case("truncated", "half a frame", right="truncated", expects=partial(_refused, "malformed")),
    Case("lying_seq", "seq that repeats, falls, or is beyond all", right="lying_seq",
         expects=partial(_refused, "seq")),
)  # fmt: skip

FLOOD = partial(_stop_and_go, running=True)
BYSTANDERS = (
    Case("busy", "two processes that compute and talk to nobody", neighbours=("busy", "busy"), turn=FLOOD),
    Case("strangers", "two processes that flood the door", neighbours=("strangers", "strangers"), turn=FLOOD),
    Case("noise", "connections that speak no ZeroMQ", neighbours=("noise",), turn=FLOOD),
    Case("hollow", "64 KiB of empty frames every 0.25 s, into each endpoint", neighbours=("hollow",), turn=FLOOD,
         expects=partial(_reported, "malformed")),
    Case("hollow_flood", "empty frames as fast as they go, into each endpoint", neighbours=("hollow_flood",),
         turn=FLOOD,
         expects=partial(_reported, "malformed")),
    Case("patterns", "hellos without a token, with 256 patterns", neighbours=("patterns",), turn=FLOOD,
         expects=partial(_reported, "wrong_type")),
    Case("subscriptions", "200 topics a connection", neighbours=("subscriptions",), turn=FLOOD,
         expects=partial(_reported, "busy")),
    Case("deaf", "32 subscribers that never read", turn=_deafen),
    Case("stopped_subscriber", "four observers that stop reading", neighbours=("watching",) * 4,
         turn=partial(_stop_and_go, running=False)),
    Case("killed_observer", "observers that are killed", turn=_kill_observer),
)  # fmt: skip

MACHINE = (
    Case("wall_clock", "the wall clock jumps by hours in the plant's process",
         environment={wall_clock.SWITCH: "1"}),
    Case("full_disk", "the disk of the log is full", act=_fill_disk, whole_log=False, status=1, expects=_drops),
)  # fmt: skip

NONE = Case("none", "nothing wrong")
CASES = (NONE, *PROXIES, *CONTROLLERS, *BYSTANDERS, *MACHINE)
