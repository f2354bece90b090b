"""What docs/realtime.md says of `rtmms bench loop`, from its result: markdown. Bold is what is beyond its aim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
WRITERS = {
    "compiled, as within a usual step": "", "by Python, as of a step that is none": "python",
    "the same bytes by one slice assignment": "copy", "the clock read twice, by Python": "nothing",
}  # fmt: skip
HELD = ("loop", "still", "steady")
"""Of these runs, those that are held to the datagrams' misses."""
RING_US = 10.0
"""p99.9 of a row, compiled."""


def table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Of markdown."""
    lines = [list(heads)]
    lines += [["---"] * len(lines[0]), *map(list, rows)]
    return "\n".join("|" + "|".join("---" if cell == "---" else f" {cell} " for cell in line) + "|" for line in lines)


def number(value: float | None, digits: int = 0) -> str:
    """'-' where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def bold(text: str, beyond: bool) -> str:
    return f"**{text}**" if beyond else text


def name_of(case: Result) -> str:
    """'1 kHz, idle'."""
    return f"{hertz(case['rate_hz'])}, {'idle' if case['condition'] == 'idle' else 'stress-ng'}"


def machine(result: Result) -> str:
    """Processor, cores, day and load at the start."""
    found, load = result["machine"], result["load"][0]
    cores = "one core" if found["cores"] == 1 else f"{found['cores']} cores"
    told = f"{found['cpu']}, {cores}, {result['at'][:10]}"
    return told if load is None else f"{told}, load {load[0]:.1f} at the start"


def kept(name: str) -> str:
    """A link to a result, from docs/."""
    return f"[{name}](../benchmarks/results/{name})"


def hertz(rate: float) -> str:
    return f"{rate / 1000:g} kHz"


def pair(row: Result | None) -> str:
    return "-" if row is None else f"{row['p50']:.0f}, {row['p99']:.0f}"


def blocks(result: Result) -> str:
    """'5 blocks of 2 s'."""
    counts = sorted({len(case["blocks"]) for case in result["cases"]})
    return f"{' or '.join(map(str, counts)) or 'no'} blocks of {result['seconds']:g} s"


def run(loop: Result) -> str:
    """Where and how it was measured."""
    return (
        f"The last run ({kept('loop.json')}, [figure](../benchmarks/results/loop.png)): {machine(loop)}, "
        f"{blocks(loop)} each.\nMedians over the blocks, p50 and p99 in us (the figure has p99.9):"
    )


def times(loop: Result) -> str:
    """us, medians."""
    return table(["", *COLUMNS], ([name_of(case), *(pair(case["medians_us"].get(key)) for key in COLUMNS.values())]
                                  for case in loop["cases"]))  # fmt: skip


def ratios(loop: Result) -> str:
    """To the yardsticks, of p50 and p99, within blocks."""
    heads = ["ratio to the yardstick, p50; p99"]
    for head, key in RATIOS.items():
        aims = [f"{TARGETS[f'{key}_{q}']:g}" for q in ("p50", "p99") if f"{key}_{q}" in TARGETS]
        heads.append(f"{head} ({'; '.join(aims)})")

    def cell(found: Result, key: str) -> str:
        told = []
        for q in ("p50", "p99"):
            value, most = found.get(f"{key}_{q}"), TARGETS.get(f"{key}_{q}")
            if most is not None:
                told.append(bold(number(value, 2), value is not None and value > most))
        return "; ".join(told)

    return table(heads, ([name_of(case), *(cell(case["ratios"], key) for key in RATIOS.values())]
                         for case in loop["cases"]))  # fmt: skip


def misses(loop: Result) -> str:
    """Percent, and what is said before it of the aim."""

    def row(case: Result) -> list[str]:
        gait, over = case["loop_misses"], case["overruns"]
        raw, more = case["datagram_misses"]["unexplained_percent"], UNEXPLAINED.get(case["rate_hz"])
        cells = [name_of(case), number(_percent(gait["all"], gait["steps"]), 3)]
        for who in RUNS.values():
            value = case[f"{who}_misses"]["unexplained_percent"]
            known = value is not None and raw is not None and more is not None
            cells.append(bold(number(value, 3), known and who in HELD and value > raw + more))
        return [*cells, number(_percent(over["unexplained"], over["steps"]), 3)]

    aims = ", ".join(f"{most:g} at {hertz(rate)}" for rate, most in UNEXPLAINED.items())
    heads = ["missed, unexplained %", "gait all", *RUNS, "overruns, unexplained %"]
    told = (
        "Commands missed in percent, all of the gait's, then those that no stall seen by the stall detector explains, "
        f"with D at half the period (80 % at 5 kHz);\nthe aim is at most the datagrams' and {aims} more:"
    )
    return told + "\n\n" + table(heads, map(row, loop["cases"]))


def _percent(count: int, of: int) -> float | None:
    return 100.0 * count / of if of else None


def paces(loop: Result, quickest: Result) -> str:
    """Steps a second without a clock, and the rate that does not hold."""
    rates = [f"{mode} {rate:,.0f}" for mode, rate in (loop.get("steps_a_second") or {}).items() if rate is not None]
    told = [f"Steps a second without a clock, with the gait in its own process: {', '.join(rates)}."] if rates else []
    for case in quickest["cases"]:
        still, raw = case["still_misses"], case["datagram_misses"]
        median = (case["medians_us"]["still, exchange"] or {}).get("p50")
        ours, theirs = (
            (number(_percent(found["all"], found["steps"])), number(found["unexplained_percent"]))
            for found in (still, raw)
        )
        told.append(
            f"At {name_of(case)} (`--rates {case['rate_hz']}`, {blocks(quickest)}, {kept('loop_10khz.json')}) "
            f"{ours[0]} % of a compiled controller's commands are missed,\n{ours[1]} % without a stall "
            f"(raw datagrams {theirs[0]} and {theirs[1]} %); the median of its exchange is {number(median)} us."
        )
    return "\n".join(told) or "Nothing was measured."


def ring(loop: Result) -> str:
    """A row into the recorder's ring, us."""
    found = loop["ring"]["once a millisecond"]
    lost = "none" if found["dropped"] == 0 else str(found["dropped"])
    rows = []
    for head, key in WRITERS.items():
        row = found.get(key) if key else found
        cells = [number(row[q], 1) if row is not None else "-" for q in ("p50", "p99", "p999")]
        if not key:
            cells[2] = f"{bold(cells[2], found['p999'] > RING_US)} (aim {RING_US:g})"
        rows.append([head, *cells])
    told = f"us, of {found['rows']} rows of {found['values']} values by turns, {lost} lost"
    return table([told, "p50", "p99", "p99.9"], rows)
