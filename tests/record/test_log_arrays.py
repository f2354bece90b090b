"""rtmms.read_log: the same numbers from columns and from messages, past damage, for any robot."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
import rtmms.record.columns
import rtmms.record.log_arrays
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.plant.protocol import Channel
from rtmms.record.columns import ColumnWriter, find_columns
from rtmms.record.log import Log, Step, open_log
from rtmms.record.log_arrays import LogArrays
from rtmms.record.log_messages import Signal
from rtmms.record.records import COLUMNS
from tests.cli.shell import rtmms as shell
from tests.pendulum import Pendulum
from tests.record.runs import loop_of, record, recorder
from tests.record.test_damage import chunk_places, flipped

STEPS = 4200


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arrays") / "run.mcap"
    record(path, STEPS)
    return path


def steps_of(path: Path) -> list[Step]:
    return [row for row in open_log(path).rows() if isinstance(row, Step)]


def without_columns(path: Path) -> LogArrays:
    """The log as one that has no columns."""
    log = rtmms.read_log(path)
    log._columns = None
    return log


def assert_same_as_messages(log: LogArrays, path: Path) -> None:
    steps, opened = steps_of(path), open_log(path)
    assert log.step.tolist() == [step.step for step in steps]
    assert log.outcomes.tolist() == [step.outcome for step in steps]
    np.testing.assert_array_equal(log.time, [(step.step + 1) * opened.origin["dt"] for step in steps])
    commands = np.array([step.command for step in steps])
    np.testing.assert_array_equal(np.stack([*log.commands.values()], axis=1), commands)
    for name, values in log.items():
        expected = np.array([opened.split(step.outputs)[name] for step in steps])
        np.testing.assert_array_equal(values, expected)


def no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have reading of messages fail."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("the messages were read")

    monkeypatch.setattr(Log, "rows", refuse)
    monkeypatch.setattr(Log, "events", refuse)


def test_columns_and_messages_have_the_same_bits(written: Path) -> None:
    assert find_columns(written) is not None
    assert_same_as_messages(rtmms.read_log(written), written)
    assert_same_as_messages(without_columns(written), written)


def test_a_channel_is_read_alone_once_and_without_messages(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_messages(monkeypatch)
    log = rtmms.read_log(written)
    names = list(log)
    assert log[names[0]] is log[names[0]]
    assert list(log._loaded) == names[:1]
    assert (len(log), names[0] in log, "position" in log) == (len(names), True, False)
    assert not log[names[0]].flags.writeable
    assert (log.time.shape, log.outcomes.shape, log.outcomes[0]) == ((STEPS,), (STEPS,), "applied")
    assert (log.info["robot"], log.info["steps"], log.info["ended"]) == ("pendulum", STEPS, "duration")
    assert log.notes == ()
    assert log.set_points == {}
    assert "pendulum, 4200 steps" in repr(log)


def test_an_unknown_channel_names_the_near_ones(written: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown output 'angel'; did you mean angle"):
        rtmms.read_log(written)["angel"]


def test_no_such_file_and_no_log(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such file"):
        rtmms.read_log(tmp_path / "none.mcap")
    (tmp_path / "text.mcap").write_text("no log")
    with pytest.raises(ModelError, match="is not an MCAP file"):
        rtmms.read_log(str(tmp_path / "text.mcap"))


@pytest.mark.full
def test_set_points_hold_from_their_step_until_the_next_change_or_reset(tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    stored = recorder(path, plant)
    changes = {
        (0, 1): {"depth_m": 2.0, "cross_track_m": "circle"},
        (0, 3): {"speed_m_s": 0.5},
        (1, 2): {"depth_m": 1.0},
    }
    row, runs = stored.after_step, list[int]()

    def noted(step: int, *remaining: Any) -> None:
        if (runs[-1], step) in changes:
            stored.note_set_points(step, changes[runs[-1], step])
        row(step, *remaining)

    stored.after_step = noted  # type: ignore[method-assign]
    try:
        for run in range(2):
            runs.append(run)
            loop_of(plant, stored, 5).run()
            stored.clear()
        stored.finish({"ended": "steps", "message": "", "steps": 5}, None)
    finally:
        stored.close()
    nan = np.nan
    for log in (rtmms.read_log(path), without_columns(path)):
        assert list(log.run) == [0] * 5 + [1] * 5
        assert set(log.set_points) == {"depth_m", "speed_m_s"}
        np.testing.assert_array_equal(log.set_points["depth_m"], [nan, 2, 2, nan, nan, nan, nan, 1, 1, 1])
        np.testing.assert_array_equal(log.set_points["speed_m_s"], [nan, nan, nan, 0.5, 0.5] + [nan] * 5)
        assert log.notes == ()


@pytest.mark.full
def test_resets_and_notes(tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, 3)
    try:
        stored.start(plant.observe())
        stored.note(0, {"text": "begin"})
        loop.run()
        stored.clear()
        stored.start(plant.observe())
        stored.finish({"ended": "steps", "message": "", "steps": 3}, None)
    finally:
        stored.close()
    for log in (rtmms.read_log(path), without_columns(path)):
        assert [(note["step"], note["values"]) for note in log.notes] == [(0, {"text": "begin"})]
        assert len(log.run) == 3
        assert set(log.run.tolist()) <= {0, 1}


def test_a_log_that_was_cut_off_is_read_to_its_end_with_a_note(written: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.mcap"
    content = written.read_bytes()
    places = chunk_places(written)  # a slow writer ends a chunk with the first row alone
    largest = max(range(len(places) - 1), key=lambda k: places[k][1])
    cut.write_bytes(content[: places[largest + 1][0] + 40])
    log = rtmms.read_log(cut)
    assert 0 < len(log.time) < STEPS
    assert_same_as_messages(log, cut)
    assert log.notes == ({"text": "the log was cut off: it has no end"},)
    assert log.info["ended"] is None


def test_a_damaged_chunk_is_a_note(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, length = max(chunk_places(written), key=lambda place: place[1])
    bad = flipped(written, begin + length // 2, tmp_path / "bad.mcap")
    log = rtmms.read_log(bad)
    name = next(iter(log))
    full = log[name]
    assert len(full) == STEPS  # the columns are sound
    assert any(f"damaged at byte {begin}" in note["text"] for note in log.notes)
    assert_same_as_messages(without_columns(bad), bad)
    monkeypatch.setattr(rtmms.record.columns.Columns, "has", lambda *_: False)
    partly = rtmms.read_log(bad)[name]  # steps from columns, the output from messages
    there = {row.step for row in steps_of(bad)}
    assert np.isnan(partly).sum() == STEPS - len(there) > 0
    np.testing.assert_array_equal(partly[sorted(there)], full[sorted(there)])


def test_damaged_columns_are_replaced_by_messages(written: Path, tmp_path: Path) -> None:
    content = written.read_bytes()
    first = content.index(COLUMNS.encode())
    for at in (first + 60, first + 2000, first - 5):
        bad = flipped(written, at, tmp_path / "bad.mcap")
        assert open_log(bad).damage
        assert_same_as_messages(rtmms.read_log(bad), bad)


@pytest.mark.full
def test_a_flip_anywhere_ends_in_no_traceback(written: Path, tmp_path: Path) -> None:
    size, rng = written.stat().st_size, np.random.default_rng(5)
    for at in rng.integers(8, size, 6):
        bad = flipped(written, int(at), tmp_path / "bad.mcap", int(rng.integers(8)))
        try:
            log = rtmms.read_log(bad)
            shapes = {len(log.time), *(len(values) for values in log.values())}
            notes = log.notes
        except ModelError:
            continue
        assert len(shapes) == 1
        assert shapes == {STEPS} or notes


# --- columns of somebody else's making --------------------------------------------------------------------------------


def with_columns(sound: Path, path: Path, change: Callable[[dict[str, Any], bytes], bytes]) -> Path:
    """The log with its columns replaced."""
    from mcap.reader import make_reader
    from mcap.writer import Writer

    with sound.open("rb") as file, path.open("wb") as out:
        reader, writer = make_reader(file), Writer(out)
        writer.start()
        for iter_attachment in reader.iter_attachments():
            data = iter_attachment.data
            if iter_attachment.name == COLUMNS:
                length = struct.unpack_from("<I", data)[0]
                data = change(json.loads(data[8 : 8 + length]), data[8 + length :])
            writer.add_attachment(0, 0, iter_attachment.name, iter_attachment.media_type, data)
        writer.finish()  # type: ignore[no-untyped-call]
    return path


def packed(table: Any, parts: bytes) -> bytes:
    import zlib

    text = json.dumps(table).encode()
    return struct.pack("<II", len(text), zlib.crc32(text)) + text + parts


def placed(table: dict[str, Any], place: Any) -> dict[str, Any]:
    return {**table, "columns": dict.fromkeys(table["columns"], place)}


TABLES: dict[str, Callable[[dict[str, Any], bytes], bytes]] = {
    "no table": lambda table, parts: b"",
    "a list": lambda table, parts: packed([table], parts),
    "no rows": lambda table, parts: packed({**table, "rows": -1}, parts),
    "many rows": lambda table, parts: packed({**table, "rows": 1 << 60}, parts),
    "a row too many": lambda table, parts: packed({**table, "rows": table["rows"] + 1}, parts),
    "no columns": lambda table, parts: packed({**table, "columns": {}}, parts),
    "columns that are none": lambda table, parts: packed({**table, "columns": 3}, parts),
    "a place beyond": lambda table, parts: packed(placed(table, [1 << 60, 9, 9]), parts),
    "a place before": lambda table, parts: packed(placed(table, [-90, 9, 9]), parts),
    "words as places": lambda table, parts: packed(placed(table, "abc"), parts),
    "outcomes that are none": lambda table, parts: packed({**table, "outcomes": ["applied", "x"]}, parts),
    "no outcomes": lambda table, parts: packed({**table, "outcomes": [[]]}, parts),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_columns_that_no_run_wrote_are_not_used(written: Path, tmp_path: Path, name: str) -> None:
    log = rtmms.read_log(with_columns(written, tmp_path / "bad.mcap", TABLES[name]))
    assert log.time.shape == (0,)  # that file has no messages
    assert log.outcomes.shape == (0,)


def test_a_large_array_from_a_small_log_is_refused(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtmms.record.columns, "MIN_ARRAY_BYTES", 1 << 10)
    monkeypatch.setattr(rtmms.record.columns, "MAX_ARRAY_RATIO", 0)
    for log in (rtmms.read_log(written), without_columns(written)):
        with pytest.raises(ModelError, match="expected an array of at most 0 MiB"):
            log.time  # noqa: B018


def test_large_outputs_have_no_column() -> None:
    result = [Signal("a", "", (2,), ""), Signal("large", "", (20,), ""), Signal("b", "", (), "")]
    assert [name for name, *_ in ColumnWriter([Signal("u", "", (), "")], result)._columns] == [
        "command u", "output a", "output b",
    ]  # fmt: skip


# --- other libraries, and the command line ----------------------------------------------------------------------------


@pytest.mark.full
def test_pandas(written: Path) -> None:
    pytest.importorskip("pandas")
    log = rtmms.read_log(written)
    table = log.to_pandas()
    assert table.index.name == "time"
    assert table.shape[0] == STEPS
    assert list(table.columns[:3]) == ["run", "step", "outcome"]
    name = next(name for name, item in log.items() if item.ndim == 1)
    np.testing.assert_array_equal(table[name], log[name])


@pytest.mark.full
def test_xarray(written: Path) -> None:
    pytest.importorskip("xarray")
    log = rtmms.read_log(written)
    data = log.to_xarray()
    assert data.sizes["time"] == STEPS
    assert data.attrs["robot"] == "pendulum"
    for name in log:
        np.testing.assert_array_equal(data[name], log[name])


@pytest.mark.full
def test_one_pass_reads_all_outputs_without_columns(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    whole, log, passes = rtmms.read_log(written).to_pandas(), without_columns(written), list[int]()
    assert len(log.step) == STEPS  # the pass that finds the steps
    read = rtmms.record.log_arrays._read_messages

    def counted(log: Log, signals: Sequence[Signal] = ()) -> Any:
        passes.append(len(signals))
        return read(log, signals)

    monkeypatch.setattr(rtmms.record.log_arrays, "_read_messages", counted)
    table = log.to_pandas()
    assert passes == [len(log), 0], "outputs, then commands"
    assert table.equals(whole)


def test_a_library_that_is_missing_is_named(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmms.record.log_arrays.find_spec", lambda _: None)
    log = rtmms.read_log(written)
    for method, library in ((log.to_pandas, "pandas"), (log.to_xarray, "xarray")):
        with pytest.raises(ModelError, match=f"needs the library {library}: pip install {library}"):
            method()


def test_tables_of_some_outputs_and_steps(written: Path, tmp_path: Path) -> None:
    def lines(*options: str) -> list[list[str]]:
        done = shell(tmp_path, "log", "csv", str(written), *options)
        assert done.status == 0
        return [line.split(",") for line in done.out.splitlines()]

    full, subset = lines(), lines("--outputs", "ang*", "--every", "7")
    columns = [k for k, name in enumerate(full[0]) if name in subset[0]]
    assert [full[0][k] for k in columns] == subset[0]
    assert "angle" in subset[0]
    assert len(subset[0]) < len(full[0])
    untimed = [k for k, name in enumerate(subset[0]) if not name.endswith("_ns")]
    for item, other in zip(subset[1:], full[1::7], strict=True):
        picked = [other[k] for k in columns]
        assert [item[k] for k in untimed] == [picked[k] for k in untimed]


@pytest.mark.full
def test_read_log_loads_no_compiler(written: Path) -> None:
    program = "import sys, rtmms; rtmms.read_log(sys.argv[1]).time; print({'numba', 'scipy', 'zmq'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program, str(written)], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


class Swimmer(Pendulum):
    """A pendulum with a position."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs = (*self.outputs, Channel("position", "m", (3,), "world"))

    def observe(self) -> dict[str, Any]:
        return super().observe() | {"position": self.state.copy()}


@pytest.mark.full
def test_the_program_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    page = Path(__file__).parents[2] / "docs" / "log.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "run.mcap", 4, Swimmer())
    names: dict[str, Any] = {}
    exec(compile(code, "log.md", "exec"), names)
    assert names["log"]["position"].shape == (4, 3)
