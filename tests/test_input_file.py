"""The files that rtmms reads: one function opens them all, refuses what is no file, and never waits for one."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from rtmms.base.errors import ModelError
from rtmms.base.files import MIB, open_input, read_input, read_input_text
from tests.file_calls import reading_calls

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\ufeffa, ä\n", encoding="utf-8")
    with open_input(path) as file:
        assert (file.read(3), file.name != "") == (b"\xef\xbb\xbf", True)
    assert read_input_text(path, max_bytes=20) == "a, ä\n"
    assert read_input(path, max_bytes=9) == path.read_bytes()


@posix
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nothing")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    for name, why in (
        ("pipe", "is not a file; expected a table"), ("link", "is not a file; expected a table"),
        ("socket", "is not a file; expected a table"), (os.devnull, "is not a file; expected a table"),
        ("/dev/zero", "is not a file; expected a table"), (".", "is a folder; expected a table"),
        ("nothing", "there is no such file"), ("dangling", "there is no such file"),
        ("loop", "Too many levels of symbolic links"), ("a" * 300, "File name too long"), ("a\0b", "not a valid file"),
    ):  # fmt: skip
        with pytest.raises(ModelError) as refused:
            open_input(tmp_path / name, place="--gait", expected="a table")
        assert str(refused.value).startswith(("--gait ", "'--gait ")), name
        assert why in str(refused.value)


@posix
def test_a_file_that_becomes_a_pipe_while_it_is_opened_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    as_before = os.stat(tmp_path / "file")
    monkeypatch.setattr("rtmms.base.files.os.stat", lambda _: as_before)
    with pytest.raises(ModelError, match="pipe: is not a file"):
        open_input(tmp_path / "pipe")


def test_large_files_and_other_encodings_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_bytes(b"x" * 11)
    with pytest.raises(ModelError, match=r"large\.csv: expected a table of at most 10 bytes"):
        read_input(path, max_bytes=10, expected="a table")
    with path.open("wb") as file:
        file.truncate(4 * MIB + 1)
    with pytest.raises(ModelError, match=r"of at most 4 MiB"):
        open_input(path, max_bytes=4 * MIB)
    path.write_text("x", encoding="utf-16")
    with pytest.raises(ModelError, match=r"dbc: .*large\.csv: expected text in UTF-8, got UTF-16"):
        read_input_text(path, max_bytes=10, place="dbc:")
    path.write_bytes(b"x\xe4")
    with pytest.raises(ModelError, match="got byte 0xe4"):
        read_input_text(path, max_bytes=10)


@posix
def test_a_file_of_proc_that_has_no_size_has_the_limit_too() -> None:
    if not os.path.exists("/proc/self/environ"):
        pytest.skip("needs /proc")
    with pytest.raises(ModelError, match="of at most 3 bytes, got a larger file"):
        read_input("/proc/self/maps", max_bytes=3)


def test_no_descriptor_is_lost(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 11)
    with open_input(tmp_path / "large") as file:
        first = file.fileno()
    for _ in range(3):
        with pytest.raises(ModelError):
            open_input(tmp_path / "large", max_bytes=1)
    with open_input(tmp_path / "large") as file:
        assert file.fileno() == first


# --- that every module opens files there ------------------------------------------------------------------------------

BOUND_FOR = "a library takes its name alone; it was looked at just before"
ALLOWED = {
    ("rtmms/base/files.py", "os.open"): "the opener itself",
    ("rtmms/base/files.py", "open"): "the opener itself: of a descriptor",
    ("rtmms/base/install.py", "distribution(package).read_text"): "of an installed package",
    ("rtmms/cli/doctor.py", "Path(path).read_text"): "of the system: /proc and /sys",
    ("rtmms/cli/main.py", "open"): "of a descriptor",
    ("rtmms/cli/main.py", "os.open"): "the null device, where a standard stream is closed",
    ("rtmms/cli/new.py", "source.read_text"): "a file of this package",
    ("rtmms/cli/running/children.py", "Path(f'/proc/{pid}/schedstat').read_text"): "of the system",
    ("rtmms/cli/running/process.py", "os.fdopen"): "of a descriptor",
    ("rtmms/cli/sweep.py", "parts.open"): "no file",
    ("rtmms/fmi/archive.py", "os.open"): "a folder that was just made, for its lock",
    ("rtmms/fmi/archive.py", "target.open"): "written, in a folder that was just made",
    ("rtmms/fmi/read_description.py", "fmpy.read_model_description"): "in a folder that was just made and filled",
    ("rtmms/base/jit.py", "record.read_text"): "of the cache, which is the user's own",
    ("rtmms/base/kernel_cache.py", "open"): "of the cache, which is the user's own",
    ("rtmms/base/kernel_cache.py", "(folder / 'lock').open"): "of the cache, which is the user's own",
    ("rtmms/loop/machine.py", "os.open"): "of the system: a device, to be held open",
    ("rtmms/record/log_location.py", "os.open"): "written and locked; what is no file is refused there",
    ("rtmms/record/recorder.py", "Path(f'/proc/{pid}/stat').read_text"): "of the system",
    ("rtmms/view/page.py", "page.read_text"): "in a folder that was just made",
    ("rtmms/wire/addresses.py", "os.open"): "a folder, for its lock",
    ("rtmms/wire/keys.py", "os.open"): "made, never opened where it exists",
    ("rtmms/wire/keys.py", "os.fdopen"): "of a descriptor",
    ("rtmms/wire/session_files.py", "os.fdopen"): "of a descriptor",
    ("rtmms/wire/peer/plugins.py", "distribution.read_text"): "of an installed package",
    ("bridges/zenoh.py", "zenoh.Config.from_file"): BOUND_FOR,
    ("bridges/foxglove.py", "context.load_cert_chain"): BOUND_FOR,
    ("bridges/mqtt.py", "client.tls_set"): BOUND_FOR,
    ("rtmms/model/urdf.py", "import_module('trimesh').load"): "of bytes that were read there",
    ("rtmms/model/urdf.py", "yourdfpy.URDF.load"): "of bytes that were read there",
    (
        "rtmms/fmi/read_description.py",
        "text.read_bytes",
    ): "in a folder that was just made and filled; its size is looked at",
    ("rtmms/studies/sweep_files.py", "os.open"): "to hash what was opened there, whatever it is; without waiting",
    ("rtmms/studies/sweep_files.py", "os.fdopen"): "of a descriptor",
    ("rtmms/studies/sweep_table.py", "os.open"): "written and locked",
}
"""(module, function) of files that are opened elsewhere, with the reason why nothing waits and nothing is too large."""


def test_every_module_opens_files_there() -> None:
    result = list(reading_calls())
    wrong = [
        f"{item.module}:{item.line}: {item.text:.80}" for item in result if (item.module, item.function) not in ALLOWED
    ]
    assert not wrong, "use rtmms.base.files.open_input, or give the reason in ALLOWED:\n" + "\n".join(wrong)
    there = {(item.module, item.function) for item in result}
    assert not set(ALLOWED) - there, "no longer there: take it out of ALLOWED"
