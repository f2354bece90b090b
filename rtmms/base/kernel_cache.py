"""Cache of compiled kernels on disk: keyed by content, private to its user, bounded in bytes.

`rtmms.base.jit.kernel` stores each compiled kernel here and loads it in the next process. The name of a cache folder
has the hash of all sources of its kernels. The path of the sources and their times are not part of that hash. So a
second clone or a reinstalled package uses the same compiled code. numba's own cache is no replacement. It reads only
the file of the function itself, and misses a change in a kernel which that function calls.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.runtime import rtsys

from rtmms.base.files import private_files
from rtmms.base.terminal import print_text
from rtmms.base.trust import exposed_way, exposure

ROOT = Path(__file__).parent.parent
"""Package with kernels that are keyed together."""

COMMON = (
    "base/jit.py", "base/kernel_cache.py", "base/code_library.py", "base/spatial.py", "base/memory.py",
    "base/pointers.py", "base/structs.py",
)  # fmt: skip
"""Sources that kernels of every kind use."""

PLANTS = (
    "model", "dynamics", "fluids", "mechanism", "analysis", "locomotion", "continuum", "robots", "sensing", "world",
    "plant/stage.py",
)  # fmt: skip
"""Folders with kernels of plants, or with constants that they are compiled with."""

DRAWING = "_drawing.py"
"""End of the names of robots' drawings, which have no kernels: a change there recompiles nothing."""

EXCHANGE = (
    "loop/miss_policies.py",
    "loop/row_kernels.py",
    "wire/kernels",
    "wire/protocol/step_message_layout.py",
    "base/contract.py",
)
"""Sources of the exchange; they are separate, so that a change there recompiles no plant."""

PLANNING = ("planning", "gym")
"""Folders of planners and environments, whose kernels call those of plants."""

MUJOCO = ("mujoco_models",)
"""The step of MuJoCo plants, whose kernel calls no other."""

KINDS: dict[str, tuple[str, ...]] = {
    "plants": COMMON + PLANTS,
    "exchange": COMMON + EXCHANGE,
    "planning": COMMON + PLANTS + PLANNING,
    "mujoco": COMMON + MUJOCO,
    "others": COMMON + PLANTS + PLANNING + EXCHANGE + MUJOCO,
}
"""Sources of each kind of kernel; `others` is for files outside the package, which may call any kernel."""

FLAGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "CPU_NAME", "CPU_FEATURES", "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT", "DISABLE_INTEL_SVML", "USING_SVML", "LLVM_PASS_TIMINGS",
)  # fmt: skip
"""Settings of numba (environment NUMBA_...) that change compiled code."""

MAX_CACHE_BYTES = 1 << 30
"""Size of all cache folders of one home; a suite of tests over all robots fills a fifth of it."""

_FOLDER = re.compile(rf"(?:(?:{'|'.join(KINDS)})-)?[0-9a-f]{{16}}")
"""Names of cache folders, of this version and of earlier ones. Nothing else below a home is removed."""

TEMPORARY = "rtmms-kernels-"
"""Prefix of the cache folders that end with a process."""


def kind_of(module: str) -> str:
    """Return the kind of the kernels of a module.

    Parameters
    ----------
    module : str
        Full name of the module.

    Returns
    -------
    str
        A key of `KINDS`.

    Examples
    --------
    >>> kind_of("rtmms.wire.kernels.step")
    'exchange'
    """
    if not module.startswith("rtmms."):
        return "others"
    path = f"{module.removeprefix('rtmms.').replace('.', '/')}/"
    for kind, sources in (("exchange", EXCHANGE), ("planning", PLANNING), ("mujoco", MUJOCO)):
        if path.startswith(tuple(f"{source.removesuffix('.py')}/" for source in sources)):
            return kind
    return "plants"


def _python_files(place: str) -> Iterator[str]:
    """Yield a Python file, or those below a folder, in an order that does not depend on the file system."""
    if place.endswith(".py"):
        yield place
        return
    for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _python_files(entry.path)
        elif entry.name.endswith(".py") and not entry.name.endswith(DRAWING):
            yield entry.path


@functools.cache
def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return hashlib.sha256(file.read()).digest()


@functools.cache
def _sources(root: str, place: str) -> bytes:
    """Hash the relative names and the contents of a source file or folder; of one that is missing, only its name."""
    digest = hashlib.sha256(place.encode())
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in _python_files(os.path.join(root, place)):
            digest.update(path[len(root) :].replace(os.sep, "/").encode())
            digest.update(_content(path))
    return digest.digest()


@functools.cache
def _machine() -> str:
    """Return the dependencies of compiled code other than its sources."""
    import llvmlite
    import numba
    import numpy as np
    from llvmlite import binding
    from numba.core import config

    flags = [str(getattr(config, flag, None)) for flag in FLAGS]
    versions = f"{sys.version} {numba.__version__} {llvmlite.__version__} {np.__version__}"
    return f"{versions} {binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()} {flags}"


def fingerprint(kind: str, root: Path = ROOT) -> str:
    """Return a hash of a kind's sources, the versions of libraries, the processor and numba's settings.

    Parameters
    ----------
    kind : str
        A key of `KINDS`.
    root : Path, default ROOT
        Folder of the package.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    digest = hashlib.sha256(_machine().encode())
    for place in KINDS[kind]:
        digest.update(_sources(str(root), place))
    return digest.hexdigest()[:16]


def cache_folder(kind: str = "plants") -> Path:
    """Return the folder of compiled kernels of one kind.

    Parameters
    ----------
    kind : str, default 'plants'
        A key of `KINDS`.

    Returns
    -------
    Path
        A folder below NUMBA_CACHE_DIR if that is set, else below the user's cache of rtmms.
    """
    from platformdirs import user_cache_dir

    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(chosen) if chosen else Path(user_cache_dir("rtmms")) / "kernels"
    return home / f"{kind}-{fingerprint(kind)}"


_folders: dict[str, Path | None] = {}
"""Folder of each kind that this process uses; None where no folder can be written."""


def use_folder(kind: str) -> Path | None:
    """Return the folder of a kind, after a check that only this user can write it.

    Parameters
    ----------
    kind : str
        A key of `KINDS`.

    Returns
    -------
    Path | None
        None if there is no such folder.
    """
    if kind in _folders:
        return _folders[kind]
    folder: Path | None = cache_folder(kind)
    assert folder is not None
    try:
        home = folder.parent
        with private_files():
            folder.mkdir(parents=True, exist_ok=True)
        reason = exposed_way(home.parent) or _make_private(home, folder) or untrusted_reason(home, folder)
        if reason:
            folder = _temporary_folder(home, reason, kind)
        folder.mkdir(exist_ok=True, mode=0o700)
        os.utime(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as fault:
        try:  # beside the sources, which numba would choose, could be code of other sources and flags
            folder = _temporary_folder(folder.parent, f"'{folder}' cannot be written ({fault.strerror})", kind)
        except OSError:
            folder = None
    _folders[kind] = folder
    return folder


def untrusted_reason(home: Path, folder: Path) -> str:
    """Return why a cache folder is not to be trusted.

    numba unpickles the files of a cache. A user who can write there runs code as this user.

    Parameters
    ----------
    home : Path
        Folder of all caches.
    folder : Path
        The cache folder.

    Returns
    -------
    str
        The reason; empty if only this user and root can have written it.
    """
    with suppress(FileNotFoundError):
        if reason := exposure(home):
            return reason
    for place, _, files in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in files)):
            with suppress(FileNotFoundError):  # other processes add and remove files meanwhile
                if reason := exposure(path):
                    return reason
    return ""


def _make_private(home: Path, folder: Path) -> str:
    """Make a home 0700, and remove files that a group or everybody may have written.

    Of an open home all files are removed, else those of this folder. The result is why the home cannot be private,
    empty if it is.
    """
    if not hasattr(os, "geteuid"):
        return ""
    with suppress(FileNotFoundError):
        if home.lstat().st_uid != os.geteuid():
            return exposure(home)
        was_open = exposure(home) != ""
        home.chmod(0o700)
        for entry in list(home.iterdir()) if was_open else [folder]:
            with suppress(FileNotFoundError):
                if entry.lstat().st_uid != os.geteuid() or not (was_open or untrusted_reason(home, entry)):
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink()
    return ""


def _sweep_temporary() -> None:
    """Remove temporary caches of this user's killed processes; the name of a cache has the process's id."""
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


def _temporary_folder(home: Path, reason: str, kind: str) -> Path:
    """Return a cache for this process and its children, because the usual one is unsafe or cannot be written."""
    advice = "remove it (rm -r), or name another folder in XDG_CACHE_HOME"
    expected = f"expected '{home}' to belong to you alone and to be writable"
    print_text(f"rtmms: compiled kernels are not stored: {reason}; {expected}; {advice}", err=True)
    maker = os.getpid()
    built = tempfile.mkdtemp(prefix=f"{TEMPORARY}{maker}-")

    def sweep() -> None:
        if os.getpid() == maker:
            shutil.rmtree(built, ignore_errors=True)

    atexit.register(sweep)
    os.environ["NUMBA_CACHE_DIR"] = built
    folder = cache_folder(kind)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_room(home: Path, current: Path, max_bytes: int = MAX_CACHE_BYTES) -> None:
    """Remove the least recently used cache folders of a home beyond a limit.

    The folder in use stays. If it alone exceeds the limit, its oldest kernels are removed.

    Parameters
    ----------
    home : Path
        Folder of all caches.
    current : Path
        Folder in use.
    max_bytes : int, default MAX_CACHE_BYTES
        Most bytes of all cache folders.
    """
    folders = []
    with suppress(OSError):
        folders = [entry for entry in home.iterdir() if _FOLDER.fullmatch(entry.name) and entry.is_dir()]
    files = {folder: _files(folder) for folder in folders if folder != current}
    current_files = _files(current)
    room = max_bytes - sum(size for _, size, _ in current_files)
    for _, size, path in sorted(current_files):
        if room >= 0:
            break
        if not path.endswith(".nbc"):
            continue
        with suppress(OSError):  # an index that names a missing file makes numba compile again
            os.unlink(path)
            room += size
    used = {folder: _time(folder) for folder in files}
    for folder in sorted(files, key=lambda folder: used[folder], reverse=True):
        room -= sum(size for _, size, _ in files[folder])
        if room < 0:
            shutil.rmtree(folder, ignore_errors=True)


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _files(folder: Path) -> list[tuple[float, int, str]]:
    """List time, bytes and path of the files of a cache folder."""
    result = []
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                stat = os.stat(path := os.path.join(place, name))
                result.append((stat.st_mtime, stat.st_size, path))
    return result


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Place of a function in the cache: the folder of its module within that of its kind."""

    def __init__(self, folder: Path, function: Callable[..., Any]) -> None:
        self._py_file = function.__code__.co_filename
        self._line = function.__code__.co_firstlineno
        # its own content, too: the file may be outside the package, or have changed after the package was hashed
        self._path = str(folder / f"{function.__module__}-{_content(self._py_file).hex()[:16]}")

    def ensure_cache_path(self) -> None:
        """Create the folder."""
        os.makedirs(self._path, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self._path

    def get_source_stamp(self) -> str:
        """Return an empty stamp, because the path has the hash."""
        return ""  # the path has it

    def get_disambiguator(self) -> str:
        """Return the line of the function."""
        return str(self._line)


class _Files(CompileResultCacheImpl):  # type: ignore[misc]
    """Names and contents of the files of one function."""

    prefix = ""

    def __init__(self, function: Callable[..., Any]) -> None:
        folder = use_folder(kind_of(function.__module__))
        if folder is None:
            raise OSError(
                "compiled kernels are not stored: expected a writable folder, got none; name one in XDG_CACHE_HOME"
            )
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(folder, function)
        base = self.get_filename_base(function.__qualname__, getattr(sys, "abiflags", ""))
        self._filename_base = f"{self.prefix}{base}"

    def reduce(self, result: Any) -> Any:
        """Serialize compiled code without its annotated source, which names the path of the source.

        Parameters
        ----------
        result : Any
            Result of a compilation.

        Returns
        -------
        Any
            The serialized form.
        """
        return super().reduce(result._replace(type_annotation=""))


class _InnerFiles(_Files):
    """Files for kernels as other kernels call them."""

    prefix = "inner-"


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Cache of one kernel.

    One process at a time writes to a folder, because numba's index is read, changed and written. A damaged entry (the
    machine failed while it was written) is compiled again. On a full disk kernels are not stored.
    """

    _impl_class = _Files
    _has_reported = False
    _has_made_room = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a version of the kernel.

        Parameters
        ----------
        sig : Any
            Signature of the version.
        target_context : Any
            Context of numba.

        Returns
        -------
        Any
            None if the cache does not have it, or if it is damaged.
        """
        try:
            _initialize_runtime(target_context)
            with self._guard_against_spurious_io_errors():
                overload = self._load_overload(sig, target_context)
                if overload is not None:
                    return overload
            target_context.refresh()
            return None
        except Exception:  # unpickling damaged bytes may raise anything
            with _lock(Path(self.cache_path)), suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a version of the kernel, if that is possible.

        Parameters
        ----------
        sig : Any
            Signature of the version.
        data : Any
            Result of its compilation.
        """
        folder = Path(self.cache_path)
        try:
            if not KernelCache._has_made_room:
                KernelCache._has_made_room = True
                make_room(folder.parent.parent, folder.parent)
            with _lock(folder), private_files():
                super().save_overload(sig, data)
        except OSError as fault:
            if not KernelCache._has_reported:
                KernelCache._has_reported = True
                print_text(
                    f"rtmms: compiled kernels are not stored, and compiled again each time: {self.cache_path}: "
                    f"{fault.strerror}; make room, or name another folder in XDG_CACHE_HOME",
                    err=True,
                )


class InnerKernelCache(KernelCache):
    """Cache of one kernel as other kernels call it."""

    _impl_class = _InnerFiles


def _initialize_runtime(target_context: Any) -> None:
    """Register the functions that compiled code calls; numba's own loader imports all that a compilation needs, too.

    A process whose kernels all come from the cache saves half a second by that.
    """
    rtsys.initialize(target_context)
    import numba.cpython.hashing  # noqa: F401  # registers the secret of hashes


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock a folder against writers in other processes, within the context."""
    try:
        import fcntl

        with private_files():
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / "lock").open("w")
    except (ImportError, OSError):
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def attach_caches(function: Callable[..., Any], outer: Any, inner: Any) -> None:
    """Attach the caches to the two dispatchers of a kernel; a function without a source file has none.

    Parameters
    ----------
    function : Callable[..., Any]
        The Python function.
    outer : Any
        Dispatcher for calls from Python.
    inner : Any
        Dispatcher for calls from other kernels.
    """
    with suppress(OSError):
        outer._cache, inner._cache = KernelCache(function), InnerKernelCache(function)


if os.name == "posix":
    _sweep_temporary()
