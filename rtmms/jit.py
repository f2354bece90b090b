"""Compiling kernels: one set of options, a cache that cannot go stale, and progress while it is being filled.

numba's own cache looks only at the file of the function itself, so that a change in a kernel it calls would be missed.
Ours is a folder named after all sources that kernels are made of; folders of sources that are gone are swept away.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.terminal import console, print_text
from rtmms.trust import exposed, exposed_way

Array = npt.NDArray[np.float64]
Floats = tuple[float, ...]
"""Numbers that pass between inlined functions; their count is fixed, and said where they are made."""

LAYERS = (
    "model", "dynamics", "fluids", "mechanism", "analysis", "locomotion", "continuum", "robots", "sensing", "world",
)  # fmt: skip
"""Folders with kernels of plants, or with constants that they are compiled with."""

EXCHANGE = ("loop/kernels", "wire/kernels")
"""Folders with kernels of the exchange: kept apart, so that a change there costs no plant its own."""

FLAGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "CPU_NAME", "CPU_FEATURES", "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML", "LLVM_PASS_TIMINGS",
)  # fmt: skip
"""Settings of numba (environment NUMBA_...) that change what is compiled."""

KEPT = 4
"""Cache folders of other sources (branches, versions, environments) that are left in place."""


def _fingerprint(layers: tuple[str, ...]) -> str:
    """Sources of these folders by path, size and time, and what compiled code depends on besides."""
    import llvmlite
    import numba
    from llvmlite import binding
    from numba.core import config

    root = Path(__file__).parent
    digest = hashlib.sha256(f"{sys.version} {numba.__version__} {llvmlite.__version__} {root}".encode())
    digest.update(f"{binding.get_host_cpu_name()} {[str(getattr(config, flag, None)) for flag in FLAGS]}".encode())
    sources = [root / "jit.py", root / "spatial.py", root / "addresses.py", root / "memory.py"]
    if layers is EXCHANGE:
        sources.append(root / "contract.py")
    for layer in layers:
        sources += sorted((root / layer).rglob("*.py"))
    for path in sources:
        if not path.exists():
            continue
        stat = path.stat()
        digest.update(f"{path.relative_to(root)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def cache_folder(kind: str = "") -> Path:
    """Where compiled kernels of these sources, made with these flags, are kept: below NUMBA_CACHE_DIR, if it is set.

    kind   '' for plants, 'exchange' for the exchange
    """
    from platformdirs import user_cache_dir

    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(chosen) if chosen else Path(user_cache_dir("rtmms")) / (f"kernels-{kind}" if kind else "kernels")
    return home / _fingerprint(EXCHANGE if kind else LAYERS)


TEMPORARY = "rtmms-kernels-"
"""How the folders of kernels begin that go with a process."""

_home: dict[str, str] = {}
"""The folder of each kind that is in use."""


@contextmanager
def _private() -> Iterator[None]:
    """Within: new files are 0600, new folders 0700."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _use_cache(kind: str = "") -> None:
    """Point numba at the folder for these sources, and sweep away older ones, where all are ours."""
    from numba.core import config

    if kind in _home:
        config.CACHE_DIR = _home[kind]
        return
    folder = cache_folder(kind)
    home = folder.parent
    try:
        with _private():
            folder.mkdir(parents=True, exist_ok=True)
        why = exposed_way(home.parent) or _make_private(home) or strange(home)
        if why:
            folder, home = _instead(home, why, kind)
        folder.mkdir(exist_ok=True, mode=0o700)
        os.utime(folder)
        others = [p for p in home.iterdir() if p.is_dir() and p != folder]
        if os.environ.get("NUMBA_CACHE_DIR"):
            others = []
        others.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        for old in others[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as fault:
        try:  # not numba's own choice, beside the sources: what is there can be of other sources and flags
            folder, _ = _instead(home, f"'{folder}' cannot be written ({fault.strerror})", kind)
        except OSError:
            return  # nothing can be written anywhere
    config.CACHE_DIR = _home[kind] = str(folder)


def strange(home: Path) -> str:
    """Why what is kept below this folder is not to be trusted, '' where nobody but us and root can have put it there.

    numba unpickles what it finds: who can write there has code of theirs run as us.
    """
    for place, _, files in os.walk(home):
        for path in (place, *(os.path.join(place, name) for name in files)):
            with suppress(FileNotFoundError):  # others come and go beside us
                why = exposed(path)
                if why:
                    return why
    return ""


def _make_private(home: Path) -> str:
    """Folders and files of ours that a group or everybody may write: they go, as nobody knows what is in them, and the
    folder is this user's alone (0700). Returns why that cannot be, '' where it is."""
    if not hasattr(os, "geteuid"):
        return ""
    with suppress(FileNotFoundError):
        if home.lstat().st_uid != os.geteuid():
            return exposed(home)
        open_to_others = exposed(home) != ""
        home.chmod(0o700)
        for entry in list(home.iterdir()):
            with suppress(FileNotFoundError):
                if entry.lstat().st_uid != os.geteuid() or not (open_to_others or strange(entry) or exposed(entry)):
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink()
    return ""


def _sweep_temporary() -> None:
    """Remove the temporary caches of processes of ours that were killed (`_instead` names them by their process)."""
    with suppress(OSError):
        for left in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
            maker = left.name.removeprefix(TEMPORARY).partition("-")[0]
            if not maker.isdecimal() or left.is_symlink() or left.stat().st_uid != os.geteuid():
                continue
            try:
                os.kill(int(maker), 0)
            except ProcessLookupError:
                shutil.rmtree(left, ignore_errors=True)
            except (OSError, OverflowError):
                continue


def _instead(home: Path, why: str, kind: str) -> tuple[Path, Path]:
    """A new folder that goes with this process, for it and those that it starts, in place of one not to be trusted."""
    advice = "rm -r it, or name another folder in XDG_CACHE_HOME"
    wanted = f"expected '{home}' to be ours alone, and to be written"
    print_text(f"rtmms: compiled kernels are not kept: {why}; {wanted}: {advice}", err=True)
    maker = os.getpid()
    made = tempfile.mkdtemp(prefix=f"{TEMPORARY}{maker}-")

    def sweep() -> None:
        if os.getpid() == maker:
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(sweep)
    os.environ["NUMBA_CACHE_DIR"] = made
    folder = cache_folder(kind)
    folder.mkdir(parents=True, exist_ok=True)
    return folder, folder.parent


if os.name == "posix":
    _sweep_temporary()
_use_cache()

from llvmlite.binding import Linkage  # noqa: E402
from numba import config as _config  # noqa: E402
from numba import njit as _njit  # noqa: E402  (after the cache is chosen: numba reads it when a function is decorated)
from numba import typeof, types  # noqa: E402
from numba.core.caching import CompileResultCacheImpl, FunctionCache  # noqa: E402
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen  # noqa: E402

COMPILED = not _config.DISABLE_JIT
"""False under NUMBA_DISABLE_JIT, where kernels run as plain Python."""

STRICT: set[str] = {"contract", "nsz"}
"""Fused multiply-add and no sign of zero; no reordering, so every run of one machine gives the same bits. NaN and
infinity keep their meaning."""


INLINE: dict[str, Any] = {"error_model": "numpy", "fastmath": STRICT, "forceinline": True}
"""The options of inlined scalar code, for numba.extending.overload."""


class _OwnCopies(JITCodeLibrary):  # type: ignore[misc]
    """Code that runs the copies of inner kernels that were optimised with it.

    A kernel that Python calls is linked with the inner ones it calls, and optimised again with them. As weak symbols of
    one name those copies would give way to whichever was loaded first: a process that compiles would run other copies,
    rounded otherwise in the last bit, than one that finds all in the cache. So each has a name of its own.
    """

    def _finalize_final_module(self) -> None:
        made = [function for function in self._final_module.functions if not function.is_declaration]
        doors = [function.name for function in made if function.name.startswith(_FROM_PYTHON)]
        if doors:
            tag = hashlib.sha256(doors[0].encode()).hexdigest()[:16]
            for function in made:
                if function.linkage == Linkage.linkonce_odr and function.name.startswith(_OURS):
                    function.name = f"{function.name}.{tag}"
        super()._finalize_final_module()


_OURS, _FROM_PYTHON = "_ZN5rtmms", "_ZN7cpython5rtmms"
"""How numba names our functions, and those that Python enters by."""
JITCPUCodegen._library_class = _OwnCopies


class _Cache(FunctionCache):  # type: ignore[misc]
    """numba's cache on disk, written by one process at a time: two that add to one index would mix up their entries.

    What cannot be read there (a machine that went down while it was written) is compiled again; what cannot be written
    (a disk that is full) is not kept."""

    _told = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling makes of such bytes
            with _writing(Path(self.cache_path)), suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            with _writing(Path(self.cache_path)), _private():
                super().save_overload(sig, data)
        except OSError as fault:
            if not _Cache._told:
                _Cache._told = True
                print_text(
                    f"rtmms: compiled kernels are not kept, and compiled again each time: {self.cache_path}: "
                    f"{fault.strerror}; make room, or name another folder in XDG_CACHE_HOME",
                    err=True,
                )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        import fcntl

        with _private():
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / "lock").open("w")
    except (ImportError, OSError):
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _InnerFiles(CompileResultCacheImpl):  # type: ignore[misc]
    """Files of their own for kernels as other kernels call them."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"inner-{super().get_filename_base(fullname, abiflags)}"


class _InnerCache(_Cache):
    _impl_class = _InnerFiles


def kernel(
    function: Callable[..., Any] | None = None, *, inline: bool = False, fused: bool = True, merged: bool = False
) -> Any:
    """Decorator: compile on first call, keep on disk; numpy's division, no GIL.

    inline  for small scalar functions: always in line, never a call
    fused   False for code whose finiteness checks or complex-step tests must see plain arithmetic
    merged  becomes part of the one kernel that calls it, and is not compiled for itself
    A call from another kernel gets a version of its own, without the doors that a call from Python needs: they take
    as long to compile as the code itself. Of an inline kernel a literal number counts as a number there, not as a type
    of its own, since the compiler sees it all the same.
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
        with _cached(function):
            outer._cache = _Cache(function)
            inner._cache = _InnerCache(function)

        def get_call_template(args: Any, kws: Any) -> Any:
            return inner.get_call_template(tuple(types.unliteral(a) for a in args) if inline else args, kws)

        outer.get_call_template, outer.get_overload = get_call_template, inner.get_overload
    return outer


@contextmanager
def _cached(function: Callable[..., Any]) -> Iterator[None]:
    """Within: numba is pointed at the folder of the function's kind, which it looks up once."""
    kind = "exchange" if function.__module__.startswith(("rtmms.loop.", "rtmms.wire.")) else ""
    _use_cache(kind)
    try:
        with _private():  # numba makes folders when it is pointed there
            yield
    finally:
        _use_cache()


def native(compiled: Any, *arguments: Any) -> int:
    """The address of a kernel as a C function, compiled for arguments such as these: whole numbers, or None.

    Compiled code calls it without Python; of None, which is passed as well, it takes no notice. A fault in it is told
    on standard error, and it returns 0.
    """
    kinds = tuple(typeof(argument) for argument in arguments)
    compiled.compile(kinds)
    result = compiled.overloads[kinds]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))


@contextmanager
def helped(program: str, *kernels: Any) -> Iterator[None]:
    """Within: where the cache holds none of `kernels`, a second process runs `program`, Python that compiles into it.

    What it has finished is found there, what it has not is compiled here. It ends with the block, or with this process.
    """
    child = None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    python = Path(sys.executable or "none").name.startswith("python")  # not a program that Python is embedded in
    if COMPILED and python and cores > 1 and not any(_kept(one) for one in kernels):
        with suppress(OSError):
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from rtmms.jit import die_with_parent; die_with_parent(); {program}"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
    try:
        yield
    finally:
        if child is not None:
            child.kill()
            child.wait()


def die_with_parent() -> None:
    """Ask the kernel of the system to end this process when the one that started it ends (Linux)."""
    with suppress(OSError, AttributeError):
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _kept(one: Any) -> bool:
    """Whether the cache holds any version of a kernel as Python calls it."""
    try:
        return bool(one._cache._cache_file._load_index())
    except Exception:  # no cache, or whatever unpickling makes of a damaged one
        return True


class _Bar:
    """How far compiling is, on a terminal.  expected: s, as long as it took last; None where nobody knows."""

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
    """Say on standard error what is being compiled inside the block, and nothing when all comes from the cache.

    RTMMS_QUIET in the environment keeps it silent.
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
    bar = _Bar(before) if sys.stderr.isatty() else None

    class Listener(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.count, self.start = 0, time.monotonic()

        def on_start(self, event: Any) -> None:
            self.count += 1
            if self.count == 1:
                print_text(f"rtmms: compiling {what} (once on this machine{expected})", err=True)
            if bar is not None:
                seconds = time.monotonic() - self.start
                bar.show(seconds, f"{self.count} functions: {event.data['dispatcher'].py_func.__name__}")

        def on_end(self, event: Any) -> None:
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
