"""Table of a study: whole parts, one file of CSV or Parquet, and the lock of the process that writes it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.files import KINDS, new_file_beside, read_input, refuse_output
from rtmms.base.files import Kind as FileKind
from rtmms.record.log_location import refuse_without_pyarrow
from rtmms.scenario.run_options import run_options
from rtmms.studies.case import unit_of
from rtmms.studies.sweep_files import changed_file, refuse_changed
from rtmms.studies.sweep_rows import (
    ENDS,
    Column,
    Form,
    Kind,
    Table,
    convert_cell,
    decode,
    encode,
    join_tables,
    write_csv,
    write_parquet,
)
from rtmms.studies.sweep_study import Study

# A lock that one process at a time has, as long as it lives: for files that two commands would both write.


if sys.platform != "win32":
    import fcntl

TRIES = 8


class Lock:
    """A locked file. The system unlocks it when the process ends, in whatever way.

    Parameters
    ----------
    path : Path
        The file, which is made here, and removed by `close`.
    busy : str
        Sentence of the error where another process has the lock.

    Raises
    ------
    ModelError
        Another process has the lock, or the file cannot be made.
    """

    def __init__(self, path: Path, busy: str) -> None:
        self.path = path
        self._descriptor = self._locked(busy)

    def close(self) -> None:
        """Remove the file and unlock; a second call does nothing."""
        if self._descriptor < 0:
            return
        with suppress(OSError):
            if self._is_there(self._descriptor):
                os.unlink(self.path)
        os.close(self._descriptor)
        self._descriptor = -1

    def _locked(self, busy: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        for _ in range(TRIES):
            try:
                descriptor = os.open(self.path, flags, 0o600)
            except OSError as fault:
                raise ModelError(
                    f"{self.path}: expected a file that can be locked: {fault.strerror}; remove it"
                ) from None
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise ModelError(f"{self.path}: is not a file that can be locked: remove it")
            try:
                if sys.platform != "win32":
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                raise ModelError(busy) from None
            if self._is_there(descriptor):
                return descriptor
            os.close(descriptor)  # the process before us removed it between our two calls
        raise ModelError(f"{self.path}: cannot be locked, as other processes keep removing it; end them first")

    def _is_there(self, descriptor: int) -> bool:
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        here = os.fstat(descriptor)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


# The table of a study: parts that are there whole or not at all, and one file of them in order.


CSV = FileKind("table of rtmms sweep", (b"run,ended,reason,steps",))
MAGIC = b"rtmms part 2\n"
"""First line of a part."""
LOCK = "lock"
"""File in the folder of parts that the process locks which makes the table."""
_PART = re.compile(r"part-[0-9a-f]{16}-\d{8,}-\d{8,}\.(part|parquet)|table-[0-9a-f]{16}\.(parquet|csv)")
_UNFINISHED = re.compile(r"\.(part-[0-9a-f]{16}-\d{8,}-\d{8,}|table-[0-9a-f]{16})\.\w+\.(part|parquet|csv)")
"""Names of files of a process that was killed while it wrote them."""
MAX_PART_BYTES = 1 << 28
"""Largest declared size of an unpacked part, bytes."""
MAX_ENDING_LENGTH = 32


def refuse_wrong_name(output: Path) -> None:
    """Refuse a name of a table that is neither CSV nor Parquet, and Parquet where pyarrow is missing.

    Parameters
    ----------
    output : Path
        File of the table.

    Raises
    ------
    ModelError
        Another ending, a missing library, or a file that is not a table of a study.
    """
    if output.suffix not in (".csv", ".parquet"):
        raise ModelError(f"-o {output}: expected a name that ends in .parquet or .csv")
    if output.suffix == ".parquet":
        refuse_without_pyarrow(f"-o {output}", "or give a name that ends in .csv")
    refuse_output(output, "-o", KINDS[".parquet"] if output.suffix == ".parquet" else CSV)


def schema(study: Study, units: Mapping[str, str]) -> Form:
    """Return the columns of a table: run, axes, results, end of the run.

    Parameters
    ----------
    study : Study
        The study.
    units : Mapping[str, str]
        Units of the results by name.

    Returns
    -------
    Form
        Columns, with the study's mark.
    """
    columns = [Column("run", "int")]
    for axis in study.axes:
        option = run_options().get(axis.key)
        unit = option.unit if option is not None else unit_of(axis.key)
        columns.append(Column(axis.key, _kind(axis.values), unit))
    used = {"run", *(axis.key for axis in study.axes)}
    columns += [Column(name, "float", unit) for name, unit in units.items() if name not in used and name not in ENDS]
    columns += [Column("ended", "text"), Column("reason", "text"), Column("steps", "int")]
    mark = json.dumps({"study": study.digest(), "method": study.method, "robot": study.base.robot})
    return Form(tuple(columns), mark)


def _kind(values: Sequence[Any]) -> Kind:
    if values and all(isinstance(value, bool) for value in values):
        return "bool"
    if values and all(isinstance(value, int) for value in values):
        return "int"
    return "float" if all(isinstance(value, (int, float)) for value in values) else "text"


def rows_table(
    study: Study, form: Form, first: int, cases: Sequence[tuple[Any, ...]], rows: Sequence[Mapping[str, Any]]
) -> Table:
    """Return the rows of some runs.

    Parameters
    ----------
    study : Study
        The study.
    form : Form
        Form of its table.
    first : int
        Index of the first run.
    cases : Sequence[tuple[Any, ...]]
        Values of each run.
    rows : Sequence[Mapping[str, Any]]
        Results of each run.

    Returns
    -------
    Table
        The rows.
    """
    keys = [axis.key for axis in study.axes]
    columns: dict[str, list[Any]] = {name: [] for name in form.names}
    for k, (case, row) in enumerate(zip(cases, rows, strict=True)):
        axis_values = dict(zip(keys, case, strict=True))
        for column in form.columns:
            value = first + k if column.name == "run" else axis_values.get(column.name, row.get(column.name))
            columns[column.name].append(convert_cell(column.kind, value))
    return Table(form, columns)


class Parts:
    """Folder beside the table with the finished chunks, until all are done.

    A part has a checksum, and the hashes of the files beyond the study's that were opened during its runs.

    Parameters
    ----------
    path : Path
        File of the table.
    study : Study
        The study.
    form : Form
        Form of its table.

    Attributes
    ----------
    left_out : list of str
        Parts of another study, damaged parts, or parts whose files have changed: they are made anew.
    """

    def __init__(self, path: Path, study: Study, form: Form) -> None:
        self.folder, self._study, self._form = path.with_name(path.name + ".parts"), study, form
        self._path, self._digest = path, study.digest()
        self._cases: list[tuple[Any, ...]] | None = None
        self._lock: Lock | None = None
        self._inputs: dict[str, str] = {}
        self.left_out: list[str] = []

    def chunks(self) -> list[tuple[int, int]]:
        """Return the chunks of the study.

        Returns
        -------
        list[tuple[int, int]]
            First run and one past the last of each.
        """
        size, runs = self._study.chunk, self._study.runs
        return [(first, min(first + size, runs)) for first in range(0, runs, size)]

    def file(self, chunk: tuple[int, int]) -> Path:
        """Return the file of a chunk.

        Parameters
        ----------
        chunk : tuple[int, int]
            First run and one past the last.

        Returns
        -------
        Path
            Its path.
        """
        return self.folder / f"part-{self._digest}-{chunk[0]:08d}-{chunk[1]:08d}.part"

    def open(self) -> list[tuple[int, int]]:
        """Make and lock the folder.

        Returns
        -------
        list[tuple[int, int]]
            Chunks that are still to be done.

        Raises
        ------
        ModelError
            The folder cannot be made, or another process makes the same table.
        """
        try:
            if self.folder.is_symlink():
                raise ModelError(f"{self.folder}: is a link, expected none or a folder: remove it")
            self.folder.mkdir(exist_ok=True)
        except OSError as fault:
            raise ModelError(f"{self.folder}: {fault.strerror}") from None
        if self._lock is None:
            busy = f"{self._path}: another process makes this table now; expected another file, or that it ends first"
            self._lock = Lock(self.folder / LOCK, busy)
        wanted = {self.file(chunk): chunk for chunk in self.chunks()}
        for file in sorted(self.folder.iterdir()):
            if file in wanted and not stat.S_ISREG(file.lstat().st_mode):
                raise ModelError(f"{file}: expected a part of this study or none, got no regular file; remove it")
            if file not in wanted:
                if _PART.fullmatch(file.name):
                    self.left_out.append(f"{file.name} is of another study or version, or a file of it has changed")
                elif _UNFINISHED.fullmatch(file.name) and stat.S_ISREG(file.lstat().st_mode):
                    file.unlink()
            elif self._read(file, wanted[file]) is None:
                self.left_out.append(f"{file.name} is damaged, not of this study, or a file of it has changed")
                file.unlink()
        return [chunk for file, chunk in wanted.items() if not file.is_file()]

    def close(self) -> None:
        """Unlock the folder, for the next process."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _read(self, file: Path, chunk: tuple[int, int]) -> Table | None:
        """Return a part, or None.

        It is None where the part is damaged, belongs to other runs than the study's, or a file of it has changed.
        """
        try:
            if not stat.S_ISREG(file.lstat().st_mode) or file.lstat().st_size > MAX_PART_BYTES:  # a pipe would wait
                return None
            inputs, payload = unseal_part(read_input(file, max_bytes=MAX_PART_BYTES), file.name)
            if changed_file(inputs):
                return None
            table = decode(payload, self._form, chunk[1] - chunk[0])
            return table if self._is_of(table, chunk) else None
        except (OSError, ValueError, MemoryError, RecursionError):
            return None

    def _is_of(self, table: Table, chunk: tuple[int, int]) -> bool:
        """Return whether the runs in a part are those of the study, with valid ends."""
        if self._cases is None:
            self._cases = self._study.cases()
        cases = self._cases[chunk[0] : chunk[1]]
        if table.column("run") != list(range(*chunk)):
            return False
        for k, axis in enumerate(self._study.axes):
            kind = next(column.kind for column in self._form.columns if column.name == axis.key)
            if table.column(axis.key) != [convert_cell(kind, case[k]) for case in cases]:
                return False
        ends = table.column("ended")
        return all(isinstance(end, str) and 0 < len(end) <= MAX_ENDING_LENGTH and end.isidentifier() for end in ends)

    def write(self, chunk: tuple[int, int], table: Table, inputs: Mapping[str, str] | None = None) -> None:
        """Write one chunk, by a temporary file and a rename.

        Parameters
        ----------
        chunk : tuple[int, int]
            First run and one past the last.
        table : Table
            Its rows.
        inputs : Mapping[str, str] | None, optional
            Hashes of the files beyond the study's that were opened for it, by name.

        Raises
        ------
        RtmmsError
            The file cannot be written, or an earlier chunk had another content of an input.
        """
        for name, digest in (inputs or {}).items():
            if self._inputs.setdefault(name, digest) != digest:
                refuse_changed({name: self._inputs[name]})
        file = self.file(chunk)
        try:
            with new_file_beside(file) as part:
                part.write_bytes(seal_part(encode(table), file.name, inputs or {}))
        except OSError as fault:
            raise RtmmsError(f"{file}: {fault.strerror or fault}") from None

    def join(self, path: Path) -> Table:
        """Write the whole table in the runs' order, and remove the parts.

        Parameters
        ----------
        path : Path
            File of the table.

        Returns
        -------
        Table
            The table.

        Raises
        ------
        RtmmsError
            A part is damaged, or a file of the study has changed.
        """
        refuse_changed({**self._study.inputs, **self._inputs})
        tables = []
        for chunk in self.chunks():
            table = self._read(self.file(chunk), chunk)
            if table is None:
                raise RtmmsError(
                    f"{self.file(chunk)}: this part is damaged; run the same command again to compute it again"
                )
            tables.append(table)
        whole = join_tables(tables)
        try:
            # what is left of it if we are killed goes with the rest
            built = self.folder / f"table-{self._digest}{path.suffix}"
            (write_csv if path.suffix == ".csv" else write_parquet)(whole, built)
            os.replace(built, path)
        except OSError as fault:
            raise RtmmsError(f"{path}: {fault.strerror or fault}; the parts stay in {self.folder}") from None
        for file in self.folder.iterdir():  # parts alone: what else stands there is somebody's own
            if _PART.fullmatch(file.name) and not file.is_dir():
                file.unlink(missing_ok=True)
        self.close()
        with suppress(OSError):  # somebody keeps something there
            self.folder.rmdir()
        return whole


def seal_part(payload: bytes, name: str, inputs: Mapping[str, str]) -> bytes:
    """Return the bytes of a part's file.

    Parameters
    ----------
    payload : bytes
        The rows.
    name : str
        Name of the file.
    inputs : Mapping[str, str]
        Hashes of input files by name.

    Returns
    -------
    bytes
        A line that names the format, a checksum of all that follows and of the file's name, the inputs, and the rows.
    """
    body = json.dumps(inputs, sort_keys=True).encode() + b"\n" + payload
    return MAGIC + _checksum(body, name).encode() + b"\n" + body


def unseal_part(data: bytes, name: str) -> tuple[dict[str, str], bytes]:
    """Return inputs and rows of a part.

    Parameters
    ----------
    data : bytes
        Bytes of the file.
    name : str
        Name of the file.

    Returns
    -------
    tuple[dict[str, str], bytes]
        Hashes by name, and the rows.

    Raises
    ------
    ValueError
        The part is damaged.
    """
    magic, checksum, body = data.split(b"\n", 2)
    if magic + b"\n" != MAGIC or checksum.decode() != _checksum(body, name):
        raise ValueError(f"{name}: another checksum")
    line, payload = body.split(b"\n", 1)
    inputs: dict[str, str] = json.loads(line)
    return inputs, payload


def _checksum(body: bytes, name: str) -> str:
    return hashlib.sha256(name.encode() + b"\n" + body).hexdigest()


def numbers(table: Table, names: Iterable[str]) -> Any:
    """Return columns as numbers.

    Parameters
    ----------
    table : Table
        The table.
    names : Iterable[str]
        Columns.

    Returns
    -------
    : (runs, names) array
        float64, nan for a missing value.
    """
    import numpy as np

    return np.stack([np.array(table.column(name), dtype=float) for name in names], axis=1)
