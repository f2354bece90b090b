"""Logs: what is written is read back to the bit, whole or cut off, and replays."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmms.base.errors import ModelError
from rtmms.record.log import Start, Step, open_log
from rtmms.record.log_messages import Signal, Values, decode, encode
from rtmms.record.rerun import rerun
from rtmms.record.tables import columns, write_csv, write_parquet
from tests.growth import growth
from tests.pendulum import Pendulum
from tests.pendulum import load as load_pendulum
from tests.record.runs import loop_of, record, recorder

STEPS = 700


@pytest.fixture(autouse=True)
def _plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rtmms.plant.loading.build_plant", lambda robot, dt, preset, **more: load_pendulum(dt, preset, **more)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "run.mcap"
    assert record(path, STEPS) == {"file": str(path), "rows": STEPS + 1, "dropped": 0, "whole": True}
    return path


def by_hand(steps: int) -> list[tuple[np.ndarray, dict[str, Any]]]:
    """(command, outputs after it) of each step, without loop, ring or file."""
    plant, result = Pendulum(), []
    for step in range(steps):
        command = np.array([np.sin(0.1 * step), 0.5])
        plant.step(command)
        result.append((command, plant.observe()))
    return result


@pytest.mark.full
def test_every_step_is_in_the_log_to_the_bit(written: Path) -> None:
    log = open_log(written)
    start, *steps = list(log.rows())
    assert isinstance(start, Start)
    assert (start.step, start.seed) == (0, 0)
    assert [row.step for row in steps] == list(range(STEPS))
    for row, (command, outputs) in zip(steps, by_hand(STEPS), strict=True):
        assert isinstance(row, Step)
        assert row.command.tobytes() == command.tobytes()
        for name, value in log.split(row.outputs).items():
            assert value.tobytes() == outputs[name].tobytes()
        assert (row.outcome, row.seq, row.target_step, row.policy) == ("applied", row.step, row.step, "")
        wake, exchange, plant, slack = row.times
        assert (wake, slack) == (-1, -1)  # free mode has neither
        assert exchange >= 0
        assert plant > 0


@pytest.mark.full
def test_any_reader_of_mcap_reads_it(written: Path) -> None:
    from mcap.reader import make_reader

    with written.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        result = [(channel.topic, schema.encoding, json.loads(message.data), message.log_time)
                 for schema, channel, message in reader.iter_messages(log_time_order=False)]  # fmt: skip
        counts = {channel.topic: 0 for channel in reader.get_summary().channels.values()}  # type: ignore[union-attr]
        names = {attachment.name for attachment in reader.iter_attachments()}
    for topic, encoding, message, _ in result:
        counts[topic] += 1
        assert encoding == "jsonschema"
        assert message["timestamp"] == message["step"] * 0.01
    assert counts == {"/state": STEPS + 1, "/command": STEPS, "/outcome": STEPS, "/timing": STEPS, "/event": 1}
    assert [time for *_, time in result] == sorted(time for *_, time in result)
    assert names == {"origin.json", "columns.bin", "end.json", "state.bin"}


def test_the_origin_reports_what_was_run(written: Path) -> None:
    origin = open_log(written).origin
    assert (origin["robot"], origin["dt"], origin["seed"], origin["mode"]) == ("pendulum", 0.01, 0, "free")
    assert [channel["name"] for channel in origin["actuators"]] == ["torque", "offset"]
    assert origin["outputs"][3]["shape"] == [2, 4]
    assert {"rtmms", "python", "numpy", "mcap"} <= set(origin["versions"])


def test_a_log_cut_off_anywhere_opens_and_gives_a_beginning_of_the_run(written: Path, tmp_path: Path) -> None:
    content, cut = written.read_bytes(), tmp_path / "cut.mcap"
    name = content.index(b"origin.json")  # of an attachment: opcode, its length, two times, the length of its name
    after_origin = name - 20 + int.from_bytes(content[name - 28 : name - 20], "little")
    whole, lengths = [row.step for row in open_log(written).rows() if isinstance(row, Step)], set()
    assert open_log(written).end is not None
    for size in np.linspace(after_origin, len(content) - 1, 60).astype(int):
        cut.write_bytes(content[:size])
        log = open_log(cut)
        steps = [row.step for row in log.rows() if isinstance(row, Step)]
        assert steps == whole[: len(steps)]
        assert log.end is None or not log.end.whole
        lengths.add(len(steps))
    assert 0 in lengths
    assert STEPS in lengths


def test_a_replay_gives_the_same_bits(written: Path) -> None:
    result = rerun(open_log(written))
    assert (result.steps, result.first, result.unchecked) == (STEPS, None, "")


def test_a_replay_names_the_first_step_and_quantity_that_differ(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Pendulum):
        def observe(self) -> dict[str, Any]:
            outputs = super().observe()
            if self.state[2] > 4.199:
                outputs["shape"][1, 2] = np.nextafter(outputs["shape"][1, 2], 10.0)
            return outputs

    monkeypatch.setattr("rtmms.plant.loading.build_plant", lambda *_, **__: Other())
    first = rerun(open_log(written)).first
    assert first is not None
    assert (first.step, first.quantity) == (419, "shape[1][2]")


def test_a_replay_notices_a_state_at_the_end_that_no_output_shows(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(Pendulum):
        def snapshot(self) -> bytes:
            return super().snapshot()[:-1] + b"x"

    monkeypatch.setattr("rtmms.plant.loading.build_plant", lambda *_, **__: Other())
    first = rerun(open_log(written)).first
    assert first is not None
    assert (first.step, first.quantity) == (STEPS - 1, "state")


@pytest.mark.full
@pytest.mark.parametrize(("seed", "unchecked"), [(3, ""), (1 << 70, "the seed of a reset was too large to be kept")])
def test_a_reset_begins_a_run_of_its_own_and_replays(tmp_path: Path, seed: int, unchecked: str) -> None:
    plant = Pendulum()
    stored = recorder(tmp_path / "run.mcap", plant)
    loop = loop_of(plant, stored, 50)
    try:
        loop.run()
        loop.ended = ""
        loop.restart(seed)
        loop.steps = 30
        loop.run()
        stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    log = open_log(tmp_path / "run.mcap")
    starts = [row for row in log.rows() if isinstance(row, Start)]
    assert starts[0].seed == 0
    assert unchecked or starts[-1].seed == seed
    result = rerun(log)
    assert (result.steps, result.first, result.unchecked) == (50 if unchecked else 80, None, unchecked)


@pytest.mark.full
def test_a_replay_stops_where_the_state_was_changed(tmp_path: Path) -> None:
    plant = Pendulum()
    stored = recorder(tmp_path / "run.mcap", plant)
    loop = loop_of(plant, stored, 40)
    try:
        loop._begin()
        for step in range(40):
            if step == 25:
                plant.state[0] += 0.1
                loop.altered()
            loop.advance(step)
        stored.finish({"ended": "duration", "message": "", "steps": 40}, None)
    finally:
        stored.close()
    result = rerun(open_log(tmp_path / "run.mcap"))
    assert (result.steps, result.first) == (25, None)
    assert result.unchecked == "a request changed the state of the run at step 25"


@pytest.mark.full
def test_csv_and_parquet_hold_the_same_numbers(written: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    log, names = open_log(written), None
    with (tmp_path / "run.csv").open("w", newline="") as file:
        assert write_csv(log, file) == STEPS
    assert write_parquet(log, tmp_path / "run.parquet") == STEPS
    table = pq.read_table(tmp_path / "run.parquet").to_pydict()
    with (tmp_path / "run.csv").open(newline="") as file:
        names, *lines = list(csv.reader(file))
    assert names == list(table) == list(columns(log))
    steps = [row for row in log.rows() if isinstance(row, Step)]
    assert len(lines) == STEPS
    for at, line in enumerate(lines):
        result = dict(zip(names, line, strict=True))
        expected = steps[at].command.tolist() + steps[at].outputs.tolist()
        assert [float(text) for text in line[-len(expected) :]] == expected
        assert [table[name][at] for name in names[-len(expected) :]] == expected
        assert (result["outcome"], result["step"]) == ("applied", str(at))
        assert table["plant_ns"][at] == int(result["plant_ns"]) == steps[at].times[2]
        assert result["slack_ns"] == ""
        assert table["slack_ns"][at] is None


@pytest.mark.parametrize(("content", "reason"), [
    (b"", "is not an MCAP file"), (b"junk", "is not an MCAP file"),
    (b"\x89MCAP0\r\n", "is an MCAP file, but not a log of rtmms"),
    (b"\x89MCAP0\r\n" + bytes(100), "origin.json in the log cannot be read: damaged at byte 8"),
])  # fmt: skip
def test_something_else_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.mcap").write_bytes(content)
    with pytest.raises(ModelError, match=rf"x\.mcap: {re.escape(reason)}"):
        open_log(tmp_path / "x.mcap")


def test_numbers_that_are_none_and_beyond_all_come_back() -> None:
    result = Values([Signal("a.b", "", (), ""), Signal("a.c", "", (2,), ""), Signal("d", "", (2, 2), "")])
    numbers = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1, 1.7976931348623157e308]
    text = encode(result.fields(numbers))
    assert b"NaN" not in text
    assert b"Infinity" not in text
    for read in (decode, json.loads):
        assert np.array(result.numbers(read(text))).tobytes() == np.array(numbers).tobytes()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_finite_numbers_come_back_to_the_bit_either_way(numbers: list[float]) -> None:
    for text in (encode(numbers), encode(numbers, finite=True)):
        for read in (decode, json.loads):
            assert np.array(read(text), dtype=float).tobytes() == np.array(numbers).tobytes()


def test_a_name_that_begins_another_is_not_nested() -> None:
    result = Values([Signal("left", "", (), ""), Signal("left.front", "", (), "")])
    assert result.fields([1.0, 2.0]) == {"left": 1.0, "left.front": 2.0}
    assert result.numbers({"left": 1.0, "left.front": 2.0}) == [1.0, 2.0]


@pytest.mark.full
def test_recording_keeps_no_object_of_a_step(tmp_path: Path) -> None:
    plant = Pendulum()
    stored = recorder(tmp_path / "run.mcap", plant)
    loop = loop_of(plant, stored, None)
    try:
        loop._begin()

        def advance(steps: int) -> None:
            for _ in range(steps):
                loop.advance(loop.step)

        advance(300)
        assert growth(lambda: advance(2000)) < 100
    finally:
        stored.close()


class Tuned(Pendulum):
    """Its length can be set."""

    length = 1.0

    def set(self, length: float) -> None:
        self.length = length

    def step(self, command: np.ndarray) -> None:
        super().step(command * self.length)


@pytest.mark.full
@pytest.mark.parametrize(("resets", "truncated"), [(False, False), (True, False), (False, True)])
def test_parameters_that_were_set_are_set_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resets: bool, truncated: bool
) -> None:
    monkeypatch.setattr("rtmms.plant.loading.build_plant", lambda robot, dt, preset, **more: Tuned())
    plant = Tuned()
    stored = recorder(tmp_path / "run.mcap", plant)
    loop = loop_of(plant, stored, 40)

    def change(length: float) -> None:
        plant.set(length=length)
        loop.altered(op="set", args={"length": length})

    try:
        loop._begin()
        for step in range(20):
            if step in (5, 6):
                change(2.0 * step)
                change(float(step))
            loop.command[:] = 0.1
            loop.advance(step)
        if resets:
            change(3.0)
            loop.restart(4)
            for step in range(10):
                if step == 5:
                    change(0.5)
                loop.command[:] = 0.1
                loop.advance(step)
        if not truncated:
            stored.finish({"ended": "duration", "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    result = rerun(open_log(tmp_path / "run.mcap"))
    if truncated:
        assert (result.steps, result.first) == (5, None)
        assert result.unchecked == "a request changed the state of the run at step 5"
    else:
        assert (result.steps, result.first, result.unchecked) == (30 if resets else 20, None, "")


@pytest.mark.full
def test_set_points_stand_in_the_log_where_they_changed(tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, 300)
    after_step = stored.after_step

    def noted(step: int, *remaining: Any) -> None:
        if step in (20, 250):
            stored.note_set_points(step, {"angle_deg": float(step), "way": "x" * 4000})
        after_step(step, *remaining)

    stored.after_step = noted  # type: ignore[method-assign]
    try:
        outcome = loop.run()
        stored.finish({"ended": outcome.ended, "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    rows = [row for row in open_log(path).rows() if isinstance(row, Step)]
    assert len(rows) == 300
    assert {row.step: row.set_points["angle_deg"] for row in rows if row.set_points} == {20: 20.0, 250: 250.0}


@pytest.mark.full
def test_what_peers_want_noted_stands_before_its_step(tmp_path: Path) -> None:
    path, plant = tmp_path / "run.mcap", Pendulum()
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, 40)
    after_step = stored.after_step

    def noted(step: int, *remaining: Any) -> None:
        after_step(step, *remaining)
        if step in (9, 29):
            loop.note({"grants": [float(step), 0.5], "by": "helics"})

    stored.after_step = noted  # type: ignore[method-assign]
    try:
        outcome = loop.run()
        stored.finish({"ended": outcome.ended, "message": "", "steps": loop.step}, plant.snapshot())
    finally:
        stored.close()
    rows = [row for row in open_log(path).rows() if isinstance(row, Step)]
    result = {row.step: row.notes for row in rows if row.notes}
    assert result == {k: ({"grants": [k - 1.0, 0.5], "by": "helics"},) for k in (10, 30)}
