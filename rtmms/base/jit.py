"""Compilation of kernels: one set of options, and progress while they compile.

`rtmms.base.kernel_cache` stores the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import config as _config
from numba import njit as _njit
from numba import typeof, types

from rtmms.base import code_library
from rtmms.base.kernel_cache import attach_caches, cache_folder
from rtmms.base.processes import KILL, core_count, start_python
from rtmms.base.terminal import console, print_text

Array = npt.NDArray[np.float64]
Floats = tuple[float, ...]
"""Numbers that pass between inlined functions; their count is fixed at their creation."""

code_library.install()
code_library.install_shortcuts()

COMPILED = not _config.DISABLE_JIT
"""False under NUMBA_DISABLE_JIT, where kernels run as plain Python."""

STRICT: set[str] = {"contract", "nsz"}
"""Fast-math flags: fused multiply-add and no sign of zero.

There is no reordering, so every run of one machine gives the same bits. NaN and infinity keep their meaning.
"""


INLINE: dict[str, Any] = {"error_model": "numpy", "fastmath": STRICT, "forceinline": True}
"""Options of inlined scalar code, for numba.extending.overload."""


def kernel(
    function: Callable[..., Any] | None = None, *, inline: bool = False, fused: bool = True, merged: bool = False
) -> Any:
    """Decorate a function so that its first call compiles it; the code is stored on disk.

    Divisions are numpy's, and the GIL is released. A call from another kernel has its own version without the entries
    for Python, which take as long to compile as the code itself. An inline kernel treats a literal number as a number,
    not as a type of its own, because the compiler sees it all the same.

    Parameters
    ----------
    function : Callable[..., Any] | None, optional
        The function; None if the decorator has options.
    inline : bool, default False
        Whether calls are always inlined, for small scalar functions.
    fused : bool, default True
        False for code with finiteness checks or complex-step tests, which need plain arithmetic.
    merged : bool, default False
        Whether it becomes part of the one kernel that calls it, without its own compilation.

    Returns
    -------
    Any
        The compiled function, or the decorator.
    """
    if function is None:
        return partial(kernel, inline=inline, fused=fused, merged=merged)
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    if fused:
        options["fastmath"] = STRICT
    if inline:
        options["forceinline"] = True
    if merged:
        options["inline"] = "always"
    outer = _njit(**options)(function)
    if COMPILED:
        inner = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
        attach_caches(function, outer, inner)

        def get_call_template(args: Any, kws: Any) -> Any:
            return inner.get_call_template(tuple(types.unliteral(a) for a in args) if inline else args, kws)

        outer.get_call_template, outer.get_overload = get_call_template, inner.get_overload
    return outer


def native(compiled: Any, *arguments: Any) -> int:
    """Return the address of a kernel as a C function.

    Compiled code calls it without Python, and ignores a None that it returns. The function prints a fault on standard
    error, and returns 0.

    Parameters
    ----------
    compiled : Any
        The kernel.
    *arguments : Any
        Examples of its arguments: whole numbers, or None.

    Returns
    -------
    int
        The address.
    """
    kinds = tuple(typeof(argument) for argument in arguments)
    compiled.compile(kinds)
    result = compiled.overloads[kinds]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))


@contextmanager
def compile_in_parallel(program: str, *kernels: Any) -> Iterator[None]:
    """Run a second process that compiles into the cache, if the cache has none of the kernels.

    It starts only if a core is idle, because both processes compile some kernels. This process finds finished kernels
    in the cache, and compiles the others itself. The second process ends with the block, or with this process.

    Parameters
    ----------
    program : str
        Python program of the second process.
    *kernels : Any
        The kernels.

    Yields
    ------
    None
        Nothing.
    """
    child = None
    python = Path(sys.executable or "none").name.startswith("python")  # not a program that Python is embedded in
    if COMPILED and program and python and _has_idle_core() and not any(_has_cached_version(item) for item in kernels):
        with suppress(OSError):
            child = start_python(
                ["-c", f"from rtmms.base.processes import end_with_parent; end_with_parent({KILL}); {program}"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
    try:
        yield
    finally:
        if child is not None:
            child.kill()
            child.wait()


def _has_idle_core() -> bool:
    """Return whether there are two cores, and one was idle in the last minute."""
    cores = core_count()
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        load = 0.0
    return cores > 1 and load + 1.0 <= cores


def _has_cached_version(item: Any) -> bool:
    """Return whether the cache has any version of a kernel for calls from Python."""
    try:
        return bool(item._cache._cache_file._load_index())
    except Exception:  # no cache, or whatever unpickling makes of a damaged one
        return True


class _ProgressBar:
    """Progress bar of a compilation on a terminal; `expected` is its last duration, s, None if unknown."""

    def __init__(self, expected: float | None) -> None:
        self._expected = expected
        self._progress: Any = None

    def show(self, seconds: float, text: str) -> None:
        if self._progress is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (BarColumn(30), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._progress = Progress(*columns, console=console(err=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("", total=self._expected)
        known = self._expected is not None
        self._progress.update(
            self._task, description=text, completed=min(seconds, self._expected or 0.0) if known else 0
        )

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


@contextmanager
def compile_progress(what: str) -> Iterator[None]:
    """Print on standard error what the block compiles; nothing if all comes from the cache.

    RTMMS_QUIET in the environment suppresses it.

    Parameters
    ----------
    what : str
        Name of the compiled object.

    Yields
    ------
    None
        Nothing.
    """
    from numba.core import event

    if os.environ.get("RTMMS_QUIET"):
        yield
        return
    record = cache_folder().parent / ("last " + what.replace("/", "_"))
    before = None
    with suppress(OSError, ValueError):
        before = float(record.read_text())
    expected = "" if before is None else f"; the last time took {before:.0f} s"
    bar = _ProgressBar(before) if sys.stderr.isatty() else None

    class Listener(event.Listener):  # type: ignore[misc]
        """Listener that counts and prints compilations."""

        def __init__(self) -> None:
            self.count, self.start = 0, time.monotonic()

        def on_start(self, event: Any) -> None:
            """Count a compilation, and print the first.

            Parameters
            ----------
            event : Any
                Event of numba.
            """
            self.count += 1
            if self.count == 1:
                print_text(f"rtmms: compiling {what} (once on this machine{expected})", err=True)
            if bar is not None:
                seconds = time.monotonic() - self.start
                bar.show(seconds, f"{self.count} functions: {event.data['dispatcher'].py_func.__name__}")

        def on_end(self, event: Any) -> None:
            """Do nothing.

            Parameters
            ----------
            event : Any
                Event of numba.
            """
            pass

    listener = Listener()
    try:
        with event.install_listener("numba:compile", listener):
            yield
    finally:
        if bar is not None:
            bar.close()
    if listener.count:
        seconds = time.monotonic() - listener.start
        with suppress(OSError):
            record.write_text(f"{seconds:.1f}")
        with suppress(OSError):
            print_text(f"rtmms: compiled {listener.count} functions in {seconds:.1f} s", err=True)
