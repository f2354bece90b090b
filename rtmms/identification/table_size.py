"""How much a table may unpack to, checked before it is read: `rtmms.identification.tables` uses it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from rtmms.errors import ModelError
from rtmms.input_file import open_input

MAX_CELLS = 2_000_000
"""Cells of a Parquet file that may be far smaller than its table: a packed file may repeat one value for ever."""
_CELL_BYTES = 8


def refuse_bomb(path: Path) -> None:
    """Raise ModelError where a Parquet file unpacks to far more than its size.

    Parameters
    ----------
    path
        A table. Files of other kinds, and those that cannot be read, pass: their reader has the words for them.
    """
    if path.suffix != ".parquet" or not path.is_file():
        return
    packed = path.stat().st_size
    most = max(MAX_CELLS, packed // 2)
    try:
        pq: Any = import_module("pyarrow.parquet")
        with open_input(path) as raw, pq.ParquetFile(raw) as file:
            groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
            columns = [group.column(k) for group in groups for k in range(group.num_columns)]
            cells = max(file.metadata.num_rows, sum(one.num_values for one in columns))
            size = sum(one.total_uncompressed_size for one in columns)
            texts = sorted({one.path_in_schema for one in columns if one.physical_type.endswith("BYTE_ARRAY")})
        if max(cells, size // _CELL_BYTES) <= most:
            size = _text_bytes(pq, path, texts, _CELL_BYTES * most) if texts else 0
    except Exception:  # no pyarrow, no Parquet file: whatever the library raises
        return
    if max(cells, size // _CELL_BYTES) > most:
        raise ModelError(f"{path}: expected at most {most} cells in {packed} bytes, got {cells} ({size} bytes of text)")


def _text_bytes(pq: Any, path: Path, texts: list[str], most: int) -> int:
    """Return what columns of text take at most when each cell has its own text; stops beyond `most`."""
    total = 0
    with open_input(path) as raw, pq.ParquetFile(raw, read_dictionary=texts) as file:
        for batch in file.iter_batches(batch_size=1024, columns=texts):
            for column in batch.columns:
                known = getattr(column, "dictionary", column)
                longest = max((len(str(one)) for one in known.to_pylist()), default=0)
                total += longest * len(column)
            if total > most:
                break
    return total
