"""Tables and shares of variance: parts that are damaged or of another study, columns with units."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtmms.base.errors import ModelError, RtmmsError
from rtmms.studies.sweep_figure import first_order
from rtmms.studies.sweep_files import hash_of
from rtmms.studies.sweep_rows import Column, Form, Table, join_tables, write_csv
from rtmms.studies.sweep_study import Axis, Base, Study
from rtmms.studies.sweep_table import Parts, refuse_wrong_name, rows_table, schema


def build(method: str = "grid", samples: int = 0) -> Study:
    if method == "grid":
        axes = (Axis("drag", tuple(k / 10 for k in range(10))), Axis("word", ("a", "b")))
    else:
        axes = (Axis("drag", (), 0.0, 1.0), Axis("speed_m_s", (), 0.0, 1.0), Axis("none", (), 0.0, 1.0))
    return Study(Base("pendulum", duration=100.0, dt=0.01), axes, method, samples, 0, ("way_m",))


def table(study: Study, ways: list[float]) -> Table:
    rows = [{"way_m": route, "ended": "duration", "steps": 1} for route in ways]
    return rows_table(study, schema(study, {"way_m": "m"}), 0, study.cases(), rows)


def read(path: Path) -> dict[str, list[object]]:
    """The columns of a file, in the types of `made`."""
    if path.suffix == ".parquet":
        result: dict[str, list[object]] = pytest.importorskip("pyarrow.parquet").read_table(path).to_pydict()
        return result
    names, *lines = csv.reader(path.read_text().splitlines())
    kinds = {"run": int, "steps": int, "drag": float, "way_m": float}
    columns = dict(zip(names, zip(*lines, strict=True), strict=True))
    return {name: [kinds.get(name, str)(item) if item else None for item in column] for name, column in columns.items()}


def test_columns_have_units_and_missing_numbers_are_none() -> None:
    study = build()
    result = rows_table(study, schema(study, {"way_m": "m"}), 0, study.cases()[:2], [
        {"way_m": 1.5, "ended": "duration", "steps": 3}, {"ended": "refused", "reason": "no", "steps": 0},
    ])  # fmt: skip
    assert result.column_names == ["run", "drag", "word", "way_m", "ended", "reason", "steps"]
    assert (result.unit("way_m"), result.unit("word")) == ("m", "")
    assert result.column("way_m") == [1.5, None]
    assert result.column("word") == ["a", "b"]


@pytest.mark.parametrize("ending", ["csv", pytest.param("parquet", marks=pytest.mark.full)])
def test_parts_are_taken_where_they_are_whole_and_of_this_study(tmp_path: Path, ending: str) -> None:
    study = build()
    form, path = schema(study, {"way_m": "m"}), tmp_path / f"t.{ending}"
    parts = Parts(path, study, form)
    chunks = parts.open()
    assert [last - first for first, last in chunks] == [2] * 10  # 20,000 steps each
    whole = table(study, [0.1 * k for k in range(20)])
    for first, last in chunks:
        parts.write((first, last), whole.rows(first, last - first))
    parts.join(path)
    before = path.read_bytes()
    assert read(path) == whole.values
    assert not parts.folder.exists()

    again = Parts(path, study, form)
    again.open()
    for first, last in chunks[:6]:
        again.write((first, last), whole.rows(first, last - first))
    again.close()
    cut = again.file(chunks[2])
    cut.write_bytes(cut.read_bytes()[:-20])
    wrong = again.file(chunks[3])
    again.write(chunks[3], whole.rows(0, 2))  # rows of another chunk under its name
    (again.folder / "part-0000000000000000-00000000-00000002.parquet").write_bytes(b"PAR1")
    again.close()
    third = Parts(path, study, form)
    assert third.open() == [chunks[2], chunks[3], *chunks[6:]]
    message = " ".join(third.left_out)
    assert "is of another study or version" in message
    assert f"{cut.name} is damaged" in message
    assert f"{wrong.name} is damaged" in message
    for first, last in [chunks[2], chunks[3], *chunks[6:]]:
        third.write((first, last), whole.rows(first, last - first))
    third.join(path)
    assert path.read_bytes() == before


def test_no_flipped_bit_of_a_part_is_taken(tmp_path: Path) -> None:
    study = build()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    chunk = parts.open()[0]
    parts.write(chunk, table(study, [0.1 * k for k in range(20)]).rows(*chunk), {"none.csv": ""})
    sound = parts.file(chunk).read_bytes()
    rng = np.random.default_rng(41)
    for place in rng.integers(8 * len(sound), size=400).tolist():
        flipped = bytearray(sound)
        flipped[place // 8] ^= 1 << place % 8
        parts.file(chunk).write_bytes(flipped)
        assert chunk in parts.open(), place
    assert len(parts.left_out) == 400
    parts.file(chunk).write_bytes(sound)
    assert chunk not in parts.open()
    parts.file(chunk).rename(parts.file(parts.chunks()[1]))  # a sound part of another chunk
    assert parts.open() == parts.chunks()


def test_a_part_that_is_damaged_before_the_end_is_no_row_of_the_table(tmp_path: Path) -> None:
    study = build()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    for k, chunk in enumerate(parts.open()):
        parts.write(chunk, table(study, [0.0] * 20).rows(2 * k, 2))
    damaged = parts.file(parts.chunks()[4])
    damaged.write_bytes(damaged.read_bytes().replace(b"duration", b"durations", 1))
    with pytest.raises(RtmmsError, match="is damaged; run the same command again to compute it again"):
        parts.join(tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()
    assert parts.open() == [parts.chunks()[4]]


def test_a_table_that_another_process_makes_is_refused(tmp_path: Path) -> None:
    study = build()
    form = schema(study, {"way_m": "m"})
    first, second = (Parts(tmp_path / "t.parquet", study, form) for _ in range(2))
    chunks = first.open()
    with pytest.raises(ModelError, match=r"t\.parquet: another process makes this table now; expected another file"):
        second.open()
    assert first.open() == chunks  # the same object has it already
    first.close()
    assert second.open() == chunks
    second.close()


def test_a_part_counts_with_the_files_that_were_opened_for_it(tmp_path: Path) -> None:
    study = build()
    form, late = schema(study, {"way_m": "m"}), tmp_path / "late.csv"
    late.write_text("1\n")
    parts = Parts(tmp_path / "t.parquet", study, form)
    chunks = parts.open()
    whole = table(study, [0.0] * 20)
    now = {str(late): hash_of(str(late))}
    for k, chunk in enumerate(chunks[:3]):
        parts.write(chunk, whole.rows(2 * k, 2), now if k == 1 else {})
    assert parts.open() == chunks[3:]
    late.write_text("22\n")
    with pytest.raises(
        RtmmsError, match=r"late\.csv: this file changed while the study ran; run the same command again"
    ):
        parts.write(chunks[3], whole.rows(6, 2), {str(late): hash_of(str(late))})
    assert parts.open() == [chunks[1], *chunks[3:]]


def test_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    study = build()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    chunks = parts.open()
    left = parts.folder / f".{parts.file(chunks[0]).stem}.ab_1cd2e.part"
    current = parts.folder / ".part-of-mine.part"
    for file in (left, current):
        file.write_bytes(b"half")
    assert parts.open() == chunks
    assert (left.exists(), current.exists()) == (False, True)


def change(table: Table, name: str, values: list[object]) -> Table:
    return Table(table.form, {**table.values, name: values})


def with_column(table: Table) -> Table:
    form = replace(table.form, columns=(*table.form.columns, Column("more", "int")))
    return Table(form, {**table.values, "more": [1, 2]})


TAMPERED: dict[str, Callable[[Table], Table]] = {
    "values of another study": lambda part: change(part, "drag", [9.0, 9.0]),
    "runs of another chunk": lambda part: change(part, "run", [7, 8]),
    "an end that is no word": lambda part: change(part, "ended", ["\x1b]0;owned\x07", "duration"]),
    "an end that is missing": lambda part: change(part, "ended", [None, "duration"]),
    "text for a number": lambda part: change(part, "way_m", ["1.0", 2.0]),
    "a flag for a count": lambda part: change(part, "steps", [True, 2]),
    "a list for a number": lambda part: change(part, "way_m", [[1.0], 2.0]),
    "another study's mark": lambda part: Table(Form(part.form.columns, "{}"), part.values),
    "another column": with_column,
    "rows without end": lambda part: join_tables([part] * 1000),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_part_that_somebody_else_made_is_done_again(tmp_path: Path, what: str) -> None:
    study = build()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    chunks = parts.open()
    part = table(study, [0.1 * k for k in range(20)]).rows(*chunks[0])
    parts.write(chunks[0], part)
    assert parts.open() == chunks[1:]
    parts.write(chunks[0], TAMPERED[what](part))
    assert parts.open() == chunks
    assert "is damaged, not of this study" in parts.left_out[-1]


def test_what_is_no_part_of_ours_is_neither_waited_for_nor_deleted(tmp_path: Path) -> None:
    study = build()
    parts = Parts(tmp_path / "t.csv", study, schema(study, {"way_m": "m"}))
    chunks = parts.open()
    current = parts.folder / "part-00000-of-spark.parquet"
    current.write_bytes(b"PAR1 precious")
    first = parts.file(chunks[0])
    os.mkfifo(first)  # would be waited for
    with pytest.raises(ModelError, match=r"expected a part of this study or none, .*; remove it"):
        parts.open()
    first.unlink()
    first.mkdir()
    with pytest.raises(ModelError, match="expected a part of this study or none"):
        parts.open()
    with pytest.raises(RtmmsError, match=r"part-.*: Is a directory"):
        parts.write(chunks[0], table(study, [0.0] * 20).rows(0, 2))
    first.rmdir()
    for k, chunk in enumerate(parts.open()):
        parts.write(chunk, table(study, [0.0] * 20).rows(2 * k, 2))
    parts.join(tmp_path / "t.csv")
    assert [path.name for path in parts.folder.iterdir()] == [current.name]
    elsewhere = tmp_path / "elsewhere"
    parts.folder.rename(elsewhere)
    parts.folder.symlink_to(elsewhere)
    with pytest.raises(ModelError, match="is a link"):
        parts.open()


def test_shares_of_a_grid_are_exact() -> None:
    study = build()
    drag, word = (np.array([case[k] for case in study.cases()]) for k in (0, 1))
    ways = 3.0 * drag + (word == "b")
    result = first_order(study, table(study, ways.tolist()), ("way_m",))
    assert result is not None
    of_drag, of_word = np.var(3.0 * np.arange(10) / 10), 0.25
    assert result["way_m"]["drag"] == pytest.approx(of_drag / (of_drag + of_word), rel=1e-12)
    assert result["way_m"]["word"] == pytest.approx(of_word / (of_drag + of_word), rel=1e-12)


@pytest.mark.parametrize("ended", ["failed", "diverged", "refused", "settled"])
def test_runs_that_did_not_end_as_planned_have_no_share(ended: str) -> None:
    study = build()
    drag = np.array([case[0] for case in study.cases()])
    rows = [{"way_m": 3.0 * item, "ended": "duration", "steps": 1} for item in drag]
    rows[3] = {"way_m": 1e300, "ended": ended, "steps": 1}
    result = first_order(study, rows_table(study, schema(study, {"way_m": "m"}), 0, study.cases(), rows), ("way_m",))
    assert result is not None
    assert result["way_m"]["drag"] == pytest.approx(1.0, abs=1e-12)
    assert 0.0 <= result["way_m"]["word"] < 0.1


@pytest.mark.full  # the extra `test` has no SALib
def test_shares_of_samples_are_near_those_of_the_function() -> None:
    pytest.importorskip("SALib")
    study = build("sobol", 1024)
    cases = np.array(study.cases())
    result = first_order(study, table(study, (3.0 * cases[:, 0] + cases[:, 1]).tolist()), ("way_m",))
    assert result is not None
    assert result["way_m"]["drag"] == pytest.approx(0.9, abs=0.05)
    assert result["way_m"]["speed_m_s"] == pytest.approx(0.1, abs=0.05)
    assert abs(result["way_m"]["none"]) < 0.05


def test_too_few_samples_have_no_shares() -> None:
    study = build("lhs", 8)
    assert first_order(study, table(study, list(range(8))), ("way_m",)) is None


def test_csv_has_every_bit_of_a_number_and_an_empty_field_for_a_missing_one(tmp_path: Path) -> None:
    columns = (
        Column("run", "int"), Column("gust", "bool"), Column("way_m", "float", "m"), Column("ended", "text"),
        Column("reason", "text"), Column("steps", "int"),
    )  # fmt: skip
    ways = [0.1 + 0.2, 5e-324, None, float("inf")]
    result = Table(Form(columns), {
        "run": [0, 1, 2, 3], "gust": [True, False, True, False], "way_m": ways, "ended": ["duration"] * 4,
        "reason": [None, 'a "b", c', "two\nlines", "d"], "steps": [1, 2, 3, 1 << 60],
    })  # fmt: skip
    write_csv(result, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as opened:
        lines = list(csv.reader(opened))
    assert lines[0] == ["run", "ended", "reason", "steps", "gust", "way_m"]
    assert [float(line[5]) if line[5] else None for line in lines[1:]] == ways
    assert [line[4] for line in lines[1:]] == ["true", "false", "true", "false"]
    assert [line[2] for line in lines[1:]] == ["", 'a "b", c', "two\nlines", "d"]
    assert lines[4][3] == str(1 << 60)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.txt", r"expected a name that ends in \.parquet or \.csv"), ("t", r"ends in \.parquet or \.csv"),
        ("own.csv", "expected a new name, or an existing table of rtmms sweep"),
    ],
)  # fmt: skip
def test_other_names_and_tables_of_others_are_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "own.csv").write_text("run,mine\n1,2\n")
    with pytest.raises(ModelError, match=text):
        refuse_wrong_name(tmp_path / name)
    assert (tmp_path / "own.csv").read_text() == "run,mine\n1,2\n"


def test_parquet_without_its_library_names_the_library_and_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"t\.parquet: Parquet needs the library pyarrow: .*, or give a name .* \.csv"):
        refuse_wrong_name(tmp_path / "t.parquet")
    refuse_wrong_name(tmp_path / "t.csv")
