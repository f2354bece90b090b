"""Kills, flipped bits, foreign parts and changed files leave no wrong row: some trials of the attack."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.shell import ROOT, environment

pytestmark = [pytest.mark.full, pytest.mark.skipif(sys.platform != "linux", reason="the trials are forks")]


def test_no_row_of_a_table_is_wrong_after_an_attack(tmp_path_factory: pytest.TempPathFactory) -> None:
    """500 trials: `python -m tests.sweep.attack`."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("attack")
    done = subprocess.run(
        [sys.executable, "-m", "tests.sweep.attack", "12", "7"], cwd=ROOT, env=environment(folder),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 trials: 0 with wrong rows (0 rows), 0 without a table" in done.stdout
