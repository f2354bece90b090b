"""Files that are put in their place at the end: nothing that somebody planted is written through or replaced."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rtmms.errors import ModelError
from rtmms.whole_file import KINDS, PAGE_MARK, beside, refuse_other_than_file, refuse_output
from tests.cli.shell import rtmms

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


PNG, CSV = b"\x89PNG\r\n\x1a\n", b"run,step,time,outcome\n"
PRESET = b"# manta, fitted by rtmms identify to pool\n\ndrag_coefficient = 1.0\n"
PAGE = f"<!doctype html>\n<head>{PAGE_MARK}</head>".encode()


@pytest.mark.parametrize(
    ("ending", "ours", "others"),
    [
        (".png", PNG, b"GIF89a"), (".csv", CSV, b"time,thrust\n"), (".toml", PRESET, b"# a scenario for rtmms run\n"),
        (".html", PAGE, b"<!doctype html><title>home</title>"), (".mp4", b"\0\0\0\x20ftypisom", b"ftyp"),
        (".svg", b'<?xml version="1.0"?>\n<svg>', b'<?xml version="1.0"?>\n<feed>'), (".fmu", b"PK\x03\x04", b"PK"),
        (".parquet", b"PAR1", b"precious"), (".dbc", b'VERSION ""', b"BO_ 3"), (".tif", b"II*\0", b"II"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind_is_never_lost(tmp_path: Path, ending: str, ours: bytes, others: bytes) -> None:
    path = tmp_path / f"file{ending}"
    refuse_output(path, "-o", KINDS[ending])
    for content in (b"", ours):
        path.write_bytes(content)
        refuse_output(path, "-o", KINDS[ending])
    path.write_bytes(others)
    with pytest.raises(ModelError, match=rf"-o .*file{ending}: is no .*; expected a new name or .*; it stays as it is"):
        refuse_output(path, "-o", KINDS[ending])
    refuse_output(path, "-o", None)
    assert path.read_bytes() == others


@posix
def test_a_link_a_folder_and_a_closed_folder_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "run.png").write_bytes(PNG)
    (tmp_path / "link.png").symlink_to("run.png")
    (tmp_path / "dangling.png").symlink_to("nowhere")
    (tmp_path / "folder.png").mkdir()
    for name, text in (
        ("link.png", "is a link to 'run.png'; expected"), ("dangling.png", "is a link to 'nowhere'; expected"),
        ("folder.png", "is not a file; expected"), ("no/run.png", "there is no folder"),
        ("x" * 300 + ".png", "File name too long"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=text):
            refuse_output(tmp_path / name, "-o", KINDS[".png"])
    if sys.platform == "linux":  # a folder in which not even root makes a file
        with pytest.raises(ModelError, match=r"-o /proc/run\.png: no file can be written in '/proc'"):
            refuse_output(Path("/proc/run.png"), "-o", KINDS[".png"])


@pytest.mark.parametrize(
    "words",
    [
        ("log", "csv", "no.mcap", "-o", "own.csv"), ("log", "parquet", "no.mcap", "-o", "own.parquet"),
        ("plot", "no.mcap", "-o", "own.png"), ("movie", "no.mcap", "-o", "own.gif"),
        ("view", "no.mcap", "--html", "own.html"), ("compare", "no.mcap", "other.mcap", "-o", "own.svg"),
        ("identify", "no.mcap", "--fit", "x", "--write", "own.toml"),
        ("identify", "no.mcap", "--fit", "x", "-o", "own.html"),
        ("export-fmu", "manta", "-o", "own.fmu"), ("run", "manta", "--figure", "own.png"),
        pytest.param(("sweep", "no.toml", "-o", "own.parquet"), marks=pytest.mark.full),  # needs pyarrow
        pytest.param(("sweep", "no.toml", "-o", "new.parquet", "--figure", "own.pdf"), marks=pytest.mark.full),
        ("run", "manta", "--log", "own.mcap"), ("run", "manta", "--trace", "own.npz"),
    ],
)  # fmt: skip
def test_each_command_refuses_it_before_the_work(tmp_path: Path, words: tuple[str, ...]) -> None:
    name = next(word for word in words if word.startswith("own."))
    (tmp_path / name).write_text("precious")
    said = rtmms(tmp_path, *words)
    assert said.status == 2
    assert f"{name}: is no " in said.err
    assert (tmp_path / name).read_text() == "precious"
