"""An FMU is a program within ours: what it prints, that it crashes, and that it ends us."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import process as command
from tests.fmi.lags import build

pytestmark = pytest.mark.full

ARGUMENTS = ("--controller", "none", "--mode", "free", "--dt", "0.01", "--duration", "0.2", "--quiet")


@pytest.mark.parametrize("flush", ["fflush(stdout)", "(void)0"])
def test_what_it_prints_is_not_the_report(tmp_path: Path, flush: str) -> None:
    path = build(tmp_path, 2, f'printf("noise\\n"); {flush}')
    result = command(tmp_path, "run", str(path), *ARGUMENTS, "--json", "--log", "a.mcap")
    assert result.status == 0, result.err
    assert result.report["steps"] == 20
    assert "noise" in result.err
    again = command(tmp_path, "replay", "a.mcap", "--json", "--trust-log")
    assert again.report["steps"] == 20
    assert "noise" in again.err


def test_without_json_the_report_stands_alone_too(tmp_path: Path) -> None:
    path = build(tmp_path, 2, 'printf("noise\\n")')
    result = command(tmp_path, "run", str(path), *ARGUMENTS)
    assert result.status == 0
    assert "noise" not in result.out
    assert "steps" in result.out


def test_a_crash_names_the_file(tmp_path: Path) -> None:
    path = build(tmp_path, 2, "*(volatile int *)0 = 1")
    result = command(tmp_path, "run", str(path), *ARGUMENTS, "--json")
    assert result.status < 0
    assert "Segmentation fault" in result.err
    assert f'File "{path}"' in result.err


def test_exit_names_the_file(tmp_path: Path) -> None:
    path = build(tmp_path, 2, "exit(3)")
    result = command(tmp_path, "run", str(path), *ARGUMENTS, "--json")
    assert result.status == 3
    assert f"rtmms: {path}: its code ended this process by exit()" in result.err
    well = command(tmp_path, "run", str(build(tmp_path, 2)), *ARGUMENTS, "--json")
    assert well.status == 0
    assert "exit()" not in well.err
