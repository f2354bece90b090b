"""Run the command `rtmms` as a user would, with the test plug-ins installed.

`rtmms` runs it in the test's process, which costs milliseconds where a process of its own costs seconds. `process` and
`start` run it in a process of its own: for signals, exit statuses of interpreters, limits of the system, and streams.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = str(ROOT / "tests" / "plugins")


@dataclass(frozen=True)
class Finished:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The one object on standard output."""
        content: dict[str, Any] = json.loads(self.out, parse_constant=lambda word: 1 / 0)
        return content


def environment(tmp_path: Path) -> dict[str, str]:
    """The test plug-ins on the path, and a runtime directory of the test's own."""
    parts = [PLUGINS, str(ROOT), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(part for part in parts if part)
    return os.environ | {"PYTHONPATH": path, "XDG_RUNTIME_DIR": str(tmp_path), "COLUMNS": "200"}


def start(tmp_path: Path, *text: str, new_session: bool = False) -> subprocess.Popen[str]:
    """`rtmms WORDS` in a process of its own, with the signals of one that a terminal starts."""
    return subprocess.Popen(
        [sys.executable, "-m", "rtmms.cli.main", *text], cwd=tmp_path, env=environment(tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=new_session, preexec_fn=default_signals if os.name == "posix" else None,
    )  # fmt: skip


def default_signals() -> None:
    """Restore the signals that a shell's `nohup` or `&` has its children ignore."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def finish(process: subprocess.Popen[str], timeout_s: float = 200) -> Finished:
    """Wait for the end of a process."""
    out, err = process.communicate(timeout=timeout_s)
    return Finished(process.returncode, out, err)


def process(tmp_path: Path, *text: str) -> Finished:
    """`rtmms WORDS` in a process of its own, to its end."""
    return finish(start(tmp_path, *text))


def rtmms(tmp_path: Path, *text: str) -> Finished:
    """`rtmms WORDS` in this process, to its end. The controllers and bridges of a run are processes all the same."""
    from rtmms.cli.main import main

    printed: list[str] = []
    with _as_a_process(tmp_path), _captured(printed):
        try:
            main(list(text))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Finished(status, *printed)


@contextlib.contextmanager
def _as_a_process(folder: Path) -> Iterator[None]:
    """Within: the folder, environment, path, and mask of a process of its own. All is as before afterwards."""
    before = os.getcwd(), dict(os.environ), list(sys.path), os.umask(0o022)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    formatting = warnings.formatwarning
    os.chdir(folder)
    sys.path[:0] = environment(folder)["PYTHONPATH"].split(os.pathsep)
    os.environ.update(environment(folder))
    importlib.invalidate_caches()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        warnings.formatwarning = formatting
        os.umask(before[3])
        sys.path[:] = before[2]
        os.environ.clear()
        os.environ.update(before[1])
        os.chdir(before[0])


@contextlib.contextmanager
def _captured(printed: list[str]) -> Iterator[None]:
    """Within: both streams go to files, those of this process's children too. `printed` gets their texts at the end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = sys.stdout, sys.stderr
        for stream in streams:
            stream.flush()
        copies = [os.dup(number) for number in (1, 2)]
        for number, file in ((1, out), (2, err)):
            os.dup2(file.fileno(), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        try:
            yield
        finally:
            for mine in (sys.stdout, sys.stderr):
                mine.close()  # the object alone, not the descriptor; a command may have closed it before
            sys.stdout, sys.stderr = streams
            for number, copy in zip((1, 2), copies, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            for file in (out, err):
                file.seek(0)
                printed.append(file.read().decode(errors="replace"))
