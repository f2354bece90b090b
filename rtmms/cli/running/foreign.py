"""A plant that comes from a file is a program of others, in our process: what it prints, and where it crashes."""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import io
import os
import platform
import sys

from rtmms.errors import RtmmsError

_braced = False
_kept: list[object] = []


def brace(robot: str) -> None:
    """Before the plant is loaded; does nothing for one by name, nor a second time. For the rest of the process:

    - Standard output is what Python writes there. What the plant's own code prints goes to standard error, that in C's
      buffers at exit, too.
    - A crash leaves its place on standard error, and exit() called there a sentence.
    """
    global _braced
    from rtmms.plant import builder

    try:
        foreign = builder(robot).group == "rtmms.plant_files"
    except RtmmsError:  # there is none: whoever loads it says so
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
        _tell_exit(robot)
    except (OSError, ValueError, AttributeError):  # closed, or no files at all, as below a test: nothing to keep apart
        return


def _tell_exit(robot: str) -> None:
    """C's exit() knows nothing of Python's atexit: a handler among C's own, taken off again when Python ends well.

    `__cxa_finalize` calls the handlers registered under a handle, and never again; glibc's does, musl's does not.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    handle = ctypes.create_string_buffer(1)
    well: list[bool] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def told(_: int) -> None:
        if not well:
            os.write(2, f"rtmms: {robot}: its code ended this process by exit()\n".encode())

    def end() -> None:
        well.append(True)
        libc.__cxa_finalize(handle)

    if libc.__cxa_atexit(told, None, handle) == 0:
        _kept.append(told)
        atexit.register(end)
