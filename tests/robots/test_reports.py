"""What the papers state beside ours: every row and figure is made, and says what docs/ says."""

from __future__ import annotations

import json

import pytest

from rtmms.report.khalil2007 import reproduce as khalil2007
from rtmms.report.porez2014 import reproduce as porez2014


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
    for number in range(5, 9):
        assert (tmp_path / f"porez2014-fig0{number}.png").stat().st_size > 1000


def test_a_stroke_of_the_default_reading():
    """Its numbers as docs/moth.md has them; the air carries the weight, and pushes nowhere else on average."""
    s = porez2014.stroke()
    assert s.values["peak stroke torque"] == pytest.approx(15.24, abs=0.01)
    assert s.values["its lag behind the stroke, twist"] == pytest.approx(76.5, abs=0.5)
    weight = s.model.mass * 9.81
    assert s.air[:, :2].mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-9)
    assert s.air[:, 2].mean() == pytest.approx(weight, rel=1e-6)
    assert 0.2 < s.air[:, 2].max() < 0.3
    words = {row.what: row.reproduces for row in porez2014._words(s)}
    assert words == {"twist is largest": True, "stroke torque is largest": True, "lift is largest": True}
