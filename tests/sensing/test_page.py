"""docs/sensors.md: its block runs, and its tables name the sensors and keys that there are."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from rtmms.sensing.data_sheets import KINDS, TYPICAL, Sensor
from tests.cli.shell import ROOT

PAGE = (ROOT / "docs" / "sensors.md").read_text(encoding="utf-8")


def test_the_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "sensors.md", "exec"), names)
    first, second = capsys.readouterr().out.splitlines()[0], capsys.readouterr()
    assert first.startswith("[")
    assert second.err == ""
    assert not names["now"].lost  # type: ignore[attr-defined]


def test_the_tables_are_whole() -> None:
    listed = re.findall(r"^\| `(\w+)` \| [a-z]", PAGE, re.MULTILINE)
    assert [name for name in listed if name in TYPICAL] == list(TYPICAL)
    assert list(KINDS) == [name for name in TYPICAL if name != "sight"]  # that is a world's to have
    common = PAGE[PAGE.index("Every sensor:") :]
    assert all(f"`{field.name}`" in common for field in fields(Sensor))
