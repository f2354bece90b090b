"""rtmms compare: two runs side by side, in table, JSON and figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rtmms.report.comparison import Run, table
from tests.cli.shell import finish, start


def test_two_runs_side_by_side(tmp_path: Path) -> None:
    for heading in (0, 40):
        word = f"heading:heading_deg={heading}"
        said = finish(start(tmp_path, "run", "manta", "--controller", word, "--mode", "lockstep", "--duration", "3",
                            "--log", f"to{heading}.mcap", "--quiet"), 120)  # fmt: skip
        assert said.status == 0, said.err
    said = finish(start(tmp_path, "compare", "to0.mcap", "to40.mcap", "-o", "both.png", "--json"), 60)
    assert said.status == 0, said.err
    found = json.loads(said.out)
    assert found["to0"]["heading_deg rms"] < 1.0 < found["to40"]["heading_deg rms"]
    assert found["to40"]["command rate, rms"] > 0.1
    assert {"plant p99, us", "misses", "mean_power_w"} <= found["to0"].keys()
    assert (tmp_path / "both.png").stat().st_size > 20_000
    said = finish(start(tmp_path, "compare", "to0.mcap", "to40.mcap"), 60)
    assert "heading_deg rms" in said.out
    assert "to40" in said.out
    for words, text in ((["to0.mcap"], "expected two logs"), (["to0.mcap", "nowhere.mcap"], "nowhere.mcap")):
        said = finish(start(tmp_path, "compare", *words), 60)
        assert said.status == 2
        assert text in said.err


def test_what_one_run_has_not_is_told_as_such() -> None:
    time = np.arange(5.0)
    one = Run("one", {"robot": "a", "tracking": {"depth_m": {"rms": 0.1}}}, time, np.outer(time, [1.0, -1.0]))
    other = Run("other", {"robot": "b"}, time, np.zeros((5, 2)))
    rows = dict(table([one, other]))
    assert rows["depth_m rms"] == [0.1, None]
    assert rows["command rate, rms"] == [pytest.approx(1.0), 0.0]
    assert "misses" not in rows
