"""Each scenario of examples/scenarios runs to its end, and all that it expects holds; the page shows one of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, finish, start

pytestmark = pytest.mark.full

FILES = sorted((ROOT / "examples" / "scenarios").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_runs_and_holds(tmp_path: Path, file: Path) -> None:
    said = finish(start(tmp_path, "run", str(file), "--json", "--quiet"), 240)
    assert said.status == 0, said.err
    assert said.report["expect"]
    assert all(one["holds"] for one in said.report["expect"])


def test_the_pages_example_is_that_of_the_folder() -> None:
    block = (ROOT / "docs" / "scenarios.md").read_text().split("```toml\n")[1].split("```")[0]
    shown = tomllib.loads(block)
    whole = tomllib.loads((ROOT / "examples" / "scenarios" / "turn_in_a_current.toml").read_text())
    whole["event"] = whole["event"][:1]
    assert shown == whole
