"""Files that are put in their place at the end: nothing that somebody planted is written through or replaced."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rtmms.errors import ModelError
from rtmms.whole_file import beside, refuse_other_than_file

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links")


def test_the_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(OSError, match="full"):
        _half(path)
    assert path.read_text() == "before"
    with beside(path) as part:
        assert part.suffix == ".html"
        part.write_text("after")
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["page.html"]


def _half(path: Path) -> None:
    with beside(path) as part:
        part.write_text("half")
        raise OSError("full")


@posix
def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    for name in ("page.html.part", ".page.part.html"):
        (tmp_path / name).symlink_to("victim")
    with beside(tmp_path / "page.html") as part:
        part.write_text("page")
    assert (tmp_path / "victim").read_text() == "precious"


@posix
def test_a_pipe_a_device_and_the_source_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.mcap").write_bytes(b"log")
    for name in (str(tmp_path / "pipe"), os.devnull):
        with pytest.raises(ModelError, match=rf"--html {name}: is not a file; expected"):
            refuse_other_than_file(Path(name), "--html")
    with pytest.raises(ModelError, match=r"run\.mcap, which is read; expected another name"):
        refuse_other_than_file(tmp_path / "run.mcap", "--html", (tmp_path / "run.mcap",))
    refuse_other_than_file(tmp_path / "new", "--html", (tmp_path / "run.mcap",))
