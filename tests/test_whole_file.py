"""Files that are put in their place at the end: nothing that somebody planted is written through or replaced."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.files import KINDS, PAGE_MARK, new_file_beside, refuse_other_than_file, refuse_output, with_checksum
from rtmms.base.toml_file import read_toml, toml_comment
from tests.cli.shell import rtmms
from tests.file_calls import writing_calls

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links")


def test_the_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(OSError, match="full"):
        _half(path)
    assert path.read_text() == "before"
    with new_file_beside(path) as part:
        assert part.suffix == ".html"
        part.write_text("after")
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["page.html"]


def _half(path: Path) -> None:
    with new_file_beside(path) as part:
        part.write_text("half")
        raise OSError("full")


@posix
def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    for name in ("page.html.part", ".page.part.html"):
        (tmp_path / name).symlink_to("victim")
    with new_file_beside(tmp_path / "page.html") as part:
        part.write_text("page")
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_name_with_the_ending_of_another_kind_is_refused(tmp_path: Path) -> None:
    for name in ("x.png", "x.MCAP"):
        with pytest.raises(ModelError, match=r"-o .*: expected a name that ends in \.csv, got \.(png|MCAP)"):
            refuse_output(tmp_path / name, "-o", KINDS[".csv"])
    for name in ("x.csv", "x.txt", "x"):
        refuse_output(tmp_path / name, "-o", KINDS[".csv"])
    refuse_output(tmp_path / "x.jpeg", "-o", KINDS[".jpg"])


@posix
def test_a_pipe_a_device_and_the_source_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.mcap").write_bytes(b"log")
    for name in (str(tmp_path / "pipe"), os.devnull):
        with pytest.raises(ModelError, match=rf"--html {name}: is not a file; expected"):
            refuse_other_than_file(Path(name), "--html")
    with pytest.raises(ModelError, match=r"run\.mcap: expected another file than the input"):
        refuse_other_than_file(tmp_path / "run.mcap", "--html", (tmp_path / "run.mcap",))
    refuse_other_than_file(tmp_path / "new", "--html", (tmp_path / "run.mcap",))


PNG = b"\x89PNG\r\n\x1a\n"
CSV = b"run,step,time,outcome\n"
PRESET = with_checksum("# manta, fitted by rtmms identify to pool", "\ndrag_coefficient = 1.0\n").encode()
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
    with pytest.raises(
        ModelError, match=rf"-o .*file{ending}: expected a new name, or an existing .*; the file is unchanged"
    ):
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
    "arguments",
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
def test_each_command_refuses_it_before_the_work(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    name = next(word for word in arguments if word.startswith("own."))
    (tmp_path / name).write_text("precious")
    result = rtmms(tmp_path, *arguments)
    assert result.status == 2
    assert f"{name}: expected a new name, or an existing " in result.err
    assert (tmp_path / name).read_text() == "precious"


WRITTEN_ELSEWHERE = {
    ("rtmms/cli/new.py", "file.write_text"): "in a folder that is moved to its place when all are written",
    ("rtmms/fmi/archive.py", "target.open"): "in a folder that was just made",
    ("rtmms/fmi/export.py", "script.write_text"): "in a folder that was just made",
    ("rtmms/fmi/export.py", "(Path(folder) / SPECIFICATION).write_text"): "in a folder that was just made",
    ("rtmms/studies/fit_page.py", "drawn.savefig"): "into memory",
    ("rtmms/base/jit.py", "record.write_text"): "of the cache: what is not whole is read as nothing",
    ("rtmms/base/kernel_cache.py", "(folder / 'lock').open"): "of the cache: an empty file",
    ("rtmms/view/style.py", "page.savefig"): "into memory",
    ("rtmms/record/commands.py", "np.savez"): "into a file within `new_file_beside`",
    ("rtmms/record/tables.py", "pq.ParquetWriter"): "its callers name a file within `new_file_beside`",
    ("rtmms/record/tables.py", "writer.write_table"): "its callers name a file within `new_file_beside`",
}
"""(module, function) of files that are written elsewhere, with the reason why no half of one is left in its place."""


def test_every_module_writes_files_beside_their_place() -> None:
    result = list(writing_calls())
    wrong = [
        f"{item.module}:{item.line}: {item.text:.80}"
        for item in result
        if (item.module, item.function) not in WRITTEN_ELSEWHERE
    ]
    assert not wrong, "use rtmms.base.files.new_file_beside, or give the reason in WRITTEN_ELSEWHERE:\n" + "\n".join(
        wrong
    )
    there = {(item.module, item.function) for item in result}
    assert not set(WRITTEN_ELSEWHERE) - there, "no longer there: take it out of WRITTEN_ELSEWHERE"


def test_a_file_that_cannot_be_written_is_an_error_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("before")
    with pytest.raises(RtmmsError, match=r"--write .*a\.toml: could not be written: No space left on device; expected"):
        _full(tmp_path / "a.toml", "--write")
    with pytest.raises(RtmmsError, match=r"^/.*nowhere/a\.toml: could not be written: No such file or directory"):
        _full(tmp_path / "nowhere" / "a.toml", "")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def _full(path: Path, option: str) -> None:
    with new_file_beside(path, option) as part:
        part.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_only_the_sync_reports_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr("rtmms.base.files.os.fsync", refuse)
    quota = pytest.raises(RtmmsError, match=r"-o .*page\.html: could not be written: Disk quota exceeded")
    with quota, new_file_beside(tmp_path / "page.html", "-o") as part:
        part.write_text("page")
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_edited_is_kept(tmp_path: Path) -> None:
    path, kind = tmp_path / "fitted.toml", KINDS[".toml"]
    title = toml_comment("manta, fitted by rtmms identify to a\nb\x1b[2J = 1.mcap")
    path.write_text(with_checksum(title, "\ndrag_coefficient = 1.0  # +- 0.1\n"))
    assert read_toml(path) == {"drag_coefficient": 1.0}
    refuse_output(path, "--write", kind)
    text = path.read_text()
    for edited in (text.replace("1.0", "1.5"), text + "# mine\n", text.replace("manta", "ray", 1),
                   "".join(line for line in text.splitlines(True) if "SHA-256" not in line)):  # fmt: skip
        path.write_text(edited)
        with pytest.raises(ModelError, match=r"--write .*fitted\.toml: the file was edited, .*--force overwrites"):
            refuse_output(path, "--write", kind, (), "--force overwrites")
        assert path.read_text() == edited
    path.write_text("")
    refuse_output(path, "--write", kind)
