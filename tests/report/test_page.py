"""Tables between marks: written, taken over, and compared with what a command prints."""

from __future__ import annotations

import pytest

from rtmms.view.tables import blocks, fill_page, text_between_marks
from tests.report import agreement


def test_only_what_is_made_is_written_anew() -> None:
    page = (
        "# One\n\n" + text_between_marks("a", "old\n") + "\nbetween\n\n" + text_between_marks("b", "kept\n") + "\nend\n"
    )
    new = fill_page(page, {"a": "new \\1\n", "c": "nowhere\n"})
    assert blocks(new) == {"a": "new \\1\n", "b": "kept\n"}
    assert new == page.replace("old", "new \\1")


HEAD = "| where |  | ours | verdict | remark |\n|---|---|---|---|---|\n"


@pytest.mark.parametrize(
    ("line", "alike"),
    [
        ("| fig. 1 | speed | 0.457 m/s | agrees | 1 |", True), ("| fig. 1 | speed | 0.458 m/s | agrees | 2 |", True),
        ("| fig. 1 | speed | 0.459 m/s | agrees | 1 |", False), ("| fig. 1 | speed | 0.457 m/s | differs | 1 |", False),
        ("| fig. 1 | speeds | 0.457 m/s | agrees | 1 |", False),
    ],
)  # fmt: skip
def test_a_page_that_reports_itmething_else_is_seen(
    line: str, alike: bool, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement, "DOCS", tmp_path)
    (tmp_path / "x.md").write_text(text_between_marks("claims", HEAD + "| fig. 1 | speed | 0.457 m/s | agrees | 1 |\n"))
    assert (agreement.disagreements("x.md", "claims", text_between_marks("claims", HEAD + line + "\n")) == []) is alike
