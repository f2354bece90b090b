"""A log with a damaged place: what stands before and after it is read, and no report calls it whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rtmms.base.errors import ModelError
from rtmms.cli.main import rtmms
from rtmms.record.log import Step, open_log
from rtmms.record.records import records
from rtmms.record.rerun import rerun
from tests.pendulum import load as load_pendulum
from tests.record.runs import record

STEPS = 7000


@pytest.fixture(autouse=True)
def _plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rtmms.plant.loading.build_plant", lambda robot, dt, preset, **more: load_pendulum(dt, preset, **more)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "run.mcap"
    assert record(path, STEPS)["whole"]
    return path


def chunk_places(path: Path) -> list[tuple[int, int]]:
    """(where it begins, its length) of each chunk."""
    kinds = [record for record in records(path, "skip") if type(record).__name__ == "ChunkIndex"]
    return [(index.chunk_start_offset, index.chunk_length) for index in kinds]


def flipped(path: Path, at: int, into: Path, bit: int = 0) -> Path:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    into.write_bytes(content)
    return into


def called(*text: str) -> Result:
    return CliRunner().invoke(rtmms, text, standalone_mode=False)


def info(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(called("log", "info", str(path), "--json").stdout)
    return content


@pytest.mark.full
def test_a_sound_log_has_no_damage(written: Path) -> None:
    assert len(chunk_places(written)) >= 3
    result = info(written)
    assert (result["steps"], result["missing"], result["whole"], result["damage"]) == (STEPS, 0, True, [])
    assert called("replay", "--check", str(written)).return_value == 0


@pytest.mark.full
@pytest.mark.parametrize("part", ["content", "length", "code"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_flipped_bit_in_a_chunk_costs_that_chunk_alone(written: Path, tmp_path: Path, part: str, which: int) -> None:
    begin, length = chunk_places(written)[which]
    at, bit = {"content": (begin + length // 2, 0), "length": (begin + 3, 1), "code": (begin, 7)}[part]
    bad = flipped(written, at, tmp_path / "bad.mcap", bit)
    log = open_log(bad)
    steps = [row.step for row in log.rows() if isinstance(row, Step)]
    assert steps == sorted(steps)
    assert steps[-1] == STEPS - 1
    assert 0 < len(steps) < STEPS
    results = info(bad)
    assert (results["steps"], results["missing"], results["whole"]) == (len(steps), STEPS - len(steps), False)
    assert f"damaged at byte {begin}" in results["damage"][0]
    result = called("replay", "--check", str(bad))
    assert result.return_value == 1
    assert f"damaged at byte {begin}" in result.stderr
    assert "cannot be replayed to its end" in result.stderr


def test_the_last_chunk_lost_is_noticed_by_the_count_of_steps(written: Path, tmp_path: Path) -> None:
    begin, length = chunk_places(written)[-2]
    bad = flipped(written, begin + length // 2, tmp_path / "bad.mcap")
    result = rerun(open_log(bad))
    assert 0 < result.steps < STEPS
    assert "damaged" in result.unchecked
    assert info(bad)["missing"] == STEPS - result.steps


def test_fewer_steps_than_the_end_reports_fail_the_check(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(written)
    assert log.end is not None
    monkeypatch.setitem(log.end.fields, "steps", STEPS + 5)  # type: ignore[arg-type]
    assert rerun(log).unchecked == f"the log declares {STEPS + 5} steps, but {STEPS} are in it"


@pytest.mark.full
def test_a_flip_anywhere_ends_no_reader_in_a_traceback(written: Path, tmp_path: Path) -> None:
    size = written.stat().st_size
    rng, unread = np.random.default_rng(3), 0
    for at in rng.integers(8, size, 24):
        bad = flipped(written, int(at), tmp_path / "bad.mcap", int(rng.integers(8)))
        try:
            log = open_log(bad)
        except ModelError:  # the origin; its sentence is tried below
            continue
        steps = sum(isinstance(row, Step) for row in log.rows())
        assert steps == STEPS or log.damage
        unread += bool(log.damage)
    assert unread > 10


def test_an_origin_that_is_damaged_is_refused_in_a_sentence(written: Path, tmp_path: Path) -> None:
    bad = flipped(written, written.read_bytes().index(b'"robot"'), tmp_path / "bad.mcap")
    for arguments in (["log", "info"], ["log", "csv"], ["replay"], ["plot", "-o", "x.png"]):
        fault = called(*arguments, str(bad)).exception
        assert isinstance(fault, ModelError)
        assert "origin.json in the log cannot be read: damaged at byte" in str(fault)


def test_an_end_that_is_damaged_makes_the_log_less_than_whole(written: Path, tmp_path: Path) -> None:
    content = written.read_bytes()
    bad = flipped(written, content.index(b"end.json") + 60, tmp_path / "bad.mcap")
    assert open_log(bad).end is None
    assert info(bad)["whole"] is False
    assert called("replay", "--check", str(bad)).return_value == 1


def test_a_text_is_neither_a_log_nor_a_trace(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# words\n")
    fault = called("replay", str(tmp_path / "README.md")).exception
    assert isinstance(fault, ModelError)
    assert str(fault).endswith(
        "README.md: expected a log (run --log) or a trace of commands (run --trace), got another file"
    )


def test_zeros_in_place_of_the_end_are_one_place(written: Path, tmp_path: Path) -> None:
    begin, length = chunk_places(written)[1]
    content = written.read_bytes()[: begin + length]
    bad = tmp_path / "bad.mcap"
    with bad.open("wb") as file:
        file.write(content)
        file.truncate(len(content) + (1 << 26))  # a sparse file: none of it is on the disk
    damage = open_log(bad).damage
    assert len(damage) == 1
    assert damage[0].endswith(f"{1 << 26} bytes that are zero")
    output = called("log", "info", str(bad))
    assert len(output.output) < 5000
    assert called("replay", "--check", str(bad)).return_value == 1


def test_many_damaged_records_take_few_sentences(written: Path, tmp_path: Path) -> None:
    begin, length = chunk_places(written)[1]
    content, empty = written.read_bytes()[: begin + length], b"\x0c" + bytes(8)
    whole = b"\x0c" + (8).to_bytes(8, "little") + bytes(8)  # an empty record of metadata
    bad = tmp_path / "bad.mcap"
    bad.write_bytes(content + empty * 2000)
    assert len(open_log(bad).damage) == 1
    bad.write_bytes(content + (empty + whole) * 3000)
    damage = open_log(bad).damage
    assert len(damage) == 1000
    assert damage[-1].endswith("the last of 2001 such places")
