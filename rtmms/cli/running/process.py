"""Handling of Ctrl-C and SIGTERM within a command, and of the output and the exit of a plant from a file."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import io
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import RtmmsError

if TYPE_CHECKING:
    from rtmms.loop.loop import Loop


MAX_SECOND_INTERRUPT_S = 1.0


@contextmanager
def heeding_interrupts(*, to_the_end: bool = False) -> Iterator[None]:
    """Raise KeyboardInterrupt for any error in the block after Ctrl-C was pressed, as the press is its cause.

    It does nothing in a thread, or where other code handles the signal (SIG_IGN in the children of a run).

    Parameters
    ----------
    to_the_end : bool, default False
        KeyboardInterrupt at the end of the block, too, when the press was swallowed without an error.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C was pressed.
    """
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler or getattr(before, "__name__", "") == "_note_interrupt"
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[bool] = []
    hook = sys.unraisablehook

    def _note_interrupt(*_: Any) -> None:
        pressed.append(True)
        raise KeyboardInterrupt

    def silent(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            hook(unraisable)

    signal.signal(signal.SIGINT, _note_interrupt)
    sys.unraisablehook = silent
    try:
        yield
        if pressed and to_the_end:
            raise KeyboardInterrupt
    except Exception:
        if pressed:
            raise KeyboardInterrupt from None
        raise
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, before)


@contextmanager
def heeding_termination() -> Iterator[None]:
    """Handle SIGTERM as Ctrl-C in the block, so that started work is cleaned up.

    It does nothing where other code handles one of the two (children of a run do not receive Ctrl-C, and SIGTERM ends
    them).

    Yields
    ------
    None
        Nothing.
    """

    def end(_: int, frame: Any) -> None:
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)

    free = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and callable(signal.getsignal(signal.SIGINT))
    if not free or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interrupts_end(run: Loop) -> Iterator[None]:
    """End the run after its step at Ctrl-C, SIGTERM and a closed terminal; a second press breaks off.

    Where SIGHUP is ignored (nohup), it stays so.

    Parameters
    ----------
    run : Loop
        The loop.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    KeyboardInterrupt
        At a second press.
    """
    first_s: list[float] = []

    def end(*_: Any) -> None:
        # some senders signal the process and then its group: the second of a pair is not a person's impatience
        if first_s and time.monotonic() - first_s[0] > MAX_SECOND_INTERRUPT_S:
            raise KeyboardInterrupt
        first_s.append(time.monotonic())
        run.end("interrupt")

    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- A plant that comes from a file is a program of others, in our process: what it prints, and where it crashes.

_braced = False
_exit_callbacks: list[object] = []


def brace(robot: str) -> None:
    """Prepare the process for the code of a plant from a file, for the rest of its life.

    It does nothing for a plant by name, nor a second time.

    - Standard output is what Python writes there. Output of the plant's own code goes to standard error, that in C's
      buffers at exit, too.
    - A crash prints its place on standard error, and exit() called there a sentence.

    Parameters
    ----------
    robot : str
        The robot.
    """
    global _braced
    from rtmms.plant.loading import builder

    try:
        foreign = builder(robot).group == "rtmms.plant_files"
    except RtmmsError:  # there is none: whoever loads it reports that
        return
    if _braced or not foreign:
        return
    _braced = True
    try:
        if sys.stdout.fileno() == 1:
            sys.stdout.flush()
            ours = os.dup(1)
            os.dup2(sys.stderr.fileno(), 1)
            sys.stdout = io.TextIOWrapper(
                os.fdopen(ours, "wb"), sys.stdout.encoding, sys.stdout.errors, line_buffering=os.isatty(ours)
            )
        faulthandler.enable()
        _report_exit(robot)
    except (OSError, ValueError, AttributeError):  # closed, or no files at all, as below a test: nothing to keep apart
        return


def _report_exit(robot: str) -> None:
    """Register a handler for C's exit(), which does not call Python's atexit; it is removed when Python ends well.

    `__cxa_finalize` calls the handlers registered under a handle, and never again; glibc's does, musl's does not.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    handle = ctypes.create_string_buffer(1)
    well: list[bool] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def at_exit(_: int) -> None:
        if not well:
            os.write(2, f"rtmms: {robot}: its code ended this process by exit()\n".encode())

    def end() -> None:
        well.append(True)
        libc.__cxa_finalize(handle)

    if libc.__cxa_atexit(at_exit, None, handle) == 0:
        _exit_callbacks.append(at_exit)
        atexit.register(end)
