"""A figure is there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import pytest

from rtmms.base.errors import RtmmsError
from rtmms.view.style import figure, save


def test_a_figure_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "run.png"
    path.write_bytes(b"the one before")
    page: Any = figure(2.0, 1.0)

    def full(to: IO[bytes], **_: Any) -> None:
        to.write(b"half")
        raise OSError(28, "No space left on device")

    page.savefig = full
    with pytest.raises(RtmmsError, match=r"figure .*run\.png: could not be written: .*No space left"):
        save(page, path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.png"]
    assert path.read_bytes() == b"the one before"
    save(figure(2.0, 1.0), path)
    assert path.read_bytes().startswith(b"\x89PNG")
