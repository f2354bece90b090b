"""Every file that a command writes or reads: a full disk leaves nothing broken, and what is no file is refused.

The cases cover click's own list of options: one without a case fails the first test.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click
import pytest

from rtmms.base.files import KINDS
from rtmms.cli import main as command_line
from rtmms.cli.option_types import FIGURES
from tests.cli import shell
from tests.cli.shell import Finished, rtmms

if sys.platform != "win32":
    import resource

MANTA = ("manta", "--mode", "lockstep", "--duration", "1", "--dt", "0.01", "--set", "chains=4", "--quiet")
GAIT = ("--gait", "square:a=0.3")
FIT = ("--robot", "manta", "--fit", "drag_coefficient")


@dataclass(frozen=True)
class Writes:
    """A command that writes a file: `{}` stands for the file."""

    command: str
    option: str
    ending: str
    options: tuple[str, ...]


WRITES = [
    Writes("run", "--log", ".mcap", ("run", *MANTA, "--log", "{}")),
    Writes("run", "--trace", ".npz", ("run", *MANTA, "--trace", "{}")),
    Writes("run", "--figure", ".png", ("run", *MANTA, "--figure", "{}")),
    Writes("log csv", "-o", ".csv", ("log", "csv", "run.mcap", "-o", "{}")),
    Writes("log parquet", "-o", ".parquet", ("log", "parquet", "run.mcap", "-o", "{}")),
    *(Writes("plot", "-o", ending, ("plot", "run.mcap", "-o", "{}")) for ending in FIGURES),
    Writes("compare", "-o", ".pdf", ("compare", "run.mcap", "run.mcap", "-o", "{}")),
    Writes("view", "--html", ".html", ("view", "run.mcap", "--html", "{}")),
    *(Writes("movie", "-o", ending, ("movie", "run.mcap", "-o", "{}", "--size", "64x64", "--to", "0.2"))
      for ending in (".mp4", ".gif", ".png")),
    Writes("identify", "--write", ".toml", ("identify", "run.mcap", *FIT, "--quiet", "--write", "{}")),
    Writes("identify", "-o", ".html", ("identify", "run.mcap", *FIT, "--quiet", "-o", "{}")),
    Writes("identify", "-o", ".svg", ("identify", "run.mcap", *FIT, "--quiet", "-o", "{}")),
    Writes("sweep", "-o", ".parquet", ("sweep", "manta", "--vary", "seed=1,2", "--duration", "0.1", "--dt", "0.01",
                                       "--set", "chains=4",
                                       "--threads", "1", "--quiet", "-o", "{}")),
    Writes("export-fmu", "-o", ".fmu", ("export-fmu", "manta", "-o", "{}")),
]  # fmt: skip

WRITTEN_IN_FOLDERS = {
    ("gaits", "-o"): "figures and tables, each within `new_file_beside`",
    ("reproduce", "-o"): "figures and tables, each within `new_file_beside`",
    ("envelope", "-o"): "tables, a figure and a report, each within `new_file_beside`",
    ("new", "-o"): "a folder, which is moved to its place when it is whole",
    ("keys", "directory"): "keys, which are removed where one cannot be written (tests/wire/endpoints/test_keys.py)",
    ("bridge", "--write-dbc"): "needs a plant that runs (tests/bridges/test_can.py); within `new_file_beside`",
    ("serve", "--log"): "by the recorder of `run --log`",
    ("sweep", "--figure"): "within `new_file_beside`, as every figure",
}
"""(command, option) of files that are written in several parts, or beside a plant. tests/test_whole_file.py holds each
of their writers."""

READS = {
    ("run", "robot"): ("run", "{}.py:make"), ("run", "scenario"): ("run", "{}.toml"),
    ("run", "--preset"): ("run", "torpedo", "--preset", "{}.toml"),
    ("run", "--sensors"): ("run", "torpedo", "--sensors", "{}.toml"),
    ("run", "--from"): ("run", "--from", "{}.mcap@1"), ("run", "--keys"): ("run", "torpedo", "--keys", "{}"),
    ("run", "--controller"): ("run", "torpedo", "--controller", "cpg:{}.toml"),
    ("run", "--bridge"): ("run", "torpedo", "--bridge", "udp:config={}.toml"),
    ("serve", "--preset"): ("serve", "torpedo", "--preset", "{}.toml"),
    ("serve", "--sensors"): ("serve", "torpedo", "--sensors", "{}.toml"),
    ("serve", "--keys"): ("serve", "torpedo", "--keys", "{}"),
    ("control", "--keys"): ("control", "cpg", "--keys", "{}"),
    ("bridge", "--keys"): ("bridge", "udp", "--keys", "{}"), ("view", "--keys"): ("view", "--keys", "{}"),
    ("status", "--keys"): ("status", "--keys", "{}"), ("set", "--keys"): ("set", "a=1", "--keys", "{}"),
    ("pause", "--keys"): ("pause", "--keys", "{}"), ("resume", "--keys"): ("resume", "--keys", "{}"),
    ("reset", "--keys"): ("reset", "--keys", "{}"), ("stop", "--keys"): ("stop", "--keys", "{}"),
    ("replay", "file"): ("replay", "{}.mcap"), ("log csv", "file"): ("log", "csv", "{}.mcap"),
    ("log info", "file"): ("log", "info", "{}.mcap"), ("log parquet", "file"): ("log", "parquet", "{}.mcap"),
    ("plot", "file"): ("plot", "{}.mcap"), ("view", "file"): ("view", "{}.mcap"),
    ("movie", "file"): ("movie", "{}.mcap", "-o", "a.gif"), ("compare", "files"): ("compare", "{}.mcap", "{}.mcap"),
    ("gaits", "--gait"): ("gaits", "purcell", "--gait", "{}.csv"),
    ("sweep", "what"): ("sweep", "{}.toml", "-o", "a.parquet"),
    ("sweep", "--dask-security"): ("sweep", "manta", "--vary", "seed=1,2", "-o", "a.parquet", "--dask", "tls://127.0.0.1:9",
                                   "--dask-security", "{}.toml"),
    ("envelope", "--dask-security"): ("envelope", "none.toml", "-o", "folder", "--dask", "tls://127.0.0.1:9",
                                      "--dask-security", "{}.toml"),
    ("sweep", "--preset"): ("sweep", "torpedo", "--vary", "seed=1,2", "--preset", "{}.toml", "-o", "a.parquet"),
    ("sweep", "--sensors"): ("sweep", "torpedo", "--vary", "seed=1,2", "--sensors", "{}.toml", "-o", "a.parquet"),
    ("envelope", "scenario"): ("envelope", "{}.toml", "-o", "folder"),
    ("identify", "files"): ("identify", "{}.csv", *FIT),
    ("identify", "--columns"): ("identify", "run.csv", *FIT, "--columns", "{}.toml"),
    ("identify", "--preset"): ("identify", "run.csv", *FIT, "--preset", "{}.toml"),
    ("identify", "--objective"): ("identify", "run.csv", *FIT, "--objective", "{}.toml"),
    ("identify", "--sensors"): ("identify", "run.csv", *FIT, "--sensors", "{}.toml"),
    ("trim", "--preset"): ("trim", "eel", "--preset", "{}.toml"),
    ("export-fmu", "--preset"): ("export-fmu", "torpedo", "--preset", "{}.toml", "-o", "a.fmu"),
}  # fmt: skip
"""A command for each option that names a file to read; `{}` stands for a pipe."""


def commands(group: click.Group = command_line.rtmms, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def named_files() -> set[tuple[str, str]]:
    """(command, option) of all that names a file, by its type, its metavar, or its name."""
    return {
        (name, param.opts[0])
        for name, command in commands()
        for param in command.params
        if param.opts[0] in ("--preset", "--sensors", "--keys")
        or isinstance(param.type, click.Path)
        or "FILE" in str(param.metavar)
        or ".toml" in str(param.metavar)
    }


OF_CODE = {
    ("run", "what"), ("control", "spec"), ("serve", "what"), ("replay", "--robot"), ("identify", "--robot"),
    ("run", "--controller"), ("serve", "--controller"), ("bench", "name"),
}  # fmt: skip
"""Options whose files are code, or that name a plug-in first."""


def test_every_option_that_names_a_file_has_a_case() -> None:
    known = {(write.command, write.option) for write in WRITES} | set(WRITTEN_IN_FOLDERS) | set(READS) | OF_CODE
    assert not named_files() - known, "an option that names a file has no case in WRITES or READS"
    assert set(KINDS) - {".dbc"} == {write.ending for write in WRITES}, "a kind of file has no case in WRITES"
    known_commands = {name for name, _ in commands()}
    assert {write.command for write in WRITES} | {name for name, _ in READS} <= known_commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a log, and the same as a table."""
    built = tmp_path_factory.mktemp("files")
    for arguments in (
        ("run", *MANTA, "--controller", "gait", "--log", "run.mcap"),
        ("log", "csv", "run.mcap", "-o", "run.csv"),
    ):
        result = rtmms(built, *arguments)
        assert result.status == 0, result.err
    return built


@contextlib.contextmanager
def _captured_by_pipes(printed: list[str]) -> Iterator[None]:
    """As `shell._captured`; a limit on the size of files does not hold for pipes."""
    ends = [os.pipe() for _ in range(2)]
    texts: list[list[bytes]] = [[], []]
    readers = [
        threading.Thread(target=_read_all, args=(os.fdopen(end, "rb"), text), daemon=True)
        for (end, _), text in zip(ends, texts, strict=True)
    ]
    copies = [os.dup(number) for number in (1, 2)]
    streams = sys.stdout, sys.stderr
    for stream in streams:
        stream.flush()
    for number, (_, end) in zip((1, 2), ends, strict=True):
        os.dup2(end, number)
        os.close(end)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        for mine in (sys.stdout, sys.stderr):
            mine.close()
        sys.stdout, sys.stderr = streams
        for number, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        for reader in readers:
            reader.join()
        printed += [b"".join(text).decode(errors="replace") for text in texts]


def _read_all(stream: IO[bytes], into: list[bytes]) -> None:
    with stream:
        into.append(stream.read())


def on_a_full_disk(folder: Path, room: int, *text: str) -> Finished:
    """`rtmms WORDS`, where no file can be larger than `room` bytes, in this process and in those that it starts."""
    printed: list[str] = []
    status = 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with shell._as_a_process(folder), _captured_by_pipes(printed):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        try:
            command_line.main(list(text))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return Finished(status, *printed)


LIMITED = [write for write in WRITES if write.command != "run"]
RUNS = [write for write in WRITES if write.command == "run"]
"""A run makes shared memory, for which the limit on the size of files holds, too: it needs a disk that is full."""


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="limits of the system")
@pytest.mark.parametrize("single", LIMITED, ids=lambda item: f"{item.command} {item.option} {item.ending}")
def test_a_full_disk_leaves_the_file_as_it_was(folder: Path, single: Writes, tmp_path: Path) -> None:
    for name in ("run.mcap", "run.csv"):
        (tmp_path / name).symlink_to(folder / name)
    name = f"out{single.ending}"
    arguments = [word.replace("{}", name) for word in single.options]
    result = rtmms(tmp_path, *arguments)
    assert result.status == 0, result.err
    whole = (tmp_path / name).read_bytes()
    there = _files(tmp_path)
    for room in (len(whole) // 2, 0):
        result = on_a_full_disk(tmp_path, room, *arguments)
        assert result.status == 1, (room, result.err)
        assert name in result.err.splitlines()[-1]
        assert "Traceback" not in result.err
        assert (tmp_path / name).read_bytes() == whole, "what was there before is lost"
        assert _files(tmp_path) == there, "something half-written is left"


SCRIPT = """
mount -t tmpfs -o size=$1 none disk && cp whole disk/$2 || exit 99
name=$2; shift 2; "$@"; status=$?
cmp -s whole disk/$name || echo "changed"
ls -A disk; exit $status
"""
"""Of a disk of so many bytes, on which the file is already there."""


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts")
@pytest.mark.parametrize("single", RUNS, ids=lambda item: f"{item.command} {item.option} {item.ending}")
def test_a_run_onto_a_full_disk(single: Writes, tmp_path: Path) -> None:
    name = f"out{single.ending}"
    (tmp_path / "disk").mkdir()
    result = rtmms(tmp_path, *(word.replace("{}", "whole" + single.ending) for word in single.options))
    assert result.status == 0, result.err
    os.rename(tmp_path / f"whole{single.ending}", tmp_path / "whole")
    room = os.path.getsize(tmp_path / "whole") * 3 // 2
    arguments = [word.replace("{}", f"disk/{name}") for word in single.options]
    done = subprocess.run(
        [
            "unshare",
            "-rm",
            "sh",
            "-c",
            SCRIPT,
            "sh",
            str(room),
            name,
            sys.executable,
            "-m",
            "rtmms.cli.main",
            *arguments,
        ],
        cwd=tmp_path,
        env=shell.environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no mount without rights: {done.stderr.strip()}")
    assert done.returncode == 1, done.stderr
    assert name in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    # a log's first part is worth having: it is put in its place, and can be read
    assert done.stdout.splitlines()[-2 if single.option == "--log" else -1 :] == (
        ["changed", name] if single.option == "--log" else [name]
    )


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        pytest.param(*item, marks=pytest.mark.full if item[0][0] in ("sweep", "envelope", "view") else ())
        for item in READS.items()
    ],
    ids=lambda item: " ".join(item) if len(item) == 2 else "",
)
def test_a_pipe_is_refused_without_waiting(tmp_path: Path, option: tuple[str, str], arguments: tuple[str, ...]) -> None:
    del option
    (tmp_path / "run.csv").write_text("time\n0\n1\n2\n")
    for ending in ("", ".toml", ".csv", ".mcap", ".py"):
        os.mkfifo(tmp_path / f"pipe{ending}")
    there = _files(tmp_path)
    result = rtmms(tmp_path, *(word.replace("{}", "pipe") for word in arguments))
    assert result.status == 2, result.err
    assert "pipe" in result.err
    assert "Traceback" not in result.err
    assert _files(tmp_path) == there


def _files(folder: Path) -> list[str]:
    """Return the names in a folder, but for the runtime directory and for a sweep's parts, from which it goes on."""
    result = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    return sorted(name for name in result if not name.startswith("rtmms") and not re.search(r"\.parts(/part-|$)", name))
