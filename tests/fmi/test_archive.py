"""FMU files that are broken, too large, or mean harm: one sentence, and nothing left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.fmi import archive
from tests.cli.shell import rtmms as command
from tests.fmi.lags import build

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sound"), 2)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def ours(temporary: Path) -> list[Path]:
    return list(temporary.glob("rtmms-fmu-*"))


def variant(sound: Path, path: Path, edit: Callable[[str], str] = str, add: dict[str, str] | None = None) -> str:
    with zipfile.ZipFile(sound) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, edit(data.decode()).encode() if name == "modelDescription.xml" else data)
        for name, text in (add or {}).items():
            new.writestr(name, text)
    return str(path)


@pytest.mark.parametrize("name", ["../../evil", "/evil", "resources/../../evil", "c:/evil", "a\\..\\evil"])
def test_names_outside_of_the_folder_are_refused(sound: Path, tmp_path: Path, temporary: Path, name: str) -> None:
    path = variant(sound, tmp_path / "slip.fmu", add={name: "x"})
    with pytest.raises(ModelError, match=r"slip.fmu: not an FMU: .*below its own folder, got .*evil"):
        rtmms.load(path, dt=0.01)
    assert list(temporary.iterdir()) == []
    assert not list(tmp_path.rglob("*evil*"))


def test_a_damaged_file_is_reported_in_a_sentence_by_the_command(sound: Path, tmp_path: Path, temporary: Path) -> None:
    data = bytearray(sound.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "crc.fmu").write_bytes(data)
    result = command(tmp_path, "run", "crc.fmu", "--controller", "none", "--mode", "free", "--quiet", "--json")
    assert result.status == 2
    assert "rtmms: crc.fmu: not an FMU: it cannot be unpacked: Bad CRC-32" in result.err
    assert "Traceback" not in result.err
    assert ours(temporary) == []


@pytest.mark.parametrize("text", [b"", b"hello", None])
def test_files_that_are_no_archive(sound: Path, tmp_path: Path, temporary: Path, text: bytes | None) -> None:
    data = sound.read_bytes() if text is None else b""
    (tmp_path / "half.fmu").write_bytes(data[: len(data) // 2] if text is None else text)
    with pytest.raises(ModelError, match=r"half.fmu: not an FMU: it cannot be unpacked: File is not a zip file"):
        rtmms.load(str(tmp_path / "half.fmu"), dt=0.01)
    assert list(temporary.iterdir()) == []


def test_what_comes_out_is_limited(
    sound: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 4 << 20)
    path = variant(sound, tmp_path / "bomb.fmu", add={"resources/bomb": "0" * (5 << 20)})
    assert os.path.getsize(path) < 1 << 20
    with pytest.raises(ModelError, match=r"bomb.fmu: expected an FMU of at most .* GiB unpacked, got more"):
        rtmms.load(path, dt=0.01)
    assert list(temporary.iterdir()) == []


def test_what_reports_that_it_is_too_large_is_not_unpacked(
    sound: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = variant(sound, tmp_path / "bomb.fmu", add={"resources/bomb": "0" * (5 << 20)})
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 4 << 20)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)  # nothing of it is read
    with pytest.raises(ModelError, match=r"expected an FMU of at most .* got more \(at 'resources/bomb'\)"):
        rtmms.load(path, dt=0.01)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("dimensions", ["1000000000", "9" + '"/><Dimension start="9' * 60, "-2"])
def test_variables_are_not_without_end(tmp_path: Path, temporary: Path, dimensions: str) -> None:
    whole = build(tmp_path, 3)
    path = variant(whole, tmp_path / "wide.fmu", lambda text: text.replace('start="2"/>', f'start="{dimensions}"/>', 1))
    with pytest.raises(
        ModelError, match=r"wide.fmu: (expected at most 100000 numbers|not an FMU: .*'-2' is not a valid)"
    ):
        rtmms.load(path, dt=0.01)
    assert list(temporary.iterdir()) == []


def test_the_number_of_files_is_limited(
    sound: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 10)
    path = variant(sound, tmp_path / "many.fmu", add={f"resources/{i}": "" for i in range(20)})
    with pytest.raises(ModelError, match=r"many.fmu: expected at most 10 files in an FMU, got 22"):
        rtmms.load(path, dt=0.01)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("identifier", ["../../../tmp/x", "lag so", "1lag", "l-g"])
def test_the_model_identifier_is_a_name(sound: Path, tmp_path: Path, temporary: Path, identifier: str) -> None:
    path = variant(
        sound, tmp_path / "name.fmu",
        lambda text: re.sub(r'modelIdentifier="[^"]*"', f'modelIdentifier="{identifier}"', text),
    )  # fmt: skip
    with pytest.raises(ModelError, match=r"name.fmu: modelIdentifier: expected an identifier of C, got"):
        rtmms.load(path, dt=0.01)
    assert list(temporary.iterdir()) == []


def test_a_binary_that_is_none_leaves_the_folder_we_are_in(sound: Path, tmp_path: Path, temporary: Path) -> None:
    with zipfile.ZipFile(tmp_path / "so.fmu", "w") as file, zipfile.ZipFile(sound) as old:
        for name in old.namelist():
            file.writestr(name, b"not a library" if name.endswith(".so") else old.read(name))
    before = Path.cwd()
    with pytest.raises(ModelError, match=r"so.fmu: cannot be instantiated: Failed to load shared library"):
        rtmms.load(str(tmp_path / "so.fmu"), dt=0.01)
    assert Path.cwd() == before
    assert list(temporary.iterdir()) == []


def test_the_folder_lives_as_long_as_the_plant(sound: Path, temporary: Path) -> None:
    plant = rtmms.load(str(sound), dt=0.01)
    assert len(ours(temporary)) == 1
    archive.remove_abandoned()
    assert len(ours(temporary)) == 1
    plant.close()  # type: ignore[attr-defined]
    assert ours(temporary) == []


DIE = """
import os, sys, tempfile
from rtmms.fmi.archive import UnpackedFmu
held = UnpackedFmu(sys.argv[1])
print(held.folder, flush=True)
if len(sys.argv) > 2:
    sys.stdin.read()
os.kill(os.getpid(), 9)
"""


def test_what_a_crash_left_is_removed_by_the_next_one(sound: Path, temporary: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", DIE, str(sound)], capture_output=True, text=True, timeout=60)
    left = Path(dead.stdout.strip())
    assert left.is_dir()
    other = temporary / "rtmms-fmu-word-x"
    other.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", DIE, str(sound), "live"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as alive:
        assert alive.stdout is not None
        path = Path(alive.stdout.readline().strip())
        # it removed what the dead one left; its own stays, even by a name which makes it look dead
        assert not left.exists()
        moved = path.rename(path.with_name(f"rtmms-fmu-{dead_pid()}-y"))
        archive.remove_abandoned()
        assert moved.is_dir()
        alive.kill()
    archive.remove_abandoned()
    assert ours(temporary) == [other]


def dead_pid() -> int:
    """A process id that nobody has."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(60)
    until = time.monotonic() + 10
    while Path(f"/proc/{child.pid}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    return child.pid
