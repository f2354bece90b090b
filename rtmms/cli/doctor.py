"""rtmms doctor: abilities of this machine for a real-time run, and advice."""

from __future__ import annotations

import json
import platform
import socket
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlparse

import click

from rtmms.base.processes import core_count
from rtmms.base.terminal import print_json, print_text

PACKAGES = ("numpy", "numba", "scipy", "pyzmq", "msgpack", "hdrhistogram")


@dataclass(frozen=True)
class CheckResult:
    """Result of one check.

    Attributes
    ----------
    topic : str
        Subject of the check.
    state : str
        good, note (works, could be better) or bad.
    result : str
        Result.
    advice : str, default ''
        '' when good.
    """

    topic: str
    state: str
    result: str
    advice: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(as_json: bool) -> int:
    """Look at this machine: versions, plug-ins, ports, compiler cache, real-time set-up. Exit 1 if something is bad."""
    findings = [*_software(), *_plugins(), *_ports(), _cache(), *_machine(), *_real_time()]
    status = int(any(finding.state == "bad" for finding in findings))
    if as_json:
        print_json(json.dumps({"ok": status == 0, "findings": [asdict(finding) for finding in findings]}))
        return status
    for finding in findings:
        mark = {"good": "  ", "note": "- ", "bad": "! "}[finding.state]
        print_text(f"{mark}{finding.topic:<22} {finding.result}")
        if finding.advice:
            print_text(f"{'':<25}{finding.advice}")
    return status


def _software() -> list[CheckResult]:
    import rtmms
    from rtmms.wire.libzmq.key_pairs import libzmq_version

    system = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    result = [CheckResult("rtmms", "good", f"{rtmms.__version__} in {Path(rtmms.__file__).parent}"),
             CheckResult("python", "good", system)]  # fmt: skip
    for package in PACKAGES:
        try:
            result.append(CheckResult(package, "good", version(package)))
        except PackageNotFoundError:
            result.append(CheckResult(package, "bad", "not installed", f"pip install {package}"))
    result.append(CheckResult("libzmq", "good", libzmq_version()))
    return result


def _plugins() -> list[CheckResult]:
    """Check the plug-ins; a user's folder that hides a module of ours is a common cause of surprise."""
    from rtmms.base.entry_points import entry_points_of
    from rtmms.base.errors import ModelError
    from rtmms.wire.peer.plugins import GROUP, load_controller, loaded_elsewhere

    result = [CheckResult("robots", "good", ", ".join(sorted(entry_points_of("rtmms.plants"))) or "none")]
    for name in sorted(entry_points_of("rtmms.controllers")):
        try:
            load_controller(name)
        except ModelError as error:
            result.append(CheckResult(f"controller {name}", "bad", str(error), "reinstall it, or take its name away"))
            continue
        elsewhere = loaded_elsewhere(GROUP, name)
        result.append(CheckResult(f"controller {name}", "note" if elsewhere else "good", elsewhere or "loads"))
    return result


def _ports() -> list[CheckResult]:
    from rtmms.wire.addresses import DEFAULTS

    result = []
    for role, endpoint in DEFAULTS.items():
        where = urlparse(endpoint)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((where.hostname, where.port))
                result.append(CheckResult(f"port {where.port}", "good", f"free ({role})"))
            except OSError as error:
                advice = "a run takes another one and prints it"
                result.append(CheckResult(f"port {where.port}", "note", f"{role}: {error.strerror}", advice))
    return result


def _cache() -> CheckResult:
    """Check the cache of compiled steps; without it every start compiles."""
    from rtmms.base.kernel_cache import cache_folder

    place = cache_folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return CheckResult("compiler cache", "good", f"{place} can be written")
    except OSError as error:
        advice = "each process compiles again; name another folder in XDG_CACHE_HOME"
        return CheckResult("compiler cache", "note", f"{place}: {error.strerror}", advice)


def _machine() -> list[CheckResult]:
    cores = core_count()
    result = [CheckResult("cores", "good" if cores > 1 else "note", str(cores),
                     "" if cores > 1 else "the plant and its controllers share one core")]  # fmt: skip
    if sys.platform != "linux":
        return [
            *result,
            CheckResult("system", "note", sys.platform, "real time is set up on Linux only; all modes run"),
        ]
    preempt = next((word for word in platform.version().split() if word.startswith("PREEMPT")), "no preemption")
    best = preempt == "PREEMPT_RT"
    result.append(CheckResult("kernel", "good" if best else "note", f"{platform.release()} {preempt}",
                         "" if best else "a PREEMPT_RT kernel has shorter worst cases"))  # fmt: skip
    clock = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    slow = clock in ("hpet", "acpi_pm")
    result.append(CheckResult("clock source", "note" if slow else "good", clock or "unknown",
                         "reading it costs microseconds; tsc is better" if slow else ""))  # fmt: skip
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor:
        lazy = governor != "performance"
        result.append(CheckResult("frequency governor", "note" if lazy else "good", governor,
                             "cpupower frequency-set -g performance" if lazy else ""))  # fmt: skip
    return result


def _real_time() -> list[CheckResult]:
    """Try the set-up of a run on this process, and undo it."""
    from rtmms.loop.machine import AUTO_PRIORITY, COSTS, costs, finish, may_raise, prepare
    from rtmms.loop.stall_detector import PRIORITY

    plain = costs()  # as a controller runs that nobody raised
    ready = prepare(AUTO_PRIORITY)
    finish(ready)
    raised = costs()
    result = [CheckResult("real-time set-up", "note", text.partition(";")[0], text.partition(";")[2].strip())
             for text in ready.failed]  # fmt: skip
    done = list(ready.done)
    ready.close()
    if done:
        result.insert(0, CheckResult("real-time set-up", "good", ", ".join(done)))
    allowed = may_raise(PRIORITY)
    result.append(CheckResult("stall detector", "good" if allowed else "note",
                         f"SCHED_FIFO {PRIORITY} is {'' if allowed else 'not '}permitted",
                         "" if allowed else "stalls of the machine are blamed on nobody; raise rtprio"))  # fmt: skip
    for name, cost in (("the loop", raised), ("a controller", plain)):
        listed = ", ".join(f"{COSTS[what]} {us:g}" for what, us in cost.items())
        result.append(CheckResult(f"costs for {name}", "good", f"{listed} us"))
    if ready.priority and plain["wake_up"] > 2.0 * raised["wake_up"]:
        late, less = plain["wake_up"], raised["wake_up"]
        listed = f"at ordinary priority each wakes up {late:g} us late, at the run's priority {less:g} us"
        result.append(CheckResult("controllers", "note", listed, "with `--priority N`, a run raises them to N - 10"))
    return result


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
