"""`rtmms bench loop`: the loop beside cyclictest and raw exchanges of the same bytes, on one core at one priority.

The loop runs four times a block: with the gait, as a user's; and with controllers that answer the same at once, as the
other side of the raw exchanges does: in plain Python (`steady`: the README's ten lines), compiled (`still`), and four
compiled ones (`four`). Ratios of exchanges are those of `steady` and `still` to Python's raw datagrams.

The plant's own time (`phase_us`) marks each block: for seconds at a time a shared machine's caches are cold, and all
Python code takes twice as long. A ratio is of one block; blocks of one phase can be compared.

Blocks of each alternate, because a shared machine stalls any process; each has a stall detector beside it. Reported are
medians over the blocks and ratios within each block. Idle means that this command starts nothing beside them; other
work of the machine is in `load`. The default takes fifteen minutes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.loop.machine import allowed_cores

from . import setting
from .requirements import program, requires
from .steady import FOUR, registered
from .yardsticks import QUANTILES, cyclictest, loaded, pingpong

PRIORITY = 80
SHARE = {5000: 0.8}
"""Deadline as a share of the period where it is not a half."""
TARGETS = {
    "wake_p50": 1.2, "wake_p99": 1.5, "exchange_p50": 1.5, "exchange_p99": 2.0, "compiled_p50": 1.0,
    "compiled_p99": 1.2, "four_p50": 2.0,
}  # fmt: skip
"""Aims of the ratios. exchange: of `steady`; compiled: of `still`, both to the datagrams; four: of `four` to `still`.
"""
MODES = ("lockstep", "free")
UNEXPLAINED = {1000: 0.01, 2000: 0.05, 5000: 0.1}
"""Aims for misses that a stall detector does not explain, percent."""


def _needed(blocks: int, seconds: float, rates: str, load: str, **_: Any) -> list[str]:
    """Return the requirements of the options, see `rtmms_benchmarks.requirements`.

    Raise ModelError for wrong options.
    """
    _read_rates(blocks, seconds, rates, load)
    stress = program("stress-ng", "apt install stress-ng, or --load idle")
    return [stress if load != "idle" else ""]


def _read_rates(blocks: int, seconds: float, rates: str, load: str) -> list[int]:
    """Return the rates in Hz; raise ModelError for an option that is wrong on every machine."""
    wanted = [int(word) for word in rates.split(",") if word.isdigit()]
    if not wanted or min(wanted) < 1 or load not in ("idle", "loaded", "both"):
        raise ModelError(f"bench loop: expected --rates as 1000,2000 and --load idle, loaded or both, "
                         f"got '{rates}' and '{load}'")  # fmt: skip
    setting.refuse_less("loop: --blocks", blocks, 1)
    setting.refuse_less("loop: --seconds", seconds, 0.1)
    return wanted


@requires(_needed)
def main(
    as_json: bool = False, blocks: int = 5, seconds: float = 4.0, rates: str = "1000,2000,5000", load: str = "both",
) -> int:  # fmt: skip
    """Run the benchmark.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    blocks : int, default 5
        Number of blocks.
    seconds : float, default 4.0
        Duration of each run of a block, s.
    rates : str, default '1000,2000,5000'
        Rates, Hz, separated by commas.
    load : str, default 'both'
        'idle', 'loaded' or 'both'.

    Returns
    -------
    int
        1 when the loop could not run.
    """
    wanted = _read_rates(blocks, seconds, rates, load)
    conditions = {"both": ("idle", "loaded")}.get(load, (load,))
    result = measure(blocks, seconds, wanted, conditions)
    print(json.dumps(result)) if as_json else print_result(result)
    return int(any("failed" in block[who] for who in LOOPS for case in result["cases"] for block in case["blocks"]))


def measure(blocks: int, seconds: float, rates: Iterable[int], conditions: Iterable[str]) -> dict[str, Any]:
    """Measure all cases.

    Parameters
    ----------
    blocks : int
        Number of blocks.
    seconds : float
        Duration of each run of a block, s.
    rates : Iterable[int]
        Rates, Hz.
    conditions : Iterable[str]
        'idle', 'loaded'.

    Returns
    -------
    dict[str, Any]
        All results.
    """
    sizes = message_sizes()
    out: dict[str, Any] = {
        "commit": setting.commit(), "machine": setting.machine(), "at": setting.now(), "load": [setting.load()],
        "seconds": seconds, "state_bytes": sizes[0], "command_bytes": sizes[1], "cases": [],
    }  # fmt: skip
    for rate in rates:
        for condition in conditions:
            result = []
            for k in range(blocks):
                print(f"{rate} Hz, {condition}: block {k + 1} of {blocks}", file=sys.stderr, flush=True)
                with loaded(condition == "loaded"):
                    result.append(block(rate, seconds, sizes))
            out["cases"].append({"rate_hz": rate, "condition": condition, "blocks": result, **summary(rate, result)})
    out["steps_a_second"] = {mode: stepping(mode, 3) for mode in MODES}
    out["load"].append(setting.load())
    return out


def block(rate: int, seconds: float, sizes: tuple[int, int]) -> dict[str, Any]:
    """Measure one block: each after the other, on the core that the loop selects by itself.

    Parameters
    ----------
    rate : int
        Rate, Hz.
    seconds : float
        Duration of each run, s.
    sizes : tuple[int, int]
        Bytes of a state and of a command.

    Returns
    -------
    dict[str, Any]
        Results by run.
    """
    core, period_us = (allowed_cores() or [0])[-1], round(1e6 / rate)
    deadline_us = period_us * SHARE.get(rate, 0.5)
    return {
        "loop": manta(rate, seconds, deadline_us),
        "still": manta(rate, seconds, deadline_us, "still"),
        "steady": manta(rate, seconds, deadline_us, "steady"),
        "four": manta(rate, seconds, deadline_us, *FOUR),
        "cyclictest": cyclictest(seconds, period_us, PRIORITY, core),
        "datagram": pingpong("datagram", seconds, period_us, PRIORITY, core, sizes, deadline_us),
        "zeromq": pingpong("zeromq", seconds, period_us, PRIORITY, core, sizes, deadline_us),
    }


def manta(rate: int, seconds: float, deadline_us: float, *controllers: str) -> dict[str, Any]:
    """Run `rtmms run manta` with controllers.

    Parameters
    ----------
    rate : int
        Rate, Hz.
    seconds : float
        Duration, s.
    deadline_us : float
        Deadline, us.
    *controllers : str
        Names of the controllers; none: the gait.

    Returns
    -------
    dict[str, Any]
        The compared parts of its report.
    """
    report = _run(["--dt", f"{1 / rate:g}", "--duration", f"{seconds:g}", "--deadline", f"{deadline_us}e-6",
                   "--priority", str(PRIORITY)], controllers or ("gait",), 3 * seconds + 120)  # fmt: skip
    if "failed" in report:
        return report
    detector, timing = report["stall_detector"], report["timing_us"]
    return {
        "wake": timing["wake"], "exchange": timing["exchange"], "plant": timing["plant"], "steps": report["steps"],
        "misses": report["exchange"]["misses"], "overruns": report["schedule"]["overruns"],
        "causes": report["schedule"]["causes"], "base_rate": detector["base_rate"],
        "unexplained": sum(n for cause, n in detector["misses"].items() if cause != "machine"),
        "unexplained_overruns": sum(n for cause, n in detector["overruns"].items() if cause != "machine"),
        "failed_setup": report["realtime"]["failed"], "gc_collections": report["realtime"].get("gc_collections"),
    }  # fmt: skip


def stepping(mode: str, blocks: int, steps: int = 20_000) -> float | None:
    """Run the manta with the gait in another process, without a clock.

    Parameters
    ----------
    mode : str
        'lockstep' or 'free'.
    blocks : int
        Number of runs.
    steps : int, default 20000
        Steps of a run.

    Returns
    -------
    float | None
        Steps a second; None where a run failed.
    """
    arguments = ["--mode", mode, "--duration", f"{steps * 1e-3:g}", "--priority", str(PRIORITY)]
    runs = [_run(arguments, ("gait",), 120.0) for _ in range(blocks)]
    if any("failed" in run for run in runs):
        return None
    return statistics.median(float(run["steps"]) / float(run["wall_s"]) for run in runs)


def _run(arguments: list[str], controllers: Iterable[str], patience_s: float) -> dict[str, Any]:
    """Return the report of one run; {"failed": ...} where there is none."""
    arguments = ["run", "manta", *arguments, "--json", "--quiet"]
    for controller in controllers:
        arguments += ["--controller", controller]
    with registered() as environment:
        child = subprocess.run(
            [sys.executable, "-P", "-m", "rtmms", *arguments],
            capture_output=True, text=True, timeout=patience_s, check=False, env=environment,
        )  # fmt: skip
    if not child.stdout.strip():
        lines = child.stderr.strip().splitlines()
        return {"failed": lines[-1] if lines else f"exit status {child.returncode}"}
    report: dict[str, Any] = json.loads(child.stdout)
    return report


def message_sizes() -> tuple[int, int]:
    """Return the bytes of a state of the manta for its gait, and of the gait's command.

    Returns
    -------
    tuple[int, int]
        State and command.
    """
    import rtmms
    from rtmms.loop.ports import Applied
    from rtmms.wire.plant.state_message import Selection, select
    from rtmms.wire.protocol.messages import packer

    plant = rtmms.load("manta")
    plant.reset(0)
    mine = Selection(select(plant.outputs, ("velocity",)))
    state = mine.packed(100_000, 100.001, 1 << 50, 1 << 19, plant.observe(), Applied())
    values = {channel.name: 0.123456789 for channel in plant.actuators}
    command = packer()({"type": "command", "seq": 100_000, "step": 100_000, "values": values})
    return len(state), len(command)


# --- what it amounts to -----------------------------------------------------------------------------------------------


def summary(rate: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over the blocks, ratios within them, and misses of all of them together.

    Parameters
    ----------
    rate : int
        Rate, Hz.
    blocks : list[dict[str, Any]]
        Results of the blocks.

    Returns
    -------
    dict[str, Any]
        By name.
    """
    good = [block for block in blocks if all("failed" not in block[who] for who in LOOPS)]
    out: dict[str, Any] = {"medians_us": {}, "ratios": {}}
    for name, path in ROWS.items():
        rows = [row for block in good if (row := _dig(block, path)) is not None]
        out["medians_us"][name] = {q: statistics.median(row[q] for row in rows) for q, _ in QUANTILES} if rows else None
    for part, who, yardstick in (
        ("wake", "loop", ("cyclictest",)), ("exchange", "steady", ("datagram", "exchange")),
        ("compiled", "still", ("datagram", "exchange")), ("four", "four", ("still", "exchange")),
    ):  # fmt: skip
        for q in ("p50", "p99"):
            key = part if part == "wake" else "exchange"
            pairs = [(block[who][key][q], row[q]) for block in good if (row := _dig(block, yardstick)) is not None]
            out["ratios"][f"{part}_{q}"] = statistics.median(a / b for a, b in pairs if b) if pairs else None
    steps = sum(block["loop"]["steps"] for block in good)
    for who in RUNS:
        rows = [block[who] for block in good if "failed" not in block[who]]
        total, unexplained = sum(row["steps"] for row in rows), sum(row["unexplained"] for row in rows)
        out[f"{who}_misses"] = {
            "all": sum(row["misses"] for row in rows), "unexplained": unexplained, "steps": total,
            "unexplained_percent": 100 * unexplained / total if total else None,
        }  # fmt: skip
    rates = [block["loop"]["base_rate"] for block in good if block["loop"]["base_rate"] is not None]
    out["base_rate"] = statistics.median(rates) if rates else None
    out["overruns"] = {"all": sum(block["loop"]["overruns"] for block in good), "steps": steps,
                       "unexplained": sum(block["loop"]["unexplained_overruns"] for block in good)}  # fmt: skip
    causes = good[0]["loop"]["causes"] if good else {}
    out["causes"] = {cause: sum(block["loop"]["causes"][cause] for block in good) for cause in causes}
    percent = out["loop_misses"]["unexplained_percent"]
    out["phase_us"] = {who: [block[who]["plant"]["p50"] for block in good] for who in LOOPS}
    met = {
        name: None if out["ratios"][name] is None else out["ratios"][name] <= target for name, target in TARGETS.items()
    }
    met["unexplained"] = None if percent is None or rate not in UNEXPLAINED else percent <= UNEXPLAINED[rate]
    out["met"] = met
    return out


LOOPS = ("loop", "still", "steady", "four")
RUNS = (*LOOPS, "datagram", "zeromq")
ROWS = {
    "loop, wake-up": ("loop", "wake"), "cyclictest, wake-up": ("cyclictest",),
    "datagram, wake-up": ("datagram", "wake"),
    "loop, exchange": ("loop", "exchange"), "still, exchange": ("still", "exchange"),
    "steady, exchange": ("steady", "exchange"), "four, exchange": ("four", "exchange"),
    "datagram, exchange": ("datagram", "exchange"),
    "zeromq, exchange": ("zeromq", "exchange"), "loop, plant": ("loop", "plant"),
}  # fmt: skip


def _dig(block: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any] | None:
    value: Any = block
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) and value.get("p50") is not None else None


def print_result(result: Mapping[str, Any]) -> None:
    """Print the result for a reader.

    Parameters
    ----------
    result : Mapping[str, Any]
        The result.
    """
    print(
        f"commit {result['commit']}, load {result['load'][0]} before, {result['load'][-1]} after; medians over blocks "
        f"of {result['seconds']:g} s; a state has {result['state_bytes']} bytes, a command {result['command_bytes']}"
    )
    for case in result["cases"]:
        print(f"\n{case['rate_hz']} Hz, {case['condition']}, {len(case['blocks'])} blocks; "
              f"us{'':<8}p50      p99    p99.9      max")  # fmt: skip
        for name, row in case["medians_us"].items():
            if row is not None:
                print(f"  {name:<28}" + "".join(f"{row[q]:9.1f}" for q, _ in QUANTILES))
        ratios = ", ".join(f"{name.replace('_', ' ')} {case['ratios'][name]:.2f} (target {target:g})"
                           for name, target in TARGETS.items() if case["ratios"].get(name) is not None)  # fmt: skip
        print(f"  ratios to the yardstick: {ratios}")
        phases = "; ".join(f"{who} " + " ".join(f"{us:.1f}" for us in row) for who, row in case["phase_us"].items())
        print(f"  the plant's own time in each block, us: {phases}")
        for who in RUNS:
            row = case[f"{who}_misses"]
            if row["steps"]:
                print(f"  {who}: {row['all']} of {row['steps']} missed, {row['unexplained']} not explained by a stall "
                      f"({row['unexplained_percent']:.4f} %)")  # fmt: skip
        causes = ", ".join(f"{cause} {n}" for cause, n in case["causes"].items() if n) or "none"
        print(f"  {case['overruns']['all']} overruns, {case['overruns']['unexplained']} not explained; "
              f"causes: {causes}; stalls touch {100 * (case['base_rate'] or 0):.2f} % of all periods")  # fmt: skip
    print()
    print("steps a second with the gait in its own process: " + ", ".join(
        f"{mode} {'-' if rate is None else format(rate, '.0f')}" for mode, rate in result["steps_a_second"].items()
    ))  # fmt: skip
