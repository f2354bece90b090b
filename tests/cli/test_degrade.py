"""rtmms run --degrade: overruns become changes of level, which stand in the log and replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmms.record.log import open_log
from tests.cli.shell import rtmms

RUN = ("run", "manta", "--set", "chains=160", "--controller", "none", "--quiet", "--json", "--duration", "0.4")


@pytest.mark.full
def test_changes_of_level_are_told_and_replay(tmp_path: Path) -> None:
    """A hundred times as fast as the wall: no step of the full model fits."""
    said = rtmms(tmp_path, *RUN, "--degrade", "--rate", "100", "--log", "a.mcap", "--sensors", "typical")
    assert said.status == 0, said.err
    told = said.report["degrade"]
    assert told["levels"][0] == "full"
    assert told["changes"][0][1] == 1
    assert sum(told["steps"]) == said.report["steps"] == 400
    assert said.report["final"]["truth.level"] == told["changes"][-1][1]
    log = open_log(tmp_path / "a.mcap")
    assert log.origin["degrade"] is True
    assert {change["args"]["level"] for change in log.end.fields["changes"]} >= {1}  # type: ignore[union-attr]
    if said.report["log"]["dropped"]:
        pytest.skip("the disk was too slow for this log")
    replayed = rtmms(tmp_path, "replay", "a.mcap", "--check")
    assert replayed.status == 0, replayed.err
    assert "400 steps" in replayed.out


@pytest.mark.full
def test_without_it_a_log_says_nothing_of_levels(tmp_path: Path) -> None:
    said = rtmms(tmp_path, *RUN, "--mode", "lockstep", "--log", "a.mcap")
    assert said.status == 0, said.err
    assert "degrade" not in said.report
    log = open_log(tmp_path / "a.mcap")
    assert "degrade" not in log.origin
    assert "level" not in {signal.name for signal in log.outputs}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("eel", "--degrade"), "--degrade: this robot offers no cheaper variants of itself"),
        (
            ("manta", "--degrade", "--mode", "lockstep"),
            "--degrade: expected a mode with a schedule (realtime, external)",
        ),
        (("manta", "eel", "--degrade"), "--degrade: expected one robot"),
    ],
)
def test_where_it_cannot_be_it_is_told(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    said = rtmms(tmp_path, "run", *words, "--duration", "0.1", "--quiet")
    assert said.status == 2
    assert told in said.err
