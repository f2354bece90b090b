"""docs/README.md: its lines of Python do what their comments state."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms

PAGE = Path(__file__).resolve().parents[2] / "docs" / "README.md"
MODEL, LINK = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_a_linear_model_and_many_runs() -> None:
    result: dict[str, Any] = {}
    exec(MODEL, result)
    assert result["linear"].a.shape == (16, 16)
    assert result["runs"].outputs["position"].shape == (64, 500, 3)
    assert np.isfinite(result["runs"].outputs["position"]).all()


def test_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same lines, with the plant in this program."""
    plant = rtmms.load("manta", dt=5e-3)
    with rtmms.embed(plant, robot="manta", steps=400) as served:
        connect = rtmms.connect
        monkeypatch.setattr(rtmms, "connect", lambda **values: connect(served.exchange, **values))
        exec(LINK, {"rtmms": rtmms, "np": np})
        report = served.wait()
    assert report.final["velocity"][0] > 0.05
