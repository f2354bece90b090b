"""`rtmms bench mesh`: what each robot's mesh is off by (meshes.py); then the manta's mean thrust over chains, links and
steps, at what order it converges, and where to.

The held body of the tank test: 0.51 Hz, amplitude 40 deg, the front rods 30 deg ahead; the mean is over the last of its
periods. With `damping_per=fin` chains and links are resolutions of one robot; with `joint` each mesh is another robot.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from rtmms.errors import ModelError

from . import meshes, setting
from .stepping import load

FREQUENCY, AMPLITUDE, PHASE = 0.51, math.radians(40.0), math.radians(30.0)
PERIODS = 4


def thrust(steps: int, **given: Any) -> float:
    """N, both fins along body x, mean over the last of PERIODS periods of `steps` steps each."""
    plant = load(dt=1.0 / FREQUENCY / steps, body="fixed", **given)
    p = plant.parameters
    front = math.asin(p.back_rod_m * math.sin(AMPLITUDE) / p.front_rod_m)
    total = 0.0
    for k in range(PERIODS * steps):
        angle, s = 2.0 * math.pi * k / steps, min(k / steps * 2.0, 1.0)
        soft = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        a, b = soft * front * math.sin(angle + PHASE), soft * AMPLITUDE * math.sin(angle)
        plant.step(np.array([a, b, a, b]))
        if k >= (PERIODS - 1) * steps:
            total += float(plant.observe()["thrust"][:, 0].sum())
    return total / steps


def richardson(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float] | None:
    """(order, limit) from the last three sizes that double, or None where there are none or they do not converge."""
    known = dict(zip(sizes, values, strict=True))
    for n in sorted(known, reverse=True):
        if n % 4 == 0 and n // 2 in known and n // 4 in known:
            fine, coarse = known[n] - known[n // 2], known[n // 2] - known[n // 4]
            if fine == 0.0 or coarse / fine <= 1.0:
                return None
            return math.log2(coarse / fine), known[n] + fine / (coarse / fine - 1.0)
    return None


def orders(sizes: Sequence[int], values: Sequence[float], limit: float) -> list[float | None]:
    """From each size to the next, by the distances to the limit; None where they change sign or vanish."""
    away = [value - limit for value in values]
    return [
        math.log(a / b) / math.log(n / m) if b != 0.0 and a / b > 0.0 else None
        for a, b, m, n in zip(away, away[1:], sizes, sizes[1:], strict=False)
    ]


def study(name: str, sizes: Sequence[int], steps: int, **given: str) -> dict[str, Any]:
    """Thrust at each size of `chains`, `links` or `times` (steps a period), the others as they are."""
    values = []
    for size in sizes:
        print(f"mesh: {name}={size}", file=sys.stderr, flush=True)
        values.append(thrust(size, **given) if name == "times" else thrust(steps, **{name: size}, **given))
    found = richardson(sizes, values)
    out: dict[str, Any] = {"sizes": list(sizes), "thrust_n": values, "order": None, "limit_n": None, "orders": []}
    if found is not None:
        out |= {"order": found[0], "limit_n": found[1], "orders": orders(sizes, values, found[1])}
    return out


def main(
    as_json: bool = False,
    chains: str = "8,15,30,60,120,240",
    links: str = "1,2,3,4,6,8,12,24",
    times: str = "500,1000,2000,4000,8000",
    steps: int = 2000,
    damping_per: str = "fin",
    bending: str = "carried",
    only: str = "",
) -> int:
    """The command. only: robots whose names begin so, '' for all. Of the manta's study: chains, links, times (steps a
    period): sizes, rising; steps of the first two (2000: 0.98 ms)."""
    setting.refuse_less("mesh: --steps", steps, 100)
    rows = meshes.study(only)
    if not as_json:
        meshes.tell(rows)
    elif not "manta".startswith(only):
        print(json.dumps({"commit": setting.commit(), "robots": rows}))
    if not "manta".startswith(only):
        return 0
    out: dict[str, Any] = {
        "commit": setting.commit(),
        "robots": rows,
        "steps": steps,
        "damping_per": damping_per,
        "bending": bending,
    }
    read = {name: _sizes(name, text) for name, text in (("chains", chains), ("links", links), ("times", times))}
    for name, sizes in read.items():
        out[name] = study(name, sizes, steps, damping_per=damping_per, bending=bending)
    print(json.dumps(out)) if as_json else tell(out)
    return 0


def _sizes(name: str, text: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or sizes != sorted(set(sizes)) or sizes[0] < 1:
        raise ModelError(f"bench mesh: --{name}: expected whole numbers that rise, as 8,16,32; got '{text}'")
    return sizes


def tell(result: dict[str, Any]) -> None:
    """Print it for a reader, as tables of docs/manta.md."""
    how = f"damping_per={result['damping_per']}, bending={result['bending']}"
    print(f"\nmean thrust, {how}, {result['steps']} steps a period")
    for name in ("chains", "links", "times"):
        found = result[name]
        head = "steps a period" if name == "times" else name
        print(f"\n| {head} | thrust, N | off the limit | order |\n|---|---|---|---|")
        limit, between = found["limit_n"], [None, *found["orders"]]
        for k, (size, value) in enumerate(zip(found["sizes"], found["thrust_n"], strict=True)):
            off = "" if limit is None else f"{100.0 * (value / limit - 1.0):+.3f} %"
            order = between[k] if k < len(between) else None
            print(f"| {size} | {value:.5f} | {off} | {'' if order is None else f'{order:.2f}'} |")
        if limit is None:
            print("no limit: the last sizes that double do not converge, or none do")
        else:
            print(f"limit {limit:.5f} N, order {found['order']:.2f} (Richardson, the last three sizes that double)")
