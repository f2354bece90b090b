"""docs/manta.md states what the code does: its tables are those of the parameters, outputs and presets."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmms.base.parameters import parameters_of
from rtmms.robots.manta.parameters import PRESETS, MantaParameters
from rtmms.studies.qu2024_choices import READINGS
from rtmms.view.manta_figure import MEANINGS

PAGE = Path(__file__).parents[2] / "docs" / "manta.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_it_lists_every_parameter_and_output(page: str) -> None:
    for name in parameters_of(MantaParameters):
        assert f"| `{name}` |" in page
    for name in MEANINGS:
        assert f"| `{name}` |" in page


def test_it_explains_every_entry_of_the_presets(page: str) -> None:
    section = page.partition("## Presets")[2].partition("\n## ")[0]
    for name, entries in PRESETS.items():
        assert f"`--preset {name}`" in section
        for entry in entries:
            assert f"| `{entry}` =" in section


def test_every_reading_that_is_measured_is_in_the_table(page: str) -> None:
    for name in READINGS:
        assert f"| {name} |" in page
