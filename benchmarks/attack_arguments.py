"""Arrays and numbers that no run has, for `rtmms bench attacks`: what Python code hands to a plant and its rollouts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import rtmms
from rtmms.errors import RtmmsError

from .attack_cases import Case, flipped

SHAPE = (2, 5, 4)
"""Of sound commands: runs, steps, rotors."""


def arguments(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """Into rollout, linearise, step, restore, place, set and load: ValueError, TypeError or one of rtmms.errors."""
    plant: Any = rtmms.load("quadrotor")
    good = np.full(SHAPE, 400.0)
    tries: list[tuple[str, Callable[[], Any]]] = []
    for name, value in _arrays(good).items():
        tries += [
            (f"rollout {name}", partial(_rollout, plant, value)),
            (f"parameters {name}", partial(_rollout, plant, good, parameters={"mass_kg": value})),
            (f"step {name}", partial(plant.step, value)), (f"linearise {name}", partial(rtmms.linearise, plant, value)),
            (f"place {name}", partial(plant.place, position=value)),
        ]  # fmt: skip
    for name, value in _outs(good).items():
        tries.append((f"out {name}", partial(_rollout, plant, good, out={"position": value})))
    snapshot = plant.snapshot()
    blobs = {
        "empty": b"", "cut": snapshot[:-1], "long": snapshot + b"x", "flipped": flipped(snapshot, chance),
        "none": None, "text": "x" * len(snapshot), "zeros": bytes(len(snapshot)), "list": [1, 2],
    }  # fmt: skip
    for name, blob in blobs.items():
        tries += [
            (f"restore {name}", partial(plant.restore, blob)),
            (f"initial {name}", partial(_rollout, plant, good, initial=blob)),
            (f"initials {name}", partial(_rollout, plant, good, initial=[blob] * 2)),
        ]  # fmt: skip
    numbers: tuple[Any, ...] = (
        0,
        -1,
        2**70,
        float("nan"),
        float("inf"),
        0.5,
        "x",
        None,
        True,
        [1],
        np.zeros(3),
        -0.0,
        1e300,
    )
    for number in numbers:
        tries += [
            (f"every {number!r}", partial(_rollout, plant, good, every=number)),
            (f"outputs {number!r}", partial(_rollout, plant, good, outputs=number)),
            (f"reset {number!r}", partial(plant.reset, number)),
            (f"set {number!r}", partial(plant.set, mass_kg=number)),
            (f"threads {number!r}", partial(rtmms.Rollout, plant, threads=number)),
            (f"dt {number!r}", partial(rtmms.load, "quadrotor", dt=number)),
            (f"mass {number!r}", partial(rtmms.load, "quadrotor", mass_kg=number)),
        ]  # fmt: skip
    chance.shuffle(tries)
    for name, act in tries[:count]:
        yield Case(name, _nothing, partial(_refused, act))


def _arrays(good: Any) -> dict[str, Any]:
    return {
        "nan": good * np.nan, "inf": good * np.inf, "object": good.astype(object), "text": good.astype(str),
        "complex": good + 1j, "bool": good > 0, "int8": np.ones(SHAPE, np.int8), "float16": good.astype(np.float16),
        "strided": np.full((4, 10, 8), 400.0)[::2, ::2, ::2], "reversed": good[::-1, ::-1, ::-1], "empty": good[:0],
        "no steps": good[:, :0], "wide": np.ones((2, 5, 9)), "flat": np.ones(40), "scalar": np.float64(3),
        "none": None, "list": [[1, [2]]], "dict": {}, "swapped": good.astype(">f8"),
        "huge view": np.broadcast_to(np.float64(400.0), (10**6, 10**6, 4)),
        "long view": np.broadcast_to(np.float64(400.0), (1, 2**40, 4)), "masked": np.ma.array(good, mask=True),
        "no strides": np.broadcast_to(good[:1, :1], SHAPE), "1e308": good * 1e305, "void": np.zeros(SHAPE, "V8"),
        "date": np.zeros(SHAPE, "M8[s]"), "record": np.zeros((2, 5), [("a", "f8")]), "row": np.full(4, 400.0),
    }  # fmt: skip


def _outs(good: Any) -> dict[str, Any]:
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(200), (2, 5, 3), (8, 8, 8))
    return {
        "overlapping": overlapping, "small": np.zeros((1, 1, 3)), "read-only": np.broadcast_to(0.0, (2, 5, 3)),
        "object": np.zeros((2, 5, 3), object), "int": np.zeros((2, 5, 3), int), "none": None,
        "commands": good[:, :, :3], "strided": np.zeros((2, 5, 6))[:, :, ::2],
    }  # fmt: skip


def _rollout(plant: Any, commands: Any, **more: Any) -> Any:
    with rtmms.Rollout(plant, threads=1) as pool:
        return pool(commands, **more)


def _nothing(folder: Path) -> None: ...


def _refused(act: Callable[[], Any]) -> int:
    """2 for a refusal in words, which is printed."""
    try:
        act()
    except (RtmmsError, ValueError, TypeError) as fault:
        print(f"{type(fault).__name__}: {str(fault)[:200]!a}")
        return 2
    return 0
