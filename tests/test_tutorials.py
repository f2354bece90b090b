"""docs/tutorials: what is printed there works when it is typed in its order. Blocks of `sh` are run, `python` blocks
whose first line is `# NAME` are written to that file; `text` is for the eye."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import environment

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)
MADE = {"start": ["manta.png"], "steer": ["turn.mcap", "turn.gif"], "own_robot": ["swim.mcap", "swim.gif"],
        "own_plant": ["cart/pyproject.toml"],
        "replay": ["both.png", "run.csv", "run.svg", "run.gif", "run.html"]}  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_works_as_printed(page: Path, tmp_path: Path) -> None:
    told = dict[str, str]()
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "python":
            name = text.splitlines()[0].removeprefix("# ")
            assert name.endswith(".py")
            (tmp_path / name).write_text(text)
            continue
        for line in text.splitlines():
            assert line.startswith("rtmms "), line
            ran = subprocess.run(
                [sys.executable, "-m", "rtmms.cli.main", *shlex.split(line)[1:]], cwd=tmp_path, capture_output=True,
                env=environment(tmp_path) | {"PATH": os.environ["PATH"]}, text=True, timeout=240, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, f"{line}\n{ran.stderr}"
            told[line] = ran.stdout
    for file in MADE[page.stem]:
        assert (tmp_path / file).stat().st_size > 100, file
    if page.stem == "steer":
        (report,) = (out for line, out in told.items() if "pilot.py" in line)
        assert float(re.search(r"turn_rate_deg_s +(-?[\d.]+)", report).group(1)) < -1.0  # type: ignore[union-attr]
