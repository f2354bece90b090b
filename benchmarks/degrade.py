"""How wrong each level of `--degrade` is against the full model, what its step costs, and the jump of a change.

Each level swims the usual gait alone, from rest; means are over the last whole strokes. Jumps are those of the force
and the moment of a fin on the body, as shares of the greatest within a stroke, over changes at moments of a stroke.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import rtmms
from rtmms.levels.levels import Levels, told

from . import setting

SPEED, POWER = "speed_m_s", "power_w"


def swim(levels: Levels, level: int, strokes: int, mean: int) -> dict[str, float]:
    """Means over the last `mean` of so many strokes."""
    full: Any = levels.full
    period = round(full.gait_period() / full.dt)
    commands = full.gait_commands(period)
    levels.reset()
    levels.set(level=level)
    speed: Any = 0.0
    power: Any = 0.0
    count = 0
    for k in range(strokes * period):
        levels.step(commands[k % period] * min(1.0, k / period))
        if k >= (strokes - mean) * period and k % 10 == 0:
            seen = levels.observe()
            speed, power, count = speed + seen["velocity"][0], power + seen["rod_power"], count + 1
    return {SPEED: float(speed / count), POWER: float(power / count)}


def jumps(levels: Levels, moments: int = 24) -> list[dict[str, float]]:
    """Of each level: from the full model, and back."""
    full: Any = levels.full
    period = round(full.gait_period() / full.dt)
    commands = full.gait_commands(period)
    levels.reset()
    found = [np.zeros(2) for _ in levels.plants]
    most = np.zeros(2)
    every = max(1, period // moments)
    for k in range(3 * period):
        levels.step(commands[k % period] * min(1.0, k / period))
        if k < 2 * period or k % every:
            continue
        blob = levels.snapshot()
        before = levels.observe()["thrust"].reshape(2, 2, 3)
        most = np.maximum(most, np.abs(before).max(axis=(0, 2)))
        for level in range(1, len(levels.plants)):
            for to in (level, 0):
                here = levels.observe()["thrust"].reshape(2, 2, 3)
                levels.set(level=to)
                there = levels.observe()["thrust"].reshape(2, 2, 3)
                found[level] = np.maximum(found[level], np.abs(there - here).max(axis=(0, 2)))
            levels.restore(blob)
    return [{"force": float(a), "moment": float(b)} for a, b in (one / most for one in found)]


def main(
    as_json: bool = False, chains: int = 992, strokes: int = 6, mean: int = 3, coupling: str = "sequential"
) -> int:
    """chains, coupling of the full model; strokes of the gait, the last `mean` of which count."""
    setting.refuse_less("degrade: --mean", mean, 1)
    setting.refuse_less("degrade: --strokes", strokes, mean)
    load = [setting.load()]
    levels = Levels(rtmms.load("manta", chains=chains, coupling=coupling))
    levels.measure()
    words = told(levels)
    jump = jumps(levels)
    rows: list[dict[str, Any]] = []
    for level, name in enumerate(words["levels"]):
        means = swim(levels, level, strokes, mean)
        rows.append({"level": level, "variant": name, "step_us": words["step_us"][level], **means, "jump": jump[level]})
    for row in rows:
        for key in (SPEED, POWER):
            row[f"{key}_error"] = row[key] / rows[0][key] - 1.0
    result = {
        "commit": setting.commit(),
        "machine": setting.machine(),
        "load": [*load, setting.load()],
        "chains": chains,
        "coupling": coupling,
        "levels": rows,
    }
    if as_json:
        print(json.dumps(result))
        return 0
    print(f"{'':24}{'step':>9}{'speed':>10}{'':>10}{'power':>9}{'':>10}{'jump: force':>13}{'moment':>9}")
    for row in rows:
        head = f"{row['level']} {row['variant']:22}{row['step_us']:6.1f} us{row[SPEED]:6.3f} m/s"
        errors = f"{100 * row[SPEED + '_error']:8.2f} %{row[POWER]:7.2f} W{100 * row[POWER + '_error']:8.2f} %"
        print(f"{head}{errors}{100 * row['jump']['force']:11.3f} %{100 * row['jump']['moment']:7.3f} %")
    return 0
