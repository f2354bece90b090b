"""The page docs/dynamics.md: its program runs and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "dynamics.md"


def test_the_pages_program():
    match = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    names: dict = {}
    exec(compile(match[1], str(PAGE), "exec"), names)
    back = names["dynamics"].inverse_dynamics(names["model"], names["state"], names["out"].qdd)
    assert back.torque[0] == pytest.approx(0.2, abs=1e-12)


def test_the_pages_table_of_methods():
    from rtmms.mechanism.methods import METHODS

    rows = re.findall(r"^\| `(\w+)` \| (\d) \| (\d) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: (int(a), int(b)) for name, a, b in rows} == {
        m.name: (m.order, m.evaluations) for m in METHODS.values()
    }
