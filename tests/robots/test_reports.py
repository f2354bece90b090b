"""What the papers state beside ours: every row and figure is made, and prints what docs/ has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmms.plant.monitor import UNSTABLE
from rtmms.studies import boyer2015, boyer2017, khalil2007, porez2014
from rtmms.studies import porez2014 as moth
from rtmms.studies.porez2014 import Stroke
from tests.report.agreement import disagreements

KEYS = ("twist_at", "bend_at", "bend_alone_at", "torque_at", "lift_at", "no_lift_at")


@pytest.fixture(scope="module")
def stroke() -> Stroke:
    """Of the default reading."""
    return moth.stroke()


@pytest.mark.full
def test_khalil2007(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert khalil2007.main(tmp_path, True) == 0
    message = json.loads(capsys.readouterr().out)
    rows: dict[str, dict[str, Any]] = {row["name"]: row for row in message["rows"]}
    assert rows["speed, 28 to 30 s, planar"]["ours"] == pytest.approx(0.457, abs=1e-3)
    assert rows["nose, sideways, planar"]["ours"] == pytest.approx(0.0517, abs=5e-4)
    assert rows["largest torque of joint 25, planar"]["ours"] == pytest.approx(3.66, abs=5e-3)
    yaw = rows["largest torque of the yaw joints, both examples"]
    assert yaw["verdict"] == "differs"
    assert yaw["ours"] == pytest.approx(5.2, abs=0.1)
    assert "of joint 16" in yaw["remark"]
    assert rows["looping: diameter of that circle"]["ours"] == pytest.approx(2.76, abs=0.03)
    assert rows["looping: time of a loop, once steady"]["ours"] == pytest.approx(53.0, abs=0.5)
    assert rows["head's acceleration, direct against inverse model, both examples"]["ours"] < 1e-11
    assert not disagreements("eel.md", "claims", (tmp_path / "khalil2007.md").read_text())
    assert len(message["figures"]) == 8
    assert all((tmp_path / name).stat().st_size > 1000 for name in (p.rsplit("/", 1)[-1] for p in message["figures"]))


@pytest.mark.full
def test_boyer2017(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert boyer2017.main(tmp_path, True) == 0
    message = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in message["rows"] if row["tolerance"]} == {"agrees"}
    assert len(message["figures"]) == 5
    assert not disagreements("fish.md", "claims", (tmp_path / "boyer2017.md").read_text())


@pytest.mark.full
def test_boyer2015(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert boyer2015.main(tmp_path, True) == 0
    message = json.loads(capsys.readouterr().out)
    rows: dict[str, dict[str, Any]] = {row["name"]: row for row in message["rows"]}
    assert {row["verdict"] for row in message["rows"] if row["tolerance"]} == {"agrees"}
    assert rows["best stroke about the straight shape: efficiency"]["ours"] == pytest.approx(1.2364, abs=1e-3)
    assert rows["best stroke found over the best about the straight shape"]["ours"] == pytest.approx(1.2715, abs=1e-3)
    assert len(message["figures"]) == 18
    assert all((tmp_path / name).stat().st_size > 1000 for name in (p.rsplit("/", 1)[-1] for p in message["figures"]))
    assert not disagreements("locomotion.md", "claims", (tmp_path / "boyer2015.md").read_text())


@pytest.mark.full
def test_porez2014(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert porez2014.main(tmp_path, False) == 0
    out = capsys.readouterr().out
    assert "peak stroke torque" in out
    assert not disagreements("moth.md", "readings", (tmp_path / "porez2014.md").read_text())
    for number in range(5, 9):
        assert (tmp_path / f"porez2014-fig0{number}.png").stat().st_size > 1000


def test_a_stroke_of_the_default_reading(stroke: Stroke) -> None:
    """Its numbers as docs/moth.md has them; the air carries the weight, and pushes nowhere else on average."""
    result = moth.numbers(stroke)
    assert result["torque"] == pytest.approx(15.24, abs=0.01)
    assert result["twist_lag"] == pytest.approx(76.5, abs=0.5)
    assert result["bend_lag"] == pytest.approx(48.2, abs=0.1)
    assert stroke.air[:, :2].mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-9)
    assert result["weight"] == pytest.approx(1.0, rel=1e-6)
    assert 0.2 < stroke.air[:, 2].max() < 0.3
    parts = {claim.key: claim.row(result[claim.key]).verdict for claim in porez2014.CLAIMS if claim.key in KEYS}
    assert parts == dict.fromkeys(KEYS, "agrees")


def test_phases_do_not_hang_on_the_samples(stroke: Stroke) -> None:
    """To the 0.1 deg that they are printed with: from every other sample they are the same."""
    names = ("stroke", "bend", "twist", "torque", "air")
    half = Stroke(**{**vars(stroke), **{name: getattr(stroke, name)[::2] for name in names}})
    fine, coarse = moth.numbers(stroke), moth.numbers(half)
    for key in (*KEYS, "twist_lag", "bend_lag"):
        assert coarse[key] == pytest.approx(fine[key], abs=0.1), key


def test_the_papers_own_integrator_stays_with_rk4(stroke: Stroke, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the periodic orbit at its own step, and the monitor of runs lets it; not at a longer one."""
    monkeypatch.setattr(moth, "STROKES", 2)
    far, power, error = moth.by_own_integrator(stroke.vector, 1e-4)
    assert far < 1e-5
    assert error < 1e-3
    assert power == pytest.approx(float(np.mean(stroke.power)), rel=1e-4)
    monkeypatch.setattr(moth, "STEP_S", 2e-4)
    monkeypatch.setattr(moth, "SAMPLES", 200)
    far, power, error = moth.by_own_integrator(stroke.vector, 2e-4)
    assert not far < 1e-3
    assert np.isnan(power)
    assert error > UNSTABLE
