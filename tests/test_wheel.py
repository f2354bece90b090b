"""The wheel, installed where there is nothing of the repository, run from a folder full of traps."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TRAPS = (
    "benchmarks.py", "bridges/__init__.py", "controllers/__init__.py", "rtmms_benchmarks.py", "rtmms_bridges.py",
    "rtmms_controllers.py", "click.py", "msgpack.py", "numba.py", "numpy.py", "zmq.py",
)  # fmt: skip

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="pip install hatchling"),
    pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="needs pip"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    arguments = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, timeout=120)
    (result,) = folder.glob("*.whl")
    return result


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel and what it depends on, which is taken from ours."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    paths = {"base": str(home), "platbase": str(home)}
    library = Path(sysconfig.get_path("purelib", "venv", paths))
    # a folder that is named in a .pth file is searched, but its own .pth files (an editable install) are not read
    (library / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    scripts = Path(sysconfig.get_path("scripts", "venv", paths))
    arguments = ["--python", str(scripts / "python"), "install", "-q", "--no-deps", "--no-index", "--ignore-installed"]
    subprocess.run([sys.executable, "-m", "pip", *arguments, str(wheel)], check=True, timeout=120)
    return scripts


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    for name in TRAPS:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("raise RuntimeError('taken from the working directory')\n")
    return tmp_path


def run(program: Path, *text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    result = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result |= {"XDG_RUNTIME_DIR": str(cwd)}
    return subprocess.run([str(program), *text], cwd=cwd, env=result, capture_output=True, text=True, timeout=240)


def test_the_wheel_carries_the_package_its_plug_ins_and_no_more(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    packages = {"rtmms", "rtmms_bridges", "rtmms_controllers"}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages | {"rtmms_command.py"}
    examples = {f"rtmms_bridges/examples/{file.name}" for file in (ROOT / "bridges" / "examples").glob("*.toml")}
    assert examples <= set(names)
    assert "rtmms/py.typed" in names


@pytest.mark.parametrize("arguments", [("rtmms",), ("python", "-m", "rtmms")], ids=" ".join)
def test_it_lists_its_plug_ins(programs: Path, trapped: Path, arguments: tuple[str, ...]) -> None:
    result = run(programs / arguments[0], *arguments[1:], "list", "--json", cwd=trapped)
    assert (result.returncode, result.stderr) == (0, "")
    content = json.loads(result.stdout)
    listed = {kind: {entry["name"] for entry in entries} for kind, entries in content.items()}
    assert {"manta", "eel", "moth"} <= listed["robots"]
    assert "gait" in listed["controllers"]
    assert "udp" in listed["bridges"]


def test_it_runs(programs: Path, trapped: Path) -> None:
    arguments = ("--mode", "lockstep", "--duration", "0.05", "--controller", "gait", "--bridge", "template", "--json")
    result = run(programs / "rtmms", "run", "manta", *arguments, "--log", "run.mcap", cwd=trapped)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["steps"], report["ended"], report["exchange"]["commands_applied"]) == (50, "duration", 50)


@pytest.mark.parametrize("name", [(), ("plant",)])
def test_benchmarks_are_in_the_repository(programs: Path, trapped: Path, name: tuple[str, ...]) -> None:
    result = run(programs / "rtmms", "bench", *name, cwd=trapped)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "rtmms: bench: benchmarks are in the repository, not in the wheel: clone it and run pip install -e . there"
    ]
