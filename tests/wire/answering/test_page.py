"""The controller on the page about real time is one."""

from __future__ import annotations

import re
from math import sin
from pathlib import Path
from typing import Any

import pytest

from rtmms.plant.protocol import Channel
from rtmms.wire.answering import prepare
from rtmms.wire.kernels.system import AVAILABLE
from rtmms.wire.protocol.received_state import PlantInfo, State

PAGE = Path(__file__).resolve().parents[3] / "docs" / "realtime.md"


@pytest.mark.skipif(not AVAILABLE, reason="Linux, and numba's compiler")
def test_the_example_compiles_and_reports_what_it_should(tmp_path: Path) -> None:
    (text,) = re.findall(r"```python\n(from math import sin.*?)```", PAGE.read_text(), re.S)
    file = tmp_path / "wave.py"
    file.write_text(text)
    space: dict[str, Any] = {"__name__": "wave"}
    exec(compile(text, str(file), "exec"), space)
    wave = space["Wave"]()
    info = PlantInfo("manta", 1e-3, "free", None, None, (), (Channel("velocity", "m/s", (3,)),), wave.claim)
    wave.start(info)
    state = State({"step": 5, "timestamp": 0.5, "outputs": {"velocity": [2.0, 0.0, 0.0]}}, info)
    expected = {"left.front": 0.3 * sin(2.0), "right.front": 0.3 * sin(2.0) - 0.02}
    assert wave.update(state) == pytest.approx(expected)
    prepare(wave.update)
    assert wave.update(state) == pytest.approx(expected)
