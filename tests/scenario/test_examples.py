"""Each scenario of examples/scenarios runs to its end, and all that it expects holds; the page shows one of them.

The runs take place in the test's process, as cases of a study: these have the bits of `rtmms run`
(tests/sweep/test_one_case.py), and cost half of what a plant and controllers in processes of their own cost.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from rtmms.cli.running.one_case import scenario_case
from rtmms.studies.case import Runner
from rtmms.studies.sweep_study import Axis, Study
from tests.cli.shell import ROOT, finish, start

pytestmark = pytest.mark.full

FILES = sorted((ROOT / "examples" / "scenarios").glob("*.toml"))
BY_COMMAND = [file for file in FILES if "exchange." in file.read_text()]
"""Those that expect something of the exchange, which a case of a study does not have; the page's is one of them."""
SHOWN = "turn_in_a_current"
"""The one that docs/scenarios.md shows."""


@pytest.mark.parametrize("file", [file for file in FILES if file not in BY_COMMAND], ids=lambda file: file.stem)
def test_an_example_runs_and_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.chdir(tmp_path)
    base, result = scenario_case(str(file), None, {})
    report = Runner(Study(base, (Axis("seed", (base.seed,)),))).report((base.seed,))
    assert report["ended"] == "duration", report.get("reason")
    assert result.expect
    for item in result.expect:
        assert item.holds(report[item.name]), (item, report[item.name])


@pytest.mark.parametrize("file", BY_COMMAND, ids=lambda file: file.stem)
def test_an_example_runs_and_holds_by_the_command(tmp_path: Path, file: Path) -> None:
    result = finish(start(tmp_path, "run", str(file), "--json", "--quiet"), 240)
    assert result.status == 0, result.err
    assert result.report["expect"]
    assert all(item["holds"] for item in result.report["expect"])


def test_the_pages_example_is_that_of_the_folder() -> None:
    block = (ROOT / "docs" / "scenarios.md").read_text().split("```toml\n")[1].split("```")[0]
    shown = tomllib.loads(block)
    whole = tomllib.loads((ROOT / "examples" / "scenarios" / f"{SHOWN}.toml").read_text())
    whole["event"] = whole["event"][:1]
    assert shown == whole
    assert SHOWN in [file.stem for file in BY_COMMAND]
