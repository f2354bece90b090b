"""How fast the dead fish is: steps alone, a step with its outputs, over real time; and what it holds its station with.

Times are the least of several batches.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import rtmms


def least(call: Callable[[], None], times: int, batches: int = 7) -> float:
    """us of a call."""
    best = math.inf
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / times


def measure(steps: int) -> dict[str, Any]:
    """us a step and a step with outputs, how many times faster than real time at 1 kHz, us of a modal moth's."""
    plant: Any = rtmms.load("fish")
    moth: Any = rtmms.load("modal_moth")
    step = least(lambda: plant.step(plant.neutral), steps)
    whole = least(lambda: (plant.step(plant.neutral), plant.observe())[0], steps)
    wing = least(lambda: moth.step(moth.neutral), max(1, steps // 10))
    return {
        "fish_step_us": step, "fish_step_and_outputs_us": whole, "fish_times_real_time": 1e6 * plant.dt / step,
        "modal_moth_step_us": wing, "modal_moth_times_real_time": 1e6 * moth.dt / wing,
    }  # fmt: skip


def run(as_json: bool = False, steps: int = 1000) -> int:
    """Measure and print; 0."""
    result = measure(steps)
    if as_json:
        print(json.dumps(result))
        return 0
    fish, moth = result["fish_times_real_time"], result["modal_moth_times_real_time"]
    whole = result["fish_step_and_outputs_us"]
    print(f"fish, 1 kHz: {result['fish_step_us']:.1f} us a step, {whole:.1f} with outputs; {fish:.0f} x real time")
    print(f"modal moth, 1 kHz: {result['modal_moth_step_us']:.1f} us a step; {moth:.0f} x real time")
    return 0
