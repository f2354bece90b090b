"""`rtmms bench tables`: what pages quote of the results that are kept is what these have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rtmms.base.errors import ModelError
from rtmms.view.tables import blocks
from rtmms_benchmarks import tables, tables_loop
from tests.cli.shell import ROOT

RESULTS = ROOT / "benchmarks" / "results"


def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_pages_state_what_the_results_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert tables.main(check=True) == 0, f"run rtmms bench tables: {capsys.readouterr().out}"


def test_the_readme_quotes_the_loop_and_the_hour() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    case = next(case for case in result("loop")["cases"] if (case["rate_hz"], case["condition"]) == (1000, "idle"))
    us = case["medians_us"]
    hour = result("soak_hour")
    for text in (
        f"| delay of the loop's wake-up | {pair(us, 'loop, wake-up')} | cyclictest {pair(us, 'cyclictest, wake-up')} |",
        f"gait` | {pair(us, 'loop, exchange')} | raw datagrams from Python {pair(us, 'datagram, exchange')}; raw",
        f"Of {hour['steps']} commands, {hour['exchange']['misses']} missed their deadline. "
        f"{hour['schedule']['overruns']} steps [overran]",
    ):
        assert text in readme.replace("\n", " ")


def pair(us: dict[str, Any], who: str) -> str:
    """The median and the 99th percentile, as the tables have them."""
    return ", ".join(f"{us[who][q]:.0f}" for q in ("p50", "p99"))


def test_every_table_is_on_one_page() -> None:
    results = [name for page in tables.pages(ROOT) for name in blocks(page.read_text("utf-8"))]
    assert sorted(name for name in results if name in tables.PARTS) == sorted(tables.PARTS)


def test_a_page_that_is_old_is_reported_and_then_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RESULTS, tmp_path / "benchmarks" / "results")
    shutil.copy(ROOT / "README.md", tmp_path)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "results.md", tmp_path / "docs")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    assert tables.main(check=True) == 0
    loop = result("loop")
    us = next(case for case in loop["cases"] if (case["rate_hz"], case["condition"]) == (1000, "idle"))["medians_us"]
    us["loop, wake-up"]["p50"] += 10.0
    (tmp_path / "benchmarks" / "results" / "loop.json").write_text(json.dumps(loop))
    before = (tmp_path / "README.md").read_text()
    capsys.readouterr()
    assert tables.main(as_json=True, check=True) == 1
    assert json.loads(capsys.readouterr().out) == {"stale": ["README.md", "docs/results.md"]}
    assert (tmp_path / "README.md").read_text() == before
    assert tables.main() == 0
    assert "README.md: written" in capsys.readouterr().out
    assert f"| delay of the loop's wake-up | {pair(us, 'loop, wake-up')} |" in (tmp_path / "README.md").read_text()
    assert tables.main(check=True) == 0


@pytest.mark.parametrize("stored", [[], [3], [1, 4]])
def test_a_loop_of_some_rates_or_of_one_condition(stored: list[int]) -> None:
    loop = result("loop")
    loop["cases"] = [loop["cases"][k] for k in stored]
    for write in (tables_loop.times, tables_loop.ratios, tables_loop.misses):
        assert write(loop).count(" kHz, idle |") + write(loop).count(" kHz, stress-ng |") == len(stored)
    assert tables_loop.run(loop)
    assert "an hour" in tables_loop.in_real_time(loop, result("soak_hour"))
    message = tables_loop.in_real_time(loop, result("soak_hour"))
    busy = [f"at {rate} kHz in real time, beside stress-ng" in message for rate in (2, 1)]
    assert busy == [stored == [3], stored == [1, 4]]


def test_what_could_not_be_measured_is_a_dash() -> None:
    loop = result("loop")
    for case in loop["cases"]:
        case["medians_us"] = dict.fromkeys(case["medians_us"])
        case["ratios"] = dict.fromkeys(case["ratios"])
        for who in tables_loop.RUNS.values():
            case[f"{who}_misses"] = {"all": 0, "unexplained": 0, "steps": 0, "unexplained_percent": None}
    loop["steps_a_second"] = dict.fromkeys(loop["steps_a_second"])
    assert "| - | - | - | - | - | - | - | - |" in tables_loop.times(loop)
    assert "| -; - | -; - | -; - | - |" in tables_loop.ratios(loop)
    overruns = [100 * case["overruns"]["unexplained"] / case["overruns"]["steps"] for case in loop["cases"]]
    assert all(f"| - | - | - | - | - | - | - | {share:.3f} |" in tables_loop.misses(loop) for share in overruns)
    assert "| delay of the loop's wake-up | -, - | cyclictest -, - |" in tables_loop.in_real_time(
        loop, result("soak_hour")
    )
    assert tables_loop.paces(loop, {"cases": []}) == "Nothing was measured."


def test_what_is_beyond_its_aim_is_bold() -> None:
    loop = result("loop")
    case = loop["cases"][0]
    case["ratios"] |= {"wake_p50": 1.21, "wake_p99": 1.5}
    case["still_misses"]["unexplained_percent"] = 0.02
    case["datagram_misses"]["unexplained_percent"] = 0.015
    case["steady_misses"]["unexplained_percent"] = 0.026
    loop["cases"] = [case]
    assert "| **1.21**; 1.50 |" in tables_loop.ratios(loop)
    assert "| 0.020 | **0.026** |" in tables_loop.misses(loop)


CROSSED = "<!-- begin exchange -->\n<!-- begin hour -->\n<!-- end exchange -->\n<!-- end hour -->"


@pytest.mark.parametrize("text", ["<!-- begin hour -->\n", CROSSED, "<!-- end hour -->"])
def test_marks_that_do_not_match(text: str) -> None:
    with pytest.raises(ModelError, match="expected <!-- begin NAME -->"):
        blocks(text)
