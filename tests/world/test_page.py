"""docs/world.md, its scenario and the example with a leader."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "world.md").read_text()


def test_the_scenario_is_that_of_the_folder() -> None:
    block = PAGE.split("```toml\n")[1].split("```")[0]
    assert block == (ROOT / "examples" / "scenarios" / "two_mantas.toml").read_text()


def test_the_block_of_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(block, {})
    x, y, z = map(float, capsys.readouterr().out.strip(" []\n").split())
    assert (round(x), round(y), round(z)) == (0, 2, -1)


@pytest.mark.full
def test_the_follower_turns_with_its_leader() -> None:
    done = runpy.run_path(str(ROOT / "examples" / "24_follow_the_leader.py"))["main"]()
    assert done["leader"] < -1.0
    assert abs(done["follower"] - done["leader"]) < 0.6
    assert 1.0 < done["distance"] < 3.0
