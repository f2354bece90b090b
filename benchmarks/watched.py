"""`rtmms bench watched`: what the monitor of accuracy costs the manta's steps, by blocks in turns with and without it.

As in real time: at each instant of a schedule a step is taken and timed, and what the monitor wants is done in the
slack after it. It is in no step (tests/loop/test_check.py); what it may cost a step is cold caches, and that is what is
seen here. Each pair of blocks is of the same commands and follows at once. Ratios are of all steps of all blocks; their
interval (95 %) is from drawing pairs of blocks again and again.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.monitor.monitor import Monitor
from rtmms.robots.manta import Manta

from . import setting, stepping

Array = npt.NDArray[np.float64]
QUANTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
AWAKE_NS = 150_000
"""So long before an instant sleep ends: from there on the clock is asked without end."""
DRAWN = 500


def paced(plant: Manta, commands: Array, period_ns: int, monitor: Monitor | None, due: int) -> tuple[Array, Array, int]:
    """(us of each step, us of the looks after each, the step of the next look)."""
    clock, steps, looks = time.perf_counter_ns, np.zeros(len(commands)), np.zeros(len(commands))
    rows, instant = list(commands), clock() + period_ns
    for k, row in enumerate(rows):
        if (left := instant - clock() - AWAKE_NS) > 0:
            time.sleep(left * 1e-9)
        while clock() < instant:
            pass
        begun = clock()
        plant.step(row)
        ended = clock()
        steps[k] = ended - begun
        if monitor is not None and monitor.twin.now >= due:
            due = monitor.twin.now + monitor.look(row)
            looks[k] = clock() - ended
        instant += period_ns
    return steps / 1e3, looks / 1e3, due


def compared(alone: list[Array], watched: list[Array], seed: int = 0) -> dict[str, Any]:
    """Quantiles of both in us, and their ratio with its interval."""
    draw, pairs = np.random.default_rng(seed), len(alone)
    out: dict[str, Any] = {}
    one, other = np.stack(alone), np.stack(watched)
    chosen = [draw.integers(0, pairs, pairs) for _ in range(DRAWN)]
    for name, share in QUANTILES.items():
        a, b = np.percentile(one, share), np.percentile(other, share)
        again = [np.percentile(other[k], share) / np.percentile(one[k], share) for k in chosen]
        low, high = np.percentile(again, [2.5, 97.5])
        out[name] = {
            "alone_us": float(a), "watched_us": float(b), "ratio": float(b / a), "between": [float(low), float(high)],
        }  # fmt: skip
    return out


def main(as_json: bool = False, pairs: int = 30, seconds: float = 1.0, rate: float = 1000.0) -> int:
    """The command: `pairs` pairs of blocks of `seconds` each, at `rate` Hz. The default takes a minute."""
    setting.refuse_less("watched: --pairs", pairs, 2)
    setting.refuse_less("watched: --rate", rate, 1.0)
    count = round(seconds * rate)
    setting.refuse_less("watched: steps of a block (--seconds times --rate)", count, 10)
    before, period_ns = setting.load(), round(1e9 / rate)
    plants = stepping.load(dt=1.0 / rate), stepping.load(dt=1.0 / rate)
    monitor, due = Monitor(plants[1].twin()), 0
    commands = stepping.gait(1.0 / rate, (pairs + 1) * count)
    steps: tuple[list[Array], list[Array]] = ([], [])
    looks: list[Array] = []
    for k in range(pairs + 1):  # the first is not counted: kernels are read, the first looks follow each other
        print(f"watched: pair {k} of {pairs}", file=sys.stderr, flush=True)
        for which in ((0, 1), (1, 0))[k % 2]:
            rows = commands[k * count : (k + 1) * count]
            taken, looked, due = paced(plants[which], rows, period_ns, monitor if which else None, due)
            if k:
                steps[which].append(taken)
                looks += [looked] if which else []
    spent, own = np.stack(looks), np.stack(steps[1])
    after = own[:, 1:][spent[:, :-1] > 0.0]
    result = {
        "commit": setting.commit(), "machine": setting.machine(), "at": setting.now(),
        "load": [before, setting.load()], "pairs": pairs, "steps_a_block": count, "rate_hz": rate,
        "step": compared(*steps), "same_state": plants[0].snapshot() == plants[1].snapshot(),
        "look_us": float(np.median(spent[spent > 0.0])) if spent.any() else None,
        "looks_a_step": float(np.mean(spent > 0.0)), "mean_cost": float(spent.sum() / own.sum()),
        "after_a_look_p50_us": float(np.median(after)) if after.size else None,
    }  # fmt: skip
    print(json.dumps(result)) if as_json else tell(result)
    return 0


def tell(result: dict[str, Any]) -> None:
    """For a person."""
    print("| the step, us | alone | watched | ratio | 95 % of it |\n|---|---|---|---|---|")
    for name, row in result["step"].items():
        alone, watched, ratio, (low, high) = row["alone_us"], row["watched_us"], row["ratio"], row["between"]
        print(f"| {name} | {alone:.2f} | {watched:.2f} | {ratio:.3f} | {low:.3f} to {high:.3f} |")
    look, after = (
        f"{x:.1f} us" if x is not None else "none" for x in (result["look_us"], result["after_a_look_p50_us"])
    )
    print(f"a look: {look}, after {100.0 * result['looks_a_step']:.1f} % of the steps; the step after one: {after}")
    print(f"looks cost {100.0 * result['mean_cost']:.1f} % of the steps; same state in the end: {result['same_state']}")
