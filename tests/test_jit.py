"""The cache of kernels: keyed by content, closed to code of others; damage in it costs a compilation, no run."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rtmms.base import jit, kernel_cache
from rtmms.base.kernel_cache import KINDS, ROOT

SOURCE = "from rtmms.base.jit import kernel\n\n\n@kernel\ndef twice(x):\n    return 2.0 * x\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cache folder of files outside the package, for one test."""
    monkeypatch.setattr(kernel_cache, "_folders", {"others": tmp_path / "cache"})
    monkeypatch.setattr(kernel_cache.KernelCache, "_has_made_room", True)
    kernel_cache._content.cache_clear()
    return tmp_path / "cache"


def _source(place: Path, text: str = SOURCE) -> Path:
    place.mkdir(exist_ok=True)
    (place / "some_kernel.py").write_text(text)
    return place / "some_kernel.py"


def _fresh(path: Path) -> Any:
    """The kernel of a module that is run anew: it looks for itself in the cache."""
    spec = importlib.util.spec_from_file_location("some_kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
@pytest.mark.parametrize("ending", ["nbc", "nbi"])
def test_a_damaged_cache_is_compiled_anew(tmp_path: Path, folder: Path, ending: str) -> None:
    path = _source(tmp_path)
    assert _fresh(path)(1.5) == 3.0
    files = list(folder.rglob(f"*.{ending}"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:100])
    assert _fresh(path)(1.5) == 3.0
    again = _fresh(path)
    assert again(1.5) == 3.0
    assert sum(again.stats.cache_hits.values()) == 1  # what was compiled anew is stored


@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
def test_the_same_source_at_another_path_finds_its_kernels(tmp_path: Path, folder: Path) -> None:
    first, second = _source(tmp_path / "first"), _source(tmp_path / "second")
    os.utime(second, (1.0, 1.0))
    assert _fresh(first)(1.5) == 3.0
    again = _fresh(second)
    assert again(1.5) == 3.0
    assert sum(again.stats.cache_hits.values()) == 1
    assert all(str(tmp_path).encode() not in file.read_bytes() for file in folder.rglob("*.nb?"))
    other = _fresh(_source(tmp_path / "third", SOURCE.replace("2.0", "4.0")))
    assert other(1.5) == 6.0
    assert sum(other.stats.cache_hits.values()) == 0


USERS = """
import math
import sys

import numpy as np

from rtmms.base.jit import kernel


@kernel
def plain(x):
    return 2.0 * x


print(plain(1.5))
has_all = "numba.np.arraymath" in sys.modules


@kernel
def allocated(x):
    return np.sum(np.linspace(0.0, x, 5).copy()) + len([x, x])


@kernel
def solved(x):
    a = np.array([[x, 1.0], [0.5, 3.0]])
    return np.linalg.solve(a, np.array([1.0, 2.0]))[0] + (a @ a)[1, 0] + np.linalg.det(a)


@kernel
def hashed(x):
    found = {x: 2.0, 2.0 * x: 3.0}
    return found[x] + len({(1, x), (2, x)}) + len(str(7)) + hash("a") % 1


@kernel
def computed(x):
    return math.erf(x) + math.gamma(x) + abs(np.exp(1j * x)) + np.sort(np.array([x, 1.0]))[0] + np.random.random() % 0.0


@kernel
def raised(x):
    if x > 0.0:
        raise ValueError("positive")
    return x


for one in (allocated, solved, hashed):
    print(repr(one(1.25)))
print(repr(math.isnan(computed(1.25))))
try:
    raised(1.0)
except ValueError as fault:
    print(fault)
kernels = (plain, allocated, solved, hashed, computed, raised)
print(sum(sum(one.stats.cache_hits.values()) for one in kernels), has_all, file=sys.stderr)


@kernel
def late(x):
    return np.linalg.norm(np.array([x, 2.0 * x])) + allocated(x)


if "late" in sys.argv:
    print(repr(late(1.25)), file=sys.stderr)
"""


@pytest.mark.full
@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
def test_stored_kernels_find_what_they_call_in_a_process_that_compiles_nothing(tmp_path: Path) -> None:
    """Allocation, BLAS and LAPACK, hashes, C's functions, random numbers, errors; and it may compile afterwards."""
    path = tmp_path / "users.py"
    path.write_text(USERS)

    def run(*arguments: str) -> tuple[str, list[str]]:
        done = subprocess.run(
            [sys.executable, str(path), *arguments], env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout, done.stderr.split()

    first, notes = run()
    assert notes == ["0", "True"]
    again, notes = run()
    assert again == first
    assert notes == ["6", "False"]
    last, notes = run("late")
    assert last == first
    assert notes[:2] == ["6", "False"]
    assert float(notes[2]) == pytest.approx(1.25 * 5.0**0.5 + 5 * 0.625 + 2)


@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
def test_a_kernel_without_a_file_is_compiled_and_not_stored(folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "typed"}
    exec(SOURCE, names)  # as from a prompt
    assert names["twice"](1.5) == 3.0
    assert not folder.exists()


@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
def test_a_full_disk_costs_what_is_stored_and_no_run(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_cache.KernelCache, "_has_reported", False)
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    kernel = _fresh(_source(tmp_path))
    assert kernel(1.5) == 3.0
    assert kernel(2) == 4.0
    assert capsys.readouterr().err.count("No space left on device") == 1


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Sources of kernels at another path, with other times."""
    root = tmp_path / "elsewhere" / "rtmms"
    for name in ("model", "loop", "wire/kernels", "planning", "gym"):
        shutil.copytree(
            ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy
        )
    for path in root.rglob("*.py"):
        os.utime(path, (1.0, 1.0))
    return root


def _of(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Fingerprint of each kind at a path, with the hashes of before forgotten."""
    kernel_cache._sources.cache_clear()
    kernel_cache._content.cache_clear()
    monkeypatch.setitem(KINDS, "plants", ("model",))
    return {kind: kernel_cache.fingerprint(kind, root) for kind in ("plants", "exchange")}


def test_a_fingerprint_is_of_contents(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "exchange", kernel_cache.EXCHANGE[:3])
    here = _of(copied, monkeypatch)
    assert _of(ROOT, monkeypatch) == here
    changed = next((copied / "model").rglob("*.py"))
    before = changed.read_bytes()
    stat = changed.stat()
    changed.write_bytes(before.replace(b"a", b"b", 1))
    os.utime(changed, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same size, same time
    there = _of(copied, monkeypatch)
    assert there["plants"] != here["plants"]
    assert there["exchange"] == here["exchange"]
    changed.write_bytes(before)
    assert _of(copied, monkeypatch) == here
    changed.rename(changed.with_name("renamed.py"))
    assert _of(copied, monkeypatch)["plants"] != here["plants"]
    shutil.rmtree(copied / "model")
    assert _of(copied, monkeypatch)["plants"] != here["plants"]


def _kernels(path: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
            if any(isinstance(mark, ast.Name) and mark.id in ("kernel", "overload", "intrinsic") for mark in marks):
                yield node


def _imports(path: Path) -> dict[str, str]:
    """Module of each name that a file imports from the package at its top."""
    result = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rtmms"):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                is_module = (ROOT.parent / f"{inner.replace('.', '/')}.py").exists()
                result[name.asname or name.name] = inner if is_module else str(node.module)
    return result


def test_the_key_of_each_kernel_has_all_sources_that_it_uses() -> None:
    """A kernel that uses a name of a file outside its kind would be loaded after that file has changed."""
    missed = []
    for path in ROOT.rglob("*.py"):
        module = ".".join(("rtmms", *path.relative_to(ROOT).with_suffix("").parts))
        text = path.read_text(encoding="utf-8")
        kernels = list(_kernels(path)) if re.search(r"@(kernel|overload|intrinsic)\b", text) else []
        imports = _imports(path) if kernels else {}
        sources = KINDS[kernel_cache.kind_of(module)]
        for kernel in kernels:
            names = {node.id for node in ast.walk(kernel) if isinstance(node, ast.Name)}
            for used in (module, *(imports[name] for name in names & set(imports))):
                place = used.removeprefix("rtmms.").replace(".", "/")
                if not any(f"{place}.py" == source or f"{place}/".startswith(f"{source}/") for source in sources):
                    missed.append((module, kernel.name, used))
    assert missed == []


def test_room_is_made_by_bytes_and_by_last_use(tmp_path: Path) -> None:
    names = [f"plants-{k:016x}" for k in range(4)]
    for age, name in enumerate(names):
        place = tmp_path / name / "module"
        place.mkdir(parents=True)
        (place / "lock").write_bytes(b"")
        for k in range(2):
            (place / f"{k}.nbc").write_bytes(b"x" * 100)
            os.utime(place / f"{k}.nbc", (k, k))
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "of another program").mkdir()
    (tmp_path / "of another program" / "file").write_bytes(b"x" * 1000)
    (tmp_path / "last manta").write_text("9.0")

    def left(max_bytes: int) -> list[str]:
        kernel_cache.make_room(tmp_path, tmp_path / names[2], max_bytes)
        return sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("plants"))

    assert left(800) == names
    assert left(600) == names[:3]
    assert left(599) == [names[0], names[2]]
    assert left(0) == [names[2]]
    assert sorted(p.name for p in (tmp_path / names[2]).rglob("*")) == ["lock", "module"]
    assert (tmp_path / "of another program" / "file").exists()
    assert (tmp_path / "last manta").exists()


@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
def test_the_oldest_kernels_of_a_folder_that_is_too_large_are_compiled_anew(tmp_path: Path, folder: Path) -> None:
    path = _source(tmp_path)
    assert _fresh(path)(1.5) == 3.0
    kernel_cache.make_room(tmp_path, folder, 0)
    assert list(folder.rglob("*.nbi")) != []
    assert list(folder.rglob("*.nbc")) == []
    assert _fresh(path)(1.5) == 3.0
    assert len(list(folder.rglob("*.nbc"))) == 1


def test_a_cache_that_cannot_be_written_is_never_beside_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """numba's own choice is, under the name of one source alone: what it calls may have changed since."""
    (tmp_path / "home").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "home"))
    monkeypatch.setattr(kernel_cache, "_folders", {})
    monkeypatch.setattr("rtmms.base.kernel_cache.tempfile.mkdtemp", lambda prefix: str(tmp_path / "own"))
    monkeypatch.setattr("rtmms.base.kernel_cache.atexit.register", lambda function: None)
    used = kernel_cache.use_folder("plants")
    assert used is not None
    assert used.parent == tmp_path / "own"
    assert kernel_cache.use_folder("plants") == used
    assert "cannot be written (Not a directory)" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_a_cache_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    inner = home / "kernels"
    inner.mkdir(parents=True)
    (inner / "one.nbi").write_bytes(b"")
    assert kernel_cache.untrusted_reason(home, inner) == ""
    (inner / "one.nbi").chmod(0o666)
    assert "one.nbi' can be written by everybody (mode 0666)" in kernel_cache.untrusted_reason(home, inner)
    (inner / "one.nbi").chmod(0o644)
    inner.chmod(0o777)
    assert "kernels' can be written by everybody" in kernel_cache.untrusted_reason(home, inner)
    inner.chmod(0o755)
    home.chmod(0o777)
    assert "home' can be written by everybody" in kernel_cache.untrusted_reason(home, inner)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_what_a_group_could_have_written_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    """Of umask 002 and a group that several users share: the entry goes, and the folder is this user's alone."""
    home = tmp_path / "home"
    for name, mode in (("open", 0o664), ("closed", 0o600)):
        (home / name).mkdir(parents=True, mode=0o700)
        (home / name / "one.nbi").write_bytes(b"")
        os.chown(home / name / "one.nbi", 0, 65534)
        (home / name / "one.nbi").chmod(mode)
    home.chmod(0o755)
    reason = kernel_cache.untrusted_reason(home, home / "open")
    assert "one.nbi' can be written by a group (gid 65534, mode 0664)" in reason
    for name in ("open", "closed"):
        assert kernel_cache._make_private(home, home / name) == ""
        assert kernel_cache.untrusted_reason(home, home / name) == ""
    assert [entry.name for entry in home.iterdir()] == ["closed"]
    assert home.stat().st_mode & 0o777 == 0o700
    os.chown(home, 0, 65534)
    home.chmod(0o775)
    assert kernel_cache._make_private(home, home / "closed") == ""
    assert list(home.iterdir()) == []  # anybody of the group could have put it there


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_new_entries_of_the_cache_are_private(tmp_path: Path) -> None:
    code = "from rtmms.base.spatial import quaternion_columns; quaternion_columns(1.0, 0.0, 0.0, 0.0)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = os.umask(0o002)
    try:
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    finally:
        os.umask(before)
    built = [path for path in (tmp_path / "cache").rglob("*") if path.name != "lock"]
    assert any(path.suffix == ".nbi" for path in built)
    assert {path.stat().st_mode & 0o077 for path in built} == {0}


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="processes")
def test_a_killed_process_leaves_no_cache_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmms.base.kernel_cache.tempfile.gettempdir", lambda: str(tmp_path))
    done = subprocess.Popen(["true"])
    done.wait()
    prefix = kernel_cache.TEMPORARY
    for name in (f"{done.pid}-a", f"{os.getpid()}-b", "old"):
        (tmp_path / f"{prefix}{name}").mkdir()
    kernel_cache._sweep_temporary()
    assert {path.name.removeprefix(prefix) for path in tmp_path.iterdir()} == {f"{os.getpid()}-b", "old"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_cache_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "one.nbi").write_bytes(b"")
    os.chown(tmp_path / "one.nbi", 65534, 65534)
    assert "belongs to another user (uid 65534)" in kernel_cache.untrusted_reason(tmp_path, tmp_path)


def test_an_untrusted_cache_is_left_alone_and_the_process_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "unused")
    monkeypatch.setattr("rtmms.base.kernel_cache.tempfile.mkdtemp", lambda prefix: str(tmp_path / "own"))
    monkeypatch.setattr("rtmms.base.kernel_cache.atexit.register", lambda function: None)
    folder = kernel_cache._temporary_folder(tmp_path / "home", "'x' belongs to another user (uid 7)", "plants")
    assert folder.parent == tmp_path / "own"
    assert folder.is_dir()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "own")
    assert "uid 7" in capsys.readouterr().err
