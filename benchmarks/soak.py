"""`rtmms bench soak --duration S`: the manta at 1 kHz with its gait and its recorder, for long.

Beside the run its processes are sampled: memory, file handles. Afterwards the log's rows are counted and each bad step
that the machine does not explain is listed. An hour writes 8 GB of log, which is deleted unless --log names its place.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import setting
from .requirements import linux, requires, writable

SETTLING_SHARE = 0.1
"""Share of the run, at most a minute, after which memory counts."""
PROGRESS_LINES = 40
PARTS = {"rtmms.record.writer": "recorder", "control": "controller", "rtmms.loop.stall_detector": "stall_detector"}


@requires(lambda log, **_: [linux(), writable("--log", log)])
def main(
    as_json: bool = False, duration: float = 600.0, rate: float = 1.0, priority: str = "80", log: str = "",
    options: str = "",
) -> int:  # fmt: skip
    """Run the benchmark.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    duration : float, default 600.0
        Simulated time, s.
    rate : float, default 1.0
        Simulated over wall time.
    priority : str, default '80'
        As in `rtmms run`.
    log : str, default ''
        Place of the log; '': a temporary one.
    options : str, default ''
        Further words for `rtmms run`.

    Returns
    -------
    int
        0 when the run came to its end and its log is whole.
    """
    setting.refuse_less("soak: --duration", duration, 1.0)
    setting.refuse_less("soak: --rate", rate, 0.01)
    with tempfile.TemporaryDirectory(prefix="rtmms-soak-") as folder:
        path = Path(log) if log else Path(folder) / "soak.mcap"
        arguments = ["run", "manta", "--duration", f"{duration:g}", "--rate", f"{rate:g}", "--priority", priority,
                 "--log", str(path), "--json", "--quiet", *options.split()]  # fmt: skip
        result = soak(arguments, duration / rate, path)
    print(json.dumps(result)) if as_json else print_result(result)
    return 0 if result["ended"] == "duration" and result["log"]["whole"] else 1


def soak(arguments: list[str], wall_s: float, path: Path) -> dict[str, Any]:
    """Run, sample, and judge.

    Parameters
    ----------
    arguments : list[str]
        Words of `rtmms`.
    wall_s : float
        Expected wall time, s.
    path : Path
        The log.

    Returns
    -------
    dict[str, Any]
        One object.
    """
    out: dict[str, Any] = {
        "commit": setting.commit(), "machine": setting.machine(), "at": setting.now(), "load": [setting.load()],
        "command": " ".join(["rtmms", *(word if word != str(path) else path.name for word in arguments)]),
    }  # fmt: skip
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        run = subprocess.Popen([sys.executable, "-P", "-m", "rtmms", *arguments], stdout=output, stderr=errors)
        try:
            samples = _sample(run, wall_s, path)
        finally:
            if run.poll() is None:
                run.terminate()
                run.wait()
        output.seek(0)
        errors.seek(0)
        text, messages = output.read(), errors.read().strip()
    report = json.loads(text) if text.strip() else {}
    out["load"].append(setting.load())
    out |= {"ended": report.get("ended"), "exit_status": run.returncode, "errors": messages[-500:]}
    out |= {key: report.get(key) for key in ("steps", "simulated_s", "wall_s", "schedule", "timing_us", "realtime")}
    exchange, detector = report.get("exchange") or {}, report.get("stall_detector") or {}
    out["exchange"] = {key: value for key, value in exchange.items() if key != "peers"}
    out["stall_detector"] = {key: value for key, value in detector.items() if key != "bad_steps"}
    out["unexplained"] = unexplained(report)
    out["processes"] = {part: summary(rows, wall_s) for part, rows in samples.items()}
    out["log"] = _log(path, report.get("log") or {}, report.get("steps") or 0)
    return out


def unexplained(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return misses and overruns without a cause in the machine.

    Parameters
    ----------
    report : Mapping[str, Any]
        Report of the run.

    Returns
    -------
    dict[str, Any]
        Shares of all steps, and the list.
    """
    detector, steps = report.get("stall_detector") or {}, report.get("steps") or 0
    result: dict[str, Any] = {}
    for kind in ("misses", "overruns"):
        count = sum(n for cause, n in (detector.get(kind) or {}).items() if cause != "machine")
        result[kind] = count
        result[f"{kind}_percent"] = 100.0 * count / steps if steps else None
    bad = detector.get("bad_steps") or []
    result["listed"] = [item for item in bad if {item["miss"], item["overrun"]} - {"machine", None}]
    return result


# --- the processes ----------------------------------------------------------------------------------------------------


def _sample(run: subprocess.Popen[bytes], wall_s: float, path: Path) -> dict[str, list[tuple[float, int, int]]]:
    """Return (s since the start, KiB, file handles) of each process.

    About 400 samples in the run, at most one a second.
    """
    samples: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    begun, gap, count = time.monotonic(), max(1.0 if wall_s > 60 else 0.2, wall_s / 400), 0
    while run.poll() is None:
        time.sleep(gap)
        at, observed = time.monotonic() - begun, {}
        for pid, part in _family(run.pid):
            result = _look(pid)
            if result is not None:
                samples[part].append((at, *result))
                observed[part] = result
        count += 1
        if count % max(1, round(wall_s / gap / PROGRESS_LINES)) == 0:
            size = path.stat().st_size >> 20 if path.exists() else 0
            parts = ", ".join(f"{part} {kib >> 10} MiB {handles} files" for part, (kib, handles) in observed.items())
            print(f"{at:.0f} of {wall_s:.0f} s: {parts}; log {size} MiB", file=sys.stderr, flush=True)
    return samples


def _family(pid: int) -> list[tuple[int, str]]:
    """Return the run and its children, with their names."""
    result = [(pid, "plant")]
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return result
    for child in children:
        try:
            parts = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        part = next((part for word, part in PARTS.items() if word in parts), "other")
        result.append((int(child), part))
    return result


def _look(pid: int) -> tuple[int, int] | None:
    """Return (resident KiB, file handles) of a process; None when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            resident = next((int(line.split()[1]) for line in file if line.startswith("VmRSS")), None)
        handles = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return None
    return None if resident is None else (resident, handles)


def summary(rows: list[tuple[float, int, int]], wall_s: float) -> dict[str, Any]:
    """Summarise the samples between the settling of a run and its end.

    The time to load before is not known: only that the run ended with the last sample.

    Parameters
    ----------
    rows : list[tuple[float, int, int]]
        Samples: s, KiB, file handles.
    wall_s : float
        Duration of the run, s.

    Returns
    -------
    dict[str, Any]
        First and last sample; growth_mib between the medians of the first and the last tenth of the samples that count.
    """
    end = rows[-1][0]
    whole = min(wall_s, end)
    begin = end - whole + min(60.0, SETTLING_SHARE * whole)
    settled = [row for row in rows if begin <= row[0] <= end - min(2.0, SETTLING_SHARE * whole)] or rows
    tenth = max(1, len(settled) // 10)
    first = statistics.median(row[1] for row in settled[:tenth])
    last = statistics.median(row[1] for row in settled[-tenth:])
    handles = [row[2] for row in settled]
    third = max(1, len(handles) // 3)  # a slow start still opens some, a slow end has closed some
    begun, ended = (round(statistics.median(part)) for part in (handles[:third], handles[-third:]))
    return {
        "samples": len(settled), "first_mib": first / 1024, "last_mib": last / 1024,
        "growth_mib": (last - first) / 1024, "most_mib": max(row[1] for row in settled) / 1024,
        "handles_first": begun, "handles_last": ended, "handles_most": max(handles),
    }  # fmt: skip


# --- the log ----------------------------------------------------------------------------------------------------------


def _log(path: Path, report: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return whether every step is in the log, in order, and its end was written; rows are counted."""
    if not path.exists():
        return {"whole": False, "rows": 0, "steps_missing": steps, "mib": 0, "dropped": report.get("dropped")}
    print(f"counting the rows of {path.stat().st_size >> 20} MiB of log", file=sys.stderr, flush=True)
    from rtmms.record.log import open_log

    log = open_log(path)
    rows, wrong = log.count_steps()
    whole = bool(log.end is not None and log.end.whole and report.get("whole")) and rows == steps and wrong == 0
    return {"whole": whole, "rows": rows, "steps_missing": steps - rows, "out_of_order": wrong,
            "dropped": report.get("dropped"), "mib": path.stat().st_size / (1 << 20)}  # fmt: skip


def print_result(result: Mapping[str, Any]) -> None:
    """Print the result for a reader.

    Parameters
    ----------
    result : Mapping[str, Any]
        The result.
    """
    schedule, exchange, load = result["schedule"] or {}, result["exchange"], result["load"]
    print(f"{result['command']}\ncommit {result['commit']}, load {load[0]} before, {load[-1]} after")
    if not schedule:
        print(f"the run did not begin: {result['errors'] or 'exit status ' + str(result['exit_status'])}")
        return
    print(f"ended {result['ended']}: {result['steps']} steps in {result['wall_s']:.1f} s, {exchange['misses']} missed "
          f"(at most {exchange['max_consecutive_misses']} in a row), {schedule['overruns']} overruns, "
          f"{schedule['skipped']} periods skipped")  # fmt: skip
    causes = ", ".join(f"{cause} {n}" for cause, n in schedule["causes"].items() if n)
    print(f"causes of misses and overruns: {causes or 'none'}")
    unexplained_counts = result["unexplained"]
    if result["stall_detector"].get("present"):
        print(
            f"not explained by the machine: {unexplained_counts['misses']} misses "
            f"({unexplained_counts['misses_percent']:.4f} %), "
            f"{unexplained_counts['overruns']} overruns ({unexplained_counts['overruns_percent']:.4f} %); "
            "its stalls touch "
            f"{100 * result['stall_detector']['base_rate']:.2f} % of all periods"
        )
    for item in unexplained_counts["listed"][:50]:
        print(f"  step {item['step']}: miss {item['miss']}, overrun {item['overrun']}; wake {item['wake_us']:.0f}, "
              f"exchange {item['exchange_us']:.0f}, plant {item['plant_us']:.0f}, "
              f"whole {item['total_us']:.0f} us")  # fmt: skip
    print(f"{'':<12}{'first MiB':>11}{'last':>9}{'growth':>9}{'most':>9}   file handles first, last, most")
    for part, row in result["processes"].items():
        print(f"{part:<12}{row['first_mib']:>11.2f}{row['last_mib']:>9.2f}{row['growth_mib']:>9.3f}{row['most_mib']:>9.2f}"
              f"   {row['handles_first']}, {row['handles_last']}, {row['handles_most']}")  # fmt: skip
    log = result["log"]
    print(f"log: {log['rows']} rows, {log['mib']:.0f} MiB, {'whole' if log['whole'] else 'NOT whole'}, "
          f"{log['steps_missing']} steps missing, {log['dropped']} dropped")  # fmt: skip
