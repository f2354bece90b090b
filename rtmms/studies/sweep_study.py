"""Study: the run, the values that differ from run to run, and the columns of its table."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, RtmmsWarning, UnknownNameError
from rtmms.base.parameters import read_declared
from rtmms.base.trust import owner_of
from rtmms.plant.loading import WORLD
from rtmms.scenario import Event
from rtmms.scenario.run_options import RunOptions, run_options
from rtmms.scenario.tables import MAX_RUNS
from rtmms.version import VERSION
from rtmms.world.members import read

LINK = "link."
"""Prefix of CONTROLLER.KEY for an axis of a controller's link."""
MAX_AXES = 64
MAX_WORD_LENGTH = 4096
CHUNK_STEPS = 20_000
"""Steps of a chunk of runs, which is one piece of work of some seconds.

It depends on the study alone, so that parts are found again.
"""
MAX_CHUNK_RUNS = 256
"""Runs of a chunk."""


@dataclass(frozen=True)
class Axis:
    """One quantity that differs from run to run.

    Attributes
    ----------
    key : str
        Name of the quantity.
    values : tuple[Any, ...]
        Values of a grid, or words to choose from.
    low, high : float | None, optional
        Limits of samples.
    """

    key: str
    values: tuple[Any, ...]
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Base(RunOptions):
    """One run, as in `rtmms run --mode lockstep`: the options that a study carries, others at their defaults.

    Attributes
    ----------
    duration : float, default 20.0
        Simulated time, s.
    over : Mapping[str, Any]
        Tables of sensors over those of the profile.
    events : tuple[Event, ...], default ()
        Events of a scenario.
    where : str, default ''
        File of the events, for messages.
    """

    duration: float = 20.0
    over: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    where: str = ""

    @property
    def members(self) -> tuple[str, ...]:
        """Names of several robots on one clock; () where there is one robot."""
        return tuple(item.name for item in read(self.parameters.get("robots", ()))) if self.robot == WORLD else ()


@dataclass(frozen=True)
class Study:
    """Many runs with different values.

    Attributes
    ----------
    base : Base
        The run.
    axes : tuple[Axis, ...]
        Quantities that differ.
    method : str, default 'grid'
        'grid', 'sobol' or 'lhs'.
    samples : int, default 0
        Number of samples, of a method other than grid.
    seed : int, default 0
        Seed of the samples.
    columns : tuple[str, ...], default ()
        Columns of the table; () for all.
    inputs : Mapping[str, str]
        Hashes of the files that determine the rows, by name (rtmms.studies.sweep_files).
    """

    base: Base
    axes: tuple[Axis, ...]
    method: str = "grid"
    samples: int = 0
    seed: int = 0
    columns: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the number of runs."""
        if self.runs > MAX_RUNS:
            raise ModelError(f"{self.runs:,} runs; expected at most {MAX_RUNS:,}")

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.samples if self.method != "grid" else math.prod(len(axis.values) for axis in self.axes)

    def cases(self) -> list[tuple[Any, ...]]:
        """Return the values of each run, one for each axis.

        Returns
        -------
        list[tuple[Any, ...]]
            In the order of the runs.
        """
        if self.method == "grid":
            sizes = [len(axis.values) for axis in self.axes]
            places = np.stack(np.unravel_index(np.arange(self.runs), sizes), axis=1)
            return [tuple(axis.values[k] for axis, k in zip(self.axes, row, strict=True)) for row in places.tolist()]
        return [
            tuple(_drawn(axis, u) for axis, u in zip(self.axes, row, strict=True)) for row in self._drawn().tolist()
        ]

    def _drawn(self) -> Any:
        from scipy.stats import qmc

        d = len(self.axes)
        with warnings.catch_warnings():  # a number that is no power of two costs balance, not correctness
            warnings.simplefilter("ignore", UserWarning)
            kind = qmc.Sobol(d, seed=self.seed) if self.method == "sobol" else qmc.LatinHypercube(d, seed=self.seed)
            return kind.random(self.samples)

    @property
    def chunk(self) -> int:
        """Runs of one piece of work."""
        steps = self.base.duration / (self.base.dt or 1e-3)
        return max(1, min(MAX_CHUNK_RUNS, round(CHUNK_STEPS / max(1.0, steps))))

    def digest(self) -> str:
        """Return a hash of all that determines the table.

        These are the study, hashes of its files, the version, and whether kernels are compiled. A kernel in plain
        Python rounds differently.

        Returns
        -------
        str
            Sixteen hexadecimal digits.
        """
        from rtmms.base.jit import COMPILED

        result = hashlib.sha256(json.dumps(asdict(self), sort_keys=True, default=str).encode())
        result.update(f"{VERSION} {'compiled' if COMPILED else 'plain'}".encode())
        return result.hexdigest()[:16]


def _drawn(axis: Axis, u: float) -> Any:
    """Return the value at the fraction u of an axis."""
    if axis.low is not None and axis.high is not None:
        return axis.low + u * (axis.high - axis.low)
    return axis.values[min(int(u * len(axis.values)), len(axis.values) - 1)]


def read_axis(place: str, key: str, provided: Any, method: str) -> Axis:
    """Read an axis.

    Parameters
    ----------
    place : str
        Origin of the text, for messages.
    key : str
        Name of the quantity.
    provided : Any
        '0.5:2:7' (seven values from 0.5 to 2), '0.5:2' (samples in between), 'v1,v2,...' or a list of values.
    method : str
        Method of the study.

    Returns
    -------
    Axis
        The axis.

    Raises
    ------
    ModelError
        The text is none of these, or has a value twice.
    """
    if isinstance(provided, str) and ":" in provided:
        return _range(place, key, provided, method)
    values = [word.strip() for word in provided.split(",")] if isinstance(provided, str) else provided
    if not isinstance(values, Sequence) or not values:
        raise ModelError(f"{place}: {key}: expected from:to:count or values, got {provided!r:.60}")
    read = tuple(_value(value) for value in values)
    for item in read:
        if not isinstance(item, bool | int | float | str) or item == "" or not _in_a_column(item):
            raise ModelError(f"{place}: {key}: expected from:to:count or values, got {provided!r:.60}")
    if len({repr(entry) for entry in read}) < len(read):
        raise ModelError(f"{place}: {key}: a value is listed twice, got {provided!r:.60}")
    return Axis(key, read)


def _in_a_column(value: Any) -> bool:
    """Return whether a value is a word, or a number that a table can store: 64 bits, finite."""
    if isinstance(value, str):
        return len(value) <= MAX_WORD_LENGTH
    return -(1 << 63) <= value < 1 << 63 if isinstance(value, int) else math.isfinite(value)


def _range(place: str, key: str, word: str, method: str) -> Axis:
    parts = word.split(":")
    expected = "from:to:count" if method == "grid" else "from:to"
    try:
        low, high = float(parts[0]), float(parts[1])
        count = int(parts[2]) if len(parts) > 2 else 0
    except (ValueError, IndexError):
        raise ModelError(f"{place}: {key}: expected {expected} or values, got '{word}'") from None
    if len(parts) > 3 or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ModelError(f"{place}: {key}: expected {expected} with from < to, got '{word}'")
    if method != "grid":
        whole = key == "seed"
        if whole and high - low >= MAX_RUNS:
            raise ModelError(f"{place}: {key}: expected at most {MAX_RUNS:,} values, got '{word}'")
        if whole:
            return Axis(key, tuple(range(math.ceil(low), math.floor(high) + 1)))
        return Axis(key, (), low, high)
    if not 2 <= count <= MAX_RUNS:
        raise ModelError(f"{place}: {key}: expected {expected} with a count from 2 on, got '{word}'")
    values: list[float] = [low + (high - low) * k / (count - 1) for k in range(count)]
    if not math.isfinite(high - low):
        raise ModelError(f"{place}: {key}: expected {expected} with a finite distance, got '{word}'")
    if all("." not in part and "e" not in part.lower() for part in parts) and all(
        value == int(value) for value in values
    ):
        values = [int(value) for value in values]
    if not all(_in_a_column(value) for value in values):
        raise ModelError(f"{place}: {key}: expected whole numbers of 64 bits, got '{word}'")
    return Axis(key, tuple(values))


def _value(word: Any) -> Any:
    """Return a number where the word is one."""
    if not isinstance(word, str):
        return word
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(word, word)


def read_study(
    place: str, base: Base, table: Mapping[str, Any], over: Sequence[str], samples: int | None, method: str | None,
    columns: Sequence[str],
) -> Study:  # fmt: skip
    """Read a study from a table [sweep] and the words of a command line, which replace it.

    Parameters
    ----------
    place : str
        File of the table, for messages.
    base : Base
        The run.
    table : Mapping[str, Any]
        As in `Scenario.sweep`.
    over : Sequence[str]
        'KEY=...' each.
    samples : int | None
        Number of samples; None: the table's.
    method : str | None
        Method; None: the table's.
    columns : Sequence[str]
        Columns; () for the table's.

    Returns
    -------
    Study
        The study.

    Raises
    ------
    UnknownNameError, ModelError
        A key or a value is wrong; the message has what was got and what is expected.
    """
    kind = method or table.get("method") or ("sobol" if samples is not None or "samples" in table else "grid")
    axes: dict[str, Axis] = {}
    for key, item in _flat(table.get("over", {})):
        if method is None and samples is None:
            _warn_of_count(f"{place}: [sweep.over]", key, item, kind)
        axes[key] = read_axis(f"{place}: [sweep.over]", key, item, kind)
    typed = set[str]()
    for word in over:
        key, equals, text = word.partition("=")
        if not equals or not key.strip() or not text.strip():
            raise ModelError(f"--vary {word}: expected KEY=from:to:count or KEY=value,value,...")
        if key.strip() in typed:
            raise ModelError(f"--vary {word}: {key.strip()} is given twice; expected all its values in one --vary")
        typed.add(key.strip())
        _warn_of_count("--vary", key.strip(), text, kind)
        axes[key.strip()] = read_axis("--vary", key.strip(), text.strip(), kind)
    if not axes:
        raise ModelError(
            f"{place}: expected at least one parameter to vary, got none; give --vary KEY=from:to:count or a table "
            "[sweep.over]"
        )
    if len(axes) > MAX_AXES:
        raise ModelError(f"{place}: expected at most {MAX_AXES} varied parameters, got {len(axes)}")
    _refuse_keys(base, axes)
    count = samples if samples is not None else table.get("samples", 0)
    if kind != "grid" and not count:
        raise ModelError(f"{place}: samples: expected a whole number from 1 to {MAX_RUNS:,} for {kind}, got {count!r}")
    if kind == "grid" and count:
        raise ModelError(f"{place}: samples: expected method sobol or lhs with it, got grid")
    seed, columns = table.get("seed", 0), tuple(dict.fromkeys(columns or table.get("columns", ())))
    try:
        return Study(base, tuple(axes.values()), kind, count if kind != "grid" else 0, seed, columns)
    except ModelError as fault:
        raise ModelError(f"{place}: {fault}") from None


def _warn_of_count(place: str, key: str, values: Any, method: str) -> None:
    """Warn of from:to:count where the method draws samples, which ignore the count."""
    if method != "grid" and isinstance(values, str) and values.count(":") == 2:
        without = values.rpartition(":")[0].strip()
        warnings.warn(
            f"{place}: {key}={values}: {method} draws its samples between the limits and ignores the count; expected "
            f"{key}={without}",
            RtmmsWarning, stacklevel=2,
        )  # fmt: skip


def _flat(table: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    result: list[tuple[str, Any]] = []
    for key, value in table.items():
        result += _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else [(before + key, value)]
    return result


def _refuse_keys(base: Base, axes: Mapping[str, Axis]) -> None:
    """Raise ModelError for a key of no controller; the robot itself reports its unknown parameters."""
    from rtmms.scenario.plant import called_names

    names = called_names(base.controllers)
    for key in axes:
        if key.startswith(LINK) and "link" not in names:
            _check_link(key, axes[key], base, names)
            continue
        owner, dot, _ = key.partition(".")
        if dot and not owner_of(key, [*names, *base.members]):
            kind = "robot or controller" if base.members else "controller"
            raise ModelError(f"--vary {key}: {UnknownNameError(kind, owner, [*names, *base.members])}")
        option = run_options().get(key)
        if option is not None and option.varies:
            for value in (*axes[key].values, axes[key].low):
                if value is not None:
                    read_declared(f"--vary {key}", option.number_declared, value)


MAX_CHECKED_VALUES = 1000
"""Number of values from which on not each is checked."""


def values_to_check(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values of a link that are checked against its range: of many numbers the least and the greatest.

    Parameters
    ----------
    values : Sequence[Any]
        All values.

    Returns
    -------
    Sequence[Any]
        All, or two of them.
    """
    if len(values) <= MAX_CHECKED_VALUES or not all(isinstance(value, (int, float)) for value in values):
        return values
    return min(values), max(values)


def _check_link(key: str, axis: Axis, base: Base, names: Sequence[str]) -> None:
    """Raise ModelError for a link of no controller, an unknown key of links, or an impossible value."""
    from rtmms.scenario.links import KEYS, from_values

    controller, _, name = key.removeprefix(LINK).rpartition(".")
    if controller not in names:
        raise ModelError(f"--vary {key}: {UnknownNameError('controller', controller, names)}")
    if name not in KEYS:
        raise ModelError(f"--vary {key}: {UnknownNameError('key of link', name, KEYS)}")
    for item in (*values_to_check(axis.values), axis.low, axis.high):
        if item is not None:
            from_values(controller, {name: item}, base.links)
