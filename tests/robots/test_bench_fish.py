"""rtmms bench fish and rtmms bench intervals: what they print of tendon_fish."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rtmms.base.errors import ModelError
from rtmms_benchmarks import fish, intervals


@pytest.mark.parametrize("arguments", [{"recordings": 1}, {"seconds": 0.5}, {"noise_mm": 0.0}])
def test_a_study_without_numbers_is_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="expected at least"):
        intervals.main(**arguments)  # type: ignore[arg-type]


def test_a_recording_has_the_noise_that_was_asked_for() -> None:
    """Of two recordings of one fish that differ in their noise only: 18 columns of 60 samples."""
    quiet, noisy = (intervals.record({}, 1.0, noise, np.random.default_rng(0)) for noise in (0.0, 2e-3))
    names = [name for name in quiet if name.startswith("m")]
    assert len(names) == 18
    off = np.concatenate([noisy[name][1:] - quiet[name][1:] for name in names])
    assert off.size == 18 * 60
    assert np.std(off) == pytest.approx(2e-3, rel=0.1)


@pytest.mark.full
def test_the_study_counts_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    """Six intervals: that two of them lack the truth has a chance of 3 %, that three do 0.2 %."""
    assert intervals.main(as_json=True, recordings=2, jobs=1) == 0
    content = json.loads(capsys.readouterr().out)
    assert list(content["parameters"]) == list(intervals.PARAMETERS)
    assert content["inside"] >= 0.5
    assert content["inside"] == pytest.approx(np.mean([item["inside"] for item in content["parameters"].values()]))


SWIMMER = """<mujoco><option timestep="0.002"/><worldbody><body><freejoint/><geom size="0.1"/><site name="s"/></body>
</worldbody><actuator><motor site="s" gear="1 0 0 0 0 0"/></actuator></mujoco>"""
"""A body that a motor pushes along x: the benchmark takes any model whose first free body swims."""


@pytest.mark.full
def test_both_models_swim(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    (tmp_path / "swimmer.xml").write_text(SWIMMER)
    assert fish.main(as_json=True, seconds=6.0, blocks=1, model=str(tmp_path / "swimmer.xml")) == 0
    for rows in json.loads(capsys.readouterr().out)["recordings"].values():
        rollout, steps, theirs = (row["speed_m_s"] for row in rows.values())
        assert rollout == pytest.approx(steps, rel=1e-9), "a rollout and the steps in Python are one model"
        assert 0.05 < rollout < 0.25
        assert theirs > 1.0, "a constant force"


@pytest.mark.full
def test_a_model_that_is_not_there_is_refused() -> None:
    pytest.importorskip("mujoco")
    with pytest.raises(ModelError, match=r"none\.xml"):
        fish.main(seconds=6.0, blocks=1, model="none.xml")
