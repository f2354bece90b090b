"""A log as a table: one row a step, one column a number."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from rtmms.base.contract import PARTS, UNDEFINED
from rtmms.base.errors import shown
from rtmms.loop.log_row import OUTCOME_COLUMNS
from rtmms.record.log import Log, Step
from rtmms.record.place import refuse_without_pyarrow

WORDS = {name: one.kind for name, one in OUTCOME_COLUMNS.items()}
ROWS_AT_ONCE = 4096


def columns(log: Log) -> dict[str, type]:
    """Name and type of each. run counts the resets; time (s) is the end of the step, when the outputs hold; the
    command was held over it. Actuators are named command.NAME."""
    table: dict[str, type] = {"run": int, "step": int, "time": float, **WORDS, "altered": bool}
    table |= {f"{name}_ns": int for name in PARTS}
    table |= {f"command.{column}": float for signal in log.actuators for column in signal.columns}
    return table | {column: float for signal in log.outputs for column in signal.columns}


def rows(log: Log) -> Iterator[list[Any]]:
    """One list a step, in the order of `columns`; None for a time that was not taken."""
    run, dt = -1, log.origin["dt"]
    for row in log.rows():
        if not isinstance(row, Step):
            run += 1
            continue
        times = [None if value == UNDEFINED else value for value in row.times]
        words = [row.said(name) for name in WORDS]
        head = [run, row.step, (row.step + 1) * dt, *words, row.altered, *times]
        yield head + row.command.tolist() + row.outputs.tolist()


def write_csv(log: Log, file: IO[str]) -> int:
    """Comma-separated, a line of names first; numbers read back to the bit, words without control characters and
    formulas. Returns the number of steps."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_word(name) for name in columns(log)])
    count = 0
    for row in rows(log):
        writer.writerow([_cell(value) for value in row])
        count += 1
    return count


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return _word(value) if isinstance(value, str) else value


def _word(text: str) -> str:
    """Text that a spreadsheet takes as text: what it would compute as a formula gets an apostrophe in front."""
    safe = shown(text)
    return f"'{safe}" if safe.startswith(("=", "+", "-", "@")) else safe


def write_parquet(log: Log, path: Path) -> int:
    """The same as Parquet. Returns the number of steps; ModelError without pyarrow."""
    refuse_without_pyarrow(str(path))
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    kinds = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns(log).items()])
    count, gathered = 0, []
    with pq.ParquetWriter(path, schema) as writer:
        for row in rows(log):
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
