"""`rtmms bench mujoco`: both arms end in the same state, and the table has a row for each model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rtmms.base.errors import ModelError
from rtmms_benchmarks.mujoco_step import main, measure, usual_models
from tests.mujoco_models.models import KINDS

pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'rtmms[mujoco]'")
pytestmark = [pytest.mark.full, pytest.mark.peer]


@pytest.mark.parametrize("case", ["contacts", "rk4", "tendon"])
def test_a_model_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    (tmp_path / "robot.xml").write_text(KINDS[case])
    path = str(tmp_path / "robot.xml")
    assert main(True, path, blocks=3) == 0
    (result,) = json.loads(capsys.readouterr().out)["models"]
    assert result["dt"] == 0.002
    assert result["step_us"] > 0.0
    assert result["step_and_outputs_ratio"] > result["step_ratio"] > 0.0
    assert measure(path, 1, dt=0.001)["dt"] == 0.001
    main(False, path, blocks=1)
    assert "robot.xml" in capsys.readouterr().out.splitlines()[-1]


def test_other_robots_are_refused() -> None:
    with pytest.raises(ModelError, match=r"expected an MJCF file \(FILE.xml\), got 'eel'"):
        measure("eel", 1)
    with pytest.raises(ModelError, match="expected at least 1"):
        main(blocks=0)
    assert all(Path(path).is_file() for path in usual_models())
