"""Rows of a study in memory, and as CSV or Parquet. Only Parquet needs pyarrow."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rtmms.base.files import new_file_beside

Kind = Literal["int", "float", "bool", "text"]
Value = Any
"""Value of a cell: int, float, bool, str, or None for a missing value."""
_TYPES: Mapping[Kind, tuple[type, ...]] = {"int": (int,), "float": (float,), "bool": (bool,), "text": (str,)}

ENDS = ("ended", "reason", "steps")
"""Columns of every table besides `run`: end of a run, its reason, and the number of steps."""


@dataclass(frozen=True)
class Column:
    """Column of a table.

    Attributes
    ----------
    name : str
        Name.
    kind : Kind
        Type of its values.
    unit : str, default ''
        Unit, '' for none.
    """

    name: str
    kind: Kind
    unit: str = ""


@dataclass(frozen=True)
class Form:
    """Columns of a table, and the mark of its study.

    Attributes
    ----------
    columns : tuple[Column, ...]
        Columns in order.
    mark : str, default ''
        Key of the study.
    """

    columns: tuple[Column, ...]
    mark: str = ""

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]


@dataclass(frozen=True)
class Table:
    """Rows of a study.

    Attributes
    ----------
    form : Form
        Columns.
    values : Mapping[str, list[Value]]
        Values of each column by name, a list with one value for each row; None for a missing value.

    Examples
    --------
    >>> from rtmms.studies.sweep_rows import Column, Form, Table
    >>> form = Form((Column("run", "int"), Column("speed", "float", "m/s")))
    >>> table = Table(form, {"run": [0, 1], "speed": [0.4, 0.5]})
    >>> table.num_rows, table.unit("speed")
    (2, 'm/s')
    """

    form: Form
    values: Mapping[str, list[Value]]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self.form.names

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.values["run"])

    def column(self, name: str) -> list[Value]:
        """Return the values of a column.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        list[Value]
            One for each row.
        """
        return self.values[name]

    def unit(self, name: str) -> str:
        """Return the unit of a column.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        str
            '' for none.
        """
        return next(column.unit for column in self.form.columns if column.name == name)

    def rows(self, first: int, count: int) -> Table:
        """Return a part of the rows.

        Parameters
        ----------
        first : int
            First row.
        count : int
            Number of rows.

        Returns
        -------
        Table
            A table of the same form.
        """
        return Table(self.form, {name: values[first : first + count] for name, values in self.values.items()})


def join_tables(tables: Sequence[Table]) -> Table:
    """Join the rows of tables of one form, in order.

    Parameters
    ----------
    tables : Sequence[Table]
        At least one.

    Returns
    -------
    Table
        One table.
    """
    form = tables[0].form
    return Table(form, {name: [value for table in tables for value in table.column(name)] for name in form.names})


def convert_cell(kind: Kind, value: Any) -> Value:
    """Convert a value to the type of a column.

    Parameters
    ----------
    kind : Kind
        'int', 'float', 'bool' or 'text'.
    value : Any
        The value; None stays None.

    Returns
    -------
    Value
        The converted value.

    Examples
    --------
    >>> from rtmms.studies.sweep_rows import convert_cell
    >>> convert_cell("float", 3)
    3.0
    """
    if value is None:
        return None
    if kind == "float":
        return float(value)
    if kind == "text":
        return str(value)
    return bool(value) if kind == "bool" else int(value)


def encode(table: Table) -> bytes:
    """Return a table as JSON with its form; `decode` reads the same bits again.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    bytes
        UTF-8.
    """
    form = {
        "mark": table.form.mark,
        "columns": [[column.name, column.kind, column.unit] for column in table.form.columns],
    }
    return json.dumps({"form": form, "values": [table.column(name) for name in table.form.names]}).encode()


def decode(data: bytes, form: Form, rows: int) -> Table:
    """Return the table that `encode` wrote.

    Parameters
    ----------
    data : bytes
        UTF-8.
    form : Form
        Form that the table must have.
    rows : int
        Number of rows that it must have.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    ValueError
        The table has another form, another number of rows, or a value of another type.
    """
    content = json.loads(data)
    expected = {"mark": form.mark, "columns": [[column.name, column.kind, column.unit] for column in form.columns]}
    if not isinstance(content, dict) or content.get("form") != expected:
        raise ValueError("another form")
    values = content.get("values")
    if not isinstance(values, list) or len(values) != len(form.columns):
        raise ValueError("another number of columns")
    for column, provided in zip(form.columns, values, strict=True):
        if not isinstance(provided, list) or len(provided) != rows:
            raise ValueError("another number of rows")
        if not all(value is None or type(value) in _TYPES[column.kind] for value in provided):
            raise ValueError("a value of another type")
    return Table(form, dict(zip(form.names, values, strict=True)))


def write_csv(table: Table, path: Path) -> None:
    """Write a table as CSV: a line of names, which begins with 'run' and `ENDS`, then a line for each run.

    Numbers have all their digits, a missing value is an empty field, and a flag is true or false.

    Parameters
    ----------
    table : Table
        The table.
    path : Path
        The file.
    """
    names = ["run", *ENDS, *(name for name in table.column_names if name not in ("run", *ENDS))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(_texts(table.column(name)) for name in names), strict=True))
    with new_file_beside(path) as part:
        part.write_text(text.getvalue(), encoding="utf-8")


def _texts(values: Iterable[Value]) -> list[str]:
    return ["" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def write_parquet(table: Table, path: Path) -> None:
    """Write a table as Parquet; the metadata of each field has its unit.

    Parameters
    ----------
    table : Table
        The table.
    path : Path
        The file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "text": pa.string()}
    fields = [
        pa.field(
            column.name, types[column.kind], metadata=None if column.name in ("run", *ENDS) else {"unit": column.unit}
        )
        for column in table.form.columns
    ]
    schema = pa.schema(fields, metadata={"rtmms": table.form.mark})
    with new_file_beside(path) as part:
        pq.write_table(pa.table(dict(table.values), schema=schema), part)
