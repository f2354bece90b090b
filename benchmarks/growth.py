"""How the compiled step's time grows with chains and links, and with which exponent beyond the first block of lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rtmms.robots.manta.kernels.fin_layout import LANES

from .stepping import compiled_loop, gait, load, time_compiled


def _times(cases: Sequence[dict[str, int]], budget_us: float, repeats: int, say: Callable[[str], None]) -> list[float]:
    """us a step of each case: median of its blocks, the cases taking turns so that a slow minute meets them all."""
    runs = []
    say("growth: building " + ", ".join(f"{case['chains']} x {case['links']}" for case in cases))
    for case in cases:
        run = compiled_loop(load(**case))
        run(gait(1e-3, 5))
        once = time_compiled(run, gait(1e-3, 5))
        runs.append((run, gait(1e-3, max(5, int(budget_us / once)))))
    blocks: list[list[float]] = [[] for _ in cases]
    for r in range(repeats):
        say(f"growth: round {r + 1} of {repeats}")
        for (run, commands), times in zip(runs, blocks, strict=True):
            times.append(time_compiled(run, commands))
    return [float(np.median(times)) for times in blocks]


def _exponent(size: Sequence[int], times: Sequence[float]) -> float:
    """Slope of log time over log size, least squares."""
    return float(np.polyfit(np.log(size), np.log(times), 1)[0])


def measure(
    chains: Sequence[int], links: Sequence[int], budget_us: float, repeats: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Over n at m = 3 and over m at n = 30.

    chains, links  sizes; the fit over n takes whole blocks of lanes, from two blocks on; over m all but m = 3, which
                   has code of its own
    budget_us      length of one timed block; repeats of them per size
    """
    over_n = _times([{"chains": n, "links": 3} for n in chains], budget_us, repeats, say)
    over_m = _times([{"chains": 30, "links": m} for m in links], budget_us, repeats, say)
    fit_n = [(n, t) for n, t in zip(chains, over_n, strict=True) if n % LANES == 0 and n >= 2 * LANES]
    fit_m = [(m, t) for m, t in zip(links, over_m, strict=True) if m != 3]
    out: dict[str, Any] = {
        "chains": {str(n): t for n, t in zip(chains, over_n, strict=True)},
        "links": {str(m): t for m, t in zip(links, over_m, strict=True)},
    }
    for name, fit in (("exponent_chains", fit_n), ("exponent_links", fit_m)):
        out[name] = _exponent(*zip(*fit, strict=True)) if len(fit) > 1 else None
    return out
