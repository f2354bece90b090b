"""rtmms list, doctor, bench and --help, and what is loaded to read the words."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from rtmms.cli import doctor
from rtmms.cli.reproduce import PAPERS
from tests.cli.shell import environment, rtmms


def test_list_names_the_plug_ins(tmp_path: Path) -> None:
    report = rtmms(tmp_path, "list", "--json").report
    assert set(report) == {"robots", "controllers", "bridges"}
    assert "pendulum" in [entry["name"] for entry in report["robots"]]
    swing = next(entry for entry in report["controllers"] if entry["name"] == "swing")
    assert swing["parameters"] == [{"name": "amplitude", "kind": "float", "default": 1.0, "required": False}]
    said = rtmms(tmp_path, "list", "controllers")
    assert "amplitude (float, default 1.0)" in said.out
    assert "robots" not in said.out


def test_list_alone_is_a_screen_and_a_name_tells_all_of_it(tmp_path: Path) -> None:
    said = rtmms(tmp_path, "list")
    every = [one for kind in rtmms(tmp_path, "list", "--json").report.values() for one in kind]
    assert said.out.count("\n") == len(every) + 4  # a line for each, for each kind, and how to go on
    assert sum(one["distribution"] == "rtmms" for one in every) + 4 <= 44
    assert "amplitude" not in said.out
    assert "amplitude (float, default 1.0)" in rtmms(tmp_path, "list", "swing").out
    robot = rtmms(tmp_path, "list", "pendulum", "--json").report
    assert [one["name"] for one in robot["actuators"]] == ["torque", "offset"]
    text = rtmms(tmp_path, "list", "pendulum").out
    for words in ("actuators:", "outputs:", "step 0.01 s"):
        assert words in text
    wrong = rtmms(tmp_path, "list", "pendulun")
    assert (wrong.status, "did you mean pendulum" in wrong.err) == (2, True)


def test_doctor_looks_at_everything_and_breaks_nothing(tmp_path: Path) -> None:
    said = rtmms(tmp_path, "doctor", "--json")
    assert said.status == 0
    topics = {finding["topic"] for finding in said.report["findings"]}
    assert {"python", "numba", "robots", "port 9870", "compiler cache", "cores"} <= topics
    assert rtmms(tmp_path, "doctor").out.count("\n") >= len(topics)


@pytest.mark.parametrize(("package", "state", "status"), [("numpy", "good", 0), ("no-such-package", "bad", 1)])
def test_doctor_says_of_a_package_what_is_so(
    package: str, state: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", (package,))
    for part in ("_plugins", "_ports", "_machine", "_real_time"):
        monkeypatch.setattr(doctor, part, list)
    assert doctor.doctor.main(["--json"], standalone_mode=False) == status
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] is (status == 0)
    assert next(finding["state"] for finding in said["findings"] if finding["topic"] == package) == state


def test_bench_without_a_name_lists(tmp_path: Path) -> None:
    assert json.loads(rtmms(tmp_path, "bench", "--json").out)["benchmarks"] == sorted(
        json.loads(rtmms(tmp_path, "bench", "--json").out)["benchmarks"]
    )


def test_help_and_version(tmp_path: Path) -> None:
    said = rtmms(tmp_path, "--help")
    assert said.status == 0
    for command in ("run", "serve", "control", "list", "replay", "reproduce", "bench", "doctor"):
        assert command in said.out


def test_every_paper_s_report_is_there() -> None:
    for module in PAPERS.values():
        assert callable(import_module(module).main)


def test_the_words_are_read_without_numpy_and_the_display_needs_neither_numpy_nor_numba(tmp_path: Path) -> None:
    code = (
        "import sys, rtmms.cli.main, rtmms.cli.run, rtmms.cli.serve\n"
        "import rtmms.cli.running.session, rtmms.cli.running.display\n"
        "from rtmms.cli.running.plan import plan\n"
        "plan('pendulum', {}, ('swing',))\n"
        "print([name for name in ('numpy', 'numba', 'scipy', 'hdrh', 'zmq') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True,
                          check=True, timeout=30)  # fmt: skip
    assert said.stdout.strip() == "[]"
