"""Tables and shares of variance: parts that are damaged or of another study, columns with units."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
import numpy as np  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from rtmms.base.errors import ModelError, RtmmsError  # noqa: E402
from rtmms.sweep.figure import first_order  # noqa: E402
from rtmms.sweep.inputs import hash_of  # noqa: E402
from rtmms.sweep.study import Axis, Base, Study  # noqa: E402
from rtmms.sweep.table import Parts, rows_table, schema  # noqa: E402

pytestmark = pytest.mark.full


def made(method: str = "grid", samples: int = 0) -> Study:
    if method == "grid":
        axes = (Axis("drag", tuple(k / 10 for k in range(10))), Axis("word", ("a", "b")))
    else:
        axes = (Axis("drag", (), 0.0, 1.0), Axis("speed_m_s", (), 0.0, 1.0), Axis("none", (), 0.0, 1.0))
    return Study(Base("pendulum", duration=100.0, dt=0.01), axes, method, samples, 0, ("way_m",))


def table(study: Study, ways: list[float]) -> pa.Table:
    rows = [{"way_m": way, "ended": "duration", "steps": 1} for way in ways]
    return rows_table(study, schema(study, {"way_m": "m"}), 0, study.cases(), rows)


def test_units_stand_in_the_schema_and_missing_numbers_are_null() -> None:
    study = made()
    found = rows_table(study, schema(study, {"way_m": "m"}), 0, study.cases()[:2], [
        {"way_m": 1.5, "ended": "duration", "steps": 3}, {"ended": "refused", "reason": "no", "steps": 0},
    ])  # fmt: skip
    assert found.column_names == ["run", "drag", "word", "way_m", "ended", "reason", "steps"]
    assert found.schema.field("way_m").metadata == {b"unit": b"m"}
    assert found.column("way_m").to_pylist() == [1.5, None]
    assert found.column("word").to_pylist() == ["a", "b"]


def test_parts_are_taken_where_they_are_whole_and_of_this_study(tmp_path: Path) -> None:
    study = made()
    form, path = schema(study, {"way_m": "m"}), tmp_path / "t.parquet"
    parts = Parts(path, study, form)
    chunks = parts.open()
    assert [last - first for first, last in chunks] == [2] * 10  # 20,000 steps each
    whole = table(study, [0.1 * k for k in range(20)])
    for first, last in chunks:
        parts.write((first, last), whole.slice(first, last - first))
    parts.join(path)
    before = path.read_bytes()
    assert pq.read_table(path).equals(whole)
    assert not parts.folder.exists()

    again = Parts(path, study, form)
    again.open()
    for first, last in chunks[:6]:
        again.write((first, last), whole.slice(first, last - first))
    again.close()
    cut = again.file(chunks[2])
    cut.write_bytes(cut.read_bytes()[:-20])
    wrong = again.file(chunks[3])
    again.write(chunks[3], whole.slice(0, 2))  # rows of another chunk under its name
    (again.folder / "part-0000000000000000-00000000-00000002.parquet").write_bytes(b"PAR1")
    again.close()
    third = Parts(path, study, form)
    assert third.open() == [chunks[2], chunks[3], *chunks[6:]]
    message = " ".join(third.left_out)
    assert "is of another study or version" in message
    assert f"{cut.name} is damaged" in message
    assert f"{wrong.name} is damaged" in message
    for first, last in [chunks[2], chunks[3], *chunks[6:]]:
        third.write((first, last), whole.slice(first, last - first))
    third.join(path)
    assert path.read_bytes() == before


def test_no_flipped_bit_of_a_part_is_taken(tmp_path: Path) -> None:
    study = made()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    chunk = parts.open()[0]
    parts.write(chunk, table(study, [0.1 * k for k in range(20)]).slice(*chunk), {"none.csv": ""})
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
    study = made()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    for k, chunk in enumerate(parts.open()):
        parts.write(chunk, table(study, [0.0] * 20).slice(2 * k, 2))
    damaged = parts.file(parts.chunks()[4])
    damaged.write_bytes(damaged.read_bytes().replace(b"duration", b"durations", 1))
    with pytest.raises(RtmmsError, match="is damaged; run the same command again: it makes this part anew"):
        parts.join(tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()
    assert parts.open() == [parts.chunks()[4]]


def test_a_table_that_another_process_makes_is_refused(tmp_path: Path) -> None:
    study = made()
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
    study = made()
    form, late = schema(study, {"way_m": "m"}), tmp_path / "late.csv"
    late.write_text("1\n")
    parts = Parts(tmp_path / "t.parquet", study, form)
    chunks = parts.open()
    whole = table(study, [0.0] * 20)
    now = {str(late): hash_of(str(late))}
    for k, chunk in enumerate(chunks[:3]):
        parts.write(chunk, whole.slice(2 * k, 2), now if k == 1 else {})
    assert parts.open() == chunks[3:]
    late.write_text("22\n")
    with pytest.raises(RtmmsError, match=r"late\.csv: changed while the study ran; run the same command again"):
        parts.write(chunks[3], whole.slice(6, 2), {str(late): hash_of(str(late))})
    assert parts.open() == [chunks[1], *chunks[3:]]


def test_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    study = made()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    chunks = parts.open()
    left = parts.folder / f".{parts.file(chunks[0]).stem}.ab_1cd2e.part"
    own = parts.folder / ".part-of-mine.part"
    for file in (left, own):
        file.write_bytes(b"half")
    assert parts.open() == chunks
    assert (left.exists(), own.exists()) == (False, True)


def change(table: pa.Table, name: str, values: list[object]) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))


TAMPERED = {
    "values of another study": lambda part: change(part, "drag", [9.0, 9.0]),
    "runs of another chunk": lambda part: change(part, "run", [7, 8]),
    "an end that is no word": lambda part: change(part, "ended", ["\x1b]0;owned\x07", "duration"]),
    "an end that is missing": lambda part: change(part, "ended", [None, "duration"]),
    "another study's mark": lambda part: part.replace_schema_metadata({"rtmms": "{}"}),
    "another column": lambda part: part.append_column("more", pa.array([1, 2])),
    "rows without end": lambda part: pa.concat_tables([part] * 1000),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_part_that_somebody_else_made_is_done_again(tmp_path: Path, what: str) -> None:
    study = made()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    chunks = parts.open()
    part = table(study, [0.1 * k for k in range(20)]).slice(*chunks[0])
    parts.write(chunks[0], part)
    assert parts.open() == chunks[1:]
    parts.write(chunks[0], TAMPERED[what](part))
    assert parts.open() == chunks
    assert "is damaged, not of this study" in parts.left_out[-1]


def test_what_is_no_part_of_ours_is_neither_waited_for_nor_deleted(tmp_path: Path) -> None:
    study = made()
    parts = Parts(tmp_path / "t.parquet", study, schema(study, {"way_m": "m"}))
    chunks = parts.open()
    own = parts.folder / "part-00000-of-spark.parquet"
    own.write_bytes(b"PAR1 precious")
    first = parts.file(chunks[0])
    os.mkfifo(first)  # would be waited for
    with pytest.raises(ModelError, match=r"is no file of its own, .*: remove it"):
        parts.open()
    first.unlink()
    first.mkdir()
    with pytest.raises(ModelError, match="is no file of its own"):
        parts.open()
    with pytest.raises(RtmmsError, match=r"part-.*: Is a directory"):
        parts.write(chunks[0], table(study, [0.0] * 20).slice(0, 2))
    first.rmdir()
    for k, chunk in enumerate(parts.open()):
        parts.write(chunk, table(study, [0.0] * 20).slice(2 * k, 2))
    parts.join(tmp_path / "t.parquet")
    assert [one.name for one in parts.folder.iterdir()] == [own.name]
    elsewhere = tmp_path / "elsewhere"
    parts.folder.rename(elsewhere)
    parts.folder.symlink_to(elsewhere)
    with pytest.raises(ModelError, match="is a link"):
        parts.open()


def test_shares_of_a_grid_are_exact() -> None:
    study = made()
    drag, word = (np.array([case[k] for case in study.cases()]) for k in (0, 1))
    ways = 3.0 * drag + (word == "b")
    found = first_order(study, table(study, ways.tolist()), ("way_m",))
    assert found is not None
    of_drag, of_word = np.var(3.0 * np.arange(10) / 10), 0.25
    assert found["way_m"]["drag"] == pytest.approx(of_drag / (of_drag + of_word), rel=1e-12)
    assert found["way_m"]["word"] == pytest.approx(of_word / (of_drag + of_word), rel=1e-12)


def test_shares_of_samples_are_near_those_of_the_function() -> None:
    pytest.importorskip("SALib")
    study = made("sobol", 1024)
    cases = np.array(study.cases())
    found = first_order(study, table(study, (3.0 * cases[:, 0] + cases[:, 1]).tolist()), ("way_m",))
    assert found is not None
    assert found["way_m"]["drag"] == pytest.approx(0.9, abs=0.05)
    assert found["way_m"]["speed_m_s"] == pytest.approx(0.1, abs=0.05)
    assert abs(found["way_m"]["none"]) < 0.05


def test_too_few_samples_have_no_shares() -> None:
    study = made("lhs", 8)
    assert first_order(study, table(study, list(range(8))), ("way_m",)) is None
