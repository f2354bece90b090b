"""docs/sensors.md and docs/estimator.md: their blocks run, and the tables name the sensors and keys that there are."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from rtmms.sensing.data_sheets import KINDS, TYPICAL, Sensor
from tests.cli.shell import ROOT

PAGE = (ROOT / "docs" / "sensors.md").read_text(encoding="utf-8")


def printed_by(page: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, object]]:
    """Run the block of a page; return what it prints, which the page shows, and its names."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, f"{page}.md", "exec"), names)
    printed = capsys.readouterr()
    assert all("compil" in line for line in printed.err.splitlines()), printed.err
    shown = next(block for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL) if "imu.gyro " not in block)
    numbers = [[float(n) for n in re.findall(r"-?\d+\.\d*", item)] for item in (printed.out, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3), "the page shows another output"
    return printed.out, names


def test_the_block_of_sensors_runs(capsys: pytest.CaptureFixture[str]) -> None:
    printed, _ = printed_by("sensors", capsys)
    assert printed.startswith("[")


def test_the_block_of_the_estimator_runs(capsys: pytest.CaptureFixture[str]) -> None:
    _, names = printed_by("estimator", capsys)
    assert not names["now"].lost  # type: ignore[attr-defined]


def test_the_tables_are_whole() -> None:
    listed = re.findall(r"^\| `(\w+)` \| [a-z]", PAGE, re.MULTILINE)
    assert [name for name in listed if name in TYPICAL] == list(TYPICAL)
    assert list(KINDS) == [name for name in TYPICAL if name != "sight"]  # that is a world's to have
    common = PAGE[PAGE.index("Every sensor has") :]
    assert all(f"`{field.name}`" in common for field in fields(Sensor))
