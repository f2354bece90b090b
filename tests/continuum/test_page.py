"""docs/continuous_eel.md: its field runs as a plant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

PAGE = (Path(__file__).parents[2] / "docs" / "continuous_eel.md").read_text(encoding="utf-8")


def test_the_pages_program() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "continuous_eel.md", "exec"), names)
    plant = names["robot"](dt=0.02)
    for _ in range(100):
        plant.step(np.array([2.0]))
    seen = plant.observe()
    np.testing.assert_allclose(seen["curvature"][-1, 2], 2.0, atol=1e-9)
    assert float(seen["work"]) > 0.0
