"""rtmms run --degrade: overruns become changes of level, which stand in the log and replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmms.record.log import open_log
from tests.cli.shell import rtmms

RUN = ("run", "manta", "--set", "chains=160", "--controller", "none", "--quiet", "--json", "--duration", "0.4")


@pytest.mark.full
def test_changes_of_level_are_reported_and_replay(tmp_path: Path) -> None:
    """A hundred times as fast as the wall: no step of the full model fits."""
    result = rtmms(tmp_path, *RUN, "--degrade", "--rate", "100", "--log", "a.mcap", "--sensors", "typical")
    assert result.status == 0, result.err
    degrade = result.report["degrade"]
    assert degrade["levels"][0] == "full"
    assert degrade["changes"][0][1] == 1
    assert sum(degrade["steps"]) == result.report["steps"] == 400
    assert result.report["final"]["truth.level"] == degrade["changes"][-1][1]
    log = open_log(tmp_path / "a.mcap")
    assert log.origin["degrade"] is True
    assert {change["args"]["level"] for change in log.end.fields["changes"]} >= {1}  # type: ignore[union-attr]
    if result.report["log"]["dropped"]:
        pytest.skip("the disk was too slow for this log")
    replayed = rtmms(tmp_path, "replay", "a.mcap", "--check")
    assert replayed.status == 0, replayed.err
    assert "400 steps" in replayed.out


@pytest.mark.full
def test_without_it_a_log_sends_nothing_of_levels(tmp_path: Path) -> None:
    result = rtmms(tmp_path, *RUN, "--mode", "lockstep", "--log", "a.mcap")
    assert result.status == 0, result.err
    assert "degrade" not in result.report
    log = open_log(tmp_path / "a.mcap")
    assert "degrade" not in log.origin
    assert "level" not in {signal.name for signal in log.outputs}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("eel", "--degrade"), "--degrade: expected a robot with cheaper variants of its model"),
        (
            ("manta", "--degrade", "--mode", "lockstep"),
            "--degrade: expected --mode realtime or external",
        ),
        (("manta", "eel", "--degrade"), "--degrade: expected a run of one robot"),
    ],
)
def test_where_it_cannot_be_it_is_reported(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", *arguments, "--duration", "0.1", "--quiet")
    assert result.status == 2
    assert message in result.err
