"""What pages say of the hour, the exchange, the monitor's cost, and the README of real time: markdown."""

from __future__ import annotations

from .exchange import PARTS
from .loop import UNEXPLAINED
from .tables_loop import Result, blocks, hertz, kept, machine, name_of, number, table

HOW = {"ipc": "ipc", "tcp": "tcp", "libzmq": "tcp by libzmq", "curve": "CURVE"}


def in_real_time(loop: Result, hour: Result) -> str:
    """The README's: the loop at 1 kHz, idle, or what there is; and the hour."""
    rows = []
    cases = sorted(loop["cases"], key=lambda case: (case["rate_hz"] != 1000, case["condition"] != "idle"))
    for case in cases[:1]:
        us, found = case["medians_us"], case["ratios"]

        def p(who: str, q: str = "p50", us: Result = us) -> str:
            return number((us.get(who) or {}).get(q))

        def two(key: str, found: Result = found) -> str:
            return f"{number(found.get(f'{key}_p50'), 2)} ({number(found.get(f'{key}_p99'), 2)})"

        rows.append([
            f"{name_of(case)}, medians of {blocks(loop)} ([loop.json](benchmarks/results/loop.json); {_cpu(loop)})",
            f"wake-up p50 {p('loop, wake-up')} us (cyclictest {p('cyclictest, wake-up')}), "
            f"p99 {p('loop, wake-up', 'p99')} us ({p('cyclictest, wake-up', 'p99')}); "
            f"state to command {p('steady, exchange')} us with nothing computed, {p('loop, exchange')} us with the "
            f"gait (raw datagrams {p('datagram, exchange')}, raw ZeroMQ {p('zeromq, exchange')})",
        ])  # fmt: skip
        rows.append([
            "the same as ratios, p50 (p99)",
            f"wake-up to cyclictest {two('wake')}; to Python's raw datagrams {two('compiled')} with a compiled "
            f"controller, {two('exchange')} with the ten lines above",
        ])  # fmt: skip
    bad = hour["unexplained"]
    rows.append([
        f"{_long(hour)} at {hertz(1e6 / hour['schedule']['period_us'])}, gait in its own process, every step recorded "
        f"([soak_hour.json](benchmarks/results/soak_hour.json); {_cpu(hour)})",
        f"{hour['exchange']['misses']} of {hour['steps']} commands missed, {hour['schedule']['overruns']} overruns; "
        f"{bad['misses_percent']:.4f} % and {bad['overruns_percent']:.4f} % without a stall of the machine",
    ])  # fmt: skip
    return table(["in real time", "measured"], rows)


def _cpu(result: Result) -> str:
    return str(result["machine"]["cpu"])


def _long(hour: Result) -> str:
    seconds = hour["simulated_s"]
    return "an hour" if seconds == 3600 else f"{seconds:g} s"


def hour(result: Result) -> str:
    """docs/realtime.md, a paragraph."""
    bad, seen, log = result["unexplained"], result["witness"], result["log"]
    steps, misses, overruns = result["steps"], result["exchange"]["misses"], result["schedule"]["overruns"]
    preempted = [one for one in bad["listed"] if one["overrun"] == "involuntary_switch"]
    processes = result["processes"]
    grown = ", ".join(f"{who} {found['growth_mib']:.2f}" for who, found in processes.items())
    told = [
        f"{_long(result).capitalize()} at {hertz(1e6 / result['schedule']['period_us'])} ({kept('soak_hour.json')}; "
        f"{machine(result)}): {steps} steps, {misses} commands missed ({100 * misses / steps:.2f} %,",
        f"at most {result['exchange']['max_consecutive_misses']} in a row), {overruns} overruns "
        f"({100 * overruns / steps:.2f} %); the machine explains {100 * (seen['machine_share'] or 0):.0f} % "
        f"of the bad steps (of random ones {100 * (seen['base_rate'] or 0):.1f} %).",
        f"Unexplained: {bad['misses_percent']:.4f} % of the commands were missed and {bad['overruns_percent']:.4f} % "
        f"of the steps overran (the aim is {UNEXPLAINED[1000]:g} % for each); all are listed.",
        f"In {len(preempted)} of those {bad['overruns']} overruns the loop was preempted, up to "
        f"{max((one['switches'] for one in preempted), default=0)} times. A stall counts from "
        f"{seen['limit_us']:.0f} us on.",
        f"MiB more at the end: {grown}; file handles more: "
        f"{max(found['handles_last'] - found['handles_first'] for found in processes.values())}. "
        f"{log['mib'] / 1024:.1f} GiB of log, {log['dropped'] or 'no'} rows dropped.",
    ]
    return "\n".join(told)


def exchange(result: Result) -> str:
    """docs/realtime.md, p50 in us."""
    heads = ["", *(f"{part} (in the slack)" if part == "pack" else part for part in PARTS), "whole, p50, p99"]
    rows = []
    for case in result["cases"]:
        us, count = case["us"], case["controllers"]
        rows.append([f"{HOW[case['transport']]}, {count} controller{'s' if count > 1 else ''}",
                     *(number(us[part]["p50"]) for part in PARTS),
                     f"{us['exchange']['p50']:.0f}, {us['exchange']['p99']:.0f}"])  # fmt: skip
    return f"{machine(result)}:\n\n" + table(heads, rows)


def watched(result: Result) -> str:
    """docs/guards.md, a paragraph."""
    told = []
    for q, row in result["step"].items():
        low, high = row["between"]
        told.append(f"{q.replace('p999', 'p99.9')} {row['alone_us']:.1f} us without, {row['watched_us']:.1f} with it, "
                    f"ratio {row['ratio']:.2f} ({low:.2f} to {high:.2f})")  # fmt: skip
    return (
        f"{machine(result)}, {result['pairs']} pairs of {result['steps_a_block']} steps ({kept('watched.json')}):\n"
        f"{'; '.join(told)}.\nA look itself took {result['look_us']:.0f} us there, from cold caches, after "
        f"{100 * result['looks_a_step']:.1f} % of the steps: "
        f"{100 * result['mean_cost']:.1f} % of the steps' own time, in the slack."
    )
