"""rtmms bench episodes: does any command within the declared limits end a run, for every robot?

An episode begins at the robot's start. Its commands are uniform within the limits of the actuators, drawn anew after
each `hold` seconds; an actuator without a limit gets -1 to 1. It fails where the plant says that it diverged, or where
an output is not finite. A robot has `minutes` of wall time: a slow one takes fewer episodes, and the table says how
many.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import numpy.typing as npt

import rtmms

from .setting import machine, refuse_less

Array = npt.NDArray[np.float64]
BATCH = 16
"""Episodes of one call of a rollout: between two calls the wall time is looked at."""


@dataclass
class Tried:
    """failed: by seed, why;  fastest m/s, farthest m: of all episodes, at the ends of the times a command is held."""

    robot: str
    episodes: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    fastest: float = 0.0
    farthest: float = 0.0
    wall_s: float = 0.0


def robots() -> list[str]:
    """As `rtmms list` has them."""
    return sorted(point.name for point in entry_points(group="rtmms.plants"))


def commands(plant: Any, seed: int, seconds: float, hold: float) -> Array:
    """(steps, n_actuators) uniform within the limits, each held for `hold` s."""
    lower = [-1.0 if one.lower is None else one.lower for one in plant.actuators]
    upper = [1.0 if one.upper is None else one.upper for one in plant.actuators]
    steps, held = max(1, round(seconds / plant.dt)), max(1, round(hold / plant.dt))
    drawn = np.random.default_rng(seed).uniform(lower, upper, (-(-steps // held), len(lower)))
    return np.repeat(drawn, held, axis=0)[:steps]


def tried(robot: str, count: int, seconds: float, hold: float, minutes: float) -> Tried:
    """Up to `count` episodes of a robot, as many as begin within `minutes`; progress on standard error."""
    plant: Any = rtmms.load(robot)
    found, begun, names = Tried(robot), time.monotonic(), [channel.name for channel in plant.outputs]
    every = min(max(1, round(hold / plant.dt)), max(1, round(seconds / plant.dt)))
    with rtmms.Rollout(plant) as pool:
        while found.episodes < count and (not found.episodes or time.monotonic() - begun < 60.0 * minutes):
            size = min(BATCH if found.episodes else pool.threads, count - found.episodes)
            seeds = range(found.episodes, found.episodes + size)
            told = np.stack([commands(plant, seed, seconds, hold) for seed in seeds])
            runs = pool(told, outputs=names, every=every)
            for row, seed in enumerate(seeds):
                here = {name: value[row] for name, value in runs.outputs.items()}
                wild = [name for name, value in here.items() if not np.isfinite(value).all()]
                if runs.status[row]:
                    found.failed[seed] = runs.reason(row) or f"status {runs.status[row]}"
                elif wild:
                    found.failed[seed] = f"{', '.join(wild)} not finite"
                else:
                    found.fastest = max(found.fastest, _most(here.get("velocity")))
                    found.farthest = max(found.farthest, _most(here.get("position")))
            found.episodes += size
            print(f"\r{robot}: {found.episodes} of {count}", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    found.wall_s = time.monotonic() - begun
    return found


def _most(vectors: Array | None) -> float:
    return 0.0 if vectors is None else float(np.max(np.linalg.norm(vectors, axis=-1)))


def main(
    as_json: bool, only: str = "", count: int = 1000, seconds: float = 10.0, hold: float = 0.2, minutes: float = 3.0,
) -> int:  # fmt: skip
    """The robots whose names contain `only`; 1 where an episode failed."""
    for name, value, least in (
        ("count", count, 1),
        ("seconds", seconds, 1e-3),
        ("hold", hold, 1e-3),
        ("minutes", minutes, 0),
    ):
        refuse_less(f"episodes: --{name}", value, least)
    every = list[Tried]()
    for robot in robots():
        if only not in robot:
            continue
        one = tried(robot, count, seconds, hold, minutes)
        every.append(one)
        if not as_json:
            print(f"{robot:<16}{one.episodes:>6} episodes, {len(one.failed)} failed; up to {one.fastest:.3g} m/s and "
                  f"{one.farthest:.3g} m; {one.wall_s:.0f} s")  # fmt: skip
            for seed, why in list(one.failed.items())[:3]:
                print(f"    seed {seed}: {why}")
    if as_json:
        print(
            json.dumps(
                {"machine": machine(), "seconds": seconds, "hold": hold, "robots": [asdict(one) for one in every]}
            )
        )
    return 1 if any(one.failed for one in every) else 0
