"""Runs that go wrong though the words were right: warnings of what is late, a plant that raises by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import rtmms


@pytest.mark.full
def test_a_rate_that_the_machine_cannot_keep_is_reported_before_and_after(tmp_path: Path) -> None:
    result = rtmms(tmp_path, "run", "pendulum", "--controller", "none", "--rate", "1e6", "--duration", "2", "--json")
    assert result.status == 0
    assert "warning: a step takes up to" in result.err
    assert any("steps ended late" in line for line in result.report["warnings"])


@pytest.mark.full
def test_what_is_not_late_is_not_warned_of(tmp_path: Path) -> None:
    arguments = ("--controller", "swing", "--mode", "lockstep", "--duration", "0.5", "--json")
    result = rtmms(tmp_path, "run", "pendulum", *arguments)
    assert result.report["warnings"] == []
    assert "warning" not in result.err


LATE = """
import numpy as np
from rtmms import Channel
class Late:
    dt, actuators, outputs = 1e-3, (Channel("u"),), (Channel("x"),)
    def __init__(self): self.reset()
    def reset(self, seed=0): self.k = 0
    def step(self, command):
        self.k += 1
        if self.k == 5000:
            raise ValueError("the user's own fault")
    def observe(self): return {"x": np.array(float(self.k))}
    def snapshot(self): return b"%d" % self.k
    def restore(self, blob): self.k = int(blob)
"""


def test_a_plant_of_ones_own_that_raises_in_the_trial_before_the_run_has_its_place_named(tmp_path: Path) -> None:
    (tmp_path / "soon.py").write_text(LATE.replace("5000", "50"))
    arguments = ("--controller", "none", "--mode", "lockstep", "--duration", "2", "--json", "--quiet")
    result = rtmms(tmp_path, "run", "soon.py:Late", *arguments)
    assert (result.status, result.report["steps"], "Traceback" in result.err) == (1, 0, False)
    assert "the plant failed before the run, while its step was timed" in result.err
    assert "soon.py, line 11: ValueError: the user's own fault" in result.err


@pytest.mark.full
def test_a_plant_of_ones_own_that_raises_has_its_place_reported_and_its_log_an_end(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(LATE)
    arguments = ("--controller", "none", "--mode", "free", "--duration", "20", "--log", "l.mcap", "--json", "--quiet")
    result = rtmms(tmp_path, "run", "late.py:Late", *arguments)
    assert (result.status, result.report["ended"], result.report["steps"]) == (1, "failed", 4999)
    assert "Traceback" not in result.err
    assert "the plant failed in step 4999" in result.err
    assert "late.py, line 11: ValueError: the user's own fault" in result.err
    info = rtmms(tmp_path, "log", "info", "l.mcap", "--json").report
    assert info["ended"] == "failed"
    assert "line 11" in info["message"]
