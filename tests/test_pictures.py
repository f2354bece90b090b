"""Every robot has a picture, small, in a page of the documentation."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROBOTS = sorted(entry.name for entry in entry_points(group="rtmms.plants") if entry.module.startswith("rtmms."))
MAX_BYTES = 80_000
MAX_TOTAL_BYTES = 1_500_000


@pytest.mark.parametrize("robot", ROBOTS)
def test_a_robot_has_a_small_picture_in_a_page(robot: str) -> None:
    picture = DOCS / "images" / "robots" / f"{robot}.png"
    assert picture.read_bytes().startswith(b"\x89PNG"), "`make pictures` draws it"
    assert 2_000 < picture.stat().st_size <= MAX_BYTES
    pages = {page.name for page in DOCS.glob("*.md") if f"](images/robots/{robot}.png)" in page.read_text()}
    assert "README.md" in pages  # the gallery
    assert len(pages) == 2


@pytest.mark.parametrize("robot", ROBOTS)
def test_its_axes_are_shown_on_the_page_of_frames(robot: str) -> None:
    picture = DOCS / "images" / "frames" / f"{robot}.png"
    assert picture.read_bytes().startswith(b"\x89PNG"), "`make frames` draws it"
    assert 1_000 < picture.stat().st_size <= MAX_BYTES
    assert f"](images/frames/{robot}.png)" in (DOCS / "frames.md").read_text()


def test_all_pictures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in (DOCS / "images" / "robots").iterdir()) <= MAX_TOTAL_BYTES
