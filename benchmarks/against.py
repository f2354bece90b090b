"""`rtmms bench against REV`: this tree against another commit, in pairs of runs.

The other commit gets a work tree and an environment of its own below build/against, with the versions of libraries that
this environment has; both remain for the next time. Each run is a process; the two sides alternate A B B A, so that a
drift of the machine touches both. A ratio is of the two runs of a pair, ours over theirs: above 1 we are slower.

This file is also the program of each run: `python against.py KIND`, with the Python of either side. That part uses only
the public interface of rtmms that both commits have.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

THIS_FILE = Path(__file__).resolve()
ROOT = THIS_FILE.parents[1]
BUILD_FOLDER = ROOT / "build" / "against"
RESULT_FILE = ROOT / "benchmarks" / "results" / "against.json"

COUPLINGS = ("sequential", "iterated", "monolithic")
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"manta {1e3 * dt:g} ms, {coupling}": ("manta", {"dt": dt, "coupling": coupling})
        for dt in (1e-3, 1e-2)
        for coupling in COUPLINGS
    },
    "eel": ("eel", {}), "moth": ("moth", {}), "quadrotor": ("quadrotor", {}),
}  # fmt: skip
"""Plants whose step is timed, by their names in the table."""
COMPILED = ("manta", "eel")
"""Robots that are built from an empty cache: their own kernels, and those of a general tree."""
EXCHANGE = "exchange, lockstep with the gait"
BITS_STEPS = 500
BLOCK_S = 0.02
MAX_RUN_S = 600.0


# --- what runs on either side -----------------------------------------------------------------------------------------


def step_times(blocks: int) -> dict[str, dict[str, Any]]:
    """Time a step of each of STEPS.

    Parameters
    ----------
    blocks : int
        Number of blocks.

    Returns
    -------
    dict[str, dict[str, Any]]
        us of the quickest block (disturbances only add), and a digest of the outputs.
    """
    import hashlib
    import time

    import numpy as np

    import rtmms

    result = {}
    for name, (robot, values) in STEPS.items():
        try:
            plant = rtmms.load(robot, **values)
        except rtmms.RtmmsError:  # a commit without it
            continue
        commands = _commands(plant, BITS_STEPS)
        plant.reset(seed=0)
        start = time.perf_counter()
        for command in commands:
            plant.step(command)
        length = max(20, round(BLOCK_S * BITS_STEPS / max(time.perf_counter() - start, 1e-6)))
        outputs = plant.observe()
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(outputs[key]).tobytes() for key in sorted(outputs)))
        names = ",".join(sorted(outputs))
        times = []
        for _ in range(blocks):
            plant.reset(seed=0)  # the same way each time: how long a step takes depends on the state
            step, n = plant.step, len(commands)
            start = time.perf_counter()
            for k in range(length):
                step(commands[k % n])
            times.append((time.perf_counter() - start) / length)
        result[name] = {"us": 1e6 * min(times), "bits": digest.hexdigest()[:16], "outputs": names}
    return result


def _commands(plant: Any, steps: int) -> Any:
    """Return (steps, n_actuators): each actuator a sine about its neutral value, within its limits."""
    import numpy as np

    neutral = np.array([actuator.neutral for actuator in plant.actuators])
    room = np.array([min(abs(actuator.upper - actuator.neutral) if actuator.upper is not None else 0.3,
                         abs(actuator.neutral - actuator.lower) if actuator.lower is not None else 0.3, 0.3)
                     for actuator in plant.actuators])  # fmt: skip
    time = plant.dt * np.arange(steps)[:, None]
    phase = 0.7 * np.arange(len(plant.actuators))
    return np.ascontiguousarray(neutral + 0.5 * room * np.sin(2.0 * np.pi * 0.6 * time + phase))


def compile_time(robot: str) -> dict[str, Any]:
    """Time the first step of a robot from an empty cache, without numba's import.

    Parameters
    ----------
    robot : str
        Name of the robot.

    Returns
    -------
    dict[str, Any]
        s.
    """
    import time

    import numba  # noqa: F401
    import numpy as np

    import rtmms

    start = time.perf_counter()
    plant: Any = rtmms.load(robot)
    plant.step(np.array([actuator.neutral for actuator in plant.actuators]))
    return {"s": time.perf_counter() - start}


def rollout_times(runs: int = 64, steps: int = 200) -> dict[str, Any]:
    """Time a step of many runs at once, by `rtmms.rollout`.

    Parameters
    ----------
    runs : int, default 64
        Number of runs.
    steps : int, default 200
        Steps of a run.

    Returns
    -------
    dict[str, Any]
        us; empty where a commit has no rollouts.
    """
    import time

    import numpy as np

    import rtmms

    roll = getattr(rtmms, "rollout", None)
    if roll is None:
        return {}
    result = {}
    for robot in ("manta", "eel"):
        plant: Any = rtmms.load(robot)
        commands = np.ascontiguousarray(_commands(plant, steps)[None])
        initial = [plant.snapshot()] * runs
        roll(plant, commands, initial=initial)
        start = time.perf_counter()
        roll(plant, commands, initial=initial)
        result[f"rollout, {robot}, {runs} runs"] = {"us": 1e6 * (time.perf_counter() - start) / (runs * steps)}
    return result


def work(arguments: Sequence[str]) -> dict[str, Any]:
    """Perform one run, by its kind.

    Parameters
    ----------
    arguments : Sequence[str]
        Kind and arguments.

    Returns
    -------
    dict[str, Any]
        Results by case.
    """
    kind, *remaining = arguments
    if kind == "step":
        return step_times(int(remaining[0]))
    if kind == "compile":
        return compile_time(remaining[0])
    return rollout_times()


# --- pairs and their ratios -------------------------------------------------------------------------------------------


def order(pairs: int) -> list[str]:
    """Return the sides in the order of their runs: A B, B A, A B, ...

    Parameters
    ----------
    pairs : int
        Number of pairs.

    Returns
    -------
    list[str]
        Two entries a pair.
    """
    return [side for k in range(pairs) for side in (("ours", "theirs") if k % 2 == 0 else ("theirs", "ours"))]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """Compare the runs of each pair, ours over theirs.

    Parameters
    ----------
    ours, theirs : Sequence[float]
        Results of each run.

    Returns
    -------
    dict[str, Any]
        Median, quartiles, number of pairs, and the medians of both sides.
    """
    result = [a / b for a, b in zip(ours, theirs, strict=True)]
    low, high = (result[0], result[0]) if len(result) == 1 else _quartiles(result)
    return {
        "ratio": statistics.median(result), "quartiles": [low, high], "pairs": len(result),
        "ours": statistics.median(ours), "theirs": statistics.median(theirs),
    }  # fmt: skip


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def compared(runs: Mapping[str, Sequence[Mapping[str, Mapping[str, Any]]]], unit: str) -> list[dict[str, Any]]:
    """Return a row for each case that both sides have.

    Parameters
    ----------
    runs : Mapping[str, Sequence[Mapping[str, Mapping[str, Any]]]]
        Runs of each side, in the order of pairs: {case: {unit: number, "bits": digest, "outputs": names}}.
    unit : str
        Key of the number.

    Returns
    -------
    list[dict[str, Any]]
        Rows.
    """
    rows = []
    for case in runs["ours"][0]:
        if not all(case in run for side in runs.values() for run in side):
            continue
        row: dict[str, Any] = {"case": case, "unit": unit}
        row |= ratios([run[case][unit] for run in runs["ours"]], [run[case][unit] for run in runs["theirs"]])
        results = {side: {(run[case].get("bits"), run[case].get("outputs")) for run in runs[side]} for side in runs}
        first = next(iter(results["ours"]))
        row["bits"] = None if first[0] is None else _bits(results["ours"], results["theirs"])
        rows.append(row)
    return rows


def _bits(ours: set[Any], theirs: set[Any]) -> str:
    """Return 'same', 'differ', 'other outputs', or 'vary' where runs of one side differ among themselves."""
    if len(ours) > 1 or len(theirs) > 1:
        return "vary"
    (our_bits, our_names), (their_bits, their_names) = next(iter(ours)), next(iter(theirs))
    if our_names != their_names:
        return "other outputs"
    return "same" if our_bits == their_bits else "differ"


# --- the other commit -------------------------------------------------------------------------------------------------


def resolved(rev: str) -> str:
    """Return the commit of a name.

    Parameters
    ----------
    rev : str
        Commit, tag or branch.

    Returns
    -------
    str
        Its hash.

    Raises
    ------
    ModelError
        git has no such commit, or this is no checkout.
    """
    from rtmms.base.errors import ModelError

    if not rev:
        raise ModelError("bench against: expected a commit, a tag or a branch: rtmms bench against REV")
    arguments = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"]
    try:
        result = subprocess.run(arguments, capture_output=True, text=True, timeout=20)
    except OSError as fault:
        raise ModelError(f"bench against: git is needed: {fault.strerror}") from None
    if result.returncode:
        raise ModelError(f"bench against: expected a commit, a tag or a branch of this repository, got '{rev}'")
    return result.stdout.strip()


def environment(commit: str, report: Callable[[str], None]) -> Path:
    """Return the Python of the other commit's own environment, made where there is none.

    Parameters
    ----------
    commit : str
        Hash of the commit.
    report : Callable[[str], None]
        Receives lines about the progress.

    Returns
    -------
    Path
        Path of Python.

    Raises
    ------
    RtmmsError
        The environment cannot be made.
    """
    home = BUILD_FOLDER / commit[:12]
    python = home / "venv" / "bin" / "python"
    if (home / "ready").exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    report(f"making {home.relative_to(ROOT)}: work tree and environment of {commit[:12]}")
    _do("git", "-C", str(ROOT), "worktree", "prune")
    _do("git", "-C", str(ROOT), "worktree", "add", "--detach", "--force", str(home / "tree"), commit)
    from importlib.metadata import distributions

    ours = {
        distribution.metadata["Name"]: distribution.version
        for distribution in distributions()
        if distribution.metadata["Name"] != "rtmms"
    }
    (home / "constraints.txt").write_text("".join(f"{name}=={version}\n" for name, version in sorted(ours.items())))
    asked = ["-q", "-c", str(home / "constraints.txt"), "-e", str(home / "tree")]
    uv = shutil.which("uv") or (shutil.which("uv", path=str(Path(sys.executable).parent)))
    if uv:
        _do(uv, "venv", "-q", "--python", sys.executable, str(home / "venv"))
        _do(uv, "pip", "install", "--python", str(python), *asked)
    else:
        _do(sys.executable, "-m", "venv", str(home / "venv"))
        _do(str(python), "-m", "pip", "install", *asked)
    (home / "ready").touch()
    return python


def _do(*arguments: str) -> None:
    from rtmms.base.errors import RtmmsError

    done = subprocess.run(arguments, capture_output=True, text=True, timeout=MAX_RUN_S)
    if done.returncode:
        raise RtmmsError(f"bench against: {' '.join(arguments[:4])} ...: {_last(done.stderr or done.stdout)}")


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def run(python: str, arguments: Sequence[str], cache: str | None = None) -> dict[str, Any]:
    """Perform one run: this file as a program.

    Parameters
    ----------
    python : str
        Path of Python.
    arguments : Sequence[str]
        Kind and arguments.
    cache : str | None, optional
        Folder for compiled kernels in place of the usual one.

    Returns
    -------
    dict[str, Any]
        Results by case.

    Raises
    ------
    RtmmsError
        The run failed.
    """
    from rtmms.base.errors import RtmmsError

    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    environment |= {"RTMMS_QUIET": "1", "NUMBA_CACHE_DIR": cache or _kernels(python)}
    done = subprocess.run(
        [python, "-P", str(THIS_FILE), *arguments],
        capture_output=True,
        text=True,
        timeout=MAX_RUN_S,
        env=environment,
        cwd=BUILD_FOLDER,
    )
    if done.returncode:
        raise RtmmsError(f"bench against: {arguments[0]} by {python}: {_last(done.stderr)}")
    content: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return content


def _kernels(python: str) -> str:
    """Return the folder of a side's kernels, which is its own, so that no other work tree's kernels replace them."""
    return (
        str(Path(python).parents[2] / "kernels")
        if Path(python).is_relative_to(BUILD_FOLDER)
        else str(BUILD_FOLDER / "kernels")
    )


def exchange(python: str, seconds: float) -> dict[str, Any]:
    """Time a step of `rtmms run manta --mode lockstep`, the gait in another process.

    Parameters
    ----------
    python : str
        Path of Python.
    seconds : float
        Simulated time, s.

    Returns
    -------
    dict[str, Any]
        us, with a digest of the outputs.

    Raises
    ------
    RtmmsError
        The run failed.
    """
    from rtmms.base.errors import RtmmsError

    arguments = [
        "-m",
        "rtmms",
        "run",
        "manta",
        "--mode",
        "lockstep",
        "--controller",
        "gait",
        "--duration",
        f"{seconds:g}",
    ]
    done = subprocess.run([python, "-P", *arguments, "--json", "--quiet"], capture_output=True, text=True,
                          timeout=MAX_RUN_S, cwd=BUILD_FOLDER,
                          env=os.environ | {"NUMBA_CACHE_DIR": _kernels(python)})  # fmt: skip
    if done.returncode:
        raise RtmmsError(f"bench against: rtmms run by {python}: {_last(done.stderr)}")
    report = json.loads(done.stdout)
    bits = json.dumps(report["final"], sort_keys=True)
    return {EXCHANGE: {"us": 1e6 * report["wall_s"] / report["steps"], "bits": bits, "outputs": ""}}


# --- the command ------------------------------------------------------------------------------------------------------


def main(
    as_json: bool, rev: str = "", /, *, pairs: int = 6, compile_pairs: int = 2, blocks: int = 15, seconds: float = 5.0,
    keep: bool = False,
) -> int:  # fmt: skip
    """Measure and print.

    Parameters
    ----------
    as_json : bool
        Print JSON.
    rev : str, default ''
        The other commit.
    pairs : int, default 6
        Pairs of runs, of steps and exchange.
    compile_pairs : int, default 2
        Pairs of compilations, 0 for none.
    blocks : int, default 15
        Blocks of steps in each run.
    seconds : float, default 5.0
        Simulated time of the exchange, s.
    keep : bool, default False
        Write benchmarks/results/against.json, which docs quote.

    Returns
    -------
    int
        Exit status.
    """
    from . import setting

    for name, value, least in (("pairs", pairs, 1), ("compile-pairs", compile_pairs, 0), ("blocks", blocks, 1),
                               ("seconds", seconds, 0.1)):  # fmt: skip
        setting.refuse_less(f"against: --{name}", value, least)
    commit = resolved(rev)

    def report(text: str) -> None:
        print(f"bench against: {text}", file=sys.stderr, flush=True)

    pythons = {"ours": sys.executable, "theirs": str(environment(commit, report))}
    BUILD_FOLDER.mkdir(parents=True, exist_ok=True)
    load = [setting.load()]
    rows: list[dict[str, Any]] = []

    def measure(what: str, unit: str, count: int, once: Callable[[str], dict[str, Any]]) -> None:
        runs: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
        for k, side in enumerate(order(count)):
            report(f"{what}: {k + 1} of {2 * count}, {side}")
            runs[side].append(once(pythons[side]))
        rows.extend(compared(runs, unit))

    report("once each, so that all kernels are compiled")
    for python in pythons.values():
        run(python, ["step", "1"])
        run(python, ["rollout"])
        exchange(python, 0.1)
    measure("steps", "us", pairs, lambda python: run(python, ["step", str(blocks)]))
    measure("rollouts", "us", pairs, lambda python: run(python, ["rollout"]))
    measure("exchange", "us", pairs, lambda python: exchange(python, seconds))
    for robot in COMPILED if compile_pairs else ():

        def cold(python: str, robot: str = robot) -> dict[str, Any]:
            with tempfile.TemporaryDirectory(prefix="rtmms-against-") as cache:
                return {f"compiling {robot}": run(python, ["compile", robot], cache)}

        measure(f"compiling {robot}", "s", compile_pairs, cold)
    result = {
        "benchmark": "against", "at": setting.now(), "commit": setting.commit(), "against": commit, "rev": rev,
        "machine": setting.machine(), "load": [*load, setting.load()], "rows": rows,
    }  # fmt: skip
    if keep:
        RESULT_FILE.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result) if as_json else table(result))
    return 0


def table(result: Mapping[str, Any]) -> str:
    """Return the result as text for a person.

    Parameters
    ----------
    result : Mapping[str, Any]
        The result.

    Returns
    -------
    str
        Lines.
    """
    lines = [f"{str(result['commit'])[:13]} against {result['against'][:12]}; ratio: ours over theirs, above 1 slower",
             f"{'':<34}{'ratio':>7}  {'quartiles':<14}{'ours':>10}{'theirs':>10}      bits"]  # fmt: skip
    for row in result["rows"]:
        low, high = row["quartiles"]
        lines.append(
            f"{row['case']:<34}{row['ratio']:>7.3f}  {f'{low:.3f} to {high:.3f}':<14}{row['ours']:>10.4g}"
            f"{row['theirs']:>10.4g} {row['unit']:<4} {row['bits'] or ''}".rstrip()
        )
    return "\n".join(lines)


def page(result: Mapping[str, Any]) -> str:
    """Return the part of docs/results.md: a table of markdown.

    Parameters
    ----------
    result : Mapping[str, Any]
        The result.

    Returns
    -------
    str
        Markdown.
    """
    from .tables_loop import link_result, machine, number, table

    rows = [
        [row["case"], f"{row['ratio']:.2f} ({row['quartiles'][0]:.2f} to {row['quartiles'][1]:.2f})",
         f"{number(row['ours'], 2)} {row['unit']}", f"{number(row['theirs'], 2)} {row['unit']}", row["bits"] or "-"]
        for row in result["rows"]
    ]  # fmt: skip
    pairs = sorted({row["pairs"] for row in result["rows"]})
    return (
        f"Commit {str(result['commit'])[:12]} against {result['against'][:12]} ({link_result('against.json')}; "
        f"{machine(result)}), {' or '.join(map(str, pairs))} pairs:\n\n"
        + table(["", "ratio (quartiles)", "this commit", "the other", "bits"], rows)
    )


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1:])))
