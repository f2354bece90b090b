"""`rtmms bench release`: measures all figures that pages quote, stores them, and writes the pages' tables.

Each benchmark of MEASUREMENTS runs alone, as a program, one after the other. Its result goes to benchmarks/results as
soon as the benchmark ends, so Ctrl-C loses only the benchmark that runs. The checkout must not differ from its commit,
except in results and pages. The whole takes about three hours; `--only` chooses some.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.files import new_file_beside

from . import setting, tables

RESULTS = Path(__file__).resolve().parent / "results"

LAST_RELEASE = "6747c44edd13"
"""Commit of the last release, 0.2.0, with which `against` compares."""

MEASUREMENTS = {
    "plant": "plant",
    "loop": "loop --seconds 2",
    "loop_10khz": "loop --rates 10000 --blocks 3 --seconds 2 --load idle",
    "exchange": "exchange",
    "bridges": "bridges",
    "rollout": "rollout",
    "derivatives": "derivatives",
    "environments": "environments",
    "mujoco": "mujoco",
    "fish": "fish",
    "predictive_realtime": "predictive --seeds 0 --seconds 60",
    "soak_hour": "soak --duration 3600",
    "against": f"against {LAST_RELEASE} --pairs 4",
    "water": "water",
    "guards": "guards",
    "predictive": "predictive",
    "intervals": "intervals",
}
"""Words of `rtmms bench` by the name of the stored result: first the measurements of time, then those of accuracy."""

UNSTORED = ("cells",)
"""Keys of a result that no page quotes, and that would make the file large."""

BUSY_LOAD = 0.5
"""Load average of the last minute above which a warning names it."""


def main(as_json: bool = False, only: str = "", fish_model: str = "") -> int:
    """Run the command.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    only : str, default ''
        Names of results, separated by commas; '': all.
    fish_model : str, default ''
        The authors' tendonFish.xml for `fish`; '': without their model.

    Returns
    -------
    int
        1 if a benchmark failed, whose last result remains, or had a finding, such as a silently wrong cell of `guards`.

    Raises
    ------
    ModelError, UnknownNameError
        The checkout has changes, or a name is wrong.
    """
    names = [name.strip() for name in only.split(",") if name.strip()] or list(MEASUREMENTS)
    for name in names:
        if name not in MEASUREMENTS:
            raise UnknownNameError("result", name, MEASUREMENTS)
    if (setting.commit() or "").endswith("+"):
        raise ModelError("bench release: expected a checkout without changes, got changed files: commit them first")
    load = setting.load()
    if load and load[0] > BUSY_LOAD:
        print(f"warning: the load is {load[0]:.1f}; other programs change the figures", file=sys.stderr)
    failed = {}
    for k, name in enumerate(names, 1):
        parts = MEASUREMENTS[name].split()
        if name == "fish" and fish_model:
            parts += ["--model", fish_model]
        print(f"{k} of {len(names)}: rtmms bench {MEASUREMENTS[name]}", file=sys.stderr)
        begun = time.monotonic()
        if fault := measure(name, parts):
            failed[name] = fault
        print(f"{name}: {fault or 'stored'} after {time.monotonic() - begun:.0f} s", file=sys.stderr)
    tables.main(as_json=False)
    if as_json:
        print(json.dumps({"stored": [name for name in names if name not in failed], "failed": failed}))
    return int(bool(failed))


def measure(name: str, arguments: list[str], folder: Path = RESULTS) -> str:
    """Run one benchmark and store its result.

    Parameters
    ----------
    name : str
        Name of the result.
    arguments : list[str]
        Words of `rtmms bench`.
    folder : Path, optional
        Folder of the results.

    Returns
    -------
    str
        Reason why there is no result, or what is wrong with it; '' where all is well.
    """
    before = {"commit": setting.commit(), "machine": setting.machine(), "at": setting.now()}
    load = setting.load()
    run = subprocess.run(
        [sys.executable, "-P", "-m", "rtmms", "bench", *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        measured = json.loads(run.stdout)
    except ValueError:
        return f"no result: rtmms bench ended with exit status {run.returncode}"
    command = f"rtmms bench {MEASUREMENTS.get(name, ' '.join(arguments))}"
    result: dict[str, Any] = {
        **before, "load": [load, setting.load()], "command": command, **measured
    }  # fmt: skip
    for key in UNSTORED:
        result.pop(key, None)
    with new_file_beside(folder / f"{name}.json") as path:
        path.write_text(json.dumps(result) + "\n", encoding="utf-8")
    return f"stored, with a finding: rtmms bench ended with exit status {run.returncode}" if run.returncode else ""
