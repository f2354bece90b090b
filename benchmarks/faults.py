"""`rtmms bench faults`: what a plant does about each fault in its peers, its network, its clock and its disk.

The manta at 1 kHz is served to two controllers. For each fault: steps missed, beside as long a time without it in the
same run; what was refused and which policy stood in; memory; whether the log is whole. What others do that hold no
claim is switched on and off in turns, so that the machine's own noise is in both.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from rtmms.errors import UnknownNameError

from . import setting
from .fault_cases import CASES, Case, problems
from .fault_run import trial
from .requirements import linux, requires

ROBOT = ("manta",)
MOST_MORE = 0.05
"""Percent of all steps that a flood, a stopped subscriber or a killed observer may cost more."""
TURNS = 5
HEADS = f"{'fault':<20}{'steps':>7}{'missed %':>9}{'without':>9}{'in row':>7}{'MiB':>8}"


@requires(lambda **_: [linux()])
def main(as_json: bool = False, duration: float = 4.0, only: str = "") -> int:
    """The command. Exit status 0 when every fault was handled as it should be.

    duration  s with each fault, and as long without (bystanders: five times that);  only  names, with commas between
    """
    setting.refuse_less("faults: --duration", duration, 0.5)
    known = {case.name: case for case in CASES}
    names = only.split(",") if only else list(known)
    for name in names:
        if name not in known:
            raise UnknownNameError("fault", name, known)
    result: dict[str, Any] = {
        "at": setting.now(), "commit": setting.commit(), "machine": setting.machine(), "load": [setting.load()],
        "robot": " ".join(ROBOT), "duration_s": duration, "target_percent": MOST_MORE,
    }  # fmt: skip
    _compile()
    print(f"{HEADS}  what stood in, what was refused", file=sys.stderr)
    result["cases"] = [_try(known[name], duration) for name in names]
    result["load"].append(setting.load())
    result["failed"] = [one["case"] for one in result["cases"] if one["problems"]]
    print(json.dumps(result)) if as_json else _print(result)
    return 1 if result["failed"] else 0


def _compile() -> None:
    """Build the plant once: its kernels compile for half a minute where they are new, which no trial waits for."""
    program = "import sys, rtmms; rtmms.load(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, ROBOT[0]], check=True)


def _try(case: Case, duration: float) -> dict[str, Any]:
    """One case; of the same run, the steps without the fault are what it is compared with."""
    found = trial(case, ROBOT, duration if case.turn is None else TURNS * duration)
    share, without = found["misses_percent"], found["misses_without_percent"]
    found["more_percent"] = None if share is None or without is None else round(share - without, 3)
    found["what"], found["problems"] = case.what, problems(case, found)
    print(_row(found), file=sys.stderr, flush=True)
    return found


def _row(one: dict[str, Any]) -> str:
    refused = ", ".join(f"{code} {count}" for code, count in (one["rejected"] or {}).items())
    policies = ", ".join(f"{policy} {count}" for policy, count in one["policies"].items())
    told = "; ".join(part for part in (policies, refused, *one["problems"]) if part)
    numbers = f"{_number(one['misses_percent']):>9}{_number(one['misses_without_percent']):>9}{one['longest_row']:>7}"
    return f"{one['case']:<20}{one['steps']:>7}{numbers}{one['growth_mib']:>8}  {told}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print(result: dict[str, Any]) -> None:
    print(f"{HEADS}  what stood in, what was refused")
    for one in result["cases"]:
        print(_row(one))
    print("all handled" if not result["failed"] else f"not as they should be: {', '.join(result['failed'])}")
