"""What `rtmms new` writes is installed, found by its entry point, passes its own test, and runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import environment, process, rtmms

pytestmark = pytest.mark.full

SHORT = ("--duration", "0.2", "--quiet")
INSTALL = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target")
TEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("controller", ("run", "manta", "--controller", "mine", "--mode", "lockstep", *SHORT)),
        ("plant", ("run", "mine", "--mode", "free", *SHORT)),
        ("bridge", ("run", "manta", "--bridge", "mine", "--mode", "lockstep", *SHORT)),
        pytest.param("robot", ("run", "mine", "--mode", "free", *SHORT), marks=pytest.mark.full),
    ],
)
def test_it_works_as_it_is_written(
    kind: str, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = rtmms(tmp_path, "new", kind, "mine")
    assert result.status == 0, result.err
    package, site = tmp_path / "mine", tmp_path / "site"
    # as pip install does, without its environment: the package and its entry points in a folder of their own
    installed = subprocess.run([*INSTALL, str(site), str(package)], capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    monkeypatch.setenv("PYTHONPATH", str(site))
    tested = subprocess.run(TEST, cwd=package, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout
    ran = process(tmp_path, *arguments)
    assert ran.status == 0, ran.err
    assert "mine" in process(tmp_path, "list").out
    assert "displace the same mass" not in ran.err
    if kind in ("robot", "plant"):
        listed = process(tmp_path, "list", "mine")
        assert (listed.status, listed.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("new", "contoller", "mine"), "did you mean controller?"),
        (("new", "plant", "My-Plant"), "expected a lower-case Python name"),
        (("new", "plant", "class"), "expected a lower-case Python name"),
        (("new", "plant", "rtmms"), "choose another name"),
        (("new", "plant", "mine", "-o", "nowhere/mine"), "there is no folder 'nowhere'"),
        (("new", "plant", "here"), "expected a new folder, got one that exists"),
        (("new", "controller", "numpy"), "a module 'numpy' exists, and the new package would hide it"),
        (("new", "bridge", "json"), "a module 'json' exists"),
        (("new", "robot", "manta"), "got 'manta', an installed robot"),
        (("new", "controller", "gait"), "got 'gait', an installed controller"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    result = rtmms(tmp_path, *arguments)
    assert (result.status, "Traceback" in result.err) == (2, False)
    assert message in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
