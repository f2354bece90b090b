"""What the system does not give, and files that nobody would write: one sentence each, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import environment, rtmms

RUN = ("run", "pendulum", "--controller", "none", "--mode", "free", "--duration", "0.1", "--quiet")


def limited(tmp_path: Path, limit: str, *text: str) -> subprocess.CompletedProcess[str]:
    """`rtmms WORDS` with little of something; 'fsize:0' in resource's words."""
    name, _, value = limit.partition(":")
    code = (
        f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_{name.upper()}, ({value}, {value}));"
        "os.execv(sys.executable, [sys.executable, '-m', 'rtmms.cli.main', *sys.argv[1:]])"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *text], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX's")
@pytest.mark.parametrize("limit", ["fsize:1", "fsize:4096", "nofile:12"])
def test_a_limit_of_the_system_is_reported_in_a_sentence(tmp_path: Path, limit: str) -> None:
    result = limited(tmp_path, limit, *RUN, "--log", "run.mcap")
    assert result.returncode in (1, 2)
    assert "Traceback" not in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("rtmms: ")
    assert not (tmp_path / "run.mcap").exists()


@pytest.mark.full
@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "{b=" * 5000, "a = 1\n" * 10, "\xff", "x" * 5_000_000]
)
def test_a_preset_that_nobody_would_write_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.toml").write_text(text, encoding="latin-1")
    result = rtmms(tmp_path, "run", "manta", "--preset", "p.toml")
    assert result.status == 2
    assert result.err.splitlines()[-1].startswith("rtmms: --preset p.toml: ")
    assert "Traceback" not in result.err


@pytest.mark.full
def test_a_preset_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.toml")
    result = rtmms(tmp_path, "run", "manta", "--preset", "p.toml")
    last = result.err.splitlines()[-1]
    assert (result.status, last) == (2, "rtmms: --preset p.toml: is not a file; expected a TOML file")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_runtime_directory_of_somebody_else_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "rtmms").mkdir()
    os.chown(tmp_path / "rtmms", 12345, -1)
    result = rtmms(tmp_path, *RUN)
    assert result.status == 1
    assert result.err.endswith("expected a directory of your own; set XDG_RUNTIME_DIR to one\n")
    assert "Traceback" not in result.err
