"""docs/continuous_eel.md and docs/rods.md: their programs run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_program() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "continuous_eel.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "continuous_eel.md", "exec"), names)
    plant = names["robot"](dt=0.02)
    for _ in range(100):
        plant.step(np.array([2.0]))
    outputs = plant.observe()
    np.testing.assert_allclose(outputs["curvature"][-1, 2], 2.0, atol=1e-9)
    assert float(outputs["work"]) > 0.0


@pytest.mark.full
def test_the_programs_of_rods() -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / "rods.md").read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, "rods.md", "exec"), names)
    assert names["plant"].model.n == 30
    assert "tail.3.bend_z" in names["plant"].model.joint_names
    names["robot"].step(np.array([0.3]))
    assert names["robot"].m == 9
    assert names["bar"].tip()[1] > 0.05
    assert names["own"].components == [5, 5, 3]
