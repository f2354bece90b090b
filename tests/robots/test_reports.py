"""What the papers state beside ours: every row and figure is made, and says what docs/ says."""

from __future__ import annotations

import json

import pytest

from rtmms.report import khalil2007, porez2014


def test_khalil2007(tmp_path, capsys):
    assert khalil2007.main(tmp_path, True) == 0
    told = json.loads(capsys.readouterr().out)
    rows = {row["what"]: row for row in told["rows"]}
    assert rows["speed after 30 s, planar"]["ours"] == pytest.approx(0.457, abs=1e-3)
    assert rows["largest torque, yaw joints"]["reproduces"] is False
    assert rows["largest torque, yaw joints"]["ours"] == pytest.approx(5.2, abs=0.1)
    assert rows["looping: a circle in the vertical plane"]["ours"] == pytest.approx(2.76, abs=0.03)
    assert len(told["figures"]) == 7
    assert all((tmp_path / name).stat().st_size > 1000 for name in (p.rsplit("/", 1)[-1] for p in told["figures"]))


@pytest.mark.slow
def test_porez2014(tmp_path, capsys):
    assert porez2014.main(tmp_path, False) == 0
    out = capsys.readouterr().out
    assert "peak stroke torque" in out
    assert (tmp_path / "porez2014-fig07.png").stat().st_size > 1000
