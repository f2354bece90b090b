"""The page docs/locomotion.md: its program prints what the page shows; its commands are words that are known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "locomotion.md").read_text(encoding="utf-8")


def test_the_pages_program(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "locomotion.md", "exec"), names)
    np.testing.assert_allclose(names["motion"].displacement, [0.1484970643, 0.0402010991, 0.0], atol=1e-8)
    assert names["connection"](names["swimmer"], [0.3, 0.5], "stokes").shape == (3, 2)
    assert 300.0 * names["best"].score ** 2 == pytest.approx(1.236, abs=1e-3)
    assert "1.48497064e-01" in capsys.readouterr().out


def test_the_pages_words_are_those_of_the_command() -> None:
    from rtmms.locomotion.paths import FORMS, gait_path

    for word in re.findall(r"`?--gait ([a-z]+:[^\s`]+)", PAGE):
        assert gait_path(word, 2).size == 2
    for name, (_, defaults) in FORMS.items():
        assert f"`{name}:{','.join(f'{key}={value:g}' for key, value in defaults.items())}`" in PAGE
