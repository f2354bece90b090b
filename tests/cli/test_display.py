"""What the display shows, from what the run writes on the board; the final report's plain values."""

from __future__ import annotations

import io
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.cli.running import display
from rtmms.cli.running.display import PAGE_BYTES, Board
from rtmms.cli.running.plan import Plan
from rtmms.cli.running.report import as_json, blank, to_json_types
from rtmms.cli.running.report_table import as_table
from rtmms.plant.description import describe_plant
from rtmms.robots import eel, moth

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the display is handed its files by descriptor")


@pytest.fixture
def board() -> Any:
    board = Board()
    yield board
    board.close()


def test_the_board_is_read_in_another_place_as_it_was_written(board: Board) -> None:
    other = Board(os.dup(board.descriptor))
    assert other.read() is None
    board.write({"phase": "running", "misses": 3})
    assert other.read() == {"phase": "running", "misses": 3}
    board.write({"phase": "done"})
    assert other.read() == {"phase": "done"}
    other.close()


def test_a_page_that_is_being_written_is_not_read(board: Board) -> None:
    board.write({"a": 1})
    board._page[0] |= 1  # as while it is written
    assert board.read() is None


def test_what_does_not_fit_leaves_what_stands(board: Board) -> None:
    board.write({"a": 1})
    board.write({"a": "x" * PAGE_BYTES})
    assert board.read() == {"a": 1}


def test_speed_height_and_heading_where_the_plant_has_them() -> None:
    half = math.radians(30) / 2
    outputs = {"velocity": [0.5, 0.1, 0.0], "position": [1.0, 2.0, -3.0],
               "quaternion": [math.cos(half), 0.0, 0.0, math.sin(half)]}  # fmt: skip
    assert display.speed(outputs) == 0.5
    assert display.height(outputs) == -3.0
    assert display.heading(outputs) == pytest.approx(30.0)
    for quantity in (display.speed, display.height, display.heading):
        assert quantity({}) is None
        assert quantity({"velocity": 1.0, "position": 2.0, "quaternion": [1.0]}) is None


def test_facts_name_what_is_known_and_nothing_else() -> None:
    robot, loop = display.facts({"time_s": 1.25, "duration_s": 20.0, "misses": 2, "overruns": 1,
                                 "exchange_p99_us": 98.7, "outputs": {"velocity": [0.5, 0, 0]}})  # fmt: skip
    assert robot == [("time", "1.2 / 20 s"), ("speed", "0.500 m/s")]
    assert loop == [("misses", "2"), ("overruns", "1"), ("exchange p99", "99 us")]
    assert display.facts({})[0] == [("time", "0.0 s")]


@pytest.mark.parametrize(
    ("medium", "shown"), [("water", ("depth", "3.00 m")), ("air", ("altitude", "-3.00 m")), ("", ("z", "-3.00 m"))]
)
def test_what_swims_has_a_depth_and_what_flies_an_altitude(medium: str, shown: tuple[str, str]) -> None:
    robot, _ = display.facts({"outputs": {"position": [1.0, 2.0, -3.0]}, "medium": medium})
    assert robot[1] == shown


def test_our_robots_report_what_they_move_in() -> None:
    for make, medium in (
        (lambda: rtmms.load("manta", chains=3, links=2), "water"), (lambda: eel.load(joints=2), "water"),
        (lambda: moth.load(start="rest"), "air"),
    ):  # fmt: skip
        plant = make()
        assert describe_plant(plant).medium == medium


def test_words_come_line_by_line_whole_and_with_their_author() -> None:
    with tempfile.TemporaryFile(buffering=0) as file:
        parts = display.ChildOutput({"controller gait": file.fileno()})
        file.write(b"one\ntw")
        assert parts.new_lines() == ["controller gait: one"]
        assert parts.new_lines() == []
        file.write(b"o\n\xff\n")
        assert parts.new_lines() == ["controller gait: two", "controller gait: \ufffd"]


def test_plain_lines_at_each_phase_and_then_every_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    screen = display.LineDisplay()
    running = {"phase": "running", "time_s": 1.0, "misses": 0}
    for now_s, content in ((0.0, None), (0.1, {"phase": "loading"}), (0.2, {"phase": "loading"}), (1.0, running),
                           (2.0, running), (6.1, running | {"misses": 4}), (12.0, {"phase": "done"})):  # fmt: skip
        screen.show(content, now_s)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "loading ..."
    assert [line.split("misses")[1].split()[0] for line in lines[1:]] == ["0", "4"]


def test_a_terminal_is_redrawn_and_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    screen = display.Terminal()
    screen.show({"phase": "waiting for gait"}, 0.0)
    screen.show({"phase": "running", "time_s": 1.0, "misses": 7}, 1.0)
    screen.close()
    assert "waiting for gait ..." in stream.getvalue()
    assert "7" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")  # the lines were taken away for the report


def test_the_display_ends_when_the_run_reports_it(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    board.write({"phase": "done", "messages": ["controller gait was ended by SIGKILL"]})
    display.show_until_done(board, display.ChildOutput({}), display.LineDisplay())
    assert capsys.readouterr().err == "controller gait was ended by SIGKILL\n"


def test_plain_has_json_s_own_types_and_no_nan() -> None:
    values = {"a": np.float64("nan"), "b": np.array([[1.0, np.inf]]), 3: (np.int64(2), True, None), "p": Path("x")}
    assert to_json_types(values) == {"a": None, "b": [[1.0, None]], "3": [2, True, None], "p": "x"}


def test_the_report_of_a_run_that_did_not_begin_is_an_object_and_a_table() -> None:
    report = blank(Plan(robot="manta"))
    assert '"ended": null' in as_json(report)
    assert "did not begin" in as_table(report)


def test_a_plain_line_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = {"velocity": [0.7381, 0.0, 0.0], "position": [1.0, 2.0, -3.0], "quaternion": [0.7071, 0.0, 0.0, 0.7071]}
    content = {
        "phase": "running", "time_s": 1234.5, "duration_s": 86400.0, "misses": 123456, "overruns": 654321,
        "exchange_p99_us": 12345.0, "real_time_factor": 123.456, "outputs": outputs,
    }  # fmt: skip
    screen = display.LineDisplay()
    screen.show(content, 10.0)
    line = capsys.readouterr().err.rstrip("\n")
    assert len(line) < 80
    assert line.startswith("time 1234.5 / 86400 s  misses 123456  overruns 654321  speed 0.738 m/s")
