"""docs/mujoco.md: its blocks of Python run, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo: pip install 'rtmms[mujoco]'")
pytestmark = [pytest.mark.full, pytest.mark.peer]
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mujoco.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_the_blocks_of_python_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    controller, *programs = (code for language, code in BLOCKS if language == "python")
    names: dict[str, object] = {}
    exec(compile(controller, "mujoco.md", "exec"), names)
    assert "Crawl" in names
    assert len(programs) == 3
    for program in programs:
        exec(compile(program, "mujoco.md", "exec"), {})
        printed = capsys.readouterr().out
        assert printed in [code for language, code in BLOCKS if language == "text"]


def test_the_controller_is_the_one_of_the_example() -> None:
    example = (ROOT / "examples" / "mujoco" / "crawl.py").read_text(encoding="utf-8")
    body = next(code for language, code in BLOCKS if language == "python").partition("claim")[2]
    assert body in example
