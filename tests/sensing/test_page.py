"""docs/sensors.md: its block runs, and its tables name the sensors and keys that there are."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from rtmms.sensing.parts import KINDS, TYPICAL, Sensor
from tests.cli.shell import ROOT

PAGE = (ROOT / "docs" / "sensors.md").read_text(encoding="utf-8")


def test_the_block_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "sensors.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[")


def test_the_tables_are_whole() -> None:
    listed = re.findall(r"^\| `(\w+)` \| [a-z]", PAGE, re.MULTILINE)
    assert [name for name in listed if name in KINDS] == list(KINDS) == list(TYPICAL)
    common = PAGE[PAGE.index("Every sensor:") :]
    assert all(f"`{field.name}`" in common for field in fields(Sensor))
