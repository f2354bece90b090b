"""Log as a table: one row a step, one column a number."""

from __future__ import annotations

import csv
import fnmatch
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from rtmms.base.contract import PARTS, UNDEFINED
from rtmms.base.errors import UnknownNameError, safe_text
from rtmms.base.renamed_outputs import present_output
from rtmms.loop.log_row import OUTCOME_COLUMNS
from rtmms.record.log import Log, Step
from rtmms.record.log_location import refuse_without_pyarrow

OUTCOME_TYPES = {name: outcome_column.kind for name, outcome_column in OUTCOME_COLUMNS.items()}
ROWS_AT_ONCE = 4096


def select_outputs(log: Log, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the selected outputs of a log.

    Parameters
    ----------
    log : Log
        The log.
    patterns : Sequence[str]
        Names as a shell writes them: "position", "rod_*", "left.*".

    Returns
    -------
    tuple[str, ...]
        The names, in the order of the log.

    Raises
    ------
    UnknownNameError
        If a pattern fits no output.
    """
    names = [signal.name for signal in log.outputs]
    patterns = [present_output(pattern, names) for pattern in patterns]
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise UnknownNameError("output", pattern, names)
    return tuple(name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


def columns(log: Log, outputs: Sequence[str] | None = None) -> dict[str, type]:
    """Return the columns of a table.

    run counts the resets. time (s) is the end of the step, when the outputs hold; the command was held over it.
    Actuators are named command.NAME.

    Parameters
    ----------
    log : Log
        The log.
    outputs : Sequence[str] | None, optional
        Names of the included outputs; None: all.

    Returns
    -------
    dict[str, type]
        Types by name.
    """
    table: dict[str, type] = {"run": int, "step": int, "time": float, **OUTCOME_TYPES, "altered": bool}
    table |= {f"{name}_ns": int for name in PARTS}
    table |= {f"command.{column}": float for signal in log.actuators for column in signal.columns}
    result = [signal for signal in log.outputs if outputs is None or signal.name in outputs]
    return table | {column: float for signal in result for column in signal.columns}


def rows(log: Log, outputs: Sequence[str] | None = None, every: int = 1) -> Iterator[list[Any]]:
    """Yield the rows of a table, in the order of `columns`.

    Parameters
    ----------
    log : Log
        The log.
    outputs : Sequence[str] | None, optional
        Names of the included outputs; None: all.
    every : int, default 1
        As of Log.rows.

    Yields
    ------
    list[Any]
        One list a step; None for a time that was not measured.
    """
    run, dt = -1, log.origin["dt"]
    for row in log.rows(outputs, every):
        if not isinstance(row, Step):
            run += 1
            continue
        times = [None if value == UNDEFINED else value for value in row.times]
        outcome_texts = [row.text(name) for name in OUTCOME_TYPES]
        head = [run, row.step, (row.step + 1) * dt, *outcome_texts, row.altered, *times]
        yield head + row.command.tolist() + row.outputs.tolist()


def write_csv(log: Log, file: IO[str], outputs: Sequence[str] | None = None, every: int = 1) -> int:
    """Write a table with commas, and a line of names first.

    Numbers are read back to the bit; texts have no control characters and formulas.

    Parameters
    ----------
    log : Log
        The log.
    file : IO[str]
        The open file.
    outputs : Sequence[str] | None, optional
        Names of the included outputs; None: all.
    every : int, default 1
        As of Log.rows.

    Returns
    -------
    int
        Number of steps.
    """
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_word(name) for name in columns(log, outputs)])
    count = 0
    for row in rows(log, outputs, every):
        writer.writerow([_cell(value) for value in row])
        count += 1
    return count


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return _word(value) if isinstance(value, str) else value


def _word(text: str) -> str:
    """Return a text that a spreadsheet does not compute as a formula, with an apostrophe if necessary."""
    safe = safe_text(text)
    return f"'{safe}" if safe.startswith(("=", "+", "-", "@")) else safe


def write_parquet(log: Log, path: Path, outputs: Sequence[str] | None = None, every: int = 1) -> int:
    """Write a table as Parquet.

    Parameters
    ----------
    log : Log
        The log.
    path : Path
        The file.
    outputs : Sequence[str] | None, optional
        Names of the included outputs; None: all.
    every : int, default 1
        As of Log.rows.

    Returns
    -------
    int
        Number of steps.

    Raises
    ------
    ModelError
        Without pyarrow.
    """
    refuse_without_pyarrow(str(path))
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    kinds = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns(log, outputs).items()])
    count, gathered = 0, []
    with pq.ParquetWriter(path, schema) as writer:
        for row in rows(log, outputs, every):
            gathered.append(row)
            count += 1
            if len(gathered) == ROWS_AT_ONCE:
                writer.write_table(_table(pa, schema, gathered))
                gathered = []
        writer.write_table(_table(pa, schema, gathered))
    return count


def _table(pa: Any, schema: Any, gathered: list[list[Any]]) -> Any:
    each = zip(*gathered, strict=True) if gathered else [[] for _ in schema]
    return pa.table([pa.array(values, field.type) for values, field in zip(each, schema, strict=True)], schema=schema)
