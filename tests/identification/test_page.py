"""docs/identification.md: what is printed there does what the page says."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

import rtmms
from rtmms.identification.tables import read_columns
from tests.cli.shell import ROOT
from tests.cli.shell import rtmms as shell

PAGE = (ROOT / "docs" / "identification.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0]


def test_its_script_finds_the_drag(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), "identification.md", "exec"), {})
    found = re.search(r"'drag_coefficient': ([\d.]+)", capsys.readouterr().out)
    assert found is not None
    assert float(found[1]) == pytest.approx(1.8, rel=1e-5)


def test_its_map_is_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("columns.toml").write_text(block("toml"))
    found = read_columns(["columns.toml"])
    assert found.keys() == tomllib.loads(block("toml")).keys()
    assert found["velocity[0]"].noise == 0.005


@pytest.mark.full
def test_its_commands_find_what_the_log_was_made_with(tmp_path: Path) -> None:
    for line in block("sh").splitlines():
        done = shell(tmp_path, *shlex.split(line)[1:])
        assert done.status == 0, done.err
    said = re.search(r"drag_coefficient +([\d.]+) +([\d.]+)", done.out)
    assert said is not None
    assert f"{float(said[1]):.4f} +- {float(said[2]):.4f}" in PAGE
    plant = rtmms.load("manta", preset=str(tmp_path / "fitted.toml"))
    assert plant.parameters.drag_coefficient == pytest.approx(float(said[1]), rel=1e-4)  # type: ignore[attr-defined]
    assert (tmp_path / "fit.html").stat().st_size > 10_000
