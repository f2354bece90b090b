"""How much delay, jitter, and loss, and how low a rate, a controller tolerates before the scenario's tolerance is left.

Three studies over `link.CONTROLLER.*` and seeds: a map over delay and loss, a line over jitter, a line over the rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.scenario.expectations import Expectation
from rtmms.scenario.plant import called_names
from rtmms.sweep.case import PROBE_STEPS, Runner
from rtmms.sweep.study import LINK, Axis, Base, Study

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.sweep.rows import Table

DONE = "duration"
"""How a run ends that came to its end."""


@dataclass(frozen=True)
class Ranges:
    """Values that are tried, one direction each: ms, chances, ms, Hz."""

    delay_ms: tuple[float, ...]
    loss: tuple[float, ...]
    jitter_ms: tuple[float, ...]
    rate_hz: tuple[float, ...]


def controller_of(base: Base, named: str | None) -> str:
    """The controller whose link is tried: the one that is named, else the only one. ModelError."""
    names = called_names(base.controllers)
    if named is None:
        if len(names) != 1:
            if not names:
                raise ModelError(f"{base.where}: expected a controller, whose link is tried, got none")
            raise ModelError(f"--of: expected one of {', '.join(names)}, got none; --of {names[0]} tries its link")
        return names[0]
    if named not in names:
        raise UnknownNameError("controller", named, names)
    return named


def tolerance(base: Base, expected: Sequence[Expectation]) -> tuple[list[Expectation], list[str]]:
    """What a run alone shows of what is expected, and the names of the rest. ModelError where nothing is left."""
    seed = Axis("seed", (base.seed,))
    report = Runner(Study(base, (seed,))).report((base.seed,), PROBE_STEPS)
    kept = [one for one in expected if one.name in report and isinstance(one.value, float)]
    if not kept:
        raise ModelError(
            f"{base.where}: [expect]: expected a tolerance that a run alone shows, as \"tracking.depth_m.rms\" = "
            "\"<= 0.03\""
        )  # fmt: skip
    return kept, [one.name for one in expected if one not in kept]


def studies(base: Base, controller: str, ranges: Ranges, seeds: int, names: Sequence[str]) -> dict[str, Study]:
    """'map', 'jitter', 'rate'; seeds count from the scenario's own. ModelError for too many runs."""
    drawn = Axis("seed", tuple(base.seed + k for k in range(seeds)))

    def axis(key: str, values: Sequence[float]) -> Axis:
        return Axis(f"{LINK}{controller}.{key}", tuple(float(one) for one in values))

    columns = tuple(dict.fromkeys(names))
    axes = {
        "map": (axis("delay_ms", ranges.delay_ms), axis("loss", ranges.loss), drawn),
        "jitter": (axis("jitter_ms", ranges.jitter_ms), drawn), "rate": (axis("rate_hz", ranges.rate_hz), drawn),
    }  # fmt: skip
    made = {}
    for name, some in axes.items():
        try:
            made[name] = Study(base, some, columns=columns)
        except ModelError as fault:
            options = {"map": "--delay, --loss and --seeds", "jitter": "--jitter and --seeds"}
            raise ModelError(f"{options.get(name, '--rates and --seeds')}: {fault}") from None
    return made


def shares(study: Study, table: Table, expected: Sequence[Expectation]) -> npt.NDArray[np.float64]:
    """Of the seeds, how many keep the tolerance: an axis for each thing that differs but the seed."""
    ended = table.column("ended")
    columns = [table.column(one.name) for one in expected]
    good = [
        word == DONE and all(one.holds(values[row]) for one, values in zip(expected, columns, strict=True))
        for row, word in enumerate(ended)
    ]
    sizes = [len(axis.values) for axis in study.axes]
    kept: npt.NDArray[np.float64] = np.asarray(good, dtype=np.float64).reshape(sizes).mean(axis=-1)
    return kept


def farthest(values: Sequence[float], share: Sequence[float]) -> float | None:
    """The last value, in the order given, up to which all seeds keep the tolerance; None: not even the first."""
    found = None
    for value, one in zip(values, share, strict=True):
        if one < 1.0:
            break
        found = value
    return found


def limits(made: Mapping[str, Study], found: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, float | None]:
    """How far each may go by itself: delay at the least loss, loss at the least delay, jitter, rate downwards."""
    delay, loss = (axis.values for axis in made["map"].axes[:2])
    return {
        "delay_ms": farthest(delay, found["map"][:, 0].tolist()),
        "loss": farthest(loss, found["map"][0, :].tolist()),
        "jitter_ms": farthest(made["jitter"].axes[0].values, found["jitter"].tolist()),
        "rate_hz": farthest(made["rate"].axes[0].values, found["rate"].tolist()),
    }


def measured(report: Mapping[str, Any]) -> dict[str, float | None]:
    """Of a run in real time on this machine, as a link has it: the way there and back of a command is twice a delay,
    and what is missed at a deadline is lost."""
    exchange, timing = report["exchange"], report["timing_us"]["exchange"]
    asked = exchange["commands_applied"] + exchange["stale"] + exchange["misses"]

    def one_way(name: str) -> float | None:
        return None if timing[name] is None else 0.5e-3 * timing[name]

    return {
        "delay_ms": one_way("p50"), "worst_delay_ms": one_way("max"),
        "loss": exchange["misses"] / asked if asked else None, "steps": report["steps"],
    }  # fmt: skip
