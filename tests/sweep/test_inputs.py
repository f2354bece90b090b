"""The files that decide a study's rows: found wherever they are opened, hashed, and no table mixes two contents."""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from rtmms.base.errors import RtmmsError
from rtmms.studies.sweep_files import (
    changed_file,
    hash_of,
    input_files,
    opened_files,
    recorded_modules,
    refuse_changed,
    refuse_stale_modules,
)
from rtmms.studies.sweep_study import Axis, Base, Study
from tests.cli.shell import Finished, environment, process


def test_files_that_are_opened_to_read_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text.csv", "bytes.npz", "low.bin", "both.txt", "new.txt", "data.db", "after.csv"):
        (tmp_path / name).write_text(name)
    opened: dict[str, str] = {}
    with recorded_modules(), opened_files(opened):
        Path("text.csv").read_text()
        Path("bytes.npz").read_bytes()
        os.close(os.open("low.bin", os.O_RDONLY))
        for name, mode in (("both.txt", "r+"), ("new.txt", "w")):
            with open(name, mode):
                pass
        sqlite3.connect("data.db").close()  # opened in C: an event of its own
        with pytest.raises(OSError, match="data"):
            ctypes.CDLL(str(tmp_path / "data.so"))
        Path("/proc/self/stat").read_text()
        Path(__file__).read_text()
    Path("after.csv").read_text()
    result = input_files((), opened)
    assert set(result) == {"text.csv", "bytes.npz", "low.bin", "data.db", os.path.abspath(__file__)}
    assert result["text.csv"] == hash_of(str(tmp_path / "text.csv"))
    before = dict(opened)
    (tmp_path / "text.csv").write_text("changed")
    with opened_files(opened):
        Path("text.csv").read_text()
    assert opened == before, "the hash is that of the first time"
    with pytest.raises(RtmmsError, match=r"text\.csv: this file changed while the study ran"):
        refuse_changed(input_files((), opened))


def test_files_that_words_name_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("g.csv", "p.toml", "flow.nc", "own.py", "a.csv", "b.csv", "robot.urdf", "imu.toml", "mine.py")
    for name in names:
        (tmp_path / name).write_text(name)
    base = Base(
        "own.py:make", controllers=("shape:file=g.csv,every=2", "mine.py:Law:gain=3"),
        parameters={"flow": "flow.nc", "robots": [{"name": "one", "robot": "robot.urdf"}]}, preset="p.toml",
        sensors="imu.toml",
    )  # fmt: skip
    study = Study(base, (Axis("shape.file", ("a.csv", "b.csv", "none.csv")),))
    with recorded_modules():
        assert set(input_files(study, {})) == set(names)


def test_modules_that_are_imported_after_the_start_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("inputs_early", "inputs_late"):
        (tmp_path / f"{name}.py").write_text("GAIN = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("inputs_early")
    late = tmp_path / "inputs_late.py"
    with recorded_modules():
        importlib.import_module("inputs_late")
        imported = hash_of(str(late))
        result = input_files((), {})
        assert {Path(name).name for name in result if "inputs_" in name} == {"inputs_late.py"}
        refuse_stale_modules()
        late.write_text("GAIN = 23\n")  # what was imported counts, not what stands there now
        assert {input_file for name, input_file in input_files((), {}).items() if "inputs_" in name} == {imported}
        with pytest.raises(
            RtmmsError, match=r"inputs_late\.py: this file changed after it was imported; run the same command"
        ):
            refuse_stale_modules()
    for name in ("inputs_early", "inputs_late"):
        monkeypatch.delitem(sys.modules, name)
    opened: dict[str, str] = {}
    with recorded_modules(), opened_files(opened):
        importlib.import_module("inputs_early")  # from the compiled file, where Python has kept one
        assert {Path(name).name for name in input_files((), opened) if "inputs_" in name} == {"inputs_early.py"}


def test_a_change_is_seen_whatever_the_time_stamp_states(tmp_path: Path) -> None:
    file = tmp_path / "g.csv"
    file.write_text("1\n")
    before = {str(file): hash_of(str(file))}
    assert changed_file(before) == ""
    state = file.stat()
    file.write_text("2\n")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert changed_file(before) == str(file)
    with pytest.raises(RtmmsError, match=r"g\.csv: this file changed while the study ran; run the same command again"):
        refuse_changed(before)
    file.unlink()
    assert changed_file(before) == str(file)
    os.mkfifo(file)  # would be waited for
    assert (hash_of(str(file)), hash_of(str(tmp_path)), hash_of("a\0b")) == ("", "", "")


def test_the_key_of_a_study_has_its_files() -> None:
    base, axes = Base("pendulum"), (Axis("seed", (0, 1)),)
    keys = {
        Study(base, axes, inputs=inputs).digest() for inputs in ({}, {"g.csv": "a"}, {"g.csv": "b"}, {"h.csv": "a"})
    }
    assert len(keys) == 4


# --- As a user meets it

CUSTOM = {
    "law.py": """
import rtmms
from gains import GAIN

class Law(rtmms.Controller):
    claim = ("torque",)
    def __init__(self, file: str = "") -> None:
        self.table = float(open(file).read()) if file else 0.0
    def update(self, state: rtmms.State) -> dict[str, float]:
        late = 0.0
        if state.time >= 0.8:
            import late_gains
            late = late_gains.GAIN
        return {"torque": GAIN + self.table + late}
""",
    "gains.py": "GAIN = 0.1\n",
    "late_gains.py": "GAIN = 0.01\n",
    "g.csv": "0.001\n",
    "s.toml": """
robot = "pendulum"
duration = 1.0
[[controller]]
file = "law.py"
[sweep.over]
damping = "0.0:0.4:12"
""",
}
CHANGES = {
    "gains.py": "GAIN = 0.25\n", "late_gains.py": "GAIN = 0.0256\n", "g.csv": "0.00257\n",
}  # fmt: skip
ARGUMENTS = ("--controller", "law.py:Law:file=g.csv", "--threads", "1", "--quiet")


def swept(folder: Path, output: str) -> Finished:
    return process(folder, "sweep", "s.toml", *ARGUMENTS, "-o", output)


@pytest.mark.full
@pytest.mark.parametrize("changed", CHANGES)
def test_a_change_of_any_file_makes_all_rows_anew(tmp_path: Path, changed: str) -> None:
    """The parts are there, then a file changes: the resumed table is the table of the new files."""
    pq = pytest.importorskip("pyarrow.parquet")
    for name, text in CUSTOM.items():
        (tmp_path / name).write_text(text)
    old = parts_of(tmp_path)
    (tmp_path / changed).write_text(CHANGES[changed])
    result = swept(tmp_path, "t.parquet")
    assert result.status == 0, result.err
    assert "computed again" in result.err
    assert "exist from an earlier start" not in result.err
    fresh = swept(tmp_path, "u.parquet")
    assert fresh.status == 0, fresh.err
    table, anew = (pq.read_table(tmp_path / name).to_pylist() for name in ("t.parquet", "u.parquet"))
    assert table == anew
    assert table != old


def parts_of(folder: Path) -> list[dict[str, object]]:
    """Sweep, and put the table's parts back, as a sweep leaves them that was killed before it joined them."""
    import pyarrow.parquet as pq

    stored = folder / "kept"
    program = (
        "import shutil\n"
        "from rtmms.studies.sweep_table import Parts\n"
        "join = Parts.join\n"
        f"Parts.join = lambda self, path: (shutil.copytree(self.folder, {str(stored)!r}), join(self, path))[1]\n"
        "from rtmms.cli.main import main\n"
        f"main(['sweep', 's.toml', *{ARGUMENTS!r}, '-o', 't.parquet'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment(folder), capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    result: list[dict[str, object]] = pq.read_table(folder / "t.parquet").to_pylist()
    (folder / "t.parquet").unlink()
    shutil.move(stored, folder / "t.parquet.parts")
    return result


@pytest.mark.full
def test_without_a_change_the_parts_are_taken(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    for name, text in CUSTOM.items():
        (tmp_path / name).write_text(text)
    old = parts_of(tmp_path)
    result = swept(tmp_path, "t.parquet")
    assert result.status == 0, result.err
    assert "12 of 12 runs exist from an earlier start" in result.err
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == old
