"""docs/own_robot.md: every block of code there runs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from tests.cli.shell import environment

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "own_robot.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
PYTHON = [code for kind, code in BLOCKS if kind == "python"]
COMMANDS = [line for kind, code in BLOCKS if kind == "sh" for line in code.splitlines()]


def test_no_block_is_left_out() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "sh", "xml"}
    assert (len(PYTHON), len(COMMANDS)) == (5, 4)


def test_the_ten_lines(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(compile(PYTHON[0], "own_robot.md", "exec"), names)
    assert capsys.readouterr().out.startswith("[")
    assert isinstance(names["plant"], rtmms.Plant)
    rest = ("import", "from", "for", " ", "print")
    assert len([line for line in PYTHON[0].splitlines() if line and not line.startswith(rest)]) <= 10


def test_the_tractor_and_its_trailer(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(compile(PYTHON[4], "own_robot.md", "exec"), names)
    assert capsys.readouterr().out.startswith("[")
    seen = names["plant"].observe()
    assert seen["velocity"][0] == pytest.approx(0.05 * 9.0, rel=1e-6)
    assert seen["angular_velocity"][2] == pytest.approx(0.05 * 2.0 / 0.4, rel=1e-6)
    # it settles where the trailer's axle, 0.4 m behind the hitch, turns about the same point as the deck
    radius = seen["velocity"][0] / seen["angular_velocity"][2]
    hitch = -np.arctan2(0.2, radius) - np.arcsin(0.4 / np.hypot(0.2, radius))
    assert seen["joint_position"][2] == pytest.approx(hitch, rel=2e-2)


def test_the_swimmer_swims_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PYTHON[1], "own_robot.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) > 0.5


def test_the_tendon_bends_the_finger(capsys: pytest.CaptureFixture[str]) -> None:
    """At rest the springs bear what 3 N less friction do at either joint."""
    names: dict[str, Any] = {}
    exec(compile(PYTHON[2], "own_robot.md", "exec"), names)
    assert capsys.readouterr().out.startswith("[")
    seen = names["plant"].observe()
    assert np.all(seen["joint_position"] > 0.1)
    assert seen["tendon_tension"] == pytest.approx([3.0])


@pytest.mark.full
def test_the_xml_is_read(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    (xml,) = (code for kind, code in BLOCKS if kind == "xml")
    text = (ROOT / "examples" / "quadrotor" / "quadrotor.urdf").read_text()
    path = tmp_path / "own.urdf"
    path.write_text(re.sub(r"<rtmms>.*</rtmms>", lambda _: xml, text, flags=re.DOTALL))
    assert [c.name for c in rtmms.load(str(path)).actuators] == ["front.speed", "jet.command"]


@pytest.mark.full
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page(line: str, tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    (tmp_path / "mine.py").write_text(next(code for code in PYTHON if code.startswith("# mine.py")))
    shutil.copytree(ROOT / "examples" / "quadrotor", tmp_path / "examples" / "quadrotor")
    ran = subprocess.run(
        [sys.executable, "-m", *shlex.split(line)], cwd=tmp_path, env=environment(tmp_path), capture_output=True,
        text=True, timeout=200, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()
