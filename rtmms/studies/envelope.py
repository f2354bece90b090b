"""Limits of delay, jitter, loss and rate of a controller's link, within the scenario's tolerance.

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
from rtmms.studies.case import PROBE_STEPS, Runner
from rtmms.studies.sweep_study import LINK, Axis, Base, Study

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.studies.sweep_rows import Table

DONE = "duration"
"""End of a run that reached its duration."""


@dataclass(frozen=True)
class Ranges:
    """Values to try, in one direction each, from the mildest on: delays, losses and jitters rise, rates fall.

    Attributes
    ----------
    delay_ms : tuple[float, ...]
        Delays, ms.
    loss : tuple[float, ...]
        Probabilities.
    jitter_ms : tuple[float, ...]
        Jitters, ms.
    rate_hz : tuple[float, ...]
        Rates, Hz.
    """

    delay_ms: tuple[float, ...]
    loss: tuple[float, ...]
    jitter_ms: tuple[float, ...]
    rate_hz: tuple[float, ...]

    def __post_init__(self) -> None:
        """Order the values."""
        for name in ("delay_ms", "loss", "jitter_ms", "rate_hz"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)), reverse=name == "rate_hz")))


def controller_of(base: Base, named: str | None) -> str:
    """Return the controller whose link is tried.

    Parameters
    ----------
    base : Base
        The run.
    named : str | None
        Its name; None for the only one.

    Returns
    -------
    str
        Its name.

    Raises
    ------
    ModelError
        There is none, or more than one and no name.
    UnknownNameError
        There is no controller of that name.
    """
    names = called_names(base.controllers)
    if named is None:
        if len(names) != 1:
            if not names:
                raise ModelError(
                    f"{base.where}: expected a controller whose link to test, got none; add one to the scenario"
                )
            raise ModelError(
                f"--of: expected one of {', '.join(names)}, got none; name the controller whose link to test, as --of "
                f"{names[0]}"
            )
        return names[0]
    if named not in names:
        raise UnknownNameError("controller", named, names)
    return named


def tolerance(base: Base, expected: Sequence[Expectation]) -> tuple[list[Expectation], list[str]]:
    """Return the expectations that a single run can show, and the names of the others.

    Parameters
    ----------
    base : Base
        The run.
    expected : Sequence[Expectation]
        Expectations of the scenario.

    Returns
    -------
    tuple[list[Expectation], list[str]]
        Expectations, and names.

    Raises
    ------
    ModelError
        No expectation is left.
    """
    seed = Axis("seed", (base.seed,))
    report = Runner(Study(base, (seed,))).report((base.seed,), PROBE_STEPS)
    numeric_expectations = [item for item in expected if item.name in report and isinstance(item.value, float)]
    if not numeric_expectations:
        raise ModelError(
            f"{base.where}: [expect]: expected a tolerance that runs of a study report, such as "
            "\"tracking.depth_m.rms\" = \"<= 0.03\""
        )  # fmt: skip
    return numeric_expectations, [item.name for item in expected if item not in numeric_expectations]


def studies(base: Base, controller: str, ranges: Ranges, seeds: int, names: Sequence[str]) -> dict[str, Study]:
    """Return the studies 'map', 'jitter' and 'rate'.

    Parameters
    ----------
    base : Base
        The run.
    controller : str
        Name of the controller.
    ranges : Ranges
        Values to try.
    seeds : int
        Number of seeds, from the scenario's own on.
    names : Sequence[str]
        Columns of the tables.

    Returns
    -------
    dict[str, Study]
        Studies by name.

    Raises
    ------
    ModelError
        A study has too many runs.
    """
    drawn = Axis("seed", tuple(base.seed + k for k in range(seeds)))

    def axis(key: str, values: Sequence[float]) -> Axis:
        return Axis(f"{LINK}{controller}.{key}", tuple(float(value) for value in values))

    columns = tuple(dict.fromkeys(names))
    axes = {
        "map": (axis("delay_ms", ranges.delay_ms), axis("loss", ranges.loss), drawn),
        "jitter": (axis("jitter_ms", ranges.jitter_ms), drawn), "rate": (axis("rate_hz", ranges.rate_hz), drawn),
    }  # fmt: skip
    built = {}
    for name, subset in axes.items():
        try:
            built[name] = Study(base, subset, columns=columns)
        except ModelError as fault:
            options = {"map": "--delay, --loss and --seeds", "jitter": "--jitter and --seeds"}
            raise ModelError(f"{options.get(name, '--rates and --seeds')}: {fault}") from None
    return built


def shares(study: Study, table: Table, expected: Sequence[Expectation]) -> npt.NDArray[np.float64]:
    """Return the share of seeds that are within the tolerance.

    Parameters
    ----------
    study : Study
        The study, with the seed as its last axis.
    table : Table
        Its table.
    expected : Sequence[Expectation]
        The tolerance.

    Returns
    -------
    npt.NDArray[np.float64]
        An axis for each axis of the study but the seed.
    """
    ended = table.column("ended")
    columns = [table.column(item.name) for item in expected]
    good = [
        word == DONE and all(item.holds(values[row]) for item, values in zip(expected, columns, strict=True))
        for row, word in enumerate(ended)
    ]
    sizes = [len(axis.values) for axis in study.axes]
    share_table: npt.NDArray[np.float64] = np.asarray(good, dtype=np.float64).reshape(sizes).mean(axis=-1)
    return share_table


def farthest(values: Sequence[float], share: Sequence[float]) -> float | None:
    """Return the last value, in the given order, up to which all seeds are within the tolerance.

    Parameters
    ----------
    values : Sequence[float]
        The values.
    share : Sequence[float]
        Share of seeds of each.

    Returns
    -------
    float | None
        None where the first value fails already.

    Examples
    --------
    >>> from rtmms.studies.envelope import farthest
    >>> farthest([0.0, 10.0, 20.0], [1.0, 1.0, 0.5])
    10.0
    """
    result = None
    for value, item in zip(values, share, strict=True):
        if item < 1.0:
            break
        result = value
    return result


def limits(built: Mapping[str, Study], seed_shares: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, float | None]:
    """Return the limit of each quantity alone.

    They are the delay at the least loss, the loss at the least delay, the jitter, and the rate downwards.

    Parameters
    ----------
    built : Mapping[str, Study]
        Studies by name.
    seed_shares : Mapping[str, npt.NDArray[np.float64]]
        Shares of seeds by study.

    Returns
    -------
    dict[str, float | None]
        Limits by quantity, None where the first value fails.
    """
    delay, loss = (axis.values for axis in built["map"].axes[:2])
    return {
        "delay_ms": farthest(delay, seed_shares["map"][:, 0].tolist()),
        "loss": farthest(loss, seed_shares["map"][0, :].tolist()),
        "jitter_ms": farthest(built["jitter"].axes[0].values, seed_shares["jitter"].tolist()),
        "rate_hz": farthest(built["rate"].axes[0].values, seed_shares["rate"].tolist()),
    }


def measure_link(report: Mapping[str, Any]) -> dict[str, float | None]:
    """Return delay and loss of a run in real time on this machine, in the terms of a link.

    The round trip of a command is twice a delay, and a command that misses its deadline is lost.

    Parameters
    ----------
    report : Mapping[str, Any]
        Report of the run.

    Returns
    -------
    dict[str, float | None]
        delay_ms, worst_delay_ms, loss, steps.
    """
    exchange, timing = report["exchange"], report["timing_us"]["exchange"]
    asked = exchange["commands_applied"] + exchange["stale"] + exchange["misses"]

    def one_way(name: str) -> float | None:
        return None if timing[name] is None else 0.5e-3 * timing[name]

    return {
        "delay_ms": one_way("p50"), "worst_delay_ms": one_way("max"),
        "loss": exchange["misses"] / asked if asked else None, "steps": report["steps"],
    }  # fmt: skip
