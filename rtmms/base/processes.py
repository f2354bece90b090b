"""Processes: start of Python children, memory that they share with us, and the cores that this process may use.

The start is in one place, so that each child ignores the working directory and ends with us. `rtmms run`, `serve`,
`sweep`, `envelope`, the log's writer, the stall detector and the compiler's helper use it. A child inherits the
environment. The module of a child determines its work.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

PARENT = "RTMMS_PARENT"
"""Environment variable of a child: process id of the process that started it."""

SAFE_PATH = "PYTHONSAFEPATH"
"""Environment variable of Python with which the interpreter does not import from the working directory."""

KILL = 9
"""SIGKILL, which Windows does not name."""

_PR_SET_PDEATHSIG = 1


def core_count() -> int:
    """Return the number of cores that this process may use.

    Returns
    -------
    int
        At least 1.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shared_memory(name: str, size: int) -> int:
    """Return a descriptor of memory without a path; of a file if the system has nothing better.

    Parameters
    ----------
    name : str
        Name in the lists of the system.
    size : int
        Bytes.

    Returns
    -------
    int
        The descriptor, which a child inherits if it is passed.
    """
    if sys.platform == "linux":
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def start_python(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start `python -P ARGUMENTS`.

    The child does not import modules from the working directory. It ends with this process if it calls
    `end_with_parent` first of all.

    Parameters
    ----------
    arguments : Sequence[str]
        Arguments of the interpreter: `-m`, `MODULE`, ..., or `-c`, `PROGRAM`.
    environment : Mapping[str, str] | None, optional
        Environment of the child; None: that of this process. `RTMMS_PARENT` is added.
    **options : Any
        Further keywords of `subprocess.Popen`.

    Returns
    -------
    subprocess.Popen[bytes]
        The process.
    """
    child_environment = {**(os.environ if environment is None else environment), PARENT: str(os.getpid())}
    return subprocess.Popen([sys.executable, "-P", *arguments], env=child_environment, **options)


def run_python(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run `python -P ARGUMENTS` to its end; see `start_python`.

    Parameters
    ----------
    arguments : Sequence[str]
        Arguments of the interpreter.

    Returns
    -------
    subprocess.CompletedProcess[str]
        Its status and its texts.
    """
    with start_python(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            out, err = child.communicate()
        except BaseException:
            child.kill()
            raise
        return subprocess.CompletedProcess(child.args, child.returncode, str(out), str(err))


def end_with_parent(number: int = signal.SIGTERM, parent: int | None = None) -> None:
    """Have the system end this process when its parent ends, also after SIGKILL (Linux).

    It does nothing in a process that `start_python` did not start.

    Parameters
    ----------
    number : int, default signal.SIGTERM
        Signal that this process receives then.
    parent : int | None, optional
        Process id of the parent. None: that of the environment, which is removed there, because it is wrong for the
        children of this process.

    Raises
    ------
    ModelError
        If the environment has no process id.
    SystemExit
        If the parent has ended already.
    """
    if parent is None:
        word = os.environ.pop(PARENT, "")
        if not word:
            return
        if not word.isascii() or not word.isdigit():
            raise ModelError(
                f"environment variable {PARENT}: expected the process number of the parent, got {word!r:.60}; unset it"
            )
        parent = int(word)
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the system knew
        sys.exit(1)


@contextmanager
def process_pool(workers: int, environment: Mapping[str, str] | None = None) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool of Python processes that do not import from the working directory and end with this process.

    At the end of the block the pool accepts no further work, and its processes end after their present work; after an
    error or Ctrl-C in the block they end at once.

    Parameters
    ----------
    workers : int
        Number of processes.
    environment : Mapping[str, str] | None, optional
        Variables of the processes in addition to those of this process.

    Yields
    ------
    ProcessPoolExecutor
        The pool.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    additions = {**(environment or {}), SAFE_PATH: "1"}
    before = {name: os.environ.get(name) for name in additions}
    os.environ.update(additions)  # the pool starts its processes at each submit
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker, (os.getpid(),))
    try:
        yield pool
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin_worker(parent: int) -> None:
    """Ignore Ctrl-C, which the parent handles, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        end_with_parent(KILL, parent)
    except SystemExit:  # which a pool would print as an error
        os._exit(1)
