"""How a run ends when it is asked to, and what it reports of those that ended before it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.shell import environment, finish, rtmms, start


@pytest.mark.full
def test_ctrl_c_does_not_wait_for_the_end_of_a_long_step(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "pendulum", "--controller", "none", "--rate", "1e-5", "--json")
    assert process.stderr is not None
    next(line for line in process.stderr if line.startswith("exchange "))
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    result = finish(process, 60)
    assert (result.status, result.report["ended"]) == (130, "interrupt")


@pytest.mark.full
def test_a_killed_controller_is_dead_in_the_report_of_lockstep(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "die", "--mode", "lockstep", "--json", "--quiet")
    assert result.status == 1
    assert [(peer["name"], peer["state"]) for peer in result.report["exchange"]["peers"]] == [("die", "dead")]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--figure", "run.xyz"), "--figure run.xyz: expected a name that ends in .png"),
        (("--figure", "run"), "--figure run: expected a name that ends in .png"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_before_the_run(
    tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:  # fmt: skip
    result = rtmms(tmp_path, "run", "pendulum", *arguments)
    assert (result.status, result.out) == (2, "")
    assert text in result.err


@pytest.mark.full
def test_a_run_shorter_than_a_step_is_refused(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "none", "--duration", "0.004")
    assert (result.status, result.out) == (2, "")
    assert "--duration 0.004: expected at least one step, 0.01 s" in result.err


def test_an_endpoint_that_is_none_is_a_wrong_word(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "serve", "pendulum", "--exchange", "garbage")
    assert result.status == 2
    assert "exchange endpoint 'garbage'" in result.err


_PRESSED = """
import os, signal, sys
class Pressed:
    def find_spec(self, name, *_):
        if name == "rtmms.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
import rtmms_command
rtmms_command.main()
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_ctrl_c_while_the_command_is_being_imported_ends_it_in_silence(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _PRESSED], env=environment(tmp_path), capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_a_terminal_that_is_closed_ends_a_run_with_report_and_log(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "pendulum", "--controller", "swing", "--json", "--log", "run.mcap")
    assert process.stderr is not None
    next(line for line in process.stderr if "misses" in line)
    process.send_signal(signal.SIGHUP)
    result = finish(process)
    assert (result.status, result.report["ended"]) == (130, "interrupt")
    assert result.report["log"]["whole"] is True


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_without_any_standard_file_it_runs_and_its_log_is_not_written_into(tmp_path: Path) -> None:
    arguments = f"{sys.executable} -m rtmms run pendulum --controller none --duration 0.2 --log run.mcap <&- >&- 2>&-"
    done = subprocess.run(["sh", "-c", f"exec {arguments}"], cwd=tmp_path, env=environment(tmp_path), timeout=60)
    assert done.returncode == 0
    assert "whole" in rtmms(tmp_path, "log", "info", "run.mcap").out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "--log: expected the name of a file, got ''"),
        (b"\xff.mcap", r"--log '\udcff.mcap': expected a name in UTF-8"),
    ],
)
def test_a_log_without_a_name_or_not_in_utf_8_is_refused_as_it_was_written(
    tmp_path: Path, name: str | bytes, text: str
) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "none", "--log", os.fsdecode(name))
    assert result.status == 2
    assert text in result.err


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be deleted there")
def test_a_working_directory_that_was_deleted_is_reported(tmp_path: Path) -> None:
    program = "import os\nfrom rtmms.cli.main import main\nos.rmdir(os.getcwd())\nmain(['new', 'controller', 'mine'])"
    (tmp_path / "gone").mkdir()
    result = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path / "gone", env=environment(tmp_path), text=True,
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (
        1,
        "rtmms: the working directory was deleted; change to a folder that exists (cd)\n",
    )
