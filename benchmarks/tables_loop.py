"""Markdown of pages on the results of `rtmms bench loop`, `soak` and `exchange`.

Bold marks numbers beyond their aim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .exchange import PARTS
from .loop import TARGETS, UNEXPLAINED

Result = Mapping[str, Any]

COLUMNS = {
    "cyclictest wake-up p50, p99": "cyclictest, wake-up", "loop wake-up": "loop, wake-up",
    "raw datagrams, exchange": "datagram, exchange", "raw ZeroMQ, exchange": "zeromq, exchange",
    "compiled, nothing computed": "still, exchange", "Python, nothing computed": "steady, exchange",
    "gait": "loop, exchange", "four compiled": "four, exchange",
}  # fmt: skip
RATIOS = {"wake-up to cyclictest": "wake", "Python to datagrams": "exchange", "compiled to datagrams": "compiled",
          "four to one": "four"}  # fmt: skip
RUNS = {"gait": "loop", "compiled": "still", "Python": "steady", "four": "four", "datagrams": "datagram",
        "ZeroMQ": "zeromq"}  # fmt: skip
HELD = ("loop", "still", "steady")
"""Runs that are compared with the datagrams' misses."""


def table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of markdown.

    Parameters
    ----------
    heads : Iterable[str]
        Headings.
    rows : Iterable[Sequence[str]]
        Cells of each row.

    Returns
    -------
    str
        Markdown.
    """
    lines = [list(heads)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "\n".join("|" + "|".join("---" if cell == "---" else f" {cell} " for cell in line) + "|" for line in lines)


def number(value: float | None, digits: int = 0) -> str:
    """Return a number as text.

    Parameters
    ----------
    value : float | None
        The number or None.
    digits : int, default 0
        Digits after the point.

    Returns
    -------
    str
        '-' for None.
    """
    return "-" if value is None else f"{value:.{digits}f}"


def bold(text: str, beyond: bool) -> str:
    """Return a text, bold where it is beyond its aim.

    Parameters
    ----------
    text : str
        The text.
    beyond : bool
        Whether it is.

    Returns
    -------
    str
        Markdown.
    """
    return f"**{text}**" if beyond else text


def name_of(case: Result) -> str:
    """Return the name of a case, as '1 kHz, idle'.

    Parameters
    ----------
    case : Result
        The case.

    Returns
    -------
    str
        The name.
    """
    return f"{hertz(case['rate_hz'])}, {'idle' if case['condition'] == 'idle' else 'stress-ng'}"


def machine(result: Result) -> str:
    """Return processor, cores, day and load at the start.

    Parameters
    ----------
    result : Result
        The result.

    Returns
    -------
    str
        A phrase.
    """
    hardware, load = result["machine"], result["load"][0]
    cores = "one core" if hardware["cores"] == 1 else f"{hardware['cores']} cores"
    text = f"{hardware['cpu']}, {cores}, {result['at'][:10]}"
    return text if load is None else f"{text}, load {load[0]:.1f} at the start"


def link_result(name: str) -> str:
    """Return a link to a result, from docs/.

    Parameters
    ----------
    name : str
        File of the result.

    Returns
    -------
    str
        Markdown.
    """
    return f"[{name}](../benchmarks/results/{name})"


def hertz(rate: float) -> str:
    """Return a rate in kHz.

    Parameters
    ----------
    rate : float
        Rate, Hz.

    Returns
    -------
    str
        With its unit.
    """
    return f"{rate / 1000:g} kHz"


def pair(row: Result | None) -> str:
    """Return p50 and p99 of a row.

    Parameters
    ----------
    row : Result | None
        The row, or None.

    Returns
    -------
    str
        '-' for None.
    """
    return "-" if row is None else f"{row['p50']:.0f}, {row['p99']:.0f}"


def blocks(result: Result) -> str:
    """Return the number and length of the blocks, as '5 blocks of 2 s'.

    Parameters
    ----------
    result : Result
        The result.

    Returns
    -------
    str
        A phrase.
    """
    counts = sorted({len(case["blocks"]) for case in result["cases"]})
    return f"{' or '.join(map(str, counts)) or 'no'} blocks of {result['seconds']:g} s"


def run(loop: Result) -> str:
    """Return a sentence on the last run.

    Parameters
    ----------
    loop : Result
        Result of `rtmms bench loop`.

    Returns
    -------
    str
        A sentence.
    """
    return (
        f"The last run ({link_result('loop.json')}): {machine(loop)}, "
        f"{blocks(loop)} each.\nMedians over the blocks, p50 and p99 in us:"
    )


def times(loop: Result) -> str:
    """Return the table of medians, us.

    Parameters
    ----------
    loop : Result
        Result of `rtmms bench loop`.

    Returns
    -------
    str
        Markdown.
    """
    return table(["", *COLUMNS], ([name_of(case), *(pair(case["medians_us"].get(key)) for key in COLUMNS.values())]
                                  for case in loop["cases"]))  # fmt: skip


def ratios(loop: Result) -> str:
    """Return the table of ratios to the yardsticks, of p50 and p99, within blocks.

    Parameters
    ----------
    loop : Result
        Result of `rtmms bench loop`.

    Returns
    -------
    str
        Markdown.
    """
    heads = ["ratio to the yardstick, p50; p99"]
    for head, key in RATIOS.items():
        aims = [f"{TARGETS[f'{key}_{q}']:g}" for q in ("p50", "p99") if f"{key}_{q}" in TARGETS]
        heads.append(f"{head} ({'; '.join(aims)})")

    def cell(result: Result, key: str) -> str:
        cells = []
        for q in ("p50", "p99"):
            value, target = result.get(f"{key}_{q}"), TARGETS.get(f"{key}_{q}")
            if target is not None:
                cells.append(bold(number(value, 2), value is not None and value > target))
        return "; ".join(cells)

    return table(heads, ([name_of(case), *(cell(case["ratios"], key) for key in RATIOS.values())]
                         for case in loop["cases"]))  # fmt: skip


def misses(loop: Result) -> str:
    """Return the table of misses in percent, after a sentence on the aim.

    Parameters
    ----------
    loop : Result
        Result of `rtmms bench loop`.

    Returns
    -------
    str
        Markdown.
    """

    def row(case: Result) -> list[str]:
        gait, over = case["loop_misses"], case["overruns"]
        raw, more = case["datagram_misses"]["unexplained_percent"], UNEXPLAINED.get(case["rate_hz"])
        cells = [name_of(case), number(_percent(gait["all"], gait["steps"]), 3)]
        for who in RUNS.values():
            value = case[f"{who}_misses"]["unexplained_percent"]
            known = value is not None and raw is not None and more is not None
            cells.append(bold(number(value, 3), known and who in HELD and value > raw + more))
        return [*cells, number(_percent(over["unexplained"], over["steps"]), 3)]

    aims = ", ".join(f"{maximum:g} at {hertz(rate)}" for rate, maximum in UNEXPLAINED.items())
    heads = ["missed, unexplained %", "gait all", *RUNS, "overruns, unexplained %"]
    sentence = (
        "Missed commands in percent. `gait all` counts every miss of the gait; the other columns count the misses that "
        f"no stall explains.\nD is half the period (80 % at 5 kHz). The aim is the misses of the datagrams plus {aims}:"
    )
    return sentence + "\n\n" + table(heads, map(row, loop["cases"]))


def _percent(count: int, of: int) -> float | None:
    return 100.0 * count / of if of else None


def paces(loop: Result, quickest: Result) -> str:
    """Return the steps a second without a clock, and the rate that does not hold.

    Parameters
    ----------
    loop : Result
        Result of `rtmms bench loop`.
    quickest : Result
        Result at the quickest rate.

    Returns
    -------
    str
        Lines.
    """
    rates = [f"{mode} {rate:,.0f}" for mode, rate in (loop.get("steps_a_second") or {}).items() if rate is not None]
    lines = [f"Steps a second without a clock, with the gait in its own process: {', '.join(rates)}."] if rates else []
    for case in quickest["cases"]:
        still, raw = case["still_misses"], case["datagram_misses"]
        median = (case["medians_us"]["still, exchange"] or {}).get("p50")
        ours, theirs = (
            (number(_percent(result["all"], result["steps"])), number(result["unexplained_percent"]))
            for result in (still, raw)
        )
        lines.append(
            f"At {name_of(case)} (`--rates {case['rate_hz']}`, {blocks(quickest)}, {link_result('loop_10khz.json')}) "
            f"a compiled controller\nmisses {ours[0]} % of its commands, {ours[1]} % without a stall "
            f"(raw datagrams {theirs[0]} and {theirs[1]} %). The median of its exchange is {number(median)} us."
        )
    return "\n".join(lines) or "Nothing was measured."


HOW = {"ipc": "ipc", "tcp": "tcp", "libzmq": "tcp by libzmq", "curve": "CURVE"}


def in_real_time(loop: Result, hour: Result) -> str:
    """Return the README's part on real time: the loop at 1 kHz, idle, or another case; and the hour.

    Parameters
    ----------
    loop : Result
        Result of `rtmms bench loop`.
    hour : Result
        Result of `rtmms bench soak`.

    Returns
    -------
    str
        Markdown.
    """
    bad = hour["unexplained"]
    soak = (
        f"For {_long(hour)} at {hertz(1e6 / hour['schedule']['period_us'])}, `gait` ran in its own process. "
        f"Of {hour['steps']} commands, {hour['exchange']['misses']} missed their deadline. "
        f"{hour['schedule']['overruns']} steps [overran](docs/report.md#overrun-policies) their period. "
        f"[Stalls](docs/concepts.md#causes-of-faults) of the machine caused "
        f"{hour['exchange']['misses'] - bad['misses']} of these misses and "
        f"{hour['schedule']['overruns'] - bad['overruns']} of these overruns. The other misses are "
        f"{bad['misses_percent']:.4f} % of all commands, "
        f"the other overruns {bad['overruns_percent']:.4f} % of all steps "
        f"([soak_hour.json](benchmarks/results/soak_hour.json); {_cpu(hour)})."
    )
    if not loop["cases"]:
        return soak
    case = min(loop["cases"], key=lambda case: (case["rate_hz"] != 1000, case["condition"] != "idle"))
    us = case["medians_us"]

    def pair(who: str) -> str:
        item = us.get(who) or {}
        return f"{number(item.get('p50'))}, {number(item.get('p99'))}"

    raw = f"raw datagrams from Python {pair('datagram, exchange')}; raw ZeroMQ {pair('zeromq, exchange')}"
    rows = [
        ["delay of the loop's wake-up", pair("loop, wake-up"), f"cyclictest {pair('cyclictest, wake-up')}"],
        [
            "time from sending a state to receiving the command of the manta's controller `gait`",
            pair("loop, exchange"),
            raw,
        ],
        ["the same, of a compiled controller that computes nothing", pair("still, exchange"), "(as above)"],
        ["the same, of a Python controller that computes nothing", pair("steady, exchange"), "(as above)"],
    ]
    return "\n".join([
        f"The runs of the second table have {blocks(loop)} at {hertz(case['rate_hz'])} in real time, "
        f"{'without an artificial load' if case['condition'] == 'idle' else 'beside stress-ng'} "
        f"([loop.json](benchmarks/results/loop.json); {_cpu(loop)}). Each number is the median over the blocks.",
        "",
        table(["p50, p99 in us", "rtmms", "yardstick in the same run"], rows),
        "",
        soak,
    ])  # fmt: skip


def one_step(plant: Result) -> str:
    """Return the README's table: what a step of the manta costs.

    Parameters
    ----------
    plant : Result
        Result of `rtmms bench plant`.

    Returns
    -------
    str
        Markdown.
    """
    step, ten, free, growth = plant["step"], plant["ten_ms"], plant["free"], plant["growth"]
    over = f"{round(step['plain_over_compiled'], -2):.0f} times the compiled code"
    return table(
        ["what", "measured"],
        [
            [
                "one step: compiled code alone; the whole call `plant.step(command)`",
                f"{step['compiled_us']['median']:.1f} us; {step['python_us']['median']:.1f} us",
            ],
            [
                "the same step in plain Python, in the same run",
                f"{step['plain_us']['median'] / 1e3:.1f} ms: {over}, "
                f"{round(step['plain_over_python'], -2):.0f} times `plant.step`",
            ],
            [
                "computing time for 10 ms of swimming: in ten steps of 1 ms; in one step of 10 ms",
                f"{ten['ten_steps_of_1_ms_us']:.0f} us; {ten['one_step_of_10_ms_us']:.1f} us. The paper's "
                "code needs 180 000 us "
                "for one step of 10 ms, on a laptop",
            ],
            [
                "speed over real time if the steps run as fast as possible (`--mode free`): without "
                "controller; with the "
                "manta's controller `gait` in its own process",
                f"{free['none']['real_time_factor']:.0f} x; {free['gait']['real_time_factor']:.0f} x",
            ],
            [
                "exponent e of the step time ~ n^e, for n chains per fin (32 to 992); for n links per chain (1 to 24)",
                f"{growth['exponent_chains']:.2f}; {growth['exponent_links']:.2f}",
            ],
            [
                "Python objects that a step leaves behind; memory allocations in its compiled code (tests check both)",
                "0, 0",
            ],
        ],
    )


def _cpu(result: Result) -> str:
    return str(result["machine"]["cpu"])


def _long(hour: Result) -> str:
    seconds = hour["simulated_s"]
    return "an hour" if seconds == 3600 else f"{seconds:g} s"


def hour(result: Result) -> str:
    """Return the paragraph of docs/results.md on the hour.

    Parameters
    ----------
    result : Result
        Result of `rtmms bench soak`.

    Returns
    -------
    str
        Lines.
    """
    bad, stalls, log = result["unexplained"], result["stall_detector"], result["log"]
    steps, misses, overruns = result["steps"], result["exchange"]["misses"], result["schedule"]["overruns"]
    preempted = [item for item in bad["listed"] if item["overrun"] == "involuntary_switch"]
    processes = result["processes"]
    names = {"stall_detector": "stall detector"}
    grown = ", ".join(f"{names.get(who, who)} {process['growth_mib']:.2f}" for who, process in processes.items())
    lines = [
        f"{_long(result).capitalize()} at {hertz(1e6 / result['schedule']['period_us'])} "
        f"({link_result('soak_hour.json')}; "
        f"{machine(result)}): {steps} steps, {misses} commands missed ({100 * misses / steps:.2f} %,",
        f"at most {result['exchange']['max_consecutive_misses']} in a row), {overruns} overruns "
        f"({100 * overruns / steps:.2f} %). Stalls of the machine explain {100 * (stalls['machine_share'] or 0):.0f} % "
        f"of the bad steps (of random steps {100 * (stalls['base_rate'] or 0):.1f} %).",
        f"Without a stall, {bad['misses_percent']:.4f} % of the commands were missed and "
        f"{bad['overruns_percent']:.4f} % of the steps overran.\nThe aim is {UNEXPLAINED[1000]:g} % for each. The file "
        "lists all of them.",
        f"In {len(preempted)} of those {bad['overruns']} overruns the loop was preempted, up to "
        f"{max((item['switches'] for item in preempted), default=0)} times. A stall counts from "
        f"{stalls['limit_us']:.0f} us on.",
        f"Growth in MiB: {grown}; in file handles: "
        f"{max(process['handles_last'] - process['handles_first'] for process in processes.values())}. "
        f"{log['mib'] / 1024:.1f} GiB of log, {log['dropped'] or 'no'} rows dropped.",
    ]
    return "\n".join(lines)


def exchange(result: Result) -> str:
    """Return the table of docs/results.md on the exchange, p50 in us.

    Parameters
    ----------
    result : Result
        Result of `rtmms bench exchange`.

    Returns
    -------
    str
        Markdown.
    """
    heads = ["", *(f"{part} (in the slack)" if part == "pack" else part for part in PARTS), "whole, p50, p99"]
    rows = []
    for case in result["cases"]:
        us, count = case["us"], case["controllers"]
        rows.append([f"{HOW[case['transport']]}, {count} controller{'s' if count > 1 else ''}",
                     *(number(us[part]["p50"]) for part in PARTS),
                     f"{us['exchange']['p50']:.0f}, {us['exchange']['p99']:.0f}"])  # fmt: skip
    return f"{machine(result)}:\n\n" + table(heads, rows)


def round_trip(result: Result) -> str:
    """Return the table of docs/bridges.md on the time from a state to its answer through each bridge.

    Parameters
    ----------
    result : Result
        Result of `rtmms bench bridges`.

    Returns
    -------
    str
        Markdown.
    """
    rates = sorted({rate for result in result["bridges"].values() for rate in result if rate.isdigit()}, key=int)
    heads = ["bridge", *(f"{rate} Hz: p50, p99 in ms" for rate in rates), f"lost at {rates[-1]} Hz"]
    rows = []
    for name, results in result["bridges"].items():
        if any("states" not in item for item in results.values()):
            rows.append([name, *["-"] * (len(heads) - 1)])
            continue
        times = [
            ", ".join("-" if us is None else f"{us / 1e3:.1f}" for us in (both["p50"], both["p99"]))
            for both in (results[rate]["there_and_back_us"] for rate in rates)
        ]
        rows.append([name, *times, f"{results[rates[-1]]['lost']} of {results[rates[-1]]['states']}"])
    return table(heads, rows)
