"""The cache of kernels: nobody else's code is taken from it, and damage in it costs a compilation, no run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rtmms import jit

SOURCE = "from rtmms.jit import kernel\n\n\n@kernel\ndef twice(x):\n    return 2.0 * x\n"


def _fresh(path: Path) -> Any:
    """The kernel of a module that is run anew: it looks for itself in the cache."""
    spec = importlib.util.spec_from_file_location("kept_kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
@pytest.mark.parametrize("ending", ["nbc", "nbi"])
def test_a_damaged_cache_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setitem(jit._home, "", str(tmp_path / "kept"))
    path = tmp_path / "kept_kernel.py"
    path.write_text(SOURCE)
    jit._use_cache()
    try:
        assert _fresh(path)(1.5) == 3.0
        files = list((tmp_path / "kept").rglob(f"*.{ending}"))
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:100])
        assert _fresh(path)(1.5) == 3.0
        again = _fresh(path)
        assert again(1.5) == 3.0
        assert sum(again.stats.cache_hits.values()) == 1  # what was compiled anew is kept
    finally:
        monkeypatch.undo()
        jit._use_cache()


@pytest.mark.skipif(not jit.COMPILED, reason="NUMBA_DISABLE_JIT")
def test_a_full_disk_costs_what_is_kept_and_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(jit._home, "", str(tmp_path / "kept"))
    monkeypatch.setattr(jit._Cache, "_told", False)
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    path = tmp_path / "kept_kernel.py"
    path.write_text(SOURCE)
    jit._use_cache()
    try:
        assert _fresh(path)(1.5) == 3.0
        assert _fresh(path)(2) == 4.0
    finally:
        monkeypatch.undo()
        jit._use_cache()
    assert capsys.readouterr().err.count("No space left on device") == 1


def test_a_cache_that_cannot_be_written_is_never_beside_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """numba's own choice is, under the name of one source alone: what it calls may have changed since."""
    (tmp_path / "home").write_text("no folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "home"))
    monkeypatch.setattr(jit, "_home", {})
    monkeypatch.setattr(jit.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "own"))
    monkeypatch.setattr(jit.atexit, "register", lambda function: None)
    jit._use_cache()
    try:
        assert Path(jit._home[""]).parent == tmp_path / "own"
        assert "cannot be written (Not a directory)" in capsys.readouterr().err
    finally:
        monkeypatch.undo()
        jit._use_cache()


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_a_cache_that_others_can_write_is_strange(tmp_path: Path) -> None:
    inner = tmp_path / "home" / "kernels"
    inner.mkdir(parents=True)
    (inner / "one.nbi").write_bytes(b"")
    assert jit.strange(tmp_path / "home") == ""
    (inner / "one.nbi").chmod(0o666)
    assert "one.nbi' can be written by everybody (mode 0666)" in jit.strange(tmp_path / "home")
    (inner / "one.nbi").chmod(0o644)
    inner.chmod(0o777)
    assert "kernels' can be written by everybody" in jit.strange(tmp_path / "home")


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
    assert "one.nbi' can be written by a group (gid 65534, mode 0664)" in jit.strange(home)
    assert jit._make_private(home) == ""
    assert [entry.name for entry in home.iterdir()] == ["closed"]
    assert home.stat().st_mode & 0o777 == 0o700
    assert jit.strange(home) == ""
    os.chown(home, 0, 65534)
    home.chmod(0o775)
    assert jit._make_private(home) == ""
    assert list(home.iterdir()) == []  # anybody of the group could have put it there


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_new_entries_of_the_cache_are_private(tmp_path: Path) -> None:
    code = "from rtmms.spatial import quaternion_columns; quaternion_columns(1.0, 0.0, 0.0, 0.0)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = os.umask(0o002)
    try:
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "cache").rglob("*") if path.name != "lock"]
    assert any(path.suffix == ".nbi" for path in made)
    assert {path.stat().st_mode & 0o077 for path in made} == {0}


@pytest.mark.skipif(os.name != "posix", reason="processes")
def test_a_killed_process_leaves_no_cache_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path))
    done = subprocess.Popen(["true"])
    done.wait()
    for name in (f"{done.pid}-a", f"{os.getpid()}-b", "old"):
        (tmp_path / f"{jit.TEMPORARY}{name}").mkdir()
    jit._sweep_temporary()
    assert {path.name.removeprefix(jit.TEMPORARY) for path in tmp_path.iterdir()} == {f"{os.getpid()}-b", "old"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_cache_of_another_user_is_strange(tmp_path: Path) -> None:
    (tmp_path / "one.nbi").write_bytes(b"")
    os.chown(tmp_path / "one.nbi", 65534, 65534)
    assert "belongs to another user (uid 65534)" in jit.strange(tmp_path)


def test_a_strange_cache_is_left_alone_and_the_process_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "unused")
    monkeypatch.setattr(jit.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "own"))
    monkeypatch.setattr(jit.atexit, "register", lambda function: None)
    folder, home = jit._instead(tmp_path / "home", "'x' belongs to another user (uid 7)", "")
    assert home == tmp_path / "own" == folder.parent
    assert folder.is_dir()
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "own")
    assert "uid 7" in capsys.readouterr().err
