"""docs/identification.md: what is printed there does what the page promises."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

import rtmms
from rtmms.studies.fit_features import read_objectives
from rtmms.studies.fit_tables import read_columns
from rtmms.studies.fit_unknowns import asked_for
from tests.cli.shell import ROOT
from tests.cli.shell import rtmms as shell

PAGE = (ROOT / "docs" / "identification.md").read_text(encoding="utf-8")


def block(language: str, first: str = "") -> str:
    """The first block of a language, or the one that begins with `first`."""
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(item for item in blocks if item.startswith(first))


def test_its_script_finds_the_drag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", "import numpy"), "identification.md", "exec"), {})
    assert (tmp_path / "fit.png").stat().st_size > 5000
    match = re.search(r"'drag_coefficient': ([\d.]+)", capsys.readouterr().out)
    assert match is not None
    assert float(match[1]) == pytest.approx(1.8, rel=1e-5)


def test_its_map_is_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("columns.toml").write_text(block("toml", "# columns"))
    columns = read_columns(["columns.toml"])
    assert columns.keys() == tomllib.loads(block("toml", "# columns")).keys()
    assert columns["velocity[0]"].noise == 0.005


def test_its_objectives_are_objectives(tmp_path: Path) -> None:
    (tmp_path / "speeds.toml").write_text(block("toml", "# speeds"))
    speed, wave = read_objectives([str(tmp_path / "speeds.toml")])
    assert (speed.recording, speed.value, speed.noise) == ("slow", 0.152, 0.002)
    assert (wave.parts, wave.phase_rad) == (("joint_position", 1), -0.4)


def test_its_robot_has_bounds_where_they_are_declared(tmp_path: Path) -> None:
    (tmp_path / "rod.py").write_text(block("python", "# rod.py"))
    plant = rtmms.load(f"{tmp_path / 'rod.py'}:robot", mass_kg=2.0)
    mass, damping = asked_for(["mass_kg", "damping"], [], plant, {}, {})
    assert (mass.first, mass.high, mass.unit) == (2.0, 50.0, "kg")
    assert (damping.low, damping.high) == (-np.inf, np.inf)


@pytest.mark.full
def test_its_commands_find_what_the_log_was_made_with(tmp_path: Path) -> None:
    for line in block("sh").splitlines():
        done = shell(tmp_path, *shlex.split(line)[1:])
        assert done.status == 0, done.err
    output = re.search(r"drag_coefficient +([\d.]+) +([\d.]+)", done.out)
    assert output is not None
    assert f"{float(output[1]):.4f} +- {float(output[2]):.4f}" in PAGE
    plant = rtmms.load("manta", preset=str(tmp_path / "fitted.toml"))
    assert plant.parameters.drag_coefficient == pytest.approx(float(output[1]), rel=1e-4)  # type: ignore[attr-defined]
    assert (tmp_path / "fit.html").stat().st_size > 10_000
