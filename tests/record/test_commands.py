"""run --log, replay, log and plot as a user gives them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from rtmms.base.errors import ModelError
from rtmms.record.log import Step, open_log
from rtmms.record.log_location import part_of
from tests.cli.shell import finish, rtmms, start

RUN = ("run", "pendulum", "--controller", "swing", "--quiet", "--json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds run.mcap: a second in real time."""
    path = tmp_path_factory.mktemp("runs")
    result = rtmms(path, *RUN, "--duration", "1", "--set", "damping=0.3", "--seed", "2", "--log", "run.mcap")
    assert result.status == 0
    assert result.report["log"] == {"file": "run.mcap", "rows": 101, "dropped": 0, "whole": True}
    return path


@pytest.mark.full
def test_the_log_reports_what_the_report_reports(folder: Path) -> None:
    log = open_log(folder / "run.mcap")
    steps = [row for row in log.rows() if isinstance(row, Step)]
    assert log.end is not None
    report = log.end.fields["report"]
    counts = {word: sum(row.outcome == word for row in steps) for word in ("applied", "missed", "unclaimed")}
    exchange = report["exchange"]
    assert counts == {"applied": exchange["commands_applied"], "missed": exchange["misses"],
                      "unclaimed": exchange["unclaimed"]}  # fmt: skip
    assert (steps[-1].overruns, steps[-1].skipped) <= (report["schedule"]["overruns"], report["schedule"]["skipped"])
    assert {name: value.tolist() for name, value in log.split(steps[-1].outputs).items()} == report["final"]
    assert max(row.times[2] for row in steps) == pytest.approx(report["timing_us"]["plant"]["max"] * 1e3, rel=2e-3)
    assert log.origin["parameters"] == {"damping": 0.3}


@pytest.mark.full
@pytest.mark.parametrize(
    "texts", [("log", "info"), ("log", "csv"), ("plot",), ("replay",), ("compare", "run.mcap"), ("movie",)]
)
def test_every_command_that_reads_a_log_reports_that_it_was_cut_off(
    folder: Path, tmp_path: Path, texts: tuple[str, ...]
) -> None:
    whole = (folder / "run.mcap").read_bytes()
    (tmp_path / "run.mcap").write_bytes(whole)
    (tmp_path / "half.mcap").write_bytes(whole[: len(whole) // 2])
    built = {"csv": ("-o", "half.csv"), "plot": ("-o", "half.png"), "movie": ("-o", "half.gif")}.get(texts[-1], ())
    result = rtmms(tmp_path, *texts, "half.mcap", *built)
    assert "half.mcap: the log was cut off after" in result.err, (result.status, result.err)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["lockstep", "free"])
def test_a_run_in_any_mode_replays_to_the_same_bits(tmp_path: Path, mode: str) -> None:
    report = rtmms(tmp_path, *RUN, "--duration", "5", "--mode", mode, "--log", "run.mcap").report
    assert report["log"]["rows"] == 501
    result = rtmms(tmp_path, "replay", "run.mcap", "--check", "--json")
    assert result.status == 0
    assert (result.report["same"], result.report["steps"], result.report["unchecked"]) == (True, 500, None)
    assert result.report["final"] == report["final"]


@pytest.mark.full
def test_replay_of_a_realtime_run(folder: Path) -> None:
    result = rtmms(folder, "replay", "run.mcap", "--check")
    assert (result.status, result.out) == (0, "pendulum: 100 steps, the replay is identical bit for bit\n")


@pytest.mark.full
def test_info_csv_and_parquet(folder: Path) -> None:
    info = rtmms(folder, "log", "info", "run.mcap", "--json").report
    assert (info["robot"], info["steps"], info["seed"], info["ended"]) == ("pendulum", 100, 2, "duration")
    assert (info["whole"], info["missing"], info["dropped"]) == (True, 0, 0)
    assert "ended" in rtmms(folder, "log", "info", "run.mcap").out
    lines = rtmms(folder, "log", "csv", "run.mcap").out.splitlines()
    assert len(lines) == 101
    assert lines[0].startswith("run,step,time,outcome")
    assert rtmms(folder, "log", "csv", "run.mcap", "-o", "run.csv").out == ""
    assert (folder / "run.csv").read_text().splitlines() == lines
    result = rtmms(folder, "log", "parquet", "run.mcap")
    assert result.err == "run.parquet: 100 steps\n"
    assert (folder / "run.parquet").is_file()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("run", "pendulum", "--log", "no/run.mcap"), "--log no/run.mcap: there is no folder 'no'"),
        (("replay", "none.mcap"), "none.mcap: there is no such file"),
        (("log", "info", "none.mcap"), "none.mcap: there is no such file"),
        (("log", "csv", "run.mcap", "-o", "no/run.csv"), "-o no/run.csv: there is no folder 'no'"),
        (("log", "parquet", "run.mcap", "-o", "no/run.parquet"), "no/run.parquet: "),
        (("plot", "run.mcap", "-o", "no/x.png"), "there is no folder 'no'"),
    ],
)
def test_wrong_words_end_with_2(folder: Path, arguments: tuple[str, ...], text: str) -> None:
    result = rtmms(folder, *arguments)
    assert result.status == 2
    assert text in result.err
    assert "Traceback" not in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
def test_a_place_that_takes_nothing_at_the_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.mcap").symlink_to("/dev/full")
    result = rtmms(tmp_path, *RUN, "--duration", "1", "--log", "run.mcap")
    assert result.status == 2
    assert "--log run.mcap: is not a file; expected the name of one" in result.err
    result = rtmms(tmp_path, *RUN, "--duration", "1", "--log", "/dev/null")
    assert result.status == 2
    assert "--log /dev/null: is not a file; expected the name of one" in result.err


def test_a_missing_library_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rtmms.cli.running.plan import plan
    from rtmms.record.tables import write_parquet

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("rtmms.cli.running.plan.builder", lambda robot: None)
    with pytest.raises(ModelError, match="--log: logs need the library mcap: pip install mcap orjson"):
        plan("pendulum", {"log": folder / "x.mcap"})
    with pytest.raises(ModelError, match=r"Parquet needs the library pyarrow: pip install .*\[parquet\]"):
        write_parquet(None, folder / "x.parquet")  # type: ignore[arg-type]


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_from_outside_leaves_a_log(tmp_path: Path, number: int) -> None:
    run, log = start(tmp_path, *RUN, "--duration", "3600", "--log", "run.mcap"), tmp_path / "run.mcap"
    part = part_of(log)
    while run.poll() is None and not (part.exists() and part.stat().st_size > 20_000):
        time.sleep(0.02)
    os.kill(run.pid, number)
    result = finish(run)
    while not log.exists() or (end := open_log(log).end) is None:
        time.sleep(0.02)  # of a run that was killed, the writer ends by itself
    assert end.ended == ("interrupt" if number == signal.SIGINT else "killed")
    assert result.status == (130 if number == signal.SIGINT else -signal.SIGKILL)
    replayed = rtmms(tmp_path, "replay", "run.mcap", "--check")
    assert replayed.status == 0, replayed.err
    assert "the replay is identical" in replayed.out


@pytest.mark.full
def test_a_run_that_diverges_keeps_the_steps_before(tmp_path: Path) -> None:
    result = rtmms(tmp_path, *RUN, "--duration", "2", "--set", "diverge_at=0.5", "--log", "run.mcap")
    assert result.status == 1
    info = rtmms(tmp_path, "log", "info", "run.mcap", "--json").report
    assert (info["steps"], info["ended"], info["whole"]) == (50, "diverged", True)
    assert "diverged at t = 0.51 s" in info["message"]
    assert rtmms(tmp_path, "replay", "run.mcap", "--check").status == 0


@pytest.mark.full
def test_the_manta_s_log_replays_and_draws_the_figure_of_the_run(tmp_path: Path) -> None:
    import rtmms as package

    package.load("manta")  # compiled once, here
    arguments = ("run", "manta", "--mode", "lockstep", "--duration", "0.5", "--set", "chains=6", "--log", "m.mcap")
    report = rtmms(tmp_path, *arguments, "--quiet", "--json").report
    assert report["log"] == {"file": "m.mcap", "rows": 501, "dropped": 0, "whole": True}
    result = rtmms(tmp_path, "replay", "m.mcap", "--check", "--json")
    assert (result.status, result.report["final"]) == (0, report["final"])
    assert rtmms(tmp_path, "plot", "m.mcap", "-o", "m.png").status == 0
    assert (tmp_path / "m.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.full
def test_the_figure_from_the_log_is_that_of_the_run(tmp_path: Path) -> None:
    """Robot, path, means and joints; the timing apart, which the log keeps in whole nanoseconds."""
    arguments = (
        "run",
        "eel",
        "--mode",
        "free",
        "--duration",
        "2.5",
        "--set",
        "joints=3",
        "--log",
        "e.mcap",
        "--figure",
    )
    assert rtmms(tmp_path, *arguments, "run.png", "--quiet").status == 0
    assert rtmms(tmp_path, "plot", "e.mcap", "-o", "log.png").status == 0
    run, log = (image.imread(tmp_path / name) for name in ("run.png", "log.png"))
    above = int(0.8 * len(run))
    assert run.shape == log.shape
    assert (run[:above] < 0.9).any(axis=2).sum() > 10_000
    np.testing.assert_array_equal(run[:above], log[:above])
