"""docs/report.md lists every key of a report, and every mode, policy, outcome and cause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rtmms.base.contract import MISS_WORDS, MODES, OUTCOME_WORDS, OVERRUN_WORDS
from rtmms.cli.running.plan import Plan
from rtmms.cli.running.report import blank
from rtmms.loop.fault_attribution import CAUSES, FaultAttribution, Times
from rtmms.loop.machine import Readiness
from rtmms.scenario.expectations import ExpectationResult
from tests.cli.shell import ROOT

PAGE = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
NAMES = set(re.findall(r"\w+", re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)))
"""Words of the page outside its examples."""


def keys(report: Any) -> Iterator[str]:
    """Yield the keys of a report, those of its parts too."""
    if isinstance(report, Mapping):
        for key, value in report.items():
            yield key
            yield from keys(value)
    elif isinstance(report, list):
        for value in report:
            yield from keys(value)


def of_a_run() -> dict[str, Any]:
    """Return the report of a run with one bad step."""
    attribution = FaultAttribution(1e6, 500_000)
    attribution.look(())
    attribution.keep(0, missed=True, overran=True, times=Times(0, 1, 2, 3, 4, 5, 2_000_000, 500_000))
    attribution.finish(10**9)
    result = blank(Plan(robot="manta"))
    result["stall_detector"] = attribution.report(1)
    assert result["stall_detector"]["bad_steps"]
    result["realtime"] = Readiness().report()
    result["expect"] = [dict.fromkeys(ExpectationResult.__dataclass_fields__)]
    return result


def test_the_page_lists_every_key() -> None:
    assert sorted(set(keys(of_a_run())) - NAMES) == []


@pytest.mark.parametrize("parts", [MODES, MISS_WORDS[1:], OVERRUN_WORDS, OUTCOME_WORDS, CAUSES])
def test_the_page_lists_every_value(parts: tuple[str, ...]) -> None:
    assert sorted(set(parts) - NAMES) == []
