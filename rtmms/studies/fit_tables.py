"""Recordings from tables (CSV, Parquet) of other programs, with a map from names of this package to their columns."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError, RtmmsWarning, UnknownNameError
from rtmms.base.files import open_input
from rtmms.base.toml_file import read_toml
from rtmms.plant.protocol import Plant
from rtmms.record.log_location import refuse_without_pyarrow
from rtmms.record.log_messages import Signal
from rtmms.sensing.readings import Instrument, instruments
from rtmms.sensing.suite import read_profile
from rtmms.studies.recordings import MIN_SAMPLES, PLACED, Recording, Series, builder_of, channels_to_compare

Array = npt.NDArray[np.float64]


# How much a table may unpack to, checked before it is read: `rtmms.studies.fit_tables` uses it.


MAX_CELLS = 2_000_000
"""Cells of a Parquet file that may be far smaller than its table: a packed file may repeat one value for ever."""
_CELL_BYTES = 8


def refuse_bomb(path: Path) -> None:
    """Refuse a Parquet file that unpacks to far more than its size.

    Parameters
    ----------
    path : Path
        A table. Files of other kinds, and unreadable ones, pass: their reader reports the error.

    Raises
    ------
    ModelError
        The file has too many cells for its size.
    """
    if path.suffix != ".parquet" or not path.is_file():
        return
    packed = path.stat().st_size
    maximum = max(MAX_CELLS, packed // 2)
    try:
        pq: Any = import_module("pyarrow.parquet")
        with open_input(path) as raw, pq.ParquetFile(raw) as file:
            groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
            columns = [group.column(k) for group in groups for k in range(group.num_columns)]
            cells = max(file.metadata.num_rows, sum(column.num_values for column in columns))
            size = sum(column.total_uncompressed_size for column in columns)
            texts = sorted({column.path_in_schema for column in columns if column.physical_type.endswith("BYTE_ARRAY")})
        if max(cells, size // _CELL_BYTES) <= maximum:
            size = _text_bytes(pq, path, texts, _CELL_BYTES * maximum) if texts else 0
    except Exception:  # no pyarrow, no Parquet file: whatever the library raises
        return
    if max(cells, size // _CELL_BYTES) > maximum:
        raise ModelError(
            f"{path}: expected at most {maximum} cells in a file of {packed} bytes, got {cells} ({size} bytes of text)"
        )


def _text_bytes(pq: Any, path: Path, texts: list[str], maximum: int) -> int:
    """Return an upper bound of the bytes of columns of text, if each cell has its own text; stop beyond `maximum`."""
    total = 0
    with open_input(path) as raw, pq.ParquetFile(raw, read_dictionary=texts) as file:
        for batch in file.iter_batches(batch_size=1024, columns=texts):
            for column in batch.columns:
                known = getattr(column, "dictionary", column)
                longest = max((len(str(item)) for item in known.to_pylist()), default=0)
                total += longest * len(column)
            if total > maximum:
                break
    return total


BOOLEAN_NUMBERS = {"true": 1.0, "false": 0.0}
ENDINGS = (".csv", ".parquet")
MAX_ROUNDING_STEPS = 0.1
"""Largest distance of rows from the steps' instants, in steps, that counts as rounding of their clock."""
MAX_CLOCK_STEPS = 1e-3
"""The same for samples, whose own time counts where it is known."""
MAX_ROW_STEPS = 100.0
"""Steps between rows beyond which a warning asks whether time is in s."""
MAX_GAP_ROWS = 10.0
"""Usual distances of rows, or steps, beyond which a gap causes a warning."""
MAX_CLAMPED = 0.01
"""Share of commands beyond an actuator's limits above which a warning asks for their unit."""
COMMAND = "command."
_KEYS = ("column", "scale", "offset", "noise")


@dataclass(frozen=True)
class Column:
    """Column of a table for a number of this package: value = scale * column + offset.

    Attributes
    ----------
    column : str
        Name in the table.
    scale : float, default 1.0
        Factor.
    offset : float, default 0.0
        Addend, in our unit.
    noise : float, default math.nan
        Standard deviation; nan where it is not known.
    """

    column: str
    scale: float = 1.0
    offset: float = 0.0
    noise: float = math.nan


def read_columns(texts: Sequence[str]) -> dict[str, Column]:
    """Read the values of --columns: FILE.toml, or OURS=THEIRS,...

    Parameters
    ----------
    texts : Sequence[str]
        Values of the option.

    Returns
    -------
    dict[str, Column]
        Columns by our names.

    Raises
    ------
    ModelError
        A value is neither a file nor OURS=THEIRS.
    """
    result: dict[str, Column] = {}
    for word in texts:
        if word.endswith(".toml") and "=" not in word:
            for name, column in read_toml(word).items():
                result[name] = _column(f"{word}: {name}", column)
            continue
        for pair in word.split(","):
            ours, equals, theirs = pair.partition("=")
            if not equals or not ours.strip() or not theirs.strip():
                raise ModelError(f"--columns {pair}: expected OURS=THEIRS, for example position[0]=px")
            result[ours.strip()] = Column(theirs.strip())
    return result


def _column(place: str, column: Any) -> Column:
    if isinstance(column, str):
        return Column(column)
    if not isinstance(column, dict) or not isinstance(column.get("column"), str):
        raise ModelError(f"{place}: expected the name of a column, or a table with column, scale, offset, noise")
    for key, value in column.items():
        if key not in _KEYS:
            raise UnknownNameError(f"key of {place}", key, _KEYS)
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if key != "column" and not number:
            raise ModelError(f"{place}: {key}: expected a number, got {value!r:.60}")
    if column.get("noise", 1.0) <= 0.0:
        raise ModelError(f"{place}: noise: expected > 0, got {column['noise']}")
    return Column(**column)


def from_table(
    path: Path, robot: str, settings: Mapping[str, Any], wanted: Sequence[str] = (), *, preset: str | None = None,
    dt: float | None = None, columns: Mapping[str, Column] | None = None, sensors: str = "ideal",
    at_rest: bool = False, more: Sequence[str] | None = None, make: Callable[..., Plant] | None = None,
) -> Recording:  # fmt: skip
    """Read a recording from a table with a line of names.

    The table has time in s, a column for each actuator's command, and columns of outputs, or of sensors, each by its
    own time. An empty cell is no sample. A command holds from its row on; in a table of `rtmms log csv`, which has
    `step`, it holds over the step that ends there.

    Parameters
    ----------
    path : Path
        The table.
    robot : str
        Robot, as for `rtmms.load`.
    settings : Mapping[str, Any]
        Parameters of the robot.
    wanted : Sequence[str], default ()
        Channels to compare; () for the usual ones.
    preset : str | None, optional
        Preset of the robot.
    dt : float | None, optional
        Step, s.
    columns : Mapping[str, Column] | None, optional
        Our names to theirs: time, command.ACTUATOR, OUTPUT, OUTPUT[k], SENSOR.QUANTITY[k]. Other columns have our own
        names.
    sensors : str, default 'ideal'
        Profile of the instruments that the columns belong to.
    at_rest : bool, default False
        It begins in the robot's state after a reset.
    more : Sequence[str] | None, optional
        Channels of objectives, where there are columns of them; not None: no channel is required.
    make : Callable[..., Plant] | None, optional
        Function that makes the plant from parameters, in place of the robot.

    Returns
    -------
    Recording
        The recording.
    """
    refuse_bomb(path)
    return of_table(_read(path), path.name, robot, settings, wanted, preset=preset, dt=dt, columns=columns,
                    sensors=sensors, at_rest=at_rest, more=more, make=make, path=path)  # fmt: skip


def of_mapping(data: Mapping[str, Any], name: str) -> Table:
    """Return a table from columns by name: (k,) each, or (k, n) for OUTPUT[0] to OUTPUT[n - 1].

    Parameters
    ----------
    data : Mapping[str, Any]
        Columns by name.
    name : str
        Name of the table, for messages.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    ModelError
        The columns have different lengths, or no numbers.
    """
    result: dict[str, Array] = {}
    for key, values in data.items():
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            if np.ndim(values) != 1:
                raise ModelError(f"{name}: {key}: expected numbers, got {values!r:.60}") from None
            array = np.array([_number(cell) for cell in values])
        if array.ndim == 1:
            result[str(key)] = array
        elif array.ndim >= 2:
            for index in np.ndindex(*array.shape[1:]):
                result[f"{key}[{','.join(map(str, index))}]"] = array[(slice(None), *index)]
        else:
            raise ModelError(f"{name}: {key}: expected a column of numbers, got {values!r:.60}")
    lengths = {key: len(column) for key, column in result.items()}
    if len(set(lengths.values())) > 1 or not result:
        lengths_text = ", ".join(f"{key} {count}" for key, count in list(lengths.items())[:8]) or "none"
        raise ModelError(f"{name}: expected columns of one length, got {lengths_text}")
    texts = {key: values for key, values in data.items() if key in result}
    return Table(Path(name), result, texts)


def of_table(
    table: Table, title: str, robot: str, settings: Mapping[str, Any], wanted: Sequence[str] = (), *,
    preset: str | None = None, dt: float | None = None, columns: Mapping[str, Column] | None = None,
    sensors: str = "ideal", at_rest: bool = False, more: Sequence[str] | None = None,
    make: Callable[..., Plant] | None = None, path: Path | None = None,
) -> Recording:  # fmt: skip
    """Return a recording from the columns of a table, see `from_table`.

    Parameters
    ----------
    table : Table
        Columns.
    title : str
        Name of the recording.
    robot, sensors : str
        See `from_table`.
    settings : Mapping[str, Any]
        Parameters of the robot.
    wanted : Sequence[str], default ()
        See `from_table`.
    preset, dt : str | None, float | None
        See `from_table`.
    columns : Mapping[str, Column] | None, optional
        See `from_table`.
    at_rest : bool, default False
        See `from_table`.
    more : Sequence[str] | None, optional
        See `from_table`.
    make : Callable[..., Plant] | None, optional
        See `from_table`.
    path : Path | None, optional
        File of the table, for messages.

    Returns
    -------
    Recording
        The recording.

    Raises
    ------
    ModelError
        A column is missing, there are several runs, or there are too few steps.
    UnknownNameError
        A name of `columns` is unknown.
    """
    path = path or Path(title)
    build = builder_of(robot, dt, preset, settings, make)
    plant = build()
    tools = instruments(read_profile(sensors, plant), plant)
    mapped = dict(columns or {})
    ours = _ours(plant, tools)
    for name, item in mapped.items():
        if name not in ours:
            raise UnknownNameError("name of --columns", name, ours)
        if item.column not in table:
            raise UnknownNameError(f"column of {path}", item.column, table)
    for name in ours:
        if name not in mapped and name in table:
            mapped[name] = Column(name)
    for name in ("time", *(COMMAND + actuator.name for actuator in plant.actuators)):
        if name not in mapped:
            raise ModelError(
                f"{path}: expected a column for {name}: name it with --columns {name}=COLUMN; it has "
                f"{', '.join(list(table)[:12])}"
            )
    for item in mapped.values():
        table.refuse_text(item.column)
    values = {name: entry.scale * table[entry.column] + entry.offset for name, entry in mapped.items()}
    time = values["time"]
    _check_time(path, time)
    exported = mapped["time"].column == "time" and _is_of_log(table, time)
    if exported and "run" in table and np.ptp(table["run"]) > 0:
        raise ModelError(f"{path}: expected one run, got several: cut the table at its resets")
    if exported:
        _refuse_thinned(path, table["step"])
        _refuse_altered(path, table)
    else:
        _warn_of_rows(path, time, plant.dt)
    # of a log, a row has the command of the step that ends there, in steps of the log
    lead = float(time[-1] - time[0]) / float(np.ptp(table["step"])) if exported else 0.0
    begin = float(time[0]) - lead
    time = time - begin
    time = _on_steps(time, plant.dt, MAX_CLOCK_STEPS)  # else the last sample may be past the last step
    commands = _held(path, plant, values, _on_steps(time, plant.dt, MAX_ROUNDING_STEPS), lead)
    if len(commands) < MIN_SAMPLES:
        raise ModelError(f"{path}: expected at least {MIN_SAMPLES} steps of {plant.dt:g} s, got {len(commands)}")
    _warn_of_commands(path, plant, values)
    measured = {name: value for name, value in values.items() if name != "time" and not name.startswith(COMMAND)}
    series = _all_series(path, plant, tools, measured, mapped, time, wanted, begin, more)
    known = at_rest or (exported and float(table["step"][0]) == 0.0)
    return Recording(title, robot, build, plant.dt, commands, series, known,
                     _states(plant, measured, time, len(commands)), preset, dict(settings),
                    model=(robot if make is None else make, dt, preset, repr(dict(settings))))  # fmt: skip


def _read(path: Path) -> Table:
    """Return the columns of a file; raise ModelError where it is no table."""
    try:
        if path.suffix == ".parquet":
            refuse_without_pyarrow(str(path))
            pq: Any = import_module("pyarrow.parquet")
            try:
                with open_input(path, expected="a Parquet file") as opened:
                    table = pq.read_table(opened)
            except ModelError:
                raise
            except (ValueError, OSError) as fault:
                raise ModelError(f"{path}: expected a Parquet file: {str(fault)[:120]}") from None
            refuse_twice(path, table.column_names)
            columns = {name: table.column(name).to_pylist() for name in table.column_names}
        else:
            with TextIOWrapper(open_input(path, expected="a table"), encoding="utf-8-sig", newline="") as file:
                rows = csv.reader(file)
                names = [name.strip() for name in next(rows, [])]
                lines = [row for row in rows if row]
            refuse_twice(path, names)
            short = next((k for k, row in enumerate(lines) if len(row) != len(names)), None)
            if short is not None:
                raise ModelError(f"{path}: row {short + 2}: expected {len(names)} cells, got {len(lines[short])}")
            columns = dict(zip(names, map(list, zip(*lines, strict=True)), strict=False)) if lines else {}
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise ModelError(f"{path}: expected a CSV table: {str(fault)[:120]}") from None
    if not columns or not next(iter(columns.values())):
        raise ModelError(f"{path}: expected a line of names and rows of numbers, got none")
    return Table(path, {name: np.array([_number(cell) for cell in cells]) for name, cells in columns.items()}, columns)


def refuse_twice(place: object, names: Sequence[str]) -> None:
    """Refuse two columns of one name, of which one would be lost.

    Parameters
    ----------
    place : object
        Name of the table, for the message.
    names : Sequence[str]
        Names of its columns.

    Raises
    ------
    ModelError
        Two are equal.
    """
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise ModelError(f"{place}: expected columns with unique names, got '{twice[0]}' {names.count(twice[0])} times")


EMPTY = frozenset({"", "nan", "na", "n/a", "null", "none"})
"""Words of a cell without a sample, in lower case."""


class Table(dict[str, Array]):
    """Columns of numbers by name; nan where a cell is empty or no number.

    `refuse_text` is called with each column that is used: unused columns may contain anything.

    Parameters
    ----------
    path : Path
        File of the table, for messages.
    numbers : Mapping[str, Array]
        Columns by name.
    cells : Mapping[str, Sequence[Any]]
        Original cells of the columns with text.
    """

    def __init__(self, path: Path, numbers: Mapping[str, Array], cells: Mapping[str, Sequence[Any]]) -> None:
        super().__init__(numbers)
        self._path, self._cells = path, cells

    def refuse_text(self, name: str) -> None:
        """Refuse a column with a cell that is neither empty nor a finite number.

        Parameters
        ----------
        name : str
            Name of the column.

        Raises
        ------
        ModelError
            There is such a cell.
        """
        for k in np.flatnonzero(~np.isfinite(self[name])).tolist():
            # nan of an array is no sample, an infinite number is a fault
            cell = self._cells[name][k] if name in self._cells else self[name][k]
            if cell is not None and str(cell).strip().lower() not in EMPTY:
                raise ModelError(f"{self._path}: row {k + 2}: {name}: expected a number or nothing, got {cell!r:.60}")


def _number(cell: Any) -> float:
    try:
        result = float(cell)
    except (TypeError, ValueError, OverflowError):
        return float(BOOLEAN_NUMBERS.get(str(cell).strip().lower(), math.nan))
    return result if math.isfinite(result) else math.nan


def _ours(plant: Plant, tools: Sequence[Instrument]) -> list[str]:
    """Return every name that a column may have."""
    result = ["time", *(COMMAND + actuator.name for actuator in plant.actuators)]
    for output in plant.outputs:
        result += Signal(output.name, output.unit, tuple(output.shape), output.frame).columns
    for tool in tools:
        result += [*_parts(tool), tool.clock, *([tool.valid] if tool.valid else [])]
    return list(dict.fromkeys(result))


def _parts(tool: Instrument) -> list[str]:
    return [tool.channel] if tool.size == 1 else [f"{tool.channel}[{k}]" for k in range(tool.size)]


def _check_time(path: Path, time: Array) -> None:
    if not np.isfinite(time).all():
        raise ModelError(
            f"{path}: row {int(np.flatnonzero(~np.isfinite(time))[0]) + 2}: expected a time in s, got none"
        )
    back = np.flatnonzero(np.diff(time) <= 0.0)
    if back.size:
        k = int(back[0])
        raise ModelError(f"{path}: row {k + 3}: expected a time after {time[k]:g} s, got {time[k + 1]:g} s")


def _is_of_log(table: Table, time: Array) -> bool:
    """Return whether the rows are those of `rtmms log csv`: the row of a step has the time at its end, (step + 1) dt.

    A step counter of another program counts the instants of its rows.
    """
    step = table.get("step", np.zeros(0))
    if len(step) < 2 or not np.isfinite(step).all() or step[-1] == step[0]:
        return False
    dt = (time[-1] - time[0]) / (step[-1] - step[0])
    return bool(np.all(np.abs(time - (step + 1.0) * dt) <= MAX_ROUNDING_STEPS * abs(dt)))


def _refuse_altered(path: Path, table: Table) -> None:
    """Refuse a table of a log whose state or parameters a request changed: two models have no common fit."""
    rows = np.flatnonzero(table.get("altered", np.zeros(0)) == 1.0)
    if rows.size:
        raise ModelError(
            f"{path}: row {int(rows[0]) + 2}: a request changed the state or the parameters in this step (column "
            "altered); cut the table there, or record a run without `rtmms set`, faults and events"
        )


def _warn_of_commands(path: Path, plant: Plant, values: Mapping[str, Array]) -> None:
    """Warn of commands beyond the actuators' limits, for which the plant applies the limit: their unit may differ."""
    for actuator in plant.actuators:
        logged = values[COMMAND + actuator.name]
        lower, upper = (
            (-math.inf if actuator.lower is None else actuator.lower),
            (math.inf if actuator.upper is None else actuator.upper),
        )
        slack = 1e-6 * max((abs(limit) for limit in (lower, upper) if math.isfinite(limit)), default=0.0)
        share = float(np.mean((logged > upper + slack) | (logged < lower - slack)))
        if share > MAX_CLAMPED:
            warnings.warn(
                f"{path}: {COMMAND}{actuator.name}: {100.0 * share:.3g} % of the commands are beyond the limits "
                f"{lower:g} to {upper:g} {actuator.unit}, which the plant applies in their place; expected commands "
                "in this unit (a column's scale, in --columns FILE.toml, converts)",
                RtmmsWarning, stacklevel=2,
            )  # fmt: skip


def _refuse_thinned(path: Path, step: Array) -> None:
    """Refuse a table of `rtmms log csv` without some steps: a command holds over the step before its row alone."""
    missing = np.flatnonzero(np.diff(step) != 1.0)
    if missing.size:
        k = int(missing[0])
        raise ModelError(
            f"{path}: row {k + 3}: expected step {step[k] + 1:g}, got {step[k + 1]:g}: the commands between are "
            "missing; give the log itself, or a table of `rtmms log csv` without --every"
        )


def _warn_of_rows(path: Path, time: Array, dt: float) -> None:
    """Warn of rows that are far apart, by the step (another unit of time?) or by the other rows (lost ones?)."""
    apart = np.diff(time)
    if not apart.size:
        return
    apart[0] = min(apart[0], float(np.median(apart)))  # a first row may have the command from long before
    median_step, k = float(np.median(apart)), int(np.argmax(apart))
    if median_step > MAX_ROW_STEPS * dt:
        warnings.warn(
            f"{path}: rows are {median_step:g} s apart and a step has {dt:g} s, so each command holds for "
            f"{median_step / dt:.0f} steps; check that the column time is in s",
            RtmmsWarning,
            stacklevel=2,
        )
    elif apart[k] > MAX_GAP_ROWS * max(median_step, dt):
        warnings.warn(
            f"{path}: row {k + 3}: no rows for {apart[k]:g} s, from t = {time[k]:g} s on, where rows are "
            f"{median_step:g} s "
            "apart: the last command holds for this time; cut the table there if it did not",
            RtmmsWarning,
            stacklevel=2,
        )


def _on_steps(time: Array, dt: float, maximum: float) -> Array:
    """Return times of rows, on the steps' instants where each row is near one: a clock that was printed is rounded."""
    steps = np.round(time / dt)
    near = np.abs(time / dt - steps).max() <= maximum and bool((np.diff(steps) > 0.0).all())
    return dt * steps if near else time


def _held(path: Path, plant: Plant, values: Mapping[str, Array], time: Array, lead: float) -> Array:
    """Return (steps, n), the commands of the plant's own steps: each the mean over its step of what the rows hold.

    A row's command holds from `lead` before its time on.
    """
    steps = math.floor(float(time[-1]) / plant.dt + 1e-6)
    if steps > 50_000_000:
        raise ModelError(
            f"{path}: time: expected seconds, got a span of {time[-1]:g}, which would be {steps:,} steps; check the "
            "unit"
        )
    at = plant.dt * np.arange(steps)
    out = np.empty((steps, len(plant.actuators)))
    for k, actuator in enumerate(plant.actuators):
        logged = values[COMMAND + actuator.name]
        rows = np.flatnonzero(np.isfinite(logged))
        if not rows.size:
            raise ModelError(f"{path}: {COMMAND}{actuator.name}: expected numbers, got none")
        since, value = time[rows] - lead, logged[rows]
        place = np.searchsorted(since, at + 1e-6 * plant.dt, side="right") - 1
        out[:, k] = value[np.clip(place, 0, len(rows) - 1)]
        within = np.unique(np.floor(since / plant.dt).astype(int)[_between(since, plant.dt)])
        within = within[(within >= 0) & (within < steps)]
        if len(within):
            edges = np.concatenate([[min(0.0, since[0])], since[1:], [max(since[-1], at[-1] + plant.dt)]])
            total = np.concatenate([[0.0], np.cumsum(value * np.diff(edges))])
            begin, end = (np.interp(at[within] + by, edges, total) for by in (0.0, plant.dt))
            out[within, k] = (end - begin) / plant.dt
    return out


def _between(time: Array, dt: float) -> npt.NDArray[np.bool_]:
    """Return which rows are between two instants of steps."""
    steps = time / dt
    return np.asarray(np.abs(steps - np.round(steps)) > 1e-6)


def _all_series(
    path: Path, plant: Plant, tools: Sequence[Instrument], measured: Mapping[str, Array],
    mapped: Mapping[str, Column], time: Array, wanted: Sequence[str], begin: float, more: Sequence[str] | None = None,
) -> tuple[Series, ...]:  # fmt: skip
    """Return the channels with columns; components without a column are nan throughout."""
    result: dict[str, Series] = {}
    noise_of = {name: item.noise for name, item in mapped.items()}
    for tool in tools:
        parts = _parts(tool)
        if any(part in measured for part in parts):
            values = [noise_of.get(part, math.nan) for part in parts]
            noise = np.array([tool.noise if math.isnan(item) and tool.noise > 0.0 else item for item in values])
            result[tool.channel] = _make_series(tool.channel, parts, measured, time, tool.unit, noise, tool, begin)
    for channel in plant.outputs:
        parts = Signal(channel.name, channel.unit, tuple(channel.shape), channel.frame).columns
        if any(part in measured for part in parts):
            noise = np.array([noise_of.get(part, math.nan) for part in parts])
            result[channel.name] = _make_series(channel.name, parts, measured, time, channel.unit, noise, None)
    if not result and more is None:
        raise ModelError(
            f"{path}: expected columns of outputs of the robot or of its sensors, got none; name them with --columns"
        )
    for name in wanted:
        if name not in result:
            raise UnknownNameError(f"channel of {path}", name, result)
    additional = [name for name in more or () if name in result]
    if wanted:
        return tuple(result[name] for name in dict.fromkeys((*wanted, *additional)))
    default = channels_to_compare(
        (), [output for output in plant.outputs if output.name in result], (), False, str(path)
    )
    default = [*default, *additional]
    return tuple(item for name, item in result.items() if item.instrument is not None or name in default)


def _make_series(
    channel: str, parts: Sequence[str], measured: Mapping[str, Array], time: Array, unit: str, noise: Array,
    tool: Instrument | None, begin: float = 0.0,
) -> Series:  # fmt: skip
    nothing = np.full(len(time), math.nan)
    values = np.stack([measured.get(part, nothing) for part in parts], axis=1)
    rows = np.isfinite(values).any(axis=1)
    if tool is not None and tool.clock in measured:  # it has the time of the sample, and repeats the last one
        clock = measured[tool.clock] - begin
        rows &= np.concatenate([[False], np.diff(clock) > 0.0])
        time = clock
        if tool.valid in measured:
            rows &= measured[tool.valid] > 0.0
    return Series(channel, time[rows], values[rows], unit, noise, tool)


def _states(plant: Plant, measured: Mapping[str, Array], time: Array, steps: int) -> dict[str, Array]:
    """Return the outputs that a state can be composed from, see Recording.states."""
    result = {}
    row = np.round(time / plant.dt).astype(np.int64)
    inside = row <= steps
    for output in plant.outputs:
        parts = Signal(output.name, output.unit, tuple(output.shape), output.frame).columns
        if output.name in PLACED and all(part in measured for part in parts):
            table = np.full((steps + 1, len(parts)), math.nan)
            table[row[inside]] = np.stack([measured[part] for part in parts], axis=1)[inside]
            result[output.name] = table.reshape(-1, *output.shape)
    return result
